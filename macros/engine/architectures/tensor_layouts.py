"""How files store the matrices of experts: each under its expert's number, or all in stacks.

EXPERT and PACKED are what a forward pass asks for: gate, up and down matrices of one expert, or the stacks of all.
FUSED is what `architecture` takes: transformers 5's names, and the published tensors that each is cut into.
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
JETMOE_PACKED = ("input_linear.weight", "output_linear.weight")
