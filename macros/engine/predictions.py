"""Multi-token prediction (MTP): the modules beside a model that draft the tokens after its next one.

A module reads the last hidden state beside the embedding of the token after it, through one layer of the model's own
kind. Embedding and LM head are the model's. Sources: arXiv 2412.19437, section 2.2; vLLM 0.33, model_executor/models,
deepseek_mtp.py, glm4_moe_mtp.py, qwen3_next_mtp.py, qwen3_5_mtp.py, mimo_mtp.py, mimo_v2_mtp.py, bailing_moe_mtp.py,
ernie_mtp.py, exaone_moe_mtp.py, hy_v3_mtp.py, longcat_flash_mtp.py and nemotron_h_mtp.py, and models/deepseek_v4;
inclusionAI/Ling-V2, models/modeling_bailing_moe_v2.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from .architectures import (
    bailing_hybrid,
    bailing_moe,
    deepseek_v3,
    deepseek_v4,
    deepseek_v32,
    ernie4_5_moe,
    exaone_moe,
    glm4_moe,
    hy_v3,
    longcat_flash,
    mimo_v2_flash,
    nemotron_h,
    qwen2,
    qwen3_next,
)
from .architectures.config import Config, activation
from .array import arrays_in, stand_in
from .dims import free
from .errors import Problem, shorten
from .forward import TRACED_CONTEXT, TRACED_NEW_TOKENS
from .interface import Array, KVCache, RopeTable, Weights
from .ops import Kind, Mixed, SlidingWindow, embed, feed_forward, linear, positions, rms_norm, rope_table, unembed
from .ops.rope import Rope
from .ops.streams import reduce_streams
from .trace import Trace
from .weights import ShapeCache, ShapeWeights

Raw = Mapping[str, Any]
Layer = Callable[[Array, Weights, KVCache, Any, Array, Raw], Array]

MOST = 64


class Module(NamedTuple):
    """A maker's module: its layer, and the names of its tensors, below `place` with the number of the module."""

    layer: Layer | None  # none where the module is one over residual streams
    place: str = "model.layers.{after}"
    token_norm: str = "enorm"
    state_norm: str = "hnorm"
    projection: str = "eh_proj"
    block: str = ""
    last_norm: str = "shared_head.norm"  # none if it is empty
    offset: int = 0
    is_one: bool = False  # one projection and one norm around all layers
    usual: int = 0  # modules of a config that does not say it


def _angles(ids: Array, cache: KVCache, width: int, rope: Rope) -> RopeTable:
    return rope_table(positions(ids, cache), width, rope)


def _latent(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    return deepseek_v3.layer(x, w, cache, c, Kind(True), _angles(ids, cache, c.qk_rope_head_dim, c.rope))


def _indexed(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    table = _angles(ids, cache, c.qk_rope_head_dim, c.rope)
    return deepseek_v32.layer(x, w, cache, c, deepseek_v32.IndexedKind(True), table, None)[0]


def _glm(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    return glm4_moe.layer(x, w, cache, c, Kind(True), _angles(ids, cache, c.d_head, c.rope))


def _qwen(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    kind = Mixed("attention", "moe" if isinstance(c, qwen3_next.WithExperts) and c.n_experts else "dense")
    return qwen3_next.layer(x, w, cache, c, kind, _angles(ids, cache, c.d_head, c.rope))


def _mimo(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    return qwen2.layer(x, w, cache, c, c.masks[0], _angles(ids, cache, c.d_head, c.rope))


def _mimo2(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    masks = [kind.mask for kind in c.kinds]
    mask = next((mask for mask in masks if isinstance(mask, SlidingWindow)), masks[0])
    table = _angles(ids, cache, c.d_head, mimo_v2_flash.rope_of_mask(c.rope_parameters, mask))
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + mimo_v2_flash.attention(y, w.at("self_attn"), cache, c, mask, table)
    y = rms_norm(x, w, "pre_mlp_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


def _ling3(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    table = _angles(ids, cache, c.qk_rope_head_dim, c.rope)
    return bailing_hybrid.layer(x, w, cache, c, Mixed("attention", "moe"), table)


def _ling2(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    return bailing_moe.layer(x, w, cache, c, Kind(True), _angles(ids, cache, c.d_head, c.rope))


def _ernie(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    return ernie4_5_moe.layer(x, w, cache, c, Kind(False), _angles(ids, cache, c.d_head, c.rope))


def _exaone(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    kind = Kind(False, c.masks[0])
    return exaone_moe.layer(x, w, cache, c, kind, _angles(ids, cache, c.d_head, c.rope))


def _hunyuan(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    return hy_v3.layer(x, w, cache, c, Kind(True), _angles(ids, cache, c.d_head, c.rope))


def _longcat(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    table = _angles(ids, cache, c.qk_rope_head_dim, c.rope)
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + longcat_flash.attention(y, w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("transformer_layer.mlp"), c.d_ff, activation(c.activation))


def _streams(w: Weights, tokens: Array, states: Array, c: Any, cache: KVCache, ids: Array) -> tuple[Array, Array]:
    """DeepSeek V4's module, over the residual streams: [T D], [T M·D] -> [T M·D], [T D]."""
    T, M, D = tokens.shape[0], c.n_streams, c.d_model
    e = linear(rms_norm(tokens, w, "enorm", c.norm_eps), w, "e_proj", D)
    h = linear(rms_norm(states.reshape(T * M, D), w, "hnorm", c.norm_eps), w, "h_proj", D).reshape(T, M, D)
    kind = deepseek_v4.CompressedKind(None, False, False)
    x = h + e[:, None, :]
    x = deepseek_v4.layer(x, w, cache, c, kind, _angles(ids, cache, c.qk_rope_head_dim, c.rope("main")), ids)
    y = reduce_streams(x, w.at("hc_head"), c.norm_eps, c.stream_floor)
    return x.reshape(T, M * D), rms_norm(y, w, "norm", c.norm_eps)


# What the letters of Nemotron's pattern stand for.
LETTERS = {"*": "attention", "E": "moe", "M": "mamba", "-": "mlp"}


def _nemotron(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, raw: Raw) -> Array:
    parts = parts_of_nemotron(raw)
    for k, part in enumerate(parts):
        x = nemotron_h.layer(x, w.at(f"layers.{k}"), cache, c, Mixed(part))
    return rms_norm(x, w.at(f"layers.{len(parts) - 1}"), "final_layernorm", c.norm_eps)


def parts_of_nemotron(raw: Raw) -> list[str]:
    """The parts of a module of Nemotron, each a layer of its own. Raises `Problem` for a part that it has none of."""
    given: object = raw.get("mtp_layers_block_type") or raw.get("mtp_hybrid_override_pattern") or "*E"
    listed = cast("Sequence[object]", given) if isinstance(given, str | list) else [given]
    parts = [LETTERS.get(str(part), str(part)) for part in listed]
    if not set(parts) <= set(LETTERS.values()):
        raise Problem(f"the layers of a module for prediction are {', '.join(parts)[:99]}", "correct the value")
    return parts


# The module by the module of the model's forward pass, or by its type where makers differ.
AFTER_THE_LAST = Module(_latent)
OF_QWEN = Module(
    _qwen,
    "mtp",
    "pre_fc_norm_embedding",
    "pre_fc_norm_hidden",
    "fc",
    "layers.{k}",
    "norm",
    offset=1,
    is_one=True,
    usual=1,
)
LONGCAT = Module(
    _longcat, "model.mtp", "layers.{k}.enorm.m", "layers.{k}.hnorm.m", "layers.{k}.eh_proj", "layers.{k}", "norm"
)
MODULES: dict[str, Module] = {
    **dict.fromkeys(("deepseek_v3", "kimi_k2", "glm4_moe_lite"), AFTER_THE_LAST),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), Module(_indexed)),
    **dict.fromkeys(("glm4_moe", "glm4v_moe_text"), Module(_glm)),
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), OF_QWEN),
    "mimo": Module(
        _mimo,
        "model.mtp_layers.{k}",
        "token_layernorm",
        "hidden_layernorm",
        "input_proj",
        last_norm="final_layernorm",
    ),
    **dict.fromkeys(("mimo_v2", "mimo_v2_flash"), Module(_mimo2, "model.mtp.layers.{k}", last_norm="final_layernorm")),
    "bailing_hybrid": Module(_ling3, last_norm="final_layernorm"),
    "bailing_moe_v2": Module(_ling2, last_norm="final_layernorm"),
    "hy_v3": Module(_hunyuan, last_norm="final_layernorm"),
    "ernie4_5_moe": Module(
        _ernie,
        "model",
        "mtp_emb_norm.{k}",
        "mtp_hidden_norm.{k}",
        "mtp_linear_proj.{k}",
        "mtp_block.{k}",
        "",
    ),
    "exaone_moe": OF_QWEN._replace(layer=_exaone, offset=0, usual=0),
    "longcat_flash": LONGCAT,
    "longcat_flash_ngram": LONGCAT,
    "deepseek_v4": Module(None, "mtp.{k}"),
    "nemotron_h": Module(_nemotron, "mtp", "layers.0.enorm", "layers.0.hnorm", "layers.0.eh_proj", last_norm=""),
}


def modules(model_type: str, raw: Raw, keys: Sequence[str]) -> tuple[str, int, Module | None]:
    """(the key that says how many, how many modules or layers a config has, the maker's, None if it is not known).

    Raises `Problem` for a number that is none.
    """
    module = MODULES.get(model_type)
    key = next((name for name in keys if raw.get(name)), "")
    n: object = raw[key] if key else module.usual if module and not any(name in raw for name in keys) else 0
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= MOST:
        raise Problem(f"{key} = {shorten(n)}: expected a number of modules", f"give 0 to {MOST}")
    return key or keys[0], n, module


def trace(model_type: str, c: Config, raw: Raw, n: int) -> Trace:
    """Run on shapes: the modules one after the other, each with its own cache and the model's embedding and head."""
    run = Trace()
    new, context = free("T", TRACED_NEW_TOKENS), free("S", TRACED_CONTEXT)
    run.symbols |= c.symbols
    ids = run.input((new,), np.int64, "token ids")
    weights, cache = ShapeWeights(run), ShapeCache(run, context - new, context)
    scores = forward(weights, stand_in(ids), c, cache, MODULES[model_type], raw, n)
    run.root.inputs, run.root.outputs = [ids], arrays_in([scores])
    return run


def forward(w: Weights, ids: Array, c: Any, cache: KVCache, module: Module, raw: Raw, n: int) -> Array:
    """Scores for the token after the next, by each module for one token further: [T] -> [1 V]."""
    width = c.d_model if module.layer else c.n_streams * c.d_model
    scores = x = cache.hidden_states(ids.shape[0], width)
    tokens = embed(ids, w.of_target(), "model.embed_tokens.weight", c.vocab_size, c.d_model)
    for k in range(n):
        inner = w.at(module.place.format(k=k, after=c.n_layers + k))
        if module.layer is None:
            x, y = _streams(inner, tokens, x, c, cache, ids)
            scores = unembed(y, w.of_target(), "lm_head.weight", c.vocab_size, last=True)
            continue
        names = [name.format(k=k) for name in (module.token_norm, module.state_norm, module.projection, module.block)]
        if k == 0 or not module.is_one:
            x = joined(tokens, x, inner, c, names, module.offset)
        x = module.layer(x, inner.at(names[3]) if names[3] else inner, cache, c, ids, raw)
        if module.last_norm and (k == n - 1 or not module.is_one):
            x = rms_norm(x, inner, module.last_norm, c.norm_eps, offset=module.offset)
        if k == n - 1 or not module.is_one:
            scores = unembed(x, w.of_target(), "lm_head.weight", c.vocab_size, last=True)
    return scores


def joined(tokens: Array, states: Array, w: Weights, c: Any, names: list[str], offset: int = 0) -> Array:
    """Both vectors of each token, each after its norm, in one of the model's width: [T D], [T D] -> [T D]."""
    both = [
        rms_norm(tokens, w, names[0], c.norm_eps, offset=offset),
        rms_norm(states, w, names[1], c.norm_eps, offset=offset),
    ]
    return linear(np.concatenate(both, axis=-1), w, names[2], c.d_model)
