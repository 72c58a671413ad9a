"""Draft heads for one target side by side: what each stores, reads from its target, and proposes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...catalogue.presets import make
from ...counting.accelerators import accelerator as listed
from ...counting.asked import share
from ...counting.conditions import Conditions
from ...counting.costs import Costs
from ...counting.formats import PUBLISHED
from ...counting.parts import LOOKED_UP
from ...counting.speculative import best_length, proposed_at_once
from ...engine.architectures import find
from ...engine.architectures.config import keys_of
from ...engine.architectures.drafts import KINDS
from ...engine.errors import Problem
from ..kit import disclosure, rounding
from ..kit.arguments import whole_number
from ..kit.conventions import caveat
from ..kit.html import Html, block, conventions, html, number, small
from .cells import context_or_usual, cost_table, formats_note, model_costs, sequences_text

OF_LAYERS = {
    "intermediate_size": "d_ff",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "n_kv_heads",
    "head_dim": "d_head",
}


def draft_head_table(
    target: str, on: str = "h100", acceptance: object = "0.8", context: int | None = None, batch: int = 1
) -> Html:
    """Draft heads of each kind with the sizes of a target: parameters, what they read from the target, KV cache, tokens
    proposed per step, and the largest speedup."""
    rate = share("acceptance", acceptance, may_be_zero=True)
    return _draft_head_table(target, on, rate, context, whole_number(batch, "batch"))


@memoized
@disclosure.view("its draft heads")
def _draft_head_table(model: Model, on: str, rate: Fraction, context: int | None, batch: int) -> Html:
    context, machine, target = context_or_usual(model, context), listed(on), model_costs(model)
    given = Conditions(context, batch, PUBLISHED, "bfloat16", 1, machine)
    rows = [[name, *_cells(head_of(model, kind), target, rate, given)] for kind, name in KINDS.items()]
    name, in_blocks = f"Draft heads of {model.name}", with_key("block_size")
    return block(
        cost_table(
            html("{} on {}, {}", name, machine.name, sequences_text(batch, context)),
            [
                "Head",
                number("Parameters of its own"),
                "Read from the target",
                number("KV cache per token"),
                number("Proposes per step"),
                number("Moved per step"),
                number(f"Speedup at best, acceptance {float(rate):g}"),
            ],
            rows,
            name,
        ),
        conventions(
            f"All with the target’s sizes. EAGLE and EAGLE-3 have one layer, and EAGLE-3 proposes one of "
            f"{with_key('draft_vocab_size')['draft_vocab_size']:,} tokens; Medusa has "
            f"{with_key('medusa_num_heads')['medusa_num_heads']} heads; DFlash has {in_blocks['num_hidden_layers']} "
            f"layers, reads as many of the target’s, and fills in blocks of {in_blocks['block_size']} tokens, of which "
            "one is known.",
            "The acceptance rate is the same for each head and token; measured rates differ.",
            html(
                "{}. Moved: weights, the target’s among them, and cache.", formats_note([model], PUBLISHED, "bfloat16")
            ),
            caveat([model.slug]),
        ),
    )


def _cells(head: Model, target: Costs, rate: Fraction, given: Conditions) -> list[Html | str]:
    """What a draft head has, reads, caches and saves for a target."""
    costs = model_costs(head)
    best = best_length(target, costs, rate, given)
    borrowed = head.counts.trace.borrowed.values()
    read = ["embedding" if role in LOOKED_UP else "LM head" for _, role in borrowed]
    of_target, own = sum(int(weight.count) for weight, _ in borrowed), head.counts.embedding
    in_heads = html("<br>{}", small(f"{rounding.short(own)} in LM heads")) if own else ""
    drafted = f"{best.drafted:,} draft token{'s' if best.drafted > 1 else ''}"
    return [
        html("{}{}", rounding.short(head.counts.total), in_heads),
        html("{}<br>{}", ", ".join(read), small(rounding.short(of_target))) if read else "–",
        rounding.decimal_bytes(head.counts.cache_bytes_per_token()) if head.counts.kept else "–",
        f"{proposed_at_once(costs):,}",
        rounding.decimal_bytes(costs.traffic.bytes_moved(1, given)),
        html("{}<br>{}", rounding.significant(best.speedup), small(drafted)),
    ]


def with_key(key: str) -> Mapping[str, Any]:
    """The config keys by which makers mark a kind of head, from configs for Llama 3.1 8B, Qwen3 8B and Vicuna."""
    return next(keys for keys in (find(kind).draft_keys for kind in KINDS) if key in keys)


def head_of(target: Model, kind: str) -> Model:
    """A draft head of the given kind, with the sizes of a target. Raises `Problem` for a target without them."""
    sizes = target.config.symbols
    heads = sizes.get("n_heads")
    usual = {"n_kv_heads": heads, "d_head": sizes["d_model"] // heads if heads else None}
    found = {name: sizes.get(name, usual.get(name)) for name in ("d_model", "vocab_size", *OF_LAYERS.values())}
    lacking = [name for name, size in found.items() if size is None]
    if lacking:
        raise Problem(f"{target.slug}: has no {lacking[0]}", "give a target with attention and a feed-forward network")
    raw = {"model_type": kind, "hidden_size": found["d_model"], "vocab_size": found["vocab_size"]}
    architecture = find(kind)
    known = keys_of(architecture.config)
    layers = {key: found[name] for key, name in OF_LAYERS.items() if key in known}
    own = {**architecture.draft_keys}
    if "draft_vocab_size" in own:
        own["draft_vocab_size"] = min(own["draft_vocab_size"], sizes["vocab_size"])
    return make(KINDS[kind], {**raw, **layers, **own})
