"""Statements of the pages that were once false: each is held against the forward passes, for good."""

from __future__ import annotations

import re
import tomllib
from html import unescape
from pathlib import Path

import jinja2
import numpy as np
import pytest
from reference import golden

from macros.catalogue import models, presets
from macros.catalogue.presets import Model
from macros.catalogue.small_configs import small_configs
from macros.counting import design
from macros.counting.accelerators import accelerator
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.counting.parts import Category, by_category
from macros.engine.architectures import architectures
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays
from macros.engine.steps import EVERY_NORM, Role
from macros.site import page_macros as registry
from macros.views.costs.cells import end_before
from macros.views.diagrams.dataflow import TO_READ
from macros.views.kit import values
from macros.views.models import model_page, traits
from macros.views.reference import claims
from macros.views.reference.claims import formula_result
from macros.views.tables import size_counts

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SLUGS = list(presets.paths())
KNOWN = [slug for slug in SLUGS if presets.preset(slug).config is not None]


class Env:
    """What the macros ask of MkDocs: nothing is linked."""

    variables: dict = {}


MACROS = registry.macros(Env())


def plain(html: str) -> str:
    """The text of a view or page, each run of spaces as one."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def page(path: str) -> str:
    """A page of `docs/` with its figures, as text."""
    return plain(jinja2.Environment().from_string((DOCS / path).read_text("utf-8")).render(MACROS))


def known() -> list[Model]:
    return [presets.model(slug) for slug in KNOWN]


# Parameters: which N


def test_who_counts_what_in_scaling_laws():
    """Kaplan's N is non-embedding, Chinchilla's is everything: no sentence says “scaling laws” of both."""
    sentences = [
        sentence
        for path in [*DOCS.rglob("*.md"), *(ROOT / "macros").rglob("*.py")]
        if "vendor" not in path.parts
        for sentence in re.split(r"(?<=[.;|\])])\s+(?![^\[]*\])", " ".join(path.read_text("utf-8").split()))
        if re.search(r"scaling.laws", sentence)
    ]
    assert len(sentences) >= 4
    assert [s for s in sentences if not re.search(r"Kaplan|Hoffmann|Chinchilla", s)] == []
    assert "Kaplan" in size_counts.which_number("gpt2")


@pytest.mark.parametrize("slug", ["llama3-8b", "llama2-13b", "qwen2.5-7b", "gpt2", "qwen3-0.6b", "smollm2-135m"])
def test_what_six_n_leaves_out_and_counts_too_much(slug):
    """Without scores, training takes 6 FLOPs for each number of a matrix; an input table if it is the head too."""
    model, costs = presets.model(slug), costs_of(presets.model(slug).counts)
    used_by = {
        roles: {w for n in model.trace.root.children if n.role in roles for w in n.all_weights()}
        for roles in ((Role.EMBED, Role.EMBED_POSITIONS), (Role.UNEMBED,))
    }
    looked_up, head = used_by.values()
    matrices = [w for w in model.counts.weights if len(w.shape) > 1]
    multiplied = sum(int(w.count) for w in matrices if w not in looked_up or w in head)
    context = 512
    without_scores = (
        costs.compute.training_flops_per_token(context) - 3 * costs.compute.pair_flops(context, context)[0] / context
    )
    assert without_scores == pytest.approx(6 * multiplied, rel=1e-12)
    assert model.counts.non_embedding < multiplied, "Kaplan's N leaves out the head, and the head is multiplied by"
    assert (multiplied <= model.counts.total - sum(int(w.count) for w in looked_up)) != model.counts.is_tied


# Fixed once training starts


def widened(reading: float, writing: float, seed: int = 3) -> tuple[np.ndarray, np.ndarray, int]:
    """The golden Llama and the same with one number more in its vector, its new weights random times these factors.

    Logits before and after, and the width before.
    """
    g, rng = golden("llama"), np.random.default_rng(seed)
    width = g.raw["hidden_size"]
    head = g.raw.get("head_dim") or width // g.raw["num_attention_heads"]
    read, written = ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj", "lm_head"), ("o_proj", "down_proj")
    before = {name: x.astype(np.float64) for name, x in g.tensors.items()}
    after = {}
    for name, x in before.items():
        part = name.removesuffix(".weight").rpartition(".")[2]
        if part in read:
            after[name] = np.hstack([x, reading * rng.normal(size=(len(x), 1))])
        elif part in written:
            after[name] = np.vstack([x, writing * rng.normal(size=(1, x.shape[1]))])
        elif part == "embed_tokens":
            after[name] = np.hstack([x, writing * rng.normal(size=(len(x), 1))])
        else:
            assert part in ("input_layernorm", "post_attention_layernorm", "norm")
            after[name] = np.append(x, 1.0)  # as a norm's weights begin
    config = g.architecture.config.read(g.raw | {"hidden_size": width + 1, "head_dim": head})[0]
    return (
        logits(g.architecture, g.config, Arrays(before), g.ids)[0],
        logits(g.architecture, config, Arrays(after), g.ids)[0],
        width,
    )


def slope(reading: float, writing: float, d_reading: float, d_writing: float) -> float:
    """How fast the scores change with the new weights, in the direction of all that read or all that write."""
    step = 1e-4
    up, down = (widened(reading + sign * step * d_reading, writing + sign * step * d_writing)[1] for sign in (1, -1))
    return float(np.abs(up - down).max() / (2 * step))


def test_weights_that_are_zero_on_both_sides_get_no_gradient():
    assert slope(0, 0, 1, 0) == 0 and slope(0, 0, 0, 1) < 1e-9
    assert slope(1, 0, 0, 1) > 0.01, "with what reads at random, what writes has a gradient"
    assert slope(0, 1, 1, 0) > 0.01, "and the other way round"


def test_one_number_more_moves_the_scores_through_the_norms():
    for reading, writing in ((0, 0), (1, 0)):
        before, after, width = widened(reading, writing)
        moved = np.abs(after - before).max() / np.abs(before).max()
        assert 0.01 / (2 * width) < moved < 50 / (2 * width)
    before, noisy, _ = widened(1, 1)
    assert np.abs(noisy - before).max() / np.abs(before).max() > 0.1


def test_the_page_on_the_width_keeps_to_its_premise():
    """One number more, heads as wide as before: no word on heads that do not fit. D + 1 is no multiple of them."""
    sizes, text = presets.model("llama-7b").counts.values(), page("model-size/fixed-after-training.md")
    assert f"over {sizes['d_model'] + 1:,} numbers" in text and f"one part in {2 * sizes['d_model']:,}" in text
    assert "heads do not fit" not in text and "has to find a use" not in text


def test_shares_of_matrices_without_the_width():
    """Which matrices have another side than the width is held by claims; the page gives their share."""
    text = page("model-size/index.md")
    for slug, tails in (("deepseek-v3", ("q_b_proj", "kv_b_proj")), ("mamba-1.4b", ("x_proj", "dt_proj"))):
        counts = presets.model(slug).counts
        share = sum(int(w.count) for w in counts.weights if values.short_name(w.name) in tails) / counts.total
        assert 0 < share < 0.05 and f"{100 * share:.1f}%" in text


# Comparisons


def test_why_deepseek_v3_keeps_less_than_llama_405b():
    """Two causes, and their product is the whole."""
    large, small = presets.model("llama3.1-405b"), presets.model("deepseek-v3")
    whole = large.counts.cache_bytes_per_token() / small.counts.cache_bytes_per_token()
    layers = design.n_layers(large.counts) / design.n_layers(small.counts)
    rows = whole / layers
    text = page("what-happens/attention-kinds.md")
    for figure in (whole, layers, rows):
        assert f"{figure:.3g} times" in text
    assert min(layers, rows) > 1.5


def test_the_batch_from_which_compute_limits_a_mixture_of_experts():
    """Larger than a dense model's by all weights to those of one token, and not by all experts to the chosen."""
    given = Conditions(format="bfloat16", accelerator=accelerator("h100"))
    dense = costs_of(presets.model("llama3-8b").counts).critical_batch(given)
    text = page("costs/time.md")
    for slug in ("mixtral-8x7b", "deepseek-v3"):
        counts = presets.model(slug).counts
        table = counts.values()["vocab_size"] * counts.values()["d_model"]
        stated = (counts.total - table) / (counts.active - table)
        crossing = costs_of(counts).critical_batch(given)
        assert crossing / dense == pytest.approx(stated, rel=0.01)
        assert f"{stated:.3g} times" in text and f"{crossing:,} sequences" in text
        sizes = counts.values()
        assert stated < 0.95 * sizes["n_experts"] / sizes["n_experts_per_token"]


def test_the_feed_forward_part_is_not_most_of_each_model():
    """Of the layers it is, which a claim holds; of GPT-2 and Qwen3 0.6B it is less than half."""
    text = page("what-happens/ffn-deep-dive.md")
    for slug, is_most in (("gpt2", False), ("qwen3-0.6b", False), ("llama3-70b", True)):
        counts = presets.model(slug).counts
        share = by_category(counts.parts)[Category.FEED_FORWARD] / counts.total
        assert (share > 0.5) == is_most and f"{100 * share:.1f}%" in text
    assert not re.search(r"[Mm]ost parameters of a dense model are", text)


def test_a_formula_that_is_right_by_chance_says_so():
    """Qwen3 0.6B shares its keys and values, and its heads are as much wider: no model “that shares nothing”."""
    exact = {r.entry.slug for r in claims.results("cache-all-heads") if r.ratio == 1}
    sharing = {
        slug
        for slug in exact
        if (sizes := presets.model(slug).counts.values()).get("n_kv_heads", sizes["n_heads"]) != sizes["n_heads"]
    }
    assert sharing == {"qwen3-0.6b", "qwen3-embedding-0.6b"}, "one of them is trained further from the other"
    assert int(formula_result("cache-all-heads", "exact")) == len(exact)
    assert int(formula_result("cache-all-heads", "exact as assumed")) == len(exact - sharing)
    assert formula_result("cache-all-heads", "exact by chance") == "Qwen3 0.6B, Qwen3 Embedding 0.6B"
    assert formula_result("12LD2", "exact by chance") == "none"
    with_attention = [m for m in known() if any(k.row is not None for k in m.counts.kept)]
    assert int(formula_result("cache-all-heads", "models")) == len(with_attention)


# Scores and norms


def test_the_spread_of_scores():
    """A sum of n products of variance 1 has variance n; softmax of scores that far apart gives nearly all to one."""
    width = presets.model("llama3-70b").counts.values()["d_head"]
    rng = np.random.default_rng(1)
    q, k = rng.normal(size=(4000, 1, width)), rng.normal(size=(4000, 5, width))
    scores = (q * k).sum(-1)
    assert scores.var() == pytest.approx(width, rel=0.05)

    def largest_share(x: np.ndarray) -> float:
        e = np.exp(x - x.max(-1, keepdims=True))
        return float(np.median((e / e.sum(-1, keepdims=True)).max(-1)))

    assert largest_share(scores) > 0.95
    assert largest_share(scores / width**0.5) < 0.5
    spread = width**0.5
    assert 10_000 < np.exp(spread) < 100_000, "“tens of thousands”"
    assert f"{spread:.3g}: two of them are typically that far apart" in page("what-happens/attention-deep-dive.md")
    assert 0.5 * spread < np.median(np.abs(scores[:, 0] - scores[:, 1])) < 1.5 * spread


def test_a_norm_does_not_hold_the_stream_back():
    """The stream is summed past the norm: a norm hears it at any size, and what a half adds is the same."""
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    class Watch:
        def call(self, step, args, kwargs):
            out = step.function(*args, **kwargs)
            if step.role in EVERY_NORM:
                seen.append((args[0], out))
            return out

    g = golden("llama")
    larger = g.tensors | {"model.embed_tokens.weight": 100 * g.tensors["model.embed_tokens.weight"]}
    for tensors in (g.tensors, larger):
        logits(g.architecture, g.config, Arrays(tensors, watch=Watch()), g.ids)
    half = len(seen) // 2
    stream, heard = ([np.abs(pair[i]).mean() for pair in seen] for i in (0, 1))
    assert stream[half - 1] > 3 * stream[0], "the stream grows from sum to sum"
    assert min(stream[half:]) > 10 * max(stream[:half]), "and stays as large as it was made"
    assert max(heard) < 10 * min(heard), "what a norm hands on does not"


# What was checked


def sentence(slug: str) -> str:
    """The first point of “What was checked”: what the total was held against."""
    return plain(model_page.model_checked(slug).partition("</li>")[0])


@pytest.mark.parametrize("slug", KNOWN)
def test_an_exact_number_is_that_of_a_file(slug):
    """Without published weights, the number is that of the paper's sizes."""
    said = plain(model_page.model_intro(slug))
    assert ("has exactly " in said) == (presets.preset(slug).hub is not None)
    assert ("by the sizes in its paper" in said) == (presets.preset(slug).hub is None)


@pytest.mark.parametrize("slug", SLUGS)
def test_what_was_checked(slug):
    """The generated sentences of each model, against what its preset says and the trace counts."""
    preset = tomllib.loads(presets.paths()[slug].read_text("utf-8"))
    said, everything = sentence(slug), plain(model_page.model_checked(slug))
    published = preset.get("published")
    if "config" not in preset:
        assert everything == "There is nothing to check."
        return
    total = sum(int(np.prod(shape)) for _, shape in presets.model(slug).counts.tensors())
    buffers = presets.model(slug).counts.buffer_elements
    towers = [tensor for c in presets.model(slug).components for tensor in c.counts.tensors()]
    extra = [
        {"count": sum(int(np.prod(shape)) for name, shape in towers if name.startswith(row.get("tensors", "?")))} | row
        for row in (published.get("extra", []) if published else [])
    ]
    assert "−" not in said or not published["exact"], "a number of numbers is not negative"
    if not published:
        assert said == "No published total was found to compare the count with."
    elif not published["exact"]:
        assert said.startswith(f"The published total is rounded, {published['parameters']:,}: ")
        alike = [f for f in published.get("other", []) if f["exact"] and f["parameters"] == total]
        assert ("also stated elsewhere" in said) == bool(alike)
    elif not extra and not buffers:
        assert published["parameters"] == total
        assert said == f"The total equals the published {total:,} exactly. Otherwise the build would fail."
    else:
        more = published["parameters"] - total
        assert more == buffers + sum(row["count"] for row in extra)
        how = "more" if more > 0 else "fewer"
        assert f"The published {published['parameters']:,} counts {abs(more):,} {how} than the parameters" in said
        for row in extra:
            left_out = " left out" if row["count"] < 0 else ""
            assert f"{plain(row['name'])} ({abs(row['count']):,}{left_out})" in said
        assert ("stored and not trained" in said) == bool(buffers)
        about_the_file = plain(" ".join(row["name"] for row in extra))
        assert "file" not in said.replace(about_the_file, "").replace("the published file has", "")
    compared = "were compared with the published file’s, tensor by tensor" in everything
    assert compared == (preset["sources"].get("names") == "published")
    if not compared:
        assert ("No file with these weights was published" in everything) == ("hub" not in preset)


# What costs leave out of account

MADE_OF = "GPT-3’s paper alternates dense attention"
AMONG_SEVERAL = {
    "cache_table": {},
    "cache_chart": {},
    "cache_kinds_chart": {},
    "training_flops": {},
    **dict.fromkeys(("inference_table", "fitting_file_table"), {"context": 1024}),
    "adapter_table": {},
    "fine_tuning_fits": {"context": 512},
    "prefix_table": {"prefixes": 100, "context": 1024},
}
AMONG_SEVERAL["engine_table"] = {"engine": "transformers", "on": "10TB", "context": 1024}
OF_ONE = set(
    """
    kv_cache flops costs flops_table bytes_table cache_layers cache_formula training_memory split_table time_table
    walkthrough model_sheet what_if training_split fine_tuning_memory
    offload_table speculative_table throughput_chart memory_chart model_changes cite_numbers flops_chart
    training_chart draft_head_table memory_figure
    """.split()
)
ELSEWHERE = {
    "comparison": lambda call, slug: call([slug, "gpt2"], ["total", "cache_bytes_per_token"]),
    "compare": lambda call, slug: call([slug, "gpt2"]),
    "catalogue": lambda call, slug: call(family=presets.preset(slug).family),
    "family_changes": lambda call, slug: call(presets.preset(slug).family),
    "published_costs": lambda call, slug: call(),
    "terminal": lambda call, slug: call(f"fits {slug} --on 10TB"),
    "python_example": lambda call, slug: call(f"ep.load({slug!r})"),
    "fits_table": lambda call, slug: call(10**6, context=1024, most=len(SLUGS)),
    "token_bill": lambda call, slug: call(slug, "h100", devices=8),
    "traffic_table": lambda call, slug: call(slug, devices=1),
    "cache_peers": lambda call, slug: call(slug),
    "moving_bars": lambda call, slug: call({"Cache": "m.cache_bytes"}, by={"context": (1, 512)}, states=(512,), m=slug),
    "choice_chart": lambda call, slug: call("KV cache"),
    "formula_error_chart": lambda call, slug: call("cache-all-heads"),
}
# Views of the block of a Llama, and of models that are named in them: none has a caveat.
OF_LLAMAS = {"design_table", "design_result", "measured_table", "plan_deployment"}
# Lists of models that are made for a context that no GPT-3 is made for: what is said of those that stand there.
OF_LISTED = {"what_fits", "served_runs_table"}
# Views of a model in which no cache, no scores and no time stand.
OF_SHAPES = set(
    """
    token_pieces model_answers
    value params parameter_table layer_table which_number memory_table published_table weights_table quantizer_table
    bits_per_weight_table formula parameter_formula matmul
    matmul_figure pipeline_diagram block_diagram family_chart model_intro model_sources model_checked model_cards
    preset_file layer_range calc cost model_link config_file device_chart parts_chart size_chart shape_history_chart
    size_histograms size_count
    timeline architecture_gallery gallery_summary
    formula_result formula_against_parts scaling_table notation_table format_table accelerator accelerator_table
    how_many verification macro_table growth_figure formulas_table headlines_table common_widths width_result
    claims_table
    coverage_summary coverage_types coverage_mechanisms coverage_mappings coverage_vllm coverage_recipes
    coverage_predictions coverage_values coverage_watch benchmark
    benchmarks_table
    token_ids_claim published_origins read_chart figure_table trace_steps part_formula excerpt html_source room
    rooms_picture terms_table style_table one_head recap shape_after dot_product matrix_product matrix_cell
    widths_at_a_glance
    python_config area_map attention_table worked_score capitals_figure number_matrix logit_lens number_walk real_number
    layer_drawing sentence_table top_words head_habits attention_heads ask_first
    attention_masks attention_kinds attention_count expert_tiles product_steps writing_loop
    ablation_chart learned_grid grows_with
    embedding_map recorded_engine recorded_engines recorded_layers recorded_map_figure recorded_near recorded_next
    recorded_share
    choose_country attention_of token_rows
    head_that_looks_at
    ablated ablation_table
    independent_summary independent_table any_config read_log run_checkpoint station data_fields rooms_table
    python_names
    engine_buffers_table engine_logs_table engine_options message_table perplexity perplexity_table training_run
    training_runs tower_list tower_table tower_types
    prediction_table
    """.split()
)


@pytest.mark.parametrize("slug", [s for s in SLUGS if presets.preset(s).caveat] + ["gpt2"])
def test_a_caveat_stands_beside_every_cost(slug):
    caveat = presets.preset(slug).caveat
    has_one, made_of = bool(caveat), MADE_OF if caveat is None or MADE_OF in caveat else caveat
    has_d_ff = "d_ff" in presets.model(slug).config.symbols  # else no draft head has its sizes
    for name in sorted(OF_ONE - (set() if has_d_ff else {"draft_head_table"})):
        assert (made_of in MACROS[name](slug)) == has_one, name
    # No engine's cache of what an encoder read is known, and transformers has no DeepSeek V4.1.
    unread = costs_of(presets.model(slug).counts).compute.reads_source or slug == "deepseek-v4.1-flash"
    for name, options in AMONG_SEVERAL.items():
        said = MACROS[name]((slug, "gpt2-xl"), **options)
        assert (made_of in said) == has_one, name
        # Beyond a table of positions nothing is said at all.
        not_known = name == "engine_table" and unread and not end_before(presets.model(slug), 1024)
        assert ("no rule is known for the cache of" in said) == not_known
    if made_of is MADE_OF and has_one:
        assert [name for name, call in ELSEWHERE.items() if made_of not in call(MACROS[name], slug)] == []
    if has_one:
        said = presets.model(slug).warnings
        parts, defaults = ([w for w in said if w.startswith(of)] for of in ("a config of several", models.DEFAULT))
        assert said == (*parts, caveat, *defaults)


def test_every_macro_was_asked_whether_it_shows_a_cost():
    assert MACROS.keys() == OF_ONE | AMONG_SEVERAL.keys() | ELSEWHERE.keys() | OF_LLAMAS | OF_LISTED | OF_SHAPES
    assert not any(m.preset.caveat for m in known() if m.model_type == "llama" and m.preset)
    with pytest.raises(Problem, match=r"Llama"):
        MACROS["design_table"]("gpt2", 8, 8192)


def test_these_models_say_what_is_counted_otherwise():
    said = {s: presets.preset(s).caveat for s in SLUGS if presets.preset(s).caveat}
    assert {s for s in said if not said[s].startswith("An encoder ")} >= {
        "deepseek-v4.1-flash",
        *(s for s in SLUGS if s.startswith("gpt3-")),
    }


# Families, sources, FLOPs


@pytest.mark.parametrize("slug", KNOWN)
def test_no_biases_means_none(slug):
    """“none” stands where no tensor of the model is a bias, of a norm, a convolution or a router either."""
    counts = presets.model(slug).counts
    ends = [w.name for w in counts.weights + counts.buffers if w.name.endswith("bias")]
    biases = [name for name in ends if not name.endswith("position_bias")]  # a number for each place in a window
    said = traits.biases(presets.model(slug))
    assert (said == "none") == (not biases), f"{said}: {biases}"
    assert ("norm" in said) == any(
        re.search(r"([nN]orm|ln|ln_\w+|ln\d)\.bias$", w.name) for w in counts.weights if w.layers is not None
    )
    assert ("indexer" in said) == any("indexer" in name for name in biases)


GIVEN_IN_PAPERS = frozenset(
    """gpt3-small gpt3-medium gpt3-large gpt3-xl gpt3-2.7b gpt3-6.7b gpt3-13b gpt3-175b t5-small t5-base t5-large
    t5-3b t5-11b whisper-tiny whisper-base whisper-small whisper-medium whisper-large-v2 whisper-large-v3""".split()
)


def test_where_the_published_totals_stand():
    """Each source is of one kind, and the table adds up to every model with a published total."""
    text = plain(model_page.published_origins())
    sources = [p.published.source for p in map(presets.preset, SLUGS) if p.published]
    assert text.endswith(f"All models with a published total {len(sources)}")
    kinds = {kind: [s for s in sources if model_page.source_kind(s) == kind] for _, kind in model_page.ORIGINS}
    for kind, of_it in kinds.items():
        assert of_it and f"{kind} {len(of_it)}" in text, f"no source is {kind}: take it off ORIGINS"
    assert all("KerasHub" in s for s in kinds[model_page.ORIGINS[0][1]]) and len(kinds[model_page.ORIGINS[0][1]]) > 1
    of_no_kind = sum(model_page.source_kind(s) == model_page.ELSEWHERE for s in sources)
    assert of_no_kind <= len(sources) // 40, "a kind of source that several presets share needs a row in ORIGINS"
    assert model_page.source_kind("somebody said so") == model_page.ELSEWHERE
    for stored in ("a/b on the Hugging Face Hub, header of x.safetensors", "a/b, headers of its 2 safetensors files"):
        assert model_page.source_kind(stored) == model_page.ORIGINS[1][1]
    # What the text names as examples; a further model may have any of these sources.
    source = {s: presets.preset(s).sources.config for s in KNOWN}
    assert all(source[s].startswith("arXiv") for s in GIVEN_IN_PAPERS), "“papers (such as …)”"
    assert all(source[s].startswith("facebookresearch/fairseq") for s in ("bart-base", "roberta-large"))
    of_list = [s for s in KNOWN if source[s].startswith("PaddlePaddle/PaddleNLP")]
    assert of_list and all(s.startswith(("bert-", "electra-", "distilbert-")) for s in of_list), "“BERT’s kind”"
    for said, pattern in {
        "the defaults of the model’s class": r"^class defaults of .*\(\w+Config\)|^NVIDIA/NeMo",
        "the tests or the data of a program": r"\b[tT]ests?\b|configs/model/",
        "a model card": r"README\.md, |model card, ",
        "the settings of a training": r", configs/.*\.yaml$",
    }.items():
        assert any(re.search(pattern, one) for one in source.values()), said


# The conventions' two lists, item by item: what counts as FLOPs, and what does not.
COUNTED = {
    "linear layers": {Role.LINEAR, Role.GROUPED_LINEAR, Role.CONV1D, Role.LATENT_QUERIES, Role.LATENT_VALUES},
    "experts": {Role.EXPERT_LINEAR, Role.SHARED_EXPERTS},
    "the LM head": {Role.UNEMBED},
    "attention scores and weighted sums of values": {Role.SCORES, Role.RELATIVE_LOGITS, Role.WEIGHTED_SUM},
    "including those over latents": {Role.LATENT_SCORES, Role.LATENT_WEIGHTED_SUM},
    "an indexer’s": {Role.INDEX_SCORES, Role.INDEXER},
    "the weighted sum of the selected experts": {Role.COMBINE},
    "the mixing of residual streams": {
        Role.READ_STREAMS,
        Role.STREAM_SHARES,
        Role.WRITE_STREAMS,
        Role.REDUCE_STREAMS,
    },
    "averages over the depth": {Role.ATTENTION_RESIDUALS},
    "the fit of n-grams to the streams": {Role.NGRAMS},
    "the averages in a compressed KV cache": {Role.COMPRESSOR},
    "recurrences": {
        *(Role.SELECTIVE_SCAN, Role.DECAYING_ATTENTION, Role.GATED_DELTA_RULE),
        *(Role.WKV, Role.WKV7, Role.RG_LRU, Role.MLSTM),
    },
    "convolutions": {Role.CAUSAL_CONV, Role.CONVOLVE},
}
LEFT_OUT = {
    "lookups": {
        *(Role.EMBED, Role.EMBED_SEGMENTS, Role.EMBED_POSITIONS, Role.EMBED_LAYERS, Role.SINUSOIDS, Role.LAST_ROW),
        *(Role.NGRAM_HASH, Role.NGRAM_EMBEDDING, Role.GATHER_ROWS),
    },
    "norms": set(EVERY_NORM),
    "activation functions and gates": {
        Role.GELU,
        Role.GELU_TANH,
        Role.SILU,
        Role.RELU,
        Role.RELU_SQUARED,
        Role.XIELU,
        Role.CLIPPED_SWIGLU,
        Role.SIGMOID,
        Role.SOFTPLUS,
        Role.SOFT_CAP,
        Role.CLIP,
        Role.GATED_SUM,
    },
    "softmax": {Role.SOFTMAX, Role.SOFTMAX_WITH_SINK, Role.CAUSAL_MASK, Role.WINDOW_MASK, Role.TEMPERATURE},
    "the selection of experts": {
        Role.SIGMOID_SCORES,
        Role.EXPERT_GROUPS,
        Role.TOP_K,
        Role.ROUTING_WEIGHTS,
        Role.SPARSE_MIXER,
        Role.HASHED_EXPERTS,
    },
    "rotary embeddings and position biases": {Role.ROPE, Role.ROPE_PAIRS, Role.ROPE_TABLE, Role.RELATIVE_BIAS},
    "biases and sums": {Role.SHIFT},  # and steps without a role of their own, inside others
    "all other element-wise work": {Role.REPEAT_KV, Role.TOKEN_SHIFT, Role.SINKHORN, Role.EXPAND_STREAMS},
}


@pytest.mark.exhaustive
def test_the_conventions_list_what_the_counter_counts():
    counted, uncounted, whole = set(), set(), set()
    of_no_preset = presets.make("kimi_k3", golden("kimi_k3").raw)  # averages over the depth
    for model in (*known(), of_no_preset):
        for node in model.trace.root.walk():
            own = node.own_flops is not None and node.own_flops.terms
            role = node.role or node.parent.role
            (counted if own else uncounted).add(role)
            if node.flops.terms:
                whole.add(node.role)
    listed = set().union(*COUNTED.values())
    assert counted == listed, f"counted and not listed, or the other way round: {counted ^ listed}"
    left_out = set().union(*LEFT_OUT.values())
    without = {role for role in uncounted - counted if role is not None} - whole
    assert without <= left_out, f"not counted and not listed: {without - left_out}"
    unlisted = [presets.make(name, raw) for name, raw in small_configs().items()]
    without |= {node.role for model in unlisted for node in model.trace.root.walk()} - whole - counted
    assert left_out - EVERY_NORM <= without, f"listed, and no step is one: {left_out - EVERY_NORM - without}"
    text = page("reference/conventions.md")
    counting, leaving = (
        re.search(pattern, text)[0] for pattern in (r"These count: .*?(?=These do not)", r"These do not: .*?\.")
    )
    assert [item for item in COUNTED if item not in counting] == []
    assert [item for item in LEFT_OUT if item not in leaving] == []
    assert "weighted sum of the experts" in page("costs/index.md")


def test_a_tower_without_a_table_is_not_called_by_one():
    """SeamlessM4T's config.json has its speech encoder's keys among the others."""
    said = model_page._part(presets.model("seamless-m4t-v2-large"))
    assert "without its audio tower" in said and "audio_config" not in said


def test_a_drawing_names_what_is_read():
    """Beside the text: a sound, an image, a page's tokens, or Evolla's protein."""
    kinds = {name: TO_READ[a.config.source_kind][0] for name, a in architectures().items()}
    assert (kinds["evolla"], kinds["idefics"], kinds["whisper"]) == (
        "Protein to read",
        "Image to read",
        "Sound to read",
    )


# Markdown that a page must not take for something else


def blocks() -> list[tuple[str, str, int, str]]:
    """Each `<details>` of the pages: the page, its opening tag, its line, and what stands in it."""
    found = []
    for path in sorted(DOCS.rglob("*.md")):
        source = path.read_text("utf-8")
        for one in re.finditer(r"^(<details[^>]*>)\n(.*?)^</details>", source, re.M | re.S):
            line = source[: one.start()].count("\n") + 1
            found.append((path.relative_to(DOCS).as_posix(), one[1], line, one[2]))
    return found


def test_a_fold_with_sentences_is_read_as_markdown():
    """Without the attribute, Markdown in an HTML block is shown as it is written."""
    raw = []
    for name, tag, line, inside in blocks():
        left = re.sub(r"\{\{.*?\}\}|\{#.*?#\}|<summary>.*?</summary>|<[^>]+>", "", inside, flags=re.S)
        if " markdown" not in tag and left.strip():
            raw.append(f'docs/{name}:{line}: write <details class="ep-fold" markdown> for {" ".join(left.split()[:6])}')
    assert len(blocks()) > 50 and not raw, "\n".join(raw)


def test_no_sentence_begins_as_a_list():
    """`22. The model then has …` at the start of a paragraph would be the first item of a list, numbered 1."""
    begins = re.compile(r"^(?:|\?\?\? .*)\n[ \t]*\{\{(?:(?!\}\}|unit=).)*\}\}\. .*", re.M)
    read_as_lists = [
        f"docs/{path.relative_to(DOCS).as_posix()}: {one[0].strip()}"
        for path in sorted(DOCS.rglob("*.md"))
        for one in begins.finditer(path.read_text("utf-8"))
    ]
    assert not read_as_lists, "\n".join(read_as_lists)
