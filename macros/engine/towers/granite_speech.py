"""The audio tower of Granite Speech: a conformer, and a Q-Former that makes a few vectors of each window.

A moment sees those of its block. In the middle, the scores of characters are mapped back and added. Source:
transformers 5.24, modeling_granite_speech.py and feature_extraction_granite_speech.py (arXiv 2505.08699).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, activation, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, layer_norm, linear, sigmoid, silu, softmax
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .qformer import QFormer, qformer_of
from .qformer import encode as gather
from .sounds import batch_norm, convolve_each
from .whisper import FRAMES

PROJECTOR = "projector_config."


@config
class GraniteSpeechEncoder(TowerConfig):
    """Hyperparameters of Granite Speech's conformer and Q-Former, in forward order."""

    reads = "sound"
    beside = ("projector_config",)

    # sound: two frames are one moment
    n_bands: Size = key("input_dim", 160, also=("num_mel_bins",))
    d_model: Size = key("hidden_dim", 1024, also=("hidden_size",))
    # layers
    n_layers: Size = key("num_layers", 10, also=("num_hidden_layers",))
    norm_eps: Positive = fixed(1e-5)
    d_ff_factor: Size = key("feedforward_mult", 4)
    d_ff: Size = derived(lambda c: c.d_ff_factor * c.d_model)
    n_heads: Size = key("num_heads", 8, also=("num_attention_heads",))
    d_head: Size = key("dim_head", lambda c: c.d_model // c.n_heads)
    block: Size = key("context_size", 200)
    reach: Size = key("max_pos_emb", 512)
    conv_factor: Size = key("conv_expansion_factor", 2)
    d_conv: Size = derived(lambda c: c.conv_factor * c.d_model)
    taps: Size = key("conv_kernel_size", 15)
    n_characters: Size = key("output_dim", 42)
    # Q-Former
    window: Size = key("window_size", 15)
    downsample: Size = key("downsample_rate", 5)
    d_seen: Size = key(PROJECTOR + "encoder_hidden_size", lambda c: c.d_model)
    n_queries: Size = derived(lambda c: c.window // c.downsample)
    d_qformer: Size = key(PROJECTOR + "hidden_size", 768)
    n_qformer_layers: Size = key(PROJECTOR + "num_hidden_layers", 12)
    period: Size = key(PROJECTOR + "cross_attention_frequency", 2)
    n_qformer_heads: Size = key(PROJECTOR + "num_attention_heads", 12)
    qformer_eps: Positive = key(PROJECTOR + "layer_norm_eps", 1e-12)
    d_qformer_ff: Size = key(PROJECTOR + "intermediate_size", 3072)
    qformer_activation: str = key(PROJECTOR + "hidden_act", "gelu")
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset(
        f"""has_lora_adapter {PROJECTOR}hidden_dropout_prob {PROJECTOR}attention_probs_dropout_prob
        {PROJECTOR}max_position_embeddings {PROJECTOR}vocab_size {PROJECTOR}use_qformer_text_input""".split()
    )

    def check(self) -> None:
        self.must_divide("downsample", "window")
        self.must_divide("n_qformer_heads", "d_qformer")
        self.must_not_exceed("block", "reach")
        activation(self.qformer_activation)
        if int(self.d_seen) != int(self.d_model) * self.vectors_seen:
            width = int(self.d_model) * self.vectors_seen
            raise Problem(
                f"{PROJECTOR}encoder_hidden_size = {int(self.d_seen)}",
                f"give {width}, the width of the vectors it reads",
            )
        if int(self.n_layers) < 2:
            raise Problem(f"num_layers = {int(self.n_layers)}", "characters are scored in the middle: give at least 2")

    @property
    def vectors_seen(self) -> int:
        """The number of vectors that the Q-Former reads together for a moment."""
        return 1

    @property
    def kept(self) -> list[int]:
        """The layers whose vectors the Q-Former also reads; 0 are those before the first layer."""
        return []

    @property
    def kinds(self) -> list[str]:
        """The layer after which characters are scored, those whose vectors are kept, and the others."""
        middle, numbers = int(self.n_layers) // 2, range(1, self.n_layers + 1)
        return ["middle" if i == middle else f"kept {i}" if i in self.kept else "layer" for i in numbers]

    @property
    def qformer(self) -> QFormer:
        """The sizes of the Q-Former."""
        return qformer_of(self, self.n_qformer_heads)

    def moments(self, seconds: float) -> Grid:
        return Grid(max((int(seconds * FRAMES) + 1) // 2, 1))

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("granite_speech.encoder_config", config=GraniteSpeechEncoder)
def forward(w: Weights, x: Array, grid: Grid, c: GraniteSpeechEncoder, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text: [R B] -> [M D]."""
    encoder, projector = w.at("model.encoder"), w.at("model.projector")
    x = linear(x, encoder, "input_linear", c.d_model, bias=True)
    kept = [x] if 0 in c.kept else []
    for kind, w_layer, _ in encoder.layers("layers", c.kinds, cache):
        x = layer(x, w_layer, c)
        if kind == "middle":
            x = x + characters(x, encoder, c)
        kept += [x] if kind.startswith("kept") or (kind == "middle" and int(c.n_layers) // 2 in c.kept) else []
    x = np.concatenate([*kept, x], axis=-1)
    windows = (x.shape[0] + c.window - 1) // c.window
    x = np.pad(x, ((0, windows * c.window - x.shape[0]), (0, 0)))
    y = layer_norm(projector("query", 1, c.n_queries, c.d_qformer)[0], projector, "qformer.layernorm", c.qformer_eps)
    y = gather(y, x, projector.at("qformer"), c.qformer, cache, windows, shared=True)
    return [linear(y, projector, "linear", c.d_text, bias=True)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: GraniteSpeechEncoder) -> Array:
    """One conformer block: [R D] -> [R D]."""
    x = x + feed_forward(x, w.at("ff1"), c) * 0.5
    x = x + attention(x, w.at("attn"), c)
    x = x + convolution(x, w.at("conv"), c)
    x = x + feed_forward(x, w.at("ff2"), c) * 0.5
    return layer_norm(x, w, "post_norm", c.norm_eps)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: GraniteSpeechEncoder) -> Array:
    """Process each vector separately, in a wider space: [R D] -> [R F] -> [R D]."""
    x = linear(layer_norm(x, w, "pre_norm", c.norm_eps), w, "up_proj", c.d_ff, bias=True)
    return linear(silu(x), w, "down_proj", c.d_model, bias=True)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: GraniteSpeechEncoder) -> Array:
    """Let each moment gather information from those of its block: [R D] -> [R D]."""
    N, H, B, rows = c.n_heads, c.d_head, c.block, x.shape[0]
    number = (rows + B - 1) // B
    x = np.pad(layer_norm(x, w, "pre_norm", c.norm_eps), ((0, number * B - rows), (0, 0)))
    k, v = np.split(linear(x, w, "to_kv", 2 * N * H), 2, axis=-1)
    # blocks are treated as additional heads
    q, k, v = (
        part.reshape(number, B, N, H).transpose(1, 0, 2, 3).reshape(B, number * N, H)
        for part in (linear(x, w, "to_q", N * H), k, v)
    )
    there = np.arange(number * B, like=x).reshape(number, B) < rows
    hidden = np.broadcast_to(np.where(there, 0.0, -np.inf)[:, None, None, :], (number, N, 1, B))
    bias = distance_scores(q, w, c) + hidden.reshape(number * N, 1, B)
    mixed = attend(q, k, v, None, H**-0.5, bias).reshape(B, number, N * H).swapaxes(0, 1)
    return linear(mixed.reshape(number * B, N * H)[:rows], w, "to_out", c.d_model, bias=True)


@step(Role.RELATIVE_LOGITS)
def distance_scores(q: Array, w: Weights, c: GraniteSpeechEncoder) -> Array:
    """Each head's addition to a score by the distance (arXiv 1803.02155): [B N H] -> [N B B]."""
    at = np.arange(q.shape[0], like=q)
    profiles = w("rel_pos_emb.weight", 2 * c.reach + 1, c.d_head)
    profiles = np.take(profiles, at[:, None] - at[None, :] + c.reach, axis=0)
    return np.einsum("bnh,brh->nbr", q, profiles, optimize=True) * c.d_head**-0.5


@step(Role.FEED_FORWARD)
def convolution(x: Array, w: Weights, c: GraniteSpeechEncoder) -> Array:
    """Mix each channel over moments next to each other, gated before: [R D] -> [R 2C] -> [R D]."""
    x = layer_norm(x, w, "norm", c.norm_eps)
    x, gate = np.split(pointwise(x, w, "up_conv", 2 * c.d_conv), 2, axis=-1)
    kernel = w("depth_conv.conv.weight", c.d_conv, 1, c.taps)
    x = convolve_each(x * sigmoid(gate), kernel, int(c.taps) // 2)
    return pointwise(silu(batch_norm(x, w.at("batch_norm"), c.norm_eps)), w, "down_conv", c.d_model)


def pointwise(x: Array, w: Weights, name: str, width: int) -> Array:
    """A linear map, stored as a convolution: [R I] -> [R O]."""
    kernel = w(f"{name}.weight", width, x.shape[1], 1).reshape(width, x.shape[1])
    return np.einsum("ri,oi->ro", x, kernel, optimize=True) + w(f"{name}.bias", width)


@step(Role.FEED_FORWARD)
def characters(x: Array, w: Weights, c: GraniteSpeechEncoder) -> Array:
    """The shares of the characters, mapped back: [R D] -> [R C] -> [R D]."""
    shares = softmax(linear(x, w, "out", c.n_characters, bias=True))
    return linear(shares, w, "out_mid", c.d_model, bias=True)
