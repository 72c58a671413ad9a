"""The views: every figure is the trace's, every word is there, and nothing that is named can become markup."""

from __future__ import annotations

import copy
import gc
import html
import inspect
import json
import os
import re
import subprocess
import sys
import unicodedata
import weakref
from fractions import Fraction
from importlib.metadata import version
from types import SimpleNamespace
from xml.etree import ElementTree

import jinja2
import markdown
import msgspec
import pytest
from copies import ROOT
from reference import golden, goldens
from reference.configs import every_type

from macros.catalogue import independent, preset_file, presets
from macros.catalogue.presets import Model, make
from macros.catalogue.small_configs import small_configs
from macros.cli import printing
from macros.cli.describe import as_table
from macros.cli.scaffold import REASON
from macros.counting.costs import of as costs_of
from macros.data.model import as_json
from macros.engine import forward as run
from macros.engine.architectures import architectures
from macros.engine.architectures.config import fields_of
from macros.engine.dims import Poly, latex_name
from macros.engine.errors import Problem
from macros.engine.forward import TRACED_CONTEXT, TRACED_NEW_TOKENS
from macros.engine.steps import Role
from macros.engine.trace import Trace
from macros.site import page_arguments, page_errors, page_macros
from macros.views.costs import bytes_moved, flops, kv_cache, memory, overview, time_bounds
from macros.views.diagrams import model_diagrams
from macros.views.guide import matmul, model_size, tools
from macros.views.kit import context_limits, disclosure, equations, mathml, rounding, values
from macros.views.kit import html as kit
from macros.views.kit.html import tag, text
from macros.views.tables import comparison, formulas, parameters, size_counts
from macros.views.trace import operations, walkthrough
from macros.views.trace.layers import layer_range
from macros.views.trace.parts import groups
from macros.views.words import descriptions, notation

DISCLOSED = [slug for slug in presets.paths() if presets.preset(slug).config is not None]

# Sizes that are prime where they can be, and all different; D ≠ N·H.
SMALL = dict(
    model_type="llama",
    vocab_size=211,
    hidden_size=101,
    num_hidden_layers=7,
    num_attention_heads=6,
    num_key_value_heads=3,
    head_dim=13 * 2,
    intermediate_size=107,
    tie_word_embeddings=False,
)
V, D, L, N, K, H, F = 211, 101, 7, 6, 3, 26, 107


@pytest.fixture
def small(monkeypatch):
    """Put a model of these keys behind a slug of its own: `small(tie_word_embeddings=True)` -> (slug, model)."""
    models: dict[str, Model] = {}
    known = disclosure.model

    def put(preset=None, **keys):
        model = make(f"small-{os.urandom(6).hex()}", SMALL | keys)
        model.preset = preset
        if preset is not None:
            model.whole = {"text_config": model.raw}  # as of a preset without other parts
        models[model.slug] = model
        return model.slug, model

    monkeypatch.setattr(disclosure, "model", lambda slug: models.get(slug) or known(slug))
    return put


def plain(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def rows_of(markup: str) -> list[list[str]]:
    """The cells of each row of a table, as text."""
    return [
        [plain(c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", r)]
        for r in re.findall(r"<tr[^>]*>(.*?)</tr>", markup)
    ]


def as_int(cell: str) -> int:
    return int(cell.replace(",", "").replace("−", "-"))


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n, digits, expected",
    [
        (8_030_261_248, 3, "8.03B"),
        (124_439_808, 3, "124M"),
        (405_853_388_800, 3, "406B"),
        (70_553_706_496, 3, "70.6B"),
        (999_600, 3, "1.00M"),
        (999_499, 3, "999K"),
        (1_044_811_714_560, 4, "1.045T"),
        (937, 3, "937"),
        (0, 3, "0"),
        (2_506_172_416, 2, "2.5B"),
        (9_999_999_999, 3, "10.0B"),
    ],
)
def test_a_count_as_people_say_it(n, digits, expected):
    assert rounding.short(n, digits) == expected


def test_units():
    assert rounding.grouped(-1234567) == "−1,234,567"
    assert rounding.decimal_bytes(16_060_522_496) == "16.1 GB"
    assert rounding.decimal_range(17_600_000_000, 19_500_000_000) == "17.6 to 19.5 GB"
    assert rounding.decimal_range(120_000_000, 1_740_000_000) == "120 MB to 1.74 GB"
    assert rounding.decimal_range(125_000_000, 125_000_001, "about ") == "about 125 MB"
    assert rounding.binary_bytes(2**30) == "1.00 GiB" and rounding.binary_bytes(3 * 2**29) == "1.50 GiB"
    assert rounding.flops(15_009_316_864) == "15.0 GFLOP"
    assert rounding.in_unit(2**31, "GiB") == "2.00 GiB" and rounding.in_unit(7_241_732_096, "B") == "7.24B"
    assert (
        rounding.percent(1, 3),
        rounding.percent(1, 10**6),
        rounding.percent(0, 7),
        rounding.signed_percent(-1, 8),
    ) == (
        "33.3%",
        "<0.1%",
        "0.0%",
        "−12.5%",
    )
    with pytest.raises(Problem, match="did you mean"):
        rounding.in_unit(1, "GIB")


@pytest.mark.parametrize(
    "layers, expected",
    [
        ([3], "layer 3"),
        ([0, 1, 2], "layers 0–2"),
        ([5, 11, 17, 23], "every sixth layer from 5 to 23"),
        ([0, 2, 4], "every second layer from 0 to 4"),
        ([0, 1, 2, 4, 5, 6], "layers 0–2 and 4–6"),
        ([0, 1, 3, 4, 6, 7, 9, 10], "layers 0–10 without every third"),
        ([2, 5], "layers 2 and 5"),
        ([], ""),
    ],
)
def test_layers_in_words(layers, expected):
    assert layer_range(layers) == expected


# --- single figures ---------------------------------------------------------------------------------------------------


def test_values(small):
    slug, model = small()
    assert values.value(slug, "vocab_size") == "211"
    assert (
        values.value(slug, "n_heads * d_head") == "156"
        and values.value(slug, "12 * n_layers * d_model ** 2") == "856,884"
    )
    assert (
        values.value(slug, "d_ff / d_model") == rounding.significant(Fraction(F, D))
        and values.value(slug, "n_heads / 4") == "1.5"
    )
    assert values.value(slug, "cache_bytes", context=19) == rounding.grouped(2 * 2 * L * K * H * 19)
    assert values.value(slug, "cache_bytes_per_token", digits=2) == "2,200"
    assert values.params(slug, "q_proj") == rounding.grouped(L * N * H * D)
    assert values.params(slug, "feed_forward") == rounding.grouped(3 * L * D * F)
    assert values.params(slug, rounded=True) == rounding.short(model.counts.total)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: values.value("llama3-8b", "d_modle"), 'did you mean "d_model"'),
        (lambda: values.value("lama3-8b", "d_model"), 'did you mean "llama3-8b"'),
        (lambda: values.value("llama3-8b", "cache_bytes"), "context=4096"),
        (lambda: values.value("llama3-8b", "__import__('os')"), "is not a formula"),
        (lambda: values.value("llama3-8b", "d_model / 0"), "divides by zero"),
        (lambda: values.value("llama3-8b", "9 ** 9 ** 9"), "is not a formula"),
        (lambda: values.value("llama3-8b", 7), "in quotes"),
        (lambda: values.value(7, "d_model"), "in quotes"),
        (lambda: values.value("llama3-8b", "d_model", unit="GiBi"), 'did you mean "GiB"'),
        (lambda: values.params("llama3-8b", "attentoin"), 'did you mean "attention"'),
        (lambda: values.params("llama3-8b", rounded=0), "from 1 to 12"),
        (lambda: walkthrough.walkthrough("llama3-8b", tokens=0), "from 1 to"),
        (lambda: walkthrough.walkthrough("llama3-8b", tokens=9, context=8), "less than tokens"),
        (lambda: walkthrough.walkthrough("gpt2", tokens=1025), "position table"),
        (lambda: walkthrough.walkthrough("gpt2", depth="step"), 'did you mean "steps"'),
        (lambda: matmul.matmul("gpt2", "c_fx"), 'did you mean "c_fc"'),
        (lambda: comparison.comparison(["gpt2"], "total"), 'columns=["…", "…"]'),
        (lambda: comparison.comparison(["gpt2"], [("a", "total", "active")]), "a label with it"),
        (lambda: comparison.comparison(["gpt2"], [7]), "a label with it"),
        (lambda: model_size.width_result("least d_f"), 'did you mean "least d_ff"'),
    ],
)
def test_a_wrong_call_says_what_to_write(call, message):
    with pytest.raises(Problem) as raised:
        call()
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_an_undisclosed_model_has_no_figures():
    slug = "claude-3-opus"
    assert values.value(slug, "d_model") == values.params(slug) == "undisclosed"
    assert values.value(slug, "organization") == "Anthropic"
    for view in (
        parameters.parameter_table,
        size_counts.which_number,
        kv_cache.kv_cache,
        flops.flops,
        overview.costs,
        formulas.formula,
        walkthrough.walkthrough,
    ):
        assert not re.search(r"\d", plain(view(slug)).replace("Claude 3 Opus", "")) and "undisclosed" in view(slug)
    assert "undisclosed" in plain(comparison.comparison(["gpt2", slug], ["total"]))


def test_a_view_of_a_model_takes_its_slug():
    for view in (kv_cache.kv_cache, walkthrough.walkthrough, matmul.matmul, model_diagrams.block):
        first, *others = inspect.signature(view).parameters
        assert first == "slug" and "model" not in others
    assert kv_cache.kv_cache(slug="gpt2") == kv_cache.kv_cache("gpt2")
    assert list(inspect.signature(model_diagrams.block).parameters) == ["slug", "kind", "highlight", "link"]


def test_an_attribute_is_left_out_or_has_no_value():
    assert tag("pre", "a<b", cls="x y", data_search_exclude=True, id=None, aria_label="{{ 1 }}") == (
        '<pre class="x y" data-search-exclude aria-label="&#123;&#123; 1 &#125;&#125;">a&#60;b</pre>'
    )


@pytest.mark.parametrize(
    "slug, n",
    [
        ("gpt2", 137_022_720),
        ("qwen3-0.6b", 751_632_384),
        ("gpt-oss-20b", 21_511_953_984),
        ("deepseek-v3", 684_531_386_000),
        ("kimi-k2", 1_026_470_731_056),
        ("mixtral-8x7b", None),
        ("pythia-12b", 11_997_067_840),
        ("minimax-m2", 228_703_644_928),
        ("qwen3-next-80b-a3b", 81_324_862_720),
        ("qwen3.5-35b-a3b", 35_951_822_704),
        ("deepseek-v3.2", 685_396_921_376),
        ("glm-5", 753_864_139_008),
        ("opt-13b", None),
        ("gpt3-175b", None),
    ],
)
def test_stored_is_what_the_models_own_file_holds(slug, n, capsys):
    """The same on a page, on the command line and in the data; without a published file computed, and flagged."""
    model = presets.model(slug)
    held = model.counts.total + model.counts.buffer_elements if n is None else n
    assert values.number(model, "stored") == model.stored == held and model.is_stored_computed == (n is None)
    assert rows_of(comparison.comparison([slug], ["stored"]))[1][1] == f"{'‡ ' if n is None else ''}{held:,}"
    assert ("computed" in str(comparison.comparison([slug], ["stored"]))) == (n is None)
    data = json.loads(as_json(model, True))["parameters"]
    assert (data["stored"], data["stored_is_computed"]) == (held, n is None)
    [line] = [line for line in printing.plain(as_table(model)).splitlines() if line.startswith("stored")]
    assert f" {held:,} " in line and ("computed" in line) == (n is None)


@pytest.mark.parametrize("slug", DISCLOSED)
def test_what_the_file_holds_is_one_of_the_published_totals_of_the_models_page(slug):
    model = presets.model(slug)
    assert model.is_stored_computed or rounding.grouped(model.stored) in [
        r[1] for r in rows_of(size_counts.which_number(slug)) if r[0] == "Published"
    ]
    [last] = [r for r in rows_of(parameters.parameter_table(slug)) if r[0].startswith("As published")] or [None]
    assert last is None or (as_int(last[1]), last[0].removeprefix("As published: ")) == (
        model.preset.published.parameters,
        model.preset.published.source,
    )


def test_a_column_says_what_it_holds(small):
    slug, model = small()
    columns = [
        "vocab_size * d_model",
        "d_ff / d_model",
        "d_model ** 2 - total",
        "non_embedding / n_layers",
        "in_layers",
        ("Of one layer", "in_layers // n_layers"),
    ]
    assert [comparison._labelled(c)[1] for c in ("d_model", ("<b>", "total"))] == [
        comparison.var("d_model"),
        "&#60;b&#62;",
    ]
    heads = [plain(comparison._labelled(c)[1]) for c in columns]
    assert heads == [
        "vocab_size·d_model",
        "d_ff / d_model",
        "d_model2 − parameters",
        "Non-embedding parameters / n_layers",
        "Parameters in the layers",
        "Of one layer",
    ]
    assert rows_of(comparison.comparison(["llama3-8b"], columns))[1][-2:] == [
        rounding.grouped(n) for n in (32 * 218_112_000, 218_112_000)
    ]


def test_heads_that_share_nothing_have_keys_and_values_of_their_own(small):
    made = comparison.comparison(["gpt2", "llama3-8b", "deepseek-v3", "mamba-130m"], ["n_kv_heads"])
    assert [r[1] for r in rows_of(made)[1:]] == ["12", "8", "–", "–"]
    assert "“–” for n_kv_heads: DeepSeek-V3 keeps latents" in plain(made) and "latents" not in comparison.comparison(
        ["gpt2", "llama3-8b"], ["n_kv_heads"]
    )
    assert values.value("gpt2", "n_heads / n_kv_heads") == "1" and values.value(small()[0], "n_kv_heads") == str(K)


def test_a_context_that_a_model_cannot_read_is_marked():
    columns = ["total", "cache_bytes", "2 * decode_flops"]
    made = comparison.comparison(["gpt2", "llama3-8b", "deepseek-v3"], columns, context=8193)
    assert [[c.startswith("† ") for c in r[1:]] for r in rows_of(made)[1:]] == [
        [False, True, True],
        [False, True, True],
        [False] * 3,
    ]
    assert "† beyond the tokens that the config allows: GPT-2 Small 1,024 (position table), Llama 3 8B 8,192." in plain(
        made
    )
    assert "†" not in comparison.comparison(["llama3-8b"], columns, context=8192) and "†" in kv_cache.kv_cache(
        "llama3-8b"
    )


def test_the_narrowest_and_widest_gated_part_are_of_the_catalogue():
    ratios = {
        slug: Fraction(raw["intermediate_size"], raw["hidden_size"])
        for slug in DISCLOSED
        if "intermediate_size" in (raw := presets.preset(slug).config)
        and any(w.name.endswith(("mlp.gate_proj.weight", "mlp.Wi.weight")) for w in presets.model(slug).counts.weights)
        and presets.model(slug).counts.active == presets.model(slug).counts.total
    }
    for what, end in (("least d_ff", min), ("most d_ff", max)):
        said = model_size.width_result(what)
        assert said.startswith(f"{values.formatted(end(ratios.values()))}·D (")
        assert next(s for s in ratios if presets.preset(s).name in said and ratios[s] == end(ratios.values()))


# --- pages ------------------------------------------------------------------------------------------------------------


def test_a_wider_vector_costs_what_the_page_says(small):
    """The page’s two formulas for one more number in a vector, all else as it is, beside a model that is made so."""
    page = (ROOT / "docs/model-size/fixed-after-training.md").read_text("utf-8")
    *parts, a_layer, whole = re.findall(r'value\("llama-7b", "([^"]*// d_model)"\)', page)
    (_, model), (_, wider) = small(), small(hidden_size=D + 1)
    assert values.number(wider, "in_layers") - values.number(model, "in_layers") == L * values.evaluate(model, a_layer)
    assert len(parts) == 3 and sum(values.evaluate(model, part) for part in parts) == values.evaluate(model, a_layer)
    assert wider.counts.total - model.counts.total == values.evaluate(model, whole) == Fraction(model.counts.total, D)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda p: p.stem)
def test_no_line_of_a_list_starts_with_a_figure_and_a_full_stop(page):
    """`128. One more …` would be read as a list's item. Mend: pull the figure onto the line before."""
    inside = False
    for line in page.read_text("utf-8").splitlines():
        inside = bool(re.match(r"\s*(?:[-*+]|\d+\.) ", line)) or inside and bool(line.strip())
        assert not (inside and re.match(r"\s*\{\{.*?\}\}\. ", line)), line


# --- tables and formulas ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True])
def test_the_parameter_table_adds_up(small, tied):
    slug, model = small(tie_word_embeddings=tied)
    found = rows_of(parameters.parameter_table(slug))
    in_rows = [r for r in found if len(r) == 6 and "weight" in r[0] and not r[0].startswith("same")]
    tensors = {name: (said, r) for r in in_rows for name, _, said in [r[0].partition("weight¶")]}
    said, row = tensors["model.layers.{i}.self_attn.k_proj."]
    assert said == "Key projection"
    assert row[1] == rounding.grouped(L * K * H * D)
    assert row[3:] == [f"[n_kv_heads·d_head, d_model][{K * H}, {D}]", rounding.grouped(K * H * D), str(L)]
    by_hand = (1 if tied else 2) * V * D + L * (2 * N * H * D + 2 * K * H * D + 3 * D * F + 2 * D) + D
    assert sum(as_int(r[1]) for r in in_rows) == by_hand == model.counts.total
    assert as_int(next(r for r in found if r[0] == "Total parameters")[1]) == by_hand
    assert sum(as_int(r[1]) for r in found if r[0].endswith(", total")) == by_hand - (1 if tied else 2) * V * D - D
    assert any(r[0] == "same tensor as model.embed_tokens.weight" and r[1] == "0" for r in found) == tied


@pytest.mark.parametrize("slug", DISCLOSED)
def test_the_formula_adds_up_in_symbols_and_in_numbers(slug):
    model = presets.model(slug).drawn
    titled, at = groups(model), model.counts.values()
    assert sum((g.poly for g in titled), Poly.of(0)) == model.counts.total_poly
    for g in titled:
        numbers_as_read = (
            re.sub("([⁰¹²³⁴⁵⁶⁷⁸⁹])", lambda m: f"**{unicodedata.digit(m[1])}", formulas.part_in_numbers(g, at))
            .replace("·", "*")
            .replace(",", "")
        )
        symbols_as_read = formulas.part_in_symbols(g, lambda s: str(at[s]))
        for latex, python in (
            (r"\frac{", "Fraction({"),
            ("}{", "}, {"),
            (r" \cdot ", "*"),
            (r" \left(", "*("),
            (r"\right)", ")"),
            ("^", "**"),
            ("{,}", ""),
        ):
            symbols_as_read = symbols_as_read.replace(latex, python)
        assert eval(numbers_as_read.replace("{", "(").replace("}", ")")) == g.count
        if "Fraction" not in symbols_as_read:
            assert eval(symbols_as_read.replace("{", "(").replace("}", ")")) == g.count
    found = rows_of(formulas.formula(slug))
    assert sum(as_int(r[2]) for r in found[1:-1]) == as_int(found[-1][2]) == model.counts.total


@pytest.mark.parametrize("slug", DISCLOSED)
def test_a_formula_in_a_sentence_can_wrap_and_is_whole(slug):
    latex = equations.total_latex(presets.model(slug).counts.total_poly, equations.symbol_letter)
    pieces = [piece for term in mathml.pieces(latex) for piece in term]
    assert " ".join(pieces) == latex and all(p.count("{") == p.count("}") for p in pieces)
    assert all(" + " not in p and " - " not in p for p in pieces if r"\frac" not in p)
    assert formulas.parameter_formula(slug).count("<math") in (1, len(pieces))


@pytest.mark.parametrize(
    "latex, pieces",
    [
        ("a + b", ["a", "+ b"]),
        ("x = a - b", ["x", "= a", "- b"]),
        ("x = a +\nb", ["x", "= a", "+ b"]),
        (r"n \left(a + b\right) + c", [r"n \, (a", "+ b)", "+ c"]),
        (r"\frac{a + b}{c} + d", [r"\frac{a + b}{c}", "+ d"]),
        (r"\min\left(S, a + b\right) + c", [r"\min\left(S, a + b\right)", "+ c"]),
        (r"\left\lfloor \frac{S}{3} + 1 \right\rfloor + c", [r"\left\lfloor \frac{S}{3} + 1 \right\rfloor", "+ c"]),
        (r"\left[q + k\right] v", [r"\left[q + k\right] v"]),
        (r"\begin{aligned} a &= b + c \end{aligned}", [r"\begin{aligned} a &= b + c \end{aligned}"]),
        (r"12 \cdot L \cdot D^{2}", [r"12 \cdot L \cdot D^{2}"]),
    ],
)
def test_a_long_formula_is_cut_at_its_operators(latex, pieces):
    assert [" ".join(term) for term in mathml.pieces(latex)] == pieces


def test_a_short_formula_is_one_and_the_pieces_of_a_long_one_are_as_large_as_it():
    assert mathml.without_tex(mathml.wrapping("a + b", True)) == mathml.mathml("a + b", True)
    latex = r"2 \cdot \text{vocab size} \cdot d_{\text{model}} + d_{\text{model}} + S"
    said = mathml.wrapping(latex, True)
    assert html.unescape(re.findall(f' {mathml.TEX}="([^"]*)"', said)[0]) == latex and said.count(mathml.TEX) == 1
    long = mathml.without_tex(said)
    assert long.count('<math displaystyle="true"') == long.count("<math") == 3 and long.count("<wbr>") == 2
    assert long.count('<mo lspace="0" rspace="0">') == 2 and "ep-addend" not in long
    assert mathml.pieces(r"a + n_{\text{layers}} \cdot d_{\text{something very long}} \cdot S") == [
        ["a"],
        [r"+ n_{\text{layers}}", r"\cdot d_{\text{something very long}}", r"\cdot S"],
    ]


def test_formulas_translated_together_are_as_each_alone(monkeypatch):
    """A wrong one among them is told when it is asked for, and hides no other."""
    latex, wrong = r"2 \cdot d_{\text{model}} \cdot \text{vocab size} + d_{\text{model}} + S_{17}", r"\nothing{"
    alone = mathml.wrapping(latex), mathml.wrapping(latex, True), mathml.mathml("S_{17}", True)
    for kept in ("_translated", "_prepared"):
        monkeypatch.setattr(mathml, kept, type(getattr(mathml, kept))())
    mathml.prepare([latex, wrong, "S_{18}"])
    mathml.prepare([latex, wrong, "S_{17}"], display=True)
    assert (mathml.wrapping(latex), mathml.wrapping(latex, True), mathml.mathml("S_{17}", True)) == alone
    with pytest.raises(Problem, match="is not LaTeX that Temml knows"):
        mathml.wrapping(wrong)


def test_equal_rows_in_succession_are_one():
    """Two rotation tables of Gemma 3; the attention of GPT-NeoX turns q and k, still in one vector with v."""
    assert "RoPE angles × 2" in plain(walkthrough.walkthrough("gemma3-1b"))
    assert "RoPE × 2" in plain(walkthrough.walkthrough("pythia-70m"))


def test_which_number_explains_every_difference(small):
    extra = preset_file.Extra(name="saved masks", count=41)
    published = preset_file.Published(parameters=10**6, exact=True, source="a file", extra=(extra,))
    slug, model = small()
    preset = msgspec.structs.replace(
        presets.preset("llama3-8b"), published=msgspec.structs.replace(published, parameters=model.counts.total + 41)
    )
    model.preset, model.whole = preset, {"text_config": model.raw}
    found = [r for r in rows_of(size_counts.which_number(slug)) if len(r) == 3][1:]
    at = 0
    for title, count, _ in found[1:]:  # after the maker's name
        at = at + as_int(count) if count[0] in "+−" else as_int(count) if title.startswith("Unique") else at
        assert at == as_int(count) or count[0] in "+−", title
    assert found[-1][0] == "Published" and "unexplained: 0" in found[-1][2]


def test_gpt3s_two_rows_are_computed_and_explained():
    inconsistent = {
        slug
        for slug in presets.paths()
        if slug.startswith("gpt3") and "contradicts itself" in size_counts.which_number(slug)
    }
    assert inconsistent == {"gpt3-13b", "gpt3-xl"}
    assert "40 × 128 = 5,120, and d_model = 5,140" in plain(size_counts.which_number("gpt3-13b"))
    assert re.search(r"is [+−]\d\.\d\d% from it", plain(size_counts.which_number("gpt3-175b")))


@pytest.mark.parametrize("slug", DISCLOSED)
def test_every_published_total_is_explained(slug):
    said = plain(size_counts.which_number(slug))
    assert set(re.findall(r"unexplained: (.?[\d,]+)", said)) <= {"0"}


def test_costs_are_those_of_the_counts(small):
    slug, model = small()
    for row, context in zip(rows_of(kv_cache.kv_cache(slug))[1:], context_limits.CONTEXTS):
        assert [as_int(c) for c in row[:2]] == [context, 2 * 2 * L * K * H * context]
    for row, context in zip(rows_of(flops.flops(slug))[1:], context_limits.CONTEXTS):
        matrices = 2 * (L * (2 * N * H * D + 2 * K * H * D + 3 * D * F) + V * D)
        assert as_int(row[1]) == matrices + 4 * L * N * H * context


# --- the walkthrough --------------------------------------------------------------------------------------------------


def test_the_walkthrough_shows_the_sizes_that_were_asked_for(small):
    slug, _ = small()
    said = plain(walkthrough.walkthrough(slug, tokens=5, context=17))
    assert f"[T, d_model] × [d_model, d_ff] → [T, d_ff][5, {D}] × [{D}, {F}] → [5, {F}]" in said
    assert (
        f"[S − T, n_kv_heads, d_head] and [T, n_kv_heads, d_head] → [S, n_kv_heads, d_head]"
        f"[12, {K}, {H}] and [5, {K}, {H}] → [17, {K}, {H}]" in said
    )
    assert (
        f"[n_heads, T, S] × [S, n_heads, d_head] → [T, n_heads, d_head][{N}, 5, 17] × [17, {N}, {H}] → [5, {N}, {H}]"
        in said
    )
    for placeholder in (TRACED_NEW_TOKENS, TRACED_CONTEXT, TRACED_CONTEXT - TRACED_NEW_TOKENS):
        assert str(placeholder) not in said.replace(",", "")


@pytest.mark.parametrize("slug", DISCLOSED)
def test_the_walkthrough_leaves_no_weight_and_no_flop_out(slug):
    model = presets.model(slug).drawn
    rows = list(operations.sections(model).operations())
    assert {w for r, _ in rows for w in r.weights} == set(model.trace.weights.values())
    at = model.counts.values(T=11, S=29)
    assert sum(r.flops.at(at) * n for r, n in rows) == model.counts.flops.at(at)


@pytest.mark.parametrize("slug", DISCLOSED)
def test_every_weight_and_step_has_words(slug):
    lacking = descriptions.lacking(presets.model(slug).trace)
    assert not lacking, "\n" + "\n".join(lacking)


def test_every_type_of_ones_own_has_words():
    """Before it has a preset: those that no library has, as `scaffold` writes them."""
    own = [model_type for model_type, reason in independent.comparison().absent.items() if reason == REASON]
    made = [presets.make(model_type, small_configs()[model_type]) for model_type in own]
    lacking = [f"{model.slug}: {line}" for model in made for line in descriptions.lacking(model.trace)]
    assert not lacking, "\n" + "\n".join(lacking)


def test_the_names_of_an_architecture_of_ones_own_are_its_modules():
    sources = SimpleNamespace(names="own")
    made = SimpleNamespace(preset=SimpleNamespace(sources=sources, hub=None), names_verified=False)
    assert str(parameters.names_line(made)).startswith("The names are those of the architecture’s own module")


def test_a_weight_and_a_step_without_words_are_named_with_the_file(monkeypatch):
    trace = presets.model("gpt2").trace
    monkeypatch.setattr(descriptions, "of_weight", lambda name: None if name == "transformer.wpe.weight" else "words")
    monkeypatch.setattr(descriptions, "steps", lambda: {role: "words" for role in Role if role is not Role.ATTENTION})
    assert descriptions.lacking(trace) == [
        "macros/views/words/weights.toml: transformer.wpe.weight has no words: "
        "add the end of its name to the `names` of a table",
        "macros/views/words/steps.toml: attention has no words: add a table",
    ]


@pytest.mark.exhaustive
def test_no_words_are_left_over():
    """Mend: delete the table, nothing has that name any more."""
    steps, weights = set(), set()
    others = [(name, golden(name).raw) for name in goldens()]
    without_preset = (presets.make(name, raw) for name, raw in [*every_type().items(), *others])
    for model in (*map(presets.model, DISCLOSED), *without_preset):
        steps |= {key for n in model.trace.root.walk() for key in (n.role, n.parent and (n.parent.role, n.role))}
        weights |= {id(descriptions.of_weight(w.name)) for w in model.trace.weights.values()}
    assert set(descriptions.steps()) - steps == set()
    assert sorted(name for name, found in descriptions.weights().items() if id(found) not in weights) == []
    assert sorted(s.name for s in notation.SYMBOLS if s.name not in notation.config_sizes() | {"T", "S"}) == []


def test_every_size_is_in_the_notation():
    """Mend: add a row to SYMBOLS of macros/views/words/notation.py."""
    sizes = {k.field for a in architectures().values() for k in fields_of(a.config) if k.is_size}
    assert sorted(s for s in sizes if not notation.known(s)) == []


# --- figures ----------------------------------------------------------------------------------------------------------


def svg_of(figure: str) -> ElementTree.Element:
    return ElementTree.fromstring(html.unescape(re.search(r"<svg.*</svg>", figure)[0]))


def test_a_figure_is_to_scale():
    svg = svg_of(matmul.matmul_figure(40, 60, 30, labels=("T", "D", "F")))
    name = "{http://www.w3.org/2000/svg}"
    (x, w, y) = [(float(r.get("width")), float(r.get("height"))) for r in svg.iter(f"{name}rect")]
    scale = x[1] / 40
    for (width, height), (columns, rows) in zip((x, w, y), ((60, 40), (30, 60), (30, 40))):
        assert width == pytest.approx(columns * scale, abs=0.1) and height == pytest.approx(rows * scale, abs=0.1)
    assert [r.get("class") for r in svg.iter(f"{name}rect")] == ["data", "weight", "data"]
    assert "60 rows and 30 columns" in svg.find(f"{name}desc").text and "break" not in svg.find(f"{name}desc").text


@pytest.mark.parametrize("sizes", [(5, 4096, 128256), (1, 1, 1), (10**9, 1, 7), (1, 10**9, 1)])
def test_a_side_too_short_to_see_is_broken_and_stays_inside(sizes):
    svg = svg_of(matmul.matmul_figure(*sizes))
    name = "{http://www.w3.org/2000/svg}"
    assert (len([p for p in svg.iter(f"{name}path") if p.get("class") == "ep-break"]) > 0) == (len(set(sizes)) > 1)
    for r in svg.iter(f"{name}rect"):
        assert float(r.get("x")) >= 0 and float(r.get("x")) + float(r.get("width")) <= matmul.WIDTH
        assert min(float(r.get("width")), float(r.get("height"))) >= matmul.LEAST


def test_a_models_multiplication(small):
    slug, _ = small()
    said = plain(matmul.matmul(slug, "down_proj", tokens=5))
    assert f"[T, d_ff] × [d_ff, d_model] → [T, d_model], in numbers [5, {F}] × [{F}, {D}] → [5, {D}]" in said
    said = plain(matmul.matmul(slug, "scores", tokens=5, context=17))
    assert (
        f"once for each of the n_heads = {N}: [T, d_head] × [d_head, S] → [T, S], "
        f"in numbers [5, {H}] × [{H}, 17] → [5, 17]" in said
    )


# --- names are text ---------------------------------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "{# x #}",
    "[a](javascript:alert(1))",
    "![x](y.png)",
    "`code`",
    "*a* _b_ **c** __d__",
    "# head",
    "1. item",
    "- item",
    "+ item",
    "> quote",
    "a | b",
    "$x$",
    "&lt;b&gt;",
    '"><img src=x onerror=alert(1)>',
    "\\*a\\*",
    "www.example.com",
    "http://example.com",
    "[^1]",
    "==mark==",
    "~~x~~",
    "a{ .class }",
    ":smile:",
    "<!-- x -->",
    "***",
    "!!! note",
    "[TOC]",
    "``` x",
    "++ctrl++",
    "--",
]
EXTENSIONS = [
    "abbr",
    "admonition",
    "attr_list",
    "def_list",
    "footnotes",
    "md_in_html",
    "tables",
    "toc",
    "pymdownx.details",
    "pymdownx.superfences",
    "pymdownx.inlinehilite",
    "pymdownx.keys",
    "pymdownx.tabbed",
    "pymdownx.magiclink",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "place",
    ["{}", "A sentence with {} in it.", "- in a list: {}", "!!! note\n\n    {}", "| a | b |\n| - | - |\n| {} | x |"],
)
def test_a_name_stays_text(name, place):
    source = place.replace("{}", text(name))
    made = markdown.markdown(jinja2.Environment().from_string(source).render(), extensions=EXTENSIONS)
    without = markdown.markdown(place.replace("{}", "x"), extensions=EXTENSIONS)
    assert name in html.unescape(re.sub(r"<[^>]+>", "", made))
    assert re.findall(r"<[^>]+>", made) == re.findall(r"<[^>]+>", without)


class Text(str):
    """A text of another class, as an enumeration's are."""


@pytest.mark.parametrize("of", [Text, ValueError], ids=["a text of another class", "what is no text"])
def test_whatever_stands_for_a_name_stays_text(of):
    said, inert = of("<b>"), text("<b>")
    assert kit.html("{} {:,} {}", said, 1000, "<b>") == f"{inert} 1,000 {inert}"
    assert kit.html("{a}", a=said) == kit.joined([said]) == inert
    assert tag("i", said) == f"<i>{inert}</i>" and tag("i", said, "") == f"<i>{inert}</i>"
    assert tag("i", title=said, hidden=True, id=None) == f'<i title="{inert}" hidden></i>'


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_in_a_view_stays_text(small, name):
    published = preset_file.Published(
        parameters=10**9, exact=False, source=name, extra=(preset_file.Extra(name=name, count=1),), active=name
    )
    harmless = msgspec.structs.replace(published, source="x", active="x", extra=(preset_file.Extra(name="x", count=1),))
    hostile, preset = copy.copy(presets.preset("llama3-8b")), copy.copy(presets.preset("llama3-8b"))
    for p, n, figure in ((hostile, name, published), (preset, "x", harmless)):  # past the reader's own check
        for key, value in (("name", n), ("headline", n), ("published", figure)):
            msgspec.structs.force_setattr(p, key, value)
    (slug, _), (plain_slug, _) = small(hostile), small(preset)
    for view in (
        parameters.parameter_table,
        size_counts.which_number,
        overview.costs,
        formulas.formula,
        walkthrough.walkthrough,
    ):
        made = view(slug)
        assert "{{" not in made and "{%" not in made and "{#" not in made and "`" not in made
        assert [t.partition(" ")[0] for t in re.findall(r"<[^>]+>", made)] == [
            t.partition(" ")[0] for t in re.findall(r"<[^>]+>", view(plain_slug))
        ]


@pytest.mark.parametrize("slug", ["gpt2", "llama3-8b"])
def test_a_view_is_one_line(slug):
    for view in (
        parameters.parameter_table,
        size_counts.which_number,
        kv_cache.kv_cache,
        flops.flops,
        overview.costs,
        formulas.formula,
        formulas.parameter_formula,
        walkthrough.walkthrough,
    ):
        assert "\n" not in view(slug)


# --- macros in a page -------------------------------------------------------------------------------------------------


class Env:
    """What a macro sees of mkdocs-macros outside a build."""

    variables: dict = {}


def test_every_macro_says_what_it_gives_and_has_a_live_example():
    """Mend: give the macro a docstring, and call it on a page (docs/reference/macros.md, if no other)."""
    pages = [p.read_text("utf-8") for p in sorted((ROOT / "docs").rglob("*.md"))]
    known = page_macros.macros(Env())
    assert sorted(name for name, function in known.items() if not function.__doc__) == []
    assert sorted(set(known).difference(*map(page_macros.called, pages))) == []


MACROS = [ROOT / f"docs/reference/{name}.md" for name in ("macros", "macros-costs", "macros-charts")]


def given(text: str) -> set[tuple[str, str]]:
    """(macro, parameter) of each argument in the calls of a text."""
    signatures = {name: list(inspect.signature(f).parameters) for name, f in page_macros.macros(Env()).items()}
    shown = "".join(re.findall(r"{% raw %}(.*?){% endraw %}", text, flags=re.S))
    return {
        (call.node.name, parameter)
        for call in jinja2.Environment().parse(shown).find_all(jinja2.nodes.Call)
        if isinstance(call.node, jinja2.nodes.Name) and call.node.name in signatures
        for parameter in (*signatures[call.node.name][: len(call.args)], *(k.key for k in call.kwargs))
    }


@pytest.mark.exhaustive
def test_every_parameter_is_in_an_example_or_said_beside_it():
    """Mend: give it in a call below the macro's heading in docs/reference/macros*.md, or name it there in backticks."""
    first, *others = (path.read_text("utf-8") for path in MACROS)
    page = first + "".join("\n## x\n" + other.replace("\n## ", "\n### ") for other in others)
    of_macro = {}
    for part in re.split(r"^## ", page, flags=re.M):
        before, *sections = re.split(r"^### ", part, flags=re.M)
        for section in sections:
            names, _, text = section.partition("\n")
            of_macro |= dict.fromkeys(names.replace("`", "").split(", "), before + text)
    missing = []
    for name, function in page_macros.macros(Env()).items():
        section = of_macro.get(name, page if name == "macro_table" else "")
        for parameter in inspect.signature(function).parameters.values():
            said = (name, parameter.name) in given(section) or re.search(rf"`{parameter.name}(=[^`]*)?`", section)
            if parameter.name != "link" and parameter.kind is not parameter.VAR_KEYWORD and not said:
                missing.append(f"{name}: {parameter.name}")
    assert not missing, "\n".join(missing)


def test_the_reference_shows_each_call_that_it_makes():
    page = "\n".join(path.read_text("utf-8") for path in MACROS)
    shown = "".join(re.findall(r"{% raw %}(.*?){% endraw %}", page, flags=re.S))
    made = re.sub(r"{% raw %}.*?{% endraw %}", "", page, flags=re.S)
    assert [
        c for c in re.findall(r"{{.*?}}", made) if c not in shown and c != '{{ value("claude-3-opus", "d_model") }}'
    ] == []


@pytest.mark.parametrize(
    "arguments, named, message",
    [
        ((), {}, "missing a required argument: 'model'; write value(model, name, context=None"),
        (("llama3-8b",), {"nam": "d_model"}, "missing a required argument"),
        (
            ("llama3-8b", "d_modle"),
            {},
            "value('llama3-8b', 'd_modle'): llama3-8b has no 'd_modle'; did you mean \"d_model\"?",
        ),
    ],
)
def test_a_wrong_call_names_page_and_macro(arguments, named, message):
    macro = page_macros.with_call_errors("value", values.value, lambda *call: "docs/a.md")
    with pytest.raises(Problem) as raised:
        macro(*arguments, **named)
    assert (
        str(raised.value).startswith("docs/a.md: value(")
        and message in str(raised.value)
        and "\n" not in str(raised.value)
    )


@pytest.mark.parametrize(
    "call, message",
    [
        (("model_link", "lama3-8b", "in words"), "unknown model 'lama3-8b'; did you mean"),
        (("catalogue", "Lama"), "family = 'Lama': no model has it; did you mean \"Llama\"?"),
        (("value", "gpt2", {"a": 1}), "name = {'a': 1}: expected text in quotes; correct the argument"),
        (("value", ["gpt2"], "d_model"), "model = ('gpt2',): expected text in quotes"),
        (("comparison", ["gpt2", [1]], ["total"]), "models = ('gpt2', (1,)): expected text, or a list"),
        (("cache_table", {"gpt2": 1}), "models = {'gpt2': 1}: expected text, a whole number or a list of them"),
        (("layer_range", ["a"]), "layers = ('a',): expected a list of whole numbers"),
        (("dot_product", 3, [1]), "a = 3: expected a list of numbers"),
        (("matmul_figure", 1, 1, 1, ["x"]), "labels = ('x',): expected a list of three texts"),
        (("params", "gpt2", "total", "x"), "rounded = 'x': expected true, false or a whole number"),
        (("model_link", "gpt2", "in words", "x"), "too many positional arguments; write model_link(slug, words=None)"),
        (("excerpt", "../tests/conftest.py", "x"), "there is no module '../tests/conftest.py'"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    name, *arguments = call
    macro = page_macros.with_call_errors(name, page_macros.macros(Env())[name], lambda *call: "docs/a.md")
    with pytest.raises(Problem) as raised:
        macro(*arguments)
    assert message in str(raised.value) and str(raised.value).startswith(f"docs/a.md: {name}(")


@pytest.mark.parametrize(
    "name, parameter, old, others",
    [
        ("matmul", "what", "mix", {"slug": "gpt2"}),
        ("params", "what", "listen", {"model": "whisper-small"}),
        ("part_formula", "part", "listen", {"slug": "whisper-small"}),
        ("trace_steps", "part", "listen", {"slug": "whisper-small"}),
        ("walkthrough", "part", "attention", {"slug": "deepseek-v3.2"}),
        ("shape_after", "step", "listen", {"slug": "whisper-small"}),
        ("number_matrix", "station_name", "mix", {"head": 3}),
    ],
)
def test_an_old_word_for_a_step_works_and_says_the_new_one(name, parameter, old, others, caplog):
    macro = page_macros.with_call_errors(name, page_macros.macros(Env())[name], lambda *call: "docs/a.md")
    new = page_arguments.DEPRECATED_ROLES.get(old)
    result = macro(**others, **{parameter: old})
    line = f'{parameter} = "{old}" is now called "{new}"; the old name goes with version {page_arguments.GONE_WITH}'
    assert [r.getMessage() for r in caplog.records] == ([f"docs/a.md: {name}: {line}"] if new else [])
    caplog.clear()
    assert result == macro(**others, **{parameter: new or old}) and not caplog.records


def test_old_words_for_steps_lead_to_words_of_today_and_go_when_said():
    roles, old = {str(role) for role in Role}, page_arguments.DEPRECATED_ROLES
    assert set(old.values()) <= roles and not roles & set(old)
    today, end = (tuple(map(int, v.split("."))) for v in (version("every-parameter"), page_arguments.GONE_WITH))
    assert today < end, "take the old words out of page_arguments.py"


def test_layers_far_apart_are_named_at_once():
    assert layer_range([0, 1, 2, 10**30]) == f"layers 0–2 and {10**30}"
    assert layer_range([n for n in range(10_000) if n % 4]) == "layers 1–9999 without every fourth"


def test_a_models_costs_go_with_it():
    gc.freeze()  # what is there before is not looked through
    model = presets.make("x", presets.preset("gpt2").config)
    costs = weakref.ref(costs_of(model.counts))
    assert costs_of(model.counts) is costs()
    del model
    gc.collect()
    assert costs() is None


def test_what_is_no_text_is_not_printed():
    for wrong, message in (
        (object(), "object is not text"),
        (len, "len is a macro that is not called"),
        ([1], r"\[1\] would"),
    ):
        with pytest.raises(Problem, match=f"^docs/a.md: {message}"):
            page_errors.printable(wrong, "docs/a.md")
    for right in ("text", 3, None, 2.5, tag("b", "bold"), jinja2.Undefined()):
        assert page_errors.printable(right, "docs/a.md") is right


def test_a_change_that_adds_a_window_still_keeps_tokens():
    """What a token adds until the window is full, not only after that."""
    shown = re.sub(r"<[^>]+>", "|", str(tools.changes_table("llama3-8b")))
    (window,) = re.findall(r"Sliding window.*?(?=Weights in)", shown, re.S)
    assert "131 kB, later 0 B" in window and shown.count("later") == 1


def test_every_macro_says_what_its_arguments_are():
    """Mend: annotate the parameter with a kind of macros/site/page_arguments.py."""
    for name, function in page_macros.macros(Env()).items():
        for parameter in inspect.signature(function).parameters.values():
            kind = str(parameter.annotation).removesuffix(" | None")
            assert parameter.name == "link" or kind in page_arguments.KINDS, (name, parameter)


@pytest.mark.parametrize(
    "source, line",
    [
        ("{{ catalogue }}", "docs/index.md:1: catalogue is a macro that is not called; write {{ catalogue() }}"),
        (
            '{{ value("llama3-8b", "d_modle") }}',
            "docs/index.md:1: value('llama3-8b', 'd_modle'): llama3-8b has no 'd_modle'; did you mean \"d_model\"?",
        ),
        ('{{ valeu("llama3-8b", "d_model") }}', "docs/index.md:1: 'valeu' is undefined; did you mean \"value\"?"),
        ('{{ value("llama3-8b", "d_model" }}', "docs/index.md:1: a call is not closed: ) is missing"),
        (
            '{{ value("<script>", "d_model") }}',
            "docs/index.md:1: value('<script>', 'd_model'): unknown model '<script>'",
        ),
    ],
)
@pytest.mark.parametrize("fails", [True, False], ids=["build", "live preview"])
@pytest.mark.processes
def test_an_error_in_a_page_is_one_line(tmp_path, source, line, fails):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(source + "\n", "utf-8")
    (tmp_path / "mkdocs.yml").write_text(
        "site_name: x\nplugins:\n  - macros:\n      modules: [macros]\n      on_undefined: strict\n"
        f"      on_error_fail: {str(fails).lower()}\nextra_css: [assets/components.css]\n",  # as our own site
        "utf-8",
    )
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
    )
    told = [x for x in run.stderr.splitlines() if "docs/index.md" in x]
    assert len(told) == 1 and line in told[0] and "Traceback" not in run.stderr
    assert (run.returncode != 0) == fails
    if not fails:
        page = (tmp_path / "site/index.html").read_text("utf-8")
        assert (
            line in html.unescape(re.sub(r"<[^>]+>", "", page)) and "<script>'" not in page and "Traceback" not in page
        )


def test_a_word_in_a_formula_keeps_its_spaces():
    """MathML drops plain spaces at the ends of a text."""
    for name, found in (*descriptions.steps().items(), *descriptions.weights().items()):
        for word in re.findall(r"\\text\{([^}]*)\}", found.equation):
            assert f"<mtext>{word.replace(' ', chr(0xA0))}</mtext>" in equations.math(found.equation), name


def test_one_token_is_not_tokens():
    assert "T = 1 new token, S = 1 token of context" in plain(walkthrough.walkthrough("gpt2", tokens=1))


def factor_of(equation: str, model: Model) -> float:
    """The number that a score's formula multiplies the product of query and key by."""
    for name in sorted(model.counts.values(), key=len, reverse=True):
        equation = equation.replace(latex_name(name), str(model.counts.values()[name]))
    found = re.search(r"(?:([\d.]+) \\cdot )?\\frac\{.*k.*\}\{(\\sqrt)?\{?([\d +]+)\}?\}", equation)
    if not found:
        assert "frac" not in equation and "cdot" not in equation
        return 1.0
    under = sum(map(int, found[3].split("+")))
    return float(found[1] or 1) / (under**0.5 if found[2] else under)


@pytest.mark.parametrize("slug", DISCLOSED)
def test_the_scale_of_the_scores_is_the_forward_passs(slug, monkeypatch):
    """What the function of a score is given as its scale when the forward pass calls it."""
    given, model, call = [], presets.model(slug), Trace.call
    scored = (Role.SCORES, Role.LATENT_SCORES)
    said = [
        factor_of(walkthrough.with_scale(row, model).equation, model)
        for row, _ in operations.sections(model).operations()
        if row.node.role in scored
    ]
    monkeypatch.setattr(
        Trace,
        "call",
        lambda self, step, args, kwargs: (
            given.append(args[-1]) if step.role in scored else None,
            call(self, step, args, kwargs),
        )[1],
    )
    run.trace(model.architecture, model.config)
    assert len(said) == len(given) or model.drawn.folds  # alike layers are said once
    assert said == pytest.approx(given[: len(said)], rel=4e-4)


@pytest.mark.parametrize(
    "slug, equation",
    [
        ("llama3-8b", r"\frac{q \, k^{\top}}{\sqrt{\text{d\_head}}}"),
        ("gemma2-27b", r"\frac{q \, k^{\top}}{\sqrt{144}}"),
        ("gemma3-27b", r"\frac{q \, k^{\top}}{\sqrt{168}}"),
        ("granite-3.3-8b", r"\frac{q \, k^{\top}}{128}"),
        (
            "deepseek-v3",
            r"1.874 \cdot \frac{q' c^{\top} + q_R k_R^{\top}}"
            r"{\sqrt{\text{qk\_nope\_head\_dim} + \text{qk\_rope\_head\_dim}}}",
        ),
    ],
)
def test_the_scale_of_the_scores_as_it_is_written(slug, equation):
    model = presets.model(slug)
    assert equation in [
        walkthrough.with_scale(row, model).equation for row, _ in operations.sections(model).operations()
    ]
    assert equations.math(equation) in walkthrough.walkthrough(slug)


def test_a_figure_names_its_factors_and_explains_its_letters(small):
    slug, _ = small()
    for what, names, letters in (
        ("scores", ("q", "kᵀ", "scores"), "T: new tokens, H = d_head, S: context."),
        ("weighted_sum", ("attention weights", "v", "output"), "T: new tokens, S: context, H = d_head."),
        ("q_proj", ("x", "W", "y"), "T: new tokens, D = d_model, N = n_heads, H = d_head."),
    ):
        made = matmul.matmul(slug, what)
        assert [t.text for t in svg_of(made).iter("{http://www.w3.org/2000/svg}text") if t.get("font-weight")] == list(
            names
        )
        assert letters in plain(made)


# --- weights as published ---------------------------------------------------------------------------------------------


def test_the_table_of_published_formats_has_every_weight_and_its_source():
    table = str(memory.published_table("deepseek-v4-flash"))
    counts = presets.model("deepseek-v4-flash").counts
    rows = rows_of(table)
    assert [row[0] for row in rows[1:]] == ["mxfp4", "fp8", "bfloat16", "float32"]
    assert sum(int(row[2].replace(",", "")) for row in rows[1:]) == counts.total
    assert "deepseek-ai/DeepSeek-V4-Flash, config.json" in html.unescape(table)
    assert "No known source" in str(memory.published_table("gpt2"))


def test_each_table_of_weights_says_in_which_format_they_are():
    said = html.unescape(str(memory.memory_table(["gpt-oss-20b", "gpt2"])))
    assert "experts in mxfp4, the rest in bfloat16" in said and "as published" in said
    several = html.unescape(str(memory.inference_table(["gpt-oss-20b", "deepseek-v3", "gpt2"])))
    assert "weights as published" in several and "DeepSeek-V3: linear layers in fp8, the rest in bfloat16" in several
    assert "where no format is stated, bfloat16" in several
    assert "weights in bfloat16" in str(memory.inference_table(["gpt2", "llama3-8b"]))
    for view in (memory.split_table, time_bounds.time_table, bytes_moved.bytes_table):
        assert "as published (experts in mxfp4, the rest in bfloat16)" in html.unescape(str(view("gpt-oss-20b")))
        assert "in int4" in str(view("gpt-oss-20b", format="int4"))
