"""The types of transformers' mappings of language models, from `transformers_types.json`: covered, or why not.

`python -m tests.reference.mappings` writes the file. Whether a type is covered is not in it: that is looked up.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from ..engine.architectures import is_known
from ..engine.errors import Problem
from ..engine.files import place, read_text

FILE = Path(__file__).parent / "transformers_types.json"


class Mapped(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One type: the mappings that have it, and the type of its text model where that is another one.

    `reason`: why it is not covered, in a few words. `incomplete`: whether its default config is no model by itself.
    """

    tasks: list[str]
    text: str | None = None
    reason: str | None = None
    incomplete: bool = False


class Mappings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file: transformers' version, and the types."""

    version: str
    types: dict[str, Mapped]


@cache
def mappings() -> Mappings:
    """The file's content. Raises `Problem`."""
    try:
        return msgspec.json.decode(read_text(FILE), type=Mappings)
    except (ValueError, msgspec.ValidationError) as error:
        raise Problem(str(error).replace("`", ""), "run python -m tests.reference.mappings", place(FILE)) from None


def covered_as(name: str) -> str | None:
    """The type by which a type is covered: its own, or that of its text model; None where it is not."""
    row = mappings().types[name]
    names = (name, row.text) if row.reason is None else ()
    return next((one for one in names if one is not None and is_known(one)), None)
