"""Costs: each held against a second derivation, against what papers state, and against what must hold for any model."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from html import unescape
from math import ceil
from random import Random

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st

from macros.__main__ import main
from macros.api import fits
from macros.catalogue import presets
from macros.catalogue import published_costs as claims
from macros.counting import accelerators
from macros.counting.conditions import Conditions
from macros.counting.costs import COMPUTE, MEMORY, Bound, Costs
from macros.counting.figures import ALIASES, FIGURES
from macros.counting.formats import CACHE_BYTES, FORMATS
from macros.counting.parts import Category, by_category
from macros.counting.room import last_with_room
from macros.engine.errors import Problem
from macros.engine.ops import Chunked, Full, NoPE, SlidingWindow
from macros.engine.steps import OF_SOURCE, Role
from macros.views.costs import (
    bytes_moved,
    flops,
    kv_cache,
    kv_cache_chart,
    memory,
    overview,
    published_costs,
    time_bounds,
    training,
)
from macros.views.kit import disclosure, rounding, values


def of(slug: str) -> Costs:
    return Costs(presets.model(slug).counts)


def made(**config) -> Costs:
    return Costs(presets.make("made", config).counts)


def sizes(slug: str) -> dict:
    return presets.model(slug).raw


EVERY = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
GIGA, TERA = 10**9, 10**12


# --- independent closed forms -----------------------------------------------------------------------------------------


def llama_flops(c: dict, T: int, S: int, pairs: int | None = None) -> int:
    """A Llama by hand: 2 for each weight but the input table, 4·N·H for each pair, the head for the last token."""
    D, L, F, N, K, V = (
        c[k]
        for k in (
            "hidden_size",
            "num_hidden_layers",
            "intermediate_size",
            "num_attention_heads",
            "num_key_value_heads",
            "vocab_size",
        )
    )
    H = D // N
    return (
        L * (2 * T * (2 * D * N * H + 2 * D * K * H + 3 * D * F) + 4 * N * H * (T * S if pairs is None else pairs))
        + 2 * D * V
    )


@pytest.mark.parametrize("T, S", [(1, 1), (1, 4099), (127, 127), (31, 1009)])
@pytest.mark.parametrize("slug", ["llama3-8b", "llama3.1-405b"])
def test_llama_flops_by_hand(slug, T, S):
    c, costs = sizes(slug), of(slug)
    assert costs.counts.flops_at(T, S) == llama_flops(c, T, S)
    pairs = sum(range(S - T + 1, S + 1))
    assert costs.compute.causal_flops(T, S) == costs.compute.least_flops(T, S) == llama_flops(c, T, S, pairs)
    assert costs.compute.pair_flops(T, S)[0] == llama_flops(c, T, S) - llama_flops(c, T, S, 0)


def test_gpt2_flops_by_hand():
    L, D, V, T = 12, 768, 50257, 1024
    assert of("gpt2").counts.prefill_flops(T) == L * (2 * T * 12 * D * D + 4 * T * T * D) + 2 * D * V
    assert of("gpt2").compute.causal_flops(T, T) == L * (2 * T * 12 * D * D + 2 * T * (T + 1) * D) + 2 * D * V


@pytest.mark.parametrize("T", [1000, 4096, 4097, 9001])
def test_window_by_hand(T):
    """Mistral 7B v0.1: in full a step multiplies W−1 earlier rows at most, the mask lets min(i, W) through."""
    c, W = sizes("mistral-7b-v0.1"), 4096
    assert of("mistral-7b-v0.1").compute.causal_flops(T, T) == llama_flops(
        c, T, T, sum(min(i, W) for i in range(1, T + 1))
    )
    assert of("mistral-7b-v0.1").counts.decode_flops(T) == llama_flops(c, 1, min(T, W))
    assert of("mistral-7b-v0.1").counts.cache_bytes(T) == 32 * 2 * min(T, W) * 8 * 128 * 2
    assert of("mistral-7b-v0.1").traffic.cache_bytes_read(1, T) == 32 * 2 * min(T - 1, W - 1) * 8 * 128 * 2


def latent_flops(c: dict, T: int, S: int, pairs: int, expanded: bool) -> int:
    """DeepSeek-V3 by hand, with the heads' matrices applied to the queries, or with keys and values written out."""
    D, L, V, N = c["hidden_size"], c["num_hidden_layers"], c["vocab_size"], c["num_attention_heads"]
    Q, R, Hn, Hr, Hv = (
        c[k] for k in ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    )
    dense = c["first_k_dense_replace"]
    E, k, F, shared = c["n_routed_experts"], c["num_experts_per_tok"], c["moe_intermediate_size"], c["n_shared_experts"]
    attention = T * (D * Q + Q * N * (Hn + Hr) + D * (R + Hr) + N * Hv * D)
    attention += (
        S * N * R * (Hn + Hv) + pairs * N * (Hn + Hr + Hv)
        if expanded
        else T * N * R * (Hn + Hv) + pairs * N * (R + Hr + R)
    )
    experts = T * (D * E + 3 * D * F * (k + shared) + k * D)  # the last: adding up what the experts say
    return 2 * (L * attention + dense * T * 3 * D * c["intermediate_size"] + (L - dense) * experts + D * V)


@pytest.mark.parametrize("T, S", [(1, 1), (1, 4099), (127, 127), (31, 1009)])
def test_latent_attention_by_hand(T, S):
    c, costs, causal = sizes("deepseek-v3"), of("deepseek-v3"), sum(range(S - T + 1, S + 1))
    assert costs.counts.flops_at(T, S) == latent_flops(c, T, S, T * S, False)
    assert costs.compute.causal_flops(T, S) == latent_flops(c, T, S, causal, False)
    assert costs.compute.expanded_flops(T, S) == latent_flops(c, T, S, T * S, True)
    assert costs.compute.expanded_flops(T, S, causal=True) == latent_flops(c, T, S, causal, True)
    assert costs.compute.least_flops(T, S) == min(latent_flops(c, T, S, causal, e) for e in (False, True))


def test_latent_cache_by_hand():
    costs = of("deepseek-v3")
    assert costs.counts.cache_bytes(1000) == 61 * 1000 * (512 + 64) * 2
    assert costs.cache.expanded_cache_bytes(1000) == 61 * 1000 * 128 * (128 + 64 + 128) * 2
    assert costs.cache.has_latents and not of("llama3-8b").cache.has_latents
    assert of("llama3-8b").cache.expanded_cache_bytes(1000) == of("llama3-8b").counts.cache_bytes(1000)


def test_indexer_by_hand():
    """DeepSeek-V3.2: keys of 128 numbers a layer on top; attention sees 2,048 tokens at most, the indexer all."""
    costs, S, top = of("deepseek-v3.2"), 9001, 2048
    assert costs.cache.index_bytes(S) == 61 * S * 128 * 2
    assert costs.counts.cache_bytes(S) == 61 * S * (512 + 64 + 128) * 2
    assert costs.cache.expanded_cache_bytes(S) == of("deepseek-v3").cache.expanded_cache_bytes(S) + 61 * S * 128 * 2
    assert costs.traffic.cache_bytes_read(1, S) == 61 * 2 * (top * (512 + 64) + (S - 1) * 128)
    pairs = sum(p.causal_pairs for p in costs.compute.flops_by_part(S, S))
    picked, seen = sum(min(i, top) for i in range(1, S + 1)), S * (S + 1) // 2
    assert pairs == 61 * 2 * (picked * 128 * (512 + 64 + 512) + seen * 64 * (128 + 1))


def test_fixed_state_by_hand():
    """Mamba: a state of 16 numbers a channel at 4 bytes and the convolution's last 4 tokens at 2; nothing grows."""
    counts = of("mamba-130m").counts
    assert counts.cache_bytes(1) == counts.cache_bytes(10**6) == 24 * 1536 * (16 * 4 + 4 * 2)
    assert (
        of("mamba-130m").traffic.cache_bytes_read(1, 77)
        == of("mamba-130m").traffic.cache_bytes_written(1, 77)
        == counts.cache_bytes(77)
    )


CHUNKED = ("llama4-scout", "llama4-maverick")


def test_chunks_by_hand():
    """What must be held is min(S, C) and never falls; what a step reads begins again with each chunk."""
    costs, row = of("llama4-scout"), 2 * 8 * 128 * 2
    assert costs.counts.cache_bytes(8191 + 8192) == row * (12 * 16383 + 36 * 8192)
    assert costs.counts.cache_bytes(8191) == row * 48 * 8191
    assert costs.counts.cache_bytes(131072) == 7_650_410_496
    read = [costs.traffic.cache_bytes_read(1, S) // row for S in (8191, 8192, 8193, 8194)]
    assert read == [48 * 8190, 48 * 8191, 12 * 8192, 12 * 8193 + 36]
    assert all(
        of(s).counts.cache_bytes(S) <= of(s).counts.cache_bytes(S + 1) for s in CHUNKED for S in (8191, 8192, 9000)
    )


@pytest.mark.parametrize(
    "mask, allowed",
    [
        (Full(), lambda q, k: k <= q),
        (SlidingWindow(5), lambda q, k: q - 5 < k <= q),
        (Chunked(7), lambda q, k: k <= q and k // 7 == q // 7),
        (NoPE(SlidingWindow(3)), lambda q, k: q - 3 < k <= q),
    ],
)
def test_pairs_are_those_of_the_mask(mask, allowed):
    for n in (1, 2, 5, 6, 7, 8, 23):
        assert mask.pairs(n) == sum(allowed(q, k) and bool(mask.allows(q, k)) for q in range(n) for k in range(n))


def test_training_flops_by_hand():
    """Three times the forward pass with a head for every token, a token's share of it."""
    c, S = sizes("llama3-8b"), 1009
    head = 2 * c["hidden_size"] * c["vocab_size"]
    assert of("llama3-8b").compute.training_flops_per_token(S) == Fraction(
        3 * (llama_flops(c, S, S) + (S - 1) * head), S
    )
    assert of("llama3-8b").compute.training_flops_per_token(S, causal=True) == Fraction(
        3 * (llama_flops(c, S, S, S * (S + 1) // 2) + (S - 1) * head), S
    )


@pytest.mark.parametrize("S, B", [(127, 1), (1024, 3)])
def test_activations_of_gpt2_by_hand(S, B):
    """arXiv 2205.05198, section 4.1, without dropout: 34 − 2 and 5 − 3; then the last norm and the head."""
    L, D, N, V = 12, 768, 12, 50257
    ends = 2 * S * D + 2 * S * D + 4 * S * V
    assert of("gpt2").training.activation_bytes(S, B) == B * (L * (32 * S * D + 2 * N * S * S) + ends)
    assert of("gpt2").training.activation_bytes(S, B, pairs=False) == B * (L * 32 * S * D + ends)
    assert of("gpt2").training.activation_bytes(S, B, recompute=True) == B * (
        L * 2 * S * D + 32 * S * D + 2 * N * S * S + ends
    )


def test_activations_of_llama_by_hand():
    """Two norms, the maps' inputs, queries and keys and values, shares, and in the feed-forward part gate, its
    activation and up.
    """
    c, S = sizes("llama3-8b"), 127
    D, L, F, N, K, V = (
        c[k]
        for k in (
            "hidden_size",
            "num_hidden_layers",
            "intermediate_size",
            "num_attention_heads",
            "num_key_value_heads",
            "vocab_size",
        )
    )
    H = D // N
    layer = 2 * (S * (2 * D + D + N * H + 2 * K * H + N * H + D + 4 * F) + N * S * S)
    assert of("llama3-8b").training.activation_bytes(S) == L * layer + 2 * S * D + 2 * S * D + 4 * S * V


def activations(slug: str, tokens: int, layers: int, pairs: int, **config: str) -> int:
    """Bytes of all activations: the layers' numbers (`layers` without pairs of tokens, `pairs` with), then the ends."""
    D, V = (sizes(slug)[config.get(k, k)] for k in ("hidden_size", "vocab_size"))
    return 2 * (layers + pairs) + 2 * tokens * D + 2 * tokens * D + 4 * tokens * V


def test_activations_with_sinks_and_experts_by_hand():
    """gpt-oss: the softmax keeps its shares, not its scores; an expert keeps gate and up in one, and what goes down."""
    c, S = sizes("gpt-oss-20b"), 4099
    D, N, K, H, F = (
        c[k] for k in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size")
    )
    E, k, L = c["num_local_experts"], c["num_experts_per_tok"], c["num_hidden_layers"]
    attention = D + D + N * H + 2 * K * H + N * H  # norm, maps, query, key and value, output map
    experts = D + D + E + 3 * k * F + k * D + k  # norm, router and experts, router's scores, answers, shares
    by_hand = activations("gpt-oss-20b", S, L * S * (attention + experts), L * N * S * S)
    assert of("gpt-oss-20b").training.activation_bytes(S) == by_hand


def test_activations_of_experts_by_hand():
    """Mixtral: gate, its activation, up and their product for each chosen expert; the shares of all experts."""
    c, S = sizes("mixtral-8x7b"), 127
    D, N, K, F = (c[k] for k in ("hidden_size", "num_attention_heads", "num_key_value_heads", "intermediate_size"))
    E, k, L, H = c["num_local_experts"], c["num_experts_per_tok"], c["num_hidden_layers"], D // N
    layer = 2 * D + 2 * N * H + 2 * K * H + 2 * D + E + 4 * k * F + k * D + k
    assert of("mixtral-8x7b").training.activation_bytes(S) == activations(
        "mixtral-8x7b", S, L * S * layer, L * N * S * S
    )


def test_activations_of_latent_attention_by_hand():
    """DeepSeek-V3 as it is trained: a key and a value of each head from the latent; sigmoid scores, a shared expert."""
    c, S = sizes("deepseek-v3"), 127
    D, N, Q, R, nope, rope, V = (
        c[k]
        for k in (
            "hidden_size",
            "num_attention_heads",
            "q_lora_rank",
            "kv_lora_rank",
            "qk_nope_head_dim",
            "qk_rope_head_dim",
            "v_head_dim",
        )
    )
    E, k, F, dense, L = (
        c[name]
        for name in (
            "n_routed_experts",
            "num_experts_per_tok",
            "moe_intermediate_size",
            "first_k_dense_replace",
            "num_hidden_layers",
        )
    )
    queries = D + D + 2 * Q + N * nope + N * rope  # norm, first maps, the compressed query before and after its norm
    keys_and_values = 2 * R + rope + N * nope + N * V + N * V  # the latent likewise; values, and what the heads give
    experts = 2 * D + E + 4 * k * F + k * D + k + 4 * c["n_shared_experts"] * F
    plain = 2 * D + 4 * c["intermediate_size"]
    layers = L * (queries + keys_and_values) + (L - dense) * experts + dense * plain
    assert of("deepseek-v3").training.activation_bytes(S) == activations("deepseek-v3", S, S * layers, L * N * S * S)


def test_activations_of_recurrences_by_hand():
    """Mamba and RWKV: what the scan reads, not its states; of weights only what is computed from them."""
    c, S = sizes("mamba-130m"), 127
    D, Z, L, R = (c[k] for k in ("hidden_size", "state_size", "num_hidden_layers", "time_step_rank"))
    C = 2 * D
    # convolution, activation, scan's x, step size before and after, gate, scan's result, gate's activation, output map
    layer = S * (2 * D + 9 * C + R + 2 * Z) + 2 * C * Z
    assert of("mamba-130m").training.activation_bytes(S) == activations("mamba-130m", S, L * layer, 0)

    c = sizes("rwkv-4-169m")
    D, L = c["hidden_size"], c["num_hidden_layers"]
    F = c.get("intermediate_size") or 4 * D
    mixing = (
        3 * D + 3 * D + 2 * D + 3 * D
    )  # norm, token and the one before; three blends; key, value; gate, average, map
    channels = (
        3 * D + 2 * D + 2 * F + 2 * D
    )  # norm, token and the one before; two blends; before and after; gate, answer
    layer = S * (mixing + channels) + 5 * D + D
    first_norm = S * D
    assert of("rwkv-4-169m").training.activation_bytes(S) == activations("rwkv-4-169m", S, L * layer + first_norm, 0)


def test_training_memory_is_sixteen_bytes_and_the_activations():
    terms = of("llama3-8b").training.training_bytes(127, 2)
    assert sum(terms.values()) == 16 * of("llama3-8b").counts.total + of("llama3-8b").training.activation_bytes(127, 2)
    assert terms["variance"] == 4 * 8_030_261_248
    assert of("llama3-8b").training.training_bytes(127, recompute=True)["activations"] == of(
        "llama3-8b"
    ).training.activation_bytes(127, recompute=True)


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, bits",
    [
        ("float32", 32),
        ("bfloat16", 16),
        ("float16", 16),
        ("fp8", 8 + Fraction(1, 512)),
        ("int8", 8 + Fraction(1, 8)),
        ("int4", 4 + Fraction(1, 8)),
        ("mxfp4", 4 + Fraction(1, 4)),
    ],
)
def test_bits_per_weight(name, bits):
    assert FORMATS[name].bits_per_weight == bits
    assert FORMATS[name].size((256, 1024)) == 256 * 1024 * bits / 8


def test_blocks_that_are_not_full():
    assert FORMATS["mxfp4"].size((3, 33)) == ceil((3 * 33 * 4 + 3 * 2 * 8) / 8)
    assert FORMATS["fp8"].size((129, 128)) == 129 * 128 + 2 * 4
    assert FORMATS["fp8"].size((5, 129, 130), copies=7) == 7 * (5 * 129 * 130 + 5 * 2 * 2 * 4)


def test_norms_and_biases_stay_in_16_bits():
    total, vectors = of("llama3-8b").counts.total, (2 * 32 + 1) * 4096
    assert of("llama3-8b").weight_bytes("bfloat16") == 2 * total
    assert of("llama3-8b").weight_bytes("float32") == 4 * total
    assert of("llama3-8b").weight_bytes("int8") == (total - vectors) * 65 // 64 + 2 * vectors
    biases = sum(
        int(w.count)
        for w in of("gpt-oss-20b").counts.weights
        if w.name.endswith("bias") or "norm" in w.name or "sinks" in w.name
    )
    assert of("gpt-oss-20b").memory.converted_weight_bytes("mxfp4") == 2 * biases + Fraction(
        (of("gpt-oss-20b").counts.total - biases) * 17, 32
    )


# --- what papers state ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", claims.claims(), ids=lambda c: f"{c.model}: {c.what[:40]}")
def test_published_costs(claim):
    agrees = abs(published_costs.compute(claim, claim.cost) - claim.stated) <= claim.tolerance
    assert agrees != bool(claim.differs)  # one that differs no longer is off the list
    if claim.would_be:
        assert claim.differs and abs(published_costs.compute(claim, claim.would_be) - claim.stated) <= claim.tolerance


def test_the_tables_of_a_paper_stand_there_whole():
    """Insights into DeepSeek-V3 (arXiv 2505.09343), tables 1 and 2, figure by figure as printed."""
    stated = {
        number: [
            (c.model, c.value, c.unit, bool(c.differs)) for c in claims.claims() if f"V3, table {number} " in c.source
        ]
        for number in (1, 2)
    }
    assert stated[1] == [
        ("deepseek-v3", "70.272", "kB", False),
        ("qwen2.5-72b", "327.680", "kB", False),
        ("llama3.1-405b", "516.096", "kB", False),
        ("deepseek-v3", "1", "times", False),
        ("qwen2.5-72b", "4.66", "times", False),
        ("llama3.1-405b", "7.28", "times", True),
    ]
    assert stated[2] == [
        ("deepseek-v2", "155", "GFLOP", False),
        ("deepseek-v3", "250", "GFLOP", False),
        ("qwen2.5-72b", "394", "GFLOP", True),
        ("llama3.1-405b", "2448", "GFLOP", False),
    ]
    models = {
        source: [c.model for c in claims.claims() if f"{source} (" in c.source]
        for source in ("Jamba, table 1", "table D.1")
    }
    assert models["Jamba, table 1"] == ["llama2-7b", "mistral-7b-v0.1", "mixtral-8x7b", "jamba-v0.1"]
    assert sorted(models["table D.1"]) == sorted(slug for slug in presets.paths() if slug.startswith("gpt3-"))


def test_deepseek_v2_saves_as_much_cache_as_its_paper_says():
    """93.3% less than DeepSeek 67B (arXiv 2405.04434, abstract), with 6 bits an element after section 3.2.3; 67B has 95
    layers of 8 heads of 128.
    """
    large = 95 * 2 * 8 * 128 * 2
    assert round(100 * (1 - of("deepseek-v2").counts.cache_bytes_per_token() * 6 / 16 / large), 1) == 93.3


# --- bytes moved ------------------------------------------------------------------------------------------------------


def test_weights_read_by_hand():
    total, table = of("llama3-8b").counts.total, 128256 * 4096
    assert of("llama3-8b").traffic.weight_bytes_read(1) == 2 * (total - table + 4096)
    assert of("llama3-8b").traffic.weight_bytes_read(3, batch=5) == 2 * (total - table + 15 * 4096)
    assert of("gpt2").traffic.weight_bytes_read(1) == 2 * (
        124439808 - 1024 * 768 + 768
    )  # the tied table is the head, read in whole


def test_one_token_reads_the_experts_that_it_chose_and_many_read_all():
    costs = of("mixtral-8x7b")
    assert costs.traffic.weight_bytes_read(1) == pytest.approx(
        2 * (costs.counts.active - 32000 * 4096 + 4096), rel=1e-9
    )
    assert costs.traffic.weight_bytes_read(1, batch=4000) == pytest.approx(
        2 * (costs.counts.total - 32000 * 4096 + 4000 * 4096), rel=1e-6
    )
    reads = [costs.traffic.weight_bytes_read(1, batch=b) for b in (1, 2, 4, 8, 1000)]
    assert reads == sorted(reads) and reads[-1] <= costs.weight_bytes()


@pytest.mark.parametrize("slug", EVERY)
def test_intensity_is_compute_for_each_byte_moved(slug):
    costs = of(slug)
    moved = costs.traffic.bytes_moved(1, Conditions(4099, 3))
    assert costs.traffic.intensity(1, Conditions(4099, 3)) == Fraction(3 * costs.compute.least_flops(1, 4099), moved)


def test_what_an_encoder_reads_is_paid_in_the_first_step():
    """T5 small by hand: what is kept of 512 tokens stays as it is; no later step runs the encoder."""
    costs = of("t5-small")
    layers, width, M, F, V = 6, 512, 512, 2048, 32128
    square, feed, pair = 2 * width * width, 4 * width * F, 4 * width
    encoder = layers * M * (4 * square + feed + M * pair)
    memory = layers * 2 * M * square

    def decoder(new: int, context: int) -> int:
        return layers * new * (6 * square + feed + (context + M) * pair) + 2 * V * width

    assert costs.counts.flops_at(9, 9) == encoder + memory + decoder(9, 9)
    assert costs.counts.flops_at(1, 9) == decoder(1, 9) and costs.counts.flops_at(2, 9) == decoder(2, 9)
    assert costs.compute.pair_flops(9, 9)[0] == layers * pair * (M * M + 9 * (9 + M))
    assert costs.compute.causal_flops(9, 9) == encoder + memory + decoder(9, 9) - layers * pair * 9 * 4
    row = 2 * layers * width * 2
    assert costs.counts.cache_bytes(9) == row * (9 + M) and costs.counts.cache_bytes_per_token() == row
    assert (costs.traffic.cache_bytes_read(9, 9), costs.traffic.cache_bytes_written(9, 9)) == (0, row * (9 + M))
    assert (costs.traffic.cache_bytes_read(1, 9), costs.traffic.cache_bytes_written(1, 9)) == (row * (8 + M), row)
    first = layers * (4 * width**2 + 2 * width * F + 2 * width) + width + 32 * 8 + layers * 2 * width**2
    assert costs.traffic.weight_bytes_read(1) == 2 * (costs.counts.total - first)
    assert costs.traffic.bytes_moved(9, Conditions(9)) == 2 * costs.counts.total + row * (9 + M)
    assert costs.memory.largest_operation(9, 9)[1] == 3 * 8 * M * M  # scores, what distances add, and their sum


# --- what holds for every model of the catalogue ----------------------------------------------------------------------


def used_again(costs: Costs) -> int:
    """Weights of blocks that several layers share, for each layer but the first: read once, and multiplied again."""
    uses: dict = {}
    for layer in (n for n in costs.counts.trace.root.children if n.layers is not None):
        for w in {w for w in layer.all_weights() if w.layers != layer.layers}:
            uses[w] = uses.get(w, 0) + int(layer.layer_count)
    own = {w: len(w.layers or ("first",)) for w in uses}
    return sum(int(w.count) * (times - (w.layers is None) * own[w]) // own[w] for w, times in uses.items())


@pytest.mark.parametrize("slug", EVERY)
def test_compute_of_one_token_is_its_active_weights_and_its_pairs(slug):
    """Mixture of experts included: no weight counts that a token does not choose."""
    costs = of(slug)
    tables = sum(
        int(w.count)
        for w in costs.counts._touched_by(("embed", "embed_positions", "embed_layers"))
        - costs.counts._touched_by(("unembed",))
        | set(costs.counts.ngram_tables)
    )
    context = 2 if costs.compute.reads_source else 1  # what an encoder reads, it reads in the first step
    of_first = sum(int(w.count) for w in costs.traffic.of_first_step if w.name.find("embed_positions") < 0)
    rule = 2 * (costs.counts.active - tables - of_first + used_again(costs))
    rest = costs.counts.decode_flops(context) - costs.compute.pair_flops(1, context)[0]
    recurrent = any(k.row is None and k.holds not in OF_SOURCE for k in costs.counts.kept)
    assert abs(rest - rule) <= rule * (0.5 if recurrent else 0.02)


@pytest.mark.parametrize("slug", EVERY)
def test_the_split_over_one_device_is_the_whole_and_over_many_no_less(slug):
    costs = of(slug)
    assert costs.devices.split_weight_bytes(1) == costs.weight_bytes() and costs.devices.split_cache_bytes(
        100, 1
    ) == costs.counts.cache_bytes(100)
    degrees = [n for n in costs.devices.tensors if n <= 64]
    sizes_ = [costs.devices.split_weight_bytes(n) for n in degrees]
    assert sizes_ == sorted(sizes_, reverse=True) and all(
        n * s >= costs.weight_bytes() for n, s in zip(degrees, sizes_)
    )
    # The maps to latents are whole on each device: a small model has much of them. So is the convolutions' width.
    assert sizes_[:2][-1] * degrees[:2][-1] < costs.weight_bytes() * 1.3


def test_a_convolution_over_several_heads_is_cut_by_each():
    """Qwen3-Next over 8 devices: 2 of 16 key heads and 4 of 32 value heads; a copy of one of 2 key/value heads."""
    slug, rows, width = "qwen3-next-80b-a3b", 4, 128  # of a convolution; of each head of linear attention
    attention = 12 * 2 * 1000 * 1 * 256 * 2
    states = 36 * 4 * width * width * 4
    convolutions = 36 * rows * (2 * 2 + 4) * width * 2
    assert of(slug).devices.split_cache_bytes(1000, 8) == attention + states + convolutions


def test_split_by_hand():
    """Llama 3 8B on 16 devices: of 8 key/value heads each has twice an even share; norms are copied."""
    D, L, F, V, kv, norms = 4096, 32, 14336, 128256, 8 * 128, 65 * 4096
    even = 2 * V * D + L * (2 * D * D + 3 * D * F)
    assert of("llama3-8b").devices.split_weight_bytes(16) == 2 * (even // 16 + L * 2 * D * kv // 8 + norms)
    assert of("llama3-8b").devices.split_cache_bytes(1000, 16) == of("llama3-8b").counts.cache_bytes(1000) // 8
    assert of("llama3-8b").devices.split_cache_bytes(1000, 4) == of("llama3-8b").counts.cache_bytes(1000) // 4
    assert of("deepseek-v3").devices.split_cache_bytes(1000, 8) == of("deepseek-v3").counts.cache_bytes(1000)
    assert (
        of("gpt2").devices.split_weight_bytes(12) * 12 < of("gpt2").weight_bytes() * 1.15
    )  # queries, keys and values in one matrix


# --- properties over random configs -----------------------------------------------------------------------------------


@st.composite
def models(draw):
    """A small model of prime sizes: dense, with a window, experts, full and sliding layers, or latents."""
    L, K, G, H = (
        draw(st.sampled_from([2, 3, 5])),
        draw(st.sampled_from([1, 3])),
        draw(st.sampled_from([1, 2])),
        draw(st.sampled_from([6, 10, 14])),
    )
    base = {
        "hidden_size": draw(st.sampled_from([13, 29])),
        "num_hidden_layers": L,
        "num_attention_heads": K * G,
        "num_key_value_heads": K,
        "head_dim": H,
        "intermediate_size": draw(st.sampled_from([17, 31])),
        "vocab_size": draw(st.sampled_from([37, 97])),
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": draw(st.booleans()),
    }
    kind = draw(st.sampled_from(["llama", "window", "moe", "mixed", "latent"]))
    if kind == "llama":
        return made(model_type="llama", **base)
    if kind == "window":
        return made(model_type="mistral", sliding_window=draw(st.sampled_from([3, 11, 23])), **base)
    if kind == "moe":
        return made(
            model_type="mixtral",
            num_local_experts=draw(st.sampled_from([5, 7])),
            num_experts_per_tok=draw(st.sampled_from([1, 3])),
            **base,
        )
    if kind == "mixed":
        types = draw(st.lists(st.sampled_from(["full_attention", "sliding_attention"]), min_size=L, max_size=L))
        return made(
            model_type="gemma3_text",
            sliding_window=draw(st.sampled_from([3, 11])),
            layer_types=types,
            query_pre_attn_scalar=H,
            **base,
        )
    base = {k: v for k, v in base.items() if k not in ("head_dim", "num_key_value_heads")}
    return made(
        model_type="deepseek_v3",
        num_key_value_heads=base["num_attention_heads"],
        q_lora_rank=11,
        kv_lora_rank=draw(st.sampled_from([5, 19])),
        qk_nope_head_dim=7,
        qk_rope_head_dim=4,
        v_head_dim=3,
        n_routed_experts=6,
        num_experts_per_tok=2,
        n_shared_experts=1,
        moe_intermediate_size=23,
        first_k_dense_replace=1,
        n_group=1,
        topk_group=1,
        norm_topk_prob=True,
        scoring_func="sigmoid",
        topk_method="noaux_tc",
        **base,
    )


LENGTHS = st.integers(1, 60)


@examples(60)
@given(models(), LENGTHS, LENGTHS)
def test_parts_add_up_for_any_config(costs, T, more):
    S = T + more
    parts = costs.compute.flops_by_part(T, S)
    assert sum(p.total for p in parts) == costs.counts.flops_at(T, S)
    kinds = {n.kind for n in costs.trace.root.children if n.layers is not None}
    assert sum(sum(p.total for p in parts if p.kind == kind and p.layers) for kind in kinds) + sum(
        p.total for p in parts if p.layers is None
    ) == costs.counts.flops_at(T, S)
    assert costs.compute.causal_flops(T, S) == sum(p.causal for p in parts)


@examples(60)
@given(models(), LENGTHS, LENGTHS)
def test_costs_grow_with_new_tokens_and_with_the_context(costs, T, more):
    S = T + more
    for cost in (
        costs.counts.flops_at,
        costs.compute.causal_flops,
        costs.compute.least_flops,
        costs.compute.expanded_flops,
        lambda new, context: costs.traffic.bytes_moved(new, Conditions(context)),
        costs.traffic.cache_bytes_read,
        costs.traffic.cache_bytes_written,
    ):
        assert cost(T, S) <= cost(T, S + 1), cost.__qualname__
    for cost in (costs.counts.flops_at, costs.compute.causal_flops, costs.traffic.cache_bytes_written):
        assert cost(T, S) <= cost(T + 1, S + 1), cost.__name__
    assert costs.counts.cache_bytes(S) <= costs.counts.cache_bytes(S + 1)
    assert costs.training.activation_bytes(S) < costs.training.activation_bytes(S + 1)
    assert costs.training.activation_bytes(S, pairs=False) <= costs.training.activation_bytes(S)
    assert costs.memory.largest_operation(T, S)[1] <= costs.memory.largest_operation(T, S + 1)[1]


@pytest.mark.exhaustive
@examples(60)
@given(models(), st.integers(2, 60))
def test_decoding_is_a_difference_for_any_config(costs, S):
    head = sum(n.flops.at(costs.counts.values(T=1, S=1)) for n in costs.trace.root.children if n.role is Role.UNEMBED)
    assert (
        costs.compute.causal_flops(S, S) - costs.compute.causal_flops(S - 1, S - 1)
        == costs.compute.causal_flops(1, S) - head
    )
    assert costs.compute.causal_flops(1, S) == costs.counts.decode_flops(S)


@examples(60)
@given(models(), LENGTHS)
def test_a_window_stops_the_cache_of_its_layers(costs, S):
    for kept, size in costs.cache.cache_by_entry(S):
        window = getattr(kept.mask, "size", None)
        row = kept.elements_per_token.at(costs.counts.values()) * 2
        assert size == row * (S if window is None else min(S, int(window)))


@examples(60)
@given(models(), st.integers(1, 40), st.integers(1, 6))
def test_everything_scales_with_the_texts(costs, S, B):
    assert costs.traffic.cache_bytes_read(1, S, B) == B * costs.traffic.cache_bytes_read(1, S)
    assert costs.training.activation_bytes(S, B) == B * costs.training.activation_bytes(S)
    assert costs.traffic.weight_bytes_read(1, B) <= costs.traffic.weight_bytes_read(1, B + 1) <= costs.weight_bytes()
    assert (
        costs.traffic.intensity(1, Conditions(S, B)) <= costs.traffic.intensity(1, Conditions(S, B + 1))
        or costs.counts.active != costs.counts.total
    )


def test_experts_that_are_not_chosen_cost_memory_and_no_compute():
    config = dict(
        model_type="mixtral",
        hidden_size=13,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=10,
        intermediate_size=17,
        vocab_size=37,
        rms_norm_eps=1e-5,
        num_experts_per_tok=2,
    )
    few, many = made(**config, num_local_experts=5), made(**config, num_local_experts=11)
    router = 3 * 6 * 13
    assert many.counts.decode_flops(23) - few.counts.decode_flops(23) == 2 * router
    assert many.weight_bytes() - few.weight_bytes() == 2 * (router + 3 * 6 * 3 * 13 * 17)


# --- accelerators and bounds on time ----------------------------------------------------------------------------------


def test_a_bound_is_the_longer_of_the_two():
    assert Bound((6, 1), (5, 1)).limited_by == COMPUTE and Bound((6, 1), (5, 1)).seconds == 6
    assert Bound((3, 1), (5, 1)).limited_by == MEMORY and Bound((3, 1), (5, 1)).seconds == 5


@pytest.mark.parametrize("name", list(accelerators.accelerators()))
def test_fewer_bits_are_never_slower(name):
    """A format that another type holds exactly is at least as fast as that type: MXFP4 as FP8 as bfloat16."""
    a, costs = accelerators.accelerator(name), of("gpt-oss-120b")
    for wide, narrow in (("bfloat16", "fp8"), ("fp8", "mxfp4"), ("bfloat16", "int8"), ("int8", "int4")):
        slow, fast = (costs.bound(4096, Conditions(4096, 8, format, accelerator=a)) for format in (wide, narrow))
        assert fast.compute_seconds <= slow.compute_seconds and fast.memory_seconds < slow.memory_seconds
    if "fp4" in a.peak_flops:
        assert a.peak(*FORMATS["mxfp4"].types) == a.peak_flops["fp4"] >= (a.peak("fp8") or 0)


def test_a_bound_takes_the_highest_peak_of_a_datasheet():
    """The RTX 4090 adds up in float16 twice as fast as in float32: 330.3 TFLOP/s for float16, 660.6 for FP8."""
    a, costs = accelerators.accelerator("rtx-4090"), of("llama3-8b")
    assert (a.peak(), a.peak("fp8")) == (330_300_000_000_000, 660_600_000_000_000)
    given = {f: Conditions(4096, format=f, accelerator=a) for f in ("float32", "bfloat16", "float16", "fp8")}
    wide = {f: costs.bound(4096, at).compute_seconds for f, at in given.items()}
    assert wide["float32"] == wide["bfloat16"] == wide["float16"] > wide["fp8"]
    assert wide["float16"] == min(Fraction(sum(form), a.peak()) for form in costs.compute.forms(4096, 4096))


def test_every_peak_that_a_bound_takes_is_shown():
    shown = plain(time_bounds.accelerator_table())
    for a in accelerators.accelerators().values():
        for kind, n in a.peak_flops.items():
            unit = "OP" if kind.startswith("int") else "FLOP"
            assert f"{rounding.flops(n).replace('FLOP', unit)}/s" in shown, (a.name, kind)
    assert "float16 330 TFLOP/s" in shown and "9.00 PFLOP/s" in shown


def test_scores_over_a_cache_run_at_its_type():
    """DeepSeek-V3's weights are in FP8, its cache in bfloat16: scores and averages are not faster than bfloat16."""
    costs, h100 = of("deepseek-v3"), accelerators.accelerator("h100")
    for S in (4096, 131_072):
        seconds = costs.bound(S, Conditions(S, format="fp8", accelerator=h100)).compute_seconds
        forms = costs.compute.forms(S, S)
        assert seconds == min(Fraction(maps, h100.peak("fp8")) + Fraction(pairs, h100.peak()) for maps, pairs in forms)
        assert costs.bound(S, Conditions(S, 1, "fp8", "fp8", accelerator=h100)).compute_seconds < seconds
        assert forms[0] == (
            costs.compute.causal_flops(S, S) - sum(p.causal_pairs for p in costs.compute.flops_by_part(S, S)),
            *forms[0][1:],
        )
        assert sum(forms[1]) == costs.compute.expanded_flops(S, S, causal=True) and forms[1][1] < forms[0][1]


def test_the_least_experts_are_those_that_all_tokens_choose():
    """Mixtral at batch 8: two experts at least, 84.1 GB where each text chooses by itself."""
    costs, c = of("mixtral-8x7b"), sizes("mixtral-8x7b")
    expert = 3 * c["hidden_size"] * c["intermediate_size"] * c["num_hidden_layers"] * 2
    least, expected = (costs.traffic.weight_bytes_read(1, 8, least=least) for least in (True, False))
    assert costs.weight_bytes() - least == 6 * expert + 2 * c["hidden_size"] * (c["vocab_size"] - 8)
    assert f"{least / GIGA:.1f} {expected / GIGA:.1f}" == "25.5 84.1"
    assert least == costs.traffic.weight_bytes_read(1, 64, least=True) - 56 * 2 * c["hidden_size"]
    h100 = accelerators.accelerator("h100")
    several, single = (Conditions(4096, batch, accelerator=h100) for batch in (8, 1))
    assert costs.bound(1, several).seconds < costs.bound(1, several, expected=True).seconds
    one, alone = (costs.bound(1, single, expected=e).seconds for e in (False, True))
    assert one == pytest.approx(alone, rel=1e-9)
    assert all(
        w >= l
        for w, l in (
            (costs.traffic.weight_bytes_read(1, b), costs.traffic.weight_bytes_read(1, b, least=True))
            for b in (1, 2, 64)
        )
    )


def test_the_batch_from_which_compute_limits():
    """Weights alone, 2 FLOPs for 2 bytes: the accelerator's FLOPs for each byte. Then by trying every batch."""
    h100 = accelerators.accelerator("h100")
    assert (
        of("llama3-8b").critical_batch(Conditions(None, accelerator=h100))
        == ceil(h100.peak() / h100.bytes_per_second)
        < of("llama3-8b").critical_batch(Conditions(1, accelerator=h100))
    )
    assert of("llama3-8b").critical_batch(Conditions(4096, accelerator=h100)) is None
    for slug, context in (("llama3-8b", 64), ("mixtral-8x7b", 1), ("deepseek-v3", 4096)):
        costs = of(slug)
        batch = costs.critical_batch(Conditions(context, accelerator=h100))
        enough, fewer = (Conditions(context, b, accelerator=h100) for b in (batch, batch - 1))
        assert costs.bound(1, enough, expected=True).limited_by == COMPUTE
        assert costs.bound(1, fewer, expected=True).limited_by == MEMORY
        assert costs.critical_batch(replace(fewer, devices=3)) == batch, "whatever the batch and the devices"


@pytest.mark.parametrize("slug", EVERY)
def test_without_a_cache_there_is_a_batch_that_compute_limits(slug):
    """Weights alone: the accelerator's FLOPs for each byte; of experts as many times as are held for each that is used,
    at most.
    """
    check_the_batch_that_compute_limits(of(slug), presets.model(slug).raw)


def test_the_batch_that_compute_limits_of_weights_in_float32():
    """As many FLOPs for twice the bytes."""
    raw = {**presets.preset("llama3-8b").config, "torch_dtype": "float32"}
    check_the_batch_that_compute_limits(made(**raw), raw)


def check_the_batch_that_compute_limits(costs: Costs, raw: dict):
    h100 = accelerators.accelerator("h100")
    batch, even = costs.critical_batch(Conditions(accelerator=h100)), h100.peak() / h100.bytes_per_second
    if "float32" in (raw.get("dtype"), raw.get("torch_dtype")):
        even *= 2  # FLOPs for 4 bytes
    total = costs.counts.total
    assert (
        0.8 * even * total / (total + used_again(costs))
        < batch
        < 1.2 * even * total / costs.counts.active_excluding_input_embedding
    )
    one = costs.critical_batch(Conditions(2 if costs.compute.reads_source else 1, accelerator=h100))
    assert one is None or batch <= one


def test_reading_is_bound_by_compute_and_writing_by_memory():
    costs, a100 = of("llama3-8b"), accelerators.accelerator("a100-80gb")
    one, four = (Conditions(4096, devices=n, accelerator=a100) for n in (1, 4))
    assert costs.bound(4096, one).limited_by == COMPUTE and costs.bound(1, one).limited_by == MEMORY
    assert costs.bound(1, one).seconds == Fraction(costs.traffic.bytes_moved(1, one), a100.bytes_per_second)
    assert all(costs.bound(new, four).seconds * 4 == costs.bound(new, one).seconds for new in (4096, 1))
    h100 = Conditions(4096, accelerator=accelerators.accelerator("h100"))
    assert costs.bound(4096, replace(h100, format="fp8")).seconds < costs.bound(4096, h100).seconds


MACHINES = list(accelerators.accelerators().values())


def test_every_figure_of_an_accelerator_has_one_source():
    """Each figure is given by one text that was read, of which title, address and day stand there."""
    for a in MACHINES:
        given = [name for names in a.sources.values() for name in names]
        assert sorted(given) == sorted(a.figures), a.name
    used = {key for a in MACHINES for key in a.sources}
    assert used == set(accelerators.sources())
    assert all(source.read <= "2026-12-31" for source in accelerators.sources().values())


def test_the_figures_of_an_accelerator_are_plausible():
    """Fewer bits multiply at least as fast, but where a chip gave INT8 up; a byte takes as long as tens to hundreds of
    FLOPs; what a bus moves is the bandwidth that the vendor prints; a whole memory is read in 2 ms to 3 s, all that a
    server's sockets take in 20 s.
    """
    for a in MACHINES:
        peaks = a.peak_flops
        if peaks.get("fp8"):
            assert peaks["fp8"] >= a.peak(), a.name
        if peaks.get("fp4"):
            assert peaks["fp4"] >= a.peak("fp8") if a.peak("fp8") else True, a.name
        if highest := a.peak():
            assert 2 < highest / a.bytes_per_second < 800, a.name
        assert 0.002 < a.memory_bytes / a.bytes_per_second < (20 if "DDR" in a.name else 3), a.name
        if a.bus:
            assert a.bus.bytes_per_second == pytest.approx(a.bytes_per_second, rel=0.01), a.name
        if a.installed_bytes:
            assert a.memory_bytes < a.installed_bytes, a.name
        if a.link:
            assert a.link.one_way * 2 <= a.link.bytes_per_second < a.bytes_per_second, a.name
    of = accelerators.accelerators()
    assert of["h200"].peak_flops == of["h100"].peak_flops and of["mi325x"].peak_flops == of["mi300x"].peak_flops
    assert all(of[slug].peak_flops == of["a100-40gb"].peak_flops for slug in ("a100-80gb", "a100-80gb-pcie"))


def test_half_the_bits_are_twice_the_rate_where_the_generation_says_so():
    """From Turing to Hopper and in TPU7x 8 bits multiply twice as fast as 16, to the rounding; 4 of Blackwell as 8."""
    of = accelerators.accelerators()
    for slug in ("a100-40gb", "a30", "a10", "a40", "t4", "rtx-3090", "rtx-a6000", "h100", "h20", "tpu-v6e"):
        assert of[slug].peak_flops["int8"] == pytest.approx(2 * of[slug].peak(), rel=0.01), slug
    for slug in ("h100", "h100-nvl", "h200", "b200", "b300", "mi300x", "rtx-4080", "tpu-7x", "rtx-pro-6000"):
        assert of[slug].peak("fp8") == pytest.approx(2 * of[slug].peak(), rel=0.01), slug
    for slug in ("rtx-5090", "rtx-pro-6000", "b200"):
        assert of[slug].peak_flops["fp4"] == pytest.approx(2 * of[slug].peak("fp8"), rel=0.01), slug


# FLOPs of a multiprocessor in one tick of its clock: a GeForce has half as many with accumulation in float32.
AMPERE = {"float16": 1024, "int8": 2048, "int4": 4096}
ADA = {"bfloat16": 512, **AMPERE, "fp8": 2048}
BLACKWELL = {"bfloat16": 512, "float16": 1024, "fp8": 2048, "fp4": 4096}
WORKSTATION = {"bfloat16": 1024, "fp8": 2048, "int8": 2048}


def test_the_peaks_of_one_generation_differ_by_multiprocessors_and_clock():
    """The peaks that NVIDIA prints are multiprocessors × clock × FLOPs, to the rounding; so are the computed ones."""
    names = {"RTX 6000 Ada": WORKSTATION, "RTX 30": AMPERE, "RTX 40": ADA, "RTX 50": BLACKWELL}
    checked = [a for a in MACHINES if a.multiprocessors]
    assert len(checked) == 22 and {"rtx-3090", "rtx-4090", "rtx-5090"} < {*accelerators.accelerators()}
    for a in checked:
        assert a.multiprocessors is not None
        flops = next(flops for name, flops in names.items() if name in a.name)
        computed = {name for source, names in a.sources.items() if source.endswith("-rates") for name in names}
        for kind, peak in a.peak_flops.items():
            exact = a.multiprocessors.count * a.multiprocessors.hertz * flops[kind]
            assert abs(peak - exact) <= (TERA // 20 if kind in computed else exact // 400), (a.name, kind)


def test_a_gpu_takes_a_part_of_memory_that_is_the_processors_too():
    """Metal recommends two thirds up to 32 GB, three quarters above; that is what may hold a model."""
    apple = [a for a in MACHINES if a.vendor == "Apple"]
    assert len(apple) == 20
    for a in apple:
        assert a.installed_bytes is not None
        share = Fraction(2, 3) if a.installed_bytes <= 32 * GIGA else Fraction(3, 4)
        assert a.memory_bytes == int(a.installed_bytes * share), a.name
    assert fits.memory("m4-max").size == 96 * GIGA and "of 128 GB" in plain(time_bounds.accelerator_table())


def test_what_states_no_peak_is_bound_by_memory_alone():
    """The DGX Spark's peak of 16 bits is not printed: the bound is what its memory takes, at any batch."""
    spark, costs = accelerators.accelerator("dgx-spark"), of("llama3-8b")
    given = Conditions(4096, accelerator=spark)
    assert spark.peak() is None and spark.peak("fp4") == 500_000_000_000_000
    for new in (1, 4096):
        bound = costs.bound(new, given)
        assert (
            bound.seconds
            == bound.memory_seconds
            == Fraction(costs.traffic.bytes_moved(new, given), spark.bytes_per_second)
        )
        assert bound.limited_by == MEMORY
    assert costs.critical_batch(given) is None and costs.critical_batch(given.at(None)) is None


MACHINE = "[x]\nname='X'\nvendor='Y'\nbytes_per_second=1\nmemory_bytes=1\n"


@pytest.mark.parametrize(
    "text, said",
    [
        ("[x]\nname = 3", "x.name: expected"),
        ("[x]\nnmae = 'X'", 'x.nmae: unknown key; did you mean "name"?'),
        ("[x", "broken TOML"),
        (MACHINE + "peak_flops={fp7=1}", "x: peak_flops.fp7: expected one of"),
        (MACHINE + "peak_flops={bfloat16=0}", "expected"),
        (MACHINE + "sources={s=[]}", "x.sources.s: unknown source"),
        (
            MACHINE + "sources={s=['link']}\n[sources.s]\ntitle='T'\nurl='https://t'\nread='2026-01-01'",
            "no figure 'link'",
        ),
        ("[sources.s]\ntitle='T'\nurl='http://t'\nread='2026-01-01'", "sources.s.url: expected"),
        ("sources = 3", "sources: expected a table"),
        ("x = 3", "x: expected"),
    ],
)
def test_a_wrong_accelerator_is_one_line(tmp_path, text, said):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(Problem) as problem:
        accelerators.read(tmp_path / "a.toml")
    assert said in str(problem.value) and "\n" not in str(problem.value)


def test_an_unknown_accelerator_names_the_nearest():
    with pytest.raises(Problem, match='did you mean "h100"'):
        accelerators.accelerator("h1000")


# --- what fits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory, format", [(24 * GIGA, "bfloat16"), (80 * GIGA, "int4"), (141 * GIGA, "fp8")])
def test_the_largest_batch_fits_and_one_more_does_not(memory, format):
    costs = of("llama3-8b")
    batch = costs.largest_batch(memory, Conditions(8192, 3, format))
    fits, larger = (Conditions(8192, n, format) for n in (batch, batch + 1))
    assert (
        sum(costs.memory.inference_bytes(1, fits).values())
        <= memory
        < sum(costs.memory.inference_bytes(1, larger).values())
    )
    assert of("llama3-70b").largest_batch(24 * GIGA, Conditions(8192)) == 0


def test_the_largest_operation_of_one_token():
    """Llama 3 8B at 8,192 tokens: scores of 32 heads before and after the mask, and the mask; no cache."""
    node, elements = of("llama3-8b").memory.largest_operation(1, 8192)
    assert node.function is np.where and elements == 2 * 32 * 8192 + 8192
    assert of("llama3-8b").memory.largest_operation(1, 8192, pairs=False)[1] == 4096 + 128256  # the head


# --- views and the command line ---------------------------------------------------------------------------------------


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


CALLS = [
    (flops.flops_table, ("{}",)),
    (training.training_flops, (["{}"],)),
    (bytes_moved.bytes_table, ("{}",)),
    (kv_cache.cache_table, (["{}"],)),
    (kv_cache.cache_layers, ("{}",)),
    (kv_cache.cache_formula, ("{}",)),
    (memory.memory_table, (["{}"],)),
    (memory.inference_table, (["{}"],)),
    (training.training_memory, ("{}",)),
    (memory.split_table, ("{}",)),
    (time_bounds.time_table, ("{}",)),
]


@pytest.mark.parametrize("view, arguments", CALLS)
@pytest.mark.parametrize(
    "slug", ["gpt2", "gemma3-27b", "deepseek-v3.2", "mamba-130m", "llama4-scout", "qwen3-next-80b-a3b"]
)
def test_views_are_one_line_of_balanced_html(view, arguments, slug):
    made_ = view(*[[slug] if isinstance(a, list) else slug for a in arguments])
    assert "\n" not in made_ and "None" not in plain(made_) and not re.search(r"<(?![a-zA-Z/])", made_)
    opened = re.findall(r"<(table|tr|td|th|div|p|tbody|thead|span)\b", made_)
    closed = re.findall(r"</(table|tr|td|th|div|p|tbody|thead|span)>", made_)
    assert sorted(opened) == sorted(closed)


@pytest.mark.parametrize("view, arguments", CALLS)
def test_views_of_an_undisclosed_model_say_so(view, arguments):
    assert "undisclosed" in view(*[["gpt-4"] if isinstance(a, list) else "gpt-4" for a in arguments])


def test_the_chart_has_a_line_a_marker_and_a_name_for_each_model_and_the_numbers_below():
    slugs = ("llama3-8b", "gemma3-27b", "mamba-130m")
    chart = kv_cache_chart.cache_chart(slugs)
    svg = chart[chart.index("<svg") : chart.index("</svg>")]
    for slug in slugs:
        assert presets.preset(slug).name in unescape(svg) and presets.preset(slug).name in plain(
            chart[chart.index("</svg>") :]
        )
    lines = re.findall(r'stroke-width="2"(?: stroke-dasharray="([^"]+)")?/>', svg)
    assert len(set(lines)) == 3 and "<title>" in svg and "<desc>" in svg
    assert "1,048,576" in chart and "137 GB" in plain(chart)
    with pytest.raises(Problem):
        kv_cache_chart.cache_chart(("gpt2",) * 9)


def test_single_costs():
    assert overview.cost("llama3-8b", "cache_bytes", context=8192) == "1,073,741,824"
    assert overview.cost("llama3-8b", "cache_bytes", context=8192, dtype="fp8", unit="MiB") == "512 MiB"
    assert overview.cost("llama3-8b", "2 * cache_bytes / n_layers", context=1) == "8,192"
    assert overview.cost("llama3-8b", "critical_batch", context=4096) == "never"
    assert overview.cost("gpt-4", "weight_bytes") == "undisclosed"
    with pytest.raises(Problem, match="never reached"):
        overview.cost("llama3-8b", "critical_batch / 2", context=4096)
    for wrong in (
        lambda: overview.cost("llama3-8b", "cache_byte"),
        lambda: overview.cost("llama3-8b", "weight_bytes", format="bf8"),
        lambda: overview.cost("llama3-8b", "cache_bytes", context=0),
        lambda: kv_cache.cache_table(["llama3-8b"], dtype="fp4"),
        lambda: memory.fits_table("24"),
        lambda: time_bounds.time_table("llama3-8b", ["h10"]),
        lambda: memory.memory_table(["llama3-8b"], ["int5"]),
    ):
        with pytest.raises(Problem):
            wrong()


def test_fits_table_lists_what_fits():
    found = plain(memory.fits_table(24, context=8192, most=60))
    assert "Llama 3 8B" in found and "Llama 3 70B" not in found and "24.0 GB" in found


def test_fits_table_leaves_out_models_that_cannot_read_so_much():
    known = [s for s in presets.paths() if disclosure.model(s)]
    short = [s for s in known if (end := presets.model(s).longest_context[0]) and end < 8192]
    found = plain(memory.fits_table(24, context=8192, format="int4", most=1000))
    assert "yi-34b" in short and "gpt2" in short and "llama3-8b" not in short and "mamba-1.4b" not in short
    assert len(memory.fits_table(24, context=8192, format="int4", most=1000).split("<tr>")) - 2 == int(
        re.search(r"(\d+) of", found)[1]
    )
    assert not any(f" {presets.preset(s).name} {presets.model(s).counts.total:,} " in found for s in short)
    assert (
        f"of {len(known) - len(short)} models fit" in found
        and f"{len(short)} more are not listed, because their configs allow fewer than 8,192 tokens" in found
    )
    assert "left out" not in plain(
        memory.fits_table(24, context=min(presets.model(s).longest_context[0] for s in short))
    )


# --- contexts beyond a model's own ------------------------------------------------------------------------------------

AT_ONE_CONTEXT = (
    flops.flops_table,
    bytes_moved.bytes_table,
    training.training_memory,
    memory.split_table,
    time_bounds.time_table,
)


@pytest.mark.parametrize("view", AT_ONE_CONTEXT)
def test_a_table_without_a_context_takes_one_that_the_model_reads(view):
    for slug, context in (
        ("gpt3-13b", 2048),
        ("pythia-1b", 2048),
        ("llama3-8b", 8192 if view is memory.split_table else 4096),
        ("mamba-1.4b", 8192 if view is memory.split_table else 4096),
    ):
        found = plain(view(slug))
        assert f"{context:,} tokens" in found and "†" not in found
        assert view(slug, context=context) == view(slug)


@pytest.mark.parametrize("view", AT_ONE_CONTEXT)
def test_a_table_at_a_context_beyond_the_models_says_so(view):
    for slug, where in (("gpt3-13b", "position table"), ("pythia-1b", "config")):
        found = view(slug, context=2049)
        assert (
            '2,049 <span class="ep-mark" title="beyond the context that the config allows">†</span> tokens'
            in found[: found.index("</caption>")]
        )
        assert f"† beyond the 2,048 tokens of the {where}." in found
        assert "†" not in view(slug, context=2048)


@pytest.mark.parametrize("view", [training.training_flops, memory.inference_table])
def test_a_row_at_a_context_beyond_the_models_says_so(view):
    def rows(context: int) -> list[str]:
        return [plain(r).strip() for r in view(["gpt2", "pythia-1b", "llama3-8b"], context=context).split("<tr>")[2:]]

    gpt2, pythia, llama = rows(4096)
    assert (
        gpt2 == "GPT-2 Small reads at most 1,024 tokens" and pythia.startswith("Pythia 1B †") and "†" not in llama[:12]
    )
    assert "† beyond the tokens that the config allows: Pythia 1B 2,048." in llama and "†" not in "".join(rows(1024))


def test_sizes_of_a_cache_beyond_the_models_context_are_marked():
    llama, gpt2 = [
        re.findall(r"<td.*?</td>", r)
        for r in kv_cache.cache_table(["llama2-7b", "gpt2"], [1024, 4096, 4097]).split("<tr>")[2:]
    ]
    assert [("†" in c) for c in llama] == [False, False, False, True] and [plain(c) == " – " for c in gpt2] == [
        False,
        False,
        True,
        True,
    ]
    notes = plain(kv_cache.cache_table(["llama2-7b", "llama3-8b", "gpt2"], [1024, 4097]))
    assert (
        "† beyond the tokens that the config allows: Llama 2 7B 4,096. “–”: beyond the end of the position table."
        in notes
    )
    assert "†" not in kv_cache.cache_table(
        ["llama2-7b", "mamba-1.4b"], [1024, 4096]
    ) and "†" not in kv_cache.cache_table(["mamba-1.4b"], [2**20])
    assert "†" in kv_cache.cache_table(["deepseek-v3"], [2**20]).split("</td>")[3]  # what it would be written out
    assert "A † marks contexts beyond" in kv_cache_chart.cache_chart(["llama2-7b"])


def test_tables_in_other_formats_have_other_names():
    for made_ in (
        lambda f, d: time_bounds.time_table("llama3-8b", ["h100"], format=f, dtype=d),
        lambda f, d: memory.inference_table(["llama3-8b"], format=f, dtype=d),
        lambda f, d: kv_cache.cache_table(["llama3-8b"], dtype=d),
    ):
        several = [made_(f, d) for f, d in (("bfloat16", "bfloat16"), ("int4", "fp8"))]
        for found in (r'aria-label="([^"]+)"', r"<caption>(.*?)</caption>"):
            assert len({re.search(found, m)[1] for m in several}) == 2


def test_the_time_table_counts_weights_alone_where_it_says_no_cache():
    cells = re.findall(r"<td.*?</td>", time_bounds.time_table("mamba-1.4b", ["h100"]))
    assert (
        plain(cells[-2]).strip() == overview.cost("mamba-1.4b", "uncached_critical_batch") == "295"
        and plain(cells[-1]).strip() == "never"
    )
    assert "“Never”" in time_bounds.time_table("mamba-1.4b", ["h100"]) and "“Never”" not in time_bounds.time_table(
        "deepseek-v3", ["h100"]
    )


@pytest.mark.parametrize("slug", ["gpt2", "deepseek-v3.2", "mamba-130m"])
def test_one_list_of_figures_serves_value_cost_and_describe(capsys, slug):
    told, model, at_600 = described(capsys, slug, "--context", "600"), presets.model(slug), Conditions(600)
    other = Conditions(600, 3, "float32", "int8", 4, accelerators.accelerator("h100"))
    for figure in FIGURES.values():
        if "accelerator" not in figure.needs:
            n = figure.of(model.counts, at_600)
            assert values.number(model, figure.name, 600) == n
            assert overview.cost(slug, figure.name, context=600) == values.value(slug, figure.name, context=600)
        if figure.key and (of(slug).cache.has_latents or not figure.of_latents):
            place = told
            for key in figure.key.split("."):
                place = place[key]
            assert (place["600"] if "context" in figure.needs else place) == pytest.approx(float(n), rel=1e-12)
        needed = Conditions(**{name: getattr(other, name) for name in figure.needs})
        assert figure.of(model.counts, other) == figure.of(model.counts, needed), "depends on more than it says"
    assert "parameters" in ALIASES and values.value(slug, "parameters") == values.value(slug, "total")


def test_the_activations_figures_are_those_that_they_say():
    """In full, with attention in blocks, recomputed by layer: three numbers, each that of its convention."""
    counts, at = presets.model("llama3-8b").counts, Conditions(600, 3)
    full, blocked, recomputed = (
        FIGURES[f"{name}activation_bytes"].of(counts, at) for name in ("", "blocked_", "recomputed_")
    )
    costs = Costs(counts)
    assert (
        full
        == costs.training.activation_bytes(600, 3)
        > blocked
        == costs.training.activation_bytes(600, 3, pairs=False)
    )
    assert recomputed == costs.training.activation_bytes(600, 3, recompute=True) < blocked


def test_a_matrix_has_two_axes_that_are_longer_than_one():
    """Of two by six: one. A norm and a bias have one axis; a convolution's axis of one channel does not count."""
    flat = {"hidden_size": 6, "intermediate_size": 2, "num_hidden_layers": 1, "num_attention_heads": 3, "vocab_size": 5}
    weights = made(model_type="qwen2", **flat, num_key_value_heads=1).counts.weights
    assert {w.name.rsplit(".", 2)[-2] for w in weights if not w.is_matrix} == {
        *("input_layernorm", "post_attention_layernorm", "norm"),
        *("q_proj", "k_proj", "v_proj"),
    }
    assert {w.name for w in weights if not w.is_matrix} == {w.name for w in weights if len(w.shape) == 1}
    convolutions = [w for w in of("mamba-130m").counts.weights if "conv1d.weight" in w.name]
    assert convolutions and all(w.is_matrix for w in convolutions)


def test_a_category_holds_its_parts_and_the_norms_are_apart():
    counts = presets.model("llama3-8b").counts
    by = by_category(counts.parts)
    D, L = sizes("llama3-8b")["hidden_size"], sizes("llama3-8b")["num_hidden_layers"]
    assert sum(by.values()) == counts.total and by[Category.NORMS] == (2 * L + 1) * D
    assert by[Category.FEED_FORWARD] == 3 * L * D * sizes("llama3-8b")["intermediate_size"]


def test_a_figure_on_an_accelerator_is_for_cost_alone():
    with pytest.raises(Problem, match="macro cost"):
        values.value("gpt2", "decode_seconds", context=600)
    with pytest.raises(Problem, match="context=4096"):
        values.value("gpt2", "causal_flops")


def described(capsys, *arguments) -> dict:
    assert main(["describe", "--format", "json", "--collapse", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_describe_gives_every_cost_at_any_context(capsys):
    found, costs = (
        described(
            capsys,
            "deepseek-v3.2",
            "--context",
            "5000",
            "--context",
            "70000",
            "--dtype",
            "fp8",
            "--format-weights",
            "fp8",
        ),
        of("deepseek-v3.2"),
    )
    assert found["kv_cache"]["bytes_at"] == {
        "5000": costs.counts.cache_bytes(5000, 1),
        "70000": costs.counts.cache_bytes(70000, 1),
    }
    assert found["kv_cache"]["index_bytes_per_token"] == 61 * 128
    assert found["flops"]["decode_at"]["70000"] == costs.counts.decode_flops(70000)
    bill = found["costs"]
    assert bill["dtype"] == bill["weights_format"] == "fp8"
    assert (
        bill["flops"]["prefill_causal_at"]["5000"]
        == costs.compute.causal_flops(5000, 5000)
        == sum(p["prefill_causal"] for p in bill["flops"]["parts_at"]["5000"])
    )
    assert sum(k["bytes_at"]["5000"] for k in bill["cache"]) == costs.counts.cache_bytes(5000, 1)
    assert bill["expanded_cache_bytes_at"]["5000"] == costs.cache.expanded_cache_bytes(5000, 1)
    assert bill["weight_bytes"] == {name: costs.memory.converted_weight_bytes(name) for name in FORMATS}
    assert bill["published_weights"]["bytes"] == costs.weight_bytes("published") == costs.weight_bytes("fp8")
    assert bill["inference_bytes_at"]["5000"] == costs.memory.inference_bytes(1, Conditions(5000, 1, "fp8", "fp8"))
    assert bill["training_bytes_at"]["5000"]["activations_recomputed"] == costs.training.activation_bytes(
        5000, recompute=True
    )
    assert bill["split_bytes"]["8"]["weights"] == costs.devices.split_weight_bytes(8, "fp8")
    assert bill["decode_moves_at"]["5000"]["cache_read"] == costs.traffic.cache_bytes_read(1, 5000, 1, 1)
    h100 = bill["bounds_at"]["5000"]["h100"]
    assert h100["tokens_per_second"] == pytest.approx(1 / h100["decode_seconds"], rel=1e-4)
    assert h100["decode_joules"] == pytest.approx(700 * h100["devices"] * h100["decode_seconds"], rel=1e-4)
    assert bill["bounds_at"]["5000"]["tpu-v5e"]["decode_joules"] is None
    assert h100["compute_limits_from_batch"] == costs.critical_batch(
        Conditions(5000, 1, "fp8", "fp8", accelerator=accelerators.accelerator("h100"))
    )


def test_describe_without_options_is_as_it_was(capsys):
    found, counts = described(capsys, "llama3-8b"), of("llama3-8b").counts
    assert found["kv_cache"] == {
        "bytes_per_token": 131072,
        "bytes_per_token_uncapped": 131072,
        "index_bytes_per_token": 0,
        "bytes_at": {str(n): counts.cache_bytes(n) for n in (4096, 131072)},
    }
    assert found["flops"] == {
        "decode_at": {str(n): counts.decode_flops(n) for n in (4096, 131072)},
        "prefill": {str(n): counts.prefill_flops(n) for n in (4096, 131072)},
    }
    assert "expanded_cache_bytes_at" not in found["costs"]
    assert found["costs"]["dtype"] == found["costs"]["weights_format"] == "bfloat16"
    assert found["costs"]["inference_bytes_at"]["4096"] == of("llama3-8b").memory.inference_bytes(1, Conditions(4096))


@pytest.mark.parametrize("slug", ["mamba-130m", "deepseek-v3", "gpt-oss-20b", "qwen3-next-80b-a3b"])
def test_describe_as_a_table(capsys, slug):
    assert main(["describe", slug, "--context", "5000", "--dtype", "fp8", "--format-weights", "int4"]) == 0
    out, costs = capsys.readouterr().out, of(slug)
    for figure in (
        costs.counts.cache_bytes(5000, 1),
        costs.weight_bytes("mxfp4"),
        costs.compute.causal_flops(5000, 5000),
        sum(costs.training.training_bytes(5000).values()),
        sum(costs.memory.inference_bytes(1, Conditions(5000, 1, "int4", "fp8")).values()),
        costs.traffic.bytes_moved(1, Conditions(5000, 1, "int4", "fp8")),
    ):
        assert f"{figure:,}" in out
    assert all(a.name in out for a in accelerators.common().values())


@pytest.mark.parametrize(
    "wrong", [["--context", "0"], ["--context", "many"], ["--dtype", "int3"], ["--format-weights", "fp4"]]
)
def test_a_wrong_option_of_describe_is_one_line(capsys, wrong):
    with pytest.raises(SystemExit) as end:
        main(["describe", "gpt2", *wrong])
    assert end.value.code == 2 and capsys.readouterr().err.count("\n") == 1


def test_claims_are_of_models_that_there_are():
    assert len({(c.model, c.what) for c in claims.claims()}) == len(claims.claims())
    assert all(c.model in presets.paths() and c.source for c in claims.claims())
    shown = plain(published_costs.published_costs())
    assert (
        "70.272 kB" in shown
        and "250 GFLOP" in shown
        and "70.272" not in plain(published_costs.published_costs("compute"))
    )
    assert "394 GFLOP444.9 GFLOPdiffers by +12.9%" in shown.replace(" GFLOP ", " GFLOP")
    assert "2,448 GFLOP" in shown and "3.8 × 10²⁵ FLOP" in shown and "3.14 × 10²³ FLOP" in shown


@pytest.mark.parametrize("about", ["cache", "compute", "memory"])
def test_what_is_held_to_more_than_the_rounding_says_so(about):
    found = plain(published_costs.published_costs(about))
    apart = [
        c
        for c in claims.claims()
        if not c.differs
        and abs(published_costs.compute(c, c.cost) - c.stated) > Fraction(1, 2 * 10 ** len(c.value.partition(".")[2]))
    ]
    said = [c for c in apart if f"{c.what} {int(c.stated):,} {c.unit}" in found]
    differing = [c for c in claims.claims() if c.differs and c.differs in found]
    assert (
        len(re.findall(r"differs by [+−]", found)) == len(differing) == {"cache": 1, "compute": 3, "memory": 0}[about]
    )
    assert ("a row that differs is tested to differ" in found) == bool(differing)
    assert re.findall(r"within ([\d.]+)%", found) == [c.within for c in said] and all(c.within for c in apart)
    assert len(said) == (about == "memory") and ("or within what its row says" in found) == bool(said)


def test_names_of_cache_types():
    plain = {name: n for name, n in CACHE_BYTES.items() if isinstance(n, int)}
    assert plain == {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "int8": 1}


@pytest.mark.parametrize("slug", ["bert-base", "modernbert-base"])
@pytest.mark.parametrize("tokens", [7, 512])
def test_in_an_encoder_each_token_is_compared_with_all(slug, tokens):
    """Scores and averages are two products of T × T numbers for each head, whose widths add up to D."""
    costs, n = of(slug), presets.model(slug).trace.symbols
    expected = 2 * 2 * tokens * tokens * n["d_model"] * n["n_layers"]
    assert costs.compute.pair_flops(tokens, tokens)[0] == expected
    assert costs.compute.causal_flops(tokens, tokens) == costs.counts.flops_at(tokens, tokens)  # nothing is hidden


def test_the_longest_context_is_the_last_one_with_room():
    """Also where what is left falls in steps, and where only the first context, at which an encoder reads, has room."""
    random = Random(4)
    for _ in range(300):
        most, full = random.randint(1, 3_000), random.choice((0, 1, random.randint(2, 3_500)))
        step, rate, first = random.randint(1, 40), random.randint(1, 9), random.choice((-1, 0, 1))

        def left(context: int) -> int:
            if context == 1 and full < 2:
                return first
            return (full - context) // step * rate

        expected = [n for n in range(1, most + 1) if left(n) >= 0]
        found = last_with_room(left, most)
        if left(most) >= 0:
            assert found is None
        else:
            assert found == max(expected, default=0)
