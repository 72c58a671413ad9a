"""Settings that have no effect here are told, each in one line with its reason; those of the site are none of them."""

from __future__ import annotations

import pytest
from copies import ROOT, build, small_site
from mkdocs.config import load_config

from macros.site.mkdocs.settings import without_effect

SETTINGS = (ROOT / "mkdocs.yml").read_text("utf-8")


def told(text: str, path) -> list[str]:
    for folder in ("  - macros", "custom_dir: docs/overrides"):
        name = folder.split()[-1]
        text = text.replace(f"{folder}\n", folder.replace(name, f"{ROOT}/{name}") + "\n")
    path.write_text(text.replace("hooks:\n  - macros/site/mkdocs/hooks.py\n", ""), "utf-8")
    config = load_config(str(path), docs_dir=str(ROOT / "docs"))
    return list(map(str, without_effect(config, text.splitlines())))


def test_the_settings_of_the_site_have_an_effect(tmp_path):
    assert told(SETTINGS, tmp_path / "mkdocs.yml") == []


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (
            "    - navigation.top\n",
            "    - navigation.top\n    - navigation.instant\n",
            "theme.features: navigation.instant has",
        ),
        ("  name: material\n", "  name: material\n  language: de\n", "theme.language: de is the theme's texts alone"),
        ("  font: false", "  font: {text: Roboto}", "theme.font: a font of another host is blocked"),
        ("plugins:\n", "plugins:\n  - search\n", "plugins: search has no effect: this site has a search of its own"),
        ("extra:\n", "extra:\n  version: {provider: mike}\n", "extra: version has no effect: "),
        ("extra:\n", "extra:\n  analytics: {provider: google, property: G-1}\n", "extra: analytics has no effect: "),
        (
            "extra_javascript:\n",
            "extra_javascript:\n  - https://example.org/a.js\n",
            "extra_javascript: https://example.org/a.js is of another host, and blocked",
        ),
        ("  - Home: index.md\n", "  - Home: index.md\n  - Again: index.md\n", "nav: index.md is there twice"),
    ],
)
def test_a_setting_without_effect_is_one_line(tmp_path, before, after, says):
    assert before in SETTINGS
    [line] = told(SETTINGS.replace(before, after, 1), tmp_path / "mkdocs.yml")
    assert says in line and line.startswith("mkdocs.yml:")


@pytest.mark.processes
def test_a_build_tells_it_and_a_strict_one_ends(tmp_path):
    site = small_site(tmp_path / "site")
    path = site / "mkdocs.yml"
    path.write_text(
        path.read_text("utf-8").replace("    - navigation.top\n", "    - navigation.top\n    - toc.follow\n")
    )
    built = build(site, "--strict")
    assert built.returncode == 1 and "theme.features: toc.follow has no effect: this site has a script" in built.stderr
