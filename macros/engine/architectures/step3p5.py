"""Step 3.5 and 3.7: a gate on each head, more query heads in layers with a window, clamped gates in some layers.

Source: stepfun-ai/Step-3.5-Flash and Step-3.7-Flash by transformers 5's text model, whose tensor names these are; norm
weights are stored as the distance from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from msgspec import Struct

from ..errors import Problem, shorten
from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Kind,
    Rope,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    feed_forward,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    sigmoid,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import (
    Count,
    Positive,
    Raw,
    Size,
    activation,
    config,
    dense_first,
    fixed,
    key,
    listed,
    masks_of,
    sparse_layers,
    tabled,
)
from .deepseek_v3 import routing
from .llama import Llama
from .otherwise import Otherwise, other_than
from .predicted import Module, Place, angles, entry, mask_of
from .rope_config import OLDER_ROPE_KEYS, fold_rope_of_kinds, read_rope, rope_of_mask
from .tensor_layouts import FUSED, PACKED

# Lists with an entry for each layer, which the published files continue with those of the prediction modules.
BY_LAYER = (
    "layer_types",
    "mlp_layer_types",
    "swiglu_limits",
    "swiglu_limits_shared",
    "rope_theta",
    "partial_rotary_factors",
)

HEADS_NOT_STATED = (
    "num_sliding_attention_heads is missing: layers that see a window are counted with num_attention_heads, and the "
    "published files of Step 3.5 and 3.7 state more for them"
)


class ClampedKind(Struct, frozen=True):
    """Whether a layer has experts, its mask, and where its gates end: those of experts, and of all others."""

    moe: bool
    mask: Mask
    limit: float | None = None
    shared_limit: float | None = None

    def __str__(self) -> str:
        kind = str(Kind(self.moe, self.mask))
        return kind if self.limit is None and self.shared_limit is None else f"{kind}, clamped"


@config
class Step3p5(Llama):
    """Hyperparameters of Step 3.5, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    sliding_window: Size | None = key("sliding_window", None)
    layer_types: list[str] = key("layer_types", lambda c: ["full_attention"] * c.n_layers)
    dense_layers: int = key("first_k_dense_replace", 3)
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(c.dense_layers, c.n_layers))
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8, also=("num_attention_groups",))
    n_sliding_heads: Size = key("num_sliding_attention_heads", lambda c: c.n_heads)
    d_head: Size = key("head_dim", 128)
    query_scalar: Positive = key("query_pre_attn_scalar", lambda c: int(c.d_head))
    # feed-forward
    mlp_bias: Literal[False] = key("mlp_bias", False)
    limits: list[float | None] | None = key("swiglu_limits", None)
    shared_limits: list[float | None] | None = key("swiglu_limits_shared", None)
    # experts
    n_experts: Size = key("n_routed_experts", also=("moe_num_experts", "num_local_experts", "num_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok", also=("moe_top_k",))
    scoring: Literal["sigmoid"] = key("scoring_func", "sigmoid", also=("moe_router_activation",))
    n_expert_groups: int = fixed(1)
    n_groups_kept: int = fixed(1)
    normalise: bool = fixed(True)
    routed_scale: Positive = key("moe_router_scaling_factor", 1.0)
    d_ff_expert: Size = key("moe_intermediate_size")
    d_ff_shared: Count = key("share_expert_dim", also=("share_expert_dims",))
    n_shared_experts: Literal[1] = key("n_shared_experts", 1)

    # transformers has SiLU whatever a config says, and reads tables of the rotary embedding by kind or the older keys.
    as_transformers: ClassVar[bool] = True
    otherwise = (
        Otherwise(
            "num_local_experts",
            other_than("num_local_experts", 288, unless="n_routed_experts"),
            "transformers 5.24 reads n_routed_experts, which is 288 where it is missing",
        ),
    )
    rewritten = Llama.rewritten | {
        "num_nextn_predict_layers",
        "attention_other_setting",
        "moe_layers_enum",
        "partial_rotary_factors",
    }
    ignored = Llama.ignored | {
        "per_layer_config",
        "num_mtp_layers",
        "mtp_layer_types",
        "mtp_mlp_layer_types",
        "max_seq_len",
        "use_moe",
        "use_moe_router_bias",
        "use_head_wise_attn_gate",
        "use_qk_norm",
        "use_rope_layers",
        "need_fp32_gate",
        "norm_expert_weight",
        "moe_every_n_layer",
        "att_impl_type",
        "yarn_only_types",
        "zero_centered",
        "sink",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The published spelling: lists by layer with those of the prediction modules, other words for some keys."""
        layers, more = raw.get("num_hidden_layers"), raw.pop("num_nextn_predict_layers", None) or 0
        for name in BY_LAYER:
            entries = listed(raw.get(name))
            if entries and isinstance(layers, int) and isinstance(more, int) and len(entries) == layers + more:
                raw[name] = entries[:layers]
        other, enumerated = tabled(raw.pop("attention_other_setting", None)), raw.pop("moe_layers_enum", None)
        if other and raw.get("num_sliding_attention_heads") is None:
            raw["num_sliding_attention_heads"] = other.get("num_attention_heads")
        if enumerated is not None and raw.get("mlp_layer_types") is None and isinstance(layers, int):
            sparse = enumerated_layers(enumerated)
            raw["mlp_layer_types"] = ["sparse" if i in sparse else "dense" for i in range(layers)]
        if cls.as_transformers:
            tables = tabled(raw.get("rope_parameters")) or {}
            is_whole = all(tabled(tables.get(name)) for name in listed(raw.get("layer_types")) or ["full_attention"])
            unread = OLDER_ROPE_KEYS if is_whole else ("rope_parameters", "partial_rotary_factor")
            raw = {name: value for name, value in raw.items() if name not in unread} | {"hidden_act": "silu"}
        return fold_rope_of_kinds(*_ropes(raw))

    @classmethod
    def read_otherwise(cls, raw: Mapping[str, Any]) -> list[str]:
        """The base class's lines, and one if layers with a window have no number of heads of their own."""
        said = raw.get("num_sliding_attention_heads") or tabled(raw.get("attention_other_setting"))
        windowed = "sliding_attention" in (listed(raw.get("layer_types")) or ())
        return [*super().read_otherwise(raw), *([HEADS_NOT_STATED] if windowed and not said else [])]

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        self.must_divide("n_kv_heads", "n_sliding_heads")
        self.must_not_exceed("n_experts_per_token", "n_experts")
        activation(self.activation)
        for kind in self.kinds:
            rope_of_mask(self.rope_parameters, kind.mask).turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, layer_type="full_attention")

    @property
    def kinds(self) -> list[ClampedKind]:
        """In order: whether a layer has experts, its mask, and where its gates end."""
        moe = sparse_layers(self.mlp_layer_types, self.n_layers)
        masks = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        limits = [self._limits("limits", self.limits), self._limits("shared_limits", self.shared_limits)]
        return [
            ClampedKind(has_experts, mask, limit if has_experts else None, shared)
            for has_experts, mask, limit, shared in zip(moe, masks, *limits)
        ]

    def _limits(self, field: str, values: list[float | None] | None) -> list[float | None]:
        """A limit for each layer, None for no limit."""
        if values and len(values) != self.n_layers:
            raise Problem(
                f"{self.key_of(field)} has {len(values)} entries, and num_hidden_layers = {int(self.n_layers)}",
                "correct one of the two",
            )
        return [value or None for value in values] if values else [None] * self.n_layers


def enumerated_layers(enumerated: Any) -> set[int]:
    """The layers of `moe_layers_enum`, as text or as a list: "3,4,5"."""
    parts = enumerated.split(",") if isinstance(enumerated, str) else enumerated
    try:
        return {int(part) for part in parts if str(part).strip()}
    except (TypeError, ValueError):
        raise Problem(
            f"moe_layers_enum = {shorten(enumerated)}: expected numbers of layers", "correct the value"
        ) from None


def _ropes(raw: Raw) -> tuple[Raw, dict[str, Raw]]:
    """The keys without those of the rotary embedding, which become a table for each type of layer."""
    raw = dict(raw)
    tables, types = tabled(raw.get("rope_parameters")), listed(raw.get("layer_types")) or ["full_attention"]
    if tables and any(map(tabled, tables.values())):
        return raw, {}
    theta, partial = raw.pop("rope_theta", None), raw.pop("partial_rotary_factors", None)
    scaling = tabled(raw.pop("rope_scaling", None))
    usual: dict[str, Raw] = {}
    for name in ("full_attention", "sliding_attention"):
        place = types.index(name) if name in types else None
        usual[name] = {
            "rope_type": "default",
            "rope_theta": _of_layer(theta, place) or 10_000.0,
            "partial_rotary_factor": _of_layer(partial, place) or 1.0,
        }
    if scaling:
        usual["full_attention"] = {**usual["full_attention"], **scaling}
    return raw, usual


def _of_layer(value: Any, place: int | None) -> Any:
    """An entry of a list by layer, or what holds for all."""
    entries = listed(value)
    if entries is None:
        return value
    return entries[place] if place is not None and place < len(entries) else None


SPELLINGS = (
    (".moe.gate.", ".mlp.gate."),
    (".moe.router_bias", ".mlp.gate.e_score_correction_bias"),
    (".moe.down_proj.weight", ".mlp.experts.down_proj"),
    (".moe.", ".mlp.experts."),
    (".share_expert.", ".mlp.shared_experts."),
)
STACKS = {f"mlp.experts.{part}.weight": (f"mlp.experts.{{e}}.{part}.weight",) for part in ("gate_proj", "up_proj")}


GGUF = Gguf("step35", {"self_attn.g_proj": "attn_gate"}, is_by_layer=True, is_windowed=True)


def kind_of_module(at: Place, c: Any) -> ClampedKind:
    """The kind of a module's layer, by lists of the modules' own or after the model's layers. Raises `Problem`."""
    numbers = at.raw.get("moe_layers_enum", at.raw.get("moe_layer_list"))
    is_numbered = numbers is not None and c.n_layers + at.k in enumerated_layers(numbers)
    has_experts = entry(at, c, "mlp_layer_types", "mtp_mlp_layer_types", "sparse" if is_numbered else "dense")
    layer_type = entry(at, c, "layer_types", "mtp_layer_types", "" if at.raw.get("layer_types") else "full_attention")
    if not layer_type:
        raise Problem(f"layer_types has no entry for module {at.k + 1} for prediction", "give mtp_layer_types")
    limits = [entry(at, c, name, "", None) or None for name in ("swiglu_limits", "swiglu_limits_shared")]
    return ClampedKind(has_experts == "sparse", mask_of(layer_type, c), *limits)


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    kind = kind_of_module(at, c)
    table = angles(ids, cache, c.d_head, rope_of_mask(c.rope_parameters, kind.mask))
    return layer(x, w, cache, c, kind, table)


MTP = Module(
    draft_layer, last_norm="transformer.shared_head.norm", offset=1, head="transformer.shared_head.output.weight"
)


@architecture(
    "step3p5",
    config=Step3p5,
    fused=STACKS,
    spellings=SPELLINGS,
    pieces=FUSED,
    gguf=GGUF,
    predicts=MTP,
    mlx=Mlx(is_windowed=True),
    windows_in_sglang=True,
    classes={
        "step3p5": "Step3p7FlashForCausalLM"
    },  # aiconfigurator, model_configs/stepfun-ai--Step-3.7-Flash_config.json
)
def forward(w: Weights, ids: Array, c: Step3p5, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    masks = dict.fromkeys(kind.mask for kind in c.kinds)
    tables = {mask: rope_table(places, c.d_head, rope_of_mask(c.rope_parameters, mask)) for mask in masks}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables[kind.mask])
    x = rms_norm(x, w, "model.norm", c.norm_eps, offset=1)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Step3p5, kind: ClampedKind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps, offset=1)
    return fed_forward(x + attention(y, w.at("self_attn"), cache, c, kind.mask, table), w, c, kind)


def fed_forward(x: Array, w: Weights, c: Step3p5, kind: ClampedKind) -> Array:
    """The half of a block after attention: [T D] -> [T D]."""
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps, offset=1)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c, kind)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), limit=kind.shared_limit, behind=True)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Step3p5, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from those before it, and gate each head's output: [T D] -> [T D]."""
    q, k, v = queries_keys_values(x, w, cache, c, mask, table)
    return read_out(attend(q, k, v, causal_mask(cache, q, k, mask), c.query_scalar**-0.5), x, w, c, q.shape[1])


def queries_keys_values(
    x: Array, w: Weights, cache: KVCache, c: Step3p5, mask: Mask, table: RopeTable
) -> tuple[Array, Array, Array]:
    """The new queries, and the keys and values that they see: [T D] -> [T N H], [S K H], [S K H]."""
    N, K, H = c.n_sliding_heads if isinstance(mask, SlidingWindow) else c.n_heads, c.n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps, offset=1), rms_norm(k, w, "k_norm", c.norm_eps, offset=1)
    q, k = apply_rope(q, table), apply_rope(k, table)
    return q, cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)


def read_out(mixed: Array, x: Array, w: Weights, c: Step3p5, n: int) -> Array:
    """The heads' averages, each through its gate, as one vector: [T N·H], [T D] -> [T D]."""
    mixed = heads(mixed, n, c.d_head) * sigmoid(linear(x, w, "g_proj", n))[:, :, None]
    return linear(mixed.reshape(x.shape[0], n * c.d_head), w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Step3p5, kind: ClampedKind) -> Array:
    """A few experts chosen for each token, and a shared one: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    chosen, shares = routing(x, w.buffer("gate.e_score_correction_bias", c.n_experts), w, c)
    answers = packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff_expert, act, limit=kind.limit, behind=True)
    shared = shared_experts(x, w.at("shared_experts"), c.d_ff_shared, act, limit=kind.shared_limit, behind=True)
    return combine(answers, shares) + shared
