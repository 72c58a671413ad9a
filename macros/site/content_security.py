"""The content security policy of every page: it loads only files of the site itself, and runs only known scripts.

The theme's inline scripts are allowed by their digests. Text becomes markup and scripts through one gate (Trusted
Types), which comes before any other script.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

# data: is for the theme's icons, which are masks in its style sheet.
POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'self'; connect-src 'self'; font-src 'self'; "
    "img-src 'self' data:; manifest-src 'self'; style-src 'self'; worker-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types default; script-src 'self'"
)
# Addresses of the site's scripts, and whole pages to be parsed, in which nothing runs. No other text becomes markup.
GATE = """globalThis.trustedTypes?.createPolicy("default", {
  createHTML: (text, kind, sink) => (sink.startsWith("DOMParser") ? text : null),
  createScriptURL: text => (new URL(text, document.baseURI).origin === location.origin ? text : null),
})"""
_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<content>.*?)</script>", re.S | re.I)
_FIRST = re.compile(r'<meta charset="[^"]*">')
_KINDS = re.compile(r"\btype=[\"']?(?:module|text/javascript)\b")


def scripts(page: str) -> list[str]:
    """The inline scripts of a page, in order; blocks of data do not run."""
    return [
        m["content"]
        for m in _SCRIPT.finditer(page)
        if " src" not in m["attributes"] and ("type=" not in m["attributes"] or _KINDS.search(m["attributes"]))
    ]


def policy(page: str) -> str:
    """The policy of a page: what it may load and run."""
    digests = {f"'sha256-{b64encode(sha256(one.encode()).digest()).decode()}'" for one in scripts(page)}
    return " ".join([POLICY, *sorted(digests)])


def with_policy(page: str) -> str:
    """The page with its policy, and the gate, before everything else."""
    gate = f"<script>{GATE}</script>"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(gate + page)}">'
    return _FIRST.sub(lambda m: f"{m[0]}{meta}{gate}", page, count=1)


def on_post_page(output, page, config):
    return with_policy(output)


def on_post_template(output, template_name, config):
    return with_policy(output) if template_name.endswith(".html") else output
