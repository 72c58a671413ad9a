"""The result of parsing a question, and the table of kinds and words used for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .question_catalog import Catalog
from .question_models import Models
from .question_names import Absent, Named
from .question_words import key_of, tokens_of

if TYPE_CHECKING:
    from .resolving import Resolver

LONG = 8  # letters of a word that may be misspelled, although it is no figure's
FLAGS = tuple(
    (
        "training fitting against terms of_machines billing offloading money unknown_machines denying full license "
        "targets rates drafting parts shares recomputing of_each which_machine"
    ).split()
)
MAKERS = ("nvidia", "amd", "intel", "google", "geforce", "rtx", "instinct", "apple")  # before a machine


class Machine(NamedTuple):
    """A machine of the table: its memory in GB, or the installed memory if its GPU may use only part of it."""

    slug: str
    name: str
    gigabytes: int
    part: str | None


class Meaning:
    """The meaning of a question. Sizes in tokens, sequences and devices; None for everything it does not mention."""

    def __init__(self) -> None:
        self.models: list[Named] = []
        self.sizes: list[Named] = []  # the models of the single family that is named, smallest first
        self.absent: list[Absent] = []
        self.format: str | None = None
        self.cache: str | None = None
        self.formats: list[str] = []  # several formats, each with its own answer
        self.caches: list[str] = []
        self.why_format: str = ""
        self.on: str | None = None
        self.on_name: str | None = None
        self.why_on: str = ""
        self.rivals: list[tuple[str, str, int | None]] = []  # further machines: slug, name and number
        self.is_amount = False
        self.context: int | None = None
        self.batch: int | None = None
        self.devices: int | None = None
        self.input: int | None = None  # tokens of a request
        self.output: int | None = None
        self.rank: int | None = None
        self.zero: str | None = None  # the stage of ZeRO
        self.optimizer: str | None = None
        self.gpu_layers: int | None = None
        self.tokens: int | None = None  # of a training run
        self.price_per_hour: str | None = None  # of a device, as typed
        self.prices: dict[str, str] = {}  # of each of several machines
        self.nodes: int | None = None  # machines of several devices
        self.targets: str | None = None  # the modules that an adapter trains
        self.is_license = False
        self.is_drafting = False
        self.other_card: str = ""  # a machine without figures here
        self.electricity: str | None = None  # price of a kWh, as typed
        self.utilization: str | None = None  # the share of a peak or a bound, as a number up to 1
        self.of_size: tuple[str, str] | None = None  # `7b` without a model, and the model that is taken
        self.zeros: list[str] = []  # further stages of ZeRO
        self.recompute: str | None = None
        self.changes: list[tuple[str, int]] = []
        self.figure: str | None = None
        self.section: str = ""
        self.size: str | None = None
        self.engine: str | None = None
        self.engine_typed: str = ""
        self.method: str | None = None
        self.is_training = False
        self.is_full = False  # asks for the model's longest context
        self.is_fitting = False
        self.is_against = False
        self.is_why = False
        self.is_reason = False  # asks why, not how much
        self.is_of_which_machine = False  # asks which machine holds a model
        self.is_of_machine = False  # asks what a machine is, not what runs on it
        self.is_billing = False  # asks what a token costs
        self.is_offloading = False  # asks for a part on the host
        self.is_bare = False  # has only words that any question may have
        self.corrected: list[tuple[str, str]] = []
        self.alike: list[tuple[str, str]] = []  # names of models with the same shapes as another, and its title
        self.vague: list[tuple[str, str]] = []  # names without a generation, and the assumed model
        self.unused: list[str] = []
        self.parts: list[str] = []  # of a model
        self.left_out: list[str] = []  # values that were read and that no result uses

    @property
    def paid(self) -> str:
        """The prices of a question, after a space."""
        said = [f" at {self.price_per_hour} per device and hour"] if self.price_per_hour else []
        return " and".join([*said, *([f" at {self.electricity} per kWh"] if self.electricity else [])])


class Grammar:
    """The table of kinds and words, and the models, made once. Without `resolving`, a question that needs it raises a
    KeyError."""

    def __init__(
        self, names: Mapping[str, Any], records: Sequence[Sequence[str]], resolving: type[Resolver] | None = None
    ) -> None:
        self.names = names
        self.kinds: dict[str, dict[str, str]] = {}
        self.sections: dict[str, str] = {}
        self.alone: dict[str, list[str]] = {}  # a key that is a word -> its kinds
        self.apart: dict[str, list[str]] = {}  # a key of several words -> its kinds
        for name in names["formats"]:
            self._add("format", name, [*names["formats"][name], name])
        for name, words, section in names["figures"]:
            self._add("figure", name, words)
            self.sections[name] = section
        for name, words in names["sizes"]:
            self._add("size", name, words)
        for name, words in names["values"]:
            self._add("value", name, words)
        for name in names["engines"]:
            self._add("engine", name, names["engines"][name])
        self.machines: dict[str, Machine] = {}
        for slug, name, gigabytes, forms, *part in names["machines"]:
            self.machines[slug] = Machine(slug, name, gigabytes, part[0] if part else None)
            self._add("machine", slug, [key_of(slug), *forms])
        for words in names["uncounted"]:
            self._add("unused", words[0], words)
        for kind in ("zero", "optimizer"):
            for name in names[kind]:
                self._add(kind, name, names[kind][name])
        for flag in FLAGS:
            self._add(flag, flag, names[flag])
        self.usual: set[str] = {*names["ordinary"], *names["noise"], *names["plain"], *names["fitting"], *MAKERS}
        known = [key for kind in self.kinds for key in self.kinds[kind]]
        plain = [word for words in (names["ordinary"], names["plain"], names["noise"]) for word in words]
        words = {token.text for _, said, *_ in names["figures"] for word in said for token in tokens_of(word)}
        words |= {token.text for _, said in [*names["sizes"], *names["values"]] for w in said for token in tokens_of(w)}
        others = {token.text for word in names["unknown_machines"] for token in tokens_of(word)}
        self.catalog = Catalog(names, records, {*known, *plain, *words, *others}, resolving)
        self.models = Models(self.catalog)
        of_terms = {word for word in (*names["training"], *words) if word.isalpha() and len(word) > 5}
        self.of_terms = sorted({*of_terms, *[word for word in names["ordinary"] if len(word) > LONG]})

    def _add(self, kind: str, name: str, words: Sequence[str]) -> None:
        table = self.kinds.setdefault(kind, {})
        for word in words:
            key = key_of(word)
            table.setdefault(key, name)
            self._written(len(tokens_of(word))).setdefault(key, []).append(kind)

    def _written(self, n: int) -> dict[str, list[str]]:
        return self.alone if n == 1 else self.apart

    def find(self, kind: str, key: str, n: int) -> str | None:
        """The name of the `n`-token phrase of this kind. Joined, `tokens` and `token/s` are spelled the same, yet they
        stay distinct."""
        table = self.kinds[kind]
        if key not in table:
            return None
        if key in self.alone and key in self.apart and kind not in self._written(n).get(key, []):
            return None
        return table[key]
