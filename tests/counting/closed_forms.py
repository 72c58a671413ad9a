"""What the closed forms share: the parts of many blocks as sums of products, and the sizes of random configs."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st


class Form(NamedTuple):
    """Parameters; those of one routed expert in all layers and (experts, used); cache elements a token, uncapped."""

    total: int
    cache: int
    expert: int = 0
    experts: tuple[int, int] = (0, 0)

    @property
    def active(self) -> int:
        return self.total - self.expert * (self.experts[0] - self.experts[1])


def gated(D: int, F: int, bias: bool = False) -> int:
    """Gate, up and down."""
    return 3 * D * F + (2 * F + D if bias else 0)


def plain(D: int, F: int, bias: bool = True) -> int:
    """Up and down."""
    return 2 * D * F + (F + D if bias else 0)


def attention(D: int, N: int, K: int, H: int, qkv_bias: bool = False, out_bias: bool = False) -> int:
    """Queries, keys, values and the way back."""
    return 2 * D * N * H + 2 * D * K * H + ((N + 2 * K) * H if qkv_bias else 0) + (D if out_bias else 0)


def ends(c: dict, tied: bool, D: int | None = None) -> int:
    """The table of the vocabulary, twice unless it is tied."""
    return c["vocab_size"] * (D or c["hidden_size"]) * (1 if c.get("tie_word_embeddings", tied) else 2)


def sizes(c: dict):
    """(D, L, N, K, H, F) of a config in Llama's keys."""
    D, N = c["hidden_size"], c["num_attention_heads"]
    return (
        D,
        c["num_hidden_layers"],
        N,
        c.get("num_key_value_heads", N),
        c.get("head_dim") or D // N,
        c.get("intermediate_size"),
    )


def indexer(c: dict, width: int) -> int:
    """The indexer of sparse attention, with queries made from `width` numbers."""
    D, N, H = c["hidden_size"], c["index_n_heads"], c["index_head_dim"]
    return width * N * H + (D + 2) * H + D * N


def latent(c: dict) -> int:
    """Multi-head latent attention with its norms."""
    D, N = c["hidden_size"], c["num_attention_heads"]
    R, Q, nope, rope, v = (
        c["kv_lora_rank"],
        c.get("q_lora_rank"),
        c["qk_nope_head_dim"],
        c["qk_rope_head_dim"],
        c["v_head_dim"],
    )
    queries = D * Q + Q + Q * N * (nope + rope) if Q else D * N * (nope + rope)
    biases = (Q or 0) + R + rope + D if c.get("attention_bias") else 0
    return queries + D * (R + rope) + R + R * N * (nope + v) + N * v * D + biases


def delta_net(c: dict) -> int:
    """The gated delta rule: queries, keys, values, gate and way back, a convolution, two numbers a head, a norm."""
    keys, values = (
        c["linear_num_key_heads"] * c["linear_key_head_dim"],
        c["linear_num_value_heads"] * c["linear_value_head_dim"],
    )
    return (
        (2 * keys + values) * c["linear_conv_kernel_dim"]
        + c["hidden_size"] * (2 * keys + 3 * values)
        + 2 * (c["hidden_size"] + 1) * c["linear_num_value_heads"]
        + c["linear_value_head_dim"]
    )


def mamba2(D: int, heads: int, width: int, groups: int, state: int, kernel: int, bias: bool, conv_bias: bool) -> int:
    """The mixer of Mamba 2: one matrix in, a short convolution, three numbers a head, a norm, one matrix out."""
    inner = heads * width
    conv = inner + 2 * groups * state
    into = inner + conv + heads
    return (
        D * into
        + (into if bias else 0)
        + conv * kernel
        + (conv if conv_bias else 0)
        + 3 * heads
        + inner
        + inner * D
        + (D if bias else 0)
    )


def is_sparse(c: dict, i: int) -> bool:
    """Whether layer i has experts: as listed (one of three ways), or from one layer on."""
    if c.get("mlp_layer_types"):
        return c["mlp_layer_types"][i] == "sparse"
    listed = c.get("is_moe_layer") or c.get("moe_layer_freq")
    return (
        bool(listed[i])
        if isinstance(listed, list)
        else i >= c.get("first_k_dense_replace", c.get("num_dense_layers", 0))
    )


# --- random configs ---------------------------------------------------------------------------------------------------


@st.composite
def blocks(draw, *, square=False, even=True):
    """Sizes in Llama's keys: D, F, V, L, heads that share, a head width; D = N·H where the architecture wants it."""
    K, shared, H = (
        draw(st.sampled_from((2, 3, 5))),
        draw(st.sampled_from((1, 2, 3))),
        draw(st.sampled_from((7, 11, 13))) * (2 if even else 1),
    )
    D = K * shared * H if square else draw(st.sampled_from((34, 46, 58, 62)))
    return {
        "vocab_size": draw(st.sampled_from((97, 101, 103))),
        "hidden_size": D,
        "num_hidden_layers": draw(st.integers(1, 7)),
        "num_attention_heads": K * shared,
        "num_key_value_heads": K,
        "intermediate_size": draw(st.sampled_from((67, 71, 73))),
        **({} if square else {"head_dim": H}),
        **({"tie_word_embeddings": draw(st.booleans())} if draw(st.booleans()) else {}),
    }


def flags(**choices):
    """Some of the given keys with some of the given values; a key may be left out."""
    return st.fixed_dictionaries({}, optional={k: st.sampled_from(v) for k, v in choices.items()})


BOOL = (True, False)
MOE = dict(num_experts_per_tok=(1, 2, 3))
LATENT = st.fixed_dictionaries(
    {
        "kv_lora_rank": st.sampled_from((19, 23)),
        "qk_nope_head_dim": st.sampled_from((10, 14)),
        "qk_rope_head_dim": st.sampled_from((6, 22)),
        "v_head_dim": st.sampled_from((13, 17)),
        "n_routed_experts": st.just(8),
        "num_experts_per_tok": st.sampled_from((1, 2, 3)),
        "moe_intermediate_size": st.sampled_from((29, 31)),
        "n_group": st.sampled_from((1, 2)),
        "topk_group": st.just(1),
        "first_k_dense_replace": st.integers(0, 3),
        "n_shared_experts": st.sampled_from((1, 2)),
        "q_lora_rank": st.sampled_from((37, 41)),
    }
)


def both(*parts):
    """The keys of all the parts."""
    return st.tuples(*parts).map(lambda found: {k: v for part in found for k, v in part.items()})


def fixed(**values):
    """Each key, with its value or one of a tuple of values."""
    return st.fixed_dictionaries(
        {k: st.sampled_from(v) if isinstance(v, tuple) else st.just(v) for k, v in values.items()}
    )


LATENT_BLOCKS = both(
    blocks().map(
        lambda c: {k: v for k, v in c.items() if k != "head_dim"} | {"num_key_value_heads": c["num_attention_heads"]}
    ),
    LATENT,
)


def in_turns(base, **turns):
    """Of each of the keys one of its lists, repeated: an entry for each layer."""
    return both(base, fixed(**turns)).map(
        lambda c: c | {k: (c[k] * c["num_hidden_layers"])[: c["num_hidden_layers"]] for k in turns}
    )
