"""Names in GGUF files that several types have alike: ours below a layer, and llama.cpp's (`counting.gguf_names`)."""

from __future__ import annotations

from collections.abc import Mapping

from ..facts import Gguf


def below(module: str, names: Mapping[str, str]) -> dict[str, str]:
    """Names below a module."""
    return {f"{module}.{name}": theirs for name, theirs in names.items()}


ATTENTION = {
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "out_proj": "attn_output",
    "dense": "attn_output",
    "qkv_proj": "attn_qkv",
    "q_norm": "attn_q_norm",
    "k_norm": "attn_k_norm",
    "q_layernorm": "attn_q_norm",
    "k_layernorm": "attn_k_norm",
    "query_layernorm": "attn_q_norm",
    "key_layernorm": "attn_k_norm",
    "sinks": "attn_sinks",
    "q_a_proj": "attn_q_a",
    "q_a_layernorm": "attn_q_a_norm",
    "q_b_proj": "attn_q_b",
    "kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "kv_a_layernorm": "attn_kv_a_norm",
    "kv_b_proj": "latent:attn_k_b/attn_v_b",
    "indexer.k_norm": "indexer.k_norm",
    "indexer.weights_proj": "indexer.proj",
    "indexer.wk": "indexer.attn_k",
    "indexer.wq_b": "indexer.attn_q_b",
}
FEED_FORWARD = {
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
    "gate_up_proj": "ffn_up",
    "gate": "ffn_gate_inp",
    "gate.wg": "ffn_gate_inp",
    "router": "ffn_gate_inp",
    "gate.e_score_correction_bias": "=exp_probs_b.bias",
    "e_score_correction_bias": "=exp_probs_b.bias",
    "gate.moe_statics.e_score_correction_bias": "=exp_probs_b.bias",
    "expert_bias": "=exp_probs_b.bias",
    "experts.gate_proj": "ffn_gate_exps",
    "experts.up_proj": "ffn_up_exps",
    "experts.down_proj": "ffn_down_exps",
    "experts.gate_up_proj": "ffn_gate_exps/ffn_up_exps",
    "experts.w1": "ffn_gate_exps",
    "experts.w2": "ffn_down_exps",
    "experts.w3": "ffn_up_exps",
    "w1": "ffn_gate",
    "w2": "ffn_down",
    "w3": "ffn_up",
    "shared_expert_gate": "ffn_gate_inp_shexp",
} | {
    f"{shared}.{ours}": f"{theirs}_shexp"
    for shared in ("shared_expert", "shared_experts", "shared_mlp")
    for ours, theirs in (("gate_proj", "ffn_gate"), ("up_proj", "ffn_up"), ("down_proj", "ffn_down"))
}
STATE_SPACE = {
    "in_proj": "ssm_in",
    "conv1d": "taps:ssm_conv1d",
    "x_proj": "ssm_x",
    "dt_proj": "ssm_dt",
    "dt_bias": "=ssm_dt.bias",
    "A_log": "=ssm_a",
    "D": "=ssm_d",
    "out_proj": "ssm_out",
}
STATE_SPACE_2 = {"A_log": "column:=ssm_a", "D": "column:=ssm_d", "norm": "groups:ssm_norm"}
MAMBA2 = below("mamba", STATE_SPACE_2)
# Norms after attention and after the feed-forward layer, where there are some before them too.
AFTER = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
# An encoder's block, whose norms come after what they belong to; the head for hidden words is left out.
ENCODER = {
    **below("attention.self", {"query": "attn_q", "key": "attn_k", "value": "attn_v"}),
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
    **below("attention", {"q_lin": "attn_q", "k_lin": "attn_k", "v_lin": "attn_v", "out_lin": "attn_output"}),
    "sa_layer_norm": "attn_output_norm",
    "ffn.lin1": "ffn_up",
    "ffn.lin2": "ffn_down",
    "output_layer_norm": "layer_output_norm",
}
ENCODER_TABLES = {
    "position_embeddings": "position_embd",
    "token_type_embeddings": "token_types",
    "LayerNorm": "token_embd_norm",
    **dict.fromkeys(
        """
        cls.predictions.transform.dense cls.predictions.transform.LayerNorm cls.predictions.transform.layer_norm
        cls.predictions lm_head.dense lm_head.layer_norm lm_head vocab_transform vocab_layer_norm vocab_projector
        """.split(),
        "-",
    ),
}
DELTA_OF_KEYS = {
    "self_attn.conv1d": "windows:ssm_conv1d_q/ssm_conv1d_k/ssm_conv1d_v",
    "self_attn.forget_gate.dt_bias": "=ssm_dt.bias",
    "self_attn.forget_gate.A_log": "=ssm_a",
    "self_attn.b_proj": "ssm_beta",
    "self_attn.o_norm": "ssm_norm",
}
STREAMS = {f"{half}_hc.{part}": f"hc_{half}_{part}" for half in ("attn", "ffn") for part in ("fn", "base", "scale")}
MEAN_OF_STREAMS = {f"hc_head.hc_{part}": f"output_hc_{part}" for part in ("fn", "base", "scale")}
STREAMS_IN_32_BITS = tuple((f"{part}.weight", "F32") for part in ("hc_attn_fn", "hc_ffn_fn", "output_hc_fn"))
GRANITE_MOE = {
    "block_sparse_moe.router.layer": "ffn_gate_inp",
    "block_sparse_moe.router": "ffn_gate_inp",
    "block_sparse_moe.input_linear": "ffn_gate_exps/ffn_up_exps",
    "block_sparse_moe.output_linear": "ffn_down_exps",
    "shared_mlp.input_linear": "ffn_gate_shexp/ffn_up_shexp",
    "shared_mlp.output_linear": "ffn_down_shexp",
}
# Gemma's per-layer embeddings.
PER_LAYER = {
    "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
}
PER_LAYER_TABLES = {
    "embed_tokens_per_layer": "per_layer_token_embd",
    "per_layer_model_projection": "per_layer_model_proj",
    "per_layer_projection_norm": "per_layer_proj_norm",
}

GRANITE_HYBRID = Gguf("granitehybrid", {**MAMBA2, **GRANITE_MOE, "pre_ff_layernorm": "ffn_norm"}, is_by_layer=True)
