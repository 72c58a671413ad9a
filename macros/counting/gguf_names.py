"""The names and shapes of the tensors that llama.cpp's converter makes from a checkpoint, in one module.

Nearly all tensors of a decoder have the same names in every model, and one counterpart each: two tables hold these, one
for tensors of a layer, one for the others. An architecture of llama.cpp lists the model types that become it, and the
tensors that have other names or are converted differently. For a type without an architecture here, nothing is guessed.

How a counterpart is written: `attn_q` keeps the ending (.weight, .bias); `=ssm_a` is the whole name, `==` that of a
tensor outside of the layers; `a/b` are equal parts of the rows; a bare `-` leaves the tensor out. Before a colon stands
what is done to the tensor first: `turned` swaps the last two axes, `positions` drops rows before the first position,
`halves` cuts the last one, `latent` cuts what writes out keys and values of a latent, `heads of each` queries, keys and
values, `queries and keys` those of an indexer, `gate` a gate from what it gates, `groups` a vector into groups,
`windows` the taps of a convolution, `equal` a matrix into those of the experts; `taps` drops axes of one, `column` adds
one; `stack` is that of all alike, `doubled` with another of its size, `tripled` with two, `padded` to the length of the
vocabulary; `heads` takes the second name where each head has one row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Of a tensor that no layer has: the end of its name, without .weight or .bias.
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

_ATTENTION = {
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
_FEED_FORWARD = {
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
_STATE_SPACE = {
    "in_proj": "ssm_in",
    "conv1d": "taps:ssm_conv1d",
    "x_proj": "ssm_x",
    "dt_proj": "ssm_dt",
    "dt_bias": "=ssm_dt.bias",
    "A_log": "=ssm_a",
    "D": "=ssm_d",
    "out_proj": "ssm_out",
}


def _below(module: str, names: Mapping[str, str]) -> dict[str, str]:
    """Names below a module."""
    return {f"{module}.{name}": theirs for name, theirs in names.items()}


# Of a layer's tensor: its name below the layer, without the number of an expert and without .weight or .bias.
LAYER: dict[str, str] = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "ffn_norm": "ffn_norm",
    "ln_1": "attn_norm",
    "ln_2": "ffn_norm",
    "norm": "attn_norm",
    **_below("self_attn", _ATTENTION),
    **_below("mlp", _FEED_FORWARD),
    **_below("feed_forward", _FEED_FORWARD),
    **_below("block_sparse_moe", _FEED_FORWARD),
    **_below("mamba", _STATE_SPACE),
    **_below("mixer", _STATE_SPACE),
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

_T5_ATTENTION = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_o"}
_T5_FEED_FORWARD = {"wi": "ffn_up", "wi_0": "ffn_gate", "wi_1": "ffn_up", "wo": "ffn_down"}
# Names below a block of its encoder, or of its decoder: the feed-forward layer comes second, or third.
_T5 = {
    "layer.0.layer_norm": "attn_norm",
    **_below("layer.0.SelfAttention", _T5_ATTENTION),
    **_below("layer.1.EncDecAttention", {name: f"cross_{theirs}" for name, theirs in _T5_ATTENTION.items()}),
    **_below("layer.1.DenseReluDense", _T5_FEED_FORWARD),
    **_below("layer.2.DenseReluDense", _T5_FEED_FORWARD),
    "layer.2.layer_norm": "ffn_norm",
}
# An encoder's block, whose norms come after what they belong to; the head for hidden words is left out.
_ENCODER = {
    **_below("attention.self", {"query": "attn_q", "key": "attn_k", "value": "attn_v"}),
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
    **_below("attention", {"q_lin": "attn_q", "k_lin": "attn_k", "v_lin": "attn_v", "out_lin": "attn_output"}),
    "sa_layer_norm": "attn_output_norm",
    "ffn.lin1": "ffn_up",
    "ffn.lin2": "ffn_down",
    "output_layer_norm": "layer_output_norm",
}
_ENCODER_TABLES = {
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
# Its queries, keys and values, which the maker's files have in one matrix.
_ENCODER_IN_ONE = {
    "self_attn.q_proj": "tripled:attn_qkv",
    "self_attn.k_proj": "-",
    "self_attn.v_proj": "-",
    "post_attention_layernorm": "attn_output_norm",
    "post_mlp_layernorm": "layer_output_norm",
}
_DELTA_OF_KEYS = {
    "self_attn.conv1d": "windows:ssm_conv1d_q/ssm_conv1d_k/ssm_conv1d_v",
    "self_attn.forget_gate.dt_bias": "=ssm_dt.bias",
    "self_attn.forget_gate.A_log": "=ssm_a",
    "self_attn.b_proj": "ssm_beta",
    "self_attn.o_norm": "ssm_norm",
}


# The matrices that mix residual streams, in two ways.
_LOW_RANK_STREAMS = {
    "hc_norm": "norm",
    "block_inject_weight": "inject",
    "input_mix_weight_down": "down",
    "input_mix_weight_up": "up",
}
_STREAMS = {f"{half}_hc.{part}": f"hc_{half}_{part}" for half in ("attn", "ffn") for part in ("fn", "base", "scale")}
_MEAN_OF_STREAMS = {f"hc_head.hc_{part}": f"output_hc_{part}" for part in ("fn", "base", "scale")}
_STREAMS_IN_32_BITS = tuple((f"{part}.weight", "F32") for part in ("hc_attn_fn", "hc_ffn_fn", "output_hc_fn"))


def _compressor(owner: str) -> dict[str, str]:
    """Names below a compressor of keys and values."""
    ours = {"kv_proj": "kv", "gate_proj": "gate", "position_bias": "ape", "kv_norm": "norm"}
    return {name: f"{owner}_compressor_{part}" for name, part in ours.items()}


# Norms after attention and after the feed-forward layer, where there are some before them too.
_AFTER = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_STATE_SPACE_2 = {"A_log": "column:=ssm_a", "D": "column:=ssm_d", "norm": "groups:ssm_norm"}
_MAMBA2 = _below("mamba", _STATE_SPACE_2)
# One mixer a layer, of any kind.
_NEMOTRON_H = _below("mixer", _ATTENTION | _FEED_FORWARD | _STATE_SPACE | _STATE_SPACE_2) | {
    "mixer.fc1_latent_proj": "ffn_latent_down",
    "mixer.fc2_latent_proj": "ffn_latent_up",
}
_SHORT_CONVOLUTION = {
    "operator_norm": "attn_norm",
    "conv.conv": "taps:shortconv.conv",
    "conv.in_proj": "shortconv.in_proj",
    "conv.out_proj": "shortconv.out_proj",
}
# What Gemma keeps of each layer's own embedding.
_PER_LAYER = {
    "per_layer_input_gate": "inp_gate",
    "per_layer_projection": "proj",
    "post_per_layer_input_norm": "post_norm",
}
_PER_LAYER_TABLES = {
    "embed_tokens_per_layer": "per_layer_token_embd",
    "per_layer_model_projection": "per_layer_model_proj",
    "per_layer_projection_norm": "per_layer_proj_norm",
}
_GRANITE_MOE = {
    "block_sparse_moe.router.layer": "ffn_gate_inp",
    "block_sparse_moe.router": "ffn_gate_inp",
    "block_sparse_moe.input_linear": "ffn_gate_exps/ffn_up_exps",
    "block_sparse_moe.output_linear": "ffn_down_exps",
    "shared_mlp.input_linear": "ffn_gate_shexp/ffn_up_shexp",
    "shared_mlp.output_linear": "ffn_down_shexp",
}
_GATED_DELTA = _below(
    "linear_attn",
    {
        "in_proj_qkv": "attn_qkv",
        "in_proj_z": "attn_gate",
        "in_proj_qkvz": "gate:attn_qkv/attn_gate",
        "in_proj_ba": "ssm_ba",
        "in_proj_b": "ssm_beta",
        "in_proj_a": "ssm_alpha",
        "conv1d": "taps:ssm_conv1d",
        "A_log": "=ssm_a",
        "dt_bias": "=ssm_dt.bias",
        "norm": "ssm_norm",
        "out_proj": "ssm_out",
    },
) | {"post_attention_layernorm": "post_attention_norm"}


@dataclass(frozen=True)
class Converted:
    """An architecture of llama.cpp: the model types that become it, and the tensors with other names or another
    conversion.

    `kv_heads` is the file's name for the number of key/value heads, if it is not the model's own. `seventy` are the
    numbers of layers at which llama.cpp treats a model of this architecture as one with 70 billion parameters. If it
    `is_by_layer`, the file has the numbers of heads of each layer. `f16` are matrices in 16 bits that others keep in
    32. A model with a tensor whose name contains a key of `becomes` has the architecture of that entry. `name` is what
    llama.cpp calls the architecture, if another entry of the table has its name. `native` are the types of matrices in
    every file of 16 or 32 bits, where the converter keeps the maker's, by the end of the name: the first that fits.
    Parts of names: what is not quantized is `kept`, `no_less` is in Q8_0 at least.
    """

    types: tuple[str, ...]
    layer: Mapping[str, str] = field(default_factory=dict[str, str])
    outside: Mapping[str, str] = field(default_factory=dict[str, str])
    kv_heads: int | None = None
    seventy: int = 0
    is_by_layer: bool = False
    f16: tuple[str, ...] = ()
    becomes: tuple[tuple[str, str], ...] = ()
    name: str = ""
    native: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    no_less: tuple[str, ...] = ()


_LATENT = 1  # key/value heads of a latent, which llama.cpp keeps as one key that all queries share

ARCHITECTURES: dict[str, Converted] = {
    "llama": Converted(("llama", "mistral", "mixtral", "internlm3", "iquestcoder"), seventy=80),
    "afmoe": Converted(
        ("afmoe",),
        {
            "post_attention_layernorm": "post_attention_norm",
            "pre_mlp_layernorm": "ffn_norm",
            "post_mlp_layernorm": "post_ffw_norm",
            "self_attn.gate_proj": "attn_gate",
            "mlp.router.gate": "ffn_gate_inp",
        },
    ),
    "arcee": Converted(("arcee",)),
    "apertus": Converted(
        ("apertus",),
        {
            "attention_layernorm": "attn_norm",
            "feedforward_layernorm": "ffn_norm",
            "mlp.act_fn.alpha_p": "-",
            "mlp.act_fn.alpha_n": "-",
        },
    ),
    "bailingmoe": Converted(
        ("bailing_moe",),
        {"attention.query_key_value": "heads of each:attn_q/attn_k/attn_v", "attention.dense": "attn_output"},
        becomes=(("query_layernorm", "bailingmoe2"),),
    ),
    "bailingmoe2": Converted(
        ("bailing_moe_v2",),
        {
            "attention.query_key_value": "attn_qkv",
            **_below("attention", _ATTENTION),
            "mlp.gate.expert_bias": "=exp_probs_b.bias",
        },
    ),
    "bailingmoe3": Converted(
        ("bailing_hybrid",),
        {
            **_DELTA_OF_KEYS,
            "self_attn.forget_gate.A_log": "column:=ssm_a",
            "self_attn.forget_gate.f_proj": "ssm_f_a",
            "self_attn.g_proj": "heads:ssm_g_a/attn_gate",
        },
        is_by_layer=True,
    ),
    "bert": Converted(("bert", "camembert", "distilbert"), _ENCODER, _ENCODER_TABLES),
    "roberta": Converted(
        ("roberta", "xlm-roberta"),
        _ENCODER,
        _ENCODER_TABLES | {"position_embeddings": "positions:position_embd"},
        name="bert",
    ),
    "nomic-bert": Converted(("nomic_bert",), _ENCODER_IN_ONE, _ENCODER_TABLES),
    "jina-bert-v3": Converted(("jina_embeddings_v3",), _ENCODER_IN_ONE, _ENCODER_TABLES),
    "eurobert": Converted(("eurobert",), {}, {"lm_head": "-"}),
    "modern-bert": Converted(
        ("modernbert",),
        {
            "attn_norm": "attn_norm",
            "attn.Wqkv": "attn_qkv",
            "attn.Wo": "attn_output",
            "mlp_norm": "ffn_norm",
            "mlp.Wi": "ffn_up",
            "mlp.Wo": "ffn_down",
        },
        {
            "tok_embeddings": "token_embd",
            "embeddings.norm": "token_embd_norm",
            "final_norm": "output_norm",
            "head.dense": "-",
            "head.norm": "-",
            "decoder": "-",
        },
    ),
    "bitnet": Converted(("bitnet",), {"mlp.ffn_sub_norm": "ffn_sub_norm", "self_attn.attn_sub_norm": "attn_sub_norm"}),
    "bloom": Converted(("bloom",)),
    "chameleon": Converted(("chameleon",)),
    "chatglm": Converted(("glm", "chatglm"), {}, {"output_layer": "output"}),
    "command-r": Converted(("cohere",)),
    "cohere2": Converted(("cohere2",)),
    "cohere2moe": Converted(("cohere2_moe",)),
    "dbrx": Converted(
        ("dbrx",),
        {
            "norm_attn_norm.norm_1": "attn_norm",
            "norm_attn_norm.norm_2": "attn_output_norm",
            "norm_attn_norm.attn.Wqkv": "attn_qkv",
            "norm_attn_norm.attn.out_proj": "attn_output",
            "ffn.router.layer": "ffn_gate_inp",
            "ffn.experts.mlp.w1": "equal:ffn_gate_exps",
            "ffn.experts.mlp.v1": "equal:ffn_up_exps",
            "ffn.experts.mlp.w2": "equal turned:ffn_down_exps",
        },
        f16=("ffn_gate_inp.weight",),
    ),
    "deci": Converted(("nemotron-nas", "deci"), {"self_attn.linear_attn": "attn_output"}, is_by_layer=True),
    "deepseek": Converted(("deepseek",)),
    "deepseek2-ocr": Converted(("unlimited_ocr_text",)),
    "deepseek2": Converted(("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe_lite", "youtu"), kv_heads=_LATENT),
    "deepseek32": Converted(("deepseek_v32",), kv_heads=_LATENT),
    "deepseek4": Converted(
        ("deepseek_v4",),
        {
            **_STREAMS,
            "self_attn.q_a_norm": "attn_q_a_norm",
            "self_attn.kv_proj": "attn_kv",
            "self_attn.kv_norm": "attn_kv_a_norm",
            "self_attn.o_a_proj": "attn_output_a",
            "self_attn.o_b_proj": "attn_output_b",
            **_below("self_attn.compressor", _compressor("attn")),
            **_below("self_attn.compressor.indexer", _compressor("indexer")),
            "self_attn.compressor.indexer.q_b_proj": "indexer.attn_q_b",
            "self_attn.compressor.indexer.scorer.weights_proj": "indexer.proj",
            "mlp.gate.tid2eid": "ffn_gate_tid2eid",
        },
        _MEAN_OF_STREAMS,
        kv_heads=_LATENT,
        native=(
            ("_exps.weight", "MXFP4"),
            ("tid2eid.weight", "I32"),
            *(
                (f"{part}.weight", "Q8_0")
                for part in ("_shexp", "attn_q_a", "q_b", "attn_kv", "attn_output_a", "attn_output_b")
            ),
            *_STREAMS_IN_32_BITS,
            ("_ape.weight", "F32"),
            (".weight", "BF16"),
        ),
    ),
    "dots1": Converted(("dots1",)),
    "ernie4_5": Converted(("ernie4_5",)),
    "ernie4_5-moe": Converted(("ernie4_5_moe",)),
    "exaone": Converted(("exaone",)),
    "exaone4": Converted(("exaone4",), _AFTER),
    "exaone-moe": Converted(("exaone_moe",)),
    "dream": Converted(("Dream",)),
    "falcon": Converted(("falcon",), {"ln_attn": "attn_norm_2", "ln_mlp": "attn_norm"}),
    "falcon-h1": Converted(("falcon_h1",), {**_MAMBA2, "pre_ff_layernorm": "=ffn_norm"}),
    "gemma": Converted(("gemma",)),
    "gemma2": Converted(("gemma2",), _AFTER),
    "gemma3": Converted(("gemma3_text", "gemma3"), _AFTER),
    "gemma3n": Converted(
        ("gemma3n_text", "gemma3n"),
        {
            **_AFTER,
            **_PER_LAYER,
            "altup.modality_router": "altup_router",
            "altup.router_norm": "altup_router_norm",
            "altup.correction_coefs": "altup_correct_coef",
            "altup.prediction_coefs": "altup_predict_coef",
            "altup.correct_output_scale": "altup_correct_scale",
            "laurel.linear_left": "laurel_l",
            "laurel.linear_right": "laurel_r",
            "laurel.post_laurel_norm": "laurel_post_norm",
        },
        {
            **_PER_LAYER_TABLES,
            "embed_tokens_per_layer": "padded:per_layer_token_embd",
            "altup_projections.0": "stack:altup_proj",
            "altup_unembed_projections.0": "stack:altup_unembd_proj",
            **{f"altup_{which}projections.{n}": "-" for which in ("", "unembed_") for n in (1, 2)},
        },
    ),
    "gemma4": Converted(
        ("gemma4_text", "gemma4", "gemma4_unified_text", "gemma4_unified"),
        {
            **_AFTER,
            **_PER_LAYER,
            "layer_scalar": "=layer_output_scale.weight",
            "pre_feedforward_layernorm_2": "pre_ffw_norm_2",
            "post_feedforward_layernorm_1": "post_ffw_norm_1",
            "post_feedforward_layernorm_2": "post_ffw_norm_2",
            "router.proj": "ffn_gate_inp",
            "router.scale": "=ffn_gate_inp.scale",
            "router.per_expert_scale": "=ffn_down_exps.scale",
            "experts.gate_up_proj": "ffn_gate_up_exps",
            "experts.down_proj": "ffn_down_exps",
        },
        _PER_LAYER_TABLES,
    ),
    "glm4": Converted(
        ("glm4", "glm4v_text", "glm_ocr_text"),
        {"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"},
    ),
    "glm4moe": Converted(
        ("glm4_moe", "solar_open", "glm4v_moe_text"), {"post_attention_layernorm": "post_attention_norm"}
    ),
    "glm5-next": Converted(
        ("glm5_next_text",),
        {
            **_DELTA_OF_KEYS,
            **_STREAMS,
            "self_attn.forget_gate.f_a_proj": "ssm_f_a",
            "self_attn.forget_gate.f_b_proj": "ssm_f_b",
            "self_attn.g_a_proj": "ssm_g_a",
            "self_attn.g_b_proj": "ssm_g_b",
            "self_attn.indexer.index_kpool_compress_gate": "indexer_compressor_gate",
            "self_attn.indexer.index_kpool_compress_ape": "indexer_compressor_ape",
        },
        is_by_layer=True,
        native=(
            *_STREAMS_IN_32_BITS,
            ("indexer_compressor_gate.weight", "F32"),
            ("indexer_compressor_ape.weight", "F32"),
        ),
        kept=tuple(
            """
            hc_ indexer.attn_q_b indexer.attn_k indexer.proj indexer_compressor_gate indexer_compressor_ape
            ssm_f_a.weight ssm_f_b.weight ssm_g_a.weight ssm_g_b.weight ssm_beta.weight attn_kv_a_mqa.weight
            attn_k_b.weight attn_v_b.weight
            """.split()
        ),
        no_less=("attn_q_a", "attn_q_b"),
    ),
    "glm-dsa": Converted(("glm_moe_dsa",), kv_heads=_LATENT),
    "gpt2": Converted(
        ("gpt2",),
        {name: f"turned:{LAYER[name]}" for name in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")},
    ),
    "gptneox": Converted(
        ("gpt_neox",),
        {"attention.query_key_value": "attn_qkv", "attention.dense": "attn_output"},
    ),
    "gpt-oss": Converted(
        ("gpt_oss",),
        {
            "post_attention_layernorm": "post_attention_norm",
            "mlp.experts.gate_up_proj": "turned:ffn_gate_exps/ffn_up_exps",
            "mlp.experts.down_proj": "turned:ffn_down_exps",
            "mlp.experts.gate_up_proj_bias": "halves:=ffn_gate_exps.bias/ffn_up_exps.bias",
            "mlp.experts.down_proj_bias": "=ffn_down_exps.bias",
        },
    ),
    "granite": Converted(
        ("granite", "granitemoehybrid"),
        _GRANITE_MOE,
        becomes=((".mamba.", "granitehybrid"), (".block_sparse_moe.", "granitemoe")),
    ),
    "granitemoe": Converted(
        ("granitemoe", "granitemoeshared"),
        _GRANITE_MOE,
    ),
    "granitehybrid": Converted(
        ("bamba",),
        {**_MAMBA2, **_GRANITE_MOE, "pre_ff_layernorm": "ffn_norm"},
        is_by_layer=True,
    ),
    "granite_swa": Converted(
        ("granite_swa", "granitemoe_swa"),
        _GRANITE_MOE | {"block_sparse_moe.input_linear": "ffn_gate_up_exps", "shared_mlp.input_linear": "ffn_up_shexp"},
    ),
    "hunyuan-dense": Converted(("hunyuan_v1_dense",)),
    "hunyuan-moe": Converted(("hunyuan_v1_moe",)),
    "hunyuan_vl": Converted(("hunyuan_vl_text",)),
    "hy_v3": Converted(("hy_v3",)),
    "internlm2": Converted(
        ("internlm2",),
        {
            "attention_norm": "attn_norm",
            "attention.wqkv": "heads of each:attn_q/attn_k/attn_v",
            "attention.wo": "attn_output",
        },
        {"tok_embeddings": "token_embd", "output": "output"},
    ),
    "hy_v4": Converted(
        ("hy_v4",),
        {**_STREAMS, "self_attn.gate_proj": "attn_gate", "self_attn.sinks": "attn_sinks"},
        _MEAN_OF_STREAMS,
        kv_heads=_LATENT,
        native=_STREAMS_IN_32_BITS,
    ),
    "jais2": Converted(("jais2",), seventy=68),
    "jamba": Converted(
        ("jamba",),
        {
            "pre_ff_layernorm": "ffn_norm",
            "mamba.dt_layernorm": "ssm_dt_norm",
            "mamba.b_layernorm": "ssm_b_norm",
            "mamba.c_layernorm": "ssm_c_norm",
        },
        is_by_layer=True,
    ),
    "kimi-linear": Converted(
        ("kimi_linear",),
        {
            **_DELTA_OF_KEYS,
            "self_attn.forget_gate.f_a_proj": "ssm_f_a",
            "self_attn.forget_gate.f_b_proj": "ssm_f_b",
            "self_attn.g_a_proj": "ssm_g_a",
            "self_attn.g_b_proj": "ssm_g_b",
        },
        is_by_layer=True,
    ),
    "laguna": Converted(("laguna",), {"self_attn.g_proj": "attn_gate"}, is_by_layer=True),
    "lfm2": Converted(("lfm2",), _SHORT_CONVOLUTION, {"embedding_norm": "token_embd_norm"}, is_by_layer=True),
    "lfm2moe": Converted(("lfm2_moe",), _SHORT_CONVOLUTION, {"embedding_norm": "token_embd_norm"}, is_by_layer=True),
    "llama4": Converted(
        ("llama4_text",),
        {
            "feed_forward.experts.gate_up_proj": "turned:ffn_gate_exps/ffn_up_exps",
            "feed_forward.experts.down_proj": "turned:ffn_down_exps",
        },
    ),
    "mamba": Converted(("mamba", "falcon_mamba")),
    "mamba2": Converted(("mamba2",), _below("mixer", _STATE_SPACE_2)),
    "mellum": Converted(("mellum",)),
    "minicpm": Converted(("minicpm",)),
    "minicpm3": Converted(("minicpm3",), {"self_attn.kv_b_proj": "attn_kv_b"}),
    "llada": Converted(
        ("llada",),
        {
            "attn_norm": "attn_norm",
            "q_proj": "attn_q",
            "k_proj": "attn_k",
            "v_proj": "attn_v",
            "attn_out": "attn_output",
            "ff_norm": "ffn_norm",
            "ff_proj": "ffn_gate",
            "up_proj": "ffn_up",
            "ff_out": "ffn_down",
        },
        {"ff_out": "output"},
    ),
    "mimo2": Converted(("mimo_v2_flash", "mimo_v2")),
    "minimax-01": Converted(
        ("minimax", "minimax_text_01", "minimax_m1"),
        {"self_attn.norm": "attn_norm_2", "self_attn.output_gate": "attn_gate"},
    ),
    "minimax-m2": Converted(("minimax_m2",)),
    "minimax-m3": Converted(
        ("minimax_m3", "minimax_m3_vl_text"),
        {
            "mlp.gate_up_proj": "ffn_gate/ffn_up",
            "mlp.shared_experts.gate_up_proj": "ffn_gate_shexp/ffn_up_shexp",
            **{f"self_attn.indexer.{name}": f"indexer.{name}" for name in ("q_proj", "k_proj", "q_norm", "k_norm")},
        },
        native=(("indexer.q_proj.weight", "F32"), ("indexer.k_proj.weight", "F32")),
    ),
    "mistral3": Converted(("ministral3",)),
    "mistral4": Converted(
        ("mistral4",),
        {"mlp.experts.gate_proj": "doubled:ffn_gate_up_exps", "mlp.experts.up_proj": "-"},
        kv_heads=_LATENT,
    ),
    "mpt": Converted(
        ("mpt",),
        {
            "norm_1": "attn_norm",
            "norm_2": "ffn_norm",
            "attn.Wqkv": "attn_qkv",
            "attn.out_proj": "attn_output",
            "ffn.up_proj": "ffn_up",
            "ffn.down_proj": "ffn_down",
        },
    ),
    "nemotron": Converted(("nemotron",)),
    "nemotron_h": Converted(("nemotron_h",), _NEMOTRON_H, is_by_layer=True, becomes=((".experts.", "nemotron_h_moe"),)),
    "nemotron_h_moe": Converted((), _NEMOTRON_H, is_by_layer=True),
    "olmo": Converted(("olmo",), seventy=80),
    "olmo2": Converted(("olmo2", "olmo3"), _AFTER),
    "olmoe": Converted(("olmoe",)),
    "orion": Converted(("orion",)),
    "muse-glimmer": Converted(("muse_glimmer_text",), {**_AFTER, "self_attn.gate_proj": "attn_gate"}),
    "paddleocr": Converted(("paddleocr_vl_text",)),
    "phi2": Converted(("phi",)),
    "phi3": Converted(("phi3",)),
    "phimoe": Converted(("phimoe",)),
    "plamo3": Converted(
        ("plamo3",),
        {
            **_below("mixer", _ATTENTION),
            "pre_mixer_norm": "attn_norm",
            "post_mixer_norm": "=post_attention_norm",
            "pre_mlp_norm": "ffn_norm",
            "post_mlp_norm": "=post_ffw_norm",
        },
    ),
    "qwen2": Converted(("qwen2",), seventy=80),
    "qwen2vl": Converted(("qwen2_vl_text", "qwen2_5_vl_text", "qwen2_5_omni_text")),
    "qwen2moe": Converted(("qwen2_moe",)),
    "qwen3": Converted(("qwen3",)),
    "qwen3moe": Converted(("qwen3_moe",)),
    "qwen3next": Converted(("qwen3_next",), _GATED_DELTA),
    "qwen35": Converted(("qwen3_5", "qwen3_5_text"), _GATED_DELTA),
    "qwen35moe": Converted(("qwen3_5_moe", "qwen3_5_moe_text"), _GATED_DELTA),
    "qwen3vl": Converted(("qwen3_vl", "qwen3_vl_text")),
    "qwen3vlmoe": Converted(("qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3_omni_moe_text")),
    "qwen4exp": Converted(
        ("qwen4_exp_text",),
        {
            **_GATED_DELTA,
            **{
                f"{ours}_hyper_connection.{name}": f"hc_{half}_{part}"
                for ours, half in (("attn", "attn"), ("mlp", "ffn"))
                for name, part in _LOW_RANK_STREAMS.items()
            },
            **_below("ple", {f"norm_{part}": f"ple_norm_{part}" for part in ("key", "query", "conv")}),
            "ple.ple_embedding.ngram_embedding": "==per_layer_token_embd.weight",
            "ple.key_proj": "ple_key",
            "ple.value_proj": "ple_value",
            "ple.conv1d": "taps:ple_conv1d",
            **dict.fromkeys(
                (
                    f"ple.ple_embedding.{name}"
                    for name in ("layer_multipliers", "ngram_heads_vocab_sizes", "ngram_heads_offsets")
                ),
                "-",
            ),
            "self_attn.indexer.index_qk_proj": "queries and keys:indexer.q_proj/indexer.k_proj",
            "self_attn.indexer.q_layernorm": "indexer.q_norm",
            "self_attn.indexer.k_layernorm": "indexer.k_norm",
        },
        {f"hyper_connection_mixer.{name}": f"output_hc_{part}" for name, part in _LOW_RANK_STREAMS.items()},
    ),
    "seed_oss": Converted(("seed_oss",), {"post_attention_layernorm": "post_attention_norm"}),
    "smollm3": Converted(("smollm3",)),
    "stablelm": Converted(("stablelm",)),
    "step35": Converted(("step3p5",), {"self_attn.g_proj": "attn_gate"}, is_by_layer=True),
    "starcoder": Converted(("gpt_bigcode",)),
    "starcoder2": Converted(("starcoder2",)),
    "umt5": Converted(
        ("umt5",),
        {**_T5, "layer.0.SelfAttention.relative_attention_bias": "attn_rel_b"},
        {"encoder.final_layer_norm": "enc.output_norm", "decoder.final_layer_norm": "dec.output_norm"},
        name="t5",
    ),
    "t5": Converted(
        ("t5", "mt5"),
        _T5,
        {
            "encoder.final_layer_norm": "enc.output_norm",
            "decoder.final_layer_norm": "dec.output_norm",
            **{
                f"{whole}coder.block.0.layer.0.SelfAttention.relative_attention_bias": f"{whole}c.blk.0.attn_rel_b"
                for whole in ("en", "de")
            },
        },
    ),
}
# Why a type has no file, where its reason is known: of llama-cpp-python 0.3.36.
NO_CLASS = "llama.cpp's converter has no class for it"
WITHOUT: dict[str, str] = {
    "baichuan": "llama.cpp's converter does not come to an end on it",
    "nanbeige": "its maker’s own llama.cpp converts it, which was not read",
    "rwkv": "llama.cpp converts RWKV 6 and 7, and this is RWKV 4",
    **dict.fromkeys(
        """
        albert alice_ai aria_text axk1 axk2 bailing_moe_v2_5 bart beam bert-generation bert_decoder
        bert_generation_decoder big_bird bigbird_pegasus biogpt blenderbot blenderbot-small blip_text_model codegen
        cohere_compass_text cosmos3_edge_text cpmant ctrl cwm data2vec-text deberta deberta-v2 deepseek_ocr2_text
        diffllama diffusion_gemma_text doge domynedge dory electra emu3_text_model encoder-decoder ernie
        ernie4_5_vl_moe_text evolla flaubert flex_olmo flint fsmt git gpt2_decoder gpt_neo gpt_neox_japanese gptj gte
        helium hyperclovax ibert idefics inkling2_text inkling_text iquestloopcoder jetmoe k2_horizon kolibri1
        kosmos_2_5_text_model kosmos_2_text_model led lfm3 longcat_flash longcat_flash_ngram longt5 m2m_100 marian mbart
        mbart_decoder megatron-bert mimo ministral mistral_large4_text mllama_text_model mobilebert modernbert-decoder
        molmo2_text moshi mpnet muse_spark_text mvp nanochat nemotron_h_puzzle new nllb-moe olmo_hybrid openai-gpt opt
        pangu_ultra_moe PanguEmbedded PanguProMoE param2moe pegasus pegasus_x persimmon phi3_v phi4_multimodal
        pix2struct_text_model plbart pp_formulanet_text prophetnet recurrent_gemma rembert rnj1 roberta-prelayernorm
        roberta_decoder roc_bert roformer sarvam_mla sarvam_moe seamless_m4t seamless_m4t_v2 solar squeezebert step1
        step3_text step4 step5 switch_transformers t5gemma t5gemma2 telechat telechat3 TeleFLM trocr udop vaultgemma
        voxtral_realtime_text whisper xglm xlm xlm-roberta-xl xlnet xlstm xmod zamba zamba2 zaya
        """.split(),
        NO_CLASS,
    ),
}
BY_TYPE: dict[str, str] = {name: architecture for architecture, this in ARCHITECTURES.items() for name in this.types}

# Matrices that the converter leaves in 32 bits, by the end of the name; whatever does not end in .weight is too.
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
