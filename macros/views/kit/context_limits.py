"""Contexts beyond a model's own: the contexts of a table, the dagger on those that are too long, the note."""

from __future__ import annotations

from ...catalogue.models import Model
from .html import NOTHING, Html, html

CONTEXTS = tuple(2**k for k in range(10, 18))
PAST_MARK = html('<span class="ep-mark" title="beyond the context that the config allows">†</span>')
BEYOND = html(" {}", PAST_MARK)


def end_of_positions(model: Model) -> int | None:
    """The end of a learned position table, beyond which the model cannot compute; None for any other model."""
    end, is_hard = model.longest_context
    return end if is_hard else None


def contexts(model: Model) -> list[int]:
    """1K to 128K tokens, or up to the end of a learned position table."""
    end = end_of_positions(model)
    return list(CONTEXTS) if end is None else [c for c in CONTEXTS if c <= end] or [end]


def dagger(context: int, model: Model) -> Html:
    """The dagger after a context that exceeds the model's; empty for any other."""
    return BEYOND if model.is_beyond(context) else NOTHING


def limit_note(model: Model) -> Html | str:
    """The note below a table of several contexts: the model's longest context; empty if all are within it."""
    end, is_hard = model.longest_context
    if end is None:
        return ""
    if is_hard:
        return html("The position table ends at {:,} tokens.", end)
    return html("† beyond the {:,} tokens of the config.", end) if end < CONTEXTS[-1] else ""
