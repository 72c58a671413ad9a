"""Types of remote code as vLLM's own modules compute them: `python -m tests.reference.vllm_models VLLM [TYPE...]`, from
the repository. VLLM is the folder of vLLM's source distribution; torch and transformers are installed, and for Alice AI
einops.

A module of `vllm/model_executor/models` runs as it is: what a layer holds, in which order it computes, how its loader
reads the published names. Its kernels have no processor's version, so plain torch stands in for the layers below:
products, norms, rotary embeddings, attention, experts. The loader gets the tensors that our forward pass asks for, and
has to fill every parameter with them. The program writes `tests/golden/<type>.npz`.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import itertools
import json
import math
import sys
import types
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from transformers import PreTrainedConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from macros.catalogue.presets import make
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

from . import TESTS, close
from .configs import PROMPT, small_config
from .own import SEED, listed

LAYERS = "vllm.model_executor.layers"
MODELS = "vllm.model_executor.models"
# Layers that run as they are.
LINEAR = f"{LAYERS}.mamba.linear"
STEP5 = "vllm.models.step5.nvidia"
STEP5_CONFIG = "vllm.transformers_utils.configs.step5"
DORY_CONFIG = "vllm.transformers_utils.configs.dory"
KIMI_K3 = "vllm.models.kimi_k3.nvidia.ops"
MAMBA = f"{LAYERS}.mamba"
OF_LAYERS = (
    f"{LINEAR}.bailing_linear_attn",
    f"{LINEAR}.base",
    *(f"{STEP5}.{name}" for name in ("config", "layernorm", "model", "mtp")),
    STEP5_CONFIG,
    DORY_CONFIG,
    f"{MAMBA}.gdn.base",
    f"{MAMBA}.gdn.kimi_gdn_linear_attn",
)


class Linear(nn.Module):
    """A product, whose parts are loaded one by one; gives the bias beside the result, as vLLM's do."""

    params_dtype, tp_size, tp_rank = torch.bfloat16, 1, 0

    def __init__(
        self,
        width: int,
        parts: dict[Any, int],
        *,
        bias: bool = False,
        return_bias: bool = True,
        skip_bias_add: bool = False,
    ) -> None:
        super().__init__()
        self.parts, self.return_bias, self.adds = parts, return_bias, not skip_bias_add
        self.input_size_per_partition, self.output_size_per_partition = width, sum(parts.values())
        self.weight = nn.Parameter(torch.full((sum(parts.values()), width), torch.nan))
        self.register_parameter("bias", nn.Parameter(torch.full((sum(parts.values()),), torch.nan)) if bias else None)
        for parameter in self.parameters():
            parameter.weight_loader, parameter.output_dim = self.load, 0

    def load(self, parameter: nn.Parameter, loaded: torch.Tensor, part: Any = None) -> None:
        part = getattr(loaded, "shard_id", None) if part is None else part
        first = sum(list(self.parts.values())[: list(self.parts).index(part)]) if part is not None else 0
        here = parameter.data[first : first + self.parts[part]] if part is not None else parameter.data
        assert here.shape == loaded.shape, (here.shape, loaded.shape)
        here.copy_(loaded)

    def weight_loader_v2(self, parameter: nn.Parameter, loaded: torch.Tensor, part: Any) -> None:
        self.load(parameter, loaded, part)

    def validate_shard_id(self, part: Any) -> bool:
        return part in self.parts

    def update_param_tp_status(self) -> None:
        pass

    def forward(self, x: torch.Tensor) -> Any:
        out = F.linear(x, self.weight, self.bias if self.adds else None)
        return (out, None) if self.return_bias else out


OPTIONS = ("bias", "return_bias", "skip_bias_add")


def chosen(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in OPTIONS if name in options}


class Plain(Linear):
    quant_method = None

    def __init__(self, input_size: int, output_size: int, bias: bool = True, **options: Any) -> None:
        super().__init__(input_size, {None: output_size}, bias=bias, **chosen(options))

    def load(self, parameter: nn.Parameter, loaded: torch.Tensor, part: Any = None) -> None:
        assert parameter.shape == loaded.shape, (parameter.shape, loaded.shape)
        parameter.data.copy_(loaded)


class Merged(Linear):
    def __init__(self, input_size: int, output_sizes: list[int], bias: bool = True, **options: Any) -> None:
        super().__init__(input_size, dict(enumerate(output_sizes)), bias=bias, **chosen(options))


class Unquantized:
    pass


class QKV(Linear):
    quant_method = Unquantized()

    def __init__(
        self,
        hidden_size: int,
        head_size: int,
        total_num_heads: int,
        total_num_kv_heads: int | None = None,
        bias: bool = True,
        v_head_size: int | None = None,
        **options: Any,
    ) -> None:
        n, k = total_num_heads, total_num_kv_heads or total_num_heads
        parts = {"q": n * head_size, "k": k * head_size, "v": k * (v_head_size or head_size)}
        super().__init__(hidden_size, parts, bias=bias, **chosen(options))


class Gate(Plain):
    out_dtype = torch.float32

    def __init__(self, input_size: int, output_size: int, bias: bool = False, **options: Any) -> None:
        super().__init__(input_size, output_size, bias, **options)


class Norm(nn.Module):
    offset = 0.0

    def __init__(self, hidden_size: int, eps: float = 1e-6, has_weight: bool = True, **_: Any) -> None:
        super().__init__()
        self.variance_epsilon = eps
        self.register_parameter("weight", nn.Parameter(torch.full((hidden_size,), torch.nan)) if has_weight else None)

    def forward(self, x: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        if residual is not None:
            x = residual = x + residual
        normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        if self.weight is not None:
            normed = normed * (self.weight + self.offset)
        return normed if residual is None else (normed, residual)

    forward_native = forward


class GemmaNorm(Norm):
    offset = 1.0


class SiluAndMul(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up


class ClampedSiluAndMul(nn.Module):
    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, -1)
        return F.silu(gate).clamp(max=self.limit) * up.clamp(-self.limit, self.limit)


def squared(x: torch.Tensor) -> torch.Tensor:
    return F.relu(x).square()


class GeluAndMul(nn.Module):
    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, -1)
        return F.gelu(gate, approximate=self.approximate) * up


class Table(nn.Module):
    def __init__(self, num_embeddings: int, embedding_dim: int, **options: Any) -> None:
        super().__init__()
        rows = options.get("org_num_embeddings") or num_embeddings
        self.weight = nn.Parameter(torch.full((rows, embedding_dim), torch.nan))
        self.shard_indices = types.SimpleNamespace(org_vocab_start_index=0, org_vocab_end_index=rows)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return F.embedding(ids, self.weight)


class Head(Table):
    def tie_weights(self, table: Table) -> Table:
        return table


class Scores(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        org_vocab_size: int | None = None,
        scale: float = 1.0,
        soft_cap: float | None = None,
        **_: Any,
    ) -> None:
        super().__init__()
        self.scale, self.cap = scale, soft_cap

    def forward(self, lm_head: Table, hidden_states: torch.Tensor) -> torch.Tensor:
        out = F.linear(hidden_states, lm_head.weight)
        return (out if self.cap is None else self.cap * (out / self.cap).tanh()) * self.scale


class Turn(nn.Module):
    """Rotary embeddings, of halves or of neighbors."""

    def __init__(self, head: int, width: int, inverse: torch.Tensor, factor: float, halves: bool) -> None:
        super().__init__()
        self.head, self.width, self.inverse, self.factor, self.halves = head, width, inverse, factor, halves
        self.is_neox_style, self.rotary_dim, self.use_flashinfer, self.cos_sin_cache = halves, width, False, self.turned

    def enabled(self) -> bool:
        return True

    def turned(self, positions: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        shape = x.shape
        x = x.reshape(len(positions), -1, self.head)
        angles = (positions[:, None].double() * self.inverse)[:, None]
        cos, sin = angles.cos().float() * self.factor, angles.sin().float() * self.factor
        turning, rest = x[..., : self.width], x[..., self.width :]
        a, b = turning.chunk(2, -1) if self.halves else (turning[..., ::2], turning[..., 1::2])
        pair = a * cos - b * sin, b * cos + a * sin
        turning = torch.cat(pair, -1) if self.halves else torch.stack(pair, -1).flatten(-2)
        return torch.cat([turning, rest], -1).reshape(shape)

    def forward(self, positions: torch.Tensor, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.turned(positions, q), self.turned(positions, k)


def get_rope(
    head_size: int, max_position: int, is_neox_style: bool = True, rope_parameters: Any = None, **_: Any
) -> Turn:
    table = rope_parameters or {}
    theta = table.get("rope_theta", table.get("base", 10000.0))
    width = table.get("rope_dim", int(head_size * table.get("partial_rotary_factor", 1.0)))
    inverse, factor = 1.0 / theta ** (torch.arange(0, width, 2, dtype=torch.float64) / width), 1.0
    names = {"deepseek_yarn": "yarn", "llama3": "llama3"}  # vLLM's, and transformers'
    if (name := names.get(table.get("rope_type", ""))) is not None:
        config = PreTrainedConfig(hidden_size=width, num_attention_heads=1, max_position_embeddings=max_position)
        config.rope_parameters = table | {"rope_type": name, "rope_theta": theta, "partial_rotary_factor": 1.0}
        inverse, factor = ROPE_INIT_FUNCTIONS[name](config, None)
        inverse = inverse.double()
    else:
        assert table.get("rope_type", "default") == "default", table
    return Turn(head_size, width, inverse, factor, is_neox_style)


class Attention(nn.Module):
    """Causal attention of a whole text, with a window, blocks, sinks, or a penalty by the root of the distance."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        *_: Any,
        head_size_v: int | None = None,
        per_layer_sliding_window: int | None = None,
        cache_config: Any = None,
        chunk_lookback: int = -1,
        alibi_slopes: list[float] | None = None,
        use_alibi_sqrt: bool = False,
        sinks: torch.Tensor | None = None,
        prefix: str = "",
        sparse_config: Any = None,
        **__: Any,
    ) -> None:
        super().__init__()
        self.layer_name, self.num_heads, self.num_kv_heads = prefix, num_heads, num_kv_heads or num_heads
        self.head_size = self.head_size_v = head_size
        self.attn_backend = types.SimpleNamespace(forward_includes_kv_cache_update=True)
        self.impl = Regions(sparse_config, scale)
        ATTENTIONS[prefix] = self
        self.n, self.k, self.h, self.scale = num_heads, num_kv_heads or num_heads, head_size, scale
        self.v, self.sinks, self.before = head_size_v or head_size, sinks, chunk_lookback
        self.window = per_layer_sliding_window or getattr(cache_config, "sliding_window", None)
        assert use_alibi_sqrt or not alibi_slopes
        self.slopes = torch.tensor(alibi_slopes or [0.0] * num_heads)
        self.kept = torch.empty(0), torch.empty(0)

    def forward(self, q: torch.Tensor, k: torch.Tensor | None, v: torch.Tensor | None) -> torch.Tensor:
        length, repeats = len(q), self.n // self.k
        k, v = (k, v) if k is not None and v is not None else self.kept
        self.kept = k, v
        q = q.reshape(length, self.n, self.h)
        k = k.reshape(length, self.k, self.h).repeat_interleave(repeats, 1)
        v = v.reshape(length, self.k, self.v).repeat_interleave(repeats, 1)
        fit = torch.einsum("tnh,snh->nts", q, k) * self.scale
        place = torch.arange(length)
        ago = place[:, None] - place
        fit = fit - self.slopes[:, None, None] * ago.clamp(min=0).sqrt()
        hidden = ago < 0
        if self.before >= 0:
            hidden |= place[:, None] // self.window - place // self.window > self.before
        elif self.window:
            hidden |= ago >= self.window
        fit = fit.masked_fill(hidden, -torch.inf)
        if self.sinks is not None:
            fit = torch.cat([fit, self.sinks[:, None, None].expand(-1, length, 1)], -1)
        shares = fit.softmax(-1)[..., :length]
        return torch.einsum("nts,snh->tnh", shares, v).reshape(length, self.n * self.v)


ATTENTIONS: dict[str, Attention] = {}


class Regions:
    """What Step 5's kernels compute of a whole text: each token sees its own region and the best ones before it.

    A region's key is the average of its tokens', by a softmax of gates for each element; a score is the sum of what
    the small heads of a key/value head say, if it is above 0, by the token's weights.
    """

    num_speculative_tokens = 0

    def __init__(self, sparse: Any, scale: float) -> None:
        self.sparse, self.scale = sparse, scale

    def supports_fused_swa_decode(self) -> bool:
        return False

    def forward(self, layer: Attention, q: Any, k: Any, v: Any, *_: Any, output: torch.Tensor, **index: Any) -> None:
        size, repeats = self.sparse.region_block_size, layer.n // layer.k
        z, keys = index["dsa_proxy_z"][:, 0], index["dsa_proxy_key"][:, 0]
        whole = range(len(q) // size)
        spans = [slice(r * size, (r + 1) * size) for r in whole]
        regions = torch.stack([(z[span].softmax(0) * keys[span]).sum(0) for span in spans])
        for t, g in itertools.product(range(len(q)), range(layer.k)):
            own = t // size
            fit = (index["dsa_proxy_query"][t, g] @ regions[:own].T).relu()
            fit = (fit * index["dsa_proxy_weights"][t, g][:, None]).sum(0)
            best = [int(r) for r in fit.sort(descending=True, stable=True)[1][: self.sparse.topk]]
            seen = [s for r in [*best, own] for s in range(r * size, min((r + 1) * size, t + 1))]
            mine = slice(g * repeats, (g + 1) * repeats)
            shares = (q[t, mine] @ k[seen, g].T * self.scale).softmax(-1)
            output[t, mine] = shares @ v[seen, g] * index["dsa_gate"][t, mine, None].sigmoid()


def index_inputs(
    q: torch.Tensor,
    k: torch.Tensor,
    weights: torch.Tensor,
    of_q: Any,
    of_k: Any,
    bias: Any,
    turned: Any,
    positions: Any,
    eps: float,
    is_centered: bool,
    num_groups: int,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What Step 5's kernel makes of the indexer's queries, keys and weights: normed, turned, in groups."""
    assert is_centered
    width = len(of_q)
    q = q.unflatten(-1, (-1, width))
    q = q * torch.rsqrt(q.pow(2).mean(-1, keepdim=True) + eps) * (of_q + 1)
    k = F.layer_norm(k, (width,), of_k, bias, eps)
    q, k = turned(positions, q.flatten(1)).unflatten(-1, (num_groups, -1, width)), turned(positions, k)
    weights = weights.unflatten(-1, (num_groups, -1))
    return q, k[:, None], weights * weights.shape[-1] ** -0.5


def gate_heads(x: torch.Tensor, gate: torch.Tensor, **_: Any) -> torch.Tensor:
    return (x.unflatten(-1, (gate.shape[-1], -1)) * gate.sigmoid()[..., None]).flatten(1)


def context_of(name: str) -> tuple[None, Attention, torch.Tensor, None]:
    return None, ATTENTIONS[name], torch.empty(0), None


def in_float32(data: torch.Tensor, weight_loader: Any, **_: Any) -> nn.Parameter:
    parameter = nn.Parameter(torch.full_like(data, torch.nan, dtype=torch.float32))
    parameter.weight_loader = weight_loader
    return parameter


class Module(nn.Module):
    """A cache that nothing is kept in, or an engine's way to compute."""

    def __init__(self, **_: Any) -> None:
        super().__init__()

    @staticmethod
    def supports_compute_capability(_: Any) -> bool:
        return True


class SinkAttention(Attention):
    """The same with keys and values that every token sees before the text."""

    def update_sink_kv(self, key: torch.Tensor, value: torch.Tensor) -> None:
        self.sink_kv = key, value

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, output_shape: Any = None) -> torch.Tensor:
        sinks, (key, value) = len(self.sink_kv[0]), self.sink_kv
        k = torch.cat([key, k.reshape(len(k), self.k, self.h)]).repeat_interleave(self.n // self.k, 1)
        v = torch.cat([value, v.reshape(len(v), self.k, self.v)]).repeat_interleave(self.n // self.k, 1)
        fit = torch.einsum("tnh,snh->nts", q.reshape(len(q), self.n, self.h), k) * self.scale
        shown = torch.ones(len(q), len(k), dtype=torch.bool).tril(sinks)
        return torch.einsum("nts,snh->tnh", fit.masked_fill(~shown, -torch.inf).softmax(-1), v).reshape(output_shape)


class Latent(nn.Module):
    """Multi-head latent attention, its keys and values made from the latents as the papers write it."""

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        scale: float,
        qk_nope_head_dim: int,
        qk_rope_head_dim: int,
        v_head_dim: int,
        q_lora_rank: int | None,
        kv_lora_rank: int,
        mla_modules: Any,
        *_: Any,
        **__: Any,
    ) -> None:
        super().__init__()
        self.__dict__.update(parts=mla_modules, scale=scale, n=num_heads, ranks=(q_lora_rank, kv_lora_rank))
        self.widths = qk_nope_head_dim, qk_rope_head_dim, v_head_dim

    def forward(self, positions: torch.Tensor, x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        (nope, rope, width), (q_rank, rank), parts = self.widths, self.ranks, self.parts
        if q_rank is None:
            q, both = parts.q_proj(x)[0], parts.kv_a_proj_with_mqa(x)[0]
        else:
            q, both = parts.fused_qkv_a_proj(x)[0].split([q_rank, rank + rope], -1)
            q = parts.q_b_proj(parts.q_a_layernorm(q))[0]
        q, q_turning = q.view(len(x), self.n, nope + rope).split([nope, rope], -1)
        latent, k_turning = both.split([rank, rope], -1)
        k, v = parts.kv_b_proj(parts.kv_a_layernorm(latent))[0].view(len(x), self.n, -1).split([nope, width], -1)
        q_turning, k_turning = parts.rotary_emb(positions, q_turning.flatten(1), k_turning)
        q = torch.cat([q, q_turning.view(len(x), self.n, rope)], -1)
        k = torch.cat([k, k_turning[:, None].expand(-1, self.n, -1)], -1)
        mixed = Attention(self.n, nope + rope, self.scale, head_size_v=width)(q, k, v)
        return parts.o_proj(mixed)[0]


def mla_modules(**parts: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(**parts)


class Routed(nn.Module):
    """Each expert's two matrices: the first holds gate and up projection."""

    def __init__(self, experts: int, width: int, inner: int, is_gated: bool = True) -> None:
        super().__init__()
        self.inner = inner
        self.w13_weight = nn.Parameter(torch.full((experts, (1 + is_gated) * inner, width), torch.nan))
        self.w2_weight = nn.Parameter(torch.full((experts, width, inner), torch.nan))
        for parameter in self.parameters():
            parameter.weight_loader = self.load

    def load(
        self, parameter: nn.Parameter, loaded: torch.Tensor, _: str = "", *, shard_id: str, expert_id: int, **__: Any
    ) -> bool:
        first = self.inner if shard_id == "w3" else 0
        here = parameter.data[expert_id]
        here = here if shard_id == "w2" else here[first : first + self.inner]
        assert here.shape == loaded.shape, (here.shape, loaded.shape)
        here.copy_(loaded)
        return True


class Experts(nn.Module):
    """A few experts of many, chosen as vLLM's plain version of the choice does, and a shared one beside them."""

    def __init__(
        self,
        *,
        num_experts: int,
        top_k: int,
        hidden_size: int,
        intermediate_size: int,
        renormalize: bool = True,
        shared_experts: nn.Module | None = None,
        gate: nn.Module | None = None,
        scoring_func: str = "softmax",
        e_score_correction_bias: torch.Tensor | None = None,
        num_expert_group: int | None = None,
        topk_group: int | None = None,
        use_grouped_topk: bool = False,
        routed_scaling_factor: float = 1.0,
        custom_routing_function: Callable[..., Any] | None = None,
        activation: str = "silu",
        routed_input_transform: nn.Module | None = None,
        routed_output_transform: nn.Module | None = None,
        zero_expert_type: str | None = None,
        **_: Any,
    ) -> None:
        super().__init__()
        assert zero_expert_type in (None, "identity"), zero_expert_type
        self.moe_config = types.SimpleNamespace(hidden_dim=hidden_size)
        self.act = None if activation in ("silu", "swiglustep") else activation
        self.gated = ClampedSiluAndMul(7.0) if activation == "swiglustep" else SiluAndMul()
        self.routed_experts = Routed(num_experts, hidden_size, intermediate_size, self.act is None)
        given = {"shared": shared_experts, "gate": gate, "bias": e_score_correction_bias}
        given |= {"into": routed_input_transform, "back": routed_output_transform}
        self.__dict__.update(given, custom=custom_routing_function)
        self.top_k, self.renormalize = top_k, renormalize
        self.scoring, self.factor = scoring_func, routed_scaling_factor
        self.groups = (num_expert_group, topk_group) if use_grouped_topk else (1, 1)

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> Iterable[str]:
        for name, loaded in weights:
            expert, part, _ = name.split(".")
            shard = {"gate_proj": "w1", "up_proj": "w3" if self.act is None else "w1", "down_proj": "w2"}[part]
            parameter = self.routed_experts.w2_weight if shard == "w2" else self.routed_experts.w13_weight
            self.routed_experts.load(parameter, loaded, shard_id=shard, expert_id=int(expert))
            yield "routed_experts.w2_weight" if shard == "w2" else "routed_experts.w13_weight"

    def choice(self, x: torch.Tensor, router_logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.custom is not None:
            return self.custom(x, router_logits, self.top_k, self.renormalize)
        scores = router_logits.softmax(-1) if self.scoring == "softmax" else router_logits.sigmoid()
        n, kept = self.groups
        by = scores if self.bias is None else scores + self.bias
        grouped = by.view(len(x), n, -1)
        of_groups = grouped.amax(-1) if self.bias is None else grouped.topk(min(2, grouped.shape[-1]), -1)[0].sum(-1)
        out = torch.ones_like(of_groups, dtype=torch.bool).scatter(1, of_groups.topk(kept, -1)[1], False)
        by = grouped.masked_fill(out[..., None], -torch.inf).flatten(1)
        picked = by.topk(self.top_k, -1)[1]
        shares = scores.gather(1, picked)
        shares = shares / shares.sum(-1, keepdim=True) if self.renormalize else shares
        return shares * self.factor, picked

    def forward(self, hidden_states: torch.Tensor, router_logits: torch.Tensor) -> torch.Tensor:
        if router_logits is hidden_states:  # the scores are left to the experts
            router_logits = self.gate(hidden_states)[0]
        shares, picked = self.choice(hidden_states, router_logits)
        narrow = hidden_states if self.into is None else self.into(hidden_states)[0]
        out = torch.zeros_like(narrow)
        for t, x in enumerate(narrow):
            for share, e in zip(shares[t], picked[t]):
                if e >= len(self.routed_experts.w2_weight):  # nothing
                    out[t] += share * x
                    continue
                wide = self.routed_experts.w13_weight[e] @ x
                wide = self.gated(wide) if self.act is None else squared(wide)
                out[t] += share * (self.routed_experts.w2_weight[e] @ wide)
        out = out if self.back is None else self.back(out)[0]
        return out if self.shared is None else out + self.shared(hidden_states)


def values_of_experts(
    config: Any,
    hidden_states: torch.Tensor,
    w1: torch.Tensor,
    topk_weights: torch.Tensor,
    topk_ids: torch.Tensor,
    **_: Any,
) -> torch.Tensor:
    """What K2 Horizon's kernel computes: a few matrices for each token, by their weights."""
    each = F.silu(torch.einsum("td,tkod->tko", hidden_states, w1[topk_ids]))
    return (each * topk_weights[..., None]).sum(1)


def rows_of_ngrams(module: Any, ids: torch.Tensor, end: int) -> torch.Tensor:
    """What LongCat's kernel computes, of one text: for each token, the row of each n-gram in the table of all."""
    longest, lengths = module.n, range(module.n - 1)
    made = torch.zeros(len(ids), module.num_embedders, dtype=torch.int64)
    for t, i, j in itertools.product(range(len(ids)), lengths, range(module.k)):
        modulus, number = int(module.ne_mods[i, j]), 0
        for back in range(min(i + 2, longest)):
            if t < back or ids[t - back] == end:
                break
            number += int(ids[t - back]) * int(module.ne_weights[i, j, back]) % modulus
        made[t, i * module.k + j] = number % modulus + int(module.exclusive_sizes[i * module.k + j])
    return made


def norm_into(out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
    out.copy_(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight)


def expert_mapping(
    _: Any, ckpt_gate_proj_name: str, ckpt_down_proj_name: str, ckpt_up_proj_name: str, num_experts: int, **__: Any
) -> list[tuple[str, str, int, str]]:
    return [
        (f"experts.routed_experts.{'w2' if shard == 'w2' else 'w13'}_", f"experts.{e}.{name}.", e, shard)
        for e in range(num_experts)
        for shard, name in (("w1", ckpt_gate_proj_name), ("w2", ckpt_down_proj_name), ("w3", ckpt_up_proj_name))
    ]


def load(parameter: nn.Parameter, loaded: torch.Tensor) -> None:
    assert parameter.shape == loaded.shape, (parameter.shape, loaded.shape)
    parameter.data.copy_(loaded)


def composed(loader: Callable[..., None], change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., None]:
    def composition(parameter: nn.Parameter, loaded: torch.Tensor) -> None:
        loader(parameter, loaded)
        parameter.data.copy_(change(parameter.data))

    return composition


def attributes(parameter: nn.Parameter, given: dict[str, Any]) -> None:
    for name, value in given.items():
        setattr(parameter, name, value)


def decorated(cls: Any = None, **_: Any) -> Any:
    return (lambda it: it) if cls is None else cls


class Alone:
    """The only device of a group."""

    is_first_rank = is_last_rank = True
    world_size, rank_in_group = 1, 0
    device_group = types.SimpleNamespace(size=lambda: 1, rank=lambda: 0)


ONE: dict[str, Any] = {
    "get_pp_group": Alone,
    "get_pp_indices": lambda layers, *_: (0, layers),
    "get_ep_group": Alone,
    "get_dp_group": Alone,
    "get_tp_group": Alone,
    "get_tensor_model_parallel_world_size": lambda: 1,
    "get_tensor_model_parallel_rank": lambda: 0,
    "divide": lambda a, b: a // b,
}


class Observed:
    """What a draft model would read of the layers: nothing."""

    def _maybe_add_hidden_state(self, kept: list[torch.Tensor], *_: Any) -> list[torch.Tensor]:
        return kept

    def collect_remote_aux_hidden_states(self, _: Any) -> list[torch.Tensor]:
        return []


class GroupNorm(nn.Module):
    """A norm of groups of numbers, which a gate multiplies."""

    def __init__(self, hidden_size: int, eps: float = 1e-5, group_size: int | None = None, **options: Any) -> None:
        super().__init__()
        assert options["norm_before_gate"] and options["activation"] == "sigmoid"
        self.eps, self.size = eps, group_size or hidden_size
        self.weight = nn.Parameter(torch.full((hidden_size,), torch.nan))

    def forward(self, x: torch.Tensor, gate: torch.Tensor | None = None) -> torch.Tensor:
        groups = x.unflatten(-1, (-1, self.size))
        x = (groups * torch.rsqrt(groups.pow(2).mean(-1, keepdim=True) + self.eps)).flatten(-2) * self.weight
        return x if gate is None else x * gate.sigmoid()


def norm_of_heads(x: torch.Tensor, weight: torch.Tensor, bias: None, eps: float, is_rms_norm: bool) -> torch.Tensor:
    assert is_rms_norm and bias is None
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def fading(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slope_rate: torch.Tensor, **_: Any) -> torch.Tensor:
    """What the kernel of lightning attention computes: all pairs of a text, each faded by its distance."""
    place = torch.arange(len(q))
    ago = place[:, None] - place
    fade = torch.exp(-slope_rate.view(-1, 1, 1) * ago).masked_fill(ago < 0, 0)
    return torch.einsum("nts,snh->tnh", torch.einsum("tnh,snh->nts", q, k) * fade, v).flatten(1)


class GatedNorm(nn.Module):
    """A norm of each head's numbers, through a gate."""

    def __init__(self, hidden_size: int, activation: str) -> None:
        super().__init__()
        assert activation == "sigmoid"
        self.eps, self.weight = torch.nan, nn.Parameter(torch.full((hidden_size,), torch.nan))

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight * gate.sigmoid()


def convolved(x: torch.Tensor, weight: torch.Tensor, bias: None, activation: str, **_: Any) -> torch.Tensor:
    """What the kernel of short convolutions computes of a whole text: [C T], [C K] -> [C T]."""
    assert bias is None and activation == "silu"
    taps = weight.shape[1]
    return F.silu(F.conv1d(F.pad(x, (taps - 1, 0))[None], weight[:, None], groups=len(x))[0])


def by_channel(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    raw_g: torch.Tensor,
    raw_beta: torch.Tensor,
    A_log: torch.Tensor,
    g_bias: torch.Tensor,
    lower_bound: None,
    initial_state: None,
    use_qk_l2norm_in_kernel: bool,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """What the kernel of Kimi Delta Attention computes of one text, token by token: [1 T N H] each -> [1 T N H]."""
    assert lower_bound is None and initial_state is None and use_qk_l2norm_in_kernel
    q, k = (x[0] * torch.rsqrt(x[0].pow(2).sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    keep = torch.exp(-A_log.exp()[:, None] * F.softplus(raw_g[0] + g_bias.view(raw_g.shape[2:])))
    strength, memory, out = raw_beta[0].sigmoid(), torch.zeros(*q.shape[1:], v.shape[-1]), []
    for t in range(len(q)):
        memory = memory * keep[t, :, :, None]
        wrong = v[0, t] - torch.einsum("nkv,nk->nv", memory, k[t])
        memory = memory + torch.einsum("nk,nv->nkv", k[t], wrong * strength[t, :, None])
        out.append(torch.einsum("nkv,nk->nv", memory, q[t]) * q.shape[-1] ** -0.5)
    return torch.stack(out)[None], None


def over_depth(
    prefix: torch.Tensor,
    delta: None,
    blocks: torch.Tensor,
    norm_weight: torch.Tensor,
    qk_weight: torch.Tensor,
    output_norm_weight: None,
    num_blocks: int,
    block_write_idx: int,
    eps: float,
    output_norm_eps: float,
) -> torch.Tensor:
    """What the kernel of attention residuals computes: an average of earlier sums by their fit to a query."""
    assert delta is None and output_norm_weight is None and block_write_idx == -1
    sources = torch.cat([blocks[:, :num_blocks], prefix[:, None]], 1)
    normed = sources * torch.rsqrt(sources.pow(2).mean(-1, keepdim=True) + eps) * norm_weight
    return (sources * (normed @ qk_weight).softmax(1)[..., None]).sum(1)


class Slopes:
    """How fast the memory of a head fades: vLLM's own function, without the rest of its module."""

    @staticmethod
    def _build_slope_tensor(heads: int) -> torch.Tensor:
        tree = ast.parse((FOLDER[0] / f"{LINEAR.replace('.', '/')}/minimax_linear_attn.py").read_text("utf-8"))
        [found] = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "_build_slope_tensor"]
        found.decorator_list = []
        names: dict[str, Any] = {"torch": torch, "math": math}
        exec(compile(ast.Module([found], []), "slopes", "exec"), names)
        return names["_build_slope_tensor"](heads)


FOLDER: list[Path] = []  # vLLM's source


def whole_text(self: Any, hidden_states: torch.Tensor, output: torch.Tensor, positions: torch.Tensor) -> None:
    self.kv_cache = [None]
    self._forward(hidden_states, output, positions)


class Told(dict[str, Any]):
    """The same for every layer."""

    def __init__(self, one: Any) -> None:
        self.one = one

    def get(self, *_: Any) -> Any:
        return self.one


class OneText(types.SimpleNamespace):
    """What a layer is told of the text."""


# The same for Kimi Delta Attention.
ONE_TEXT = OneText(
    num_prefills=1,
    num_decodes=0,
    num_actual_tokens=PROMPT,
    has_initial_state=False,
    non_spec_state_indices_tensor=0,
    non_spec_query_start_loc=None,
    non_spec_token_indx=None,
    spec_sequence_masks=None,
    spec_token_indx=None,
    spec_state_indices_tensor=None,
    spec_query_start_loc=None,
    num_accepted_tokens=None,
)


class Registered(nn.Module):
    """A layer that its class registers by a name."""

    register = staticmethod(lambda _: decorated)


# What stands in for vLLM's parts; everything else below `vllm` that no file of MODELS is, is empty.
PARTS: dict[str, dict[str, Any]] = {
    "vllm": {"_custom_ops": types.SimpleNamespace(rms_norm=norm_into)},
    "vllm.compilation.decorators": {"support_torch_compile": decorated},
    "vllm.compilation.breakable_cudagraph": {"eager_break_during_capture": decorated},
    "vllm.config.utils": {"replace": lambda it, **new: types.SimpleNamespace(**vars(it) | new)},
    "vllm.distributed": ONE,
    "vllm.distributed.parallel_state": ONE,
    "vllm.distributed.utils": ONE,
    f"{LAYERS}.attention.attention": {"get_attention_context": context_of},
    f"{LAYERS}.attention.kv_transfer_utils": {"maybe_transfer_kv_layer": decorated},
    f"{STEP5}.ops.add": {"add_fp32": torch.add},
    f"{STEP5}.ops.attention_gate": {"headwise_sigmoid_gate": gate_heads},
    f"{STEP5}.ops.indexer_norm_rope": {"indexer_norm_rope": index_inputs},
    f"{STEP5}.csa_tail_ring": {"Step5CSATailRing": Module},
    f"{STEP5}.sparse_summary_cache": {"Step5SparseSummaryCacheLayer": Module},
    f"{STEP5}.sparse_attention": {
        "Step5DSAAttentionBackend": Module,
        "Step5SplitKVFlashAttentionBackend": Module,
    },
    "vllm.model_executor.parameter": {"ModelWeightParameter": in_float32},
    f"{LAYERS}.activation": {
        "SiluAndMul": SiluAndMul,
        "SwigluStepAndMul": ClampedSiluAndMul,
        "GeluAndMul": GeluAndMul,
        "get_act_fn": {"relu2": squared}.get,
    },
    f"{LAYERS}.attention": {
        "Attention": Attention,
        "EncoderOnlyAttention": Attention,
        "StaticSinkAttention": SinkAttention,
    },
    f"{LAYERS}.fused_moe": {
        "FusedMoEFactory": Experts,
        "GateLinear": Gate,
        "fused_moe_make_expert_params_mapping": expert_mapping,
    },
    f"{LAYERS}.fused_moe.router.gate_linear": {"GateLinear": Gate},
    f"{LAYERS}.fused_moe.utils": {
        "is_model_fused_shared_expert_compatible": lambda *_, **__: False,
        "resolve_layer_fused_shared_expert": lambda *_, **__: False,
    },
    f"{LAYERS}.quantization.utils.config_utils": {"get_quark_ocp_mx_group_size": lambda *_, **__: None},
    f"{MAMBA}.ops.causal_conv1d": {"causal_conv1d_fn": convolved},
    f"{MAMBA}.ops.gather_initial_states": {"gather_initial_states": lambda *_: None},
    KIMI_K3: {"attn_res": over_depth},
    f"{KIMI_K3}.third_party.kda": {"chunk_kda_with_fused_gate": by_channel},
    "vllm.forward_context": {"get_forward_context": lambda: MagicMock(attn_metadata=Told(ONE_TEXT))},
    "vllm.third_party.flash_linear_attention.ops.kda": {"FusedRMSNormGated": GatedNorm},
    "vllm.v1.attention.backends.gdn_attn": {"GDNAttentionMetadata": OneText},
    f"{LAYERS}.fusion.fused_act_quant": {"maybe_fused_act_quant": lambda act, x, _: act(x)},
    f"{LAYERS}.layernorm": {"RMSNorm": Norm, "GemmaRMSNorm": GemmaNorm},
    f"{LAYERS}.linear": {
        "ColumnParallelLinear": Plain,
        "MergedColumnParallelLinear": Merged,
        "QKVParallelLinear": QKV,
        "ReplicatedLinear": Plain,
        "RowParallelLinear": Plain,
        "LinearBase": Plain,
        "UnquantizedLinearMethod": Unquantized,
    },
    f"{LAYERS}.logits_processor": {"LogitsProcessor": Scores},
    f"{LAYERS}.mla": {"MLAModules": mla_modules, "MultiHeadLatentAttentionWrapper": Latent},
    f"{LAYERS}.rotary_embedding": {"get_rope": get_rope},
    f"{LAYERS}.vocab_parallel_embedding": {"ParallelLMHead": Head, "VocabParallelEmbedding": Table},
    "vllm.model_executor.model_loader.reload": {"support_quantized_model_reload_from_hp_weights": decorated},
    "vllm.model_executor.model_loader.weight_utils": {
        "composed_weight_loader": composed,
        "default_weight_loader": load,
        "make_attention_sink": lambda n: nn.Parameter(torch.full((n,), torch.nan)),
        "maybe_remap_kv_scale_name": lambda name, _: name,
        "sharded_weight_loader": lambda _: load,
    },
    f"{MODELS}.interfaces": {"EagleModelMixin": Observed},
    "vllm.platforms": {
        "current_platform": MagicMock(
            current_device=lambda: "cpu", is_device_capability=lambda _: False, is_rocm=lambda: False
        )
    },
    "vllm.model_executor.offloader": {"get_offloader": lambda: types.SimpleNamespace(wrap_modules=list)},
    "vllm.model_executor.custom_op": {"PluggableLayer": Registered},
    "vllm.v1.attention.backends.flash_attn_diffkv": {
        "FlashAttentionDiffKVBackend": types.SimpleNamespace(set_head_size_v=id)
    },
    "vllm.v1.attention.backends.linear_attn": {"LinearAttentionMetadata": OneText},
    f"{LINEAR}.minimax_linear_attn": {"MiniMaxText01LinearAttention": Slopes},
    "vllm.third_party.flash_linear_attention.ops.layernorm_guard": {
        "RMSNormGated": GroupNorm,
        "layernorm_fn": norm_of_heads,
    },
    "vllm.model_executor.utils": {"set_weight_attrs": attributes},
}


class Names(type):
    """A class whose members are their names."""

    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class Empty(types.ModuleType):
    """A module of vLLM whose names are asked for, and are never used: a class to inherit from, or nothing at all."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name[0].isupper() and not name.isupper():
            return Names(name, (), {"__class_getitem__": classmethod(lambda cls, _: cls)})
        return MagicMock(name=name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports vLLM's modules of models from its source, and the rest of it from PARTS."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "vllm/model_executor/models"

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != "vllm":
            return None
        if name in OF_LAYERS:
            file = self.folder.parent.parent.parent / f"{name.replace('.', '/')}.py"
            return importlib.util.spec_from_file_location(name, file)
        file = self.folder / f"{name.removeprefix(MODELS + '.')}.py"
        if name.startswith(f"{MODELS}.") and file.exists() and file.stem not in ("interfaces", "adapters"):
            return importlib.util.spec_from_file_location(name, file)
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec: Any) -> types.ModuleType:
        module = Empty(spec.name)
        vars(module).update(PARTS.get(spec.name, {}))
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


@dataclass
class Cache:
    """What a loop of layers replaces: the window of its keys and values."""

    sliding_window: int | None = None
    cache_dtype: str = "auto"


class Settings(types.SimpleNamespace):
    """A config with the rotary table that vLLM has by the time it builds a model."""

    def get_text_config(self) -> Settings:
        return self


def named(value: Any) -> Any:
    """Tables in a config as objects, as the makers' config classes have them."""
    if isinstance(value, list):
        return [named(one) for one in value]
    return types.SimpleNamespace(**{k: named(v) for k, v in value.items()}) if isinstance(value, dict) else value


# Of TeleChat's config class.
ATTRIBUTES = {
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "ffn_hidden_size",
    "rms_norm_eps": "layer_norm_epsilon",
}


def settings(raw: dict[str, Any], **more: Any) -> Settings:
    rope = raw.get("rope_parameters") or {"rope_type": "default", "rope_theta": raw.get("rope_theta", 10000.0)}
    scaling = raw.get("rope_scaling") or {}
    rope = rope | scaling | ({"rope_type": scaling["type"]} if "type" in scaling else {})
    raw = raw | {name: raw[other] for name, other in ATTRIBUTES.items() if other in raw}
    return Settings(**(raw | {"rope_parameters": rope, "rope_scaling": None} | more))


def find(folder: Path) -> None:
    """Import vLLM's modules from its source from now on."""
    if not any(isinstance(one, Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, Finder(folder))
        FOLDER.append(folder)


def built(folder: Path, module: str, name: str, config: Settings) -> nn.Module:
    """A model of vLLM's, its parameters NaN until they are loaded."""
    find(folder)
    if (
        "einops" not in sys.modules and importlib.util.find_spec("einops") is None
    ):  # which the layers that run here do without
        sys.modules["einops"] = Empty("einops")
    different_values = types.SimpleNamespace(set_head_size_v=id, get_name=str)
    backend = types.SimpleNamespace(name="_DIFFKV", get_class=lambda: different_values)
    parallel = types.SimpleNamespace(
        use_sequence_parallel_moe=False,
        decode_context_parallel_size=1,
        enable_eplb=False,
        dcp_q_replicate=False,
        eplb_config=types.SimpleNamespace(num_redundant_experts=0),
        pipeline_parallel_size=1,
        enable_expert_parallel=False,
        use_ubatching=False,
    )
    model_config = types.SimpleNamespace(hf_config=config, hf_text_config=config, max_model_len=64, dtype=torch.float32)
    vars(model_config).update(use_mla=True, multimodal_config=None)
    given = types.SimpleNamespace(
        model_config=model_config,
        speculative_config=types.SimpleNamespace(draft_model_config=model_config, num_speculative_tokens=0),
        additional_config={},
        kv_transfer_config=None,
        load_config=None,
        with_hf_config=lambda _: given,
        cache_config=Cache(),
        quant_config=None,
        lora_config=None,
        scheduler_config=types.SimpleNamespace(max_num_batched_tokens=64, max_num_seqs=1),
        attention_config=types.SimpleNamespace(backend=backend),
        parallel_config=parallel,
        use_v2_model_runner=True,
        compilation_config=types.SimpleNamespace(static_forward_context={}),
    )
    vars(importlib.import_module("vllm.config")).update(
        get_current_vllm_config=lambda: given, str_dtype_to_torch_dtype=lambda name: getattr(torch, name)
    )
    code = importlib.import_module(module if module.startswith("vllm.") else f"{MODELS}.{module}")
    vars(code).update({kernel: plain for kernel, plain in KERNELS.items() if hasattr(code, kernel)})
    if (layers := sys.modules.get(OF_LAYERS[0])) is not None:
        told = OneText(num_prefill_tokens=PROMPT, num_decode_tokens=0, num_prefills=1, state_indices_tensor=None)
        vars(layers).update(
            linear_attention_prefill_and_mix=fading,
            clear_linear_attention_cache_for_new_sequences=lambda *_: None,
            get_forward_context=lambda: types.SimpleNamespace(attn_metadata=Told(told)),
            MiniMaxText01LinearKernel=MagicMock(),
        )
        layers.BailingMoELinearAttention.forward = whole_text
    model = getattr(code, name)(vllm_config=given, prefix="").eval()
    for part in model.modules():
        if hasattr(part, "in_proj_qkvgfab"):
            part.kv_cache = torch.empty(part.conv1d.weight.shape[0], 0), {}
    return model


# Functions of the modules that call a kernel themselves.
KERNELS = {"fused_mova_impl": values_of_experts, "get_draft_quant_config": lambda _: None}

# What PLaMo 3's config class computes.
PLAMO3 = {
    "interleaved_sliding_window": [4, 4, None, 4],
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
}

# What Nemotron-H's config class computes of the tables.
PUZZLE = {"hybrid_override_pattern": "E*E-E", "n_shared_experts": 1}

# By the type: vLLM's module and class, and what its config has otherwise.
CLASSES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "alice_ai": ("alice_ai", "AliceAIForCausalLM", {}),
    "bailing_moe_v2": ("bailing_moe", "BailingMoeV2ForCausalLM", {"embedding_dropout": 0.0, "use_rmsnorm": True}),
    "bailing_moe_v2_5": ("bailing_moe_linear", "BailingMoeV25ForCausalLM", {}),
    "bailing_hybrid_latent": (
        "bailing_moe_v3",
        "BailingMoeV3ForCausalLM",
        {"num_experts_per_tok": 3, "moe_shared_expert_intermediate_size": 13, "n_group": 4, "use_bias": False},
    ),
    **dict.fromkeys(("dory", "dory_all_in_the_loop"), ("dory", "DoryForCausalLM", {})),
    "domynedge": ("domyn_edge", "DomynEdgeForCausalLM", {}),
    "iquestloopcoder": ("iquest_loopcoder", "IQuestLoopCoderForCausalLM", {}),
    "k2_horizon": ("k2_horizon", "K2HorizonForCausalLM", {}),
    # vLLM's window counts the token itself, the published one what stands before it.
    "mimo_v2": ("mimo_v2", "MiMoV2ForCausalLM", {"sliding_window_size": 4}),
    "longcat_flash_ngram": (
        "longcat_flash_ngram",
        "LongcatFlashNgramForCausalLM",
        {"intermediate_size": 45, "moe_intermediate_size": 13, "zero_expert_type": "identity", "pad_token_id": 0}
        | {"mla_scale_q_lora": True, "mla_scale_kv_lora": True, "torch_dtype": torch.float32},
    ),
    "nemotron-nas": ("nemotron_nas", "DeciLMForCausalLM", {}),
    "PanguEmbedded": ("openpangu", "PanguEmbeddedForCausalLM", {}),
    "PanguProMoE": ("openpangu", "PanguProMoEV2ForCausalLM", {"torch_dtype": torch.float32}),
    "TeleFLM": ("teleflm", "TeleFLMForCausalLM", {}),
    "nemotron_h_puzzle": ("nemotron_h", "NemotronHForCausalLM", PUZZLE),
    "pangu_ultra_moe": ("openpangu", "PanguUltraMoEForCausalLM", {}),
    "sarvam_mla": ("sarvam", "SarvamMLAForCausalLM", {}),
    "sarvam_moe": ("sarvam", "SarvamMoEForCausalLM", {"embedding_dropout": 0.0, "use_rmsnorm": True}),
    "step1": ("step1", "Step1ForCausalLM", {}),
    "rnj1": ("rnj1", "Rnj1ForCausalLM", {}),
    "step5": (f"{STEP5}.model", "Step5ForCausalLM", {}),
    "param2moe": ("param2moe", "Param2MoEForCausalLM", {}),
    "plamo3": ("plamo3", "Plamo3ForCausalLM", PLAMO3),
    "solar": ("solar", "SolarForCausalLM", {}),
    "step3_text": ("step3_text", "Step3TextForCausalLM", {}),
    "telechat": ("telechat2", "TeleChat2ForCausalLM", {}),
    "telechat3": ("llama", "LlamaForCausalLM", {}),
}


# Types whose config is vLLM's own class of it.
OWN_CONFIG = {"step5": (STEP5_CONFIG, "Step5Config"), "dory": (DORY_CONFIG, "DoryConfig")}


def own_config(folder: Path, raw: dict[str, Any]) -> Any:
    find(folder)
    module, name = OWN_CONFIG[raw["model_type"]]
    keys = {k: v for k, v in deepcopy(raw).items() if k != "model_type"}
    return getattr(importlib.import_module(module), name)(**keys)


def theirs(folder: Path, model_type: str, raw: dict[str, Any]) -> nn.Module:
    module, name, more = CLASSES[model_type]
    if raw["model_type"] in OWN_CONFIG:
        return built(folder, module, name, own_config(folder, raw))
    if model_type == "nemotron_h_puzzle":
        more = more | {"get_nemotron_h_config_for_layer": lambda i: settings(raw | PUZZLE | raw["block_configs"][i])}
    elif "block_configs" in raw:
        more = more | {"block_configs": named(raw["block_configs"])}
    if "head_sizes" in raw:
        more = more | {"per_layer_config": named([{"head_dim": size} for size in raw["head_sizes"]])}
    return built(folder, module, name, settings(raw, **more))


# Types whose norms hold the distance from 1.
CENTERED = {"alice_ai", "step5"}

# Longer texts, where a choice is to be one: Step 5's regions have 8 tokens each.
PROMPTS = {"step5": 37}

# By the type: our names' parts, and the makers'.
LAYOUTS = {
    "alice_ai": {".forget_gate.A_log": ".a_log_bias", ".forget_gate.": "."},
    "bailing_moe_v2_5": {"model.embed_tokens.": "model.word_embeddings.", "self_attn.": "attention."},
    "step5": {
        ".mlp.shared_experts.": ".share_expert.",
        ".mlp.gate.e_score_correction_bias": ".moe.router_bias",
        ".mlp.gate.": ".moe.gate.",
    },
    "bailing_hybrid_latent": {
        "model.embed_tokens.": "model.word_embeddings.",
        "self_attn.o_proj.": "attention.dense.",
        "self_attn.": "attention.",
        "gate.e_score_correction_bias": "gate.expert_bias",
    },
}


def published(weights: dict[str, np.ndarray], layout: dict[str, str]) -> dict[str, np.ndarray]:
    """The tensors in the makers' layout, where that of transformers differs: each expert by itself, sinks as a bias."""
    made: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        at, _, stack = name.rpartition(".experts.")
        if stack in ("gate_up_proj", "up_proj", "down_proj"):
            parts = {stack: array}
            if stack == "gate_up_proj":
                parts = dict(zip(("gate_proj", "up_proj"), np.split(array, 2, axis=1)))
            if ".mlp.shared_experts." in layout:  # Step 5's stacks
                made |= {f"{at.removesuffix('.mlp')}.moe.{k}.weight": part for k, part in parts.items()}
                continue
            made |= {f"{at}.experts.{e}.{k}.weight": one for k, part in parts.items() for e, one in enumerate(part)}
        elif name.endswith("linear_attn.conv1d.weight"):
            parts = zip("qkv", np.split(array, 3))
            made |= {name.replace("conv1d", f"{part}_conv1d"): one for part, one in parts}
        elif layout:
            for here, there in layout.items():
                name = name.replace(here, there)
            made[name] = array
        else:
            made[name.replace("self_attn.sinks", "self_attn.attention_sink_bias")] = array
    return made


@torch.no_grad()
def compared(folder: Path, model_type: str) -> None:
    """Write the type's checkpoint, if both sides have the same tensors and logits."""
    raw = small_config(model_type)
    ours, rng = make(model_type, raw), np.random.default_rng(SEED)
    buffers = dict(ours.counts.tensors(ours.counts.buffers))
    model = theirs(folder, model_type, raw)
    # Of Nemotron-H, which our total leaves out.
    uncounted = {n: tuple(p.shape) for n, p in model.named_parameters() if n.endswith("gate.e_score_correction_bias")}
    buffers = uncounted | buffers if model_type == "nemotron_h_puzzle" else buffers
    shapes = dict(ours.counts.tensors()) | buffers
    weights = {
        name: (1 if len(shape) == 1 and name.endswith("norm.weight") and model_type not in CENTERED else 0)
        + rng.normal(size=tuple(map(int, shape))).astype(np.float32) / (3 if len(shape) == 1 else shape[-1] ** 0.5)
        for name, shape in shapes.items()
    }
    # In bfloat16, which takes half the place.
    weights = {
        name: (array.astype(np.float32).view(np.uint32) >> 16 << 16).view(np.float32) for name, array in weights.items()
    }
    model.load_weights(
        (name, torch.from_numpy(array.copy()))
        for name, array in published(weights, LAYOUTS.get(model_type, {})).items()
    )
    if "input_mult" in raw:  # which the maker's code and an older one of vLLM's have, and this one leaves out
        model.model.embed_tokens.register_forward_hook(lambda _, __, x: x * raw["input_mult"])
    left = [name for name, parameter in model.named_parameters() if parameter.isnan().any()]
    if left:
        sys.exit(f"{model_type}: nothing fills {', '.join(left)}")
    length = PROMPTS.get(model_type, PROMPT)
    ids = rng.integers(0, raw["vocab_size"], length)
    tokens, more = torch.from_numpy(ids), {}
    if model_type == "longcat_flash_ngram":
        tables = model.model.ngram_embeddings
        more["inputs_embeds"] = tables.embed_batched(tokens, rows_of_ngrams(tables, tokens, raw["eos_token_id"]))
    hidden = model(tokens, torch.arange(length), None, **more)
    out = model.compute_logits(hidden).numpy()
    mine, _ = logits(ours.architecture, ours.config, Arrays(weights), ids)
    close(mine, out)
    print(f"{model_type}: {len(weights)} tensors, {float(np.abs(mine - out).max() / max(1, np.abs(out).max())):.1e}")
    told = {"config_json": json.dumps(raw), "meta_json": json.dumps({"seed": SEED, "torch": torch.__version__})}
    arrays = {f"{'b' if name in buffers else 'w'}/{name}": array for name, array in weights.items()}
    file = TESTS / f"golden/{model_type}.npz"
    np.savez_compressed(file, **told, input_ids=ids[None], logits=out[None], hidden=np.zeros(0), **arrays)
    listed(raw["model_type"])


def main(folder: str, *only: str) -> None:
    for model_type in only or CLASSES:
        compared(Path(folder), model_type)


if __name__ == "__main__":
    main(*sys.argv[1:])
