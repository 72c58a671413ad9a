"""Figures of one name, of one model, are equal wherever they stand: on its page, in tables of models, in Compare."""

from __future__ import annotations

import re
from html import unescape

import pytest

from macros.catalogue import presets
from macros.counting.figures import FIGURES, SCALES

TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr.*?</tr>", re.DOTALL)
CELL = re.compile(r"<t[hd](?:\s[^>]*)?>(.*?)(?=</t[hd]>)", re.DOTALL)
TAG = re.compile(r"<(script|style|svg)\b.*?</\1>|<[^>]*>", re.DOTALL)
LINK = re.compile(r'href="[^"]*?([\w.-]+)/"')
NUMBER = re.compile(r"(\d[\d,]*)(\.\d+)?\s?([KMBT]?)")

# Columns whose table says under which conditions they stand, or what of: two tables of one page differ by that.
CONDITIONED = {
    *("the formula", "the model", "size", "counted", "rank 8", "rank 16", "longest context"),
    *("largest batch size", "kv cache bytes", "per tokenat long context bytes"),
}


def text(html):
    return " ".join(unescape(TAG.sub("", html)).replace("¶", "").split())


def named(heading):
    """A figure's name as all places have it: “Embedding parameters” and “embedding” are one."""
    return re.sub(r"\bparameters\b|,", "", heading.partition(" · ")[0].lower()).strip() or "parameters"


def count(cell):
    """The number of a cell, and by how much it may be rounded; None without one."""
    found = NUMBER.fullmatch(cell)
    if found is None:
        return None
    whole, part, scale = found[1].replace(",", ""), found[2] or "", SCALES[found[3]]
    return float(whole + part) * scale, (0.5 if scale > 1 or part else 0) * scale / 10 ** max(len(part) - 1, 0)


def told(pages):
    """(model, name, number, rounding, page) of each number in tables whose rows are models, and on a model's page of
    each row that counts parameters. `pages`: their HTML, by address."""
    paths = {slug: f"models/{path.parent.name}/{slug}" for slug, path in presets.paths().items()}
    own = {path: slug for slug, path in paths.items()}
    for address, html in pages.items():
        for table in TABLE.findall(html):
            first = ROW.search(table)
            names = [named(text(cell)) for cell in CELL.findall(first[0])] if first else []
            counts_parameters = names[1:2] == ["parameters"]
            if names[:1] != ["model"] and not (address in own and counts_parameters):
                continue
            for row in map(CELL.findall, ROW.findall(table)[1:]):
                link = LINK.search(unescape(row[0])) if row else None
                if link and link[1] in paths:
                    cells = [(link[1], name, cell) for name, cell in zip(names[1:], row[1:])]
                elif address in own and counts_parameters and len(row) > 1 and ".weight" not in row[0]:
                    cells = [(own[address], named(text(row[0])), row[1])]
                else:
                    continue
                for slug, name, cell in cells:
                    if number := count(text(cell)):
                        yield slug, name, *number, address


def unlike(pages):
    """What two places say differently under one name. A row of a model's page is compared where its name is a figure's:
    the other rows are parts, of which there are several of one name."""
    figures = {named(f.title): f for f in FIGURES.values() if not f.needs}
    first, wrong, conditioned = {}, [], set()
    own = {slug: f"models/{path.parent.name}/{slug}" for slug, path in presets.paths().items()}
    for slug, name, number, rounding, address in told(pages):
        figure = figures.get(name)
        if name in CONDITIONED or (figure is None and address == own[slug]):
            conditioned.add(name)
            continue
        if (slug, name) not in first and figure is not None:
            first[slug, name] = figure.of(presets.model(slug).counts, None), 0, f"FIGURES[{figure.name!r}]"
        other, also, place = first.setdefault((slug, name), (number, rounding, address))
        if abs(number - other) > rounding + also:
            wrong.append(f"{slug}, “{name}”: {number:,.0f} on {address}, {other:,.0f} in {place}")
    return wrong, first, conditioned


def test_figures_of_one_name_are_equal_on_all_pages(site_folder):
    pages = {
        path.parent.relative_to(site_folder).as_posix(): path.read_text("utf-8")
        for path in site_folder.rglob("index.html")
    }
    wrong, compared, conditioned = unlike(pages)
    assert not wrong, "\n".join(wrong[:20])
    assert len(compared) > 5000 and len({name for _, name in compared}) > 40
    assert conditioned >= CONDITIONED


@pytest.mark.parametrize(
    "table",
    [
        "<table><tr><th>Part</th><th>Parameters</th></tr><tr><td>Embedding and LM head</td><td>622M</td></tr></table>",
        "<table><tr><th>Model</th><th>Embedding and LM head parameters</th></tr>"
        '<tr><td><a href="../qwen/qwen3-8b&#47;">Qwen3 8B</a></td><td>622M</td></tr></table>',
    ],
)
def test_another_count_under_the_same_name_is_seen(table):
    [wrong], *_ = unlike({"models/qwen/qwen3-8b": table})
    assert "622,000,000" in wrong and "1,244,659,712" in wrong
    assert unlike({"models/qwen/qwen3-8b": table.replace("622M", "1.24B")})[0] == []
