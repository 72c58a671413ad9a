"""Parses a question: models, a machine, formats, numbers with their units, a figure.

One grammar for the site's search, which runs this module compiled, and for the command line. Its words are data:
`asked.toml`. Every value the user types is either parsed or listed in `Meaning.unused`. A model missing from the
catalog goes into `Meaning.absent`; it is never replaced by another one in `Meaning.models`.
"""

from __future__ import annotations

from .question_formats import Formats
from .question_machines import Machines
from .question_prices import Prices
from .question_table import Grammar, Meaning
from .question_training import Training
from .question_words import (
    COUNTS,
    Token,
    chunks_of,
    in_one_piece,
    is_size,
    joined,
    key_of,
    number_of,
    tokens_of,
    with_billions,
)

MOST_WORDS = 6  # of a phrase
BETWEEN = ("of", "to", "is", "at", "a", "an")  # a value and what it counts
BEHIND = ("rank", "gpu_layers", "input", "output")  # values that stand behind their words alone: `rank 16`
PARTS = ("every", "each", "first", "last", "per")  # before a number that is not all of them: `every 6 layers`
FULL = "full context"  # the name of a context that is no number
OF_FILES = ("gguf", "safetensors", "bin")  # ends of files' names
OF_CACHE = ("cache_bytes", "cache_bytes_per_token")
ORDINALS = ("st", "nd", "rd", "th", "d", "s", "p", "fps")  # behind numbers that are no values: `4th`, `3D`
LONGEST = 16 * 1024 * 1024  # tokens that a number without a unit may be
MODELS = (
    "which",
    "best",
    "models",
    "llms",
    "recommend",
    "recommendation",
    "recommendations",
    "any",
    "biggest",
    "largest",
)
KILO, MEGA = 1024, 1024 * 1024  # tokens of context, as models' own limits are
TOKENS = {"k": 1000, "m": 10**6, "b": 10**9, "t": 10**12}  # of a training run


def meant(question: str, grammar: Grammar) -> Meaning:
    """Parse a question."""
    return Reading(question, grammar).read()


class Reading:
    """A question while it is parsed: its tokens, and which of them have been used."""

    def __init__(self, question: str, grammar: Grammar) -> None:
        self.question, self.grammar = question, grammar
        self.tokens: list[Token] = with_billions(tokens_of(question))
        self.gone = [False for _ in self.tokens]
        self.said = Meaning()
        self.machines, self.formats, self.prices = Machines(self), Formats(self), Prices(self)

    def read(self) -> Meaning:
        said, grammar = self.said, self.grammar
        self._correct()
        said.is_why = self.tokens != [] and self._is_why()
        said.is_reason = said.is_why and (self.tokens[0].text == "why" or self.has(1, "come"))
        Training(self).read()
        self._all("terms", True)
        self._leave_instances()
        self.prices.read()
        said.is_billing = bool(self._all("billing", True)) or said.is_billing
        self._all("rates", said.is_billing)
        if said.is_billing or said.is_training:
            self.prices.read_share()
        for start, name, n in self._all("engine", True):
            typed = self.typed(start, start + n)
            said.engine, said.engine_typed = said.engine or name, said.engine_typed or typed
            said.unused += [typed] if name != said.engine else []
        said.is_offloading = bool(self._all("offloading", True))
        self.formats.read()
        self.machines.read(True)
        self.machines.read_amounts()
        self.machines.count_after()
        self._read_values()
        said.parts = [self.typed(start, start + n) for start, _, n in self._all("parts", True)]
        for start, _, n in self._all("unused", True):
            end = self.tokens[start + n - 1].end
            said.unused += [] if self.question[end : end + 1] == "/" else [self.typed(start, start + n)]
        self._read_models()
        self.machines.read(False)
        self.machines.count_after()
        self.machines.count_nodes()
        self.machines.price(self.prices.per_hour)
        self._read_changes()
        self._read_context()
        if said.context is None and said.input is not None and not said.is_billing:
            said.context = said.input + (said.output or 0)
        if said.context is None and FULL in [self.grammar.find("unused", key_of(one), 2) for one in said.unused]:
            said.is_full = True
            said.context = self._limit()
        if said.context is not None:  # `a full context window of 128k`
            said.unused = [one for one in said.unused if self.grammar.find("unused", key_of(one), 2) != FULL]
        said.is_against = bool(self._all("against", False))
        said.is_drafting = bool(self._all("drafting", False))
        said.is_license = bool(self._all("license", False))
        said.is_fitting = bool(self._all("fitting", False))
        said.is_of_machine = bool(self._all("of_machines", False))
        said.is_of_which_machine = bool(self._all("which_machine", False))
        self._read_figure()
        self.machines.count_alone()
        self._take_size()
        of_cache = grammar.names["caches"]
        if said.figure in OF_CACHE and said.format and said.format.lower() in of_cache and not said.cache:
            said.format, said.cache = None, said.format.lower()  # `KV cache of Qwen3 8B in fp8`
        if said.figure in OF_CACHE and said.formats and not said.cache:
            formats = [name.lower() for name in said.formats]
            if all(name in of_cache for name in formats):
                said.formats, said.caches = [], formats
        self.machines.settle()
        self.formats.take_usual()
        self._check_bounds()
        for i, token in enumerate(self.tokens):
            if not self.gone[i] and number_of(token.text) is not None and self._is_value(i):
                said.unused.append(self._named(i))
        said.is_bare = all(
            gone or token.text in grammar.usual or is_size(token.text) for gone, token in zip(self.gone, self.tokens)
        )
        return said

    # --- phrases ------------------------------------------------------------------------------------------------------

    def words(self) -> list[str]:
        return [token.text for token in self.tokens]

    def _is_why(self) -> bool:
        if self.has(0, "how") and self.has(1, "many", "much", "big", "large"):
            return False
        first, second = self.tokens[0].text, self.tokens[1].text if len(self.tokens) > 1 else ""
        return first in ("why", "how") or (first == "what" and second in ("is", "are", "does", "do"))

    def _phrase(self, kind: str, start: int) -> tuple[str | None, int]:
        """The longest phrase of a kind that starts at a token, and its length in tokens."""
        tokens = self.tokens
        for n in range(min(MOST_WORDS, len(tokens) - start), 0, -1):
            if not in_one_piece(tokens, self.gone, start, start + n):
                continue
            if (
                n > 1
                and len(tokens[start].text) == 1
                and tokens[start].text.isalpha()
                and not tokens[start + 1].is_joined
                and self.question[tokens[start].end : tokens[start + 1].start] != "_"
            ):
                continue  # a letter of its own, as in `a 100`
            if " --" in self.question[tokens[start].end : tokens[start + n - 1].start]:
                continue  # `FP8 --tensor-parallel-size`
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

    def phrase(self, kind: str, start: int) -> int:
        """The length in tokens of the phrase of a kind that begins at a token; 0 without one."""
        return self._phrase(kind, start)[1] if start < len(self.tokens) else 0

    def phrases(self, kind: str) -> list[tuple[int, str, int]]:
        """Every phrase of a kind without reading it: where it starts, its name, its length."""
        return self._all(kind, False)

    def taken(self, kind: str) -> list[tuple[int, str, int]]:
        """Every phrase of a kind, marked as read."""
        return self._all(kind, True)

    def _all(self, kind: str, takes: bool) -> list[tuple[int, str, int]]:
        """Every phrase of a kind: where it starts, its name, its length."""
        found, i = [], 0
        while i < len(self.tokens):
            name, n = self._phrase(kind, i)
            if name is None:
                i += 1
                continue
            found.append((i, name, n))
            if takes:
                self.use(i, i + n)
            i += n
        return found

    def use(self, start: int, end: int) -> None:
        for i in range(start, end):
            self.gone[i] = True

    def denied(self, start: int) -> int:
        """The index at which the words that negate the token start (`not`, `other than`), or -1."""
        at = start - 1
        while at >= 0 and self.tokens[at].text in ("a", "an", "the", "any"):
            at -= 1
        for first in (at - 1, at):
            if first >= 0 and self.grammar.find("denying", joined(self.tokens[first : at + 1]), at + 1 - first):
                return first
        return -1

    def has(self, i: int, *words: str) -> bool:
        return 0 <= i < len(self.tokens) and not self.gone[i] and self.tokens[i].text in words

    def _correct(self) -> None:
        """Replace each word that differs from a known one by one letter."""
        for i, token in enumerate(self.tokens):
            has_number = i + 1 < len(self.tokens) and self.tokens[i + 1].text[:1].isdigit()
            meant = self.grammar.catalog.near(token.text, self.grammar.of_terms, has_number)
            if meant:
                self.said.corrected.append((token.text, meant))
                self.tokens[i] = Token(meant, token.start, token.end, token.is_joined)

    def _take_size(self) -> None:
        """Take a model of the one size that is asked for without a name: `qlora 70b on 48 GB`."""
        said = self.said
        sizes = [i for i, token in enumerate(self.tokens) if not self.gone[i] and token.text.endswith("b")]
        sizes = [i for i in sizes if is_size(self.tokens[i].text)]
        is_asked = said.is_training or said.is_billing or said.on or said.figure or said.format
        is_of_several = any(word in MODELS for word in self.words()) or (said.is_why and not said.figure)
        if said.models or said.absent or len(sizes) != 1 or not is_asked or is_of_several:
            return
        text = self.tokens[sizes[0]].text
        one = self.grammar.catalog.of_size(text)
        if one is not None:
            said.models, said.of_size = [one], (text, one.title)
            self.use(sizes[0], sizes[0] + 1)

    def _read_models(self) -> None:
        """Read the models. Names of tensors and keys of a config, which are looked up, are not part of a model's
        name."""
        tensors = self._tensors()
        hidden = [any(start <= token.start < end for start, end in tensors) for token in self.tokens]
        gone = [a or b for a, b in zip(self.gone, hidden)]
        said = self.said
        said.models, said.absent = self.grammar.models.find(self.question, self.tokens, gone, said, self.denied)
        absent = " ".join([one.title.lower() for one in said.absent])
        said.corrected = [one for one in said.corrected if one[0] not in absent]  # an unknown name is not corrected
        self.gone = [taken and (was or not secret) for taken, was, secret in zip(gone, self.gone, hidden)]

    def _tensors(self) -> list[tuple[int, int]]:
        """Where the question contains the name of a tensor or a key of a config."""
        text = self.question.lower()
        return [(start, end) for start, end in chunks_of(text) if self._is_tensor(text[start:end])]

    def _is_tensor(self, chunk: str) -> bool:
        parts = chunk.strip(".,;:?!()`").replace("_", ".").split(".")
        if len(parts) < 2 or not all(part and part[:1].isalpha() for part in parts) or "/" in chunk or "-" in chunk:
            return False
        if parts[-1] in OF_FILES or self.grammar.catalog.is_first(parts[0]) or all(len(part) < 3 for part in parts):
            return False
        key, n = key_of(chunk), len(tokens_of(chunk))
        kinds = ("figure", "size", "value", "format", "engine", "machine")
        return chunk != "config.json" and all(self.grammar.find(kind, key, n) is None for kind in kinds)

    # --- values -------------------------------------------------------------------------------------------------------

    def _leave_instances(self) -> None:
        """Report a cloud's machine as unused: `g5.12xlarge`."""
        for start, end in chunks_of(self.question):
            name = self.question[start:end].strip(".,;!?()")
            if "." in name and name.lower().endswith(("large", "metal")):
                self.said.unused.append(name)
                for i, token in enumerate(self.tokens):
                    self.gone[i] = self.gone[i] or start <= token.start < end

    def _plain(self, i: int, factor: int = 1) -> int | None:
        """A token as a whole number: `16`, or with a factor `16k`."""
        if i < 0 or i >= len(self.tokens) or self.gone[i]:
            return None
        text = self.tokens[i].text
        if text in COUNTS:
            return COUNTS.index(text) + 1
        number = number_of(text)
        if number is None or number.suffix not in ("", "k"):
            return None
        return (number.whole if number.suffix == "" else number.times(factor)) or None

    def _value(self, start: int, n: int, is_before: bool, factor: int) -> tuple[int | None, int, int]:
        """The number after a phrase or, if allowed, before it; and the tokens that both span."""
        end = start + n
        while self.has(end, *BETWEEN):
            end += 1
        is_times = self.has(end + 1, "x") and self.tokens[end + 1].is_joined
        is_context = end > start + n and end < len(self.tokens) and self.tokens[end].text.endswith("k")
        is_context = is_context and factor == 1000  # `concurrent users at 128k`, `requests of 8k`
        behind = None if is_times or is_context else self._plain(end, factor)
        is_option = self.question[: self.tokens[start].start].endswith("-")  # its value follows: `--tp 8`
        is_others = behind is not None and self.is_claimed(start - 1)
        before = None if is_option or is_others or self.continues_name(start - 1) else self._plain(start - 1, factor)
        if before is not None and (is_before or behind is None):
            return before, start - 1, start + n
        return behind, start, end + 1

    def is_claimed(self, i: int) -> bool:
        """Whether a number belongs to the words before it: the first one in `seq 2048 batch 4`."""
        at = i - 1
        while self.has(at, *BETWEEN):
            at -= 1
        found = [one for kind in ("value", "size") for one in self._all(kind, False)]
        return any(start + n == at + 1 and not self._is_number(start - 1) for start, _, n in found)

    def _is_number(self, i: int) -> bool:
        number = number_of(self.tokens[i].text) if i >= 0 and not self.gone[i] else None
        return number is not None and number.suffix in ("", "k", "t")  # not of a model's size

    def _is_of_option(self, end: int) -> bool:
        """Whether a word is the beginning of an option's name: `gpu-memory-utilization`."""
        return end < len(self.tokens) and self.question[self.tokens[end - 1].end : self.tokens[end].start] in ("-", "_")

    def is_value_behind(self, i: int) -> bool:
        """Whether a number is the value of a word that only takes a number after it: `lora rank 16 h100`."""
        return any(start + n == i for start, name, n in self._all("value", False) if name in BEHIND)

    def continues_name(self, i: int) -> bool:
        """Whether a number is the version of a model: `llama 3 layers`."""
        return i > 0 and not self.gone[i - 1] and self.grammar.catalog.is_first(self.tokens[i - 1].text)

    def _read_values(self) -> None:
        """Read numbers with their units: `20 users`, `rank 16`, `100b tokens`."""
        said = self.said
        for i, token in enumerate(self.tokens):
            number = None if self.gone[i] else number_of(token.text)
            if number is None:
                continue
            is_speed = self._phrase("figure", i + 1)[0] is not None  # `8b tokens/s`
            at = i + 2 if self.has(i + 1, "input", "output", "generated") else i + 1
            is_amount = self.has(at, "token", "tokens") and not is_speed
            if number.suffix == "" and self._phrase("figure", i + 1)[0] == "tokens_per_second":
                self.use(i, i + 1)
                said.unused.append(self.typed(i, i + 1 + self._phrase("figure", i + 1)[1]))  # `100 tokens/s`
                continue
            is_million = self.has(i + 1, "million") and self.has(i + 2, "token", "tokens")
            is_long = self.has(i + 2, "of", "context") or self.has(i + 3, "of", "context")
            is_run = (is_amount and number.suffix == "m") or (is_million and number.suffix == "")
            if is_run and not is_long and (said.is_training or said.is_billing):
                end = at + 1 if is_amount else i + 3
                if said.is_training:
                    said.tokens = number.times(10**6)
                elif number.digits != number.divisor:
                    said.unused.append(self.typed(i, end))  # the bill is of one million
                self.use(i, end)
            if number.suffix in ("b", "t") and is_amount:
                said.tokens = number.times(TOKENS[number.suffix])
                self.use(i, at + 1)
        for start, name, n in self._all("value", False):
            value, first, end = self._value(start, n, name not in BEHIND, 1000)
            if value is None:
                continue
            if name == "devices" and self._is_of_option(start + n):
                continue
            if name == "batch":
                said.batch = value
            elif name == "rank" and (said.method or said.is_training or n > 1 or len(self.tokens[start].text) > 2):
                said.rank = value
            elif name == "devices":
                said.devices = said.devices or value
            elif name == "nodes":
                said.nodes = value * (said.nodes or 1)
            elif name == "input":
                said.input = value
            elif name == "output":
                said.output = value
            elif name == "gpu_layers":
                said.gpu_layers = value
            else:
                continue
            self.use(first, end)
        self._read_changes()

    def _read_changes(self) -> None:
        """Read sizes with a value: `16 kv heads`, `vocab 128k`."""
        keys = self.grammar.names["keys"]
        for start, name, n in self._all("size", False):
            if name not in keys or not in_one_piece(self.tokens, self.gone, start, start + n):
                continue
            value, first, end = self._value(start, n, True, 1000 if name == "vocab_size" else KILO)
            if value is not None and not self.has(first - 1, *PARTS):
                self.said.changes.append((name, value))
                self.use(first, end)

    def _read_context(self) -> None:
        """Read tokens of context: `16k`, `100000 tokens`, `context 8192`."""
        said = self.said
        for i, token in enumerate(self.tokens):
            number = None if self.gone[i] else number_of(token.text)
            if number is not None and number.suffix == "" and self.has(i + 1, "million"):
                if self.has(i + 2, "tokens", "token", "context"):
                    said.context = number.times(10**6)
                    self.use(i, i + 3)
                    return
        for i, token in enumerate(self.tokens):  # llama.cpp's option: `-c 32768`
            is_option = token.text == "c" and self.question[token.start - 1 : token.start] == "-"
            if is_option and not self.gone[i] and self._tokens_at(i + 1):
                said.context = self._tokens_at(i + 1)
                self.use(i, i + 2)
                return
        lengths = [(start, n) for start, name, n in self._all("size", False) if name == "context"]
        lengths += [(start, n) for start, name, n in self._all("value", False) if name == "context"]
        for start, n in lengths:
            for i in (start - 1, start + n, start + n + 1):
                is_behind = i <= start + n or self.has(start + n, *BETWEEN)
                value = self._tokens_at(i) if is_behind else None
                if value:
                    said.context = value
                    self.use(i, i + 1)
                    return
        for i, token in enumerate(self.tokens):
            number = None if self.gone[i] else number_of(token.text)
            if number is not None and number.suffix == "k":
                said.context = number.times(KILO)
                self.use(i, i + 1)
                return
        plain = [n for n, one in enumerate(self.tokens) if not self.gone[n] and self._is_length(one.text)]
        if len(plain) == 1:
            said.context = self._tokens_at(plain[0])
            self.use(plain[0], plain[0] + 1)

    def _is_length(self, text: str) -> bool:
        """Whether a number without a unit may be a context: `4096`, `131072`."""
        number = number_of(text)
        return (
            number is not None and number.suffix == "" and KILO <= number.whole <= LONGEST and number.whole % KILO == 0
        )

    def _limit(self) -> int | None:
        """The longest context of the only model that is named."""
        models = self.said.models
        if len(models) != 1 or not (models[0].is_sure or self.said.vague):
            return None
        return self.grammar.names["models"][models[0].record][2] or None

    def _tokens_at(self, i: int) -> int | None:
        number = number_of(self.tokens[i].text) if 0 <= i < len(self.tokens) and not self.gone[i] else None
        if number is None or number.suffix not in ("", "k", "m"):
            return None
        if number.suffix == "":
            return number.whole if number.whole >= 16 else None
        return number.times(KILO if number.suffix == "k" else MEGA)

    # --- figures -----------------------------------------------------------------------------------------------------

    def _read_figure(self) -> None:
        """Read the requested figure or size: the longest phrase outside names of tensors such as
        `mlp.experts.gate_proj`."""
        best, named = 0, [(start, end) for start, end in self._tensors() if "." in self.question[start:end].strip(".")]
        is_of_memory = any(name == "device_bytes" for _, name, _ in self._all("figure", False))
        for kind in ("figure", "size"):
            for start, name, n in self._all(kind, False):
                if any(first <= self.tokens[start].start < last for first, last in named):
                    continue
                if name == "context" and self.said.context is not None and is_of_memory:
                    continue  # the unit of a value: `vram with 120k context`
                length = len(joined(self.tokens[start : start + n]))
                if length > best:
                    best = length
                    self.said.figure = name if kind == "figure" else None
                    self.said.size = name if kind == "size" else None
                    self.said.section = self.grammar.sections[name] if kind == "figure" else "the-whole-model"
        if self.said.size == "n_experts" and self._all("of_each", False):
            self.said.size = "n_experts_per_token"  # `how many experts does it use per token`

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
        return number is not None and number.suffix not in ORDINALS

    def _named(self, i: int) -> str:
        """A number as typed, with the word before it, unless it is a model's size."""
        has_unit = self.tokens[i].text[-1:].isalpha()
        is_alone = has_unit or not i or self.gone[i - 1] or not self.tokens[i - 1].text.isalpha()
        return self.typed(i if is_alone else i - 1, i + 1)

    def typed(self, start: int, end: int) -> str:
        """Tokens as they were typed."""
        return self.question[self.tokens[start].start : self.tokens[end - 1].end]
