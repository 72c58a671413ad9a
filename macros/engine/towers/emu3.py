"""The vision tower of Emu3: VQGAN's encoder for films, which makes tokens of the text's vocabulary.

An image is shown as several equal frames, of which convolutions over time leave one. Each vector becomes the nearest of
a codebook, and its number there a token; one more token ends each row. The decoder, which draws images, is stored, and
nothing of it is computed. Source: transformers 5.23, modeling_emu3.py and image_processing_emu3.py (arXiv 2409.18869,
2012.09841).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, config, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import linear
from ..steps import Role, Ruling, step
from . import Grid, tower
from .patches import stored, whole_blocks
from .sounds import batch_norm
from .vqgan import Vqgan, block, coded, convolved, group_norm, halved, in_frames, swish

SLOWER, STEADY = 4, 3  # the frames that a convolution over time sees: where it halves their number, and elsewhere


@config
class Emu3Vision(Vqgan):
    """Hyperparameters of Emu3's VQGAN, in forward order."""

    n_frames: Size = key("temporal_downsample_factor", 4)
    d_base: Size = key("base_channels", 256)
    multipliers: list[int] = key("channel_multiplier", lambda c: [1, 2, 2, 4])
    attending: list[int] | None = key("attn_resolutions", lambda c: [3])
    d_model: Size = key("hidden_size", 1024)
    n_heads: Size = key("num_attention_heads", 1)
    d_latent: Size = key("latent_channels", 4)
    batch_eps: Positive = fixed(1e-5)
    d_code: Size = key("embed_dim", 4)
    n_codes: Size = key("codebook_size", 32768)
    # decoder
    n_drawn_channels: Size = key("out_channels", 3)

    def check(self) -> None:
        super().check()
        self.must_divide("n_heads", "d_model")
        levels = len(self.multipliers)
        attending = {levels - 1, *(level for level in self.attending or () if 0 <= level < levels)}
        if any(int(self.widths(level)[1]) != int(self.d_model) for level in attending):
            raise Problem(
                f"hidden_size = {int(self.d_model)}", "give the number of channels of the blocks with attention"
            )

    @property
    def n_halvings(self) -> int:
        """How often the number of frames is halved."""
        return int(self.n_frames).bit_length() - 1

    def attends(self, level: int) -> bool:
        return level in (self.attending or ())

    def grid(self, height: int, width: int) -> Grid:
        return whole_blocks(height, width, self.side, 1)

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        return tokens + int(self.grid(height, width).rows)


@tower("emu3.vq_config", config=Emu3Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Emu3Vision, cache: KVCache) -> list[Array]:
    """The codebook's vectors of an image, each a token of the text: [H W 3] -> [M E]."""
    tower = w.at("model.vqmodel")
    decoder(tower, c)
    encoder = tower.at("encoder")
    x = convolved(np.broadcast_to(x[None], (int(c.n_frames), *x.shape)), encoder, "conv_in", c.d_base)
    for level in range(len(c.multipliers)):
        down = encoder.at(f"down_block.down.{level}")
        _, width = c.widths(level)
        for number in range(int(c.n_blocks)):
            x = block(x, down.at(f"block.{number}"), c, width)
            if c.attends(level):
                y = group_norm(x, down, f"attn_norms.{number}", c.norm_eps)
                x = x + attention(y, down.at(f"attn.{number}"), c)
        if level < len(c.multipliers) - 1:
            x = halved(x, down.at("downsample"))
    middle = encoder.at("middle_block")
    x = block(x, middle.at("block_1"), c, x.shape[3])
    x = x + attention(group_norm(x, middle, "attn_norm", c.norm_eps), middle.at("attn_1"), c)
    x = block(x, middle.at("block_2"), c, x.shape[3])
    x = convolved(swish(group_norm(x, encoder, "norm_out", c.norm_eps)), encoder, "conv_out", c.d_latent)
    for number in range(c.n_halvings):
        x = swish(over_time(x, encoder.at(f"time_conv.{number}.conv.conv"), c.d_latent, SLOWER, 2))
    for number in range(int(c.n_blocks)):
        x = block_over_time(x, encoder.at(f"time_res_stack.{number}"), c)
    return [coded(over_time(x, tower.at("quant_conv.conv"), c.d_code, STEADY, 1, side=1), tower, c)]


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Emu3Vision) -> Array:
    """Let each place gather information from all places of its frame: [F R C D] -> [F R C D]."""
    F, R, C, D = x.shape
    flat = x.reshape(F * R * C, D)
    q, k, v = (linear(flat, w, name, D, bias=True).reshape(F, R * C, D) for name in ("q_proj", "k_proj", "v_proj"))
    mixed = in_frames(q, k, v, c.n_heads).reshape(F * R * C, D)
    return linear(mixed, w, "out_proj", D, bias=True).reshape(F, R, C, D)


@step(Role.LAYER)
def block_over_time(x: Array, w: Weights, c: Emu3Vision) -> Array:
    """Two convolutions over frames and places next to each other: [F R C D] -> [F R C D]."""
    y = x
    for number in (1, 2):
        y = swish(batch_norm(y, w.at(f"norm{number}"), c.batch_eps))
        y = over_time(y, w.at(f"conv{number}.conv"), c.d_latent, STEADY, 1)
    return x + y


def over_time(x: Array, w: Weights, width: int, frames: int, stride: int, side: int = 3) -> Array:
    """A convolution over frames and places next to each other, with a bias: [F R C I] -> [F/s R C O]."""
    kernel = w("weight", width, x.shape[3], frames, side, side)
    return convolve_frames(x, kernel, stride) + w("bias", width)


def _frames_rule(x: Array, kernel: Array, stride: int) -> Ruling:
    F, R, C = x.shape[:3]
    frames = (F + 2 - kernel.shape[2]) // stride + 1
    wide, channels, *sizes = kernel.shape
    products = frames * R * C * wide * channels
    for size in sizes:
        products = products * size
    return (frames, R, C, wide), products


@step(Role.CONVOLVE, rule=_frames_rule)
def convolve_frames(x: Array, kernel: Array, stride: int) -> Array:
    """Mix all channels over frames and places next to each other, at every `stride`-th frame: [F R C I], [O I T 3 3] ->
    [F/s R C O].

    Two empty frames come first, zeros stand around each, and their products count.
    """
    taps, size = kernel.shape[2], kernel.shape[3]
    around = size // 2, size // 2
    padded = np.pad(x, ((2, 0), around, around, (0, 0)))
    F, R, C = (x.shape[0] + 2 - taps) // stride + 1, x.shape[1], x.shape[2]
    total = np.zeros((F, R, C, kernel.shape[0]), np.float32)
    for t in range(taps):
        for i in range(size):
            for j in range(size):
                part = padded[t : t + (F - 1) * stride + 1 : stride, i : i + R, j : j + C]
                total += np.einsum("frci,oi->frco", part, kernel[:, :, t, i, j], optimize=True)
    return total


def decoder(w: Weights, c: Emu3Vision) -> None:
    """The tensors of the image decoder: the encoder's in reverse, with norms that depend on the codes."""
    latent, code, deepest = c.d_latent, c.d_code, c.widths(len(c.multipliers) - 1)[1]
    stored(w, "post_quant_conv.conv", latent, code, STEADY, 1, 1)
    w = w.at("decoder")
    for number in range(int(c.n_blocks)):
        for part in (1, 2):
            stored_batch_norm(w.at(f"time_res_stack.{number}.norm{part}"), latent)
            stored(w, f"time_res_stack.{number}.conv{part}.conv", latent, latent, STEADY, 3, 3)
    for number in range(c.n_halvings):
        stored(w, f"time_conv.{number}.conv.conv", latent, latent, 3, 3, 3)
    stored(w, "conv_in", deepest, latent, 3, 3)
    middle = w.at("middle_block")
    stored_block(middle.at("block_1"), c, deepest, deepest)
    stored_attention(middle, "attn_1", "attn_norm", c)
    stored_block(middle.at("block_2"), c, deepest, deepest)
    before = deepest
    for level in reversed(range(len(c.multipliers))):
        up, width = w.at(f"up_block.up.{level}"), c.widths(level)[1]
        for number in range(int(c.n_blocks) + 1):
            stored_block(up.at(f"block.{number}"), c, before, width)
            if c.attends(level):
                stored_attention(up, f"attn.{number}", f"attn_norms.{number}", c)
            before = width
        if level:
            stored(up, "upsample.conv", width, width, 3, 3)
    stored_norm(w.at("norm_out"), c, before)
    stored(w, "conv_out", c.n_drawn_channels, before, 3, 3)


def stored_block(w: Weights, c: Emu3Vision, before: int, width: int) -> None:
    """Two convolutions, each after its norm."""
    for part, inner in ((1, before), (2, width)):
        stored_norm(w.at(f"norm{part}"), c, inner)
        stored(w, f"conv{part}", width, inner, 3, 3)
    if before != width:
        stored(w, "nin_shortcut", width, before, 1, 1)


def stored_attention(w: Weights, name: str, norm: str, c: Emu3Vision) -> None:
    """Attention among places, and its norm."""
    stored_norm(w.at(norm), c, c.d_model)
    for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
        stored(w, f"{name}.{part}", c.d_model, c.d_model)


def stored_norm(w: Weights, c: Emu3Vision, width: int) -> None:
    """A norm whose scale and shift are made of the codes."""
    stored(w, "norm_layer", width)
    stored(w, "conv_y", width, c.d_code, 1, 1)
    stored(w, "conv_b", width, c.d_code, 1, 1)


def stored_batch_norm(w: Weights, width: int) -> None:
    """A norm by each channel's mean and spread in training."""
    for name in ("weight", "bias"):
        w(name, width)
    for name in ("running_mean", "running_var"):
        w.buffer(name, width)
    w.buffer("num_batches_tracked", whole=True)
