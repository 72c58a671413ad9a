"""What DeepSpeed estimates of model states: `python -m tests.reference.zero FOLDER` writes `tests/golden/zero.json`.

FOLDER is the unpacked source distribution (`pip download deepspeed --no-deps --no-binary :all:`). Nothing is built: the
two functions that estimate are arithmetic, and are run by themselves.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

FILE = Path(__file__).parent.parent / "golden" / "zero.json"
SIZES = ((8_030_261_248, 525_336_576), (124_439_808, 38_597_376), (70_553_706_496, 1_050_673_152))
GPUS = ((1, 1), (8, 1), (8, 4))  # of each node, and nodes


def function(path: Path, name: str):
    """A function of a module that needs nothing else of it."""
    [tree] = [n for n in ast.parse(path.read_text("utf-8")).body if isinstance(n, ast.FunctionDef) and n.name == name]
    space: dict = {}
    exec(compile(ast.Module([tree], []), str(path), "exec"), space)
    return space[name]


def main(folder: str) -> None:
    zero = Path(folder) / "deepspeed" / "runtime" / "zero"
    second = function(zero / "stage_1_and_2.py", "estimate_zero2_model_states_mem_needs")
    third = function(zero / "stage3.py", "estimate_zero3_model_states_mem_needs")
    rows = []
    for total, largest in SIZES:
        for per_node, nodes in GPUS:
            row = {"parameters": total, "largest_module": largest, "devices": per_node * nodes}
            row["zero2"] = second(total, per_node, nodes, cpu_offload=False)[1]
            row["zero3"] = third(total, largest, per_node, nodes, cpu_offload=False, cpu_offload_params=False)[1]
            rows.append(row)
    [version] = re.findall(r"[0-9]+\.[0-9]+\.[0-9]+", Path(folder).resolve().name)
    lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
    FILE.write_text(f'{{\n "deepspeed": "{version}",\n "estimates": [\n{lines}\n ]\n}}\n', "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
