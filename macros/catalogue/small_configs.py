"""A small config of each supported type that no model of the catalog has, as the tests compare it with transformers.

The sizes are made up: they show which steps a forward pass has, and nothing else. `python -m tests.reference.unlisted`
writes the file.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "small_configs.json"


@cache
def small_configs() -> dict[str, dict[str, Any]]:
    """By model type."""
    return json.loads(FILE.read_text("utf-8"))
