"""EuroBERT: Llama's block as an encoder. Each token sees all others, before it and after it.

The text is read at once: nothing is kept for a next step. Source: arXiv 2503.05500; tensor names as published.
"""

from __future__ import annotations

from ..facts import Gguf, Task
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope, attend, embed, heads, linear, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .bert import Bert
from .config import Positive, config, key
from .llama import Llama, feed_forward
from .tasks import BASE, OWN


@config
class EuroBert(Llama):
    """Hyperparameters of EuroBERT, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)

    caveat = Bert.caveat
    ignored = Llama.ignored | {"mask_token_id", "classifier_pooling"}


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
}


@architecture("eurobert", config=EuroBert, gguf=Gguf("eurobert", outside={"lm_head": "-"}), heads=HEADS)
def forward(w: Weights, ids: Array, c: EuroBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, _ in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="lm_head.bias" if c.mlp_bias else None)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: EuroBert, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), c, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: EuroBert, table: RopeTable) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    mixed = attend(apply_rope(q, table), apply_rope(k, table), v, None, c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
