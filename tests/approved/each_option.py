"""What each option of each engine changes, as approved text: an answer in full, and with each option what differs."""

from __future__ import annotations

from collections.abc import Iterator

from macros.catalogue import presets
from macros.counting import accelerators, cards, conditions, costs, deploying
from macros.counting.engine_options import BYTES, JSON, NUMBER, SHARE, SHARES, SWITCH, TEXT, TOKENS, WHOLE, Option
from macros.engine.errors import Problem

from .answers import digest

SOME = {WHOLE: ("2", "48"), NUMBER: ("0", "7"), TOKENS: ("3000", "40000"), SHARE: ("0.45",), BYTES: ("3GiB", "7.25GiB")}
SOME |= {SHARES: ("3,1",), JSON: ('{"method":"mtp","num_speculative_tokens":3}',)}
SOME |= {TEXT: ("draft-mtp", "blk.1.=CPU,exps=CPU")}
SHOWN = 60  # characters of what an option changes, before the digest of all of it


def said(engine: str, slug: str, words: list[str], on: str, length: int) -> dict[str, str]:
    """The lines of an answer: each device's terms, the figures of the log, the words, the remarks."""
    known = accelerators.accelerators()
    try:
        values, _ = deploying.options(engine, words)
        placed = cards.cards_of(on, known) if on else []
        of = costs.of(presets.model(slug).counts)
        found = deploying.deploy(engine, of, conditions.Conditions(4096), values, placed, longest=length)
    except Problem as problem:
        return {"refused": str(problem)}
    lines: dict[str, str] = {}
    devices = {f"device {number}": place for number, place in enumerate(found.places)}
    for name, place in {**devices, **({"host": found.host} if found.host else {})}.items():
        lines[f"{name} of"] = f"{place.name}, {place.limit}"
        lines |= {f"{name} {t.key}": f"{t.least}–{t.most} {t.unused} {t.how}: {t.name}: {t.rule}" for t in place.terms}
    figures = (*found.figures, *found.more)
    lines |= {f"prints {f.key} {f.place}": f"{f.text}: {f.what}: {f.rule}: {f.proof}" for f in figures}
    lines |= {"command": " ".join(found.command), "advice": "; ".join(found.advice), "notes": "; ".join(found.notes)}
    return lines | {"holds": f"{found.is_enough} {found.may_be_enough} {found.request}"}


def ways(option: Option) -> list[list[str]]:
    """The words of an option with several values."""
    if option.kind == SWITCH:
        return [[one] for one in (option.names[0], *option.off[:1])]
    return [[option.names[0], value] for value in option.choices or SOME[option.kind]]


def each_option(engine: str, slug: str, *base: str, on: str = "80GB", length: int = 131072) -> Iterator[str]:
    """The answer without further options, and with each what differs from it."""
    lines = said(engine, slug, [*base], on, length)
    yield from (f"{key}: {text}" for key, text in lines.items())
    for option in deploying.options_of(engine):
        for words in ways(option):
            other = said(engine, slug, [*base, *words], on, length)
            differ = [f"{key}: {text}" for key, text in other.items() if lines.get(key) != text and key != "command"]
            shown = "; ".join(differ + [f"without {key}" for key in lines if key not in other])
            whole = digest(shown + other.get("command", ""))
            changed = other.get("refused") or (f"{shown[:SHOWN]} {whole}" if shown else "the same")
            yield f"{' '.join(words)}: {changed}"
