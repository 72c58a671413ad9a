"""The merges of published tokenizers, held against published ids and another library."""

from hashlib import sha256

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from macros.catalogue import merges, presets
from macros.engine.errors import Problem

TEXTS = (
    "The capital of France is", "Die Hauptstadt von Frankreich ist", "3.14159265", "  if x:\n\t\treturn  x\n\n",
    "I'm, WE'LL", "naïve café", "東京は日本の首都です", "👩‍👩‍👧 ok", "\u00a0a\u2003b", "१२३ हिन्दी", "[a-z]^\\", "",
)  # fmt: skip
# As tiktoken gives them.
IDS = {
    ("gpt2", "The capital of France is"): [464, 3139, 286, 4881, 318],
    ("gpt2", "hello world"): [31373, 995],
    ("cl100k_base", "tiktoken is great!"): [83, 1609, 5963, 374, 2294, 0],
    ("o200k_base", "hello world"): [24912, 2375],
}


@pytest.mark.parametrize(("name", "text"), IDS)
def test_published_ids(name, text):
    assert [piece.id for piece in merges.cut(name, text)] == IDS[name, text]


@pytest.mark.parametrize("name", merges.names())
def test_a_file_is_what_was_recorded(name):
    about = merges.vocabulary(name)
    assert sha256(merges.path(name).read_bytes()).hexdigest() == about.sha256
    assert len(merges.contents(name)) == about.tokens == len(set(merges.contents(name)))
    for text in TEXTS:
        assert b"".join(piece.content for piece in merges.cut(name, text)) == text.encode()


def test_gpt2_has_one_token_more_that_ends_a_text():
    assert merges.vocabulary("gpt2").tokens + 1 == int(presets.model("gpt2").config.symbols["vocab_size"])


def test_a_text_is_cut_as_the_library_tokenizers_does():
    name = "gpt2"
    letters = dict(zip(merges.BYTES, sorted(pre_tokenizers.ByteLevel.alphabet(), key=letter_order), strict=True))
    spelled = ["".join(letters[byte] for byte in content) for content in merges.contents(name)]
    other = Tokenizer(
        models.BPE(
            {word: id for id, word in enumerate(spelled)}, [(spelled[a], spelled[b]) for a, b in merges.merges(name)]
        )
    )
    pattern = Regex(merges.vocabulary(name).pattern)
    other.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(pattern, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    other.decoder = decoders.ByteLevel()
    for text in TEXTS:
        assert [piece.id for piece in merges.cut(name, text)] == other.encode(text).ids, text


def letter_order(letter: str) -> tuple[bool, int]:
    """The library writes bytes as letters: a printable one as itself, the others in order from U+0100."""
    return ord(letter) >= 0x100, ord(letter)


def test_an_unknown_vocabulary_is_refused():
    with pytest.raises(Problem, match=r"vocabulary 'gpt3'.*gpt2"):
        merges.cut("gpt3", "a")
