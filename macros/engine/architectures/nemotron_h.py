"""Nemotron-H and Nemotron 3: each layer is one part only.

It is Mamba 2, attention without positions, experts, or a feed-forward network. In a Puzzle model, each layer with
experts has sizes of its own.

Sources: arXiv 2504.03624 (Nemotron-H), 2405.21060 (Mamba 2); vLLM, model_executor/models/nemotron_h.py (Puzzle); tensor
names as transformers 5 (the published files have `backbone.` for `model.`, and each expert by itself).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, cast

from ..errors import Problem, nearest, shorten
from ..facts import UNREAD, Gguf, Peft, Vllm
from ..interface import Array, KVCache, Weights
from ..ops import (
    Full,
    Mixed,
    attend,
    causal_mask,
    combine,
    embed,
    expert_linear,
    group_limited,
    heads,
    linear,
    rms_norm,
    routing_weights,
    sigmoid_scores,
    top_k,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Raw, Size, Taps, activation, config, key, listed, tabled
from .gguf_tables import ATTENTION, FEED_FORWARD, STATE_SPACE, STATE_SPACE_2, below
from .mamba import NOT_READ
from .mamba2 import mamba2
from .otherwise import NEVER_TIED
from .predicted import Module, Place
from .qwen3_next import STATE_BYTES

# The letters of `hybrid_override_pattern`, and the names that `layers_block_type` has for the same.
PARTS = {"M": "mamba", "*": "attention", "E": "moe", "-": "dense"}
NAMES = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "moe": "moe",
    "mlp": "dense",
}


class Sizes(NamedTuple):
    """The inner width of a layer’s feed-forward network, or what a layer with experts has of them."""

    d_ff: int = 0
    n_experts: int = 0
    n_experts_per_token: int = 0
    d_ff_expert: int = 0
    d_ff_shared: int = 0
    d_latent: int = 0
    routed_scale: float = 1.0


class Part(NamedTuple):
    """A layer: its part, and the sizes that are specific to the layer."""

    mixer: str
    sizes: Sizes | None = None

    def __str__(self) -> str:
        return self.mixer


@config
class NemotronH(Config):
    """Hyperparameters of Nemotron-H, in forward order. d_ff is the inner width of the layers without experts."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    pattern: str | None = key("hybrid_override_pattern", None)
    layer_types: list[str] | None = key("layers_block_type", None, also=("layer_types",))
    n_layers: Size = key("num_hidden_layers", lambda c: max(1, len(c.layer_types or c.pattern or "")))
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    # mamba
    n_mamba_heads: Size = key("mamba_num_heads")
    d_mamba_head: Size = key("mamba_head_dim")
    n_groups: Size = key("n_groups", also=("mamba_n_groups",))
    d_state: Size = key("ssm_state_size", also=("mamba_d_state",))
    bias: bool = key("use_bias", False)
    d_conv: Taps = key("conv_kernel", also=("mamba_d_conv",))
    conv_bias: bool = key("use_conv_bias", True, also=("mamba_conv_bias",))
    mamba_activation: str = key("mamba_hidden_act", "silu")
    least_dt: float = key("time_step_min", 0.001, also=("mamba_dt_min",))
    state_dtype: Literal["float32", "float16", "bfloat16"] = key("mamba_ssm_cache_dtype", "float32")
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128, also=("attention_head_dim",))
    # feed-forward
    d_ff: Size | None = key("intermediate_size", None)
    bias_ff: bool = key("mlp_bias", False)
    activation: str = key("mlp_hidden_act", "relu2")
    # experts
    n_experts: Size | None = key("n_routed_experts", None, also=("num_local_experts",))
    n_experts_per_token: Size | None = key("num_experts_per_tok", None)
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    normalise: bool = key("norm_topk_prob", True)
    routed_scale: float = key("routed_scaling_factor", 1.0)
    d_latent: Size | None = key("moe_latent_size", None)
    d_ff_expert: Size | None = key("moe_intermediate_size", None)
    d_ff_shared: Size | None = key("moe_shared_expert_intermediate_size", None)
    # head
    tied: bool = key("tie_word_embeddings", False)

    ignored = NOT_READ | frozenset(
        """
        attention_bias mamba_proj_bias expand mamba_expand time_step_limit mamba_dt_limit mamba_dt_max
        mamba_dt_init_floor num_logits_to_keep n_shared_experts moe_shared_expert_overlap num_nextn_predict_layers
        mtp_layers_block_type mtp_hybrid_override_pattern rope_theta partial_rotary_factor rope_parameters
        rope_scaling sliding_window norm_eps rms_norm_eps time_step_rank
    """.split()
    )
    otherwise = (NEVER_TIED,)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """A pattern may be a list of its letters, too."""
        raw = super().prepare(raw)
        letters = listed(raw.get("hybrid_override_pattern"))
        if letters is None or not all(isinstance(one, str) for one in letters):
            return raw
        return {**raw, "hybrid_override_pattern": "".join(letters)}

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        self.must_divide("n_groups", "n_mamba_heads")
        for name in (self.activation, self.mamba_activation):
            activation(name)
        parts = {kind.mixer for kind in self.kinds}
        needed = {"moe": ("n_experts", "n_experts_per_token", "d_ff_expert", "d_ff_shared"), "dense": ("d_ff",)}
        for field in (f for part, fields in needed.items() if part in parts for f in fields):
            self.size(field)
        if "moe" in parts:
            self.must_not_exceed("n_experts_per_token", "n_experts")
            self.must_divide("n_expert_groups", "n_experts")
            self.must_not_exceed("n_groups_kept", "n_expert_groups")

    @property
    def kinds(self) -> Sequence[Mixed | Part]:
        """The part in each layer, in order."""
        return [Mixed(part) for part in self.mixers()]

    def sizes(self, kind: Mixed | Part) -> Sizes:
        """The sizes of a layer’s feed-forward network or experts."""
        if kind.mixer == "dense":
            return Sizes(self.size("d_ff"))
        return Sizes(
            0,
            self.size("n_experts"),
            self.size("n_experts_per_token"),
            self.size("d_ff_expert"),
            self.size("d_ff_shared"),
            self.d_latent or 0,
            self.routed_scale,
        )

    def mixers(self) -> list[str]:
        """The part in each layer, in order, by its name."""
        name, of, listed = (
            ("layers_block_type", NAMES, self.layer_types)
            if self.layer_types
            else ("hybrid_override_pattern", PARTS, self.pattern)
        )
        if not listed:
            raise Problem(
                "hybrid_override_pattern is missing",
                "add it, or layers_block_type: the kinds of layers have no default",
            )
        if len(listed) != self.n_layers:
            raise Problem(
                f"{name} has {len(listed)} layers, and num_hidden_layers = {int(self.n_layers)}",
                "correct one of the two",
            )
        for part in listed:
            if part not in of:
                raise Problem(f"{name} has {shorten(part)}", nearest(part, of, f"known ones: {', '.join(of)}"))
        return [of[part] for part in listed]

    @property
    def dt_limits(self) -> tuple[float, float]:
        """The bounds of a step size; transformers omits them for single tokens."""
        return self.least_dt, math.inf


# The keys of a layer’s table that its size comes from, in the order of `Sizes`.
BLOCK_KEYS = (
    "intermediate_size",
    "n_routed_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "moe_latent_size",
    "routed_scaling_factor",
)
# Keys of a layer’s table that have to say what the whole says.
SAME = ("n_group", "topk_group", "norm_topk_prob", "ssm_state_size", "sliding_window")


@config
class NemotronHPuzzle(NemotronH):
    """Hyperparameters of a Nemotron-H that Puzzle made, in forward order: tables say what is a layer’s own."""

    block_configs: list[Any] = key("block_configs")
    n_layers: Size = key("num_hidden_layers", lambda c: max(1, len(c.block_configs)))

    ignored = NemotronH.ignored | {"mtp_block_configs", "blockwise_members"}
    otherwise = ()

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        self.must_divide("n_groups", "n_mamba_heads")
        for name in (self.activation, self.mamba_activation):
            activation(name)
        for kind in self.kinds:
            s = self.sizes(kind)
            if kind.mixer == "dense" and not s.d_ff:
                raise Problem("block_configs has a layer without intermediate_size", "add it")
            if kind.mixer == "moe" and not 0 < s.n_experts_per_token <= s.n_experts:
                raise Problem(
                    f"block_configs has a layer with num_experts_per_tok = {s.n_experts_per_token} of {s.n_experts}",
                    "correct one of the two",
                )
            if kind.mixer == "moe" and not (s.d_ff_expert and s.d_ff_shared):
                raise Problem("block_configs has a layer with experts of no width", "add moe_intermediate_size")
            if kind.mixer == "moe" and s.n_experts % int(self.n_expert_groups):
                raise Problem(f"n_group = {int(self.n_expert_groups)} does not divide {s.n_experts}", "correct it")
        self.must_not_exceed("n_groups_kept", "n_expert_groups")

    @property
    def kinds(self) -> Sequence[Part]:
        """In order: each layer's part, and its own sizes."""
        if len(self.block_configs) != self.n_layers:
            raise Problem(
                f"block_configs has {len(self.block_configs)} entries, and num_hidden_layers = {int(self.n_layers)}",
                "correct one of the two",
            )
        return [self._part(tabled(block) or {}) for block in self.block_configs]

    def _part(self, block: Mapping[str, Any]) -> Part:
        """A layer, from its table."""
        kind = block.get("block_type")
        if not isinstance(kind, str) or kind not in NAMES:
            raise Problem(f"block_configs has {shorten(kind)}", nearest(str(kind), NAMES, f"known: {', '.join(NAMES)}"))
        whole: dict[str, Any] = {
            "intermediate_size": self.d_ff,
            "n_routed_experts": self.n_experts,
            "num_experts_per_tok": self.n_experts_per_token,
            "moe_intermediate_size": self.d_ff_expert,
            "moe_shared_expert_intermediate_size": self.d_ff_shared,
            "moe_latent_size": self.d_latent,
            "routed_scaling_factor": self.routed_scale,
        }
        same = {
            "n_group": self.n_expert_groups,
            "topk_group": self.n_groups_kept,
            "norm_topk_prob": self.normalise,
            "ssm_state_size": self.d_state,
        }
        for name, value in block.items():
            if name not in BLOCK_KEYS and name not in SAME and name != "block_type":
                raise Problem(f"block_configs has {shorten(name)}", "the site describes no such layer")
            if name in SAME and value is not None and value != same.get(name):
                raise Problem(f"block_configs has {name} = {shorten(value)}", "the site describes one for all layers")
        found = [whole[name] if block.get(name) is None else block[name] for name in BLOCK_KEYS]
        for name, value in zip(BLOCK_KEYS[:-1], found):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31):
                raise Problem(f"block_configs has {name} = {shorten(value)}", "expected a whole number")
        scale = found[-1]
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0 < scale < 1e18:
            raise Problem(f"block_configs has routed_scaling_factor = {shorten(scale)}", "expected a positive number")
        d_ff, n_experts, used, width, shared, latent = (value or 0 for value in found[:-1])
        part = NAMES[kind]
        if part == "dense":
            return Part(part, Sizes(d_ff))
        return Part(part, Sizes(0, n_experts, used, width, shared, latent, scale) if part == "moe" else None)

    def sizes(self, kind: Mixed | Part) -> Sizes:
        return (kind.sizes if isinstance(kind, Part) else None) or Sizes()


PIECES = {f"mixer.experts.{part}": (f"mixer.experts.{{e}}.{part}.weight",) for part in ("up_proj", "down_proj")}


# One mixer a layer, of any kind.
_NEMOTRON_H = below("mixer", ATTENTION | FEED_FORWARD | STATE_SPACE | STATE_SPACE_2) | {
    "mixer.fc1_latent_proj": "ffn_latent_down",
    "mixer.fc2_latent_proj": "ffn_latent_up",
}
_WITH_EXPERTS = Gguf("nemotron_h_moe", _NEMOTRON_H, is_by_layer=True)
GGUF = Gguf("nemotron_h", _NEMOTRON_H, is_by_layer=True, becomes=((".experts.", _WITH_EXPERTS),))


# What the letters of the pattern stand for.
LETTERS = {"*": "attention", "E": "moe", "M": "mamba", "-": "mlp"}


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    parts = parts_of_module(at.raw)
    for k, part in enumerate(parts):
        x = layer(x, w.at(f"layers.{k}"), cache, c, Mixed(part))
    return rms_norm(x, w.at(f"layers.{len(parts) - 1}"), "final_layernorm", c.norm_eps)


def parts_of_module(raw: Mapping[str, Any]) -> list[str]:
    """The parts of one of Nemotron's modules, each a layer. Raises `Problem` for a part that it does not have."""
    given: object = raw.get("mtp_layers_block_type") or raw.get("mtp_hybrid_override_pattern") or "*E"
    listed = cast("Sequence[object]", given) if isinstance(given, str | list) else [given]
    parts = [LETTERS.get(str(part), str(part)) for part in listed]
    if not set(parts) <= set(LETTERS.values()):
        raise Problem(f"the layers of a module for prediction are {', '.join(parts)[:99]}", "correct the value")
    return parts


# `update_mamba_ssm_cache_dtype` in model_executor/models/config.py of vLLM
WIDE_STATES = Vllm(state=(32, (0, 20)))
MTP = Module(draft_layer, "mtp", "layers.0.enorm", "layers.0.hnorm", "layers.0.eh_proj", last_norm="")


@architecture(
    "nemotron_h",
    config=NemotronH,
    spellings=(("^backbone.", "model."),),
    pieces=PIECES,
    gguf=GGUF,
    predicts=MTP,
    peft=Peft(("q_proj", "k_proj", "v_proj", "o_proj"), refused="out_proj"),
    vllm=WIDE_STATES,
)
@architecture(
    "nemotron_h_puzzle",
    config=NemotronHPuzzle,
    spellings=(("^backbone.", "model."),),
    pieces=PIECES,
    gguf=UNREAD,
    vllm=WIDE_STATES,
)
def forward(w: Weights, ids: Array, c: NemotronH, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embeddings.weight", c.vocab_size, c.d_model)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind)
    x = rms_norm(x, w, "model.norm_f", c.norm_eps)
    return unembed(x, w, "model.embeddings.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: NemotronH, kind: Mixed | Part) -> Array:
    """One block, a single part: [T D] -> [T D]."""
    y, w = rms_norm(x, w, "norm", c.norm_eps), w.at("mixer")
    if kind.mixer == "mamba":
        return x + mamba2(y, w, cache, c, c.mamba_activation, c.norm_eps, STATE_BYTES[c.state_dtype])
    if kind.mixer == "attention":
        return x + attention(y, w, cache, c)
    sizes = c.sizes(kind)
    return x + (mixture_of_experts(y, w, c, sizes) if kind.mixer == "moe" else feed_forward(y, w, c, sizes.d_ff))


class PlainAttention(Protocol):
    """A config of attention without positions and biases."""

    @property
    def d_model(self) -> int: ...
    @property
    def n_heads(self) -> int: ...
    @property
    def n_kv_heads(self) -> int: ...
    @property
    def d_head(self) -> int: ...


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: PlainAttention) -> Array:
    """Let each token gather information from itself and the tokens before it, without positions: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "o_proj", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: NemotronH, d_ff: int) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "up_proj", d_ff, bias=c.bias_ff))
    return linear(wide, w, "down_proj", c.d_model, bias=c.bias_ff)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: NemotronH, s: Sizes) -> Array:
    """A few experts chosen for each token, and a shared one: [T D] -> [T k D] -> [T D].

    The chosen ones work in a narrower space if the config has one. The bias balances the experts' load; the routing
    weights exclude it, and so does the published total.
    """
    E, k = s.n_experts, s.n_experts_per_token
    fit = sigmoid_scores(linear(x, w, "gate", E))
    biased = fit + w.buffer("gate.e_score_correction_bias", E, counted=False)
    if c.n_groups_kept < c.n_expert_groups:
        biased = group_limited(biased, c.n_expert_groups, c.n_groups_kept, best=2)
    chosen = top_k(biased, k)
    shares = routing_weights(fit, chosen, normalise=c.normalise, scale=s.routed_scale)
    narrow = linear(x, w, "fc1_latent_proj", s.d_latent, bias=c.bias_ff) if s.d_latent else x
    routed = combine(experts(narrow, chosen, w, c, s), shares)
    routed = linear(routed, w, "fc2_latent_proj", c.d_model, bias=c.bias_ff) if s.d_latent else routed
    return routed + shared_experts(x, w.at("shared_experts"), c, s.d_ff_shared)


@step(Role.EXPERTS)
def experts(x: Array, chosen: Array, w: Weights, c: NemotronH, s: Sizes) -> Array:
    """Each token through its chosen experts, which have no gate: [T D], [T k] -> [T k F] -> [T k D]."""
    E, k = s.n_experts, s.n_experts_per_token
    D, F = x.shape[1], s.d_ff_expert
    wide = activation(c.activation)(expert_linear(x, w.stack("experts.up_proj", E, F, D, used=k), chosen))
    return expert_linear(wide, w.stack("experts.down_proj", E, D, F, used=k), chosen)


@step(Role.SHARED_EXPERTS)
def shared_experts(x: Array, w: Weights, c: NemotronH, d_ff: int) -> Array:
    """The shared expert: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "up_proj", d_ff, bias=c.bias_ff))
    return linear(wide, w, "down_proj", c.d_model, bias=c.bias_ff)
