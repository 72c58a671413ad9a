"""Names of types, keys and layers that transformers still accepts: `python -m tests.reference.names` writes
`names_there.json` from transformers' own tables."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from .files import read_text

FILE = Path(__file__).parent / "names_there.json"


@cache
def names_there() -> dict[str, Any]:
    """The tables, as `engine.renaming` takes them."""
    return json.loads(read_text(FILE))
