"""Recurrences and the models made of them: each against a second derivation that looks at all tokens at once."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reference import close, golden
from reference.configs import all_configs

from macros.catalogue.presets import make, model
from macros.engine.dims import Dim
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache
from macros.engine.ops import (
    Mixed,
    causal_conv,
    decaying_attention,
    gated_delta_rule,
    gated_rms_norm,
    l2_norm,
    scan,
    selective_scan,
    softplus,
    state_update,
    token_shift,
    wkv,
)
from macros.engine.rules import ShapeError
from macros.engine.trace import Trace
from macros.engine.weights import ShapeCache, ShapeWeights

T, C, Z, N, I, J, W = 7, 5, 3, 2, 5, 3, 4
NEW, CONTEXT = 104_729, 1_299_709


@pytest.fixture
def rng():
    return np.random.default_rng(20261122)


class Shapes:
    """A shape-only run of one operation: `array("T", 5)` with T symbolic, and what the operation cost and kept."""

    def __init__(self):
        self.run = Trace()
        new, context = Dim(NEW, "T"), Dim(CONTEXT, "S")
        self.sizes, self.cache, self.w = (
            {"T": new},
            ShapeCache(self.run, context - new, context),
            ShapeWeights(self.run),
        )

    def array(self, *dims):
        return self.run.input(tuple(self.sizes.get(d) or Dim(d, f"s{d}") for d in dims), np.float32)

    def flops(self, **values) -> int:
        return self.run.root.flops.at({f"s{n}": n for n in range(40)} | values)


def in_parts(function, xs, *cuts):
    """The outputs of a function of (past, *part of each of xs), fed part by part through the past."""
    cache, out = Cache(), []
    for parts in zip(*(np.split(x, cuts) for x in xs)):
        out.append(function(cache, *parts))
        cache = cache.after(len(parts[0]))
    return np.concatenate(out)


CUTS = pytest.mark.parametrize("cuts", [(), (1,), (3,), (2, 5), tuple(range(1, T))], ids=str)


# --- scan -------------------------------------------------------------------------------------------------------------


def test_scan_carries_a_state(rng):
    x = rng.normal(size=(T, C))
    last, out = scan(lambda s, row: (s + row, 2 * s), np.zeros(C), (x,))
    assert np.allclose(last, x.sum(axis=0))
    assert np.allclose(out, 2 * (np.cumsum(x, axis=0) - x))


def test_scan_carries_several():
    (a, b), out = scan(lambda s, row: ((s[1], s[0] + row), s[0]), (0, 1), (np.arange(1, 4),))
    assert (a, b) == (3, 4) and list(out) == [0, 1, 1]


def test_a_scan_costs_one_step_times_the_tokens():
    shapes = Shapes()

    def body(s, x):
        s = state_update(s, x, x)
        return s, np.einsum("c,c->", s, x)

    last, out = scan(body, shapes.array(C), (shapes.array("T", C),))
    assert list(map(str, last.shape)) == ["s5"] and list(map(str, out.shape)) == ["T"]
    assert shapes.flops(T=1) == 2 * C + 2 * C
    assert shapes.flops(T=11) == 11 * shapes.flops(T=1)
    [node] = shapes.run.root.children
    assert node.name == "scan" and not node.children


def test_a_state_that_changes_its_shape():
    shapes = Shapes()
    with pytest.raises(ShapeError, match=r"a state of \[input \[s5=5\]\] becomes"):
        scan(lambda s, x: (np.stack([s, s]), s), shapes.array(C), (shapes.array("T", C),))


def test_carry_costs_a_multiply_add_for_each_product():
    shapes = Shapes()
    S = shapes.array(N, I, J)
    state_update(S, shapes.array(N)[:, None, None], shapes.array(N, I)[:, :, None], shapes.array(N, J)[:, None, :])
    assert shapes.flops() == 2 * 2 * N * I * J
    assert np.array_equal(state_update(np.array([3.0]), 2.0, 5.0, 7.0), [41])
    assert np.array_equal(state_update(np.array([3.0]), 2.0, 5.0), [11])


# --- the last few tokens ----------------------------------------------------------------------------------------------


@CUTS
@pytest.mark.parametrize("width", [1, 2, 4, 9])
def test_a_convolution_is_one_for_each_channel(rng, width, cuts):
    x, kernel, bias = (
        rng.normal(size=(T, C)),
        rng.normal(size=(C, 1, width)).astype(np.float32),
        rng.normal(size=C).astype(np.float32),
    )
    w = Arrays({"conv1d.weight": kernel, "conv1d.bias": bias})
    got = in_parts(lambda cache, x: causal_conv(x, w, cache, "conv1d", width, bias=True), [x], *cuts)
    for c in range(C):
        assert np.allclose(got[:, c], np.convolve(x[:, c], kernel[c, 0, ::-1])[:T] + bias[c], atol=1e-6)


def test_a_convolution_on_shapes():
    shapes = Shapes()
    out = causal_conv(shapes.array("T", C), shapes.w, shapes.cache, "conv1d", Dim(W, "d_conv"), bias=False)
    assert list(map(str, out.shape)) == ["T", "s5"]
    assert shapes.flops(T=13, d_conv=W) == 2 * 13 * C * W
    [kept] = shapes.run.kept
    assert list(map(str, kept.shape)) == ["d_conv", "s5"] and kept.row is None and kept.item_bytes == 2


@CUTS
def test_a_shift_by_one_token(rng, cuts):
    x = rng.normal(size=(T, C))
    got = in_parts(lambda cache, x: token_shift(x, cache, "last"), [x], *cuts)
    assert not got[0].any() and np.array_equal(got[1:], x[:-1])


# --- states -----------------------------------------------------------------------------------------------------------


@CUTS
def test_the_selective_scan_is_a_sum_over_earlier_tokens(rng, cuts):
    x, dt, B, C_ = (
        rng.normal(size=(T, C)),
        rng.uniform(0.1, 1, (T, C)),
        rng.normal(size=(T, Z)),
        rng.normal(size=(T, Z)),
    )
    A = -rng.uniform(0.2, 2, (C, Z))
    got = in_parts(lambda cache, x, dt, B, C_: selective_scan(x, dt, A, B, C_, cache), [x, dt, B, C_], *cuts)
    for t in range(T):
        expected = sum(
            (np.exp(dt[s + 1 : t + 1].sum(axis=0)[:, None] * A) * B[s] * C_[t]).sum(axis=1) * dt[s] * x[s]
            for s in range(t + 1)
        )
        assert np.allclose(got[t], expected, atol=1e-5)


@CUTS
def test_decaying_attention_is_attention_with_fading_shares(rng, cuts):
    q, k, v, keep = (
        rng.normal(size=(T, N, I)),
        rng.normal(size=(T, N, I)),
        rng.normal(size=(T, N, J)),
        rng.uniform(0.3, 1, (T, N)),
    )
    got = in_parts(lambda cache, *xs: decaying_attention(*xs, cache), [q, k, v, keep], *cuts)
    faded = np.array(
        [[keep[s + 1 : t + 1].prod(axis=0) if s <= t else np.zeros(N) for s in range(T)] for t in range(T)]
    )
    assert np.allclose(got, np.einsum("tni,sni,tsn,snj->tnj", q, k, faded, v), atol=1e-5)


@CUTS
def test_the_delta_rule_is_a_product_of_matrices(rng, cuts):
    q, k, v = rng.normal(size=(T, N, I)), rng.normal(size=(T, N, I)), rng.normal(size=(T, N, J))
    keep, strength = rng.uniform(0.3, 1, (T, N)), rng.uniform(0.1, 0.9, (T, N))
    got = in_parts(lambda cache, *xs: gated_delta_rule(*xs, cache), [q, k, v, keep, strength], *cuts)
    for n in range(N):
        S = np.zeros((I, J))
        for t in range(T):
            S = keep[t, n] * (np.eye(I) - strength[t, n] * np.outer(k[t, n], k[t, n])) @ S + strength[t, n] * np.outer(
                k[t, n], v[t, n]
            )
            assert np.allclose(got[t, n], q[t, n] @ S, atol=1e-5)


def test_a_memory_of_one_key_says_its_value():
    """Writing a second value under the same key takes the first one out."""
    k = np.zeros((2, 1, I))
    k[:, 0, 2] = 1
    v = np.arange(1.0, 7).reshape(2, 1, J)
    ones = np.ones((2, 1))
    assert np.allclose(gated_delta_rule(k, k, v, ones, ones, Cache()), v)
    assert np.allclose(decaying_attention(k, k, v, ones, Cache())[1], v.sum(axis=0))


@CUTS
@pytest.mark.parametrize("shift", [0.0, -300.0, 300.0])
def test_wkv_is_a_weighted_average(rng, shift, cuts):
    k, v, bonus = (rng.normal(size=size).astype(np.float32) for size in ((T, C), (T, C), C))
    decay = rng.uniform(0.1, 1.5, C).astype(np.float32)
    shifted = k + np.float32(shift)
    k = shifted.astype(np.float64) - shift  # as far as float32 tells shifted keys apart
    got = in_parts(lambda cache, k, v: wkv(k, v, decay, bonus, cache), [shifted, v], *cuts)
    for t in range(T):
        weights = np.array(
            [np.exp(k[s] - (t - 1 - s) * decay) if s < t else np.exp(k[t] + bonus) for s in range(t + 1)]
        )
        assert np.allclose(got[t], (weights * v[: t + 1]).sum(axis=0) / weights.sum(axis=0), atol=2e-4)


@pytest.mark.parametrize(
    "operation, arrays, products, state",
    [
        (
            lambda s, x, dt, B, C_: selective_scan(x, dt, s.array(C, Z), B, C_, s.cache),
            ("TC", "TC", "TZ", "TZ"),
            3 * C * Z,
            [C * Z],
        ),
        (lambda s, *xs: decaying_attention(*xs, s.cache), ("TNI", "TNI", "TNJ", "TN"), 3 * N * I * J, [N * I * J]),
        (lambda s, *xs: gated_delta_rule(*xs, s.cache), ("TNI", "TNI", "TNJ", "TN", "TN"), 4 * N * I * J, [N * I * J]),
        (lambda s, k, v: wkv(k, v, s.array(C), s.array(C), s.cache), ("TC", "TC"), 6 * C, [C, C, C]),
    ],
    ids=["selective_scan", "decaying_attention", "gated_delta_rule", "wkv"],
)
def test_recurrences_on_shapes(operation, arrays, products, state):
    shapes, sizes = Shapes(), {"T": "T", "C": C, "Z": Z, "N": N, "I": I, "J": J}
    out = operation(shapes, *(shapes.array(*(sizes[letter] for letter in letters)) for letters in arrays))
    assert str(out.shape[0]) == "T"
    assert shapes.flops(T=1) == 2 * products
    assert shapes.flops(T=19) == 19 * 2 * products
    assert [k.elements.at({f"s{n}": n for n in range(9)}) for k in shapes.run.kept] == state
    assert {(k.item_bytes, k.row) for k in shapes.run.kept} == {(4, None)}


# --- norms ------------------------------------------------------------------------------------------------------------


def test_gated_rms_norm_by_groups(rng):
    x, z, g = rng.normal(size=(T, 6)), rng.normal(size=(T, 6)), rng.normal(size=6).astype(np.float32)
    got = gated_rms_norm(x, z, Arrays({"norm.weight": g}), "norm", 1e-3, 3)
    gated = x * z / (1 + np.exp(-z))
    for part in (slice(0, 2), slice(2, 4), slice(4, 6)):
        rms = np.sqrt((gated[:, part] ** 2).mean(axis=1, keepdims=True) + 1e-3)
        assert np.allclose(got[:, part], gated[:, part] / rms * g[part])


def test_l2_norm_and_softplus(rng):
    assert np.allclose(np.linalg.norm(l2_norm(rng.normal(size=(T, N, I))), axis=-1), 1, atol=1e-5)
    assert np.allclose(softplus(np.array([-800.0, 0.0, 800.0])), [0, np.log(2), 800])


# --- models -----------------------------------------------------------------------------------------------------------


def test_mamba_by_hand():
    """FLOPs of a token and the memory of Mamba 130M, written down from the paper's figure 3."""
    c = model("mamba-130m").counts
    D, C, Z, R, W, L, V = 768, 1536, 16, 48, 4, 24, 50280
    token = D * 2 * C + C * W + C * (R + 2 * Z) + R * C + 3 * C * Z + C * D
    assert c.decode_flops(4096) == c.decode_flops(1) == 2 * (L * token + V * D)
    assert c.prefill_flops(1000) == 2 * (1000 * L * token + V * D)
    assert c.cache_bytes(1) == c.cache_bytes(131072) == L * (C * W * 2 + C * Z * 4)
    assert c.cache_bytes_per_token() == c.cache_bytes_per_token_uncapped() == 0


def test_the_memory_of_a_hybrid_grows_by_its_attention_layers_only():
    c = model("qwen3-next-80b-a3b").counts
    keys_and_values, convolution, memory = 12 * 2 * 2 * 256 * 2, 36 * 8192 * 4 * 2, 36 * 32 * 128 * 128 * 4
    assert c.cache_bytes(4096) == 4096 * keys_and_values + convolution + memory
    assert c.cache_bytes_per_token() == keys_and_values


@pytest.mark.parametrize(
    "slug, kinds",
    [
        ("jamba-v0.1", {"mamba, dense": 12, "mamba, moe": 16, "attention, dense": 4}),
        ("nemotron-3-nano-30b-a3b", {"mamba": 23, "moe": 23, "attention": 6}),
        ("granite-4.0-h-small", {"mamba, moe": 36, "attention, moe": 4}),
        ("minimax-text-01", {"lightning, moe": 70, "attention, moe": 10}),
        ("qwen3-next-80b-a3b", {"linear, moe": 36, "attention, moe": 12}),
        ("qwen3.5-27b", {"linear": 48, "attention": 16}),
    ],
)
def test_kinds_of_layers(slug, kinds):
    found = model(slug)
    names = [str(kind) for kind in found.config.kinds]
    assert {name: names.count(name) for name in dict.fromkeys(names)} == kinds
    for name, number in kinds.items():
        assert found.trace.symbols[f"n_{name.replace(', ', '_')}_layers"] == number


def test_jambas_layers_in_order():
    assert [str(k) for k in model("jamba-v0.1").config.kinds[:8]] == [
        "mamba, dense",
        "mamba, moe",
        "mamba, dense",
        "mamba, moe",
        "attention, dense",
        "mamba, moe",
        "mamba, dense",
        "mamba, moe",
    ]


def raw(name: str) -> dict:
    return json.loads(str(golden(name).npz["config_json"]))


def test_a_bias_that_the_published_total_leaves_out():
    g = golden("nemotron_h")
    counts = make("test", raw("nemotron_h")).counts
    assert not counts.buffers and not any("correction_bias" in name for name, _ in counts.tensors())
    biased = {name: array * (0 if "correction_bias" in name else 1) for name, array in g.tensors.items()}
    assert np.abs(logits(g.architecture, g.config, Arrays(biased), g.ids)[0] - g.logits).max() > 0.01


def test_the_bound_of_a_step_size_matters():
    g = golden("nemotron_h")
    without = make("test", raw("nemotron_h") | {"time_step_min": 1e-6}).config
    assert np.abs(logits(g.architecture, without, g.weights(), g.ids)[0] - g.logits).max() > 0.01


def test_halving_the_stream_changes_nothing_but_its_size():
    g = golden("rwkv")
    without = make("test", raw("rwkv") | {"rescale_every": 0}).config
    close(logits(g.architecture, without, g.weights(), g.ids)[0], g.logits, 1e-3)


@pytest.mark.parametrize(
    "name, change, same",
    [
        (
            "nemotron_h",
            {"hybrid_override_pattern": None},
            {"layers_block_type": ["mamba", "moe", "attention", "mamba", "mlp", "moe"]},
        ),
        ("nemotron_h", {"num_hidden_layers": None}, {}),
        ("nemotron_h", {"conv_kernel": None, "n_groups": None}, {"mamba_d_conv": 3, "mamba_n_groups": 3}),
        ("minimax", {"layer_types": None}, {"attn_type_list": [0, 0, 1, 0]}),
        ("minimax", {"mlp_alpha_factor": None}, {"layernorm_mlp_alpha": 1.4}),
        (
            "granitemoehybrid",
            {"layer_types": None},
            {"layers_block_type": ["linear_attention", "full_attention"] + ["linear_attention"] * 2},
        ),
        ("granitemoehybrid", {"mamba_d_head": None}, {}),
        ("jamba", {"num_experts": None}, {"num_local_experts": 5}),
        ("falcon_mamba", {"expand": None}, {}),
        ("qwen3_5_text", {"layer_types": None}, {"layer_types": ["linear_attention", "full_attention"] * 2}),
        (
            "qwen3_next_uneven",
            {"partial_rotary_factor": None, "rope_theta": None},
            {"rope_parameters": {"rope_theta": 1000.0, "partial_rotary_factor": 0.5}},
        ),
    ],
)
def test_spellings(name, change, same):
    given = raw(name)
    other = {k: v for k, v in (given | change).items() if v is not None or k not in change} | same
    found = make("test", other)
    assert not found.unknown
    ours, _ = logits(found.architecture, found.config, golden(name).weights(), golden(name).ids)
    close(ours, golden(name).logits)


def test_a_model_inside_a_multimodal_one():
    outer = {
        "model_type": "qwen3_5",
        "vision_config": {"depth": 3},
        "text_config": raw("qwen3_5_text"),
        "tie_word_embeddings": True,
    }
    found = make("test", outer)
    assert found.model_type == "qwen3_5_text"
    assert (
        make("test", {"model_type": "qwen3_5_moe", "text_config": raw("qwen3_5_moe_text")}).counts.total
        == make("test", raw("qwen3_5_moe_text")).counts.total
    )


def test_sizes_that_a_config_leaves_to_others():
    mamba = {
        "model_type": "mamba",
        "vocab_size": 53,
        "hidden_size": 40,
        "num_hidden_layers": 2,
        "state_size": 5,
        "conv_kernel": 4,
    }
    assert make("test", mamba).config.d_inner == 80 and make("test", mamba).config.dt_rank == 3
    assert make("test", mamba | {"time_step_rank": "auto", "expand": 3}).config.d_inner == 120
    assert make("test", mamba | {"expand": 16, "intermediate_size": 60}).config.d_inner == 60


@pytest.mark.parametrize(
    "name, change, message",
    [
        ("falcon_mamba", {"state_size": None}, "state_size is missing"),
        ("falcon_mamba", {"hidden_act": "selu"}, "unknown activation 'selu'"),
        ("nemotron_h", {"hybrid_override_pattern": "ME*M-X"}, "hybrid_override_pattern has 'X'"),
        (
            "nemotron_h",
            {"hybrid_override_pattern": "ME*M"},
            "hybrid_override_pattern has 4 layers, and num_hidden_layers = 6",
        ),
        ("nemotron_h", {"hybrid_override_pattern": None}, "hybrid_override_pattern is missing"),
        ("nemotron_h", {"n_routed_experts": None}, "n_routed_experts is missing"),
        ("nemotron_h", {"n_groups": 4}, "n_groups = 4 does not divide mamba_num_heads = 6"),
        ("nemotron_h", {"mamba_ssm_cache_dtype": "int3"}, "mamba_ssm_cache_dtype = 'int3'"),
        (
            "granitemoehybrid",
            {"mamba_d_head": 5},
            "mamba_n_heads × mamba_d_head = 40, and mamba_expand × hidden_size = 48",
        ),
        ("granitemoehybrid", {"layer_types": ["mamba"] * 3}, "layer_types has 3 entries, and num_hidden_layers = 4"),
        (
            "granitemoehybrid",
            {"layer_types": ["mamba", "mambo", "mamba", "mamba"]},
            "layer_types has 'mambo'; did you mean \"mamba\"",
        ),
        ("granitemoehybrid", {"position_embedding_type": "alibi"}, "position_embedding_type = 'alibi'"),
        ("minimax", {"layer_types": None, "attn_type_list": [0, 2, 1, 0]}, "attn_type_list"),
        ("minimax", {"layer_types": None, "attn_type_list": [[0], 1, 1, 0]}, "expected a list of 0 (lightning)"),
        ("minimax", {"shared_intermediate_size": 7}, "shared_intermediate_size = 7"),
        ("jamba", {"num_experts_per_tok": 9}, "num_experts_per_tok = 9 exceeds num_experts = 5"),
        (
            "qwen3_5_text",
            {"linear_num_key_heads": 4},
            "linear_num_key_heads = 4 does not divide linear_num_value_heads = 6",
        ),
        ("qwen3_5_text", {"attn_output_gate": False}, "attn_output_gate = False"),
    ],
)
def test_configs_that_cannot_be(name, change, message):
    with pytest.raises(Problem) as problem:
        make("test", {k: v for k, v in (raw(name) | change).items() if v is not None}).counts
    assert message in str(problem.value) and "\n" not in str(problem.value)


def test_layers_after_the_last_whole_group_are_said():
    """vLLM and the makers' class of Ling 2.5 give them another kind of attention."""
    raw = all_configs()["bailing_moe_v2_5"]
    [said] = make("x", raw).read_otherwise
    assert said.startswith("layer_group_size = 3: ") and "whole group" in said
    assert not make("x", raw | {"layer_group_size": 2}).read_otherwise


def test_labels():
    assert str(Mixed("mamba")) == "mamba" and str(Mixed("linear", "moe")) == "linear, moe"
