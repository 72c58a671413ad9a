"""Small models as libraries quantize them under random settings: `python -m tests.reference.quantized_settings [COUNT
[SEED [FILE]]]`, from the repository, writes `tests/golden/quantized_settings.json`.

Each case is one of the models of `quantizers.MODELS` and a setting that is drawn at random: a scheme of
compressed-tensors with targets, lists and groups; bitsandbytes with lists of modules to skip; torchao with lists;
transformers' FP8 with lists, whose layers are made on the meta device, since it quantizes on an accelerator alone. Kept
are the `quantization_config` that the library wrote, and the bytes of all tensors in the headers of its files, or that
it refused. Needs `pip install torch transformers accelerate bitsandbytes compressed-tensors torchao
defuser`.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .quantizers import MODELS, separated

FILE = Path(__file__).parent.parent / "golden" / "quantized_settings.json"
DESCRIPTION = ".quant_state."  # bitsandbytes' JSON, whose length depends on the digits of a mean
NOT_COUNTED = ("e_score_correction_bias",)  # buffers
LIBRARIES = ("accelerate", "bitsandbytes", "compressed-tensors", "torch", "torchao", "transformers")


def made(slug: str) -> Any:
    """The model, with random weights in bfloat16."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    raw = MODELS[slug]
    config = AutoConfig.for_model(raw["model_type"], **{key: raw[key] for key in raw if key != "model_type"})
    return AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)


def linear_names(slug: str) -> list[str]:
    """The names of its modules that have a weight."""
    import torch

    with torch.device("meta"):
        model = made(slug)
    return [name for name, module in model.named_modules() if getattr(module, "weight", None) is not None]


def skipped(draw: random.Random, names: list[str]) -> list[str]:
    """Names as people write them: whole, ends of names with a dot before or without, beginnings, expressions, wrong
    ones."""
    ways: list[Callable[[str], str]] = [
        lambda name: name,
        lambda name: name.rpartition(".")[2],
        lambda name: name.rpartition(".")[2][-4:],
        lambda name: ".".join(name.split(".")[-2:]),
        lambda name: ".".join(name.split(".")[:3]),
        lambda name: ".".join(["model", "layers", r"\d+", *name.split(".")[-2:]]),
        lambda name: ".*" + name.rpartition(".")[2],
        lambda name: name.rpartition(".")[0] + ".*",
        lambda name: f"not_{name}",
    ]
    found = [draw.choice(ways)(draw.choice(names)) for _ in range(draw.randrange(4))]
    return [*found, "lm_head"] if draw.random() < 0.5 else found


def bitsandbytes(slug: str, draw: random.Random, names: list[str], out: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    skip = None if draw.random() < 0.2 else skipped(draw, names)
    if draw.random() < 0.4:
        said = BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=skip)
    else:
        said = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type=draw.choice(("nf4", "fp4")),
            bnb_4bit_use_double_quant=draw.random() < 0.5,
            bnb_4bit_compute_dtype=torch.bfloat16,
            llm_int8_skip_modules=skip,
        )
    with tempfile.TemporaryDirectory() as plain:
        made(slug).save_pretrained(plain)
        model = AutoModelForCausalLM.from_pretrained(plain, quantization_config=said, device_map="cpu")
    model.save_pretrained(out)


def torchao(slug: str, draw: random.Random, names: list[str], out: Path) -> None:
    from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig
    from transformers import AutoModelForCausalLM, TorchAoConfig

    kind = draw.choice((Int8WeightOnlyConfig, Float8WeightOnlyConfig))()
    said = TorchAoConfig(kind, modules_to_not_convert=None if draw.random() < 0.3 else skipped(draw, names))
    with tempfile.TemporaryDirectory() as plain:
        made(slug).save_pretrained(plain)
        model = AutoModelForCausalLM.from_pretrained(plain, quantization_config=said, device_map="cpu")
    model.save_pretrained(out)


def compressed_tensors(slug: str, draw: random.Random, names: list[str], out: Path) -> None:
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import (
        QuantizationConfig,
        apply_quantization_config,
        preset_name_to_scheme,
        quant_scheme,
    )

    model = separated(made(slug))  # as llm-compressor does first
    known = list(quant_scheme.PRESET_SCHEMES)
    groups = {"group_0": preset_name_to_scheme(draw.choice(known), ["Linear"])}
    if draw.random() < 0.4:
        other = preset_name_to_scheme(draw.choice(known), _targets(draw, names))
        groups = {"group_1": other, **groups} if draw.random() < 0.5 else {**groups, "group_1": other}
    weights = groups["group_0"].weights
    if weights is not None and draw.random() < 0.3 and weights.type == "int" and weights.strategy == "group":
        weights.group_size = draw.choice((32, 64, 128))
        weights.symmetric = draw.random() < 0.5
    ignore = [*(["lm_head"] if draw.random() < 0.7 else []), *(_targets(draw, names) if draw.random() < 0.5 else [])]
    apply_quantization_config(model, QuantizationConfig(config_groups=groups, ignore=ignore), show_progress=False)
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(out)
    compressor.update_config(out)


def _targets(draw: random.Random, names: list[str]) -> list[str]:
    """Names as compressed-tensors takes them."""
    ways: list[Callable[[str], str]] = [
        lambda name: name,
        lambda name: f"re:.*{name.rpartition('.')[2]}$",
        lambda name: f"re:.*{name.rpartition('.')[2]}",
        lambda name: f"re:.*layers\\.0\\..*{name.rpartition('.')[2]}",
        lambda name: name.rpartition(".")[2],
    ]
    return [draw.choice(ways)(draw.choice(names)) for _ in range(1 + draw.randrange(2))]


def fp8(slug: str, draw: random.Random, names: list[str], out: Path) -> None:
    """The layers that transformers puts in the place of linear ones, on the meta device."""
    import torch
    from safetensors.torch import save_file
    from transformers import FineGrainedFP8Config
    from transformers.integrations.finegrained_fp8 import replace_with_fp8_linear
    from transformers.quantizers.base import HfQuantizer

    skip = None if draw.random() < 0.2 else skipped(draw, names)
    block = draw.choice(((128, 128), (64, 128), (128, 64)))
    said = FineGrainedFP8Config(modules_to_not_convert=skip, weight_block_size=block)
    with torch.device("meta"):
        model = made(slug)
        kept = HfQuantizer.get_modules_to_not_convert(model, skip, model._keep_in_fp32_modules)
        model = replace_with_fp8_linear(model, kept, said, pre_quantized=True)
    tied = {*model.all_tied_weights_keys, *(f"{name}_scale_inv" for name in model.all_tied_weights_keys)}
    out.mkdir(exist_ok=True)
    tensors = {}
    for name, t in model.state_dict().items():
        if name not in tied:  # a new layer's bias is made in 32 bits, and loaded in the file's
            kind = torch.bfloat16 if name.endswith(".bias") else t.dtype
            tensors[name] = torch.zeros(t.shape, dtype=kind)
    save_file(tensors, out / "model.safetensors")
    quantization = {key: value for key, value in said.to_dict().items() if value is not None}
    (out / "config.json").write_text(json.dumps({"dtype": "bfloat16", "quantization_config": quantization}))


WRITERS = {
    "bitsandbytes": bitsandbytes,
    "compressed-tensors": compressed_tensors,
    "torchao": torchao,
    "fp8": fp8,
}


def bytes_of(folder: Path) -> int:
    """Bytes of all tensors of a folder, without descriptions."""
    total = 0
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            listed = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        listed.pop("__metadata__", None)
        for name, said in listed.items():
            size = said["data_offsets"][1] - said["data_offsets"][0]
            if name.endswith("mlp.gate.weight") and said["dtype"] == "F32":
                size //= 2  # transformers makes this router in 32 bits; what its maker published has 16
            total += 0 if name.endswith(NOT_COUNTED) or DESCRIPTION in name else size
    return total


def case(number: int, seed: int) -> dict[str, Any]:
    """One random setting, and what its library wrote."""
    draw = random.Random(f"{seed}/{number}")
    slug, library = draw.choice(list(MODELS)), draw.choice(list(WRITERS))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        try:
            WRITERS[library](slug, draw, linear_names(slug), out)
        except Exception as error:  # a library that refuses: said, and kept
            return {"model": slug, "library": library, "refused": f"{type(error).__name__}: {str(error)[:120]}"}
        said = json.loads((out / "config.json").read_text("utf-8"))
        kept = {"model": slug, "library": library, "quantization_config": said.get("quantization_config")}
        return {**kept, "bytes": bytes_of(out)}


def main(count: str = "160", seed: str = "0", file: str = str(FILE)) -> None:
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    cases: list[dict[str, Any]] = []
    for number in range(int(count)):
        cases.append(case(number, int(seed)))
        print(number, json.dumps(cases[-1])[:100], flush=True)
        write(cases, int(seed), Path(file))


def write(cases: list[dict[str, Any]], seed: int, file: Path) -> None:
    """A line for each case."""
    head = json.dumps({"versions": {name: version(name) for name in LIBRARIES}, "seed": seed})[:-1]
    file.write_text(f"{head},\n" + '"cases": [\n' + ",\n".join(json.dumps(one) for one in cases) + "\n]}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
