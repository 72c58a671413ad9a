"""Which cases of which tests are taken, and in which order.

`.ci/run` takes every case of every quick test. What starts a browser, a server or a build is shared out: first what the
change can reach (`affected`), the rest by the commit. The test command takes a few cases of each test, and more of one
near the change: one of each and the nearest in any case, the others as far as its time goes. `--affected` takes what
the change can reach alone, the nearest first, until its time is over.
"""

import functools
import math
import os
import zlib
from collections import Counter, defaultdict

import pytest
from affected import FAR, FIRST
from fuzzing import CI
from sampling import COMMIT, sampled

LEFT_OUT = pytest.StashKey[Counter]()
CHOSEN = pytest.StashKey[set[str]]()  # tests whose cases were chosen before they were made
LATER = pytest.StashKey[bool]()  # of a further case, which the test command runs if there is time
REACH = pytest.StashKey()  # what the change can reach
FURTHER = "further cases of tests that have many"
OTHERS = "cases that another commit's run takes; WHOLE=yes takes all"
FARTHER = "cases that the change reaches less directly"
LATE = "no time left for what is further away"
FEW = 3  # cases of each quick test, others for each commit
FEW_ELSEWHERE = 1  # and of each test in the browser, or with processes
# Of the tests in a browser a commit takes one of so many, where all are run: in .ci/run of each module, in the test
# command of all. And the test command of those that start processes, or go through all models or all modules.
IN_BROWSER = 5 if CI else 24
LONG = 8
POOLS = 1 if CI else 3  # how many times smaller the share of a pool is
NEAR = 4.0  # a test that is not further from the change comes before what the commit chooses
NEXT = 1.0  # all cases taken of a test this near are run in any case
# Up to which distance a test has how many cases.
CASES = (1, 200), (2, 80), (3, 40), (4, 16), (6, 6), (FAR, 2)
HELD = 12  # and so many of the types, models, macros and pages that the change holds
MOST_ON_SITE = 12  # tests that look at the built site, with --affected
SECONDS, OF_SITE = 40, 30  # of each core, after which --affected begins no further test; fewer if a site is built
OF_COMMAND = 48  # and after which the test command begins no further case of a test that has one


@pytest.fixture(scope="session")
def reach(request):
    """What the change can reach."""
    return request.config.stash[REACH]


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


def is_affected(config) -> bool:
    return config.option.affected


def taken(cases, config, test, of_kind: str, name: str):
    """Those of a test's cases, or of a pool's, that are taken."""
    few, said = config.option.few, test.get_closest_marker("share")
    if test.get_closest_marker("every_case") and not is_affected(config):
        is_shared = of_kind == "browser" and not CI and config.is_of_all and not is_chosen(config)
        return nearest_first(cases, LONG, name, config) if is_shared else cases
    if few is None and not (CI or named(config) or config.option.keyword or config.option.markexpr == "slow"):
        few = FEW
    if is_affected(config):
        why, of_them = FARTHER, reached(cases, config, test, of_kind)
    elif few and not pool(test):
        why, of_them = FURTHER, few_of(cases, few if of_kind == "quick" else FEW_ELSEWHERE, name)
        if config.option.few is None and of_kind == "quick":
            nearest = {id(case) for case in reached(cases, config, test, of_kind)}
            few_too = {id(case) for case in of_them}
            of_them = [case for case in cases if id(case) in nearest | few_too]
    elif is_chosen(config) or (not config.is_of_all if pool(test) else not CI or few is not None):
        return cases
    elif said:
        why, of_them = OTHERS, nearest_first(cases, said.args[0] * POOLS, name, config)
    else:
        return cases
    config.stash[LEFT_OUT][why] += len(cases) - len(of_them)
    return of_them


def case_of(case) -> str:
    """The id of a case, also before it is a test."""
    return case.name.partition("[")[2].removesuffix("]") if isinstance(case, pytest.Item) else case.id


def reached(cases, config, test, of_kind: str) -> list:
    """The cases of a test that the change reaches: of the types, models, macros and pages that it holds, and of a test
    near it more than of another, as far from each other as can be.
    """
    reach, name = config.stash[REACH], test.nodeid.partition("[")[0]
    distance = reach.distance(name)
    held = [case for case in cases if reach.holds(case_of(case))] if len(cases) > 1 else []
    if config.option.few == 0 or test.get_closest_marker("every_case"):
        return cases if distance < FAR else [case for case in cases if reach.holds(case_of(case))]
    held = held[:: -(-len(held) // HELD)] if held else []
    number = next((number for near, number in CASES if distance <= near), 0) if distance < FAR else 0
    if of_kind != "quick":
        number = min(number, FEW_ELSEWHERE) if distance <= NEAR else 0
        held = held[:FEW_ELSEWHERE]
    rest = few_of(cases, number, name) if number else []
    chosen = {id(case) for case in (*held, *rest)}
    return [case for case in cases if id(case) in chosen]


def nearest_first(cases, share: int, name: str, config) -> list:
    """One of `share` cases: those that the change reaches or holds come first, the rest as the commit says."""
    reach, chosen = config.stash[REACH], sampled(cases, share, name)
    near = [case for case in cases if reach.holds(case_of(case))][: len(chosen)]
    others = [case for case in chosen if case not in near]
    taken_first = {id(case) for case in [*near, *others][: len(chosen)]}
    return [case for case in cases if id(case) in taken_first]


def of_other_commits(items, config) -> set:
    """Of the tests of each module in a browser, each commit takes a fifth in `.ci/run`, and all that say which share of
    their cases is taken; in the test command a twenty-fourth of all, and an eighth of those that take long. Those near
    the change come first, and in `.ci/run` up to a quarter of a module may be near.
    """
    together = defaultdict(lambda: defaultdict(list))
    for item in items:
        if item.get_closest_marker("browser"):
            name, share = (item.path.name if CI else "browser"), IN_BROWSER
        else:
            is_long = item.get_closest_marker("processes") or item.get_closest_marker("exhaustive")
            name, share = ("long" if is_long and not CI and not pool(item) else ""), LONG
        if name and not (CI and item.get_closest_marker("share") or item.get_closest_marker("every_case")):
            together[name, share][item.nodeid.partition("[")[0]].append(item)
    others, distance = set(), config.stash[REACH].distance
    for (name, share), tests in together.items():
        chosen = sampled(tests, share, name)
        near = sorted((test for test in tests if distance(test) <= NEAR), key=distance)
        near = near[: math.ceil(len(tests) / (IN_BROWSER - 1)) if CI else len(chosen)]
        chosen = [*near, *(test for test in chosen if test not in near)][: max(len(chosen), len(near))]
        others.update(item for test, cases in tests.items() if test not in chosen for item in cases)
    return others


def few_of(cases, few: int, name: str):
    """Few cases of a test, as far from each other as can be; of quick tests, each begins elsewhere."""
    step = -(-len(cases) // few)
    return cases[zlib.crc32((COMMIT + name).encode()) % step if few >= FEW else 0 :: step]


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
    """Leave out what is slow, unless it was asked for; marks the quick ones; puts those first that take longest.

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
    if is_affected(config):
        left_out |= unreached(items, config)
    elif config.is_of_all and not is_chosen(config):
        others = of_other_commits((item for item in items if item not in left_out), config)
        config.stash[LEFT_OUT][OTHERS] += len(others)
        left_out |= others
    config.hook.pytest_deselected(items=[*left_out])
    for item in items:
        if item not in left_out:
            kinds[of_kind := kind(item, item.fixturenames)].append(item)
            if of_kind == "quick":
                item.add_marker("quick")
    browser, processes, chosen = kinds.values()
    if is_affected(config):
        items[:] = nearest(browser + processes + chosen, config)
        return
    if config.is_early:
        first, later = in_two(chosen, config.stash[REACH])
        items[:] = shared_out(browser, processes, first, later, config.workerinput["workercount"])
        return
    # First what does without the site, while the other worker builds it, and what takes longest.
    processes.sort(key=lambda item: ("site_folder" in item.fixturenames, -allowed(item)))
    browser.sort(key=lambda item: -allowed(item))
    share = (len(chosen) + len(processes) + len(browser)) // getattr(config, "workerinput", {}).get("workercount", 1)
    rest = max(share - len(browser), 0)
    items[:] = [*browser, *chosen[:rest], *processes, *chosen[rest:]]


def is_of_node(item) -> bool:
    """Whether it runs scripts without a browser."""
    return item.path.parent.name == "browser" and kind(item, item.fixturenames) == "processes"


def unreached(items, config) -> set:
    """Tests that the change does not reach, and those that wait for the site unless a script, style or page changed."""
    reach, others = config.stash[REACH], set()
    for item in items:
        of_kind = kind(item, item.fixturenames)
        is_near = reach.distance(item.nodeid) < FAR if of_kind == "quick" else reach.distance(item.nodeid) <= NEAR
        if not (is_near or reach.holds(case_of(item))) or (
            (of_kind == "browser" or "site_folder" in item.fixturenames) and not reach.is_of_site
        ):
            others.add(item)
    on_site = [item for item in items if item not in others and "site_folder" in item.fixturenames]
    on_site.sort(key=lambda item: (not reach.holds(case_of(item)), reach.distance(item.nodeid)))
    if config.option.few != 0:
        others.update(on_site[MOST_ON_SITE:])
    config.stash[LEFT_OUT][FARTHER] += len([item for item in others if "[" not in item.name])
    return others


def nearest(items, config) -> list:
    """A like share for each worker, of which each begins with what is nearest; tests of a module stay together.

    Of a test with many cases the later ones count as further away.
    """
    reach, workers = config.stash[REACH], getattr(config, "workerinput", {}).get("workercount", 1)
    groups, before = defaultdict(list), Counter()
    for item in sorted(items, key=lambda item: zlib.crc32(item.nodeid.encode())):
        name, distance = item.nodeid.partition("[")[0], reach.distance(item.nodeid)
        distance = min(distance, reach.length(case_of(item)))
        waits = kind(item, item.fixturenames) != "quick" and not (is_of_node(item) and distance <= NEXT)
        if distance > FIRST:
            distance += math.log2(1 + before[name] / 6)
            before[name] += 1
        groups[waits, round(distance), item.path].append(item)
    shares = [[] for _ in range(workers)]
    for _, group in sorted(groups.items(), key=lambda one: one[0]):
        for n in range(0, len(group), 24):
            min(shares, key=len).extend(group[n : n + 24])
    return [item for share in shares for item in share]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """The time of a worker is that of its core, so that a busy machine runs the same tests; `--few 0` has no end."""
    workers, cores = getattr(item.config, "workerinput", {}).get("workercount", 1), os.cpu_count() or 1
    seconds = OF_SITE if item.config.stash[REACH].is_of_site else SECONDS
    if item.stash.get(LATER, False):
        seconds = OF_COMMAND
    elif not is_affected(item.config) or item.config.option.few == 0:
        return
    if sum(os.times()[:4]) > seconds * min(1, cores / workers):
        pytest.skip(LATE)


def in_two(quick, reach) -> tuple[list, list]:
    """What is run in any case, one of each test and what is next to the change, and the others, the nearest first."""
    first, later, seen = [], [], set()
    for item in quick:
        name = item.nodeid.partition("[")[0]
        is_first = name not in seen or item.get_closest_marker("every_case") or reach.distance(name) <= NEXT
        (first if is_first else later).append(item)
        seen.add(name)
    for item in later:
        item.stash[LATER] = True
    return first, sorted(later, key=lambda item: reach.distance(item.nodeid))


def shared_out(browser, processes, quick, later, workers: int) -> list:
    """A like share for each worker: quick tests, those that wait for the site, further cases of quick ones; tests of a
    module stay together.
    """
    items = []
    on_site = [item for item in processes if "site_folder" in item.fixturenames]
    ends = zip(*(by_module(those, workers) for those in ({*processes} - {*on_site}, browser + on_site)))
    total = len(browser) + len(processes) + len(quick) + len(later)
    for n, (alone, waiting) in enumerate(ends):
        room = max((total - len(items)) // (workers - n) - len(alone) - len(waiting), 0)
        some = min(room, len(quick) // (workers - n))
        items += [*quick[:some], *alone, *waiting, *later[: room - some]]
        del quick[:some], later[: room - some]
    return [*items, *quick, *later]


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
