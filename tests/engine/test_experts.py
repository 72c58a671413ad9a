"""Mixtures of experts and latent attention: each rule against a second derivation, token by token."""

from __future__ import annotations

import numpy as np
import pytest
from reference.packing import unfuse, unfuse_list

from macros.catalogue.presets import make, model
from macros.engine.architectures import deepseek_v2, deepseek_v32, find
from macros.engine.dims import Dim
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache
from macros.engine.ops import (
    Full,
    causal_mask,
    chosen_softmax_routing,
    combine,
    expert_linear,
    gated_experts,
    group_limited,
    rope_table,
    routing_weights,
    sigmoid_scores,
    silu,
    softmax_routing,
    top_k,
)
from macros.engine.rules import ShapeError
from macros.engine.trace import Trace

T, E, K, D, F = 7, 11, 3, 13, 17


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)


def shapes(*dims):
    """A shape-only array whose sizes have symbols."""
    return Trace().input(tuple(Dim(d, f"s{d}") for d in dims), np.float32)


# --- the linear map of the chosen experts -----------------------------------------------------------------------------


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("per_place", [False, True], ids=["one input", "an input per place"])
def test_expert_linear_is_a_loop_over_tokens(rng, transposed, per_place):
    x = rng.normal(size=(T, K, D) if per_place else (T, D))
    W = rng.normal(size=(E, D, F) if transposed else (E, F, D))
    chosen = np.stack([rng.permutation(E)[:K] for _ in range(T)])
    got = expert_linear(x, W, chosen, transposed=transposed)
    for t in range(T):
        for j in range(K):
            row, matrix = x[t, j] if per_place else x[t], W[chosen[t, j]]
            assert np.allclose(got[t, j], row @ matrix if transposed else matrix @ row)


@pytest.mark.parametrize("transposed", [False, True])
def test_expert_linear_on_shapes(transposed):
    run = Trace()
    x = run.input((Dim(T, "T"), Dim(D, "d_model")), np.float32)
    W = run.input((Dim(E, "E"), *((Dim(D, "d_model"), Dim(F, "d_ff"))[:: 1 if transposed else -1])), np.float32)
    chosen = run.input((Dim(T, "T"), Dim(K, "k")), np.int64)
    out = expert_linear(x, W, chosen, transposed=transposed)
    assert list(map(str, out.shape)) == ["T", "k", "d_ff"]
    assert run.root.flops.at({"T": T, "k": K, "d_model": D, "d_ff": F}) == 2 * T * K * D * F


def test_expert_linear_on_shapes_that_do_not_fit():
    with pytest.raises((ValueError, ShapeError), match="13 ≠ 17"):
        x = shapes(T, D)
        run = x.__tracer__
        expert_linear(x, run.input((E, D, F), np.float32), run.input((T, K), np.int64))


def test_gated_experts_add_up_to_every_experts_output_times_its_share(rng):
    tensors = {
        f"e.{e}.{name}": rng.normal(size=size).astype(np.float32)
        for e in range(E)
        for name, size in (("gate", (F, D)), ("up", (F, D)), ("down", (D, F)))
    }
    x = rng.normal(size=(T, D)).astype(np.float32)
    chosen, shares = softmax_routing(rng.normal(size=(T, E)), K, normalise=True)
    got = combine(
        gated_experts(x, chosen, Arrays(tensors), ("e.{e}.gate", "e.{e}.up", "e.{e}.down"), E, F, silu), shares
    )
    want = np.zeros((T, D))
    for t in range(T):
        for e in range(E):
            gate, up = tensors[f"e.{e}.gate"] @ x[t], tensors[f"e.{e}.up"] @ x[t]
            share = sum(shares[t, j] for j in range(K) if chosen[t, j] == e)
            want[t] += share * (tensors[f"e.{e}.down"] @ (gate / (1 + np.exp(-gate)) * up))
    assert np.allclose(got, want, rtol=1e-4, atol=1e-4)


# --- routing ----------------------------------------------------------------------------------------------------------


def best(scores, k):
    return sorted(range(len(scores)), key=lambda e: -scores[e])[:k]


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_softmax_routing(rng, normalise, scale):
    x = rng.normal(size=(T, E))
    chosen, shares = softmax_routing(x, K, normalise=normalise, scale=scale)
    for t in range(T):
        p = np.exp(x[t]) / np.exp(x[t]).sum()
        assert list(chosen[t]) == best(p, K)
        want = p[chosen[t]] / (p[chosen[t]].sum() if normalise else 1) * scale
        assert np.allclose(shares[t], want)


def test_softmax_of_the_chosen_is_the_normalised_softmax_of_all(rng):
    x = rng.normal(size=(T, E))
    places, shares = chosen_softmax_routing(x, K)
    same_places, same_shares = softmax_routing(x, K, normalise=True)
    assert (places == same_places).all() and np.allclose(shares, same_shares)


def test_the_bias_moves_the_choice_and_not_the_shares(rng):
    fit = sigmoid_scores(rng.normal(size=(T, E)))
    bias = np.zeros(E)
    bias[5] = 2.0
    chosen = top_k(fit + bias, K)
    assert (chosen[:, 0] == 5).all()
    shares = routing_weights(fit, chosen, normalise=True, scale=1.5)
    for t in range(T):
        want = fit[t, chosen[t]]
        assert np.allclose(shares[t], 1.5 * want / want.sum())


@pytest.mark.parametrize("count", [1, 2], ids=["by the best expert", "by the two best"])
def test_choice_within_the_best_groups(rng, count):
    n_groups, kept, size = 5, 2, 3
    x = rng.normal(size=(T, n_groups * size))
    allowed = group_limited(x, n_groups, kept, best=count)
    for t in range(T):
        worth = [sum(sorted(x[t, g * size : (g + 1) * size])[-count:]) for g in range(n_groups)]
        open_groups = best(worth, kept)
        for e in range(n_groups * size):
            assert allowed[t, e] == (x[t, e] if e // size in open_groups else -np.inf)


def test_equal_groups_still_leave_the_number_that_is_asked_for():
    allowed = group_limited(np.ones((1, 12)), 4, 2, best=2)
    assert np.isfinite(allowed).sum() == 6


def test_routing_on_shapes():
    chosen, shares = softmax_routing(shapes(T, 12), Dim(K, "k"), normalise=True, scale=2.0)
    assert [*map(str, chosen.shape), *map(str, shares.shape)] == ["s7", "k", "s7", "k"]
    assert tuple(map(str, group_limited(shapes(T, 12), Dim(4, "groups"), Dim(2, "kept"), best=2).shape)) == (
        "s7",
        "s12",
    )


# --- transformers' packing --------------------------------------------------------------------------------------------


def test_unfuse_cuts_experts_apart(rng):
    packed = rng.normal(size=(E, 2 * F, D))
    out = unfuse(
        find("mixtral"), {"model.layers.4.mlp.experts.gate_up_proj": packed, "model.norm.weight": packed[0, 0]}
    )
    assert len(out) == 2 * E + 1 and (out["model.norm.weight"] == packed[0, 0]).all()
    assert (out["model.layers.4.block_sparse_moe.experts.6.w1.weight"] == packed[6, :F]).all()
    assert (out["model.layers.4.block_sparse_moe.experts.6.w3.weight"] == packed[6, F:]).all()


@pytest.mark.parametrize("shape", [(E, 2 * F + 1, D), (E,), ()])
def test_what_cannot_be_cut_is_refused(shape):
    name = "model.layers.4.mlp.experts.gate_up_proj"
    with pytest.raises(Problem, match=rf"{name} is .* in the file, and holds 2 tensors one below the other"):
        unfuse(find("mixtral"), {name: np.zeros(shape)})


def test_unfuse_list_cuts_the_same():
    rows = [
        ["model.layers.{i}.mlp.experts.gate_up_proj", {"i": [[3, 60, 1]]}, [E, 2 * F, D]],
        ["model.norm.weight", None, [D]],
    ]
    assert unfuse_list(find("deepseek_v3"), rows) == [
        [f"model.layers.{{i}}.mlp.experts.{{e}}.{half}_proj.weight", {"i": [[3, 60, 1]], "e": [[0, E - 1, 1]]}, [F, D]]
        for half in ("gate", "up")
    ] + [["model.norm.weight", None, [D]]]


# --- latent attention -------------------------------------------------------------------------------------------------

LATENT = dict(
    vocab_size=53,
    hidden_size=20,
    num_hidden_layers=3,
    num_attention_heads=3,
    q_lora_rank=14,
    kv_lora_rank=11,
    qk_nope_head_dim=5,
    qk_rope_head_dim=6,
    v_head_dim=7,
    intermediate_size=23,
    moe_intermediate_size=9,
    n_routed_experts=12,
    num_experts_per_tok=4,
    n_shared_experts=2,
    n_group=4,
    topk_group=2,
    first_k_dense_replace=1,
    rms_norm_eps=1e-5,
)
INDEXED = LATENT | dict(model_type="deepseek_v32", index_n_heads=2, index_head_dim=8, index_topk=3)
IDS = [3, 41, 5, 5, 19, 0, 52, 8]


def tensors_of(found, rng):
    """Random arrays for every tensor that the forward pass asks for."""
    return {
        name: rng.normal(size=tuple(map(int, w.shape)), scale=0.4).astype(np.float32)
        for w in found.trace.weights.values()
        for name in w.names()
    }


@pytest.mark.parametrize("pairs", [True, False], ids=["neighbours", "halves"])
def test_attention_over_latents_is_attention_over_the_keys_and_values_made_of_them(rng, pairs):
    c = make("test", LATENT | dict(model_type="deepseek_v3", rope_interleave=pairs)).config
    T, N, H, HR, V, R = 6, 3, 5, 6, 7, 11
    tensors = {
        name: rng.normal(size=size).astype(np.float32)
        for name, size in {
            "q_a_proj.weight": (14, 20),
            "q_a_layernorm.weight": (14,),
            "q_b_proj.weight": (N * (H + HR), 14),
            "kv_a_proj_with_mqa.weight": (R + HR, 20),
            "kv_a_layernorm.weight": (R,),
            "kv_b_proj.weight": (N * (H + V), R),
            "o_proj.weight": (20, N * V),
        }.items()
    }
    x = rng.normal(size=(T, 20)).astype(np.float32)
    got = deepseek_v2.attention(x, Arrays(tensors), Cache(), c, rope_table(np.arange(T), HR, c.rope))

    def norm(v, w):
        return v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-6) * w

    def turned(v, t):
        out, half = np.empty(HR), HR // 2
        for i in range(half):
            a, b = (2 * i, 2 * i + 1) if pairs else (i, i + half)
            angle = t * 10000 ** (-2 * i / HR)
            out[a], out[b] = v[a] * np.cos(angle) - v[b] * np.sin(angle), v[b] * np.cos(angle) + v[a] * np.sin(angle)
        return out

    q = (
        norm(x @ tensors["q_a_proj.weight"].T, tensors["q_a_layernorm.weight"]) @ tensors["q_b_proj.weight"].T
    ).reshape(T, N, H + HR)
    down = x @ tensors["kv_a_proj_with_mqa.weight"].T
    kv = (norm(down[:, :R], tensors["kv_a_layernorm.weight"]) @ tensors["kv_b_proj.weight"].T).reshape(T, N, H + V)
    out = np.zeros((T, N * V))
    for t in range(T):
        for n in range(N):
            fit = np.array(
                [q[t, n, :H] @ kv[s, n, :H] + turned(q[t, n, H:], t) @ turned(down[s, R:], s) for s in range(t + 1)]
            )
            shares = np.exp((fit - fit.max()) / np.sqrt(H + HR))
            out[t, n * V : (n + 1) * V] = shares / shares.sum() @ kv[: t + 1, n, H:]
    assert np.allclose(got, out @ tensors["o_proj.weight"].T, rtol=1e-3, atol=1e-3)


def test_an_indexer_that_picks_everything_changes_nothing(rng):
    sparse, dense = (
        make("test", INDEXED | dict(index_topk=len(IDS))),
        make("test", LATENT | dict(model_type="deepseek_v3")),
    )
    tensors = tensors_of(sparse, rng)
    ours, theirs = (logits(m.architecture, m.config, Arrays(tensors), IDS)[0] for m in (sparse, dense))
    assert np.abs(ours - theirs).max() <= 1e-5 * max(1, np.abs(theirs).max())


def test_an_indexer_that_picks_few_changes_the_answer_and_remembers(rng):
    sparse, dense = make("test", INDEXED), make("test", LATENT | dict(model_type="deepseek_v3"))
    tensors = tensors_of(sparse, rng)
    whole, _ = logits(sparse.architecture, sparse.config, Arrays(tensors), IDS)
    full, _ = logits(dense.architecture, dense.config, Arrays(tensors), IDS)
    seen_by_all = INDEXED["index_topk"]
    assert np.allclose(whole[:seen_by_all], full[:seen_by_all], atol=1e-4) and not np.allclose(
        whole[-1], full[-1], atol=1e-2
    )
    for cut in (1, 4, 7):
        first, cache = logits(sparse.architecture, sparse.config, Arrays(tensors), IDS[:cut])
        second, _ = logits(sparse.architecture, sparse.config, Arrays(tensors), IDS[cut:], cache)
        assert np.abs(np.concatenate([first, second]) - whole).max() <= 1e-5 * max(1, np.abs(whole).max())


@pytest.mark.parametrize("kind", ["deepseek_v32", "glm_moe_dsa"])
def test_picked_tokens(rng, kind):
    c = make("test", INDEXED | dict(model_type=kind)).config
    T, N, H, turning = 29, 2, 8, 6
    tensors = {
        name: rng.normal(size=size).astype(np.float32)
        for name, size in {
            "wq_b.weight": (N * H, 14),
            "wk.weight": (H, 20),
            "k_norm.weight": (H,),
            "k_norm.bias": (H,),
            "weights_proj.weight": (N, 20),
        }.items()
    }
    x, narrow = rng.normal(size=(T, 20)).astype(np.float32), rng.normal(size=(T, 14)).astype(np.float32)
    mask = causal_mask(Cache(), x, x, Full())
    seen = deepseek_v32.indexer(x, narrow, mask, Arrays(tensors), Cache(), c, rope_table(np.arange(T), turning, c.rope))

    def turned(v, t):
        out, half = v.copy(), turning // 2
        for i in range(half):
            a, b = (2 * i, 2 * i + 1) if kind == "glm_moe_dsa" else (i, i + half)
            angle = t * 10000 ** (-2 * i / turning)
            out[a], out[b] = v[a] * np.cos(angle) - v[b] * np.sin(angle), v[b] * np.cos(angle) + v[a] * np.sin(angle)
        return out

    k = x @ tensors["wk.weight"].T
    k = (k - k.mean(-1, keepdims=True)) / np.sqrt(k.var(-1, keepdims=True) + 1e-6) * tensors["k_norm.weight"] + tensors[
        "k_norm.bias"
    ]
    q, weights = (narrow @ tensors["wq_b.weight"].T).reshape(T, N, H), x @ tensors["weights_proj.weight"].T
    for t in range(T):
        fit = [
            sum(weights[t, n] * max(turned(q[t, n], t) @ turned(k[s], s), 0) for n in range(N)) for s in range(t + 1)
        ]
        allowed = min(3, t + 1)
        assert set(seen[t][:allowed]) == set(best(fit, allowed))


def test_layers_that_share_a_choice_have_no_indexer(rng):
    shared = make("test", INDEXED | dict(model_type="glm_moe_dsa", index_topk_pattern="FSF", index_topk=2))
    assert list(map(str, shared.config.kinds)) == ["dense", "moe, shared index", "moe"]
    names = {n for w in shared.trace.weights.values() for n in w.names() if "indexer" in n}
    assert {n.split(".")[2] for n in names} == {"0", "2"}
    tensors = tensors_of(shared, rng)
    whole, _ = logits(shared.architecture, shared.config, Arrays(tensors), IDS)
    first, cache = logits(shared.architecture, shared.config, Arrays(tensors), IDS[:5])
    second, _ = logits(shared.architecture, shared.config, Arrays(tensors), IDS[5:], cache)
    assert np.abs(np.concatenate([first, second]) - whole).max() <= 1e-5 * max(1, np.abs(whole).max())


def test_by_default_every_fourth_layer_indexes_where_the_config_says_so():
    c = make("test", INDEXED | dict(model_type="glm_moe_dsa", num_hidden_layers=9, index_topk_freq=4)).config
    assert [i for i, own in enumerate(c.indexes) if own] == [0, 1, 5]


# --- counts -----------------------------------------------------------------------------------------------------------


def test_an_indexers_keys_are_a_term_of_their_own():
    c = model("deepseek-v3.2").counts
    assert (
        c.cache_bytes_per_token_uncapped()
        == model("deepseek-v3").counts.cache_bytes_per_token_uncapped()
        == 61 * (512 + 64) * 2
    )
    assert c.index_bytes_per_token() == 61 * 128 * 2 and model("deepseek-v3").counts.index_bytes_per_token() == 0
    assert c.cache_bytes_per_token() == 61 * (512 + 64 + 128) * 2
    assert c.cache_bytes(1000) == 1000 * 61 * (512 + 64 + 128) * 2


def test_decoding_costs_twice_the_active_weights_and_attention_over_latents():
    c = model("deepseek-v3").counts
    matrices = sum(int(w.active) for w in c.weights if len(w.shape) == 2 and "embed_tokens" not in w.name)
    context, experts_added_up = 3001, 58 * 8 * 7168
    attention = 61 * 128 * context * (512 + 64 + 512)
    assert c.decode_flops(context) == 2 * (matrices + attention + experts_added_up)


def test_an_indexer_bounds_the_cost_of_attention():
    c = model("deepseek-v3.2").counts
    index = 61 * 64 * (128 + 1)
    assert c.decode_flops(50_001) - c.decode_flops(50_000) == 2 * index
    assert c.decode_flops(2001) - c.decode_flops(2000) == 2 * (index + 61 * 128 * (512 + 64 + 512))


def test_a_token_touches_its_share_of_the_stack():
    c = model("gpt-oss-120b").counts
    [stack] = [w for w in c.weights if w.name.endswith("experts.gate_up_proj") and 0 in w.layers]
    assert int(stack.active) * 32 == int(stack.count) and list(map(int, stack.shape)) == [128, 2880, 5760]


# --- configs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["n_routed_experts", "num_experts", "num_local_experts"])
@pytest.mark.parametrize("kind", ["deepseek_v3", "glm_moe_dsa"])
def test_spellings_of_the_number_of_experts(kind, key):
    raw = {**INDEXED, "model_type": kind, key: INDEXED["n_routed_experts"]}
    if key != "n_routed_experts":
        del raw["n_routed_experts"]
    assert make("test", raw).config.n_experts == 12


@pytest.mark.parametrize(
    "change, message",
    [
        ({"num_experts_per_tok": 13}, "num_experts_per_tok = 13 exceeds n_routed_experts = 12"),
        ({"num_experts_per_tok": 7}, "num_experts_per_tok = 7 exceeds the 6 experts of topk_group = 2 groups"),
        ({"n_group": 5}, "n_group = 5 does not divide n_routed_experts = 12"),
        ({"topk_group": 6}, "topk_group = 6 exceeds n_group = 4"),
        ({"qk_rope_head_dim": 10}, "qk_rope_head_dim = 10 exceeds index_head_dim = 8"),
        ({"qk_rope_head_dim": 5}, "even"),
        ({"mlp_layer_types": ["dense", "sparse"]}, "mlp_layer_types has 2 entries"),
        (
            {
                "rope_scaling": {
                    "type": "yarn",
                    "factor": 4,
                    "original_max_position_embeddings": 32,
                    "mscale_all_dim": "1",
                }
            },
            "mscale_all_dim = '1'",
        ),
        ({"scoring_func": "softmax"}, "scoring_func = 'softmax'"),
        ({"kv_lora_rank": None}, "kv_lora_rank is missing"),
        ({"indexer_types": ["shared", "full", "full"]}, "full for the first"),
    ],
)
def test_configs_that_cannot_be(change, message):
    with pytest.raises(Problem, match=message):
        make("test", INDEXED | {"model_type": "glm_moe_dsa"} | change).counts


def test_a_window_needs_its_size():
    with pytest.raises(Problem, match="sliding_window is missing"):
        kinds("qwen3_moe", num_experts=12, use_sliding_window=True, sliding_window=None)


def test_a_window_that_is_off_cannot_be_a_layer_s():
    with pytest.raises(Problem, match="use_sliding_window is off") as raised:
        kinds("qwen2", use_sliding_window=False, sliding_window=8, layer_types=["sliding_attention"] * 6)
    assert str(raised.value).endswith(
        "use_sliding_window is off, and layer_types has sliding_attention; set it to true, or name full_attention only"
    )


def kinds(model_type, **more):
    raw = dict(
        vocab_size=53,
        hidden_size=24,
        num_hidden_layers=8,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=9,
        num_experts_per_tok=2,
        moe_intermediate_size=5,
    )
    config = make("test", raw | {"model_type": model_type} | more).config
    return list(map(str, config.kinds if hasattr(config, "kinds") else config.masks))


def test_layer_kinds_in_order():
    qwen = dict(num_experts=6, shared_expert_intermediate_size=7)
    assert (
        kinds("qwen2_moe", **qwen, decoder_sparse_step=3, mlp_only_layers=[5])
        == ["dense"] * 2 + ["moe"] + ["dense"] * 5
    )
    assert kinds("qwen2_moe", **qwen, use_sliding_window=True, sliding_window=3, max_window_layers=3)[:4] == [
        "sliding, moe",
        "moe",
        "sliding, moe",
        "moe",
    ]
    assert kinds("gpt_oss", num_local_experts=6, layer_types=["full_attention"] * 7 + ["sliding_attention"]) == [
        "full"
    ] * 7 + ["sliding"]
    llama4 = dict(num_local_experts=6, intermediate_size_mlp=7)
    assert (
        kinds("llama4_text", **llama4, interleave_moe_layer_step=2)
        == ["chunked, dense", "chunked, moe", "chunked, dense", "full, moe"] * 2
    )
    assert (
        kinds("llama4_text", **llama4, moe_layers=[0], no_rope_layers=[0] + [1] * 7)
        == ["full, moe"] + ["chunked, dense"] * 7
    )
    ernie = dict(moe_num_experts=6, moe_k=2, moe_num_shared_experts=0, moe_layer_start_index=2)
    assert kinds("ernie4_5_moe", **ernie, moe_layer_interval=2) == ["dense"] * 3 + ["moe", "dense"] * 2 + ["moe"]
    assert kinds("ernie4_5_moe", **ernie, moe_layer_end_index=4) == ["dense"] * 2 + ["moe"] * 3 + ["dense"] * 3


def test_a_layer_list_of_the_wrong_length():
    with pytest.raises(Problem, match="layer_types has 7 entries"):
        kinds("gpt_oss", num_local_experts=6, layer_types=["full_attention"] * 7)
    with pytest.raises(Problem, match="no_rope_layers has 3 entries"):
        kinds("llama4_text", num_local_experts=6, intermediate_size_mlp=7, no_rope_layers=[1, 0, 1])
