"""Python modules under live preview: an edited one is reloaded together with those that import it, and no others."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

from ....api import one_package

PACKAGE = Path(__file__).parent.parent.parent.parent
ROOT = PACKAGE.parent


KEPT = {
    *("macros", "macros.api", "macros.api.one_package", "macros.cache", "macros.cache.memory"),
    *("macros.site", "macros.site.editors", "macros.site.mkdocs", "macros.site.mkdocs.hooks"),
}


def module_name(path: Path) -> str:
    """`macros/views/tables/parameters.py` as `macros.views.tables`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_kept(name: str) -> bool:
    """Whether a module cannot be reloaded: MkDocs holds the hooks, the hooks hold the preview, and both hold caches."""
    return name in KEPT or f"{name}.".startswith("macros.site.mkdocs.preview.")


def imports_of(name: str, tree: ast.AST, takes_all: bool, is_package: bool) -> set[str]:
    """The modules of this package that a module may import: names with a trailing dot include all below."""
    package = name if is_package else name.rpartition(".")[0]
    imported = {package + "."} if takes_all else set()
    if package != "macros":
        imported.add(package)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, (base, node.module)))
            if base.partition(".")[0] == "macros":
                imported |= {base} - {"macros"} | {f"{base}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            imported |= {a.name for a in node.names if a.name.startswith("macros.")}
    return imported - {name}


def dependants(names: set[str], imports: dict[str, set[str]]) -> set[str]:
    """The modules and all modules that import them, directly or not."""
    affected, before = set(names), set()
    while affected != before:
        before = set(affected)
        affected |= {
            m
            for m, wanted in imports.items()
            if wanted & affected
            or any(w.endswith(".") and any(name.startswith(w) for name in affected) for w in wanted)
        }
    return affected


def readers(path: Path) -> set[Path]:
    """The modules that read a data file: those in its folder that mention it."""
    beside = [module for module in path.parent.glob("*.py") if module.stem.isidentifier()]
    return {module for module in beside if f'"{path.name}"' in module.read_text("utf-8", errors="replace")}


class Modules:
    """The package's modules: the imports of each, and those that Python cannot read."""

    def __init__(self):
        self.imports: dict[str, set[str]] = {}
        self.broken: dict[str, SyntaxError | ValueError] = {}

    def read(self, saved: set[Path]) -> None:
        for path in saved:
            name = module_name(path)
            self.broken.pop(name, None)
            try:
                source = path.read_text("utf-8-sig")  # Python accepts a byte-order mark
                self.imports[name] = imports_of(
                    name, ast.parse(source, str(path)), "import_module" in source, path.name == "__init__.py"
                )
            except FileNotFoundError:
                self.imports.pop(name, None)
            except (SyntaxError, ValueError) as error:
                self.broken[name] = error

    def forget(self, names: set[str] | None) -> set[str]:
        """Unload modules and those that import them (None: all), so that they are imported again; returns their
        names."""
        loaded = {name: known_as for name, known_as in one_package.loaded().items() if not is_kept(name)}
        forgotten = loaded.keys() if names is None else dependants(names, self.imports) & loaded.keys()
        for name in forgotten:
            module = sys.modules[loaded[name][0]]
            for known_as in loaded[name]:
                del sys.modules[known_as]
                parent, _, last = known_as.rpartition(".")
                if parent in sys.modules and hasattr(sys.modules[parent], last):
                    delattr(sys.modules[parent], last)  # `from . import x` would find the old one
            if close := getattr(module, "close", None):
                close()
        importlib.invalidate_caches()
        return set(forgotten)
