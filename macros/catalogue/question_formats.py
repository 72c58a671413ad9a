"""The formats of a question: of the weights and of the cache."""

from __future__ import annotations

from typing import Any

OF_CACHE = ("cache", "kvcache", "kv", "ctk", "ctv")  # before a format of the cache
# Libraries with their usual format and their other one: `mlx 8 bit` means a single format.
OF_8_BITS = {"mlx-4bit": "mlx-8bit", "nf4": "llm.int8"}
PLAIN = ("int4", "int8")  # formats with more specific variants


class Formats:
    """Reads the formats of a question."""

    def __init__(self, reading: Any) -> None:
        self.reading, self.said = reading, reading.said  # `question.Reading`

    def read(self) -> None:
        """Read the formats of the weights and of the cache."""
        r = self.reading
        said, known = self.said, r.grammar.names["caches"]
        formats: list[str] = []
        caches: list[str] = []
        for start, name, n in r.taken("format"):
            kind = name.lower()
            if r.denied(start) >= 0:
                said.unused.append(r.typed(r.denied(start), start + n))
                continue
            after, before = start + n, start - 1
            while r.has(before, "in", "at", "as", "type", "k", "v", "to"):
                before -= 1
            is_cache = r.has(after, "cache", "kvcache") or (r.has(after, "kv") and r.has(after + 1, "cache"))
            is_cache = is_cache or r.has(before, *OF_CACHE)
            is_kv = r.has(after, "kv") and not r.has(after + 1, "cache", "head", "heads")  # `q4_0 kv`
            plain = f"{kind[:2]}_0"
            if is_cache and not is_kv and kind not in known and plain in known:
                kind = plain  # `kv q4`
            if (is_cache or is_kv) and kind in known:
                caches += [] if kind in caches else [kind]
                r.use(after, after + 1 if is_kv else after)
            elif name not in formats:
                formats.append(name)
                self._note_kind(start, n, name)
        for usual in OF_8_BITS:
            if usual in formats and "int8" in formats:
                formats = [OF_8_BITS[usual]]
        bits = "".join([name for name in formats if name not in PLAIN])
        formats = [name for name in formats if name not in PLAIN or name[-1] not in bits]  # `int4 awq`
        said.format = formats[0] if len(formats) == 1 else None
        said.cache = caches[0] if len(caches) == 1 else None
        said.formats = formats if len(formats) > 1 else []
        said.caches = caches if len(caches) > 1 else []

    def _note_kind(self, start: int, n: int, name: str) -> None:
        """Note that a variant of a format is taken as that format: `Q6_K_L`, `UD-Q2_K_XL`."""
        r = self.reading
        end = start + n
        is_before = start > 0 and r.question[r.tokens[start - 1].end : r.tokens[start].start] == "-"
        first = start - 1 if is_before and r.tokens[start - 1].text == "ud" else start
        is_behind = end < len(r.tokens) and r.question[r.tokens[end - 1].end : r.tokens[end].start] == "_"
        end += 1 if is_behind and r.tokens[end].text.isalpha() else 0
        if end - first > n:
            self.said.why_format = f"{r.typed(first, end)} is taken as {name}."
            r.use(first, end)

    def take_usual(self) -> None:
        """On a machine, chooses the format of an engine's own files, unless they keep the published one."""
        said, names = self.said, self.reading.grammar.names
        usual = names["of_files"][said.engine] if said.engine in names["of_files"] else None
        is_asked = said.format or said.formats or said.is_training or len(said.models) != 1 or said.on is None
        if usual and not is_asked and said.models[0].record not in names["kept"]:
            said.format, said.why_format = usual, f"{said.engine}’s usual format, {usual}, is taken."
