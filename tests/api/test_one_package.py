"""`macros` and `every_parameter` are one package, whichever comes first; asking for it loads little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from copies import ROOT
from sampling import fewer

from macros.engine.architectures import architectures, modules_by_type

NAMES = "macros", "every_parameter"
# Made once, before anything of the package is imported: `import every_parameter` without an installation.
FIND = """
import importlib, importlib.machinery as machinery, importlib.util as util, sys
class Installed:
    def find_spec(name, path=None, target=None):
        if name == "every_parameter":
            return util.spec_from_file_location(name, "{root}/macros/__init__.py")
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in getattr(f, "__module__", "")]
sys.meta_path.append(Installed)
"""
SITE = (
    "mkdocs mkdocs_macros material markdown pymdownx jinja2 markupsafe py_mini_racer watchdog rich click yaml".split()
)


def python(code: str, *arguments: object, folder: Path = ROOT) -> str:
    """What a program prints that finds the package by both names."""
    call = [sys.executable, "-c", FIND.format(root=ROOT) + code, *map(str, arguments)]
    done = subprocess.run(call, cwd=folder, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("first, second", [NAMES, NAMES[::-1]])
def test_both_names_are_one_set_of_modules(first, second):
    """The same objects, one class of error, one cache; each module's own name is the first one's."""
    printed = python(
        """
first, second = sys.argv[1:]
one = {name: importlib.import_module(f"{first}{name}") for name in ("", ".api.model", ".engine.errors", ".catalogue")}
for name in ("", ".api.model", ".engine.errors", ".catalogue.presets", ".site.extensions.math"):
    other = importlib.import_module(f"{second}{name}")
    assert other is importlib.import_module(f"{first}{name}") is sys.modules[f"{second}{name}"], name
    assert other.__name__ == other.__spec__.name == f"{first}{name}", other.__spec__
    assert util.find_spec(f"{second}{name}") is other.__spec__
a, b = sys.modules[first], sys.modules[second]
assert a.Problem is b.Problem is one[".engine.errors"].Problem
try:
    b.load("no-such-model")
except a.Problem as problem:
    print(problem)
assert a.load("gpt2").inner is b.load("gpt2").inner
importlib.reload(b)
assert sys.modules[first] is a and a.load("gpt2").inner is b.load("gpt2").inner
for name in ("nowhere", "engine.nowhere"):
    try:
        importlib.import_module(f"{second}.{name}")
    except ModuleNotFoundError as error:
        assert error.name == f"{second}.{name}"
    else:
        raise AssertionError(name)
""",
        first,
        second,
    )
    assert printed.startswith("unknown model 'no-such-model'")


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    """A site has a folder `macros` of its own, and imports the package by its other name."""
    (tmp_path / "macros").mkdir()
    (tmp_path / "macros" / "__init__.py").write_text("mine = True\n")
    (tmp_path / "macros" / "engine.py").write_text("mine = True\n")
    code = """
sys.path.insert(0, ".")
import every_parameter.engine.errors as theirs, macros, macros.engine
assert macros.mine and macros.engine.mine and macros is not sys.modules["every_parameter"]
assert theirs.__name__ == "every_parameter.engine.errors"
print("apart")
"""
    assert python(code, folder=tmp_path) == "apart\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize("first, second", fewer([NAMES, NAMES[::-1]], 2))
def test_the_live_preview_forgets_a_module_by_both_names(first, second):
    """And finds it again by both, with those that import it: one new module."""
    code = """
first, second = sys.argv[1:]
old = importlib.import_module(f"{first}.views.kit.rounding")
assert importlib.import_module(f"{second}.views.kit.rounding") is old
importlib.import_module(f"{second}.api.fits")
from macros.site.mkdocs.preview.modules import PACKAGE, Modules
modules = Modules()
modules.read({*PACKAGE.rglob("*.py")})
gone = modules.forget({"macros.views.kit.rounding"})
assert {"macros.views.kit.rounding", "macros.api.fits"} <= gone and "macros.engine.dims" not in gone
assert not {f"{name}.{one}" for name in sys.argv[1:] for one in ("views.kit.rounding", "api.fits")} & {*sys.modules}
new = importlib.import_module(f"{second}.views.kit.rounding")
assert new is importlib.import_module(f"{first}.views.kit.rounding") is not old
print("one")
"""
    assert python(code, first, second).endswith("one\n")


def test_importing_loads_neither_numpy_nor_what_builds_the_site():
    printed = python(
        """
import every_parameter as ep
assert not {"numpy", "msgspec", "html", "every_parameter.engine"} & {*sys.modules}, "something is imported at once"
dir(ep), ep.load, ep.models, ep.compare, ep.fits, ep.run, ep.Table
several = "config drafts gguf_tables heads lightning likeness loops otherwise pooling rope_config tasks tensor_layouts"
shared = {*several.split()}  # what several are made of
architectures = {n.rpartition(".")[2] for n in sys.modules if n.startswith("every_parameter.engine.architectures.")}
assert architectures <= shared, architectures
m = ep.load("llama3-8b")
m.parameters.total, m.parameters.tensors.to_csv(), m.kv_cache(), m.flops(), m.memory(), m.what_if(n_layers=3)
m.to_dict(), m.figure("tokens_per_second", on="h100"), m.config, ep.fits(m, on="24GB"), ep.compare(m, "llama2-7b")
loaded = {n.rpartition(".")[2] for n in sys.modules if n.startswith("every_parameter.engine.architectures.")}
print(*sorted(loaded - shared))
print(*sorted({n.partition(".")[0] for n in sys.modules}))
"""
    )
    modules, packages = printed.splitlines()
    assert modules == "llama"
    assert not {*packages.split()} & {*SITE} - {"markupsafe"}  # of views' HTML, and no builder's


def test_the_types_that_are_read_off_the_sources_are_those_that_are_registered():
    """Mend: begin the call of `architecture` with the types, each in double quotes."""
    assert dict.fromkeys(modules_by_type(), 0).keys() == architectures().keys()
    assert {"llama": "llama", "ministral": "ministral"}.items() <= modules_by_type().items()


def test_importing_takes_at_most_twice_as_long_as_numpy():
    """In processor time, the best of several, of modules that are compiled."""
    code = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"
    best = {name: min(float(python(code.format(name))) for _ in range(4)) for name in ("numpy", "every_parameter")}
    assert best["every_parameter"] <= 2 * best["numpy"]
