"""The closed forms of draft heads: their own modules, without the tensors of their target that they read."""

from __future__ import annotations

from closed_forms import BOOL, Form, attention, blocks, both, fixed, flags, gated, sizes


def eagle(c):
    D, L, N, K, H, F = sizes(c)
    biases = (N + 2 * K) * H if c.get("qkv_bias") else 0
    fused = 2 * D * D + (D if c.get("bias", True) else 0)
    return Form(fused + L * (attention(D, N, K, H) + biases + gated(D, F)) + (2 * L - 1) * D, 2 * L * K * H)


def eagle3(c):
    D, L, N, K, H, F = sizes(c)
    M, R, W = (
        c.get("num_aux_hidden_states", 3),
        c.get("draft_vocab_size", c["vocab_size"]),
        c.get("target_hidden_size", D),
    )
    biases = (N + 2 * K) * H + D if c.get("attention_bias") else 0
    of_heads = 2 * H if c.get("use_qk_norm") else 0
    norms = (M * W if c.get("norm_before_fc") else 0) + (2 * L + 1 + 1) * D
    wider = D * (N + 2 * K) * H  # of the first layer, whose attention reads two vectors
    layers = L * (attention(D, N, K, H) + biases + of_heads + gated(D, F, c.get("mlp_bias", False)))
    to_come = M * W if c.get("parallel_drafting") else 0
    return Form(M * W * D + wider + layers + norms + R * D + to_come, 2 * L * K * H)


def medusa(c):
    D, V, n = c["hidden_size"], c["vocab_size"], c["medusa_num_heads"]
    return Form(n * (D * D + D + V * D), 0)


def dflash(c):
    D, L, N, K, H, F = sizes(c)
    M = c.get("num_target_features", L)
    biases = (N + 2 * K) * H + D if c.get("attention_bias") else 0
    layer = attention(D, N, K, H) + biases + gated(D, F) + 2 * D + 2 * H
    return Form(M * D * D + 2 * D + L * layer, 2 * L * K * H)


def domino(c):
    """DFlash's, a gated recurrent unit without biases, and a narrow network to the vocabulary."""
    D, G, E, V = c["hidden_size"], c["gru_hidden_dim"], c["emb_dim"], c["vocab_size"]
    form = dflash(c)
    return form._replace(total=form.total + 3 * G * (D + G) + E * (D + G) + V * E)


def dspark(c):
    """DFlash's, two tables of the vocabulary, a gate or a recurrence, and a linear map to one number."""
    D, R, kind = c["hidden_size"], c.get("markov_rank", 0), c.get("markov_head_type", "vanilla")
    more = 2 * c["vocab_size"] * R
    if R:
        more += {"vanilla": 0, "gated": R * (D + R + 1), "rnn": 3 * R * (2 * R + D + 1)}[kind]
    if c.get("enable_confidence_head"):
        more += D + 1 + (R if c.get("confidence_head_with_markov") else 0)
    form = dflash(c)
    return form._replace(total=form.total + more)


def assistant(c):
    D, L, N, _, H, F = sizes(c)
    wide, V, W = c.get("global_head_dim", 512), c["vocab_size"], c["backbone_hidden_size"]
    full = -(-L // 6)  # each sixth layer, and the last
    heads = (L - full) * (2 * N * H * D + H) + full * (2 * N * wide * D + wide)
    return Form(3 * W * D + heads + L * (gated(D, F) + 4 * D) + D + V * D, 0)


FORMS = {"eagle": eagle, "eagle3": eagle3, "medusa": medusa, "dflash": dflash}
FORMS |= {"domino": domino, "dspark": dspark} | dict.fromkeys(
    ("gemma4_assistant", "gemma4_unified_assistant"), assistant
)

RANDOM = {
    "eagle": both(blocks(), flags(bias=BOOL, qkv_bias=BOOL)),
    "eagle3": both(
        blocks(),
        flags(
            draft_vocab_size=(53, 89),
            parallel_drafting=BOOL,
            target_hidden_size=(34, 79),
            num_aux_hidden_states=(2, 5),
            norm_before_fc=BOOL,
            use_qk_norm=BOOL,
            attention_bias=BOOL,
            mlp_bias=BOOL,
        ),
    ),
    "medusa": fixed(hidden_size=(34, 58), vocab_size=(97, 103), medusa_num_heads=(1, 3, 5)),
    **dict.fromkeys(
        ("gemma4_assistant", "gemma4_unified_assistant"),
        both(
            blocks(),
            fixed(backbone_hidden_size=(34, 79), global_head_dim=(12, 22), hidden_size_per_layer_input=0),
            fixed(tie_word_embeddings=True),
        ),
    ),
    "domino": both(
        blocks(),
        fixed(block_size=(6, 7), gru_hidden_dim=(11, 34), emb_dim=(5, 9)),
        flags(num_target_features=(3, 4), attention_bias=BOOL, pure_draft_prefix_len=(1, 3), shift_label=BOOL),
    ),
    "dspark": both(
        blocks(),
        fixed(block_size=(2, 7), markov_rank=(7, 11), markov_head_type=("vanilla", "gated", "rnn")),
        flags(num_target_features=(3, 4), enable_confidence_head=BOOL, confidence_head_with_markov=BOOL),
    ),
    "dflash": both(blocks(), fixed(block_size=(2, 7)), flags(num_target_features=(3, 4), attention_bias=BOOL)),
}
