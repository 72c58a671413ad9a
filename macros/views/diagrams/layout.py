"""Layered graph layout, one algorithm in one module: places for boxes inside boxes and for the lines between them.

Each group is laid out separately, as one box of its surrounding group. Its content is in rows, each box below all boxes
that flow into it. A line runs straight down and turns only between two rows; in a row that it passes, it has its own
place, like a box. So no line goes through a box, whatever the graph. The output of a box is one line, which branches.

Equal groups recur in most models of an architecture, and are laid out once.
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
BESIDE = 12  # between a line and what stands beside it
WIDE = 660  # what a row should not be wider than
TOO_WIDE = 740  # what a group should not be wider than, its lines included
MARGIN = 12  # inside a group's outline
TRACK = 9  # between two lines that run sideways
FALL, TURN = 24, 13  # how far a line falls at least, without a turn; before and behind one
APART = 14  # between two lines that enter the same box
NEAR = 40  # a box is moved so far, to make the line into it straight
LABEL = 52  # the room for a word above a line
SWEEPS = 6  # down and up again
TRIES = 4  # to move a box to a lower row, for each box
LOOSE = 0.1  # how much a line around others counts for where its ends are, beside 1 for any other


class Aims(NamedTuple):
    """The criteria for the choice of the places in rows."""

    pull: float  # how much a row's widest boxes are drawn to the middle
    straight: float  # how much a line that passes several rows is held straight
    are_fixed: bool  # whether it is straight at last, and boxes give way


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
    """From one leaf to another, by their index in the order of all; `is_around` for one that bypasses others."""

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
    labels: list[Point] = field(default_factory=list)  # where a line around others can be named: the text's middle


@lru_cache(maxsize=128)
def lay_out(content: tuple[Leaf | Group, ...], flows: tuple[Flow, ...]) -> Layout:
    """The layout of a drawing. Flows lead forward in the order of the leaves."""
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
    """The output of one leaf, as far as it runs inside of a group.

    From an opening of a child, or from outside; to openings of children, and on to the outside.
    """

    source: tuple[int, int] | None
    targets: tuple[tuple[int, int, bool], ...]
    is_out: bool


def _placed(group: Group, first: int, flows: Sequence[Flow]) -> tuple[_Level, list[int], list[int]]:
    """A group after layout, whose leaves begin with index `first`; the leaves whose outputs enter, and those that
    leave."""
    child_of: dict[int, int] = {}
    n = first
    for i, child in enumerate(group.content):
        size = _size(child)
        child_of.update(dict.fromkeys(range(n, n + size), i))
        n += size
    of_child: list[list[Flow]] = [[] for _ in group.content]  # a group looks only through what reaches into it
    taken: dict[int, dict[int, bool]] = {}  # by source: the children that take it, and whether as what goes around
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
    n = first
    for child, own in zip(group.content, of_child):
        if isinstance(child, Leaf):
            children.append(child)
            openings.append(([], []))
        else:
            level, ins, outs = _placed(child, n, own)
            children.append(level)
            openings.append((ins, outs))
        n += _size(child)
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
    return 1 if isinstance(child, Leaf) else sum(map(_size, child.content))


# One group


@dataclass(eq=False)
class _Level:
    """A group after layout: its own size, the places where lines enter above and leave below, and its content."""

    children: tuple[Leaf | _Level, ...]
    width: float = 0
    height: float = 0
    title_left: float = 0
    ins: list[float] = field(default_factory=list)
    outs: list[float] = field(default_factory=list)
    places: list[Point] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    labels: list[Point] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class _Slot:
    """A place in a row: a child, or a line that passes; the lines that enter above and leave below are rows too."""

    row: int
    child: int | None = None
    width: float = 0
    height: float = 0
    x: float = 0  # its middle
    top: float = 0
    order: int = 0


class _Edge(NamedTuple):
    """A net's path from one row to the next: between two slots, with the offsets from their middles."""

    net: int
    source: _Slot
    leaves_at: float
    target: _Slot
    enters_at: float
    weight: float


_Ends = dict[_Slot, list[tuple[_Slot, float]]]  # by slot: where its edges end, and how far aside
_Joins = dict[_Slot, list[tuple[float, _Slot, float]]]  # by slot: how strongly it is joined to which, and how far aside
_Pull = tuple[
    list[_Slot], list[float], list[float], list[list[tuple[float, _Slot, float]]]
]  # by row: shifts, weights, joins


class _Entry(NamedTuple):
    """The end of a net, in the row below a gap; `side` if it enters sideways, from the left (-1) or right (1)."""

    x: float
    y: float
    has_tip: bool
    side: int = 0


@lru_cache(maxsize=512)
def _level(children: tuple[Leaf | _Level, ...], nets: tuple[_Net, ...], title_width: int, title_height: int) -> _Level:
    level = _Placing(children, nets, LINES_STRAIGHT).level(title_width, title_height)
    if level.width > TOO_WIDE:
        level = min(level, _Placing(children, nets, NARROW).level(title_width, title_height), key=lambda one: one.width)
    return level


class _Placing:
    """The computation of the places of a group's children and nets."""

    def __init__(self, children: tuple[Leaf | _Level, ...], nets: tuple[_Net, ...], aims: Aims):
        self.children, self.nets, self.aims = children, nets, aims
        rank = self._ranks()
        self.rows: list[list[_Slot]] = [[] for _ in range(max(rank, default=0) + 2)]
        self.slots = [_Slot(r, i, c.width, c.height) for i, (r, c) in enumerate(zip(rank, children))]
        for slot in self.slots:
            self.rows[slot.row].append(slot)
        self.edges: list[list[_Edge]] = [[] for _ in self.rows]  # by the row above
        self.passing: list[list[_Slot]] = []  # of each net: its slots that are no child's
        self.coming: list[_Slot] = []  # where lines come in above
        self.leaving: list[_Slot] = []  # and go out below
        for n, net in enumerate(nets):
            self._thread(n, net)
        for row in self.rows:
            row.sort(key=lambda slot: slot.child is None)
        self._order()
        self._place()

    def level(self, title_width: int, title_height: int) -> _Level:
        level = _Level(self.children)
        self._route(level, title_height)
        slots = [slot for row in self.rows for slot in row]
        left = min(s.x - s.width / 2 for s in slots)
        right = max(s.x + s.width / 2 for s in slots)
        right = max([right, *(x + LABEL / 2 for x, _ in level.labels)])
        margin = MARGIN if title_height else 0
        left, right = left - margin, right + margin
        right = max(right, left + title_width + 2 * margin)
        title_left = left + margin
        if level.ins and title_width:  # beside the lines that come in
            before = title_width + margin + BESIDE - (min(level.ins) - left)
            behind = title_width + margin + BESIDE - (right - max(level.ins))
            if before > 0 and behind < before:
                title_left = max(level.ins) + BESIDE
                right += max(behind, 0)
            elif before > 0:
                left -= before
                title_left = left + margin
        left, right = 2 * floor(left / 2), 2 * ceil(right / 2)
        level.width, level.title_left = right - left, title_left - left
        level.ins = [x - left for x in level.ins]
        level.outs = [x - left for x in level.outs]
        level.places = [(s.x - s.width / 2 - left, s.top) for s in self.slots]
        level.lines = [Line(tuple([(x - left, y) for x, y in points]), tip) for points, tip in level.lines]
        level.labels = [(x - left, y) for x, y in level.labels]
        return level

    # rows

    def _ranks(self) -> list[int]:
        """Each child's row, such that rows are narrow: children that can wait go below a row that would be too wide,
        and nothing is next to a group that fills a row."""
        before: list[set[int]] = [set() for _ in self.children]
        behind: list[set[int]] = [set() for _ in self.children]
        from_outside: set[int] = set()
        for net in self.nets:
            for target, _, _ in net.targets:
                if net.source is None:
                    from_outside.add(target)
                else:
                    before[target].add(net.source[0])
                    behind[net.source[0]].add(target)
        follows = {i for i, sources in enumerate(before) if not sources and i not in from_outside and behind[i]}
        lowest, narrowest, least = [1] * len(self.children), [], inf
        for _ in range(TRIES * len(self.children)):
            rank = self._ranks_from(lowest, before, behind, follows)
            widths = self._widths(rank)
            if (widest := max(widths.values(), default=0)) < least:
                narrowest, least = rank, widest
            too_wide = min((row for row, width in widths.items() if width > WIDE), default=None)
            if too_wide is None or not self._lower(too_wide, rank, lowest, behind, follows):
                break
        return narrowest

    def _widths(self, rank: list[int]) -> dict[int, float]:
        """The total width of the boxes of each row."""
        widths: dict[int, float] = {}
        for row, child in zip(rank, self.children):
            widths[row] = widths.get(row, -BETWEEN) + BETWEEN + child.width
        return widths

    def _lower(self, row: int, rank: list[int], lowest: list[int], behind: list[set[int]], follows: set[int]) -> bool:
        """Whether part of a row can go below it: the child that can wait longest, or everything next to a group."""
        here = [i for i, r in enumerate(rank) if r == row and i not in follows]
        latest = [max(rank)] * len(rank)
        for i in reversed(range(len(rank))):
            latest[i] = min((latest[b] - 1 for b in behind[i]), default=latest[i])
        waits = max(here, key=lambda i: latest[i], default=None)
        if waits is not None and len(here) > 1 and latest[waits] > row:
            lower = [waits]
        else:
            groups = [i for i in here if isinstance(self.children[i], _Level)]
            lower = [i for i in here if groups and i != groups[0]]
        for i in lower:
            lowest[i] = row + 1
        return bool(lower)

    def _ranks_from(
        self, lowest: list[int], before: list[set[int]], behind: list[set[int]], follows: set[int]
    ) -> list[int]:
        """Each child's row, none above its `lowest`: below all its inputs; a child without inputs is directly above its
        outputs."""
        rank: list[int] = []
        for sources, row in zip(before, lowest):
            rank.append(max([row, *[rank[s] + 1 for s in sources]]))
        for i in follows:
            rank[i] = min(rank[b] for b in behind[i]) - 1

        def beside(row: int, without: int) -> list[Leaf | _Level]:
            return [c for i, c in enumerate(self.children) if rank[i] == row and i != without]

        def fits(i: int, row: int) -> bool:
            return sum(c.width + BETWEEN for c in beside(row, i)) + self.children[i].width <= WIDE

        for i, child in enumerate(self.children):  # a group stands beside the tallest of what it may stand beside
            if not isinstance(child, _Level):
                continue
            first = max(lowest[i], 1 + max((rank[s] for s in before[i]), default=0))
            last = min((rank[b] for b in behind[i]), default=rank[i] + 1) - 1
            if last > first:
                tallest = {
                    r: max((c.height for c in beside(r, i)), default=0) for r in range(first, last + 1) if fits(i, r)
                }
                rank[i] = max(tallest, key=lambda r: (min(tallest[r], child.height), -r), default=rank[i])
        for i in reversed(range(len(rank))):  # what takes nothing may wait above where a row is full
            if i in follows and rank[i] > 1 and not fits(i, rank[i]) and fits(i, rank[i] - 1):
                rank[i] -= 1
        for i in reversed(range(len(rank))):  # and what is not yet needed, below
            last = min([rank[b] for b in behind[i]], default=0) - 1
            while rank[i] < last and not fits(i, rank[i]) and fits(i, rank[i] + 1):
                rank[i] += 1
        return rank

    def _thread(self, n: int, net: _Net) -> None:
        """A slot for a net in every row that it passes, and its edges."""
        if net.source is None:
            slot, leaves_at = self._end(self.coming, 0), 0.0
        else:
            slot = self.slots[net.source[0]]
            child = self.children[net.source[0]]
            leaves_at = child.outs[net.source[1]] - child.width / 2 if isinstance(child, _Level) else 0.0
        targets: list[tuple[_Slot, float, float]] = []
        for index, opening, is_around in net.targets:
            child = self.children[index]
            enters_at = child.ins[opening] - child.width / 2 if isinstance(child, _Level) else 0.0
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
        self.passing.append(passing)

    def _end(self, ends: list[_Slot], row: int) -> _Slot:
        slot = _Slot(row)
        self.rows[row].append(slot)
        ends.append(slot)
        return slot

    # the order in each row

    def _order(self) -> None:
        """Reduce crossings: each slot at the mean of its neighbors above, then below; the best order is kept."""
        self.ends = [
            [(e.source, _aside(e.source, e.leaves_at), e.target, _aside(e.target, e.enters_at)) for e in edges]
            for edges in self.edges
        ]
        self._number()
        best, order = self._crossings(), [list(row) for row in self.rows]
        if not best:
            return
        above: _Ends = defaultdict(list)
        below: _Ends = defaultdict(list)
        for source, leaves, target, enters in chain(*self.ends):
            above[target].append((source, leaves))
            below[source].append((target, enters))
        for sweep in range(SWEEPS):
            if sweep % 2:
                self._to_neighbors(self.rows[-2::-1], below)
            else:
                self._to_neighbors(self.rows[1:], above)
            self._exchange(above, below)
            crossings = self._crossings()
            if crossings < best:
                best, order = crossings, [list(row) for row in self.rows]
                if not best:
                    break
        self.rows = order
        self._number()

    def _number(self) -> None:
        for row in self.rows:
            for i, slot in enumerate(row):
                slot.order = i

    def _to_neighbors(self, rows: list[list[_Slot]], ends: _Ends) -> None:
        """Each slot at the mean of the ends of its edges."""
        for row in rows:
            if len(row) > 1:
                mean: dict[_Slot, float] = {}
                for slot in row:
                    wanted = _places(ends[slot])
                    mean[slot] = sum(wanted) / len(wanted) if wanted else slot.order
                row.sort(key=mean.__getitem__)
                for i, slot in enumerate(row):
                    slot.order = i

    def _exchange(self, above: _Ends, below: _Ends) -> None:
        """Swap neighbors if that saves crossings, which are those of their own edges."""
        for row in self.rows:
            places = [(_places(above[slot]), _places(below[slot])) for slot in row] if len(row) > 1 else []
            for i in range(len(places) - 1):
                saved = 0
                for left, right in zip(places[i], places[i + 1]):
                    for x in left:
                        for y in right:
                            saved += (x > y) - (x < y)
                if saved > 0:
                    row[i : i + 2] = row[i + 1], row[i]
                    places[i : i + 2] = places[i + 1], places[i]
                    row[i].order, row[i + 1].order = i, i + 1

    def _crossings(self) -> int:
        """The crossings of all edges: of those between two rows, by their upper ends, each crosses the earlier ones
        whose lower ends are farther to the right."""
        crossings = 0
        for ends in self.ends:
            if len(ends) > 1:
                passed: list[float] = []
                for _, x in sorted(
                    [(source.order + leaves, target.order + enters) for source, leaves, target, enters in ends]
                ):
                    place = bisect_right(passed, x)
                    crossings += len(passed) - place
                    passed.insert(place, x)
        return crossings

    # the places in each row

    def _place(self) -> None:
        """Each slot as near as possible to its neighbors in other rows, without overlap; then lines are made
        straight."""
        above: _Joins = defaultdict(list)
        below: _Joins = defaultdict(list)
        for e in chain(*self.edges):
            shift = 0.0 if self._is_group(e.source) or self._is_group(e.target) else e.leaves_at - e.enters_at
            above[e.target].append((e.weight, e.source, shift))
            below[e.source].append((e.weight, e.target, -shift))
        rows = [(row, _shifts(row)) for row in self.rows]
        for row, shifts in rows:
            _settle(row, [0.0] * len(row), [1.0] * len(row), shifts)
        first = self._pulls(rows, above, below, is_first=True)
        _sweep(first)
        _sweep(self._pulls(rows[::-1], below, above, is_first=True))
        down, up = self._pulls(rows, above, below), self._pulls(rows[::-1], below, above)
        for _ in range(SWEEPS - 1):
            _sweep(down)
            _sweep(up)
        if self.aims.are_fixed:
            _sweep(first, {slot: x for passing in self.passing for slot, x in self._straight(passing)})
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

    def _is_group(self, slot: _Slot) -> bool:
        return slot.child is not None and isinstance(self.children[slot.child], _Level)

    def _room(self, slot: _Slot) -> Point:
        """The distance that a slot may move."""
        row = self.rows[slot.row]
        low = row[slot.order - 1].x + _between(row[slot.order - 1], slot) if slot.order else -1e9
        high = row[slot.order + 1].x - _between(slot, row[slot.order + 1]) if slot.order + 1 < len(row) else 1e9
        return low, high

    def _straight(self, passing: list[_Slot]) -> list[tuple[_Slot, float]]:
        """A line that passes several rows has one place in all of them, if its neighbors leave room there."""
        if not passing:
            return []
        rooms = [self._room(slot) for slot in passing]
        low, high = max(a for a, _ in rooms), min(b for _, b in rooms)
        mean = sum(slot.x for slot in passing) / len(passing)
        x = min(max(mean, low), high) if low <= high else mean
        return [(slot, x) for slot in passing]

    def _pulls(
        self, rows: list[tuple[list[_Slot], list[float]]], nearer: _Joins, farther: _Joins, is_first: bool = False
    ) -> list[_Pull]:
        """What draws each slot: its neighbors on one side, if only that is known yet, or on both; a wide box is drawn
        to the middle, so that the whole stays narrow."""
        pulls: list[_Pull] = []
        for row, shifts in rows:
            joins = [nearer[slot] if is_first and nearer[slot] else nearer[slot] + farther[slot] for slot in row]
            weights: list[float] = []
            for slot, joined in zip(row, joins):
                weight = 0.0
                for w, _, _ in joined:
                    weight += w
                weights.append(weight + self.aims.pull * slot.width / WIDE + 0.01)
            pulls.append((row, shifts, weights, joins))
        return pulls

    # the lines

    def _route(self, level: _Level, title_height: int) -> None:
        """Every line, and with them the distances between rows."""
        starts, entries = self._openings()
        tops = [float(title_height)]
        heights = [max((slot.height for slot in row), default=0) for row in self.rows]
        tracks = []
        for gap, height in enumerate(heights[:-1]):
            nets = {
                net: (x, [entry.x for entry in entries[gap][net].values() if not entry.side])
                for net, x in starts[gap].items()
            }
            tracks.append(_tracks(nets))
            tops.append(tops[-1] + height + self._fall(gap, tracks[-1], title_height > 0))
        level.height = tops[-1] + heights[-1]
        for row, top, tallest in zip(self.rows, tops, heights):
            for slot in row:
                slot.top = top + _above(slot, tallest)
        for gap, here in enumerate(tracks):
            sources = {e.net: e.source for e in self.edges[gap]}
            for net, x in starts[gap].items():
                slot = sources[net]
                start = slot.top + slot.height if gap else 0.0
                track = tops[gap] + heights[gap] + TURN + here.get(net, 0) * TRACK
                for target, entry in entries[gap][net].items():
                    end = target.top + entry.y
                    if entry.side:
                        points = ((x, start), (x, end), (entry.x, end))
                        if abs(entry.x - x) >= LABEL and self._is_around(net, target):
                            level.labels.append(((x + entry.x) / 2, end - 4))
                    elif abs(entry.x - x) < 0.5:
                        points = ((x, start), (x, end))
                    else:
                        points = ((x, start), (x, track), (entry.x, track), (entry.x, end))
                    level.lines.append(Line(points, entry.has_tip))
        level.ins = [slot.x for slot in self.coming]
        level.outs = [slot.x for slot in self.leaving]

    def _fall(self, gap: int, tracks: dict[int, int], has_outline: bool) -> float:
        """The distance of a row from the next: room for the lines that turn; less below the title and above the
        outline."""
        if tracks:
            return 2 * TURN + max(tracks.values()) * TRACK
        if gap == 0:
            return FALL - TURN if self.edges[0] else 0
        if self.edges[gap] or gap + 2 < len(self.rows):
            return FALL
        return MARGIN if has_outline else 0

    def _is_around(self, net: int, target: _Slot) -> bool:
        return any(child == target.child and is_around for child, _, is_around in self.nets[net].targets)

    def _openings(self) -> tuple[list[dict[int, float]], list[dict[int, dict[_Slot, _Entry]]]]:
        """By gap and net: the point where its line leaves the row above, and where it enters each slot of the row
        below."""
        starts: list[dict[int, float]] = []
        entries: list[dict[int, dict[_Slot, _Entry]]] = []
        for edges in self.edges:
            of_net: dict[int, list[_Edge]] = {}
            into: dict[_Slot, list[_Edge]] = {}
            for e in edges:
                of_net.setdefault(e.net, []).append(e)
                into.setdefault(e.target, []).append(e)
            here: dict[int, float] = {}
            for net, (e, *others) in of_net.items():
                here[net] = e.source.x + e.leaves_at
                if not others and self._is_box(e.source):  # straight on, from the side of a box's middle
                    x = e.target.x + e.enters_at
                    if not self._is_box(e.target) and abs(x - here[net]) <= e.source.width / 2 - APART:
                        here[net] = x
            ends: dict[int, dict[_Slot, _Entry]] = {net: {} for net in here}
            for slot, edges_in in into.items():
                child = None if slot.child is None else self.children[slot.child]
                if isinstance(child, Leaf):
                    enter = self._into_circle if child.is_round else self._into_box
                    for net, entry in enter(slot, {e.net: here[e.net] for e in edges_in}).items():
                        ends[net][slot] = entry
                else:
                    for e in edges_in:
                        ends[e.net][slot] = _Entry(slot.x + e.enters_at, 0, False)
            starts.append(here)
            entries.append(ends)
        return starts, entries

    def _is_box(self, slot: _Slot) -> bool:
        child = None if slot.child is None else self.children[slot.child]
        return isinstance(child, Leaf) and not child.is_round

    def _into_box(self, slot: _Slot, starts: dict[int, float]) -> dict[int, _Entry]:
        """Straight down if the line comes from above the box, otherwise near the middle."""
        half = slot.width / 2 - APART
        nets = sorted(starts, key=lambda net: starts[net])
        near = APART if len(nets) > 1 else 0
        wanted = [
            x if abs(x - slot.x) <= half else slot.x + (near if x > slot.x else -near)
            for x in (starts[net] for net in nets)
        ]
        apart = min(APART, 2 * half / max(len(nets) - 1, 1))  # closer where the box is too narrow for so many
        shifts = [float(apart * n) for n in range(len(nets))]
        places = (
            shift + min(max(x - shift, slot.x - half), slot.x + half - shifts[-1])
            for x, shift in zip(_isotonic(wanted, [1.0] * len(nets), shifts), shifts)
        )
        return {net: _Entry(round(x), 0, True) for net, x in zip(nets, places)}

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
        """Whether nothing else of its row is between a slot and a line at x."""
        low, high = min(x, slot.x) - BESIDE / 2, max(x, slot.x) + BESIDE / 2
        return not any(
            other is not slot and other.x + other.width / 2 > low and other.x - other.width / 2 < high
            for other in self.rows[slot.row]
        )


def _places(ends: list[tuple[_Slot, float]]) -> list[float]:
    """Where the edges of a slot end, in the order of the other row."""
    return [slot.order + aside for slot, aside in ends]


def _aside(slot: _Slot, offset: float) -> float:
    """How far aside in its slot a line leaves or enters, beside 1 from slot to slot."""
    return offset / (slot.width + 1) if offset else 0.0


def _above(slot: _Slot, tallest: float) -> float:
    """The room above a slot in its row: it is in the middle, unless something much taller is next to it."""
    rest = tallest - slot.height
    return 0 if slot.child is None or rest > 4 * TRACK else rest / 2


def _between(left: _Slot, right: _Slot) -> float:
    """The minimum distance between the middles of two neighbors."""
    return (left.width + right.width) / 2 + (BETWEEN if left.width and right.width else BESIDE)


def _shifts(row: list[_Slot]) -> list[float]:
    """The minimum distance of each slot from the first."""
    return list(accumulate((_between(a, b) for a, b in zip(row, row[1:])), initial=0.0))


def _sweep(pulls: list[_Pull], fixed: Mapping[_Slot, float] = {}) -> None:
    """Each slot to the mean of what draws it; neighbors give way to a fixed one."""
    for row, shifts, weights, joins in pulls:
        wanted: list[float] = []
        for slot, weight, joined in zip(row, weights, joins):
            drawn = 0.0
            for w, other, shift in joined:
                drawn += w * (other.x + shift)
            wanted.append((drawn + 0.01 * slot.x) / weight)
        if fixed and not fixed.keys().isdisjoint(row):
            wanted = [fixed.get(slot, x) for slot, x in zip(row, wanted)]
            weights = [1000.0 if slot in fixed else weight for slot, weight in zip(row, weights)]
        _settle(row, wanted, weights, shifts)


def _settle(row: list[_Slot], wanted: list[float], weights: list[float], shifts: list[float]) -> None:
    if len(row) == 1:
        row[0].x = wanted[0]
        return
    for slot, x in zip(row, _isotonic(wanted, weights, shifts)):
        slot.x = x


def _isotonic(wanted: list[float], weights: list[float], shifts: list[float]) -> list[float]:
    """The places nearest to the wanted ones, by weighted squares, that are at least as far apart as the shifts."""
    means = [place - shift for place, shift in zip(wanted, shifts)]
    if means != sorted(means):
        pools: list[tuple[float, float, int]] = []  # mean, weight, how many
        for mean, weight in zip(means, weights):
            n = 1
            while pools and pools[-1][0] > mean:
                before, other, m = pools.pop()
                mean, weight, n = (before * other + mean * weight) / (other + weight), other + weight, m + n
            pools.append((mean, weight, n))
        means = [mean for mean, _, n in pools for _ in range(n)]
    return [mean + shift for mean, shift in zip(means, shifts)]


def _tracks(nets: dict[int, tuple[float, list[float]]]) -> dict[int, int]:
    """For each net of a gap that turns, the height at which it runs sideways, so that few cross and none overlap."""
    turning = {net: ends for net, ends in nets.items() if any(abs(ends[0] - x) >= 0.5 for x in ends[1])}
    order: list[int] = []
    for net in sorted(turning, key=lambda net: turning[net][0]):
        beneath = [_cost(turning[other], turning[net]) for other in order]  # costs of running beneath each other one
        above = [_cost(turning[net], turning[other]) for other in order]
        costs = [sum(beneath[:i]) + sum(above[i:]) for i in range(len(order) + 1)]
        order.insert(costs.index(min(costs)), net)
    tracks: dict[int, int] = {}
    reaches: list[tuple[float, float, int]] = []  # of the nets so far, and their tracks
    for net in order:
        low, high = _reach(turning[net])
        over = [track for start, end, track in reaches if start <= high + TRACK and low <= end + TRACK]
        tracks[net] = max(over, default=-1) + 1
        reaches.append((low, high, tracks[net]))
    return tracks


def _reach(net: tuple[float, list[float]]) -> Point:
    x, to = net
    return min(x, *to), max(x, *to)


def _cost(upper: tuple[float, list[float]], lower: tuple[float, list[float]]) -> int:
    """Crossings of two nets if one runs sideways above the other; a hundred if they would overlap."""
    (low, high), (start, (below, above)) = _reach(upper), (lower[0], _reach(lower))
    crossings = int(low < start < high) + sum(below < x < above for x in upper[1])
    return crossings + 100 * sum(abs(x - start) < TRACK / 2 for x in upper[1])
