"""XLM and FlauBERT: BERT's block with a network four times as wide, before BERT's names were everyone's.

Its models for hidden words read a text at once; those trained to write (`causal`) see what stands before, and have a
cache. The vectors of languages are added where a text says its own, which none does here. Sources: arXiv 1901.07291
(XLM), 1912.05372 (FlauBERT); tensor names as transformers.
"""

from __future__ import annotations

from typing import Literal

from ..facts import Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import (
    Full,
    attend,
    causal_mask,
    embed,
    embed_positions,
    gelu,
    heads,
    layer_norm,
    linear,
    positions,
    relu,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, config, derived, fixed, key
from .tasks import BASE, OWN


@config
class XLM(Config):
    """Hyperparameters of XLM, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size", also=("n_words",))
    n_positions: Size = key("max_position_embeddings", 512)
    n_languages: Size = key("n_langs", 1)
    has_languages: bool = key("use_lang_emb", True)
    d_model: Size = key("emb_dim", also=("hidden_size",))
    # layers
    n_layers: Size = key("n_layers", also=("num_hidden_layers",))
    norm_eps: Positive = key("layer_norm_eps", 1e-12)
    norm_first: bool = fixed(False)
    is_encoder: Literal[True] = key("is_encoder", True)
    # attention
    n_heads: Size = key("n_heads", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    causal: bool = key("causal", False)
    # feed-forward
    d_ff: Size = derived(lambda c: 4 * c.d_model)
    has_gelu: bool = key("gelu_activation", True)
    # head
    adaptive: Literal[False] = key("asm", False)
    tied: bool = key("tie_word_embeddings", True)

    caveat = (
        "A model that is not causal reads a whole text in one step and generates nothing: figures of a decode step are "
        "for a text of one token. The vectors of languages are stored, and no text here says which it is in."
    )
    ignored = frozenset(
        """asm_cutoffs asm_div_value bos_index embed_init_std end_n_top eos_index id2lang init_std lang2id lang_id
        mask_index mask_token_id max_vocab min_count pad_index same_enc_dec share_inout_emb sinusoidal_embeddings
        start_n_top unk_index use_apex encoder_only decoder_only group_by_size""".split()
    )

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")


@config
class Flaubert(XLM):
    """Hyperparameters of FlauBERT, in forward order."""

    norm_first: bool = key("pre_norm", False)

    ignored = XLM.ignored | {"amp", "layerdrop"}


HEADS = {
    "WithLMHeadModel": OWN,
    "Model": BASE,
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnsweringSimple": Task("question answering", "find_answer"),
}


@architecture("flaubert", config=Flaubert, heads=HEADS, peft=Peft(tied_head="pred_layer.proj"))
@architecture("xlm", config=XLM, heads=HEADS, peft=Peft(tables=("lang_embeddings",)))
def forward(w: Weights, ids: Array, c: XLM, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, or the next one if causal: [T] -> [T V], or [1 V] with `last`."""
    table = "transformer.embeddings.weight"
    x = embed(ids, w, table, c.vocab_size, c.d_model)
    name = "transformer.position_embeddings.weight"
    x = x + embed_positions(positions(ids, cache), w, name, c.n_positions, c.d_model)
    if c.has_languages and c.n_languages > 1:
        w("transformer.lang_embeddings.weight", c.n_languages, c.d_model)
    x = layer_norm(x, w, "transformer.layer_norm_emb", c.norm_eps)
    beside, same = ("layer_norm1", "ffns", "layer_norm2"), {i: i for i in range(c.n_layers)}
    for _, w_layer, kept in w.layers("transformer.attentions", ["layer"] * c.n_layers, cache):
        norm, network, last_norm = (w_layer.beside(f"transformer.{part}", same) for part in beside)
        x = layer(x, w_layer, norm, network, last_norm, kept, c)
    head = table if c.tied else "pred_layer.proj.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="pred_layer.proj.bias")


@step(Role.LAYER)
def layer(x: Array, w: Weights, norm: Weights, network: Weights, last_norm: Weights, cache: KVCache, c: XLM) -> Array:
    """One transformer block, with a norm before or after each half: [T D] -> [T D]."""
    if c.norm_first:
        x = x + attention(layer_norm(x, norm, "", c.norm_eps), w, cache, c)
        return x + feed_forward(layer_norm(x, last_norm, "", c.norm_eps), network, c)
    x = layer_norm(x + attention(x, w, cache, c), norm, "", c.norm_eps)
    return layer_norm(x + feed_forward(x, network, c), last_norm, "", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: XLM) -> Array:
    """Let each token gather information from all tokens, or from those before it: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("q_lin", "k_lin", "v_lin")
    )
    if c.causal:
        k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    allowed = causal_mask(cache, q, k, Full()) if c.causal else None
    return linear(attend(q, k, v, allowed, c.d_head**-0.5), w, "out_lin", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: XLM) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    act = gelu if c.has_gelu else relu
    return linear(act(linear(x, w, "lin1", c.d_ff, bias=True)), w, "lin2", c.d_model, bias=True)
