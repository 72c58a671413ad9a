"""What the macros that go through the catalog show of a few models: of all of them, a new model would change it.

They run in a copy of the package that has these models alone. `python -m tests.approved few` writes the texts down.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from . import MARK, ROOT, TEXTS, TYPES, called, every_call, is_of_catalog, shown

FOLDER = TEXTS / "few"
PRESETS = """
    claude/claude-3-opus deepseek/deepseek-v3 gemma/gemma3-4b gemma/gemma3-27b gemma/gemma-4-e2b gpt/gpt2
    jamba/jamba-v0.1 llama/llama3-70b llama/llama3-8b llama/llama3.3-70b mistral/mixtral-8x7b qwen/qwen2.5-vl-7b
    qwen/qwen3-30b-a3b qwen/qwen3-8b sarvam/sarvam-105b smollm/smollm-135m smollm/smollm2-135m t5/t5-base
    whisper/whisper-tiny yi/yi-6b
""".split()
# They show source code, the last run of something, or a machine's own plan.
NOT_OF_MODELS = frozenset(
    "benchmark benchmarks_table excerpt macro_table plan_deployment room rooms_picture rooms_table".split()
)
# Of these, a new type changes all but the heads of tables, and the rows of a few types.
OF_TYPES = re.compile(r"coverage_|independent_(summary|table\(\))|gallery_summary|tower_types")


def calls() -> list[str]:
    """The calls that go through the catalog."""
    return [c for c in dict.fromkeys(every_call()) if is_of_catalog(c) and called(c) not in NOT_OF_MODELS]


def copied(folder: Path) -> Path:
    """The package with a few presets."""
    shutil.copytree(ROOT / "macros", folder / "macros", ignore=shutil.ignore_patterns("presets", "*.pyc*"))
    for name in PRESETS:
        file = folder / "macros/presets" / f"{name}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "macros/presets" / f"{name}.toml", file)
    return folder


def texts(folder: Path) -> dict[str, str]:
    """By macro, its calls in such a copy, each with what it shows; of tables of types the heads alone."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tests")])}
    command = [sys.executable, "-m", "approved.few"]
    done = subprocess.run(
        command, cwd=folder, env=variables, input=json.dumps(calls()), capture_output=True, text=True, encoding="utf-8"
    )
    assert not done.returncode, done.stderr
    found = defaultdict[str, list[str]](list)
    for call, said in json.loads(done.stdout).items():
        if OF_TYPES.match(call):
            has_rows = call.startswith("coverage_")  # elsewhere the notes of all types are numbered through
            kept = ("table: ", "columns: ")
            lines = [one for one in said.splitlines() if one.startswith(kept) or has_rows and TYPES.match(one)]
            said = "\n".join(lines)
        found[called(call)].append(f"{MARK}{call}\n{said}\n")
    return {name: "\n".join(blocks) for name, blocks in found.items()}


def write() -> None:
    import tempfile

    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        found = texts(copied(Path(folder)))
    for file in FOLDER.glob("*.txt"):
        file.unlink()
    for name, said in found.items():
        (FOLDER / f"{name}.txt").write_text(said, "utf-8")


if __name__ == "__main__":
    print(json.dumps({call: shown(call) for call in json.loads(sys.stdin.read())}))
