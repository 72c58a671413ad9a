"""The picture that a link to a page is shared with. Those who publish install Pillow, and so does the job that does."""

import re
import struct
from types import SimpleNamespace

import pytest
from copies import build, small_site

from macros.catalogue import presets
from macros.site import shared_pictures
from macros.site.mkdocs import shared

ADDRESS = "https://example.org/numbers/"


def test_without_an_address_there_is_none():
    files = []
    assert shared.on_files(files, SimpleNamespace(site_url="", site_name="x")) == []
    assert shared.on_page_context({}, None, None, None) == {}


def test_a_models_three_figures_are_its_own():
    assert shared_pictures.figures(presets.model("llama3-8b")) == (
        "8,030,261,248 parameters",
        "131 kB of KV cache per token",
        "32 layers of width 4,096",
    )


@pytest.mark.skipif(not shared_pictures.can_be_made(), reason="no pictures: pip install -e '.[shared]' brings Pillow")
def test_each_page_of_a_published_site_names_its_picture(tmp_path):
    folder = small_site(tmp_path)
    assert build(folder, SITE_URL=ADDRESS).returncode == 0
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
    assert build(folder).returncode == 0 and not (folder / "site/shared").exists()
