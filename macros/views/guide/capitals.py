"""The small model `capitals`: its training data and results, the habits of its heads, and the form to try it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...cache.memory import memoized
from ...catalogue import capitals
from ...engine.errors import Problem, nearest
from ...engine.ops import softmax
from ...engine.steps import Role
from ..kit.html import Html, Link, number, table, tag
from ..kit.svg import ACCENT, DATA, element, svg
from . import real_numbers
from .live_numbers import FOLDER, PAGE, TEXT, live

SAMPLE = ("France", "Japan", "Peru")  # countries over which the heads' attention is averaged
BANDS = 2  # rows of countries in the grid
NAMED_FROM = 0.4  # minimum share for naming a head after its target
LOOKS_AT = {
    "name": "the name in the prompt",
    "question": "the word that says what is asked for",
    "itself": "the last word itself",
    "first": "the first word",
    "other": "other words",
}


def capitals_figure(what: str) -> str:
    """A figure of the small model: the number of `countries` or `sentences`, the `bytes` of its weights, and entries of
    the training’s log."""
    known = {
        "countries": f"{len(capitals.countries())}",
        "sentences": f"{len(capitals.sentences())}",
        "bytes": f"{(capitals.FOLDER / 'model.safetensors').stat().st_size:,}",
        **{name: _share(said) if "." in said else said for name, said in capitals.log().items()},
    }
    if what not in known:
        raise Problem("", nearest(what, known, f"one of {', '.join(known)}")).about("what", what)
    return known[what]


def _share(said: str) -> str:
    """A share from the log, rounded so that 100% means no error at all."""
    share = float(said)
    return "100%" if share == 1 else f"{min(100 * share, 99.9):.1f}%"


def learned_grid() -> Html:
    """Every combination of a country and a sentence as a cell: those in the training data, and those that the model
    never saw."""
    return _learned_grid()


@memoized
def _learned_grid() -> Html:
    sentences, countries = capitals.sentences(), capitals.countries()
    side, columns = 8, -(-len(countries) // BANDS)
    trained, unseen = [], []
    for i, facts in enumerate(countries):
        band, column = divmod(i, columns)
        for row, sentence in enumerate(sentences):
            cell = f"M{column * side} {(band * (len(sentences) + 2) + row) * side}h{side - 1}v{side - 1}h{1 - side}z"
            (unseen if capitals.is_left_out(facts, sentence) else trained).append(cell)
    drawn = [
        element("path", d="".join(trained), fill=DATA, fill_opacity=".35"),
        element("path", d="".join(unseen), fill=ACCENT),
    ]
    high = (BANDS * (len(sentences) + 2) - 2) * side
    said = (
        f"{len(countries)} countries, each a column of {len(sentences)} sentences. Blue: the {len(trained):,} "
        f"combinations of the training, of which the model answers {capitals_figure('trained')} correctly. Orange: the "
        f"{len(unseen)} that it never saw, of which it answers {capitals_figure('never trained')} correctly."
    )
    drawing = svg(high, tag("g", *drawn), "What the small model learned", said, columns * side)
    return tag("figure", tag("div", drawing, cls="ep-grid"), tag("figcaption", said), cls="ep-figure")


def sentence_table(country: str = "France", page_link: Link | None = None) -> Html:
    """The sentences that the model was trained on, filled in for a country: the prompt, and the right answer."""
    return _sentence_table(country, page_link(PAGE) if page_link else None)


def _sentence_table(country: str, page: str | None) -> Html:
    facts = next((f for f in capitals.countries() if f["country"] == country), None)
    if facts is None:
        known = [f["country"] for f in capitals.countries()]
        mend = nearest(country, known, "it is not one of those that the model knows")
        raise Problem("", mend).about("country", country)
    rows = []
    for sentence in capitals.sentences():
        here = _last_word(sentence.prompt(facts))
        shares = softmax(here.scores.astype(np.float64))
        best, share = int(np.argmax(shares)), f"{100 * shares.max():.1f}%"
        ask = live(lambda _: page, text=here.text)
        said = share if ask is None else ask.number(share, f"chance/{best}", not rows)
        rows.append([f"{here.text} …", facts[sentence.asks], real_numbers.opened(FOLDER).tokenizer.token(best), said])
    name = f"The sentences for {country}"
    return table(name, ["Prompt", "Fact", "Prediction", number("Probability")], rows, name=name)


@memoized
def head_habits() -> Html:
    """The tokens that each head attends to when the next word is the answer, averaged over all sentences and some
    countries; a head with a clear target is named after it."""
    measured = mean_attention()
    rows = []
    for (layer, head), shares in measured.items():
        most = max(shares, key=shares.__getitem__)
        habit = f"attends to {LOOKS_AT[most]}" if shares[most] >= NAMED_FROM and most != "other" else "no single habit"
        cells = [f"Layer {layer}, head {head}", habit, *(f"{100 * shares[kind]:.0f}%" for kind in LOOKS_AT)]
        rows.append(cells)
    columns = ["Head", "Habit", *(number(title[:1].upper() + title[1:]) for title in LOOKS_AT.values())]
    return table("What each head attends to", columns, rows, name="What each head attends to")


@memoized
def mean_attention() -> dict[tuple[int, int], dict[str, float]]:
    """The average attention weight that each head gives, from the last word before the answer, to words of each
    kind."""
    chosen = [facts for facts in capitals.countries() if facts["country"] in SAMPLE]
    telling, sums, n = _telling_words(), dict[tuple[int, int], dict[str, float]](), 0
    for sentence in capitals.sentences():
        for facts in chosen:
            here = _last_word(sentence.prompt(facts))
            kinds = [_kind(word, i, len(here.words), set(facts.values()), telling) for i, word in enumerate(here.words)]
            n += 1
            for layer, heads in enumerate(here.attention):
                for head, last in enumerate(heads):
                    known = sums.setdefault((layer, head), dict.fromkeys(LOOKS_AT, 0.0))
                    for kind, share in zip(kinds, last):
                        known[kind] += float(share)
    return {head: {kind: total / n for kind, total in known.items()} for head, known in sums.items()}


def _telling_words() -> frozenset[str]:
    """The words of sentences that ask for only one thing: `currency`, `pay`."""
    asks: dict[str, set[str]] = {}
    for sentence in capitals.sentences():
        for word in sentence.shape.split():
            asks.setdefault(word, set()).add(sentence.asks)
    return frozenset(word for word, things in asks.items() if len(things) == 1 and "{" not in word)


def _kind(word: str, place: int, length: int, facts: set[str], telling: frozenset[str]) -> str:
    if word in facts:
        return "name"
    if place == length - 1:
        return "itself"
    if word in telling:
        return "question"
    return "first" if place == 0 else "other"


class LastWord(NamedTuple):
    """The attention weights of a text's last word in each layer, [N S], and the scores of the next word, [V]."""

    text: str
    words: list[str]
    attention: list[np.ndarray]
    scores: np.ndarray


@memoized
def _last_word(text: str) -> LastWord:
    """The parts of a run that are needed for more texts than stay in memory."""
    here = real_numbers.run(FOLDER, text)
    weights = (here.trace.of(n.outputs[0]) for n in here.trace.root.walk() if n.role is Role.SOFTMAX)
    return LastWord(here.text, here.words, [of_layer[:, -1].copy() for of_layer in weights], here.scores.copy())


def choose_country(page_link: Link | None = None) -> Html:
    """The form in which a reader chooses a country and a sentence, and continues word by word; without a script, one
    example."""
    layer, head = strongest_head("name")
    return tag(
        "div",
        real_numbers.top_words(page_link=page_link),
        real_numbers.logit_lens(page_link=page_link),
        real_numbers.attention_table(layer, head, page_link=page_link),
        cls="ep-tool",
        data_tool="capitals",
        data_layer=layer,
        data_head=head,
    )


def head_that_looks_at(kind: str = "name") -> str:
    """The head that attends most to words of a kind, `name`, `question`, `itself` or `first`: `layer 1, head 2`."""
    if kind not in LOOKS_AT:
        raise _unknown_kind(kind)
    layer, head = strongest_head(kind)
    return f"layer {layer}, head {head}"


def attention_of(kind: str = "name", text: str = TEXT, page_link: Link | None = None) -> Html:
    """The attention weights of a text's tokens in the head that attends most to words of a kind."""
    if kind not in LOOKS_AT:
        raise _unknown_kind(kind)
    return real_numbers.attention_table(*strongest_head(kind), text, page_link=page_link)


def _unknown_kind(kind: str) -> Problem:
    return Problem("", nearest(kind, LOOKS_AT, f"one of {', '.join(LOOKS_AT)}")).about("kind", kind)


def strongest_head(kind: str) -> tuple[int, int]:
    """The layer and the head that attend most to words of a kind."""
    measured = mean_attention()
    return max(measured, key=lambda head: measured[head][kind])
