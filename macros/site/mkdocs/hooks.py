"""MkDocs' events, passed to `preview` before and after everything else, and to the adapters in between.

MkDocs keeps this file for the life of the process, and this file does the same with `macros.site.mkdocs.preview`; the
adapters are imported again after an edit, so they are looked up at each event.
"""

import gc
import importlib
import importlib.util
import logging
import os
import pathlib
import sys
import time

from mkdocs.exceptions import PluginError
from mkdocs.plugins import CombinedEvent, event_priority

if "serve" in sys.argv:
    # A .pyc in a watched folder would trigger a second rebuild for every edit, and hide an edit of the same second and
    # size.
    sys.dont_write_bytecode = True

PACKAGE = pathlib.Path(__file__).parent.parent.parent
ROOT = str(PACKAGE.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)


def the_preview():
    """Load the preview. An error in its own modules ends a build, but not a live preview, which starts once they are
    fixed."""
    while True:
        before = {path: path.stat().st_mtime_ns for path in PACKAGE.rglob("[!.]*.py")}
        try:
            return importlib.import_module("macros.site.mkdocs.preview").preview
        except Exception as error:
            if "serve" not in sys.argv:
                raise
            file = pathlib.Path(getattr(error, "filename", None) or "macros").name
            line = f"{file}: {type(error).__name__}: {error}; mend it: the live preview begins then"
            print(f"ERROR   -  {line}", file=sys.stderr)
        while all(path.exists() and path.stat().st_mtime_ns == then for path, then in before.items()):
            time.sleep(0.2)
        for name in [name for name in sys.modules if name.startswith(("macros.", "every_parameter."))]:
            del sys.modules[name]
        importlib.invalidate_caches()


preview = the_preview()
lines = importlib.import_module("macros.site.mkdocs.preview.lines")
inputs = importlib.import_module("macros.site.mkdocs.preview.inputs")
logging.getLogger("mkdocs.config").addFilter(lines.Settings())
ADAPTERS = (
    "macros.site.mkdocs.left_out",
    "macros.site.mkdocs.markdown",
    "macros.site.mkdocs.pages",
    "macros.site.mkdocs.search",
    "macros.site.mkdocs.settings",
)
# For a site to be published: neither a preview nor a build with PUBLISHED=no.
PUBLISHED = "macros.site.mkdocs.published", "macros.site.mkdocs.shared", "macros.site.content_security"
PREVIEWED = ("macros.site.mkdocs.previewed",)
SECOND = "macros.cache.second_process"  # if the build has one
OUTPUT = "macros.site.mkdocs.output"  # for a build that replaces the content of its folder
BUILDS = "build", "gh-deploy"  # mike, for example, only reads the settings, and publishes the folder that they name
is_replacing = False


def call(event, *args, **kwargs):
    """Pass the event to the function with that name in each adapter."""
    result = None
    try:
        is_published = not preview.serving and os.environ.get("PUBLISHED") != "no"
        further = (PUBLISHED if is_published else PREVIEWED) + ((OUTPUT,) if is_replacing else ())
        for name in ADAPTERS + further:
            if adapter := sys.modules.get(name) or (importlib.util.find_spec(name) and importlib.import_module(name)):
                function = getattr(adapter, event, None)
                if function and (changed := function(*args, **kwargs)) is not None:
                    args, result = (changed, *args[1:]), changed
    except Exception as error:
        if lines.is_problem(error):
            raise PluginError(str(error)) from None
        raise
    return result


def handed_on(event):
    """The handlers of an event before, among and after those of all other plugins. Until the server is up, they do
    nothing."""

    def early(*args, **kwargs):
        if preview.is_first:
            return None
        method = getattr(preview, f"{event}_early", None)
        replaced = method(*args, **kwargs) if method and preview.serving else None
        return call(f"{event}_early", *args, **kwargs) if replaced is None else replaced

    def now(*args, **kwargs):
        return None if preview.is_first else call(event, *args, **kwargs)

    def late(*args, **kwargs):
        if not preview.serving:
            return call(f"{event}_late", *args, **kwargs)
        method = getattr(preview, f"{event}_late", None)
        return method(*args, **kwargs) if method and not preview.is_first else None

    return CombinedEvent(event_priority(100)(early), now, event_priority(-100)(late))


def on_startup(command, dirty=False, **kwargs):
    global is_replacing
    is_replacing = command in BUILDS and not dirty
    # otherwise it lists all macros in every build
    logging.getLogger("mkdocs.plugins.mkdocs_macros").setLevel(logging.WARNING)
    # Nobody waits for the empty build before the server starts.
    for name in ("mkdocs.commands.build", "mkdocs.commands.serve"):
        logging.getLogger(name).addFilter(lambda line: not preview.is_first or line.levelno > logging.INFO)
    preview.on_startup(command)


@event_priority(100)  # before the macros plugin imports the package
def on_config(config):
    # Reference counting frees nearly everything in a build. Without this and the other settings of `gc`, a build takes
    # 59 s of processor time instead of 48, and 53 MiB less.
    gc.disable()
    if preview.is_first:  # before the server has started
        preview.on_config_first(config)
        inputs.refuse_linked_folders(config)
        if "macros" in config.plugins:
            # The plugin's default, for which a missing module is not an error.
            config.plugins["macros"].config["module_name"] = "main"
        config.nav = None
        return None
    if preview.serving:
        preview.on_config_early(config)
    else:
        preview.modules.forget(None)
        lines.begin_build(config)
    if "macros" in config.plugins:  # a build ends after the mistakes of all pages are reported, not at the first
        options = config.plugins["macros"].config
        preview.refuses = options["on_error_fail"] and not preview.serving
        options["on_error_fail"] = False
    return call("on_config", config)


def on_files(files, config):
    """Only the theme's own files until the server has started."""
    if preview.is_first:
        for file in list(files):
            if file.is_documentation_page() or file.src_dir == config.docs_dir:  # which may be a pipe
                files.remove(file)
        return files
    return call("on_files", files, config=config)


def on_serve(server, config, builder):
    preview.is_first = False
    return preview.on_serve(server, config, builder)


def on_shutdown():
    preview.on_shutdown()
    if second := sys.modules.get(SECOND):
        second.end()
    if output := sys.modules.get(OUTPUT):
        output.end()


def on_build_error(error, **kwargs):
    gc.enable()
    preview.on_build_error(error)
    if not preview.serving:
        importlib.import_module(OUTPUT).refuse(error)


on_pre_build = handed_on("on_pre_build")
on_nav = handed_on("on_nav")
on_env = handed_on("on_env")
on_page_markdown = handed_on("on_page_markdown")
on_page_content = handed_on("on_page_content")
on_page_context = handed_on("on_page_context")
on_post_page = handed_on("on_post_page")
on_post_template = handed_on("on_post_template")


@event_priority(-100)  # when all other plugins have written
def on_post_build(config):
    if not preview.serving:
        gc.freeze()  # spares the search and the end of the process a full collection
        gc.enable()  # a live preview collects when nobody waits
    if not preview.is_first:
        call("on_post_build", config)
        call("on_post_build_late", config)
