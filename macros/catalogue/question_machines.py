"""The machine of a question: an accelerator by its name, an amount of memory, and how many there are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from .question_table import MAKERS
from .question_words import COUNTS, joined, number_of

OF_TWO = {"dual": 2, "double": 2, "pair": 2, "quad": 4, "single": 1, "x": 0}
GB, GIB, TB = "GB", "GiB", "TB"
MEMORY = {"g": GB, "gb": GB, "gib": GIB, "gig": GB, "gigs": GB, "gigabyte": GB, "gigabytes": GB} | {
    "tb": TB,
    "tib": "TiB",
    "mb": "MB",
    "mib": "MiB",
}
CARDS = ("rtx", "gtx", "rx", "arc", "radeon", "geforce", "quadro", "tesla")  # before the number of a card
OF_HOSTS = ("ram", "ddr", "ddr4", "ddr5", "system", "host")  # next to an amount that is not a device's
MACS = ("mac", "macbook", "imac", "macs")
PROCESSORS = ("xeon", "epyc", "threadripper", "core", "ryzen")
MOST = 2048  # devices that a number before a machine's name may be: `256 a100`
MOST_ALONE = 100  # devices that a number without a word for them may be
SERIES = ("a", "b", "h", "l", "m", "p", "v")  # before the number of a data center's card: `h800`
FORMS = ("nvl", "sxm", "pcie", "hbm")  # between a card and how many there are
LAPTOPS = ("laptop", "mobile", "notebook")


class Amount(NamedTuple):
    """An amount of memory as the tools write it, and its gigabytes; whether it is a host's, or a card's according to
    its word."""

    written: str
    gigabytes: Fraction
    typed: str
    start: int  # the index of its first token, and of the token after it
    end: int
    is_host: bool
    is_card: bool


class Machines:
    """Reads the machine of a question."""

    def __init__(self, reading: Any) -> None:
        self.reading, self.said = reading, reading.said  # `question.Reading`
        self.amounts: list[Amount] = []
        self.other_card = ""  # one that the table of machines lacks
        self.at = -1  # where the machine is named
        self.end = -1
        self.ends: dict[str, int] = {}  # by slug, where the names of several machines end

    # --- names --------------------------------------------------------------------------------------------------------

    def read(self, is_early: bool) -> None:
        """The machine that is named, trying longer names first, then its rivals; if early, only names that no model
        has."""
        if self.said.on is not None or self.other_card:
            return
        r = self.reading
        best = (0, "", 0)
        sure: list[tuple[int, str, int]] = []
        for start, slug, n in r.phrases("machine"):
            key = joined(r.tokens[start : start + n])
            is_sure = n > 1 or (len(key) > 3 and any(c.isdigit() for c in key))
            sure += [(start, slug, n)] if is_sure else []
            if (is_sure or not is_early) and n > best[2]:
                best = (start, slug, n)
        start, slug, n = best
        if not n:
            self._read_unlisted()
            if not is_early and not self.other_card:
                self._read_series()
            if not is_early and not self.other_card:
                self._read_other_card()
            return
        self.count_before(start)
        r.use(start, start + n)
        name = r.grammar.machines[slug].name
        is_card = name.startswith("GeForce") or r.has(start + n, "mobile") or r.has(start - 1, "mobile")
        if is_card and any(word in LAPTOPS for word in r.words()):
            self.said.why_on = (
                f"A laptop's {name} has less memory than the card of that name: give its memory, as 16 GB."
            )
            self.other_card = f"laptop’s {name}"
            return
        self.said.on, self.said.on_name = slug, name
        self.at, self.end = start, start + n
        self.ends[slug] = self.end
        self._read_rivals([one for one in sure if one[1] != slug])
        self._name_other_cards()

    def _read_rivals(self, sure: list[tuple[int, str, int]]) -> None:
        """Read the other machines that a question names, each with its count."""
        r, many = self.reading, self.said.devices
        for start, slug, n in sure:
            self.said.devices = None
            self.count_before(start)
            r.use(start, start + n)
            self.ends[slug] = start + n
            if all(other != slug for other, _, _ in self.said.rivals):
                self.said.rivals.append((slug, r.grammar.machines[slug].name, self.said.devices))
        self.said.devices = many

    def _read_unlisted(self) -> None:
        """Read a machine that people ask about and whose figures are not known: `Raspberry Pi 5`."""
        r = self.reading
        for start, _, n in r.phrases("unknown_machines"):
            end = start + n
            number = number_of(r.tokens[end].text) if end < len(r.tokens) and not r.gone[end] else None
            is_unit = end + 1 < len(r.tokens) and r.tokens[end + 1].text in MEMORY
            if number is not None and number.suffix == "" and number.digits < 100 and not is_unit:
                end += 1
            if r.tokens[start].text not in PROCESSORS:  # in `dual xeon`, the memory is that of both
                self.count_before(start)
            self._is_other(start, end)
            return

    def _read_series(self) -> None:
        """Read a data center card by a name that no machine has: `H800`."""
        r = self.reading
        for i, token in enumerate(r.tokens):
            digits = token.text[1:]
            is_card = token.text[:1] in SERIES and digits.isdigit() and 1 < len(digits) < 5 and digits[0] != "0"
            is_named = r.has(i - 1, *CARDS) or r.grammar.find("machine", token.text, 1) is not None
            if is_card and not r.gone[i] and not is_named:
                self.count_before(i)
                self._is_other(i, i + 1)
                return

    def _read_other_card(self) -> None:
        """Read a card by a name that no machine has: `RTX 4060`."""
        r = self.reading
        for i, token in enumerate(r.tokens):
            if r.gone[i] or not r.has(i - 1, *CARDS):
                continue
            number, is_lettered = number_of(token.text), number_of(token.text[1:]) is not None
            if not (token.text[:1].isalpha() and is_lettered):
                if number is None or number.suffix != "" or number.digits < 100:
                    continue
            end = i + 1
            while r.has(end, "ti", "super", "xt", "xtx"):
                end += 1
            self.count_before(i - 1)
            self._is_other(i - 1, end)
            return

    def _name_other_cards(self) -> None:
        """Report as unused the cards next to the chosen one whose names no machine has."""
        said, end = self.said, self.end
        why = said.why_on
        self._read_other_card()
        if self.other_card:
            said.unused.append(self.other_card)
        self.other_card, self.end, said.why_on = "", end, why

    def _is_other(self, start: int, end: int) -> None:
        r = self.reading
        self.other_card = r.typed(start, end)
        self.said.other_card = self.other_card
        self.said.why_on = f"No machine here is called {self.other_card}: give its memory, as 8 GB."
        r.use(start, end)
        self.end = end

    # --- how many -----------------------------------------------------------------------------------------------------

    def count_before(self, i: int, is_amount: bool = False) -> None:
        """Read the number of devices before the name of one, or before its memory: `2 x`, `dual`, `four nvidia`."""
        r = self.reading
        at = i - 1
        while r.has(at, *MAKERS):
            at -= 1
        is_times = r.has(at, "x")
        at -= 1 if is_times else 0
        between = r.question[r.tokens[i - 1].end : r.tokens[i].start] if i else ""
        is_apart = any(c not in " -*×" for c in between) or (is_amount and "-" in between)
        if at < 0 or r.gone[at] or is_apart:
            return
        word = r.tokens[at].text
        is_version = r.continues_name(at) or r.question[: r.tokens[at].start].endswith("-")
        if not is_times and (is_version or r.is_value_behind(at)):
            return  # `GPT-4 24 GB`, `rank 16 h100`
        number = number_of(word)
        if word in COUNTS or (word in OF_TWO and OF_TWO[word] > 0):
            n = COUNTS.index(word) + 1 if word in COUNTS else OF_TWO[word]
        elif number is not None and number.suffix in ("", "x") and number.divisor == 1 and number.digits > 0:
            n = number.digits
            is_many = r.has(at - 1, "on", "with", "using", "across", "over")
            is_many = is_many or (n % 8 == 0 and n < MOST and not r.is_claimed(at))
            if not is_times and n > 99 and (is_amount or not is_many):
                return
        else:
            return
        self.said.devices = n
        r.use(at, i)

    def count_after(self) -> None:
        """Read the number of devices after the machine: `H100 x8`, `A100-80GB:8`, `v5e-8`, `3090 2x`."""
        r = self.reading
        at = self.end
        while 0 <= at < len(r.tokens) and (r.gone[at] or r.tokens[at].text in FORMS):
            at += 1
        if (self.said.devices or 1) > 1 or not 0 < at < len(r.tokens):
            return
        text = r.tokens[at].text
        between = r.question[r.tokens[at - 1].end : r.tokens[at].start].strip()
        number = number_of(text[1:] if text[:1] == "x" else text)
        is_tpu = (self.said.on or "").startswith("tpu")
        is_count = text[:1] == "x" or between in ("*", "×", ":", "(x", "(*") or (between == "-" and is_tpu)
        end = at + 1
        if text == "x" and end < len(r.tokens) and not r.gone[end]:
            number, is_count, end = number_of(r.tokens[end].text), True, end + 1
        elif r.has(end, "x") and r.tokens[end].is_joined and not r.tokens[end].text[1:]:
            is_next = end + 1 < len(r.tokens) and not r.gone[end + 1] and r.tokens[end + 1].is_joined
            is_count, end = not is_next, end + 1
        if is_count and number is not None and number.suffix == "" and number.divisor == 1 and number.digits > 0:
            self.said.devices = number.digits
            r.use(at, end)

    def count_alone(self) -> None:
        """Read how many of the machine there are without a word for them: `fp8 on 4?`."""
        r, said = self.reading, self.said
        if said.on is None or said.devices is not None:
            return
        for i, token in enumerate(r.tokens):
            number = None if r.gone[i] or not r.has(i - 1, "on", "across", "over") else number_of(token.text)
            is_last = i + 1 == len(r.tokens) or r.has(i + 1, "of", "and", "with", "or")
            if number is not None and number.suffix == "" and 0 < number.whole < MOST_ALONE and is_last:
                said.devices = number.whole
                r.use(i, i + 1)
                return

    def count_nodes(self) -> None:
        """Multiply the devices of a node by the nodes: `2 nodes of 8 h100`."""
        if self.said.nodes and self.said.devices:
            self.said.devices *= self.said.nodes
            self.said.nodes = None

    def price(self, prices: list[str]) -> None:
        """Give several machines their prices, in the order in which both are named; for one machine, the first
        applies."""
        if not prices:
            return
        self.said.price_per_hour = prices[0]
        names = sorted(self.ends, key=lambda slug: self.ends[slug])
        if len(names) != len(prices):
            self.said.unused += [f"{price} per hour" for price in prices[1:]]
            return
        for slug, price in zip(names, prices):
            self.said.prices[slug] = price
        if self.said.on in self.said.prices:
            self.said.price_per_hour = self.said.prices[self.said.on]

    # --- memory -------------------------------------------------------------------------------------------------------

    def read_amounts(self) -> None:
        """Read the amounts of memory: `24GB`, `8192 MiB`, `64 GB of RAM`."""
        r = self.reading
        for i, token in enumerate(r.tokens):
            number = None if r.gone[i] else number_of(token.text)
            if number is None:
                continue
            unit, end = number.suffix, i + 1
            if unit == "" and end < len(r.tokens) and not r.gone[end]:
                unit, end = r.tokens[end].text, end + 1
            if r.has(end, "s") and unit in MEMORY:
                r.use(i, end + 1)
                self.said.unused.append(r.typed(i, end + 1))  # `1008 GB/s`
                continue
            if unit == "t" and number.suffix == "t" and r.has(end, "vram", "ram", "gpu", "memory"):
                unit = "tb"
            if unit not in MEMORY:
                continue
            after = [one.text for one in r.tokens[end : end + 2]]
            words = after[1:] if after[:1] == ["of"] else after[:1]
            is_host = any(word in OF_HOSTS for word in words) or r.has(i - 1, *OF_HOSTS)
            if not is_host:
                self.count_before(i, is_amount=True)
            r.use(i, end)
            if is_host and words[:1] and r.has(end, *OF_HOSTS):
                is_numbered = end + 1 < len(r.tokens) and r.tokens[end + 1].is_joined  # `ddr5`
                r.use(end, end + 2 if is_numbered else end + 1)
            self.end = end if self.end < 0 else self.end
            written = token.text.removesuffix(number.suffix)
            self.amounts.append(_amount(written, MEMORY[unit], r.typed(i, end), (i, end), is_host, after))

    def settle(self) -> None:
        """Use an amount to distinguish two machines with the same name; next to `Mac` it is the installed memory."""
        said, machines = self.said, self.reading.grammar.machines
        is_own = said.on is None or machines[said.on].part is not None
        self._settle_rivals()
        devices = [one for one in self.amounts if not one.is_host]
        behind = [one for one in devices if one.start == self.end and said.on is not None]
        kept = [*behind, *devices, *[one for one in self.amounts if is_own]][:1]
        said.unused += [one.typed for one in self.amounts if one not in kept]
        if not kept:
            return
        amount = kept[0]
        if said.on is not None:
            self._settle_named(said.on, amount)
            return
        is_mac = any(word in MACS for word in self.reading.words())
        of_macs = [one for one in machines.values() if one.part and one.gigabytes == amount.gigabytes and is_mac]
        if len(of_macs) == 1:
            said.on, said.on_name = of_macs[0].slug, of_macs[0].name
            return
        self._take_alone(amount)
        if self.other_card:
            said.why_on = f"Of the {self.other_card} its memory alone is counted."
        elif of_macs:
            self._take_part(amount, f"a Mac of {spaced(amount.written)}", of_macs[-1].part or "")
        elif is_mac:
            said.why_on = "Of a Mac's memory its GPU may use a part: all of it is counted."

    def _settle_rivals(self) -> None:
        """Give each of several machines the memory that follows its name: `m3 ultra 96gb vs m4 max 128gb`."""
        said = self.said
        if not said.rivals:
            return
        first = said.on, said.on_name, said.is_amount, said.why_on
        for n, (slug, _, many) in enumerate(said.rivals):
            of_it = [one for one in self.amounts if one.start == self.ends[slug]]
            if not of_it:
                continue
            self.amounts = [one for one in self.amounts if one not in of_it]
            self._settle_named(slug, of_it[0])
            if said.on != first[0]:
                said.rivals[n] = (said.on or slug, said.on_name or "", many)
            said.on, said.on_name, said.is_amount, said.why_on = first

    def _settle_named(self, slug: str, amount: Amount) -> None:
        said, grammar = self.said, self.reading.grammar
        machine = grammar.machines[slug]
        known = grammar.kinds["machine"]
        for key in [f"{key}{amount.written.lower()}" for key in known if known[key] == slug]:
            if key in known:
                said.on, said.on_name = known[key], grammar.machines[known[key]].name
                return
        if amount.gigabytes in (machine.gigabytes, machine.gigabytes * (said.devices or 1)):
            return
        is_more = amount.gigabytes > machine.gigabytes and machine.part is None and not amount.is_card
        is_its = amount.start == self.end and amount.gigabytes <= 2 * machine.gigabytes  # `rtx 4090 48gb`
        if is_more and not is_its:
            said.unused.append(amount.typed)
            return
        listed = f"The listed {machine.name} has {machine.gigabytes} GB"
        self._take_alone(amount)
        said.why_on = f"{listed}: of this one the memory alone is counted."
        if machine.part:
            chip, same = machine.name.partition(",")[0], [one for one in grammar.machines.values() if one.part]
            same = [one for one in same if one.gigabytes == amount.gigabytes]
            if same:
                self._take_part(amount, f"{chip} of {spaced(amount.written)}", same[-1].part or "")
            else:
                said.why_on = f"{listed}: of this one all memory is counted, of which its GPU may use a part."

    def _take_part(self, amount: Amount, name: str, part: str) -> None:
        """The part of an amount that a GPU may use."""
        self.said.on, self.said.on_name = part, name
        self.said.why_on = f"Of {spaced(amount.written)} its GPU may use {spaced(part)}."

    def _take_alone(self, amount: Amount) -> None:
        self.said.is_amount = True
        self.said.on, self.said.on_name = amount.written, spaced(amount.written)


def _amount(number: str, unit: str, typed: str, place: tuple[int, int], is_host: bool, after: list[str]) -> Amount:
    """An amount in the tools' units, which do not include megabytes."""
    whole, _, part = number.partition(".")
    value = Fraction(int(whole + part), 10 ** len(part))
    is_card = "vram" in after[:2]
    if unit in ("MB", "MiB"):
        value = value / 1000 if unit == "MB" else value / 1024
        number, unit = _decimal(value), GB if unit == "MB" else GIB
    factor = 1000 if unit == TB else 1024 if unit == "TiB" else 1
    return Amount(f"{number}{unit}", value * factor, typed, *place, is_host, is_card)


def _decimal(value: Fraction) -> str:
    """A fraction to six places, like typed amounts: `23.988281`."""
    millionths = value.numerator * 10**6 // value.denominator
    part = str(millionths % 10**6)
    part = "0" * (6 - len(part)) + part
    while part.endswith("0"):
        part = part[:-1]
    return f"{millionths // 10**6}.{part}" if part else f"{millionths // 10**6}"


def spaced(amount: str) -> str:
    """`64GB` -> `64 GB`."""
    at = len(amount) - (3 if amount.endswith("iB") else 2)
    return f"{amount[:at]} {amount[at:]}"
