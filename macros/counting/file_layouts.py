"""Maps the tensors of safetensors files to the weights that they hold, however the files spell or pack the names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..engine.architectures import Architecture
from ..engine.layouts import Cut, Layout, Place
from ..engine.tensors import Weight
from .file_weights import FileWeights, Held, StoredTensor

# Tensors that quantizers store next to or instead of a matrix, by the end of their name, with the matrix that they
# belong to.
_BESIDE = re.compile(
    r"(\.weight)?(\.(absmax|quant_map|nested_absmax|nested_quant_map|quant_state\.bitsandbytes__\w+)"
    r"|\.(SCB|weight_format|qweight|qzeros|scales|biases|g_idx|(input|output)_(scale|global_scale|zero_point)"
    r"|[kvq]_scale|weight_(packed|scale|scale_2|scale_inv|global_scale|zero_point|shape|g_idx)"
    r"|_weight_(qdata|scale|zero_point)|_weight_\w+|weight_scale_\w+|compressed|bitmask|row_offsets))$"
)
_OF_STACK = re.compile(r"_(blocks|scales|scale_inv|packed|scale|global_scale)$")  # of a stack of experts
DESCRIPTION = ".quant_state."  # bitsandbytes' description of a matrix, in JSON
# Types that leave a tensor's shape unchanged in the file.
PLAIN = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FN")


class _Module(NamedTuple):
    """The tensors that together hold one matrix, or a single tensor."""

    names: list[str]
    shape: tuple[int, ...] | None
    type: str
    size: int
    described: int


def _modules(tensors: Mapping[str, StoredTensor], asked: frozenset[str]) -> dict[str, _Module]:
    """The tensors by the name of the matrix that they form; `asked` are names of separate tensors."""
    groups: dict[str, list[str]] = {}
    for name in tensors:
        base = name
        if _without_numbers(name) not in asked:
            base = _BESIDE.sub(".weight", name)
            if base == name and (stack := _OF_STACK.sub("", name)) != name:
                base = stack
        groups.setdefault(base, []).append(name)
    found: dict[str, _Module] = {}
    for base, names in groups.items():
        largest = max(names, key=lambda name: (tensors[name].size, name == base))
        own = tensors[base] if base in tensors else tensors[largest]
        shape = own.shape if base in tensors and own.type in (*PLAIN, "I8") else None
        described = sum(tensors[name].size for name in names if DESCRIPTION in name)
        found[base] = _Module(names, shape, own.type, sum(tensors[name].size for name in names), described)
    return found


# Where converters put expert matrices, and what they call them: MLX stacks them; others keep separate linear layers.
_PARTS = {"w1": ("gate_proj",), "w2": ("down_proj",), "w3": ("up_proj",), "gate_up_proj": ("gate_proj", "up_proj")}
_MIXTURES = (".mlp.", ".block_sparse_moe.", ".feed_forward.")
_LATENT = ".kv_b_proj.", (".embed_q.", ".unembed_out.")


def _elsewhere(name: str, modules: Mapping[str, _Module], members: int) -> Place | None:
    """Where a tensor is under the names that quantization programs give it; None if it is not there. `members` are
    those of a stack."""
    name = name if "." not in name or name in modules else _of_base(name, modules)
    cuts = [name.replace(_LATENT[0], theirs) for theirs in _LATENT[1]]
    if cuts[0] != name and all(cut in modules for cut in cuts):
        return Place([[Cut(cut) for cut in cuts]])
    if ".experts." not in name:
        return Place([[Cut(name)]]) if name in modules else None
    before, _, after = name.partition(".experts.")
    number, _, last = (
        after.rpartition(".")[0].rpartition(".") if after.endswith((".weight", ".bias")) else ("", "", after)
    )
    if number and not number.isdigit():  # belongs to another part below the experts: JetMoE's router
        return Place([[Cut(name)]]) if name in modules else None
    end = ".bias" if after.endswith((".bias", "_bias")) else ".weight"
    last = last.removesuffix("_bias")
    for mixture in _MIXTURES:
        whole = before.rpartition(".")[0] + mixture.removesuffix(".")
        parts = _PARTS.get(last, (last,))
        stacks = [f"{whole}.switch_mlp.{part}{end}" for part in parts]
        if all(stack in modules for stack in stacks):
            return Place([[Cut(stack, member=int(number) if number else None) for stack in stacks]])
        of = [int(number)] if number else range(members)
        linear = [[f"{whole}.experts.{e}.{part}{end}" for part in parts] for e in of]
        if linear and all(one in modules for one in linear[0]):
            return Place([[Cut(one) for one in of_member if one in modules] for of_member in linear], not number)
    return None


def _of_base(name: str, modules: Mapping[str, _Module]) -> str:
    """A name with the base model's name in place of `model`, as MLX writes it."""
    other = f"model.{name.partition('.')[2]}"
    return other if other in modules else name


def _are_alike(there: tuple[int, ...], ours: tuple[int, ...], kind: str) -> bool:
    """Whether shapes are equal, allowing for swapped axes of convolutions and of a quantizer's tensors."""
    return there == ours or ((len(ours) == 3 or kind not in PLAIN) and sorted(there) == sorted(ours))


_NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def _without_numbers(name: str) -> str:
    return _NUMBER.sub("#", name)


def of_layout(
    weights: Sequence[Weight],
    tensors: Mapping[str, StoredTensor],
    source: str,
    architecture: Architecture,
    renamed: tuple[str, str] = ("", ""),
) -> FileWeights:
    """The files' tensors by weight, whatever their spelling or packing. `renamed`: see `Layout`."""
    file = FileWeights(tensors, source)
    asked = frozenset(w.name.replace("{i}", "#").replace("{e}", "#") for w in weights)
    modules = _modules(tensors, asked)
    layout = Layout(architecture, {name: module.shape for name, module in modules.items()}, renamed)
    used: set[str] = set()
    for w in weights:
        shape = tuple(map(int, w.shape))
        for number in w.numbered or (None,):
            size, described, types = 0, 0, dict[str, int]()
            of_layer = w.name if number is None else w.name.replace("{i}", str(number))
            members = 1 if w.members is None else int(w.members)
            for member in range(members):
                name = of_layer.replace("{e}", str(member))
                place = layout.find(name)
                is_elsewhere = place is None
                place = place or _elsewhere(name, modules, int(w.routed[0]) if w.routed else 1)
                if place is None:
                    if not w.is_buffer:
                        file.missing.append(name)
                    continue
                whole = 1
                for cut in place.cuts:
                    module = modules[cut.stored]
                    used.add(cut.stored)
                    of = cut.parts
                    if cut.member is not None:
                        of *= module.shape[0] if module.shape else int(w.routed[0]) if w.routed else members
                        whole = members if member == 0 and members > 1 else 1
                    size += module.size * whole // of
                    described += module.described * whole // of
                own = modules[place.cuts[0].stored]
                types[own.type] = types.get(own.type, 0) + (members if whole > 1 else 1)
                there = None if is_elsewhere else layout.shape(place)
                if there is not None and not _are_alike(there, shape, own.type):
                    file.apart.append((name, there, shape))
                if whole > 1:
                    break  # the stack holds them all
            if types:
                file.add(w, number, Held(size, types, described))
    file.rest += [name for base, module in modules.items() if base not in used for name in module.names]
    return file
