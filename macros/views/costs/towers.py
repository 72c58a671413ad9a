"""The towers of multimodal models: their share of the file, and what an image or a sound costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.components import IMAGE, RESIDUES, SECONDS, Component, Seen
from ...catalogue.models import Model
from ...engine.errors import Problem, shorten
from ...engine.towers import modules, of_module, without_table
from ..kit import disclosure, rounding
from ..kit.html import Html, Row, block, code, conventions, html, joined, number, small, tag, text
from ..kit.shapes import in_numbers, tensor_name
from .cells import cost_table, model_name

Numbers = Sequence[int | float]

IMAGES = ((448, 448), IMAGE, (1920, 1080))

ONE_IMAGE = html(
    "The tower runs once per image or sound; a multiply-add is 2 FLOPs. The limits of some image processors on the "
    "number of pixels are not part of a config.json and are not applied."
)
NOT_THERE = "It reads text, without a tower."


@disclosure.view("its towers")
def tower_table(
    model: Model,
    images: Iterable[Numbers] = IMAGES,
    seconds: Numbers = (SECONDS,),
    tensors: bool = False,
) -> Html:
    """The towers next to a model’s text part: their share of the parameters, and the tokens and FLOPs of images and
    sounds; with `tensors`, each tensor."""
    if not model.components:
        return tag("p", NOT_THERE)
    return block(
        _shares(model),
        _inputs(model, images, seconds),
        *(_tensors(component) for component in model.components if tensors),
        conventions(ONE_IMAGE),
    )


def _shares(model: Model) -> Html:
    total = model.with_components
    rows: list[Row | list] = [["The text part", _n(model.counts.total), rounding.percent(model.counts.total, total)]]
    for component in model.components:
        said = html("{} tower and projector<br>{}", component.name.title(), small(code(component.part)))
        rows.append([said, _n(component.total), rounding.percent(component.total, total)])
    rows.append(Row(["Together", _n(total), ""], "total"))
    columns = "Part", number("Parameters"), number("Share")
    return cost_table("Text part and towers", columns, rows, "Text part and towers")


def _inputs(model: Model, images: Iterable[Numbers], seconds: Numbers) -> Html:
    rows = [
        [said, _n(seen.patches) + _parts(seen), _n(seen.tokens), rounding.flops(seen.flops)]
        for component in model.components
        for said, seen in _asked(component, images, seconds)
    ]
    columns = "Input", number("Patches or moments"), number("Tokens in the text"), number("FLOPs of the tower")
    return cost_table("What the towers read", columns, rows, "What the towers read")


def _asked(component: Component, images: Iterable[Numbers], seconds: Numbers) -> Iterator[tuple[str, Seen]]:
    """Each input in words, with the tower's output for it."""
    if component.reads == "sound":
        yield from ((f"{n:g} seconds of sound", component.sound(n)) for n in seconds)
        return
    if component.reads == "protein":
        yield f"{RESIDUES} amino acids of a protein", component.protein(RESIDUES)
        return
    for image in images:
        sides = [side for side in image if isinstance(side, int)]
        if len(sides) != len(image) or len(sides) != 2:
            raise Problem(f"images has {shorten(image)}", "give width and height in pixels, such as (1024, 768)")
        width, height = sides
        yield f"{width:,} × {height:,} pixels", component.image(width, height)


def _parts(seen: Seen) -> Html | str:
    return html("<br>{}", small(f"in {seen.pieces} tiles")) if seen.pieces > 1 else ""


def _tensors(component: Component) -> Html:
    sizes = component.counts.values()
    rows = [
        [
            tensor_name(w.name),
            in_numbers(w.shape, sizes),
            f"× {int(w.copies):,}" if int(w.copies) > 1 else "",
            _n(w.count),
        ]
        for w in component.counts.weights
    ]
    title = html("Tensors of {}", code(component.part))
    columns = "Tensor", "Shape", number("Copies"), number("Parameters")
    return cost_table(title, columns, rows, f"Tensors of {component.part}")


@memoized
def tower_list() -> Html:
    """The towers in the catalog: parameters, their share of the model, and the cost of one image or sound."""
    rows = []
    for slug, preset in ((slug, presets.preset(slug)) for slug in presets.readable()):
        if preset.components is None:
            continue
        model = presets.model(slug)
        for component in model.components:
            [(said, seen)] = _asked(component, [IMAGE], [SECONDS])
            rows.append(
                [
                    html("{}<br>{}", model_name(slug), small(f"{component.name}, {said}")),
                    _n(component.total),
                    rounding.percent(component.total, model.with_components),
                    _n(seen.tokens),
                    rounding.flops(seen.flops),
                    rounding.flops(Fraction(seen.flops, seen.tokens)),
                ]
            )
    columns = (
        number("Parameters of the tower"),
        number("Share of the model"),
        number("Tokens in the text"),
        number("FLOPs of the tower"),
        number("FLOPs per token"),
    )
    return block(
        cost_table("The towers of the catalog", ["Model and input", *columns], rows, "The towers of the catalog"),
        conventions(ONE_IMAGE),
    )


@memoized
def tower_types() -> Html:
    """The covered towers: the model types with each, and the key of its table in config.json."""
    rows = []
    for name, places in modules().items():
        types = joined((code(whole) for whole in dict.fromkeys(whole for whole, _ in places)), ", ")
        rows.append(
            [
                text(of_module(name).doc.replace("'", "’")),
                types,
                joined(dict.fromkeys(_key(*place) for place in places), ", "),
            ]
        )
    columns = "Tower", "model_type", "Key"
    return block(
        cost_table("Towers", columns, rows, "Towers"),
        conventions(
            "For a small random tower of each, tensor names, shapes and the vectors for the text equal those of "
            "transformers, and the FLOPs those of PyTorch’s counter."
        ),
    )


def tower_result(model: Model) -> Html:
    """The towers' parameters, and the tokens of one input each."""
    said = [html("{:,} parameters", model.with_components - model.counts.total)]
    for component in model.components:
        [(given, seen)] = _asked(component, [IMAGE], [SECONDS])
        said.append(html("{:,} tokens for {}", seen.tokens, given))
    return joined(said, "; ")


def _n(n: int) -> Html:
    return html("{:,}", int(n))


def _key(whole: str, part: str) -> Html | str:
    """The key of a tower's table in config.json."""
    return "none: its keys are among the others" if without_table(whole) else code(part)
