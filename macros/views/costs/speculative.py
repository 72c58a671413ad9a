"""Speculative decoding on a page: the largest speedup that a draft can give a target."""

from __future__ import annotations

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.accelerators import accelerator as listed
from ...counting.asked import share
from ...counting.conditions import Conditions
from ...counting.formats import PUBLISHED
from ...counting.speculative import best_length, expected_tokens, speculation
from ...engine.errors import Problem
from ..kit import disclosure, rounding
from ..kit.arguments import item_bytes, several, weight_format, whole_number
from ..kit.conventions import caveat
from ..kit.html import Html, block, conventions, html, number, small
from .cells import context_or_usual, cost_table, formats_note, model_costs, sequences_text

ACCEPTANCES = ("0.5", "0.6", "0.7", "0.8", "0.9")
LENGTHS = (1, 2, 4, 8)


def speculative_table(
    target: str,
    draft: str | None = None,
    on: str = "h100",
    acceptances: object = ACCEPTANCES,
    lengths: object = LENGTHS,
    context: int | None = None,
    batch: int = 1,
    format: str = PUBLISHED,
    dtype: str = "bfloat16",
    devices: int = 1,
) -> Html:
    """The largest speedup of speculative decoding, by acceptance rate and number of draft tokens; without a draft, for
    proposals that cost nothing."""
    item_bytes(dtype)
    return _speculative_table(
        target,
        draft,
        on,
        tuple(share("acceptances", a, may_be_zero=True) for a in several(acceptances, "acceptances")),
        tuple(whole_number(n, "lengths", most=64) for n in several(lengths, "lengths")),
        context,
        whole_number(batch, "batch"),
        weight_format(format),
        dtype,
        whole_number(devices, "devices", most=1024),
    )


@memoized
@disclosure.view("its speedup by a draft")
def _speculative_table(
    model: Model,
    draft: str | None,
    on: str,
    rates: tuple,
    lengths: tuple,
    context: int | None,
    batch: int,
    format: str,
    dtype: str,
    devices: int,
) -> Html:
    proposing = disclosure.model(draft) if draft else None
    if draft and proposing is None:
        raise Problem(f"{draft}: its sizes are not known", "give another draft")
    context, machine = context_or_usual(model, context), listed(on)
    given = Conditions(context, batch, format, dtype, devices, machine)
    target, proposes = model_costs(model), proposing and model_costs(proposing)
    rows = []
    for rate in rates:
        best = best_length(target, proposes, rate, given)
        each = [speculation(target, proposes, rate, k, given) for k in lengths]
        rows.append(
            [
                f"{float(rate):g}",
                *(
                    html(
                        "{}<br>{}",
                        rounding.significant(s.speedup),
                        small(f"{rounding.significant(expected_tokens(rate, k))} tokens"),
                    )
                    for s, k in zip(each, lengths)
                ),
                html(
                    "{}<br>{}",
                    rounding.significant(best.speedup),
                    small(f"{best.drafted:,} draft token{'s' if best.drafted > 1 else ''}"),
                ),
            ]
        )
    columns = [f"{k:,} draft token{'s' if k > 1 else ''}" for k in lengths]
    name = f"{model.name} with {proposing.name if proposing else 'free drafts'}"
    several_devices = f"{devices:,} × " if devices > 1 else ""
    return block(
        cost_table(
            html(
                "Speedup at best: {} on {}{}, {}", name, several_devices, machine.name, sequences_text(batch, context)
            ),
            ["Acceptance", *map(number, columns), number("Best number")],
            rows,
            f"Speculative decoding of {name}",
        ),
        conventions(
            html("The expected tokens per step are below each speedup. {}.", formats_note([model], format, dtype)),
            "Minimum times of the draft’s steps, one per draft token, and of the target’s step over all of them plus "
            "one, with logits for each; all at the same context.",
            "Experts read: the number that so many tokens are expected to choose." if target.devices.has_routed else "",
            caveat([model.slug]),
        ),
    )
