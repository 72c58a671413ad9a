"""The closed forms of the blocks with a state of fixed size (in some layers or in all), and random configs of them.

Short convolutions, delta rules, Mamba's scans and the gated recurrence keep what does not grow with the text, so only
the layers with attention have a cache. JetMoE stands here as well: its attention is a mixture, too.
"""

from __future__ import annotations

from closed_forms import (
    BOOL,
    MOE,
    Form,
    attention,
    blocks,
    both,
    delta_net,
    ends,
    fixed,
    flags,
    gated,
    latent,
    mamba2,
    sizes,
)


def attends(c: dict) -> list[bool]:
    """Which layers have attention, by `layer_types` or by the list of their indices."""
    if c.get("layer_types"):
        return [kind not in ("conv", "linear_attention") for kind in c["layer_types"]]
    return [i in c["full_attn_idxs"] for i in range(c["num_hidden_layers"])]


# --- short convolutions -----------------------------------------------------------------------------------------------


def short_convolution(c: dict, D: int) -> int:
    """Three vectors from one, a convolution over a few tokens, one matrix back."""
    return 4 * D * D + D * c.get("conv_L_cache", 3) + (5 * D if c.get("conv_bias") else 0)


def adjusted(c: dict) -> int:
    """LFM2's width of the feed-forward part: two thirds, times a factor, up to the next multiple."""
    F = c.get("block_ff_dim") or c["intermediate_size"]
    if not c.get("block_auto_adjust_ff_dim", True):
        return F
    step = c.get("block_multiple_of", 256)
    return step * -(-int(c.get("block_ffn_dim_multiplier", 1.0) * int(2 * F / 3)) // step)


def lfm2(c):
    D, L, N, K, H, _ = sizes(c)
    full = sum(attends(c))
    total = full * (attention(D, N, K, H) + 2 * H) + (L - full) * short_convolution(c, D)
    total += L * (gated(D, adjusted(c)) + 2 * D) + D
    return Form(total + ends({"tie_word_embeddings": c.get("tie_embedding", True), **c}, True), 2 * full * K * H)


def lfm2_moe(c):
    D, L, N, K, H, F = sizes(c)
    full, E, one = sum(attends(c)), c["num_experts"], gated(D, c["moe_intermediate_size"])
    moe = L - min(L, c.get("num_dense_layers", 2))
    total = full * (attention(D, N, K, H) + 2 * H) + (L - full) * short_convolution(c, D)
    total += moe * E * (one + D) + (L - moe) * gated(D, F) + L * 2 * D + D
    return Form(total + ends(c, True), 2 * full * K * H, moe * one, (E, c["num_experts_per_tok"]))


def lfm3(c):
    D, L, N, K, H, F = sizes(c)
    H = c.get("head_dim", 128)
    full = sum(attends(c)) if c.get("layer_types") else sum(1 for i in range(1, L) if i % 2 == 0)
    b, norms = c.get("attention_bias", False), 4 if c.get("use_sandwich_norm", True) else 2
    gate = D * N if c.get("use_attention_gate", True) else 0
    total = full * (attention(D, N, K, H, b, b) + 2 * H + gate)
    total += (L - full) * short_convolution({"conv_L_cache": 7, **c}, D)
    return Form(total + L * (gated(D, F) + norms * D) + D + ends(c, True), 2 * full * K * H)


def rwkv7(c):
    """Four square matrices, four pairs of narrow ones (a layer's first has no share of values), and vectors."""
    D, L = c["hidden_size"], c["num_hidden_layers"]
    F = c.get("intermediate_size") or 32 * -(-int(D * c.get("hidden_ratio", 4)) // 32)
    norm = 2 * D if c.get("norm_bias", True) else D
    pairs = 2 * D * (c["decay_low_rank_dim"] + c["a_low_rank_dim"] + c["gate_low_rank_dim"]) + 2 * D
    layer = 4 * D * D + pairs + 6 * D + 3 * D + 2 * D + D + 2 * D * F + 2 * norm
    mixed = (L - 1) * (2 * D * c["v_low_rank_dim"] + D)
    first = norm if c.get("norm_first", True) else 0
    return Form(ends(c, False) + first + L * layer + mixed + norm, 0)


# --- delta rules ------------------------------------------------------------------------------------------------------


def kimi_delta(D: int, heads: int, H: int, kernel: int, gates: int) -> int:
    """Kimi's delta attention: q, k and v through convolutions, a decay per channel, two gates with so many parameters
    together."""
    inner = heads * H
    return 4 * D * inner + 3 * inner * kernel + D * heads + heads + inner + H + gates


def with_delta(linear, more=lambda c: 0):
    """Delta attention, multi-head latent attention in the layers that have it in full, experts; never tied.

    Kimi K3's experts are narrower than the rest, and two trained queries a layer read the depth.
    """

    def form(c: dict) -> Form:
        D, L = c["hidden_size"], c["num_hidden_layers"]
        layers, full = linear(c)
        narrow = c.get("routed_expert_hidden_size")
        E, one = c["num_experts"], gated(narrow or D, c["moe_intermediate_size"])
        k = c.get("num_experts_per_token") or c["num_experts_per_tok"]
        moe = L - min(L, c.get("first_k_dense_replace", 1))
        part = E * (one + D) + c.get("num_shared_experts", 1) * gated(D, c["moe_intermediate_size"])
        part += narrow * (2 * D + c.get("latent_moe_use_norm", False)) if narrow else 0
        width = c["kv_lora_rank"] + c["qk_rope_head_dim"]
        total = full * (latent(c) + more(c)) + (L - full) * layers + L * 2 * D
        total += moe * part + (L - moe) * gated(D, c["intermediate_size"]) + D
        total += 2 * D * (2 * L + 1) if c.get("attn_res_block_size") else 0
        return Form(total + 2 * c["vocab_size"] * D, full * width, moe * one, (E, k))

    return form


def kimi_layers(c: dict) -> tuple[int, int]:
    """Parameters of one delta layer with its low-rank gates, or one of full rank, and how many layers have full
    attention."""
    D, linear = c["hidden_size"], c["linear_attn_config"]
    heads, H = linear["num_heads"], linear["head_dim"]
    low = D * H + H * heads * H
    gates = low + (D * heads * H if linear.get("use_full_rank_gate") else low)
    return kimi_delta(D, heads, H, linear["short_conv_kernel_size"], gates), len(linear["full_attn_layers"])


def ling_layers(c: dict) -> tuple[int, int]:
    """The same with gates of full rank, and full attention where a group ends."""
    D, N, H = c["hidden_size"], c["num_attention_heads"], c["head_dim"]
    return kimi_delta(D, N, H, c["short_conv_kernel_size"], 2 * D * N * H), c["num_hidden_layers"] // c[
        "layer_group_size"
    ]


def ling_gate(c: dict) -> int:
    """A gate for each head, for each of its numbers, or none."""
    kind = c.get("gated_attention_proj_granularity_type", "head_wise")
    outputs = {None: 0, "head_wise": 1, "element_wise": c["v_head_dim"]}[kind]
    return c["hidden_size"] * c["num_attention_heads"] * outputs


def lightning_layers(c: dict) -> tuple[int, int]:
    """Lightning attention with a gate, a norm of groups, and perhaps norms of queries and keys; full where a group
    ends."""
    D, wide, H = c["hidden_size"], c["num_attention_heads"] * c["head_dim"], c["head_dim"]
    own = 5 * D * wide + wide + 2 * H * c.get("use_qk_norm", False)
    return own, c["num_hidden_layers"] // c["layer_group_size"]


def ring_linear(c):
    """Lightning attention, and Ling 2's where a group ends and after the last whole group."""
    D, L, N, K, H, F = sizes(c)
    size, E, wide = c["layer_group_size"], c["num_experts"], N * H
    full, norms = L // size + L % size, 2 * H * c.get("use_qk_norm", True)
    one, moe = gated(D, c["moe_intermediate_size"]), L - min(L, c["first_k_dense_replace"])
    shared = gated(
        D, c.get("moe_shared_expert_intermediate_size", c["moe_intermediate_size"]) * c["num_shared_experts"]
    )
    mixers = full * attention(D, N, K, H) + (L - full) * (5 * D * wide + wide) + L * norms
    feed = moe * (E * (one + D) + shared) + (L - moe) * gated(D, F)
    total = mixers + feed + L * 2 * D + D + ends(c, False)
    return Form(total, 2 * full * K * H, moe * one, (E, c["num_experts_per_tok"]))


def alice(c):
    """Delta attention with low-rank gates, or gated attention; experts everywhere, and a query of the depth for each
    part."""
    D, L, N, K, H, _ = sizes(c)
    full = c["layer_types"].count("full_attention") if "layer_types" in c else L // c["full_attention_interval"]
    heads, h, E, k = c["linear_num_key_heads"], c["linear_key_head_dim"], c["num_experts"], c["num_experts_per_tok"]
    delta = kimi_delta(D, heads, h, c["linear_conv_kernel_dim"], 2 * (D * h + h * heads * h))
    one = gated(D, c["moe_intermediate_size"])
    layer = E * (one + D) + gated(D, c["shared_expert_intermediate_size"]) + D + 2 * D + 2 * 2 * D
    mixers = full * (attention(D, 2 * N, K, H) - N * H * D + 2 * H) + (L - full) * delta
    return Form(2 * c["vocab_size"] * D + L * layer + mixers + D, 2 * full * K * H, L * one, (E, k))


def olmo_hybrid(c):
    D, L, N, K, H, F = sizes(c)
    full, b = sum(attends(c)), c.get("attention_bias", False)
    total = (
        full * (attention(D, N, K, H, b, b) + (N + K) * H) + (L - full) * delta_net(c) + L * (gated(D, F) + 2 * D) + D
    )
    return Form(total + ends(c, False), 2 * full * K * H)


# --- Mamba 2, alone and with attention --------------------------------------------------------------------------------


def mamba2_alone(c):
    D, L = c["hidden_size"], c["num_hidden_layers"]
    mixer = mamba2(
        D,
        c["num_heads"],
        c["head_dim"],
        c["n_groups"],
        c["state_size"],
        c["conv_kernel"],
        c.get("use_bias", False),
        c.get("use_conv_bias", True),
    )
    return Form(ends(c, False) + L * (mixer + D) + D, 0)


def mixer_of(c: dict, width: int) -> int:
    """Mamba 2 in the keys that begin with `mamba_`, its heads `width` wide."""
    return mamba2(
        c["hidden_size"],
        c["mamba_n_heads"],
        width,
        c["mamba_n_groups"],
        c["mamba_d_state"],
        c["mamba_d_conv"],
        c.get("mamba_proj_bias", False),
        c.get("mamba_conv_bias", True),
    )


def bamba(c):
    D, L, N, K, H, F = sizes(c)
    full, b = len(c.get("attn_layer_indices") or ()), c.get("attention_bias", False)
    mixer = mixer_of(c, c.get("mamba_expand", 2) * D // c["mamba_n_heads"])
    total = full * attention(D, N, K, H, b, b) + (L - full) * mixer
    return Form(total + L * (gated(D, F, c.get("mlp_bias", False)) + 2 * D) + D + ends(c, False), 2 * full * K * H)


def falcon_h1(c):
    """Both side by side in each layer; the scan's norm is left out unless the config asks for it."""
    D, L, N, K, H, F = sizes(c)
    inner, b = c["mamba_d_ssm"], c.get("attention_bias", False)
    mixer = mixer_of(c, inner // c["mamba_n_heads"]) - (0 if c.get("mamba_rms_norm") else inner)
    mixer += D * (c.get("projectors_bias", False) - c.get("mamba_proj_bias", False))
    layer = attention(D, N, K, H, b, b) + mixer + gated(D, F, c.get("mlp_bias", False)) + 2 * D
    return Form(ends(c, False) + L * layer + D, 2 * L * K * H)


def zamba2(c):
    """Mamba 2 in each layer; in the hybrid ones a shared block before it, over the layer's input and the embedding."""
    D, L, N = c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"]
    K, W, b = c.get("num_key_value_heads") or N, 2 * D, c.get("add_bias_linear", False)
    H, F = W // N, c.get("intermediate_size") or c.get("ffn_hidden_size") or 4 * D
    inner = (c.get("mamba_expand") or c.get("expansion_factor", 2)) * D
    heads = c.get("n_mamba_heads") or inner // c["mamba_headdim"]
    state, kernel = (c.get("mamba_d_state") or c["state_size"]), (c.get("mamba_d_conv") or c["conv_dimension"])
    mixer = mamba2(D, heads, inner // heads, c["mamba_ngroups"], state, kernel, b, True)
    hybrid, rank = c["layers_block_type"].count("hybrid"), c.get("adapter_rank") or c.get("lora_rank", 128)
    block = W * (N + 2 * K) * H + N * H * D + gated(D, F, b) + W + D
    adapters = rank * (D + 2 * F)
    if c.get("use_shared_attention_adapter") or c.get("use_shared_attention_lora"):
        adapters += 3 * rank * 2 * W
    total = L * (mixer + D) + min(hybrid, c.get("num_mem_blocks", 1)) * block + hybrid * (adapters + D * D) + D
    return Form(total + ends(c, True), 2 * hybrid * K * H)


# --- the gated recurrence, attention after convolutions, attention of experts -----------------------------------------


def recurrent_gemma(c):
    D, L, N, K, H, F = sizes(c)
    R, F, b = c.get("lru_width") or D, F // 2, c.get("attention_bias", False)
    kinds = c.get("block_types") or c.get("_block_types")
    full = sum(1 for i in range(L) if kinds[i % len(kinds)] == "attention")
    gates = 2 * (N * (R // N) ** 2 + R) + R
    recurrent = 3 * D * R + 2 * R + D + R * (c["conv1d_width"] + 1) + gates
    total = full * (attention(D, N, K, H, b, True)) + (L - full) * recurrent + L * (gated(D, F, True) + 2 * D) + D
    return Form(total + ends(c, True), 2 * full * K * H)


def zaya(c):
    """Compressed attention: q and k through two convolutions, half of v a token late; a router with three layers."""
    D, L, N, K, H, _ = sizes(c)
    E, R, b, C = c["num_experts"], c["router_hidden_size"], c.get("attention_bias", False), (N + K) * H
    one = gated(D, c["moe_intermediate_size"])
    convolutions = C * (c["cca_time0"] + 1) + C * (H * c["cca_time1"] + 1)
    router = D * R + R + R + 2 * (R * R + R) + R * (E + 1)
    layer = attention(D, N, K, H, b, b) + convolutions + K + router + E * one + (2 + 8) * D
    total = L * layer + (L - 1) * R + 2 * D + D + (c["vocab_size"] if c.get("lm_head_bias") else 0)
    return Form(total + ends(c, True), 2 * L * K * H, L * one, (E, c.get("num_experts_per_tok", 1)))


def jetmoe(c):
    """The experts' queries and ways back share keys and values; each part has a router and a bias of its own."""
    D, L, E = c["hidden_size"], c["num_hidden_layers"], c["num_local_experts"]
    inner = c["num_key_value_heads"] * c["kv_channels"]
    one = 2 * D * inner + gated(D, c["intermediate_size"])
    layer = 2 * D * inner + E * one + 2 * E * D + 2 * D + 2 * D
    return Form(ends(c, True) + L * layer + D, 2 * L * inner, L * one, (E, c["num_experts_per_tok"]))


FORMS = {
    "lfm2": lfm2,
    "lfm2_moe": lfm2_moe,
    "lfm3": lfm3,
    "rwkv7": rwkv7,
    "kimi_linear": with_delta(
        kimi_layers,
        lambda c: c["hidden_size"] * c["num_attention_heads"] * c["v_head_dim"] if c.get("mla_use_output_gate") else 0,
    ),
    "bailing_hybrid": with_delta(ling_layers, ling_gate),
    "bailing_moe_v2_5": with_delta(lightning_layers),
    "bailing_moe_linear": ring_linear,
    "alice_ai": alice,
    "olmo_hybrid": olmo_hybrid,
    "falcon_h1": falcon_h1,
    "mamba2": mamba2_alone,
    "bamba": bamba,
    "zamba2": zamba2,
    "recurrent_gemma": recurrent_gemma,
    "zaya": zaya,
    "jetmoe": jetmoe,
}


def in_turn(key: str, *kinds: str):
    """The kinds of the layers one after the other, as many as the config has layers."""
    return lambda c: c | {key: [kinds[i % len(kinds)] for i in range(c["num_hidden_layers"])]}


def without(*keys: str):
    return lambda c: {k: v for k, v in c.items() if k not in keys}


MLA_AND_EXPERTS = fixed(
    kv_lora_rank=(19, 23),
    qk_nope_head_dim=(10, 14),
    qk_rope_head_dim=(6, 22),
    v_head_dim=(13, 17),
    num_experts=8,
    num_experts_per_token=(1, 2, 3),
    moe_intermediate_size=(29, 31),
    num_expert_group=(1, 2),
    topk_group=1,
    first_k_dense_replace=(0, 1, 2, 3),
    num_shared_experts=(1, 2),
    tie_word_embeddings=BOOL,
    attention_bias=BOOL,
)
CONVOLUTION = both(fixed(conv_L_cache=(3, 4)), flags(conv_bias=BOOL))
SCAN = both(
    fixed(mamba_n_groups=(1, 2), mamba_d_state=(5, 7), mamba_d_conv=(3, 4)),
    flags(mamba_conv_bias=BOOL, mamba_proj_bias=BOOL, attention_bias=BOOL, mlp_bias=BOOL),
)


def as_many_heads(c: dict) -> dict:
    return c | {"num_key_value_heads": c["num_attention_heads"]}


RANDOM = {
    "rwkv7": both(
        fixed(vocab_size=(97, 101), hidden_size=(24, 40), num_hidden_layers=(1, 2, 5), head_dim=(8, 4)),
        fixed(decay_low_rank_dim=(5, 6), a_low_rank_dim=(7, 9), v_low_rank_dim=(3, 11), gate_low_rank_dim=(13, 17)),
        flags(intermediate_size=(67, 71), hidden_ratio=(3, 3.5), norm_bias=BOOL, norm_first=BOOL),
    ),
    "lfm2": both(
        blocks(square=True),
        CONVOLUTION,
        fixed(block_multiple_of=(8, 16)),
        flags(block_auto_adjust_ff_dim=BOOL, block_ffn_dim_multiplier=(1.0, 1.1)),
    ).map(in_turn("layer_types", "conv", "full_attention", "conv")),
    "lfm2_moe": both(
        blocks(square=True),
        CONVOLUTION,
        fixed(
            num_experts=(5, 7),
            moe_intermediate_size=(29, 31),
            num_dense_layers=(0, 1, 2),
            conv_bias=BOOL,
            **MOE,
        ),
        flags(use_expert_bias=BOOL),
    ).map(in_turn("layer_types", "conv", "full_attention", "conv")),
    "lfm3": both(
        blocks(),
        CONVOLUTION,
        fixed(sliding_window=(4, 9)),
        flags(use_sandwich_norm=BOOL, use_attention_gate=BOOL, attention_bias=BOOL),
    ).map(in_turn("layer_types", "conv", "full_attention", "conv", "sliding_attention")),
    "alice_ai": both(
        blocks(),
        fixed(block_attn_res_block_size=(1, 2, 3), heads=(3, 5), width=(7, 9), linear_conv_kernel_dim=(3, 4)),
        fixed(num_experts=(5, 7), moe_intermediate_size=(29, 31), shared_expert_intermediate_size=(37, 0), **MOE),
        flags(norm_topk_prob=BOOL),
    )
    .map(in_turn("layer_types", "linear_attention", "full_attention", "linear_attention"))
    .map(
        lambda c: (
            without("heads", "width", "tie_word_embeddings")(c)
            | dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), c["heads"])
            | dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), c["width"])
        )
    ),
    "kimi_linear": both(
        blocks(square=True),
        MLA_AND_EXPERTS,
        fixed(linear=((3, 7), (5, 11)), kernel=(3, 4), every=(2, 3), whole=BOOL),
        flags(q_lora_rank=(37, 41), attn_res_block_size=(1, 2, 3), routed_expert_hidden_size=(9, 15)),
        flags(latent_moe_use_norm=BOOL, mla_use_output_gate=BOOL, hidden_act=("silu", "situ")),
    )
    .map(as_many_heads)
    .map(
        lambda c: (
            without("linear", "kernel", "every", "whole")(c)
            | {
                "linear_attn_config": {
                    "num_heads": c["linear"][0],
                    "head_dim": c["linear"][1],
                    "short_conv_kernel_size": c["kernel"],
                    "use_full_rank_gate": c["whole"],
                    "gate_lower_bound": -5.0 if c["whole"] else None,
                    "full_attn_layers": [i for i in range(1, c["num_hidden_layers"] + 1) if i % c["every"] == 0],
                    "kda_layers": [i for i in range(1, c["num_hidden_layers"] + 1) if i % c["every"]],
                }
            }
        )
    ),
    "bailing_hybrid": both(
        blocks(),
        MLA_AND_EXPERTS,
        fixed(short_conv_kernel_size=(3, 4), layer_group_size=(2, 3)),
        flags(q_lora_rank=(14, 26), gated_attention_proj_granularity_type=("head_wise", "element_wise", None)),
    ).map(as_many_heads),
    "bailing_moe_v2_5": both(
        blocks(),
        MLA_AND_EXPERTS,
        fixed(layer_group_size=(1, 2, 3), first_k_dense_replace=(0, 1)),
        flags(q_lora_rank=(14, 26), use_qk_norm=BOOL, linear_silu=BOOL, linear_rope=BOOL),
    ).map(as_many_heads),
    "bailing_moe_linear": both(
        blocks(square=True),
        fixed(num_experts=(8, 12), n_group=(2, 4), topk_group=2, moe_intermediate_size=(29, 31), **MOE),
        fixed(num_shared_experts=(0, 1, 2), first_k_dense_replace=(0, 1), layer_group_size=(1, 2, 3)),
        fixed(group_norm_size=1),
        flags(use_qk_norm=BOOL, moe_shared_expert_intermediate_size=(17, 19)),
    ),
    "olmo_hybrid": both(
        blocks(square=True),
        fixed(
            num_hidden_layers=(2, 5),
            linear_key_head_dim=(7, 11),
            linear_value_head_dim=(13, 17),
            linear_conv_kernel_dim=(3, 4),
        ),
        flags(attention_bias=BOOL, linear_allow_neg_eigval=BOOL),
    )
    .map(in_turn("layer_types", "linear_attention", "full_attention", "linear_attention"))
    .map(lambda c: c | dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), c["num_key_value_heads"])),
    "falcon_h1": both(
        blocks(),
        SCAN,
        fixed(mamba_n_heads=(4, 6), mamba_d_ssm=(60, 84)),
        flags(mamba_rms_norm=BOOL, projectors_bias=BOOL),
    ).map(lambda c: c | {"mamba_d_head": c["mamba_d_ssm"] // c["mamba_n_heads"]}),
    "mamba2": both(
        fixed(
            vocab_size=(97, 101),
            hidden_size=(30, 42),
            num_hidden_layers=(1, 2, 5),
            num_heads=(4, 6),
            n_groups=(1, 2),
            state_size=(5, 7),
            conv_kernel=(3, 4),
        ),
        flags(expand=(2, 4), use_bias=BOOL, use_conv_bias=BOOL, tie_word_embeddings=BOOL),
    ).map(lambda c: c | {"head_dim": c.get("expand", 2) * c["hidden_size"] // c["num_heads"]}),
    "bamba": both(blocks(square=True), SCAN, fixed(mamba_n_heads=4), flags(mamba_expand=(2, 4))).map(
        lambda c: (
            c
            | {
                "attn_layer_indices": list(range(1, c["num_hidden_layers"], 3)),
                "mamba_d_head": c.get("mamba_expand", 2) * c["hidden_size"] // 4,
            }
        )
    ),
    "zamba2": both(
        blocks(square=True).map(without("num_key_value_heads")),
        fixed(
            mamba_d_state=(5, 7),
            mamba_d_conv=(3, 4),
            mamba_ngroups=(1, 2),
            n_mamba_heads=4,
            adapter_rank=(3, 5),
            num_mem_blocks=(1, 2),
        ),
        flags(use_shared_attention_adapter=BOOL, add_bias_linear=BOOL, use_mem_rope=BOOL, mamba_expand=(2, 4)),
    ).map(in_turn("layers_block_type", "mamba", "hybrid", "hybrid")),
    "recurrent_gemma": both(
        blocks(square=True),
        fixed(
            intermediate_size=(66, 70),
            attention_window_size=(4, 9),
            conv1d_width=(3, 4),
            widths=(2, 3),
            block_types=(["recurrent", "recurrent", "attention"], ["attention", "recurrent"]),
        ),
        flags(attention_bias=BOOL),
    ).map(lambda c: without("widths")(c) | {"lru_width": c["num_attention_heads"] * 2 * c["widths"]}),
    "zaya": both(
        blocks(),
        fixed(
            moe_intermediate_size=(29, 31),
            num_experts=(3, 5),
            num_experts_per_tok=1,
            router_hidden_size=(7, 9),
            cca_time0=(2, 3),
            cca_time1=(2, 3),
            sliding_window=(4, 9),
        ),
        flags(attention_bias=BOOL, lm_head_bias=BOOL),
    ).map(in_turn("layer_types", "hybrid", "hybrid_sliding")),
    "jetmoe": both(
        blocks().map(without("num_attention_heads", "head_dim")),
        fixed(kv_channels=(14, 22), num_local_experts=(3, 5), num_experts_per_tok=(1, 2)),
    ),
}
