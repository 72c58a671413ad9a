"""A prefix that sequences share, and speculative decoding, for programs and the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ..catalogue.models import Model
from ..counting.asked import share, whole
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.prefix import shared_prefix as shared
from ..counting.speculative import MOST_DRAFTED, Speculation
from ..counting.speculative import speculated as counted
from ..counting.speculative import vocabularies_differ as differing
from ..data.costs import plain_number
from ..engine.errors import Problem
from ..views.kit.rounding import significant
from . import model as loading
from .conditions import OWN, accelerator, conditions, problems_of, warn, warn_beyond
from .fits import Asked
from .tables import Row, Table, Tabular, table_of


def shared_prefix(model: Asked, prefix: int, context: int = 4096, batch: int = 2, cache: str = "bfloat16") -> Table:
    """Savings for a batch of sequences with the same first `prefix` tokens: bytes of the cache and FLOPs of prefill
    without sharing, with the prefix stored once, and the difference.

    FLOPs do not count masked pairs. A window shares the rows still in it, a recurrent state nothing. Raises `Problem`
    for a prefix that is not shorter than the context.
    """
    given = conditions(context, batch, cache=cache)
    return with_prefix(_read(model, given), prefix, given)


def with_prefix(read: Model, prefix: int, given: Conditions) -> Table:
    """The table of `shared_prefix`. Raises `Problem` for a prefix that is not shorter than the context."""
    length = whole("prefix", prefix, given.tokens - 1) if given.tokens > 1 else 0
    if not length:
        raise Problem("no prefix is shorter", "give a longer context").about("context", 1)
    found = shared(costs_of(read.counts), length, given)
    rows: list[Row] = [
        {
            "figure": "cache_bytes",
            "each": found.cache_bytes,
            "shared": found.shared_cache_bytes,
            "saved": found.saved_bytes,
        },
        {"figure": "prefill_flops", "each": found.flops, "shared": found.shared_flops, "saved": found.saved_flops},
    ]
    return Table(("figure", "each", "shared", "saved"), rows, caption=f"{read.name}, a prefix of {length:,} tokens")


@dataclass(frozen=True)
class Speculative(Tabular):
    """Speculative decoding with a target and a draft on a machine: expected tokens per step, minimum times in seconds,
    and the largest possible speedup over the target alone."""

    target: Model
    draft: Model | None
    given: Conditions
    found: Speculation

    def __repr__(self) -> str:
        return self.sentence

    @property
    def speedup(self) -> float:
        """The speedup over the target alone; below 1 it is slower."""
        return float(self.found.speedup)

    @property
    def tokens_per_step(self) -> float:
        """The expected tokens per step and sequence."""
        return float(self.found.tokens)

    @property
    def table(self) -> Table:
        return table_of([{"figure": name, "value": value} for name, value in self._figures.items()])

    @property
    def _figures(self) -> dict[str, Any]:
        s = self.found
        return {
            "tokens_per_step": plain_number(s.tokens),
            "draft_seconds": plain_number(s.draft_seconds),
            "verify_seconds": plain_number(s.verify.seconds),
            "step_seconds": plain_number(s.seconds),
            "seconds_per_token": plain_number(s.seconds_per_token),
            "plain_seconds_per_token": plain_number(s.plain.seconds),
            "tokens_per_second": plain_number(self.given.batch / s.seconds_per_token),
            "plain_tokens_per_second": plain_number(self.given.batch / s.plain.seconds),
            "speedup": plain_number(s.speedup),
            "draft_weight_bytes": self.draft_weight_bytes,
            "draft_cache_bytes": self.draft_cache_bytes,
            "draft_target_bytes": self.draft_target_bytes,
        }

    @property
    def draft_weight_bytes(self) -> int:
        """The draft's weights. For a head, only its own: the target's embedding and LM head, which it reads, are
        already there."""
        return costs_of(self.draft.counts).weight_bytes(self.given.format) if self.draft else 0

    @property
    def draft_cache_bytes(self) -> int:
        """The draft's KV cache for the batch."""
        if self.draft is None:
            return 0
        return self.draft.counts.cache_bytes(self.given.tokens, self.given.item_bytes) * self.given.batch

    @property
    def draft_target_bytes(self) -> int:
        """Bytes that a head reads from its target's embedding and LM head in each step; 0 for any other draft."""
        return (
            costs_of(self.draft.counts).traffic.target_bytes_read(self.given.batch, self.given.format)
            if self.draft
            else 0
        )

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter speculative --format json` prints."""
        return {
            "target": self.target.slug,
            "draft": self.draft and self.draft.slug,
            "conditions": {
                "context": self.given.tokens,
                "batch": self.given.batch,
                "weights": self.given.format,
                "cache": self.given.dtype,
                "devices": self.given.devices,
                "on": self.given.machine.name,
                "acceptance": float(self.found.acceptance),
                "draft_tokens": self.found.drafted,
            },
            **self._figures,
            "limited_by": self.found.verify.limited_by,
            "sentence": self.sentence,
        }

    @property
    def sentence(self) -> str:
        """The answer as a sentence."""
        draft = f"{self.draft.name} as its draft" if self.draft else "free drafts"
        several = f"{self.given.devices:,} × " if self.given.devices > 1 else ""
        each = f"{self.found.drafted:,} draft token{'s' if self.found.drafted > 1 else ''}"
        alone, now = (
            significant(self.given.batch / s) for s in (self.found.plain.seconds, self.found.seconds_per_token)
        )
        return (
            f"{self.target.name} with {draft} on {several}{self.given.machine.name}, {each} at an acceptance rate of "
            f"{float(self.found.acceptance):g}: a step gives {significant(self.found.tokens)} tokens; at most {now} "
            f"tokens per second instead of {alone}, a speedup of {significant(self.found.speedup)}."
        )


def speculated(
    target: Model, draft: Model | None, given: Conditions, acceptance: Fraction, draft_tokens: int | None
) -> Speculative:
    """The answer for this number of draft tokens, or the best one. Raises `Problem` if the target cannot be split."""
    with problems_of(target):
        found = counted(costs_of(target.counts), draft and costs_of(draft.counts), acceptance, draft_tokens, given)
    return Speculative(target, draft, given, found)


def vocabularies_differ(target: Model, draft: Model | None) -> tuple[str, ...]:
    """A warning if a draft's tokens do not match the target's."""
    return differing(costs_of(target.counts), draft and costs_of(draft.counts))


def speculative(
    target: Asked,
    draft: Asked | None,
    on: str,
    acceptance: float = 0.8,
    draft_tokens: int | None = None,
    context: int = 4096,
    batch: int = 1,
    weights: str = OWN,
    cache: str = "bfloat16",
    devices: int = 1,
) -> Speculative:
    """The bound on speculative decoding: a draft proposes tokens, one by one, and the target checks them in one step.

    Each proposed token is accepted with probability `acceptance`, independently of the others. Without `draft_tokens`
    the best number is used. Without a draft (None) proposals cost nothing, like tokens that are looked up in the text.
    For a mixture of experts, the number of experts read is the one that the tokens are expected to choose. Raises
    `Problem`.
    """
    weights = _format_of_both(target, draft, weights)
    given = replace(conditions(context, batch, weights, cache, devices), accelerator=accelerator(on))
    length = None if draft_tokens is None else whole("draft_tokens", draft_tokens, MOST_DRAFTED)
    first, second = _read(target, given), None if draft is None else _read(draft, given)
    warn(vocabularies_differ(first, second))
    return speculated(first, second, given, share("acceptance", acceptance, may_be_zero=True), length)


def _format_of_both(target: Asked, draft: Asked | None, weights: str) -> str:
    """The format that the names state, if they state one and agree; both models have one format."""
    first = loading.own_format(target, weights)
    if draft is None or (second := loading.own_format(draft, weights)) == first:
        return first
    warn([f"{first} and {second}: the names state two formats, and none is taken; give weights"], 4)
    return weights


def _read(model: Asked, given: Conditions) -> Model:
    read = loading.read(model)
    if not isinstance(model, loading.Model):
        warn(read.warnings, 4, of=read.name)
    warn_beyond(read, given.tokens)
    return read
