"""Which requests are answered: those for a name that the server may have, and for an address that is one.

A page of another site can have its own name lead to this machine (DNS rebinding), and read here whatever it likes. It
cannot choose the name that a browser sends along: that one is held against those by which an author comes.
"""

from __future__ import annotations

import re
from ipaddress import ip_address

from mkdocs.exceptions import PluginError

SETTING = "extra.preview_hosts"
_HOST = re.compile(r"(?:\[([0-9a-fA-F:.%\w]+)\]|([^:\[\]]*))(?::\d*)?")
_NAME = re.compile(r"\*|\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*")


class Hosts:
    """The names by which the preview is asked: localhost, any number (an IP address), the one that it is bound to, and
    those of the setting. A name there that begins with a dot takes all below it, and `*` whatever is sent.
    """

    def __init__(self, config):
        bound, said = config.dev_addr.host, config.extra.get("preview_hosts")
        names = said.replace(",", " ").split() if isinstance(said, str) else said or []
        names = [name.lower() if isinstance(name, str) else name for name in names] if isinstance(names, list) else None
        if names is None or not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
            mend = "write names without a port, such as preview.example.org, or .example.org for all subdomains"
            raise PluginError(f"mkdocs.yml: {SETTING} = {said!r:.60}: expected names of hosts; {mend}")
        self.names = {bound.lower(), "localhost", ".localhost", *names}

    def refusal(self, host: str | None) -> str | None:
        """What is wrong with the host that a request names, on one line; a request of old may name none."""
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
    """The path that a request names; None where it is no text, or has characters that no address has."""
    try:
        path = environ["PATH_INFO"].encode("latin-1").decode()
    except UnicodeError:
        return None
    return None if re.search(r"[\0-\x1f\x7f]", path) else path
