"""The tokenizer of a GGUF file, converted from its metadata to a tokenizer.json, which the library `tokenizers` reads.

Two kinds are supported: byte-pair encoding, which first splits the input with expressions that llama.cpp refers to by
name (`tokenizer.ggml.pre`; the same as in the makers' tokenizer.json), and SentencePiece's, whose merges follow the
scores of the pieces. A file of another kind, or with an unknown name, is rejected with that name. Does no I/O: the
browser has this module too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..engine.errors import Problem, shorten

if TYPE_CHECKING:
    from .gguf_header import Gguf

INSTEAD = "give --tokens, or run the maker's files"
CONTROL, USER_DEFINED, BYTE = 3, 4, 6  # of tokenizer.ggml.token_type

# The parts of the expressions that split the input before it is encoded.
_SHORT = r"'s|'t|'re|'ve|'m|'ll|'d"
_ANY_CASE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = rf"{_SHORT}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"
_DIGITS_APART = r"\p{N}", _WORDS


def _newer(digits: str) -> str:
    """Words with the space or mark before them, and digits in groups."""
    return rf"{_ANY_CASE}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_REST}"


_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def _by_case(digits: str, ending: str) -> str:
    """Words split where capitals begin."""
    before = r"[^\r\n\p{L}\p{N}]?"
    words = rf"{before}{_UPPER}*{_LOWER}+{ending}|{before}{_UPPER}+{_LOWER}*{ending}"
    return rf"{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_REST}"


_PUNCTUATED = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
    + _REST
)
_CUTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("gpt-2", "mpt", "olmo", "jais", "trillion", "phi-2", "mellum", "modern-bert", "gigachat", "a.x-4.0"), (_WORDS,)),
    (("jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "granite-docling"), (_WORDS,)),
    (("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"), _DIGITS_APART),
    (
        ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
        (_newer(r"\p{N}{1,3}"),),
    ),
    (("dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "glm5"), (_newer(r"\p{N}{1,3}"),)),
    (("qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "solar-open", "megrez", "grok-2"), (_newer(r"\p{N}"),)),
    (("kormo", "f2llmv2", "exaone4"), (_newer(r"\p{N}"),)),
    (("gpt-4o", "llama4", "kanana2", "minimax-m2"), (_by_case(r"\p{N}{1,3}", f"{_ANY_CASE}?"),)),
    (("tekken",), (_by_case(r"\p{N}", ""),)),
    (("deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"), (r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", _PUNCTUATED)),
    (("falcon",), (r"[\p{P}\$\+<=>\^~\|`]+", _WORDS, "[0-9][0-9][0-9]")),
    (("default",), (r"[\p{P}\$\+<=>\^~\|]+", _WORDS, r"\p{N}+", "[0-9][0-9][0-9]")),
)
CUTS = {name: expressions for names, expressions in _CUTS for name in names}
# Makers' tokenizers that look a piece up before they merge its letters, and that start every input with a token.
IGNORE_MERGES = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "tekken")
BEGINS = ("llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "tekken")


def tokenizer_json(file: Gguf) -> dict[str, Any]:
    """The contents of a tokenizer.json. Raises `Problem`."""
    kind = file.metadata.get("tokenizer.ggml.model")
    if kind is None:
        raise Problem("has no tokenizer: tokenizer.ggml.model is missing", INSTEAD)
    if kind not in ("gpt2", "llama"):
        raise Problem(f"tokenizer.ggml.model = {shorten(kind)}: this kind of tokenizer is not read", INSTEAD)
    tokens = [str(token) for token in _list(file, "tokenizer.ggml.tokens")]
    types = [int(n) for n in _list(file, "tokenizer.ggml.token_type", [1] * len(tokens))]
    if len(types) != len(tokens):
        raise Problem(f"has {len(tokens):,} tokens and {len(types):,} types of tokens", "download the file again")
    if kind == "gpt2":
        made = _of_pairs(file, tokens)
        begins = file.metadata.get("tokenizer.ggml.pre") in BEGINS
    else:
        made = _of_pieces(file, tokens, types)
        begins = True
    made["added_tokens"] = [
        {"id": n, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        | {"special": types[n] == CONTROL}
        for n, token in enumerate(tokens)
        if types[n] in (CONTROL, USER_DEFINED) and token
    ]
    said = file.metadata.get("tokenizer.ggml.add_bos_token")
    first = file.metadata.get("tokenizer.ggml.bos_token_id")
    if (begins if said is None else said is True) and isinstance(first, int) and 0 <= first < len(tokens):
        made["post_processor"] = _beginning(tokens[first], first)
    return {"version": "1.0", "truncation": None, "padding": None, **made}


def _list(file: Gguf, key: str, otherwise: Sequence[Any] | None = None) -> Sequence[Any]:
    values = file.list_of(key)
    if values is not None:
        return values
    if key not in file.metadata:
        if otherwise is None:
            raise Problem(f"{key} is missing", INSTEAD)
        return otherwise
    raise Problem(f"{key} = {shorten(file.metadata.get(key))}: expected a list", INSTEAD)


def _beginning(token: str, number: int) -> dict[str, Any]:
    first: dict[str, Any] = {"SpecialToken": {"id": token, "type_id": 0}}
    text: dict[str, Any] = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, text],
        "pair": [first, text, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}},
    }


def _vocab(tokens: list[str]) -> dict[str, int]:
    """Tokens by name; if a token is listed twice, the first counts."""
    vocab: dict[str, int] = {}
    for n, token in enumerate(tokens):
        vocab.setdefault(token, n)
    return vocab


def _of_pairs(file: Gguf, tokens: list[str]) -> dict[str, Any]:
    """Byte-pair encoding of bytes."""
    pre = file.metadata.get("tokenizer.ggml.pre", "default")
    if not isinstance(pre, str) or pre not in CUTS:
        raise Problem(f"tokenizer.ggml.pre = {shorten(pre)}: how it cuts a text is not known", INSTEAD)
    vocab = _vocab(tokens)
    merges: list[list[str]] = []
    for merge in _list(file, "tokenizer.ggml.merges"):
        left, _, right = str(merge).partition(" ")
        if left in vocab and right in vocab and left + right in vocab:
            merges.append([left, right])
    cuts = [
        {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
        for expression in CUTS[pre]
    ]
    of_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*cuts, of_bytes]},
        "post_processor": None,
        "decoder": {**of_bytes, "add_prefix_space": True},
        "model": _bpe(vocab, merges) | {"ignore_merges": pre in IGNORE_MERGES},
    }


def _bpe(vocab: dict[str, int], merges: list[list[str]]) -> dict[str, Any]:
    return {"type": "BPE", "dropout": None, "unk_token": None, "vocab": vocab, "merges": merges}


def _of_pieces(file: Gguf, tokens: list[str], types: list[int]) -> dict[str, Any]:
    """SentencePiece's pieces: among all pairs that form a piece, the one with the best score is merged first."""
    vocab = _vocab(tokens)
    scores = [float(n) for n in _list(file, "tokenizer.ggml.scores")]
    if len(scores) != len(tokens):
        raise Problem(f"has {len(tokens):,} tokens and {len(scores):,} scores", "download the file again")
    found: list[tuple[float, int, int, str, str]] = []
    for n, token in enumerate(tokens):
        if types[n] in (CONTROL, BYTE) or len(token) > 200:
            continue
        for at in range(1, len(token)):
            left, right = vocab.get(token[:at]), vocab.get(token[at:])
            if left is not None and right is not None:
                found.append((-scores[n], left, right, token[:at], token[at:]))
    merges = [[left, right] for _, _, _, left, right in sorted(found)]
    number = file.metadata.get("tokenizer.ggml.unknown_token_id", 0)
    unknown = tokens[number] if isinstance(number, int) and 0 <= number < len(tokens) else None
    is_prefixed = file.metadata.get("tokenizer.ggml.add_space_prefix", True) is True
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    prefix: list[dict[str, Any]] = [{"type": "Prepend", "prepend": "▁"}] if is_prefixed else []
    strip: list[dict[str, Any]] = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if is_prefixed else []
    back = [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*prefix, spaces]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [*back, *strip]},
        "model": _bpe(vocab, merges) | {"unk_token": unknown, "fuse_unk": True, "byte_fallback": True},
    }
