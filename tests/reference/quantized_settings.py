"""Small models as libraries quantize them under random settings: `python -m tests.reference.quantized_settings [COUNT
[SEED [FILE [LIBRARY]]]]`, from the repository, writes a file like `tests/golden/quantized_settings.json`, which has the
cases of several seeds.

Each case is one of the models of `quantizers.MODELS`, or of MORE, and a setting that is drawn at random: a scheme of
compressed-tensors with targets, lists and groups; bitsandbytes with lists of modules to skip; torchao with lists;
transformers' FP8 with lists, whose layers are made on the meta device, since it quantizes on an accelerator alone.
LIBRARY is one of those with an environment of its own: gptqmodel with `dynamic`, awq (the layers that transformers
makes of its `modules_to_not_convert`, which are gptqmodel's), mlx (mlx-lm) with settings by
module, quark (amd-quark) with patterns of names, and sparse (compressed-tensors 0.11) with two of four elements in a
row. Kept are the `quantization_config` that the library wrote, and the bytes of all tensors in the headers of its
files, or that it refused. Needs `pip install torch transformers accelerate bitsandbytes compressed-tensors torchao
defuser logbar`; or `gptqmodel` (awq too); or `mlx[cpu] mlx-lm`; or `amd-quark`; or `compressed-tensors==0.11.0`.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from .quantizers import DENSE, EXPERTS, FILLED, HEADS, MODELS, separated

FILE = Path(__file__).parent.parent / "golden" / "quantized_settings.json"
DESCRIPTION = ".quant_state."  # bitsandbytes' JSON, whose length depends on the digits of a mean
NOT_COUNTED = ("e_score_correction_bias",)  # buffers
LIBRARIES = (
    *(
        "accelerate",
        "amd-quark",
        "bitsandbytes",
        "compressed-tensors",
        "gptqmodel",
        "mlx-lm",
        "torch",
        "torchao",
        "transformers",
    ),
)

# More types, of which seeds from FIRST_OF_MORE on draw.
FIRST_OF_MORE = 700
FOUR_HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
MORE: dict[str, dict[str, Any]] = {
    "smollm3": {"model_type": "smollm3", **DENSE, **FOUR_HEADS, "tie_word_embeddings": True, "pad_token_id": 0},
    "glm4": {"model_type": "glm4", **DENSE, **HEADS, "tie_word_embeddings": False, "pad_token_id": 0},
    "starcoder2": {"model_type": "starcoder2", **DENSE, **FOUR_HEADS, "tie_word_embeddings": True},
    "stablelm": {"model_type": "stablelm", **DENSE, **FOUR_HEADS, "tie_word_embeddings": False, "use_qkv_bias": True},
    "opt": {
        "model_type": "opt",
        "hidden_size": 256,
        "ffn_dim": 384,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 1024,
        "word_embed_proj_dim": 128,
        "max_position_embeddings": 128,
    },
    "gpt_neox": {"model_type": "gpt_neox", **DENSE, "num_attention_heads": 4, "tie_word_embeddings": False},
    "bloom": {"model_type": "bloom", "hidden_size": 256, "n_layer": 2, "n_head": 4, "vocab_size": 1024},
    "phi": {"model_type": "phi", **DENSE, "num_attention_heads": 4, "tie_word_embeddings": False},
    "exaone4": {"model_type": "exaone4", **DENSE, **FOUR_HEADS, "tie_word_embeddings": False, "sliding_window": 64},
    "ernie4_5": {"model_type": "ernie4_5", **DENSE, **HEADS, "tie_word_embeddings": True},
    "hunyuan_v1_dense": {"model_type": "hunyuan_v1_dense", **DENSE, **HEADS, "tie_word_embeddings": True},
    "seed_oss": {"model_type": "seed_oss", **DENSE, **HEADS, "tie_word_embeddings": False},
    "nemotron": {"model_type": "nemotron", **DENSE, **FOUR_HEADS, "tie_word_embeddings": False},
    "falcon_h1": {
        "model_type": "falcon_h1",
        **DENSE,
        **FOUR_HEADS,
        "mamba_d_ssm": 256,
        "mamba_n_heads": 8,
        "mamba_d_head": 32,
        "mamba_d_state": 32,
        "mamba_n_groups": 1,
        "tie_word_embeddings": False,
    },
    "granitemoe": {
        "model_type": "granitemoe",
        **DENSE,
        **FOUR_HEADS,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "tie_word_embeddings": False,
        "attention_multiplier": 0.1,
        "embedding_multiplier": 1.0,
        "logits_scaling": 1.0,
        "residual_multiplier": 1.0,
    },
    "dots1": {
        "model_type": "dots1",
        **DENSE,
        **HEADS,
        **EXPERTS,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "n_group": 1,
        "topk_group": 1,
        "tie_word_embeddings": False,
    },
}

# Types whose activations AWQ scales, of which its seeds from FIRST_OF_SCALED on draw.
FIRST_OF_SCALED = 760
SCALED: dict[str, dict[str, Any]] = {
    **{name: MORE[name] for name in ("starcoder2", "gpt_neox", "bloom")},
    "falcon": {"model_type": "falcon", **DENSE, "num_attention_heads": 4, "ffn_hidden_size": 512},
    "gptj": {"model_type": "gptj", "n_embd": 256, "n_layer": 2, "n_head": 4, "vocab_size": 1024, "rotary_dim": 32}
    | {"n_inner": 384, "tie_word_embeddings": False},
    "mpt": {"model_type": "mpt", "d_model": 256, "n_layers": 2, "n_heads": 4, "vocab_size": 1024, "expansion_ratio": 4}
    | {"attn_config": {"attn_type": "multihead_attention", "alibi": True}},
    "gpt_bigcode": {"model_type": "gpt_bigcode", "n_embd": 256, "n_layer": 2, "n_head": 4, "vocab_size": 1024}
    | {"n_positions": 128, "n_inner": 384, "multi_query": True},
}


def made(slug: str) -> Any:
    """The model, with random weights in bfloat16."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    raw = (MODELS | MORE | SCALED)[slug]
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


def mlx(slug: str, draw: random.Random, names: list[str], out: Path) -> None:
    """mlx-lm's files: tables and linear layers in one form, some in another. What is left as it is, its config does not
    say: there, files decide."""
    from mlx_lm.utils import load_model, quantize_model, save_config, save_model

    bits, sizes = (2, 3, 4, 5, 6, 8), (32, 64, 128)
    some = draw.sample(("q_proj", "o_proj", "down_proj", "gate", "embed_tokens", "lm_head", "layers.1."), 3)
    special = {name: {"bits": draw.choice(bits), "group_size": draw.choice(sizes)} for name in some}

    def chosen(path: str, module: Any) -> bool | dict[str, int]:
        return next((said for name, said in special.items() if name in path), True)

    with tempfile.TemporaryDirectory() as plain:
        made(slug).save_pretrained(plain)
        model, config = load_model(Path(plain), lazy=True, model_config=FILLED | MODELS[slug])
        kind = {"group_size": draw.choice(sizes), "bits": draw.choice(bits)}
        model, config = quantize_model(model, config, **kind, quant_predicate=chosen)
        save_model(out, model)
        save_config(config, out / "config.json")


def gptqmodel(slug: str, draw: random.Random, names: list[str], out: Path) -> None:
    """The buffers of gptqmodel's layers, each as its own reader of `dynamic` decides."""
    import torch
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.quantization.config import QuantizeConfig
    from safetensors.torch import save_file

    model = separated(made(slug))
    dynamic: dict[str, dict[str, int]] = {}
    for _ in range(1 + draw.randrange(3)):
        name = draw.choice([n for n in names if "layers." in n or ".h." in n])
        last = name.rpartition(".")[2]
        form = draw.choice((rf".*\.{last}$", rf".*\.1\..*{last}", rf".*\.{last}.*", name.replace(".", r"\.")))
        if draw.random() < 0.4:
            dynamic[f"-:{form}"] = {}
        else:
            other = {"bits": draw.choice((2, 3, 4, 8)), "group_size": draw.choice((32, 64, 128))}
            dynamic[draw.choice(("", "+:")) + form] = dict(draw.sample(list(other.items()), draw.randrange(1, 3)))
    said = QuantizeConfig(bits=draw.choice((4, 8)), group_size=draw.choice((32, 64, 128)), dynamic=dynamic)
    state = model.state_dict()
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    for name, module in model.named_modules():
        is_inside = ("layers." in name or ".h." in name) and not name.endswith((".shared_expert_gate", ".gate"))
        if not is_inside or not (isinstance(module, torch.nn.Linear) or type(module).__name__ == "Conv1D"):
            continue
        if said.dynamic_get(layer_name=name) is False:
            continue
        columns, rows = (module.nx, module.nf) if hasattr(module, "nx") else (module.in_features, module.out_features)
        layer = TorchLinear(
            bits=said.dynamic_get(name, "bits", said.bits),
            group_size=said.dynamic_get(name, "group_size", said.group_size),
            sym=True,
            desc_act=False,
            in_features=columns,
            out_features=rows,
            bias=module.bias is not None,
            pack_dtype=torch.int32,
            register_buffers=True,
        )
        del state[f"{name}.weight"]
        state.pop(f"{name}.bias", None)
        state |= {f"{name}.{key}": value for key, value in layer.state_dict().items()}
    out.mkdir(exist_ok=True)
    save_file({key: value.contiguous().clone() for key, value in state.items()}, out / "model.safetensors")
    keys = {"quant_method": "gptq", "bits": said.bits, "group_size": said.group_size, "dynamic": dynamic}
    keys |= {"sym": True, "desc_act": False}
    (out / "config.json").write_text(json.dumps({"dtype": "bfloat16", "quantization_config": keys}))


def awq(slug: str, draw: random.Random, names: list[str], out: Path) -> None:
    """The buffers of gptqmodel's AWQ layers that transformers puts in the place of linear ones."""
    import torch
    from safetensors.torch import save_file
    from transformers import AwqConfig
    from transformers.integrations.awq import replace_quantization_scales, replace_with_awq_linear
    from transformers.quantizers.base import HfQuantizer

    skip = None if draw.random() < 0.2 else skipped(draw, names)
    group = draw.choice((32, 64, 128, -1))
    said = AwqConfig(bits=4, group_size=group, zero_point=True, modules_to_not_convert=skip, backend="torch_awq")
    model = separated(made(slug))  # as in the files, which transformers 4 wrote
    kept = HfQuantizer.get_modules_to_not_convert(model, skip, model._keep_in_fp32_modules, add_default_skips=True)
    # AWQ quantizes layers alone, and no router.
    linear = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)]
    kept += [
        name for name in linear if not re.search(r"\b(layers|h|blocks)\.", name) or re.search(r"gate$|router", name)
    ]
    model = replace_with_awq_linear(model, kept, said, device_map="cpu")
    model = replace_quantization_scales(model, model.config.model_type)
    out.mkdir(exist_ok=True)
    tied = model.all_tied_weights_keys
    tensors = {
        name: torch.zeros(t.shape, dtype=torch.bfloat16 if t.is_floating_point() else t.dtype)
        for name, t in model.state_dict().items()
        if name not in tied
    }
    save_file(tensors, out / "model.safetensors")
    keys = {"quant_method": "awq", "bits": 4, "group_size": group, "zero_point": True, "version": "gemm"}
    keys |= {"modules_to_not_convert": skip} if skip is not None else {}
    (out / "config.json").write_text(json.dumps({"dtype": "bfloat16", "quantization_config": keys}))


def quark(slug: str, draw: random.Random, names: list[str], out: Path) -> None:
    """AMD Quark's files: one form for all linear layers, another for some, patterns of names that are left out."""
    import torch
    from quark.torch import ModelQuantizer, export_safetensors
    from quark.torch.quantization.config import config as q

    whole = {"symmetric": True, "scale_type": "float", "round_method": "half_even", "is_dynamic": False}
    of_tensor = {"observer_method": "min_max", **whole}

    def form() -> Any:
        group = draw.choice((32, 64, 128))
        ways: list[Callable[[], Any]] = [
            lambda: q.FP8E4M3PerTensorSpec(is_dynamic=False, observer_method="min_max"),
            lambda: q.FP8E4M3PerChannelSpec(is_dynamic=False, ch_axis=0),
            lambda: q.Int8PerTensorSpec(**of_tensor),
            lambda: q.Int8PerChannelSpec(ch_axis=0, **whole),
            lambda: q.Int8PerGroupSpec(ch_axis=-1, group_size=group, **whole),
            lambda: q.Int4PerChannelSpec(ch_axis=0, **whole),
            lambda: q.Int4PerGroupSpec(ch_axis=-1, group_size=group, **whole),
            lambda: q.Uint4PerGroupSpec(ch_axis=-1, group_size=group, **{**whole, "symmetric": False}),
            lambda: q.OCP_MXFP4Spec(ch_axis=-1, is_dynamic=False),
            lambda: q.OCP_MXFP6E3M2Spec(ch_axis=-1, is_dynamic=False),
        ]
        return draw.choice(ways)().to_quantization_spec()

    def inputs() -> Any:
        kind = draw.choice((None, None, "fp8", "fp8 dynamic", "int8"))
        if kind == "int8":
            return q.Int8PerTensorSpec(**of_tensor).to_quantization_spec()
        is_dynamic = kind == "fp8 dynamic"
        said = q.FP8E4M3PerTensorSpec(is_dynamic=is_dynamic, observer_method="min_max")
        return None if kind is None else said.to_quantization_spec()

    def some() -> str:
        name = draw.choice(names)
        last = name.rpartition(".")[2]
        ways = [f"*{last}", f"*.{last}", name, f"*layers.0.*{last}", f"*layers.?.*{last}", last, f"{last}*"]
        return draw.choice(ways)

    others = {some(): q.QLayerConfig(weight=form(), input_tensors=inputs()) for _ in range(draw.choice((0, 0, 1, 2)))}
    cached = {}
    if draw.random() < 0.2:
        kept = q.FP8E4M3PerTensorSpec(is_dynamic=False, observer_method="min_max").to_quantization_spec()
        of = q.QLayerConfig(weight=form(), output_tensors=kept)
        cached = dict.fromkeys(("*k_proj", "*v_proj"), of)
    excluded = [*(["lm_head"] if draw.random() < 0.7 else []), *(some() for _ in range(draw.randrange(3)))]
    said = q.QConfig(
        global_quant_config=q.QLayerConfig(weight=form(), input_tensors=inputs()),
        layer_quant_config=others,
        kv_cache_quant_config=cached,
        exclude=excluded,
    )
    quantizer = ModelQuantizer(said)
    model = quantizer.freeze(quantizer.quantize_model(made(slug), [torch.randint(0, 1000, (1, 8))]))
    export_safetensors(model, out)


def sparse(slug: str, draw: random.Random, names: list[str], out: Path) -> None:
    """Two of four elements of a row (compressed-tensors up to 0.11), in 16 bits or quantized."""
    import torch
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.compressors.sparse_compressors.sparse_24_bitmask import get_24_bytemasks
    from compressed_tensors.config import Sparse24BitMaskConfig
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config, preset_name_to_scheme
    from safetensors.torch import save_file

    model = separated(made(slug))
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.weight.mul_(get_24_bytemasks(module.weight))
    ignore = [*(["lm_head"] if draw.random() < 0.7 else []), *(_targets(draw, names) if draw.random() < 0.5 else [])]
    kind = draw.choice((None, None, "FP8", "FP8_DYNAMIC", "W8A8"))
    said = None
    if kind is not None:
        form = "int-quantized" if kind == "W8A8" else "float-quantized"
        groups = {"group_0": preset_name_to_scheme(kind, ["Linear"])}
        said = QuantizationConfig(config_groups=groups, ignore=ignore, format=form)
        apply_quantization_config(model, said)
    half = Sparse24BitMaskConfig(targets=["Linear"], ignore=ignore)
    state = ModelCompressor(sparsity_config=half, quantization_config=said).compress(model, show_progress=False)
    tied = () if not model.config.tie_word_embeddings else ("lm_head.weight",)
    out.mkdir(exist_ok=True)
    save_file(
        {name: t.contiguous().clone() for name, t in state.items() if name not in tied}, out / "model.safetensors"
    )
    keys = {"quant_method": "compressed-tensors", "version": "0.11.0", "sparsity_config": half.model_dump()}
    if said is not None:
        keys |= {key: value for key, value in said.to_dict().items() if key not in ("quant_method", "version")}
    (out / "config.json").write_text(json.dumps({"dtype": "bfloat16", "quantization_config": keys}, default=str))


WRITERS = {
    "bitsandbytes": bitsandbytes,
    "compressed-tensors": compressed_tensors,
    "torchao": torchao,
    "fp8": fp8,
}
OTHERS = {
    "gptqmodel": gptqmodel,
    "awq": awq,
    "mlx": mlx,
    "quark": quark,
    "sparse": sparse,
}  # in environments of their own


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


def case(number: int, seed: int, only: str = "") -> dict[str, Any]:
    """One random setting, and what its library wrote; `only` one of the libraries with an environment of its own."""
    draw = random.Random(f"{seed}/{number}")
    is_scaled = only == "awq" and seed >= FIRST_OF_SCALED
    slug = draw.choice(list(SCALED if is_scaled else MORE if seed >= FIRST_OF_MORE else MODELS))
    library = only or draw.choice(list(WRITERS))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        try:
            (WRITERS | OTHERS)[library](slug, draw, linear_names(slug), out)
        except Exception as error:  # a library that refuses: said, and kept
            return {"model": slug, "library": library, "refused": f"{type(error).__name__}: {str(error)[:120]}"}
        said = json.loads((out / "config.json").read_text("utf-8"))
        kept = {"model": slug, "library": library, "quantization_config": said.get("quantization_config")}
        return {**kept, "bytes": bytes_of(out)}


def main(count: str = "160", seed: str = "0", file: str = str(FILE), library: str = "") -> None:
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    cases: list[dict[str, Any]] = []
    for number in range(int(count)):
        cases.append(case(number, int(seed), library))
        print(number, json.dumps(cases[-1])[:100], flush=True)
        write(cases, int(seed), Path(file))


def write(cases: list[dict[str, Any]], seed: int, file: Path) -> None:
    """A line for each case."""
    here = {one.name for one in distributions()}
    head = json.dumps({"versions": {name: version(name) for name in LIBRARIES if name in here}, "seed": seed})[:-1]
    file.write_text(f"{head},\n" + '"cases": [\n' + ",\n".join(json.dumps(one) for one in cases) + "\n]}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
