"""The picture that a link to a page is shared with. Those who publish install Pillow; one test does, for itself."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from copies import ROOT, build, small_site

from macros.catalogue import presets
from macros.site import shared_pictures
from macros.site.mkdocs import shared

ADDRESS = "https://example.org/numbers/"


def test_without_an_address_there_is_none():
    files = []
    assert shared.on_files(files, SimpleNamespace(site_url="", site_name="x")) == []
    assert shared.on_page_context({}, None, None, None) == {}


def test_a_models_three_figures_are_its_own():
    assert not [one for one in shared_pictures.figures(presets.model("bert-base")) if "cache" in one]  # an encoder
    assert shared_pictures.figures(presets.model("llama3-8b")) == (
        "8,030,261,248 parameters",
        "131 kB of KV cache per token",
        "32 layers of width 4,096",
    )


def with_pillow(folder: Path) -> str:
    """A PYTHONPATH with the extra `shared` beside a copy; in the environment of the tests every build would draw."""
    wanted = ["--constraint", ROOT / ".ci/constraints.txt", "pillow"]
    subprocess.run(
        [sys.executable, "-m", "uv", "--quiet", "pip", "install", "--target", folder / "more", *wanted], check=True
    )
    return os.pathsep.join(map(str, (folder, folder / "more")))


@pytest.mark.slow("installs Pillow, and builds a site that is published")
def test_each_page_of_a_published_site_names_its_picture(tmp_path):
    folder = small_site(tmp_path)
    path = with_pillow(folder)
    made = build(folder, SITE_URL=ADDRESS, PYTHONPATH=path)
    assert made.returncode == 0, made.stderr
    pages = list((folder / "site").rglob("index.html"))
    named = {page: re.findall(r'<meta property="og:image" content="(.*?)">', page.read_text("utf-8")) for page in pages}
    own = [images for page, images in named.items() if "models/llama/llama3-8b" in str(page)]
    assert own == [[f"{ADDRESS}shared/llama3-8b.png"]]
    for page, images in named.items():
        if 'http-equiv="refresh"' in page.read_text("utf-8"):
            continue
        assert len(images) == 1 and images[0].startswith(ADDRESS), page
        picture = (folder / "site" / images[0].removeprefix(ADDRESS)).read_bytes()
        assert picture[:4] == b"\x89PNG" and struct.unpack(">II", picture[16:24]) == shared_pictures.SIZE
        assert len(picture) < 100_000
    assert build(folder, PYTHONPATH=path).returncode == 0 and not (folder / "site/shared").exists()
