"""LED: BART with an encoder that attends to nearby tokens.

Some tokens may see all others and be seen by all, by matrices of their own. Each text names these tokens; here none
does, and those matrices are stored and not used. Source: arXiv 2004.05150; tensor names as transformers.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..facts import Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import SlidingWindow, embed, embed_positions, layer_norm, linear, local_attention, unembed
from ..steps import Role, step
from . import architecture
from .bart import NORM_EPS, Bart, decoder_layer, feed_forward, project
from .config import Raw, Size, activation, config, fixed, key, listed
from .tasks import BASE, OWN


@config
class Led(Bart):
    """Hyperparameters of LED, in forward order."""

    n_source: Size = key("max_encoder_position_embeddings", 16384)
    n_positions: Size = key("max_decoder_position_embeddings", 1024)
    windows: list[int] = key("attention_window", lambda c: [512] * int(c.n_encoder_layers))
    reserved: int = fixed(0)
    scale_embedding: bool = fixed(False)
    trunk: str = fixed("led")

    caveat = (
        Bart.caveat + " Its tokens see those near to them; those that a text may name, and that see all others, are "
        "not counted."
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """One window for all layers as a list."""
        window = raw.get("attention_window")
        layers = raw.get("encoder_layers", raw.get("num_hidden_layers"))
        if isinstance(window, int) and isinstance(layers, int) and listed(window) is None:
            raw["attention_window"] = [window] * max(layers, 0)
        return raw

    def check(self) -> None:
        super().check()
        if len(self.windows) != self.n_encoder_layers or any(size < 2 or size % 2 for size in self.windows):
            raise Problem(
                f"attention_window = {self.windows[:5]}: expected an even number for each layer of the encoder",
                f"give one, or a list of {int(self.n_encoder_layers)}",
            )

    @property
    def encoder_masks(self) -> list[SlidingWindow]:
        """How far the encoder's layers attend, to both sides."""
        return [SlidingWindow(size // 2) for size in self.windows]

    def embedded(self, ids: Array, earlier: int, w: Weights, name: str) -> Array:
        stack, rows = w.at(f"led.{name}"), self.n_source if name == "encoder" else self.n_positions
        x = embed(ids, w, self.table(name), self.vocab_size, self.d_model)
        places = np.arange(x.shape[0], like=x) + earlier
        x = x + embed_positions(places, stack, "embed_positions.weight", rows, self.d_model)
        return layer_norm(x, stack, "layernorm_embedding", NORM_EPS)


HEADS = {
    "ForConditionalGeneration": OWN,
    "Model": BASE,
    "ForQuestionAnswering": Task("question answering", "find_answer", 2),
}


@architecture(
    "led", config=Led, heads=HEADS, peft=Peft(tied_tables=("led.encoder.embed_tokens", "led.decoder.embed_tokens"))
)
def forward(w: Weights, ids: Array, c: Led, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = c.embedded(ids, cache.length, w, "decoder")
    kinds = ["layer"] * c.n_decoder_layers
    for _, w_layer, kept in w.layers("led.decoder.layers", kinds, cache, "decoder", c.n_encoder_layers):
        x = decoder_layer(x, w_layer, c, kept, read)
    logits = unembed(x, w, c.head, c.vocabulary, last=last)
    c.spare(w)
    return logits + w.buffer("final_logits_bias", 1, c.vocabulary, counted=False)


def encode(source: Array, w: Weights, c: Led, cache: KVCache) -> Array:
    """The encoder's output for a text: [M] -> [M D]."""
    x = c.embedded(source, 0, w, "encoder")
    for mask, w_layer, _ in w.layers("led.encoder.layers", c.encoder_masks, cache, "encoder"):
        x = encoder_layer(x, w_layer, c, mask.size)
    return x


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: Led, reach: int) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    x = layer_norm(x + attention(x, w.at("self_attn"), c, reach), w, "self_attn_layer_norm", NORM_EPS)
    y = feed_forward(x, w, c.d_ff_encoder, activation(c.activation))
    return layer_norm(x + y, w, "final_layer_norm", NORM_EPS)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Led, reach: int) -> Array:
    """Let each token gather information from those near to it: [M D] -> [M D]."""
    own = w.at("longformer_self_attn")
    N, H = c.n_encoder_heads, c.d_encoder_head
    q, k, v = (project(x, own, name, N, H) for name in ("query", "key", "value"))
    for name in ("query_global", "key_global", "value_global"):
        own(f"{name}.weight", c.d_model, c.d_model)
        own(f"{name}.bias", c.d_model)
    mixed = local_attention(q * H**-0.5, k, v, reach, reach, None, [], None)
    return linear(mixed, w, "output", c.d_model, bias=True)
