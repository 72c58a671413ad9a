"""The requests that are answered: those for an accepted host name and a valid path.

A page of another site could point its own host name at this machine (DNS rebinding), and read anything here. It cannot
choose the host name that a browser sends, so that name is compared with those that an author uses.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import unquote

from mkdocs.exceptions import PluginError

SETTING = "extra.preview_hosts"
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.%\w]+)\]|([^:\[\]]*))(?::\d*)?")
_NAME = re.compile(r"\*|\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*")


class Hosts:
    """The accepted host names: localhost, any IP address, the name that the preview is bound to, and those of the
    setting. A name in the setting that starts with a dot includes its subdomains, and `*` accepts any name."""

    def __init__(self, config):
        bound, said = config.dev_addr.host, config.extra.get("preview_hosts")
        names = said.replace(",", " ").split() if isinstance(said, str) else said or []
        names = [name.lower() if isinstance(name, str) else name for name in names] if isinstance(names, list) else None
        if names is None or not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
            mend = "write names without a port, such as preview.example.org, or .example.org for all subdomains"
            raise PluginError(f"mkdocs.yml: {SETTING} = {said!r:.60}: expected names of hosts; {mend}")
        self.names = {bound.lower(), "localhost", ".localhost", *names}

    def refusal(self, host: str | None) -> str | None:
        """The error for the host of a request, on one line; an old-style request may name none."""
        if host is None:
            return None
        read = _HOST.fullmatch(host.strip())
        name = (read[1] or read[2] or "").lower().removesuffix(".") if read else ""
        above = [name[n:] for n, letter in enumerate(name) if letter == "."]
        if "*" in self.names or not self.names.isdisjoint({name, *above} - {""}) or _is_number(name):
            return None
        return (
            f"the preview does not answer as {host!a:.100}; if it is yours, name it in {SETTING} of mkdocs.yml, "
            "or start with PREVIEW_HOSTS=that.name\n"
        )


def _is_number(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def path_of(environ) -> str | None:
    """The path of a request; None if it is not text, or has characters that no URL has."""
    try:
        path = environ["PATH_INFO"].encode("latin-1").decode()
    except UnicodeError:
        return None
    return None if re.search(r"[\0-\x1f\x7f]", path) else path


def secured(content: bytes) -> tuple[bytes, str]:
    """A page as it is when published: with the gate for scripts, and the policy, which is sent as a header here."""
    from ...content_security import with_gate  # which is imported again after an edit

    page, policy = with_gate(content.decode("utf-8", "surrogateescape"))
    return page.encode("utf-8", "surrogateescape"), policy


def as_markdown(html: str) -> bytes:
    """A page's content as its Markdown copy."""
    from ...plain_markdown import markdown  # which is imported again after an edit

    return markdown(html).encode()


def address(path: str) -> str:
    """A page's URL relative to the site's: from a request or from MkDocs, the same for both."""
    return unquote(path).removeprefix("/").removesuffix("index.html")
