"""A model's GGUF file: the tensors that llama.cpp's converter makes of the checkpoint's, and for each format the type
and bytes of each.

The count covers the data of the tensors. The header, the tokenizer and the values that the converter computes from the
config (the factors of a scaled RoPE) come on top. Layers for multi-token prediction are not part of the counted model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from ..engine.errors import Problem, shorten
from ..engine.tensors import Weight
from .gguf_mixes import (
    BY_LAYER,
    HEAD,
    MIXES,
    NEED_MATRIX,
    NEVER_QUANTIZED,
    Mix,
    Place,
    bytes_of_row,
    fitting,
    type_in,
    use_of,
    zone_of,
)
from .gguf_names import ARCHITECTURES, BY_TYPE, IN_32_BITS, LAYER, OUTSIDE, WITHOUT, Converted
from .gguf_types import PLAIN

Key = TypeVar("Key")
Shape = tuple[int, ...]
Alike = tuple[str, int, bool, bool]  # what decides a matrix's type besides its layer: see `GgufFile._alike`
Zones = tuple[tuple[int, tuple[int, ...]], ...]  # and its layers: see `GgufFile._zones`
STACKS = (("encoder.block.", "enc.blk.{i}."), ("decoder.block.", "dec.blk.{i}."))  # of an encoder and a decoder
# Uses whose tensors are told apart by the layer, in a model with experts by the layer of the name.
_BY_LAYER = frozenset(("down", "gate", "up"))


@dataclass(frozen=True)
class Tensor:
    """A tensor of a GGUF file, or all its copies over `layers`: `{i}` in the name stands for the layer.

    `shape` is in NumPy's order, the row last; `plain` is the type that the converter writes if it is not that of
    matrices. `weight` is the weight that it is made from.
    """

    name: str
    shape: Shape
    layers: tuple[int, ...] | None
    plain: str | None
    weight: Weight

    @cached_property
    def rows(self) -> int:
        """The number of rows of one copy."""
        return math.prod(self.shape[:-1])

    @cached_property
    def columns(self) -> int:
        """The numbers of a row."""
        return self.shape[-1] if self.shape else 1

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

    def __init__(self, weights: Iterable[Weight], model_type: str, symbols: Mapping[str, int]):
        """`symbols` are the model's sizes by name."""
        if model_type not in BY_TYPE:
            why = f": {WITHOUT[model_type]}" if model_type in WITHOUT else ""
            raise Problem(
                f"no GGUF format is known for {shorten(model_type)}{why}",
                "ask for another format, such as bfloat16 or int4",
            )
        weights = tuple(weights)
        self.architecture: str = BY_TYPE[model_type]
        for part, name in ARCHITECTURES[self.architecture].becomes:
            if any(part in w.name for w in weights):
                self.architecture = name
                break
        self.converted: Converted = ARCHITECTURES[self.architecture]
        self.architecture = self.converted.name or self.architecture
        self.symbols: Mapping[str, int] = symbols
        if symbols.get("n_decoder_layers", 0) > symbols.get("n_encoder_layers", 0):
            raise Problem(
                "llama.cpp's converter takes no more decoder layers than encoder layers",
                "ask for a format other than GGUF",
            )
        self._kept: dict[str, tuple[Stored, ...]] = {}
        self._places: dict[tuple[bool, int, int, bool], Place] = {}
        self._made: dict[tuple[str, Weight], tuple[Stored, ...]] = {}  # in each format, what is made of a weight
        self.tensors: tuple[Tensor, ...] = tuple(t for w in weights for t in self._made_of(w))

    @cached_property
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
        """The number of layers as llama.cpp has it: of an encoder and a decoder those of the encoder."""
        return self.symbols["n_layers"] if "n_layers" in self.symbols else self.symbols["n_encoder_layers"]

    @cached_property
    def queries_per_key(self) -> int:
        """The number of query heads that share a key in the first layer; 0 if it has no attention."""
        if self.converted.is_by_layer:
            rows = {use_of(t.name): t.shape[0] for t in self.tensors if 0 in (t.layers or ())}
            return rows["queries"] // rows["keys"] if "keys" in rows else 0
        heads = self.symbols.get("n_heads", 0)
        key_heads = self.converted.kv_heads or self.symbols.get("n_kv_heads", heads)
        return heads // key_heads if key_heads else 0

    @cached_property
    def is_70b(self) -> bool:
        """Whether llama.cpp takes it for one of the models of 70 billion, whose values it keeps better."""
        if self.converted.seventy != self.layers:
            return False
        heads = self.symbols["n_heads"]
        return self.architecture != "llama" or (self.experts != 8 and heads != self.symbols.get("n_kv_heads", heads))

    def stored(self, format: str, *, has_matrix: bool = False) -> tuple[Stored, ...]:
        """Every tensor with its types in a format of `FORMATS`; `has_matrix` if an importance matrix is given."""
        return self._stored(range(len(self.tensors)), format, has_matrix)

    def _stored(self, positions: Iterable[int], format: str, has_matrix: bool) -> tuple[Stored, ...]:
        """The same of the tensors at some positions."""
        found: list[Stored] = []
        for position in positions:
            tensor, zones, alike = self.tensors[position], self._zones[position], self._alike[position]
            if format in PLAIN:
                found.append(Stored(tensor, tensor.plain or format, tensor.layers))
            elif zones is None:  # what no format touches is as in an F16 file
                found.append(Stored(tensor, tensor.plain or "F16", tensor.layers))
            elif alike[0] not in (mix := MIXES[format]).by_layer:
                found.append(Stored(tensor, self._type(alike, -1, 0, mix, has_matrix), tensor.layers))
            else:
                types: dict[str, list[int]] = {}
                for number, layers in zones:
                    types.setdefault(self._type(alike, layers[0], number, mix, has_matrix), []).extend(layers)
                found += [
                    Stored(tensor, name, tensor.layers and tuple(sorted(layers))) for name, layers in types.items()
                ]
        return tuple(found)

    @cached_property
    def _alike(self) -> tuple[Alike, ...]:
        """For each tensor what decides its type besides its layer: its use, its columns, and whether it is a stack, or
        one that no format makes smaller than 8 bits."""
        return tuple(
            [
                (
                    use_of(t.name),
                    t.columns,
                    len(t.shape) > 2,
                    any(part in t.name for part in self.converted.no_less),
                )
                for t in self.tensors
            ]
        )

    @cached_property
    def _zones(self) -> tuple[Zones | None, ...]:
        """For each tensor that the quantizer touches, the layers that no condition of a mix tells apart, with the
        `_numbers` of the first of them; nothing for those whose layers no mix asks for."""
        found: list[Zones | None] = []
        known: dict[tuple[int, tuple[tuple[int, int], ...]], Zones] = {}  # most uses have the same layers
        for tensor, numbers, is_quantized in zip(self.tensors, self._numbers, self._are_quantized):
            if not is_quantized:
                found.append(None)
                continue
            of = self._values if use_of(tensor.name) == "values" else self.layers
            key = of, tuple(numbers.items())
            if key not in known:
                alike: dict[tuple[int, int, int], tuple[int, list[int]]] = {}
                for layer, number in numbers.items():
                    zone = (zone_of(layer, of), zone_of(number, of), min(number, 4))
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
        """Where the tensors are that are made from each tensor of the checkpoint."""
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
            return sum(rows * bytes_of_row(plain or format, columns) for (plain, columns), rows in self._rows.items())
        touched = [rows * bytes_of_row(name, columns) for (_, columns, _, _), name, rows in self._rows_in(format)]
        return self._untouched + sum(touched)

    @cached_property
    def _rows(self) -> dict[tuple[str | None, int], int]:
        """The number of rows of all tensors, by the type that the converter writes and the columns."""
        return _added(((t.plain, t.columns), t.rows * t.copies) for t in self.tensors)

    @cached_property
    def _untouched(self) -> int:
        """Bytes of the tensors that the quantizer does not touch."""
        found = [t for t, zones in zip(self.tensors, self._zones) if zones is None]
        return sum(t.rows * t.copies * bytes_of_row(t.plain or "F16", t.columns) for t in found)

    def _rows_in(self, format: str) -> list[tuple[Alike, str, int]]:
        """The number of rows of each type in a format, of the tensors that the quantizer touches, with what decides
        it."""
        mix = MIXES[format]
        of_all = [
            (alike, self._type(alike, -1, 0, mix, False), rows)
            for alike, rows in self._touched.items()
            if alike[0] not in mix.by_layer
        ]
        by_layer = [
            (alike, self._type(alike, layer, number, mix, False), rows)
            for (alike, layer, number), rows in self._touched_by_layer.items()
            if alike[0] in mix.by_layer
        ]
        return of_all + by_layer

    @cached_property
    def _touched(self) -> dict[Alike, int]:
        """The number of rows that the quantizer touches, by what decides their type besides the layer."""
        tensors = zip(self.tensors, self._zones, self._alike)
        return _added((alike, t.rows * t.copies) for t, zones, alike in tensors if zones is not None)

    @cached_property
    def _touched_by_layer(self) -> dict[tuple[Alike, int, int], int]:
        """The same, where a mix asks for the layer, by the first layer of a zone and its number."""
        tensors = zip(self.tensors, self._zones, self._alike)
        return _added(
            ((alike, layers[0], number), t.rows * len(layers))
            for t, zones, alike in tensors
            for number, layers in zones or ()
        )

    @cached_property
    def elements(self) -> int:
        """Numbers in all tensors."""
        return sum(math.prod(t.shape) * t.copies for t in self.tensors)

    def needs_matrix(self, format: str) -> bool:
        """Whether llama.cpp makes a format only with an importance matrix."""
        needing = (*NEED_MATRIX, "Q2_K") if format == "Q2_K_S" else NEED_MATRIX
        if format in PLAIN:
            return False
        rows = self._rows_in(format)
        return any(name in needing and use not in ("head", "table") for (use, _, _, _), name, _ in rows)

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
        """Of the tensors at these positions, the copies that the quantizer comes to, as positions and layers: by layer,
        then by name; before these, by name alone, the tensors whose name does not begin with the layer."""
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

    def _type(self, alike: Alike, layer: int, number: int, mix: Mix, has_matrix: bool) -> str:
        """The type of one copy of a matrix."""
        use, columns, is_stack, is_no_less = alike
        if is_no_less:
            return fitting("Q8_0", columns)
        by_name = use in _BY_LAYER and self.experts > 0 and not mix.is_lowest
        place = self._place(use == "values", layer if by_name else number, number, has_matrix)
        is_head = use == "head" or (use == "table" and self.is_tied)
        # a latent's projections are stacks too, by head; llama.cpp tells them from experts in one architecture
        is_stack = is_stack and (self.architecture != "bailingmoe3" or use in _BY_LAYER)
        return type_in(mix, use, place, columns, is_head=is_head, is_stack=is_stack)

    def _place(self, is_values: bool, layer: int, number: int, has_matrix: bool) -> Place:
        """The place of a tensor; all formats ask for the same ones."""
        key = is_values, layer, number, has_matrix
        if key not in self._places:
            self._places[key] = Place(
                self.architecture,
                self.queries_per_key,
                self.experts,
                layer,
                self._values if is_values else self.layers,
                number,
                has_matrix,
                self.is_70b,
            )
        return self._places[key]

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
        """The tensors that the converter makes from a tensor of the checkpoint."""
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
            tensors.append(Tensor(whole, part, w.numbered if blocks else None, self._plain(whole, part), w))
        return tensors

    def _outside(self, stem: str) -> str | None:
        """The counterpart of a tensor outside of the layers: by its whole name, or by the end of it."""
        while True:
            made = self.converted.outside.get(stem, OUTSIDE.get(stem))
            if made is not None or "." not in stem:
                return made
            stem = stem.partition(".")[2]

    def _parts(self, how: str, shape: Shape, number: int) -> list[Shape]:
        """The shapes of the tensors that a tensor becomes."""
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
        """The type that the converter writes for a tensor, if it is not that of matrices."""
        if any(name.endswith(end) for end in self.converted.f16):
            return None
        if len(shape) > 1:
            for end, kind in self.converted.native:
                if name.endswith(end):
                    return kind
        is_wide = len(shape) < 2 or not name.endswith(".weight") or name.endswith("_norm.weight")
        return "F32" if is_wide or any(name.endswith(end) for end in IN_32_BITS) else None


def _added(rows: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    """The sum of the numbers of each key."""
    found: dict[Key, int] = {}
    for key, number in rows:
        found[key] = found.get(key, 0) + number
    return found
