"""The format of each weight of a model, in one module: one for all matrices, or tensor by tensor as published."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..engine.architectures import Architecture
from ..engine.errors import Problem, shorten
from ..engine.facts import NO_CLASS
from ..engine.layouts import names_in_files
from ..engine.steps import Role
from ..engine.tensors import Weight
from ..engine.trace import Trace
from .formats import FLOATS, FORMATS, GGUF_TYPES, KEPT_FORMATS, PUBLISHED, Format, format_of
from .gguf_types import FORMATS as GGUF_FORMATS
from .modules import MEND, Modules
from .parts import HEAD, LOOKED_UP
from .quantization import read
from .quantized import KEY, Quantization
from .quantizers import QUANTIZERS

if TYPE_CHECKING:
    from .file_weights import FileWeights
    from .gguf import GgufFile, Stored

GGUF = frozenset(GGUF_FORMATS)
MOST_ENTRIES, MOST_NAMES = 64, 20_000  # maximum numbers of lists and modules to compare one by one
MOST_LOOKED_UP = 80_000  # maximum number of modules of one weight; Kimi K2 has 23,040

Sizes = dict[tuple[tuple[int, ...], int], int]  # the number of weights by shape and number of copies
# The number of a weight's copies in each format.
Copies = tuple[tuple[Format, int], ...]

# The config keys for the type of unquantized weights.
TYPES = ("dtype", "torch_dtype")
# The types in safetensors files that represent a weight without a scale.
TYPES_OF_FILES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
# Bits per element of other types.
BITS_OF_TYPES = {"F64": 64, "I64": 64, "I32": 32, "U32": 32, "I16": 16, "F4": 4}
# Steps whose matrices quantizers treat as linear layers.
LINEAR = frozenset(
    {Role.LINEAR, Role.CONV1D, Role.GROUPED_LINEAR, Role.ATTENTION, Role.SHARED_EXPERTS, Role.CROSS_ATTENTION}
)


class Kind(Enum):
    """The kind of a weight, as a quantizer sees it."""

    EXPERT = "experts"
    LINEAR = "linear layers"
    HEAD = "the head"
    TABLE = "tables"
    ROUTER = "routers"
    GATE = "gates of one row"
    REST = "the rest"


class WeightFormats:
    """The formats of a model's weights, from the keys of its config.json and, if its files are there, from their
    headers, which decide: `read_file` reads them."""

    def __init__(
        self,
        trace: Trace,
        raw: Mapping[str, Any],
        architecture: Architecture | None,
        read_file: Callable[[], FileWeights | None] | None,
        totals: dict[str, int],
    ):
        """`totals` are the bytes of all weights in the formats requested before."""
        self.trace, self.architecture, self._read_file = trace, architecture, read_file
        self.model_type: str = raw.get("model_type", "")
        self.problem: Problem | None = None  # why the published format is not known
        self._quantizers: dict[str, Quantization] = {}
        self._names: dict[tuple[str, bool], list[str]] = {}  # names in files, by the weight's own name
        self._totals = totals
        # see `_kinds_for`
        self._for_lists: dict[tuple[tuple[str, ...], ...], list[tuple[Weight, tuple[bool, ...], Sizes]]] = {}
        self._sized, self._sizes = "", dict[Weight, int]()  # the sizes in the most recently requested format
        self.quantization: Quantization | None = None
        try:
            self.quantization = read(raw)
        except Problem as problem:
            self.problem = problem
        said = [str(raw[key]).removeprefix("torch.") for key in TYPES if raw.get(key) is not None]
        wide = [name for name in said if name in FLOATS]
        self._is_said = bool(wide) or self.quantization is not None
        self.rest = FORMATS[wide[0] if wide else "bfloat16"]

    def of(self, w: Weight, format: str, layers: tuple[int, ...] | None = None) -> Copies:
        """The number of copies of a weight in each format, if matrices are in `format`; the published formats for that
        name, and for the name of one of them. Raises `Problem` if these are requested and not known.

        With `layers`, only the copies in these layers. For a weight that a GGUF file cuts, the first part decides.
        """
        if format in GGUF:
            return self._in_file(w, format, layers)
        if format == PUBLISHED or format in self.names:
            return self.published(w, layers)
        if format in QUANTIZERS:
            return self._quantized(w, self._of_quantizer(format), FORMATS["bfloat16"], layers)
        return ((format_of(w, format), _copies(w, layers)),)

    def is_in(self, w: Weight, name: str) -> bool:
        """Whether some copy of a weight is published in the format with this name."""
        return any(form.name == name for form, _ in self.of(w, PUBLISHED))

    def sized_as(self, format: str) -> str:
        """A format that gives every weight the same size: instead of the published one, the config's type if nothing is
        quantized and no file says otherwise."""
        if format != PUBLISHED or self.quantization is not None or self.problem is not None:
            return format
        return self.rest.name if self.file is None else format

    def total(self, format: str) -> int:
        """Bytes of all weights. All formats of a kind (GGUF, quantizers) are computed together, because the data that
        they need is freed with the costs. Raises `Problem` if the format is not known."""
        format = self.sized_as(format)
        if format not in self._totals:
            if format in GGUF:
                file = self.gguf
                self._totals.update({name: file.size(name) for name in GGUF_FORMATS})
            elif format in QUANTIZERS:
                self._of_quantizer(format)
                for name in QUANTIZERS:
                    try:
                        self._totals[name] = self._quantized_bytes(name)
                    except Problem:  # of a format other than the requested one
                        continue
            elif self._is_of_file(format) and (file := self.file) is not None:
                self._totals[format] = file.total
            elif format == PUBLISHED or format in self.names:
                self._totals[format] = sum(self.size(w, format) for w in self.trace.weights.values())
            else:
                self._totals[format] = self._converted(format)
        return self._totals[format]

    def _quantized_bytes(self, quantizer: str) -> int:
        quantization, rest = self._of_quantizer(quantizer), FORMATS["bfloat16"]
        total = self._rest_bytes
        for w, is_listed, sizes in self._kinds_for(quantization):
            is_looked_up, form = self._unlisted(w, quantization, rest)
            if is_looked_up and True in is_listed:
                form = quantization.listed[is_listed.index(True)][1]
            for (shape, copies), number in sizes.items():
                held = form if form and form.holds(shape) else rest
                total += held.size(shape, copies) * number
        return total

    def converted(self, format: str) -> int:
        """Bytes of all weights with every matrix in a format of `FORMATS`, whatever was published."""
        return self._converted(format) if format in self.names else self.total(format)

    def _converted(self, format: str) -> int:
        return sum([format_of(w, format).size(w.shape, int(w.copies)) * number for w, number in self._alike])

    @cached_property
    def _alike(self) -> list[tuple[Weight, int]]:
        """Group weights with the same number of copies and the same shape: one of each group, and the group's size."""
        found: dict[tuple[int, bool, tuple[int, ...]], tuple[Weight, int]] = {}
        for w in self.trace.weights.values():
            if not w.is_buffer:
                key = int(w.copies), w.is_matrix, tuple([int(d) for d in w.shape])
                found[key] = w, (found[key][1] if key in found else 0) + 1
        return list(found.values())

    def _kinds_for(self, quantization: Quantization) -> list[tuple[Weight, tuple[bool, ...], Sizes]]:
        """Group the weights that a quantizer may touch by the format it gives them, provided that the format holds
        their shapes: one weight of each group, which lists of the quantization name it, and how many weights have each
        shape, as `rows_and_columns`, and number of copies. No list of a quantizer distinguishes layers or experts."""
        lists = tuple([modules.listed for modules, _ in quantization.listed])
        if lists not in self._for_lists:
            found: dict[tuple[object, ...], tuple[Weight, tuple[bool, ...], Sizes]] = {}
            for w, shape, called in self._seen_by_quantizers:
                is_listed = tuple([modules.holds(called) for modules, _ in quantization.listed])
                key = self.kinds[w], w.layers is None, w in self._transposed, is_listed
                sizes = found.setdefault(key, (w, is_listed, {}))[2]
                sizes[shape] = sizes.get(shape, 0) + 1
            self._for_lists[lists] = list(found.values())
        return self._for_lists[lists]

    @cached_property
    def _seen_by_quantizers(self) -> list[tuple[Weight, tuple[tuple[int, ...], int], list[str]]]:
        """Each weight that a quantizer may touch with its shape, as `rows_and_columns`, its number of copies, and the
        names that its module may have in files."""
        return [
            (
                w,
                (tuple(map(int, self._rows_and_columns(w, w.shape))), int(w.copies)),
                [_numbered(name, 0, 0) for name in self._called(w)],
            )
            for w in self.trace.weights.values()
            if not w.is_buffer and self.kinds[w] is not Kind.REST
        ]

    @cached_property
    def _rest_bytes(self) -> int:
        """Bytes of the weights that no quantizer touches, in 16 bits."""
        rest = [w for w in self.trace.weights.values() if not w.is_buffer and self.kinds[w] is Kind.REST]
        return sum(FORMATS["bfloat16"].size(w.shape, int(w.copies)) for w in rest)

    def size(self, w: Weight, format: str) -> int:
        """Bytes of all copies of a weight; a buffer counts only in a GGUF file."""
        if self._sized != format:
            self._sized, self._sizes = format, {}
        if w not in self._sizes:
            self._sizes[w] = self._size(w, format)
        return self._sizes[w]

    def _size(self, w: Weight, format: str) -> int:
        if format in GGUF:
            return sum([stored.size for stored in self.gguf.of(w, format)])
        if w.is_buffer:
            return 0
        if self._is_of_file(format) and (file := self.file) is not None:
            return file.size(w)
        return sum([form.size(self.rows_and_columns(w, form), copies) for form, copies in self.of(w, format)])

    def _is_of_file(self, format: str) -> bool:
        """Whether a name means the format of the files at hand, which take precedence."""
        return (format == PUBLISHED or format in self.names) and self.file is not None and self.file.decides

    def rows_and_columns(self, w: Weight, form: Format, shape: Sequence[int] | None = None) -> Sequence[int]:
        """The shape of a weight, or of a part, as a quantizer sees it: inputs last, an expert's gate and up
        separate."""
        shape = w.shape if shape is None else shape
        if form.name in FORMATS and form is FORMATS[form.name] or form.name in GGUF_TYPES:
            return shape
        return self._rows_and_columns(w, shape)

    def _rows_and_columns(self, w: Weight, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 2:
            return shape
        *before, rows, columns = (*shape[:-2], shape[-1], shape[-2]) if w in self._transposed else shape
        if w.routed is not None and int(rows) % 2 == 0 and self._is_gate_and_up(w):
            return (*before, 2, int(rows) // 2, columns)
        return (*before, rows, columns)

    def _is_gate_and_up(self, w: Weight) -> bool:
        """Whether a stack of experts holds both the gate and the up projection, judging by its own name or by
        transformers' name for the fused stack."""
        fused = () if self.architecture is None else self.architecture.fused.items()
        return "gate_up" in w.name or any(
            "gate_up" in stack and len(parts) == 1 and w.name.endswith(f".{parts[0]}") for stack, parts in fused
        )

    def part_size(self, w: Weight, format: str, shape: Sequence[int], layers: tuple[int, ...], members: int) -> int:
        """Bytes of parts with this shape: this many members in each of these layers; a weight outside of layers exists
        once."""
        if format in FORMATS and format not in self.names:
            copies = members if w.layers is None else members * len(layers)
            return 0 if w.is_buffer else format_of(w, format).size(shape, copies)
        whole = 1 if w.members is None else int(w.members)
        if format in GGUF:
            total = sum(_size_in(stored, w, layers) for stored in self.gguf.of(w, format))
            if total == 0:
                return 0
            return -(-total * math.prod(shape) * members // (math.prod(map(int, w.shape)) * whole))
        if w.is_buffer:
            return 0
        if self._is_of_file(format) and (file := self.file) is not None:
            held = file.size(w, _numbers(w, None if w.layers is None else layers))
            return -(-held * math.prod(shape) * members // (math.prod(map(int, w.shape)) * whole))
        of_layers = None if w.layers is None else layers
        return sum(
            form.size(self.rows_and_columns(w, form, shape), copies * members // whole)
            for form, copies in self.of(w, format, of_layers)
        )

    def types(self, format: str) -> tuple[str, ...]:
        """The types, other than bfloat16, whose arithmetic represents every value of the weights."""
        if format == PUBLISHED or format in self.names:
            self.check()
            return tuple(dict.fromkeys(name for form in self.quantized for name in form.types))
        if format in GGUF:
            from .gguf_mixes import MIXES  # loaded on demand, as is its file

            return GGUF_TYPES[MIXES[format].base].types if format in MIXES else ()
        if format in QUANTIZERS:
            quantization = self._of_quantizer(format)
            form = quantization.linear or quantization.expert
            return () if form is None else form.types
        return FORMATS[format].types

    @cached_property
    def gguf(self) -> GgufFile:
        """The model's GGUF file. Raises `Problem` if llama.cpp has no such model."""
        from .gguf import GgufFile as made  # a browser loads these rules only for such a format

        converted = NO_CLASS if self.architecture is None else self.architecture.gguf
        return made(self.trace.weights.values(), converted, self.model_type, self.trace.symbols)

    def _in_file(self, w: Weight, format: str, layers: tuple[int, ...] | None) -> Copies:
        """The number of copies of a weight with each type in a GGUF file."""
        found: dict[Format, int] = {}
        each = 1 if w.members is None else int(w.members)
        parts = self.gguf.of(w, format)
        for stored in parts:
            if stored.tensor is parts[0].tensor:
                form = GGUF_TYPES[stored.type]
                found[form] = found.get(form, 0) + each * _inside(stored, w, layers)
        return tuple([(form, copies) for form, copies in found.items() if copies])

    def check(self) -> None:
        """Raise `Problem` if the published format is not known."""
        if self.problem is not None:
            raise self.problem

    def said(self, format: str) -> str:
        """The formats in words: `bfloat16`, `experts in mxfp4, the rest in bfloat16`."""
        if format != PUBLISHED and format not in self.names:
            return format
        self.check()
        said: list[str] = []
        for form, kinds in self.quantized.items():
            what = str(Kind.EXPERT.value) if kinds == {Kind.EXPERT} else str(Kind.LINEAR.value)
            before = f"{what} in {form.name}"
            other = f"other {before}"
            said.append(other if said and what == Kind.LINEAR.value else before)
        if said:
            return ", ".join([*dict.fromkeys(said), f"the rest in {self.rest.name}"])
        return " and ".join(self._wide)

    def phrase(self, format: str) -> str:
        """The formats as part of a sentence: `in fp8`, `as published (experts in mxfp4, the rest in bfloat16)`."""
        said = self.said(format)
        if format in GGUF and self.gguf.needs_matrix(format):
            return f"in {said} (made only with an importance matrix)"
        return f"as published ({said})" if " " in said else f"in {said}"

    @property
    def is_stated(self) -> bool:
        """Whether the config or the files state the format of the weights."""
        return self._is_said or self.file is not None

    @cached_property
    def file(self) -> FileWeights | None:
        """The tensors of the files, if these are at hand."""
        return None if self._read_file is None else self._read_file()

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the published formats of quantized weights."""
        return frozenset(form.name for form in self.quantized)

    @cached_property
    def _wide(self) -> list[str]:
        """The formats of the weights that are not quantized, the most frequent first."""
        if self.file is None:
            return [self.rest.name]
        found: dict[str, int] = {}
        for w in self.trace.weights.values():
            for form, copies in () if w.is_buffer else self.published(w):
                found[form.name] = found.get(form.name, 0) + int(w.count) // int(w.copies) * copies
        return sorted(found, key=lambda name: -found[name])

    def _of_quantizer(self, name: str) -> Quantization:
        """A quantizer's formats for the model. Raises `Problem` if they are not known."""
        if name not in self._quantizers:
            quantization = _of_quantizer(name, self.model_type if name.startswith("mlx") else "")
            if quantization.experts_unknown and any(kind is Kind.EXPERT for kind in self.kinds.values()):
                what = f"no rule is known for how {name} stores the experts of {shorten(self.model_type)}"
                raise Problem(what, "ask for another format, such as Q4_K_M or gptq-4bit-g128")
            self._quantizers[name] = quantization
        return self._quantizers[name]

    @cached_property
    def quantized(self) -> dict[Format, set[Kind]]:
        """The formats of the quantized weights, those of experts first, with the kinds of the weights in each."""
        found: dict[Format, set[Kind]] = {}
        if self.quantization is None:
            return found
        weights = [w for w in self.trace.weights.values() if not w.is_buffer and w.is_matrix]
        try:
            for w in sorted(weights, key=lambda w: self.kinds[w] is not Kind.EXPERT):
                for form, _ in self.published(w):
                    if form is not self.rest and form.bits < 16:
                        found.setdefault(form, set()).add(self.kinds[w])
        except Problem as problem:  # the other formats stay known
            self.problem = problem
            return {}
        return found

    def published(self, w: Weight, layers: tuple[int, ...] | None = None) -> Copies:
        """The number of copies of a weight in each published format, in all layers or in these. Raises `Problem` if the
        format is not known."""
        self.check()
        quantization = self.quantization
        if quantization is None:
            return ((self.rest, _copies(w, layers)),) if self.file is None else self._typed(w, self.file, layers)
        kept = self._kept.get(w)
        if kept is not None:
            return ((kept, _copies(w, layers)),)
        found = self._quantized(w, quantization, self.rest, layers)
        if quantization.scaled and w.name.endswith(f".{quantization.scaled}.weight"):
            return tuple([(replace(form, output_bits=16), copies) for form, copies in found])
        if quantization.writes_tied_head and w in self._tied_heads:
            head = next(
                (form for modules, form in quantization.listed if modules.holds(["lm_head"])), quantization.head
            )
            if head is None and all(form is self.rest for form, _ in found):
                return found  # one tensor for both
            return (*found, (self.rest if head is None else head, 1))
        return found

    def _quantized(self, w: Weight, quantization: Quantization, rest: Format, layers: tuple[int, ...] | None) -> Copies:
        """The number of copies of a weight in each format of a quantization, or with the rest."""
        is_looked_up, otherwise = self._unlisted(w, quantization, rest)
        if not is_looked_up or not quantization.listed:
            return ((self._holding(w, otherwise, rest), _copies(w, layers)),)
        has_numbers, has_members = quantization.has_numbers, quantization.has_members
        numbers = _numbers(w, layers)
        members = 1 if w.members is None else int(w.members)
        copies = (1 if has_numbers else len(numbers)) * (1 if has_members else members)
        looked_up = (len(numbers) if has_numbers else 1) * (members if has_members else 1)
        if looked_up > MOST_LOOKED_UP:
            raise Problem(f"{KEY}: {w.name} stands for {looked_up:,} modules, too many to look up in its lists", MEND)
        is_split = quantization.splits_experts and self.kinds[w] is Kind.EXPERT
        called = self._called(w, quantization.packed and not is_split)
        found: dict[Format, int] = {}
        for layer in numbers if has_numbers else numbers[:1]:
            for member in range(members if has_members else 1):
                names = [_numbered(name, layer, member) for name in called]
                form = next((form for modules, form in quantization.listed if modules.holds(names)), otherwise)
                if form is not None and quantization.tables_unknown and self.kinds[w] is Kind.TABLE:
                    raise Problem(f"{KEY}: how {w.name} was quantized is not known", MEND)
                form = self._holding(w, form, rest)
                found[form] = found.get(form, 0) + copies
        return tuple(found.items())

    def _unlisted(self, w: Weight, quantization: Quantization, rest: Format) -> tuple[bool, Format | None]:
        """Whether the lists of a quantization decide a weight's format, and its format if no list has it."""
        kind = self.kinds[w]
        if kind is Kind.EXPERT and quantization.experts_unknown:
            raise Problem(f"{KEY}: how {w.name} was quantized is not known", MEND)
        form = _otherwise(quantization, kind)
        if kind is Kind.LINEAR:
            is_left = w.layers is None and not quantization.outside
            if is_left or (w in self._transposed and not quantization.transposed):
                return False, rest
        elif kind is Kind.TABLE and quantization.lists_tables:
            return True, form
        elif form is None and kind is not Kind.EXPERT and kind is not Kind.HEAD:
            return False, rest
        return True, form

    def _holding(self, w: Weight, form: Format | None, rest: Format) -> Format:
        """The format, or the rest's if the matrix cannot have it."""
        if form is None or form.is_whole and not form.holds(self.rows_and_columns(w, form)):
            return rest
        return form

    def _called(self, w: Weight, packed: bool = True) -> list[str]:
        """The possible names of a weight in files; names of modules that pack several only with `packed`."""
        if self.architecture is None:
            return [w.name]
        if (w.name, packed) not in self._names:
            self._names[w.name, packed] = names_in_files(w.name, self.architecture, packed)
        return self._names[w.name, packed]

    def _typed(self, w: Weight, file: FileWeights, layers: tuple[int, ...] | None) -> Copies:
        """Like `_quantized`, from the headers of the files."""
        types = file.types(w, _numbers(w, layers))
        if not types:
            return ((self.rest, _copies(w, layers)),)
        for name in () if file.decides else types:
            if name not in TYPES_OF_FILES and name not in GGUF_TYPES:
                raise Problem(f"{w.name} is stored as {name}, and the config has no {KEY}", MEND)
        return tuple([(_of_type(name), copies) for name, copies in types.items()])

    @cached_property
    def _kept(self) -> dict[Weight, Format]:
        """The weights that the maker's files keep in a format, whatever the config says."""
        found: dict[Weight, Format] = {}
        ends = dict[str, str]() if self.architecture is None else self.architecture.kept
        for end, name in ends.items():
            for w in self.trace.weights.values():
                if w not in found and f".{w.name}".endswith(f".{end}"):
                    found[w] = KEPT_FORMATS[name]
        return found

    @cached_property
    def kinds(self) -> dict[Weight, Kind]:
        """The kind of each weight: among matrices only those of linear layers and of routed experts, and a separate
        head."""
        uses: dict[Weight, set[Role | None]] = {}
        for node in self.trace.root.walk():
            for w in node.weights:
                uses.setdefault(w, set()).add(node.role)
        experts = frozenset(
            symbol for w in uses if w.routed is not None for symbol in w.routed[0].symbols
        )  # of their number
        return {w: self._kind(w, roles, experts) for w, roles in uses.items()}

    def _kind(self, w: Weight, roles: set[Role | None], experts: frozenset[str]) -> Kind:
        is_linear = w.name.endswith(".weight") or w.members is not None
        if not w.is_matrix:
            is_row = len(w.shape) == 2 and int(w.shape[0]) == 1 and is_linear
            return Kind.GATE if is_row and roles & LINEAR else Kind.REST
        if roles & set(LOOKED_UP):
            return Kind.TABLE
        if w.routed is not None:
            return Kind.EXPERT
        if HEAD in roles:
            return Kind.HEAD
        if not is_linear or not roles & LINEAR:
            return Kind.REST
        return Kind.ROUTER if any(d.symbols & experts for d in w.shape) else Kind.LINEAR

    @cached_property
    def unmatched(self) -> list[str]:
        """The names in a quantization's lists that match no module; empty if the search would take long."""
        quantization = self.quantization
        entries = (
            [(modules, name) for modules, _ in quantization.listed for name in modules.listed] if quantization else []
        )
        names = [_numbered(one, i, 0) for w in self.kinds for one in self._called(w) for i in _numbers(w, None)]
        if not entries or len(entries) > MOST_ENTRIES or len(names) > MOST_NAMES:
            return []
        names = [*dict.fromkeys(names), "lm_head"]
        return [name for modules, name in entries if not Modules([name], modules.match, modules.ending).holds(names)]

    @cached_property
    def _tied_heads(self) -> frozenset[Weight]:
        """The tables that are also the output head."""
        heads = {w for node in self.trace.root.walk() if node.role is HEAD for w in node.all_weights()}
        return frozenset(w for w in heads if self.kinds[w] is Kind.TABLE)

    @cached_property
    def _transposed(self) -> frozenset[Weight]:
        """The matrices that are stored [in, out]."""
        found: set[Weight] = set()
        for node in self.trace.root.walk():
            if node.role is Role.CONV1D:
                found.update(w for w in node.weights if len(w.shape) > 1)
            elif node.role is Role.EXPERT_LINEAR and node.outputs:
                width = int(node.outputs[0].shape[-1])
                stacks = [x.origin.source for x in node.inputs]
                found.update(w for w in stacks if isinstance(w, Weight) and int(w.shape[-2]) != width)
        return frozenset(found)


@cache
def _of_type(name: str) -> Format:
    """The format of a type in a file; just its name for a type that does not hold weights by itself."""
    if name in TYPES_OF_FILES:
        return FORMATS[TYPES_OF_FILES[name]]
    return GGUF_TYPES[name] if name in GGUF_TYPES else Format(name, BITS_OF_TYPES.get(name, 8))


@cache
def _of_quantizer(name: str, model_type: str) -> Quantization:
    """A quantizer's formats; only MLX's depend on the type of the model."""
    quantization = read({KEY: QUANTIZERS[name], "model_type": model_type})
    assert quantization is not None
    return quantization


def _otherwise(quantization: Quantization, kind: Kind) -> Format | None:
    """The format of the weights of a kind that are not listed."""
    if kind is Kind.REST:
        return None
    if kind is Kind.LINEAR:
        return quantization.linear
    if kind is Kind.EXPERT:
        return quantization.expert
    if kind is Kind.HEAD:
        return quantization.head
    if kind is Kind.TABLE:
        return quantization.table
    return quantization.router if kind is Kind.ROUTER else quantization.gate


def _numbered(name: str, layer: int | None, member: int) -> str:
    """The name of the module of one copy of a weight."""
    return name.replace("{i}", str(layer)).replace("{e}", str(member)).removesuffix(".weight")


def _inside(stored: Stored, w: Weight, layers: tuple[int, ...] | None) -> int:
    """How many of a weight's layers a tensor of a file holds; 1 outside of layers."""
    if stored.layers is None:
        return 1
    if layers is None or layers == w.layers:
        return len(stored.layers)
    wanted = set(_numbers(w, layers))
    return sum(number in wanted for number in stored.layers)


def _size_in(stored: Stored, w: Weight, layers: tuple[int, ...]) -> int:
    """Bytes of a tensor of a file in these layers of a weight."""
    return stored.size // len(stored.layers or (0,)) * _inside(stored, w, layers)


def _numbers(w: Weight, layers: tuple[int, ...] | None) -> list[int | None]:
    """The values of `{i}` in the name in all layers, or in these."""
    if w.layers is None:
        return [None]
    if layers is None:
        return list(w.numbered or ())
    here = set(layers)
    return [number for layer, number in zip(w.layers, w.numbered or ()) if layer in here]


def _copies(w: Weight, layers: tuple[int, ...] | None) -> int:
    """The number of copies of a weight, in all layers or in these."""
    if layers is None:
        return int(w.copies)
    own = w.layers or ()
    start = bisect_left(own, layers[0]) if layers else 0
    is_run = own[start : start + len(layers)] == layers  # as in a pipeline stage: found without scanning all
    return int(w.copies) // int(w.layer_count) * (len(layers) if is_run else len(_numbers(w, layers)))
