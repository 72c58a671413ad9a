"""Multi-token prediction (MTP): a model's additional modules that draft the tokens after its next one.

A module reads the last hidden state next to the embedding of the token after it, through one layer of the model's own
kind. Embedding and LM head are the model's, unless a file has separate ones for a module. Sources: arXiv 2412.19437,
section 2.2; vLLM 0.33, model_executor/models, deepseek_mtp.py, glm4_moe_mtp.py, qwen3_next_mtp.py, qwen3_5_mtp.py,
mimo_mtp.py, mimo_v2_mtp.py, bailing_moe_mtp.py, ernie_mtp.py, exaone_moe_mtp.py, hy_v3_mtp.py, longcat_flash_mtp.py,
nemotron_h_mtp.py, step3p5_mtp.py and openpangu_mtp.py, and models/deepseek_v4, deepseek_v41, minimax_m3, inkling,
glm5next, hy_v4, qwen4_exp, dots3_note, kimi_k3 and step5; inclusionAI/Ling-V2, models/modeling_bailing_moe_v2.py;
transformers 5.24, modeling_layers.py, `MtpModel`; for Alice AI pull request 57963 of vLLM,
model_executor/models/alice_ai_mtp.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .architectures.config import Config
from .architectures.predicted import Module, OfBlock, OverStreams, Place
from .array import arrays_in, stand_in
from .dims import Dim
from .errors import Problem, shorten
from .forward import TRACED_CONTEXT, TRACED_NEW_TOKENS
from .interface import Array, KVCache, Weights
from .ops import embed, linear, rms_norm, unembed
from .trace import Trace
from .weights import ShapeCache, ShapeWeights

Raw = Mapping[str, Any]
Modules = Module | OverStreams | OfBlock

MOST = 64  # modules


def number_of(module: Modules | None, raw: Raw, keys: Sequence[str]) -> tuple[str, int]:
    """The key with the number of modules or layers, and that number. Raises `Problem` for an impossible one."""
    key = next((name for name in keys if raw.get(name)), "")
    n: object = raw[key] if key else module.usual if module and not any(name in raw for name in keys) else 0
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= MOST:
        raise Problem(f"{key} = {shorten(n)}: expected a number of modules", f"give 0 to {MOST}")
    return key or keys[0], n


def trace(module: Modules, c: Config, raw: Raw, n: int) -> Trace:
    """Run the modules on shapes one after the other, each with its own cache and the model's embedding and head."""
    run = Trace()
    new, context = Dim(TRACED_NEW_TOKENS, "T"), Dim(TRACED_CONTEXT, "S")
    run.symbols |= c.symbols
    ids = run.input((new,), np.int64, "token ids")
    weights, cache = ShapeWeights(run), ShapeCache(run, context - new, context)
    scores = forward(weights, stand_in(ids), c, cache, module, raw, n)
    run.root.inputs, run.root.outputs = [ids], arrays_in([scores])
    return run


def forward(w: Weights, ids: Array, c: Any, cache: KVCache, module: Modules, raw: Raw, n: int) -> Array:
    """Scores for the token after the next; each module looks one token further: [T] -> [1 V]."""
    if isinstance(module, OfBlock):
        return module.scores(ids, w, cache, c, raw, n)
    own = "" if isinstance(module, OverStreams) else module.embedding
    tokens = embed(ids, w if own else w.of_target(), own or "model.embed_tokens.weight", c.vocab_size, c.d_model)
    if isinstance(module, OverStreams):
        return _over_streams(w, tokens, ids, c, cache, module, Place(raw, n))
    if module.embed_norm:
        tokens = rms_norm(tokens, w.of_target(), module.embed_norm, c.norm_eps)
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
        if module.chain_norm and raw.get("chain_hidden_post_norm"):
            x = rms_norm(x, w, module.chain_norm, c.norm_eps)
        if is_last:
            scores = _scores(x, inner if module.head else w.of_target(), c, module.head)
            scores = scores * (1 / getattr(c, module.divisor)) if module.divisor else scores
    return scores


def _over_streams(
    w: Weights, tokens: Array, ids: Array, c: Any, cache: KVCache, module: OverStreams, at: Place
) -> Array:
    """Like `forward`, with modules over residual streams, `at.k` of them."""
    T, M, D = ids.shape[0], c.n_streams, c.d_model
    scores = states = cache.hidden_states(T, M * D)
    x = states.reshape(T, M, D)
    for k in range(at.k):
        inner = w.at(module.place.format(k=k))
        x = module.layer(tokens, x, inner, cache, c, ids, at._replace(k=k))
        scores = _scores(module.last(x, inner, c), w.of_target(), c)
    return scores


def _scores(x: Array, w: Weights, c: Any, head: str = "") -> Array:
    """Scores from the module's own head, or from the model's: [T D] -> [1 V]."""
    return unembed(x, w, head or "lm_head.weight", c.vocab_size, last=True)


def joined(tokens: Array, states: Array, w: Weights, c: Any, names: list[str], module: Module) -> Array:
    """Combine both vectors of each token, each after its norm, into one of the model's width: [T D], [T D] -> [T D]."""
    both = [
        rms_norm(tokens, w, names[0], c.norm_eps, offset=module.offset),
        rms_norm(states, w, names[1], c.norm_eps, offset=module.offset),
    ]
    return linear(np.concatenate(both[::-1] if module.state_first else both, axis=-1), w, names[2], c.d_model)
