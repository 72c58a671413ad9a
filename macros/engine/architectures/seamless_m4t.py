"""SeamlessM4T's text model: M2M-100's block in an encoder, which reads a text in one language, and in a decoder.

The speech encoder is a tower, whose output the same decoder reads instead of the text encoder's. What makes speech of
the decoder's output, the text-to-unit model and the vocoder, is left out. `t5` explains the two lengths. Sources: arXiv
2308.11596, 2312.05187 (v2); tensor names as transformers.
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import embed, layer_norm, unembed
from ..steps import Role, step
from . import architecture
from .bart import M2M100, NORM_EPS, attention, causal_attention, cross_attention, feed_forward
from .config import Count, Size, activation, config, key
from .tasks import OWN

# Keys of the other parts, which stand among the text model's: the speech encoder's, those of the text-to-unit model
# and of the vocoder.
OF_SPEECH = frozenset(
    """
    adaptor_dropout adaptor_kernel_size adaptor_stride add_adapter conv_depthwise_kernel_size
    feature_projection_input_dim layer_norm_eps left_max_position_embeddings max_source_positions num_adapter_layers
    num_conv_pos_embedding_groups num_conv_pos_embeddings position_embeddings_type right_max_position_embeddings
    rotary_embedding_base speech_encoder_attention_heads speech_encoder_chunk_size speech_encoder_dropout
    speech_encoder_hidden_act speech_encoder_intermediate_size speech_encoder_layerdrop speech_encoder_layers
    speech_encoder_left_chunk_num
    """.split()
)
OF_UNITS = frozenset(
    """
    char_vocab_size lang_embed_dim leaky_relu_slope resblock_dilation_sizes resblock_kernel_sizes sampling_rate
    spkr_embed_dim t2u_bos_token_id t2u_decoder_attention_heads t2u_decoder_ffn_dim t2u_decoder_layers
    t2u_decoder_start_token_id t2u_encoder_attention_heads t2u_encoder_ffn_dim t2u_encoder_layers t2u_eos_token_id
    t2u_max_new_tokens t2u_max_position_embeddings t2u_pad_token_id t2u_variance_pred_dropout
    t2u_variance_predictor_embed_dim t2u_variance_predictor_hidden_dim t2u_variance_predictor_kernel_size
    t2u_vocab_size unit_embed_dim unit_hifi_gan_vocab_size upsample_initial_channel upsample_kernel_sizes
    upsample_rates var_pred_dropout variance_predictor_kernel_size vocoder_num_langs vocoder_num_spkrs vocoder_offset
    """.split()
)


@config
class SeamlessM4T(M2M100):
    """Hyperparameters of SeamlessM4T's text model, in forward order."""

    d_model: Size = key("hidden_size")
    padding: Count = key("pad_token_id", 0)
    n_encoder_layers: Size = key("encoder_layers")
    n_encoder_heads: Size = key("encoder_attention_heads")
    n_decoder_layers: Size = key("decoder_layers", also=("num_hidden_layers",))
    n_heads: Size = key("decoder_attention_heads", also=("num_attention_heads",))

    caveat = M2M100.caveat + (
        " The text-to-unit model and the vocoder, which turn the generated text into speech, are left out."
    )
    ignored = M2M100.ignored | OF_SPEECH | OF_UNITS | {"max_new_tokens"}

    def table(self, stack: str) -> str:
        return "shared.weight" if self.tied else f"text_{stack}.embed_tokens.weight"

    def spare(self, w: Weights) -> None:
        if not self.tied:
            w("shared.weight", self.vocab_size, self.d_model)

    def embedded(self, ids: Array, earlier: int, w: Weights, name: str) -> Array:
        x = embed(ids, w, self.table(name), self.vocab_size, self.d_model)
        return self.placed(x * self.d_model**0.5 if self.scale_embedding else x, earlier, w)

    def finished(self, x: Array, w: Weights, stack: str) -> Array:
        return layer_norm(x, w, f"text_{stack}.layer_norm", NORM_EPS)


HEADS = {"ForTextToText": OWN, "Model": OWN}


@architecture(
    "seamless_m4t",
    "seamless_m4t_v2",
    config=SeamlessM4T,
    heads=HEADS,
    peft=Peft(tied_tables=("text_encoder.embed_tokens", "text_decoder.embed_tokens")),
)
def forward(w: Weights, ids: Array, c: SeamlessM4T, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x, kinds = c.embedded(ids, cache.length, w, "decoder"), ["layer"] * c.n_decoder_layers
    for _, w_layer, kept in w.layers("text_decoder.layers", kinds, cache, "decoder", c.n_encoder_layers):
        x = decoder_layer(x, w_layer, c, kept, read)
    logits = unembed(c.finished(x, w, "decoder"), w, c.head, c.vocab_size, last=last)
    c.spare(w)
    return logits


def encode(source: Array, w: Weights, c: SeamlessM4T, cache: KVCache) -> Array:
    """The encoder's output for a text, each token in the context of all: [M] -> [M D]."""
    x = c.embedded(source, 0, w, "encoder")
    for _, w_layer, _ in w.layers("text_encoder.layers", ["layer"] * c.n_encoder_layers, cache, "encoder"):
        x = encoder_layer(x, w_layer, c)
    return c.finished(x, w, "encoder")


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: SeamlessM4T) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    n, width, act = c.n_encoder_heads, c.d_encoder_head, activation(c.activation)
    x = c.add(x, w, "self_attn_layer_norm", lambda y: attention(y, w.at("self_attn"), n, width))
    return c.add(x, w, "ffn_layer_norm", lambda y: feed_forward(y, w.at("ffn"), c.d_ff_encoder, act))


@step(Role.LAYER)
def decoder_layer(x: Array, w: Weights, c: SeamlessM4T, cache: KVCache, read: Array) -> Array:
    """One block of the decoder: [T D] -> [T D]."""
    n, width, rows, cross = c.n_heads, c.d_head, c.n_source, w.at("cross_attention")
    x = c.add(x, w, "self_attn_layer_norm", lambda y: causal_attention(y, w.at("self_attn"), n, width, cache))
    x = c.add(x, w, "cross_attention_layer_norm", lambda y: cross_attention(y, cross, n, width, cache, read, rows))
    return c.add(x, w, "ffn_layer_norm", lambda y: feed_forward(y, w.at("ffn"), c.d_ff, activation(c.activation)))
