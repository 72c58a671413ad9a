"""The presets of a family, whose name has one spelling and one page."""

from __future__ import annotations

import datetime
from collections import Counter

from ..cache.memory import Compared, memoized
from ..engine.errors import Problem, shorten
from ..engine.files import place
from . import presets
from .names import family_slug
from .presets import FOLDER, family_of, paths, preset, readable


def verify_family(slug: str) -> None:
    """Raise `Problem` if at least as many presets spell the family differently: a family has one name and one page."""
    family = preset(slug).family
    spelt = spellings(family)
    mine = [other for other, spelling in spelt.items() if spelling == family]
    for spelling in dict.fromkeys(spelt.values()):
        others = [other for other in spelt if spelt[other] == spelling]
        if spelling != family and len(others) >= len(mine):
            folder = family_slug(spelling)
            moved = "" if folder == family_slug(family) else f", and move the file to macros/presets/{folder}"
            raise Problem(
                f"family = {shorten(family)}, and that of {place(paths()[others[0]])} is {shorten(spelling)}",
                f'write family = "{spelling}"{moved}',
            )


def verify_about(slug: str) -> None:
    """Raise `Problem` for a release date in the future, for a name of another preset, and for a maker whose name most
    presets capitalize differently."""
    mine = preset(slug)
    today = datetime.datetime.now(datetime.UTC).date() + datetime.timedelta(days=1)  # allows for time zones
    said = mine.released.isoformat() if isinstance(mine.released, datetime.date) else str(mine.released)
    if said > today.isoformat()[: len(said)]:
        raise Problem(f"released = {said} is in the future", "correct it: a preset describes a released model")
    if twice := next((other for other in _by_name()[mine.name] if other != slug), None):
        raise Problem(
            f"name = {shorten(mine.name)} is also the name of {place(paths()[twice])}",
            "give each a name of its own",
        )
    maker = mine.organization
    spelt = _by_maker()[maker.casefold()]
    usual, times = next((one for one in spelt.most_common() if one[0] != maker), (maker, 0))
    if times >= spelt[maker]:
        raise Problem(f"organization = {shorten(maker)}: other presets spell it {shorten(usual)}", f'write "{usual}"')


@memoized
def _by_name() -> dict[str, list[str]]:
    """The presets with each name."""
    named: dict[str, list[str]] = {}
    for slug in readable():
        named.setdefault(preset(slug).name, []).append(slug)
    return named


@memoized
def _by_maker() -> dict[str, Counter[str]]:
    """The spellings of each maker, with their number of presets."""
    spelt: dict[str, Counter[str]] = {}
    for slug in readable():
        maker = preset(slug).organization
        spelt.setdefault(maker.casefold(), Counter())[maker] += 1
    return spelt


def _wrong_about(_: str) -> dict[str, tuple[str, str]]:
    wrong: dict[str, tuple[str, str]] = {}
    for slug in readable():
        try:
            verify_about(slug)
        except Problem as problem:
            wrong[slug] = problem.what, problem.mend
    return wrong


_all_about = Compared("about presets", _wrong_about)  # unaffected by other changes of a preset


def wrong_about(slug: str) -> Problem | None:
    """The problem that `verify_about` finds for a preset, for builds, which check every one."""
    found = _all_about("").get(slug)
    return Problem(*found) if found else None


def spellings(family: str) -> dict[str, str]:
    """The presets whose folder has the letters of this family, ignoring hyphens, and the family of each."""
    alike = _by_letters().get(_letters(family_slug(family)), ())
    return {slug: spelt for slug in alike if (spelt := family_of(slug)) is not None}


def of_family(family: str) -> list[str]:
    """The readable presets of a family: only files in its folder and files in no family's folder are read."""
    own = [slug for slug, path in paths().items() if not path.is_relative_to(FOLDER)] if presets.also else []
    alike = {*_by_letters().get(_letters(family_slug(family)), ()), *own}
    return [slug for slug in sorted(alike) if family_of(slug) == family]


@memoized
def _by_letters() -> dict[str, list[str]]:
    """The presets of each folder, or of several whose names differ only in hyphens."""
    alike: dict[str, list[str]] = {}
    for slug, path in paths().items():
        alike.setdefault(_letters(path.parent.name), []).append(slug)
    return alike


def _letters(folder: str) -> str:
    return folder.replace("-", "")
