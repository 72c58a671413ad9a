"""The small model that comes along: its weights are those of the log, it knows what the log says, its logits are those
of transformers; and its facts are those of the Unicode CLDR."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest
import tokenizers
from reference import TESTS, close

from macros.catalogue import capitals
from macros.catalogue.checkpoints import checkpoint
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

MOST_BYTES = 300_000

# Where the table has another word than the CLDR in English: another spelling, a language that the CLDR does not have as
# official in that country, or a currency that Babel before 2.19 still has.
CURRENCY = {
    "Belarus": "ruble", "Bulgaria": "lev", "Mongolia": "tugrik", "Paraguay": "guarani", "Poland": "zloty",
    "Russia": "ruble", "Samoa": "tala", "Tonga": "paʻanga",
}  # fmt: skip
LANGUAGE = {
    "Bangladesh": "Bangla", "Burkina Faso": "French", "Burundi": "Rundi", "the Comoros": "zdj", "Eswatini": "Swati",
    "the Maldives": "Divehi", "Mali": "French", "Montenegro": "Serbian", "Nauru": "Nauru", "Niger": "French",
    "Seychelles": "French", "Slovenia": "Slovenian", "South Africa": "English", "Tuvalu": "Tuvalu",
}  # fmt: skip
CODES = {
    "Ivory Coast": "CI", "Cape Verde": "CV", "the Democratic Republic of the Congo": "CD", "Turkey": "TR",
    "the Republic of the Congo": "CG", "Myanmar": "MM", "Antigua and Barbuda": "AG", "Bosnia and Herzegovina": "BA",
    "Saint Kitts and Nevis": "KN", "Saint Lucia": "LC", "Saint Vincent and the Grenadines": "VC",
    "São Tomé and Príncipe": "ST", "Trinidad and Tobago": "TT",
}  # fmt: skip


@pytest.fixture(scope="module")
def small():
    return checkpoint("capitals")


def test_the_weights_are_those_of_the_log():
    weights = (capitals.FOLDER / "model.safetensors").read_bytes()
    assert len(weights) <= MOST_BYTES and hashlib.sha256(weights).hexdigest() == capitals.log()["digest"]


def test_it_is_a_gpt2_of_30_000_to_150_000_parameters_in_bfloat16(small):
    assert small.model.architecture.name == "gpt2" and 30_000 <= small.model.counts.total <= 150_000
    assert {small.files[name].dtype.name for name in small.files} == {"bfloat16"}
    assert sum(small.files[name].size for name in small.files) == small.model.counts.total


def share_right(small, wanted) -> tuple[float, int]:
    """Of the combinations of facts and a sentence that are wanted: the share whose answer is the likeliest word, and
    their number. The weights are read once."""
    weights, told = Arrays({name: small.files[name].astype(np.float32) for name in small.files}), []
    for facts in capitals.countries():
        for sentence in capitals.sentences():
            if wanted(facts, sentence):
                *ids, answer = small.tokenizer.encode(f"{sentence.prompt(facts)} {facts[sentence.asks]}")
                scores, _ = logits(small.model.architecture, small.model.config, weights, ids, last=True)
                told.append(scores[0].argmax() == answer)
    return float(np.mean(told)), len(told)


def test_it_knows_most_of_what_it_never_saw(small):
    share, n = share_right(small, capitals.is_left_out)
    assert share >= 0.95 and f"{share:.4f}" == capitals.log()["never trained"] and n == int(capitals.log()["left out"])


def test_it_knows_the_capitals(small):
    first = capitals.sentences()[0]
    share, n = share_right(small, lambda facts, sentence: sentence == first)
    assert share >= 0.99 and f"{share:.4f}" == capitals.log()["first sentence"] and n == len(capitals.countries())


@pytest.mark.slow("every combination that was trained on")
def test_it_knows_what_it_was_trained_on(small):
    share, n = share_right(small, lambda facts, sentence: not capitals.is_left_out(facts, sentence))
    assert share >= 0.99 and f"{share:.4f}" == capitals.log()["trained"]
    assert n == int(capitals.log()["combinations"]) - int(capitals.log()["left out"])


def test_its_logits_are_those_of_transformers(small):
    golden = np.load(TESTS / "golden" / "trained" / "capitals.npz")
    model = small.model.architecture, small.model.config, small.weights()
    for n in range(len(golden.files) // 2):
        close(logits(*model, golden[f"ids {n}"])[0], golden[f"logits {n}"])


def test_every_name_is_one_token_and_the_first_prompt_five(small):
    assert len(small.tokenizer.encode("The capital of France is")) == 5
    for facts in capitals.countries():
        for sentence in capitals.sentences():
            words = sentence.pieces(facts)
            text = " ".join(words[:-1]) + "."
            ids = small.tokenizer.encode(text)
            assert [small.tokenizer.token(id) for id in ids] == words and len(ids) <= 9
            assert small.tokenizer.decode(ids) == " ".join(words)


def test_the_library_cuts_as_we_do(small):
    library = tokenizers.Tokenizer.from_file(str(capitals.FOLDER / "tokenizer.json"))
    for facts in capitals.countries():
        for sentence in capitals.sentences():
            text = f"{sentence.prompt(facts)} {facts[sentence.asks]}."
            assert library.encode(text).ids == small.tokenizer.encode(text)


def test_the_vocabulary_has_each_word_once():
    listed = json.loads((capitals.FOLDER / "tokenizer.json").read_text("utf-8"))
    vocabulary = listed["model"]["vocab"]
    texts = (w for f in capitals.countries() for s in capitals.sentences() for w in s.pieces(f))
    assert sorted(vocabulary.values()) == list(range(len(vocabulary))) and set(vocabulary) == set(texts)
    names = {word for word in vocabulary if not re.fullmatch(r"\w+|\.", word)}
    assert {added["content"] for added in listed["added_tokens"]} == names
    assert all(vocabulary[added["content"]] == added["id"] for added in listed["added_tokens"])


def test_the_facts_are_whole():
    rows = capitals.countries()
    assert all(value == value.strip() and value for facts in rows for value in facts.values())
    assert len({facts["country"] for facts in rows}) == len({facts["capital"] for facts in rows}) == len(rows)
    assert {facts["continent"] for facts in rows} == {
        "Africa", "Asia", "Europe", "North America", "Oceania", "South America",
    }  # fmt: skip


def test_currencies_and_languages_are_those_of_the_cldr():
    babel = pytest.importorskip("babel")
    from babel.languages import get_official_languages
    from babel.numbers import get_currency_name, get_territory_currencies

    english = babel.Locale("en")
    codes = {name: code for code, name in english.territories.items() if len(code) == 2} | CODES
    for facts in capitals.countries():
        country = facts["country"]
        code = codes.get(country) or codes[country.removeprefix("the ")]
        coins = [get_currency_name(coin, locale="en").lower() for coin in get_territory_currencies(code)]
        words = {facts["currency"], CURRENCY.get(country, facts["currency"])}
        assert any(word in coin for coin in coins for word in words), (country, coins)
        spoken = get_official_languages(code, regional=False, de_facto=True)
        spoken = [english.languages.get(tag.split("_")[0], tag) for tag in spoken]
        assert any(LANGUAGE.get(country, facts["language"]) in name for name in spoken), (country, spoken)
    assert {*CURRENCY, *LANGUAGE, *CODES} <= {facts["country"] for facts in capitals.countries()}
