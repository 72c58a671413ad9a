"""Layered graph layout, one algorithm in one module: places for boxes inside boxes and for the lines between them.

Each group is laid out separately, as one box of its surrounding group. Its content is in rows, each box below all boxes
that flow into it. A line runs straight down and turns only between two rows; in a row that it passes, it occupies a
slot, like a box. So no line goes through a box, whatever the graph. The output of a box is one line, which branches.

Equal groups recur in most models of an architecture, and are laid out only once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, chain
from math import ceil, floor, inf, sqrt
from typing import NamedTuple

Point = tuple[float, float]

BETWEEN = 16  # between two boxes of a row
BESIDE = 12  # between a line and its neighbor
WIDE = 660  # maximum width of a row
TOO_WIDE = 740  # maximum width of a group, lines included
MARGIN = 12  # inside a group's outline
TRACK = 9  # between two horizontal lines
FALL, TURN = 24, 13  # minimum drop of a line without a turn; and before and after one
APART = 14  # between two lines that enter the same box
NEAR = 40  # how far a box may move to straighten the line into it
LABEL = 52  # room for a label above a line
SWEEPS = 6  # down and up again
TRIES = 4  # attempts to move a box to a lower row, per box
LOOSE = 0.1  # weight of a residual connection when its ends are placed; other lines have 1


class Aims(NamedTuple):
    """The criteria for choosing places in rows."""

    pull: float  # pull of a row's widest boxes toward the middle
    straight: float  # stiffness of a line that passes several rows
    are_fixed: bool  # whether it ends up straight, and boxes give way


LINES_STRAIGHT = Aims(2, 8, True)
NARROW = Aims(30, 1, False)


class Leaf(NamedTuple):
    """A box to be placed, or a circle."""

    width: int
    height: int
    is_round: bool = False


class Group(NamedTuple):
    """Boxes with an outline around them, and the size of its title."""

    content: tuple[Leaf | Group, ...]
    title_width: int = 0
    title_height: int = 0


class Flow(NamedTuple):
    """From one leaf to another, by their indices in the overall order; `is_around` for one that bypasses others."""

    source: int
    target: int
    is_around: bool = False


class Rect(NamedTuple):
    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height


class Line(NamedTuple):
    """A part of a line; `has_tip` if it ends at a leaf."""

    points: tuple[Point, ...]
    has_tip: bool


@dataclass(eq=False)
class Layout:
    """The places of leaves and groups, each in the given order, and of the titles of groups."""

    width: float
    height: float
    leaves: list[Rect] = field(default_factory=list)
    groups: list[Rect] = field(default_factory=list)
    titles: list[Point] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    labels: list[Point] = field(default_factory=list)  # the middle of a residual connection's label


@lru_cache(maxsize=128)
def lay_out(content: tuple[Leaf | Group, ...], flows: tuple[Flow, ...]) -> Layout:
    """The layout of a drawing. Flows point forward in the order of the leaves."""
    top, _, _ = _placed(Group(content), 0, flows)
    layout = Layout(top.width, top.height)
    _spread(top, 0, 0, layout)
    return layout


def _spread(level: _Level, x: float, y: float, layout: Layout) -> None:
    """A group's content, after layout, at its place in the drawing."""
    layout.lines += [Line(tuple([(a + x, b + y) for a, b in points]), has_tip) for points, has_tip in level.lines]
    layout.labels += [(a + x, b + y) for a, b in level.labels]
    for child, (left, top) in zip(level.children, level.places):
        if isinstance(child, Leaf):
            layout.leaves.append(Rect(left + x, top + y, child.width, child.height))
        else:
            layout.groups.append(Rect(left + x, top + y, child.width, child.height))
            layout.titles.append((left + x + child.title_left, top + y))
            _spread(child, left + x, top + y, layout)


# From the whole graph to each group's own


class _Net(NamedTuple):
    """The output of one leaf within a group.

    It comes from a port of a child or from outside, and goes to ports of children and to the outside.
    """

    source: tuple[int, int] | None
    targets: tuple[tuple[int, int, bool], ...]
    is_out: bool


def _placed(group: Group, first: int, flows: Sequence[Flow]) -> tuple[_Level, list[int], list[int]]:
    """A group after layout, whose leaves start with index `first`; the leaves whose outputs enter it, and those whose
    outputs leave it."""
    starts = list(accumulate(map(_size, group.content), initial=first))
    child_of = {n: i for i, (start, end) in enumerate(zip(starts, starts[1:])) for n in range(start, end)}
    of_child: list[list[Flow]] = [[] for _ in group.content]  # a group sees only the flows that reach it
    # by source: the children that consume it, and whether as a residual connection
    taken: dict[int, dict[int, bool]] = {}
    leaves: set[int] = set()
    for flow in flows:
        source, target, is_around = flow
        here, there = child_of.get(source), child_of.get(target)
        if here is not None:
            of_child[here].append(flow)
        if here == there:
            continue
        targets = taken.setdefault(source, {})
        if there is None:
            leaves.add(source)
        else:
            of_child[there].append(flow)
            targets[there] = is_around and isinstance(group.content[there], Leaf)
    children: list[Leaf | _Level] = []
    openings: list[tuple[list[int], list[int]]] = []
    for child, start, own in zip(group.content, starts, of_child):
        if isinstance(child, Leaf):
            children.append(child)
            openings.append(([], []))
        else:
            level, ins, outs = _placed(child, start, own)
            children.append(level)
            openings.append((ins, outs))
    nets, ins, outs = [], [], []
    for source in sorted(taken):
        here = child_of.get(source)
        start = None if here is None else (here, openings[here][1].index(source) if openings[here][1] else 0)
        targets = tuple(
            (child, openings[child][0].index(source) if openings[child][0] else 0, is_around)
            for child, is_around in sorted(taken[source].items())
        )
        nets.append(_Net(start, targets, source in leaves))
        if here is None:
            ins.append(source)
        if source in leaves:
            outs.append(source)
    return _level(tuple(children), tuple(nets), group.title_width, group.title_height), ins, outs


def _size(child: Leaf | Group) -> int:
    return 1 if isinstance(child, Leaf) else sum([1 if isinstance(c, Leaf) else _size(c) for c in child.content])


# One group


@dataclass(eq=False)
class _Level:
    """A group after layout: its own size, the places where lines enter above and leave below, and its content."""

    children: tuple[Leaf | _Level, ...]
    width: float
    height: float
    title_left: float
    ins: tuple[float, ...]
    outs: tuple[float, ...]
    places: list[Point]
    lines: list[Line]
    labels: list[Point]


class _Opened(NamedTuple):
    """A group's horizontal layout: its width, and the positions where lines enter above and leave below."""

    width: float
    ins: tuple[float, ...]
    outs: tuple[float, ...]


@dataclass(eq=False, slots=True)
class _Slot:
    """A place in a row: a child, or a line that passes; the lines that enter above and leave below also form rows."""

    row: int
    child: int | None = None
    width: float = 0
    x: float = 0  # the position of its middle
    order: int = 0


class _Edge(NamedTuple):
    """A net's path from one row to the next: between two slots, with the offsets from their middles."""

    net: int
    source: _Slot
    leaves_at: float
    target: _Slot
    enters_at: float
    weight: float


_End = tuple[int, float, int, float]  # an edge: two slots, and the offsets at which it leaves one and enters the other
_Ends = list[list[tuple[int, float]]]  # by slot: the ends of its edges, and their offsets
_Joins = dict[_Slot, list[tuple[float, _Slot]]]  # by slot: its neighbors and the strength of each edge
_Pull = tuple[_Slot, float, float, list[tuple[float, _Slot]]]  # a slot: its shift in its row, its weight, its edges


class _Entry(NamedTuple):
    """The end of a net, in the row below a gap; `side` if it enters sideways, from the left (-1) or right (1)."""

    x: float
    y: float
    has_tip: bool
    side: int = 0


class _Run(NamedTuple):
    """A net in a gap between two rows: from a child, or a line above; to children, or lines below."""

    source: int | None
    x: float
    track: int
    ends: list[tuple[int | None, _Entry, bool]]  # and whether there is room for its label


class _Across(NamedTuple):
    """A group laid out across: the left side of each child and of all, the right side of all, and every line."""

    lefts: list[float]
    left: float
    right: float
    ins: list[float]
    outs: list[float]
    gaps: list[tuple[list[_Run], int]]  # each with the number of tracks in it


@lru_cache(maxsize=512)
def _level(children: tuple[Leaf | _Level, ...], nets: tuple[_Net, ...], title_width: int, title_height: int) -> _Level:
    rank = tuple(_Ranking(children, nets).narrowest())
    openings = tuple(
        [Leaf(c.width, 0, c.is_round) if isinstance(c, Leaf) else _Opened(c.width, c.ins, c.outs) for c in children]
    )
    level = _stacked(children, rank, _across(openings, rank, nets, LINES_STRAIGHT), title_width, title_height)
    if level.width > TOO_WIDE:
        narrow = _stacked(children, rank, _across(openings, rank, nets, NARROW), title_width, title_height)
        level = min(level, narrow, key=lambda one: one.width)
    return level


def _stacked(
    children: tuple[Leaf | _Level, ...], rank: tuple[int, ...], across: _Across, title_width: int, title_height: int
) -> _Level:
    """A group that is laid out horizontally, with the distances between its rows and the space for its title."""
    left, title_left, width = _sides(across, title_width, MARGIN if title_height else 0)
    heights = [0.0] * (len(across.gaps) + 1)
    for row, child in zip(rank, children):
        heights[row] = max(heights[row], child.height)
    tops = [float(title_height)]
    for gap, height in enumerate(heights[:-1]):
        tops.append(tops[-1] + height + _fall(across.gaps, gap, title_height > 0))
    above = [tops[row] + _above(child.height, heights[row]) for row, child in zip(rank, children)]
    lines: list[Line] = []
    labels: list[Point] = []
    for gap, (runs, _) in enumerate(across.gaps):
        for child, x, track, ends in runs:
            x, bend = x - left, tops[gap] + heights[gap] + TURN + track * TRACK
            start = 0.0 if not gap else tops[gap] if child is None else above[child] + children[child].height
            for target, (end_x, y, has_tip, side), has_label in ends:
                end_x, end = end_x - left, (tops[gap + 1] if target is None else above[target]) + y
                if side:
                    points = ((x, start), (x, end), (end_x, end))
                    if has_label:
                        labels.append(((x + end_x) / 2, end - 4))
                elif abs(end_x - x) < 0.5:
                    points = ((x, start), (x, end))
                else:
                    points = ((x, start), (x, bend), (end_x, bend), (end_x, end))
                lines.append(Line(points, has_tip))
    return _Level(
        children,
        width,
        tops[-1] + heights[-1],
        title_left,
        tuple([x - left for x in across.ins]),
        tuple([x - left for x in across.outs]),
        [(x - left, y) for x, y in zip(across.lefts, above)],
        lines,
        labels,
    )


def _sides(across: _Across, title_width: int, margin: int) -> tuple[float, float, float]:
    """Its left side, and how far its title and its right side are from it."""
    left, right, ins = across.left - margin, across.right + margin, across.ins
    right = max(right, left + title_width + 2 * margin)
    title_left = left + margin
    if ins and title_width:  # next to the incoming lines
        before = title_width + margin + BESIDE - (min(ins) - left)
        behind = title_width + margin + BESIDE - (right - max(ins))
        if before > 0 and behind < before:
            title_left = max(ins) + BESIDE
            right += max(behind, 0)
        elif before > 0:
            left -= before
            title_left = left + margin
    left, right = 2 * floor(left / 2), 2 * ceil(right / 2)
    return left, title_left - left, right - left


def _fall(gaps: list[tuple[list[_Run], int]], gap: int, has_outline: bool) -> float:
    """The distance from a row to the next: space for the lines that turn; less below the title and above the
    outline."""
    runs, n_tracks = gaps[gap]
    if n_tracks:
        return 2 * TURN + (n_tracks - 1) * TRACK
    if gap == 0:
        return FALL - TURN if runs else 0
    if runs or gap + 1 < len(gaps):
        return FALL
    return MARGIN if has_outline else 0


def _above(height: float, tallest: float) -> float:
    """The space above a child in its row: it is centered, unless something much taller is next to it."""
    rest = tallest - height
    return 0 if rest > 4 * TRACK else rest / 2


class _Ranking:
    """The choice of a row for each of a group's children."""

    def __init__(self, children: tuple[Leaf | _Level, ...], nets: tuple[_Net, ...]):
        self.children = children
        self.before: list[set[int]] = [set() for _ in children]
        self.behind: list[set[int]] = [set() for _ in children]
        from_outside: set[int] = set()
        for net in nets:
            for target, _, _ in net.targets:
                if net.source is None:
                    from_outside.add(target)
                else:
                    self.before[target].add(net.source[0])
                    self.behind[net.source[0]].add(target)
        self.follows = {
            i for i, sources in enumerate(self.before) if not sources and i not in from_outside and self.behind[i]
        }
        self.lowest = [1] * len(children)  # the highest row allowed for each

    def narrowest(self) -> list[int]:
        """Each child's row, chosen so that rows are narrow: children that can wait go below a row that would be too
        wide, and nothing is next to a group that fills a row."""
        narrowest, least = [], inf
        for _ in range(TRIES * len(self.children)):
            rank = self._ranks()
            widths: dict[int, float] = {}  # the total width of each row's boxes
            for row, child in zip(rank, self.children):
                widths[row] = widths.get(row, -BETWEEN) + BETWEEN + child.width
            if (widest := max(widths.values(), default=0)) < least:
                narrowest, least = rank, widest
            too_wide = min([row for row, width in widths.items() if width > WIDE], default=None)
            if too_wide is None or not self._lower(too_wide, rank):
                break
        return narrowest

    def _lower(self, row: int, rank: list[int]) -> bool:
        """Whether part of a row can go below it: the child that can wait longest, or everything next to a group."""
        here = [i for i, r in enumerate(rank) if r == row and i not in self.follows]
        latest = [max(rank)] * len(rank)
        for i in reversed(range(len(rank))):
            latest[i] = min([latest[b] - 1 for b in self.behind[i]], default=latest[i])
        waits = max(here, key=lambda i: latest[i], default=None)
        if waits is not None and len(here) > 1 and latest[waits] > row:
            lower = [waits]
        else:
            groups = [i for i in here if isinstance(self.children[i], _Level)]
            lower = [i for i in here if groups and i != groups[0]]
        for i in lower:
            self.lowest[i] = row + 1
        return bool(lower)

    def _ranks(self) -> list[int]:
        """Each child's row, none above its `lowest`: below all its inputs; a child without inputs is directly above its
        outputs."""
        rank: list[int] = []
        for sources, row in zip(self.before, self.lowest):
            rank.append(max([row, *[rank[s] + 1 for s in sources]]))
        for i in self.follows:
            rank[i] = min([rank[b] for b in self.behind[i]]) - 1

        def beside(row: int, without: int) -> list[Leaf | _Level]:
            return [c for i, c in enumerate(self.children) if rank[i] == row and i != without]

        def fits(i: int, row: int) -> bool:
            return sum([c.width + BETWEEN for c in beside(row, i)]) + self.children[i].width <= WIDE

        for i, child in enumerate(self.children):  # a group goes next to the tallest of its possible neighbors
            if isinstance(child, Leaf):
                continue
            first = max(self.lowest[i], 1 + max([rank[s] for s in self.before[i]], default=0))
            last = min([rank[b] for b in self.behind[i]], default=rank[i] + 1) - 1
            if last > first:
                tallest = {
                    r: max([c.height for c in beside(r, i)], default=0) for r in range(first, last + 1) if fits(i, r)
                }
                rank[i] = max(tallest, key=lambda r: (min(tallest[r], child.height), -r), default=rank[i])
        for i in reversed(range(len(rank))):  # a child without inputs may move up if a row is full
            if i in self.follows and rank[i] > 1 and not fits(i, rank[i]) and fits(i, rank[i] - 1):
                rank[i] -= 1
        for i in reversed(range(len(rank))):  # and one whose output is not yet needed may move down
            last = min([rank[b] for b in self.behind[i]], default=0) - 1
            while rank[i] < last and not fits(i, rank[i]) and fits(i, rank[i] + 1):
                rank[i] += 1
        return rank


@lru_cache(maxsize=512)
def _across(children: tuple[Leaf | _Opened, ...], rank: tuple[int, ...], nets: tuple[_Net, ...], aims: Aims) -> _Across:
    return _Placing(children, rank, nets, aims).across()


class _Placing:
    """Computes the horizontal positions of a group's children and nets; heights are not needed yet."""

    def __init__(self, children: tuple[Leaf | _Opened, ...], rank: tuple[int, ...], nets: tuple[_Net, ...], aims: Aims):
        self.children, self.nets, self.aims = children, nets, aims
        self.rows: list[list[_Slot]] = [[] for _ in range(max(rank, default=0) + 2)]
        self.slots = [_Slot(r, i, c.width) for i, (r, c) in enumerate(zip(rank, children))]
        for slot in self.slots:
            self.rows[slot.row].append(slot)
        self.edges: list[list[_Edge]] = [[] for _ in self.rows]  # by the row above
        self.passing: list[list[_Slot]] = []  # for each net that passes rows, its slots there
        self.coming: list[_Slot] = []  # where lines enter above
        self.leaving: list[_Slot] = []  # and leave below
        for n, net in enumerate(nets):
            self._thread(n, net)
        for row in self.rows:
            row.sort(key=lambda slot: slot.child is None)
        self._order()
        self._place()

    def across(self) -> _Across:
        gaps = [self._gap(edges) for edges in self.edges[:-1]]
        lefts = [slot.x - slot.width / 2 for slot in self.slots]
        of_passing = [slot.x for row in self.rows for slot in row if slot.child is None]
        rights = [slot.x + slot.width / 2 for slot in self.slots]
        labels = [
            (run.x + entry.x) / 2 + LABEL / 2
            for runs, _ in gaps
            for run in runs
            for _, entry, is_named in run.ends
            if is_named
        ]
        return _Across(
            lefts,
            min(lefts + of_passing),
            max(rights + of_passing + labels),
            [slot.x for slot in self.coming],
            [slot.x for slot in self.leaving],
            gaps,
        )

    def _thread(self, n: int, net: _Net) -> None:
        """A slot for a net in every row that it passes, and its edges."""
        if net.source is None:
            slot, leaves_at = self._end(self.coming, 0), 0.0
        else:
            slot = self.slots[net.source[0]]
            child = self.children[net.source[0]]
            leaves_at = child.outs[net.source[1]] - child.width / 2 if isinstance(child, _Opened) else 0.0
        targets: list[tuple[_Slot, float, float]] = []
        for index, opening, is_around in net.targets:
            child = self.children[index]
            enters_at = child.ins[opening] - child.width / 2 if isinstance(child, _Opened) else 0.0
            targets.append((self.slots[index], enters_at, LOOSE if is_around else 1.0))
        if net.is_out:
            targets.append((self._end(self.leaving, len(self.rows) - 1), 0.0, 1.0))
        passing: list[_Slot] = []
        last = max(target.row for target, _, _ in targets)
        is_around = all(weight < 1 for target, _, weight in targets if target.row > slot.row + 1)
        for row in range(slot.row, last):
            for target, enters_at, weight in targets:
                if target.row == row + 1:
                    self.edges[row].append(_Edge(n, slot, leaves_at, target, enters_at, weight))
            if row + 1 < last:
                on = _Slot(row + 1)
                self.rows[row + 1].append(on)
                weight = self.aims.straight if slot in passing else LOOSE if is_around else 0.5
                self.edges[row].append(_Edge(n, slot, leaves_at, on, 0.0, weight))
                passing.append(on)
                slot, leaves_at = on, 0.0
        if passing:
            self.passing.append(passing)

    def _end(self, ends: list[_Slot], row: int) -> _Slot:
        slot = _Slot(row)
        self.rows[row].append(slot)
        ends.append(slot)
        return slot

    # the order in each row

    def _order(self) -> None:
        slots = list(chain(*self.rows))
        number = {slot: n for n, slot in enumerate(slots)}
        ends = tuple(
            [
                tuple(
                    [
                        (
                            number[e.source],
                            _aside(e.source, e.leaves_at),
                            number[e.target],
                            _aside(e.target, e.enters_at),
                        )
                        for e in edges
                    ]
                )
                for edges in self.edges
            ]
        )
        self.rows = [[slots[n] for n in row] for row in _ordered(tuple(map(len, self.rows)), ends)]
        for row in self.rows:
            for i, slot in enumerate(row):
                slot.order = i

    # the places in each row

    def _place(self) -> None:
        """Put each slot as near as possible to its neighbors, without overlap; then straighten lines."""
        above: _Joins = defaultdict(list)
        below: _Joins = defaultdict(list)
        for _, source, _, target, _, weight in chain(*self.edges):
            above[target].append((weight, source))
            below[source].append((weight, target))
        if max(map(len, self.rows)) > 1:  # otherwise all are centered
            self._balance(above, below)
        coming: dict[_Slot, list[_Edge]] = {}
        for e in (e for gap in self.edges for e in gap if e.weight >= 0.5):
            coming.setdefault(e.target, []).append(e)
        for row in self.rows:
            for slot in row:
                if len(edges := coming.get(slot, [])) == 1 and (slot.width or slot.row == len(self.rows) - 1):
                    x = edges[0].source.x + edges[0].leaves_at - edges[0].enters_at
                    low, high = self._room(slot)
                    if abs(x - slot.x) < NEAR and low <= x <= high:
                        slot.x = x
        for row in self.rows:
            for slot in row:
                slot.x = round(slot.x)

    def _balance(self, above: _Joins, below: _Joins) -> None:
        """Move each slot to the mean of its neighbors in other rows, sweeping down and up."""
        rows = [(row, _shifts(row)) for row in self.rows if row]
        for row, shifts in rows:
            for slot, mean, shift in zip(row, _isotonic([-shift for shift in shifts], [1.0] * len(row)), shifts):
                slot.x = mean + shift
        first = self._pulls(rows, above, below, is_first=True)
        _sweep(first)
        _sweep(self._pulls(rows[::-1], below, above, is_first=True))
        down, up = self._pulls(rows, above, below), self._pulls(rows[::-1], below, above)
        for _ in range(SWEEPS - 1):
            _sweep(down)
            _sweep(up)
        if self.aims.are_fixed:
            _sweep(first, {slot: x for passing in self.passing for slot, x in self._straight(passing)})

    def _room(self, slot: _Slot) -> Point:
        """How far a slot may move."""
        row = self.rows[slot.row]
        low = row[slot.order - 1].x + _between(row[slot.order - 1], slot) if slot.order else -1e9
        high = row[slot.order + 1].x - _between(slot, row[slot.order + 1]) if slot.order + 1 < len(row) else 1e9
        return low, high

    def _straight(self, passing: list[_Slot]) -> list[tuple[_Slot, float]]:
        """Straighten a line that passes several rows, if its neighbors leave room."""
        rooms = [self._room(slot) for slot in passing]
        low, high = max(a for a, _ in rooms), min(b for _, b in rooms)
        mean = sum(slot.x for slot in passing) / len(passing)
        x = min(max(mean, low), high) if low <= high else mean
        return [(slot, x) for slot in passing]

    def _pulls(
        self, rows: list[tuple[list[_Slot], list[float]]], nearer: _Joins, farther: _Joins, is_first: bool = False
    ) -> list[list[_Pull]]:
        """The pull on each slot, from its neighbors on one side or on both; a wide box is pulled to the middle to keep
        the whole drawing narrow."""
        pulls: list[list[_Pull]] = []
        for row, shifts in rows:
            pulls.append([])
            for slot, shift in zip(row, shifts):
                joins = nearer[slot] if is_first and nearer[slot] else nearer[slot] + farther[slot]
                weight = 0.0
                for w, _ in joins:
                    weight += w
                pulls[-1].append((slot, shift, weight + self.aims.pull * slot.width / WIDE + 0.01, joins))
        return pulls

    # the lines

    def _gap(self, edges: list[_Edge]) -> tuple[list[_Run], int]:
        """The nets between two rows: where each leaves the row above, where it enters the row below, and the height at
        which it turns."""
        of_net: dict[int, list[_Edge]] = {}
        into: dict[_Slot, list[_Edge]] = {}
        for e in edges:
            of_net.setdefault(e.net, []).append(e)
            into.setdefault(e.target, []).append(e)
        starts: dict[int, float] = {}
        for net, (e, *others) in of_net.items():
            starts[net] = e.source.x + e.leaves_at
            if not others and self._is_box(e.source):  # straight into the side of a box
                x = e.target.x + e.enters_at
                if not self._is_box(e.target) and abs(x - starts[net]) <= e.source.width / 2 - APART:
                    starts[net] = x
        entries: dict[int, dict[_Slot, _Entry]] = {net: {} for net in starts}
        for slot, edges_in in into.items():
            child = None if slot.child is None else self.children[slot.child]
            if isinstance(child, Leaf):
                enter = self._into_circle if child.is_round else self._into_box
                for net, entry in enter(slot, {e.net: starts[e.net] for e in edges_in}).items():
                    entries[net][slot] = entry
            else:
                for e in edges_in:
                    entries[e.net][slot] = _Entry(slot.x + e.enters_at, 0, False)
        tracks = _tracks(
            {net: (x, [entry.x for entry in entries[net].values() if not entry.side]) for net, x in starts.items()}
        )
        runs = [
            _Run(
                of_net[net][0].source.child,
                x,
                tracks.get(net, 0),
                [(slot.child, entry, self._has_label(net, x, slot, entry)) for slot, entry in entries[net].items()],
            )
            for net, x in starts.items()
        ]
        return runs, max(tracks.values(), default=-1) + 1

    def _has_label(self, net: int, x: float, target: _Slot, entry: _Entry) -> bool:
        """Whether a line is a residual connection that enters from far enough aside for its label."""
        return (
            entry.side != 0
            and abs(entry.x - x) >= LABEL
            and (target.child, True) in [(child, is_around) for child, _, is_around in self.nets[net].targets]
        )

    def _is_box(self, slot: _Slot) -> bool:
        child = None if slot.child is None else self.children[slot.child]
        return isinstance(child, Leaf) and not child.is_round

    def _into_box(self, slot: _Slot, starts: dict[int, float]) -> dict[int, _Entry]:
        """Straight down if the line comes from above the box, otherwise near the middle."""
        half = slot.width / 2 - APART
        nets = sorted(starts, key=lambda net: starts[net])
        near = APART if len(nets) > 1 else 0
        apart = min(APART, 2 * half / max(len(nets) - 1, 1))  # closer if the box is too narrow
        shifts = [apart * n for n in range(len(nets))]
        wanted: list[float] = []
        for net, shift in zip(nets, shifts):
            x = starts[net]
            wanted.append((x if abs(x - slot.x) <= half else slot.x + (near if x > slot.x else -near)) - shift)
        low, high = slot.x - half, slot.x + half - shifts[-1]
        places = zip(nets, _isotonic(wanted, [1.0] * len(nets)), shifts)
        return {net: _Entry(round(shift + min(max(x, low), high)), 0, True) for net, x, shift in places}

    def _into_circle(self, slot: _Slot, starts: dict[int, float]) -> dict[int, _Entry]:
        """From the side with a free path, otherwise from above."""
        radius = slot.width / 2
        entries: dict[int, _Entry] = {}
        sides = set()
        for net in sorted(starts, key=lambda net: -abs(starts[net] - slot.x)):
            x = starts[net]
            side = 1 if x > slot.x else -1
            if abs(x - slot.x) > radius + APART and side not in sides and self._is_free(slot, x):
                sides.add(side)
                entries[net] = _Entry(slot.x + side * radius, radius, True, side)
        above = sorted((net for net in starts if net not in entries), key=lambda net: starts[net])
        for i, net in enumerate(above):
            off = (i - (len(above) - 1) / 2) * min(TRACK, 1.5 * radius / len(above))
            entries[net] = _Entry(slot.x + off, radius - sqrt(radius**2 - off**2), True)
        return entries

    def _is_free(self, slot: _Slot, x: float) -> bool:
        """Whether nothing else in its row is between a slot and a line at x."""
        low, high = min(x, slot.x) - BESIDE / 2, max(x, slot.x) + BESIDE / 2
        return not any(
            other is not slot and other.x + other.width / 2 > low and other.x - other.width / 2 < high
            for other in self.rows[slot.row]
        )


@lru_cache(maxsize=512)
def _ordered(n_slots: tuple[int, ...], ends: tuple[tuple[_End, ...], ...]) -> list[list[int]]:
    """The slots of each row, by their numbers, in an order with fewer crossings: each slot at the mean of its neighbors
    above, then below; the best order wins."""
    first = list(accumulate(n_slots, initial=0))
    rows = [list(range(start, end)) for start, end in zip(first, first[1:])]
    order = [n - start for start, row in zip(first, rows) for n in row]
    best, kept = _crossings(ends, order), [list(row) for row in rows]
    above: _Ends = [[] for _ in order]
    below: _Ends = [[] for _ in order]
    for source, leaves, target, enters in chain(*ends):
        above[target].append((source, leaves))
        below[source].append((target, enters))
    for sweep in range(SWEEPS):
        if not best:
            break
        if sweep % 2:
            _to_neighbors(rows[-2::-1], below, order)
        else:
            _to_neighbors(rows[1:], above, order)
        _exchange(rows, above, below, order)
        if (crossings := _crossings(ends, order)) < best:
            best, kept = crossings, [list(row) for row in rows]
    return kept


def _to_neighbors(rows: list[list[int]], ends: _Ends, order: list[int]) -> None:
    """Place each slot at the mean of the ends of its edges."""
    for row in rows:
        if len(row) > 1:
            mean: dict[int, float] = {}
            for slot in row:
                wanted = [order[other] + aside for other, aside in ends[slot]]
                mean[slot] = sum(wanted) / len(wanted) if wanted else order[slot]
            row.sort(key=mean.__getitem__)
            for i, slot in enumerate(row):
                order[slot] = i


def _exchange(rows: list[list[int]], above: _Ends, below: _Ends, order: list[int]) -> None:
    """Swap neighbors if that saves crossings, counting only those of their own edges."""
    for row in rows:
        if len(row) < 2:
            continue
        places = [
            [[order[other] + aside for other, aside in ends] for ends in (above[slot], below[slot])] for slot in row
        ]
        for i in range(len(places) - 1):
            saved = 0
            for left, right in zip(places[i], places[i + 1]):
                for x in left:
                    for y in right:
                        saved += (x > y) - (x < y)
            if saved > 0:
                row[i : i + 2] = row[i + 1], row[i]
                places[i : i + 2] = places[i + 1], places[i]
                order[row[i]], order[row[i + 1]] = i, i + 1


def _crossings(ends: tuple[tuple[_End, ...], ...], order: list[int]) -> int:
    """The crossings of all edges: for those between two rows, sorted by their upper ends, each crosses the earlier ones
    whose lower ends are farther to the right."""
    crossings = 0
    for edges in ends:
        if len(edges) > 1:
            passed: list[float] = []
            for _, x in sorted([(order[a] + leaves, order[b] + enters) for a, leaves, b, enters in edges]):
                place = bisect_right(passed, x)
                crossings += len(passed) - place
                passed.insert(place, x)
    return crossings


def _aside(slot: _Slot, offset: float) -> float:
    """The offset in its slot at which a line leaves or enters, in units of the distance between slots."""
    return offset / (slot.width + 1) if offset else 0.0


def _between(left: _Slot, right: _Slot) -> float:
    """The minimum distance between the middles of two neighbors."""
    return (left.width + right.width) / 2 + (BETWEEN if left.width and right.width else BESIDE)


def _shifts(row: list[_Slot]) -> list[float]:
    """The minimum distance of each slot from the first."""
    return list(accumulate((_between(a, b) for a, b in zip(row, row[1:])), initial=0.0))


def _sweep(pulls: list[list[_Pull]], fixed: Mapping[_Slot, float] = {}) -> None:
    """Move each slot to the mean of its pulls; neighbors give way to a fixed one."""
    for row in pulls:
        means: list[float] = []
        for slot, shift, weight, joins in row:
            drawn = 0.0
            for w, other in joins:
                drawn += w * other.x
            means.append((drawn + 0.01 * slot.x) / weight - shift)
        if fixed:
            means = [fixed[slot] - shift if slot in fixed else mean for (slot, shift, _, _), mean in zip(row, means)]
        if means != sorted(means):
            means = _isotonic(means, [1000.0 if slot in fixed else weight for slot, _, weight, _ in row])
        for (slot, shift, _, _), mean in zip(row, means):
            slot.x = mean + shift


def _isotonic(wanted: list[float], weights: list[float]) -> list[float]:
    """The ascending positions nearest to the desired ones, by weighted least squares."""
    pools: list[tuple[float, float, int]] = []  # mean, weight, count
    for mean, weight in zip(wanted, weights):
        n = 1
        while pools and pools[-1][0] > mean:
            before, other, m = pools.pop()
            mean, weight, n = (before * other + mean * weight) / (other + weight), other + weight, m + n
        pools.append((mean, weight, n))
    return [mean for mean, _, n in pools for _ in range(n)]


def _tracks(nets: dict[int, tuple[float, list[float]]]) -> dict[int, int]:
    """For each net that turns in a gap, the height of its horizontal part, so that few cross and none overlap."""
    turns = {
        net: _Turn(x, to, min(x, *to), max(x, *to))
        for net, (x, to) in nets.items()
        if max([abs(end - x) for end in to], default=0) >= 0.5
    }
    order: list[int] = []
    for net in sorted(turns, key=lambda net: turns[net].x):
        beneath = [_cost(turns[other], turns[net]) for other in order]  # cost of running below each other one
        above = [_cost(turns[net], turns[other]) for other in order]
        costs = [sum(beneath[:i]) + sum(above[i:]) for i in range(len(order) + 1)]
        order.insert(costs.index(min(costs)), net)
    tracks: dict[int, int] = {}
    reaches: list[tuple[float, float, int]] = []  # the nets so far, and their tracks
    for net in order:
        _, _, low, high = turns[net]
        over = [track for start, end, track in reaches if start <= high + TRACK and low <= end + TRACK]
        tracks[net] = max(over, default=-1) + 1
        reaches.append((low, high, tracks[net]))
    return tracks


class _Turn(NamedTuple):
    """A net that runs sideways: its start, its end, and the positions of both."""

    x: float
    to: list[float]
    low: float
    high: float


def _cost(upper: _Turn, lower: _Turn) -> int:
    """Crossings of two nets if one runs sideways above the other; a hundred if they would overlap."""
    _, to, low, high = upper
    start, _, below, above = lower
    crossings = int(low < start < high)
    for x in to:
        crossings += (below < x < above) + 100 * (abs(x - start) < TRACK / 2)
    return crossings
