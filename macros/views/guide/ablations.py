"""The small model's answer without one of the designs of its forward pass."""

from __future__ import annotations

import numpy as np

from ...cache.memory import memoized
from ...catalogue import capitals
from ...engine.errors import Problem, nearest
from ...engine.numbers import trace
from ...engine.ops import softmax
from ...engine.steps import Role
from ..kit.html import Html, Link, html, linked, number, table, tag
from . import real_numbers
from .live_numbers import FOLDER, TEXT, live
from .real_numbers import WITHOUT, Run
from .share_bars import share_bars

INSTEAD = {
    "scaling": "the scores as they are",
    "causal_mask": "every word looks at every word",
    "ln_1": "attention reads the residual stream as it is",
    "ln_2": "the feed-forward network reads the residual stream as it is",
    "ln_f": "the logits come from the residual stream as it is",
    "norms": "no vector is normalized",
    "residual_stream": "each part replaces what was there",
}


def ablation_table(country: str = "France", page_link: Link | None = None) -> Html:
    """The small model’s answer with each design left out in turn, and how many questions about a country it still
    answers: one for each kind of fact."""
    pages = {name: ask.address.rstrip("&?") for name in WITHOUT if (ask := live(page_link, without=name))}
    return _ablation_table(country, tuple(sorted(pages.items())))


def ablation_chart(text: str = TEXT) -> Html:
    """The probability that the small model gives its answer, in full and with each design left out in turn, as bars."""
    return _ablation_chart(text)


@memoized
def _ablation_chart(text: str) -> Html:
    whole = real_numbers.run(FOLDER, text)
    answer = int(np.argmax(whole.scores))
    rows = []
    for without in ("", *INSTEAD):
        here = real_numbers.run(FOLDER, text, without)
        name = f"without {WITHOUT[without]}" if without else "whole"
        best, _ = _best(here)
        shown = name if _token(whole, best) == answer else f"{name}: “{best}” instead"
        rows.append((shown, float(softmax(here.scores.astype(np.float64))[answer])))
    word = whole.asked.tokenizer.token(answer)
    said = (
        f"The probability of “{word}” after “{text}”, in the whole small model and with each design left out in turn."
    )
    return tag(
        "figure",
        tag("div", tag("div", share_bars(rows), cls="ep-bars"), cls="ep-three of-1"),
        tag("figcaption", said),
        cls="ep-figure",
    )


@memoized
def _ablation_table(country: str, pages: tuple[tuple[str, str], ...]) -> Html:
    facts = next((f for f in capitals.countries() if f["country"] == country), None)
    if facts is None:
        known = [f["country"] for f in capitals.countries()]
        mend = nearest(country, known, "it is not one of those that the model knows")
        raise Problem("", mend).about("country", country)
    kinds = {sentence.asks: sentence for sentence in reversed(capitals.sentences())}
    asked = [(sentence.prompt(facts), facts[kind]) for kind, sentence in reversed(kinds.items())]
    text, answer = asked[0]
    address, rows = dict(pages), []
    for without in ("", *INSTEAD):
        runs = [real_numbers.run(FOLDER, prompt, without) for prompt, _ in asked]
        best, share = _best(runs[0])
        right = sum(_best(run)[0] == fact for run, (_, fact) in zip(runs, asked))
        name = WITHOUT[without][:1].upper() + WITHOUT[without][1:] if without else "Nothing"
        shown = linked(name, without, address.get) if without in address else name
        shares = softmax(runs[0].scores.astype(np.float64))
        of_answer = float(shares[_token(runs[0], answer)])
        rows.append(
            [shown, INSTEAD.get(without, ""), best, _percent(share), _percent(of_answer), f"{right} of {len(asked)}"]
        )
    columns = [
        *("Left out", "Instead", "Most likely word", number("Its probability")),
        *(number(f"Probability of “{answer}”"), number(f"Questions about {country} answered")),
    ]
    name = f"“{text}”, with each design left out in turn"
    return table(name, columns, rows, name=name)


def _best(run: Run) -> tuple[str, float]:
    shares = softmax(run.scores.astype(np.float64))
    return run.asked.tokenizer.token(int(np.argmax(shares))), float(shares.max())


def _token(run: Run, word: str) -> int:
    return run.asked.tokenizer.encode(word)[0]


def ablated(what: str, without: str = "", text: str = TEXT) -> Html:
    """A figure of the small model without a design: its `answer` and `share`, the probability of its own `right`
    answer, the average `largest` attention weight of a word, the average weight on `later` words, the `change` of
    earlier logits as words follow, the typical `size` of a number in the last vector."""
    if what not in FIGURES:
        raise Problem("", nearest(what, FIGURES, f"one of {', '.join(FIGURES)}")).about("what", what)
    return html("{}", FIGURES[what](text, without))


def _answer(text: str, without: str) -> str:
    return _best(real_numbers.run(FOLDER, text, without))[0]


def _share(text: str, without: str) -> str:
    return _percent(_best(real_numbers.run(FOLDER, text, without))[1])


def _right(text: str, without: str) -> str:
    run, own = real_numbers.run(FOLDER, text, without), real_numbers.run(FOLDER, text)
    return _percent(float(softmax(run.scores.astype(np.float64))[int(np.argmax(own.scores))]))


def _weights(text: str, without: str) -> np.ndarray:
    """The attention weights: [layers, N, T, T]."""
    run = real_numbers.run(FOLDER, text, without)
    return np.array([run.trace.of(n.outputs[0]) for n in run.trace.root.walk() if n.role is Role.SOFTMAX])


def _largest(text: str, without: str) -> str:
    return f"{_weights(text, without)[:, :, 1:].max(-1).mean():.2f}"  # the first word can attend only to itself


def _later(text: str, without: str) -> str:
    weights = _weights(text, without)
    return _percent(float(np.triu(weights, 1).sum(-1)[:, :, :-1].mean()))


def _change(text: str, without: str) -> str:
    run = real_numbers.run(FOLDER, text, without)
    some = len(run.ids) // 2 + 1
    model = run.asked.model
    before, _ = trace(
        model.architecture,
        model.config,
        run.asked.weights(),
        run.ids[:some],
        without=[without] if without else (),
    )
    whole, part = (one.of(one.root.outputs[0]) for one in (run.trace, before))
    return f"{float(np.abs(whole[some - 1] - part[-1]).max()):.2f}"


def _size(text: str, without: str) -> str:
    run = real_numbers.run(FOLDER, text, without)
    last = [node for node in run.trace.root.children if node.role is Role.LAYER][-1]
    return f"{float(np.sqrt((run.trace.of(last.outputs[0])[-1] ** 2).mean())):.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


FIGURES = {
    "answer": _answer,
    "share": _share,
    "right": _right,
    "largest": _largest,
    "later": _later,
    "change": _change,
    "size": _size,
}
