"""The small model writes: its most likely next words, the first of which is appended to the text, again and again."""

from __future__ import annotations

import numpy as np

from ...cache.memory import memoized
from ...engine.errors import Problem
from ...engine.ops import softmax
from ..kit.html import Html, html, tag
from . import real_numbers
from .live_numbers import FOLDER
from .share_bars import nearly, share_bars
from .stepped import State, stepped

SHOWN, MOST, TOP = 3, 12, 4


def writing_loop(text: str, words: int = 6) -> Html:
    """The small model's most likely next words after a text, and after each word that it adds; with a script, one step
    at a time."""
    if not SHOWN <= words <= MOST:
        raise Problem("", f"give a number from {SHOWN} to {MOST}").about("words", words)
    return _loop(text, words)


@memoized
def _loop(text: str, words: int) -> Html:
    states, so_far = [], text
    for step in range(words):
        here = real_numbers.run(FOLDER, so_far)
        shares = softmax(here.scores.astype(np.float64))
        best = [
            (here.asked.tokenizer.token(int(i)), float(shares[i])) for i in np.argsort(-shares, kind="stable")[:TOP]
        ]
        (added, share), before = best[0], so_far
        so_far = f"{so_far} {added}"
        states.append(
            State(
                f"Guess {step + 1}",
                tag("div", tag("p", tag("q", before), " ", tag("b", "…")), share_bars(best)),
                f"After “{before}”, the likeliest next word is “{added}”, with {nearly(share)}. It is added to the "
                f"text: “{so_far}”.",
            )
        )
    caption = html(
        "Each column is one pass through the small model of this site. The likeliest word is added, and the longer "
        "text goes through the model again."
    )
    return stepped("guess", "Guess", states, range(SHOWN), caption, is_story=True)
