"""The vision tower of Kimi K3 by vLLM's own modules: `python -m tests.reference.kimi_k3_tower VLLM`, from the
repository. VLLM is the folder of vLLM's source distribution; torch and transformers are installed.

vLLM's layers for its kernels are plain torch, as in `vllm_models.py`. The program compares a small tower and random
variants of it, and writes them into `tests/golden/towers`.
"""

from __future__ import annotations

import importlib
import json
import math
import random
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from macros.engine.towers import Grid, find, read_config, table_around

from . import TESTS, changed, digest
from .towers import SEED, compare
from .vllm_models import LAYERS, MODELS, PARTS, Finder

NAME, PART, VARIANTS = "kimi_k3", "vision_config", 12
SMALL = {
    "model_type": "kimi_k3",
    "text_config": {"model_type": "kimi_linear", "hidden_size": 22},
    PART: {
        "patch_size": 7,
        "init_pos_emb_height": 5,
        "init_pos_emb_width": 5,
        "vt_hidden_size": 26,
        "vt_num_hidden_layers": 3,
        "vt_num_attention_heads": 3,
        "qkv_hidden_size": 36,
        "vt_intermediate_size": 34,
        "mm_projector_type": "patchmergerv2",
        "projector_ln_eps": 1e-4,
        "norm_type": "rmsnorm",
    },
}
# Keys of a variant, and what they may be.
OTHERWISE = {
    "patch_size": (5, 9),
    "vt_hidden_size": (20, 24),
    "vt_num_hidden_layers": (1, 2),
    "qkv_hidden_size": (24, 60),
    "vt_intermediate_size": (31, 48),
    "projector_ln_eps": (1e-6, 1e-3),
    "merge_kernel_size": ([3, 3], [1, 1]),
    "activation_func": ("gelu", "gelu_pytorch_tanh"),
}


class Patch(nn.Conv2d):
    """One product for each patch."""

    def forward_native(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x.flatten(1), self.weight.flatten(1))


class Attention(nn.Module):
    """Attention of all patches of an image to all."""

    attn_backend = None

    def __init__(self, num_heads: int, head_size: int, scale: float, prefix: str = "") -> None:
        super().__init__()
        self.scale = scale

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **_: Any) -> torch.Tensor:
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        return torch.bmm((torch.bmm(q, k.transpose(1, 2)) * self.scale).softmax(-1), v).transpose(0, 1)[None]

    maybe_compute_seq_lens = staticmethod(lambda *_: None)
    compute_max_seqlen = staticmethod(lambda _, starts: int(starts[-1]))
    maybe_recompute_cu_seqlens = staticmethod(lambda _, starts, *__: torch.from_numpy(starts))


class Turn(nn.Module):
    """Rotary embeddings of neighbors."""

    def __init__(self, is_neox_style: bool, **_: Any) -> None:
        super().__init__()
        assert not is_neox_style

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b, cos, sin = x[..., ::2], x[..., 1::2], cos[:, None], sin[:, None]
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


PARTS |= {
    f"{LAYERS}.attention.mm_encoder_attention": {"MMEncoderAttention": Attention},
    f"{LAYERS}.conv": {"Conv2dLayer": Patch},
    f"{LAYERS}.fusion.mm_input_norm": {"IdentityInputNorm": lambda: lambda x, _: x},
    f"{LAYERS}.rotary_embedding.common": {"ApplyRotaryEmb": Turn},
    f"{MODELS}.vision": {"is_vit_use_data_parallel": lambda _: False},
    f"{MODELS}.utils": {"maybe_prefix": lambda a, b: f"{a}.{b}"},
    "vllm.triton_utils": {"HAS_TRITON": False},
}
PARTS["vllm.distributed"] |= {"divide": lambda a, b: a // b}
PARTS[f"{LAYERS}.activation"] |= {
    "get_act_fn": {"gelu": F.gelu, "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh")}.get
}


class Code(Finder):
    """Imports the module of the tower alone."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        of_models = name.startswith(f"{MODELS}.") and not name.endswith("kimi_k25_vit")
        spec = importlib.util.spec_from_loader(name, self, is_package=True)
        return spec if of_models else super().find_spec(name, path, target)


def theirs(raw: dict[str, Any]) -> nn.ModuleDict:
    """vLLM's tower and projector of a config, with random weights."""
    code = importlib.import_module(f"{MODELS}.kimi_k25_vit")
    given = {"merge_kernel_size": (2, 2), "activation_func": "gelu_pytorch_tanh", "init_pos_emb_time": 4}
    given |= {"attn_bias": False, "linear_bias": False, "patch_embed_proj_bias": False}
    given |= {"pos_emb_interpolation_mode": "bilinear"} | raw[PART]
    given |= {name.removeprefix("vt_"): value for name, value in given.items()}
    config = types.SimpleNamespace(**given)
    tower = code.MoonViT3dPretrainedModel(config)
    projector = code.KimiK25MultiModalProjector(config, raw["text_config"]["hidden_size"])
    model = nn.ModuleDict({"vision_tower": tower, "mm_projector": projector}).eval()
    torch.manual_seed(SEED)
    for parameter in model.parameters():
        random_one = torch.randn_like(parameter)
        parameter.data = 1 + random_one / 5 if parameter.ndim == 1 else random_one / parameter[0].numel() ** 0.5
    return model


@torch.no_grad()
def held(raw: dict[str, Any], grid: Grid) -> dict[str, Any]:
    """What a file of a tower holds."""
    model, (config, unknown) = theirs(raw), read_config(find(raw, PART), raw, PART)
    assert not unknown, unknown
    x = torch.rand(tuple(map(int, config.input_shape(grid))), generator=torch.Generator().manual_seed(SEED))
    with FlopCounterMode(display=False) as counter:
        side = int(config.patch)
        patches = model["vision_tower"](x.reshape(len(x), 3, side, side), [[1, grid.rows, grid.columns]])
        read = model["mm_projector"](patches[0])
    names = {"linear_1": "proj.0", "linear_2": "proj.2"}
    weights = dict(model.named_parameters())
    for there, here in names.items():
        weights = {n.replace(there, here): p for n, p in weights.items()}
    return (
        {"config_json": json.dumps(raw), "part": PART, "grid": np.array([grid.rows, grid.columns])}
        | {"input": x.numpy(), "flops": np.array(counter.get_total_flops()), "read/0": read.numpy()}
        | {f"w/{n}": p.numpy() for n, p in weights.items()}
    )


def row(new: dict[str, Any], rng: random.Random) -> list[Any]:
    """A variant: what is changed, the grid, parameters, FLOPs, vectors, a digest of the tensors."""
    raw = changed(SMALL, new)
    config, _ = read_config(find(*table_around(raw, PART)), *table_around(raw, PART))
    grid = Grid(*(int(config.merge) * rng.randint(2, 5) for _ in range(2)))
    there = held(raw, grid)
    compare(there)
    shapes = {key[2:]: a.shape for key, a in there.items() if key.startswith("w/")}
    total = sum(map(math.prod, shapes.values()))
    return [new, [grid.rows, grid.columns], total, int(there["flops"]), len(there["read/0"]), digest(shapes)]


def main(folder: str) -> None:
    sys.meta_path.insert(0, Code(Path(folder)))
    versions = {"seed": SEED, "torch": torch.__version__, "transformers": transformers.__version__}
    there = held(SMALL, Grid(6, 10))
    print(f"{NAME}: {compare(there):.1e}")
    golden = TESTS / "golden" / "towers"
    np.savez_compressed(golden / f"{NAME}.npz", meta_json=json.dumps(versions), **there)
    found: dict[str, list[Any]] = {}
    for number in range(100):
        rng = random.Random(f"{NAME} {number}")
        new = {f"{PART}.{key}": rng.choice(OTHERWISE[key]) for key in rng.sample(sorted(OTHERWISE), rng.choice((1, 2)))}
        if len(found) < VARIANTS and json.dumps(new) not in found:
            found[json.dumps(new)] = row(new, rng)
    path = golden / "variants.json"
    known = json.loads(path.read_text("utf-8")) | {NAME: list(found.values())}
    lines = [f'"{name}": [\n' + ",\n".join(map(json.dumps, known[name])) + "\n]" for name in sorted(known)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{len(found)} variants, the same")


if __name__ == "__main__":
    main(sys.argv[1])
