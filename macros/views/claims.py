"""Numbers in circulation, each beside what the forward pass gives: single claims, and formulas run over the whole
catalogue.

A claim is quoted as it was made; its arithmetic and the true figure are formulas over a model's sizes, evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from ..catalogue import presets
from ..catalogue.presets import Model
from ..dependencies import remembered
from ..engine.errors import Problem
from . import charts, disclosed, rounding, values
from .arguments import one_of, unknown
from .html import Html, Link, block, conventions, html, joined, linked, number, small, table, tag
from .layers import n_layers
from .shapes import spelled
from .tables import caveat, limit


class Claim(NamedTuple):
    """What is said, its arithmetic and the true figure as formulas, and why they differ. Several models as `a.` and
    `b.`."""

    said: str
    claimed: str
    true: str
    why: str
    models: tuple[str, ...]
    context: int | None = None
    of: str = ""  # what is counted
    digits: int | None = None


TENSOR, WIDTH, SIZE, ELSEWHERE = "life-of-a-tensor", "width", "model-size", "elsewhere"

CLAIMS: dict[str, tuple[Claim, ...]] = {
    TENSOR: (
        Claim(
            "GPT-2 has a vocabulary of 50,000 tokens",
            "50000",
            "vocab_size",
            "The tokenizer has 256 bytes, 50,000 merges and one end-of-text token.",
            ("gpt2",),
            of="tokens",
        ),
        Claim(
            "The embedding table has 38.4M parameters",
            "50000 * 768",
            "embed",
            "The missing rows of the vocabulary, each as wide as the model.",
            ("gpt2",),
            of="parameters",
        ),
        Claim(
            "12 × 64 = 768",
            "12 * 64",
            "d_model",
            "Right: in GPT-2 the heads together are as wide as the model. It is no law, see below.",
            ("gpt2",),
            of="d_model",
        ),
        Claim(
            "Q of one head = [768, 64], and Q = [1024, 64] + … + [1024, 64], twelve times",
            "64",
            "n_heads * d_head",
            "The plus sign has to mean “set side by side”: added up, twelve matrices "
            "of that width would stay as narrow as one.",
            ("gpt2",),
            of="columns of Q",
        ),
        Claim(
            "QKᵀ = [1024, 1024]",
            "1024 * 1024",
            "n_heads * n_positions ** 2",
            "Each head has a square of scores of its own.",
            ("gpt2",),
            of="scores at the longest text",
        ),
        Claim(
            "The text is padded to length 1,024",
            "1024",
            "5",
            "Nothing is padded: five tokens stay five rows. {n_positions} is the most that the position table allows.",
            ("gpt2",),
            of="rows",
        ),
        Claim(
            "Softmax(QKᵀ/√d), next to d_model = 768",
            "d_model",
            "d_head",
            "The d under the root is the width of one head: each score is a sum over that many products.",
            ("gpt2",),
            of="d under the root",
        ),
        Claim("The MLP expands 4×, from 768 to 3,072", "4 * 768", "d_ff", "Right.", ("gpt2",), of="d_ff"),
        Claim(
            "KQV matrix: 63.5M",
            "63500000",
            "attn.c_attn",
            "Three square matrices in each of the layers are a third of that.",
            ("gpt2",),
            of="parameters",
        ),
        Claim(
            "Output projection: 12.8M",
            "12800000",
            "attn.c_proj",
            "One square matrix a layer is little more than half of that.",
            ("gpt2",),
            of="parameters",
        ),
        Claim(
            "MLP: 9.6M",
            "9600000",
            "feed_forward",
            "Two matrices of 4·D² a layer: the largest part of the model, not the smallest.",
            ("gpt2",),
            of="parameters",
        ),
        Claim(
            "38.4M + 63.5M + 12.8M + 9.6M, the breakdown as a whole",
            "38400000 + 63500000 + 12800000 + 9600000",
            "total",
            "The sum comes out nearly right although three of its four parts are wrong.",
            ("gpt2",),
            of="parameters",
        ),
        Claim(
            "50000 × 768 + (768 × 768 × 3 + 768 × 768 + 768 × 3072 × 2) × 12 = 124M",
            "50000 * 768 + (768 * 768 * 3 + 768 * 768 + 768 * 3072 * 2) * 12",
            "total",
            "Left out: the position table, the missing rows of the vocabulary, all biases and norms.",
            ("gpt2",),
            of="parameters",
        ),
    ),
    WIDTH: (
        Claim("Llama 3 8B: 4,096 dimensions", "4096", "d_model", "Right.", ("llama3-8b",), of="d_model"),
        Claim(
            "Llama 3 8B: 8 billion parameters",
            "8 * 10 ** 9",
            "total",
            "A rounded name.",
            ("llama3-8b",),
            of="parameters",
        ),
        Claim("Llama 3 70B: 8,192 dimensions", "8192", "d_model", "Right.", ("llama3-70b",), of="d_model"),
        Claim(
            "Llama 3 70B: 70 billion parameters",
            "70 * 10 ** 9",
            "total",
            "A rounded name.",
            ("llama3-70b",),
            of="parameters",
        ),
        Claim("Llama 3 405B: 16,384 dimensions", "16384", "d_model", "Right.", ("llama3.1-405b",), of="d_model"),
        Claim(
            "Llama 3 405B: 405 billion parameters",
            "405 * 10 ** 9",
            "total",
            "A rounded name.",
            ("llama3.1-405b",),
            of="parameters",
        ),
        Claim(
            "Claude 3 Opus: ~12,288 dimensions",
            "12288",
            "d_model",
            "Its maker has published no size. GPT-3’s width is the same number.",
            ("claude-3-opus",),
            of="d_model",
        ),
        Claim(
            "The embedding table of an 80-layer Llama 3 is 128K × D",
            "128000 * d_model",
            "embed",
            "K is neither 1,000 nor 1,024 here: the vocabulary has a few tokens more.",
            ("llama3-70b",),
            of="parameters",
        ),
        Claim(
            "Q, K, V projections are D × D",
            "3 * d_model ** 2",
            "(q_proj + k_proj + v_proj) / n_layers",
            "Only Q is. Keys and values are made for n_kv_heads heads, not for all.",
            ("llama3-70b",),
            of="parameters a layer",
        ),
        Claim(
            "FFN: W_up is D × 4D and W_down 4D × D",
            "2 * d_model * 4 * d_model",
            "feed_forward / n_layers",
            "There are three matrices (one is the gate), and d_ff is less than 4·D.",
            ("llama3-70b",),
            of="parameters a layer",
        ),
        Claim(
            "8-bit colour has 256 colours, 24-bit 16 million",
            "16 * 10 ** 6",
            "256 ** 3",
            "Right, rounded.",
            (),
            of="colours",
        ),
        Claim(
            "From D = 4,096 to 16,384: approximately 16× in weights of a layer",
            "(16384 / 4096) ** 2",
            "(b.in_layers / b.n_layers) / (a.in_layers / a.n_layers)",
            "d_ff grows by less than D, and the keys and values grow with D only, not with its square: both models "
            "have {b.n_kv_heads} key/value heads.",
            ("llama3-8b", "llama3.1-405b"),
            of="times as many parameters a layer",
            digits=4,
        ),
        Claim(
            "The same, in compute",
            "(16384 / 4096) ** 2",
            "((b.decode_flops - 2 * b.vocab_size * b.d_model) / b.n_layers) / "
            "((a.decode_flops - 2 * a.vocab_size * a.d_model) / a.n_layers)",
            "As the weights, but for the attention scores, which grow with the width of all heads and not with its "
            "square. The head, which is there once, is left out.",
            ("llama3-8b", "llama3.1-405b"),
            context=4096,
            of="times the FLOPs a layer, one new token",
            digits=4,
        ),
        Claim(
            "Going from 4,096 to 16,384 makes the KV cache bigger",
            "16384 / 4096",
            "(b.cache_bytes_per_token / b.n_layers) / (a.cache_bytes_per_token / a.n_layers)",
            "The cache of a layer holds n_kv_heads·d_head numbers twice, and D is not among them. Only the number of "
            "layers makes it bigger here.",
            ("llama3-8b", "llama3.1-405b"),
            of="times the bytes a layer and token",
            digits=3,
        ),
    ),
    SIZE: (
        Claim(
            "A model with hidden_dim 4,096, 32 layers and 32 heads has vocab_size 50,000",
            "50000",
            "vocab_size",
            "It depends on the tokenizer, as the source says; the model with "
            "these sizes that it then computes has fewer.",
            ("llama-7b",),
            of="tokens",
        ),
        Claim(
            "LLaMA 7B: 32 × (12 × 4096²) ≈ 6.4 billion",
            "32 * 12 * 4096 ** 2",
            "total",
            "The formula has no tables and no head, and its feed-forward part is another one.",
            ("llama-7b",),
            of="parameters",
        ),
        Claim(
            "The rest comes from the embedding layer and the final output layer",
            "2 * vocab_size * d_model",
            "total - 12 * n_layers * d_model ** 2",
            "Most of it does. What is left is in the feed-forward part, which is a "
            "little larger than 8·D², and in the norms.",
            ("llama-7b",),
            of="parameters left over",
        ),
        Claim(
            "c ≈ 12 = 4 (attention) + 8 (feed-forward: two matrices of D × 4D)",
            "12",
            "in_layers / (n_layers * d_model ** 2)",
            "The sum is nearly right, the reason is not: there are three matrices, of D × {d_ff}.",
            ("llama-7b",),
            of="c",
            digits=4,
        ),
        Claim(
            "Large models have D = 8,192 or 12,288",
            "12288",
            "d_model",
            "There are wider ones.",
            ("llama3.1-405b",),
            of="d_model",
        ),
        Claim(
            "Attention grows quadratically with D: 2× D, 4× parameters",
            "4",
            "(b.attention / b.n_layers) / (a.attention / a.n_layers)",
            "Where the key/value heads grow with D. Here both models have {b.n_kv_heads}.",
            ("llama3-8b", "llama3-70b"),
            of="times the attention of a layer",
            digits=3,
        ),
        Claim(
            "2× hidden_dim → 4× parameters",
            "4",
            "(b.in_layers / b.n_layers) / (a.in_layers / a.n_layers)",
            "Right for a layer of a model of one design; biases and norms grow with D only.",
            ("pythia-410m", "pythia-1.4b"),
            of="times a layer",
            digits=4,
        ),
        Claim(
            "The same for the whole model",
            "4",
            "b.total / a.total",
            "The tables grow with D, not with its square.",
            ("pythia-410m", "pythia-1.4b"),
            of="times the parameters",
            digits=3,
        ),
        Claim(
            "More layers → as many times the parameters",
            "b.n_layers / a.n_layers",
            "b.in_layers / a.in_layers",
            "Exactly right for the layers.",
            ("falcon3-7b", "falcon3-10b"),
            of="times the layers’ parameters",
            digits=4,
        ),
        Claim(
            "The same for the whole model",
            "b.n_layers / a.n_layers",
            "b.total / a.total",
            "The tables stay as they are.",
            ("falcon3-7b", "falcon3-10b"),
            of="times the parameters",
            digits=4,
        ),
    ),
    ELSEWHERE: (
        Claim(
            "The smallest GPT-2 has 117M parameters",
            "117 * 10 ** 6",
            "total",
            "A slip in the first release, since corrected by OpenAI. No count of the model gives it.",
            ("gpt2",),
            of="parameters",
        ),
        Claim(
            "The smallest GPT-2 has 124M parameters",
            "124 * 10 ** 6",
            "total",
            "Right, rounded.",
            ("gpt2",),
            of="parameters",
        ),
        Claim(
            "137,022,720 parameters, by the file’s element count",
            "137022720",
            "total",
            "The file also stores {n_layers} causal masks of {n_positions} × {n_positions}: constants, not parameters.",
            ("gpt2",),
            of="parameters",
        ),
        Claim(
            "Llama 3 8B has 7,504,924,672 parameters",
            "total - lm_head",
            "total",
            "The head was taken to be the embedding table. In this model it is a matrix of its own.",
            ("llama3-8b",),
            of="parameters",
        ),
        Claim(
            "Llama 3.1 70B has 77.85B parameters (a table of n_params)",
            "n_layers * (4 * d_model ** 2 + 3 * d_model * d_ff)",
            "total",
            "Keys and values for every head, which this model does not have; "
            "without tables, head and norms, which it has.",
            ("llama3.1-70b",),
            of="parameters",
        ),
        Claim(
            "Mixtral 8x7B is 8 × 7B = 56B",
            "8 * 7 * 10 ** 9",
            "total",
            "Only the feed-forward part exists {n_experts} times. Attention, tables and norms are shared.",
            ("mixtral-8x7b",),
            of="parameters",
        ),
        Claim(
            "Mixtral 8x7B uses 2 × 7B = 14B for each token",
            "2 * 7 * 10 ** 9",
            "active",
            "The shared parts count once.",
            ("mixtral-8x7b",),
            of="active parameters",
        ),
        Claim(
            "DeepSeek-V3 has 684,531,386,000 parameters, by its file",
            "684531386000",
            "total",
            "The file also holds a layer for predicting two tokens at once, "
            "second copies of both tables, and FP8 scales.",
            ("deepseek-v3",),
            of="parameters",
        ),
        Claim(
            "Qwen3-0.6B has 751,632,384 parameters, by its file",
            "751632384",
            "total",
            "The file stores the tied table twice.",
            ("qwen3-0.6b",),
            of="parameters",
        ),
        Claim(
            "int8 memory = parameters × 8",
            "8 * total",
            "total",
            "int8 is 8 bits, which are one byte.",
            ("llama3-8b",),
            of="bytes",
        ),
        Claim(
            "Qwen3-0.6B’s KV cache: heads are D/N wide",
            "2 * 2 * n_layers * (d_model // n_heads) * n_kv_heads",
            "cache_bytes_per_token",
            "Its heads are twice as wide as D/N. The config says so in a key of its own.",
            ("qwen3-0.6b",),
            of="bytes a token",
        ),
        Claim(
            "Gemma 3 27B: 496 KiB a token, every layer growing",
            "cache_bytes_per_token_uncapped",
            "cache_bytes_per_token",
            "{n_sliding_layers} of {n_layers} layers see a window of "
            "{sliding_window} tokens, and stop growing when it is full.",
            ("gemma3-27b",),
            of="bytes a token at long context",
        ),
        Claim(
            "The same, for a whole text of 131,072 tokens",
            "131072 * cache_bytes_per_token_uncapped",
            "cache_bytes",
            "The windows hold what they hold.",
            ("gemma3-27b",),
            context=131072,
            of="bytes",
        ),
        Claim(
            "DeepSeek-V3’s KV cache: heads of width D/N",
            "2 * 2 * n_layers * d_model",
            "cache_bytes_per_token",
            "Nothing of that width exists in the model. It keeps one latent and one rotated key for all heads.",
            ("deepseek-v3",),
            of="bytes a token",
        ),
        Claim(
            "DeepSeek-V3’s KV cache: its real heads in full",
            "2 * n_layers * n_heads * (qk_nope_head_dim + qk_rope_head_dim + v_head_dim)",
            "cache_bytes_per_token",
            "The keys and values of the heads are computed from the latent when they are needed.",
            ("deepseek-v3",),
            of="bytes a token",
        ),
    ),
}

GPT2_TOKENS = "The capital of France is"
GPT2_IDS_SAID, GPT2_IDS = (464, 3361, 295, 2238, 318), (464, 3139, 286, 4881, 318)


Lookup = Callable[[str | None, str], int | Fraction | None]


def _nothing(owner: str | None, name: str) -> None:
    """The sizes of no model."""


def _sizes(claim: Claim) -> Lookup | None:
    """The sizes of the models that a claim is about; None where one of them is undisclosed."""
    owners = "abcd" if len(claim.models) > 1 else (None,)
    models = {owner: known for owner, slug in zip(owners, claim.models) if (known := disclosed.model(slug))}
    if not claim.models:
        return _nothing

    def lookup(owner: str | None, name: str) -> int | Fraction:
        if owner is not None and None in models:  # a tensor by two parts of its name
            return values.number(models[None], f"{owner}.{name}", claim.context)
        if owner not in models:
            raise Problem(f"the claim “{claim.said}” names the model {owner!r}", "correct macros/views/claims.py")
        return values.number(models[owner], name, claim.context)

    return lookup if len(models) == len(claim.models) else None


def amount(figure: int | Fraction, digits: int | None = None) -> str:
    """A figure of a claim: whole ones with every digit."""
    return values.shown(figure, digits=digits if Fraction(figure).denominator != 1 else None)


def difference(claimed: int | Fraction, true: int | Fraction) -> Html | str:
    """By how much a claim is off: as a number, and of the true figure."""
    if claimed == true:
        return "none"
    more = Fraction(claimed) - true
    share = off(Fraction(claimed) / true) if true else ""
    return html("+" if more > 0 else "") + html("{}<br>({})", amount(more, 3), share)


def off(ratio: Fraction) -> str:
    """How far from right: in percent, or as a factor where that says more."""
    if ratio >= 3:
        return f"{rounding.significant(ratio)} times too much"
    return rounding.signed_percent((ratio - 1).numerator, (ratio - 1).denominator)


def arithmetic(expression: str) -> str:
    """A formula as people write it."""
    grouped = re.sub(r"\d{4,}", lambda m: f"{int(m[0]):,}", expression)
    powers = re.sub(r"\s*\*\*\s*(\d)", lambda m: "⁰¹²³⁴⁵⁶⁷⁸⁹"[int(m[1])], grouped)
    return powers.replace(" * ", " × ").replace(" / ", " ÷ ").replace(" - ", " − ")


def roomy(content: Html, why: str) -> Html:
    """A cell's text, wide enough to be read where a table scrolls, and below it the reason."""
    return tag("div", content, cls="ep-roomy") + tag("div", spelled(why), cls="ep-range ep-why")


def claims_table(group: str, link: Link | None = None) -> Html:
    """What is said beside what is computed, a row a claim: `life-of-a-tensor`, `width`, `model-size`, `elsewhere`."""
    if group not in CLAIMS:
        raise unknown(f"unknown group of claims {group!r}", group, CLAIMS)
    return table(
        f"{len(CLAIMS[group])} claims",
        ["What is said, and why it is so or not", number("What that gives"), number("Computed"), number("Difference")],
        [_claim(claim, link) for claim in CLAIMS[group]],
        name=f"Claims and what is computed: {group.replace('-', ' ')}",
        cls="ep-table ep-claims",
    )


def _claim(claim: Claim, link: Link | None) -> list:
    lookup = _sizes(claim)
    claimed = values.compute(claim.claimed, lookup or _nothing)
    is_plain = re.fullmatch(r"\d+( \* 10 \*\* \d)?", claim.claimed)
    worked = "" if is_plain else html("<br>{}", small(spelled(arithmetic(claim.claimed))))
    names = joined((linked(presets.preset(s).name, s, link) for s in claim.models), ", ")
    context = f" at a context of {claim.context:,}" if claim.context else ""
    of = html("{}{}{}{}", spelled(claim.of), context, html(": ") if names else "", names)
    said = html("“{}”{}<br>{}", spelled(claim.said), worked, small(of))
    if lookup is None:
        return [roomy(said, claim.why), amount(claimed, claim.digits), disclosed.UNDISCLOSED, "unknown"]
    true = values.compute(claim.true, lookup)
    why = re.sub(r"\{(.+?)\}", lambda m: amount(values.compute(m[1], lookup)), claim.why)
    return [roomy(said, why), amount(claimed, claim.digits), amount(true, claim.digits), difference(claimed, true)]


def token_ids_claim() -> Html:
    """The token ids of the seed's sentence beside GPT-2's own, and how many differ."""
    wrong = sum(a != b for a, b in zip(GPT2_IDS_SAID, GPT2_IDS))
    said = [tag("strong", a) if a != b else a for a, b in zip(GPT2_IDS_SAID, GPT2_IDS)]
    return table(
        html("Token ids: {} of {} are another token’s", wrong, len(GPT2_IDS)),
        ["Token", *map(number, GPT2_TOKENS.split())],
        [["said", *said], ["GPT-2’s tokenizer", *GPT2_IDS]],
        name="Token ids",
    )


# Formulas over the whole catalogue


class Formula(NamedTuple):
    """A formula in circulation: how it is written, as a formula over sizes, what it is meant to give, what it leaves
    out."""

    title: str
    claimed: str
    true: str
    of: str
    why: str
    needs: str | None = None  # a size that a model must have for the formula to be about it
    context: int | None = None
    assumes: tuple[str, ...] = ()  # differences of sizes that are 0 in the models that the formula was made for


LONG = 131072

FORMULAS: dict[str, Formula] = {
    "12LD2": Formula(
        "12·L·D²",
        "12 * n_layers * d_model ** 2",
        "total",
        "parameters",
        "The tables and the head, experts, d_ff that is not 4·D, keys and values "
        "shared by heads, heads that are not D/N wide.",
    ),
    "12LD2+tables": Formula(
        "12·L·D² + the tables and the head",
        "12 * n_layers * d_model ** 2 + embedding",
        "total",
        "parameters",
        "As above, but for the vocabulary’s share.",
    ),
    "cache-all-heads": Formula(
        "KV cache = L·2·D·bytes",
        "2 * 2 * n_layers * d_model",
        "cache_bytes_per_token_uncapped",
        "bytes a token, 2 bytes each",
        "Keys and values shared by heads (GQA, MQA), latents (MLA), heads that "
        "are not D/N wide, layers without attention.",
        "n_heads",
        assumes=("n_heads - n_kv_heads",),
    ),
    "cache-without-2": Formula(
        "KV cache = L·K·H·bytes",
        "2 * n_layers * n_kv_heads * d_head",
        "cache_bytes_per_token_uncapped",
        "bytes a token, 2 bytes each",
        "A key and a value are kept: the factor 2 is missing.",
        "n_heads",
    ),
    "cache-D-over-N": Formula(
        "KV cache = L·2·(D·K/N)·bytes",
        "2 * 2 * n_layers * (d_model * n_kv_heads / n_heads)",
        "cache_bytes_per_token_uncapped",
        "bytes a token, 2 bytes each",
        "The width of a head is a choice of its own. Where it is not D/N this "
        "is off by N·H/D; and latents are no heads.",
        "n_heads",
    ),
    "cache-full-context": Formula(
        f"KV cache at {LONG:,} tokens = {LONG:,} × bytes a token",
        f"{LONG} * (cache_bytes_per_token_uncapped + index_bytes_per_token)",
        "cache_bytes",
        f"bytes at {LONG:,} tokens",
        "Layers with a sliding window or chunks stop growing when these are "
        "full; a recurrent layer keeps a fixed state.",
        "n_heads",
        LONG,
    ),
    "cache-MLA-heads": Formula(
        "KV cache of latent attention = its heads in full",
        "2 * n_layers * n_heads * (qk_nope_head_dim + qk_rope_head_dim + v_head_dim)",
        "cache_bytes_per_token_uncapped",
        "bytes a token, 2 bytes each",
        "What is kept is the latent and one rotated key for all heads.",
        "kv_lora_rank",
    ),
    "experts-times-size": Formula(
        "size = experts × a model with one expert",
        "n_experts * (total - spare_experts)",
        "total",
        "parameters",
        "Attention, tables, norms and shared experts exist once, not once an expert.",
        "n_experts",
    ),
    "int8-times-8": Formula(
        "int8 memory = parameters × 8", "8 * total", "total", "bytes of the weights", "8 bits are one byte."
    ),
}


def _size(model: Model, name: str, context: int | None) -> int | Fraction:
    """A size as a calculator reads it from a config, which takes the usual default where one is missing."""
    sizes = model.counts.values()
    if name == "n_layers":
        return n_layers(model)
    if name == "n_kv_heads" and name not in sizes:
        return sizes["n_heads"]
    if name == "d_head" and name not in sizes:
        return Fraction(sizes["d_model"], sizes["n_heads"])
    if name == "spare_experts":  # all routed experts but one of each layer
        return sum(int(w.count) - int(w.count) // int(w.routed[0]) for w in model.counts.weights if w.routed)
    return values.number(model, name, context)


@dataclass(frozen=True)
class Result:
    """What a formula gives for a model, and what the model has."""

    entry: charts.Entry
    claimed: Fraction
    true: int | Fraction
    is_as_assumed: bool

    @cached_property
    def ratio(self) -> Fraction:
        return self.claimed / self.true


@remembered
def results(key: str) -> tuple[Result, ...]:
    """What a formula gives for each model that it is about."""
    if key not in FORMULAS:
        raise unknown(f"unknown formula {key!r}", key, FORMULAS)
    f, given = FORMULAS[key], []
    for entry in charts.entries():
        model = presets.model(entry.slug)
        if f.needs and f.needs not in model.counts.values():
            continue
        if f.context and (limit(model)[0] or 0) < f.context:
            continue

        def size(owner: str | None, name: str, model: Model = model) -> int | Fraction:
            return _size(model, name, f.context)

        if true := values.number(model, f.true, f.context):
            is_as_assumed = not any(values.compute(difference, size) for difference in f.assumes)
            given.append(Result(entry, Fraction(values.compute(f.claimed, size)), true, is_as_assumed))
    return tuple(given)


NEAR = Fraction(1, 20)
COUNTED: Mapping[str, Callable[[Result], bool]] = {
    "models": lambda result: True,
    "exact": lambda result: result.ratio == 1,
    "exact as assumed": lambda result: result.ratio == 1 and result.is_as_assumed,
    "within 5%": lambda result: abs(result.ratio - 1) <= NEAR,
    "too low": lambda result: result.ratio < 1 - NEAR,
    "too high": lambda result: result.ratio > 1 + NEAR,
}
BY_CHANCE = "exact by chance"


def formula_result(key: str, what: str, link: Link | None = None) -> Html | str:
    """One result of a formula over the catalogue, in a sentence: `models`, `exact`, `within 5%`, `too low`, `too high`,
    `lowest`, `highest`; of the exact ones how many are `exact as assumed`, and by name those `exact by chance`."""
    given = results(key)
    if one_of(what, [*COUNTED, BY_CHANCE, "lowest", "highest"], "what") in COUNTED:
        return str(sum(COUNTED[what](result) for result in given))
    if what == BY_CHANCE:
        by_chance = [r for r in given if r.ratio == 1 and not r.is_as_assumed]
        return joined((linked(result.entry.name, result.entry.slug, link) for result in by_chance), ", ") or "none"
    if len({result.ratio for result in given}) == 1:
        return html("all alike ({})", off(given[0].ratio))
    furthest = (min if what == "lowest" else max)(given, key=lambda result: result.ratio)
    return html("{} ({})", linked(furthest.entry.name, furthest.entry.slug, link), off(furthest.ratio))


def formulas_table(link: Link | None = None) -> Html:
    """Every formula in circulation over the whole catalogue: how often it holds, where it fails most, and why."""
    rows = []
    for key, f in FORMULAS.items():
        ends = dict.fromkeys(formula_result(key, what, link) for what in ("lowest", "highest"))
        counts = [formula_result(key, what) for what in ("models", "within 5%", "too low", "too high")]
        rows.append([roomy(html("{}<br>{}", f.title, small(f.of)), f.why), *counts, joined(ends, "<br>")])
    as_table = table(
        f"{len(FORMULAS)} formulas over the catalogue",
        [
            "Formula, and what it leaves out",
            number("Models"),
            number(html("Within 5%")),
            number("Too low"),
            number("Too high"),
            "Lowest and highest",
        ],
        rows,
        name="Formulas over the catalogue",
    )
    return block(
        as_table,
        conventions(
            html(
                "A formula is held against the models that it is about, one at a context against those that allow it. "
                "Too low and too high: by more than 5%."
            ),
            html(
                "A size that a config leaves out is taken as calculators take it: n_kv_heads = n_heads, d_head = D/N."
            ),
        ),
    )


def formula_table(key: str, link: Link | None = None) -> Html:
    """A formula for each model: what it gives, what the model has, the difference."""
    f, given = FORMULAS[key], results(key)
    rows = [
        [
            linked(result.entry.name, result.entry.slug, link),
            amount(result.claimed, 9),
            rounding.grouped(result.true),
            off(result.ratio) if result.ratio != 1 else "exact",
            charts.KINDS[result.entry.kind].title,
        ]
        for result in sorted(given, key=lambda result: result.ratio)
    ]
    as_table = table(
        html("{}, {}: {} models, from the lowest to the highest", f.title, f.of, len(given)),
        ["Model", number("The formula"), number("The model"), number("Off by"), "Kind"],
        rows,
        name=f"{f.title} for each model",
    )
    if "cache" not in f.true:
        return as_table
    counted = "The model: what a token adds while no window is full, without an indexer’s keys."
    return block(as_table, conventions(counted, caveat(result.entry.slug for result in given)))


def formula_error_chart(key: str = "12LD2", link: Link | None = None) -> Html:
    """A formula's error for every model of the catalogue, as a chart and behind it as a table."""
    given, f = results(key), FORMULAS[key]
    caption = html(
        "{} for {} models: what the formula gives, divided by what the model has. "
        "{} points lie within 5% of the thick line, {} below, {} above.",
        f.title,
        len(given),
        *(formula_result(key, what) for what in ("within 5%", "too low", "too high")),
    )
    return charts.ratio_chart(
        [(result.entry, result.ratio) for result in given],
        caption,
        formula_table(key, link),
        f"The error of {f.title} for every model",
        link,
    )
