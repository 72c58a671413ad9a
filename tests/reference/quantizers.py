"""Small models as the quantizers' own libraries write them: `python -m tests.reference.quantizers LIBRARY`, from the
repository, adds to `tests/golden/quantizers.json`. LIBRARY is one of torch, gptq, mlx; each in an environment with its
own packages, and none of this project's:

    torch: pip install torch transformers accelerate bitsandbytes compressed-tensors torchao
    gptq:  pip install torch transformers gptqmodel
    mlx:   pip install mlx[cpu] mlx-lm, and a folder of checkpoints that `torch` has left: --checkpoints FOLDER

Each model is made from its config with random weights, quantized and saved; kept is what the headers of the saved
files say: for each tensor its type and shape. Nothing of ours computes anything in the file. gptqmodel's own layers
are asked for their buffers, one for each layer that it would replace, since its calibration needs real weights.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "golden" / "quantizers.json"

# Every size is a multiple of 128, as quantizers ask for, and no two are alike; layers without a size of their own.
DENSE = {"hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 2, "vocab_size": 1024}
HEADS = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
EXPERTS = {"moe_intermediate_size": 128, "num_experts_per_tok": 2}
LATENT = {"q_lora_rank": 128, "kv_lora_rank": 64, "qk_nope_head_dim": 64, "qk_rope_head_dim": 64, "v_head_dim": 128}
MODELS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", **DENSE, **HEADS, "tie_word_embeddings": False},
    "qwen2": {"model_type": "qwen2", **DENSE, "num_attention_heads": 4, "num_key_value_heads": 2}
    | {"tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", **DENSE, **HEADS, "tie_word_embeddings": True},
    "gemma2": {"model_type": "gemma2", **DENSE, **HEADS},
    "gemma3_text": {"model_type": "gemma3_text", **DENSE, **HEADS},
    "phi3": {"model_type": "phi3", **DENSE, "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0}
    | {"tie_word_embeddings": False},
    "olmo2": {"model_type": "olmo2", **DENSE, "num_attention_heads": 4, "num_key_value_heads": 2}
    | {"tie_word_embeddings": False},
    "cohere": {"model_type": "cohere", **DENSE, "num_attention_heads": 4, "num_key_value_heads": 2},
    "gpt2": {"model_type": "gpt2", "n_embd": 256, "n_head": 4, "n_layer": 2, "vocab_size": 1024, "n_positions": 128},
    "mixtral": {"model_type": "mixtral", **DENSE, "num_attention_heads": 4, "num_key_value_heads": 2}
    | {"num_local_experts": 4, "num_experts_per_tok": 2, "tie_word_embeddings": False},
    "qwen2_moe": {"model_type": "qwen2_moe", **DENSE, **EXPERTS, "num_attention_heads": 4, "num_key_value_heads": 2}
    | {"num_experts": 4, "shared_expert_intermediate_size": 640, "tie_word_embeddings": False},
    "qwen3_moe": {"model_type": "qwen3_moe", **DENSE, **HEADS, **EXPERTS, "num_experts": 4}
    | {"tie_word_embeddings": False},
    "deepseek_v3": {"model_type": "deepseek_v3", **DENSE, **LATENT, **EXPERTS, "num_attention_heads": 4}
    | {"num_key_value_heads": 4, "n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1}
    | {"n_group": 1, "topk_group": 1, "tie_word_embeddings": False},
    "gpt_oss": {"model_type": "gpt_oss", **DENSE, **HEADS, "num_local_experts": 4, "num_experts_per_tok": 2}
    | {"tie_word_embeddings": False},
    "olmoe": {"model_type": "olmoe", **DENSE, "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 4}
    | {"num_experts_per_tok": 2, "tie_word_embeddings": False},
    "granite": {"model_type": "granite", **DENSE, "num_attention_heads": 4, "num_key_value_heads": 2}
    | {"tie_word_embeddings": False, "logits_scaling": 8.0, "attention_multiplier": 0.1}
    | {"embedding_multiplier": 12.0, "residual_multiplier": 0.2, "attention_bias": False, "mlp_bias": False},
    "glm4_moe": {"model_type": "glm4_moe", **DENSE, **HEADS, **EXPERTS, "n_routed_experts": 4, "n_group": 1}
    | {"n_shared_experts": 1, "first_k_dense_replace": 1, "topk_group": 1, "tie_word_embeddings": False}
    | {"use_qk_norm": True, "attention_bias": False, "partial_rotary_factor": 0.5, "norm_topk_prob": True}
    | {"routed_scaling_factor": 1.0},
    "qwen3_next": {"model_type": "qwen3_next", **DENSE, **HEADS, **EXPERTS, "num_experts": 4}
    | {"shared_expert_intermediate_size": 640, "linear_num_value_heads": 4, "linear_num_key_heads": 2}
    | {"linear_key_head_dim": 64, "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4}
    | {"layer_types": ["linear_attention", "full_attention"], "full_attention_interval": 2}
    | {"tie_word_embeddings": False, "partial_rotary_factor": 0.25, "decoder_sparse_step": 1, "mlp_only_layers": []}
    | {"norm_topk_prob": True},
    "mamba2": {"model_type": "mamba2", "hidden_size": 256, "num_hidden_layers": 2, "vocab_size": 1024, "expand": 2}
    | {"num_heads": 8, "head_dim": 64, "n_groups": 1, "state_size": 32, "tie_word_embeddings": True},
}

# A tensor's name without the numbers of layers and experts, its type and shape, and how many there are.
Tensors = list[tuple[str, str, list[int], int]]


def headers(folder: Path) -> Tensors:
    """The tensors of a folder of safetensors files."""
    found: dict[tuple[str, str, tuple[int, ...]], int] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            for name, said in json.loads(file.read(size)).items():
                if name != "__metadata__":
                    pattern = re.sub(r"\.\d+\.", ".{}.", re.sub(r"\.\d+\.", ".{}.", name))
                    key = pattern, said["dtype"], tuple(said["shape"])
                    found[key] = found.get(key, 0) + 1
    return [(name, dtype, [*shape], copies) for (name, dtype, shape), copies in sorted(found.items())]


def checkpoints(folder: Path) -> Iterator[tuple[str, Path]]:
    """Each model with the folder of its checkpoint, which is made where it is not there."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    for name, raw in MODELS.items():
        path = folder / name
        if not (path / "config.json").exists():
            given = {key: value for key, value in raw.items() if key != "model_type"}
            config = AutoConfig.for_model(raw["model_type"], **given)
            AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(path)
        yield name, path


def bitsandbytes(path: Path, out: Path, kind: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    if kind == "llm.int8":
        said = BitsAndBytesConfig(load_in_8bit=True)
    else:
        said = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=kind == "nf4-dq",
            bnb_4bit_compute_dtype=torch.bfloat16,
        )
    AutoModelForCausalLM.from_pretrained(path, quantization_config=said, device_map="cpu").save_pretrained(out)


def torchao(path: Path, out: Path, kind: str) -> None:
    """Without its four bits, which it quantizes on an accelerator alone."""
    from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig
    from transformers import AutoModelForCausalLM, TorchAoConfig

    said = {"torchao-int8": Int8WeightOnlyConfig, "torchao-float8": Float8WeightOnlyConfig}[kind]()
    model = AutoModelForCausalLM.from_pretrained(path, quantization_config=TorchAoConfig(said), device_map="cpu")
    model.save_pretrained(out)


def separated(model: Any) -> Any:
    """A model whose stacked experts are linear layers, as gptqmodel and llm-compressor make them first."""
    from defuser import convert_model

    if any(".experts." in name for name, _ in model.named_parameters()):
        convert_model(model)
    return model


IGNORED = ["lm_head", "re:.*shared_expert_gate$"]
SCHEMES = {
    "fp8-tensor": "FP8",
    "fp8-channel": "FP8_DYNAMIC",
    "w4a16": "W4A16",
    "w8a8": "W8A8",
    "nvfp4-linear": "NVFP4",
    "nvfp4a16": "NVFP4A16",
    "mxfp4-linear": "MXFP4",
}


def compressed_tensors(path: Path, out: Path, kind: str) -> None:
    """With scales as they are before calibration, which changes values alone."""
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config, preset_name_to_scheme
    from transformers import AutoModelForCausalLM

    model = separated(AutoModelForCausalLM.from_pretrained(path))
    scheme = preset_name_to_scheme(SCHEMES[kind], ["Linear"])
    apply_quantization_config(model, QuantizationConfig(config_groups={"group_0": scheme}, ignore=IGNORED))
    compressor = ModelCompressor.from_pretrained_model(model)
    compressor.compress_model(model)
    model.save_pretrained(out)


def gptq(path: Path, out: Path, kind: str) -> None:
    """The buffers of gptqmodel's layers in the place of the linear ones of each layer."""
    import torch
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.nn_modules.qlinear.torch_awq import AwqTorchLinear
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM
    from transformers.pytorch_utils import Conv1D

    method, bits, group = kind.split("-")
    model = separated(AutoModelForCausalLM.from_pretrained(path))
    tensors = {}
    state = model.state_dict()
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    for name, module in model.named_modules():
        if "layers." in name or ".h." in name:
            if name.endswith((".shared_expert_gate", ".gate")):
                continue
            if isinstance(module, torch.nn.Linear):
                sizes = module.in_features, module.out_features
            elif isinstance(module, Conv1D):
                sizes = module.nx, module.nf
            else:
                continue
            layer = (AwqTorchLinear if method == "awq" else TorchLinear)(
                bits=int(bits.removesuffix("bit")),
                group_size=int(group.removeprefix("g")),
                sym=method != "awq",
                desc_act=False,
                in_features=sizes[0],
                out_features=sizes[1],
                bias=module.bias is not None,
                pack_dtype=torch.int32,
                register_buffers=True,
            )
            del state[f"{name}.weight"]
            state.pop(f"{name}.bias", None)
            tensors |= {f"{name}.{key}": value for key, value in layer.state_dict().items()}
    save_file({key: value.contiguous().clone() for key, value in (state | tensors).items()}, out / "model.safetensors")


# What mlx-lm asks of a config and transformers 5 spells otherwise or leaves out.
FILLED = {"n_ctx": 128, "rope_theta": 10000.0, "intermediate_size": 512, "rope_scaling": None}


def mlx(path: Path, out: Path, kind: str) -> None:
    from mlx_lm.utils import load_model, quantize_model, save_model

    name = path.name
    if path.name == "gpt2":  # whose published files leave out the name of the base
        path = _without_prefix(path, out)
    model, config = load_model(path, lazy=True, model_config=FILLED | MODELS[name])
    bits = int(kind.removeprefix("mlx-").removesuffix("bit"))
    model, _ = quantize_model(model, config, group_size=64, bits=bits)
    save_model(out, model)


def _without_prefix(path: Path, out: Path) -> Path:
    from safetensors.torch import load_file, save_file

    folder = out.parent / f"{out.name}-gpt2"
    folder.mkdir()
    tensors = load_file(path / "model.safetensors")
    save_file(
        {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}, folder / "model.safetensors"
    )
    (folder / "config.json").write_bytes((path / "config.json").read_bytes())
    return folder


LIBRARIES: dict[str, tuple[Callable[[Path, Path, str], None], tuple[str, ...]]] = {
    "bitsandbytes": (bitsandbytes, ("nf4", "nf4-dq", "llm.int8")),
    "compressed-tensors": (compressed_tensors, tuple(SCHEMES)),
    "gptqmodel": (gptq, ("gptq-4bit-g128", "gptq-4bit-g32", "gptq-8bit-g64", "gptq-3bit-g128", "awq-4bit-g128")),
    "torchao": (torchao, ("torchao-int8", "torchao-float8")),
    "mlx-lm": (mlx, ("mlx-4bit", "mlx-8bit", "mlx-3bit", "mlx-6bit")),
}


def main(library: str, folder: str, *only: str) -> None:
    made = json.loads(FILE.read_bytes()) if FILE.exists() else {}
    write, kinds = LIBRARIES[library]
    there = (
        checkpoints(Path(folder))
        if library in ("bitsandbytes", "torchao")
        else ((name, Path(folder) / name) for name in MODELS)
    )
    for name, path in there:
        said = made.setdefault(name, {"config": MODELS[name], "files": {}})
        said["config"] = MODELS[name]
        for kind in kinds:
            if only and kind not in only:
                continue
            with tempfile.TemporaryDirectory() as out:
                try:
                    write(path, Path(out), kind)
                    said["files"][kind] = headers(Path(out))
                    print(name, kind, len(said["files"][kind]), flush=True)
                except Exception as error:  # a library that cannot: said, and left out
                    print(name, kind, type(error).__name__, str(error)[:200].replace("\n", " "), flush=True)
    lines = (f"{json.dumps(name)}: {json.dumps(made[name], separators=(',', ':'))}" for name in sorted(made))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
