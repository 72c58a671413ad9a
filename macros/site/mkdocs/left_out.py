"""Files of `docs/` that no build reads, each left out and reported: a pipe or a device hangs it, a link may lead
anywhere, a huge file fills the disk."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ...engine.errors import Problem
from ...engine.files import size_of
from ..editors import is_an_editors
from .markdown import tell_one
from .preview.inputs import refuse_linked_folders

LARGEST = 10**9  # bytes of a file


def on_config(config):
    refuse_linked_folders(config)


def on_files(files, config):
    roots = {Path(os.path.realpath(root)) for root in (config.docs_dir, Path(config.config_file_path or ".").parent)}
    for file in list(files):
        if file.generated_by is None and file.src_dir == config.docs_dir and not is_an_editors(file.src_uri):
            try:
                verify(Path(file.abs_src_path), roots)
            except Problem as problem:
                files.remove(file)
                tell_one(Problem(f"left out: {problem.what}", problem.mend, f"docs/{file.src_uri}"), logging.WARNING)


def verify(path: Path, roots: set[Path]) -> None:
    """Raise `Problem` for anything that cannot be read as a file of this site."""
    to = Path(os.path.realpath(path))
    if not any(map(to.is_relative_to, roots)):
        raise Problem(f"it is a link to {to}, outside of the project", "copy the file into docs/")
    if (size := size_of(path)) > LARGEST:
        raise Problem(f"it has {size:,} bytes, more than hosts of sites take", "keep it elsewhere, and link to it")
