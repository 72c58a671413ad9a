"""Inkling 2 Mini: Inkling 2, whose middle layers run several times and tell the next run what they found.

Each run begins with what the layers before the loop gave. Its queries, keys, values and experts also read a message, an
average of the blocks of the run before by their fit to trained queries, through gates of low rank. Source: the defaults
of transformers' Inkling2LoopTextConfig, which names thinkingmachines/Inkling-2-Mini; tensor names of transformers,
whose one table of queries the published files have in two: two of each layer's four in each, in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import embed, positions, rms_norm
from . import architecture
from .config import Interval, Positive, Raw, Size, config, derived, key, tabled
from .inkling2 import SPELLINGS, DepthKind, Inkling2, layer, scores_of
from .loops import FIRST, LATER, runs
from .tensor_layouts import FUSED, INKLING_EXPERTS

N_MESSAGES = 4
OF_LOOP = {
    "core_start": "loop_layer_index_start",
    "core_end": "loop_layer_index_end",
    "num_passes": "loop_num_passes",
    "gate_rank": "loop_gate_rank",
}


class RunKind(DepthKind, frozen=True):
    """The same of a run of a layer, and its number within the loop."""

    run: str

    def __str__(self) -> str:
        return f"{super().__str__()}, {self.run}" if self.run else super().__str__()


@config
class Inkling2Loop(Inkling2):
    """Hyperparameters of Inkling 2 Mini, in forward order. n_layers counts the runs of layers."""

    # layers
    n_stored_layers: Size = key("num_hidden_layers")
    loop_from: int = key("loop_layer_index_start", 6)
    loop_to: int = key("loop_layer_index_end", 18)
    loops: Interval = key("loop_num_passes", 3)
    n_loop_layers: Size = derived(lambda c: c.loop_to - c.loop_from)
    n_layers: Size = derived(lambda c: c.n_stored_layers + (c.loops - 1) * (c.loop_to - c.loop_from))
    layer_types: list[str] = key(
        "layer_types", lambda c: ["hybrid_sliding" if (i + 1) % 6 else "hybrid" for i in range(c.n_stored_layers)]
    )
    # attention
    grows_from: Positive = key("log_scaling_n_floor", 8192)
    # messages between runs of a layer
    gate_rank: Size = key("loop_gate_rank", 64)

    rewritten = Inkling2.rewritten | {"loop_config"}
    caveat = (
        "Some of its layers run several times for each token. Costs count every run, but of the bytes that are read "
        "each weight once."
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The table `loop_config` has the same keys under other names."""
        raw = super().prepare(raw)
        table = tabled(raw.pop("loop_config", None)) or {}
        return raw | {ours: table[theirs] for theirs, ours in OF_LOOP.items() if theirs in table}

    def check(self) -> None:
        super().check()
        first, last, every = self.loop_from, self.loop_to, max(self.block_layers, 1)
        if not 0 < first < last <= int(self.n_stored_layers) or first % every or last % every:
            raise Problem(
                f"the loop has layers {first} to {last} of {int(self.n_stored_layers)}, in blocks of {every}",
                "correct loop_layer_index_start or loop_layer_index_end: the loop has whole blocks, without the first",
            )
        if self.loops < 2:
            raise Problem(f"loop_num_passes = {self.loops}", "give at least 2, or it is inkling2_text")

    @property
    def order(self) -> list[int]:
        """The stored layer of each run, in order."""
        loop = list(range(self.loop_from, self.loop_to))
        return [*range(self.loop_from), *(loop * self.loops), *range(self.loop_to, int(self.n_stored_layers))]

    @property
    def kinds(self) -> Sequence[RunKind]:
        """In order: each run of a layer."""
        stored, size = self.by_depth(int(self.n_stored_layers)), int(self.n_loop_layers)
        of_runs = runs(int(self.n_layers), self.loop_from, size, self.loops)
        kinds = [stored[i] for i in self.order]
        return [RunKind(k.mask, k.blocks, k.begins, k.is_first, run) for k, run in zip(kinds, of_runs)]


@architecture(
    "inkling2_loop_text",
    config=Inkling2Loop,
    fused=FUSED,
    in_turn=INKLING_EXPERTS
    | {
        "middle_cycle_cross_pass_queries": ("message_input.query.0", "message_input.query.3"),
        "middle_cycle_cross_pass_kv_queries": ("message_input.query.1", "message_input.query.2"),
    },
    pieces={"message_input.query": ("message_input.query.{s}",)},
    spellings=(
        ("controllers.attn.", "q_message_gate."),
        *((f"controllers.{part}.", f"{part}_message_gate.") for part in ("k", "v", "mlp")),
        *SPELLINGS,
        ("_message_gate.down_weight$", "_message_gate.down_proj.weight"),
        ("_message_gate.gain_weight$", "_message_gate.message_gate_proj.weight"),
        ("_message_gate.forget_weight$", "_message_gate.forget_gate_proj.weight"),
    ),
)
def forward(w: Weights, ids: Array, c: Inkling2Loop, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    x = rms_norm(x, w, "model.embed_tokens.embed_norm", c.norm_eps)
    places, numbers = positions(ids, cache), dict(enumerate(c.order))
    queries = w("model.message_input.query", c.n_loop_layers, N_MESSAGES, c.d_model)
    blocks, found, before = list[Array](), list[Array](), (x, list[Array]())
    stored: dict[int, Weights] = {}
    for kind, w_run, cache_run in w.layers("model.layers", c.kinds, cache):
        number, asked = numbers[w_run.index], None
        if kind.run != LATER:
            stored[number] = w_run.beside("model.layers", numbers)
        else:
            asked = queries[number - c.loop_from]
        if number == c.loop_from and kind.run == FIRST:
            before = x, blocks
        elif number == c.loop_from:
            found = [*blocks[len(before[1]) + 1 :], x]
            x, blocks = before
        x, blocks = layer(x, w_run, stored[number], cache_run, c, kind, places, blocks, found, asked)
    return scores_of(x, blocks, w, c, last)
