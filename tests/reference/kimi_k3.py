"""Kimi K3 as NVIDIA's Automodel computes it: `python -m tests.reference.kimi_k3 FOLDER`, from the repository. FOLDER
is that of NVIDIA-NeMo/Automodel; torch is installed.

Its `components/models/kimi_k3/model.py` runs as it is, but for the kernels of flash-linear-attention and the parts of
Automodel below it, for which plain torch stands in. The program writes `tests/golden/kimi_k3.npz`.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from macros.catalogue.presets import make
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

from . import TESTS, close
from .configs import PROMPT, small_config
from .own import SEED
from .vllm_models import Names

HERE = "nemo_automodel.components.models.kimi_k3"


class Convolution(nn.Module):
    def __init__(self, hidden_size: int, kernel_size: int, activation: str, dtype: torch.dtype) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(hidden_size, 1, kernel_size))

    def forward(self, x: torch.Tensor, **_: Any) -> tuple[torch.Tensor, None]:
        width = self.weight.shape[-1]
        rows = F.pad(x.transpose(1, 2), (width - 1, 0))
        return F.silu(F.conv1d(rows, self.weight, groups=len(self.weight))).transpose(1, 2), None


class GatedNorm(nn.Module):
    def __init__(self, width: int, eps: float, activation: str, dtype: torch.dtype) -> None:
        super().__init__()
        assert activation == "sigmoid"
        self.weight, self.eps = nn.Parameter(torch.zeros(width)), eps

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight * gate.sigmoid()


def delta_rule(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, beta: torch.Tensor, **_: Any
) -> tuple[torch.Tensor, None]:
    """One token at a time: what stands in the memory under a key is corrected (arXiv 2510.26692, 3)."""
    q, k = (x / (x.pow(2).sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
    memory, out = torch.zeros(*k.shape[2:], v.shape[-1]), []
    for t in range(q.shape[1]):
        memory = memory * g[0, t, :, :, None].exp()
        error = v[0, t] - torch.einsum("nk,nkv->nv", k[0, t], memory)
        memory = memory + torch.einsum("nk,nv->nkv", k[0, t] * beta[0, t, :, None], error)
        out.append(torch.einsum("nk,nkv->nv", q[0, t] * q.shape[-1] ** -0.5, memory))
    return torch.stack(out)[None], None


class Router(nn.Module):
    def __init__(self, c: Any, gate_precision: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(c.n_routed_experts, c.dim))
        self.e_score_correction_bias = nn.Parameter(torch.zeros(c.n_routed_experts))
        self.score_func, self.topk, self.norm_topk_prob = c.score_func, c.n_activated_experts, c.norm_topk_prob
        self.n_groups, self.topk_groups, self.route_scale = c.n_expert_groups, c.n_limited_groups, c.route_scale

    def _local_score_correction_bias(self) -> torch.Tensor:
        return self.e_score_correction_bias


class Stacked(nn.Module):
    def __init__(self, c: Any, backend: Any) -> None:
        super().__init__()
        self.gate_and_up_projs = nn.Parameter(torch.zeros(c.n_routed_experts, c.moe_latent_size, 2 * c.moe_inter_dim))
        self.down_projs = nn.Parameter(torch.zeros(c.n_routed_experts, c.moe_inter_dim, c.moe_latent_size))


PARTS: dict[str, dict[str, Any]] = {
    "components.moe.config": {"MoEConfig": types.SimpleNamespace},
    "components.moe.layers": {"Gate": Router, "MoE": nn.Module},
    "components.moe.experts": {"GroupedExperts": Stacked, "GroupedExpertsDeepEP": Stacked},
    "components.moe.fsdp_mixin": {"MoEFSDPSyncMixin": type("Mixin", (), {})},
    "components.models.common.hf_checkpointing_mixin": {"HFCheckpointingMixin": type("Saving", (), {})},
    "components.models.common.packing": {"is_indexed_packed_mask": lambda _: False},
    "shared.utils": {"dtype_from_str": lambda *_: torch.float32},
    "shared.import_utils": {
        "UnavailableError": ImportError,
        "safe_import_from": lambda module, name, msg="": (True, KERNELS.get(name, MagicMock())),
    },
}
KERNELS = {"ShortConvolution": Convolution, "FusedRMSNormGated": GatedNorm, "chunk_kda": delta_rule}


class Empty(types.ModuleType):
    """A module whose names are asked for, and are never used."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Names(name, (), {}) if name[0].isupper() else MagicMock(name=name)


def code(folder: Path) -> types.ModuleType:
    """Automodel's module of Kimi K3."""
    source = (folder / "nemo_automodel/components/models/kimi_k3/model.py").read_text("utf-8")
    for line in source.splitlines():
        if line.startswith("from nemo_automodel."):
            name = line.split()[1]
            module = sys.modules.setdefault(name, Empty(name))
            vars(module).update(PARTS.get(name.removeprefix("nemo_automodel."), {}))
    module = types.ModuleType(f"{HERE}.model")
    sys.modules[module.__name__] = module
    exec(compile(source, "model.py", "exec"), vars(module))
    return module


class Settings(types.SimpleNamespace):
    """The config, with what Automodel's class has where a config says nothing."""

    moe_router_activation_func, moe_layer_freq, num_expert_group, topk_group = "sigmoid", 1, 1, 1
    num_key_value_heads, routed_scaling_factor, moe_renormalize, mla_use_nope = None, 1.0, True, True

    def __init__(self, **raw: Any) -> None:
        super().__init__(**raw)
        self.num_key_value_heads = self.num_key_value_heads or self.num_attention_heads

    def is_kda_layer(self, number: int) -> bool:
        return number + 1 in self.linear_attn_config["kda_layers"]


class Whole(nn.Module):
    """The text model around Automodel's layers: token ids [1 T] to logits [1 T V]."""

    def __init__(self, there: Any, c: Settings) -> None:
        super().__init__()
        self.there, backend = there, types.SimpleNamespace(attn="eager", dispatcher="torch")
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        experts = there._build_moe_config(c, torch.float32, None)
        self.model.layers = nn.ModuleList(
            there.KimiDecoderLayer(c, i, experts, backend) for i in range(c.num_hidden_layers)
        )
        self.model.norm = there.KimiRMSNorm(c.hidden_size, c.rms_norm_eps, torch.float32)
        self.model.output_attn_res_norm = there.KimiRMSNorm(c.hidden_size, c.rms_norm_eps, torch.float32)
        self.model.output_attn_res_proj = nn.Linear(c.hidden_size, 1, bias=False)
        self.lm_head = nn.Linear(c.hidden_size, c.vocab_size, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x, m = self.model.embed_tokens(ids), self.model
        mask, blocks = self.there._make_causal_mask(x, None, dtype=x.dtype), x.new_zeros(ids.shape[1], 0, x.shape[-1])
        for layer in m.layers:
            x, blocks = layer(x, attention_mask=None if layer.is_linear_attn else mask, block_residual=blocks)
        x = self.there._apply_attn_res(x[0], blocks, m.output_attn_res_proj, m.output_attn_res_norm)[None]
        return self.lm_head(m.norm(x))


def renamed(name: str, tensor: np.ndarray) -> tuple[str, np.ndarray]:
    """A tensor as transformers' Kimi Linear names and stores it."""
    name = name.replace("._fp32_params", "")
    for part in ("f_a_proj", "f_b_proj", "dt_bias", "A_log"):
        name = name.replace(f"self_attn.{part}", f"self_attn.forget_gate.{part}")
    for there, here in (("gate_and_up_projs", "gate_up_proj"), ("down_projs", "down_proj")):
        if name.endswith(there):
            return name.replace(there, here), np.ascontiguousarray(tensor.transpose(0, 2, 1))
    return name, tensor


def stored(model: nn.Module) -> dict[str, np.ndarray]:
    """The weights in our names; the three convolutions are one."""
    made = dict(renamed(name, p.detach().numpy()) for name, p in model.named_parameters())
    for name in [one for one in made if one.endswith("q_conv1d.weight")]:
        parts = [made.pop(name.replace("q_conv", f"{part}_conv")) for part in "qkv"]
        made[name.replace("q_conv", "conv")] = np.concatenate(parts)
    return made


@torch.no_grad()
def main(folder: str) -> None:
    raw = small_config("kimi_k3")
    torch.manual_seed(SEED)
    model = Whole(code(Path(folder)), Settings(**raw)).eval()
    for parameter in model.parameters():
        random = torch.randn_like(parameter)
        if parameter.ndim > 1:
            parameter.copy_(random / parameter.shape[-1] ** 0.5)
        else:
            parameter.copy_(1 + random / 5)
    ids = torch.randint(0, raw["vocab_size"], (1, PROMPT), generator=torch.Generator().manual_seed(SEED))
    out, weights, ours = model(ids).numpy(), stored(model), make("kimi_k3", raw)
    buffers = dict(ours.counts.tensors(ours.counts.buffers))
    here = {name: tuple(map(int, shape)) for name, shape in (*ours.counts.tensors(), *buffers.items())}
    there = {name: array.shape for name, array in weights.items()}
    assert here == there, sorted(here.items() ^ there.items())
    mine, _ = logits(ours.architecture, ours.config, Arrays(weights), ids[0].numpy())
    close(mine, out[0])
    print(f"{len(weights)} tensors, {float(np.abs(mine - out[0]).max() / max(1, np.abs(out).max())):.1e}")
    told = {"config_json": json.dumps(raw), "meta_json": json.dumps({"seed": SEED, "torch": torch.__version__})}
    arrays = {f"{'b' if name in buffers else 'w'}/{name}": array for name, array in weights.items()}
    file = TESTS / "golden/kimi_k3.npz"
    np.savez_compressed(file, **told, input_ids=ids.numpy(), logits=out, hidden=np.zeros(0), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
