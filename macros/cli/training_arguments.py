"""The options of `train`, except the models and the machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from ..counting import training_setup
from ..counting.adapter_choice import RANK
from ..counting.adapters import BIASES, MOST_RANK
from ..counting.asked import share
from ..counting.training_plan import ZERO, amount_of_tokens
from ..engine.errors import Problem

T = TypeVar("T")


def add(
    training: argparse.ArgumentParser,
    positive: Callable[[str], int],
    devices: Callable[[str], int],
    tokens: Callable[[str], int],
) -> None:
    """Add the options of the method, the split, and the run; the parsers for integers, devices and tokens are passed
    in."""
    training.add_argument("--format", choices=("table", "json"), default="table", help="table (default) or json")
    training.add_argument(
        "--framework",
        metavar="FRAMEWORK",
        help="parameters, memory or FLOPs as a framework prints them: megatron, deepspeed or torchtitan, whose own "
        "options may follow",
    )
    training.add_argument(
        "--method",
        choices=tuple(training_setup.METHODS),
        default="full",
        help=_choices(training_setup.METHODS) + " (default full)",
    )
    training.add_argument(
        "--rank", type=partial(_rank, positive), metavar="R", help=f"rank of the adapters (default {RANK}, as in PEFT)"
    )
    training.add_argument(
        "--target-modules",
        metavar="NAME,NAME,…",
        help="modules to adapt: the ends of their names, a regular expression for whole names, or all-linear (default: "
        "PEFT's for the model type, if it has one)",
    )
    training.add_argument(
        "--target-parameters",
        metavar="NAME,NAME,…",
        help="parameters to adapt, by the ends of their names, such as experts.gate_up_proj",
    )
    training.add_argument("--bias", choices=tuple(BIASES), help="biases that are also trained (default none)")
    training.add_argument("--modules-to-save", metavar="NAME,NAME,…", help="modules that are also trained, in full")
    training.add_argument("--exclude-modules", metavar="NAME,NAME,…", help="modules that are not adapted")
    training.add_argument(
        "--layers-to-transform", metavar="N,N,…", help="layers with adapters, such as 0,1,2 or 0-7 (default all)"
    )
    training.add_argument(
        "--layers-pattern", metavar="NAME,…", help="what the layers are called before their number, such as layers"
    )
    training.add_argument(
        "--rank-pattern", metavar="NAME=R,…", help="other ranks, by the ends of modules’ names: q_proj=32,v_proj=4"
    )
    training.add_argument(
        "--alpha-pattern",
        metavar="NAME=A,…",
        help="other scales, in the same way: they train nothing, names are checked",
    )
    training.add_argument(
        "--optimizer",
        choices=tuple(training_setup.OPTIMIZERS),
        default="adamw",
        help="; ".join(one.said for one in training_setup.OPTIMIZERS.values()) + " (default adamw)",
    )
    training.add_argument(
        "--zero",
        choices=tuple(ZERO),
        default="0",
        help="stage of ZeRO over the data-parallel devices: 0 is DDP, fsdp gathers layer by layer (default 0)",
    )
    training.add_argument("--tensor", type=devices, default=1, metavar="N", help="tensor parallel degree (default 1)")
    training.add_argument("--pipeline", type=devices, default=1, metavar="N", help="pipeline stages (default 1)")
    training.add_argument(
        "--expert",
        type=devices,
        default=1,
        metavar="N",
        help="expert parallel degree: data-parallel groups that divide the routed experts (default 1)",
    )
    training.add_argument(
        "--sequence-parallel",
        action="store_true",
        help="also divide the activations that tensor parallelism copies, along the sequence",
    )
    training.add_argument(
        "--recompute",
        choices=tuple(training_setup.RECOMPUTED),
        default="none",
        help=_choices(training_setup.RECOMPUTED) + " (default none)",
    )
    training.add_argument(
        "--gradients", choices=tuple(training_setup.GRADIENTS), default="bfloat16", help="type of gradients"
    )
    training.add_argument("--no-master-weights", action="store_true", help="no 32-bit copy of the trained weights")
    training.add_argument(
        "--sequence", type=tokens, default=4096, metavar="N", help="tokens per sequence; 32k is 32,768 (default 4096)"
    )
    training.add_argument(
        "--micro-batch", type=positive, default=1, metavar="N", help="sequences per step on a device (default 1)"
    )
    training.add_argument(
        "--tokens", type=_amount_of_tokens, metavar="N", help="also the time of a run over N tokens: 300B, 15T, 1000000"
    )
    training.add_argument(
        "--utilization",
        type=_share,
        default=0.4,
        metavar="SHARE",
        help="share of the peak that the run reaches (default 0.4)",
    )
    training.add_argument(
        "--watts",
        type=positive,
        metavar="W",
        help="power per device, for energy (default: what a maker reports of its runs, or the machine's limit, where "
        "a source states it)",
    )


def _choices(said: dict[str, str]) -> str:
    return "; ".join(f"{name}: {what}" for name, what in said.items())


def _rank(positive: Callable[[str], int], text: str) -> int:
    n = positive(text)
    if n > MOST_RANK:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is too high a rank: give at most {MOST_RANK:,}")
    return n


def _amount_of_tokens(text: str) -> int:
    """A number of tokens of a run; a trailing K, M, B or T counts in thousands."""
    return _checked(amount_of_tokens, text)


def _share(text: str) -> float:
    return float(_checked(partial(share, "utilization"), text))


def _checked(read: Callable[[str], T], text: str) -> T:
    """The value that `read` returns for an option; a problem becomes the parser's error."""
    try:
        return read(text)
    except Problem as problem:
        raise argparse.ArgumentTypeError(f"{problem.what}: {problem.mend}") from None
