"""Speculative decoding: a draft proposes tokens, the target checks them all in one step; the minimum time per token.

The acceptance rule preserves the target's distribution (Leviathan et al., arXiv 2211.17192; Chen et al., arXiv
2302.01318). If each of k proposed tokens is accepted with probability a, independently of the others, a step yields 1 +
a + … + aᵏ tokens: those before the first rejected one, plus one of the target's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from ..engine.errors import Problem
from .conditions import Conditions
from .costs import Bound, Costs, longer

MOST_DRAFTED = 64


class Speculation(Struct, frozen=True):
    """The minimum times of one step, with and without a draft: seconds for the whole batch."""

    acceptance: Fraction
    drafted: int
    plain: Bound
    draft: Bound | None
    verify: Bound
    at_once: int = 1

    @property
    def tokens(self) -> Fraction:
        """The expected number of tokens per sequence and step."""
        return expected_tokens(self.acceptance, self.drafted)

    @property
    def draft_seconds(self) -> Fraction:
        """The draft's steps, one for each proposed token, or one for all of them if it proposes several at once; 0 if
        proposals cost nothing."""
        return self.draft.seconds * -(-self.drafted // self.at_once) if self.draft else Fraction(0)

    @property
    def seconds(self) -> Fraction:
        """A whole step: the draft's steps, then the target's."""
        return self.draft_seconds + self.verify.seconds

    @property
    def seconds_per_token(self) -> Fraction:
        return self.seconds / self.tokens

    @property
    def speedup(self) -> Fraction:
        """The speedup over the target alone; below 1 it is slower."""
        return self.plain.seconds / self.seconds_per_token


def expected_tokens(acceptance: Fraction, drafted: int) -> Fraction:
    """1 + a + … + aᵏ, which is (1 − aᵏ⁺¹)/(1 − a) for a below 1."""
    return sum((acceptance**i for i in range(drafted + 1)), Fraction(0))


def vocabularies_differ(target: Costs, draft: Costs | None) -> tuple[str, ...]:
    """A warning if a draft's tokens do not match the target's, or if a draft head reads hidden states of another
    width."""
    if draft is None:
        return ()
    here, there = target.counts.values(), draft.counts.values()
    widths = here.get("d_model"), there.get("d_target", there.get("d_model"))
    found: tuple[str, ...] = ()
    if is_head(draft) and widths[0] != widths[1]:
        found = (f"hidden states of {widths[0]:,} and {widths[1]:,} numbers: the head was made for another target",)
    sizes = here.get("vocab_size"), there.get("vocab_size")
    if sizes[0] == sizes[1]:
        return found
    return (*found, f"vocabularies of {sizes[0]:,} and {sizes[1]:,} tokens: a draft needs the target's tokenizer")


def is_head(draft: Costs) -> bool:
    """Whether a draft is a head, which reads hidden states of its target."""
    return draft.trace.reads_target


def proposed_at_once(draft: Costs | None) -> int:
    """The number of tokens that one step of a draft proposes: one, or all of Medusa's heads, or of DFlash's block."""
    shape = draft.trace.root.outputs[0].shape if draft and is_head(draft) else ()
    return int(shape[1]) if len(shape) == 3 else 1


def most_drafted(draft: Costs | None, most: int = MOST_DRAFTED) -> int:
    """The maximum number of draft tokens per step of the target: a head that proposes several at once has no second
    step."""
    at_once = proposed_at_once(draft)
    return most if at_once == 1 else min(most, at_once)


def speculated(
    target: Costs, draft: Costs | None, acceptance: Fraction, drafted: int | None, given: Conditions
) -> Speculation:
    """The answer for this number of draft tokens, or for the best one. Raises `Problem` if the target cannot be
    split."""
    target.devices.check_split(given)
    if drafted is None:
        return best_length(target, draft, acceptance, given)
    return speculation(target, draft, acceptance, drafted, given)


def speculation(
    target: Costs, draft: Costs | None, acceptance: Fraction, drafted: int, given: Conditions
) -> Speculation:
    """The minimum time of a step on the given machine and devices; without a draft, proposals cost nothing.

    The target checks `drafted` + 1 tokens per sequence at once: it reads its weights once, but in a mixture of experts
    only the experts that this many tokens are expected to choose, and computes the logits of each. All steps are taken
    at the context.
    """
    if drafted > (most := most_drafted(draft)):
        raise Problem("more than this draft proposes at once", f"give at most {most}").about("draft_tokens", drafted)
    plain = target.bound(1, given, expected=True)
    return Speculation(
        acceptance,
        drafted,
        plain,
        draft and draft.bound(1, given, expected=True),
        _verify(target, drafted, given, plain),
        proposed_at_once(draft),
    )


def lengths(
    target: Costs, draft: Costs | None, given: Conditions, most: int = 16, asked: Sequence[int] = ()
) -> list[Speculation]:
    """The answers for each number of proposed tokens up to `most`, or for those in `asked`, at an acceptance rate of 1;
    the times do not depend on the rate."""
    able = range(1, min(most_drafted(draft, most), given.tokens - 1) + 1) or range(1, 2)
    at_once = proposed_at_once(draft)
    plain, proposes = target.bound(1, given, expected=True), draft and draft.bound(1, given, expected=True)
    always = Fraction(1)
    return [
        Speculation(always, k, plain, proposes, _verify(target, k, given, plain), at_once)
        for k in able
        if not asked or k in asked
    ]


def best_of(found: list[Speculation], acceptance: Fraction) -> Speculation:
    """The one with the minimum time per token at an acceptance rate."""
    return min((replace(one, acceptance=acceptance) for one in found), key=lambda s: s.seconds_per_token)


def best_length(
    target: Costs, draft: Costs | None, acceptance: Fraction, given: Conditions, most: int = 16
) -> Speculation:
    """The number of proposed tokens, up to `most`, with the minimum time per token."""
    return best_of(lengths(target, draft, given, most), acceptance)


def _verify(target: Costs, drafted: int, given: Conditions, plain: Bound) -> Bound:
    """The target's step over the proposed tokens and one more: the logits of all, not only of the last. If stages share
    the tokens, it takes at least as long as one token needs to pass through all of them, as in a `plain` step."""
    new = drafted + 1
    bound = target.bound(new, given if new <= given.tokens else given.at(new), expected=True)
    peak = given.machine.peak(*target.formats.types(given.format))
    memory = longer(bound.memory, plain.memory)
    if peak is None:
        return Bound(bound.compute, memory)
    compute, parts = bound.compute
    more, parts_of_more = target.compute.head_flops * drafted * given.batch, peak * target.devices.at_work(new, given)
    together = compute * parts_of_more + more * parts, parts * parts_of_more
    return Bound(longer(together, plain.compute), memory)
