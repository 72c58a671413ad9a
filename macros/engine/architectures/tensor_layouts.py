"""The layouts of the matrices of experts in files: each under its expert's number, or all in stacks.

EXPERT and PACKED are the requests of a forward pass: gate, up and down matrices of one expert, or the stacks of all.
FUSED is the argument of `architecture`: transformers 5's names, and the published tensors that each is cut into.
BESIDE_ENCODER are the spellings of a decoder's names in a file that has its encoder, too.
"""

from __future__ import annotations

EXPERT = ("experts.{e}.gate_proj.weight", "experts.{e}.up_proj.weight", "experts.{e}.down_proj.weight")
PACKED = ("experts.gate_up_proj", "experts.down_proj")
FUSED = {
    "mlp.experts.gate_up_proj": ("mlp.experts.{e}.gate_proj.weight", "mlp.experts.{e}.up_proj.weight"),
    "mlp.experts.down_proj": ("mlp.experts.{e}.down_proj.weight",),
}

MIXTRAL_EXPERT = ("experts.{e}.w1.weight", "experts.{e}.w3.weight", "experts.{e}.w2.weight")
MIXTRAL_EXPERTS_FUSED = {
    "mlp.experts.gate_up_proj": ("block_sparse_moe.experts.{e}.w1.weight", "block_sparse_moe.experts.{e}.w3.weight"),
    "mlp.experts.down_proj": ("block_sparse_moe.experts.{e}.w2.weight",),
}
MIXTRAL_FUSED = MIXTRAL_EXPERTS_FUSED | {"mlp.gate.weight": ("block_sparse_moe.gate.weight",)}

JAMBA_FUSED = {
    "feed_forward.experts.gate_up_proj": (
        "feed_forward.experts.{e}.gate_proj.weight",
        "feed_forward.experts.{e}.up_proj.weight",
    ),
    "feed_forward.experts.down_proj": ("feed_forward.experts.{e}.down_proj.weight",),
}

GRANITE_FUSED = {
    "block_sparse_moe.router.weight": ("block_sparse_moe.router.layer.weight",),
    "block_sparse_moe.experts.gate_up_proj": ("block_sparse_moe.input_linear.weight",),
    "block_sparse_moe.experts.down_proj": ("block_sparse_moe.output_linear.weight",),
}
# The three parts of a convolution that some files have one by one, and Kimi Delta Attention's gate, which has a name of
# its own in transformers.
CONVOLUTIONS = {"self_attn.conv1d.weight": tuple(f"self_attn.{part}_conv1d.weight" for part in "qkv")}
FORGET_GATE = tuple(
    (f"self_attn.{name}", f"self_attn.forget_gate.{name}")
    for name in ("f_a_proj.", "f_b_proj.", "f_proj.", "dt_bias", "A_log")
)
# Makers' names for the weights of residual streams.
HYPER_CONNECTIONS = ((".hc_attn_", ".attn_hc."), (".hc_ffn_", ".ffn_hc."))
# Llama's own names of the three matrices.
NUMBERED = ((".w1.", ".gate_proj."), (".w3.", ".up_proj."), (".w2.", ".down_proj."))

# Mistral's own names, which Meta's are, too. Its matrices of queries and keys are other ones: the rows that turn
# together stand side by side. PAIRS says which of ours is made of which.
MISTRAL_NAMES = (
    ("^tok_embeddings.", "model.embed_tokens."),
    ("^layers.", "model.layers."),
    ("^norm.", "model.norm."),
    ("^output.", "lm_head."),
    (".attention_norm.", ".input_layernorm."),
    (".attention.wq.", ".self_attn.q_pairs."),
    (".attention.wk.", ".self_attn.k_pairs."),
    (".attention.wv.", ".self_attn.v_proj."),
    (".attention.wo.", ".self_attn.o_proj."),
    (".ffn_norm.", ".post_attention_layernorm."),
    (".feed_forward.", ".mlp."),
    *NUMBERED,
)
PAIRS = {f"self_attn.{one}_proj.weight": f"self_attn.{one}_pairs.weight" for one in "qk"}

# EXAONE 3's own names, which are GPT-2's but for the matrices.
EXAONE_NAMES = (
    ("^transformer.wte.", "model.embed_tokens."),
    ("^transformer.h.", "model.layers."),
    ("^transformer.ln_f.", "model.norm."),
    (".ln_1.", ".input_layernorm."),
    (".ln_2.", ".post_attention_layernorm."),
    (".attn.attention.out_proj.", ".self_attn.o_proj."),
    (".attn.attention.", ".self_attn."),
    (".mlp.c_fc_0.", ".mlp.gate_proj."),
    (".mlp.c_fc_1.", ".mlp.up_proj."),
    (".mlp.c_proj.", ".mlp.down_proj."),
)

# Inkling's own names. Its gate and up matrices take turns, row by row.
INKLING_NAMES = (
    ("^model.llm.unembed.", "lm_head."),
    ("^model.llm.", "model."),
    ("^model.embed.", "model.embed_tokens."),
    ("^model.embed_norm.", "model.embed_tokens.embed_norm."),
    (".attn.", ".self_attn."),
    ("self_attn.wq_du.", "self_attn.q_proj."),
    ("self_attn.wk_dv.", "self_attn.k_proj."),
    ("self_attn.wv_dv.", "self_attn.v_proj."),
    ("self_attn.wr_du.", "self_attn.r_proj."),
    ("self_attn.wo_ud.", "self_attn.o_proj."),
    (".attn_norm.", ".input_layernorm."),
    (".mlp_norm.", ".post_attention_layernorm."),
    ("mlp.experts.w2_weight", "mlp.experts.down_proj"),
    ("mlp.gate.bias", "mlp.gate.e_score_correction_bias"),
)
INKLING_EXPERTS = {
    "mlp.experts.w13_weight": ("mlp.experts.{e}.gate_proj.weight", "mlp.experts.{e}.up_proj.weight"),
}

JETMOE_PACKED = ("input_linear.weight", "output_linear.weight")

BESIDE_ENCODER = (("^decoder.", ""),)
