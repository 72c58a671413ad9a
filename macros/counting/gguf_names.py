"""The names and shapes of the tensors that llama.cpp's converter makes from a checkpoint.

Nearly all tensors of a decoder have the same names in every model, and one counterpart each: two tables list these, one
for tensors of a layer, one for the others. A type's `Gguf`, next to its forward pass, lists the tensors that have other
names there or are converted differently; for a type without one, nothing is guessed.

Notation for counterparts: `attn_q` keeps the ending (.weight, .bias); `=ssm_a` is the whole name, `==` the whole name
of a tensor outside of the layers; `a/b` are equal parts of the rows; a bare `-` leaves the tensor out. What is done to
the tensor first comes before a colon: `turned` swaps the last two axes, `positions` drops rows before the first
position, `halves` cuts the last one, `latent` cuts the matrix that expands a latent into keys and values, `heads of
each` cuts queries, keys and values apart, `queries and keys` those of an indexer, `gate` a gate from the values it
gates, `groups` a vector into groups, `windows` the taps of a convolution, `equal` a matrix into those of the experts;
`taps` drops axes of one, `column` adds one; `stack` stacks all tensors of the same kind, `doubled` joins it with
another of its size, `tripled` with two, `padded` pads it to the length of the vocabulary; `heads` takes the second name
where each head has one row.
"""

from __future__ import annotations

from ..engine.architectures.gguf_tables import ATTENTION, FEED_FORWARD, STATE_SPACE, below

# Tensors outside of layers: the end of the name, without .weight or .bias.
OUTSIDE: dict[str, str] = {
    "embed_tokens": "token_embd",
    "wte": "token_embd",
    "word_embeddings": "token_embd",
    "embeddings": "token_embd",
    "embed_in": "token_embd",
    "shared": "token_embd",
    "word_embeddings_layernorm": "token_embd_norm",
    "wpe": "position_embd",
    "norm": "output_norm",
    "ln_f": "output_norm",
    "norm_f": "output_norm",
    "final_layernorm": "output_norm",
    "final_layer_norm": "output_norm",
    "lm_head": "output",
}

# Tensors of a layer: the name below the layer, without the number of an expert and without .weight or .bias.
LAYER: dict[str, str] = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "ffn_norm": "ffn_norm",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "norm": "attn_norm",
    **below("self_attn", ATTENTION),
    **below("mlp", FEED_FORWARD),
    **below("feed_forward", FEED_FORWARD),
    **below("block_sparse_moe", FEED_FORWARD),
    **below("mamba", STATE_SPACE),
    **below("mixer", STATE_SPACE),
    "self_attention.query_key_value": "attn_qkv",
    "self_attention.dense": "attn_output",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    "mlp.fc1": "ffn_up",
    "mlp.fc2": "ffn_down",
    "mlp.dense_h_to_4h": "ffn_up",
    "mlp.dense_4h_to_h": "ffn_down",
}

# Matrices that the converter leaves in 32 bits, by the end of the name; so is any tensor whose name does not end in
# .weight.
IN_32_BITS = (
    "ffn_gate_inp.weight",
    "ffn_gate_inp_shexp.weight",
    "position_embd.weight",
    "token_types.weight",
    "ssm_conv1d.weight",
    *(f"ssm_conv1d_{part}.weight" for part in "qkv"),
    "shortconv.conv.weight",
    "indexer.proj.weight",
    "altup_correct_coef.weight",
    "altup_predict_coef.weight",
)
