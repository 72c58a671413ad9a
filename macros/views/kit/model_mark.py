"""Identifies the models on a page, for scripts that look for a model's diagram."""

from __future__ import annotations

import json
from hashlib import blake2b

from ...catalogue.models import Model


def model_mark(model: Model) -> str:
    """The slug of a preset; for any other config a hash of it, since its path is private."""
    if model.preset:
        return model.slug
    return blake2b(json.dumps(model.whole, sort_keys=True, default=str).encode(), digest_size=6).hexdigest()
