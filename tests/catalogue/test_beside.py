"""A save of a preset leaves the pages of other models as they are, while what they show of it stays."""

import re
import shutil

import pytest

from macros.cache import memory
from macros.catalogue import presets
from macros.catalogue.beside import OWN, OWN_SOURCES, shown_beside
from macros.views.models.cache_peers import cache_peers
from macros.views.models.model_changes import model_changes

SLUG, OTHERS = "llama3-8b", ("llama2-7b", "llama3.1-8b", "gpt2")
TEXTS = {
    "organization": '"Nobody"',
    "released_source": '"a letter"',
    "licence": '"none"',
    "licence_source": '"a guess"',
    "aliases": '["a/b"]',
    "headline": '"9B"',
    "note": '"A note."',
    "config": '"a drawer"',
    "verified": "2001-01-01",
}
SHOWN = {"name": '"Another Llama"', "caveat": '"Not counted: this."', "released": "2031-01-01"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for family in ("llama", "gpt"):
        shutil.copytree(presets.FOLDER / family, tmp_path / family)
    everything = {("presets", None), *(("preset", path.stem) for path in presets.FOLDER.rglob("*.toml"))}
    with monkeypatch.context() as patch:
        patch.setattr(presets, "FOLDER", tmp_path)
        memory.invalidate(everything)
        yield tmp_path
    memory.invalidate(everything)


def write(path, key: str, value: str) -> None:
    """Give a key of a preset a value, or of its sources."""
    text = path.read_text("utf-8")
    text = re.sub(rf"^{key} = .*\n", "", text, count=1, flags=re.M)
    start = text.index("[sources]\n") + len("[sources]\n") if key in OWN_SOURCES else 0
    path.write_text(f"{text[:start]}{key} = {value}\n{text[start:]}", "utf-8")


def views() -> list[str]:
    return [view(slug) for slug in OTHERS for view in (cache_peers, model_changes)]


def test_the_texts_of_its_own_page_are_shown_on_no_other(folder):
    path = folder / f"llama/{SLUG}.toml"
    assert TEXTS.keys() >= (OWN | OWN_SOURCES) - {"sources", "licence_looked_at"}
    before, shown = views(), shown_beside(SLUG)
    for key, value in TEXTS.items():
        write(path, key, value)
    memory.invalidate({("preset", SLUG)})
    assert presets.preset(SLUG).note == "A note." and presets.preset(SLUG).sources.config == "a drawer"
    memory.invalidate({("preset", slug) for slug in presets.paths()})  # nothing is remembered
    assert views() == before and shown_beside(SLUG) == shown


@pytest.mark.parametrize("key", SHOWN)
def test_what_other_pages_show_is_compared(folder, key):
    before, shown = views(), shown_beside(SLUG)
    with memory.tracking() as used:
        views()
    assert ("beside", SLUG) in used and ("preset", SLUG) not in used
    write(folder / f"llama/{SLUG}.toml", key, SHOWN[key])
    memory.invalidate({("preset", SLUG)})
    assert views() != before and shown_beside(SLUG) != shown
