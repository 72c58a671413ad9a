"""A figure of states that the build has drawn side by side; a script lets a reader step through all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from ..kit.html import Html, tag


class State(NamedTuple):
    """A state of a figure: what the slider says, the drawing, and a sentence on it."""

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
    """Those states that are `shown`, by their places, side by side; the middle one is the reader's, or the last one of
    a story, whose states follow one another. `name` stands in the address, `label` before the slider. Where the
    drawings say it already, the sentence is not shown."""
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
