"""Stacks whose tables are not tied: transformers 5.24 keeps one for each, one that neither reads, and the head's."""

import pytest
from reference import golden

from macros.catalogue.presets import make
from macros.engine.errors import Problem

# The parent of the tables, and what each is called, as transformers' own models on the meta device have them.
NAMES = {
    "bart": ("model", "embed_tokens", "shared"),
    "marian": ("model", "embed_tokens", "shared"),
    "nllb-moe": ("model", "embed_tokens", "shared"),
    "pegasus_x": ("model", "embed_tokens", "shared"),
    "bigbird_pegasus": ("model", "embed_tokens", "shared"),
    "led": ("led", "embed_tokens", "shared"),
    "prophetnet": ("prophetnet", "word_embeddings", "word_embeddings"),
    "switch_transformers": ("", "embed_tokens", "shared"),
}


@pytest.mark.parametrize("model_type", NAMES)
def test_each_stack_has_a_table_of_its_own(model_type):
    trunk, table, shared = NAMES[model_type]
    raw = golden(model_type).raw
    if model_type == "marian":
        raw = raw | {"share_encoder_decoder_embeddings": True, "decoder_vocab_size": raw["vocab_size"]}
    tied, untied = (dict(make("it", raw | {"tie_word_embeddings": tie}).counts.tensors()) for tie in (True, False))
    below = f"{trunk}." if trunk else ""
    new = {f"{below}encoder.{table}.weight", f"{below}decoder.{table}.weight", "lm_head.weight"}
    assert untied.keys() - tied.keys() == new and tied.keys() <= untied.keys()
    assert {untied[name] for name in (*new, f"{below}{shared}.weight")} == {tied[f"{below}{shared}.weight"]}


@pytest.mark.parametrize("whole, inner", [(None, False), (False, None), (True, False)])
def test_a_whole_with_two_stacks_says_the_same_of_both(whole, inner):
    text, raw = {"model_type": "florence2"}, golden("bart").raw
    parts = text | {"text_config": raw | {"tie_word_embeddings": inner}, "tie_word_embeddings": whole}
    with pytest.raises(Problem, match="tie_word_embeddings is .* for the whole and .* in its text model"):
        make("it", parts)
    alike = parts | {"text_config": raw | {"tie_word_embeddings": False}, "tie_word_embeddings": False}
    assert make("it", alike).counts.total == make("it", raw | {"tie_word_embeddings": False}).counts.total


@pytest.mark.parametrize("name", ["hidden_size", "vocab_size"])
def test_the_head_of_ovis2_is_as_wide_as_its_text_model(name):
    text = golden("qwen2").raw
    raw = {"model_type": "ovis2", "text_config": text, "tie_word_embeddings": False, name: text[name]}
    assert not make("it", raw).counts.is_tied
    with pytest.raises(Problem, match=f"{name} = .* for the head and .* in the text model"):
        make("it", raw | {name: text[name] + 1})


def test_what_a_whole_says_of_its_head_or_does_not():
    text = golden("qwen2").raw | {"tie_word_embeddings": True}
    omni = {"model_type": "qwen2_5_omni_thinker", "text_config": text | {"model_type": "qwen2_5_omni_text"}}
    assert not make("it", omni).counts.is_tied and make("it", omni | {"tie_word_embeddings": True}).counts.is_tied
    for whole, part in (("qianfan_ocr", "qwen3"), ("cohere_compass", "cohere_compass_text")):
        inner = golden(part).raw | {"tie_word_embeddings": True}
        assert not make("it", {"model_type": whole, "text_config": inner}).counts.is_tied
    intern = {"model_type": "internvl", "text_config": text | {"tie_word_embeddings": False}}
    said = "transformers 5.24 ties the head of internvl"
    assert any(said in line for line in make("it", intern).warnings)
    for keys in ({"tie_word_embeddings": False}, {"text_config": text}):
        assert not any(said in line for line in make("it", intern | keys).warnings)
