"""The prices of a question, per device and hour or per kilowatt-hour, and the share of a peak that is reached."""

from __future__ import annotations

from typing import Any

from .question_words import Number, number_of

CURRENCIES = "$€£¥"
HOURS = ("hour", "hours", "hr", "hrs", "h", "std", "stunde", "heure", "ora", "hora")
BETWEEN = ("a", "an", "per", "pro", "par", "each", "gpu", "device", "card")  # a price and its unit
AT = ("at", "for", "pay", "paying", "costs", "cost")  # before a price
CENTS = ("cent", "cents", "ct", "cts")


class Prices:
    """Reads what a device costs by the hour and a kWh of electricity: `$2 an hour`, `1.8$/h`, `30 cents per kWh`."""

    def __init__(self, reading: Any) -> None:
        self.reading, self.said = reading, reading.said  # `question.Reading`
        self.per_hour: list[str] = []

    def read(self) -> None:
        r, said = self.reading, self.said
        for i, token in enumerate(r.tokens):
            number = None if r.gone[i] else number_of(token.text)
            if number is None or number.suffix != "":
                continue
            end, text = i + 1, token.text
            is_money = self._has_currency(token.start, token.end)
            if r.has(end, *CENTS):
                end, is_money, text = end + 1, True, _hundredth(number)
            elif r.phrase("money", end) > 0:
                end, is_money = end + r.phrase("money", end), True
            first = end
            while r.has(end, *BETWEEN) or r.phrase("machine", end) > 0:
                end += max(1, r.phrase("machine", end))
            is_rate = end > first or "/" in r.question[token.end : r.tokens[end].start if end < len(r.tokens) else None]
            is_money = is_money or (is_rate and (r.has(i - 1, *AT) or number.divisor > 1))
            if r.has(end, "kwh"):
                said.electricity = text
            elif is_money and r.has(end, *HOURS):
                self.per_hour.append(text)
            else:
                continue
            said.is_billing = True
            r.use(i, first)
            for n in range(first, end + 1):  # a machine between them is still to be read: `$2 per H100 hour`
                if n == end or r.has(n, *BETWEEN):
                    r.use(n, n + 1)

    def read_share(self) -> None:
        """Read the share of the peak or of the bound that is reached: `40% MFU`, `mfu 0.4`, `at 60% utilization`."""
        r = self.reading
        for start, _, n in r.phrases("shares"):
            for i in (start - 1, start + n, start + n + 1):
                number = number_of(r.tokens[i].text) if 0 <= i < len(r.tokens) and not r.gone[i] else None
                is_next = i <= start + n or r.has(start + n, "of", "at", "is")
                if number is None or number.suffix != "" or not is_next or number.digits == 0:
                    continue
                is_percent = number.digits > number.divisor
                if number.digits > 100 * number.divisor:
                    continue
                self.said.utilization = _hundredth(number) if is_percent else r.tokens[i].text
                r.use(i, i + 1)
                r.use(start, start + n)
                return

    def _has_currency(self, start: int, end: int) -> bool:
        """Whether a sign of a currency stands before or behind a number."""
        question = self.reading.question
        return any(c in CURRENCIES for c in question[:start].strip()[-1:] + question[end:].strip()[:1])


def _hundredth(number: Number) -> str:
    """`30` cents -> `0.30`."""
    places, divisor = 2, number.divisor
    while divisor > 1:
        places, divisor = places + 1, divisor // 10
    digits = f"{number.digits}"
    digits = "0" * (places + 1 - len(digits)) + digits
    point = len(digits) - places
    return f"{digits[:point]}.{digits[point:]}"
