"""Which engine runs weights in a format on which kind of machine, as tables taken from the engines' own sources.

A kind of machine is a vendor's GPU, a TPU, or a CPU. For NVIDIA's GPUs, an engine states the compute capability from
which a format runs, and TensorRT-LLM also the last one. Floats of 16 and 32 bits run everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .formats import FLOATS, FORMATS, PUBLISHED

if TYPE_CHECKING:
    from .accelerators import Accelerator
    from .deployments import Card

# Kinds of formats, by how the names of formats begin; every other name is of a GGUF file.
KINDS = (
    ("16 bits", FLOATS),
    ("fp8", ("fp8",)),
    ("int8", ("w8a8",)),
    ("4 bits", ("gptq", "w4a16")),
    ("AWQ", ("awq",)),
    ("mxfp4", ("mxfp4",)),
    ("nvfp4", ("nvfp4",)),
    ("bitsandbytes", ("nf4", "llm.int8")),
    ("torchao", ("torchao",)),
    ("MLX", ("mlx",)),
)
# Integers of this many bits, whoever stores them.
ALIKE = {"int4": ("4 bits", "AWQ", "MLX"), "int8": ("int8", "MLX")}
GGUF = "GGUF"
PLAIN = "16 bits"
NVIDIA, AMD, INTEL, APPLE, CPU = "NVIDIA", "AMD", "Intel", "Apple", "a CPU"
GAUDI, TPU, NEURON = "Gaudi", "a TPU", "Trainium"
EVERY = (NVIDIA, AMD, INTEL, APPLE, CPU)
# Non-GPU accelerators, whose vendors document what runs on them.
OTHERS = {"TPU": TPU, "Gaudi": GAUDI, "Neuron": NEURON, "CPU": CPU}
LAST = 10**6  # a capability above all others


@dataclass(frozen=True)
class Runs:
    """What an engine runs: on NVIDIA's GPUs the first capability of each kind of format, on other kinds of machines the
    kinds of formats; each row names its source. `until` is the last capability, if the source gives one."""

    engine: str
    nvidia: Mapping[str, int]
    others: Mapping[str, tuple[str, ...]]
    until: Mapping[str, int]

    def has(self, kind: str, machine: str, capability: int) -> bool:
        """Whether it runs this kind of format on a kind of machine; `capability` is 0 if it is not known."""
        if machine != NVIDIA:
            return kind in self.others.get(machine, ())
        if kind not in self.nvidia:
            return False
        return not capability or self.nvidia[kind] <= capability <= self.until.get(kind, LAST)


TABLE = (
    Runs(
        "vLLM",
        # https://github.com/vllm-project/vllm/tree/main/vllm/model_executor/layers/quantization
        # `get_min_capability` in model_executor/layers/quantization, `supported_quantization` in platforms/rocm.py and
        # xpu.py of 0.33; tpu-inference 0.29, layers/vllm/quantization; of CPUs and Gaudi docs/features/quantization
        # bitsandbytes up to 0.24
        {
            "fp8": 75,
            "int8": 75,
            "4 bits": 60,
            "AWQ": 75,
            "mxfp4": 80,
            "nvfp4": 75,
            "torchao": 75,
            "bitsandbytes": 70,
        },
        {
            AMD: ("fp8", "int8", "4 bits", "AWQ", "mxfp4", "nvfp4", "torchao"),
            INTEL: ("fp8", "int8", "4 bits", "AWQ", "mxfp4"),
            TPU: ("fp8", "int8", "AWQ", "mxfp4", "nvfp4"),
            GAUDI: ("fp8",),
            CPU: ("int8", "4 bits", "AWQ"),
        },
        {},
    ),
    Runs(
        "SGLang",
        # https://github.com/sgl-project/sglang/blob/main/docs/advanced_features/quantization.md
        # docs/advanced_features/quantization.md and `get_min_capability` in srt/layers/quantization of 0.5.23
        {
            "fp8": 80,
            "int8": 75,
            "4 bits": 60,
            "AWQ": 75,
            "mxfp4": 80,
            "nvfp4": 100,
            "bitsandbytes": 70,
            "torchao": 75,
            GGUF: 60,
        },
        {AMD: ("fp8", "int8", "4 bits", "AWQ", "mxfp4", "nvfp4")},
        {},
    ),
    Runs(
        "TensorRT-LLM",
        # https://github.com/NVIDIA/TensorRT-LLM/blob/main/docs/source/features/quantization.md
        # the matrix of hardware in docs/source/features/quantization.md
        {"fp8": 89, "4 bits": 80, "AWQ": 80, "mxfp4": 100, "nvfp4": 100},
        {},
        {"4 bits": 90, "AWQ": 90},
    ),
    Runs(
        "llama.cpp",
        # https://github.com/ggml-org/llama.cpp#supported-backends
        # its README's backends: CUDA, HIP, Metal, SYCL, Vulkan and CPUs, each of which runs every type of a file, MXFP4
        # among them, to which its converter repacks published mxfp4
        {GGUF: 50, "mxfp4": 50},
        {AMD: (GGUF, "mxfp4"), INTEL: (GGUF, "mxfp4"), APPLE: (GGUF, "mxfp4"), CPU: (GGUF, "mxfp4")},
        {},
    ),
    Runs(
        "MLX",
        # https://ml-explore.github.io/mlx/build/html/install.html
        # `--q-mode` in convert.py of mlx-lm 0.32.2; the machines in MLX's own pages
        {"MLX": 75, "mxfp4": 75, "nvfp4": 75},
        {APPLE: ("MLX", "mxfp4", "nvfp4")},
        {},
    ),
    Runs(
        "transformers",
        # https://huggingface.co/docs/bitsandbytes/main/en/installation
        # bitsandbytes' own table of GPUs
        {"bitsandbytes": 60},
        {AMD: ("bitsandbytes",), INTEL: ("bitsandbytes",), CPU: ("bitsandbytes",)},
        {},
    ),
    Runs(
        "NxD Inference",
        # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/libraries/nxd-inference/developer_guides/custom-quantization.html
        {},
        {NEURON: ("fp8", "int8")},
        {},
    ),
)


def kinds_of(format: str) -> tuple[str, ...]:
    """The kinds that include a format of weights; empty for the published one."""
    if format == PUBLISHED:
        return ()
    if format in ALIKE:
        return ALIKE[format]
    for kind, names in KINDS:
        if any(format.startswith(name) for name in names):
            return (kind,)
    return (GGUF,)


def machine_of(accelerator: Accelerator | Card | None) -> str:
    """The kind of machine; "" for one that is not listed."""
    if accelerator is None:
        return ""
    if accelerator.kind in OTHERS:
        return OTHERS[accelerator.kind]
    return accelerator.vendor if accelerator.vendor in EVERY else ""


def left_out(
    format: str, accelerator: Accelerator | Card | None, engine: str = "", published: Sequence[str] = ()
) -> str:
    """Why an engine, or any engine, does not run weights in this format on this accelerator, as a sentence; "" if one
    does, or if nothing is known about the machine. `published` are the formats of the quantized weights of a model as
    its maker published it."""
    if format != PUBLISHED:
        return _left_out(format, accelerator, engine)
    said = [_left_out(name, accelerator, engine) for name in published if name in FORMATS]
    return next((one for one in said if one), "")


def _left_out(format: str, accelerator: Accelerator | Card | None, engine: str) -> str:
    kinds, machine = kinds_of(format), machine_of(accelerator)
    if not kinds or PLAIN in kinds:
        return ""
    able = [one for one in TABLE if not engine or one.engine == engine]
    if accelerator is None and engine and able and not any(_places(able[0], kind) for kind in kinds):
        return f"{engine} does not run {format}."
    if accelerator is None or not machine:
        return ""
    capability = accelerator.capability or 0
    if not able or any(one.has(kind, machine, capability) for one in able for kind in kinds):
        return ""
    found: list[str] = []
    for one in able:
        for kind in kinds:
            if where := _places(one, kind):
                found.append(f"{'it' if engine else one.engine} runs {'it' if engine else format} on {where}")
    said = f"{engine} does not run" if engine else "No engine runs"
    return f"{said} {format} on {accelerator.name}{': ' if found else ''}{'; '.join(found)}."


def _places(one: Runs, kind: str) -> str:
    """The machines on which an engine runs a kind of format: `NVIDIA from compute capability 8.9, AMD`."""
    found = [place for place in (AMD, INTEL, APPLE, CPU, TPU, GAUDI, NEURON) if kind in one.others.get(place, ())]
    if kind in one.nvidia:
        end = f" to {_said(one.until[kind])}" if kind in one.until else ""
        found = [f"NVIDIA from compute capability {_said(one.nvidia[kind])}{end}", *found]
    return f"{', '.join(found[:-1])} and {found[-1]}" if len(found) > 1 else "".join(found)


def _said(capability: int) -> str:
    return f"{capability // 10}.{capability % 10}"
