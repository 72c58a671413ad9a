"""The classes that llama.cpp's converter knows: `python -m tests.reference.gguf_classes SOURCE` writes
`tests/golden/llama_cpp_classes.json`. SOURCE is the folder llama.cpp, as in `tests.reference.gguf`.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

FILE = Path(__file__).parent.parent / "golden/llama_cpp_classes.json"


def registered(source: Path) -> list[str]:
    """The classes in the calls of `register`, by the code alone."""
    calls = (
        node
        for path in sorted((source / "conversion").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".register")
    )
    return sorted({one.value for call in calls for one in call.args if isinstance(one, ast.Constant)})


if __name__ == "__main__":
    FILE.write_text(json.dumps(registered(Path(sys.argv[1])), indent=0) + "\n", "utf-8")
