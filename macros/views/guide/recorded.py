"""The recorded output of a published model: the next token at a temperature, the answer after each layer, a map of
words."""

from __future__ import annotations

from datetime import date
from math import exp

from ...catalogue import capitals
from ...catalogue.recordings import TEMPERATURES, Ending, recorded
from ...engine.errors import Problem, nearest
from ..kit import values
from ..kit.html import Html, Row, block, code, conventions, html, joined, number, table, tag
from ..kit.rounding import significant
from ..kit.svg import DATA, Frame, Scale, box_distance, element, label, svg
from ..kit.text_boxes import Box
from ..kit.text_width import text_width
from .number_tables import bar, percent, two

SHOWN = 8  # tokens
STATES = (0.5, 1.0, 2.0)  # temperatures of the static figure
ENDINGS = (0, 10, 20, 25, 27, 28, 29, 30)  # numbers of layers
# Countries that are labeled on the map if there is space.
FIRST = ("France", "Spain", "Italy", "Japan", "Peru", "Germany", "Austria", "Jamaica", "Egypt", "Russia")
WIDE, NARROW = Frame("wide", 640, 400, (34, 14, 590, 386)), Frame("narrow", 340, 400, (26, 14, 304, 386))
NAMED, ON_PHONES = 8, 5  # arrows whose ends are named, at most


def source_note() -> Html:
    """The model that was run, and how."""
    of = recorded().source
    day = values.date(date.fromisoformat(of.date))
    return conventions(
        f"Recorded from {of.model} on {day}: {of.file} from {of.package}, {of.licence}, SHA-256 {of.sha256[:12]}…, "
        "run by this site’s forward pass, without a chat template."
    )


# The next token


def share_at(token: str, temperature: float) -> float:
    """The probability of a recorded token at a temperature. Raises `Problem`."""
    of = recorded().next
    known = {name.strip(): logit for name, logit in of.top}
    if token not in known:
        raise Problem("", nearest(token, known, f"one of {', '.join(known)}")).about("token", token)
    if temperature not in TEMPERATURES:
        raise Problem("", f"one of {', '.join(map(str, TEMPERATURES))}").about("temperature", temperature)
    return exp(known[token] / temperature - of.log_sums[TEMPERATURES.index(temperature)])


def recorded_share(token: str, temperature: float = 1.0) -> str:
    """How likely the published model considered a token, at a temperature: `77.3%`."""
    return percent(share_at(token, temperature))


def recorded_next() -> Html:
    """A published model's most likely next tokens at three temperatures; with a script, at the one that the reader
    sets."""
    of = recorded().next
    tokens = [(name.strip(), logit) for name, logit in of.top if name.strip()][:SHOWN]
    rows = [
        [token, two(logit), *(percent(share_at(token, t)) for t in STATES), bar(share_at(token, 1.0))]
        for token, logit in tokens
    ]
    name = f"After “{of.text}”"
    heads = ["Token", number("Logit"), *(number(f"At {t:g}") for t in STATES), ""]
    return tag(
        "div",
        tag(
            "figure",
            table(name, heads, rows, name=name, cls="ep-table ep-top-words"),
            tag("div", cls="ep-controls one"),
            tag("figcaption", "The probability of the next token at three temperatures, by a published model."),
            cls="ep-figure",
        ),
        source_note(),
        cls="ep-tool",
        data_tool="recorded",
        data_figure="next",
        data_text=of.text,
        data_tokens="|".join(f"{token} {logit}" for token, logit in tokens),
        data_stops="|".join(f"{t:g} {total}" for t, total in zip(TEMPERATURES, of.log_sums)),
    )


# The answer after each layer


def recorded_layers() -> Html:
    """The published model’s answer if it ended after some of its layers; a click shows it after every layer."""
    of, rows = recorded(), recorded().layers.rows
    answer = of.next.top[0][0].strip()
    name = f"After “{of.next.text}”, as if it ended there"
    heads = ["Layers", "Likeliest token", number("Its probability"), number(f"{answer}"), ""]

    def row(ending: Ending) -> Row:
        cells = [f"{ending.layers}", _shown(ending.token), percent(ending.share), percent(ending.of_answer)]
        return Row([*cells, bar(ending.of_answer)])

    chosen = table(name, heads, [row(e) for e in rows if e.layers in ENDINGS], name=name, cls="ep-table ep-top-words")
    every = table(name, heads, [row(e) for e in rows], name=f"{name}, each layer", cls="ep-table ep-top-words")
    fold = html(
        '<details class="ep-fold"><summary>After each of its {} layers</summary>{}</details>', len(rows) - 1, every
    )
    return block(chosen, fold, source_note())


def _shown(token: str) -> Html | str:
    return token.strip() or html("<i>a space</i>")


# Two engines


def recorded_engines() -> Html:
    """Ten texts as this site's engine and llama.cpp continue them: equal tokens, and how far apart the scores are."""
    of = recorded().engines
    heads = [
        *("Text", "Continued", number("Equal, 32 bits"), number("Apart, 32 bits")),
        *(number("Equal, as shipped"), number("Apart, as shipped"), number("Apart, rounded here")),
    ]
    rows = [
        [
            *(code(one.text), one.answer.strip(), f"{one.same_unpacked}"),
            *(
                significant(one.far_unpacked, 2),
                f"{one.same_shipped}",
                f"{one.far_shipped:.2f}",
                f"{one.far_rounded:.2f}",
            ),
        ]
        for one in of.rows
    ]
    name = f"{len(rows)} texts, each continued by {of.tokens} tokens"
    return block(table(name, heads, rows, name=name), source_note())


def recorded_engine(what: str) -> str:
    """A figure of the comparison: `texts`, `tokens`, `first`, `version`; `alike` and `shipped`, the texts continued
    alike; `far`, `far_shipped` and `far_rounded`, the largest differences of a score."""
    of = recorded().engines
    known = {
        "texts": str(len(of.rows)),
        "tokens": str(of.tokens),
        "first": str(of.first),
        "version": of.llama_cpp_python,
        "alike": str(sum(one.same_unpacked == of.tokens for one in of.rows)),
        "shipped": str(sum(one.same_shipped == of.tokens for one in of.rows)),
        "far": significant(max(one.far_unpacked for one in of.rows), 2),
        "far_shipped": f"{max(one.far_shipped for one in of.rows):.2f}",
        "far_rounded": f"{max(one.far_rounded for one in of.rows):.2f}",
    }
    if what not in known:
        raise Problem("", nearest(what, known, f"one of {', '.join(known)}")).about("what", what)
    return known[what]


# The map of words


def recorded_map_figure(what: str) -> str:
    """A figure of the map: `words`, `arrows`, `explained`, `dimensions`, `cosine_in_plane` or `cosine_in_all`."""
    of = recorded().map
    known = {
        "words": str(len(of.words)),
        "arrows": str(len(_arrows())),
        "explained": f"{100 * sum(of.explained):.0f}%",
        "dimensions": str(of.dimensions),
        "cosine_in_plane": two(of.cosine_in_plane),
        "cosine_in_all": two(of.cosine_in_all),
    }
    if what not in known:
        raise Problem("", nearest(what, known, f"one of {', '.join(known)}")).about("what", what)
    return known[what]


def _arrows() -> dict[str, str]:
    """The countries and their capitals, where both are on the map."""
    there = {place.word for place in recorded().map.words}
    pairs = {f["country"]: f["capital"] for f in capitals.countries() if f["country"] != f["capital"]}
    return {a: b for a, b in pairs.items() if a in there and b in there}


def embedding_map() -> Html:
    """Countries and capitals by their rows in a published model’s embedding table, projected to two dimensions, with an
    arrow from each country to its capital; with a script, any word with its nearest neighbors."""
    of = recorded().map
    rows = [[place.word, joined(near, ", ")] for place, near in zip(of.words, of.nearest)]
    as_table = table("The nearest words in all dimensions", ["Word", "Nearest"], rows, name="Nearest words")
    caption = html(
        "Countries (circles) and capitals (squares). Each has a row of {} numbers in the table of {}; the map shows "
        "the two directions in which the rows differ most, {} of their variance.",
        of.dimensions, recorded().source.model, recorded_map_figure("explained"),
    )  # fmt: skip
    return block(
        tag(
            "div",
            tag(
                "figure",
                tag("div", _map(WIDE, NAMED), _map(NARROW, ON_PHONES), cls="ep-frames"),
                tag("p", tag("output", _near("Paris")), cls="ep-looks-at"),
                tag("div", cls="ep-controls one"),
                tag("figcaption", caption),
                cls="ep-figure ep-word-map",
            ),
            cls="ep-tool",
            data_tool="recorded",
            data_figure="map",
            data_words="|".join(place.word for place in of.words),
            data_nearest="|".join(",".join(near) for near in of.nearest),
        ),
        html('<details class="wide"><summary>The same as a table</summary>{}</details>', as_table),
        source_note(),
    )


def recorded_near(word: str) -> str:
    """The words of the map that are nearest to a given one in all dimensions: `London, France`."""
    of = recorded().map
    near = {place.word: near for place, near in zip(of.words, of.nearest)}
    if word not in near:
        raise Problem("", nearest(word, near, "a country or a capital on the map")).about("word", word)
    return ", ".join(near[word])


def _near(word: str) -> str:
    """The sentence below the map."""
    return f"Nearest to {word} in all {recorded().map.dimensions} dimensions: {recorded_near(word)}."


def _map(frame: Frame, named: int) -> Html:
    left, top, right, bottom = frame.plot
    places = {place.word: place for place in recorded().map.words}
    across, up = [p.x for p in places.values()], [p.y for p in places.values()]
    x, y = Scale(min(across), max(across), left, right, False), Scale(min(up), max(up), bottom, top, False)
    at = {word: (x(place.x), y(place.y)) for word, place in places.items()}
    order = {word: i for i, word in enumerate(places)}
    countries = {f["country"] for f in capitals.countries()}
    names = _named(at, named, right)
    drawn = []
    for country, capital in _arrows().items():
        (x1, y1), (x2, y2) = at[country], at[capital]
        kind = "named" if country in names else None
        ends = f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"
        drawn.append(element("path", d=ends, cls=kind, data_from=order[country], data_to=order[capital]))
    for word, (px, py) in at.items():
        if word in countries:
            drawn.append(element("circle", cx=px, cy=py, r="3.2", data_i=order[word]))
        else:
            drawn.append(element("rect", x=px - 2.8, y=py - 2.8, width="5.6", height="5.6", data_i=order[word]))
    drawn += [label(px, py, name, size=12, halo=True) for name, (px, py) in names.items()]
    title = "A map of countries and capitals"
    described = "An arrow leads from each country to its capital; most arrows point the same way."
    return svg(frame.height, element("g", *drawn, fill=DATA, cls="words"), title, described, frame.width, frame.cls)


def _named(at: dict[str, tuple[float, float]], most: int, right: float) -> dict[str, tuple[float, float]]:
    """The countries and capitals whose labels fit, each with the place where its label starts."""
    arrows, boxes, names = _arrows(), list[Box](), dict[str, tuple[float, float]]()
    for country in FIRST:
        pair = country, arrows[country]
        starts = [(at[word][0] + 7, at[word][1] + 4) for word in pair]
        taken = [(px, py - 11, px + text_width(word, 12.5), py + 3) for word, (px, py) in zip(pair, starts)]
        has_room = all(a[2] < right + 36 and box_distance(a, b) > 2 for a in taken for b in boxes)
        if has_room and len(names) < 2 * most:
            boxes += taken
            names |= dict(zip(pair, starts))
    return names
