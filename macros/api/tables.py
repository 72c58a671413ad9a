"""Tables and figures with a breakdown, as objects: rows for data frames, CSV, Markdown, HTML for a notebook."""

from __future__ import annotations

import csv
import html
import io
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from ..engine.errors import Problem, nearest, seen, shorten

if TYPE_CHECKING:
    from ..counting.parameters import Counts

Value: TypeAlias = "int | float | str | bool | list[int] | None"
Row: TypeAlias = "dict[str, Value]"

SHOWN = 20  # rows of a long table when displayed


class Tabular:
    """Anything that is or has a table, and can be displayed and exported as one."""

    @property
    def table(self) -> Table:
        raise NotImplementedError

    def rows(self) -> list[Row]:
        """The rows as dicts, which `pandas.DataFrame` and `polars.DataFrame` accept."""
        return list(self.table)

    def to_csv(self) -> str:
        """A heading and one line per row; whole numbers with every digit, shapes as `4096x1024`."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(map(_plain, self.table.columns))
        lines.writerows([_plain(value) for value in row.values()] for row in self.table)
        return text.getvalue()

    def to_markdown(self) -> str:
        """A Markdown table; every character of a name or a config is escaped."""
        return self.table.written_as_markdown()

    def _repr_html_(self) -> str:
        """For a notebook; the first rows of a long table."""
        return self.table.written_as_html()


class Table(Tabular, Sequence[Row]):
    """Rows with the same columns, each value a number, a string, a list of sizes, or None: `rows()` for a data frame,
    `to_csv()`, `to_markdown()`; a sequence of dicts, which a notebook shows as a table.

    `rows` may be generated, so that a list of a million tensors never exists as a whole. With `heads`, each row is one
    thing, and is shown as a column under its name.
    """

    def __init__(
        self,
        columns: Iterable[str],
        rows: Callable[[], Iterable[Row]] | Sequence[Row],
        *,
        length: int | None = None,
        caption: str = "",
        heads: str = "",
    ):
        self.columns = tuple(columns)
        self.caption, self.heads = caption, heads
        self._rows, self._length = rows, length

    @property
    def table(self) -> Table:
        return self

    def __iter__(self) -> Iterator[Row]:
        rows = self._rows() if callable(self._rows) else self._rows
        return (dict(row) for row in rows)

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self)
        return self._length

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Table: ...

    def __getitem__(self, index: int | slice) -> Row | Table:
        """A row, or a table of several rows."""
        rows = self.rows()[index]
        return rows if isinstance(rows, dict) else Table(self.columns, rows, caption=self.caption, heads=self.heads)

    def select(self, *columns: str) -> Table:
        """The same rows with only these columns. Raises `Problem` for a missing column."""
        for name in columns:
            if name not in self.columns:
                raise Problem(
                    f"no column {shorten(name)}", nearest(name, self.columns, f"has {', '.join(self.columns)}")
                )
        rows = [{name: row[name] for name in columns} for row in self]
        return Table(columns, rows, caption=self.caption, heads=self.heads if self.heads in columns else "")

    def __repr__(self) -> str:
        headings, rows, rest = self._shown(SHOWN)
        lines = [list(map(_read, headings)), *([_read(value) for value in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*lines)]
        is_number = [self._is_number(place, rows) for place in range(len(headings))]
        written = (
            "  ".join(cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(line, widths, is_number))
            for line in lines
        )
        return "\n".join([*map(str.rstrip, written), *([rest] if rest else [])])

    def written_as_markdown(self) -> str:
        headings, rows, _ = self._shown(None)
        sides = ["--:" if self._is_number(place, rows) else "---" for place in range(len(headings))]
        lines = [map(_in_markdown, headings), sides, *(map(_in_markdown, map(_read, row)) for row in rows)]
        return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

    def written_as_html(self) -> str:
        headings, rows, rest = self._shown(3 * SHOWN)
        right = [' style="text-align:right"' if self._is_number(i, rows) else "" for i in range(len(headings))]

        def line(name: str, cells: Iterable[str]) -> str:
            return f"<tr>{''.join(f'<{name}{side}>{_in_html(c)}</{name}>' for c, side in zip(cells, right))}</tr>"

        caption = f"<caption>{_in_html(self.caption)}</caption>" if self.caption else ""
        body = "".join(line("td", map(_read, row)) for row in rows)
        below = f"<p>{_in_html(rest)}</p>" if rest else ""
        return f"<table>{caption}<thead>{line('th', headings)}</thead><tbody>{body}</tbody></table>{below}"

    def _shown(self, most: int | None) -> tuple[list[str], list[list[Value]], str]:
        """Headings and rows as readers see them, and a note on the rows that are left out."""
        if self.heads:
            rows = self.rows()
            names = [str(row[self.heads]) for row in rows]
            return ["", *names], [[c, *(row[c] for row in rows)] for c in self.columns if c != self.heads], ""
        rows = [list(row.values()) for row in itertools.islice(self, most)]
        rest = f"… {len(self):,} rows in all" if len(rows) < len(self) else ""
        return list(self.columns), rows, rest

    def _is_number(self, place: int, rows: Iterable[Sequence[Value]]) -> bool:
        kinds = {type(row[place]) for row in rows}
        return bool(kinds & {int, float}) and (not self.heads or place > 0)


class Quantity(int, Tabular):
    """An exact whole number with its unit, its convention, and the table of its terms."""

    unit: str
    convention: str
    _table: Table

    def __new__(cls, value: int, unit: str = "", convention: str = "", table: Table | None = None) -> Quantity:
        self = super().__new__(cls, value)
        self.unit, self.convention = unit, convention
        said = ": ".join(filter(None, (f"{int(value):,} {unit}".rstrip(), convention)))
        made = table or Table(("value",), [{"value": int(value)}])
        self._table = Table(made.columns, made._rows, length=made._length, caption=said)
        return self

    @property
    def table(self) -> Table:
        return self._table


def one_type(rows: list[Row]) -> list[Row]:
    """The same rows, each column of one type: mixed numbers become floats, any other mixture becomes strings."""
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    for name, values in columns.items():
        kinds = {type(value) for value in values} - {type(None)}
        if len(kinds) > 1:
            convert = float if kinds == {int, float} else str
            columns[name] = [None if value is None else convert(value) for value in values]
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def table_of(rows: Sequence[Mapping[str, Value]], **about: Any) -> Table:
    """A table of rows that all have the columns of the first one."""
    return Table(rows[0], [dict(row) for row in rows], **about)


def weights_table(counts: Counts) -> Table:
    """The trained tensors by name pattern: shape, copies, parameters in total, also as a formula."""
    rows: list[Row] = [
        {
            "tensor": w.name,
            "shape": [int(d) for d in w.shape],
            "copies": int(w.copies),
            "parameters": int(w.count),
            "formula": str(w.count.expr),
        }
        for w in counts.weights
    ]
    return Table(("tensor", "shape", "copies", "parameters", "formula"), rows)


def _plain(value: Value) -> object:
    """A value for CSV."""
    if isinstance(value, list):
        return "x".join(map(str, value))
    return seen(value) if isinstance(value, str) else value


def _read(value: Value) -> str:
    """A value for readers."""
    if value is None:
        return ""
    if isinstance(value, (bool, str)):
        return seen(" ".join(str(value).split()))
    if isinstance(value, list):
        return " × ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _in_html(text: str) -> str:
    return html.escape(seen(text))


def _in_markdown(text: str) -> str:
    """Text without any character that Markdown or HTML would interpret."""
    return re.sub(r"([\\`*_\[\]|~$#{}])", r"\\\1", html.escape(" ".join(seen(text).split()), quote=False))
