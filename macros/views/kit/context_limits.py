"""Contexts beyond a model's own: which contexts a table shows, the dagger behind one that is too long, the note."""

from __future__ import annotations

from ...catalogue.presets import Model
from .html import Html, html

CONTEXTS = tuple(2**k for k in range(10, 18))
PAST_MARK = html('<span class="ep-mark" title="beyond the context that the config allows">†</span>')


def end_of_positions(model: Model) -> int | None:
    """Where a learned position table ends: what lies behind it the model cannot compute; None for any other model."""
    end, is_hard = model.longest_context
    return end if is_hard else None


def contexts(model: Model) -> list[int]:
    """1K to 128K tokens; where a learned position table ends, up to there."""
    end = end_of_positions(model)
    return list(CONTEXTS) if end is None else [c for c in CONTEXTS if c <= end] or [end]


def dagger(context: int, model: Model) -> Html:
    """What stands behind a context that is beyond the model's; nothing behind any other."""
    return html(" {}", PAST_MARK) if model.is_beyond(context) else Html()


def limit_note(model: Model) -> Html | str:
    """The note below a table of several contexts: where the model's own ends; nothing where all are within."""
    end, is_hard = model.longest_context
    if end is None:
        return ""
    if is_hard:
        return html("The position table ends at {:,} tokens.", end)
    return html("† beyond the {:,} tokens of the config.", end) if end < CONTEXTS[-1] else ""
