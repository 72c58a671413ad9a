"""The geometry of every drawing: boxes apart, labels inside, and every line from box to box, through none."""

import re
from functools import cache, partial
from itertools import combinations

import pytest
from sampling import CI, fewer

from macros.catalogue import presets
from macros.views.charts.device_chart import device_chart
from macros.views.diagrams import drawing, layout, model_diagrams

KNOWN = [slug for slug in presets.paths() if presets.preset(slug).config is not None]


@cache
def distinct():
    """(model and layer, the drawing laid out) for each drawing that differs from the others in more than its words."""
    laid = {}
    for slug in fewer(KNOWN, 5):
        model = presets.model(slug)
        drawings = {"whole": model_diagrams.whole(model, None)}
        drawings |= {kind: model_diagrams.layer(model, kind, None) for kind in model_diagrams.layer_kinds(model)}
        for kind, drawn in drawings.items():
            one = drawing.laid_out(drawn, partial(model_diagrams.shapes, sizes=drawn.values))
            laid.setdefault(id(one.layout), (f"{slug}, {kind}", one))
    return list(laid.values())


def overlaps(a, b):
    return a.left < b.right and b.left < a.right and a.top < b.bottom and b.top < a.bottom


def holds(outer, inner):
    return (
        outer.left <= inner.left
        and outer.top <= inner.top
        and inner.right <= outer.right
        and inner.bottom <= outer.bottom
    )


def segments(line):
    """Each straight part of a line as a rectangle without width."""
    for (x, y), (to_x, to_y) in zip(line.points, line.points[1:]):
        assert x == to_x or y == to_y, "lines run down or sideways"
        yield layout.Rect(min(x, to_x), min(y, to_y), abs(to_x - x), abs(to_y - y))


def crosses(segment, rect):
    """Whether a part of a line is in a box, more than at its outline."""
    return (
        segment.left < rect.right - 0.5
        and rect.left + 0.5 < segment.right
        and segment.top < rect.bottom - 0.5
        and rect.top + 0.5 < segment.bottom
    )


def inner(at):
    """What a circle covers at any rate: a line from above may end beside its middle, below its top."""
    down = at.height / 5
    return layout.Rect(at.left + 3, at.top + down, at.width - 6, at.height - down - 3)


def sources(laid):
    """For each part of a line: the number of the leaf that it comes from, and of that where it ends, if it does.

    A part begins below a leaf, or where another ends.
    """
    places = laid.layout
    ends = {}
    for line in places.lines:
        ends.setdefault(line.points[-1], []).append(line)
    found = []
    for line in places.lines:
        first = line
        while True:
            x, y = first.points[0]
            leaf = [i for i, r in enumerate(places.leaves) if r.bottom == y and r.left <= x <= r.right]
            if leaf:
                break
            [first] = [before for before in ends[x, y] if not before.has_tip]
        end = None
        if line.has_tip:
            [end] = [i for i, r in enumerate(places.leaves) if touches(line.points[-1], r)]
        found.append((leaf[0], end, line))
    return found


def touches(point, rect):
    x, y = point
    return rect.left - 0.1 <= x <= rect.right + 0.1 and rect.top - 0.1 <= y <= rect.top + rect.height / 2


@pytest.mark.exhaustive
def test_there_are_drawings_of_many_shapes():
    assert len(distinct()) > (100 if CI else 20)


def test_no_two_boxes_overlap_and_every_group_holds_its_own():
    for name, laid in distinct():
        places = laid.layout
        for a, b in combinations(places.leaves, 2):
            assert not overlaps(a, b), name
        place = dict(zip(laid.items, places.leaves))
        for box, at in zip(laid.boxes, places.groups):
            inside = set(box.items())
            for item, leaf in place.items():
                assert holds(at, leaf) if item in inside else not overlaps(at, leaf), (name, box.title, item.title)
        everything = layout.Rect(0, 0, places.width, places.height)
        for rect in (*places.leaves, *places.groups, *(part for line in places.lines for part in segments(line))):
            assert holds(everything, rect), name


def test_no_line_goes_through_a_box_or_a_title():
    for name, laid in distinct():
        boxes = [at if not item.sign else inner(at) for item, at in zip(laid.items, laid.layout.leaves)]
        for (left, top), lines in zip(laid.layout.titles, laid.titles):
            height = len(lines) * drawing.LINE_HEIGHT[drawing.TITLE]
            boxes.append(layout.Rect(left, top + drawing.PADDING / 2, max(line.width for line in lines), height))
        parts = [part for line in laid.layout.lines for part in segments(line)]
        for rect in boxes:
            assert not [part for part in parts if crosses(part, rect)], (name, rect)


def test_every_flow_is_a_line_and_every_line_a_flow():
    for name, laid in distinct():
        number = {item: i for i, item in enumerate(laid.items)}
        flows = sorted((number[source], i) for i, item in enumerate(laid.items) for source in item.inputs)
        assert sorted((a, b) for a, b, _ in sources(laid) if b is not None) == flows, name


# Lines of a layer with an indexer, tables and caches of others, which change places in one row: how far they may.
CLOSE = {"deepseek-v4.1-flash": 18}


def test_no_two_lines_from_different_boxes_lie_on_each_other():
    for name, laid in distinct():
        parts = [(source, part) for source, _, line in sources(laid) for part in segments(line)]
        for axis in ("left", "top"):
            along = [(s, p) for s, p in parts if (p.width if axis == "left" else p.height) == 0]
            for (a, p), (b, q) in combinations(sorted(along, key=lambda one: getattr(one[1], axis)), 2):
                if a == b or abs(getattr(p, axis) - getattr(q, axis)) > 2:
                    continue
                if axis == "left":
                    common = min(p.bottom, q.bottom) - max(p.top, q.top)
                else:
                    common = min(p.right, q.right) - max(p.left, q.left)
                assert common <= CLOSE.get(name.partition(",")[0], 2), (
                    name,
                    laid.items[a].title,
                    laid.items[b].title,
                    p,
                    q,
                )


def test_every_label_is_inside_its_box():
    for name, laid in distinct():
        for item, at, lines in zip(laid.items, laid.layout.leaves, laid.texts):
            if item.sign:
                continue
            assert max(line.width for line in lines) <= at.width - 2 * drawing.PADDING, (name, item.title)
            assert sum(drawing.LINE_HEIGHT[line.size] for line in lines) <= at.height - drawing.PADDING, name


def test_a_label_says_the_title_and_the_shapes():
    for _, laid in distinct():
        for item, lines in zip(laid.items, laid.texts):
            said = " ".join(line.content for line in lines)
            assert said.startswith(item.sign or item.title)


def test_the_same_graph_is_laid_out_the_same_way_and_once():
    model = presets.model("jamba-v0.1")
    graph = model_diagrams.whole(model, None)
    shapes = partial(model_diagrams.shapes, sizes=graph.values)
    first = drawing.laid_out(graph, shapes).layout
    assert drawing.laid_out(graph, shapes).layout is first
    for cached in (layout.lay_out, layout._level, layout._across, layout._ordered):
        cached.cache_clear()
    assert vars(drawing.laid_out(graph, shapes).layout) == vars(first)


@pytest.mark.parametrize("text", ["", "one", "a word_that_is_far_too_long_for_any_box b", "[a, b + c·d, e]"])
def test_a_broken_text_is_the_same_text(text):
    lines = drawing.wrapped_lines(text, 60, drawing.TITLE, drawing.BOLD)
    assert " ".join(lines) == text


@pytest.mark.parametrize(
    ("slug", "engine", "options"),
    [
        ("qwen3-14b", "vllm", "--max-model-len 32768"),
        ("qwen3.6-27b", "vllm", "--max-model-len 8192"),
        ("gpt-oss-20b", "sglang", "--mem-fraction-static 0.85"),
        ("gemma3-27b", "llama.cpp", "-c 8192"),
        ("qwen3.6-27b", "llama.cpp", "--spec-type mtp"),
        ("qwen3.6-27b", "sglang", "--speculative-algorithm EAGLE"),
    ],
)
def test_each_term_of_a_device_has_a_pattern_of_its_own(slug, engine, options):
    """In each of its two sizes; a pattern's name is used once, so a second term would take the color of the first."""
    for one in str(device_chart(slug, engine, "rtx-5090+rtx-5090", options)).split("<svg")[1:]:
        names = re.findall(r'<pattern id="(\w+)"', one)
        assert len(set(names)) == len(names) >= 2
