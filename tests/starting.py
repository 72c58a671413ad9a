"""What comes before the first test and after the last: options, compiled modules, the site, what is said at the end."""

import compileall
import contextlib
import gc
import os
import pickle
import shutil
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import affected
import pytest
from _pytest.assertion import rewrite
from copies import ROOT
from fuzzing import CI
from sampling import COMMIT, WHOLE
from serving import note_outcome, served, site_process
from sharing import CHOSEN, FEW, LATE, LEFT_OUT, REACH, is_chosen

TOLD = "site", "is_of_all", "is_early"  # what workers are told of the first process
SLOWEST = 20  # tests that .ci/run names at its end


def pytest_addoption(parser):
    said = f"of the cases of each quick test only N; 0 is all of them, as in .ci/run, and without it there are {FEW}"
    parser.addoption("--few", type=int, metavar="N", help=said)
    said = "a site that is built, at which the tests look instead of building one"
    parser.addoption("--built", metavar="FOLDER", help=said)
    said = "what the working tree's change can reach, the nearest first, for at most a minute"
    parser.addoption("--affected", action="store_true", help=said)


def pytest_configure(config):
    """The first process serves the site, and tells its workers where; whichever test needs it first builds it."""
    config.stash[LEFT_OUT], config.stash[CHOSEN] = Counter(), set()
    if not hasattr(config, "workerinput"):
        option, config.is_of_all = config.option, config.args_source is not config.ArgsSource.ARGS
        is_parallel = option.dist != "no" and not option.collectonly and not option.built
        config.is_early = is_parallel and config.is_of_all and not is_chosen(config) and not CI
        with contextlib.ExitStack() as stack:
            if sys.dont_write_bytecode:  # each of many processes would compile every module: what comes goes at the end
                stack.callback(remove_compiled, set(compiled()))
                os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
                sys.dont_write_bytecode = False
            if config.is_of_all and config.option.dist != "no" and hasattr(os, "fork"):
                compile_modules(config)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="every-parameter-"))
            if option.built:  # tests take it as it is
                (Path(folder) / "site").symlink_to(Path(option.built).resolve(), target_is_directory=True)
                (Path(folder) / "building").mkdir()
                (Path(folder) / "outcome").touch()
            else:
                (Path(folder) / "site").mkdir()
            config.stash[REACH] = reach = find_reach(config, Path(folder))
            config.is_early &= not option.affected or reach.is_of_site
            config.site = folder, stack.enter_context(served(Path(folder) / "site"))
            config.add_cleanup(stack.pop_all().close)
    else:
        for name in TOLD:
            setattr(config, name, config.workerinput[name])
        config.stash[REACH] = pickle.loads((Path(config.site[0]) / "reach").read_bytes())
        if config.is_early and hasattr(os, "nice"):
            os.nice(5)  # many tests wait for the site


def find_reach(config, folder: Path) -> affected.Reach:
    """What the change can reach, where that is of use: with the names of tests everything was said."""
    found = affected.Reach()
    if config.option.affected or config.is_of_all and not is_chosen(config):
        kept = config.cache.mkdir("affected") / "modules" if hasattr(config, "cache") else None
        found = affected.reach(ROOT, kept)
    (folder / "reach").write_bytes(pickle.dumps(found))
    return found


def pytest_sessionstart(session):
    """The test command builds the site beside the first tests."""
    config = session.config
    if config.is_early and not hasattr(config, "workerinput"):
        folder, address = Path(config.site[0]), config.site[1]
        (folder / "building").mkdir()
        process = site_process(folder, address)
        watch = threading.Thread(target=note_outcome, args=(process, folder))
        watch.start()
        config.add_cleanup(watch.join)
        config.add_cleanup(process.kill)  # before that


def compile_modules(config) -> None:
    """On a fresh clone each worker would compile every module: here each core compiles its share of them before."""
    paths = [path for room in ("macros", "tests") for path in (ROOT / room).rglob("*.py")]
    children, cores = [], os.cpu_count() or 1
    for n in range(cores):
        if not (child := os.fork()):
            with contextlib.suppress(Exception):  # what is wrong with a module, its import tells
                for path in paths[n::cores]:
                    compile_module(path, config)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def compile_module(path: Path, config) -> None:
    if not (path.name.startswith("test_") or path.name == "conftest.py"):
        compileall.compile_file(path, quiet=2)
        return
    written = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
    if not written.exists():
        written.parent.mkdir(exist_ok=True)
        source_hash, code = rewrite._rewrite_test(path, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, written)


def compiled() -> Iterator[Path]:
    """The folders of compiled modules."""
    return (path for room in ("macros", "tests") for path in (ROOT / room).rglob("__pycache__"))


def remove_compiled(before: set[Path]) -> None:
    for path in {*compiled()} - before:
        shutil.rmtree(path, ignore_errors=True)


def pytest_report_header(config):
    if config.option.affected:
        return ["affected:", *(f"  {line}" for line in config.stash[REACH].said)]
    return (
        "samples: all cases" if WHOLE else f"samples: those of {COMMIT[:12] or 'no commit'}; WHOLE=yes takes all cases"
    )


def pytest_xdist_auto_num_workers():
    """One more than there are cores: those that wait for a server or for Chromium leave theirs to the others."""
    return (os.cpu_count() or 1) + 1


def pytest_configure_node(node):
    node.workerinput.update({name: getattr(node.config, name) for name in TOLD})


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash[LEFT_OUT])


def pytest_testnodedown(node):
    """All workers leave out the same; one that crashed does not say what."""
    if left_out := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = Counter(left_out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A report says what its test protects: the first paragraph of its docstring, or else of its module's."""
    report = yield
    said = item.function.__doc__ or item.module.__doc__ or ""
    report.protects = " ".join(said.strip().partition("\n\n")[0].split())
    return report


def slowest(terminalreporter, number: int) -> Iterator[str]:
    """The tests that took longest, with what each protects."""
    seconds, protects = Counter(), {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "protects"):
                seconds[report.nodeid] += report.duration
                protects[report.nodeid] = report.protects
    return (f"{taken:6.1f} s {name}: {protects[name]}" for name, taken in seconds.most_common(number))


def summary(terminalreporter, reach: affected.Reach) -> Iterator[str]:
    """The files that tests were run of, nearest to the change first, and why."""
    counted, late = defaultdict(list), 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                counted[report.nodeid.partition("::")[0]].append(report.nodeid)
            elif getattr(report, "skipped", False) and LATE in str(report.longrepr):
                late += 1
    for path, ids in sorted(counted.items(), key=lambda one: min(map(reach.distance, one[1]))):
        near = min(ids, key=reach.distance)
        why = (
            f"{reach.distance(near):g} steps from it" if reach.distance(near) < affected.FAR else "cases that it holds"
        )
        yield f"{path}: {len(ids)} ({why}: {near.partition('::')[2]})"
    if late:
        yield f"{late} further away: no time was left; `python -m pytest` runs more, .ci/run all"


def pytest_terminal_summary(terminalreporter, config):
    if CI:
        terminalreporter.section("slowest tests")
        for line in slowest(terminalreporter, SLOWEST):
            terminalreporter.write_line(line)
    if config.option.affected:
        for line in summary(terminalreporter, config.stash[REACH]):
            terminalreporter.write_line(line)
    elif left_out := +config.stash[LEFT_OUT]:
        why = "; ".join(f"{n} {reason}" for reason, n in left_out.items())
        terminalreporter.write_line(f"{left_out.total()} checks left out, which .ci/run makes ({why})")


def pytest_collection_finish():
    """What is imported and collected by now stays: no look for garbage goes through it again, and few are enough."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
