"""A figure of several states that the build draws side by side; with a script, the reader steps through all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from ..kit.html import Html, tag


class State(NamedTuple):
    """A state of a figure: the slider's text, the drawing, and a sentence about it."""

    title: str
    drawn: Html
    said: str


def stepped(
    name: str,
    label: str,
    states: Sequence[State],
    shown: Sequence[int],
    caption: object,
    is_story: bool = False,
    is_said: bool = True,
) -> Html:
    """The states at the indices in `shown`, side by side; the middle one is the reader's, or the last one in a story
    whose states follow one another. `name` appears in the URL, `label` before the slider. If the drawings already say
    it, the sentence is not shown."""
    start = shown[-1 if is_story else len(shown) // 2]
    panels = [
        tag(
            "div",
            tag("p", states[i].title, cls="ep-panel-title"),
            tag("div", states[i].drawn, cls="ep-drawn"),
            cls="ep-bars lit" if i == start else "ep-bars",
        )
        for i in shown
    ]
    others = [tag("template", state.drawn, data_place=i) for i, state in enumerate(states)]
    return tag(
        "div",
        tag(
            "figure",
            tag("div", *panels, cls=f"ep-three of-{len(panels)}{' story' if is_story else ''}"),
            tag("p", tag("output", states[start].said), cls="ep-looks-at" if is_said else "ep-looks-at ep-hidden"),
            tag("div", cls="ep-controls one"),
            tag("figcaption", caption),
            cls="ep-figure",
        ),
        *others,
        cls="ep-tool",
        data_tool="stepped",
        data_name=name,
        data_label=label,
        data_start=start,
        data_states=json.dumps([[state.title, state.said] for state in states]),
    )
