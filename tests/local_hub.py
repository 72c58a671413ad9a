"""A local server that speaks the part of the hub's protocol that is used here: for its own client, and for a page."""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import gguf_files

from macros.counting.parameters import Counts
from macros.engine.architectures import find
from macros.engine.forward import trace

CONFIG = {
    "model_type": "llama",
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
LLAMA = {"general.architecture": "llama"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def counts() -> Counts:
    architecture = find("llama")
    return Counts(trace(architecture, architecture.config.read(dict(CONFIG))[0]), CONFIG)


def safetensors(dtype: str = "BF16", size: int = 2, names: tuple[str, ...] = ()) -> bytes:
    """The header of a file with the model's tensors, or with some of them; the weights behind it are not there."""
    header, at = {}, 0
    for name, shape in counts().tensors():
        if names and name not in names:
            continue
        n = size
        for side in shape:
            n *= side
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + n]}
        at += n
    listed = json.dumps(header).encode()
    return len(listed).to_bytes(8, "little") + listed


NAMES = [name for name, _ in counts().tensors()]
HALVES = {"model-00001-of-00002.safetensors": tuple(NAMES[:9]), "model-00002-of-00002.safetensors": tuple(NAMES[9:])}
INDEX = {"metadata": {}, "weight_map": {name: file for file, names in HALVES.items() for name in names}}
WEIGHTS = 50_000_000  # bytes that a file claims to have behind its header, which nobody may ask for


def gguf(metadata: dict[str, Any], part: slice = slice(None)) -> bytes:
    """A GGUF file, or a part of one: its header is longer than what is read at first."""
    words = {"tokenizer.ggml.tokens": [f"token {n}" for n in range(9_000)]}
    some = dict(list(gguf_files.tensors().items())[part])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        gguf_files.write(path, metadata | words, some, {k: v for k, v in gguf_files.QUANTIZED.items() if k in some})
        return path.read_bytes()


def of_part(number: int) -> dict[str, Any]:
    return {"split.no": number, "split.count": 2, "split.tensors.count": len(gguf_files.tensors())}


def files() -> dict[str, dict[str, bytes]]:
    config = json.dumps(CONFIG).encode()
    index = json.dumps(INDEX).encode()
    halves = {file: safetensors(names=names) for file, names in HALVES.items()}
    away = json.dumps({"weight_map": {"a": "../../secret.safetensors"}}).encode()
    return {
        "org/small": {"config.json": config, "model.safetensors": safetensors("F32", 4)},
        "org/sharded": {"config.json": config, "model.safetensors.index.json": index, **halves},
        "org/away": {"config.json": config, "model.safetensors.index.json": away},
        "org/long-header": {"config.json": config, "model.safetensors": (2**40).to_bytes(8, "little") + b"{}"},
        "org/cut-header": {"config.json": config, "model.safetensors": safetensors()[:300]},
        "org/empty": {"README.md": b"nothing"},
        "org/bad": {"config.json": b"{not json"},
        "org/markup": {"config.json": json.dumps(CONFIG | {"model_type": "<script>alert(1)</script>"}).encode()},
        "org/gated": {},
        "org/private": {},
        "org/busy": {},
        "org/broken": {},
        "org/slow": {"config.json": config},
        "org/cut": {"config.json": config},
        "org/huge": {"config.json": config},
        "org/lying": {"config.json": config},
        "org/only": {"config.json": config},
        "org/Small-GGUF": {
            "Small-Q8_0.gguf": gguf(gguf_files.METADATA),
            "mmproj-F16.gguf": b"GGUF",
            "Cut-Q4_0.gguf": b"GGUF\3\0\0\0",
            "Not-Q5_0.gguf": b"<html>",
            "UD/Small-UD-Q8_0-00001-of-00002.gguf": gguf(gguf_files.METADATA | of_part(0), slice(9)),
            "UD/Small-UD-Q8_0-00002-of-00002.gguf": gguf(of_part(1) | LLAMA, slice(9, None)),
        },
    }


class Hub(BaseHTTPRequestHandler):
    """The part of the hub's protocol that downloads use: revisions, ETag, redirects to where weights lie, ranges."""

    protocol_version = "HTTP/1.1"
    repositories = files()
    sent = 0  # bytes of weights
    asked: list[tuple[str, str]] = []
    elsewhere = ""  # the host to which it redirects

    def log_message(self, *_: object) -> None:
        pass

    def end_headers(self) -> None:
        """Scripts of other pages may read the answers."""
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Expose-Headers", "X-Error-Code")
        super().end_headers()

    def do_HEAD(self) -> None:
        self.answer(False)

    def do_GET(self) -> None:
        self.answer(True)

    def answer(self, has_body: bool) -> None:
        path = self.path.partition("?")[0].strip("/").split("/")
        self.asked.append((self.command, self.path))
        if path[0] == "elsewhere":
            self.send_file(self.repositories[f"{path[1]}/{path[2]}"]["/".join(path[3:])], has_body, path[-1], True)
            return
        if path[:2] == ["api", "models"] and "/".join(path[2:4]) in self.repositories:
            named = [{"rfilename": file} for file in self.repositories["/".join(path[2:4])]]
            said = {"id": "/".join(path[2:4]), "siblings": named, "tags": [], "private": False, "downloads": 0}
            self.send_file(json.dumps(said).encode(), has_body)
            return
        if len(path) < 5 or path[2] != "resolve":
            self.refuse(404, "RepoNotFound")
            return
        name, revision, file = f"{path[0]}/{path[1]}", path[3], "/".join(path[4:])
        statuses = {"org/gated": (403, "GatedRepo"), "org/private": (401, "RepoNotFound")}
        statuses |= {"org/busy": (429, ""), "org/broken": (500, "")}
        if name in statuses and self.headers.get("Authorization") != "Bearer hf_secret":
            self.refuse(*statuses[name])
        elif name not in self.repositories:
            self.refuse(404, "RepoNotFound")
        elif revision not in ("main", COMMIT):
            self.refuse(404, "RevisionNotFound")
        elif file not in self.repositories[name]:
            self.refuse(404, "EntryNotFound")
        elif file.endswith((".safetensors", ".gguf")):
            self.redirect(f"/elsewhere/{name}/{file}", self.repositories[name][file])
        else:
            self.send_file(self.repositories[name][file], has_body, name=name)

    def refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def redirect(self, to: str, body: bytes) -> None:
        self.send_response(302)
        for key, value in self.described(body):
            self.send_header(key, value)
        self.send_header("X-Linked-Size", str(len(body) + WEIGHTS))
        self.send_header("X-Linked-ETag", '"abc"')
        self.send_header("Location", self.elsewhere + to)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def described(self, body: bytes) -> list[tuple[str, str]]:
        return [("ETag", f'"{hash(body) & 0xFFFFFFFF:x}"'), ("X-Repo-Commit", COMMIT), ("Accept-Ranges", "bytes")]

    def send_file(self, body: bytes, has_body: bool, name: str = "", is_large: bool = False) -> None:
        total = len(body) + (WEIGHTS if is_large and not name.startswith("Cut") else 0)
        begin, end = 0, total - 1
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last or end), end)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{end}/{total}")
        else:
            self.send_response(200)
        length = end - begin + 1
        if name == "org/huge":
            length = 10**12
        for key, value in self.described(body):
            self.send_header(key, value)
        self.send_header("Content-Length", str(length + 7 if name == "org/lying" else length))
        self.end_headers()
        if not has_body:
            return
        if name == "org/slow":
            time.sleep(4)
        if name in ("org/lying", "org/cut"):
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.wfile.write(body[: 40 if name == "org/cut" else None])
            return
        with contextlib.suppress(OSError):
            self.wfile.write(body[begin : end + 1])
            behind = max(0, end + 1 - max(begin, len(body)))
            while behind > 0 and is_large:
                n = min(behind, 65_536)
                self.wfile.write(bytes(n))
                Hub.sent += n
                behind -= n


@contextlib.contextmanager
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Hub.sent, Hub.asked = 0, []
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
