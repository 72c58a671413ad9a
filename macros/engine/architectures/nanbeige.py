"""Nanbeige 4.2: Llama's layers, run several times, with the last norm after each run.

Every run of a layer keeps keys and values of its own. Source: Nanbeige/Nanbeige4.2-3B, modeling_nanbeige.py, whose
tensor names these are. What the code has in addition, and the published model lacks, is refused: hyper-connections,
attention over the depth, tables of n-grams, runs of some layers alone.
"""

from __future__ import annotations

from typing import Literal

from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Full, embed, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Interval, Size, config, derived, key
from .llama import Llama, attention, feed_forward


@config
class Nanbeige(Llama):
    """Hyperparameters of Nanbeige 4.2, in forward order. n_layers counts the runs of layers."""

    n_stored_layers: Size = key("num_hidden_layers")
    losses: list[float] | None = key("loop_loss_weights", None)
    loops: Interval = key("num_loops", 1)
    n_layers: Size = derived(lambda c: c.n_stored_layers * c.runs)
    norm_at_end: bool = key("skip_loop_final_norm", False)
    # off in the published model
    norms_heads: Literal[False] = key("qk_layernorm", False)
    splits_loops: Literal[False] = key("enable_double_loop_split", False)
    shares_keys: Literal[False] = key("loop_share_kv", False)
    hyper_connected: Literal[False] = key("enable_hyper_connection", False)
    constrained: Literal[False] = key("enable_mhc", False)
    over_depth: Literal[False] = key("enable_depth_attention", False)
    longest_ngram: int | None = key("emb_neighbor_num", None)

    caveat = (
        "Its layers run several times for each token. Costs count every run, but of the bytes that are read each "
        "weight once."
    )
    ignored = Llama.ignored | {"kv_channels"}

    @property
    def runs(self) -> int:
        """How often all layers run: the losses after earlier runs tell, and otherwise `num_loops`."""
        return len(self.losses) + 1 if self.losses else int(self.loops)

    def check(self) -> None:
        super().check()
        if self.longest_ngram is not None:
            raise Problem(f"emb_neighbor_num = {self.longest_ngram}: tables of n-grams are not read", "leave it out")

    @property
    def kinds(self) -> list[str]:
        """In order: each run of a layer."""
        return ["first run" if i < self.n_stored_layers else "later run" for i in range(self.n_layers)]


@architecture("nanbeige", config=Nanbeige, gguf="its maker’s own llama.cpp converts it, which was not read")
def forward(w: Weights, ids: Array, c: Nanbeige, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    stored: list[Weights] = []
    for kind, w_run, cache_run in w.layers("model.layers", c.kinds, cache):
        if kind == "first run":
            stored.append(w_run)
        elif not c.norm_at_end and w_run.index % c.n_stored_layers == 0:
            x = rms_norm(x, w, "model.norm", c.norm_eps)
        x = layer(x, w_run, stored[w_run.index % len(stored)], cache_run, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, of_layer: Weights, cache: KVCache, c: Nanbeige, table: RopeTable) -> Array:
    """One run of a transformer block; its weights are those of the first run: [T D] -> [T D]."""
    y = rms_norm(x, of_layer, "input_layernorm", c.norm_eps)
    x = x + attention(y, of_layer.at("self_attn"), cache, c, Full(), table)
    return x + feed_forward(rms_norm(x, of_layer, "post_attention_layernorm", c.norm_eps), of_layer.at("mlp"), c)
