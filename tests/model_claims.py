"""What sentences with “all”, “most”, “only”, “no”, “largest” … say about models, as assertions over the catalogue.

A sentence is marked where it is written: `{# claim: its-name #}` on a page, `# claim: its-name` in a
module, a preset or a page's head. A claim's docstring is what it holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from math import prod

import numpy as np

from macros.catalogue import presets, published_costs
from macros.catalogue.independent import comparison
from macros.catalogue.presets import Model
from macros.counting import design
from macros.counting.accelerators import accelerators
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.counting.parts import Category, by_category
from macros.counting.speculative import speculation
from macros.engine.array import Node, ShapeArray
from macros.engine.ops import Chunked, Compressed, Full, PickedBlocks, PickedPools, SlidingWindow
from macros.engine.steps import EVERY_NORM, FEED_FORWARDS, ROPES, Holds, Role
from macros.engine.tensors import CacheEntry
from macros.views.charts import catalogue_entries
from macros.views.charts.catalogue_entries import year
from macros.views.diagrams import model_diagrams
from macros.views.kit import values
from macros.views.reference import claims
from macros.views.tables import headlines, size_counts

CLAIMS: dict[str, Callable[[], None]] = {}
SLUGS = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
TABLES, HEADS = (Role.EMBED, Role.EMBED_POSITIONS), (Role.UNEMBED,)


def claim(function: Callable[[], None]) -> Callable[[], None]:
    """Put a claim into `CLAIMS` by its name, with `-` for `_`."""
    CLAIMS[function.__name__.replace("_", "-")] = function
    return function


def of(slug: str) -> Model:
    return presets.model(slug)


def every() -> list[Model]:
    return [of(slug) for slug in SLUGS]


def size(slug: str, name: str) -> int:
    return values.number(of(slug), name)


def ratio(name: str, large: str, small: str) -> Fraction:
    return Fraction(size(large, name), size(small, name))


def width(model: Model) -> int:
    return model.counts.values()["d_model"]


def used_by(model: Model, roles: Iterable[Role]) -> set:
    return {w for n in model.trace.root.children if n.role in roles for w in n.all_weights()}


def layers_of(model: Model) -> list[Node]:
    return [n for n in model.trace.root.children if n.layers is not None]


def steps_of(model: Model, *roles: Role) -> list[Node]:
    return [n for n in model.trace.root.walk() if n.role in roles]


def shapes_of(layer: Node) -> list[tuple[str, tuple[int, ...]]]:
    return sorted((w.name, tuple(map(int, w.shape))) for w in layer.all_weights())


NO_STATES = {Holds.TOKEN_IDS, Holds.CONVOLUTION, Holds.ATTENTION_SHIFT, Holds.FEED_FORWARD_SHIFT}


def comes_from(a: ShapeArray, origin: ShapeArray) -> bool:
    """Whether an array was computed from the numbers of another, through whatever calls lie between."""
    if a is origin:
        return True
    made = a.source
    return isinstance(made, Node) and any(comes_from(b, origin) for b in made.inputs if b.dtype.kind == "f")


def keeps_everything(entry: CacheEntry) -> bool:
    """Whether an entry of the cache has a row for each token, or for every few, however long the text."""
    keeping = (Full, Compressed, PickedBlocks, PickedPools)
    return entry.row is not None and isinstance(getattr(entry.mask, "mask", entry.mask), keeping)


def is_dense(model: Model) -> bool:
    return model.counts.active == model.counts.total


def has_only_attention(model: Model) -> bool:
    return all(k.row is not None for k in model.counts.kept)


def matrices_of(model: Model) -> list:
    return [w for w in model.counts.weights if len(w.shape) > 1]


def feed_forward_share(model: Model, of_layers: bool = False) -> float:
    whole = size(model.slug, "in_layers") if of_layers else model.counts.total
    return by_category(model.counts.parts)[Category.FEED_FORWARD] / whole


# Variants that a page names


@claim
def llama_8b_throughput() -> None:
    """Bandwidth limits Llama 3 8B at 4,096 tokens on an H100 for every batch drawn; from 512 on, the caches are nearly
    all that is read, and eight times the batch gains less than a tenth.
    """
    costs, h100 = costs_of(of("llama3-8b").counts), accelerators()["h100"]
    rates = {}
    for batch in (2**k for k in range(13)):
        bound = costs.bound(1, Conditions(4096, batch, accelerator=h100))
        assert bound.memory_seconds > bound.compute_seconds
        rates[batch] = batch / bound.seconds
    assert rates[4096] < rates[512] * Fraction(11, 10)


@claim
def drafts_of_mixtures() -> None:
    """Where half of the free draft tokens are accepted, Mixtral 8x7B is slower for one text; DeepSeek-V3 at a batch of
    256, where nearly all experts are read, is faster.
    """
    h200 = accelerators()["h200"]
    one, many = (costs_of(of(slug).counts) for slug in ("mixtral-8x7b", "deepseek-v3"))
    half = Fraction(1, 2)
    for k in (1, 2, 4, 8):
        assert speculation(one, None, half, k, Conditions(4096, accelerator=h200)).speedup < 1
    given = Conditions(4096, 256, "fp8", devices=8, accelerator=h200)
    assert speculation(many, None, half, 1, given).speedup > 1
    assert many.traffic.weight_bytes_read(1, 256, "fp8") > many.weight_bytes("fp8") * 95 // 100


@claim
def experts_of_gpt_oss() -> None:
    """Routed experts are most of gpt-oss-120b, and a token reads few of them: 4 of 128."""
    weights = of("gpt-oss-120b").counts.weights
    routed = [w for w in weights if w.routed is not None]
    assert sum(int(w.count) for w in routed) * 10 > 9 * sum(int(w.count) for w in weights)
    assert {tuple(map(int, w.routed)) for w in routed if w.routed} == {(128, 4)}


@claim
def variants_have_their_steps():
    """Each model that a page names for a variant of a step has that step, where the page says."""
    for slug, role, around in (
        ("gemma2-27b", Role.SOFT_CAP, Role.ATTENTION),
        ("gpt-oss-20b", Role.SOFTMAX_WITH_SINK, Role.ATTENTION),
        ("deepseek-v3", Role.EXPERT_GROUPS, Role.MIXTURE_OF_EXPERTS),
        ("deepseek-v3.2", Role.INDEX_SCORES, Role.INDEXER),
        ("granite-4.0-h-small", Role.GATED_RMS_NORM, Role.MAMBA2),
        ("apertus-8b", Role.XIELU, Role.FEED_FORWARD),
        ("rwkv-4-169m", Role.RELU_SQUARED, Role.CHANNEL_MIX),
        ("llama4-scout", Role.TEMPERATURE, Role.ATTENTION),
        ("qwen3-next-80b-a3b", Role.L2_NORM, Role.GATED_DELTA_NET),
    ):
        assert any(step.is_inside(around) for step in steps_of(of(slug), role)), slug
    for step in steps_of(of("llama4-scout"), Role.TEMPERATURE):
        [layer] = (node for node in step.path() if node.layers is not None)
        assert not any(node.role in ROPES for node in layer.walk()), "in layers without RoPE"
    for slug, tails in (("opt-350m", {"project_in", "project_out"}), ("qwen1.5-moe-a2.7b", {"shared_expert_gate"})):
        assert tails <= {values.short_name(w.name) for w in of(slug).counts.weights}


# Recurrent layers


@claim
def recurrent_states():
    """What the layers of the page keep: a state of the shape that it says, and nothing for each token; Mamba has no
    feed-forward part, and its input projection is its largest matrix in a layer."""
    axes = {"mamba-130m": 2, "granite-4.0-h-small": 3, "qwen3-next-80b-a3b": 3, "minimax-text-01": 3, "rwkv-4-169m": 1}
    for slug, n in axes.items():
        states = [k for k in of(slug).counts.kept if k.row is None and k.holds not in NO_STATES]
        assert states and all(len(k.shape) == n for k in states), slug
    for slug in ("mamba-130m", "falcon-mamba-7b"):
        model = of(slug)
        assert not steps_of(model, *FEED_FORWARDS) and model.counts.cache_bytes_per_token() == 0
        assert model.counts.cache_bytes(4096) == model.counts.cache_bytes(131072)
        in_layers = [w for w in matrices_of(model) if w.layers is not None]
        assert max(in_layers, key=lambda w: int(w.count)).name.endswith("in_proj.weight")


@claim
def recurrent_rows():
    """Each row of the page's table has all that a layer of the kind keeps: its state, and what is beside it."""
    page = (presets.FOLDER.parent.parent / "docs/what-happens/recurrent-layers.md").read_text("utf-8")
    rows = [re.findall(r'value\("([^"]+)", "([^"]+)"\)', row) for row in page.splitlines() if row.startswith("| ")]
    rows = [row for row in rows if row]
    assert len(rows) == 8
    for row in rows:
        [slug] = {slug for slug, _ in row}
        kept = [k for k in of(slug).counts.kept if k.row is None]
        layer = kept[0].layers
        in_a_layer = sum(prod(map(int, k.shape)) for k in kept if k.layers == layer)
        assert sum(values.evaluate(of(slug), name) for _, name in row) == in_a_layer, slug


@claim
def lengths_of_encoders():
    """BART and Whisper have a position for each of the tokens or moments that their encoders read; T5 has no table of
    positions, rotates nothing, and reads texts longer than its config names."""
    for slug in SLUGS:
        m, sizes = of(slug), of(slug).counts.values()
        if "n_source" not in sizes:
            continue
        tables = [w for w in m.counts.weights if "encoder.embed_positions" in w.name]
        if m.model_type == "t5":
            assert not tables and not steps_of(m, Role.EMBED_POSITIONS, Role.SINUSOIDS, *ROPES)
            assert steps_of(m, Role.RELATIVE_BIAS)
            longer = presets.make("longer", {**m.raw, "n_positions": 2 * sizes["n_source"]})
            assert longer.counts.total == m.counts.total
        elif m.model_type not in ("seamless_m4t_v2", "mllama_text_model"):  # computed there, of an image here
            assert any(int(w.shape[0]) - sizes["n_source"] in (0, 2) for w in tables), slug


@claim
def keys_of_latents_are_not_made():
    """In each model with latent attention the map to the keys is applied to the queries."""
    asked = [m for m in every() if any(k.holds is Holds.LATENT for k in m.counts.kept)]
    assert asked and all(steps_of(m, Role.LATENT_QUERIES) for m in asked)


@claim
def four_bits_are_more_than_a_quarter():
    """The weights of each model in 4 bits, scales included, take more than a quarter of what they take in 16."""
    for m in every():
        costs = costs_of(m.counts)
        assert Fraction(1, 4) < Fraction(costs.weight_bytes("int4"), costs.weight_bytes("bfloat16"))
    costs = costs_of(of("llama3-70b").counts)
    assert Fraction(costs.weight_bytes("int4"), costs.weight_bytes("bfloat16")) < Fraction(27, 100)


@claim
def routers_since_deepseek_v3():
    """DeepSeek-V3 and more than half of the models with experts that came after it score by sigmoid; most of these
    divide by the sum."""
    first = str(presets.preset("deepseek-v3").released)
    with_experts = [m for m in every() if steps_of(m, Role.MIXTURE_OF_EXPERTS)]
    later = [m for m in with_experts if str(presets.preset(m.slug).released) >= first]
    by_sigmoid = [m for m in later if steps_of(m, Role.SIGMOID_SCORES)]
    assert of("deepseek-v3") in by_sigmoid and 2 * len(by_sigmoid) > len(later) > 20
    divided = [m for m in by_sigmoid if getattr(m.config, "normalise", False)]
    assert 2 * len(divided) > len(by_sigmoid)
    assert steps_of(of("mixtral-8x7b"), Role.SOFTMAX) and not steps_of(of("mixtral-8x7b"), Role.SIGMOID_SCORES)


@claim
def widths_of_qk_norms():
    """Most QK-norms have as many numbers as a head is wide; those of OLMo 2 as all heads together."""
    widths = {
        m.slug: w.shape[-1].expr.text()
        for m in every()
        for w in m.counts.weights
        if values.short_name(w.name) in ("q_norm", "q_layernorm", "query_layernorm") and len(w.shape) == 1
    }
    by_head = [slug for slug, width in widths.items() if width.startswith("d_") and width != "d_model"]
    assert 2 * len(by_head) > len(widths) > 30
    assert widths["olmo2-7b"] == "n_heads·d_head" and "olmo2-7b" not in by_head


@claim
def ways_of_forgetting():
    """Who decides on the decay: in Mamba, Mamba-2 and the delta rule it is made of the token, in lightning attention
    and RWKV-4 it is not; Mamba-2 has one for each head."""
    for slug, role, of_token in (
        ("mamba-130m", Role.SELECTIVE_SCAN, True),
        ("granite-4.0-h-small", Role.DECAYING_ATTENTION, True),
        ("qwen3-next-80b-a3b", Role.GATED_DELTA_RULE, True),
        ("minimax-text-01", Role.DECAYING_ATTENTION, False),
        ("rwkv-4-169m", Role.WKV, False),
    ):
        step = steps_of(of(slug), role)[0]
        decay = step.inputs[{Role.SELECTIVE_SCAN: 1, Role.WKV: 2}.get(role, 3)]
        assert comes_from(decay, step.parent.inputs[0]) == of_token, slug
        if slug == "granite-4.0-h-small":
            assert [d.expr.text() for d in decay.shape] == ["T", "n_mamba_heads"]


@claim
def smallest_state():
    """RecurrentGemma keeps a number for each channel in its recurrent layers; every third layer sees a window. No other
    model with a state keeps as few numbers a channel."""

    def numbers(m: Model) -> Fraction:
        """Numbers of a layer's state for each channel of the stream."""
        states = [k for k in m.counts.kept if k.row is None and k.holds not in NO_STATES]
        first = min(states[0].layers)
        return sum(Fraction(prod(map(int, k.shape)), width(m)) for k in states if first in k.layers)

    griffin, having = of("recurrentgemma-2b"), [m for m in every() if not has_only_attention(m)]
    having = [m for m in having if {k.holds for k in m.counts.kept if k.row is None} - set(NO_STATES)]
    assert numbers(griffin) == 1 and all(numbers(m) > 1 for m in having if m.slug != griffin.slug) and len(having) > 10
    attention = sorted({i for k in griffin.counts.kept if k.row is not None for i in k.layers})
    assert attention == list(range(2, design.n_layers(griffin.counts), 3))
    assert griffin.counts.cache_bytes(2**20) == griffin.counts.cache_bytes(2**21)


# The width


@claim
def width_is_a_side():
    """Matrices without a side of d_model have a few percent of the parameters at most, more in OPT 350M and ELECTRA
    small (their tables), MiniCPM3 and Youtu-LLM (the maps out of their latents). Not counted: a second table by token
    or by n-grams, which is looked up and never multiplied. Experts that work on latents are apart."""
    latents = ("moe_latent_size", "routed_expert_hidden_size", "moe_hidden_size")
    for m in every():
        if any(m.raw.get(key) for key in latents):
            continue
        looked_up = re.compile(r"embed_tokens_per_layer\.weight$|ngram_embedding|engram\.embed\.weight$")
        matrices = [w for w in matrices_of(m) if not looked_up.search(w.name)]
        other = [w for w in matrices if width(m) not in map(int, w.shape)]
        most = {"opt-350m": 0.1, "minicpm3-4b": 0.1, "youtu-llm-2b": 0.12, "electra-small": 0.3}.get(m.slug, 0.05)
        assert sum(int(w.count) for w in other) < most * m.counts.total, m.slug


@claim
def inkling_of_experts_alone():
    """Inkling's first two layers are dense; with experts in them as well it has 975B parameters."""
    m = of("inkling-975b")
    kinds = m.raw["mlp_layer_types"]
    assert kinds[:2] == ["dense"] * 2 and set(kinds[2:]) == {"sparse"}
    sparse = presets.make("it", m.raw | {"mlp_layer_types": ["sparse"] * len(kinds)})
    assert round(sparse.counts.total, -9) == 975 * 10**9


@claim
def not_every_model_is_regular():
    """In some models matrices have no side of d_model: DeepSeek-V3's second maps, Mamba's inner ones."""
    for slug, tails in (("deepseek-v3", {"q_b_proj", "kv_b_proj"}), ("mamba-1.4b", {"x_proj", "dt_proj"})):
        other = {values.short_name(w.name) for w in matrices_of(of(slug)) if width(of(slug)) not in map(int, w.shape)}
        assert tails <= other


@claim
def llama_7b_is_d_model_everywhere():
    """Each tensor of LLaMA 7B has a side of d_model, each term of its formula has it once, other sizes have no part
    in it."""
    m = of("llama-7b")
    assert all(any("d_model" in d.symbols for d in w.shape) for w in m.counts.weights)
    for monomial in m.counts.total_poly.terms:
        assert [power for atom, power in monomial if atom == "d_model"] == [1]
    assert m.counts.total % width(m) == 0 and not any(w.name.endswith("bias") for w in m.counts.weights)


@claim
def llama_70b_width_on_one_side():
    """Each matrix of Llama 3 70B has d_model on one side."""
    assert all(any("d_model" in d.symbols for d in w.shape) for w in matrices_of(of("llama3-70b")))


@claim
def llama_vocabulary_alone():
    """In LLaMA 7B two tensors have the vocabulary as a side, and no other depends on it; none has a length of text."""
    m = of("llama-7b")
    with_vocabulary = [w for w in m.counts.weights if any("vocab_size" in d.symbols for d in w.shape)]
    assert {w.name for w in with_vocabulary} == {"model.embed_tokens.weight", "lm_head.weight"}
    assert sum(int(w.count) for w in with_vocabulary) == 2 * size("llama-7b", "vocab_size") * width(m)
    no_text_in_a_shape()


@claim
def no_text_in_a_shape():
    """No tensor has T or S as a side; only learned tables of positions have the longest text."""
    for m in every():
        for w in m.counts.weights:
            assert not any(d.expr.is_free for d in w.shape)
            if any("n_positions" in d.symbols for d in w.shape):
                assert w in used_by(m, [Role.EMBED_POSITIONS])


@claim
def text_is_the_free_size():
    """The sizes of the data are the model's and T and S: with these put in, no symbol is left."""
    for m in every():
        at = m.counts.values(T=3, S=11)
        for node in m.trace.root.walk():
            for array in node.outputs:
                assert [d.expr.at(at) for d in array.shape if not d.expr.is_free] == [
                    int(d) for d in array.shape if not d.expr.is_free
                ]


@claim
def halves_end_in_the_width():
    """Attention and the feed-forward part give back vectors of d_model, in every model."""
    for m in every():
        for node in steps_of(m, Role.ATTENTION, Role.FEED_FORWARD, Role.MIXTURE_OF_EXPERTS):
            assert int(node.outputs[0].shape[-1]) == width(m), m.slug


@claim
def widths_are_round():
    """More than nine in ten widths are divisible by 128."""
    divisible = sum(width(m) % 128 == 0 for m in every())
    assert divisible > 0.9 * len(SLUGS)


@claim
def three_and_a_half_is_no_law():
    """Fewer than one in five dense models have d_ff = 3.5·d_model."""
    dense = [m.counts.values() for m in every() if design.feed_forward_matrices(m.counts) in (2, 3)]
    assert 0 < sum(2 * s["d_ff"] == 7 * s["d_model"] for s in dense) < len(dense) / 5


@claim
def depth_and_width_grow_together():
    """Over the catalogue, the ranks of depth and of width go together (a correlation of more than a half)."""
    ranks = [
        np.argsort(np.argsort([f(e) for e in catalogue_entries.entries()]))
        for f in (lambda e: e.n_layers, lambda e: e.d_model)
    ]
    assert np.corrcoef(ranks)[0, 1] > 0.5


@claim
def fashion_of_shapes():
    """The models until 2020 have d_ff = 4·D, except two of T5, and a key and value for every head; since 2024 most
    heads are 128 wide."""
    early = [m for m in every() if year(m.preset.released) < 2021]
    assert len(early) >= 5
    for m in early:
        sizes = m.counts.values()
        assert (sizes["d_ff"] == 4 * sizes["d_model"]) == (m.slug not in ("t5-3b", "t5-11b"))
        assert design.feed_forward_matrices(m.counts) == 2
        assert sizes.get("n_kv_heads", sizes["n_heads"]) == sizes["n_heads"]
    late = [m.counts.values() for m in every() if year(m.preset.released) >= 2024]
    heads = Counter(sizes["d_head"] for sizes in late if "d_head" in sizes)
    assert heads[128] > heads.total() / 2


@claim
def heads_together_are_mostly_as_wide():
    """In most models with heads of keys n_heads·d_head is d_model, and in some it is not."""
    alike = [
        sizes["n_heads"] * sizes["d_head"] == sizes["d_model"]
        for sizes in (m.counts.values() for m in every())
        if {"n_heads", "d_head"} <= sizes.keys()
    ]
    assert len(alike) / 2 < sum(alike) < len(alike)


# Growth with depth and width


@claim
def falcon3_differs_in_depth():
    """Falcon3 7B and 10B are alike in all sizes but the number of layers, and the layers grow exactly with it."""
    a, b = (of(slug).counts.values() for slug in ("falcon3-7b", "falcon3-10b"))
    assert {name for name in a if a[name] != b[name]} == {"n_layers"}
    assert ratio("in_layers", "falcon3-10b", "falcon3-7b") == ratio("n_layers", "falcon3-10b", "falcon3-7b")


@claim
def pythia_differs_in_width():
    """Pythia 410M and 1.4B have as many layers and heads; matrices of a layer grow fourfold, all else and the tables
    twofold."""
    a, b = of("pythia-410m"), of("pythia-1.4b")
    assert ratio("d_model", b.slug, a.slug) == 2 and ratio("n_layers", b.slug, a.slug) == 1
    for one, other in zip(a.counts.weights, b.counts.weights):
        in_a_layer = one.layers is not None and len(one.shape) > 1
        assert int(other.count) == (4 if in_a_layer else 2) * int(one.count)


@claim
def llama_8b_to_405b():
    """Keys, values and the cache of a layer go with the key/value heads, of which both have as many; d_ff grows by
    less than D."""
    sizes = [of(slug).counts.values() for slug in ("llama3-8b", "llama3-70b", "llama3.1-405b")]
    assert len({s["n_kv_heads"] for s in sizes}) == 1 and len({s["d_head"] for s in sizes}) == 1
    ends = "llama3.1-405b", "llama3-8b"
    assert ratio("d_ff", *ends) < ratio("d_model", *ends) == 4
    assert ratio("k_proj", *ends) / ratio("n_layers", *ends) == 4
    assert ratio("q_proj", *ends) / ratio("n_layers", *ends) == 16
    assert ratio("cache_bytes_per_token", *ends) == ratio("n_layers", *ends)
    assert 12 < ratio("in_layers", *ends) / ratio("n_layers", *ends) < 16
    large, small = ({values.short_name(w.name): w for w in of(s).counts.weights if w.layers is not None} for s in ends)
    both = [
        n
        for n, w in small.items()
        if len(w.shape) > 1 and all(int(p) > int(q) for p, q in zip(large[n].shape, w.shape))
    ]
    assert len(both) == 5, "queries, output, gate, up and down: of seven matrices"


@claim
def qwen_14b_to_32b():
    """From Qwen2.5 14B to 32B the width stays and d_ff grows."""
    assert ratio("d_model", "qwen2.5-32b", "qwen2.5-14b") == 1 < ratio("d_ff", "qwen2.5-32b", "qwen2.5-14b")


@claim
def gpt2_sizes_are_one_design():
    """The four GPT-2 have the same steps, vocabulary and width of a head; the larger, the smaller the share of the
    tables."""
    four = [of(slug) for slug in ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")]
    assert len({tuple((n.role, n.function) for n in m.trace.root.walk()) for m in four}) == 1
    assert len({(m.counts.values()["vocab_size"], m.counts.values()["d_head"]) for m in four}) == 1
    shares = [m.counts.embedding / m.counts.total for m in four]
    assert shares == sorted(shares, reverse=True)
    assert sorted(m.counts.total for m in four) == [m.counts.total for m in four]


# The formula 12·L·D²


@claim
def formula_ends():
    """12·L·D² finds least of a mixture of experts, and most of a model no layer of which has both attention and a
    feed-forward part."""
    given = sorted(claims.results("12LD2"), key=lambda result: result.ratio)
    assert not is_dense(of(given[0].entry.slug))
    for layer in layers_of(of(given[-1].entry.slug)):
        roles = {node.role for node in layer.walk()}
        assert not (roles & FEED_FORWARDS and Role.SCORES in roles)


@claim
def gpt3_small_is_four_and_eight():
    """In the smallest GPT-3 attention has four squares of D a layer and the feed-forward part eight; the rest is
    biases."""
    m = of("gpt3-small")
    assert m.counts.total == min(of(s).counts.total for s in SLUGS if s.startswith("gpt3-"))
    square = design.n_layers(m.counts) * width(m) ** 2
    for part, squares in (("attention", 4), ("feed_forward", 8)):
        [one] = [p for p in m.counts.parts if p.name == part]
        assert sum(int(w.count) for w in one.weights if len(w.shape) > 1) == squares * square
        assert all(len(w.shape) > 1 or w.name.endswith("bias") for w in one.weights)


@claim
def llama_7b_misses_the_vocabulary():
    """Of what 12·L·D² misses in LLaMA 7B, most are the two tables."""
    m = of("llama-7b")
    missing = m.counts.total - 12 * design.n_layers(m.counts) * width(m) ** 2
    assert missing / 2 < m.counts.embedding < missing


# What is in a model


@claim
def feed_forward_is_most_of_the_layers():
    """In each dense model with feed-forward parts these are more than half of the layers; of GPT-2 as a whole they
    are less. Three are of another kind: attention and Mamba side by side, one feed-forward part for many layers, and
    more layers with Mamba than with a feed-forward part."""
    apart = {m.slug for m in every() if m.model_type == "falcon_h1"} | {
        "zamba2-7b",
        "nemotron-nano-9b-v2",
        "nemotron-3-nano-4b",
    }
    dense = [m for m in every() if is_dense(m) and feed_forward_share(m) and m.slug not in apart]
    assert all(feed_forward_share(m, of_layers=True) > 0.5 for m in dense) and len(dense) > 100
    assert feed_forward_share(of("gpt2")) < 0.5
    m = of("gpt2")
    assert values.count(m, "feed_forward") > max(m.counts.embedding, values.count(m, "attention"))
    assert 1.9 < values.count(m, "feed_forward") / values.count(m, "attention") < 2.1
    assert m.counts.embedding > 5 * size("gpt2", "in_layers") / design.n_layers(m.counts)


@claim
def most_have_a_gate():
    """Of the models since LLaMA with dense feed-forward parts, most have three matrices there."""
    since = presets.preset("llama-7b").released
    later = [design.feed_forward_matrices(m.counts) for m in every() if year(m.preset.released) >= year(since)]
    known = [n for n in later if n]
    assert known.count(3) > len(known) / 2 and len(known) > 60


@claim
def norms_are_thin():
    """Norms are less than one part in two hundred of each model, so too thin to see in a bar."""
    for m in every():
        assert by_category(m.counts.parts)[Category.NORMS] < m.counts.total / 200, m.slug


@claim
def llama_8b_has_no_bias_and_no_positions():
    """Llama 3 8B has no tensor that is a bias and no table of positions; nor has any Llama."""
    for m in every():
        if m.preset.family == "Llama":
            assert not any(w.name.endswith("bias") for w in m.counts.weights)
            assert not steps_of(m, Role.EMBED_POSITIONS)
    roles = {n.role for n in of("llama3-8b").trace.root.walk()}
    assert Role.RMS_NORM in roles and Role.LAYER_NORM not in roles


@claim
def rotations_have_no_parameter():
    """No rotation by position has a weight, in any model."""
    for m in every():
        assert not any(n.all_weights() for n in steps_of(m, *ROPES, Role.ROPE_TABLE))


@claim
def scores_have_no_weight():
    """Comparing, hiding, softmax and averaging have no weights in Llama 3 70B, nor has the product with the gate; in
    its drawing what has weights is marked.
    """
    m = of("llama3-70b")
    drawn = list(model_diagrams.whole(m, "d_model").top.items())
    assert all(item.depends for item in drawn if item.kind == "weight") and not all(item.depends for item in drawn)
    steps = steps_of(m, Role.SCORES, Role.CAUSAL_MASK, Role.SOFTMAX, Role.WEIGHTED_SUM)
    assert len({n.role for n in steps}) == 4 and not any(n.all_weights() for n in steps)
    [gated] = [
        n
        for n in m.trace.root.walk()
        if n.function is np.multiply and n.parent.role is Role.FEED_FORWARD and all(a.ndim == 2 for a in n.inputs)
    ]
    assert not gated.all_weights()
    assert "d_ff" in gated.outputs[0].shape[-1].symbols
    products = {n.role for n in m.trace.root.walk() if n.role and n.flops.terms and not n.all_weights()}
    assert products == {Role.SCORES, Role.WEIGHTED_SUM}


@claim
def tokens_meet_in_attention():
    """In each model without recurrences, what depends on the context is inside attention, and nothing else is."""
    for m in filter(has_only_attention, every()):
        for node in m.trace.root.walk():
            if node.own_flops is not None and node.own_flops.coefficient("S").terms:
                assert node.is_inside(Role.ATTENTION), m.slug


@claim
def first_is_a_look_up():
    """The first step of every model that reads text is a look-up in its table, and multiplies nothing."""
    for m in (m for m in every() if "n_bands" not in m.trace.symbols):
        first = m.trace.root.children[0]
        assert first.role is Role.EMBED and not first.flops.terms, m.slug


@claim
def tied_tables_count_once():
    """GPT-2's head is its input table and adds nothing; Llama 3 70B's and 8B's are matrices of their own."""
    assert of("gpt2").counts.is_tied
    for slug in ("llama3-8b", "llama3-70b"):
        assert not of(slug).counts.is_tied and size(slug, "lm_head") == size(slug, "vocab_size") * size(slug, "d_model")


@claim
def llama_70b_layers_are_alike():
    """The layers of Llama 3 70B are of one kind: the same shapes; it has fewer key/value heads than heads."""
    [layer] = layers_of(of("llama3-70b"))
    assert len(layer.layers) == design.n_layers(of("llama3-70b").counts)
    assert size("llama3-70b", "n_kv_heads") < size("llama3-70b", "n_heads")
    assert [n.role for n in layer.children if n.role in EVERY_NORM] == [Role.RMS_NORM] * 2
    assert [n.role for n in of("llama3-70b").trace.root.children if n.role in EVERY_NORM] == [Role.RMS_NORM]


@claim
def llama_70b_keys_are_narrower():
    """Of Llama 3 70B's queries, keys and values only the queries are D × D."""
    shapes = {values.short_name(w.name): tuple(map(int, w.shape)) for w in of("llama3-70b").counts.weights}
    square = (width(of("llama3-70b")),) * 2
    assert [name for name in ("q_proj", "k_proj", "v_proj") if shapes[name] == square] == ["q_proj"]
    assert 128_000 < size("llama3-70b", "vocab_size") < 128 * 1024


@claim
def claude_is_undisclosed():
    """Claude 3 Opus has no sizes here, and GPT-3's width is the number that is said of it."""
    assert presets.preset("claude-3-opus").config is None and presets.preset("gpt-4").config is None
    assert width(of("gpt3-175b")) == 12288


@claim
def headlines_that_count_more() -> None:
    """Qwen3.5's 397B is its text and vision parts together, GLM-4.5's 355B all but the tables with the MTP layer; the
    total of the text model gives neither."""
    for slug, expected in (
        ("qwen3.5-397b-a17b", "the total with the vision part, rounded: "),
        ("glm-4.5", "non-embedding with the MTP module, rounded or truncated: "),
    ):
        assert headlines.headline(of(slug), presets.preset(slug).headline).startswith(expected)


@claim
def gpt2_file_holds_masks():
    """GPT-2's file holds a mask of n_positions² in each layer besides, and no count of the model rounds to 117M."""
    m = of("gpt2")
    file = m.published_file
    assert sum(e.count for e in file.extra) == design.n_layers(m.counts) * size("gpt2", "n_positions") ** 2
    assert file.parameters > max(m.counts.total, 117 * 10**6)
    counts = {values.number(m, name) for name in ("total", "active", "non_embedding", "in_layers", "stored")}
    assert not any(abs(n - 117 * 10**6) < 10**6 for n in counts)


@claim
def experts_alone_are_several():
    """In Mixtral only the feed-forward parts exist several times, once an expert."""
    for slug in ("mixtral-8x7b", "mixtral-8x22b"):
        several = {w for w in of(slug).counts.weights if w.routed is not None}
        parts = {w for p in of(slug).counts.parts if p.category is Category.FEED_FORWARD for w in p.weights}
        assert several < parts and {values.short_name(w.name) for w in parts - several} == {"gate"}
        assert {int(w.routed[0]) for w in several} == {8}


@claim
def deepseek_v3_layers():
    """DeepSeek-V3: its first layers are dense, the others have experts and one shared; attention has the same shapes
    in all."""
    m = of("deepseek-v3")
    dense, moe = layers_of(m)
    assert dense.layers == tuple(range(len(dense.layers))) and not any(w.routed for w in dense.all_weights())
    assert any(w.routed for w in moe.all_weights()) and len(dense.layers + moe.layers) == design.n_layers(m.counts)
    first, second = (
        {
            (values.short_name(w.name), tuple(map(int, w.shape)))
            for n in layer.walk()
            if n.role is Role.ATTENTION
            for w in n.all_weights()
        }
        for layer in (dense, moe)
    )
    assert first == second
    sizes = m.counts.values()
    shared = {
        values.short_name(w.name): int(w.count) // int(w.layer_count) for w in m.counts.weights if "shared" in w.name
    }
    assert set(shared.values()) == {sizes["d_model"] * sizes["d_ff_expert"]}, "one shared expert"
    assert sizes["d_ff_expert"] < sizes["d_ff"] / 5
    assert sizes["d_model"] // sizes["n_heads"] not in {int(d) for w in m.counts.weights for d in w.shape}


# FLOPs


@claim
def elementwise_is_little():
    """While a text is read, numbers made outside of contractions are at most a tenth of the FLOPs in them: one
    number, one FLOP."""
    for m in every():
        at = m.counts.values(T=2048, S=2048)
        made = sum(
            Fraction(int(np.prod([d.expr.at(at) for d in n.outputs[0].shape], dtype=object))) * int(top.layer_count)
            for top in m.trace.root.children
            for n in top.walk()
            if not n.children and n.own_flops is None and n.outputs
        )
        assert made < m.counts.prefill_flops(2048) / 10, m.slug


@claim
def llama_8b_scores_at_length():
    """In Llama 3 8B the scores of one token that sees 131,072 cost more than all weights."""
    m = of("llama3-8b")
    of_weights = 2 * (m.counts.total - size("llama3-8b", "vocab_size") * width(m))
    assert m.counts.decode_flops(131072) - of_weights > of_weights


@claim
def windows_and_chunks_hold_the_newest_row():
    """After S tokens a layer with a window W holds min(S, W) rows, one with chunks min(S, C); one that sees everything
    S: a row more than transformers' dynamic cache where the window or chunk is full, as its real caches show."""
    theirs = comparison()
    assert "W − 1 rows" in theirs.conventions["newest row"]
    assert {"mistral", "gemma3_text", "llama4_text"} <= {
        t for t, c in theirs.types.items() if "newest row" in c.cache_more
    }
    for slug, name in (
        ("mistral-7b-v0.1", "sliding_window"),
        ("gemma3-27b", "sliding_window"),
        ("llama4-scout", "attention_chunk_size"),
    ):
        model, limit = of(slug), size(slug, name)
        capped = [k for k in model.counts.kept if isinstance(getattr(k.mask, "mask", k.mask), (SlidingWindow, Chunked))]
        assert capped
        for context in (limit - 1, limit, limit + 1, 3 * limit):
            at = model.counts.values(S=context)
            assert all(k.elements.at(at) == min(context, limit) * k.elements_per_token.at(at) for k in capped)


@claim
def deepseek_v3_where_flops_go():
    """In DeepSeek-V3 at 4,096 the experts do the largest share of reading a text, causal, and the scores that of one
    token."""
    costs = costs_of(of("deepseek-v3").counts)
    for new, largest in ((4096, "experts"), (1, "scores")):
        shares = Counter()
        for part in costs.compute.flops_by_part(new, 4096):
            shares["scores"] += part.causal_pairs
            shares["experts" if part.node.role is Role.MIXTURE_OF_EXPERTS else part.name] += (
                part.causal - part.causal_pairs
            )
        assert max(shares, key=shares.get) == largest


@claim
def deepseek_paper_counts_causal():
    """What DeepSeek's paper states is met with the causal half and heads written out, and not in full or with latents
    read."""
    stated = [c for c in published_costs.claims() if c.model.startswith("deepseek") and "FLOP" in c.unit]
    assert len(stated) >= 2
    for c in stated:
        costs = costs_of(of(c.model).counts)
        latents_read = 3 * Fraction(costs.compute.causal_flops(c.context, c.context), c.context)
        for figure, is_it in (
            (costs.compute.training_flops_per_token(c.context, causal=True), True),
            (costs.compute.training_flops_per_token(c.context), False),
            (latents_read, False),
        ):
            assert (abs(figure / c.scale - c.stated) <= c.tolerance) == is_it, c.model


@claim
def dense_models_of_deepseeks_table():
    """What DeepSeek's paper states of two dense models is less than the causal count: of Llama 3.1 405B by the
    projections to keys and values, of Qwen2.5-72B by more than any choice of what to count besides the layers.
    """
    stated = {c.model: c for c in published_costs.claims() if "V3, table 2 " in c.source}
    for slug, is_explained in (("llama3.1-405b", True), ("qwen2.5-72b", False)):
        model, claim = of(slug), stated[slug]
        full = costs_of(model.counts).compute.training_flops_per_token(claim.context, causal=True)
        key_value = sum(
            int(w.count) for w in model.counts.weights if w.name.endswith(("k_proj.weight", "v_proj.weight"))
        )
        assert full / claim.scale > claim.stated + claim.tolerance
        assert (abs((full - 6 * key_value) / claim.scale - claim.stated) <= claim.tolerance) == is_explained
        assert (Fraction(6 * model.counts.non_embedding, claim.scale) > claim.stated + claim.tolerance) != is_explained
    assert not [
        w for s in ("deepseek-v2", "deepseek-v3") for w in of(s).counts.weights if w.name.endswith("k_proj.weight")
    ]


@claim
def six_n_counts_and_leaves_out():
    """Held in `test_prose.py`: what 6N counts of tables and head by either N."""
    from test_prose import test_what_six_n_leaves_out_and_counts_too_much as held

    held("llama3-8b")
    assert (
        ratio("total", "deepseek-v3", "deepseek-v3") == 1 < size("deepseek-v3", "total") / size("deepseek-v3", "active")
    )


@claim
def six_n_is_lucky_for_llama_8b():
    """6 × all parameters of Llama 3 8B is what training takes at 4,096 tokens, causal, and at no other power of two."""
    costs, rule = costs_of(of("llama3-8b").counts), 6 * size("llama3-8b", "total")
    off = {n: abs(costs.compute.training_flops_per_token(n, causal=True) / rule - 1) for n in (1024, 2048, 4096, 8192)}
    assert off.pop(4096) < 0.002 < 0.02 < min(off.values())


@claim
def llama_7b_multiplies_nearly_all():
    """All of LLaMA 7B but the input table, one part in fifty, is multiplied once for each token."""
    assert size("llama-7b", "embed") < size("llama-7b", "total") / 50


# The cache


@claim
def cache_formula_without_two():
    """Where each layer keeps keys and values alike and in full, the formula without the factor 2 gives exactly half."""
    alike = [
        r
        for r in claims.results("cache-without-2")
        if {k.holds for k in of(r.entry.slug).counts.kept} == {Holds.KEYS, Holds.VALUES}
        and sum(len(k.layers) for k in of(r.entry.slug).counts.kept) == 2 * design.n_layers(of(r.entry.slug).counts)
        and len({tuple(map(int, k.shape[1:])) for k in of(r.entry.slug).counts.kept}) == 1
        and not any(k.is_shared for k in of(r.entry.slug).counts.kept)
        and not size_counts._contradiction(of(r.entry.slug)).startswith("The source contradicts itself")
    ]
    assert len(alike) > 100 and {r.ratio for r in alike} == {Fraction(1, 2)}


@claim
def constant_bytes_per_token():
    """Bytes per token are the same at every length in the models all of whose layers keep everything, and in no
    other."""
    for m in every():
        is_constant = len({Fraction(m.counts.cache_bytes(s), s) for s in (1000, 3000, 100_000, 1_000_000)}) == 1
        assert is_constant == all(map(keeps_everything, m.counts.kept)), m.slug


@claim
def windows_add_nothing():
    """At long context the cache grows by the rows of layers that see everything, and by no others."""
    for m in every():
        if m.trace.symbols.get("sliding_window", 0) >= (m.longest_context[0] or 2**40):
            continue  # its context does not fill the window
        grown = m.counts.cache_bytes(2**24 + 2**20) - m.counts.cache_bytes(2**24)
        assert grown == 2**20 * m.counts.cache_bytes_per_token(), m.slug
        full = filter(keeps_everything, m.counts.kept)
        assert m.counts.cache_bytes_per_token() == sum(2 * k.elements_per_token.at(m.counts.values()) for k in full)


@claim
def deepseek_keeps_latents():
    """DeepSeek-V3 keeps latents and one rotated key, with no heads in their shapes, and no keys and values."""
    m = of("deepseek-v3")
    assert {k.holds for k in m.counts.kept} == {Holds.LATENT, Holds.ROPE_KEY}
    assert not any("n_heads" in d.symbols for k in m.counts.kept for d in k.row)
    [latent] = {int(k.row[-1]) for k in m.counts.kept if k.holds is Holds.LATENT}
    sizes = m.counts.values()
    assert latent == sizes["kv_lora_rank"]
    assert sizes["d_model"] // sizes["n_heads"] not in {int(d) for k in m.counts.kept for d in k.row}


@claim
def mamba_keeps_states():
    """A Mamba keeps states of fixed size and nothing else."""
    for m in every():
        if m.slug.startswith(("mamba-", "falcon-mamba")):
            assert m.counts.kept and all(k.row is None for k in m.counts.kept)


@claim
def windows_of_mistral_and_gemma():
    """Mistral 7B's first version has a window in every layer, Gemma 2 and 3 in some; the window changes no weight."""
    assert all(isinstance(k.mask, SlidingWindow) for k in of("mistral-7b-v0.1").counts.kept)
    for m in every():
        if m.slug.startswith(("gemma2-", "gemma3-")):
            assert {type(k.mask) for k in m.counts.kept} == {SlidingWindow, Full}, m.slug
            windowed, full = layers_of(m)
            assert shapes_of(windowed) == shapes_of(full)


@claim
def gqa_names():
    """In Llama 2 7B each head has keys and values of its own, in Falcon 7B all share one, in Llama 3 there are fewer
    than heads."""
    assert size("llama2-7b", "n_kv_heads") == size("llama2-7b", "n_heads")
    assert size("falcon-7b", "n_kv_heads") == 1
    assert 1 < size("llama3-8b", "n_kv_heads") < size("llama3-8b", "n_heads")


@claim
def latents_are_not_divided():
    """Split over devices, DeepSeek-V3's cache is as large on each as on one."""
    costs = costs_of(of("deepseek-v3").counts)
    assert costs.devices.split_cache_bytes(8192, 8) == costs.devices.split_cache_bytes(8192, 1)


@claim
def deepseek_v3_is_not_split_over_nine():
    """Neither DeepSeek-V3's heads nor its layers divide by the nine H100 that its bytes in FP8 would need; the next
    split is tensor parallel, with whole experts on each device."""
    given = Conditions(32768, format="fp8")
    needed = -(-sum(costs_of(of("deepseek-v3").counts).memory.inference_bytes(1, given).values()) // (80 * 10**9))
    assert needed == 9 and size("deepseek-v3", "n_heads") % 9 and size("deepseek-v3", "n_layers") % 9
    assert not costs_of(of("deepseek-v3").counts).devices.splits(9)
    least = costs_of(of("deepseek-v3").counts).devices.least_split(given, 80 * 10**9)
    assert least and least.tensor == least.expert == least.devices


# Memory and time


@claim
def one_tokens_arrays_are_small():
    """The arrays of one new token of 16 texts are small beside weights and cache: below a hundredth, in large
    models."""
    for slug in ("llama3-8b", "llama3-70b", "gemma3-27b", "mixtral-8x7b", "deepseek-v3"):
        terms = costs_of(of(slug).counts).memory.inference_bytes(1, Conditions(8192, 16))
        assert terms["activations"] < (terms["weights"] + terms["cache"]) / 100, slug


@claim
def experts_read_by_a_batch():
    """One token of DeepSeek-V3 reads the experts that it chose, and a batch of 512 nearly all of them."""
    m = of("deepseek-v3")
    costs = costs_of(m.counts)
    routed = sum(2 * int(w.count) for w in m.counts.weights if w.routed)
    idle = 2 * (m.counts.total - m.counts.active)
    all_read = costs.traffic.weight_bytes_read(1, 10**6)
    assert abs(all_read - costs.traffic.weight_bytes_read(1, 1) - idle) < 0.02 * routed
    assert all_read - costs.traffic.weight_bytes_read(1, 512) < 0.01 * routed


@claim
def a_step_reads_all_but_the_input_table():
    """One token of Llama 3 8B reads all weights, of the input table one row."""
    m = of("llama3-8b")
    table = size("llama3-8b", "vocab_size") * width(m)
    assert costs_of(m.counts).traffic.weight_bytes_read(1) == 2 * (m.counts.total - table + width(m))


@claim
def no_batch_is_enough_for_llama_8b():
    """Each text of 4,096 brings Llama 3 8B fewer FLOPs for a byte of its cache than any accelerator has time for."""
    m = of("llama3-8b")
    per_byte = m.counts.decode_flops(4096) / costs_of(m.counts).traffic.cache_bytes_read(1, 4096)
    for a in accelerators().values():
        assert (peak := a.peak()) is None or per_byte < peak / a.bytes_per_second
        assert costs_of(m.counts).critical_batch(Conditions(4096, accelerator=a)) is None


@claim
def training_does_not_fit_one_device():
    """Llama 3 8B's states for training, 16 bytes a parameter, are more than 80 GB."""
    assert 16 * size("llama3-8b", "total") > 80 * 10**9


# Checked claims


@claim
def checked_llama():
    """LLaMA 7B's third matrix: d_ff is a little more than 8/3·D, and the norms are what is left beside it and the
    tables."""
    m = of("llama-7b")
    missing = m.counts.total - 12 * design.n_layers(m.counts) * width(m) ** 2 - m.counts.embedding
    more = values.count(m, "feed_forward") - 8 * design.n_layers(m.counts) * width(m) ** 2
    norms = by_category(m.counts.parts)[Category.NORMS]
    assert 0 < more and more + norms == missing


@claim
def checked_gpt2():
    """What the sum of matrices leaves out of GPT-2: positions, rows of the vocabulary, biases and norms."""
    m = of("gpt2")
    said = 50_000 * width(m) + sum(int(w.count) for w in matrices_of(m) if w.layers is not None)
    rows = (size("gpt2", "vocab_size") - 50_000) * width(m)
    vectors = sum(int(w.count) for w in m.counts.weights if len(w.shape) == 1)
    assert said + size("gpt2", "n_positions") * width(m) + rows + vectors == m.counts.total
    assert size("gpt2", "n_heads") * size("gpt2", "d_head") == width(m)


@claim
def checked_llama_70b_table():
    """TransformerLens's 77.85B: keys and values for every head, without tables, head and norms."""
    sizes = of("llama3.1-70b").counts.values()
    said = sizes["n_layers"] * (4 * sizes["d_model"] ** 2 + 3 * sizes["d_model"] * sizes["d_ff"])
    assert round(said / 10**7) == 7785 and sizes["n_kv_heads"] < sizes["n_heads"]


@claim
def exact_as_assumed():
    """Held in `test_prose.py`: which models the formula with a key and value for every head is right for, and why."""
    from test_prose import test_a_formula_that_is_right_by_chance_says_so as held

    held()


@claim
def factor_of_twenty():
    """Some formula of the page is off by a factor of twenty or more for some model."""
    assert any(
        result.ratio > 20 or result.ratio < Fraction(1, 20)
        for key in claims.formulas()
        for result in claims.results(key)
    )


@claim
def table_positions_gpt2():
    """GPT-2's table of positions ends where its text must, and its vocabulary is 256 bytes, merges and one mark."""
    assert of("gpt2").longest_context == (size("gpt2", "n_positions"), True)
    assert size("gpt2", "vocab_size") == 256 + 50_000 + 1
    assert of("llama3-8b").longest_context[1] is False
