"""Mistral Large 4: latents that some layers borrow from an earlier one, an indexer in each, and learned sharpness.

Source: mistralai/Mistral-Large-4-1T-A52B, config.json; tensor names of transformers. Rotary frequencies are scaled by
stored numbers, every fourth layer has no rotary embedding, and queries grow with the logarithm of the position, each
head by its own learned numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dims import smallest
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope_pairs,
    embed,
    feed_forward,
    heads,
    index_scores,
    latent_queries,
    latent_scores,
    latent_values,
    latent_weighted_sum,
    layer_norm,
    linear,
    masked,
    positions,
    rms_norm,
    rope_table,
    soft_cap,
    softmax,
    strictly_causal_mask,
    top_k,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Raw, Size, activation, config, fixed, key
from .deepseek_v32 import INDEX_EPS, GlmMoEDsa, IndexedKind
from .mistral4 import mixture_of_experts
from .rope_config import read_rope, with_rope_of_class
from .tensor_layouts import FUSED, NUMBERED

# Keys and values of earlier layers that later ones read: those with rotary embedding under True.
Lent = dict[bool, tuple[Array, Array]]


class LendingKind(IndexedKind, frozen=True):
    """In addition: whether queries and keys rotate, and whether the layer reads an earlier one's latents or lends its
    own."""

    turns: bool = True
    borrows: bool = False
    lends: bool = False

    def __str__(self) -> str:
        words = [
            super().__str__(),
            *(["NoPE"] if not self.turns else []),
            *(["shared latents"] if self.borrows else []),
        ]
        return ", ".join(words)


@config
class MistralLarge4(GlmMoEDsa):
    """Hyperparameters of Mistral Large 4, in forward order."""

    dense_layers: int = key("first_k_dense_replace", 1)
    q_lora_rank: Size = fixed(0)
    no_rope_interval: int = key("no_rope_layer_interval", 4)
    no_rope_layers: list[int] = key(
        "no_rope_layers", lambda c: [int((i + 1) % max(c.no_rope_interval, 1) != 0) for i in range(c.n_layers)]
    )
    kv_sources: list[int] = key("kv_source_layers", lambda c: list(range(c.n_layers)))
    normalise: bool = fixed(True)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    final_cap: Positive = key("final_logit_softcapping", 30.0)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The published rotary embedding where the config has none."""
        usual: Raw = {"factor": 2048.0, "original_max_position_embeddings": 512, "attention_factor": 1.0}
        return super().prepare(with_rope_of_class(raw, {"rope_type": "yarn"} | usual))

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)

    @property
    def kinds(self) -> Sequence[LendingKind]:
        sources = self.kv_sources
        for name, entries in (("no_rope_layers", self.no_rope_layers), ("kv_source_layers", sources)):
            if len(entries) < self.n_layers:
                raise Problem(
                    f"{name} has {len(entries)} entries, and num_hidden_layers = {int(self.n_layers)}",
                    "correct one of the two",
                )
        last: dict[bool, int] = {}  # layers with a cache of their own: the one that turns, and the one that does not
        for i, source in enumerate(sources[: self.n_layers]):
            turns = bool(self.no_rope_layers[i])
            if source == i:
                last[turns] = i
            elif last.get(turns) != source:
                raise Problem(
                    f"kv_source_layers has {source} for layer {i}",
                    f"name the last layer before it {'with' if turns else 'without'} rotary embedding that has a cache",
                )
        return [
            LendingKind(
                kind.moe,
                indexes=kind.indexes,
                turns=bool(self.no_rope_layers[i]),
                borrows=sources[i] != i,
                lends=i in sources[i + 1 :],
            )
            for i, kind in enumerate(super().kinds)
        ]


@architecture(
    "mistral_large4_text",
    config=MistralLarge4,
    fused=FUSED,
    spellings=(
        ("^tok_embeddings.", "model.embed_tokens."),
        ("^layers.", "model.layers."),
        ("^norm.", "model.norm."),
        ("^output.", "lm_head."),
        ("^lerope.", "model.rotary_emb."),
        (".attention_norm.", ".input_layernorm."),
        (".attention.", ".self_attn."),
        (".wq.", ".q_proj."),
        (".wkv_a_with_mqa.", ".kv_a_proj_with_mqa."),
        (".wkv_b.", ".kv_b_proj."),
        (".wo.", ".o_proj."),
        (".kv_a_norm.", ".kv_a_layernorm."),
        (".ssmax_scaling.s$", ".softmax_scaling.scale"),
        (".ssmax_scaling.b$", ".softmax_scaling.bias"),
        (".ffn_norm.", ".post_attention_layernorm."),
        (".feed_forward.", ".mlp."),
        ("{0}.gate.", "{0}.mlp.gate."),
        ("{0}.experts.", "{0}.mlp.experts."),
        ("{0}.shared_experts.", "{0}.mlp.shared_experts."),
        *NUMBERED,
    ),
)
def forward(w: Weights, ids: Array, c: MistralLarge4, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    faster = np.exp(w.buffer("model.rotary_emb.alpha", c.qk_rope_head_dim // 2))
    table = rope_table(places, c.qk_rope_head_dim, c.rope, faster)
    seen: Array | None = None
    lent: Lent = {}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x, seen = layer(x, w_layer, cache_layer, c, kind, table, places, seen, lent)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return soft_cap(unembed(x, w, head, c.vocab_size, last=last), c.final_cap)


@step(Role.LAYER)
def layer(
    x: Array,
    w: Weights,
    cache: KVCache,
    c: MistralLarge4,
    kind: LendingKind,
    table: RopeTable,
    places: Array,
    seen: Array | None,
    lent: Lent,
) -> tuple[Array, Array]:
    """One transformer block, which also passes on the tokens it looked at: [T D] -> [T D], [T I]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    mixed, seen = attention(y, w.at("self_attn"), cache, c, kind, table, places, seen, lent)
    x = x + mixed
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c), seen
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation)), seen


@step(Role.ATTENTION)
def attention(
    x: Array,
    w: Weights,
    cache: KVCache,
    c: MistralLarge4,
    kind: LendingKind,
    table: RopeTable,
    places: Array,
    seen: Array | None,
    lent: Lent,
) -> tuple[Array, Array]:
    """Let each token gather information from the tokens that the indexer picks: [T D] -> [T D], [T I]."""
    N, R, V = c.n_heads, c.kv_lora_rank, c.v_head_dim
    H_rope = c.qk_rope_head_dim if kind.turns else 0
    H = c.qk_nope_head_dim + c.qk_rope_head_dim - H_rope
    q = heads(linear(x, w, "q_proj", N * (c.qk_nope_head_dim + c.qk_rope_head_dim)), N, H + H_rope)
    sharpness = learned_growth(places, w.at("softmax_scaling"), N)
    if not kind.borrows:
        lent[kind.turns] = own_latents(x, w, cache, c, kind, table)
    latent, k_rope = lent[kind.turns]
    allowed = strictly_causal_mask(cache, q, latent, Full())
    if kind.indexes or seen is None:
        seen = indexer(x, allowed, w.at("indexer"), cache, c, kind, table, places)
    latent, k_rope = np.take(latent, seen, axis=0), np.take(k_rope, seen, axis=0)
    allowed = np.take_along_axis(allowed, seen, axis=1)
    q, q_rope = np.split(q, [H], axis=-1)
    to_keys_and_values = w("kv_b_proj.weight", N * (H + V), R).reshape(N, H + V, R)
    to_key, to_value = np.split(to_keys_and_values, [H], axis=1)
    q_rope = apply_rope_pairs(q_rope, table) * sharpness if kind.turns else q_rope
    fit = latent_scores(latent_queries(q * sharpness, to_key), latent, q_rope, k_rope, c.scale)
    values = latent_values(latent_weighted_sum(softmax(masked(fit, allowed)), latent), to_value)
    return linear(values.reshape(values.shape[0], N * V), w, "o_proj", c.d_model, bias=c.attention_bias), seen


def own_latents(x: Array, w: Weights, cache: KVCache, c: MistralLarge4, kind: LendingKind, table: RopeTable):
    """The layer's own latents and, if it rotates them, rotated keys, which are cached: [T D] -> [S R], [S H'] or [S
    0]."""
    R, H_rope = c.kv_lora_rank, c.qk_rope_head_dim if kind.turns else 0
    latent, k_rope = np.split(linear(x, w, "kv_a_proj_with_mqa", R + H_rope, bias=c.attention_bias), [R], axis=-1)
    latent = cache.extend(Holds.LATENT, rms_norm(latent, w, "kv_a_layernorm", c.norm_eps), Full())
    if not kind.turns:
        return latent, latent[:, :0]
    return latent, cache.extend(Holds.ROPE_KEY, apply_rope_pairs(k_rope[:, None, :], table)[:, 0], Full())


@step(Role.TEMPERATURE)
def learned_growth(places: Array, w: Weights, n: int) -> Array:
    """How much sharper each head looks far into a text: scale · ln(position + 1) + bias: [T], [N], [N] -> [T N 1]."""
    grown = np.log(places + 1).astype(np.float32)[:, None] * w("scale", n)[None, :]
    return (grown + w("bias", n))[:, :, None]


@step(Role.INDEXER)
def indexer(
    x: Array,
    allowed: Array,
    w: Weights,
    cache: KVCache,
    c: MistralLarge4,
    kind: LendingKind,
    table: RopeTable,
    places: Array,
) -> Array:
    """The most relevant tokens for each new one, by separate small heads: [T D], [T S] -> [T I].

    I is `index_topk`, or S if fewer tokens are visible.
    """
    N, H = c.index_n_heads, c.index_head_dim
    q = heads(linear(layer_norm(x, w, "q_input_norm", INDEX_EPS), w, "wq_b", N * H), N, H)
    q = q * learned_growth(places, w.at("softmax_scaling"), N)
    k = heads(layer_norm(linear(x, w, "wk", H), w, "k_norm", INDEX_EPS), 1, H)
    if kind.turns:
        q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k = cache.extend(Holds.INDEX_KEYS, k[:, 0], Full())
    fit = index_scores(q, k, linear(x, w, "weights_proj", N) * N**-0.5)
    return top_k(np.where(allowed, fit, -np.inf), smallest(c.index_topk, k.shape[0]))
