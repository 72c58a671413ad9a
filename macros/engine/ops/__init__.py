"""The parts of language models, in plain NumPy.

Letters in shapes: T new tokens, S the tokens they see, D d_model, F d_ff, N heads, K key/value heads, H d_head, V
vocabulary, E experts. Weights are requested by their checkpoint name where they are used; `w` returns a checkpoint's
arrays or shapes. Everything here runs on both.
"""

# Re-exported names need no use here.
# pyright: reportUnusedImport=false
from .attention import (
    alibi,
    alibi_slopes,
    attend,
    causal_mask,
    clip_length,
    head_norms,
    heads,
    masked,
    masked_on_both_sides,
    relative_bias,
    relative_logits,
    repeat_kv,
    scores,
    softmax_with_sink,
    strictly_causal_mask,
    weighted_sum,
    window_mask,
    with_shared,
)
from .basic import (
    ACTIVATIONS,
    Activation,
    conv1d,
    embed,
    embed_layers,
    embed_positions,
    embed_segments,
    erf,
    gaussian_top_k,
    gelu,
    gelu_tanh,
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
    softplus,
    unembed,
    unit_norm,
    xielu,
)
from .block_sparse import block_scores, block_sparse_attention, head_relevance, pool_places
from .compressed import (
    MAIN,
    OF_INDEXER,
    apply_partial_rope_pairs,
    compress,
    grouped_linear,
    latent_averages,
    shared_scores,
    shared_weighted_sum,
    undo_rope_pairs,
    window_averages,
)
from .experts import (
    Kind,
    balanced_routing,
    chosen_softmax_routing,
    clip,
    clipped_swiglu,
    combine,
    expert_linear,
    expert_scores,
    feed_forward,
    gated_experts,
    group_limited,
    packed_experts,
    routing_weights,
    shared_experts,
    sigmoid_scores,
    softmax_routing,
    top_k,
    zero_experts,
)
from .latent import index_scores, latent_queries, latent_scores, latent_values, latent_weighted_sum
from .local import block_attention, local_attention, sparse_block_attention
from .masks import (
    Blocks,
    Canvas,
    CanvasAndWindow,
    Chunked,
    Compressed,
    Full,
    NoPE,
    Patches,
    PickedBlocks,
    PickedPools,
    Shared,
    SlidingWindow,
    Waiting,
)
from .ngrams import ngram_embedding, ngram_row, ngram_rows, prime_hash, rolling_hash
from .patches import attend_to_patch, attend_within, byte_hashes, patch_ends, pool_patches, unfinished
from .recurrence import (
    Mixed,
    causal_conv,
    decaying_attention,
    dilated_conv,
    gated_delta_rule,
    gated_rms_norm,
    grouped_conv,
    grouped_rms_norm,
    l2_norm,
    mlstm,
    rg_lru,
    scan,
    selective_scan,
    short_convolution,
    state_update,
    tap_conv,
    token_shift,
    wkv,
    wkv7,
)
from .rope import Rope, apply_rope, apply_rope_pairs, rope_table, yarn_mscale
from .sound import convolve
from .streams import (
    StreamShares,
    attention_residuals,
    expand_streams,
    first_stream,
    mean_of_streams,
    messages_of,
    mixed_streams,
    read_streams,
    reduce_streams,
    separate_shares,
    stream_gates,
    stream_norm,
    stream_shares,
    write_streams,
)
