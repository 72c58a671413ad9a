"""`model_pages` and `tool_files` handed to MkDocs: its navigation, its objects for files that are not in `docs/`."""

from __future__ import annotations

import logging
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, InclusionLevel

from .. import kept
from ..catalogue.names import check_path
from ..engine.errors import Problem
from . import model_pages, tool_files
from .preview import preview
from .preview.inputs import Inputs

log = logging.getLogger("mkdocs.macros.site")

KEPT = ".cache/views.sqlite"


def on_config(config):
    """The families below "Models" in the navigation. What was kept of the views of a build before is at hand."""
    inputs = preview.inputs if preview.serving else Inputs(config)
    if not preview.serving:
        inputs.begin()
    kept.begin(Path(config.config_file_path).parent / KEPT, inputs.states, None if preview.serving else inputs.read)
    if config.nav:
        config.nav = model_pages.with_families(config.nav)
    return config


def on_files(files, config):
    """The generated pages. A wrong preset refuses the build; under live preview its page shows what is wrong."""
    for file in files:
        if file.src_dir == config.docs_dir:  # else it is the theme’s
            try:
                check_path(file.src_uri)
            except Problem as problem:
                raise PluginError(str(problem.at("docs"))) from None
    wrong = model_pages.problems()
    if wrong and config.plugins["macros"].config["on_error_fail"]:
        raise PluginError("\n".join(map(str, wrong.values())))
    for problem in wrong.values():
        log.error(problem)
    for page in (*model_pages.pages(), *tool_files.generated()):
        if files.get_file_from_path(page.path) is None:  # else it is written by hand, and stays
            file = File.generated(config, page.path, content=page.content, inclusion=InclusionLevel.NOT_IN_NAV)
            file.edit_uri = page.edit  # pyright: ignore[reportAttributeAccessIssue]  a cached property, to be set
            files.append(file)
    return files


def on_post_build_late(config):
    kept.end()
