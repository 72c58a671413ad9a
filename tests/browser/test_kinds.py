"""A page of each kind as it is loaded and read: what it weighs, that nothing moves, and that axe finds nothing."""

import gzip
import re
from functools import cache
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from chromium import ALL_LAID, accessibility, until
from kinds import KINDS
from serving import SUBPATH, own_assets

pytestmark = pytest.mark.browser

LONG = "model-size/", "life-of-a-tensor/", "checked-claims/"  # axe looks at these in the slow test alone
# And here once at these.
LARGE = "models/", "models/gpt/gpt2/", "reference/glossary/", "costs/kv-cache/", "what-happens/attention-deep-dive/"
VIEWS = (1280, "light"), (390, "dark"), (1280, "dark"), (390, "light")
MOVED = """
    window.moved = 0
    new PerformanceObserver(all => all.getEntries().forEach(e => moved += e.value)).observe({ type: "layout-shift" })
"""


@cache
def compressed(path: Path) -> int:
    """The bytes that a server sends; a font is compressed already."""
    return path.stat().st_size if path.suffix == ".woff2" else len(gzip.compress(path.read_bytes()))


def file_of(folder: Path, address: str) -> Path:
    path = folder / urlsplit(address).path.removeprefix(SUBPATH).lstrip("/")
    return path / "index.html" if path.is_dir() else path


def soon(path: str) -> tuple:
    """The views of a page that axe looks at in each run; the slow test has the others."""
    if path in LONG or path not in KINDS:
        return ()
    return VIEWS[1:2] if path in LARGE else VIEWS[:2]


def finds(page, views) -> list[str]:
    page.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
    lines = []
    for width, scheme in views:
        page.set_viewport_size({"width": width, "height": 900})
        lines += accessibility(page, scheme)
    return lines


@pytest.mark.share(5)
@pytest.mark.parametrize("path", KINDS)
def test_a_page_is_light_still_and_read_by_all(open_page, site, site_folder, path):
    """Its first load, without the fonts if they come late, and what axe finds of any rule, all parts open."""
    asked = []

    def watch(page):
        page.add_init_script(MOVED)
        page.on("request", lambda request: asked.append(request.url))
        page.route("**/*.woff2", lambda route: route.abort())

    page = open_page(urljoin(site, path), before=watch)
    page.wait_for_load_state("networkidle")
    open_page.complaints[:] = [said for said in open_page.complaints if "ERR_FAILED" not in said]  # the fonts
    loaded = {file_of(site_folder, address) for address in asked}
    weights = {str(file.relative_to(site_folder)): compressed(file) for file in loaded}
    assert sum(weights.values()) <= KINDS[path], weights
    assert page.evaluate("moved") < 0.005  # Lighthouse calls less than 0.1 good
    fonts = {file.name for file in loaded if file.suffix == ".woff2"}
    preloaded = page.locator("link[rel=preload][as=font]").evaluate_all("all => all.map(e => e.href.split('/').at(-1))")
    assert fonts == set(preloaded)
    assert not finds(page, soon(path))


@pytest.mark.share(24)
@pytest.mark.slow("axe takes up to half a minute for each view of a page")
@pytest.mark.parametrize("path", [*KINDS, "models/jamba/jamba-v0.1/"])
def test_axe_finds_nothing_in_any_view(open_page, site, path):
    assert not finds(open_page(urljoin(site, path)), [view for view in VIEWS if view not in soon(path)])


def test_no_script_blocks_and_no_font_changes_what_is_read(site_folder):
    """What comes from a file of its own waits until the page is seen."""
    displays = re.findall(r"font-display: ?(\w+)", (own_assets(site_folder) / "styles.css").read_text("utf-8"))
    assert set(displays) == {"optional"}
    for path in KINDS:
        page = file_of(site_folder, f"{SUBPATH}/{path}").read_text("utf-8")
        parts = re.split("<template[^>]*>|</template>", page)  # a figure may have some, too
        now, later = "".join(parts[::2]), "".join(parts[1::2])
        assert not re.search(r"<script(?![^>]*\bdefer\b)[^>]*\bsrc=", now), path
        assert re.findall(r"<script[^>]*\bsrc=", later), path


@pytest.mark.parametrize("path", ["costs/kv-cache/", "model-size/", "real-numbers/step-by-step/"])
def test_what_is_left_for_later_on_a_phone_is_there(open_page, site, path):
    """As soon as the page rests; and without the script when a reader comes near it, and on paper."""
    narrow, waits = {"width": 390, "height": 844}, f"!({ALL_LAID})()"
    until(open_page(urljoin(site, path), viewport=narrow), ALL_LAID)
    page = open_page(urljoin(site, path), viewport=narrow, java_script_enabled=False)
    assert page.evaluate(waits), "nothing is left for later"
    page.emulate_media(media="print")
    assert not page.evaluate(waits)
    page.emulate_media(media="screen")
    last = page.locator(".md-content :is(.ep-figure, .ep-step, tbody tr):visible").last
    last.scroll_into_view_if_needed()
    is_seen = "e => e.checkVisibility({ contentVisibilityAuto: true }) && e.innerText.trim() !== ''"
    until(page, is_seen, last.element_handle())


def test_a_machine_that_never_rests_lays_it_out_too(open_page, site):
    """Within seconds, where nothing is left of the time between frames."""
    never = (
        "window.requestIdleCallback = (f, { timeout } = {}) => timeout && setTimeout(f, timeout, { didTimeout: true })"
    )
    page = open_page(
        urljoin(site, "model-size/"),
        before=lambda page: page.add_init_script(never),
        viewport={"width": 390, "height": 844},
    )
    until(page, ALL_LAID)


def test_what_is_in_the_drawer_is_there_while_it_is_open(open_page, site):
    """Closed, it is neither laid out nor reached by keyboard."""
    page = open_page(urljoin(site, "models/gpt/gpt2/"), viewport={"width": 390, "height": 844})
    link = page.locator(".md-sidebar--primary a", has_text="GPT-2 Medium").first
    shown = "e => e.checkVisibility()"
    assert not link.evaluate(shown)
    page.locator("header label[for=__drawer]").first.click()
    until(page, shown, link.element_handle())
    link.focus()
    assert link.evaluate("e => e === document.activeElement")
    page.locator(".md-overlay").click(position={"x": 380, "y": 400})
    until(page, "e => !e.checkVisibility()", link.element_handle())
    link.focus()
    assert not link.evaluate("e => e === document.activeElement")


@pytest.mark.parametrize("path", ["models/", "models/gpt/gpt2/", "tools/what-if/"])
def test_nothing_waits_for_a_script_that_does_not_come(open_page, site, path):
    """Where a host does not serve modules as scripts, what was kept free for them is given back."""
    page = open_page(urljoin(site, path), before=lambda page: page.route("**/*.mjs", lambda route: route.abort()))
    open_page.complaints.clear()
    page.evaluate("document.getAnimations().forEach(animation => animation.finish())")
    holes = page.evaluate("""() => [...document.querySelectorAll(".md-content *")].filter(e => {
        const { visibility, position, minHeight } = getComputedStyle(e)
        const isHidden = visibility === "hidden" && getComputedStyle(e.parentElement).visibility === "visible"
        return isHidden && position !== "absolute" && e.offsetHeight || parseFloat(minHeight) > 100
    }).map(e => e.outerHTML.slice(0, 120))""")
    assert not holes
