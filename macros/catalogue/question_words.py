"""Cuts a question into tokens, so that spelling something as one word or as several makes no difference.

    Qwen3-30B-A3B      qwen  3  30b  a3b
    2x RTX4090, 16k    2  x  rtx  4090  16k
    Q4_K_M             q4  k  m
    50,304             50304

A phrase is known by its tokens run together: `kv cache`, `KV-cache` and `kvcache` are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

SIZES = {"m": 10**6, "b": 10**9, "t": 10**12}  # of parameters
COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
BILLIONS = {"b": "b", "bn": "b", "billion": "b", "billions": "b", "trillion": "t", "trillions": "t"}
GROUPING = " '’\u00a0\u2009\u202f"  # between groups of three digits, besides commas and points


class Token(NamedTuple):
    """A lowercase word or number, its place in the question, and whether it directly follows the one before."""

    text: str
    start: int
    end: int
    is_joined: bool


class Number(NamedTuple):
    """A number with its suffix: `1.5k` is 15, 10 and `k`."""

    digits: int
    divisor: int
    suffix: str

    def times(self, factor: int) -> int:
        return self.digits * factor // self.divisor

    @property
    def whole(self) -> int:
        """The whole number that it represents: `8.192` is 8192 where only a whole number makes sense; 0 if it has
        decimals."""
        return self.digits if self.divisor in (1, 1000) else 0


def _run(chars: Sequence[str], start: int, is_digits: bool) -> int:
    """Where the run of digits or letters that starts at `start` ends."""
    end = start
    while end < len(chars) and (chars[end].isdigit() if is_digits else chars[end].isalpha()):
        end += 1
    return end


def _number_end(chars: Sequence[str], start: int) -> int:
    """The end of a number, including its groups of three digits and its decimals: `8,192`, `32 000`, `1.5`, `16,5`."""
    end = _run(chars, start, True)
    if start > 0 and (chars[start - 1].isalpha() or chars[start - 1] == "_"):
        grouping = ",._"
    else:
        grouping = ",._" + GROUPING
    first = end
    while end < len(chars) and chars[end] in grouping:
        more = _run(chars, end + 1, True)
        n = more - end - 1
        if n == 0:
            return end
        if chars[end] in GROUPING and (first - start > 3 or not _is_group(chars, end, more)):
            return end
        if chars[end] == "," and n != 3:
            is_list = more < len(chars) - 1 and chars[more] == "," and chars[more + 1].isdigit()
            is_list = is_list or (start > 0 and chars[start - 1] == ",")
            return more if end == first and n < 3 and not is_list else end
        if chars[end] == "_" and n != 3:
            return end
        end = more
    return end


def _is_group(chars: Sequence[str], end: int, more: int) -> bool:
    """Whether three digits after a space continue a number: `32 000`, `8 030 261 248`, but not `3 128`."""
    if more - end != 4 or (more < len(chars) and chars[more].isalpha()):
        return False
    is_last = more + 3 >= len(chars) or chars[more] != chars[end] or _run(chars, more + 1, True) != more + 4
    is_first = end < 4 or chars[end - 4] != chars[end]
    return not is_last or not is_first or "".join(chars[end + 1 : more]) == "000"


def _written(chars: Sequence[str]) -> str:
    """The text of a token: without digit separators, and with a point before its decimals."""
    word = "".join([c for c in chars if c != "_" and c not in GROUPING])
    whole, comma, rest = word.partition(",")
    digits = _run([*rest], 0, True)
    if comma and "," not in rest and (digits != 3 or whole == "0"):
        return f"{whole}.{rest}"  # `16,5`
    word = word.replace(",", "")
    groups = word.split(".")
    is_grouped = len(groups) > 2 and all(len(group) == 3 and group.isdigit() for group in groups[1:])
    return "".join(groups) if is_grouped and groups[0].isdigit() else word  # `1.000.000`


def tokens_of(text: str) -> list[Token]:
    """The tokens of a string, in order."""
    chars = list(text.lower().replace("×", "x"))
    found: list[Token] = []
    i = 0
    last = -1
    while i < len(chars):
        if not chars[i].isalnum():
            if chars[i] == "+" and i == last and len(found[-1].text) == 1:
                found.append(Token("plus", i, i + 1, True))  # `command r+`
            i += 1
            continue
        for end in _ends(chars, i):
            found.append(Token(_written(chars[i:end]), i, end, i == last))
            i, last = end, end
    return found


def with_billions(tokens: Sequence[Token]) -> list[Token]:
    """Tokens with each number of billions as one of them: `70 billion`, `7 b` -> `70b`, `7b`."""
    found: list[Token] = []
    for token in tokens:
        unit = BILLIONS[token.text] if token.text in BILLIONS else ""
        number = number_of(found[-1].text) if found and unit else None
        if number is None or number.suffix != "" or (token.text in ("b", "t") and number.digits > 999):
            found.append(token)
        else:
            found[-1] = Token(found[-1].text + unit, found[-1].start, token.end, found[-1].is_joined)
    return found


def _ends(chars: Sequence[str], start: int) -> list[int]:
    """The ends of the tokens that start at a letter or digit and have no space between them."""
    if not chars[start].isdigit():
        end = _run(chars, start, False)
        if end == start:
            return [start + 1]  # neither a letter nor a decimal digit
        if end - start > 1 or end == len(chars) or not chars[end].isdigit():
            return [end]
        end = _number_end(chars, end)  # `m3`, `v3.1`, `a22b`
        letters = _run(chars, end, False)
        return [letters] if letters == end + 1 else [end]
    end = _number_end(chars, start)
    letters = _run(chars, end, False)
    if letters == end or chars[end] != "x" or end - start > 3:
        return [letters]
    if letters > end + 1:
        return [end, end + 1]  # `8xH100`
    if letters == len(chars) or not chars[letters].isdigit():
        return [end, letters]  # `2x`
    second = _number_end(chars, letters)
    unit = "".join(chars[second : _run(chars, second, False)])
    return [second + len(unit)] if unit in ("b", "m") else [end, letters]  # `8x7b`, `2x24gb`


def chunks_of(text: str) -> list[tuple[int, int]]:
    """Where each run of characters other than spaces starts and ends."""
    found: list[tuple[int, int]] = []
    start = -1
    for i, c in enumerate(list(text) + [" "]):
        is_space = c in " \t\n\r"
        if is_space and start >= 0:
            found.append((start, i))
        start = -1 if is_space else i if start < 0 else start
    return found


def number_of(token: str) -> Number | None:
    """The number that a token starts with; None for a word, `8x7b` and a version with several points."""
    digits, suffix, places = "", "", -1
    for c in token:
        if c.isdigit() and suffix == "":
            digits += c
            places += 1 if places >= 0 else 0
        elif c == "." and places < 0 and digits and suffix == "":
            places = 0
        else:
            suffix += c
    if digits == "" or not digits.isascii() or len(digits) > 15 or not (suffix == "" or suffix.isalpha()):
        return None
    return Number(int(digits), 10 ** max(0, places), suffix)


def is_size(token: str) -> bool:
    """`8b`, `0.6b`, `8x7b`, `135m`."""
    number = number_of(token)
    if number is not None:
        return number.suffix in ("b", "m", "t")
    return token[:1].isdigit() and "x" in token and token.endswith("b")


def parameters_of(size: str) -> int:
    """`8b` -> 8,000,000,000; the product for `8x7b`; 0 for anything else."""
    times, x, each = size.partition("x")
    if x and times.isdigit():
        return int(times) * parameters_of(each)
    number = number_of(size)
    return number.times(SIZES[number.suffix]) if number is not None and number.suffix in SIZES else 0


def key_of(text: str) -> str:
    """A phrase's tokens, joined."""
    return "".join([token.text for token in tokens_of(text)])


def is_near(a: str, b: str) -> bool:
    """Whether the words differ by one inserted, deleted, replaced or swapped letter, or by a doubled letter
    elsewhere."""
    if abs(len(a) - len(b)) > 1:
        return False
    if a == b or without_doubles(a) == without_doubles(b):
        return True
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    x, y = a[start:], b[start:]
    is_swapped = len(x) > 1 and len(y) > 1 and x[0] == y[1] and x[1] == y[0] and x[2:] == y[2:]
    return x[1:] == y[1:] or x[1:] == y or x == y[1:] or is_swapped


def without_doubles(word: str) -> str:
    """`llama`, `lamma` -> `lama`."""
    return "".join([c for i, c in enumerate(word) if i == 0 or c != word[i - 1]])


def in_one_piece(tokens: Sequence[Token], gone: Sequence[bool], start: int, end: int) -> bool:
    """Whether none of the tokens has been read yet."""
    return end <= len(tokens) and not any(gone[start:end])


def joined(tokens: Iterable[Token]) -> str:
    return "".join([token.text for token in tokens])
