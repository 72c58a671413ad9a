"""A question with answers to choose from: the reader predicts, and each answer says whether it is right, and why."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import TypeAlias

from ...engine.errors import Problem, nearest
from ..kit.html import Html, html, tag

Texts: TypeAlias = Mapping[str, str]
RIGHT, WRONG = html("<b>Right.</b> "), html("<b>No.</b> ")
LEAST, MOST = 2, 4  # answers


def ask_first(question: str, answers: Texts, right: str) -> Html:
    """A question to predict: `answers` maps each answer to its explanation, `right` is one of them. It works without a
    script: each answer can be opened, which closes the others."""
    if not isinstance(answers, Mapping) or not LEAST <= len(answers) <= MOST:
        raise Problem("", f"give {LEAST} to {MOST} answers, each with its explanation").about("answers", answers)
    if right not in answers:
        raise Problem("", nearest(str(right), answers, "one of the answers")).about("right", right)
    if missing := [answer for answer, why in answers.items() if not str(why).strip()]:
        raise Problem("", "explain each answer").about("answers", missing[0])
    group = f"ask-{zlib.crc32(question.encode()):08x}"
    folds = [
        tag(
            "details",
            tag("summary", answer),
            tag("p", RIGHT if answer == right else WRONG, why),
            name=group,
            cls="ep-choice right" if answer == right else "ep-choice",
        )
        for answer, why in answers.items()
    ]
    return tag("div", tag("p", question, id=group), *folds, cls="ep-ask-first", role="group", aria_labelledby=group)
