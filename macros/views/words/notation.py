"""This site's names for sizes: name, letter, meaning, and the spelling in papers. One list; the notation page prints
it."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ...engine.architectures import architectures
from ...engine.architectures.config import fields_of


class Symbol(NamedTuple):
    """A named size: its letter in shapes (or none), its meaning, and its spelling in papers."""

    name: str
    letter: str
    meaning: str
    paper: str = ""


SYMBOLS = (
    Symbol("T", "T", "new tokens: those that this step works on"),
    Symbol("S", "S", "context: the tokens that the last new one sees, itself included", "n"),
    Symbol("vocab_size", "V", "tokens in the vocabulary", "V"),
    Symbol("n_positions", "P", "rows of a learned position table, the longest text it allows", "n_{ctx}"),
    Symbol("padding", "", "id of the padding token, after which positions start"),
    Symbol("d_model", "D", "width of the vector that each token carries through the model", "d_{model}"),
    Symbol("n_encoder_positions", "", "rows of the encoder’s learned position table"),
    Symbol("encoder_padding", "", "id of the encoder’s padding token, after which its positions start"),
    Symbol(
        "n_source", "M", "tokens, or vectors of sound, that an encoder reads; vectors of an image or protein", "n, m"
    ),
    Symbol("n_read", "", "tokens in the encoder’s vocabulary, where it has its own"),
    Symbol("d_encoder", "", "width of the vector that each token carries through the encoder, where it has its own"),
    Symbol("n_encoder_kv_heads", "", "key/value heads in the encoder"),
    Symbol("encoder_window", "", "tokens that a layer of the encoder with a window sees to each side"),
    Symbol("n_written", "", "tokens in the decoder’s vocabulary, where it has its own"),
    Symbol("n_added", "", "rows of the embedding table behind those of the vocabulary"),
    Symbol("n_bands", "", "bands of sound whose loudness each moment of a spectrogram has"),
    Symbol("n_places", "", "places across a page, and as many down it, that have a trained vector"),
    Symbol("n_buckets", "", "distances, far ones together, that have a trained number of their own"),
    Symbol("n_segments", "", "rows of the table that says which of two texts a token belongs to"),
    Symbol("n_tasks", "", "rows of the table that says what a text is read for"),
    Symbol("n_distances", "", "rows of the table of distances between two tokens, to both sides"),
    Symbol("n_languages", "", "rows of the table that says which language a token is in"),
    Symbol("n_sounds", "", "rows of the table of pronunciations of characters"),
    Symbol("d_sound", "", "width of the table of pronunciations"),
    Symbol("n_forms", "", "rows of the table of the looks of characters"),
    Symbol("d_form", "", "width of the table of looks"),
    Symbol("n_prompts", "", "kinds of trained prompts"),
    Symbol("n_prompt", "", "trained vectors before each text"),
    Symbol("n_outputs", "", "tokens at the beginning of the vocabulary that the output head scores, where not all"),
    Symbol("n_ahead", "", "tokens ahead that a decoder predicts at once"),
    Symbol("n_global", "", "trained vectors that see a whole text"),
    Symbol("d_image", "", "width of the vectors of an image"),
    Symbol("d_output", "", "width of the vector that the output head scores, where it is not d_model"),
    Symbol("d_embedding", "", "width of the embedding table where it is not d_model"),
    Symbol("d_per_layer", "", "width of the token’s own vector for each layer"),
    Symbol("per_layer_vocab_size", "", "tokens in the table that has a vector for each layer"),
    Symbol("n_layers", "L", "layers", "N, n_{layers}"),
    Symbol("n_heads", "N", "attention heads (of the query)", "h, n_{heads}"),
    Symbol("n_kv_heads", "K", "key/value heads, each shared by n_heads / n_kv_heads query heads", "g, n_{kv}"),
    Symbol("n_encoder_segments", "", "rows of the encoder’s table that says which of two texts a token belongs to"),
    Symbol("n_encoder_heads", "", "attention heads in the encoder"),
    Symbol("d_encoder_head", "", "width of one head in the encoder"),
    Symbol("n_sliding_heads", "", "query heads in the layers that see a window"),
    Symbol("n_other_heads", "", "query heads in the layers that have another number of them"),
    Symbol("n_sliding_kv_heads", "", "key/value heads in the layers that see a window"),
    Symbol("n_global_kv_heads", "", "key/value heads in the layers that see everything"),
    Symbol("d_head", "H", "width of one head", "d_k, d_{head}"),
    Symbol("d_global_head", "", "width of one head in the layers that see everything"),
    Symbol("d_cross_head", "", "width of one head where a text looks at a protein"),
    Symbol("d_rotary", "", "numbers of a head that are rotated by position"),
    Symbol("d_ff", "F", "inner width of the feed-forward network", "d_{ff}"),
    Symbol("d_ff_both", "", "inner width of the feed-forward network and of its gate together"),
    Symbol("d_cross_ff", "", "inner width of the feed-forward network behind the look at a protein"),
    Symbol("d_ff_encoder", "", "inner width of the feed-forward network in the encoder"),
    Symbol("d_decoder", "", "width of the vector that each byte carries through a local decoder"),
    Symbol("n_decoder_heads", "", "attention heads in a local decoder"),
    Symbol("n_decoder_kv_heads", "", "key/value heads in a local decoder"),
    Symbol("d_decoder_head", "", "width of one head in a local decoder"),
    Symbol("d_ff_decoder", "", "inner width of the feed-forward network in a local decoder"),
    Symbol("patch_size", "", "bytes of a patch, where costs are counted for patches of one size"),
    Symbol("n_patch_vectors", "", "vectors of each patch"),
    Symbol("n_hashes", "", "hash functions, each with rows of its own"),
    Symbol("n_hash_rows", "", "rows of the table of hashed bytes for each function and each number of bytes"),
    Symbol("patcher_vocab_size", "", "bytes in the patcher’s vocabulary"),
    Symbol("d_patcher", "", "width of the vector that each byte carries through the patcher"),
    Symbol("n_patcher_heads", "", "attention heads in the patcher"),
    Symbol("n_patcher_kv_heads", "", "key/value heads in the patcher"),
    Symbol("d_patcher_head", "", "width of one head in the patcher"),
    Symbol("patcher_window", "", "bytes that a layer of the patcher sees, the byte itself included"),
    Symbol("d_ff_patcher", "", "inner width of the feed-forward network in the patcher"),
    Symbol("d_ff_other", "", "inner width of the feed-forward network in the layers that have another one"),
    Symbol("d_ff_dense", "", "inner width of the feed-forward network in the layers without experts"),
    Symbol("d_narrow", "", "width of the vector inside of a layer that is narrower there"),
    Symbol("d_adapter", "", "inner width of the narrow network of a language"),
    Symbol("d_qk", "", "width of queries and keys of all heads together"),
    Symbol("d_qk_head", "", "width of queries and keys of one head"),
    Symbol("d_v", "", "width of the values of all heads together"),
    Symbol("d_v_head", "", "width of the values of one head"),
    Symbol("q_lora_rank", "", "width that queries are compressed to (latent attention)", "d'_c"),
    Symbol("kv_lora_rank", "", "width that keys and values are compressed to, and cached (latent attention)", "d_c"),
    Symbol("qk_nope_head_dim", "", "numbers of a query or key head that carry no position", "d_h"),
    Symbol("qk_rope_head_dim", "", "numbers of a query or key head that are rotated by position", "d_h^R"),
    Symbol("v_head_dim", "", "width of a value head", "d_h"),
    Symbol("n_sinks", "", "trained keys that every token sees before the text"),
    Symbol("n_experts", "E", "routed experts of a mixture-of-experts layer", "N_r, n"),
    Symbol("n_experts_per_token", "", "experts that each token is sent to", "K_r, k"),
    Symbol("n_shared_experts", "", "experts that every token passes through", "N_s"),
    Symbol("n_expert_groups", "", "groups that the experts are cut into before the choice"),
    Symbol("n_groups_kept", "", "of those groups, how many a token may choose from"),
    Symbol("index_n_heads", "", "heads of the small attention that picks tokens (sparse attention)", "H^I"),
    Symbol("index_head_dim", "", "width of one of these heads", "d^I"),
    Symbol("index_topk", "", "tokens that it picks for each new one", "k"),
    Symbol("d_ff_expert", "", "inner width of one expert"),
    Symbol("d_ff_unit", "", "the width of which each layer’s feed-forward network has a multiple"),
    Symbol("d_ff_shared", "", "inner width of the shared expert"),
    Symbol("loop_window", "", "tokens that a later run of a layer sees among its own, the token itself included"),
    Symbol("window", "", "tokens that a layer with a window sees to each side"),
    Symbol("n_entities", "", "entities that have a row of their own in a table (LUKE)"),
    Symbol("d_entity", "", "width of an entity’s row in that table"),
    Symbol("sliding_window", "W", "tokens that a layer with a sliding window sees, the token itself included", "W"),
    Symbol("attention_chunk_size", "", "tokens of one chunk, within which a chunked layer sees"),
    Symbol("published_kv_heads", "", "key/value heads as the config gives them"),
    Symbol("trained_context", "", "tokens that the rotation by position was first trained on"),
    Symbol("n_linear_k_heads", "", "key heads of linear attention"),
    Symbol("n_linear_v_heads", "", "value heads of linear attention"),
    Symbol("d_linear_k_head", "", "width of a key head of linear attention"),
    Symbol("d_linear_v_head", "", "width of a value head of linear attention"),
    Symbol("n_linear_heads", "", "heads of linear attention"),
    Symbol("d_linear_head", "", "width of one head of linear attention"),
    Symbol("d_inner", "", "inner width of a state-space layer", "E·D"),
    Symbol("n_mamba_heads", "", "heads of a state-space layer"),
    Symbol("d_mamba_head", "", "width of one of these heads"),
    Symbol("d_latent", "", "width that a token is narrowed to before its experts"),
    Symbol("n_value_experts", "", "matrices of which a few make a token’s values"),
    Symbol("n_value_experts_per_token", "", "matrices that make each token’s values"),
    Symbol("n_zero_experts", "", "experts that leave a token as it is", "Z"),
    Symbol("n_streams", "", "residual streams that run through the layers side by side", "n"),
    Symbol("stream_rank", "", "width that the streams are narrowed to for their gates"),
    Symbol("compressed_by", "", "tokens that one entry of a compressed cache stands for", "m"),
    Symbol("heavily_compressed_by", "", "the same in layers that compress more", "m'"),
    Symbol("n_output_groups", "", "groups of heads that are narrowed apart", "g"),
    Symbol("o_lora_rank", "", "width that each group of heads is narrowed to", "d_g"),
    Symbol("pool_size", "", "tokens of one pool, which are picked together"),
    Symbol("block_size", "", "tokens of one block, which are picked together"),
    Symbol(
        "n_blocks", "", "blocks of tokens that are picked for each new one; blocks of steps that several layers share"
    ),
    Symbol("n_proposed_blocks", "", "blocks of entries that one layer proposes to those that pick entries"),
    Symbol("proposed_block_size", "", "entries of such a block"),
    Symbol("gate_rank", "", "width that a vector is narrowed to for the gate of its norm"),
    Symbol("n_window_heads", "", "attention heads in layers with a window, where they are others"),
    Symbol("n_window_kv_heads", "", "key/value heads in these layers"),
    Symbol("d_window_head", "", "width of one head in these layers"),
    Symbol("window_q_lora_rank", "", "width that the query is narrowed to in these layers"),
    Symbol("window_kv_lora_rank", "", "width of the latent vector in these layers"),
    Symbol("window_nope_head_dim", "", "width of a head’s part for content in these layers"),
    Symbol("window_rope_head_dim", "", "width of a head’s part for position in these layers"),
    Symbol("window_v_head_dim", "", "width of a head’s value in these layers"),
    Symbol("d_distance", "", "numbers of a head that mix the profiles of distance"),
    Symbol("longest_distance", "", "tokens back to which a distance counts"),
    Symbol("real_vocabulary", "", "tokens of the vocabulary without those that fill the table up"),
    Symbol("d_ngrams", "", "width of what tables of n-grams say of a token"),
    Symbol("longest_ngram", "", "tokens of the longest n-gram that is looked up", "N"),
    Symbol("n_ngram_heads", "", "rows that are looked up for each length of n-gram"),
    Symbol("d_ngram_row", "", "width of a row of a table of n-grams"),
    Symbol("n_norm_groups", "", "groups of numbers that a norm after lightning attention scales apart"),
    Symbol("ngram_rows", "", "rows of the first table of n-grams, each further one has two more"),
    Symbol("d_ngram_conv", "", "tokens that the convolution after a table of n-grams mixes"),
    Symbol("d_state", "", "numbers of state for each inner channel of a state-space layer", "N"),
    Symbol("taps", "", "tokens that the convolution beside the first layer mixes"),
    Symbol("conv_width", "", "tokens that a convolution in attention mixes, the token itself included"),
    Symbol("d_conv", "", "tokens that a short convolution looks back on, the token itself included"),
    Symbol("dt_rank", "", "width that the step size of a state-space layer is computed from", "R"),
    Symbol("d_decay", "", "width that a vector is narrowed to for the decays of its channels"),
    Symbol("d_rate", "", "width that a vector is narrowed to for the rates of taking back"),
    Symbol("d_value_mix", "", "width that a vector is narrowed to for the share of the first layer’s values"),
    Symbol("d_gate", "", "width that a vector is narrowed to for the gate of the output"),
    Symbol("d_both", "", "width of the vector that a shared block sees, with the token’s embedding beside it"),
    Symbol("adapter_rank", "", "width that the adapters of a shared block narrow to", "r"),
    Symbol("active_stream", "", "which of the streams a layer computes"),
    Symbol("d_laurel", "", "width of the narrow way around attention"),
    Symbol("n_features", "", "hidden states of the target that a draft head reads for each token"),
    Symbol("d_target", "", "width of the target’s hidden states, where the draft head’s are not as wide"),
    Symbol("n_centroids", "", "groups of tokens that a draft head chooses from before it scores tokens"),
    Symbol("n_centroids_kept", "", "groups whose tokens are scored"),
    Symbol("draft_vocab_size", "", "tokens that a draft head can propose"),
    Symbol(
        "draft_block_size", "", "tokens of the block that a draft head fills in one step, the last known one included"
    ),
    Symbol("n_draft_heads", "", "heads that each propose a token in one step"),
    Symbol("n_residual_blocks", "", "residual blocks of each of these heads"),
    Symbol("n_groups", "", "groups of state-space heads that share their input and output maps", "G"),
)

_BY_NAME = {s.name: s for s in SYMBOLS}


def symbol(name: str) -> Symbol:
    """The entry of a name; without letter or paper if the name is not on the list."""
    if name not in _BY_NAME and name.startswith("n_") and name.endswith("_layers"):
        return Symbol(name, "", f"layers of the kind “{name[2:-7].replace('_', ' ')}”")
    return _BY_NAME.get(name) or Symbol(name, "", name.replace("_", " "))


def letter(name: str) -> str:
    """The letter of a size, or its name if it has none."""
    return symbol(name).letter or name


def config_keys(name: str) -> tuple[str, ...]:
    """The `config.json` keys that give this size, over all architectures."""
    return tuple(sorted(_keys_of_fields().get(name, ())))


@cache
def _keys_of_fields() -> dict[str, set[str]]:
    keys: dict[str, set[str]] = {}
    for architecture in architectures().values():
        for k in fields_of(architecture.config):
            if k.key:
                keys.setdefault(k.field, set()).add(k.key)
    return keys


def known(name: str) -> bool:
    """Whether the name is on the list."""
    return name in _BY_NAME or (name.startswith("n_") and name.endswith("_layers"))


@cache
def config_sizes() -> frozenset[str]:
    """Every size that some architecture's config has."""
    return frozenset(k.field for a in architectures().values() for k in fields_of(a.config) if k.is_size)
