"""Replacements for objects of MkDocs and Jinja that record lookups and compile or list things once; and hooks that let
Markdown stop on an obsolete page."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import jinja2
from markdown import Markdown
from markdown.blockparser import BlockParser
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from mkdocs.structure.files import File, Files

from ....cache.memory import depends_on


class Watched:
    """The site's files, recording which ones were looked up: a link depends on whether its target exists, and where."""

    def __init__(self, files: Files):
        self._files = files

    def get_file_from_path(self, path: str) -> File | None:
        depends_on("page", os.path.normpath(path).replace(os.sep, "/"))
        return self._files.get_file_from_path(path)

    def __getattr__(self, name):
        depends_on("pages")
        return getattr(self._files, name)

    def __iter__(self):
        depends_on("pages")
        return iter(self._files)

    def __len__(self):
        depends_on("pages")
        return len(self._files)


class WatchedLoader(jinja2.BaseLoader):
    """Jinja's loader of `{% include %}`, recording the included files."""

    def __init__(self, inner):
        self.inner = inner

    def get_source(self, environment, template):
        depends_on("included", template)
        return self.inner.get_source(environment, template)


class Unknown:
    """The anchors of a page that shows an error, so that no link to it is reported as wrong."""

    def __contains__(self, anchor: str) -> bool:
        return True


class Later(Mapping):
    """Values that pages rarely use, computed on demand, since they take a dozen runs of git."""

    def __init__(self, compute: Callable[[], Mapping]):
        self.compute = compute

    @cached_property
    def there(self) -> Mapping:
        return self.compute()

    def __getitem__(self, key):
        return self.there[key]

    def __iter__(self):
        return iter(self.there)

    def __len__(self):
        return len(self.there)

    def __repr__(self):
        return repr(self.there)


class Interruptible(Extension):
    """Has Markdown call a function before each block and each piece of text, so that an obsolete build of a long page
    can end early."""

    def __init__(self, go_on: Callable[[], None]):
        super().__init__()
        self.go_on = go_on

    def extendMarkdown(self, md: Markdown) -> None:
        md.parser.blockprocessors.register(EachBlock(md.parser, self.go_on), "preview-each-block", 1000)
        md.inlinePatterns.register(EachText(self.go_on), "preview-each-text", 1000)


class EachBlock(BlockProcessor):
    """A block processor that matches nothing and is called before each block."""

    def __init__(self, parser: BlockParser, go_on: Callable[[], None]):
        super().__init__(parser)
        self.go_on = go_on

    def test(self, parent, block) -> bool:
        self.go_on()
        return False


class EachText(InlineProcessor):
    """An inline pattern that matches nothing and is called before each piece of text."""

    def __init__(self, go_on: Callable[[], None]):
        super().__init__("(?!)")
        self.go_on = go_on

    def getCompiledRegExp(self) -> re.Pattern[str]:
        self.go_on()
        return self.compiled_re


class Compiled(jinja2.BytecodeCache):
    """The theme's templates, compiled once: MkDocs creates an environment for each build. Jinja compares their
    source."""

    def __init__(self):
        self.code: dict[str, bytes] = {}

    def load_bytecode(self, bucket):
        if bucket.key in self.code:
            bucket.bytecode_from_string(self.code[bucket.key])

    def dump_bytecode(self, bucket):
        self.code[bucket.key] = bucket.bytecode_to_string()


class Templates(jinja2.FileSystemLoader):
    """The theme's folders, without the files that MkDocs leaves out in the end: its icons are 12,000 files."""

    def list_templates(self):
        templates = set()
        for folder in self.searchpath:
            for inside, folders, names in os.walk(folder):
                folders[:] = [f for f in folders if not f.startswith(".")]
                paths = (os.path.relpath(os.path.join(inside, name), folder) for name in names)
                templates |= {path.replace(os.sep, "/") for path in paths}
        return sorted(templates)


def spare(macros, plugins) -> None:
    """Keep the macros plugin from asking git for unused values, and from dumping everything as JSON for a disabled
    log: both take longer than building the saved page."""
    context: Any = sys.modules[type(macros).__module__.replace(".plugin", ".context")]
    if not isinstance(context.get_git_info, partial):
        context.get_git_info = partial(Later, context.get_git_info)
    events = plugins.events["pre_build"]
    events[:] = [event for event in events if getattr(event, "__self__", None) is not macros]
