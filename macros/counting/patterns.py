"""Regular expressions over names of tensors, in linear time, so that no untrusted pattern can hang.

Supports the syntax of `--override-tensor` patterns: literals, `.`, sets, groups, `|`, `*`, `+`, `?`, `{m,n}`, `^`, `$`,
and the escapes `\\b`, `\\d`, `\\w` and of any other character. Matches anywhere in the string, as `std::regex_search`
does.
"""

from __future__ import annotations

from ..engine.errors import Problem, shorten

LONGEST, MOST_STATES, MOST_TIMES = 1000, 4000, 64
ANY, START, END, SPLIT, DONE, BOUNDARY = "any", "start", "end", "split", "done", "boundary"
SPECIAL = "\\^$*+?{}[]()|"


class Pattern:
    """A pattern as states, each with the input that it accepts (a character, a set, or nothing) and its successors."""

    def __init__(self, text: str):
        """Raise `Problem` for a pattern that is broken, too long, or unsupported."""
        if len(text) > LONGEST:
            raise Problem(f"{shorten(text)}: a pattern of {len(text):,} characters", f"give at most {LONGEST}")
        self.text, self.at = text, 0
        self.kinds: list[str] = []
        self.sets: list[tuple[bool, list[tuple[str, str]]]] = []
        self.following: list[list[int]] = []
        first, last = self._either(0)
        if self.at < len(text):
            raise self._wrong("a ) without its (")
        self.first = first
        done = self._state(DONE)
        self.following[last].append(done)

    def _wrong(self, what: str) -> Problem:
        return Problem(f"{shorten(self.text)}: {what}", "correct the pattern")

    def _state(self, kind: str, members: list[tuple[str, str]] | None = None, is_not: bool = False) -> int:
        if len(self.kinds) >= MOST_STATES:
            raise self._wrong("too much is repeated")
        self.kinds.append(kind)
        self.sets.append((is_not, members or []))
        self.following.append([])
        return len(self.kinds) - 1

    def _either(self, depth: int) -> tuple[int, int]:
        """Alternatives: their first and last state."""
        if depth > 20:
            raise self._wrong("groups are nested too deeply")
        first, last = self._state(SPLIT), self._state(SPLIT)
        while True:
            begin, end = self._sequence(depth)
            self.following[first].append(begin)
            self.following[end].append(last)
            if self.at < len(self.text) and self.text[self.at] == "|":
                self.at += 1
                continue
            return first, last

    def _sequence(self, depth: int) -> tuple[int, int]:
        first = last = self._state(SPLIT)
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            start = self.at
            begin, end = self._atom(depth)
            least, most = self._times()
            stop = self.at
            if (least, most) == (1, 1):
                self.following[last].append(begin)
                last = end
                continue
            # expanded: the required repetitions, then the optional ones
            for i in range(max(least, 1 if most is None else most)):
                if i:
                    self.at = start
                    begin, end = self._atom(depth)
                    self._times()
                if i >= least:
                    rest = self._state(SPLIT)
                    self.following[last].append(rest)
                    self.following[last].append(begin)
                    self.following[end].append(rest)
                    last = rest
                else:
                    self.following[last].append(begin)
                    last = end
                if most is None and i == max(least, 1) - 1:
                    self.following[end].append(begin)
            self.at = stop
        return first, last

    def _times(self) -> tuple[int, int | None]:
        """The minimum and maximum repetitions of the last atom."""
        sign = self.text[self.at : self.at + 1]
        found: tuple[int, int | None] = (1, 1)
        if sign == "*":
            found = (0, None)
        elif sign == "+":
            found = (1, None)
        elif sign == "?":
            found = (0, 1)
        elif sign == "{":
            before, closed, _ = self.text[self.at :].partition("}")
            end = self.at + len(before) if closed else -1
            low, comma, high = self.text[self.at + 1 : max(end, self.at + 1)].partition(",")
            numbers = [part for part in (low, high) if part]
            if end < 0 or not low or any(not part.isascii() or not part.isdigit() or len(part) > 3 for part in numbers):
                raise self._wrong("a { that repeats nothing")
            most = None if comma and not high else int(high or low)
            if int(low) > MOST_TIMES or most is not None and (most > MOST_TIMES or most < int(low)):
                raise self._wrong(f"more than {MOST_TIMES} repetitions, or fewer than none")
            self.at = end + 1
            return int(low), most
        else:
            return found
        self.at += 1
        if self.text[self.at : self.at + 1] == "?":  # lazy quantifiers make no difference to a search
            self.at += 1
        return found

    def _atom(self, depth: int) -> tuple[int, int]:
        sign = self.text[self.at]
        self.at += 1
        if sign == "(":
            if self.text[self.at : self.at + 2] == "?:":
                self.at += 2
            elif self.text[self.at : self.at + 3] == "?P<":
                self.at += len(self.text[self.at :].partition(">")[0]) + 1  # the group's name
            elif self.text[self.at : self.at + 1] == "?":
                raise self._wrong("no rule is known for (?")
            first, last = self._either(depth + 1)
            if self.text[self.at : self.at + 1] != ")":
                raise self._wrong("a ( without its )")
            self.at += 1
            return first, last
        if sign in "*+?":
            raise self._wrong(f"a {sign} that repeats nothing")
        if sign == "[":
            one = self._set()
        elif sign == "\\":
            one = self._escaped()
        elif sign == ".":
            one = self._state(ANY)
        elif sign == "^":
            one = self._state(START)
        elif sign == "$":
            one = self._state(END)
        else:
            one = self._state("set", [(sign, sign)])
        return one, one

    def _escaped(self) -> int:
        if self.at >= len(self.text):
            raise self._wrong("ends with a \\")
        sign = self.text[self.at]
        self.at += 1
        if sign == "b":
            return self._state(BOUNDARY)
        members = CLASSES.get(sign.lower())
        if members is not None:
            return self._state("set", members, is_not=sign != sign.lower())
        if sign.isascii() and (sign.isdigit() or sign.lower() != sign.upper()):
            raise self._wrong(f"no rule is known for \\{sign}")
        return self._state("set", [(sign, sign)])

    def _set(self) -> int:
        is_not = self.text[self.at : self.at + 1] == "^"
        if is_not:
            self.at += 1
        members: list[tuple[str, str]] = []
        while True:
            if self.at >= len(self.text):
                raise self._wrong("a [ without its ]")
            sign = self.text[self.at]
            self.at += 1
            if sign == "]" and members:
                return self._state("set", members, is_not)
            if sign == "\\" and self.at < len(self.text):
                sign = self.text[self.at]
                self.at += 1
                if sign in CLASSES:
                    members += CLASSES[sign]
                    continue
            last = sign
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
                last = self.text[self.at + 1]
                self.at += 2
            members.append((sign, last))

    def is_in(self, text: str) -> bool:
        """Whether the pattern occurs anywhere in the string."""
        states: dict[int, bool] = {}
        for at in range(len(text) + 1):
            if self._add(states, self.first, at, text):
                return True
            if at == len(text):
                return False
            following: dict[int, bool] = {}
            for state in states:
                if self._takes(state, text[at]):
                    for one in self.following[state]:
                        if self._add(following, one, at + 1, text):
                            return True
            states = following
        return False

    def _takes(self, state: int, sign: str) -> bool:
        if self.kinds[state] == ANY:
            return True
        is_not, members = self.sets[state]
        return any(low <= sign <= high for low, high in members) != is_not

    def _add(self, states: dict[int, bool], first: int, at: int, text: str) -> bool:
        """Add a state and those that it reaches without input; returns whether one of them is final."""
        end = len(text)
        todo = [first]
        seen: dict[int, bool] = {}
        while todo:
            state = todo.pop()
            if state in seen or state in states:
                continue
            seen[state] = True
            kind = self.kinds[state]
            if kind == DONE:
                return True
            if (
                kind == SPLIT
                or (kind == START and at == 0)
                or (kind == END and at == end)
                or (kind == BOUNDARY and _is_word(text[max(at, 1) - 1 : at]) != _is_word(text[at : at + 1]))
            ):
                todo += self.following[state]
            elif kind in (ANY, "set"):
                states[state] = True
        return False


class Expression:
    """A regular expression that must match an entire name, as `re.fullmatch` does; lookaheads are allowed only at its
    start."""

    def __init__(self, text: str):
        """Raise `Problem` for one that is broken, too long, or unsupported."""
        rest = text.removeprefix("^")
        self.ahead: list[tuple[bool, Pattern]] = []
        while rest.startswith(("(?!", "(?=")):
            end = _closing(rest)
            self.ahead.append((rest[2] == "=", Pattern(f"^(?:{rest[3:end]})")))
            rest = rest[end + 1 :]
        self.whole = Pattern(f"^(?:{rest})$")

    def spells(self, name: str) -> bool:
        """Whether it matches the full name."""
        return all(pattern.is_in(name) == is_wanted for is_wanted, pattern in self.ahead) and self.whole.is_in(name)


def is_expression(text: str) -> bool:
    """Whether a name has characters that module names do not have."""
    return any(sign in SPECIAL for sign in text)


def _closing(text: str) -> int:
    """The position of the bracket that closes the first."""
    depth = 0
    for at in range(len(text)):
        if text[at] in "()" and text[max(at, 1) - 1 : at] != "\\":
            depth += 1 if text[at] == "(" else -1
            if depth == 0:
                return at
    raise Problem(f"{shorten(text)}: a ( without its )", "correct the pattern")


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


CLASSES = {
    "d": [("0", "9")],
    "w": [("a", "z"), ("A", "Z"), ("0", "9"), ("_", "_")],
    "s": [(" ", " "), ("\t", "\t")],
}
