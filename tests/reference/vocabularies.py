"""The merges of published tokenizers: `python -m tests.reference.vocabularies FILE`, from the repository, takes them
from the package js-tiktoken and writes them to `macros/catalogue/vocabularies/`. FILE is what
`npm pack js-tiktoken@1.0.21` makes. With the library tiktoken at hand, texts are cut by both.

The package lists the bytes of each token. What two tokens a merge joins follows from them: joining the bytes of a token
by the merges before it leaves two.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import importlib.util
import json
import re
import sys
import tarfile
import zlib
from pathlib import Path
from typing import Any

from macros.catalogue import merges

PACKAGE = "js-tiktoken 1.0.21 (npm)"
SHA256 = "3b1f24b185565ca9a8d8f51466dfc4f99d67f1f05bc009258710ddb7a8d810fa"
NAMES = "gpt2", "cl100k_base", "o200k_base"
MODELS = {"gpt2": "GPT-2", "gpt-4": "GPT-4", "gpt-4o": "GPT-4o"}  # of those that the package lists
HEAD = (
    "# Written by `python -m tests.reference.vocabularies FILE`, from the repository; the program says what FILE is.\n"
)
LICENCE = "https://github.com/openai/tiktoken/blob/main/LICENSE"
TEXTS = (
    "The capital of France is", "Die Hauptstadt von Frankreich ist", "3.14159265", "  if x:\n\t\treturn  x\n\n",
    "I'm, WE'LL", "naïve café", "東京は日本の首都です",
    "👩‍👩‍👧 ok", "Ελληνικά", "\u00a0a\u2003b\u0085c\ufeff", "١٢٣٤٥", "हिन्दी", "a" * 40, "",
)  # fmt: skip


def ranks(archive: tarfile.TarFile, name: str) -> tuple[dict[str, Any], dict[bytes, int]]:
    """The description of a vocabulary, and the id of each token by its bytes, without the special ones."""
    script = _text(archive, f"package/dist/ranks/{name}.js")
    described = json.loads(script.removeprefix("export default ").rstrip().removesuffix(";"))
    found: dict[bytes, int] = {}
    for line in described["bpe_ranks"].splitlines():
        _, first, *tokens = line.split(" ")
        found |= {base64.b64decode(token): int(first) + i for i, token in enumerate(tokens)}
    return described, found


def _text(archive: tarfile.TarFile, name: str) -> str:
    file = archive.extractfile(name)
    assert file, name
    return file.read().decode()


def pairs(known: dict[bytes, int]) -> list[tuple[int, int]]:
    """The two token ids that each merge joins, in order."""
    found = []
    for token, id in sorted(known.items(), key=lambda one: one[1]):
        if len(token) == 1:
            assert merges.BYTES[id] == token[0], "another order of bytes"
            continue
        parts = [token[i : i + 1] for i in range(len(token))]
        while len(parts) > 2:
            _, i = min((known.get(a + b, id), i) for i, (a, b) in enumerate(zip(parts, parts[1:])))
            parts[i : i + 2] = [parts[i] + parts[i + 1]]
        assert id == len(merges.BYTES) + len(found), "ids with gaps"
        found.append((known[parts[0]], known[parts[1]]))
    return found


def packed(found: list[tuple[int, int]]) -> bytes:
    """The merges as a file."""
    return zlib.compress(b"".join(bytes(pair[k] >> s & 255 for pair in found) for k in (0, 1) for s in (0, 8, 16)), 9)


def main(file: str) -> None:
    digest = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    assert digest == SHA256, f"{file}: another file, {digest}"
    merges.FOLDER.mkdir(exist_ok=True)
    lines = [HEAD, "[source]"]
    source = {
        "package": PACKAGE, "sha256": digest, "licence": "MIT",
        "command": "python -m tests.reference.vocabularies FILE", "date": datetime.date.today().isoformat(),
    }  # fmt: skip
    lines += [f"{key} = {json.dumps(value)}" for key, value in source.items()]
    with tarfile.open(file) as archive:
        listed = next(n for n in archive.getnames() if re.fullmatch(r"package/dist/chunk-\w+\.js", n))
        encodings = _text(archive, listed)
        for name, (model, of) in zip(NAMES, MODELS.items()):
            assert re.search(rf'case "{model}":[^}}]*?return "{name}"', encodings), f"{model} has another vocabulary"
            described, known = ranks(archive, name)
            content = packed(pairs(known))
            merges.path(name).write_bytes(content)
            lines += ["", "[[vocabulary]]", f'name = "{name}"', f'of = "{of}"', f"tokens = {len(known)}"]
            lines += [f"pattern = '''{described['pat_str']}'''", f'sha256 = "{hashlib.sha256(content).hexdigest()}"']
    merges.FOLDER.with_name("vocabularies.toml").write_text("\n".join(lines) + "\n", "utf-8")
    with tarfile.open(file) as archive:
        compared(archive)


def compared(archive: tarfile.TarFile) -> None:
    """The texts, cut by tiktoken and by this site."""
    if importlib.util.find_spec("tiktoken") is None:
        return print("tiktoken is not installed: nothing was compared")
    import tiktoken

    for name in NAMES:
        described, known = ranks(archive, name)
        other = tiktoken.Encoding(name, pat_str=described["pat_str"], mergeable_ranks=known, special_tokens={})
        for text in TEXTS:
            ours = [piece.id for piece in merges.cut(name, text)]
            assert ours == other.encode(text), f"{name}, {text!r}: {ours}, and tiktoken {other.encode(text)}"
    print(f"{len(TEXTS)} texts by {len(NAMES)} vocabularies: as tiktoken {tiktoken.__version__} cuts them")


if __name__ == "__main__":
    main(*sys.argv[1:])
