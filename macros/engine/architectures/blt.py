"""Byte Latent Transformer: a large transformer over patches of bytes, between two small ones over bytes.

The local encoder reads bytes, with hashes of those before each, and makes vectors of each patch. The global transformer
reads patches; the local decoder writes bytes, each with a look at the last patch that was finished before the next
byte. A fourth transformer, the patcher, says where patches end. Source: arXiv 2412.09871; tensor names as transformers.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ..errors import Problem, shorten
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Patches,
    Rope,
    SlidingWindow,
    apply_rope_pairs,
    attend,
    attend_to_patch,
    attend_within,
    byte_hashes,
    causal_mask,
    embed,
    feed_forward,
    heads,
    linear,
    patch_ends,
    pool_patches,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    unembed,
    unfinished,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import COMMON_IGNORED, Config, Interval, Positive, Raw, Size, activation, config, derived, key, take_table
from .rope_config import fold_rope, read_rope

STACKS = ("patcher_config", "encoder_config", "global_config", "decoder_config")
THETA, THETA_OF_PATCHER = 500_000.0, 10_000.0
# Other keys of a stack's table, without effect or derived from others.
OF_STACKS = COMMON_IGNORED | {
    *("model_type", "tie_word_embeddings", "head_dim", "encoder_cross_output_size", "pm_size"),
    *("attn_impl", "attn_bias_type", "_attn_implementation"),
}
OF_ONE = {
    "patcher_config": {"hidden_act"},
    "encoder_config": {"cross_attn_k", "hidden_size_global", "sliding_window"},
    "global_config": {"sliding_window", "vocab_size"},
    "decoder_config": {"cross_attn_k", "hidden_size_global", "sliding_window", "vocab_size"},
}
# A prime for each hash function, in turn.
PRIMES = (
    *(1000000007, 5915587277, 1500450271, 3267000013, 5754853343, 4093082899, 9576890767, 3628273133, 2860486313),
    *(5463458053, 3367900313),
)
BOTH = "both count the vectors of a patch: give one number"
# Rotary embeddings whose angles do not depend on the length of a text.
ROPES = ("default", "linear", "llama3", "yarn")


class Stack(Struct, frozen=True):
    """The sizes of a stack of layers."""

    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int
    norm_eps: float
    activation: str


@config
class BLT(Config):
    """Hyperparameters of BLT, in forward order."""

    # patches
    has_patcher: bool = key("patch_in_forward", True)
    patching: str | None = key("patching_mode", "entropy")
    threshold: float = key("patching_threshold", 1.335442066192627)
    longest_patch: Interval | None = key("max_patch_length", None)
    patch_size: Size = key("patch_size", 4)
    n_patch_vectors: Size = key("cross_attn_k", 2)
    # patcher
    patcher_vocab_size: Size = key("patcher_config.vocab_size", 260)
    d_patcher: Size = key("patcher_config.hidden_size", 768)
    n_patcher_layers: Size = key("patcher_config.num_hidden_layers", 14)
    patcher_eps: Positive = key("patcher_config.rms_norm_eps", 1e-5, also=("patcher_config.norm_eps",))
    n_patcher_heads: Size = key("patcher_config.num_attention_heads", 12)
    n_patcher_kv_heads: Size = key("patcher_config.num_key_value_heads", lambda c: c.n_patcher_heads)
    d_patcher_head: Size = derived(lambda c: c.d_patcher // c.n_patcher_heads)
    patcher_window: Size | None = key("patcher_config.sliding_window", 512)
    patcher_rope: Raw = key("patcher_config.rope_parameters", lambda c: {})
    d_ff_patcher: Size = key("patcher_config.intermediate_size", 2048)
    # local encoder
    n_read: Size = key("encoder_config.vocab_size", 260)
    groups: list[Interval] = key("encoder_hash_byte_group_size", lambda c: [3, 4, 5, 6, 7, 8])
    n_hashes: Size = key("encoder_hash_byte_group_nb_functions", 1)
    n_hash_rows: Size = key("encoder_hash_byte_group_vocab", 500_002)
    d_encoder: Size = key("encoder_config.hidden_size", 1024)
    n_encoder_layers: Size = key("encoder_config.num_hidden_layers", 1)
    reads_in_each: bool = key("encoder_config.cross_attn_all_layers", False)
    encoder_eps: Positive = key("encoder_config.rms_norm_eps", 1e-5, also=("encoder_config.norm_eps",))
    n_encoder_heads: Size = key("encoder_config.num_attention_heads", 16)
    n_encoder_kv_heads: Size = key("encoder_config.num_key_value_heads", lambda c: c.n_encoder_heads)
    d_encoder_head: Size = derived(lambda c: c.d_encoder // c.n_encoder_heads)
    sliding_window: Size | None = key("local_attention_window_len", 512)
    encoder_rope: Raw = key("encoder_config.rope_parameters", lambda c: {})
    d_ff_encoder: Size = key("encoder_config.intermediate_size", lambda c: 8 * int(c.d_encoder) // 3)
    encoder_activation: str = key("encoder_config.hidden_act", "silu")
    # global transformer
    d_model: Size = key("global_config.hidden_size", 2048)
    n_global_layers: Size = key("global_config.num_hidden_layers", 25)
    norm_eps: Positive = key("global_config.rms_norm_eps", 1e-5, also=("global_config.norm_eps",))
    n_heads: Size = key("global_config.num_attention_heads", 16)
    n_kv_heads: Size = key("global_config.num_key_value_heads", lambda c: c.n_heads)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("global_config.rope_parameters", lambda c: {})
    d_ff: Size = key("global_config.intermediate_size", 5632)
    activation: str = key("global_config.hidden_act", "silu")
    # local decoder
    d_decoder: Size = key("decoder_config.hidden_size", 1024)
    n_decoder_layers: Size = key("decoder_config.num_hidden_layers", 9)
    looks_in_each: bool = key("decoder_config.cross_attn_all_layers", True)
    decoder_eps: Positive = key("decoder_config.rms_norm_eps", 1e-5, also=("decoder_config.norm_eps",))
    n_decoder_heads: Size = key("decoder_config.num_attention_heads", 16)
    n_decoder_kv_heads: Size = key("decoder_config.num_key_value_heads", lambda c: c.n_decoder_heads)
    d_decoder_head: Size = derived(lambda c: c.d_decoder // c.n_decoder_heads)
    decoder_rope: Raw = key("decoder_config.rope_parameters", lambda c: {})
    d_ff_decoder: Size = key("decoder_config.intermediate_size", 2816)
    decoder_activation: str = key("decoder_config.hidden_act", "silu")
    # head
    vocab_size: Size = key("vocab_size", 260)
    tied: bool = key("tie_word_embeddings", False)

    caveat = (
        "A token is a byte. Where a patch ends depends on the text, so costs are those of patches that end at each "
        "multiple of patch_size bytes, and whose first is one byte. At such a context, a decode step includes the "
        "global transformer, which other steps leave out. With a checkpoint’s weights, patches end where the patcher "
        "says."
    )
    rewritten = frozenset(STACKS)
    ignored = frozenset(
        """
        patching_batch_size patching_device patching_threshold_add monotonicity realtime_patching pm_size
        data_loader_patching rope_parameters rope_scaling rope_theta
    """.split()
    )
    checked = ("ropes",)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys of the four tables side by side, each with the name of its table."""
        if raw.get("patch_size", 0) is None:
            raise Problem("patch_size = null: patches of single bytes are not described", "give it a number")
        for stack in STACKS:
            folded = fold_rope(take_table(raw, stack))
            vectors, usual = folded.get("cross_attn_k"), raw.get("cross_attn_k", 2)
            if vectors is not None and vectors != usual:
                raise Problem(f"{stack}.cross_attn_k = {shorten(vectors)}, and cross_attn_k = {shorten(usual)}", BOTH)
            dropped = OF_STACKS | OF_ONE[stack]
            raw |= {f"{stack}.{name}": value for name, value in folded.items() if name not in dropped}
        return raw

    def check(self) -> None:
        for stack in ("patcher_", "encoder_", "", "decoder_"):
            width = {"": "d_model"}.get(stack, f"d_{stack[:-1]}")
            self.must_divide(f"n_{stack}heads", width)
            self.must_divide(f"n_{stack}kv_heads", f"n_{stack}heads")
        for one, other in (("d_decoder", "d_encoder"), ("vocab_size", "n_read")):
            if self.size(one) != self.size(other):
                raise Problem(
                    f"{self.key_of(one)} = {int(self.size(one))}, and {self.key_of(other)} = {int(self.size(other))}",
                    "the local encoder’s vectors go into the local decoder, bytes into both: give one number",
                )
        if self.longest_patch is not None:
            raise Problem(f"max_patch_length = {self.longest_patch}", "only patches of any length are described")
        if self.has_patcher and self.patching != "entropy":
            raise Problem(
                f"patching_mode = {shorten(self.patching)} with a patcher",
                "without entropies each byte is a patch: set patch_in_forward to false",
            )
        if not self.groups or max(self.groups) > 64:
            raise Problem("encoder_hash_byte_group_size: expected sizes up to 64", "correct the list")
        for name in (self.activation, self.encoder_activation, self.decoder_activation):
            activation(name)

    @property
    def patches(self) -> Patches:
        """How many patches a text has; without a patcher, each byte is one."""
        return Patches(self.patch_size if self.has_patcher else 1)

    @property
    def window(self) -> Mask:
        """The mask of a layer of the local encoder or decoder."""
        return Full() if self.sliding_window is None else SlidingWindow(self.sliding_window)

    @property
    def ropes(self) -> dict[str, Rope]:
        """The rotary embeddings of the four stacks."""
        tables = {"patcher": self.patcher_rope, "encoder": self.encoder_rope}
        tables |= {"global": self.rope_parameters, "decoder": self.decoder_rope}
        widths = {"patcher": self.d_patcher_head, "encoder": self.d_encoder_head}
        widths |= {"global": self.d_head, "decoder": self.d_decoder_head}
        ropes = {
            name: read_rope(table, THETA_OF_PATCHER if name == "patcher" else THETA) for name, table in tables.items()
        }
        for name, rope in ropes.items():
            rope.turning(widths[name])
            if rope.scaling not in ROPES or rope.partial != 1:
                raise Problem(f"{name}_config: a rotary embedding of kind {rope.scaling}", f"known: {', '.join(ROPES)}")
        return ropes

    def stack(self, name: str) -> Stack:
        """The sizes of a stack."""
        if name == "patcher":
            sizes = self.n_patcher_heads, self.n_patcher_kv_heads, self.d_patcher_head, self.d_ff_patcher
            return Stack(*sizes, self.patcher_eps, "silu")
        if name == "encoder":
            sizes = self.n_encoder_heads, self.n_encoder_kv_heads, self.d_encoder_head, self.d_ff_encoder
            return Stack(*sizes, self.encoder_eps, self.encoder_activation)
        if name == "decoder":
            sizes = self.n_decoder_heads, self.n_decoder_kv_heads, self.d_decoder_head, self.d_ff_decoder
            return Stack(*sizes, self.decoder_eps, self.decoder_activation)
        return Stack(self.n_heads, self.n_kv_heads, self.d_head, self.d_ff, self.norm_eps, self.activation)


@architecture("blt", config=BLT)
def forward(w: Weights, ids: Array, c: BLT, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next byte: [T] -> [T V], or [1 V] with `last`."""
    ends = find_ends(ids, w, c, cache)
    x, read = encode(ids, ends, w, c, cache)
    x = decode(x, global_transformer(read, w, c, cache), ends, w, c, cache)
    head = "model.local_encoder.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last)


def find_ends(ids: Array, w: Weights, c: BLT, cache: KVCache) -> Array:
    """The new bytes that end a patch, by the patcher: [T] -> [P]."""
    places = positions(ids, cache)
    if not c.has_patcher:
        return np.arange(ids.shape[0], like=ids).astype(np.float32)
    stack, mask = c.stack("patcher"), Full() if c.patcher_window is None else SlidingWindow(c.patcher_window)
    x = embed(ids, w, "model.patcher.embed_tokens.weight", c.patcher_vocab_size, c.d_patcher)
    table = rope_table(places, stack.d_head, c.ropes["patcher"])
    kinds = ["layer"] * c.n_patcher_layers
    for _, w_layer, kept in w.layers("model.patcher.layers", kinds, cache, "patcher"):
        x = layer(x, w_layer, kept, stack, mask, table)
    x = rms_norm(x, w, "model.patcher.norm", c.patcher_eps)
    x = linear(x, w, "model.patcher.lm_head", c.patcher_vocab_size)
    patches = c.patches.kept(cache.length + ids.shape[0]) - c.patches.seen(cache.length)
    return patch_ends(x, places, c.threshold, patches)


def encode(ids: Array, ends: Array, w: Weights, c: BLT, cache: KVCache) -> tuple[Array, Array]:
    """The bytes' vectors and those of each finished patch: [T], [P] -> [T D], [P·J D]."""
    x = embed(ids, w, "model.local_encoder.embed_tokens.weight", c.n_read, c.d_encoder)
    primes = [PRIMES[i % len(PRIMES)] for i in range(int(c.n_hashes))]
    hashes = byte_hashes(ids, cache, c.groups, primes, c.n_hash_rows)
    rows = c.n_hashes * len(c.groups) * c.n_hash_rows
    looked_up = embed(hashes.reshape(-1), w, "model.encoder_hash_tok_embedding.weight", rows, c.d_encoder)
    x = x + looked_up.reshape(ids.shape[0], hashes.shape[1], c.d_encoder).sum(axis=1)
    stack = c.stack("encoder")
    table = rope_table(positions(ids, cache), stack.d_head, c.ropes["encoder"])
    kinds = ["pooling" if c.reads_in_each else "bytes"] * (c.n_encoder_layers - 1) + ["pooling"]
    first = c.n_patcher_layers if c.has_patcher else 0
    read = x
    for kind, w_layer, kept in w.layers("model.local_encoder.layers", kinds, cache, "encoder", first):
        if kind == "bytes":
            x = layer(x, w_layer, kept, stack, c.window, table)
        else:
            of_reader = cross(w, w_layer, "encoder", int(first), c.n_encoder_layers, c.reads_in_each)
            x, read = reading_layer(x, ends, w_layer, of_reader, w, kept, c, table)
    return x, read


def cross(w: Weights, w_layer: Weights, name: str, first: int, layers: int, in_each: bool) -> Weights:
    """The weights of a layer's cross-attention: of its own, or of the only one."""
    below = f"model.local_{name}.cross_attn_layers"
    return w_layer.beside(below, {first + i: i for i in range(layers)}) if in_each else w.at(f"{below}.0")


def global_transformer(read: Array, w: Weights, c: BLT, cache: KVCache) -> Array:
    """The patches' vectors in the context of the patches before: [P·J D] -> [P D]."""
    stack, J = c.stack("global"), c.n_patch_vectors
    is_as_wide = J * c.d_encoder == c.d_model
    x = read.reshape(read.shape[0] // J, c.d_model if is_as_wide else J * c.d_encoder)
    if not is_as_wide:
        x = linear(x, w, "model.global_transformer.token_embedding_projection", c.d_model)
    first = (c.n_patcher_layers if c.has_patcher else 0) + c.n_encoder_layers
    kinds = ["layer"] * c.n_global_layers
    for _, w_layer, kept in w.layers("model.global_transformer.layers", kinds, cache, "global", first):
        x = global_layer(x, w_layer, kept, stack, c.patches, c.ropes["global"])
    return x


def decode(x: Array, patches: Array, ends: Array, w: Weights, c: BLT, cache: KVCache) -> Array:
    """The bytes' vectors after a look at their patches: [T D], [P D], [P] -> [T D]."""
    stack, J = c.stack("decoder"), c.n_patch_vectors
    vectors = linear(patches, w, "model.local_decoder.patch_embedding_projection", J * c.d_decoder)
    vectors = vectors.reshape(-1, c.d_decoder)
    patch = (ends[None, :] <= np.arange(x.shape[0], like=x)[:, None]).sum(axis=1)
    places = np.arange(x.shape[0], like=x) + cache.length
    table = rope_table(places, stack.d_head, c.ropes["decoder"])
    first = (c.n_patcher_layers if c.has_patcher else 0) + c.n_encoder_layers + c.n_global_layers
    kinds = ["looking"] + ["looking" if c.looks_in_each else "bytes"] * (c.n_decoder_layers - 1)
    for kind, w_layer, kept in w.layers("model.local_decoder.layers", kinds, cache, "decoder", first):
        if kind == "bytes":
            x = layer(x, w_layer, kept, stack, c.window, table)
        else:
            looking = cross(w, w_layer, "decoder", int(first), c.n_decoder_layers, c.looks_in_each)
            x = looking_layer(x, vectors, patch, w_layer, looking, kept, c, table)
    return rms_norm(x, w, "model.local_decoder.norm", c.decoder_eps)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Stack, mask: Mask, table: RopeTable) -> Array:
    """One transformer block over bytes: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.LAYER)
def reading_layer(
    x: Array, ends: Array, w: Weights, of_reader: Weights, whole: Weights, cache: KVCache, c: BLT, table: RopeTable
) -> tuple[Array, Array]:
    """One block over bytes, and the vectors of the patches that its output makes: [T D] -> [T D], [P·J D]."""
    stack = c.stack("encoder")
    x = x + attention(
        rms_norm(x, w, "input_layernorm", stack.norm_eps), w.at("self_attn"), cache, stack, c.window, table
    )
    y = rms_norm(x, w, "post_attention_layernorm", stack.norm_eps)
    x = x + feed_forward(y, w.at("mlp"), stack.d_ff, activation(stack.activation))
    return x, read_bytes(x, ends, of_reader, whole, cache, c)


@step(Role.LAYER)
def looking_layer(
    x: Array, vectors: Array, patch: Array, w: Weights, looking: Weights, cache: KVCache, c: BLT, table: RopeTable
) -> Array:
    """One block over bytes, after a look at their patches: [T D], [P·J D], [T] -> [T D]."""
    stack = c.stack("decoder")
    x = x + (x + look_at_patch(x, vectors, patch, looking, cache, c))
    x = x + attention(
        rms_norm(x, w, "input_layernorm", stack.norm_eps), w.at("self_attn"), cache, stack, c.window, table
    )
    y = rms_norm(x, w, "post_attention_layernorm", stack.norm_eps)
    return x + feed_forward(y, w.at("mlp"), stack.d_ff, activation(stack.activation))


@step(Role.LAYER)
def global_layer(x: Array, w: Weights, cache: KVCache, c: Stack, mask: Patches, rope: Rope) -> Array:
    """One transformer block over patches: [P D] -> [P D]."""
    x = x + global_attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, rope)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Stack, mask: Mask, table: RopeTable) -> Array:
    """Let each byte gather information from itself and the bytes before it: [T D] -> [T D]."""
    q, k, v = queries_keys_values(x, w, c)
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5), w, "o_proj", x.shape[1])


@step(Role.ATTENTION)
def global_attention(x: Array, w: Weights, cache: KVCache, c: Stack, mask: Patches, rope: Rope) -> Array:
    """Let each patch gather information from itself and the patches before it: [P D] -> [P D]."""
    q, k, v = queries_keys_values(x, w, c)
    v = cache.extend(Holds.VALUES, v, mask, every=mask.size)
    places = np.arange(x.shape[0], like=x) + (v.shape[0] - x.shape[0])
    table = rope_table(places, c.d_head, rope)
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k = cache.extend(Holds.KEYS, k, mask, every=mask.size)
    allowed = mask.allows(places[:, None], np.arange(k.shape[0], like=x)[None, :])
    return linear(attend(q, k, v, allowed, c.d_head**-0.5), w, "o_proj", x.shape[1])


def queries_keys_values(x: Array, w: Weights, c: Stack) -> tuple[Array, Array, Array]:
    """The three parts of attention, in heads: [T D] -> [T N H], [T K H], [T K H]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    return q, k, heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)


@step(Role.CROSS_ATTENTION)
def read_bytes(x: Array, ends: Array, w: Weights, whole: Weights, cache: KVCache, c: BLT) -> Array:
    """The vectors of each patch that is now finished, which look at its bytes: [T D], [P] -> [P·J D]."""
    stack, J, mask = c.stack("encoder"), c.n_patch_vectors, c.patches
    N, K, H = stack.n_heads, stack.n_kv_heads, stack.d_head
    rows = np.concatenate([cache.state(Holds.WAITING, mask.waiting(cache.length), c.d_encoder), x], axis=0)
    ends = ends + (rows.shape[0] - x.shape[0])
    cache.store(Holds.WAITING, unfinished(rows, ends, mask.waiting(cache.length + x.shape[0])))
    vectors = linear(pool_patches(rows, ends), whole, "model.local_encoder.patch_embedding_projection", J * c.d_encoder)
    vectors = vectors.reshape(-1, c.d_encoder)
    q = linear(rms_norm(vectors, w, "q_norm", stack.norm_eps), w, "q_proj", N * H).reshape(-1, J, N, H)
    y = rms_norm(rows, w, "k_norm", stack.norm_eps)
    k, v = (heads(linear(y, w, name, K * H), K, H) for name in ("k_proj", "v_proj"))
    if K != N:
        k, v = repeat_kv(k, N), repeat_kv(v, N)
    looked = linear(attend_within(q, k, v, ends, H**-0.5), w, "o_proj", c.d_encoder)
    return vectors + (vectors + looked)


@step(Role.CROSS_ATTENTION)
def look_at_patch(x: Array, vectors: Array, patch: Array, w: Weights, cache: KVCache, c: BLT) -> Array:
    """Let each byte gather information from its patch: [T D], [P·J D], [T] -> [T D].

    The vectors of the last patch before this step come first.
    """
    stack, J = c.stack("decoder"), c.n_patch_vectors
    N, K, H = stack.n_heads, stack.n_kv_heads, stack.d_head
    q = heads(linear(rms_norm(x, w, "q_norm", stack.norm_eps), w, "q_proj", N * H), N, H)
    y = rms_norm(vectors, w, "k_norm", stack.norm_eps)
    k, v = (linear(y, w, name, K * H).reshape(-1, J, K, H) for name in ("k_proj", "v_proj"))
    k = np.concatenate([cache.state(Holds.PATCH_KEYS, 1, J, K, H), k], axis=0)
    v = np.concatenate([cache.state(Holds.PATCH_VALUES, 1, J, K, H), v], axis=0)
    cache.store(Holds.PATCH_KEYS, k[k.shape[0] - 1 :])
    cache.store(Holds.PATCH_VALUES, v[v.shape[0] - 1 :])
    return linear(attend_to_patch(q, k, v, patch, H**-0.5), w, "o_proj", c.d_decoder)
