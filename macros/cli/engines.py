"""An engine's memory, for readers: the sentence, each term with how it is known, and the memory left for the cache; on
several devices, or with the engine's own options, also the figures of its log and its command line."""

from __future__ import annotations

from ..api.deployments import Served
from ..api.engines import EngineFit, said
from ..api.logs import LogReading
from ..counting import deploying
from ..counting.deployments import BY_SOURCE
from ..counting.engine_options import take
from ..counting.own_machine import memory_of
from ..counting.serving import How, Term
from ..engine.errors import Problem
from ..views.kit.rounding import grouped
from .printing import EXACT, ROUND, WORDS, Block, Column, Grid, Title

UNUSED = "  of which fragmentation"


def blocks(answer: EngineFit) -> list[Block]:
    """The answer for reading."""
    rows = []
    for t in answer.terms:
        figure = said(t.least, t.most, is_exact=t.how is How.EXACT)
        rows.append((t.name, t.how.value, figure, _digits(t.least, t.most, t.how)))
        if t.unused:
            rows.append((UNUSED, t.how.value, said(t.unused, t.unused, is_exact=True), grouped(t.unused)))
    rows += [
        ("total", "", said(answer.least, answer.most, is_exact=False), ""),
        ("memory that it may take", "", said(answer.limit, answer.limit, is_exact=True), grouped(answer.limit)),
    ]
    table = Grid((WORDS, Column(is_number=True), ROUND, EXACT), rows)
    options = " ".join(f"{name} {value}" for name, value in answer.serving.settings.items())
    return [answer.sentence, table, f"With {options}.", answer.advice]


def _digits(least: int, most: int, how: How) -> str:
    """Every digit of an exact figure; empty for any other."""
    return grouped(least) if how is How.EXACT and least == most else ""


# The options of `fits` itself that are allowed with an engine.
OF_FITS = (
    *("--format", "--context", "--batch", "--weights", "--format-weights", "--cache", "--dtype", "--on", "--devices"),
    *("--engine", "--engine-version", "--host", "--help", "-h"),
)


OF_TRAIN = ("--format", "--context", "--on", "--framework", "--help", "-h")


def own_words(given: list[str]) -> tuple[list[str], list[str]]:
    """The words of a `fits` call without its engine's options, and these options; empty for an unknown engine, or for
    one whose options are not known here."""
    option = "--engine" if given[0] == "fits" else "--framework"
    at = next(i for i, word in enumerate(given) if word.partition("=")[0] == option)
    name = given[at].partition("=")[2] or (given[at + 1] if at + 1 < len(given) else "")
    if name.lower() in deploying.FRAMEWORKS:
        own, rest = take(deploying.options_of(name.lower()), (), given[1:], OF_TRAIN)
        _check(name.lower(), own, rest, OF_TRAIN)
        return [given[0], *rest], own
    try:
        engine = deploying.named(name)
    except Problem:
        return given, []
    ignored = [name for name in deploying.ignored_by(engine) if name != "--host=" or not _names_memory(given)]
    own, rest = take(deploying.options_of(engine), ignored, given[1:], OF_FITS)
    _check(engine, own, rest, OF_FITS)
    return [given[0], *rest], own


def _check(engine: str, own: list[str], rest: list[str], others: tuple[str, ...]) -> None:
    """Reject an option that the engine does not have, before its value is mistaken for a model. Raises `Problem`."""
    if "-h" not in rest and "--help" not in rest:
        deploying.options(engine, own, others=others)


def _names_memory(given: list[str]) -> bool:
    """Whether --host is an amount of memory, rather than the address of a server."""
    for i, word in enumerate(given):
        name, equals, value = word.partition("=")
        if name == "--host":
            said = value if equals else given[i + 1] if i + 1 < len(given) else ""
            return memory_of(said.partition(",")[0]) is not None
    return False


def served_blocks(answer: Served) -> list[Block]:
    """The answer of an engine with its own options: devices, figures of its log, command line."""
    found: list[Block] = [answer.sentence]
    deployment = answer.deployment
    alike: list[tuple[str, object]] = []
    host = deployment.host
    places = deployment.places if host is None or host.limit is None else (*deployment.places, host)
    for i, place in enumerate(places):
        same = (place.name, place.terms, place.limit)
        if alike and alike[-1][1] == same:
            continue
        alike.append((str(i), same))
        rows: list[tuple[str, ...]] = [
            (t.name, t.how.value, _said(t), _digits(t.least, t.most, t.how)) for t in place.terms
        ]
        is_exact = place.least == place.most
        rows.append(("total", "", said(place.least, place.most, is_exact=is_exact), ""))
        if place.limit is not None:
            rows.append(
                ("memory that it may take", "", said(place.limit, place.limit, is_exact=True), grouped(place.limit))
            )
        number = sum(1 for other in deployment.places if (other.name, other.terms, other.limit) == same)
        named = f"device {i}: {place.name}" + (f", as {number - 1} more" if number > 1 else "")
        if place is host:
            named = "host memory"
        found += [Title(named if len(deployment.places) > 1 else place.name)]
        found.append(Grid((WORDS, Column(is_number=True), ROUND, EXACT), rows))
    found += [Title(f"as {deploying.TITLES[answer.engine]} prints it")]
    lines = [(f"{f.place}: {f.what}" if f.place else f.what, f.text, f.rule) for f in deployment.figures]
    found.append(Grid((WORDS, Column(is_number=True), Column(may_go=True)), lines))
    source = [f.what for f in deployment.figures if f.proof == BY_SOURCE]
    if source:
        found.append(
            f"By {deploying.TITLES[answer.engine]}’s source, without a printed figure that proves it: "
            f"{'; '.join(dict.fromkeys(source))}."
        )
    if deployment.advice:
        found.append(" ".join(deployment.advice))
    if deployment.notes:
        found.append(" ".join(deployment.notes))
    if deployment.command:
        found.append(answer.command)
    return found


def log_blocks(answer: LogReading) -> list[Block]:
    """A log that was parsed: each figure next to the computed one."""
    rows = [(str(row.line), row.what, row.printed, row.counted, row.state.value, row.why) for row in answer.replay.rows]
    columns = (
        Column("Line", is_number=True),
        Column("Figure"),
        Column("Printed", is_number=True),
        Column("Counted", is_number=True),
        Column("State"),
        Column("Why", may_go=True),
    )
    found: list[Block] = [answer.sentence]
    if rows:
        found.append(Grid(columns, rows))
    if answer.replay.advice:
        found.append(" ".join(answer.replay.advice))
    if answer.replay.deployment.notes:
        found.append(" ".join(answer.replay.deployment.notes))
    if answer.replay.deployment.command:
        found.append(answer.command)
    return found


def _said(term: Term) -> str:
    return said(term.least, term.most, is_exact=term.how is How.EXACT)
