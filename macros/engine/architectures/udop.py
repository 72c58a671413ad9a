"""UDOP: T5 for documents, whose encoder knows where on the page each token is.

Trained vectors of the corners of a token's box are added to its own, and attention adds to each score by the distance
in the text, across the page and down it. The patches of the page's image are tokens of the encoder, too, with boxes of
their own; what makes vectors of them is a tower. Source: arXiv 2212.02623; tensor names as transformers.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem, shorten
from ..facts import TABLES, Peft
from ..interface import Array, KVCache, Weights
from ..ops import embed, relative_bias, rms_norm
from ..steps import Keeps, Role, step
from . import architecture
from .config import Raw, Size, config, fixed, key
from .t5 import FIRST, T5, decode, encoder_layer
from .tasks import OWN

BOX = 4  # numbers: left, upper, right, lower, as shares of the page's sides
N_BUCKETS, LONGEST, OF_PAGE = 32, 128, 100  # of the encoder's tables, whatever the keys say; a page is so long
AXES = {"horizontal": (0, 2), "vertical": (1, 3)}  # the numbers of a box that locate a token
TABLE = "relative_attention_bias.weight"


@config
class Udop(T5):
    """Hyperparameters of UDOP, in forward order; the head is always the embedding, regardless of the key for tied
    tables."""

    n_places: Size = key("max_2d_position_embeddings", 1024)
    biases: list[dict[str, str]] = key("relative_bias_args", lambda c: [{"type": name} for name in ("1d", *AXES)])
    tied: bool = fixed(True)
    scaled: bool | None = fixed(None)

    source_kind = "token ids with their boxes"
    caveat = (
        "An encoder reads a page, and a decoder generates a text. The context is the decoder’s. The encoder reads as "
        "many tokens as it can in the first step; the vectors of the image are some of them."
    )
    ignored = T5.ignored | {"image_size", "num_channels", "patch_size", "scale_decoder_outputs", "tie_word_embeddings"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """A different activation than T5's under the same name."""
        return raw

    def check(self) -> None:
        super().check()
        if not self.biases or any(set(one) != {"type"} or one["type"] not in ("1d", *AXES) for one in self.biases):
            raise Problem(
                f"relative_bias_args = {shorten(self.biases)}",
                f"give tables with a type alone: {', '.join(('1d', *AXES))}",
            )
        if self.n_buckets != N_BUCKETS:
            raise Problem(
                f"relative_attention_num_buckets = {int(self.n_buckets)}",
                f"write {N_BUCKETS}: both stacks share the tables",
            )

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return self.n_source, 1 + BOX


HEADS = {"ForConditionalGeneration": OWN}


@architecture(
    "udop",
    config=Udop,
    heads=HEADS,
    peft=Peft(tied_tables=TABLES, tables=("relative_attention_bias",)),
)
def forward(w: Weights, ids: Array, c: Udop, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's tokens with their boxes [M 5] -> [T V], or [1 V] with
    `last`."""
    source = cache.source(c.n_source, 1 + BOX)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    for number in range(1, len(c.biases)):
        w(f"decoder.relative_bias.biases.{number}.{TABLE}", c.n_buckets, c.n_heads)  # which the decoder does not read
    return decode(ids, read, w, c, cache, last)


def encode(source: Array, w: Weights, c: Udop, cache: KVCache) -> Array:
    """The encoder's output for tokens with their boxes, each in the context of all: [M 5] -> [M D]."""
    box = source[:, 1:]
    x = embed(source[:, 0].astype(np.int64), w, "shared.weight", c.vocab_size, c.d_model)
    x = x + corners(box, w.at("encoder.cell_2d_embedding"), c)
    bias = distances(box, w.at("encoder"), c, 0)
    for number in range(1, len(c.biases)):
        bias = bias + distances(box, w.at("encoder"), c, number)
    for kind, w_layer, _ in w.layers("encoder.block", c.kinds[0], cache, "encoder"):
        x = encoder_layer(x, w_layer.at("layer"), c, bias, kind)
    return rms_norm(x, w, "encoder.final_layer_norm", c.norm_eps)


@step(Role.EMBED_POSITIONS, keeps=Keeps.NOTHING)
def corners(box: Array, w: Weights, c: Udop) -> Array:
    """The sum of the vectors of the positions of a box's four sides: [M 4] -> [M D]."""
    at = np.clip((np.clip(box, 0, 1) * (c.n_places - 1)).astype(np.int64), 0, c.n_places - 1)
    across = w("x_position_embeddings.weight", c.n_places, c.d_model)
    down = w("y_position_embeddings.weight", c.n_places, c.d_model)
    left, upper, right, lower = (np.take(table, at[:, i], axis=0) for i, table in enumerate((across, down) * 2))
    return left + upper + right + lower


def distances(box: Array, w: Weights, c: Udop, number: int) -> Array:
    """The bias that all layers add to their scores by one kind of distance: [M 4] -> [N M M]."""
    name = f"{FIRST}.{TABLE}" if number == 0 else f"relative_bias.biases.{number}.{TABLE}"
    axis = AXES.get(c.biases[number]["type"])
    if axis is None:
        here, longest, scale = np.arange(box.shape[0], like=box), LONGEST, None
    else:
        here, longest, scale = (box[:, axis[0]] + box[:, axis[1]]) / 2, OF_PAGE, OF_PAGE
    return relative_bias(here, here, w, name, c.n_buckets, c.n_heads, longest, to_both_sides=True, scale=scale)
