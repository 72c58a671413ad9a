"""The registry: the forward pass of each `model_type`. Every module in this folder registers itself when imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..errors import Problem, shorten
from ..facts import NO_CLASS, USUAL_MLX, USUAL_PEFT, USUAL_VLLM, Gguf, Mlx, Peft, Task, Vllm
from ..interface import Array, KVCache, Weights
from ..mistakes import WRONG_MODULES, wrong_name
from ..registry import MODULES
from .config import Config


class Forward(Protocol):
    """A forward pass, by its architecture's config: scores for the next token, [T] -> [T V], or [1 V] with `last`."""

    def __call__(self, w: Weights, ids: Array, c: Any, cache: KVCache, last: bool = True) -> Array: ...


ForwardT = TypeVar("ForwardT", bound=Forward)


@dataclass(frozen=True)
class Architecture:
    """One forward pass, with the config that it reads and the published model types that have it.

    `fused` says how transformers 5 names and packs the contents of the published files: each of its tensors, and the
    published ones that it is cut into, in order (`checkpoint.published_parts`). `layouts` reads this and the four
    tables after it. `kept`: ends of the names of tensors that have another format than the rest in the maker's
    quantized files, and that format.
    """

    name: str
    model_types: tuple[str, ...]
    config: type[Config]
    forward: Forward
    doc: str
    stored_prefixes: tuple[str, ...] = ()
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], compare=False)
    in_turn: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], compare=False)
    in_pairs: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    spellings: tuple[tuple[str, str], ...] = ()
    pieces: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], compare=False)
    kept: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    gguf: Gguf | str = field(default=NO_CLASS, compare=False)
    heads: Mapping[str, Task | None] | None = field(default=None, compare=False)
    predicts: Any = field(default=None, compare=False)
    peft: Peft = field(default=USUAL_PEFT, compare=False)
    mlx: Mlx = field(default=USUAL_MLX, compare=False)
    vllm: Vllm = field(default=USUAL_VLLM, compare=False)
    windows_in_sglang: bool = field(default=False, compare=False)
    images_in_sglang: bool = field(default=True, compare=False)
    scaled_by_awq: str = field(default="", compare=False)
    rounds_heads: Mapping[str, bool] = field(default_factory=dict[str, bool], compare=False)
    reads_text_alone: bool = field(default=False, compare=False)
    called_by_vllm: tuple[str, ...] = field(default=(), compare=False)
    draft_keys: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    classes: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)


_registered: dict[str, Architecture] = {}


def architecture(
    *model_types: str,
    config: type[Config],
    optional_prefix: str = "",
    fused: Mapping[str, tuple[str, ...]] | None = None,
    in_turn: Mapping[str, tuple[str, ...]] | None = None,
    in_pairs: Mapping[str, str] | None = None,
    spellings: tuple[tuple[str, str], ...] = (),
    pieces: Mapping[str, tuple[str, ...]] | None = None,
    kept: Mapping[str, str] | None = None,
    gguf: Gguf | str = NO_CLASS,
    heads: Mapping[str, Task | None] | None = None,
    predicts: Any = None,
    peft: Peft = USUAL_PEFT,
    mlx: Mlx = USUAL_MLX,
    vllm: Vllm = USUAL_VLLM,
    windows_in_sglang: bool = False,
    images_in_sglang: bool = True,
    scaled_by_awq: str = "",
    rounds_heads: Mapping[str, bool] | None = None,
    reads_text_alone: bool = False,
    called_by_vllm: tuple[str, ...] = (),
    draft_keys: Mapping[str, Any] | None = None,
    classes: Mapping[str, str] | None = None,
) -> Callable[[ForwardT], ForwardT]:
    """Register the decorated forward pass for these model types.

    `optional_prefix` starts every tensor name here and is missing in some published files (`transformer.`).

    `fused`: the ends of transformers 5's names and of the published ones, `{e}` for an expert's number. `in_turn`: the
    same if the rows of the packed tensors are interleaved. `in_pairs`: ends of names here, and in some files: there, in
    each head, the rows that rotate together are neighbors, not half a head apart.

    `spellings`: parts of names as some files spell them, and as here, replaced in this order; `^` anchors the beginning
    of a name, `$` its end, `{0}` is the first number in it, `{0+1}` the next one. `pieces`: ends of names here, and in
    some files: the tensors of one expert, `{e}`, of a stack; parts one below the other, `{n}` for their numbers; parts
    beside each other along the second axis, `{s}`.
    `kept`: ends of the names of tensors that have another format than the rest in the maker's quantized files, and that
    format. `gguf`: how llama.cpp converts it, or why it does not. `heads`: those that a class may name, by the end of
    its name, None for the forward pass's own; without it those of decoders (`tasks.DECODER`). `predicts`: the module
    for multi-token prediction. `peft`, `mlx`, `vllm`: what these do with it. `windows_in_sglang`: whether its windows
    have a pool of their own (`is_hybrid_swa_model` in srt/configs/model_config.py): of others every layer keeps all
    tokens; `images_in_sglang`: whether it takes them without --enable-multimodal (`mm_disabled_models` there).
    `scaled_by_awq`: the matrix before an activation that AWQ's files scale (`AWQ_SCALES_MAPPINGS` in transformers).
    `rounds_heads`: the types whose class in transformers 5.24 rounds the width of a head down if no key states it and
    the heads do not divide `hidden_size`, and whether an odd width is counted, too. The others' classes refuse that, or
    build what cannot run. `reads_text_alone`: whether transformers lists the type as for images and text, too.
    `called_by_vllm`: the beginning of the class in vLLM's registry, if it is not the type's name. `draft_keys`: of a
    draft head, the keys of its maker's configs apart from the sizes of the target. `classes`: by type, what its maker
    calls the class with its own head, if it is not the type's name. Any other class is refused: it needs a config.json,
    or a program, in which that class is this model with that head and nothing else.
    """

    def register(forward: ForwardT) -> ForwardT:
        name = forward.__module__.rpartition(".")[2]
        this = Architecture(
            name,
            model_types,
            config,
            forward,
            (forward.__doc__ or "").strip(),
            (optional_prefix,) if optional_prefix else (),
            fused or {},
            in_turn or {},
            in_pairs or {},
            spellings,
            pieces or {},
            kept or {},
            gguf,
            heads,
            predicts,
            peft,
            mlx,
            vllm,
            windows_in_sglang,
            images_in_sglang,
            scaled_by_awq,
            rounds_heads or {},
            reads_text_alone,
            called_by_vllm,
            draft_keys or {},
            classes or {},
        )
        _registered.update(dict.fromkeys(model_types, this))
        return forward

    return register


@cache
def architectures() -> dict[str, Architecture]:
    """Every known architecture, by model type."""
    for module in dict.fromkeys(MODULES.values()):
        _import(module)
    return dict(sorted(_registered.items()))


def _import(module: str) -> None:
    """Import a module of this folder. Raises `Problem` with the line that is wrong."""
    try:
        importlib.import_module(f"{__name__}.{module}")
    except WRONG_MODULES as error:
        raise wrong_name(error) from error


def modules_by_type() -> dict[str, str]:
    """The module of each model type; nothing is imported."""
    return MODULES


def is_known(model_type: str) -> bool:
    """Whether a model type is covered, as it is or as a multimodal model's whose text model is; nothing is imported."""
    known = modules_by_type()
    return model_type in known or f"{model_type}_text" in known


def known(model_type: object) -> Architecture | None:
    """The architecture of a model type, as `find` gives it; None for a type that is not covered."""
    return find(model_type) if isinstance(model_type, str) and is_known(model_type) else None


def unregistered(model_type: object) -> Problem | None:
    """The message about a type whose module is there, with a forward pass, and that the registry does not list."""
    module = next((path for path in Path(__path__[0]).glob("*.py") if path.stem == model_type), None)
    if module is None or model_type in MODULES.values() or "\ndef forward(" not in module.read_text("utf-8"):
        return None
    return Problem(f"{module.name} is not in macros/engine/registry.py", f"add the line {model_type} to ARCHITECTURES")


def find(model_type: object) -> Architecture:
    """The architecture of a model type, for a multimodal model that of its text; only its module is imported. Raises
    `Problem` for others."""
    for name in (model_type, f"{model_type}_text") if isinstance(model_type, str) else ():
        if name not in _registered and (module := modules_by_type().get(name)):
            _import(module)
            if name not in _registered:
                mend = f'add @architecture("{name}", config=…) above its forward pass'
                raise Problem(f"{module}.py does not register {name}", mend)
        if name in _registered:
            return _registered[name]
    raise Problem(
        f"model_type = {shorten(model_type)} is not known", "every-parameter describe --types prints the known ones"
    )
