"""T5Gemma 2: Gemma 3's block in an encoder, which sees to both sides, and in a decoder whose attention sees both texts.

One softmax weighs the tokens of the decoder's text and those of the encoder's. Both stacks share the embedding, in
which the token that ends an image has a vector of its own. Its vision tower is left out here. `t5` explains the two
lengths. Source: transformers, models/t5gemma2; tensor names as transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from ..errors import Problem, shorten
from ..facts import Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    SlidingWindow,
    apply_rope,
    causal_mask,
    embed,
    heads,
    linear,
    masked,
    positions,
    repeat_kv,
    rope_table,
    scores,
    soft_cap,
    softmax,
    unembed,
    weighted_sum,
)
from ..steps import Holds, Keeps, Role, step
from . import architecture
from .config import Interval, Positive, Raw, Size, activation, config, fixed, full_every, key
from .rope_config import fold_rope_by_layer_type, read_rope
from .t5 import STACKS
from .t5gemma import OF_ONE, OF_STACKS, T5Gemma, feed_forward, norm
from .tasks import BASE, OWN

THETA, THETA_OF_WINDOWS = 1e6, 1e4


@config
class T5Gemma2(T5Gemma):
    """Hyperparameters of T5Gemma 2, in forward order."""

    # embedding
    n_source: Size = key("encoder.max_position_embeddings", 131072)
    end_of_image: int = key("eoi_token_index", 256000)
    # encoder
    encoder_pattern: Interval = key("encoder.sliding_window_pattern", 6)
    encoder_types: list[str] = key("encoder.layer_types", lambda c: full_every(c.encoder_pattern, c.n_encoder_layers))
    encoder_cap: Positive | None = fixed(None)
    # decoder
    pattern: Interval = key("decoder.sliding_window_pattern", 6)
    layer_types: list[str] = key("decoder.layer_types", lambda c: full_every(c.pattern, c.n_decoder_layers))
    attention_cap: Positive | None = fixed(None)
    # head
    logit_cap: Positive | None = key("decoder.final_logit_softcapping", None)

    ignored = T5Gemma.ignored | frozenset(
        """
        image_token_index encoder.attn_logit_softcapping decoder.attn_logit_softcapping
        encoder.use_bidirectional_attention decoder.use_bidirectional_attention
    """.split()
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys of both text models side by side, each with the name of its stack."""
        for stack in STACKS:
            table: object = raw.pop(stack, {})
            if stack == "encoder" and isinstance(table, Mapping):
                whole = cast("Mapping[str, object]", table)
                raw["eoi_token_index"] = whole.get("eoi_token_index")
                table = whole.get("text_config", {})
            if not isinstance(table, Mapping):
                raise Problem(f"{stack} = {shorten(table)}: expected a table", "write its keys below it")
            keys = dict(cast("Raw", table))
            folded = fold_rope_by_layer_type(keys, keys.pop("rope_local_base_freq", None) or THETA_OF_WINDOWS)
            dropped = OF_STACKS | OF_ONE[stack]
            raw |= {f"{stack}.{name}": value for name, value in folded.items() if name not in dropped}
        return raw

    def check(self) -> None:
        super().check()
        for one, other in (("d_encoder", "d_model"), ("n_read", "vocab_size")):
            if self.size(one) != self.size(other):
                raise Problem(
                    f"{self.key_of(one)} = {int(self.size(one))}, and {self.key_of(other)} = {int(self.size(other))}",
                    "both stacks share the embedding: give one number",
                )
        for mask in (Full(), SlidingWindow(1)):
            self.rope_of(mask, of_encoder=True).turning(self.d_encoder_head)
            self.rope_of(mask).turning(self.d_head)

    @property
    def rope(self) -> tuple[Rope, Rope]:
        return self.rope_of(Full(), of_encoder=True), self.rope_of(Full())

    def rope_of(self, mask: Mask, *, of_encoder: bool = False) -> Rope:
        """The rotary embedding of a kind of layer."""
        table = self.encoder_rope if of_encoder else self.rope_parameters
        if isinstance(mask, SlidingWindow):
            return read_rope(table, THETA_OF_WINDOWS, "sliding_attention")
        return read_rope(table, THETA, "full_attention")


HEADS = {"ForConditionalGeneration": OWN, "Model": BASE}


@architecture(
    "t5gemma2",
    config=T5Gemma2,
    spellings=tuple(
        (f"^model.encoder.{part}.", f"model.encoder.text_model.{part}.") for part in ("embed_tokens", "layers", "norm")
    ),
    heads=HEADS,
    peft=Peft(tied_head="lm_head.out_proj", tied_tables=("model.decoder.embed_tokens",)),
)
def forward(w: Weights, ids: Array, c: T5Gemma2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_encoder), np.float32)
    shared = "model.encoder.text_model.embed_tokens" if c.tied else "model.decoder.embed_tokens"
    x, places = embed_text(ids, w, shared, c), positions(ids, cache)
    tables = {mask: rope_table(places, c.d_head, c.rope_of(mask)) for mask in dict.fromkeys(c.masks[1])}
    for mask, w_layer, kept in w.layers("model.decoder.layers", c.masks[1], cache, "decoder", c.n_encoder_layers):
        x = decoder_layer(x, w_layer, c, kept, mask, tables[mask], read)
    x = norm(x, w, "model.decoder.norm", c.norm_eps)
    logits = unembed(x, w, f"{shared}.weight" if c.tied else "lm_head.out_proj.weight", c.vocab_size, last=last)
    return logits if c.logit_cap is None else soft_cap(logits, c.logit_cap)


def encode(source: Array, w: Weights, c: T5Gemma2, cache: KVCache) -> Array:
    """The encoder's output for a text, each token in the context of all: [M] -> [M D]."""
    x = embed_text(source, w, "model.encoder.text_model.embed_tokens", c)
    places = np.arange(source.shape[0], like=source)
    tables = {
        mask: rope_table(places, c.d_encoder_head, c.rope_of(mask, of_encoder=True))
        for mask in dict.fromkeys(c.masks[0])
    }
    for mask, w_layer, _ in w.layers("model.encoder.text_model.layers", c.masks[0], cache, "encoder"):
        x = encoder_layer(x, w_layer, c, mask, tables[mask])
    return norm(x, w, "model.encoder.text_model.norm", c.encoder_eps)


def embed_text(ids: Array, w: Weights, name: str, c: T5Gemma2) -> Array:
    """Each token's vector, that of the end of an image from elsewhere: [T] -> [T D]."""
    x = embed(ids, w, f"{name}.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    return np.where((ids == c.end_of_image)[:, None], w(f"{name}.eoi_embedding", c.d_model), x)


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: T5Gemma2, mask: Mask, table: RopeTable) -> Array:
    """One block of the encoder, with a norm before and after each half: [M D] -> [M D]."""
    eps = c.encoder_eps
    y = attention(norm(x, w, "pre_self_attn_layernorm", eps), w.at("self_attn"), c, mask, table)
    x = x + norm(y, w, "post_self_attn_layernorm", eps)
    y = norm(x, w, "pre_feedforward_layernorm", eps)
    y = feed_forward(y, w.at("mlp"), c.d_ff_encoder, activation(c.encoder_activation))
    return x + norm(y, w, "post_feedforward_layernorm", eps)


@step(Role.LAYER)
def decoder_layer(
    x: Array, w: Weights, c: T5Gemma2, cache: KVCache, mask: Mask, table: RopeTable, read: Array
) -> Array:
    """One block of the decoder, with a norm before and after each half: [T D] -> [T D]."""
    eps = c.norm_eps
    y = merged_attention(norm(x, w, "pre_self_attn_layernorm", eps), w.at("self_attn"), c, cache, mask, table, read)
    x = x + norm(y, w, "post_self_attn_layernorm", eps)
    y = norm(x, w, "pre_feedforward_layernorm", eps)
    y = feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
    return x + norm(y, w, "post_feedforward_layernorm", eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: T5Gemma2, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from all tokens, including later ones: [M D] -> [M D]."""
    N, K, H, b = c.n_encoder_heads, c.n_encoder_kv_heads, c.d_encoder_head, c.encoder_bias
    q, k = heads(linear(x, w, "q_proj", N * H, bias=b), N, H), heads(linear(x, w, "k_proj", K * H, bias=b), K, H)
    v = repeat_kv(heads(linear(x, w, "v_proj", K * H, bias=b), K, H), N)
    q, k = norm(q, w, "q_norm", c.encoder_eps), norm(k, w, "k_norm", c.encoder_eps)
    fit = scores(apply_rope(q, table), repeat_kv(apply_rope(k, table), N), c.encoder_scalar**-0.5)
    fit = window_of_both_sides(fit, int(mask.size)) if isinstance(mask, SlidingWindow) else fit
    mixed = weighted_sum(softmax(fit), v)
    return linear(mixed.reshape(x.shape[0], N * H), w, "o_proj", c.d_encoder, bias=b)


@step(Role.WINDOW_MASK, keeps=Keeps.NOTHING)
def window_of_both_sides(x: Array, size: int) -> Array:
    """Hide the tokens outside of a window, half of it before a token and half after: [N M M] -> [N M M]."""
    place = np.arange(x.shape[-1], like=x)
    behind = place[:, None] - place[None, :]
    return np.where((behind < (size + 1) // 2) & (behind >= -(size // 2)), x, -np.inf)


@step(Role.ATTENTION)
def merged_attention(
    x: Array, w: Weights, c: T5Gemma2, cache: KVCache, mask: Mask, table: RopeTable, read: Array
) -> Array:
    """Let each token gather information from those up to it and from the encoder's output: [T D], [M D] -> [T D]."""
    N, H, b = c.n_heads, c.d_head, c.attention_bias
    q = apply_rope(norm(heads(linear(x, w, "q_proj", N * H, bias=b), N, H), w, "q_norm", c.norm_eps), table)
    k, v = keys_and_values(x, w, c)
    k, v = cache.extend(Holds.KEYS, apply_rope(k, table), mask), cache.extend(Holds.VALUES, v, mask)
    k_read, v_read = keys_and_values(read, w, c)
    k_read = cache.fill(Holds.SOURCE_KEYS, k_read, c.n_source)
    v_read = cache.fill(Holds.SOURCE_VALUES, v_read, c.n_source)
    fit = masked(scores(q, repeat_kv(k, N), c.query_scalar**-0.5), causal_mask(cache, q, k, mask))
    shares = softmax(np.concatenate([fit, scores(q, repeat_kv(k_read, N), c.query_scalar**-0.5)], axis=-1))
    of_text, of_read = np.split(shares, [k.shape[0]], axis=-1)
    mixed = weighted_sum(of_text, repeat_kv(v, N)) + weighted_sum(of_read, repeat_kv(v_read, N))
    return linear(mixed.reshape(x.shape[0], N * H), w, "o_proj", c.d_model, bias=b)


def keys_and_values(x: Array, w: Weights, c: T5Gemma2) -> tuple[Array, Array]:
    """Keys and values of the text or the encoder's output, by the same matrices: [S D] -> [S K H], [S K H]."""
    K, H, b = c.n_kv_heads, c.d_head, c.attention_bias
    k, v = heads(linear(x, w, "k_proj", K * H, bias=b), K, H), heads(linear(x, w, "v_proj", K * H, bias=b), K, H)
    return norm(k, w, "k_norm", c.norm_eps), v
