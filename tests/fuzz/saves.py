"""Editors' saves: pages, presets, modules and settings written, renamed, broken and mended while the preview builds.

Whatever was saved, in whatever order and by whatever editor, with a disk that is full for a while and another commit
checked out, what is served in the end is what a clean build gives. A case takes a minute.
"""

from __future__ import annotations

import html
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from copies import PRESETS, build, environment, small_site

from . import Case


class Serve:
    """`mkdocs serve` of a folder."""

    def __init__(self, folder: pathlib.Path, seconds: float = 240):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.folder, self.address, self.temporary = (
            folder,
            f"http://127.0.0.1:{self.port}/",
            folder.parent / "temporary",
        )
        self.temporary.mkdir(exist_ok=True)
        self.log = folder.parent / "serve.log"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{self.port}"],
            cwd=folder,
            env=environment(TMPDIR=str(self.temporary)),
            stdout=self.log.open("w"),
            stderr=subprocess.STDOUT,
            # A shell lets what it starts in the background ignore Ctrl-C, and what that starts too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        until(self.epoch, seconds)

    def epoch(self, after: int = 0) -> int:
        """The version of the site that is served; waits for one after the given."""
        try:
            return int(urllib.request.urlopen(f"{self.address}livereload/{after}/0", timeout=60).read())
        except OSError:
            assert self.process.poll() is None, self.log.read_text()
            return 0

    def get(self, path: str) -> str:
        try:
            return urllib.request.urlopen(self.address + path, timeout=60).read().decode()
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read().decode()}"
        except OSError:  # the server is starting again
            return ""

    def shows(self, path: str, text: str, seconds: float = 30) -> None:
        try:
            until(lambda: text in html.unescape(re.sub(r"<(?!!)[^>]*>", "", self.get(path))), seconds)
        except AssertionError:
            log = [x for x in self.log.read_text().splitlines() if " code 404" not in x]
            raise AssertionError("\n".join([f"/{path} never showed {text!r}", *log[-20:]])) from None

    def files(self) -> dict[str, bytes]:
        """Every file that is served; none while the server puts files in their place, or starts again."""
        try:
            [site] = self.temporary.glob("mkdocs_*.served")
            return contents(site)
        except (OSError, ValueError):
            return {}

    def becomes_a_clean_build(self, after: object = "") -> None:
        """What is served is soon what `mkdocs build` gives in the folder's present state."""
        self.becomes(clean_build(self.folder, self.address), after)

    def becomes(self, expected: dict[str, bytes], after: object = "") -> None:
        try:
            until(lambda: self.files() == expected, 120)
        except AssertionError:
            served = self.files()
            different = [n for n in sorted(expected.keys() | served.keys()) if expected.get(n) != served.get(n)]
            raise AssertionError(f"{after} {different[:10]}\n{self.log.read_text()[-2000:]}") from None

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()


def until(is_so, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.2)


def contents(site: pathlib.Path) -> dict[str, bytes]:
    """Every file of a site; what gzip adds to the sitemap is left out."""
    return {
        p.relative_to(site).as_posix(): p.read_bytes() for p in site.rglob("*") if p.is_file() and p.suffix != ".gz"
    }


def clean_build(folder: pathlib.Path, address: str) -> dict[str, bytes]:
    """What `mkdocs build` gives in the folder's present state, but for what only a published site has."""
    site = folder.parent / "clean"
    shutil.rmtree(site, ignore_errors=True)
    built = build(folder, "-d", str(site), SITE_URL=address, PUBLISHED="no", KEPT="no")
    assert built.returncode == 0, built.stderr[-3000:]
    return contents(site)


class Editor:
    """Random saves; each is followed by others, and what is broken is mended before the comparison."""

    def __init__(self, server: Serve, seed: int):
        self.address, self.folder, self.docs = server.address, server.folder, server.folder / "docs"
        self.random, self.n, self.mends, self.server = random.Random(seed), 0, [], server
        self.is_full = False  # the disk
        for name in ("docs/guide/two.md", "docs/index.md", "macros/presets/gpt/gpt2.toml", "macros/views/kit/html.py"):
            self.open_in_emacs(self.folder / name)  # and it stays open

    def save(self) -> str:
        self.n += 1
        name = self.random.choice([n for n in dir(self) if n.startswith("do_")])
        getattr(self, name)()
        return name[3:]

    def do_open_a_page(self):
        try:
            urllib.request.urlopen(
                self.address + self.random.choice(["", "guide/one/", "models/gpt/gpt2/", "models/"]), timeout=0.3
            )
        except OSError:  # it has to wait
            pass

    def write(self, path: pathlib.Path, text: str):
        """As editors do: in place, or by a file that takes the place of the old one, with locks and copies beside."""
        beside = path.with_name
        match self.random.choice(
            ["in place", "renamed", "Emacs", "Vim", "JetBrains"] if path.exists() else ["in place"]
        ):
            case "in place":
                path.write_text(text, "utf-8")
            case "renamed":
                beside("." + path.name).write_text(text, "utf-8")
                beside("." + path.name).replace(path)
            case "Emacs":
                self.open_in_emacs(path)
                path.write_text(text, "utf-8")
                if self.random.random() < 0.5:
                    beside(f".#{path.name}").unlink(missing_ok=True)
                    beside(f"#{path.name}#").unlink(missing_ok=True)
            case "Vim":
                beside(f".{path.name}.swp").write_bytes(b"b0VIM")
                beside("4913").touch()
                beside("4913").unlink()
                path.rename(beside(f"{path.name}~"))
                path.write_text(text, "utf-8")
                beside(f"{path.name}~").unlink()
            case "JetBrains":
                beside(f"{path.name}___jb_tmp___").write_text(text, "utf-8")
                path.rename(beside(f"{path.name}___jb_old___"))
                beside(f"{path.name}___jb_tmp___").rename(path)
                beside(f"{path.name}___jb_old___").unlink()

    def open_in_emacs(self, path: pathlib.Path):
        """A lock, which is a link that leads nowhere, what was typed and not saved yet, and what stood there before."""
        lock = path.with_name(f".#{path.name}")
        lock.unlink(missing_ok=True)
        lock.symlink_to("author@desk.1234:1700000000")
        path.with_name(f"#{path.name}#").write_text("{{ half(", "utf-8")
        shutil.copy(path, path.with_name(f"{path.name}~"))

    def page(self) -> pathlib.Path:
        pages = [p for p in sorted(self.docs.rglob("*.md")) if "includes" not in p.parts and p.is_file()]
        return self.random.choice(pages)

    def do_edit_a_page(self):
        with self.page().open("a") as f:
            f.write(
                f'\nSaved {self.n}: {{{{ params("{self.random.choice(["gpt2", "llama3-8b", "mixtral-8x7b"])}") }}}}.\n'
            )

    def do_change_a_title(self):
        page = self.docs / "guide/two.md"
        self.write(page, re.sub(r"^# .*", f"# Two {self.n}", page.read_text(), count=1, flags=re.M))

    def do_add_a_page(self):
        (self.docs / f"guide/new{self.n}.md").write_text(f"# New {self.n}\n\n[One](one.md)\n")

    def do_delete_or_rename_a_page(self):
        for page in sorted(self.docs.glob("guide/new*.md"))[:1]:
            self.random.choice([page.unlink, lambda: page.rename(page.with_name(f"newer{self.n}.md"))])()

    def do_edit_a_preset(self):
        """A text of its own page and of lists, or one that pages of other models show, too."""
        path = self.folder / f"macros/presets/{self.random.choice(PRESETS)}.toml"
        key = self.random.choice(["organization", "name"])
        self.write(path, re.sub(rf'^{key} = ".*"', f'{key} = "New {self.n}"', path.read_text(), count=1, flags=re.M))

    def do_add_or_delete_a_preset(self):
        path = self.folder / "macros/presets/llama/llama3-8b-again.toml"
        if path.exists():
            path.unlink()
        else:
            self.write(
                path,
                (self.folder / "macros/presets/llama/llama3-8b.toml")
                .read_text()
                .replace('name = "', 'name = "Again ', 1),
            )

    def do_edit_a_view(self):
        path = self.folder / "macros/views/models/model_page.py"
        self.write(path, re.sub(r"(, released)\w*( )", rf"\g<1>X{self.n}\2", path.read_text(), count=1))

    def do_edit_a_deep_module(self):
        path = self.folder / "macros/views/kit/html.py"
        self.write(path, re.sub(r'cls="ep-block\w*"', f'cls="ep-block{self.n}"', path.read_text(), count=1))

    def do_edit_the_words(self):
        path = self.folder / "macros/views/words/weights.toml"
        self.write(
            path,
            re.sub(r'^title = "Up projection\w*"', f'title = "Up projection{self.n}"', path.read_text(), flags=re.M),
        )

    def do_edit_the_site_module(self):
        path = self.folder / "macros/site/model_pages.py"
        self.write(path, re.sub(r'"The whole model\w*"', f'"The whole model{self.n}"', path.read_text(), count=1))

    def do_edit_an_architecture(self):
        with (self.folder / "macros/engine/architectures/llama.py").open("a") as f:
            f.write(f"\n# {self.n}\n")

    def do_edit_a_style_sheet(self):
        with (self.docs / "assets/site.css").open("a") as f:
            f.write(f"\n/* {self.n} */\n")

    def do_edit_the_template(self):
        with (self.docs / "overrides/main.html").open("a") as f:
            f.write(f"\n{{# {self.n} #}}\n")

    def do_edit_the_config(self):
        path = self.folder / "mkdocs.yml"
        self.write(
            path, re.sub(r"^site_name: .*", f"site_name: Every Parameter {self.n}", path.read_text(), flags=re.M)
        )

    def do_save_as_windows_does(self):
        """With lines that end in two characters, and a byte-order mark."""
        path = self.random.choice(
            [self.page(), self.folder / "macros/views/kit/rounding.py", self.docs / "includes/glossary.md"]
        )
        text = path.read_text("utf-8-sig")
        path.write_text(text, self.random.choice(["utf-8", "utf-8-sig"]), newline="\r\n")

    def do_save_often(self):
        """As editors that save while one types."""
        page = self.page()
        text = page.read_text("utf-8")
        for n in range(100):
            page.write_text(f"{text}\nTyped {'x' * n}\n", "utf-8")
            time.sleep(self.random.choice([0, 0, 0.01]))

    def do_check_out(self):
        """All that a commit changed, at once, and back."""
        if not (self.folder / ".git").exists():
            git(self.folder, "init", "--quiet")
            (self.folder / ".gitignore").write_text(".cache/\n", "utf-8")
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--allow-empty", "--message", f"State {self.n}")
        known = git(self.folder, "rev-list", "--all").split()
        git(self.folder, "checkout", "--quiet", self.random.choice(known))

    def do_fill_the_disk(self):
        """The server writes nothing until the mend, which is a save."""
        limits = (1, resource.RLIM_INFINITY)
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, limits)
        self.is_full = True

    def do_break(self):
        """A half-written file, mended later."""
        path = self.folder / self.random.choice(
            [
                "macros/views/kit/rounding.py",
                "macros/engine/dims.py",
                "macros/presets/gpt/gpt2.toml",
                "mkdocs.yml",
                "docs/guide/three.md",
            ]
        )
        good = path.read_text("utf-8")
        if str(path) in {str(p) for p, _ in self.mends}:
            return
        self.mends.append((path, good))
        self.write(path, "{{ nothing( }}" if path.suffix == ".md" else good[: len(good) // 2] + '\n"""(')

    def mend(self):
        for path, good in self.mends:
            self.write(path, good)
        self.mends.clear()
        if self.is_full:
            resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            self.do_edit_a_page()
            self.is_full = False


def git(folder: pathlib.Path, *arguments: str) -> str:
    """What git says, with nobody's settings."""
    author = ("-c", "user.name=x", "-c", "user.email=x", "-c", "core.hooksPath=/dev/null")
    return subprocess.run(["git", *author, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def after_saves(server: Serve, seed: int, rounds: int) -> None:
    """Raise where the preview is no clean build after so many rounds of saves."""
    editor, told = Editor(server, seed), []
    for _ in range(rounds):
        for _ in range(editor.random.randint(1, 4)):
            told.append(editor.save())
            time.sleep(editor.random.choice([0, 0, 0.3, 1]))
        editor.mend()
        server.becomes_a_clean_build(after=told)


def draw(rng: random.Random) -> Case:
    return {"seed": rng.randrange(10**6), "rounds": 3}


def smaller(case: Case) -> Iterator[Case]:
    if case["rounds"] > 1:
        yield case | {"rounds": case["rounds"] - 1}


def trial(case: Case, folder: pathlib.Path) -> None:
    server = Serve(small_site(folder / "site"))
    try:
        after_saves(server, case["seed"], case["rounds"])
    finally:
        server.stop()
