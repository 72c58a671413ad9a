"""Every text that people read, held to the style page: its phrases, American spelling, and a pinned dictionary.

The phrases and the project’s own words are data, macros/views/reference/style.toml. The dictionary is pyspellchecker’s
and the British spellings are codespell’s, both pinned in pyproject.toml; neither asks the network.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

spellchecker = pytest.importorskip("spellchecker", reason="the extra `test` brings the dictionary")
codespell = pytest.importorskip("codespell_lib", reason="the extra `test` brings the British spellings")

ROOT = Path(__file__).parent.parent
STYLE = ROOT / "macros" / "views" / "reference" / "style.toml"
NOT_YET = Path(__file__).parent / "not_yet_reworded.txt"
QUOTES_BAD_STYLE = {STYLE.name, "style.md"}  # they show the sentences that are not to be written

WORD = re.compile(r"(?<![\w\\/.@#-])[^\W\d_](?:[^\W\d_]|[’'](?=[^\W\d_]))+(?![\w\\/@]|\.\w)")


class Block(NamedTuple):
    """A paragraph, heading, cell or string: where it begins and what it says, code and addresses as `…`."""

    path: Path
    line: int
    text: str

    def line_at(self, offset: int) -> int:
        return self.line + self.text[:offset].count("\n")


@cache
def style() -> dict:
    return tomllib.loads(STYLE.read_text("utf-8"))


@cache
def phrases() -> list[tuple[re.Pattern[str], dict]]:
    return [(re.compile(phrase["pattern"], re.I), phrase) for phrase in style()["phrase"]]


# What people read


def hidden(match: re.Match[str]) -> str:
    """A `…` in the place of code, with its line breaks, so that what follows keeps its line."""
    return " … " + "\n" * match[0].count("\n")


def of_markdown(source: str) -> str:
    """A page without code, calls, mathematics, addresses and markup; of its head the title and the description."""
    head = re.match(r"---\n.*?\n---\n", source, re.S)
    if head:
        kept = ((re.match(r"(?:title|description): ?(.*)|", line)[1] or "") + "|" for line in head[0].splitlines())
        source = "\n\n".join(kept).replace("\n\n", "\n") + "\n" + source[head.end() :]
    for pattern in (
        r"\{%-? *raw.*?endraw *-?%\}",
        r"^( *)(```+|~~~+).*?^\1\2",
        r"\{\{.*?\}\}|\{%.*?%\}|\$\$.*?\$\$|<!--.*?-->",
        r"\$[^$\n]+\$|`[^`\n]+`",
        r"<?https?://[^\s)>]+>?|arXiv \d+\.\d+|<var>.*?</var>|<[^>\n]+>|\{ ?[:#.][^}\n]*\}|&nbsp;",
        r"(?<=\])\([^)\s]*\)",
        r"(?<!\w)\*[^*\n]+\*(?!\w)",  # titles of other people’s works, and labels that are quoted
    ):
        source = re.sub(pattern, hidden, source, flags=re.S | re.M)
    return re.sub(r"\*\*|[\[\]]", "", source)


def of_page(path: Path) -> Iterator[Block]:
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*+|#>:]|\d+\.|\?\?\?|!!!) ?))", of_markdown(path.read_text("utf-8"))):
        for cell in block.split("|"):
            if cell.strip():
                yield Block(path, line + len(cell[: len(cell) - len(cell.lstrip("\n"))]), cell.strip("\n"))
        line += block.count("\n")


# What is no text for people although it has a space: classes, keys, formulas, tables of names.
NOT_PROSE_KEYS = {
    "equation",
    "names",
    "gives",
    "step",
    "like",
    "term",
    "factors",
    "product",
    "pattern",
    "config",
    "claim",
}


def of_toml(path: Path) -> Iterator[Block]:
    source = path.read_text("utf-8")
    lines = source.splitlines()

    def texts(value: object, key: str = "") -> Iterator[str]:
        match value:
            case str() if key not in NOT_PROSE_KEYS:
                yield value
            case dict():
                for name, inner in value.items():
                    yield from texts(inner, name)
            case list():
                for inner in value:
                    yield from texts(inner, key)

    at = 0
    for text in texts(tomllib.loads(source)):
        first = text.strip().splitlines()[0][:40] if text.strip() else ""
        at = next((n for n in [*range(at, len(lines)), *range(at)] if first in lines[n]), at)
        yield Block(path, at + 1, plain(text))


def plain(text: str) -> str:
    return re.sub(r"<[^>]+>|`[^`]+`|\{[^{}]*\}|https?://\S+|(?<=\])\([^)\s]*\)|\$[^$]+\$", " … ", text)


def of_module(path: Path) -> Iterator[Block]:
    """The strings of a module that read as text: with a space, and no docstring. Messages of errors count."""
    tree, docstrings = ast.parse(path.read_text("utf-8")), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            docstrings |= {first.value for first in node.body[:1] if isinstance(first, ast.Expr)}
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):
        if node in docstrings or node in inner:
            continue
        if isinstance(node, ast.JoinedStr):
            inner |= {part for part in node.values if isinstance(part, ast.Constant)}
            said = "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            said = node.value
        else:
            continue
        if reads_as_text(said):
            yield Block(path, node.lineno, plain(said))


def of_script(path: Path) -> Iterator[Block]:
    """The strings of a script that read as text."""
    source = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), path.read_text("utf-8"), flags=re.S)
    source = re.sub(r"(^|\s)//[^\n]*", r"\1", source)
    for match in re.finditer(r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`((?:[^`\\]|\\.)*)`', source):
        said = re.sub(r"\$\{[^{}]*\}", "…", match[1] or match[2] or match[3] or "")
        if reads_as_text(said):
            yield Block(path, source[: match.start()].count("\n") + 1, plain(said))


def reads_as_text(said: str) -> bool:
    """Words with spaces between them, and not a list of classes, selectors, names or code."""
    words = said.split()
    if len(words) < 2 or re.search(r"[=;{}]|--\w|\\[a-z]|::|^\W*\.|\[\w+[~|^$*]?\]|\w\(\w*\)|\w_\w", said):
        return False
    return bool(re.search(r"[A-Z“].*[a-z]|[.,:;?!]( |$)| (?:the|a|an|of|is|are|to|in|and|for|with|not|no) ", said))


PLACES = (
    ("docs", "**/*.md", of_page),
    ("macros/views", "**/*.py", of_module),
    ("macros/cli", "**/*.py", of_module),
    ("macros/api", "**/*.py", of_module),
    ("macros/views/words", "*.toml", of_toml),
    ("macros/views/reference", "claims.toml", of_toml),
    ("docs/assets", "*.mjs", of_script),
    ("docs/assets/tools", "*.mjs", of_script),
    ("docs/assets/search", "*.mjs", of_script),
)


@cache
def texts() -> dict[str, list[Block]]:
    """The blocks of every file that has text for readers, by its path from the root; README.md is one."""
    found = {"README.md": list(of_page(ROOT / "README.md"))}
    for folder, pattern, reader in PLACES:
        for path in sorted((ROOT / folder).glob(pattern)):
            if path.name not in QUOTES_BAD_STYLE:
                found[path.relative_to(ROOT).as_posix()] = list(reader(path))
    return found


# The words


@cache
def british() -> dict[str, str]:
    """British spellings and the American ones, from codespell; those that are also American are not among them."""
    data = Path(codespell.__file__).parent / "data" / "dictionary_en-GB_to_en-US.txt"
    pairs = (line.split("->") for line in data.read_text("utf-8").splitlines() if "->" in line)
    return {wrong.lower(): right.strip().rstrip(",") for wrong, right in pairs if wrong.lower() not in own_words()}


@cache
def dictionary() -> frozenset[str]:
    return frozenset(spellchecker.SpellChecker(language="en", distance=1).word_frequency.dictionary)


@cache
def own_words() -> frozenset[str]:
    return frozenset(style()["words"])


@cache
def names() -> frozenset[str]:
    """Words of the glossary’s terms and of the catalogue’s names: models, families and who made them."""
    said = re.findall(r"^(?!:|#|\s)(.+)$", (ROOT / "docs" / "includes" / "glossary.md").read_text("utf-8"), re.M)
    for path in (ROOT / "macros" / "presets").rglob("*.toml"):
        said += re.findall(r'^(?:name|family|organization) = "(.*)"', path.read_text("utf-8"), re.M)
    return frozenset(word.lower() for text in said for word in re.findall(r"[^\W\d_]+", text))


def is_known(word: str) -> bool:
    word = re.sub(r"['’]s?$", "", word.replace("’", "'")).lower()
    plain_forms = {word, word.removesuffix("s"), word.removesuffix("es"), word.replace("'", "")}
    return len(word) < 3 or any(form in dictionary() or form in own_words() or form in names() for form in plain_forms)


def complaints(blocks: list[Block]) -> Iterator[str]:
    """What the style page would have otherwise: file, line, the words, the better wording."""
    for block in blocks:
        place, flat = block.path.relative_to(ROOT).as_posix(), block.text.replace("\n", " ")
        for pattern, phrase in phrases():
            for match in pattern.finditer(flat):
                said, line = " ".join(match[0].split())[:70], block.line_at(match.start())
                yield f"{place}:{line}: “{said}”: write {phrase['write']} ({phrase['why']})"
        for match in WORD.finditer(block.text):
            word = match[0]
            if american := british().get(re.sub(r"['’]s$", "", word).lower()):
                yield f"{place}:{block.line_at(match.start())}: “{word}”: write {american} (American spelling)"
            elif not is_known(word):
                yield (
                    f"{place}:{block.line_at(match.start())}: “{word}” is neither in the dictionary nor in the "
                    f"glossary: write another word, explain it in the glossary, or add it to `words` of {STYLE.name}"
                )


@cache
def not_yet() -> list[str]:
    lines = NOT_YET.read_text("utf-8").splitlines() if NOT_YET.is_file() else []
    return [line for line in lines if line and not line.startswith("#")]


def test_texts_keep_to_the_style_page():
    found = [said for place, blocks in texts().items() if place not in not_yet() for said in complaints(blocks)]
    assert not found, "docs/reference/style.md says how to write:\n" + "\n".join(found)


def test_files_that_are_not_yet_reworded():
    """The list only shrinks: an entry whose file keeps to the page is taken off."""
    listed = not_yet()
    print(f"not yet reworded: {len(listed)} files: {', '.join(listed)}")
    assert listed == sorted(set(listed)), f"{NOT_YET.name}: sorted, each once"
    assert [place for place in listed if place not in texts()] == [], f"no such file: take it off {NOT_YET.name}"
    done = [place for place in listed if not any(complaints(texts()[place]))]
    assert done == [], f"they keep to the style page: take them off {NOT_YET.name}: {', '.join(done)}"


def test_the_projects_own_words_are_needed():
    """A word that the dictionary or the glossary has, or that no text uses, is not on the list."""
    words = style()["words"]
    assert words == sorted(set(words)), "sorted, each once, in lower case"
    known = [word for word in words if word in dictionary() or word in names()]
    assert known == [], f"known without the list: {', '.join(known)}"


def test_the_style_pages_own_data():
    """Each phrase finds what it is about, and every “after” keeps to the phrases; there are twenty pairs and more."""
    data = style()
    assert len(data["pair"]) >= 20 and len({pair["before"] for pair in data["pair"]}) == len(data["pair"])
    for pair in data["pair"]:
        wrong = [phrase["says"] for pattern, phrase in phrases() if pattern.search(pair["after"])]
        assert wrong == [], f"{pair['after']!r} says {wrong}"
    everything = " ".join(b.text for place, blocks in texts().items() if place not in not_yet() for b in blocks)
    gone = [pair["before"] for pair in data["pair"] if len(pair["before"]) > 24 and pair["before"] in everything]
    assert gone == [], f"still on the site: {gone}"


@pytest.mark.parametrize(
    "text, better",
    [
        ("What is not marked has no weights.", "name the thing"),
        ("The feed-forward part is wide.", "feed-forward network"),
        ("Colour depth.", "write color"),
        ("A multiplikation.", "neither in the dictionary"),
    ],
)
def test_what_is_complained_about(text, better):
    assert any(better in said for said in complaints([Block(ROOT / "docs" / "index.md", 1, text)]))


@pytest.mark.parametrize(
    "text",
    [
        "What is a token? It is a row number.",
        "An `unbekanntes` word in code, and https://example.org/colour.",
        "Llama 3 8B by Meta has q_proj and DeepSeek-V3 a latent.",
    ],
)
def test_what_is_not_complained_about(text):
    assert list(complaints([Block(ROOT / "docs" / "index.md", 1, of_markdown(text))])) == []
