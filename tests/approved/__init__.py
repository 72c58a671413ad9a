"""What the macros, commands and examples on the pages show, as text that a person has read and approved.

For each macro, `texts/<macro>.txt` holds its calls on the pages, each with what it shows: every cell of a table behind
its row's name and its column's heading, every sentence, every label of a drawing with its place. A change of
any of these fails `tests/site/test_approved.py`, which prints the difference. If it is meant,
`python -m tests.approved` writes it down, and the review of the change shows the lines as readers will see them.

Numbers are not proven by this: the tests of their rooms hold them against others' numbers. It sees that a heading
still stands above its own column, that a sentence names the right one of two figures, and that nothing got lost.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import jinja2

ROOT = Path(__file__).parent.parent.parent
TEXTS = Path(__file__).parent / "texts"
CALLS = Path(__file__).parent / "calls.txt"  # further calls that no page has
MARK = "### "
LINE = " ⏎ "  # a new line inside of a call
# These show source code or the last run of something, or go through the whole catalog (as `coverage_…` and `family_…`):
# another module, run or preset changes them. Their own tests hold them, and `few` what they show of a few models.
LEFT_OUT = frozenset(
    """architecture_gallery attention_count attention_kinds benchmark benchmarks_table cache_peers catalogue
    choice_chart common_widths design_result design_table excerpt fits_table formula_error_chart formula_result
    formulas_table
    gallery_summary headlines_table how_many independent_summary independent_table macro_table model_answers
    plan_deployment published_origins room rooms_picture rooms_table shape_history_chart size_chart size_count
    size_histograms timeline tower_list tower_types verification what_fits width_result widths_at_a_glance""".split()
)
OF_THE_CATALOG = re.compile(r"^(coverage_|family_)|fits --on|ep\.models\(|ep\.fits\(on|fits llama3\.3-70b --context 8k")
LONG = 60  # rows; a longer table of models or types has only these, so that a new preset or type changes nothing
MODELS = re.compile(
    r"^(?:gpt2|gpt-oss-20b|llama3-8b|llama3-70b|mixtral-8x7b|deepseek-v3|qwen3-8b|jamba-v0\.1|GPT-2|Llama 3 8B"
    r"|Llama 3 70B|Mixtral 8x7B|DeepSeek-V3|Qwen3 8B|Jamba v0\.1|gpt-oss-20b)\b"
)
TYPES = re.compile(
    r"(?:gpt2|llama|mistral|mixtral|deepseek_v3|gemma3_text|gpt_oss|jamba|mamba|qwen3_next|t5|whisper)(?=$|[\s:,;])"
)
MOST_OPTIONS = 24  # of a longer list, such as all models, only the chosen ones are written down
MOST = 6000  # characters of one call; of what comes after them only a digest
FULL = 48_000  # characters of a macro, after which no further call is written down
FULLER = {"terminal": 600_000}  # all commands are one macro: a test asks for each of its calls
LONGEST = 100  # characters of an attribute, likewise
ASKED = "alt value placeholder min max step".split()  # attributes that a reader meets, or a script reads
STYLES = "ep-", "highlight", "language-", "arithmatex"  # classes that say what something is, and not in which state
BLOCKS = "p li dt dd div figure figcaption details summary h1 h2 h3 h4 h5 h6 pre ul ol dl section form label".split()


class Reader(HTMLParser):
    """HTML as lines of text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.words: list[str] = []
        self.rows: list[list[str]] | None = None
        self.heads: list[str] = []
        self.is_head = self.is_raw = False
        self.at = ""
        self.in_svg = self.in_pre = 0
        self.options: list[str] | None = None
        self.shapes = hashlib.blake2b(digest_size=6)

    def flush(self) -> str:
        said = " ".join("".join(self.words).split())
        self.words = []
        return said

    def end_line(self) -> None:
        if (said := self.flush()) and self.rows is None:
            self.lines.append(said)

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        if tag in ("script", "style"):
            self.is_raw = True
        elif tag == "pre":
            self.end_line()
            self.in_pre += 1
        elif tag in ("select", "datalist"):
            self.end_line()
            self.options = []
        elif tag == "option" and self.options is not None:
            self.flush()
            chosen = " (chosen)" if "selected" in known else ""
            self.options.append(f"{known.get('value', '')}{chosen} ")
        elif tag == "svg":
            self.end_line()
            self.in_svg += 1
            self.shapes = hashlib.blake2b(digest_size=6)
        elif self.in_svg:
            places = "xy" if tag in ("text", "tspan") else ""  # which are written before the label
            self.shapes.update(repr([tag, *sorted(one for one in attrs if one[0] not in (*places, "id"))]).encode())
            if places:
                x, y = (round(float(known.get(key) or 0)) if number(known.get(key)) else 0 for key in "xy")
                self.at = f"({x}, {y}) "
        elif tag == "table":
            self.end_line()
            self.rows, self.heads = [], []
        elif tag == "tr" and self.rows is not None:
            self.flush()
            self.rows.append([])
            self.is_head = True
        elif tag in ("td", "th"):
            self.flush()
            self.is_head &= tag == "th"
        elif tag in BLOCKS or tag == "br":
            self.end_line() if self.rows is None else self.words.append(" ")
        if known.get("title") and not self.in_svg:
            self.words.append(f"[{known['title']}] ")
        for name, value in () if tag == "option" else attrs:
            if value and (name == "aria-label" or not self.in_svg and (name in ASKED or name.startswith("data-"))):
                self.words.append(f"[{name.removeprefix('data-')}: {short(value) if name[:5] == 'data-' else value}] ")
        for name in () if self.in_svg else (known.get("class") or "").split():
            if len(name) > 2 and name != "num" and not name.startswith(STYLES):
                self.words.append(f"[{name}] ")

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.is_raw = False
        elif tag == "pre":
            self.end_line()
            self.in_pre -= 1
        elif tag == "option" and self.options:
            self.options[-1] += self.flush()
        elif tag in ("select", "datalist") and self.options is not None:
            some = self.options if len(self.options) <= MOST_OPTIONS else [o for o in self.options if "(chosen)" in o]
            self.words.append(f"options: {', '.join(some)}")
            self.options = None
            self.end_line()
        elif tag == "svg":
            self.in_svg -= 1
            self.lines.append(f"drawn: {self.shapes.hexdigest()}")
        elif self.in_svg and tag in ("text", "title", "desc"):
            if said := self.flush():
                self.lines.append((self.at if tag == "text" else f"{tag}: ") + said)
        elif self.rows is not None and tag in ("td", "th") and self.rows:
            self.rows[-1].append(self.flush())
        elif self.rows is not None and tag == "tr" and self.is_head and not self.heads:
            self.heads = self.rows.pop()
        elif self.rows is not None and tag == "caption":
            self.lines.append(f"table: {self.flush()}")
        elif tag == "table" and self.rows is not None:
            self.lines += self.table(self.rows)
            self.rows = None
        elif tag in BLOCKS:
            self.end_line() if self.rows is None else self.words.append(" ")

    def handle_data(self, data):
        if self.in_pre and self.rows is None:
            *lines, rest = data.split("\n")
            for line in lines:
                self.words.append(line)
                self.end_line()
            self.words.append(rest)
        elif not self.is_raw:
            self.words.append(data)

    def table(self, rows: list[list[str]]) -> Iterator[str]:
        if self.heads:
            yield f"columns: {' | '.join(self.heads)}"
        chosen = [row for row in rows if any(MODELS.match(cell) or TYPES.match(cell) for cell in row)]
        for row in filter(None, chosen if chosen and len(rows) > LONG else rows):
            heads = self.heads[1:] if len(self.heads) == len(row) else [str(n) for n in range(2, len(row) + 1)]
            yield f"{row[0]}: {'; '.join(f'{head} = {cell}' for head, cell in zip(heads, row[1:]))}"


def number(text: str | None) -> bool:
    return bool(re.fullmatch(r"-?\d+(?:\.\d+)?", text or ""))


def short(value: str) -> str:
    if len(value) <= LONGEST:
        return value
    return f"{value[: LONGEST // 2]}… {hashlib.blake2b(value.encode(), digest_size=6).hexdigest()}"


def as_text(shown: object, most: int = MOST) -> str:
    """What a macro gives, as lines; a long one is cut, with a digest of the rest."""
    reader = Reader()
    reader.feed(str(shown))
    reader.end_line()
    said = "\n".join(line for line in reader.lines if line)
    if len(said) > most:
        cut = said.rfind("\n", 0, most)
        cut = cut if cut > 0 else most
        digest = hashlib.blake2b(said[cut:].encode(), digest_size=6).hexdigest()
        said = f"{said[:cut]}\n… {said.count(chr(10), cut)} more lines: {digest}"
    return said


class Env:
    """What the macros ask of MkDocs: nothing is linked."""

    variables: dict = {}


@cache
def macros() -> dict:
    from macros.site import page_macros

    known = page_macros.macros(Env())
    return {name: page_macros.with_call_errors(name, macro, lambda *_: "approved") for name, macro in known.items()}


def shown(call: str) -> str:
    """What a call shows, as text; a problem as its line."""
    from macros.engine.errors import Problem

    try:
        return as_text(
            jinja2.Environment().compile_expression(call.replace(LINE, "\n"), undefined_to_none=False)(**macros())
        )
    except Problem as problem:
        return f"problem: {problem}"


def called(call: str) -> str:
    return call.partition("(")[0].strip()


def every_call() -> Iterator[str]:
    """The calls on the pages and the further ones."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    texts += [f"{{{{ {line} }}}}" for line in CALLS.read_text("utf-8").splitlines() if line and line[0] != "#"]
    for text in texts:
        given = re.search(r"""\{% set given = "(.*)" %\}""", text)
        text = re.sub(r"\{% raw %\}.*?\{% endraw %\}", "", text, flags=re.S)
        for call in re.findall(r"\{\{-?\s*([a-z_]+\(.*?\))\s*-?\}\}", text, re.S):
            call = LINE.join(line.rstrip() for line in call.splitlines())
            yield (
                call.replace(", given)", f', "{given[1]}")').replace(", given,", f', "{given[1]}",') if given else call
            )


def is_of_catalog(call: str) -> bool:
    """Whether a new model may change what a call shows: it, or one inside of it, goes through the catalog."""
    inside = re.findall(r"\b([a-z_]+)\(", call)
    return not LEFT_OUT.isdisjoint(inside) or bool(OF_THE_CATALOG.search(call))


def calls() -> dict[str, list[str]]:
    """The calls, by their macro, of those that a new model does not change."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for call in every_call():
        if called(call) in macros() and not is_of_catalog(call):
            found[called(call)][call] = None
    return {name: list(found[name]) for name in sorted(found)}


def approved(path: Path) -> dict[str, str]:
    """The calls of a file, each with what it is to show."""
    blocks = re.split(rf"^{MARK}", path.read_text("utf-8"), flags=re.M)[1:]
    return {call: said.rstrip("\n") for call, _, said in (block.partition("\n") for block in blocks)}


def within_bounds(name: str, blocks: Iterator[str]) -> Iterator[str]:
    """The first of these, until a file is full."""
    full = 0
    for block in blocks:
        if full <= FULLER.get(name, FULL):
            yield block
        full += len(block)


def write(name: str, of_it: list[str]) -> None:
    blocks = (f"{MARK}{call}\n{shown(call)}\n" for call in of_it)
    (TEXTS / f"{name}.txt").write_text("\n".join(within_bounds(name, blocks)), "utf-8")
