"""Copies of the project to edit and to build: a small one that builds soon, and a whole one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PRESETS = (
    "gpt/gpt2",
    "llama/llama3-8b",
    "llama/llama3-70b",
    "mistral/mixtral-8x7b",
    "deepseek/deepseek-v3",
    "claude/claude-3-opus",
)
PAGES = {
    "index.md": '# Start\n\nGPT-2 has {{ params("gpt2") }} parameters. [Next](guide/one.md#a-section)\n\n'
    "{{ catalogue() }}\n",
    "guide/one.md": '# One\n\n## A section\n\n{{ value("llama3-8b", "d_model") }} and $L \\cdot D$.\n\n'
    '{{ parameter_table("llama3-8b") }}\n',
    "guide/two.md": '# Two\n\n{{ comparison(["gpt2", "mixtral-8x7b"], ["d_model", "total"]) }}\n',
    "guide/three.md": "---\ntitle: Three\n---\n\nProse only, [back](../index.md).\n",
    "models/index.md": "# Models\n\n{{ catalogue() }}\n",
}
NOT_IN_NAV = "/guide/three.md"
BEING_WRITTEN = "*.pyc.*"  # a compiled module, by another process
NAV = f"\nnot_in_nav: |\n  {NOT_IN_NAV}\n  /guide/new*.md\n"
NAV += "\nnav:\n  - Home: index.md\n  - guide/one.md\n  - guide/two.md\n  - Models:\n      - models/index.md\n"


def small_site(folder: Path, presets: tuple[str, ...] = PRESETS, pages: dict[str, str] = PAGES, nav: str = NAV) -> Path:
    """A copy of the site with a few presets and pages."""
    shutil.copytree(ROOT / "macros", folder / "macros", ignore=shutil.ignore_patterns("presets", BEING_WRITTEN))
    for name in presets:
        (folder / f"macros/presets/{name}.toml").parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / f"macros/presets/{name}.toml", folder / f"macros/presets/{name}.toml")
    for name in ("assets", "overrides", "includes"):
        shutil.copytree(ROOT / "docs" / name, folder / "docs" / name)
    for name, text in pages.items():
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / name).write_text(text, "utf-8")
    (folder / "macros/site/moved.toml").write_text("")  # leads to pages that are not there
    config = (ROOT / "mkdocs.yml").read_text("utf-8")
    (folder / "mkdocs.yml").write_text(config[: config.index("\nnav:")] + nav, "utf-8")
    return folder


def whole(folder: Path, *more: str) -> Path:
    """A copy of the macros, the pages and the settings, and of more files or folders."""
    for name in ("macros", "docs", "mkdocs.yml", *more):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("node_modules", BEING_WRITTEN))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


def environment(**more: str) -> dict[str, str]:
    quiet = {"NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**os.environ, **quiet, "PROCESSES": "1", **more}  # other tests use the other cores


def build_process(folder: Path, *options: str, **variables: str) -> subprocess.Popen:
    """`mkdocs build` in a copy, into its `site/` unless the options say where."""
    return subprocess.Popen(
        [sys.executable, "-m", "mkdocs", "build", *options],
        cwd=folder,
        env=environment(**{"SITE_URL": "", "PYTHONPATH": str(folder), **variables}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def build(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess:
    """A `build_process` that has ended."""
    with build_process(folder, *options, **variables) as process:
        said = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, *said)
