"""`totals`: the published number of parameters as the lines of a preset, and held against its forward pass."""

from __future__ import annotations

import re
from pathlib import Path

from ..catalogue import presets
from ..catalogue.names import check_hub
from ..catalogue.stored import Stored, differences, stored
from ..engine.errors import Problem
from ..engine.files import place, read_text
from .skeleton import hub_of, toml_value


def totals(path: str, hub: str | None, slug: str | None) -> tuple[str, list[str], bool]:
    """The lines of [published], what else is to be said, and whether nothing differs. With a slug they are added to
    this preset, whose `names` are said to be the published ones if they are.

    Raises `Problem` for a preset that has another [published].
    """
    model = presets.model(slug) if slug else None
    preset = model.preset if model else None
    hub = hub or (preset.hub if preset else None) or hub_of(Path(path))
    if hub:
        check_hub(hub)
    there = stored(Path(path))
    lines, said = published(there, hub), [_types(there)] if there.by_type else []
    is_same = True
    if model and slug:
        file = presets.paths()[slug]
        known = preset.published if preset else None
        if known and known.parameters != there.parameters:
            found = f"published.parameters = {known.parameters:,}, and the file has {there.parameters:,}"
            raise Problem(found, "remove [published], or give the file that it is of", place(file))
        text = read_text(file).rstrip("\n") + "\n"
        buffers = model.counts.buffer_elements
        of_them = f", {buffers:,} of them stored and not trained" if buffers else ""
        said.append(f"{there.parameters:,} in all, and the forward pass gives {model.held():,}{of_them}")
        extra = known.extra if known else ()
        is_same = there.parameters == model.held(extra)
        if there.shapes is not None:
            apart = differences(model.counts, there.shapes)
            said += apart or ["the same names and shapes, both ways"]
            is_same &= bool(extra) or not apart
            text = text if apart else re.sub(r'(?m)^names = "transformers"$', 'names = "published"', text, count=1)
        try:
            file.write_text(text if known else f"{text}\n{lines}", "utf-8")
        except OSError as error:
            raise Problem(f"cannot be written: {error.strerror}", "check the path", place(file)) from None
        if not is_same:
            said.append("correct [config], or name the difference in [[published.extra]]")
    return lines, said, is_same


def published(there: Stored, hub: str | None) -> str:
    """The table [published] of a preset."""
    source = f"{hub} on the Hugging Face Hub, {there.source}" if hub else ""
    return "\n".join(
        [
            "[published]",
            f"parameters = {there.parameters:_}",
            "exact = true",
            *(["file = true"] if there.is_of_file else []),
            f"source = {toml_value(source)}",
            "",
        ]
    )


def _types(there: Stored) -> str:
    numbers = ", ".join(f"{n:,} {dtype}" for dtype, n in there.by_type.items())
    return f"{len(there.shapes or ()):,} tensors: {numbers}"
