"""The project as a package: what the wheel carries, that it says what the repository says, and its dependencies."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import pytest
from chromium import until
from copies import environment as environment_without_warnings
from copies import small_site
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from reference import each_has, golden, goldens
from sampling import sampled
from serving import served

from macros.catalogue import presets
from macros.site import requirements
from macros.site.page_macros import macros

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]


def declared(requirements: list[str]) -> dict[str, Requirement]:
    """Requirements by the name of what is required."""
    return {canonicalize_name(r.name): r for r in map(Requirement, requirements)}


CORE = declared(PROJECT["dependencies"])
DEPENDENCIES = CORE | declared(PROJECT["optional-dependencies"]["site"])
OF_EXTRAS = declared([line for extra in ("text", "hub", "gguf") for line in PROJECT["optional-dependencies"][extra]])
OF_BUILD = {"source_distribution.py": declared(PYPROJECT["build-system"]["requires"])}  # no import of the package's
CONSTRAINTS = ROOT / ".ci" / "constraints.txt"


def run(*command: object, **options) -> subprocess.CompletedProcess[str]:
    """A command that has to succeed."""
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def uv(*command: object, **options) -> subprocess.CompletedProcess[str]:
    """uv, from the test extra; it makes an environment in seconds, and knows the lowest versions of a range."""
    return run(sys.executable, "-m", "uv", "--quiet", *command, **options)


def environment(folder: Path) -> Path:
    """A bare environment's interpreter."""
    uv("venv", "--python", sys.executable, folder)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


# --- what is declared -------------------------------------------------------------------------------------------------


def test_the_site_asks_for_what_it_takes():
    """Mend: the top module of each requirement of the extra `site` stands in macros/site/requirements.py."""
    distributions = importlib.metadata.packages_distributions()
    asked = {canonicalize_name(d) for module in requirements.SITE for d in distributions[module]}
    with_mkdocs = {"mkdocs", "click", "jinja2", "markdown"}  # MkDocs does not start without these
    assert asked | with_mkdocs == DEPENDENCIES.keys() - CORE.keys()


def test_every_constraint_is_a_tested_version_of_a_declared_range():
    pinned = {}
    for line in CONSTRAINTS.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            pinned[canonicalize_name(name)] = version
    assert DEPENDENCIES.keys() <= pinned.keys()
    for name, requirement in DEPENDENCIES.items():
        assert {"<", ">="} <= {part.operator for part in requirement.specifier}, f"{requirement}: an open range"
        assert requirement.specifier.contains(pinned[name]), f"{requirement}, and the constraint is {pinned[name]}"


@pytest.mark.exhaustive
def test_what_is_imported_is_declared():
    """Mend: add the distribution to `dependencies` in pyproject.toml, or to `site`, and renew .ci/constraints.txt.

    What an extra for users brings is imported inside a function, which runs only where it is asked for.
    """
    distributions = importlib.metadata.packages_distributions()
    for path in (ROOT / "macros").rglob("*.py"):
        of_site = path.is_relative_to(ROOT / "macros/site") or path.name == "mathml.py"  # asks for V8 when it has to
        allowed = OF_BUILD.get(path.name, DEPENDENCIES if of_site else CORE)
        tree = ast.parse(path.read_text("utf-8"))
        late = {n for function in ast.walk(tree) if isinstance(function, ast.FunctionDef) for n in ast.walk(function)}
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in {n.partition(".")[0] for n in names} - sys.stdlib_module_names - {"macros"}:
                providers = {canonicalize_name(d) for d in distributions.get(name, [name])}
                here = allowed | OF_EXTRAS if node in late else allowed
                assert providers & here.keys(), f"{path}: {name} is of {providers}, which nothing declares"


def test_every_type_with_a_checkpoint_is_listed():
    """Mend: add the model type to macros/catalogue/reference_logits.toml, or take it out."""
    compared = {golden(name).model_type for name in goldens()}
    each_has(compared - presets.goldens(), "has a checkpoint in tests/golden", "add TYPE to reference_logits.toml")
    each_has(presets.goldens() - compared, "has no checkpoint in tests/golden", "take it out of reference_logits.toml")
    listed = tomllib.loads(presets.REFERENCE_LOGITS.read_text("utf-8"))["model_types"]
    assert listed == sorted(set(listed))


# --- the wheel --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel, built from a copy: setuptools leaves its own folders beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("macros", "docs"):
        shutil.copytree(ROOT / name, folder / "project" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "project")
    (folder / "project" / "macros" / "engine" / "__pycache__").mkdir()
    (folder / "project" / "macros" / "engine" / "__pycache__" / "dims.cpython-311.pyc").touch()
    uv("build", "--wheel", "--out-dir", folder, folder / "project")
    return next(folder.glob("*.whl"))


@pytest.mark.slow("builds the wheel")
@pytest.mark.timeout(300)
def test_the_wheel_carries_every_file_once(wheel):
    """Modules and data of macros/, whatever their folder, and the site's styles and scripts; and nothing else: not the
    README's pictures."""
    ours = {}
    for source, target in ((ROOT / "macros", "every_parameter"), (ROOT / "docs/assets", "every_parameter/assets")):
        for path in source.rglob("*"):
            is_left_out = path.name.startswith((".", "readme-")) or "__pycache__" in path.parts
            if path.is_file() and not is_left_out:
                ours[f"{target}/{path.relative_to(source).as_posix()}"] = path.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
        metadata = next(archive.read(n) for n in archive.namelist() if n.endswith(".dist-info/METADATA")).decode()
        licences = [n for n in archive.namelist() if ".dist-info/licenses/" in n]
    assert packed.keys() == ours.keys()
    assert packed == ours
    assert re.search(r"^License-Expression: MIT$", metadata, re.M)
    assert any(name.endswith("licenses/LICENSE") for name in licences)
    assert sum(name.endswith(".txt") for name in licences) == len(list(ROOT.glob("docs/assets/vendor/*.txt"))) + 1


PAGE = """
from {package}.catalogue.presets import paths, preset
from {package}.views.kit.excerpts import excerpt
from {package}.views.kit.mathml import mathml
from {package}.views.models.model_page import model_checked, verification
from {package}.views.reference.rooms import rooms_picture
print(mathml("n^2"), verification(), rooms_picture(), excerpt("__init__.py", "define_env"))
print(*(model_checked(slug) for slug in paths() if preset(slug).config), sep="\\n")
"""


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The interpreter of an environment that has the wheel and all that building a site takes."""
    python = environment(tmp_path_factory.mktemp("installed") / "venv")
    uv("pip", "install", "--python", python, "--constraint", CONSTRAINTS, f"{wheel}[site]")
    return python


@pytest.fixture(scope="module")
def core(wheel, tmp_path_factory) -> Path:
    """The interpreter of an environment that has the wheel and what it cannot do without."""
    python = environment(tmp_path_factory.mktemp("core") / "venv")
    uv("pip", "install", "--python", python, "--constraint", CONSTRAINTS, "--compile-bytecode", wheel)
    return python


# Bytes of the wheel (11 MB), msgspec, ml_dtypes, safetensors, Rich and Pygments, with their compiled modules.
BESIDES_NUMPY = 37_000_000


@pytest.mark.share(4, of="the wheel alone")
@pytest.mark.slow("installs the wheel")
def test_the_core_is_small(core):
    """NumPy, and 37 MB of everything else."""
    packages = next(core.parent.parent.glob("lib/python*/site-packages"))
    files = [path for path in packages.rglob("*") if path.is_file()]
    besides = [path for path in files if not path.relative_to(packages).parts[0].startswith("numpy")]
    assert len(besides) > 500  # the wheel's own files alone
    assert sum(path.stat().st_size for path in besides) <= BESIDES_NUMPY


NOTEBOOK = """
import warnings
warnings.simplefilter("ignore")
import every_parameter as ep
m = ep.load("llama3-8b")
print(m.parameters.total, m.kv_cache(context=32768), m.flops(context=4096), m.memory(context=4096))
print(m.what_if(n_layers=64).parameters.total, len(ep.models()), ep.compare("gpt2", m).differ)
print(ep.fits(m, on="24GB").sentence, m.tensors.to_markdown()[:80], m.diagram._repr_svg_()[:4], m.map._repr_svg_()[:4])
print(ep.run("capitals", text="The capital of France is").rows()[0]["token"], m.formula)
shown = m.formula._repr_html_()
print("formula shows as", "TeX" if shown == "$$" + m.formula.tex + "$$" else shown[:2])
try:
    ep.load("llama3-8")
except ep.Problem as problem:
    print(problem)
"""


@pytest.mark.share(4, of="the wheel alone")
@pytest.mark.slow("installs the wheel")
def test_a_notebook_on_the_core_alone_says_what_the_repository_says(core, tmp_path):
    """Where V8 is not installed, formulas stand as TeX."""
    there = run(core, "-c", NOTEBOOK, cwd=tmp_path)
    here = run(sys.executable, "-c", NOTEBOOK, cwd=ROOT)
    as_tex, as_mathml = "formula shows as TeX\n", "formula shows as <m\n"
    assert as_tex in there.stdout and as_mathml in here.stdout, there.stdout
    assert there.stdout.replace(as_tex, "") == here.stdout.replace(as_mathml, "")


@pytest.mark.share(4, of="the wheel alone")
@pytest.mark.slow("installs the wheel")
def test_mkdocs_on_the_core_alone_says_the_mend(core, tmp_path):
    """One line, also where MkDocs itself is there and its theme and plugins are not."""
    uv("venv", "--python", core, tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    uv("pip", "install", "--python", python, "--constraint", CONSTRAINTS, "mkdocs")
    uv("pip", "install", "--python", python, "--no-deps", "--editable", ROOT)
    built = subprocess.run(
        [python, "-m", "mkdocs", "build", "--site-dir", tmp_path / "site"], cwd=ROOT, text=True, capture_output=True
    )
    assert built.returncode == 1 and built.stdout == ""
    (line,) = built.stderr.splitlines()
    assert re.search(r"without material, .*: pip install -c .ci/constraints.txt -e '\.\[site\]'$", line)


NOT_DRAWN = "the parts of its page were not made: pip install 'every-parameter[site]'"  # without V8


@pytest.mark.share(14)
@pytest.mark.slow("installs the wheel")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("python", ["core", "installed"])
@pytest.mark.parametrize(
    "arguments",
    [
        "check",
        "check gpt2 no-such-model",
        "describe gpt2 deepseek-v3",
        "describe --format json --collapse gpt-oss-20b",
        "describe --format csv llama3-8B no-such-folder/config.json wrong.json foreign.json gpt-4",
        "add foreign.json --slug gpt2-again",
        "run nowhere --tokens 1",
        "compare gpt2 llama3-8b --on h100",
        "what-if gpt2 --set n_layers=13",
        "fits llama3-8b --on 24GB --context 32k",
        "totals nowhere",
        "schema",
        "publish-check .",
        "--help",
    ],
)
def test_installed_it_says_what_the_repository_says(python, request, tmp_path, arguments):
    """The lines, the errors and the exit status."""
    foreign = {"model_type": "gpt2", "n_embd": 48, "n_layer": 2, "n_head": 3, "vocab_size": 97, "n_positions": 31}
    (tmp_path / "foreign.json").write_text(json.dumps(foreign | {"a_new_key": 1}))
    (tmp_path / "wrong.json").write_text(json.dumps(foreign | {"n_head": 5}))
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    there, here = (
        subprocess.run([*command, *arguments.split()], cwd=tmp_path, env=env, text=True, capture_output=True)
        for command, env in (
            ([request.getfixturevalue(python).with_name("every-parameter")], bare),
            ([sys.executable, "-m", "macros"], bare | {"PYTHONPATH": str(ROOT)}),
        )
    )
    drawn = [line for line in there.stderr.splitlines() if not line.endswith(NOT_DRAWN)]
    assert (there.stdout, drawn, there.returncode) == (here.stdout, here.stderr.splitlines(), here.returncode)
    assert len(drawn) == len(there.stderr.splitlines()) or (python, arguments[:10]) == ("core", "check gpt2")
    assert here.stdout or here.stderr


@pytest.mark.share(4, of="the wheel alone")
@pytest.mark.slow("installs the wheel")
@pytest.mark.timeout(300)
def test_installed_its_views_are_those_of_the_repository(installed, tmp_path):
    there = run(installed, "-c", PAGE.format(package="every_parameter"), cwd=tmp_path)
    here = run(sys.executable, "-c", PAGE.format(package="macros"), cwd=ROOT)
    assert there.stdout == here.stdout
    assert "gives the reference logits of a small checkpoint" in here.stdout


# --- the source distribution ------------------------------------------------------------------------------------------

SHOWN = """
import every_parameter as ep
print(ep.load("llama3-8b").parameters.total, len(ep.models()) > 300)
print(ep.run("capitals", text="The capital of France is").rows()[0]["token"])
"""


@pytest.mark.slow("builds the source distribution, and installs it with the newest dependencies")
@pytest.mark.timeout(300)
def test_the_source_distribution_is_whole(tmp_path):
    """It holds all that the wheel is made of, and no test without what it needs; built and installed with the newest
    dependencies, it answers."""
    project = tmp_path / "project"
    for name in ("macros", "docs", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "golden", "node_modules")
        shutil.copytree(ROOT / name, project / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    uv("build", "--sdist", "--out-dir", tmp_path, project)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
        archive.extractall(tmp_path / "unpacked", filter="data")
    assert not [name for name in held if name.startswith("tests")]
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "macros").rglob("*.py")}
    assert modules <= held and {"pyproject.toml", "README.md", "LICENSE"} <= held
    [unpacked] = (tmp_path / "unpacked").iterdir()
    python = environment(tmp_path / "venv")
    uv("pip", "install", "--python", python, unpacked)
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command, said in (
        ([python, "-c", SHOWN], "8030261248 True\n322\n"),
        ([python.with_name("every-parameter"), "check", "gpt2"], "1 model, 1 as published, 0 undisclosed, 0 off"),
        (
            [python.with_name("every-parameter"), "describe", "deepseek-v3", "--format", "json", "--collapse"],
            "671026404352",
        ),
    ):
        ran = subprocess.run(command, cwd=tmp_path, env=bare, text=True, capture_output=True)
        assert ran.returncode == 0 and said in ran.stdout, ran.stderr


# --- other people's sites ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory) -> dict[str, str]:
    """Variables with which the wheel's package is found, and nothing of the repository."""
    folder = tmp_path_factory.mktemp("unpacked")
    uv("pip", "install", "--offline", "--no-deps", "--target", folder, wheel)
    variables = environment_without_warnings(PYTHONPATH=str(folder))
    where = run(
        sys.executable, "-c", "import every_parameter as e; print(e.__file__)", cwd=folder.parent, env=variables
    )
    assert Path(where.stdout.strip()).is_relative_to(folder)
    return variables


def calls() -> dict[str, str]:
    """A call of each macro, the first one of ours that is written out."""
    first = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = re.sub(r"{% raw %}.*?{% endraw %}", "", path.read_text("utf-8"), flags=re.S)
        for call in re.finditer(r"{{-? *((\w+)\((?:[^{}]|{[^{}]*})*\)) *-?}}", text):
            first.setdefault(call[2], call[1])
    return {name: first[name] for name in macros(None)}


ON_A_PAGE = 28
SCHEMES = [
    {"media": f"(prefers-color-scheme: {name})", "scheme": scheme, "toggle": {"icon": "material/circle", "name": name}}
    for name, scheme in (("light", "default"), ("dark", "slate"))
]
THEMES = {
    "material": {"palette": SCHEMES, "font": False},
    "mkdocs": {"highlightjs": False},
    "readthedocs": {"highlightjs": False},
}


def their_site(folder: Path, theme: str) -> list[str]:
    """A site with every macro on its pages, with a prefix, beside a macro and a preset of its own; its pages."""
    written = calls()
    prefixed = re.compile(rf"\b({'|'.join(written)})\(")
    sections = [f"## {name}\n\n{{{{ " + prefixed.sub(r"ep_\g<0>", call) + " }}\n" for name, call in written.items()]
    (folder / "docs").mkdir()
    pages = [sections[n : n + ON_A_PAGE] for n in range(0, len(sections), ON_A_PAGE)]
    for n, page in enumerate(pages):
        first = '# Theirs\n\nTwice 21 is {{ doubled(21) }}. Theirs has {{ ep_params("theirs") }} parameters.\n\n'
        (folder / "docs" / (f"page{n}.md" if n else "index.md")).write_text(first + "\n".join(page), "utf-8")
    (folder / "main.py").write_text("def define_env(env):\n    env.macro(lambda n: 2 * n, 'doubled')\n")
    (folder / "models").mkdir()
    preset = (ROOT / "macros/presets/gpt/gpt2.toml").read_text("utf-8").replace("GPT-2 Small", "Theirs")
    (folder / "models" / "theirs.toml").write_text(preset, "utf-8")
    (folder / "mkdocs.yml").write_text(
        f"site_name: Theirs\ntheme: {json.dumps({'name': theme, **THEMES[theme]})}\n"
        "plugins:\n  - search\n  - macros: {modules: [every_parameter], on_error_fail: true, on_undefined: strict}\n"
        "extra: {every_parameter: {presets: models, prefix: ep_}}\n"
    )
    return ["", *(f"page{n}/" for n in range(1, len(pages)))]


BLACK = """() => [...document.querySelectorAll("[class^=ep-] svg *, svg[class^=ep-] *")].filter(element => {
    if (!element.matches("rect, path, circle, polygon, text") || element.closest("defs, pattern, mask")) return false
    const { fill, fillOpacity, visibility } = getComputedStyle(element), { width, height } = element.getBBox()
    const isSeen = element.checkVisibility() && visibility === "visible" && width * height > 0
    return isSeen && fill === "rgb(0, 0, 0)" && fillOpacity !== "0"
}).map(element => element.outerHTML.slice(0, 120))"""
EMPTY = """() => {
    const isEmpty = element => !element.textContent.trim() && !element.querySelector("svg, input, math")
    const parts = [...document.querySelectorAll("div[class^=ep-], p[class^=ep-], figure, table")]
    const wrong = parts.filter(e => isEmpty(e) && e.checkVisibility() && !e.closest("form, dialog"))
    for (const heading of document.querySelectorAll("h2")) {
        const below = []
        for (let e = heading.nextElementSibling; e && e.localName !== "h2"; e = e.nextElementSibling) below.push(e)
        if (below.every(isEmpty)) wrong.push(heading)
    }
    return wrong.map(element => element.outerHTML.slice(0, 120))
}"""
# A ¶ that nobody points at, a summary lower than the theme's icon in it, a heading that touches what is above it.
SQUEEZED = """() => {
    const box = element => element.getBoundingClientRect()
    const isLow = (element, icon) => {
        const { position, top, height } = getComputedStyle(element, icon)
        return position === "absolute" && parseFloat(top) + parseFloat(height) > element.offsetHeight + 1
    }
    const seen = selector => [...document.querySelectorAll(selector)].filter(element => element.checkVisibility())
    return [
        ...seen(".ep-table .headerlink").filter(element => getComputedStyle(element).opacity !== "0"),
        ...seen("[class^=ep-] summary").filter(e => isLow(e, "::before") || isLow(e, "::after")),
        ...seen("* + h2").filter(element => {
            const { height, bottom } = box(element.previousElementSibling)
            return height && box(element).top < bottom + 8
        })
    ].map(element => element.outerHTML.slice(0, 120))
}"""
TOOLS_ARE_THERE = """() =>
    [...document.querySelectorAll(".ep-tool")].every(e => e.querySelector("select, textarea, input, button"))"""


@pytest.mark.share(18, of="copies of the project")
@pytest.mark.browser
@pytest.mark.slow("builds a site of somebody else's with the wheel, and looks at it")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("theme", THEMES)
def test_on_another_site_every_macro_works(theme, unpacked, open_page, tmp_path):
    """Nothing is black or empty, by day or by night, no script complains, no other host is asked, no link is broken."""
    pages = their_site(tmp_path, theme)
    built = run(sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", cwd=tmp_path, env=unpacked)
    assert not built.stdout + built.stderr
    for page in pages:
        text = (tmp_path / "site" / page / "index.html").read_text("utf-8")
        assert "Twice 21 is 42. Theirs has 124,439,808 parameters." in text and "data-ep-" not in text
        assert not broken_links(text, tmp_path / "site", page)
    with served(tmp_path / "site") as address:
        for page in map(open_page, (address + page for page in pages)):
            until(page, TOOLS_ARE_THERE)
            page.wait_for_load_state("networkidle")  # the theme's search worker complains of a page that closes before
            assert not page.evaluate(EMPTY) and not page.evaluate(BLACK) and not page.evaluate(SQUEEZED)
            size = "document.querySelector('.ep-table').computedStyleMap().get('font-size').value"
            assert 13 < page.evaluate(size) < 16
            page.emulate_media(color_scheme="dark")
            page.evaluate("document.documentElement.dataset.bsTheme = 'dark'")
            data = page.evaluate("getComputedStyle(document.body).getPropertyValue('--ep-data')")
            assert data == "#7fb2ff" and not page.evaluate(BLACK)


def broken_links(text: str, site: Path, page: str) -> list[str]:
    """The links of a page to what the site does not have."""
    addresses = map(unescape, re.findall(r'<a[^>]*? (?:xlink:)?href="([^"]*)"', text))
    inside = [urljoin(f"/{page}", a.partition("#")[0]) for a in addresses if "://" not in a and not a.startswith("#")]
    return [path for path in inside if not (site / path[1:] / ("index.html" if path.endswith("/") else "")).is_file()]


# --- the lowest and the newest versions of the ranges -----------------------------------------------------------------


@pytest.mark.share(18, of="copies of the project")
@pytest.mark.slow("installs both ends of the ranges")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("resolution", ["lowest-direct", "highest"])
@pytest.mark.parametrize("what", ["tests", "site"])
def test_both_ends_of_the_ranges_work(resolution, what, tmp_path):
    """Mend: narrow the range in pyproject.toml to what works, and say there why."""
    python, requirements = environment(tmp_path / "venv"), tmp_path / "requirements.txt"
    uv(
        *("pip", "compile", "--resolution", resolution, "--only-binary", ":all:", "--python", python),
        *("--extra", "test", "--output-file", requirements, ROOT / "pyproject.toml"),
    )
    uv("pip", "install", "--python", python, "--requirements", requirements)
    uv("pip", "install", "--python", python, "--no-deps", "--editable", ROOT)
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1", "CI": "", "KEPT": "no"}
    if what == "tests":
        rooms = [f"tests/{room}" for room in sampled(("engine", "counting", "catalogue", "cli"), 2, resolution)]
        run(python, "-m", "pytest", "-q", "-n0", "-m", "quick", "--few", "1", *rooms, cwd=ROOT, env=quiet)
        return
    # A new version may render any page in another way; what an old one lacks, a few pages show.
    folder = ROOT if resolution == "highest" else small_site(tmp_path / "sources")
    quiet["PYTHONPATH"] = str(folder)
    built = run(python, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site", cwd=folder, env=quiet)
    assert (tmp_path / "site" / "models" / "llama" / "llama3-8b" / "index.html").exists()
    assert not built.stdout, built.stdout[-3000:]


# --- the licences -----------------------------------------------------------------------------------------------------


def test_the_licence_page_names_every_file_of_others_with_its_version():
    """Mend: a row for the file on docs/reference/licence.md, and its licence as a .txt beside it."""
    page = (ROOT / "docs/reference/licence.md").read_text("utf-8")
    carried = [p for p in (ROOT / "docs/assets/vendor").iterdir() if p.suffix not in (".txt", ".mts")]  # types are ours
    carried += (ROOT / "macros").rglob("*.min.js")
    assert len(carried) > 4
    for path in carried:
        (row,) = [line for line in page.splitlines() if f"`{path.name}`" in line]
        text = next(p for p in path.parent.glob("*.txt") if path.name in p.read_text("utf-8").partition("\n\n")[0])
        assert text.name in row
        assert set(re.findall(r"\d+\.\d+\.\d+", row)) <= set(re.findall(r"\d+\.\d+\.\d+", text.read_text("utf-8")))
        assert re.search(r"\d+\.\d+\.\d+", row)


def test_no_dependency_speaks_against_the_licence():
    """What is installed to build the site, and what that needs in turn, asks nothing of this code."""
    needed, seen = set(DEPENDENCIES), set()
    while needed:
        seen.add(name := needed.pop())
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:  # of another system
            continue
        data = distribution.metadata
        stated = [data.get("License-Expression") or "", (data.get("License") or "")[:80]]
        stated += [c for c in data.get_all("Classifier") or [] if c.startswith("License")]
        assert re.search(r"\b(MIT|BSD|ISC|Apache|MPL|PSF)\b", " ".join(stated)), f"{name}: {stated}"
        assert not re.search(r"\bA?GPL|General Public|Affero", " ".join(stated)), f"{name}: {stated}"
        requirements = [r for r in map(Requirement, distribution.requires or []) if not r.marker or r.marker.evaluate()]
        needed |= {canonicalize_name(r.name) for r in requirements} - seen
