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
    # A .pyc in a watched folder makes a second rebuild of every edit, and hides one of the same second and size.
    sys.dont_write_bytecode = True

PACKAGE = pathlib.Path(__file__).parent.parent.parent
ROOT = str(PACKAGE.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)


def the_preview():
    """Load the preview. An error in its own modules ends a build, but not a live preview: that begins once they are
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
logging.getLogger("mkdocs.config").addFilter(importlib.import_module("macros.site.mkdocs.preview.lines").Settings())
ADAPTERS = "macros.site.mkdocs.markdown", "macros.site.mkdocs.pages", "macros.site.mkdocs.search"
# And of a site to be published: not of a preview, nor of a build that is told to be as one by PUBLISHED=no.
PUBLISHED = "macros.site.mkdocs.published", "macros.site.content_security"
SECOND = "macros.cache.second_process"  # of a build that has one
OUTPUT = "macros.site.mkdocs.output"  # and of one that replaces what stands in its folder
is_replacing = False


def call(event, *args, **kwargs):
    """Pass the event to the function with that name in each adapter."""
    result = None
    try:
        published = () if preview.serving or os.environ.get("PUBLISHED") == "no" else PUBLISHED
        for name in ADAPTERS + published + ((OUTPUT,) if is_replacing else ()):
            if adapter := sys.modules.get(name) or (importlib.util.find_spec(name) and importlib.import_module(name)):
                function = getattr(adapter, event, None)
                if function and (changed := function(*args, **kwargs)) is not None:
                    args, result = (changed, *args[1:]), changed
    except Exception as error:
        if type(error).__name__ == "Problem":  # its class is a new one after each edit
            raise PluginError(str(error)) from None
        raise
    return result


def handed_on(event):
    """The event before all other plugins, among them, and after them; while the server is not up yet, nothing."""

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
    is_replacing = command != "serve" and not dirty
    logging.getLogger("mkdocs.plugins.mkdocs_macros").setLevel(logging.WARNING)  # else it lists all macros each time
    # The empty build before the server is there is none that anybody waits for.
    for name in ("mkdocs.commands.build", "mkdocs.commands.serve"):
        logging.getLogger(name).addFilter(lambda line: not preview.is_first or line.levelno > logging.INFO)
    preview.on_startup(command)


@event_priority(100)  # before the macros plugin imports the package
def on_config(config):
    gc.disable()  # a build makes little that is not freed without it: each look at everything costs a tenth of a second
    if preview.is_first:  # before the server is there
        preview.on_config_first(config)
        if "macros" in config.plugins:
            # The plugin's default, for which a missing module is no error.
            config.plugins["macros"].config["module_name"] = "main"
        config.nav = None
        return None
    if preview.serving:
        preview.on_config_early(config)
        config.plugins["macros"].config["on_error_fail"] = False
    else:
        preview.modules.forget(None)
    return call("on_config", config)


def on_files(files, config):
    """Only the theme's own files while the server is not up yet."""
    if preview.is_first:
        for file in list(files):
            if file.is_documentation_page():
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
        gc.freeze()  # neither the search nor the end of the process looks through all that there is
        gc.enable()  # a live preview does so when nobody waits
    if not preview.is_first:
        call("on_post_build", config)
        call("on_post_build_late", config)
