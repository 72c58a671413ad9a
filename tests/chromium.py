"""Chromium: pages that report what stands on their console and which hosts they ask, and what tests ask of a page."""

import os
import shutil
import time
from urllib.parse import urlsplit

import pytest
from sampling import CI, sampled


def chromium_path():
    """Where Chromium is; None for none."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="session")
def browser():
    """Chromium. Without one the tests in a browser are skipped, unless CI is set."""
    path = chromium_path()
    if not path:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Chromium found: install it, or name it in CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no other host
            ],
        )
        yield chromium
        chromium.close()


# Where a test does more than look and press, its page is not given to the next one.
LEAVES = "add_init_script", "expose_binding", "expose_function", "on", "once", "route"
# What scripts have kept goes with their page, also what they keep as it goes.
FORGET = """() => {
    const forget = () => {
        if (origin !== "null") for (const storage of [localStorage, sessionStorage]) storage.clear()
    }
    for (const when of ["pagehide", "visibilitychange", "unload"]) addEventListener(when, forget)
    forget()
}"""


class Tab:
    """A page in a context of its own. Chromium takes a third of a second for a new one, so tests of the whole site take
    one after another the same where its options are.
    """

    def __init__(self, browser, size, options):
        self.context = browser.new_context(viewport=size, **options)
        self.page, self.complaints, self.asked = self.context.new_page(), [], ""
        self.options, self.is_left, page = options, False, self.page
        self.goes, page.goto = page.goto, self.goto
        page.on(
            "console",
            lambda m: (
                self.complaints.append(f"{page.url}: {m.type}: {m.text}")
                if m.type in ("error", "warning")
                and "preload but not used within a few seconds" not in m.text  # a slow machine's, or without scripts
                and not m.location["url"].endswith("/favicon.ico")  # a page of a test's own has none
                else None
            ),
        )
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on("requestfailed", self.look_at)
        page.on("response", lambda response: self.look_at(response.request, response.status))
        page.add_init_script(CAME)
        self.session = self.context.new_cdp_session(page)
        for name in LEAVES:
            setattr(page, name, self.leaving(getattr(page, name)))

    def leaving(self, does):
        def left(*args, **how):
            self.is_left = True
            return does(*args, **how)

        return left

    def look_at(self, request, status=0):
        url = urlsplit(request.url)
        if url.scheme in ("http", "https") and url.netloc != urlsplit(self.asked).netloc:
            self.complaints.append(f"asked another host: {request.url}")
        if status >= 400:
            self.complaints.append(f"{self.page.url}: {status} {request.url}")

    def as_new(self, size, address):
        """As if nobody had been here. What a page of the same address would be given back is not kept either."""
        self.page.evaluate(FORGET)
        self.context.clear_cookies()
        if self.page.url.partition("#")[0] == address.partition("#")[0]:
            self.goes("about:blank")
        self.session.send("Page.resetNavigationHistory")
        self.page.emulate_media(media="null", color_scheme="null", reduced_motion="null", forced_colors="null")
        self.page.set_viewport_size(size)
        self.page.mouse.move(0, 0)

    @property
    def is_as_before(self):
        return not self.is_left and not self.page.is_closed() and len(self.context.pages) == 1

    def goto(self, address, **how):
        answer = self.goes(address, **{"wait_until": "load", **how})
        if self.options.get("java_script_enabled", True):
            until(self.page, ALL_CAME)
        return answer


@pytest.fixture(scope="session")
def tabs(browser):
    """Those that tests have left as they were, by their options."""
    tabs = {}
    yield tabs
    for tab in tabs.values():
        tab.context.close()


@pytest.fixture
def open_page(browser, tabs, pytestconfig):
    """`open_page(address, **context)` opens a page, after `before(page)`; at the end nothing may stand on its console,
    no other host may have been asked.
    """
    opened, complaints = [], []

    def open_(address, before=None, **options):
        size = options.pop("viewport", {"width": 1280, "height": 900})
        is_shared = (
            not before and options.keys() <= {"java_script_enabled"} and address.startswith(pytestconfig.site[1])
        )
        tab = tabs.pop(repr(options), None) if is_shared else None
        if tab:
            tab.as_new(size, address)
        else:
            tab = Tab(browser, size, options)
            tab.is_left = not is_shared
            if before:
                before(tab.page)
        opened.append(tab)
        tab.complaints, tab.asked = complaints, address
        tab.page.goto(address)
        return tab.page

    open_.complaints = complaints
    yield open_
    for tab in opened:
        if tab.is_as_before and repr(tab.options) not in tabs:
            tab.complaints = []
            tabs[repr(tab.options)] = tab
        else:
            tab.context.close()
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def open_watched(open_page):
    """Like `open_page`, with the addresses that the page asks for: `page, asked = open_watched(address, **context)`."""

    def open_(address, **options):
        asked = []

        def watch(page):
            page.on("request", lambda request: asked.append(request.url))

        return open_page(address, before=watch, **options), asked

    return open_


@pytest.fixture
def page(open_page, site):
    """The home page in a fresh browser context."""
    return open_page(site)


def overflow(page):
    """By how many pixels the page is wider than the screen."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


MOVING = """() => [document.documentElement, ...document.querySelectorAll("body, body *")].filter(e => {
    const { transitionDuration, animationDuration, scrollBehavior } = getComputedStyle(e)
    return `${transitionDuration}, ${animationDuration}`.split(",").some(d => parseFloat(d) > 0.001)
        || scrollBehavior !== "auto"
}).length"""


def moving(page):
    """How many elements would move, for a reader who asked for less motion."""
    page.emulate_media(reduced_motion="reduce")
    count = page.evaluate(MOVING)
    page.emulate_media(reduced_motion="null")
    return count


def ignored(page):
    """What a tool says of the parts of an address that it does not take: one line, not too long."""
    line = page.get_by_role("alert").filter(has_text="Ignored parts of the link")
    line.wait_for()
    said = line.inner_text()
    assert len(said) < 1500
    return said


def until(page, is_so, arg=None, seconds=30):
    """Wait until an expression, or a function of `arg`, is true in the page.

    Playwright's own `wait_for_function` asks again by `eval` in the page, which the site's policy forbids: it fails
    wherever the answer is not yes at once.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(is_so, arg):
        assert time.monotonic() < end, f"not within {seconds} s: {is_so}"
        page.wait_for_timeout(20)


# The scripts that came, or did not, and whether all that a page loads once it is seen have.
CAME = """
    window.came = new Set()
    const note = ({ target: { src } }) => src && setTimeout(() => came.add(src), 20) // the theme begins just after it
    for (const how of ["load", "error"]) document.addEventListener(how, note, true)
"""
ALL_CAME = """() => {
    const later = [...document.querySelectorAll("body > template")].map(e => [...e.content.querySelectorAll("script")])
    const isRun = one => location.protocol !== "file:" || one.type !== "module"
    return later.flat().filter(isRun).every(one => came.has(new URL(one.getAttribute("src"), location).href))
}"""


# Leaves the first of what looks alike, with all that is in it and all that it stands in: the contrast of one is that of
# all. Given false, brings the others back.
ONE_OF_EACH_LOOK = """leave => {
    for (const e of document.querySelectorAll("[data-alike]")) {
        e.style.display = ""
        e.removeAttribute("data-alike")
    }
    const numbers = new Map(), numbered = key => numbers.get(key) ?? numbers.set(key, numbers.size).get(key)
    const LOOK = ["color", "backgroundColor", "backgroundImage", "fill", "opacity", "filter", "fontSize", "fontWeight",
        "display", "visibility", "textShadow"]
    const own = e => { const style = getComputedStyle(e); return `${e.localName} ${LOOK.map(name => style[name])}` }
    const remembered = (known, of) => e => known.get(e) ?? known.set(e, numbered(of(e))).get(e)
    const inside = remembered(new Map(), e => `in ${own(e)}: ${[...e.children].map(inside)}`)
    const around = remembered(new Map(), e => (e ? `around ${own(e)}: ${around(e.parentElement)}` : "nothing"))
    const seen = new Set(), alike = new Set()
    for (const e of leave ? document.querySelectorAll(".md-content *") : []) {
        const look = `${around(e.parentElement)} ${inside(e)}`
        if (alike.has(e.parentElement) || seen.has(look)) alike.add(e)
        seen.add(look)
    }
    for (const e of alike) {
        e.style.display = "none"
        e.setAttribute("data-alike", "")
    }
}"""


# Whether the script has gone through all that the styles leave for later.
# Rows of the catalog and cards of the gallery are laid out only as they come near.
ALL_LAID = """() => [...document.querySelectorAll(".md-content :is(figure, div, ol, li:not(.ep-gallery > li))")]
    .every(e => getComputedStyle(e).contentVisibility !== "auto")"""


# What comes with scrolling, or with another scheme, is there at once. The policy allows no sheet but this kind.
NO_FADES = """() => {
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(`*, ::before, ::after { transition: none !important }
        .ep-gallery > li, .ep-catalogue tr { content-visibility: visible !important }`)
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
}"""


def accessibility(page, *schemes):
    """What axe-core finds, a line each, in these colour schemes, or in one: in .ci/run in that of the commit.

    Contrast takes most of its time, and a long table has few looks: it is measured once for each.
    """
    from axe_playwright_python.sync_playwright import Axe

    contrast, is_phone = "color-contrast", page.viewport_size["width"] < 500
    others = {contrast: {"enabled": False}, "target-size": {"enabled": is_phone}}  # a finger is not as exact as a mouse
    lines = []
    until(page, ALL_LAID)
    page.evaluate(NO_FADES)
    for scheme in schemes or (sampled(("light", "dark"), 2, page.title()) if CI else ("dark",)):
        page.emulate_media(color_scheme=scheme)
        until(
            page,
            "name => document.body.dataset.mdColorScheme === name",
            arg={"light": "default", "dark": "slate"}[scheme],
        )
        for rules in {"rules": others}, {"runOnly": [contrast]}:
            page.evaluate("for (const animation of document.getAnimations()) animation.finish()")
            page.evaluate(ONE_OF_EACH_LOOK, "runOnly" in rules)
            found = Axe().run(page, options={**rules, "resultTypes": ["violations"]}).response["violations"]
            lines += [
                f"{scheme}: {broken['id']}: {node['target']} {node['html'][:160]} {node.get('failureSummary', '')}"
                for broken in found
                for node in broken["nodes"]
            ]
        page.evaluate(ONE_OF_EACH_LOOK, False)
    return lines
