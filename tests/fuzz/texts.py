"""Texts that mean something to what reads them next: a browser, Markdown, Jinja, YAML, TOML, a shell, a terminal."""

from __future__ import annotations

import random

# What a page has that such a text was taken for markup in: elements, attributes and calls are named after it.
MARK = "pwned"

HOSTILE = (
    f"<b class={MARK}>bold</b>",
    f"<script>window.{MARK}=1</script>",
    f'"><img src=x onerror="window.{MARK}=1">',
    f"' {MARK}='1",
    f'0;url=/{MARK}/" http-equiv="refresh" {MARK}="',
    f"&lt;b class={MARK}&gt;bold&lt;/b&gt;",
    f"&#60;script&#62;window.{MARK}=1&#60;/script&#62;",
    "{{ 7*7 }}",
    "{% raw %}",
    "{# ",
    f"[link](javascript:window.{MARK}=1)",
    f"![{MARK}](x){{ .{MARK} onclick='window.{MARK}=1' }}",
    f"a{{: .{MARK} }}",
    f"# Heading {{ #{MARK} }}",
    f"```{MARK}",
    f"</title><script>window.{MARK}=1</script>",
    f"--><script>window.{MARK}=1</script><!--",
    f"]]><{MARK}/>",
    f"$\\href{{javascript:window.{MARK}=1}}{{x}}$",
    f"http://{MARK}.example/ www.{MARK}.example <http://{MARK}.example>",
    f"a | b |\n|---|---|\n| {MARK} |",
    f"*[{MARK}]: abbreviation",
    f"[^{MARK}]: footnote",
    f"--8<-- '{MARK}'",
    "---\ntitle: x\n---",
    "\x1b[31mred\x1b]0;title\x07\x1b[2J",
    "a\nb\r\nc\x0bd",
    "\x9b31m",
    "\u202egnirts\u202c",
    "\u200b\ufeff",
    "x" * 5000,
    "\U0001f600",
    "../../etc/passwd",
    "'; rm -rf / #",
    "",
    " ",
    "\x00",
    "%s %n {0} {x!r}",
    "=cmd|'/C calc'!A0",
    "null",
)


def text(rng: random.Random) -> str:
    """One of them, or several in one another."""
    first = rng.choice(HOSTILE)
    if rng.random() < 0.3:
        cut = rng.randrange(len(first) + 1)
        return first[:cut] + rng.choice(HOSTILE) + first[cut:]
    return first
