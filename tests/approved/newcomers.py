"""Ten further models in a copy of the package: what is approved with the whole catalog has to read as before.

Each is a model of the catalog under another name, with another vocabulary, the newest of all, some in families of their
own. `changed` asks a part of the approved calls in such a copy, and of the answers that are of models.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import ROOT, TEXTS, answers, approved, shown

LIKE = """
    bert/bert-base claude/claude-3-opus deepseek/deepseek-v3 llama/llama4-scout mamba/mamba-1.4b
    minimax/minimax-text-01 qwen/qwen2.5-vl-7b qwen/qwen3-30b-a3b smollm/smollm-135m whisper/whisper-tiny
""".split()
OWN_FAMILY = ("claude-3-opus", "smollm-135m")
ROOMS = ("api", "api_arguments", "catalogue_questions", "views_macros")  # no other answer is of a named model alone
DROPPED = re.compile(r"^(aliases|headline|headline_counts|note|caveat|former_slugs) = (\[.*?\]|.*?)\n", re.M | re.S)


def newcomer(text: str, number: int, family: str | None) -> str:
    """The preset of a further model like this one: without its published totals, which are another model's."""
    head, mark, rest = text.partition("[config]") if "[config]" in text else text.partition("[sources]")
    head = DROPPED.sub("", head.split("[[elsewhere]]")[0])
    for key, value in {
        "name": f'"Newcomer {number}"',
        "hub": f'"newcomers/newcomer-{number}"',
        "released": f"2030-01-{number + 10}",
        **({"family": f'"{family}"', "organization": '"Newcomers"'} if family else {}),
    }.items():
        head = re.sub(rf"^{key} = .*$", f"{key} = {value}", head, flags=re.M)
    rest = re.split(r"^\[+(?:published|elsewhere)", rest, maxsplit=1, flags=re.M)[0]
    return head + mark + re.sub(r"^vocab_size = (\d+)$", lambda m: f"vocab_size = {int(m[1]) + 64}", rest, flags=re.M)


def copied(folder: Path) -> Path:
    """The package with ten models more."""
    shutil.copytree(ROOT / "macros", folder / "macros", ignore=shutil.ignore_patterns("*.pyc*"))
    for number, like in enumerate(LIKE):
        file = folder / "macros/presets" / f"{like}.toml"
        family = f"Newcomers {number}" if file.stem in OWN_FAMILY else None
        place = file.parent if family is None else file.parent.parent / f"newcomers-{number}"
        place.mkdir(exist_ok=True)
        (place / f"newcomer-{number}.toml").write_text(newcomer(file.read_text("utf-8"), number, family), "utf-8")
    return folder


def changed(folder: Path, part: int, parts: int) -> list[str]:
    """The approved calls of a part that show something else in such a copy."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "tests")])}
    said = [("", call, text) for file in sorted(TEXTS.glob("*.txt")) for call, text in approved(file).items()]
    said += [(room, expression, text) for room in ROOMS for expression, text in answers.expected(room).items()]
    command = [sys.executable, "-m", "approved.newcomers"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=variables,
        input=json.dumps(said[part::parts]),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def differ(said: list[tuple[str, str, str]]) -> list[str]:
    """Those that show or answer something else here: of (the room, the call, the text)."""
    names = {room: answers.names_in(room) for room in dict.fromkeys(room for room, _, _ in said) if room}
    return [
        call
        for room, call, text in said
        if (answers.answer(call, names[room]) if room else shown(call).rstrip("\n")) != text
    ]


if __name__ == "__main__":
    json.dump(differ(json.load(sys.stdin)), sys.stdout)
