"""The content security policy of every page: it loads only files of the site itself, and runs only known scripts.

A page that can ask a hub about a model, when the reader clicks its button, names that host in its head; only its policy
allows requests to that host.

The theme's inline scripts are allowed by their digests. Text becomes markup and scripts through one gate (Trusted
Types), which comes before any other script.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

from ..engine.errors import Problem, shorten

# data: is for the theme's icons, which are masks in its style sheet.
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'self'; connect-src 'self'; font-src 'self'; "
    "img-src 'self' data:; manifest-src 'self'; style-src 'self'; worker-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types default; script-src 'self'"
)
# Only URLs of the site's scripts, and whole pages for parsing without running them, may become markup.
GATE = """globalThis.trustedTypes?.createPolicy("default", {
  createHTML: (text, kind, sink) => (sink.startsWith("DOMParser") ? text : null),
  createScriptURL: text => (new URL(text, document.baseURI).origin === location.origin ? text : null),
})"""
_HOST = r"https?://[A-Za-z0-9.-]+(?::[0-9]+)?"
HUB = re.compile(rf'<meta name="ep-hub" content="({_HOST}(?: {_HOST})*)">')
_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<content>.*?)</script>", re.S | re.I)
_FIRST = re.compile(r'<meta charset="[^"]*">')
_KINDS = re.compile(r"\btype=[\"']?(?:module|text/javascript)\b")


def scripts(page: str) -> list[str]:
    """The inline scripts of a page, in order, without data blocks, which do not run."""
    return [
        m["content"]
        for m in _SCRIPT.finditer(page)
        if " src" not in m["attributes"] and ("type=" not in m["attributes"] or _KINDS.search(m["attributes"]))
    ]


def policy(page: str) -> str:
    """The policy of a page: what it may load and run."""
    digests = {f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts(page)}
    own = "connect-src 'self'"
    named = HUB.search(page.partition("</head>")[0])
    allowed = POLICY.replace(own, f"{own} {named[1]}") if named else POLICY
    return " ".join([allowed, *sorted(digests)])


def checked_hub(address: object) -> str:
    """The setting `HUB`, without trailing slashes: empty, or a host with its scheme, followed by the hosts to which it
    redirects. Raises `Problem`."""
    said = "" if address is None else " ".join(host.rstrip("/") for host in str(address).split())
    if said and not HUB.fullmatch(f'<meta name="ep-hub" content="{said}">'):
        raise Problem(
            f"HUB = {shorten(said)}: expected the address of a host, or of several",
            "write https://huggingface.co, or leave it empty to ask no host",
            "mkdocs.yml",
        )
    return said


def with_policy(page: str) -> str:
    """The page with its policy and the gate at the start of its head."""
    gate = f"<script>{GATE}</script>"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(gate + page)}">'
    return _FIRST.sub(lambda m: f"{m[0]}{meta}{gate}", page, count=1)


def with_gate(page: str) -> tuple[str, str]:
    """The page with the gate before everything else, and its policy for a header: a live preview sends it, after its
    server has written a script of its own into the page."""
    page = _FIRST.sub(lambda m: f"{m[0]}<script>{GATE}</script>", page, count=1)
    return page, policy(page)


def on_post_page(output, page, config):
    return with_policy(output)


def on_post_template(output, template_name, config):
    return with_policy(output) if template_name.endswith(".html") else output
