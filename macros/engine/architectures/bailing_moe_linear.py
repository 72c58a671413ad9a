"""Ring-linear 2.0: a few layers of lightning attention to one of Ling 2's, and Ling 2's experts.

Sources: arXiv 2510.19338; mlx-lm 0.32, models/bailing_moe_linear.py, whose tensor names are those of the published
files; for the decay, see `lightning.py`.
"""

from __future__ import annotations

from typing import Literal

from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Mixed, embed, feed_forward, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .bailing_moe import Ling2, attention, mixture_of_experts
from .config import Interval, Size, activation, config, derived, key
from .lightning import lightning_attention


@config
class RingLinear(Ling2):
    """Hyperparameters of Ring-linear 2.0, in forward order."""

    # layers
    layer_group_size: Interval = key("layer_group_size")
    # attention
    attention_bias: Literal[False] = key("use_qkv_bias", False)
    # linear attention
    n_linear_heads: Size = derived(lambda c: c.n_heads)
    d_linear_head: Size = derived(lambda c: c.d_head)
    activated: Literal[False] = key("linear_silu", False)
    n_norm_groups: Size = key("group_norm_size")

    def check(self) -> None:
        super().check()
        self.must_divide("n_norm_groups", "n_heads")
        if int(self.n_heads * self.d_head) != int(self.d_model):
            raise Problem(
                f"{self.key_of('n_heads')} × {self.key_of('d_head')} = {int(self.n_heads * self.d_head)}, and "
                f"{self.key_of('d_model')} = {int(self.d_model)}",
                "no model of this type that is read here has heads of another width",
            )

    @property
    def mixed(self) -> list[Mixed]:
        """In order: the token mixer, and whether a layer has experts. A group that is not whole has full attention."""
        whole = self.n_layers // self.layer_group_size * self.layer_group_size
        mixers = [
            "linear" if i < whole and (i + 1) % self.layer_group_size else "attention" for i in range(self.n_layers)
        ]
        return [Mixed(mixer, "moe" if kind.moe else "dense") for mixer, kind in zip(mixers, self.kinds)]


@architecture(
    "bailing_moe_linear",
    config=RingLinear,
    classes={"bailing_moe_linear": "BailingMoeLinearV2ForCausalLM"},  # inclusionAI/Ring-mini-linear-2.0, config.json
)
def forward(w: Weights, ids: Array, c: RingLinear, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.word_embeddings.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.mixed, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.word_embeddings.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: RingLinear, kind: Mixed, table: RopeTable) -> Array:
    """One block: [T D] -> [T D]."""
    mix = lightning_attention if kind.mixer == "linear" else attention
    x = x + mix(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("attention"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.feed_forward == "moe":
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
