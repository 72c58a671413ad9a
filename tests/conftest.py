"""How the tests are run: which, in what order, and what they share: compiled modules, one built site, a browser that
reports.
"""

import compileall
import contextlib
import functools
import gc
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from _pytest.assertion import rewrite
from copies import ROOT, build_process
from fuzzing import CI
from sampling import COMMIT, WHOLE, sampled

SUBPATH = "/below/a/path"
LEFT_OUT = pytest.StashKey[Counter]()
CHOSEN = pytest.StashKey[set[str]]()  # tests whose cases were chosen before they were made
TOLD = "site", "is_of_all", "is_early"  # what workers are told of the first process
FURTHER = "further cases of tests that have many"
OTHERS = "cases that another commit's run takes; WHOLE=yes takes all"
FEW = 3  # cases of each quick test, others for each commit
FEW_ELSEWHERE = 1  # and of each test in the browser, or with processes
SLOWEST = 20  # tests that .ci/run names at its end
MOST = 20  # cases of a quick test in .ci/run, chosen by the commit; the nightly workflow takes them all
# Of the tests in a browser a commit takes one of so many, where all are run: in .ci/run of each module, in the test
# command of all. And the test command of those that start processes, or go through all models or all modules.
IN_BROWSER = 4 if CI else 24
LONG = 4
POOLS = 1 if CI else 2  # how many times smaller the share of a pool is


def pytest_addoption(parser):
    said = f"of the cases of each quick test only N; 0 is all of them, as in .ci/run, and without it there are {FEW}"
    parser.addoption("--few", type=int, metavar="N", help=said)


def pytest_configure(config):
    """The first process serves the site, and tells its workers where; whichever test needs it first builds it."""
    config.stash[LEFT_OUT], config.stash[CHOSEN] = Counter(), set()
    if not hasattr(config, "workerinput"):
        option, config.is_of_all = config.option, config.args_source is not config.ArgsSource.ARGS
        is_parallel = option.dist != "no" and not option.collectonly
        config.is_early = is_parallel and config.is_of_all and not is_chosen(config) and not CI
        with contextlib.ExitStack() as stack:
            if sys.dont_write_bytecode:  # each of many processes would compile every module: what comes goes at the end
                stack.callback(remove_compiled, set(compiled()))
                os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
                sys.dont_write_bytecode = False
            if config.is_of_all and config.option.dist != "no" and hasattr(os, "fork"):
                compile_modules(config)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="every-parameter-"))
            (Path(folder) / "site").mkdir()
            config.site = folder, stack.enter_context(served(Path(folder) / "site"))
            config.add_cleanup(stack.pop_all().close)
    else:
        for name in TOLD:
            setattr(config, name, config.workerinput[name])
        if config.is_early and hasattr(os, "nice"):
            os.nice(5)  # many tests wait for the site


def pytest_sessionstart(session):
    """The test command builds the site beside the first tests."""
    config = session.config
    if config.is_early and not hasattr(config, "workerinput"):
        folder, address = Path(config.site[0]), config.site[1]
        (folder / "building").mkdir()
        process = site_process(folder, address)
        watch = threading.Thread(target=note_outcome, args=(process, folder))
        watch.start()
        config.add_cleanup(watch.join)
        config.add_cleanup(process.kill)  # before that


def site_process(folder: Path, address: str) -> subprocess.Popen:
    return build_process(ROOT, "--strict", "--site-dir", str(folder / "site"), SITE_URL=address)


def note_outcome(process: subprocess.Popen, folder: Path) -> None:
    """Waits for the site, and writes down what was wrong with it."""
    said = process.communicate()[1]
    is_wrong = process.returncode or re.search(r"^WARNING", said, re.M)
    (folder / "written").write_text(said[-4000:] if is_wrong else "", "utf-8")
    (folder / "written").rename(folder / "outcome")


def compile_modules(config) -> None:
    """On a fresh clone each worker would compile every module: here each core compiles its share of them before."""
    paths = [path for room in ("macros", "tests") for path in (ROOT / room).rglob("*.py")]
    children, cores = [], os.cpu_count() or 1
    for n in range(cores):
        if not (child := os.fork()):
            with contextlib.suppress(Exception):  # what is wrong with a module, its import tells
                for path in paths[n::cores]:
                    compile_module(path, config)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def compile_module(path: Path, config) -> None:
    if not (path.name.startswith("test_") or path.name == "conftest.py"):
        compileall.compile_file(path, quiet=2)
        return
    written = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
    if not written.exists():
        written.parent.mkdir(exist_ok=True)
        source_hash, code = rewrite._rewrite_test(path, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, written)


def compiled() -> Iterator[Path]:
    """The folders of compiled modules."""
    return (path for room in ("macros", "tests") for path in (ROOT / room).rglob("__pycache__"))


def remove_compiled(before: set[Path]) -> None:
    for path in {*compiled()} - before:
        shutil.rmtree(path, ignore_errors=True)


def pytest_report_header():
    return (
        "samples: all cases" if WHOLE else f"samples: those of {COMMIT[:12] or 'no commit'}; WHOLE=yes takes all cases"
    )


def pytest_xdist_auto_num_workers():
    """One more than there are cores: those that wait for a server or for Chromium leave theirs to the others."""
    return (os.cpu_count() or 1) + 1


def pytest_configure_node(node):
    node.workerinput.update({name: getattr(node.config, name) for name in TOLD})


def named(config) -> list[str]:
    """The tests that were asked for by their names."""
    return [argument for argument in config.args if "::" in argument]


def kind(test, fixtures: list[str]) -> str:
    """What a test needs, by which it is ordered."""
    if test.get_closest_marker("browser"):
        return "browser"
    is_long = test.get_closest_marker("slow") or test.get_closest_marker("processes") or "site_folder" in fixtures
    return "processes" if is_long else "quick"


def is_chosen(config) -> bool:
    """Whether somebody said which tests to run, and means all of these."""
    return bool(named(config) or config.option.keyword or config.option.markexpr)


def taken(cases, config, test, of_kind: str, name: str):
    """Those of a test's cases, or of a pool's, that are taken."""
    few, said = config.option.few, test.get_closest_marker("share")
    if few is None and not (CI or named(config) or config.option.keyword or config.option.markexpr == "slow"):
        few = FEW
    if few and not pool(test):
        why, of_them = FURTHER, few_of(cases, few if of_kind == "quick" else FEW_ELSEWHERE, name)
    elif is_chosen(config) or (not config.is_of_all if pool(test) else not CI or few is not None):
        return cases
    else:
        share = said.args[0] * POOLS if said else -(-len(cases) // MOST) if of_kind == "quick" else 1
        why, of_them = OTHERS, sampled(cases, share, name)
    config.stash[LEFT_OUT][why] += len(cases) - len(of_them)
    return of_them


def of_other_commits(items) -> set:
    """Of the tests of each module in a browser, each commit takes a quarter in `.ci/run`, and all that say which share
    of their cases is taken; in the test command a twenty-fourth of all, and a quarter of those that take long.
    """
    together = defaultdict(lambda: defaultdict(list))
    for item in items:
        if item.get_closest_marker("browser"):
            name, share = (item.path.name if CI else "browser"), IN_BROWSER
        else:
            is_long = item.get_closest_marker("processes") or item.get_closest_marker("exhaustive")
            name, share = ("long" if is_long and not CI and not pool(item) else ""), LONG
        if name and not (CI and item.get_closest_marker("share")):
            together[name, share][item.nodeid.partition("[")[0]].append(item)
    others = set()
    for (name, share), tests in together.items():
        chosen = sampled(tests, share, name)
        others.update(item for test, cases in tests.items() if test not in chosen for item in cases)
    return others


def few_of(cases, few: int, name: str):
    """Few cases of a test, as far from each other as can be; of quick tests, each begins elsewhere."""
    step = -(-len(cases) // few)
    return cases[zlib.crc32((COMMIT + name).encode()) % step if few == FEW else 0 :: step]


def pool(test) -> str:
    """What a test's cases are taken together with; empty for those of the test alone."""
    said = test.get_closest_marker("share")
    return said.kwargs.get("of", "") if said else ""


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc):
    """No tests are made of cases that are not taken: all of them would cost each worker many seconds.

    Those that have marks of their own, and pools, are chosen when all are there.
    """
    outcome = yield
    cases, config, test = metafunc._calls, metafunc.config, metafunc.definition
    if len(cases) > 1 and not pool(test) and not any(case.marks for case in cases):
        config.stash[CHOSEN].add(test.nodeid)
        metafunc._calls = taken(cases, config, test, kind(test, metafunc.fixturenames), test.nodeid)
    return outcome


def pytest_collection_modifyitems(config, items):
    """Leaves out what is slow, unless it was asked for; marks the quick ones; puts those first that take longest.

    The workers begin with an equal share of this list each, and steal from the end of each other's: so the tests in the
    browser, at its beginning, fall to one worker, and those that start processes, at the next share's, to another.
    """
    kinds, pools, left_out = {"browser": [], "processes": [], "quick": []}, defaultdict(list), set()
    for item in items:
        slow = item.get_closest_marker("slow")
        if slow and not slow.args:
            item.runtest = functools.partial(pytest.fail, 'say why: @pytest.mark.slow("...")', pytrace=False)
        elif slow and not (CI or "slow" in config.option.markexpr or any(map(item.nodeid.startswith, named(config)))):
            config.stash[LEFT_OUT][slow.args[0]] += 1
            left_out.add(item)
            continue
        name = item.nodeid.partition("[")[0]
        if name not in config.stash[CHOSEN]:
            pools[pool(item) or name].append(item)
    for name, cases in pools.items():
        left_out.update({*cases} - {*taken(cases, config, cases[0], kind(cases[0], cases[0].fixturenames), name)})
    if config.is_of_all and not is_chosen(config):
        others = of_other_commits(item for item in items if item not in left_out)
        config.stash[LEFT_OUT][OTHERS] += len(others)
        left_out |= others
    config.hook.pytest_deselected(items=[*left_out])
    for item in items:
        if item not in left_out:
            kinds[of_kind := kind(item, item.fixturenames)].append(item)
            if of_kind == "quick":
                item.add_marker("quick")
    browser, processes, chosen = kinds.values()
    if config.is_early:
        items[:] = shared_out(browser, processes, chosen, config.workerinput["workercount"])
        return
    # First what does without the site, while the other worker builds it, and what takes longest.
    processes.sort(key=lambda item: ("site_folder" in item.fixturenames, -allowed(item)))
    browser.sort(key=lambda item: -allowed(item))
    share = (len(chosen) + len(processes) + len(browser)) // getattr(config, "workerinput", {}).get("workercount", 1)
    rest = max(share - len(browser), 0)
    items[:] = [*browser, *chosen[:rest], *processes, *chosen[rest:]]


def shared_out(browser, processes, quick, workers: int) -> list:
    """A like share for each worker, at whose end stands what waits for the site; tests of a module stay together."""
    items = []
    on_site = [item for item in processes if "site_folder" in item.fixturenames]
    ends = zip(*(by_module(those, workers) for those in ({*processes} - {*on_site}, browser + on_site)))
    total = len(browser) + len(processes) + len(quick)
    for n, (alone, waiting) in enumerate(ends):
        more = (total - len(items)) // (workers - n) - len(alone) - len(waiting)
        items += [*quick[: max(more, 0)], *alone, *waiting]
        del quick[: max(more, 0)]
    return [*items, *quick]


def by_module(items, workers: int) -> list[list]:
    modules, shares = defaultdict(list), [[] for _ in range(workers)]
    for item in sorted(items, key=lambda item: item.nodeid):
        modules[item.path].append(item)
    for tests in sorted(modules.values(), key=len, reverse=True):
        min(shares, key=len).extend(tests)
    return shares


def allowed(item) -> int:
    """The seconds that a test is given; what does not say needs few."""
    timeout = item.get_closest_marker("timeout")
    return timeout.args[0] if timeout else 0


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash[LEFT_OUT])


def pytest_testnodedown(node):
    """All workers leave out the same; one that crashed does not say what."""
    if left_out := getattr(node, "workeroutput", {}).get("left_out"):
        node.config.stash[LEFT_OUT] = Counter(left_out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A report says what its test protects: the first paragraph of its docstring, or else of its module's."""
    report = yield
    said = item.function.__doc__ or item.module.__doc__ or ""
    report.protects = " ".join(said.strip().partition("\n\n")[0].split())
    return report


def slowest(terminalreporter, number: int) -> Iterator[str]:
    """The tests that took longest, with what each protects."""
    seconds, protects = Counter(), {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if hasattr(report, "protects"):
                seconds[report.nodeid] += report.duration
                protects[report.nodeid] = report.protects
    return (f"{taken:6.1f} s {name}: {protects[name]}" for name, taken in seconds.most_common(number))


def pytest_terminal_summary(terminalreporter, config):
    if CI:
        terminalreporter.section("slowest tests")
        for line in slowest(terminalreporter, SLOWEST):
            terminalreporter.write_line(line)
    if left_out := +config.stash[LEFT_OUT]:
        why = "; ".join(f"{n} {reason}" for reason, n in left_out.items())
        terminalreporter.write_line(f"{left_out.total()} checks left out, which .ci/run makes ({why})")


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".woff2": "font/woff2",
    }

    def translate_path(self, path):
        path = urlsplit(path).path
        return super().translate_path(path[len(SUBPATH) :] if path.startswith(SUBPATH + "/") else "/no-such-page")

    def log_message(self, *args):
        pass

    def do_GET(self):
        """On a busy machine a font comes late, and its page would do without it: here it takes it then."""
        path = Path(self.translate_path(self.path))
        if path.name != "styles.css" or not path.is_file():
            return super().do_GET()
        content = path.read_bytes().replace(b"font-display: optional", b"font-display: swap")
        self.send_response(200)
        self.send_header("Content-Type", "text/css")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A browser that leaves a page early breaks off what it was being sent."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def served(folder, handler=Handler):
    """An address at which the folder, which may still be empty, is served; it ends in a slash."""
    with Server(("127.0.0.1", 0), functools.partial(handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{SUBPATH}/"
        server.shutdown()


@pytest.fixture(scope="session")
def site_folder(pytestconfig):
    """The whole site, built strictly, by the first worker that comes here if it is not under way; the others wait."""
    folder, address = Path(pytestconfig.site[0]), pytestconfig.site[1]
    outcome = folder / "outcome"
    try:
        (folder / "building").mkdir()
    except FileExistsError:
        while not outcome.exists():
            time.sleep(0.1)
    else:
        note_outcome(site_process(folder, address), folder)
    assert not (wrong := outcome.read_text("utf-8")), f"mkdocs build --strict failed:\n{wrong}"
    return folder / "site"


@pytest.fixture
def site(site_folder, pytestconfig):
    """The address of the whole site."""
    return pytestconfig.site[1]


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
def page(open_page, site):
    """The home page in a fresh browser context."""
    return open_page(site)


def own_assets(site_folder):
    """The folder of our own scripts and styles: its name changes with them."""
    (folder,) = Path(site_folder).glob("assets-*")
    return folder


def write_engine(folder, *scripts):
    """Puts the compiled engine into a folder, with these scripts of the pages beside it."""
    from macros.browser.bundle import files

    for name in {*scripts, "architectures.mjs", "conditions.mjs", "problems.mjs"}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs/assets" / name, folder / name)
    (folder / "engine").mkdir()
    for name, text in files().items():
        (folder / "engine" / name).write_text(text, "utf-8")


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
    """Waits until an expression, or a function of `arg`, is true in the page.

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


def pytest_collection_finish():
    """What is imported and collected by now stays: no look for garbage goes through it again, and few are enough."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
