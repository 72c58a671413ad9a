"""A string as the words that find it: `Llama-3.1-8B` is llama, 3.1, 8b; `8,030,261,248` is one number."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

_BETWEEN = dict.fromkeys(map(ord, ",_\u2009\u202f"))  # groups of digits
_GROUPED = re.compile(r"(?<![\w.,])\d{1,3}(?:[,_\u2009\u202f]\d{3})+(?!\w)")
_WORD = re.compile(r"\w+(?:(?<=\d)\.(?=\d)\w+)*")
_LETTERS_AND_NUMBER = re.compile(r"([a-z]{2,})(\d.*)")

# Stop words.
STOP = frozenset(
    "a about all an and any are as at be been both but by can did do does each for from get give has have how i if in "
    "into is it its like many may me most much my no not of on one only or other our out own s same so some such than "
    "that the their them then there these they this those to too us use very was we were what when where which while "
    "who why will with would you your".split()
)


def words(text: str) -> list[str]:
    """The words of a string in order, each preceded by its compounds."""
    return [form for word in _WORD.findall(_ungrouped(text.lower())) for form in forms(word)]


def counted(text: str) -> dict[str, int]:
    """Like `words`, with the number of times that each occurs."""
    times: dict[str, int] = {}
    for word, n in Counter(_WORD.findall(_ungrouped(text.lower()))).items():
        for form in forms(word):
            times[form] = times.get(form, 0) + n
    return times


def _ungrouped(text: str) -> str:
    return _GROUPED.sub(lambda number: number[0].translate(_BETWEEN), text)


@cache
def forms(word: str) -> tuple[str, ...]:
    """The forms of a word: itself, then its parts. `q_proj` is also q and proj, `llama3` is llama and 3."""
    word = word.strip("_")
    whole = stem(word)
    parts = [part for part in word.split("_") if part]
    if len(parts) < 2:
        joined = _LETTERS_AND_NUMBER.fullmatch(word)
        parts = list(joined.groups()) if joined else []
    return tuple(form for form in (whole, *map(stem, parts)) if form and form not in STOP)


def stem(word: str) -> str:
    """A word without a plural ending and `ing`; the stem need not be a word, as long as all forms share it."""
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("s") and word[-2] not in "sui":
        word = word[:-1]
    return word[:-3] if word.endswith("ing") and len(word) > 5 else word
