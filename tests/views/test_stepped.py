"""Figures of several states: products, masks, experts and a text that grows, each held against another way to it."""

import html
import json
import re

import numpy as np
import pytest

from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.engine.ops import Canvas, Chunked, Full, SlidingWindow
from macros.views.guide import arithmetic, attention_masks, expert_tiles, real_numbers, writing
from macros.views.models.model_page import experts_and_attention


def states(made) -> list[tuple[str, str]]:
    """What the slider and the sentence say in each state."""
    return [tuple(one) for one in json.loads(html.unescape(re.search(r'data-states="([^"]*)"', made)[1]))]


def test_all_states_are_there_and_one_is_the_readers():
    made = str(arithmetic.product_steps([[2, 1, 3], [1, 0, -1]], [[1, 0], [4, 1], [2, 5]]))
    assert made.count("<template") == len(states(made)) == 4 and made.count("ep-bars lit") == 1
    assert made.count('class="ep-bars') == 3


def test_each_number_of_a_product_is_worked_out():
    a, b = np.array([[2, 1, 3], [1, 0, -1]]), np.array([[1, 0], [4, 1], [2, 5]])
    said = [said for _, said in states(arithmetic.product_steps(a.tolist(), b.tolist()))]
    results = [int(one.removesuffix(".").split("= ")[1].replace("−", "-")) for one in said]
    assert results == (a @ b).ravel().tolist()
    for one, result in zip(said, results):
        worked = one.split(": ")[1].split(" =")[0].replace("·", "*").replace("−", "-")
        assert eval(worked) == result


@pytest.mark.parametrize(
    "mask, sees",
    [
        (Full(), lambda i, j: j <= i),
        (SlidingWindow(4), lambda i, j: i - 4 < j <= i),
        (Chunked(4), lambda i, j: j <= i and i // 4 == j // 4),
        (Canvas(), lambda i, j: True),
    ],
)
def test_a_mask_is_drawn_as_it_is_defined(mask, sees):
    n = attention_masks.TOKENS
    assert attention_masks.allowed(mask).tolist() == [[sees(i, j) for j in range(n)] for i in range(n)]


def test_the_masks_say_how_many_scores_they_leave():
    by_title = dict(states(attention_masks.attention_masks()))
    assert "causal 136, sliding window 58, chunks 40, encoder 256" in by_title["Window and chunk of 4"]
    assert "sliding window 136, chunks 136" in by_title["Window and chunk of 16"]


def test_the_kinds_of_the_catalog_are_those_of_the_pages():
    known = [m for slug in presets.paths() if presets.preset(slug).config is not None and (m := presets.model(slug))]
    said = {model.slug: experts_and_attention(model)[1].split(", ") for model in known}
    assert {kind for kinds in said.values() for kind in kinds} - {"no attention", ""} <= attention_masks.KINDS.keys()
    for kind in attention_masks.KINDS:
        assert int(attention_masks.attention_count(kind)) == sum(kind in kinds for kinds in said.values()) > 0
    with pytest.raises(Problem, match="grouped-query"):
        attention_masks.attention_count("grouped-qery")


def test_one_vector_for_all_heads_is_multi_query():
    assert "multi-query" in experts_and_attention(presets.model("deepseek-v4-flash"))[1]


def test_experts_are_drawn_without_repetition_and_as_many_as_expected():
    """An even choice by simulation, with another generator: 57.3 of 256 experts after 8 tokens of 8."""
    for token in expert_tiles.choices(256, 8, 64):
        assert len(set(token)) == 8 and set(token) <= set(range(256))
    rng = np.random.default_rng(5)
    used = [len({int(e) for _ in range(8) for e in rng.choice(256, 8, replace=False)}) for _ in range(400)]
    assert expert_tiles.expected(256, 8, 8) == pytest.approx(np.mean(used), abs=0.6)
    said = states(expert_tiles.expert_tiles("mixtral-8x7b"))
    assert (
        said[0][1].startswith("2 of 8 experts are used by 1 token.")
        and "7.2 are expected" in dict(said)["8 tokens: 7 experts"]
    )
    with pytest.raises(Problem, match="mixture of experts"):
        expert_tiles.expert_tiles("gpt2")


def test_the_text_grows_by_the_likeliest_word():
    text = "The capital of France is"
    for _, said in states(writing.writing_loop(text, 5)):
        here = real_numbers.run("capitals", text)
        added = here.asked.tokenizer.token(int(np.argmax(here.scores)))
        assert said.startswith(f"After “{text}”, the likeliest next word is “{added}”")
        text = f"{text} {added}"
        assert said.endswith(f"“{text}”.")
    assert text.startswith("The capital of France is Paris .")
