"""The closed forms of newer architectures: latents with indexers, several residual streams, layers that differ.

Written like those of `test_closed_forms`, from the published blocks. The golden checkpoints prove them, and random
configs prove the forward passes.
"""

from __future__ import annotations

from closed_forms import (
    BOOL,
    LATENT_BLOCKS,
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
    in_turns,
    indexer,
    is_sparse,
    latent,
    sizes,
)
from closed_forms_recurrent import kimi_delta

EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts")


def layered(layer, final=lambda c: c["hidden_size"], layers="num_hidden_layers", used="num_experts_per_tok"):
    """A sum over layers: `layer` gives the parameters of layer i, those of one expert in it, and its cache."""

    def form(c: dict) -> Form:
        total, one, cache = (sum(part) for part in zip(*(layer(c, i) for i in range(c[layers]))))
        return Form(ends(c, False) + final(c) + total, cache, one, (experts(c), c.get(used, 0)))

    return form


def experts(c: dict) -> int:
    """How many routed experts a layer has."""
    return next((c[name] for name in EXPERTS if name in c), 0)


def feed(c: dict, i: int) -> tuple[int, int]:
    """The feed-forward part of layer i, with its router and shared experts if it has experts, and one of them."""
    D = c["hidden_size"]
    if not is_sparse(c, i):
        return gated(D, c["intermediate_size"]), 0
    W = c["moe_intermediate_size"]
    shared = c.get("shared_expert_intermediate_size") or c.get("n_shared_experts", 0) * W
    return experts(c) * (D + gated(D, W)) + gated(D, shared), gated(D, W)


def hyper(c: dict, rows: int, scales: int) -> int:
    """What mixes the residual streams: rows on all of them, a base, scales."""
    return rows * c["hc_mult"] * c["hidden_size"] + rows + scales


def latents(c: dict) -> int:
    """Cache elements a token: the latent, and the rotated key of all heads."""
    return c["kv_lora_rank"] + c["qk_rope_head_dim"]


def axk1(c, i):
    """A norm more after a mixture."""
    D = c["hidden_size"]
    inside, one = feed(c, i)
    return latent(c) + (3 if is_sparse(c, i) else 2) * D + inside, one, latents(c)


def axk2(c, i):
    """Queries and gates from twice the narrow query, and norms with a narrow gate."""
    D, N, Q, v = c["hidden_size"], c["num_attention_heads"], c["q_lora_rank"], c["v_head_dim"]
    queries = Q * N * (c["qk_nope_head_dim"] + c["qk_rope_head_dim"])
    gates = (2 if is_sparse(c, i) else 1) * 2 * D * c["gated_norm_rank"]
    inside, one = feed(c, i)
    return latent(c) + queries + 2 * Q * N * v + indexer(c, Q) + 2 * D + gates + inside, one, latents(c)


def picks(c: dict, i: int) -> bool:
    """Whether layer i has an indexer of its own."""
    return c["indexer_types"][i] == "full"


def hy_v4(c, i):
    """A gate on what the heads read, sinks, streams; the first layer is dense unless the layers are listed."""
    D, N, M = c["hidden_size"], c["num_attention_heads"], c["hc_mult"]
    inside, one = feed({"first_k_dense_replace": 1} | c, i)
    mixer = latent(c) + N + D * N * c["v_head_dim"] + (indexer(c, c["q_lora_rank"]) if picks(c, i) else 0)
    return mixer + 2 * D + 2 * hyper(c, 2 * M, 2) + inside, one, latents(c)


def mistral_large4(c, i):
    """No narrow query, latents that some layers take from others, and no rotated part in some."""
    D, N, n = c["hidden_size"], c["num_attention_heads"], c["index_n_heads"]
    if not c["no_rope_layers"][i]:
        c = c | {"qk_nope_head_dim": c["qk_nope_head_dim"] + c["qk_rope_head_dim"], "qk_rope_head_dim": 0}
    own, b, R = c["kv_source_layers"][i] == i, bool(c.get("attention_bias")), c["kv_lora_rank"]
    mixer = latent(c) + 2 * N - (0 if own else (D + b) * latents(c) + R)
    inside, one = feed(c, i)
    pick = indexer(c, D) + 2 * D + 2 * n if picks(c, i) else 0
    return mixer + pick + 2 * D + inside, one, latents(c) if own else 0


def glm5_next(c, i):
    """A delta rule with narrow gates, or latents whose indexer pools its keys; streams."""
    table = c.get("linear_attn_config") or {}
    k = c.get("linear_conv_kernel_dim") or table["short_conv_kernel_size"]
    N, H = c.get("linear_num_heads") or table["num_heads"], c.get("linear_head_dim") or table["head_dim"]
    D, M, h = c["hidden_size"], c["hc_mult"], c["index_head_dim"]
    linear = c["layer_types"][i] == "linear_attention"
    if linear:
        mixer = kimi_delta(D, N, H, k, 2 * (D * H + H * N * H))
    else:
        mixer = latent(c) + (indexer(c, c["q_lora_rank"]) + (c["index_kpool"] + D) * h if picks(c, i) else 0)
    inside, one = feed(c, i)
    return mixer + 2 * D + 2 * hyper(c, (2 + M) * M, 3) + inside, one, 0 if linear else latents(c)


def compressor(D: int, H: int, rate: int, width: int) -> int:
    """Vectors made of `rate` tokens each: places, values and shares of `width` numbers, and a norm."""
    return (rate + 2 * D) * width + H


def deepseek_v4(c, i):
    """One vector for keys and values, a grouped way back, sinks, two kinds of compression, streams."""
    D, N, Q, H, M = c["hidden_size"], c["num_attention_heads"], c["q_lora_rank"], c["head_dim"], c["hc_mult"]
    n, h = c["index_n_heads"], c["index_head_dim"]
    mixer = D * Q + Q + Q * N * H + D * H + H + N + c["o_lora_rank"] * (N * H + D * c["o_groups"])
    ratio, few, many = c["compress_ratios"][i], c.get("compress_rate_csa", 4), c.get("compress_rate_hca", 128)
    cache = H
    if ratio == 4:
        mixer += compressor(D, H, few, 2 * H) + compressor(D, h, few, 2 * h) + Q * n * h + D * n
        cache += H // few
    elif ratio:
        mixer += compressor(D, H, many, H)
        cache += H // many
    inside, one = feed(c | {"n_shared_experts": 1}, i)
    return mixer + 2 * D + 2 * hyper(c, (2 + M) * M, 3) + inside, one, cache


def deepseek_v41(c, i):
    """One vector for keys and values, sinks; entries that some layers make, and others choose from; tables, streams."""
    D, N, Q, H, M = c["hidden_size"], c["num_attention_heads"], c["q_lora_rank"], c["head_dim"], c["hc_mult"]
    n, h, ratio = c["index_n_heads"], c["index_head_dim"], c["compress_ratios"][i]
    mixer = D * Q + Q + Q * N * H + D * H + H + N + c["o_lora_rank"] * (N * H + D * c["o_groups"])
    makes, cache = ratio and i in c["kv_source_layer_ids"], H
    if makes:
        mixer += D * H * (2 if ratio > 1 else 1) + H + H * h + h
        cache += H // ratio
    if ratio and i in c["index_source_layer_ids"]:
        mixer += Q * n * h + D * n
    if i in c["engram_layer_ids"]:
        columns = c["engram_n_heads"] * (c["engram_max_ngram_size"] - 1)
        rows = c["engram_num_embeddings"][c["engram_layer_ids"].index(i)]
        mixer += rows * c["engram_head_dim"] + columns * c["engram_head_dim"] * D * (M + 1) + 2 * M * D
    inside, one = feed(c | {"n_shared_experts": 1}, i)
    return mixer + 2 * D + 2 * hyper(c, (2 + M) * M, 3) + inside, one, cache


def one_stream(c):
    """The last norm, and what makes one stream of several before it."""
    return c["hidden_size"] + hyper(c, c["hc_mult"], 1)


def qwen4_exp(c, i):
    """A delta rule or gated attention with an indexer, narrow maps between streams, tables of n-grams."""
    D, _, N, K, H, _ = sizes(c)
    wide, k = c["hc_count"] * D, c["ple_conv_kernel_size"]
    types, every = c.get("layer_types"), c.get("full_attention_interval", 4)
    linear = types[i] == "linear_attention" if types else (i + 1) % every != 0
    if linear:
        mixer = delta_net(c)
    else:
        b, h = c.get("attention_bias", False), c["indexer_head_dim"]
        mixer = attention(D, 2 * N, K, H, b, b) - N * H * D + 2 * H + (c["indexer_n_heads"] + 1) * h * D + 2 * h
    if i + 1 in c["ple_layer_ids"]:
        heads = (c["ngram_size"] - 1) * c["heads_per_ngram"]
        d, first = c["ple_embed_dim"], heads * c["ple_layer_ids"].index(i + 1)
        rows = sum(primes_from(c["ngram_vocab_size_base"], first + heads)[first:])
        step = c["make_ngram_vocab_size_divisible_by"]
        mixer += -(-rows // step) * step * (d // heads) + (wide + D) * d + (3 + k) * wide
    inside, one = feed(c, i)
    streams = 2 * (narrow(c) + c["hc_count"] * wide)
    return mixer + streams + inside + D, one, 0 if linear else 2 * K * H


def narrow(c: dict) -> int:
    """A norm over all the streams, and a way down and up again."""
    return (1 + 2 * c["hc_lowrank"]) * c["hc_count"] * c["hidden_size"]


def primes_from(start: int, n: int) -> list[int]:
    """The first n primes that are not below `start`."""
    primes = [p for p in range(start, start + 40 * n) if all(p % q for q in range(2, int(p**0.5) + 1))]
    return primes[:n]


def lara_mini(c, i):
    """A delta rule or attention with norms of queries and keys; experts in every layer, and a shared one."""
    D, _, N, K, H, _ = sizes(c)
    linear, b = c["layer_types"][i] == "linear_attention", bool(c.get("attention_bias"))
    mixer = delta_net(c) if linear else attention(D, N, K, H, b, b) + 2 * H
    inside, one = feed(c, i)
    return mixer + 2 * D + inside, one, 0 if linear else 2 * K * H


def longcat_flash(c, i):
    """Two attentions and two dense parts a layer, and experts, some of which hand their input on."""
    D, W, n = c["hidden_size"], c["expert_ffn_hidden_size"], c["n_routed_experts"]
    dense = latent(c) + gated(D, c["ffn_hidden_size"]) + 2 * D
    return 2 * dense + (n + c["zero_expert_num"]) * D + n * gated(D, W), gated(D, W), 2 * latents(c)


def with_ngrams(c):
    """The last norm, and the tables of n-grams, each with two rows more than the one before and a map of its own."""
    D, n = c["hidden_size"], c["emb_split_num"] * (c["emb_neighbor_num"] - 1)
    first = int(c["ngram_vocab_size_ratio"] * c["vocab_size"]) + 1
    return D + sum((first + 2 * i + D) * (D // n) for i in range(n))


def longcat_flash_sparse(c, i):
    """LongCat-Flash’s layer with an indexer of small heads. A cache per token is without its keys."""
    total, expert, kept = longcat_flash(c, i)
    if c.get("attention_method", "LSA") == "MLA":
        return total, expert, kept
    D, Q, n, h = c["hidden_size"], c["q_lora_rank"], c["index_n_heads"], c.get("index_head_dim", 128)
    norm = h if c.get("index_k_norm_type", "rms") == "rms" else 2 * h
    return total + Q * n * h + D * h + norm + D * n, expert, kept


def with_further_ngrams(c):
    """The last norm, and the tables of n-grams, if there are any."""
    D, n, ratio = c["hidden_size"], c["oe_split_num"] * (c["oe_neighbor_num"] - 1), c["oe_vocab_size_ratio"]
    first = ratio * c["vocab_size"] + 1
    return D + (sum((first + 2 * i + D) * (D // n) for i in range(n)) if ratio else 0)


def minimax_m3(c, i):
    """Norms of queries and keys, and an indexer of blocks in some layers."""
    D, _, N, K, H, W = sizes(c)
    table = c.get("sparse_attention_config")
    if table:
        picking, n, h = table["sparse_attention_freq"][i], table["sparse_num_index_heads"], table["sparse_index_dim"]
    else:
        picking, n, h = c["layer_types"][i] == "minimax_m3_sparse", c["index_n_heads"], c["index_head_dim"]
    pick = (n + 1) * h * D + 2 * h if picking else 0
    inside, one = feed(
        c
        | {
            "intermediate_size": c["dense_intermediate_size"],
            "moe_intermediate_size": W,
            "shared_expert_intermediate_size": c["shared_intermediate_size"],
        },
        i,
    )
    return attention(D, N, K, H) + 2 * H + 2 * D + pick + inside, one, 2 * K * H


def muse(c, i):
    """A gate on what the heads read, four norms; or three, two gated residuals and experts between two maps."""
    D, _, N, K, H, F = sizes(c)
    b = c.get("attention_bias", False)
    mixer = attention(D, N, K, H, b, b) + D * N * H
    if "moe_hidden_size" not in c:
        return mixer + 4 * D + gated(D, F), 0, 2 * K * H
    if not is_sparse(c, i):
        return mixer + 5 * D + gated(D, F), 0, 2 * K * H
    inner = c["moe_hidden_size"]
    one = gated(inner, c["moe_intermediate_size"])
    return mixer + 5 * D + experts(c) * (D + one) + 2 * (D + 1) * inner, one, 2 * K * H


def sight(c: dict, i: int) -> tuple[int, int, int, int]:
    """(N, K, H, distances) of a layer of Inkling, which differ in layers with a window."""
    if c["layer_types"][i] == "hybrid":
        return c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"], c["rel_extent"]
    return c["swa_num_attention_heads"], c["swa_num_key_value_heads"], c["swa_head_dim"], c["sliding_window_size"]


def inkling(c, i):
    """Convolutions after keys, values and both parts, and profiles over distances in place of rotation."""
    D, k, r = c["hidden_size"], c["conv_kernel_size"], c["d_rel"]
    N, K, H, distances = sight(c, i)
    mixer = attention(D, N, K, H) + D * N * r + r * distances + 2 * K * H * k + 2 * H
    inside, one = feed(c, i)
    sink = c["n_shared_experts"] * D if one else 0
    return mixer + 2 * D + 2 * D * k + inside + sink + 1, one, 2 * K * H


def inkling2(c, i):
    """Besides: gates, sinks, clipped norms, taps from the token in full layers, attention over earlier blocks."""
    D, k, r = c["hidden_size"], c["conv_kernel_size"], c["d_rel"]
    N, K, H, distances = sight(c, i)
    full = c["layer_types"][i] == "hybrid"
    mixer = attention(D, N, K, H) + D * N * r + r * distances + 2 * K * H * k + D * N * H + D * N + N * (H + r)
    inputs = 3 if full else 1
    queries = 1 + (inputs if i else 0)
    taps = 2 * K * k * D if full else 0
    inside, one = feed(c, i)
    return mixer + taps + (inputs + 1 + queries + 2 * k) * D + inside, one, 2 * K * H


def inkling2_loop(c, i):
    """The same, with four gates of low rank and four queries in the layers of the loop, which keep a cache each run."""
    total, one, cache = inkling2(c, i)
    if not c["loop_layer_index_start"] <= i < c["loop_layer_index_end"]:
        return total, one, cache
    D = c["hidden_size"]
    runs = c["loop_num_passes"]
    return total + 4 * D + 4 * 4 * D * c["loop_gate_rank"], one, runs * cache


def naive(c, i):
    """Twice the heads of keys and a sink in layers with windows, an indexer in the others; narrower values."""
    D, N, K, H, V = (
        c[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
    )
    slides = c["hybrid_layer_pattern"][i] if "hybrid_layer_pattern" in c else c["layer_types"][i] != "full_attention"
    K = c.get("swa_num_key_value_heads", 2 * K) if slides else K
    inside, one = feed(c | {"n_shared_experts": 0}, i)
    mixer = D * (N * (H + V) + K * (H + V)) + (N if slides else indexer(c, D))
    return mixer + 2 * D + inside, one, K * (H + V)


def solar_open2(c, i):
    """Kimi's delta rule with gates of low rank, or attention with a gate; a shared expert."""
    D, N, K, H = (c[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"))
    table, inside = c["linear_attn_config"], feed(c, i)
    n, h = table["num_heads"], table["head_dim"]
    if i not in c["gqa_layers"] if "gqa_layers" in c else c["layer_types"][i] == "linear_attention":
        gates = 2 * D * n * h if c["kda_use_full_proj"] else 2 * (D * h + h * n * h)
        mixer, cache = kimi_delta(D, n, h, table["short_conv_kernel_size"], gates), 0
    else:
        gate = (D + c["use_gqa_gate_bias"]) * N * H if c["use_gqa_gate"] else 0
        mixer, cache = attention(D, N, K, H) + gate + (2 * H if c["use_qk_norm"] else 0), 2 * K * H
    return mixer + 2 * D + inside[0], inside[1], cache


FORMS = {
    "naive_n05_flash": layered(naive),
    "solar_open2": layered(solar_open2),
    "inkling2_loop_text": layered(inkling2_loop, lambda c: 3 * c["hidden_size"]),
    "axk1": layered(axk1),
    "axk2": layered(axk2),
    "hy_v4": layered(hy_v4, one_stream),
    "hy_v4_vl_text": layered(hy_v4, one_stream),
    "lara_mini": layered(lara_mini),
    "mistral_large4_text": layered(mistral_large4),
    "glm5_next_text": layered(glm5_next),
    "deepseek_v4": layered(deepseek_v4, one_stream),
    "deepseek_v41_text": layered(deepseek_v41),
    "qwen4_exp_text": layered(qwen4_exp, narrow),
    "longcat_flash": layered(longcat_flash, layers="num_layers", used="moe_topk"),
    "longcat_flash_ngram": layered(longcat_flash, with_ngrams, layers="num_layers", used="moe_topk"),
    "longcat_flash_sparse": layered(longcat_flash_sparse, with_further_ngrams, layers="num_layers", used="moe_topk"),
    "minimax_m3_vl_text": layered(minimax_m3),
    "muse_spark_text": layered(muse),
    "muse_glimmer_text": layered(muse),
    "inkling_text": layered(inkling, lambda c: 2 * c["hidden_size"]),
    "inkling2_text": layered(inkling2, lambda c: 3 * c["hidden_size"]),
}


# --- random configs ---------------------------------------------------------------------------------------------------


def without_keys(c: dict, *names: str) -> dict:
    return {k: v for k, v in c.items() if k not in names}


def without(base, *names: str):
    return base.map(lambda c: without_keys(c, *names))


SPARSE = (["sparse"], ["dense", "sparse"], ["dense", "sparse", "sparse"])
FULL = (["full"], ["full", "full", "shared"])
INDEXED = both(
    without(LATENT_BLOCKS, "n_group", "topk_group", "first_k_dense_replace"),
    fixed(index_n_heads=(3, 5), index_head_dim=(46, 58), index_topk=(4, 12)),
    flags(attention_bias=BOOL),
)
STREAMS = fixed(hc_mult=(2, 3))
MIXTURE = fixed(moe_intermediate_size=(29, 31), **MOE)
RELATIVE = in_turns(
    both(
        without(blocks(), "tie_word_embeddings"),
        MIXTURE,
        fixed(
            swa_num_attention_heads=(6,),
            swa_num_key_value_heads=(2, 3),
            swa_head_dim=(10, 18),
            sliding_window_size=(4, 9),
            d_rel=(3, 5),
            rel_extent=(6, 11),
            conv_kernel_size=(3, 4),
            n_routed_experts=(5, 7),
        ),
    ),
    layer_types=(["hybrid_sliding", "hybrid"], ["hybrid_sliding"], ["hybrid"]),
)
GATED = both(blocks(), flags(attention_bias=BOOL, sliding_window=(4, 9)))
RANDOM = {
    "axk1": both(LATENT_BLOCKS, flags(attention_bias=BOOL)),
    "axk2": in_turns(both(INDEXED, fixed(gated_norm_rank=(3, 5))), mlp_layer_types=SPARSE),
    "hy_v4": in_turns(both(INDEXED, STREAMS), mlp_layer_types=SPARSE, indexer_types=FULL),
    "hy_v4_vl_text": in_turns(both(INDEXED, STREAMS), mlp_layer_types=SPARSE, indexer_types=FULL),
    "lara_mini": in_turns(
        both(
            without(blocks(), "intermediate_size"),
            MIXTURE,
            fixed(
                tie_word_embeddings=BOOL,
                linear_num_key_heads=2,
                linear_num_value_heads=(4, 6),
                linear_key_head_dim=(7, 11),
                linear_value_head_dim=(13, 17),
                linear_conv_kernel_dim=(3, 4),
                num_experts=(5, 7),
                shared_expert_intermediate_size=(37, 41),
                sliding_window=(4, 9),
            ),
            flags(attention_bias=BOOL),
        ),
        layer_types=(["linear_attention", "sliding_attention"], ["full_attention", "linear_attention"]),
    ),
    "mistral_large4_text": in_turns(
        both(without(INDEXED, "q_lora_rank"), fixed(kv_source_layers=BOOL)),
        mlp_layer_types=SPARSE,
        indexer_types=FULL,
        no_rope_layers=([1], [1, 0, 1]),
    ).map(
        # A layer takes latents from one that is rotated like it.
        lambda c: (
            c
            | {
                "kv_source_layers": [
                    c["no_rope_layers"].index(turns) if c["kv_source_layers"] else i
                    for i, turns in enumerate(c["no_rope_layers"])
                ]
            }
        )
    ),
    "glm5_next_text": in_turns(
        both(
            INDEXED,
            STREAMS,
            fixed(
                qk_rope_head_dim=(0, 6),
                index_kpool=(2, 3),
                linear_head_dim=(7, 11),
                linear_num_heads=(3, 5),
                linear_conv_kernel_dim=(3, 4),
            ),
        ),
        mlp_layer_types=SPARSE,
        indexer_types=(["full"],),
        layer_types=(["linear_attention", "indexed_attention"], ["indexed_attention"], ["linear_attention"]),
    ),
    "deepseek_v41_text": both(
        without(blocks(), "intermediate_size", "tie_word_embeddings").map(
            lambda c: c | {"num_attention_heads": 6, "num_key_value_heads": 1, "num_hidden_layers": 6}
        ),
        STREAMS,
        MIXTURE,
        fixed(
            head_dim=(24, 36),
            q_lora_rank=(37, 41),
            n_routed_experts=(5, 7),
            compress_ratios=([0, 2, 2, 1, 1, 1, 0], [1, 1, 3, 3, 0, 3], [0] * 6),
            kv_source_layer_ids=([0, 1, 2, 3],),
            index_source_layer_ids=([0, 1, 2, 3, 5],),
            o_groups=(2, 3),
            o_lora_rank=(7, 11),
            index_n_heads=(3, 5),
            index_head_dim=(14, 22),
            index_topk=(2, 5),
            qk_rope_head_dim=(6, 10),
            sliding_window=(4, 9),
            engram_layer_ids=([0, 4],),
            engram_num_embeddings=([900, 1900],),
            engram_max_ngram_size=(2, 3),
            engram_vocab_size=(50, 89),
            engram_n_heads=(2, 3),
            engram_head_dim=(5, 11),
        ),
    ),
    "deepseek_v4": in_turns(
        both(
            without(blocks(), "intermediate_size").map(
                lambda c: c | {"num_attention_heads": 6, "num_key_value_heads": 1}
            ),
            STREAMS,
            MIXTURE,
            fixed(
                head_dim=(24, 36),
                q_lora_rank=(37, 41),
                n_routed_experts=(5, 7),
                num_hash_layers=(0, 2),
                compress_rate_csa=(2, 3),
                compress_rate_hca=(4, 6),
                o_groups=(2, 3),
                o_lora_rank=(7, 11),
                index_n_heads=(3, 5),
                index_head_dim=(14, 22),
                index_topk=(2, 5),
                qk_rope_head_dim=(6, 10),
                sliding_window=(4, 9),
            ),
        ),
        compress_ratios=([0, 4, 128], [4], [128, 4], [0]),
    ),
    "qwen4_exp_text": in_turns(
        both(
            blocks(),
            MIXTURE,
            fixed(
                linear_num_key_heads=2,
                linear_num_value_heads=(4, 6),
                linear_key_head_dim=(7, 11),
                linear_value_head_dim=(13, 17),
                linear_conv_kernel_dim=(3, 4),
                shared_expert_intermediate_size=(37, 41),
                num_experts=(5, 7),
                hc_count=(2, 3),
                hc_lowrank=(5, 9),
                indexer_n_heads=(3, 5),
                indexer_head_dim=(26, 34),
                indexer_budget=(4, 8),
                indexer_compress_ratio=2,
                partial_rotary_factor=1.0,
                ple_layer_ids=([], [1], [1, 3]),
                ple_embed_dim=(12, 24),
                ple_conv_kernel_size=(3, 4),
                ngram_size=(2, 3),
                heads_per_ngram=(2, 3),
                ngram_vocab_size_base=(50, 89),
                make_ngram_vocab_size_divisible_by=(8, 10),
                eos_token_id=1,
            ),
            flags(attention_bias=BOOL),
        ).map(lambda c: c | {"ple_layer_ids": [i for i in c["ple_layer_ids"] if i <= c["num_hidden_layers"]]}),
        layer_types=(["linear_attention", "indexed_attention"], ["linear_attention"]),
    ),
    "longcat_flash": both(
        without(
            LATENT_BLOCKS.map(
                lambda c: (
                    c
                    | {
                        "num_layers": c["num_hidden_layers"],
                        "ffn_hidden_size": c["intermediate_size"],
                        "expert_ffn_hidden_size": c["moe_intermediate_size"],
                        "moe_topk": c["num_experts_per_tok"],
                    }
                )
            ),
            *("num_hidden_layers", "intermediate_size", "moe_intermediate_size", "num_experts_per_tok"),
            *("n_group", "topk_group", "first_k_dense_replace", "n_shared_experts"),
        ),
        fixed(zero_expert_num=(0, 3)),
        flags(attention_bias=BOOL),
    ),
    "minimax_m3_vl_text": in_turns(
        both(
            blocks(),
            fixed(
                num_local_experts=(5, 7),
                dense_intermediate_size=(79, 83),
                shared_intermediate_size=(37, 41),
                rotary_dim=(6, 10),
                index_block_size=(2, 3),
                index_topk_blocks=(2, 3),
                **MOE,
            ),
        ).map(lambda c: c | {"index_n_heads": c["num_key_value_heads"], "index_head_dim": c["head_dim"] + 4}),
        layer_types=(["full_attention", "minimax_m3_sparse"], ["minimax_m3_sparse"], ["full_attention"]),
        mlp_layer_types=SPARSE,
    ),
    "muse_glimmer_text": GATED,
    "muse_spark_text": in_turns(
        both(GATED, MIXTURE, fixed(num_local_experts=(5, 7), moe_hidden_size=(23, 37))), mlp_layer_types=SPARSE
    ),
    "inkling_text": in_turns(both(RELATIVE, fixed(n_shared_experts=(1, 2))), mlp_layer_types=SPARSE),
    "inkling2_text": both(without(RELATIVE, "intermediate_size"), fixed(n_layers_per_attn_res_block=(1, 2, 3))).map(
        lambda c: c | {"unpadded_vocab_size": c["vocab_size"]}
    ),
}
RANDOM["inkling2_loop_text"] = both(
    RANDOM["inkling2_text"], fixed(loop_num_passes=(2, 3), loop_gate_rank=(3, 5), ends=((1, 2), (1, 3), (2, 3)))
).map(
    lambda c: (
        without_keys(c, "ends", "layer_types")
        | {"num_hidden_layers": 4 * c["n_layers_per_attn_res_block"]}
        | {"layer_types": (c["layer_types"] * 12)[: 4 * c["n_layers_per_attn_res_block"]]}
        | {"loop_layer_index_start": c["ends"][0] * c["n_layers_per_attn_res_block"]}
        | {"loop_layer_index_end": c["ends"][1] * c["n_layers_per_attn_res_block"]}
    )
)
RANDOM["naive_n05_flash"] = in_turns(
    both(
        without(blocks(), "tie_word_embeddings"),
        MIXTURE,
        fixed(v_head_dim=(9, 15), head_dim=(24,), n_routed_experts=(5, 7), sliding_window=(4, 9)),
        fixed(index_n_heads=(3, 5), index_head_dim=(10, 14), index_top_k=(4, 12)),
    ),
    layer_types=(["full_attention", "sliding_attention"], ["sliding_attention", "full_attention"], ["full_attention"]),
    mlp_layer_types=SPARSE,
).map(lambda c: c | {"num_attention_heads": 2 * c["num_attention_heads"]})
RANDOM["solar_open2"] = in_turns(
    both(
        without(blocks(), "tie_word_embeddings"),
        MIXTURE,
        fixed(
            n_routed_experts=(5, 7), n_shared_experts=(1, 2), first_k_dense_replace=(0, 1, 2), sizes=((3, 7), (5, 11))
        ),
        fixed(use_qk_norm=BOOL, use_gqa_gate=BOOL, use_gqa_gate_bias=BOOL, kda_use_full_proj=BOOL, kernel=(3, 4)),
    ),
    layer_types=(["full_attention", "linear_attention"], ["linear_attention", "full_attention"]),
).map(
    lambda c: (
        without_keys(c, "sizes", "kernel")
        | {
            "linear_attn_config": {"num_heads": c["sizes"][0], "head_dim": c["sizes"][1]}
            | {"short_conv_kernel_size": c["kernel"]}
        }
    )
)
RANDOM["longcat_flash_ngram"] = both(
    RANDOM["longcat_flash"],
    fixed(ngram_vocab_size_ratio=(0.7, 3, 5.5), emb_neighbor_num=(2, 3, 4), emb_split_num=(1, 2), eos_token_id=(0, 2)),
).map(lambda c: c | {"hidden_size": 12 * c["hidden_size"]})
RANDOM["longcat_flash_sparse"] = both(
    RANDOM["longcat_flash"],
    fixed(oe_vocab_size_ratio=(0, 2, 3), oe_neighbor_num=(2, 3, 4), oe_split_num=(1, 2)),
    fixed(index_n_heads=(2, 3), index_topk=(5, 9), index_k_norm_type=("rms", "layer")),
    flags(attention_method=("LSA", "MLA"), index_head_dim=(46, 58)),
).map(lambda c: c | {"hidden_size": 12 * c["hidden_size"]})
