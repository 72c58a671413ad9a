"""A requested training, validated, and its answer: trainable parameters, memory, FLOPs, time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..engine.architectures import Architecture
from ..engine.bounds import MOST_DEVICES, MOST_TEXTS, MOST_TOKENS
from ..engine.errors import Problem, shorten
from .accelerators import Accelerator
from .adapters import BIASES, MOST_RANK, MOST_TARGETS, RANK, Adapter, Adapters, Facts, adapters, modules
from .asked import one_of, share, whole
from .costs import Costs
from .training_compute import Run, flops_per_token
from .training_setup import GRADIENTS, METHODS, OPTIMIZERS, RECOMPUTED, Setup, device_terms

# How `zero` is written, and what it is.
ZERO: dict[str, str] = {"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3", "fsdp": "fsdp"}
MOST_RUN = 10**18  # tokens of a run
MOST_WATTS = 10**6
UTILIZATION = 0.4  # of the peak, where none is given
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
    )
    if setup.method == "full":
        of_adapters = {
            "rank": given.rank,
            "target_modules": given.target_modules,
            "bias": given.bias,
            "modules_to_save": given.modules_to_save,
        }
        if said := [name for name, value in of_adapters.items() if _is_given(value)]:
            raise Problem(f"{said[0]}: full training has no adapters", "give a method too: lora, dora or qlora")
        return setup, None
    return setup, Adapter(
        whole("rank", RANK if given.rank is None else given.rank, MOST_RANK),
        names("target_modules", given.target_modules) if given.target_modules is not None else None,
        setup.method == "dora",
        one_of("bias", given.bias if _is_given(given.bias) else "none", BIASES, "choice"),
        names("modules_to_save", given.modules_to_save) if _is_given(given.modules_to_save) else (),
    )


def _is_given(value: Any) -> bool:
    """Whether an option was given; an empty text or list was not, and what is no such thing was."""
    several: Any = value
    return value is not None and (not isinstance(value, (str, list, tuple)) or len(several) > 0)


def names(option: str, value: Any) -> tuple[str, ...]:
    """Names of modules from comma-separated text or from a list. Raises `Problem`."""
    several: Any = value
    if isinstance(value, str):
        parts: list[Any] = value.split(",")
    elif isinstance(value, (list, tuple)):
        parts = list(several)
    else:
        parts = [several]
    found = tuple(dict.fromkeys(part.strip() for part in parts if isinstance(part, str) and part.strip()))
    if not found or len(found) > MOST_TARGETS or any(not isinstance(part, str) for part in parts):
        raise Problem(f"{option} = {shorten(several)}: no names of modules", "write them as in q_proj,v_proj")
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


def plan(
    costs: Costs,
    architecture: Architecture,
    model_type: str,
    setup: Setup,
    adapter: Adapter | None,
    peft: Facts | None = None,
) -> Plan:
    """The answer, by the known rules of PEFT. Raises `Problem` for options that the model, the devices or PEFT do not
    allow."""
    known = modules(costs.counts, architecture, model_type)
    trained = None if adapter is None else adapters(costs.counts, architecture, model_type, adapter, known, peft)
    terms = device_terms(costs, setup, trained, known)
    return Plan(setup, trained, costs.counts.total, terms, flops_per_token(costs, setup, trained))


def run(
    planned: Plan, accelerator: Accelerator | None, tokens: int | None, utilization: object, watts: int | None = None
) -> Run | None:
    """The run of this many tokens on a machine that states its peak. Raises `Problem` for one that does not."""
    reached = share("utilization", utilization)
    power = None if watts is None else whole("watts", watts, MOST_WATTS)
    if tokens is None:
        return None
    peak = accelerator.peak() if accelerator is not None else None
    if peak is None:
        raise Problem("the time of a run needs a machine with a peak", WITH_A_PEAK)
    return Run(int(planned.flops_per_token * tokens), planned.setup.devices, peak, reached, power)
