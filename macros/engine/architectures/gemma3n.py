"""Gemma 3n: several residual streams of which a layer computes one, and the token's own vector for each layer.

What the layer does to one stream is predicted for the others and corrected (AltUp, arXiv 2301.13310); a narrow map goes
around attention (LAuReL, arXiv 2411.07501); the last layers read keys and values that earlier ones keep.

Source: google/gemma-3n-E4B by transformers 5's text model, whose tensor names these are (the published files put
`language_model.` in front). Additional letters: M streams, P the width of a layer's own vector.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ..errors import Problem
from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    SlidingWindow,
    embed,
    embed_layers,
    gaussian_top_k,
    linear,
    positions,
    rms_norm,
    rope_table,
    soft_cap,
    unembed,
    with_shared,
)
from ..steps import Role, step
from . import architecture
from .config import Count, Positive, Raw, Size, activation, config, derived, fixed, full_every, key, listed, masks_of
from .gemma4 import Kept, attention, layer_input, layer_inputs, seen_by
from .gguf_tables import AFTER, PER_LAYER, PER_LAYER_TABLES
from .llama import Llama
from .otherwise import OLDER_SCALING, single_table
from .rope_config import fold_rope_by_layer_type, read_rope

# Streams projected from one keep its size, but for a division by less than this.
LEAST_SQUARE = 1e-5


class WideKind(Struct, frozen=True):
    """A layer's mask, how wide its feed-forward network is, and which share of its gate's numbers is cut off."""

    mask: Mask
    d_ff: int
    cut_off: float

    def __str__(self) -> str:
        return f"{self.mask}, sparse" if self.cut_off else str(self.mask)


@config
class Gemma3n(Llama):
    """Hyperparameters of Gemma 3n's text model, in forward order."""

    # embedding
    d_per_layer: Size = key("hidden_size_per_layer_input", 256)
    per_layer_vocab_size: Size = key("vocab_size_per_layer_input", 262_144)
    # streams
    n_streams: Size = key("altup_num_inputs", 4)
    active_stream: Count = key("altup_active_idx", 0)
    scales_correction: bool = key("altup_correct_scale", True)
    d_laurel: Size = key("laurel_rank", 64)
    # layers
    sliding_window: Size | None = key("sliding_window", 512)
    layer_types: list[str] = key("layer_types", lambda c: full_every(5, c.n_layers))
    shared_layers: int = key("num_kv_shared_layers", 15)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 2)
    d_head: Size = key("head_dim", 256)
    keys_are_values: bool = fixed(False)
    # feed-forward
    widths: list[int] = key("intermediate_sizes", lambda c: [int(c.d_ff)] * c.n_layers)
    d_ff_other: Size | None = derived(lambda c: c.other_width())
    mlp_bias: bool = fixed(False)
    activation: str = key("hidden_activation", "gelu_pytorch_tanh")
    cut_off: list[float] = key("activation_sparsity_pattern", lambda c: c.default_cut_off())
    # head
    logit_cap: Positive | None = key("final_logit_softcapping", 30.0)
    tied: bool = key("tie_word_embeddings", True)

    otherwise = (single_table(1_000_000), OLDER_SCALING)
    rewritten = Llama.rewritten | {"rope_local_base_freq"}
    ignored = Llama.ignored | {"hidden_act", "altup_coef_clip"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """A list of widths has one for each layer; a single number applies to all. A single rope table is that of the
        full layers."""
        raw = fold_rope_by_layer_type(raw, sliding_theta=raw.pop("rope_local_base_freq", None) or 10_000.0)
        widths, layers = listed(raw.get("intermediate_size")), raw.get("num_hidden_layers")
        if widths:
            raw |= {"intermediate_size": widths[0], "intermediate_sizes": widths}
        share = raw.get("activation_sparsity_pattern")
        if isinstance(share, (int, float)) and isinstance(layers, int):
            raw["activation_sparsity_pattern"] = [float(share)] * layers
        return raw

    def other_width(self) -> int | None:
        """The width of the feed-forward networks that are not as wide as the first, where these have one width."""
        others = sorted({n for n in self.widths if n != self.d_ff})
        return others[0] if len(others) == 1 else None

    def default_cut_off(self) -> list[float]:
        """The first ten layers of a deep model cut 95% of their gate's numbers off."""
        sparse = 10 if self.n_layers > 10 else 0
        return [0.95 if i < sparse else 0.0 for i in range(self.n_layers)]

    def check(self) -> None:
        super().check()
        self.rope_of(SlidingWindow(1)).turning(self.d_head)
        if self.active_stream >= self.n_streams:
            raise Problem(
                f"altup_active_idx = {int(self.active_stream)}, and altup_num_inputs = {int(self.n_streams)}",
                "streams are counted from 0",
            )
        for name, entries in (("intermediate_size", self.widths), ("activation_sparsity_pattern", self.cut_off)):
            if len(entries) != self.n_layers:
                raise Problem(
                    f"{name} has {len(entries)} entries, and num_hidden_layers = {int(self.n_layers)}",
                    "correct one of the two",
                )
        if not all(0 <= share < 1 for share in self.cut_off):
            raise Problem("activation_sparsity_pattern: expected shares from 0 to less than 1", "correct the value")

    @property
    def kinds(self) -> list[WideKind]:
        """In order: a layer's mask, whether it reads an earlier one's cache, and its feed-forward network."""
        masks = with_shared(masks_of(self.layer_types, self.n_layers, self.sliding_window), self.shared_layers)
        known = {int(n): n for n in (self.d_ff, self.d_ff_other) if n is not None}
        return [WideKind(*kind) for kind in zip(masks, (known.get(n, n) for n in self.widths), self.cut_off)]

    def head(self, mask: Mask) -> int:
        """The width of a head, in every kind of layer."""
        return self.d_head

    def kv_heads(self, mask: Mask) -> int:
        """The key/value heads, in every kind of layer."""
        return self.n_kv_heads

    @property
    def rope(self) -> Rope:
        return self.rope_of(Full())

    def rope_of(self, mask: Mask) -> Rope:
        """The rotary embedding of a kind of layer."""
        if isinstance(mask, SlidingWindow):
            return read_rope(self.rope_parameters, 10_000.0, "sliding_attention")
        return read_rope(self.rope_parameters, 1_000_000.0, "full_attention")


GGUF = Gguf(
    "gemma3n",
    {
        **AFTER,
        **PER_LAYER,
        "altup.modality_router": "altup_router",
        "altup.router_norm": "altup_router_norm",
        "altup.correction_coefs": "altup_correct_coef",
        "altup.prediction_coefs": "altup_predict_coef",
        "altup.correct_output_scale": "altup_correct_scale",
        "laurel.linear_left": "laurel_l",
        "laurel.linear_right": "laurel_r",
        "laurel.post_laurel_norm": "laurel_post_norm",
    },
    {
        **PER_LAYER_TABLES,
        "embed_tokens_per_layer": "padded:per_layer_token_embd",
        "altup_projections.0": "stack:altup_proj",
        "altup_unembed_projections.0": "stack:altup_unembd_proj",
        **{f"altup_{which}projections.{n}": "-" for which in ("", "unembed_") for n in (1, 2)},
    },
    is_windowed=True,
)


@architecture("gemma3n_text", config=Gemma3n, gguf=GGUF, mlx=Mlx(is_windowed=True))
def forward(w: Weights, ids: Array, c: Gemma3n, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    rows = c.per_layer_vocab_size
    known = np.where(ids < rows, ids, 0)
    looked_up = embed_layers(known, w, "model.embed_tokens_per_layer.weight", rows, c.n_layers, c.d_per_layer)
    inputs, places = layer_inputs(x, looked_up, w, c), positions(ids, cache)
    seen = dict.fromkeys(seen_by(kind.mask) for kind in c.kinds)
    tables = {mask: rope_table(places, c.d_head, c.rope_of(mask)) for mask in seen}
    kept: Kept = {}
    streams = altup_streams(x, w, c.n_streams)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        mask = seen_by(kind.mask)
        streams, k, v = layer(streams, w_layer, cache_layer, c, kind, tables[mask], inputs, kept.get(mask))
        kept[mask] = k, v
    x = rms_norm(altup_join(streams, w), w, "model.norm", c.norm_eps)
    logits = unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)
    return logits if c.logit_cap is None else soft_cap(logits, c.logit_cap)


@step(Role.LAYER)
def layer(
    x: Array,
    w: Weights,
    cache: KVCache,
    c: Gemma3n,
    kind: WideKind,
    table: RopeTable,
    inputs: Array,
    kept: tuple[Array, Array] | None,
) -> tuple[Array, Array, Array]:
    """One block, which also passes on its keys and values: [T M D] -> [T M D], [S K H], [S K H]."""
    predicted = altup_predict(x, w.at("altup"), c)
    active = predicted[:, c.active_stream]
    y = rms_norm(active, w, "input_layernorm", c.norm_eps)
    around = laurel(y, w.at("laurel"), c)
    y, k, v = attention(y, w.at("self_attn"), cache, c, kind.mask, table, kept)
    active = (active + rms_norm(y, w, "post_attention_layernorm", c.norm_eps) + around) * 2**-0.5
    y = feed_forward(rms_norm(active, w, "pre_feedforward_layernorm", c.norm_eps), w.at("mlp"), c, kind)
    active = active + rms_norm(y, w, "post_feedforward_layernorm", c.norm_eps)
    x = altup_correct(predicted, active, w.at("altup"), c)
    scale = w("altup.correct_output_scale", c.d_model)
    first = x[:, c.active_stream] * scale if c.scales_correction else x[:, c.active_stream]
    y = rms_norm(layer_input(first, inputs[:, w.index], w, c), w, "post_per_layer_input_norm", c.norm_eps)
    return np.concatenate([x[:, :1], x[:, 1:] + y[:, None, :]], axis=1), k, v


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Gemma3n, kind: WideKind) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    gate = linear(x, w, "gate_proj", kind.d_ff)
    if kind.cut_off:
        gate = gaussian_top_k(gate, 1 - kind.cut_off)
    wide = activation(c.activation)(gate) * linear(x, w, "up_proj", kind.d_ff)
    return linear(wide, w, "down_proj", c.d_model)


@step(Role.LAUREL)
def laurel(x: Array, w: Weights, c: Gemma3n) -> Array:
    """A low-rank map parallel to attention, added to its input: [T D] -> [T R] -> [T D]."""
    y = linear(linear(x, w, "linear_left", c.d_laurel), w, "linear_right", c.d_model)
    return x + rms_norm(y, w, "post_laurel_norm", c.norm_eps)


@step(Role.ALTUP_STREAMS)
def altup_streams(x: Array, w: Weights, n_streams: int) -> Array:
    """The vector itself, and projections of it brought to its size: [T D] -> [T M D]."""
    others = [as_large(linear(x, w, f"model.altup_projections.{i}", x.shape[-1]), x) for i in range(n_streams - 1)]
    return np.stack([x, *others], axis=1)


@step(Role.ALTUP_JOIN)
def altup_join(x: Array, w: Weights) -> Array:
    """The mean of the first stream and of projections of the others brought to its size: [T M D] -> [T D]."""
    first = x[:, 0]
    names = (f"model.altup_unembed_projections.{i}" for i in range(x.shape[1] - 1))
    others = [as_large(linear(x[:, i + 1], w, name, x.shape[-1]), first) for i, name in enumerate(names)]
    return np.stack([first, *others], axis=1).mean(axis=1)


def as_large(x: Array, like: Array) -> Array:
    """The vectors with the root mean square of others: [T D], [T D] -> [T D]."""
    size = np.sqrt((like * like).mean(axis=-1, keepdims=True))
    return x * size / np.sqrt(np.maximum((x * x).mean(axis=-1, keepdims=True), LEAST_SQUARE))


@step(Role.ALTUP_PREDICT)
def altup_predict(x: Array, w: Weights, c: Gemma3n) -> Array:
    """Each stream plus a token's mixture of all streams: [T M D] -> [T M D]."""
    M = c.n_streams
    mixture = linear(modalities(x[:, c.active_stream], w, c), w, "prediction_coefs", M * M).reshape(x.shape[0], M, M)
    return np.einsum("tmd,tnm->tnd", x, mixture, optimize=True) + x


@step(Role.ALTUP_CORRECT)
def altup_correct(predicted: Array, active: Array, w: Weights, c: Gemma3n) -> Array:
    """Each stream plus its share of the layer's difference from the prediction: [T M D], [T D] -> [T M D]."""
    new = active - predicted[:, c.active_stream]
    shares = linear(modalities(active, w, c), w, "correction_coefs", c.n_streams) + 1
    return new[:, None, :] * shares[:, :, None] + predicted


def modalities(x: Array, w: Weights, c: Gemma3n) -> Array:
    """A number for each stream, computed from one: [T D] -> [T M]."""
    normed = rms_norm(x, w, "router_norm", c.norm_eps) * c.d_model**-1.0
    return np.tanh(linear(normed, w, "modality_router", c.n_streams))
