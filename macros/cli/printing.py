"""Tables for readers, by Rich: no wider than the terminal; in a pipe or a file plain, with one line per row.

Each figure appears twice, in a readable unit and with every digit. A terminal that is too narrow for both shows only
the rounded figures.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from fractions import Fraction
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from ..counting.figures import BYTES, FLOPS, NUMBERS, PARAMETERS, SECONDS
from ..engine.errors import seen
from ..views.kit import rounding

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Number = int | float | Fraction
ROUNDED = {
    BYTES: rounding.decimal_bytes,
    FLOPS: rounding.flops,
    PARAMETERS: rounding.short,
    NUMBERS: rounding.short,
}
WIDTH = ContextVar("width", default=100_000)  # columns outside a terminal: no row wraps
GAP = 2  # between two columns


class Column(NamedTuple):
    """A column of a grid: its heading, whether it holds numbers (which never wrap), and the minimum width of its words.

    If there is too little space, a column that `may_go` is left out, and one that `may_stack` goes below the first one.
    """

    heading: str = ""
    is_number: bool = False
    least: int = 22
    may_go: bool = False
    may_stack: bool = False


WORDS, ROUND, EXACT = Column(), Column(is_number=True), Column(is_number=True, may_go=True)


class Grid(NamedTuple):
    """Rows below their headings; numbers are aligned to the right."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]

    @property
    def least(self) -> int:
        """The number of terminal columns that it needs."""
        widths = [max(map(cell_len, cells)) for cells in zip([c.heading for c in self.columns], *self.rows)]
        kept = [width if c.is_number else min(width, c.least) for c, width in zip(self.columns, widths)]
        return sum(kept) + GAP * (len(kept) - 1)

    def lines(self) -> list[str]:
        """Its rows, with columns as narrow as possible."""
        heading = [c.heading for c in self.columns]
        rows = [list(map(seen, row)) for row in ([heading] if any(heading) else []) + [*map(list, self.rows)]]
        widths = [max(map(cell_len, cells)) for cells in zip(*rows)]
        return [
            (" " * GAP).join(
                " " * (width - cell_len(cell)) + cell if c.is_number else cell + " " * (width - cell_len(cell))
                for cell, c, width in zip(row, self.columns, widths)
            )
            for row in rows
        ]

    def reduced(self) -> Grid:
        """The grid without the columns that may go, and with the stackable ones below the first."""
        kept = [i for i, c in enumerate(self.columns) if not (c.may_go or c.may_stack)]
        below = [i for i, c in enumerate(self.columns) if c.may_stack]
        rows = [["\n  ".join([row[0], *(row[i] for i in below)]), *(row[i] for i in kept[1:])] for row in self.rows]
        first = self.columns[0]._replace(least=44) if below else self.columns[0]
        return Grid([first, *(self.columns[i] for i in kept[1:])], rows)


class Title(NamedTuple):
    """A line above the block that it names."""

    text: str


Block = Grid | Title | str


def rounded(value: Number | None, unit: str) -> str:
    """A figure in a readable unit, `16.1 GB`; empty if that would repeat the figure itself."""
    if value is None or (isinstance(value, int) and (unit not in ROUNDED or abs(value) < 1000)):
        return ""
    if unit in ROUNDED:
        return ROUNDED[unit](Fraction(value))
    return rounding.significant(Fraction(value)) + (" s" if unit == SECONDS else "")


def exact(value: Number | None) -> str:
    """Every digit of a whole number; the rounded form of any other."""
    return rounding.grouped(value) if isinstance(value, int) else ""


def show(blocks: Iterable[Block]) -> None:
    """Print to standard output, with an empty line between two blocks but none below a title."""
    if sys.stdout.isatty():
        from rich.console import Console

        write(Console(), blocks)
    else:
        print(plain(blocks), end="")


def plain(blocks: Iterable[Block]) -> str:
    """The blocks as plain text; with Rich only if something is too wide, because loading it takes as long as loading
    NumPy."""
    blocks = list(blocks)
    lines = _lines(blocks)
    if max(map(cell_len, lines), default=0) <= WIDTH.get():
        return "".join(f"{line.rstrip()}\n" for line in lines)
    from rich.console import Console

    lines = StringIO()
    console = Console(file=lines, width=WIDTH.get(), color_system=None, legacy_windows=False)
    write(console, blocks)
    return "".join(f"{line.rstrip()}\n" for line in lines.getvalue().splitlines())


def _lines(blocks: Iterable[Block]) -> list[str]:
    """Every block in lines of any length."""
    lines: list[str] = []
    is_below = True
    for block in blocks:
        lines += [] if is_below else [""]
        is_below = isinstance(block, Title)
        if isinstance(block, Grid):
            lines += block.lines()
        else:
            lines.append(seen(block.text if isinstance(block, Title) else block))
    return lines


def write(console: Console, blocks: Iterable[Block]) -> None:
    """Print in the width of the console."""
    from rich.text import Text

    is_below = True  # a title, or nothing
    for block in blocks:
        if not is_below:
            console.print()
        is_below = isinstance(block, Title)
        if isinstance(block, Grid):
            console.print(_fitting(block, console.width))
        elif isinstance(block, Title):
            console.print(Text(seen(block.text), style="bold", overflow="fold"))
        else:
            console.print(Text(seen(block), overflow="fold"))


def _fitting(grid: Grid, width: int) -> Table | Text:
    """A grid as a table that is not too wide; if not even its numbers fit, its rows as lines."""
    from rich.table import Table
    from rich.text import Text

    layout = next((g for g in (grid, grid.reduced()) if g.least <= width), None)
    if layout is None:
        return Text("\n".join("  ".join(map(_seen, filter(None, row))) for row in grid.rows), overflow="fold")
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=any(c.heading for c in layout.columns))
    for column in layout.columns:
        side = "right" if column.is_number else "left"
        table.add_column(Text(seen(column.heading)), justify=side, no_wrap=column.is_number, overflow="fold")
    for row in layout.rows:
        table.add_row(*(Text(_seen(cell)) for cell in row))
    return table


def _seen(cell: str) -> str:
    """A cell in which every character is visible; lines after the first stay there."""
    return "\n".join(map(seen, cell.split("\n")))
