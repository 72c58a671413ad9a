"""A model's GGUF file: the tensors that llama.cpp's converter produces from the checkpoint's, and the type and bytes of
each in each format.

The count covers the data of the tensors. The header, the tokenizer and the values that the converter computes from the
config (the factors of a scaled RoPE) come on top. Layers for multi-token prediction are not part of the modeled file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple, TypeVar

from msgspec import Struct

from ..engine.errors import Problem, shorten
from ..engine.facts import Gguf
from ..engine.tensors import Weight
from .gguf_mixes import (
    BY_LAYER,
    HEAD,
    NEED_MATRIX,
    NEVER_QUANTIZED,
    Kind,
    Terms,
    bytes_of_row,
    row_bytes_of,
    terms_of,
    types_of,
    use_of,
    zone_of,
)
from .gguf_names import IN_32_BITS, LAYER, OUTSIDE
from .gguf_types import BLOCKS, PLAIN

Key = TypeVar("Key")
Shape = tuple[int, ...]
LARGEST_BLOCK = max([elements for elements, _ in BLOCKS.values()])  # elements; the sizes of all other blocks divide it
Zones = tuple[tuple[int, tuple[int, ...]], ...]  # see `GgufFile._zones`
STACKS = (("encoder.block.", "enc.blk.{i}."), ("decoder.block.", "dec.blk.{i}."))  # an encoder and a decoder
# Uses whose tensors differ from layer to layer; in a model with experts, by the layer in the name.
_BY_LAYER = frozenset(("down", "gate", "up"))


class Tensor(Struct, frozen=True, dict=True):
    """A tensor of a GGUF file, or all its copies over `layers`: `{i}` in the name stands for the layer.

    `shape` is in NumPy's order, the row last; `plain` is the type that the converter writes if it differs from that of
    matrices. `weight` is the weight that it is made from, and `how` what is done to it.
    """

    name: str
    shape: Shape
    layers: tuple[int, ...] | None
    plain: str | None
    weight: Weight
    how: str = ""

    @cached_property
    def rows(self) -> int:
        """The number of rows of one copy."""
        return math.prod(self.shape[:-1])

    @cached_property
    def columns(self) -> int:
        """The number of elements in a row."""
        return self.shape[-1] if self.shape else 1

    @cached_property
    def unit(self) -> int:
        """The size of the largest part of a row that is a whole number of a type's blocks if and only if the row is."""
        return math.gcd(self.columns, LARGEST_BLOCK)

    @property
    def units(self) -> int:
        """The number of these parts in one copy."""
        return self.rows * (self.columns // self.unit)

    @property
    def copies(self) -> int:
        """The number of copies."""
        return 1 if self.layers is None else len(self.layers)

    @property
    def is_matrix(self) -> bool:
        """Whether it has two axes or more, leading axes of length one aside."""
        return self.rows > 1

    def named(self, layer: int | None) -> str:
        """The name of one copy."""
        return self.name if layer is None else self.name.replace("{i}", str(layer))


class Stored(NamedTuple):
    """A tensor with copies, those of `layers`, that are stored in one type."""

    tensor: Tensor
    type: str
    layers: tuple[int, ...] | None

    @property
    def size(self) -> int:
        """Bytes of all copies."""
        copies = 1 if self.layers is None else len(self.layers)
        return self.tensor.rows * bytes_of_row(self.type, self.tensor.columns) * copies


class GgufFile:
    """The GGUF file of a model. Raises `Problem` if llama.cpp has no such model, or a tensor has no counterpart."""

    def __init__(self, weights: Iterable[Weight], converted: Gguf | str, model_type: str, symbols: Mapping[str, int]):
        """`converted` says how llama.cpp converts the model, or why it does not; `symbols` are the model's sizes by
        name."""
        if isinstance(converted, str):
            raise Problem(
                f"no GGUF format is known for {shorten(model_type)}: {converted}",
                "ask for another format, such as bfloat16 or int4",
            )
        weights = tuple(weights)
        others = (other for part, other in converted.becomes if any(part in w.name for w in weights))
        self.converted: Gguf = next(others, converted)
        self.architecture: str = self.converted.name
        self.symbols: Mapping[str, int] = symbols
        if symbols.get("n_decoder_layers", 0) > symbols.get("n_encoder_layers", 0):
            raise Problem(
                "llama.cpp's converter takes no more decoder layers than encoder layers",
                "ask for a format other than GGUF",
            )
        self._kept: dict[str, tuple[Stored, ...]] = {}
        self._of_matrix: dict[bool, list[list[tuple[Kind, tuple[int, ...]]] | None]] = {}
        self._terms: dict[tuple[bool, int, int, bool], Terms] = {}
        self._made: dict[tuple[str, Weight], tuple[Stored, ...]] = {}  # the tensors made from a weight in each format
        self.tensors: tuple[Tensor, ...] = tuple(t for w in weights for t in self._made_of(w))

    @property
    def is_tied(self) -> bool:
        """Whether the embedding table is also the output head."""
        return all(t.name != HEAD for t in self.tensors)

    @cached_property
    def experts(self) -> int:
        """The number of routed experts of a layer; 0 if there is only one."""
        experts = self.symbols.get("n_experts", 0)
        return experts if experts > 1 else 0

    @cached_property
    def layers(self) -> int:
        """The number of layers as llama.cpp counts them: with an encoder and a decoder, those of the encoder."""
        return self.symbols["n_layers"] if "n_layers" in self.symbols else self.symbols["n_encoder_layers"]

    @cached_property
    def queries_per_key(self) -> int:
        """The number of query heads that share a key in the first layer; 0 if it has no attention."""
        if self.converted.is_by_layer:
            rows = {use_of(t.name): t.shape[0] for t in self.tensors if 0 in (t.layers or ())}
            return rows["queries"] // rows["keys"] if "keys" in rows else 0
        heads = self.symbols.get("n_heads", 0)
        key_heads = 1 if self.converted.is_latent else self.symbols.get("n_kv_heads", heads)
        return heads // key_heads if key_heads else 0

    @cached_property
    def is_70b(self) -> bool:
        """Whether llama.cpp treats it as a 70B model, whose values it keeps in more bits."""
        if self.converted.seventy != self.layers:
            return False
        heads = self.symbols["n_heads"]
        return self.architecture != "llama" or (self.experts != 8 and heads != self.symbols.get("n_kv_heads", heads))

    def stored(self, format: str, *, has_matrix: bool = False) -> tuple[Stored, ...]:
        """Every tensor with its types in a format of `FORMATS`; `has_matrix` if an importance matrix is given."""
        return self._stored(range(len(self.tensors)), format, has_matrix)

    def _stored(self, positions: Iterable[int], format: str, has_matrix: bool) -> tuple[Stored, ...]:
        """Like `stored`, for the tensors at these positions."""
        found: list[Stored] = []
        of_all = self._kinds(has_matrix)
        for position in positions:
            tensor, kinds = self.tensors[position], of_all[position]
            if format in PLAIN or kinds is None:  # tensors that no format touches, as in an F16 file
                found.append(Stored(tensor, tensor.plain or (format if format in PLAIN else "F16"), tensor.layers))
                continue
            types: dict[str, list[int]] = {}
            for kind, layers in kinds:
                types.setdefault(types_of(kind)[format], []).extend(layers)
            found += [
                Stored(tensor, name, tensor.layers if len(types) == 1 else tuple(sorted(layers)))
                for name, layers in types.items()
            ]
        return tuple(found)

    @cached_property
    def _zones(self) -> tuple[Zones | None, ...]:
        """For each tensor that the quantizer touches, the groups of layers that a mix's conditions do not distinguish,
        each with the `_numbers` of its first layer; a single group for tensors for which no mix depends on the
        layer."""
        found: list[Zones | None] = []
        known: dict[tuple[int, tuple[tuple[int, int], ...]], Zones] = {}  # most uses have the same layers
        for tensor, numbers, is_quantized in zip(self.tensors, self._numbers, self._are_quantized):
            if not is_quantized:
                found.append(None)
                continue
            if not numbers:
                found.append(((0, (-1,)),))
                continue
            of = self._values if use_of(tensor.name) == "values" else self.layers
            key = of, tuple(numbers.items())
            if key not in known:
                alike: dict[tuple[int, int, int], tuple[int, list[int]]] = {}
                for layer, number in numbers.items():
                    zone = (zone_of(layer, of), zone_of(number, of), min(number // 2, 2))
                    alike.setdefault(zone, (number, []))[1].append(layer)
                known[key] = tuple([(number, tuple(layers)) for number, layers in alike.values()])
            found.append(known[key])
        return tuple(found)

    def of(self, w: Weight, format: str) -> tuple[Stored, ...]:
        """The stored tensors made from a tensor of the checkpoint."""
        key = format, w
        if key not in self._made:
            self._made[key] = self._stored(self._positions.get(w, ()), format, False)
        return self._made[key]

    @cached_property
    def _positions(self) -> dict[Weight, list[int]]:
        """The positions of the tensors made from each tensor of the checkpoint."""
        found: dict[Weight, list[int]] = {}
        for position, tensor in enumerate(self.tensors):
            found.setdefault(tensor.weight, []).append(position)
        return found

    def in_format(self, format: str) -> tuple[Stored, ...]:
        """`stored` without an importance matrix, cached."""
        if format not in self._kept:
            self._kept[format] = self.stored(format)
        return self._kept[format]

    def size(self, format: str) -> int:
        """Bytes of all tensors in a format."""
        if format in PLAIN:
            return sum([units * bytes_of_row(plain or format, unit) for (plain, unit), units in self._units.items()])
        return self._untouched + sum([units * rows[format] for rows, units in self._rows])

    @cached_property
    def _units(self) -> dict[tuple[str | None, int], int]:
        """The number of units of all tensors, by the type that the converter writes and by their numbers."""
        return _added([((t.plain, t.unit), t.units * t.copies) for t in self.tensors])

    @cached_property
    def _untouched(self) -> int:
        """Bytes of the tensors that the quantizer does not touch."""
        found = [t for t, zones in zip(self.tensors, self._zones) if zones is None]
        return sum(t.rows * t.copies * bytes_of_row(t.plain or "F16", t.columns) for t in found)

    @cached_property
    def _rows(self) -> list[tuple[dict[str, int], int]]:
        """For each kind of quantized tensor, the bytes of a unit in each format, and the number of units."""
        return [(row_bytes_of(kind), units) for kind, units in self._touched.items()]

    @cached_property
    def _touched(self) -> dict[Kind, int]:
        """The number of quantized units, by the properties that decide their type."""
        return _added(
            [
                (kind, t.units * (t.copies if len(kinds) == 1 else len(layers)))
                for t, kinds in zip(self.tensors, self._kinds(False))
                if kinds is not None
                for kind, layers in kinds
            ]
        )

    @property
    def elements(self) -> int:
        """The number of elements in all tensors."""
        return sum(math.prod(t.shape) * t.copies for t in self.tensors)

    def needs_matrix(self, format: str) -> bool:
        """Whether llama.cpp requires an importance matrix for a format."""
        needing = (*NEED_MATRIX, "Q2_K") if format == "Q2_K_S" else NEED_MATRIX
        if format in PLAIN:
            return False
        return any(types_of(kind)[format] in needing and kind.use not in ("head", "table") for kind in self._touched)

    @cached_property
    def _numbers(self) -> list[dict[int, int]]:
        """For each tensor whose type may depend on the layer, and each of its layers, the number of earlier ones with
        the same use."""
        found: list[dict[int, int]] = [{} for _ in self.tensors]
        seen: dict[str, int] = {}
        uses = [use_of(t.name) for t in self.tensors]
        for position, layer in self._in_order([p for p, use in enumerate(uses) if use in BY_LAYER]):
            use = uses[position]
            found[position][layer] = seen.get(use, 0)
            seen[use] = seen.get(use, 0) + 1
        return found

    def _in_order(self, positions: list[int]) -> Iterator[tuple[int, int]]:
        """The copies of the tensors at these positions in the order in which the quantizer reaches them, as positions
        and layers: by layer, then by name. Tensors whose name does not start with the layer come first, by name
        only."""
        quantized = [p for p in positions if self._are_quantized[p]]
        names = [t.name for t in self.tensors]
        blocks = sorted([p for p in quantized if names[p].startswith("blk.")], key=lambda p: names[p])
        others = [
            (self.tensors[p].named(layer), p, layer)
            for p in quantized
            if not names[p].startswith("blk.")
            for layer in self.tensors[p].layers or (-1,)
        ]
        for _, position, layer in sorted(others):
            yield position, layer
        layers = [frozenset(self.tensors[p].layers or ()) for p in blocks]
        for layer in range(1 + max([max(some) for some in layers if some], default=-1)):
            for position, some in zip(blocks, layers):
                if layer in some:
                    yield position, layer

    @cached_property
    def _values(self) -> int:
        """The number of tensors of values."""
        return sum(len(t.layers or (0,)) for t in self.tensors if use_of(t.name) == "values")

    def _kinds(self, has_matrix: bool) -> list[list[tuple[Kind, tuple[int, ...]]] | None]:
        """For each tensor that the quantizer touches, what decides its type in the layers of each of its `_zones`."""
        if has_matrix not in self._of_matrix:
            self._of_matrix[has_matrix] = [
                None if zones is None else [(self._kind(t, layers[0], n, has_matrix), layers) for n, layers in zones]
                for t, zones in zip(self.tensors, self._zones)
            ]
        return self._of_matrix[has_matrix]

    def _kind(self, t: Tensor, layer: int, number: int, has_matrix: bool) -> Kind:
        """The properties that decide the type of one copy of a matrix."""
        use = use_of(t.name)
        terms = counted = self._terms_of(use == "values", number, number, has_matrix)
        if use in _BY_LAYER and self.experts > 0:
            terms = self._terms_of(False, layer, number, has_matrix)
        is_head = use == "head" or (use == "table" and self.is_tied)
        # a latent's projections are also stacks, one matrix per head; llama.cpp distinguishes them from experts in one
        # architecture
        is_stack = len(t.shape) > 2 and (self.architecture != "bailingmoe3" or use in _BY_LAYER)
        is_no_less = any(part in t.name for part in self.converted.no_less)
        return Kind(use, t.unit, is_head, is_stack, is_no_less, terms, counted)

    def _terms_of(self, is_values: bool, layer: int, number: int, has_matrix: bool) -> Terms:
        """The terms that hold for a tensor's position, cached because many tensors share it."""
        key = is_values, layer, number, has_matrix
        if key not in self._terms:
            self._terms[key] = terms_of(
                self.architecture,
                self.queries_per_key,
                self.experts,
                layer,
                self._values if is_values else self.layers,
                number,
                has_matrix,
                self.is_70b,
            )
        return self._terms[key]

    @cached_property
    def _are_quantized(self) -> list[bool]:
        """Whether the quantizer touches each tensor."""
        never = (*NEVER_QUANTIZED, *self.converted.kept)
        return [
            t.is_matrix and t.name.endswith(".weight") and not [part for part in never if part in t.name]
            for t in self.tensors
        ]

    # from the checkpoint's tensors

    def _made_of(self, w: Weight) -> list[Tensor]:
        """The tensors that the converter produces from a tensor of the checkpoint."""
        stem, ending = w.name, ""
        for end in (".weight", ".bias"):
            if w.name.endswith(end):
                stem, ending = w.name.removesuffix(end), end
        shape = tuple([int(d) for d in w.shape])
        if "{i}." in stem:
            below = stem.partition("{i}.")[2]
            if w.members is not None:
                below = below.replace("{e}.", "")
                shape = (int(w.members), *shape)
            made = self.converted.layer.get(below, LAYER.get(below))
            blocks = next((blocks for part, blocks in STACKS if stem.startswith(part)), "blk.{i}.")
            if below == "layer.1.layer_norm":
                made = "ffn_norm" if blocks == "enc.blk.{i}." else "cross_attn_norm"
        else:
            blocks, made = "", self._outside(stem)
        if made is None:
            raise Problem(f"{w.name}: no GGUF tensor is known for it", "ask for a format other than GGUF")
        how, _, names = made.rpartition(":")
        if names == "-":
            return []
        tensors: list[Tensor] = []
        if how == "heads":
            many, one_each = names.split("/")
            how, names = "", one_each if shape[0] == self.symbols["n_heads"] else many
        if not self.experts:
            names = names.replace("_shexp", "")  # without routed experts, the shared one is the feed-forward layer
        if names.startswith("=="):
            blocks, names = "", names[1:]
        for name, part in zip(names.removeprefix("=").split("/"), self._parts(how, shape, names.count("/") + 1)):
            whole = blocks + name if names.startswith("=") else blocks + name + (ending or ".weight")
            tensors.append(Tensor(whole, part, w.numbered if blocks else None, self._plain(whole, part), w, how))
        return tensors

    def _outside(self, stem: str) -> str | None:
        """The counterpart of a tensor outside the layers: by its full name, or by its suffix."""
        while True:
            made = self.converted.outside.get(stem, OUTSIDE.get(stem))
            if made is not None or "." not in stem:
                return made
            stem = stem.partition(".")[2]

    def _parts(self, how: str, shape: Shape, number: int) -> list[Shape]:
        """The shapes of the tensors that a tensor is converted to."""
        if how == "latent":
            heads, nope, value = (self.symbols[name] for name in ("n_heads", "qk_nope_head_dim", "v_head_dim"))
            return [(heads, shape[1], nope), (heads, value, shape[1])]
        if how == "gate":
            gate = self.symbols["n_linear_v_heads"] * self.symbols["d_linear_v_head"]
            return [(shape[0] - gate, shape[1]), (gate, shape[1])]
        if how == "halves":
            return [(*shape[:-1], shape[-1] // number)] * number
        if how == "taps":
            return [tuple([d for d in shape if d > 1])]
        if how == "windows":
            return [(1, shape[0] // number, *shape[1:])] * number
        if how == "heads of each":
            heads, head = (self.symbols[name] for name in ("n_heads", "d_head"))
            key_heads = self.symbols.get("n_kv_heads", heads)
            return [(each * head, *shape[1:]) for each in (heads, key_heads, key_heads)]
        if how == "queries and keys":
            queries = self.symbols["index_n_heads"] * self.symbols["index_head_dim"]
            return [(queries, shape[1]), (shape[0] - queries, shape[1])]
        if how == "positions":
            return [(shape[0] - 1 - self.symbols["padding"], shape[1])]
        if how == "tripled":
            return [(3 * shape[0], *shape[1:])]
        if how == "column":
            return [(*shape, 1)]
        if how == "stack":
            return [(self.symbols["n_streams"] - 1, *shape)]
        if how == "padded":
            return [(max(shape[0], self.symbols["vocab_size"]), shape[1])]
        if how == "groups":
            groups = self.symbols["n_groups"]
            return [(groups, shape[0] // groups)]
        *before, columns = shape
        if how.startswith("equal"):
            experts = self.symbols["n_experts"]
            before = [experts, before[0] // experts]
        if how.endswith("turned") and before:
            before[-1], columns = columns, before[-1]
        if how == "doubled":
            before[-1] *= 2
        if number > 1:
            before[-1] //= number
        return [(*before, columns)] * number

    def _plain(self, name: str, shape: Shape) -> str | None:
        """The type that the converter writes for a tensor, if it differs from that of matrices."""
        if name.endswith(self.converted.f16):
            return None
        if len(shape) > 1:
            for end, kind in self.converted.native:
                if name.endswith(end):
                    return kind
        is_wide = len(shape) < 2 or not name.endswith(".weight") or name.endswith("_norm.weight")
        return "F32" if is_wide or name.endswith(IN_32_BITS) else None


def _added(numbers: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    """Sum the numbers of each key."""
    found: dict[Key, int] = {}
    for key, number in numbers:
        found[key] = found.get(key, 0) + number
    return found
