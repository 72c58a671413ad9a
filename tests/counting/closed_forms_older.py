"""Closed forms of older types: encoders beside BERT, translators and others from before the decoders of today."""

from __future__ import annotations

from closed_forms import BOOL, Form, attention, both, fixed, flags, gated, plain
from hypothesis import strategies as st


def bert(c):
    D, L, V = c["hidden_size"], c["num_hidden_layers"], c["vocab_size"]
    tables = V + c["max_position_embeddings"] + c.get("type_vocab_size", 2)
    layer = 4 * D * D + 4 * D + plain(D, c["intermediate_size"]) + 4 * D
    return Form((tables + 2) * D + L * layer + D * D + 3 * D + V, 0)


def blt(c):
    patcher, encoder, whole, decoder = (c[f"{name}_config"] for name in ("patcher", "encoder", "global", "decoder"))

    def stack(t):
        D, N, K = t["hidden_size"], t["num_attention_heads"], t["num_key_value_heads"]
        L, H = t["num_hidden_layers"], D // N
        return L * (attention(D, N, K, H) + gated(D, t["intermediate_size"]) + 2 * D), 2 * L * K * H

    def crossed(t, in_each):
        D, N, K = t["hidden_size"], t["num_attention_heads"], t["num_key_value_heads"]
        return (t["num_hidden_layers"] if in_each else 1) * (attention(D, N, K, D // N) + 2 * D)

    V, E, D, J = c["vocab_size"], encoder["hidden_size"], whole["hidden_size"], c["cross_attn_k"]
    rows = c["encoder_hash_byte_group_nb_functions"] * len(c["encoder_hash_byte_group_size"])
    total = (
        (V + rows * c["encoder_hash_byte_group_vocab"] + J * E + 1) * E + (J * E * D if J * E != D else 0) + D * J * E
    )
    total += (0 if c.get("tie_word_embeddings") else V * E) + stack(encoder)[0] + stack(whole)[0] + stack(decoder)[0]
    total += crossed(encoder, encoder.get("cross_attn_all_layers", False))
    total += crossed(decoder, decoder.get("cross_attn_all_layers", True))
    patches = c["patch_size"] if c["patch_in_forward"] else 1
    kept = stack(encoder)[1] + stack(decoder)[1] + stack(whole)[1] // patches
    if c["patch_in_forward"]:
        total += stack(patcher)[0] + (2 * V + 1) * patcher["hidden_size"]
        kept += stack(patcher)[1]
    return Form(total, kept)


def cpmant(c):
    D, L, N, H = c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"], c["dim_head"]
    kinds = c["segment_types"]
    tables = 2 * c["vocab_size"] + c["prompt_types"] * c["prompt_length"] + kinds
    layer = 4 * D * N * H + gated(D, c["dim_ff"]) + 2 * D
    distances = (c["position_bias_num_buckets"] + kinds * kinds) * N
    return Form(tables * D + distances + L * layer + D, 2 * L * N * H)


def xmod(c):
    D, L = c["hidden_size"], c["num_hidden_layers"]
    A = D // c["adapter_reduction_factor"]
    more = len(c["languages"]) * (2 * D * A + A + D) + (2 * D if c.get("adapter_layer_norm") else 0)
    return Form(bert(c).total + L * more + (2 * D if c.get("pre_norm") else 0), 0)


def roc_bert(c):
    D, total = c["hidden_size"], bert(c).total
    for part, width in (("pronunciation", c["pronunciation_embed_dim"]), ("shape", c["shape_embed_dim"])):
        seen = c.get("concat_input", True) and c.get(f"enable_{part}", True)
        total += c[f"{part}_vocab_size"] * width + (width * D if seen else 0)
    return Form(total + (D * D + D if c.get("concat_input", True) else 0), 0)


def deberta(c):
    D, L, V, P = c["hidden_size"], c["num_hidden_layers"], c["vocab_size"], c["max_position_embeddings"]
    tables = V + (P if c.get("position_biased_input", True) else 0) + c.get("type_vocab_size", 0) + 2
    layer = 4 * D * D + 3 * D + plain(D, c["intermediate_size"]) + 4 * D
    if c.get("relative_attention"):
        kinds, reach = c.get("pos_att_type", ()), c.get("max_relative_positions", -1)
        tables += 2 * (reach if reach > 0 else P)
        layer += len(kinds) * D * D + (D if "p2c" in kinds else 0)
    return Form(tables * D + L * layer + D * D + 3 * D + V, 0)


def squeezebert(c):
    D, L, F, V = c["hidden_size"], c["num_hidden_layers"], c["intermediate_size"], c["vocab_size"]
    q, k, v, out, up, down = (
        c[f"{part}_groups"] for part in ("q", "k", "v", "post_attention", "intermediate", "output")
    )
    layer = D * D // q + D * D // k + D * D // v + D * D // out + 4 * D + D * F // up + F + D * F // down + D + 4 * D
    tables = (V + c["max_position_embeddings"] + c["type_vocab_size"] + 2) * D
    return Form(tables + L * layer + 2 * D * D + 4 * D + V, 0)


def mobilebert(c):
    D, L, F, V, E = (
        c[k] for k in ("hidden_size", "num_hidden_layers", "intermediate_size", "vocab_size", "embedding_size")
    )
    narrow = c.get("use_bottleneck", True)
    width = c["intra_bottleneck_size"] if narrow else D
    values = width if not narrow or c.get("use_bottleneck_attention") else D
    layer = 3 * (width * width + width) + values * width + width + 2 * width
    layer += c["num_feedforward_networks"] * (plain(width, F) + 2 * width)
    if narrow:
        into = D * width + 3 * width
        layer += into * (2 if c.get("key_query_shared_bottleneck", True) else 1) + width * D + 3 * D
    tables = V * E + (c["max_position_embeddings"] + c["type_vocab_size"]) * D
    into = (3 * E if c.get("trigram_input", True) else E) * D + D + 2 * D
    return Form(tables + into + L * layer + D * D + 3 * D + (D - E) * V + V, 0)


def xlm(c):
    D, L, V = c["emb_dim"], c["n_layers"], c["vocab_size"]
    languages = c.get("n_langs", 1) if c.get("n_langs", 1) > 1 and c.get("use_lang_emb", True) else 0
    tables = V * (1 if c.get("tie_word_embeddings", True) else 2) + c["max_position_embeddings"] + languages + 2
    layer = 4 * D * D + 4 * D + plain(D, 4 * D) + 4 * D
    return Form(tables * D + L * layer + V, 2 * L * D if c.get("causal") else 0)


def xlnet(c):
    D, L, V = c["d_model"], c["n_layer"], c["vocab_size"]
    layer = 5 * D * D + 5 * D + 2 * D + plain(D, c["d_inner"]) + 2 * D
    return Form(V * D * (1 if c.get("tie_word_embeddings", True) else 2) + D + L * layer + V, L * D)


def xlstm(c):
    D, L, N, b = c["hidden_size"], c["num_hidden_layers"], c["num_heads"], int(c.get("use_bias", False))
    C, J, m = int(D * c["qk_dim_factor"]), int(D * c["v_dim_factor"]), c["ffn_round_up_to_multiple_of"]
    F = int((D * c["ffn_proj_factor"] + m - 1) // m) * m
    memory = (D + b) * 2 * (C + J) + (D + 1) * 2 * N + (1 + b) * J + J * D + b * D
    layer = memory + gated(D, F, bool(b)) + (1 + b) * 2 * D
    return Form(2 * c["vocab_size"] * D + L * layer + D, 0)


def stacks(c, attention):
    """Two stacks of layers, each part with a norm."""
    D, E, L = c["d_model"], c["encoder_layers"], c["decoder_layers"]
    encoder = attention + plain(D, c["encoder_ffn_dim"]) + 4 * D
    return E * encoder + L * (2 * attention + plain(D, c["decoder_ffn_dim"]) + 6 * D)


def nllb_moe(c):
    D, E, L = c["d_model"], c["num_experts"], c["decoder_layers"]
    total, expert = c["vocab_size"] * D + 4 * D + stacks(c, 4 * D * D + 4 * D), 0
    for stack in ("encoder", "decoder"):
        every = c[f"{stack}_sparse_step"]
        sparse, one = c[f"{stack}_layers"] // every if every else 0, plain(D, c[f"{stack}_ffn_dim"])
        total += sparse * ((E - 1) * one + D * E + (E if c.get("router_bias") else 0))
        expert += sparse * one
    return Form(total, 2 * L * D, expert, (E, 2))


def pegasus_x(c):
    D, L = c["d_model"], c["decoder_layers"]
    around = c["num_global_tokens"] * D + c["encoder_layers"] * 2 * D
    return Form(c["vocab_size"] * D + 4 * D + around + stacks(c, 4 * D * D), 2 * L * D)


def big_bird(c):
    D = c["hidden_size"]
    return Form(bert(c).total + D * D + D - (0 if c.get("use_bias", True) else 3 * D * c["num_hidden_layers"]), 0)


def bigbird_pegasus(c):
    D, L = c["d_model"], c["decoder_layers"]
    tables = (c["vocab_size"] + 2 * c["max_position_embeddings"] + 4) * D
    return Form(tables + stacks(c, 4 * D * D + (4 * D if c.get("use_bias") else 0)), 2 * L * D)


def prophetnet(c):
    D, E, L, N = c["hidden_size"], c["num_encoder_layers"], c["num_decoder_layers"], c["num_decoder_attention_heads"]
    tables = c["vocab_size"] + 2 * c["max_position_embeddings"] + c.get("ngram", 2) + 4
    encoder = 4 * D * D + 4 * D + plain(D, c["encoder_ffn_dim"]) + 4 * D
    distances = (D + 1) * c["num_buckets"] * N
    decoder = 2 * (4 * D * D + 4 * D) + distances + plain(D, c["decoder_ffn_dim"]) + 6 * D
    return Form(tables * D + E * encoder + L * decoder, 2 * L * D)


def blip_text(c):
    D, L, width = c["hidden_size"], c["num_hidden_layers"], c["encoder_hidden_size"]
    cross = 2 * D * D + 2 * width * D + 4 * D + 2 * D
    return Form(bert(c | {"type_vocab_size": 0}).total + L * cross, 2 * L * D)


def pix2struct_text(c):
    D, L = c["hidden_size"], c["num_layers"]
    layer = 8 * D * D + 3 * D * c["d_ff"] + 3 * D
    table = c["relative_attention_num_buckets"] * c["num_heads"]
    tied = 1 if c.get("tie_word_embeddings") else 2
    return Form(tied * c["vocab_size"] * D + table + L * layer + D, 2 * L * D)


def trocr(c):
    D, L, width = c["d_model"], c["decoder_layers"], c["cross_attention_hidden_size"]
    layer = 6 * D * D + 2 * width * D + 8 * D + plain(D, c["decoder_ffn_dim"]) + 6 * D
    places = c["max_position_embeddings"] + 2 if c.get("use_learned_position_embeddings", True) else 0
    norm = 2 if c.get("layernorm_embedding", True) else 0
    tables = 1 if c.get("tie_word_embeddings", True) else 2
    return Form((tables * c["vocab_size"] + places + norm) * D + L * layer, 2 * L * D)


def mbart_decoder(c, tables=None):
    D, L = c["d_model"], c["decoder_layers"]
    tables = tables or (1 if c.get("tie_word_embeddings", True) else 2)
    layer = 8 * D * D + 8 * D + plain(D, c["decoder_ffn_dim"]) + 6 * D
    return Form((tables * c["vocab_size"] + c["max_position_embeddings"] + 2 + 4) * D + L * layer, 2 * L * D)


def bert_decoder(c, is_transformed=True):
    D, L, V = c["hidden_size"], c["num_hidden_layers"], c["vocab_size"]
    segments = 0 if not is_transformed else c.get("type_vocab_size", 2)
    layer = 8 * D * D + 8 * D + plain(D, c["intermediate_size"]) + 6 * D
    head = V + (0 if c.get("tie_word_embeddings", True) else V * D + V) + (D * D + 3 * D if is_transformed else 0)
    return Form((V + c["max_position_embeddings"] + segments + 2) * D + L * layer + head, 2 * L * D)


def gpt2_decoder(c):
    D, L, F = c["n_embd"], c["n_layer"], c.get("n_inner") or 4 * c["n_embd"]
    tied = 1 if c.get("tie_word_embeddings", True) else 2
    layer = 8 * D * D + 8 * D + plain(D, F) + 6 * D
    return Form((tied * c["vocab_size"] + c["n_positions"] + 2) * D + L * layer, 2 * L * D)


def encoder_decoder(c):
    reads, writes = c["encoder"], c["decoder"]
    D, E = reads["hidden_size"], writes["hidden_size"]
    tables = reads["vocab_size"] + reads["max_position_embeddings"] + 2
    plain_one = reads.get("model_type") == "bert-generation"
    layer = 4 * D * D + 4 * D + plain(D, reads["intermediate_size"]) + 4 * D
    encoder = tables * D + reads["num_hidden_layers"] * layer
    encoder += 0 if plain_one else reads.get("type_vocab_size", 2) * D + D * D + D
    decoder = bert_decoder(writes, writes.get("model_type") != "bert-generation")
    return Form(encoder + decoder.total + (0 if D == E else D * E + E), decoder.cache)


FORMS = {
    "bert_decoder": bert_decoder,
    "bert_generation_decoder": lambda c: bert_decoder(c, False),
    "big_bird": big_bird,
    "bigbird_pegasus": bigbird_pegasus,
    "blip_text_model": blip_text,
    "blt": blt,
    "cpmant": cpmant,
    "deberta": deberta,
    "encoder-decoder": encoder_decoder,
    "flaubert": xlm,
    "gpt2_decoder": gpt2_decoder,
    "ibert": bert,
    "mbart_decoder": mbart_decoder,
    "mobilebert": mobilebert,
    "nllb-moe": nllb_moe,
    "pegasus_x": pegasus_x,
    "pix2struct_text_model": pix2struct_text,
    "pp_formulanet_text": lambda c: mbart_decoder(c, 2),
    "prophetnet": prophetnet,
    "roberta_decoder": bert_decoder,
    "roc_bert": roc_bert,
    "squeezebert": squeezebert,
    "trocr": trocr,
    "xlm": xlm,
    "xlnet": xlnet,
    "xlstm": xlstm,
    "xmod": xmod,
}

BERT = fixed(
    vocab_size=(97, 101),
    hidden_size=(30, 42),
    num_hidden_layers=(1, 2, 5),
    num_attention_heads=(3, 1),
    intermediate_size=(67, 71),
    max_position_embeddings=(31, 37),
    type_vocab_size=(1, 3),
)
PLAIN_BERT = BERT.map(lambda c: {k: v for k, v in c.items() if k != "type_vocab_size"})
STACKS = fixed(
    vocab_size=(97, 101),
    d_model=(30, 42),
    encoder_layers=(1, 2, 5),
    encoder_attention_heads=(2, 3),
    encoder_ffn_dim=(67, 71),
    decoder_layers=(1, 3),
    decoder_attention_heads=(1, 6),
    decoder_ffn_dim=(73, 79),
)
XLM = both(
    fixed(vocab_size=(97, 101), emb_dim=(30, 42), n_layers=(1, 2, 5), n_heads=(3, 1), max_position_embeddings=(31, 37)),
    flags(n_langs=(1, 3), use_lang_emb=BOOL, causal=BOOL, tie_word_embeddings=BOOL),
)

BLOCKS = flags(
    attention_type=("block_sparse", "original_full"), block_size=(2, 4), num_random_blocks=(0, 1, 3), use_bias=BOOL
)

BLT_PATCHERS = (
    {"vocab_size": 61, "hidden_size": 30, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1}
    | {"intermediate_size": 23, "sliding_window": 5},
    {"vocab_size": 61, "hidden_size": 28, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2}
    | {"intermediate_size": 17, "sliding_window": None},
)
BLT_ENCODERS = (
    {"vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 6, "num_key_value_heads": 2}
    | {"intermediate_size": 29},
    {"vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 4}
    | {"intermediate_size": 37, "cross_attn_all_layers": True},
)
BLT_GLOBALS = (
    {"hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}
    | {"intermediate_size": 43},
    {"hidden_size": 48, "num_hidden_layers": 1, "num_attention_heads": 3, "num_key_value_heads": 1}
    | {"intermediate_size": 47},
)
BLT_DECODERS = (
    {"vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 1}
    | {"intermediate_size": 31},
    {"vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    | {"intermediate_size": 19, "cross_attn_all_layers": False},
)

RANDOM = {
    **dict.fromkeys(("bert_decoder", "roberta_decoder"), both(BERT, flags(tie_word_embeddings=BOOL))),
    "bert_generation_decoder": both(PLAIN_BERT, flags(tie_word_embeddings=BOOL)),
    "big_bird": both(BERT, BLOCKS),
    "bigbird_pegasus": both(STACKS, fixed(max_position_embeddings=(31, 37)), BLOCKS),
    "blip_text_model": both(
        BERT.map(lambda c: {k: v for k, v in c.items() if k != "type_vocab_size"}),
        fixed(encoder_hidden_size=(22, 26)),
    ),
    "blt": both(
        fixed(vocab_size=61, patch_size=1, patching_threshold=0.0, cross_attn_k=(1, 2, 3)),
        fixed(encoder_hash_byte_group_size=([2, 3], [5]), encoder_hash_byte_group_vocab=(37, 41)),
        fixed(encoder_hash_byte_group_nb_functions=(1, 2), patch_in_forward=BOOL),
        fixed(patcher_config=BLT_PATCHERS, encoder_config=BLT_ENCODERS, decoder_config=BLT_DECODERS),
        fixed(global_config=BLT_GLOBALS),
        flags(local_attention_window_len=(None, 3, 9), tie_word_embeddings=BOOL),
    ),
    "cpmant": both(
        fixed(vocab_size=(97, 101), hidden_size=(30, 42), num_hidden_layers=(1, 2, 5), num_attention_heads=(3, 1)),
        fixed(dim_head=(11, 13), dim_ff=(67, 71), prompt_types=(3, 5), prompt_length=(7, 2), segment_types=(3, 4)),
        fixed(position_bias_num_buckets=(6, 8), position_bias_max_distance=(17, 19)),
    ),
    "deberta": both(
        BERT,
        flags(
            position_biased_input=BOOL,
            relative_attention=BOOL,
            max_relative_positions=(-1, 6, 8),
            pos_att_type=(["p2c"], ["c2p", "p2c"], ["c2p"]),
        ),
    ),
    "encoder-decoder": st.tuples(
        st.one_of(BERT, both(PLAIN_BERT, fixed(model_type="bert-generation")), both(BERT, fixed(model_type="roberta"))),
        st.one_of(BERT, both(PLAIN_BERT, fixed(model_type="bert-generation")), both(BERT, fixed(model_type="roberta"))),
        flags(tie_word_embeddings=BOOL),
    ).map(lambda of: {"encoder": of[0], "decoder": of[1] | of[2] | {"add_cross_attention": True}}),
    "flaubert": both(XLM, flags(pre_norm=BOOL)),
    "gpt2_decoder": both(
        fixed(vocab_size=(97, 101), n_positions=(31, 37), n_embd=(30, 42), n_layer=(1, 2, 5), n_head=(3, 1)),
        flags(n_inner=(67, 71), tie_word_embeddings=BOOL),
    ),
    "ibert": BERT,
    "mbart_decoder": both(
        STACKS.map(lambda c: {k: v for k, v in c.items() if not k.startswith("encoder_")}),
        fixed(max_position_embeddings=(31, 37)),
        flags(tie_word_embeddings=BOOL),
    ),
    "mobilebert": both(
        BERT,
        fixed(embedding_size=(11, 13), intra_bottleneck_size=(15, 18), num_feedforward_networks=(1, 3)),
        flags(trigram_input=BOOL, use_bottleneck=BOOL, use_bottleneck_attention=BOOL),
    ),
    "nllb-moe": both(
        STACKS,
        fixed(max_position_embeddings=(31, 37), num_experts=(5, 7)),
        fixed(encoder_sparse_step=(0, 1, 2), decoder_sparse_step=(1, 3)),
        flags(router_bias=BOOL),
    ),
    "pegasus_x": both(STACKS, fixed(max_position_embeddings=(32, 40), num_global_tokens=(3, 5), block_size=(4, 8))),
    "pix2struct_text_model": both(
        fixed(vocab_size=(97, 101), hidden_size=30, d_kv=10, num_heads=3, num_layers=(1, 2, 5), d_ff=(67, 71)),
        fixed(relative_attention_num_buckets=(6, 8), relative_attention_max_distance=(17, 19)),
        flags(tie_word_embeddings=BOOL),
    ),
    "pp_formulanet_text": both(
        STACKS.map(lambda c: {k: v for k, v in c.items() if not k.startswith("encoder_")}),
        fixed(max_position_embeddings=(31, 37)),
    ),
    "prophetnet": both(
        fixed(vocab_size=(97, 101), hidden_size=(30, 42), max_position_embeddings=(31, 37), num_buckets=(6, 8)),
        fixed(num_encoder_layers=(1, 2, 5), num_encoder_attention_heads=(2, 3), encoder_ffn_dim=(67, 71)),
        fixed(num_decoder_layers=(1, 3), num_decoder_attention_heads=(1, 6), decoder_ffn_dim=(73, 79)),
        flags(ngram=(1, 3)),
    ),
    "roc_bert": both(
        BERT,
        fixed(pronunciation_vocab_size=(23, 29), pronunciation_embed_dim=(11, 13)),
        fixed(shape_vocab_size=(31, 37), shape_embed_dim=(17, 19)),
        flags(concat_input=BOOL, enable_pronunciation=BOOL, enable_shape=BOOL),
    ),
    "squeezebert": both(
        BERT,
        fixed(intermediate_size=(66, 78), q_groups=(1, 2), k_groups=(3, 6), v_groups=(2, 3)),
        fixed(post_attention_groups=(1, 6), intermediate_groups=(2, 6), output_groups=(1, 3)),
    ).map(lambda c: c | {"embedding_size": c["hidden_size"]}),
    "trocr": both(
        STACKS.map(lambda c: {k: v for k, v in c.items() if not k.startswith("encoder_")}),
        fixed(max_position_embeddings=(31, 37), cross_attention_hidden_size=(22, 26)),
        flags(use_learned_position_embeddings=BOOL, layernorm_embedding=BOOL, tie_word_embeddings=BOOL),
    ),
    "xlm": XLM,
    "xlnet": both(
        fixed(vocab_size=(97, 101), d_model=(30, 42), n_layer=(1, 2, 5), n_head=(3, 1), d_inner=(67, 71), mem_len=None),
        flags(tie_word_embeddings=BOOL),
    ),
    "xlstm": both(
        fixed(vocab_size=(97, 101), hidden_size=(32, 48), num_hidden_layers=(1, 2, 5), num_heads=(2, 4)),
        fixed(qk_dim_factor=(0.5, 1.5), v_dim_factor=(1.25, 2.0), ffn_proj_factor=(1.5, 2.5)),
        fixed(ffn_round_up_to_multiple_of=(7, 16)),
        flags(use_bias=BOOL),
    ),
    "xmod": both(
        BERT,
        fixed(adapter_reduction_factor=(2, 4), languages=(["en_XX"], ["en_XX", "de_DE", "zh_CN"])),
        flags(adapter_layer_norm=BOOL, pre_norm=BOOL, adapter_reuse_layer_norm=BOOL, ln_before_adapter=BOOL),
    ),
}
