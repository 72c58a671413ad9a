"""Validates a requested training run and answers it: trainable parameters, memory, FLOPs, time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from ..engine.architectures import Architecture
from ..engine.bounds import MOST_DEVICES, MOST_TEXTS, MOST_TOKENS
from ..engine.errors import Problem
from .accelerators import Accelerator
from .adapter_choice import ALL_LINEAR, RANK, Adapter
from .adapters import BIASES, MOST_RANK, MOST_TARGETS, Adapters, adapters
from .asked import one_of, share, whole
from .costs import Costs
from .module_tree import modules
from .patterns import is_expression
from .training_compute import Run, flops_per_token
from .training_setup import GRADIENTS, METHODS, OPTIMIZERS, RECOMPUTED, Setup, device_terms

# The values of `zero`, with the stage of each.
ZERO: dict[str, str] = {"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3", "fsdp": "fsdp"}
MOST_RUN = 10**18  # tokens of a run
MOST_WATTS = 10**6
MOST_LAYERS = 100_000
UTILIZATION = 0.4  # default share of the peak
WITH_A_PEAK = "name one with --on, such as h100 or 24GB,1008GB/s,165TFLOPS"


@dataclass(frozen=True)
class Plan:
    """The cost of training a model: `terms`, bytes on the fullest device; `adapters` is None if every parameter is
    trained."""

    setup: Setup
    adapters: Adapters | None
    parameters: int
    terms: dict[str, int]
    flops_per_token: Fraction

    @property
    def trainable(self) -> int:
        """Trainable parameters."""
        return self.parameters if self.adapters is None else self.adapters.total

    @property
    def total(self) -> int:
        """Bytes on the fullest device."""
        return sum(self.terms.values())

    def largest_micro_batch(self, memory_bytes: int) -> int | None:
        """The largest number of sequences per step that fits; 0 if not even one does, None if they take no memory."""
        growing = self.terms["activations"] + self.terms["logits"]
        each, fixed = growing // self.setup.micro_batch, self.total - growing
        return max(0, (memory_bytes - fixed) // each) if each else None


def asked(given: Any) -> tuple[Setup, Adapter | None]:
    """The setup, and the adapters if there are any, from the attributes of the request. Raises `Problem` that names the
    argument."""
    setup = Setup(
        whole("sequence", given.sequence, MOST_TOKENS),
        whole("micro_batch", given.micro_batch, MOST_TEXTS),
        whole("devices", given.devices, MOST_DEVICES),
        whole("tensor", given.tensor, MOST_DEVICES),
        whole("pipeline", given.pipeline, MOST_DEVICES),
        bool(given.sequence_parallel),
        ZERO[one_of("zero", str(given.zero), ZERO, "stage of ZeRO")],
        one_of("optimizer", given.optimizer, OPTIMIZERS, "optimizer"),
        one_of("recompute", given.recompute, RECOMPUTED, "recomputation"),
        one_of("gradients", given.gradients, GRADIENTS, "type"),
        not given.no_master_weights,
        one_of("method", given.method, METHODS, "method"),
        whole("expert", given.expert, MOST_DEVICES),
    )
    if setup.method == "full":
        of_adapters = {
            "rank": given.rank,
            "target_modules": given.target_modules,
            "bias": given.bias,
            "modules_to_save": given.modules_to_save,
        }
        if said := [name for name, value in of_adapters.items() if _is_given(value)]:
            raise Problem("full training has no adapters", "give a method too: lora, dora or qlora", parameter=said[0])
        return setup, None
    return setup, Adapter(
        whole("rank", RANK if given.rank is None else given.rank, MOST_RANK),
        named("target_modules", given.target_modules) if given.target_modules is not None else None,
        setup.method == "dora",
        one_of("bias", given.bias if _is_given(given.bias) else "none", BIASES, "choice"),
        names("modules_to_save", given.modules_to_save) if _is_given(given.modules_to_save) else (),
    )


class Narrowing(NamedTuple):
    """PEFT's options for a subset of modules, for parameters, and for other ranks; None for those that were not
    given."""

    exclude_modules: Any = None
    layers_to_transform: Any = None
    layers_pattern: Any = None
    rank_pattern: Any = None
    alpha_pattern: Any = None
    target_parameters: Any = None


def narrowed(adapter: Adapter | None, asked_for: Narrowing) -> Adapter | None:
    """An adapter of a subset of modules, of parameters, or of other ranks. Raises `Problem`.

    Layers are numbers or a string (`0,1,2` or `0-7`), ranks a table or a string (`q_proj=32,v_proj=4`).
    """
    options = {
        "exclude_modules": asked_for.exclude_modules,
        "layers_to_transform": asked_for.layers_to_transform,
        "layers_pattern": asked_for.layers_pattern,
        "rank_pattern": asked_for.rank_pattern,
        "alpha_pattern": asked_for.alpha_pattern,
        "target_parameters": asked_for.target_parameters,
    }
    given = {name: value for name, value in options.items() if _is_given(value)}
    if adapter is None:
        if given:
            raise Problem(
                "full training has no adapters", "give a method too: lora, dora or qlora", parameter=next(iter(given))
            )
        return None
    layers = asked_for.layers_to_transform
    return replace(
        adapter,
        excluded=named("exclude_modules", given["exclude_modules"]) if "exclude_modules" in given else (),
        layers=_numbers("layers_to_transform", layers) if "layers_to_transform" in given else None,
        layers_pattern=names("layers_pattern", given["layers_pattern"]) if "layers_pattern" in given else (),
        ranks=_by_name("rank_pattern", given["rank_pattern"]) if "rank_pattern" in given else (),
        parameters=names("target_parameters", given["target_parameters"]) if "target_parameters" in given else (),
        alphas=_by_name("alpha_pattern", given["alpha_pattern"]) if "alpha_pattern" in given else (),
    )


def _numbers(parameter: str, value: Any) -> tuple[int, ...]:
    """Numbers of layers."""
    several: Any = value
    given: Any = value
    parts: list[Any] = several.split(",") if isinstance(value, str) else [several]
    if isinstance(value, (list, tuple)):
        parts = list(several)
    found: list[int] = []
    for part in parts:
        first, dash, last = str(part).strip().partition("-")
        if not first.isdigit() or (dash != "" and not last.isdigit()) or len(str(part)) > 12:
            raise Problem("no numbers of layers", "write them as in 0,1,2 or 0-7").about(parameter, given)
        end = int(last) if dash else int(first)
        if end - int(first) > MOST_LAYERS:
            raise Problem("more layers than any model has", "write fewer").about(parameter, given)
        found += range(int(first), end + 1)
    return tuple(dict.fromkeys(found))


def _by_name(parameter: str, value: Any) -> tuple[tuple[str, int], ...]:
    """Ranks, or scales, by the suffixes of module names, or by expressions."""
    several: Any = value
    wrong = Problem("no whole numbers by module", "write them as in q_proj=32,v_proj=4").about(parameter, several)
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, str):
        for part in several.split(","):
            name, _, rank = part.rpartition("=")
            pairs.append((name, rank))
    elif isinstance(value, dict):
        pairs = list(several.items())
    else:
        raise wrong
    found: list[tuple[str, int]] = []
    for name, rank in pairs:
        if not isinstance(name, str) or not name.strip() or not str(rank).strip().isdigit() or len(str(rank)) > 8:
            raise wrong
        found.append((name.strip(), whole(parameter, int(rank), MOST_RANK)))
    return tuple(found)


def _is_given(value: Any) -> bool:
    """Whether an option was given; an empty string or list counts as not given."""
    several: Any = value
    return value is not None and (not isinstance(value, (str, list, tuple, dict)) or len(several) > 0)


def named(parameter: str, value: Any) -> tuple[str, ...] | str:
    """Names of modules; a string with characters that no name has is an expression for whole names, or all-linear.
    Raises `Problem`."""
    several: Any = value
    if isinstance(value, str) and (is_expression(several) or several.strip().lower() == ALL_LINEAR):
        return several.strip()
    if isinstance(value, (list, tuple)) and len(several) == 0:
        return ()
    return names(parameter, several)


def names(parameter: str, value: Any) -> tuple[str, ...]:
    """Names of modules from a comma-separated string or from a list. Raises `Problem`."""
    several: Any = value
    if isinstance(value, str):
        parts: list[Any] = value.split(",")
    elif isinstance(value, (list, tuple)):
        parts = list(several)
    else:
        parts = [several]
    found = tuple(dict.fromkeys(part.strip() for part in parts if isinstance(part, str) and part.strip()))
    if not found or len(found) > MOST_TARGETS or any(not isinstance(part, str) for part in parts):
        raise Problem("no names of modules", "write them as in q_proj,v_proj").about(parameter, several)
    return found


def amount_of_tokens(text: str) -> int:
    """A number of tokens of a run; a trailing K, M, B or T counts in thousands. Raises `Problem`."""
    unit = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}.get(text[-1:].lower(), 1)
    whole, dot, part = (text[:-1] if unit > 1 else text).partition(".")
    digits = whole + part
    if not (digits.isascii() and digits.isdigit() and whole and len(digits) < 19 and bool(part) == bool(dot)):
        raise Problem(f"{text[:40]!r} is not a number of tokens", "write it as in 15T or 300B")
    tokens, rest = divmod(int(digits) * unit, 10 ** len(part))
    if rest or not 0 < tokens <= MOST_RUN:
        raise Problem(f"{text[:40]!r} is not a number of tokens", "give a whole number up to 1000000T")
    return tokens


def plan(costs: Costs, architecture: Architecture, setup: Setup, adapter: Adapter | None) -> Plan:
    """The answer, by PEFT's rules. Raises `Problem` for options that the model, the devices or PEFT do not
    allow."""
    known = modules(costs.counts, architecture)
    trained = None if adapter is None else adapters(costs.counts, architecture, adapter, known)
    terms = device_terms(costs, setup, trained, known)
    return Plan(setup, trained, costs.counts.total, terms, flops_per_token(costs, setup, trained))


def run(
    planned: Plan, accelerator: Accelerator | None, tokens: int | None, utilization: object, watts: int | None = None
) -> Run | None:
    """The run over this many tokens on a machine whose peak is known. Raises `Problem` for any other."""
    reached = share("utilization", utilization)
    power = None if watts is None else whole("watts", watts, MOST_WATTS)
    if tokens is None:
        return None
    peak = accelerator.peak() if accelerator is not None else None
    if peak is None:
        raise Problem("the time of a run needs a machine with a peak", WITH_A_PEAK)
    return Run(int(planned.flops_per_token * tokens), planned.setup.devices, peak, reached, power)
