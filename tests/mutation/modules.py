"""Mutants of modules, by hand: each is a module with one thing changed, in a copy where a test should then fail.

python tests/mutation/modules.py macros/engine/dims.py ... [--every 10] prints each mutant that survives.
The tests named after the module come first, then the quick ones of the rooms that compute; the first failure ends them.
"""

import argparse
import ast
import contextlib
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import hypothesis  # noqa: F401  (imported once, before the processes are forked)
import numpy  # noqa: F401
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))
from copies import ROOT, whole

ROOMS = ("tests/engine", "tests/counting", "tests/catalogue")
PYTEST = ("-x", "-q", "-n0", "-m", "quick", "--few", "0", "-p", "no:cacheprovider")
PAIRS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or, Add Sub, Mult Add, Div Mult, FloorDiv Mult, Mod FloorDiv"
OTHER = {getattr(ast, a): getattr(ast, b) for pair in PAIRS.split(", ") for a, b in [pair.split()]}
OTHER |= {b: a for a, b in OTHER.items() if b not in OTHER} | {ast.Pow: ast.Mult}


def running(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that compute: no annotation, nothing that is only said when something is wrong."""
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns") and not isinstance(node, ast.Raise | ast.Assert):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from running(child)


def mutations(tree: ast.AST) -> Iterator[tuple[int, str, Callable[[], None]]]:
    """Line, what changes, and what changes it: always in the same order."""
    for node in running(tree):
        put = lambda field, new, node=node: lambda: setattr(node, field, new)  # noqa: E731
        match node:
            case ast.Compare(ops=[op, *others]) if type(op) in OTHER:
                yield node.lineno, said(op), put("ops", [OTHER[type(op)](), *others])
            case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
                yield node.lineno, said(op), put("op", OTHER[type(op)]())
            case ast.UnaryOp(op=ast.USub()):
                yield node.lineno, "no minus", put("op", ast.UAdd())
            case ast.UnaryOp(op=ast.Not(), operand=old):
                yield node.lineno, "no not", put("operand", ast.UnaryOp(ast.Not(), old))
            case ast.Constant(value=bool(old)):
                yield node.lineno, f"{old} -> {not old}", put("value", not old)
            case ast.Constant(value=int(old)):
                yield node.lineno, f"{old} -> {old + 1}", put("value", old + 1)
            case ast.Return(value=ast.AST() as old) if not isinstance(old, ast.Constant):
                yield node.lineno, "returns None", put("value", ast.Constant(None))
            case ast.If(test=ast.Name() | ast.Call() | ast.Attribute() as test) | ast.IfExp(test=ast.Name() as test):
                yield node.lineno, "condition negated", put("test", ast.UnaryOp(ast.Not(), test))


def said(op: ast.AST) -> str:
    return f"{type(op).__name__} -> {OTHER[type(op)].__name__}"


def test(copy: Path, stages: list[list[str]], write: bool) -> None:
    """In a process of its own: ends with 1 as soon as a test fails."""
    os.chdir(copy)
    sys.path[:] = [str(copy), *(p for p in sys.path if not p.startswith(str(ROOT)))]
    for name in [n for n in sys.modules if n == "copies"]:
        del sys.modules[name]
    sys.dont_write_bytecode = not write
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        os._exit(any(pytest.main([*PYTEST, *stage]) for stage in stages))


def survives(copy: Path, stages: list[list[str]], seconds: float, write: bool = False) -> bool:
    process = multiprocessing.get_context("fork").Process(target=test, args=(copy, stages, write))
    process.start()
    process.join(seconds)
    process.kill()  # an endless loop is noticed too
    process.join()
    return process.exitcode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one mutant of N")
    options = parser.parse_args()
    modules = [module.resolve().relative_to(ROOT) for module in options.modules]
    sources = {module: (ROOT / module).read_text("utf-8") for module in modules}
    mutants = [(module, n) for module in modules for n, _ in enumerate(mutations(ast.parse(sources[module])))]
    chosen = mutants[:: options.every]
    jobs = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        first, start = whole(Path(folder) / "0", "tests", "pyproject.toml", ".taplo.toml"), time.monotonic()
        assert survives(first, [[room] for room in ROOMS], 3600, write=True), "the tests fail without a mutant"
        seconds = time.monotonic() - start
        for module in modules:
            for compiled in (first / module).parent.glob(f"__pycache__/{module.stem}.*"):
                compiled.unlink()
        copies: SimpleQueue[Path] = SimpleQueue()
        for n in range(jobs):
            copies.put(shutil.copytree(first, Path(folder) / str(n)) if n else first)

        def run(mutant: tuple[Path, int]) -> tuple[Path, int, str, bool]:
            module, n = mutant
            tree, copy = ast.parse(sources[module]), copies.get()
            line, what, change = list(mutations(tree))[n]
            change()
            (copy / module).write_text(ast.unparse(ast.fix_missing_locations(tree)), "utf-8")
            nearest = [str(path.relative_to(ROOT)) for path in ROOT.glob(f"tests/*/test_{module.stem}.py")]
            alive = survives(copy, [*([nearest] if nearest else []), *([room] for room in ROOMS)], 3 * seconds + 30)
            (copy / module).write_text(sources[module], "utf-8")
            copies.put(copy)
            return module, line, what, alive

        survivors, start = 0, time.monotonic()
        for module, line, what, alive in pool.map(run, chosen):
            survivors += alive
            if alive:
                print(f"{module}:{line}: {what}: {sources[module].splitlines()[line - 1].strip()}", flush=True)
    each, killed = (time.monotonic() - start) / len(chosen), len(chosen) - survivors
    print(
        f"{killed} of {len(chosen)} killed ({killed / len(chosen):.0%}), {each:.1f} s each; all tests {seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
