"""`totals`: the published number of parameters as the lines of a preset, compared with its forward pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from ..catalogue import presets
from ..catalogue.models import Model
from ..catalogue.names import check_hub
from ..catalogue.preset_file import Extra
from ..catalogue.stored import Stored, differences, stored
from ..engine.errors import Problem
from ..engine.files import place, read_text, write
from ..engine.forward import renaming
from ..engine.layouts import Layout
from .skeleton import hub_of, toml_value

PART: dict[str, Literal["vision"]] = {"vision": "vision"}  # of a row, by the kind of its tower


def totals(path: str, hub: str | None, slug: str | None, is_strict: bool = False) -> tuple[str, list[str], bool]:
    """The lines of [published], the other messages, and whether everything agrees. With a slug, or the file of a preset
    that is not ours, they are added to this preset, and if its tensor names agree, `names` becomes `"published"`.

    Raises `Problem` for a preset that has another [published], and with `is_strict` for a file that violates its
    format.
    """
    if slug and slug.endswith(".toml"):
        slug = _of_file(Path(slug))
    model = presets.model(slug) if slug else None
    preset = model.preset if model else None
    there = stored(Path(path), is_strict)
    hub = hub or (preset.hub if preset else None) or hub_of(Path(path))
    if hub:
        check_hub(hub)
    lines, said = (
        published(there, hub, bool(hub or not model)),
        [*([_types(there)] if there.by_type else []), *there.odd],
    )
    is_same = True
    if model and slug:
        file = presets.paths()[slug]
        known = model.published
        if known and known.parameters != there.parameters:
            found = f"published.parameters = {known.parameters:,}, and the file has {there.parameters:,}"
            raise Problem(found, "remove [published], or give the file that it is of", place(file))
        text = read_text(file).rstrip("\n") + "\n"
        if hub and preset and not preset.hub:
            text = re.sub(r"(?m)^(released = .*\n)", rf"\1hub = {toml_value(hub)}\n", text, count=1)
        buffers = model.counts.buffer_elements
        of_them = f", {buffers:,} of them stored and not trained" if buffers else ""
        said.append(f"{there.parameters:,} in all, and the forward pass gives {model.held():,}{of_them}")
        extra = known.extra if known else ()
        is_same = there.parameters == model.held(extra)
        counts = {} if known else towers(model)
        if counts and there.parameters == model.held() + sum(counts.values()):
            extra, is_same = tuple(counts), True
            lines += rows(extra)
            counted = ", ".join(f"{count:,} in {row.tensors}" for row, count in counts.items())
            said.append(f"the file has the towers, too, now rows of extra: {counted}")
        if there.shapes is not None:
            renamed = renaming(model.architecture, model.config, model.head)
            found = differences(model.counts, Layout(model.architecture, there.shapes, renamed))
            said += found.said or ["the same names and shapes in both directions"]
            # counted in [[published.extra]]
            is_same &= not (found.missing or found.apart or (found.rest and not extra))
            if not found.said:
                text = re.sub(r'(?m)^names = "transformers"$', 'names = "published"', text, count=1)
        write(file, text if known else f"{text}\n{lines}")
        if not is_same:
            said.append("correct [config], or name the difference in [[published.extra]]")
    return lines, said, is_same


def _of_file(path: Path) -> str:
    """The slug of a preset's file; a file that is not ours is read alongside ours from now on."""
    if not path.is_file():
        raise Problem("there is no such file", "name a preset's file, or its slug", place(path))
    if path.resolve() not in presets.paths().values():
        presets.read_also(path)
    return path.stem


def published(there: Stored, hub: str | None, has_hub: bool) -> str:
    """The [published] table of a preset; without a hub, the file does not count as published."""
    source = f"{hub} on the Hugging Face Hub, {there.source}" if hub else ""
    return "\n".join(
        [
            "[published]",
            f"parameters = {there.parameters:_}",
            "exact = true",
            *(["file = true"] if there.is_of_file and has_hub else []),
            f"source = {toml_value(source)}",
            "",
        ]
    )


def towers(model: Model) -> dict[Extra, int]:
    """The rows of [[published.extra]] for the towers of a model, one for each prefix of their tensors' names, the
    largest of a tower first; and their counts."""
    found: dict[Extra, int] = {}
    for component in model.components:
        counts = {prefix: component.below(prefix) for prefix in component.prefixes}
        largest, *others = sorted(counts, key=lambda prefix: -counts[prefix])
        for prefix in (largest, *others):
            name = f"the {component.name} tower"
            if prefix != largest:
                name += f"’s {prefix.removesuffix('.').rpartition('.')[2]}"
            row = Extra(name, part=PART.get(component.name), tensors=prefix)
            found[row] = counts[prefix]
    return found


def rows(extra: Iterable[Extra]) -> str:
    """The lines of rows that count tensors of towers."""
    lines = ["extra = ["]
    for row in extra:
        part = f", part = {toml_value(row.part)}" if row.part else ""
        lines.append(f"  {{ name = {toml_value(row.name)}, tensors = {toml_value(row.tensors)}{part} }},")
    return "\n".join([*lines, "]", ""])


def _types(there: Stored) -> str:
    numbers = ", ".join(f"{n:,} {dtype}" for dtype, n in there.by_type.items())
    count = len(there.shapes or ())
    return f"{count:,} tensor{'s' if count > 1 else ''}: {numbers}"
