"""Multi-token prediction (MTP): the modules beside a model that draft the tokens after its next one.

A module reads the last hidden state beside the embedding of the token after it, through one layer of the model's own
kind. Embedding and LM head are the model's, except where a file has a module's own. Sources: arXiv 2412.19437, section
2.2; vLLM 0.33, model_executor/models, deepseek_mtp.py, glm4_moe_mtp.py, qwen3_next_mtp.py, qwen3_5_mtp.py, mimo_mtp.py,
mimo_v2_mtp.py, bailing_moe_mtp.py, ernie_mtp.py, exaone_moe_mtp.py, hy_v3_mtp.py, longcat_flash_mtp.py,
nemotron_h_mtp.py, step3p5_mtp.py and openpangu_mtp.py, and models/deepseek_v4, minimax_m3, inkling, glm5next, hy_v4,
qwen4_exp, dots3_note, kimi_k3 and step5; inclusionAI/Ling-V2, models/modeling_bailing_moe_v2.py; transformers 5.23,
modeling_layers.py, `MtpModel`; of Alice AI pull request 57963 of vLLM, model_executor/models/alice_ai_mtp.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from .architectures import (
    alice_ai,
    bailing_hybrid,
    bailing_moe,
    deepseek_v3,
    deepseek_v4,
    deepseek_v32,
    dots3_note,
    ernie4_5_moe,
    exaone4,
    exaone_moe,
    glm,
    glm4_moe,
    glm5_next,
    hy_v3,
    hy_v4,
    inkling,
    kimi_linear,
    longcat_flash,
    mellum,
    mimo_v2_flash,
    minimax_m3,
    nemotron_h,
    openpangu,
    qwen2,
    qwen3_next,
    qwen4_exp,
    step3p5,
    step5,
)
from .architectures.config import Config, activation, listed
from .architectures.rope_config import rope_of_mask
from .array import arrays_in, stand_in
from .dims import free
from .errors import Problem, shorten
from .forward import TRACED_CONTEXT, TRACED_NEW_TOKENS
from .interface import Array, KVCache, Mask, RopeTable, Weights
from .ops import (
    Full,
    Kind,
    Mixed,
    SlidingWindow,
    embed,
    feed_forward,
    linear,
    mixed_streams,
    positions,
    rms_norm,
    rope_table,
    stream_norm,
    unembed,
)
from .ops.rope import Rope
from .ops.streams import reduce_streams
from .trace import Trace
from .weights import ShapeCache, ShapeWeights

Raw = Mapping[str, Any]


class Place(NamedTuple):
    """The keys of the config, and which module of them it is."""

    raw: Raw
    k: int


Layer = Callable[[Array, Weights, KVCache, Any, Array, Place], Array]

MOST = 64


class Module(NamedTuple):
    """A maker's module: its layer, and the names of its tensors, below `place` with the number of the module."""

    layer: Layer
    place: str = "model.layers.{after}"
    token_norm: str = "enorm"
    state_norm: str = "hnorm"
    projection: str = "eh_proj"
    block: str = ""
    last_norm: str = "shared_head.norm"  # none if it is empty
    offset: int = 0
    is_one: bool = False  # one projection and one norm around all layers
    usual: int = 0  # modules of a config that does not say it
    head: str = ""  # a module's own LM head; the model's if it is empty
    embedding: str = ""  # an embedding of the modules' own
    state_first: bool = False  # in what the projection reads


class OverStreams(NamedTuple):
    """A maker's module over residual streams: [T D], [T M D] -> [T M D], and what becomes of them: -> [T D]."""

    layer: Callable[[Array, Array, Weights, KVCache, Any, Array, Place], Array]
    last: Callable[[Array, Weights, Any], Array]
    place: str
    usual: int = 0


def _angles(ids: Array, cache: KVCache, width: int, rope: Rope) -> RopeTable:
    return rope_table(positions(ids, cache), width, rope)


def _latent(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return deepseek_v3.layer(x, w, cache, c, Kind(True), _angles(ids, cache, c.qk_rope_head_dim, c.rope))


def _indexed(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    table = _angles(ids, cache, c.qk_rope_head_dim, c.rope)
    return deepseek_v32.layer(x, w, cache, c, deepseek_v32.IndexedKind(True), table, None)[0]


def _glm(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return glm4_moe.layer(x, w, cache, c, Kind(True), _angles(ids, cache, c.d_head, c.rope))


def _qwen(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    kind = Mixed("attention", "moe" if isinstance(c, qwen3_next.WithExperts) and c.n_experts else "dense")
    return qwen3_next.layer(x, w, cache, c, kind, _angles(ids, cache, c.d_head, c.rope))


def _alice(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    y = rms_norm(x, w, "input_layernorm", c.norm_eps, offset=1)
    x = x + qwen3_next.attention(y, w.at("self_attn"), cache, c, _angles(ids, cache, c.d_head, c.rope))
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps, offset=1)
    return x + alice_ai.mixture_of_experts(y, w.at("mlp"), c)


def _mimo(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return qwen2.layer(x, w, cache, c, c.masks[0], _angles(ids, cache, c.d_head, c.rope))


def _mimo2(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    masks = [kind.mask for kind in c.kinds]
    mask = next((mask for mask in masks if isinstance(mask, SlidingWindow)), masks[0])
    table = _angles(ids, cache, c.d_head, rope_of_mask(c.rope_parameters, mask))
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + mimo_v2_flash.attention(y, w.at("self_attn"), cache, c, mask, table)
    y = rms_norm(x, w, "pre_mlp_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


def _ling3(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    table = _angles(ids, cache, c.qk_rope_head_dim, c.rope)
    return bailing_hybrid.layer(x, w, cache, c, Mixed("attention", "moe"), table)


def _ling2(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return bailing_moe.layer(x, w, cache, c, Kind(True), _angles(ids, cache, c.d_head, c.rope))


def _ernie(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return ernie4_5_moe.layer(x, w, cache, c, Kind(False), _angles(ids, cache, c.d_head, c.rope))


def _exaone(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    kind = Kind(False, c.masks[0])
    return exaone_moe.layer(x, w, cache, c, kind, _angles(ids, cache, c.d_head, c.rope))


def _hunyuan(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return hy_v3.layer(x, w, cache, c, Kind(True), _angles(ids, cache, c.d_head, c.rope))


def _longcat(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    table = _angles(ids, cache, c.qk_rope_head_dim, c.rope)
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + longcat_flash.attention(y, w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("transformer_layer.mlp"), c.d_ff, activation(c.activation))


def _minimax(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    kind = minimax_m3.PickingKind(True, True)
    return minimax_m3.layer(x, w, cache, c, kind, _angles(ids, cache, c.d_head, c.rope))


def _step(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    numbers = at.raw.get("moe_layers_enum", at.raw.get("moe_layer_list"))
    is_numbered = numbers is not None and c.n_layers + at.k in step3p5.enumerated_layers(numbers)
    has_experts = _entry(at, c, "mlp_layer_types", "mtp_mlp_layer_types", "sparse" if is_numbered else "dense")
    layer_type = _entry(at, c, "layer_types", "mtp_layer_types", "" if at.raw.get("layer_types") else "full_attention")
    if not layer_type:
        raise Problem(f"layer_types has no entry for module {at.k + 1} for prediction", "give mtp_layer_types")
    mask, limits = _mask(layer_type, c), [_entry(at, c, name, "", None) or None for name in LIMITS]
    table = _angles(ids, cache, c.d_head, rope_of_mask(c.rope_parameters, mask))
    if not isinstance(c, step5.Step5):
        return step3p5.layer(x, w, cache, c, step3p5.ClampedKind(has_experts == "sparse", mask, *limits), table)
    mask, of_index = c.picked if mask == Full() else mask, _angles(ids, cache, c.index_head_dim, c.index_rope)
    return step5.layer(x, w, cache, c, step3p5.ClampedKind(has_experts == "sparse", mask, *limits), table, of_index)


LIMITS = "swiglu_limits", "swiglu_limits_shared"


def _entry(at: Place, c: Any, name: str, own: str, usual: Any) -> Any:
    """A module's entry in a list by layer: in a list of the modules' own, or behind the model's layers."""
    entries, behind = listed(at.raw.get(own)) or [], listed(at.raw.get(name)) or []
    if at.k < len(entries):
        return entries[at.k]
    return behind[c.n_layers + at.k] if c.n_layers + at.k < len(behind) else usual


def _mask(layer_type: Any, c: Any) -> Mask:
    return SlidingWindow(c.sliding_window) if layer_type == "sliding_attention" else Full()


def _inkling(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    is_near = at.k in (listed(at.raw.get("mtp_local_layer_ids")) or [])
    kind = Kind(False, SlidingWindow(c.sliding_window) if is_near else Full())
    return inkling.layer(x, w, cache, c, kind, positions(ids, cache))


def _glm5(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + glm5_next.attention(y, w.at("self_attn"), cache, c, glm5_next.NextKind(True), None)[0]
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if c.kinds[-1].moe:
        return x + glm5_next.mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), limit=c.gate_limit)


def _hunyuan4(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    table = _angles(ids, cache, c.qk_rope_head_dim, c.rope)
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + hy_v4.attention(y, w.at("self_attn"), cache, c, deepseek_v32.IndexedKind(True), table, None)[0]
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if c.kinds[-1].moe:
        return x + hy_v4.mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


def _dots(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    layer_type = _entry(at, c, "layer_types", "mtp_layer_types", dots3_note.SLIDING)
    kind = dots3_note.Dots3Kind(False, _mask(layer_type, c), layer_type == dots3_note.INDEXED)
    table = _angles(ids, cache, c.sizes(kind).qk_rope_head_dim, c.rope_of(kind))
    return dots3_note.layer(x, w, cache, c, kind, table)


def _kimi(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return kimi_linear.layer(x, w, cache, c, Mixed("attention", "moe"))


def _pangu(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return openpangu.layer(x, w, cache, c, Kind(True), _angles(ids, cache, c.qk_rope_head_dim, c.rope))


def _mellum(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    mask = _mask(_entry(at, c, "", "mtp_layer_types", "sliding_attention"), c)
    kind = Kind(_entry(at, c, "", "mtp_mlp_layer_types", "sparse") == "sparse", mask)
    return mellum.layer(x, w, cache, c, kind, _angles(ids, cache, c.d_head, rope_of_mask(c.rope_parameters, mask)))


def _exaone4(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return exaone4.layer(x, w, cache, c, c.masks[0], _angles(ids, cache, c.d_head, c.rope))


def _glm4(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    return glm.layer(x, w, cache, c, _angles(ids, cache, c.d_head, c.rope))


def _deepseek4(tokens: Array, x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    T, M, D = tokens.shape[0], c.n_streams, c.d_model
    e = linear(rms_norm(tokens, w, "enorm", c.norm_eps), w, "e_proj", D)
    h = linear(rms_norm(x.reshape(T * M, D), w, "hnorm", c.norm_eps), w, "h_proj", D).reshape(T, M, D)
    kind = deepseek_v4.CompressedKind(None, False, False)
    x = h + e[:, None, :]
    return deepseek_v4.layer(x, w, cache, c, kind, _angles(ids, cache, c.qk_rope_head_dim, c.rope("main")), ids)


def _last_of_deepseek4(x: Array, w: Weights, c: Any) -> Array:
    return rms_norm(reduce_streams(x, w.at("hc_head"), c.norm_eps, c.stream_floor), w, "norm", c.norm_eps)


def _qwen4(tokens: Array, x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    T, M, D = tokens.shape[0], c.n_streams, c.d_model
    e = linear(rms_norm(tokens, w, "pre_fc_norm_embedding", c.norm_eps, offset=1), w, "fc_embedding", D)
    h = rms_norm(x.reshape(T, M * D), w, "pre_fc_norm_hidden", c.norm_eps, offset=1)  # one of all streams
    x = linear(h.reshape(T * M, D), w, "fc_hidden", D).reshape(T, M, D) + e[:, None, :]
    table, kind = _angles(ids, cache, c.d_head, c.rope), qwen4_exp.NGramKind("attention", "moe")
    return qwen4_exp.layer(x, w.at(f"layers.{at.k}"), cache, c, kind, table, ids)


def _last_of_qwen4(x: Array, w: Weights, c: Any) -> Array:
    mixer = w.at("hyper_connection_mixer")
    return mixed_streams(stream_norm(x, mixer, "hc_norm", c.norm_eps), mixer, c.stream_rank)


# What the letters of Nemotron's pattern stand for.
LETTERS = {"*": "attention", "E": "moe", "M": "mamba", "-": "mlp"}


def _nemotron(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    parts = parts_of_nemotron(at.raw)
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
MODULES: dict[str, Module | OverStreams] = {
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
        state_first=True,
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
    "deepseek_v4": OverStreams(_deepseek4, _last_of_deepseek4, "mtp.{k}"),
    "qwen4_exp_text": OverStreams(_qwen4, _last_of_qwen4, "mtp", usual=1),
    "nemotron_h": Module(_nemotron, "mtp", "layers.0.enorm", "layers.0.hnorm", "layers.0.eh_proj", last_norm=""),
    **dict.fromkeys(
        ("minimax_m3", "minimax_m3_vl_text"),
        Module(_minimax, "model.mtp.layers.{k}", block="transformer_layer", last_norm="final_layernorm", offset=1),
    ),
    **dict.fromkeys(
        ("step3p5", "step5", "step4"),
        Module(_step, last_norm="transformer.shared_head.norm", offset=1, head="transformer.shared_head.output.weight"),
    ),
    "inkling_text": Module(
        _inkling,
        "model.mtp.layers.{k}",
        "embed_norm",
        "hidden_norm",
        "input_proj",
        "transformer_block",
        "",
        state_first=True,
    ),
    "glm5_next_text": Module(_glm5),
    "hy_v4": Module(_hunyuan4, "model.mtp_layers.{k}", last_norm="final_layernorm"),
    "dots3_note_text": Module(_dots, usual=1, embedding="model.mtp.embed_tokens.weight"),
    "kimi_linear": Module(_kimi),
    **dict.fromkeys(("pangu_ultra_moe", "PanguProMoE"), Module(_pangu)),
    "alice_ai": OF_QWEN._replace(layer=_alice, usual=0),
    "mellum": OF_QWEN._replace(layer=_mellum, offset=0, usual=0),
    "exaone4": OF_QWEN._replace(layer=_exaone4, offset=0, usual=0),
    "glm_ocr_text": Module(_glm4),
}


def modules(model_type: str, raw: Raw, keys: Sequence[str]) -> tuple[str, int, Module | OverStreams | None]:
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


def forward(w: Weights, ids: Array, c: Any, cache: KVCache, module: Module | OverStreams, raw: Raw, n: int) -> Array:
    """Scores for the token after the next, by each module for one token further: [T] -> [1 V]."""
    own = "" if isinstance(module, OverStreams) else module.embedding
    tokens = embed(ids, w if own else w.of_target(), own or "model.embed_tokens.weight", c.vocab_size, c.d_model)
    if isinstance(c, inkling.Inkling):
        tokens = rms_norm(tokens, w.of_target(), "model.embed_tokens.embed_norm", c.norm_eps)
    if isinstance(module, OverStreams):
        return _over_streams(w, tokens, ids, c, cache, module, Place(raw, n))
    scores = x = cache.hidden_states(ids.shape[0], c.d_model)
    for k in range(n):
        inner = w.at(module.place.format(k=k, after=c.n_layers + k))
        names = [name.format(k=k) for name in (module.token_norm, module.state_norm, module.projection, module.block)]
        if k == 0 or not module.is_one:
            x = joined(tokens, x, inner, c, names, module)
        x = module.layer(x, inner.at(names[3]) if names[3] else inner, cache, c, ids, Place(raw, k))
        is_last = k == n - 1 or not module.is_one
        if module.last_norm and is_last:
            x = rms_norm(x, inner, module.last_norm, c.norm_eps, offset=module.offset)
        if isinstance(c, inkling.Inkling) and raw.get("chain_hidden_post_norm"):
            x = rms_norm(x, w, "model.mtp.chain_norm", c.norm_eps)
        if is_last:
            scores = _scores(x, inner if module.head else w.of_target(), c, module.head)
    return scores


def _over_streams(
    w: Weights, tokens: Array, ids: Array, c: Any, cache: KVCache, module: OverStreams, at: Place
) -> Array:
    """The same by modules over residual streams, `at.k` of them."""
    T, M, D = ids.shape[0], c.n_streams, c.d_model
    scores = states = cache.hidden_states(T, M * D)
    x = states.reshape(T, M, D)
    for k in range(at.k):
        inner = w.at(module.place.format(k=k))
        x = module.layer(tokens, x, inner, cache, c, ids, at._replace(k=k))
        scores = _scores(module.last(x, inner, c), w.of_target(), c)
    return scores


def _scores(x: Array, w: Weights, c: Any, head: str = "") -> Array:
    """Scores by a head of the module's own, or by the model's: [T D] -> [1 V]."""
    scores = unembed(x, w, head or "lm_head.weight", c.vocab_size, last=True)
    return scores * (1 / c.head_divisor) if isinstance(c, inkling.Inkling) else scores


def joined(tokens: Array, states: Array, w: Weights, c: Any, names: list[str], module: Module) -> Array:
    """Both vectors of each token, each after its norm, in one of the model's width: [T D], [T D] -> [T D]."""
    both = [
        rms_norm(tokens, w, names[0], c.norm_eps, offset=module.offset),
        rms_norm(states, w, names[1], c.norm_eps, offset=module.offset),
    ]
    return linear(np.concatenate(both[::-1] if module.state_first else both, axis=-1), w, names[2], c.d_model)
