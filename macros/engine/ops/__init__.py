"""The parts that language models are made of, in plain NumPy.

Letters in shapes: T new tokens, S the tokens they see, D d_model, F d_ff, N heads, K key/value heads, H d_head, V
vocabulary, E experts. Weights are asked for by their checkpoint name where they are used; `w` hands out a checkpoint's
arrays or shapes. Everything here runs on both.
"""

# What a package hands on, it need not use itself.
# pyright: reportUnusedImport=false
from .attention import (
    Chunked,
    Full,
    Mask,
    NoPE,
    Shared,
    SlidingWindow,
    alibi,
    attend,
    causal_mask,
    clip_length,
    head_norms,
    heads,
    masked,
    mix,
    profile_bias,
    relative_bias,
    repeat_kv,
    scores,
    softmax_with_sink,
    with_shared,
)
from .basic import (
    ACTIVATIONS,
    Activation,
    conv1d,
    embed,
    embed_layers,
    embed_positions,
    erf,
    gelu,
    gelu_tanh,
    keep_largest,
    last_row,
    layer_norm,
    linear,
    logistic,
    positions,
    relu,
    relu_squared,
    rms_norm,
    self_gated_norm,
    sigmoid,
    silu,
    soft_cap,
    softmax,
    unembed,
    unit_norm,
    xielu,
)
from .compressed import (
    MAIN,
    OF_INDEXER,
    Compressed,
    Waiting,
    compress,
    grouped_linear,
    mix_shared,
    shared_scores,
    turn_back,
    turn_last,
    window_averages,
)
from .experts import (
    Kind,
    balanced_routing,
    chosen_softmax_routing,
    clip,
    clipped_gate,
    combine,
    expert_linear,
    feed_forward,
    gated_experts,
    keep_groups,
    or_nothing,
    packed_experts,
    routing_weights,
    shared_experts,
    sigmoid_scores,
    softmax_routing,
    top_k,
)
from .latent import ask_latents, index_scores, latent_scores, mix_latents, read_values
from .ngrams import look_up_ngrams
from .picked import PickedBlocks, PickedPools, attend_to_picked, block_scores, head_relevance, pool_places
from .recurrence import (
    Mixed,
    carry,
    causal_conv,
    decaying_attention,
    dilated_conv,
    gated_delta_rule,
    gated_rms_norm,
    grouped_conv,
    grouped_rms_norm,
    l2_norm,
    rg_lru,
    scan,
    selective_scan,
    short_convolution,
    softplus,
    tap_conv,
    token_shift,
    wkv,
)
from .rope import Rope, apply_rope, apply_rope_pairs, rope_table, yarn_mscale
from .sound import convolve
from .streams import (
    StreamShares,
    average_by_fit,
    average_for_head,
    gather_for_head,
    mixed_streams,
    read_streams,
    separate_shares,
    spread,
    stream_gates,
    stream_norm,
    stream_shares,
    write_streams,
)
