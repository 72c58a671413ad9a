"""What no build can read, or should not, is left out and named; what is right stays, also a link inside the project."""

import os
from pathlib import Path

import pytest
from mkdocs.config import load_config
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import get_files

from macros.site.mkdocs import left_out


@pytest.fixture
def docs(tmp_path) -> Path:
    (tmp_path / "project/docs").mkdir(parents=True)
    (tmp_path / "project/mkdocs.yml").write_text("site_name: A\n")
    (tmp_path / "project/README.md").write_text("# Read me\n")
    (tmp_path / "elsewhere.md").write_text("# Elsewhere\n")
    return tmp_path / "project/docs"


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(left_out.LARGEST + 1)


WRONG = {
    "a pipe": ("pipe.md", os.mkfifo, "left out: cannot be read: it is a device or a pipe, not a file"),
    "a pipe for a picture": ("pipe.png", os.mkfifo, "left out: cannot be read: it is a device or a pipe"),
    "a device": ("zero.png", lambda path: path.symlink_to("/dev/zero"), "left out: it is a link to /dev/zero, outside"),
    "a link out of the project": (
        "out.md",
        lambda path: path.symlink_to("../../elsewhere.md"),
        "elsewhere.md, outside",
    ),
    "a link to nothing": (
        "none.md",
        lambda path: path.symlink_to("none-at-all.md"),
        "left out: cannot be read: No such",
    ),
    "a huge file": ("huge.bin", huge, "left out: it has 1,000,000,001 bytes, more than hosts of sites take"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_it_is_left_out_by_name(docs, caplog, kind):
    name, make, said = WRONG[kind]
    make(docs / name)
    (docs / "index.md").write_text("# A\n")
    (docs / "read.md").symlink_to("../README.md")
    (docs / ".#index.md").symlink_to("somebody@there.1:2")  # Emacs has it open
    config = load_config(str(docs.parent / "mkdocs.yml"))
    files = get_files(config)
    left_out.on_files(files, config)
    assert {"index.md", "read.md"} <= files.src_uris.keys() and name not in files.src_uris
    [line] = caplog.messages
    assert line.startswith(f"docs/{name}: left out: ") and said in line and "; " in line


def test_a_link_to_a_folder_around_it_ends_a_build_in_one_line(docs):
    (docs / "guide").mkdir()
    (docs / "shared").symlink_to("guide")
    config = load_config(str(docs.parent / "mkdocs.yml"))
    left_out.on_config(config)
    (docs / "guide/up").symlink_to("..")
    with pytest.raises(
        PluginError, match=r"^docs/guide/up: it is a link to docs, a folder around it.*; delete the link$"
    ):
        left_out.on_config(config)
    (docs / "guide/up").unlink()
    (docs / "guide/all").symlink_to("/")
    with pytest.raises(PluginError, match=r"^docs/guide/all: it is a link to a folder outside of the project; copy"):
        left_out.on_config(config)
