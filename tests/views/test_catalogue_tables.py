"""The catalogue, the families, and the panel "which number?": every figure of every preset, held against its counts."""

from __future__ import annotations

import datetime
import html
import json
import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

import msgspec
import pytest
from copies import ROOT
from reference import golden, goldens

from macros.catalogue import presets
from macros.catalogue.independent import comparison
from macros.counting import design
from macros.engine.architectures import find
from macros.views.charts import catalogue_entries
from macros.views.kit import rounding
from macros.views.models import catalogue, families, model_page, traits
from macros.views.tables import headlines, parameters, size_counts
from macros.views.trace import walkthrough
from macros.views.trace.layers import layer_range
from macros.views.words import notation

SLUGS = list(presets.paths())
DISCLOSED = [slug for slug in SLUGS if presets.preset(slug).config is not None]
FAMILIES = sorted({presets.preset(slug).family for slug in SLUGS})


def plain(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def rows_of(markup: str) -> list[list[str]]:
    """The cells of each row, as text; what stands small below a figure is left out."""
    return [
        [plain(re.sub(r' <span class="ep-was">.*?</span>', "", c)) for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", r)]
        for r in re.findall(r"<tr[^>]*>(.*?)</tr>", markup)
    ]


def as_int(cell: str) -> int:
    return int(cell.replace(",", "").replace("−", "-"))


# --- which number? ----------------------------------------------------------------------------------------------------


def is_step(count: str) -> bool:
    return count[0] in "+−"


@pytest.mark.parametrize("slug", DISCLOSED)
def test_every_part_of_the_panel_adds_up_to_what_it_ends_with(slug):
    panel = size_counts.which_number(slug)
    for body in re.findall(r"<tbody>(.*?)</tbody>", panel):
        at = None
        for _, count, _ in rows_of(body)[1:]:
            if not re.fullmatch(r"[+−]?[\d,]+", count):
                continue  # a maker's rounded words
            if is_step(count):
                at += as_int(count)
            elif at is None:
                at = as_int(count)
            else:
                assert as_int(count) == at, (slug, count)


@pytest.mark.parametrize("slug", DISCLOSED)
def test_the_panel_has_every_count_and_every_published_figure(slug):
    model, said = presets.model(slug), rows_of(size_counts.which_number(slug))
    counts, published = model.counts, model.published
    shown = {as_int(r[1]) for r in said if len(r) == 3 and re.fullmatch(r"[\d,]+", r[1])}
    wanted = {counts.total, counts.non_embedding, counts.active, counts.active_non_embedding} | {
        f.parameters for f in ((published, *published.other) if published else ())
    }
    assert wanted <= shown
    exact = [f for f in ((published, *published.other) if published else ()) if f.exact]
    ends = [r for r in said if len(r) == 3 and r[0] == "Published"]
    assert sorted(as_int(r[1]) for r in ends) == sorted(f.parameters for f in exact)
    assert all(r[2] == "unexplained: 0" or r[2].endswith("the same number") for r in ends)
    extras = [(e.name, e.count) for f in exact for e in f.extra]
    assert [(r[0], as_int(r[1])) for r in said if len(r) == 3 and r[0] in {name for name, _ in extras}] == extras


@pytest.mark.parametrize(
    "said, n, expected",
    [
        ("8B", 8_030_261_248, "rounded or truncated: 8,030,261,248"),
        ("124M", 124_439_808, "rounded or truncated"),
        ("0.6B", 596_049_920, "rounded: "),
        ("2.7B", 2_779_683_840, "the unique parameters, truncated: 2,779,683,840"),
        ("230B", 228_689_748_992, "rounded to tens of billions"),
        ("350M", 355_871_744, "truncated to tens of millions"),
        ("400B", 351_000_000_000, "rounded to hundreds of billions"),
        ("1T", 1_026_408_209_408, "rounded or truncated"),
        (
            "7B",
            8_537_680_896,
            "no count gives it, rounded or truncated: the unique parameters, 8,537,680,896, is +21.97%",
        ),
        ("8x7B", 46_702_792_704, "a name, not a count"),
        ("117M", 124_439_808, "+6.36%"),
    ],
)
def test_a_headline_says_how_a_count_gives_it(said, n, expected):
    assert expected in plain(headlines.matching_readings(said, [headlines.Reading("the unique parameters", n)]))


@pytest.mark.parametrize(
    "slug, expected",
    [
        ("gpt2-xl", ["the total, truncated: 1,557,611,200", "non-embedding, rounded: 1,475,561,600"]),
        ("qwen2.5-7b", ["the total, truncated: 7,615,616,512", "non-embedding, rounded: 6,525,621,760"]),
        ("phi-4", ["the total, truncated: 14,659,507,200", "non-embedding, rounded: 13,631,902,720"]),
        ("dots.llm1", ["the total, truncated: 142,774,373,888"]),
        ("llama3.1-405b", ["the total, truncated: 405,853,388,800"]),
        ("phi-1.5", ["the total without the token embedding, rounded or truncated: 1,313,413,120"]),
        # 396,346,350,336 of the text, 456,010,480 of the tower
        ("qwen3.5-397b-a17b", ["the total with the vision part, rounded: 396,802,360,816"]),
        # what GLM-4.5's paper counts: the MTP layer with its norms and projection, not the tables
        ("glm-4.5", ["non-embedding with the MTP module, rounded or truncated: 355,233,992,096"]),
        ("qwen1.5-moe-a2.7b", ["active per token, rounded: 2,689,173,504"]),
    ],
)
def test_the_counts_that_give_a_headline(slug, expected):
    said = str(headlines.headline(presets.model(slug), presets.preset(slug).headline)).split("<br>")
    assert set(expected) <= {plain(line) for line in said}
    assert (plain(said[0]) == "more than one count gives it:") == (len(said) > 1)


@pytest.mark.parametrize("slug", [s for s in DISCLOSED if presets.preset(s).headline])
def test_a_headline_names_every_count_that_gives_it_and_no_other(slug):
    """By decimal arithmetic: the digits that the headline has, and those without the noughts at its end."""
    model, said = presets.model(slug), presets.preset(slug).headline
    counts, shown = model.counts, plain(headlines.headline(model, said))
    if not re.fullmatch(r"A?[\d.]+[MBT]", said):
        assert shown == "a name, not a count"
        return
    digits, exponent = said.strip("AMBT"), {"M": 6, "B": 9, "T": 12}[said[-1]]
    figure, places = Decimal(digits).scaleb(exponent), [exponent - len(digits.partition(".")[2])]
    while "." not in digits and figure == figure.quantize(Decimal(1).scaleb(places[-1] + 1)):
        places.append(places[-1] + 1)

    def gives(n: int) -> bool:
        at = Decimal(n)
        return any(
            at.quantize(Decimal(1).scaleb(place), mode) == figure
            for place in places
            for mode in (ROUND_HALF_UP, ROUND_DOWN)
        )

    table = 0 if counts.is_tied else counts.active - counts.active_excluding_input_embedding
    whole = {counts.total, counts.total - table, counts.non_embedding} if said[0] != "A" else set()
    used = set()
    if said[0] == "A":
        used = {counts.active, counts.active_excluding_input_embedding, counts.active_non_embedding}
    lines = [as_int(n) for n in re.findall(r": ([\d,]{7,})", shown)]
    if not lines:
        assert not any(map(gives, whole | used)) and "no count gives it" in shown
    assert all(map(gives, lines))
    for n in filter(gives, whole | used):
        assert any(abs(n - line) <= n * 0.01 for line in lines), (slug, n)
    assert ("the published file" not in shown) or model.published_file


def test_what_belongs_to_another_part_of_a_multimodal_or_predicting_file_says_so():
    """Every row of a published total that is of a vision tower or of an MTP module that is counted, but for copies and
    scales."""
    for slug in DISCLOSED:
        published, predicts = presets.preset(slug).published, find(presets.model(slug).model_type).predicts
        for row in (row for f in ((published, *published.other) if published else ()) for row in f.extra):
            if "scales" in row.name or "copies" in row.name:
                assert row.part is None, (slug, row)
            else:
                is_predicted = "MTP" in row.name and predicts is not None
                assert row.part == ("vision" if "vision" in row.name else "prediction" if is_predicted else None)


# --- experts and kinds of layers --------------------------------------------------------------------------------------


def has_experts(slug: str) -> bool:
    """Whether a config has a number of experts; one that has none may say so."""
    return any("experts" in key and value for key, value in presets.preset(slug).config.items())


@pytest.mark.parametrize("slug", [slug for slug in DISCLOSED if has_experts(slug)])
def test_experts_are_shown_as_experts_times_one(slug):
    counts = presets.model(slug).counts
    assert counts.active < counts.total
    routed = sum(int(w.count) for w in counts.weights if w.routed is not None)
    layers = len({i for w in counts.weights if w.routed is not None for i in w.layers})
    found = re.findall(
        r"([\d,]+) experts × ([\d,]+) parameters = ([\d,]+) in each (?:of the (\d+) layers|layer); a token uses (\d+)",
        plain(parameters.parameter_table(slug).replace("<tr", " <tr")),  # the row before ends in a number
    )
    assert sum(as_int(layer) * int(n or 1) for _, _, layer, n, _ in found) == routed
    assert sum(int(n or 1) for *_, n, _ in found) == layers
    assert all(as_int(e) * as_int(one) == as_int(layer) for e, one, layer, _, _ in found)
    said = plain(walkthrough.walkthrough(slug))
    for e, _, _, _, used in found:
        assert f"One token uses {used} of the {e} experts" in said
    assert "Router" in said and "Router (top-k)" in said


@pytest.mark.parametrize("slug", DISCLOSED)
def test_every_layer_is_in_one_row_of_the_table_of_kinds(slug):
    model, (_, *rows) = presets.model(slug), rows_of(parameters.layer_table(slug))
    nodes = [n for n in model.drawn.trace.root.children if n.layers is not None]
    assert sorted(i for n in nodes for i in n.layers) == list(range(design.n_layers(model.counts)))
    assert [int(r[2]) for r in rows] == [len(n.layers) for n in nodes]
    assert [as_int(r[4]) for r in rows] == [as_int(r[3]) * int(r[2]) for r in rows]
    in_no_layer = sum(int(w.count) for w in model.counts.weights if w.layers is None)
    assert sum(as_int(r[4]) for r in rows) + in_no_layer == model.counts.total
    assert not any("…" in r[1] for r in rows)


@pytest.mark.parametrize(
    "layers, expected",
    [
        (range(3), "layers 0–2"),
        (range(5, 60, 6), "every sixth layer from 5 to 59"),
        ([i for i in range(62) if i % 6 != 5], "layers 0–61 without every sixth"),
        ([7], "layer 7"),
    ],
)
def test_layers_in_words(layers, expected):
    assert layer_range(layers) == expected


# --- the catalogue ----------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_the_catalogue_has_every_model_once_with_its_exact_figures():
    made = catalogue.catalogue()
    head, *rows = rows_of(made)
    assert len(rows) == len(SLUGS)
    by_name = {r[0]: dict(zip(head, r)) for r in rows}
    assert len(by_name) == len(SLUGS), "two models have one name"
    for slug in SLUGS:
        p, r = presets.preset(slug), by_name[presets.preset(slug).name]
        assert r["Family"] == p.family
        if p.config is None:
            assert r["Parameters"] == "undisclosed"
            continue
        counts = presets.model(slug).counts
        model = presets.model(slug)
        for column, figure in (
            ("Parameters", "total"),
            ("Active", "active"),
            ("KV cache, bytes/token", "cache_bytes"),
        ):
            assert ("§" in r[column]) == (model.rests_on_default(figure) and r[column] != ""), (slug, column)
        assert ("§" in r["Context, tokens"]) == model.has_default_context
        assert as_int(r["Parameters"].removesuffix(" §")) == counts.total
        assert as_int((r["Active"] or r["Parameters"]).removesuffix(" §")) == counts.active
        assert (r["Kind"] == "dense") == (counts.active == counts.total)
        assert r["Attention"]


def test_each_row_can_be_found_by_slug_hub_name_and_aliases():
    names = [html.unescape(n) for n in re.findall(r'data-names="([^"]*)"', catalogue.catalogue())]
    assert len(names) == len(SLUGS)
    for slug in SLUGS:
        p = presets.preset(slug)
        assert " ".join([slug, *filter(None, [p.hub]), *p.aliases]) in names
    assert any("Meta-Llama-3-8B-Instruct" in n for n in names if n.startswith("llama3-8b "))


def test_a_cell_sorts_by_its_number():
    for shown, said in re.findall(r'<td class="num[^"]*" data-sort="(\d*)">([\d,]*)', catalogue.catalogue()):
        assert shown == said.replace(",", "") or (said == "" and shown == "")


def test_the_catalogue_says_when_its_sources_were_last_verified():
    dates = {presets.preset(s).sources.verified for s in SLUGS}
    assert all(f'datetime="{d}"' in catalogue.catalogue() for d in (min(dates), max(dates)))


def test_sources_of_several_days_say_the_first_and_the_last():
    p = presets.preset("gpt2")
    other = msgspec.structs.replace(p, sources=msgspec.structs.replace(p.sources, verified=datetime.date(2025, 3, 9)))
    said = catalogue.verified_note([p, other])
    assert "9 March 2025" in said and f'datetime="{p.sources.verified}"' in said and "between" in said


def test_what_is_known_of_a_date_only_in_part_stands_at_its_first_possible_day():
    p = presets.preset("gpt2")
    days = [
        datetime.date(2023, 12, 31),
        "2024",
        "2024-01",
        datetime.date(2024, 1, 1),
        "2024-02",
        datetime.date(2024, 2, 9),
    ]
    dated = [msgspec.structs.replace(p, released=days[i]) for i in (3, 5, 1, 0, 4, 2)]
    assert [q.released for q in sorted(dated, key=model_page.release_sort_key)] == days
    years = [catalogue_entries.year(day) for day in days]
    assert years == sorted(years) and years[1] == years[2] == years[3] == 2024


@pytest.mark.parametrize(
    "slug, said",
    [
        ("deepseek-v2", "<dd>6 May 2024: deepseek-ai&#47;DeepSeek-V2 on GitHub, README.md, News</dd>"),
        ("bloom-560m", "<dd>July 2022, exact day unknown: bigscience&#47;bloom-560m, model card, which"),
    ],
)
def test_a_date_says_where_it_stands_and_what_is_not_established(slug, said):
    assert f"<dt>Released</dt>{said}" in model_page.model_sources(slug)


@pytest.mark.parametrize(
    "slug, said",
    [
        ("kimi-linear-48b-a3b", "MIT: MoonshotAI&#47;Kimi-Linear on GitHub, LICENSE, of a repository without code"),
        ("mimo-7b", "not established. Read without finding it: XiaomiMiMo&#47;MiMo on GitHub, whose LICENSE is"),
        ("mimo-7b", "names no license</dd>"),
    ],
)
def test_a_licence_says_where_it_stands_or_what_was_read_without_finding_it(slug, said):
    [shown] = re.findall(r"<dt>License of the weights</dt><dd>.*?</dd>", str(model_page.model_sources(slug)))
    assert said in shown


def test_the_filter_is_hidden_until_a_script_shows_it():
    [form] = re.findall(r"<form[^>]*>", catalogue.catalogue())
    assert re.search(r" hidden[ >]", form)
    assert "<form" not in catalogue.catalogue(family="Llama")


def test_a_window_and_a_state_of_fixed_size_show_in_the_cache():
    rows = {
        plain(re.search(r'<th scope="row".*?</th>', r)[0]): r
        for r in re.findall(r"<tr data.*?</tr>", catalogue.catalogue())
    }
    gemma = presets.model("gemma3-27b").counts
    assert (
        f"{gemma.cache_bytes_per_token_uncapped():,}" in rows["Gemma 3 27B"]
        and f"later {gemma.cache_bytes_per_token():,}" in rows["Gemma 3 27B"]
    )
    assert (
        "recurrent" in rows["Mamba 130M"]
        and "sliding window" in rows["Gemma 3 27B"]
        and "latent" in rows["DeepSeek-V3"]
    )
    assert "sparse" in rows["DeepSeek-V3.2"] and "chunked" in rows["Llama 4 Scout"]


# --- families ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_shows_each_model_with_its_figures(family):
    made, slugs = families.family_changes(family), families.family_members(family)
    known = [s for s in slugs if presets.preset(s).config is not None]
    if not known:
        assert "undisclosed" in made and "<table" not in made
        return
    head, *rows = rows_of(made)
    assert [r[0] for r in rows] == [presets.preset(s).name for s in slugs]
    for slug, row in zip(slugs, rows):
        if slug in known:
            cells, counts = dict(zip(head, row)), presets.model(slug).counts
            assert as_int(cells["Parameters"]) == counts.total
            assert as_int(cells["d_model"]) == counts.values()["d_model"] and int(cells["n_layers"]) == design.n_layers(
                counts
            )
            assert as_int(cells["vocab_size"]) == counts.values()["vocab_size"]
    dates = [catalogue.iso_date(presets.preset(s).released) for s in slugs]
    assert all(not families.is_earlier(b, a) for a, b in zip(dates, dates[1:]))


@pytest.mark.parametrize(
    "slug, expected",
    [
        ("llama3-8b", "llama2-7b"),
        ("llama3.1-405b", "llama3-70b"),
        ("llama3.3-70b", "llama3.1-70b"),
        ("qwen3-8b", "qwen2.5-7b"),
        ("qwen3-30b-a3b", "qwen2-57b-a14b"),
        ("deepseek-v3", "deepseek-v2"),
        ("gpt3-small", "gpt2"),
        ("gpt1", None),
        ("gemma3-27b", "gemma2-27b"),
        ("falcon3-7b", "falcon-7b"),
        ("deepseek-v2", "deepseek-moe-16b"),
    ],
)
def test_the_earlier_model_of_a_line(slug, expected):
    earlier = families.predecessor(presets.model(slug))
    assert (earlier and earlier.slug) == expected


def test_what_changed_is_marked_in_words_and_what_did_not_is_not():
    rows = {
        plain(re.search(r'<th scope="row">.*?(?= <span)', r)[0]): r
        for r in re.findall(r'<tr><th scope="row">.*?</tr>', families.family_changes("Llama"))
    }
    llama3 = rows["Llama 3 8B"]
    assert '<strong>128,256</strong> <span class="ep-was">↑ from 32,000</span>' in llama3
    assert '<strong>8</strong> <span class="ep-was">↓ from 32</span>' in llama3
    assert "was multi-head" in plain(llama3)
    assert "<strong>4,096</strong>" not in llama3 and "<strong>" not in rows["LLaMA 7B"]
    assert "of 16 and 1 shared</strong>" in rows["Llama 4 Scout"] and ">new</span>" in rows["Llama 4 Scout"]


@pytest.mark.parametrize(
    "slug, biases, positions, activation, norms",
    [
        ("gpt2", "attention, feed-forward and norms", "learned", "GELU", "LayerNorm before each part"),
        ("qwen2-7b", "q, k, v", "rotary", "SiLU, gated", "RMSNorm before each part"),
        ("bloom-560m", "attention, feed-forward and norms", "ALiBi", "GELU", "LayerNorm before each part"),
        ("gemma2-2b", "none", "rotary", "GELU, gated", "RMSNorm before and after each part"),
        ("qwen3-8b", "none", "rotary", "SiLU, gated", "RMSNorm before each part, q and k too"),
        ("gpt1", "attention, feed-forward and norms", "learned", "GELU", "LayerNorm after each sum"),
        ("llama4-scout", "none", "rotary, none in some layers", "SiLU, gated", "RMSNorm before each part, q and k too"),
        ("olmo2-7b", "none", "rotary", "SiLU, gated", "RMSNorm after each part, q and k too"),
        ("jamba-v0.1", "convolution and step size", "by the recurrence", "SiLU, gated", "RMSNorm before each part"),
        ("falcon-7b", "norms", "rotary", "GELU", "LayerNorm before each part"),
    ],
)
def test_what_a_family_compares_is_read_off_the_trace(slug, biases, positions, activation, norms):
    m = presets.model(slug)
    assert (traits.biases(m), traits.positions(m), traits.activation(m), traits.norms(m)) == (
        biases,
        positions,
        activation,
        norms,
    )


def test_alibi_is_named_of_those_that_have_it_alone():
    slugs = {m.slug for m in map(presets.model, DISCLOSED) if "ALiBi" in traits.positions(m)}
    assert slugs == {"mpt-7b", "bloom-560m", "bloom-1b1", "bloom-1b7", "bloom-3b", "bloom-7b1", "bloom-176b"}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_familys_chart_has_each_model_in_words(family):
    made, known = (
        families.family_chart(family),
        [s for s in families.family_members(family) if presets.preset(s).config is not None],
    )
    if len(known) < 2:
        assert made == ""
        return
    drawings = re.findall(r'<svg [^>]*viewBox="0 0 (\d+) .*?</svg>', made), re.findall(r"<svg .*?</svg>", made)
    assert drawings[0] == ["640", "340"], "one as wide as the text, one as wide as a phone"
    for width, svg in zip(*drawings):
        for slug in known:
            counted = rounding.grouped(presets.model(slug).counts.total)
            assert f"{presets.model(slug).name}: {counted} parameters" in plain(svg)
        assert 'role="img"' in svg and "<title>" in svg and "<desc>" in svg
        for x, y in re.findall(r'<text x="([\d.-]+)" y="([\d.-]+)"', svg):
            assert 0 <= float(x) <= int(width) + 60 and 0 <= float(y)
    linked = families.family_chart(family, lambda slug: f"../{slug}/")
    assert linked.count('class="point"') == 2 * len(known) and 'role="img"' not in linked


# --- what was checked -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", DISCLOSED)
def test_a_page_says_whether_numerics_and_names_were_checked(slug):
    model, said = presets.model(slug), plain(model_page.model_checked(slug))
    tested = {golden(name).model_type for name in goldens()}
    assert ("gives the reference logits" in said) == (model.model_type in tested)
    assert ("were not checked against a reference checkpoint" in said) == (model.model_type not in tested)
    listed = ROOT / "macros" / "catalogue" / "references" / f"{slug}.json"
    assert ("equal the reference list in both directions" in said) == listed.exists()
    if listed.exists():
        assert ("Names and shapes were compared with the published file’s, tensor by tensor." in said) == (
            json.loads(listed.read_bytes())["names"] == "published"
        )
    if model.model_type in comparison().absent:
        assert "Names are those of transformers" not in said, "transformers has no such type"


def test_a_count_is_near_the_rounded_total_that_was_published():
    rounded = [slug for slug in DISCLOSED if (p := presets.preset(slug).published) and not p.exact]
    assert len(rounded) > 10
    for slug in rounded:
        sign, said = re.search(
            r"the count differs from it by ([+−])([\d.]+)%\.", plain(model_page.model_checked(slug))
        ).groups()
        published, total = presets.preset(slug).published.parameters, presets.model(slug).counts.total
        assert 0 < float(said) < 5 and float(said) == pytest.approx(100 * abs(total - published) / published, abs=0.005)
        assert (sign == "+") == (total > published)


@pytest.mark.parametrize("slug", ["t5-small", "bart-base", "whisper-small", "bert-base"])
def test_what_looks_at_what_was_read_is_no_recurrent_layer(slug):
    assert catalogue_entries.DESIGN_KINDS[catalogue_entries.kind(presets.model(slug))].shape != "diamond"
    assert catalogue_entries.DESIGN_KINDS[catalogue_entries.kind(presets.model("falcon-h1-0.5b"))].shape == "diamond"


@pytest.mark.parametrize(
    "slug, said", [("mamba-130m", "SiLU, gated"), ("rwkv-4-169m", "squared ReLU, gated"), ("gpt2", "GELU")]
)
def test_what_has_no_feed_forward_part_has_an_activation_too(slug, said):
    assert traits.activation(presets.model(slug)) == said


@pytest.mark.parametrize("slug, tokens", [("mpt-7b", 2048), ("dbrx", 32768), ("gpt-j-6b", 2048), ("mamba-130m", None)])
def test_the_longest_context_is_read_by_any_name(slug, tokens):
    assert presets.model(slug).longest_context == (tokens, False)


def test_a_size_is_listed_once():
    names = [one.name for one in notation.SYMBOLS]
    assert sorted(names) == sorted(set(names))


def test_a_table_used_twice_at_one_end_is_said_once():
    said = size_counts._tables(presets.model("t5-small"))
    assert [what for _, what in said] == ["the token embedding and the LM head"]


@pytest.mark.parametrize(
    "slug, said, expected",
    [
        ("muse-spark-open-816b-a42b", "816B", "non-embedding, truncated: 816,680,181,760"),
        ("muse-spark-open-816b-a42b", "A42B", "active non-embedding, truncated: 42,780,762,112"),
        ("sarvam-30b", "30B", "non-embedding, rounded or truncated: 30,005,164,416"),
        ("sarvam-30b", "A2.4B", "active non-embedding, rounded: 2,373,089,664"),
        ("sarvam-105b", "A10.3B", "active non-embedding, rounded: 10,267,414,528"),
        ("mistral-large-4-1t-a52b", "A52B", "active without the token embedding, rounded: 51,840,296,448"),
        ("minimax-m3", "427B", "the total with the towers, rounded or truncated: 427,040,132,864"),
        ("minimax-m3", "A26B", "active per token, rounded: 25,962,466,560"),
        ("minimax-m3", "A23B", "active non-embedding, truncated: 23,504,080,128"),
        ("glm-5.3", "753B", "the total with the MTP module, rounded or truncated: 753,329,921,024"),
        ("gemma3-4b", "4.3B", "the total with the vision part, rounded or truncated: 4,300,079,472"),
        ("qwen3-asr-1.7b", "2.0B", "the total with the towers, rounded or truncated: 2,0"),
    ],
)
def test_a_headline_is_read_by_every_count_that_makers_publish(slug, said, expected):
    assert expected in str(headlines.headline(presets.model(slug), said))


def test_totals_with_what_stands_beside_the_text_part():
    glm, gemma = presets.model("glm-5.3"), presets.model("gemma3-4b")
    assert (glm.with_prediction, glm.with_components) == (753_329_921_024, glm.counts.total)
    assert (gemma.with_prediction, gemma.with_components) == (gemma.counts.total, gemma.published.parameters)
