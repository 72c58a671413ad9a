"""Each page that is read in order asks a newcomer's question, then shows its figure, and ends with questions."""

import posixpath
import re

import pytest
from guide_pages import ROOT, pages

from macros.site.page_checks.numbers import prose
from macros.site.page_macros import MACROS

MOST_WORDS = 75  # before the figure: two or three sentences
LEAST_QUESTIONS = 2
LAST = 0.45  # the part of a page, at its end, that has the last of them
# Macros that show a figure: drawn in the build, whole without a script.
FIGURES = set(
    """
    ablation_chart attention_heads attention_masks cache_chart choose_country device_chart embedding_map expert_tiles
    flops_chart learned_grid logit_lens memory_figure moving_bars number_walk parts_chart product_steps recorded_next
    size_histograms station throughput_chart token_pieces training_chart writing_loop
    """.split()
)


def text(page: str) -> str:
    """A page without its front matter."""
    return (ROOT / "docs" / page).read_text("utf-8").split("\n---\n", 1)[1]


def test_the_three_parts_are_found():
    assert len(pages()) >= 40 and "costs/memory.md" in pages() and FIGURES <= MACROS.keys()


@pytest.mark.parametrize("page", pages())
def test_a_page_opens_with_a_question_and_its_figure(page):
    said = text(page)
    opening = said.partition("\n## ")[0]
    question = re.search(r"\n(.+)\n\{ \.ep-subtitle \}", opening)
    assert question and question[1].endswith(("?", "___")), f"{page}: ask a newcomer’s question below the title"
    called = re.search(
        r"\{\{ (\w+)\(", opening[question.end() :].replace("{{ params(", "{{ (").replace("{{ value(", "{{ (")
    )
    calls = [name for name in re.findall(r"\{\{ (\w+)\(", opening) if name in FIGURES]
    assert called and calls, f"{page}: show the figure before the first heading"
    before = opening[question.end() : opening.index(f"{{{{ {calls[0]}(")]
    words = len(prose(before).split())
    assert 5 <= words <= MOST_WORDS, f"{page}: {words} words before the figure"


@pytest.mark.parametrize("page", pages())
def test_a_page_ends_with_questions(page):
    said = text(page)
    asked = [m.start() for m in re.finditer(r"^\?\?\? question|^\{\{ ask_first\(", said, re.M)]
    assert len(asked) >= LEAST_QUESTIONS, f"{page}: ask two or three questions at the end"
    assert asked[-1] > (1 - LAST) * len(said), f"{page}: the questions stand at the end"
    assert "ask_first(" in said, f"{page}: let one of them be predicted"


@pytest.mark.parametrize("page", pages())
def test_a_page_links_what_it_takes_for_granted(page):
    """To another page of the three parts, before its first heading."""
    linked = re.findall(r"\]\(([^)#]+\.md)", text(page).partition("\n## ")[0])
    known = {posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in linked}
    assert known & set(pages()) - {page}, f"{page}: link the page that explains what this one builds on"
