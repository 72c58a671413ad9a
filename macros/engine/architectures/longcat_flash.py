"""LongCat-Flash: a layer of two attentions and two feed-forward networks, with a mixture of experts in parallel.

Some of its experts are nothing: a token sent to one keeps its vector, so that easy tokens cost less (arXiv 2509.01322).
Source: meituan-longcat/LongCat-Flash-Chat, config.json; tensor names of transformers, which stores matrices for the
experts that are nothing too; the published files do not. LongCat-Flash-Lite also looks up the n-grams that end at a
token (arXiv 2601.21204): vLLM, longcat_flash_ngram.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import Problem
from ..facts import NAMED_EXPERTS, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    causal_mask,
    combine,
    embed,
    feed_forward,
    gated_experts,
    linear,
    ngram_row,
    positions,
    rms_norm,
    rolling_hash,
    rope_table,
    routing_weights,
    softmax,
    top_k,
    unembed,
    zero_experts,
)
from ..ops.ngrams import ID_BYTES
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Positive, Raw, Size, Taps, activation, config, derived, fixed, key
from .deepseek_v2 import Latent, compress_query, latents_of, queries, read_out
from .otherwise import Otherwise, Table, unlike
from .predicted import Module, Place, angles
from .rope_config import read_rope
from .tensor_layouts import EXPERT, FUSED


def _halved(raw: Table) -> bool:
    """Whether both numbers of layers are given, and transformers' is another than that of blocks."""
    blocks, twice = raw.get("num_layers"), raw.get("num_hidden_layers")
    return type(blocks) is int and type(twice) is int and twice // 2 != blocks


@config
class LongCatFlash(Latent):
    """Hyperparameters of LongCat-Flash, in forward order. d_ff_expert is the inner width of one expert."""

    n_layers: Size = key("num_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    q_lora_rank: Size = key("q_lora_rank")
    rope_pairs: bool = fixed(True)
    d_ff: Size = key("ffn_hidden_size", also=("intermediate_size",))
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_zero_experts: Count = key("zero_expert_num")
    n_experts_per_token: Size = key("moe_topk", also=("num_experts_per_tok",))
    routed_scale: Positive = key("routed_scaling_factor", 6.0)
    d_ff_expert: Size = key("expert_ffn_hidden_size", also=("moe_intermediate_size",))

    rewritten = Latent.rewritten | {"num_hidden_layers"}
    otherwise = (
        *Latent.otherwise,
        Otherwise(
            "head_dim",
            unlike("head_dim", "qk_rope_head_dim", 64),
            "transformers 5.24 takes it for the width that turns, not qk_rope_head_dim",
        ),
        Otherwise("num_hidden_layers", _halved, "transformers 5.24 takes half of it for num_layers"),
    )
    ignored = Latent.ignored | {
        "attention_method",
        "mla_scale_q_lora",
        "mla_scale_kv_lora",
        "zero_expert_type",
        "router_bias",
        "router_dtype",
        "norm_topk_prob",
        "mlp_bias",
        "rope_interleave",
        "num_nextn_predict_layers",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """`num_layers`, or half of `num_hidden_layers`: transformers counts attentions as layers."""
        raw = super().prepare(raw)
        twice = raw.get("num_hidden_layers")
        return raw if "num_layers" in raw or not isinstance(twice, int) else {**raw, "num_layers": twice // 2}

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=1e7)


@config
class LongCatNGram(LongCatFlash):
    """Hyperparameters of LongCat-Flash-Lite, in forward order: without the first of them, it has no n-grams."""

    ngram_ratio: Positive | None = key("ngram_vocab_size_ratio", None)
    longest_ngram: Taps | None = key("emb_neighbor_num", None)
    n_ngram_heads: Size | None = key("emb_split_num", None)
    end_of_text: int | None = key("eos_token_id", None)
    ngram_rows: Size | None = derived(lambda c: c.rows_of_first())

    def rows_of_first(self) -> int | None:
        """The rows of the first table of n-grams; each further one has two more. None without n-grams."""
        return None if self.ngram_ratio is None else int(self.ngram_ratio * int(self.vocab_size)) + 1

    @property
    def n_tables(self) -> int:
        """The number of tables: some for each length of n-gram."""
        return 0 if self.ngram_rows is None else int(self.size("n_ngram_heads")) * (int(self.size("longest_ngram")) - 1)

    def check(self) -> None:
        super().check()
        if self.ngram_rows is None:
            return
        if not self.n_tables or int(self.d_model) % self.n_tables:
            raise Problem(
                f"hidden_size = {int(self.d_model)} is not a multiple of {self.n_tables}, the number of n-gram tables",
                "correct emb_neighbor_num or emb_split_num",
            )
        if self.end_of_text is None:
            raise Problem("eos_token_id is missing", "add it: n-grams end at that token")


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    table = angles(ids, cache, c.qk_rope_head_dim, c.rope)
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + attention(y, w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("transformer_layer.mlp"), c.d_ff, activation(c.activation))


MTP = Module(
    draft_layer, "model.mtp", "layers.{k}.enorm.m", "layers.{k}.hnorm.m", "layers.{k}.eh_proj", "layers.{k}", "norm"
)


@architecture(
    "longcat_flash_ngram",
    config=LongCatNGram,
    fused=FUSED,
    predicts=MTP,
    peft=Peft(stacked=NAMED_EXPERTS, linear_router=True),
)
@architecture(
    "longcat_flash",
    config=LongCatFlash,
    fused=FUSED,
    predicts=MTP,
    peft=Peft(stacked=NAMED_EXPERTS, linear_router=True),
)
def forward(w: Weights, ids: Array, c: LongCatFlash, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    if isinstance(c, LongCatNGram) and c.n_tables:
        x = with_ngrams(x, ids, w.at("model.ngram_embeddings"), cache, c)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.NGRAMS)
def with_ngrams(x: Array, ids: Array, w: Weights, cache: KVCache, c: LongCatNGram) -> Array:
    """The mean of a token's vector and those of the n-grams that end there, mapped: [T D], [T] -> [T D].

    The cache keeps the last ids, minus the id at which an n-gram ends: before a text, all are that one.
    """
    end, before = int(c.end_of_text or 0), int(c.size("longest_ngram")) - 1
    history = np.concatenate([cache.state(Holds.TOKEN_IDS, before).astype(np.int64), ids - end], axis=0)
    cache.store(Holds.TOKEN_IDS, history[-before:].astype(np.float32), item_bytes=ID_BYTES)
    first, per_length = c.size("ngram_rows"), int(c.size("n_ngram_heads"))
    for i in range(c.n_tables):
        places = rolling_hash(history + end, i // per_length + 2, int(c.vocab_size), int(first) + 2 * i, before, end)
        rows = ngram_row(places, w, f"embedders.{i}.weight", first + 2 * i, c.d_model // c.n_tables)
        x = x + linear(rows, w, f"post_projs.{i}", c.d_model)
    return x / (c.n_tables + 1)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: LongCatFlash, table: RopeTable) -> Array:
    """One layer: attention and feed-forward network twice, the experts in parallel: [T D] -> [T D]."""
    act = activation(c.activation)
    y = rms_norm(x, w, "input_layernorm.0", c.norm_eps)
    x = x + attention(y, w.at("self_attn.0"), cache.part(0), c, table)
    y = rms_norm(x, w, "post_attention_layernorm.0", c.norm_eps)
    beside = mixture_of_experts(y, w.at("mlp"), c)
    x = x + feed_forward(y, w.at("mlps.0"), c.d_ff, act)
    y = rms_norm(x, w, "input_layernorm.1", c.norm_eps)
    x = x + attention(y, w.at("self_attn.1"), cache.part(1), c, table)
    y = rms_norm(x, w, "post_attention_layernorm.1", c.norm_eps)
    return x + feed_forward(y, w.at("mlps.1"), c.d_ff, act) + beside


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: LongCatFlash, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it, kept as latents: [T D] -> [T D].

    Queries and latents grow by √(D / their width), as if they were as wide as the model.
    """
    q, q_rope = queries(compress_query(x, w, c), w, c, table)
    latent, k_rope = latents_of(x, w, c, table)
    latent = latent * (c.d_model / c.kv_lora_rank) ** 0.5
    latent, k_rope = cache.extend(Holds.LATENT, latent, Full()), cache.extend(Holds.ROPE_KEY, k_rope, Full())
    growth = (c.d_model / c.q_lora_rank) ** 0.5
    return read_out(q * growth, q_rope * growth, latent, k_rope, causal_mask(cache, q, latent, Full()), w, c)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: LongCatFlash) -> Array:
    """A few experts chosen for each token, some of which leave it as it is: [T D] -> [T k D] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    E = c.n_experts + c.n_zero_experts
    fit = softmax(linear(x, w, "router.classifier", E))
    chosen = top_k(fit + w.buffer("router.e_score_correction_bias", E), c.n_experts_per_token)
    shares = routing_weights(fit, chosen, scale=c.routed_scale)

    def experts(places: Array) -> Array:
        return gated_experts(x, places, w, EXPERT, c.n_experts, c.d_ff_expert, activation(c.activation))

    return combine(zero_experts(x, chosen, c.n_experts, experts), shares)
