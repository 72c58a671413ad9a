"""Reads a question: models, a machine, formats, numbers with their units, a figure.

One grammar for the search of the site, which runs this module compiled, and for the command line. Its words are data:
`asked.toml`. A value that is typed is either read or stands in `Meaning.unused`; a model that the catalog lacks stands
in `Meaning.absent`, never in `Meaning.models` as another one.
"""

from __future__ import annotations

from .question_table import MAKERS, Grammar, Meaning
from .question_words import Token, chunks_of, in_one_piece, is_size, joined, key_of, number_of, tokens_of

MOST_WORDS = 6  # of a phrase
COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
OF_TWO = {"dual": 2, "double": 2, "pair": 2, "quad": 4, "single": 1, "x": 0}
BETWEEN = ("of", "to", "is", "at", "a", "an")  # a value and what it counts
CURRENCIES = "$€£¥"
MEMORY = {"g": "GB", "gb": "GB", "gib": "GiB", "gig": "GB", "gigs": "GB", "gigabyte": "GB", "gigabytes": "GB"} | {
    "tb": "TB",
    "tib": "TiB",
}
CARDS = ("rtx", "gtx", "rx", "arc", "radeon", "geforce")  # before the number of a card
OF_FILES = ("gguf", "safetensors", "bin")  # ends of files' names
PLAIN = ("int4", "int8")  # formats of which others are kinds
OF_CACHE = ("cache_bytes", "cache_bytes_per_token")
KILO, MEGA = 1024, 1024 * 1024  # tokens of context, as models' own limits are
TOKENS = {"k": 1000, "m": 10**6, "b": 10**9, "t": 10**12}  # of a training run


def meant(question: str, grammar: Grammar) -> Meaning:
    """Reads a question."""
    return _Reading(question, grammar).read()


class _Reading:
    """A question while it is read: its tokens, and which of them have been used."""

    def __init__(self, question: str, grammar: Grammar) -> None:
        self.question, self.grammar = question, grammar
        self.tokens: list[Token] = tokens_of(question)
        self.gone = [False for _ in self.tokens]
        self.said = Meaning()
        self.is_other_card = False  # one that the table of machines lacks

    def read(self) -> Meaning:
        said, grammar = self.said, self.grammar
        self._correct()
        said.is_why = self.tokens != [] and self._is_why()
        said.is_reason = said.is_why and self.tokens[0].text == "why"
        said.method = next((name for name in ("qlora", "dora", "lora") if name in self._words()), None)
        said.is_training = bool(self._all("training", False))
        self._all("terms", True)
        self._read_prices()
        said.is_billing = bool(self._all("billing", True)) or said.is_billing
        for _start, name, _ in self._all("engine", True):
            said.engine = said.engine or name
        said.is_offloading = bool(self._all("offloading", True))
        self._read_formats()
        self._read_machine(True)
        memory = self._read_memory()
        self._read_values()
        self._read_models()
        self._read_machine(False)
        self._read_changes()
        self._read_context()
        said.is_against = bool(self._all("against", False))
        said.is_fitting = bool(self._all("fitting", False))
        said.is_of_machine = bool(self._all("of_machines", False))
        self._read_figure()
        if (
            said.figure in OF_CACHE
            and said.format
            and said.format.lower() in grammar.names["caches"]
            and not said.cache
        ):
            said.format, said.cache = None, said.format.lower()  # `KV cache of Qwen3 8B in fp8`
        self._settle_memory(memory)
        self._check_bounds()
        for i, token in enumerate(self.tokens):
            if not self.gone[i] and number_of(token.text) is not None and self._is_value(i):
                said.unused.append(self._typed(i))
        said.unused += [self._between(start, start + n) for start, _, n in self._all("unused", True)]
        said.is_bare = all(
            gone or token.text in grammar.usual or is_size(token.text) for gone, token in zip(self.gone, self.tokens)
        )
        return said

    # --- phrases ------------------------------------------------------------------------------------------------------

    def _words(self) -> list[str]:
        return [token.text for token in self.tokens]

    def _is_why(self) -> bool:
        first, second = self.tokens[0].text, self.tokens[1].text if len(self.tokens) > 1 else ""
        return first in ("why", "how") or (first == "what" and second in ("is", "are", "does", "do"))

    def _phrase(self, kind: str, start: int) -> tuple[str | None, int]:
        """The longest phrase of a kind that begins at a token, and its length in tokens."""
        tokens = self.tokens
        for n in range(min(MOST_WORDS, len(tokens) - start), 0, -1):
            if not in_one_piece(tokens, self.gone, start, start + n):
                continue
            if (
                n > 1
                and len(tokens[start].text) == 1
                and tokens[start].text.isalpha()
                and not tokens[start + 1].is_joined
            ):
                continue  # a letter of its own, as in `a 100`
            if n > 1 and is_size(tokens[start].text) and not tokens[start + 1].is_joined:
                if tokens[start + 1].text == "it":
                    continue  # `gemma-3-4b-it`
            key = joined(tokens[start : start + n])
            found = self.grammar.find(kind, key, n)
            if found is None and len(key) > 2:
                found = self.grammar.find(kind, key.removesuffix("s"), n)
            if found is not None:
                return found, n
        return None, 0

    def _all(self, kind: str, takes: bool) -> list[tuple[int, str, int]]:
        """Every phrase of a kind: where it begins, its name, its length."""
        found, i = [], 0
        while i < len(self.tokens):
            name, n = self._phrase(kind, i)
            if name is None:
                i += 1
                continue
            found.append((i, name, n))
            if takes:
                self._take(i, i + n)
            i += n
        return found

    def _take(self, start: int, end: int) -> None:
        for i in range(start, end):
            self.gone[i] = True

    def _is(self, i: int, *words: str) -> bool:
        return 0 <= i < len(self.tokens) and not self.gone[i] and self.tokens[i].text in words

    def _correct(self) -> None:
        """Replace each word that differs from a known one by a letter."""
        for i, token in enumerate(self.tokens):
            meant = self.grammar.models.near(token.text, self.grammar.of_terms)
            if meant:
                self.said.corrected.append((token.text, meant))
                self.tokens[i] = Token(meant, token.start, token.end, token.is_joined)

    def _read_models(self) -> None:
        """Read the models. Names of tensors and keys of a config, which are looked up, are not part of a model's
        name."""
        tensors = self._tensors()
        hidden = [any(start <= token.start < end for start, end in tensors) for token in self.tokens]
        gone = [a or b for a, b in zip(self.gone, hidden)]
        self.said.models, self.said.absent = self.grammar.models.find(self.question, self.tokens, gone, self.said)
        self.gone = [taken and (was or not secret) for taken, was, secret in zip(gone, self.gone, hidden)]

    def _tensors(self) -> list[tuple[int, int]]:
        """Where the question has the name of a tensor or a key of a config."""
        text = self.question.lower()
        return [(start, end) for start, end in chunks_of(text) if self._is_tensor(text[start:end])]

    def _is_tensor(self, chunk: str) -> bool:
        parts = chunk.strip(".,;:?!()`").replace("_", ".").split(".")
        if len(parts) < 2 or not all(part and part[:1].isalpha() for part in parts) or "/" in chunk or "-" in chunk:
            return False
        if parts[-1] in OF_FILES or self.grammar.models.is_first(parts[0]) or all(len(part) < 3 for part in parts):
            return False
        key, n = key_of(chunk), len(tokens_of(chunk))
        kinds = ("figure", "size", "value", "format", "engine", "machine")
        return chunk != "config.json" and all(self.grammar.find(kind, key, n) is None for kind in kinds)

    # --- values -------------------------------------------------------------------------------------------------------

    def _read_prices(self) -> None:
        """What a device costs by the hour and a kWh of electricity: `$2 an hour`, `0.30 per kWh`."""
        said = self.said
        for i, token in enumerate(self.tokens):
            number = None if self.gone[i] else number_of(token.text)
            if number is None or number.suffix != "":
                continue
            end = i + 1
            is_money = self.question[token.start - 1 : token.start] in CURRENCIES and token.start > 0
            if self._phrase("money", end)[0] is not None:
                end, is_money = end + self._phrase("money", end)[1], True
            while self._is(end, "a", "an", "per", "each", "gpu", "device", "card"):
                end += 1
            if self._is(end, "kwh"):
                said.electricity = token.text
            elif is_money and self._is(end, "hour", "hours", "hr", "h"):
                said.price_per_hour = token.text
            else:
                continue
            said.is_billing = True
            self._take(i, end + 1)

    def _read_formats(self) -> None:
        said, caches = self.said, self.grammar.names["caches"]
        formats: list[str] = []
        for start, name, n in self._all("format", True):
            kind = name.lower()
            after, before = start + n, start - 1
            while self._is(before, "in", "at", "as", "type", "k", "v", "to"):
                before -= 1
            is_cache = self._is(after, "cache", "kvcache") or (self._is(after, "kv") and self._is(after + 1, "cache"))
            is_cache = is_cache or self._is(before, "cache", "kvcache") or self._is(before, "kv")
            if is_cache and kind in caches:
                said.cache = kind
            elif name not in formats:
                formats.append(name)
        if not self._all("against", False):
            bits = "".join([name for name in formats if name not in PLAIN])
            formats = [name for name in formats if name not in PLAIN or name[-1] not in bits]  # `int4 awq`
            said.unused += formats if len(formats) > 1 else []
        said.format = formats[0] if len(formats) == 1 else None  # of several, one against another

    def _read_memory(self) -> str | None:
        """An amount of memory: `24GB`."""
        tokens = self.tokens
        for i, token in enumerate(tokens):
            number = None if self.gone[i] else number_of(token.text)
            if number is None:
                continue
            unit, end = number.suffix, i + 1
            if unit == "" and end < len(tokens) and not self.gone[end]:
                unit, end = tokens[end].text, end + 1
            if self._is(end, "s") and unit in MEMORY:
                self._take(i, end + 1)  # `1008 GB/s`
                continue
            is_short = unit == "t" and number.suffix == "t" and self._is(end, "vram", "ram", "gpu", "memory")
            if unit in MEMORY or is_short:
                self._count_before(i, is_amount=True)
                self._take(i, end)
                amount = token.text.removesuffix(number.suffix)
                return f"{amount}{'TB' if is_short else MEMORY[unit]}"
        return None

    def _count_before(self, i: int, is_amount: bool = False) -> None:
        """Read the number of devices before the name of one, or before its memory: `2 x`, `dual`, `four nvidia`."""
        at = i - 1
        while self._is(at, *MAKERS):
            at -= 1
        is_times = self._is(at, "x")
        at -= 1 if is_times else 0
        if at < 0 or self.gone[at] or self.question[self.tokens[i - 1].end : self.tokens[i].start].strip(" -*×"):
            return
        word = self.tokens[at].text
        if not is_times and (self._continues_name(at) or self.question[: self.tokens[at].start].endswith("-")):
            return  # `GPT-4 24 GB`
        number = number_of(word)
        if word in COUNTS or (word in OF_TWO and OF_TWO[word] > 0):
            n = COUNTS.index(word) + 1 if word in COUNTS else OF_TWO[word]
        elif number is not None and number.suffix in ("", "x") and number.divisor == 1 and number.digits > 0:
            n = number.digits
            if not is_times and n > 99 and (is_amount or not self._is(at - 1, "on", "with", "using", "across", "over")):
                return
        else:
            return
        self.said.devices = n
        self._take(at, i)

    def _plain(self, i: int, factor: int = 1) -> int | None:
        """A token as a whole number: `16`, and with a factor `16k`."""
        if i < 0 or i >= len(self.tokens) or self.gone[i]:
            return None
        text = self.tokens[i].text
        if text in COUNTS:
            return COUNTS.index(text) + 1
        number = number_of(text)
        if number is None or number.suffix not in ("", "k") or (number.suffix == "" and number.divisor > 1):
            return None
        return number.times(factor if number.suffix == "k" else 1) or None

    def _value(self, start: int, n: int, is_before: bool, factor: int) -> tuple[int | None, int, int]:
        """The number after a phrase or, if allowed, before it; and the tokens that both span."""
        end = start + n
        while self._is(end, *BETWEEN):
            end += 1
        behind = None if self._is(end + 1, "x") and self.tokens[end + 1].is_joined else self._plain(end, factor)
        is_option = self.question[: self.tokens[start].start].endswith("-")  # its value stands behind: `--tp 8`
        before = None if is_option or self._continues_name(start - 1) else self._plain(start - 1, factor)
        if before is not None and (is_before or behind is None):
            return before, start - 1, start + n
        return behind, start, end + 1

    def _continues_name(self, i: int) -> bool:
        """Whether a number is the version of a model: `llama 3 layers`."""
        return i > 0 and not self.gone[i - 1] and self.grammar.models.is_first(self.tokens[i - 1].text)

    def _read_values(self) -> None:
        """Read numbers with their units: `20 users`, `rank 16`, `100b tokens`."""
        said = self.said
        for i, token in enumerate(self.tokens):
            number = None if self.gone[i] else number_of(token.text)
            is_speed = self._phrase("figure", i + 1)[0] is not None  # `8b tokens/s`
            is_amount = self._is(i + 1, "token", "tokens") and not is_speed
            if number is not None and number.suffix in ("b", "t") and is_amount:
                said.tokens = number.times(TOKENS[number.suffix])
                self._take(i, i + 2)
        for start, name, n in self._all("value", False):
            value, first, end = self._value(start, n, name not in ("rank", "gpu_layers"), 1000)
            if value is None:
                continue
            if name == "batch":
                said.batch = value
            elif name == "rank" and (said.method or said.is_training or n > 1 or len(self.tokens[start].text) > 2):
                said.rank = value
            elif name == "devices":
                said.devices = said.devices or value
            elif name == "gpu_layers":
                said.gpu_layers = value
            else:
                continue
            self._take(first, end)
        self._read_changes()

    def _read_changes(self) -> None:
        """Sizes with a value: `16 kv heads`, `vocab 128k`."""
        keys = self.grammar.names["keys"]
        for start, name, n in self._all("size", False):
            if name not in keys or not in_one_piece(self.tokens, self.gone, start, start + n):
                continue
            value, first, end = self._value(start, n, True, 1000 if name == "vocab_size" else KILO)
            if value is not None:
                self.said.changes.append((name, value))
                self._take(first, end)

    def _read_context(self) -> None:
        """Tokens of context: `16k`, `100000 tokens`, `context 8192`."""
        said = self.said
        for i, token in enumerate(self.tokens):
            number = None if self.gone[i] else number_of(token.text)
            if number is not None and number.suffix == "" and self._is(i + 1, "million"):
                if self._is(i + 2, "tokens", "token", "context"):
                    said.context = number.times(10**6)
                    self._take(i, i + 3)
                    return
        lengths = [(start, n) for start, name, n in self._all("size", False) if name == "context"]
        lengths += [(start, n) for start, name, n in self._all("value", False) if name == "context"]
        for start, n in lengths:
            for i in (start - 1, start + n, start + n + 1):
                is_behind = i <= start + n or self._is(start + n, *BETWEEN)
                value = self._tokens_at(i) if is_behind else None
                if value:
                    said.context = value
                    self._take(i, i + 1)
                    return
        for i, token in enumerate(self.tokens):
            number = None if self.gone[i] else number_of(token.text)
            if number is not None and number.suffix == "k":
                said.context = number.times(KILO)
                self._take(i, i + 1)
                return

    def _tokens_at(self, i: int) -> int | None:
        number = number_of(self.tokens[i].text) if 0 <= i < len(self.tokens) and not self.gone[i] else None
        if number is None or number.suffix not in ("", "k", "m"):
            return None
        if number.suffix == "" and (number.divisor > 1 or number.digits < 16):
            return None
        return number.times(KILO if number.suffix == "k" else MEGA if number.suffix == "m" else 1)

    # --- machines and figures -----------------------------------------------------------------------------------------

    def _read_machine(self, is_early: bool) -> None:
        """The machine that a question names, trying longer names first; if early, only names that no model has."""
        if self.said.on is not None or self.is_other_card:
            return
        best = (0, "", 0)
        for start, slug, n in self._all("machine", False):
            key = joined(self.tokens[start : start + n])
            is_sure = n > 1 or (len(key) > 3 and any(c.isdigit() for c in key))
            if (is_sure or not is_early) and n > best[2]:
                best = (start, slug, n)
        start, slug, n = best
        if not n:
            if not is_early:
                self._read_other_card()
            return
        self._count_before(start)
        self._take(start, start + n)
        name = self.grammar.names["machineNames"][slug]
        is_card = name.startswith("GeForce") or self._is(start + n, "mobile") or self._is(start - 1, "mobile")
        if is_card and any(word in ("laptop", "mobile", "notebook") for word in self._words()):
            self.said.why_on = (
                f"A laptop's {name} has less memory than the card of that name: give its memory, as 16 GB."
            )
            self.is_other_card = True
            return
        self.said.on, self.said.on_name = slug, name

    def _read_other_card(self) -> None:
        """A card by a name that no machine has: `RTX 4060`."""
        for i, token in enumerate(self.tokens):
            number = None if self.gone[i] else number_of(token.text)
            if number is None or number.suffix != "" or number.digits < 100 or not self._is(i - 1, *CARDS):
                continue
            end = i + 1
            while self._is(end, "ti", "super", "xt", "xtx"):
                end += 1
            self._count_before(i - 1)
            self.said.why_on = f"No machine here is called {self._between(i - 1, end)}: give its memory, as 8 GB."
            self.is_other_card = True
            self._take(i - 1, end)
            return

    def _settle_memory(self, memory: str | None) -> None:
        """Use an amount to tell two machines of one name apart; next to `Mac` it is the installed memory."""
        said, names = self.said, self.grammar.names
        if memory is None:
            return
        if said.on is not None:
            base = next((key for key in names["machines"] if names["machines"][key] == said.on), "")
            for key in (f"{base}{memory.lower()}", f"{key_of(said.on)}{memory.lower()}"):
                if key in names["machines"]:
                    said.on = names["machines"][key]
                    said.on_name = names["machineNames"][said.on]
            return
        is_mac = any(word in ("mac", "macbook", "imac", "macs") for word in self._words())
        of_macs = names["installed"][memory] if is_mac and memory in names["installed"] else []
        if len(of_macs) == 1 and len(of_macs[0]) > 1:
            said.on = of_macs[0][0]
            said.on_name = names["machineNames"][said.on]
            return
        said.is_amount = True
        said.why_on = "Of the card its memory alone is counted." if self.is_other_card else ""
        if is_mac and of_macs:
            usable = of_macs[-1][-1]
            said.on, said.on_name = usable, f"a Mac of {_spaced(memory)}"
            said.why_on = f"Of {_spaced(memory)} its GPU may use {_spaced(usable)}."
        else:
            said.on, said.on_name = memory, _spaced(memory)

    def _read_figure(self) -> None:
        """The figure or size asked for: the longest phrase outside names of tensors: `mlp.experts.gate_proj`."""
        best, named = 0, [(start, end) for start, end in self._tensors() if "." in self.question[start:end].strip(".")]
        for kind in ("figure", "size"):
            for start, name, n in self._all(kind, False):
                if any(first <= self.tokens[start].start < last for first, last in named):
                    continue
                length = len(joined(self.tokens[start : start + n]))
                if length > best:
                    best = length
                    self.said.figure = name if kind == "figure" else None
                    self.said.size = name if kind == "size" else None
                    self.said.section = self.grammar.sections[name] if kind == "figure" else "the-whole-model"

    def _check_bounds(self) -> None:
        said, most = self.said, self.grammar.names["most"]
        if said.context is not None and not 0 < said.context <= most["context"]:
            said.unused.append(f"{said.context} tokens")
            said.context = None
        if said.batch is not None and not 0 < said.batch <= most["batch"]:
            said.unused.append(f"{said.batch} sequences")
            said.batch = None
        if said.devices is not None and not 0 < said.devices <= most["devices"]:
            said.unused.append(f"{said.devices} devices")
            said.devices = None

    def _is_value(self, i: int) -> bool:
        """Whether an unread number is a value with a word next to it: `rank 16`."""
        number = number_of(self.tokens[i].text)
        return number is not None and number.suffix in ("", "k", "gb", "b", "m", "t", "x")

    def _typed(self, i: int) -> str:
        """A number as typed, with the word before it; a model's size without that word."""
        is_alone = is_size(self.tokens[i].text) or not i or self.gone[i - 1] or not self.tokens[i - 1].text.isalpha()
        return self._between(i if is_alone else i - 1, i + 1)

    def _between(self, start: int, end: int) -> str:
        """Tokens as they were typed."""
        return self.question[self.tokens[start].start : self.tokens[end - 1].end]


def _spaced(amount: str) -> str:
    """`64GB` -> `64 GB`."""
    at = len(amount) - (3 if amount.endswith("iB") else 2)
    return f"{amount[:at]} {amount[at:]}"
