"""No page types a model's number: (a) none stands in the Markdown, (b) after presets are edited no built page shows an
old figure.
"""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from copies import ROOT, build, whole

from macros.catalogue import presets
from macros.site.page_checks import numbers

PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if "overrides" not in p.parts and "vendor" not in p.parts)

# What may stand in the Markdown. An entry that is nowhere to be found is an error.
ALLOWED = numbers.exceptions()


def sizes() -> set[str]:
    """Every size of the catalogue from 100 on, as it would be typed: 768, 4096."""
    found = set()
    for slug in presets.paths():
        if presets.preset(slug).config is not None:
            found |= {str(int(n)) for n in presets.model(slug).counts.values().values() if int(n) >= 100}
    return found


def typed_numbers(markdown: str, named: frozenset[str], known: set[str]) -> list[str]:
    """What looks like a model's number in a page's prose."""
    return [word for _, word in numbers.typed_numbers(numbers.prose(markdown), named, known)]


@pytest.fixture(scope="module")
def words():
    return numbers.of_names(), sizes()


OF_TODAY = [page for page in PAGES if page != ROOT / "docs" / numbers.HISTORY]


@pytest.mark.parametrize("page", OF_TODAY, ids=lambda p: str(p.relative_to(ROOT / "docs")))
def test_no_page_types_a_model_number(page, words):
    found = set(typed_numbers(page.read_text("utf-8"), *words))
    allowed = set(ALLOWED.get(page.relative_to(ROOT / "docs").as_posix(), ()))
    assert found <= allowed, (
        f"typed in the page: {', '.join(sorted(found - allowed))}: write a macro call, such as {{{{ value(…) }}}}"
    )
    assert allowed <= found, (
        f"no longer in the page, take it off typed_numbers.toml: {', '.join(sorted(allowed - found))}"
    )


def test_a_calls_dictionaries_end_it_nowhere():
    page = 'Text {{ bars({"a": {"b": "m.total"}}, by={"width": [4096]}, m="llama3-8b") }} and 4096.\n'
    assert [word for _, word in numbers.typed_numbers(numbers.prose(page), frozenset(), {"4096"})] == ["4096"]


def test_the_exceptions_are_of_pages_that_exist():
    assert not [page for page in ALLOWED if not (ROOT / "docs" / page).exists()]


@pytest.mark.parametrize(
    "markdown, found",
    [
        ("It has 8,030,261,248 parameters.", ["8,030,261,248"]),
        ("It has 8.03 billion.", ["8.03 billion"]),
        ("About 8B parameters in Llama 3 8B.", ["8B"]),
        ("| d | 4096 |", ["4096"]),
        ("A width of 4,096.", ["4,096"]),
        ('{{ value("llama3-8b", "d_model") }} of {{ params("x",\n rounded=1) }}', []),
        ("`4096` and [a paper](https://arxiv.org/abs/2001.08361) of 2017", []),
        ("```python\nd_model = 4096\n```\n\n$12 \\cdot L \\cdot D^2$", []),
        ("{% raw %}8,192{% endraw %}", []),
        ("A text of 8,192 tokens, and a vocabulary of 32,000 tokens.", ["32,000"]),
        ("A text of 1,024 tokens sees 1,024; a width of 1,024.", ["1,024"]),
    ],
)
def test_what_counts_as_typed(markdown, found, words):
    assert typed_numbers(markdown, *words) == found


# (b) A model is edited in a copy, and every page that spoke of it must speak of the new one.

EDITED = "llama3-8b"
EDITS = {
    "num_hidden_layers = 32": "num_hidden_layers = 37",
    "vocab_size = 128256": "vocab_size = 131101",
    "intermediate_size = 14336": "intermediate_size = 14848",
    'headline = "8B"': 'headline = "9B"',
}
TYPED = "typed-by-hand.md"  # a page that the check must catch

FIGURES = """
import json, sys
from macros.catalogue import presets
from macros.counting.conditions import Conditions
from macros.counting.figures import FIGURES
from macros.views.kit import disclosure, rounding
found = {}
for slug in sys.argv[1:] or presets.paths():
    model = disclosure.model(slug)
    if model is None: continue
    c, mine = model.counts, set()
    figures = (f for f in FIGURES.values() if not {"context", "accelerator"} & {*f.needs})
    exact = [f.of(c, Conditions()) for f in figures] + [p.count for p in c.parts]
    exact += [int(w.count) for w in c.weights] + [int(w.count) // int(w.copies) for w in c.weights]
    exact += [c.values()["vocab_size"], c.total - c.embedding // 2]
    exact += [12 * c.values().get("n_layers", 1) * c.values()["d_model"] ** 2]
    exact += [f(s) for s in (1024, 4096, 8192, 131072) for f in (c.decode_flops, c.prefill_flops, c.cache_bytes)]
    mine |= {rounding.grouped(n) for n in exact if n >= 10**4}
    mine |= {rounding.short(c.total), rounding.short(c.active), rounding.decimal_bytes(2 * c.total)}
    mine |= {rounding.flops(c.decode_flops(s)) for s in (512, 1024, 4096, 8192)}
    found[slug] = sorted(mine)
json.dump(found, sys.stdout)
"""


class Blocks(HTMLParser):
    """The sentences, table rows and captions of a page's article, as plain text."""

    ENDS = {
        "p",
        "li",
        "tr",
        "figcaption",
        "summary",
        "caption",
        "desc",
        "title",
        "text",
        "h1",
        "h2",
        "h3",
        "dd",
        "dt",
        "pre",
        "div",
    }

    def __init__(self, html: str):
        super().__init__()
        self.found, self.now, self.inside = [], "", 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "article":
            self.inside += 1
        if tag in self.ENDS:
            self.handle_endtag(tag)
        if tag == "td":
            self.now += " "

    def handle_endtag(self, tag):
        if tag in self.ENDS or tag == "article":
            if self.now.strip():
                self.found.append(" ".join(self.now.split()))
            self.now = ""
        if tag == "article":
            self.inside -= 1

    def handle_data(self, data):
        if self.inside:
            self.now += data


def copy_of_the_site(folder: Path) -> Path:
    """The project with the presets that its pages name, so that it builds soon, and a page with a typed number."""
    whole(folder)
    said = "".join(
        p.read_text("utf-8")
        for p in [
            *PAGES,
            *(
                p
                for p in (ROOT / "macros").rglob("*.*")
                if p.suffix in (".py", ".toml", ".json") and presets.FOLDER not in p.parents
            ),
            ROOT / "mkdocs.yml",
        ]
    )
    for slug, path in presets.paths().items():
        if not re.search(
            rf"[\"'/]{re.escape(slug)}(?:[\"']|\.md|/)|terminal\(\"[^\"]* {re.escape(slug)} "
            rf"|[(=]\"{re.escape(presets.preset(slug).family)}\"",
            said,
        ):
            (folder / "macros" / "presets" / path.relative_to(presets.FOLDER)).unlink()
    (folder / "docs" / TYPED).write_text(
        "# Typed\n\nLlama 3 8B has {} parameters.\n".format(f"{presets.model(EDITED).counts.total:,}"), "utf-8"
    )
    return folder


def edit(folder: Path) -> None:
    """Give the model other sizes, which no published total vouches for.

    Each model of the same sizes gets them too: beside its name, the old figures would otherwise still be right.
    """
    edited = set()
    for slug, path in presets.paths().items():
        text = path.read_text("utf-8")
        if all(f"\n{old}\n" in text for old in EDITS):
            edited.add(slug)
            copied = folder / "macros" / "presets" / path.relative_to(presets.FOLDER)
            for old, new in EDITS.items():
                text = text.replace(old, new)
            if copied.is_file():
                copied.write_text(text[: text.index("[published]")], "utf-8")
            (folder / "macros" / "catalogue" / "references" / f"{slug}.json").unlink(missing_ok=True)
    assert EDITED in edited, f"{EDITED} has not all of {[*EDITS]}: correct EDITS"


def leave_out_others(folder: Path) -> None:
    """Leave the pages of other models empty, which are not looked at: it then builds in half the time."""
    path = folder / "macros" / "site" / "model_pages.py"
    text, first = path.read_text("utf-8"), "    preset = presets.preset(slug)\n    if preset.config is None:\n"
    assert text.count(first) == 1, "correct leave_out_others"
    empty = f"    if slug != {EDITED!r}:\n        return header(presets.preset(slug).name, slug)\n"
    path.write_text(text.replace(first, empty + first), "utf-8")


def figures(folder: Path, *slugs: str) -> dict[str, set[str]]:
    """What pages may show of models, by the code in a folder: of these, or of all."""
    printed = subprocess.run(
        [sys.executable, "-c", FIGURES, *slugs], cwd=folder, capture_output=True, text=True, check=True
    )
    return {slug: set(shown) for slug, shown in json.loads(printed.stdout).items()}


def blocks(site: Path) -> dict[str, list[str]]:
    """The text of each page but those of other models, which may have a figure by chance; a quoted claim (in “ ”) is
    left out.
    """
    theirs = re.compile(rf"models/[^/]+/(?!{re.escape(EDITED)}/)[^/]+/index\.html")
    return {
        str(p.relative_to(site)): [re.sub(r"“[^”]*”", "“…”", b) for b in Blocks(p.read_text("utf-8")).found]
        for p in sorted(site.rglob("*.html"))
        if not theirs.fullmatch(str(p.relative_to(site)))
    }


def showing(pages: dict[str, list[str]], wanted: set[str]) -> dict[str, list[str]]:
    """The blocks that show one of the figures, by page."""
    any_of = re.compile(
        r"(?<![\d,.−-])(?:" + "|".join(map(re.escape, sorted(wanted, key=len, reverse=True))) + r")(?![\d,]*\d|\w)"
    )
    found = {page: [b for b in texts if any_of.search(b)] for page, texts in pages.items()}
    return {page: texts for page, texts in found.items() if texts}


@pytest.mark.share(18, of="copies of the project")
@pytest.mark.processes
@pytest.mark.slow("builds the whole site once more")
def test_an_edited_preset_changes_every_page_that_speaks_of_it(site_folder, tmp_path):
    folder = copy_of_the_site(tmp_path)
    edit(folder)
    leave_out_others(folder)
    built = build(folder)
    assert built.returncode == 0, built.stderr[-3000:]
    before, after = blocks(site_folder), blocks(folder / "site")
    old, new = figures(ROOT, EDITED), figures(folder)
    others = set().union(*(found for slug, found in new.items()))  # a figure that another model has too may stay
    gone = old[EDITED] - others
    assert len(gone) >= 10, f"too few figures to look for: {sorted(gone)}"

    seen = showing(before, gone)
    written = {page for page in seen if not page.startswith("models/")}
    assert len(written) >= 5, f"too few pages speak of {EDITED} for this test to mean anything: {sorted(written)}"
    typed = TYPED.removesuffix(".md") + "/index.html"
    stale = showing(after, gone)
    assert stale.pop(typed, None), "a typed number was not caught: this test cannot fail"
    assert not stale, "still the old figures:\n" + "\n".join(
        f"{page}: {text[:200]}" for page, texts in stale.items() for text in texts[:5]
    )
    assert showing(after, new[EDITED] - old[EDITED]).keys() >= written - {typed}, (
        "pages that lost the old figures and show none of the new"
    )


def test_the_numbers_of_configs_are_sizes_and_names_are_those_of_presets(words):
    """A preview reads them from the presets' text, for a save waits for it."""
    named = {
        word
        for slug in presets.paths()
        for text in (presets.preset(slug).name, slug)
        for word in re.findall(r"\d[\d.]*[BbMm]\b", text)
    }
    assert numbers.of_names() == named and len(numbers.of_configs() & words[1]) > 100
