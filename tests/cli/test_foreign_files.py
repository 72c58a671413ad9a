"""Tokenizers, arrays and headers that others wrote: an answer, or one line; no traceback, no waiting, nothing raw."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from copies import ROOT
from reference import golden

from macros.catalogue import presets, tokenizers
from macros.cli.commands import main
from macros.engine.bounds import LARGEST_TOKENIZER
from macros.engine.errors import seen


def folder_of(name: str, folder: Path) -> Path:
    """A checkpoint folder made of a golden checkpoint."""
    g = golden(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(g.raw))
    safetensors.numpy.save_file(
        {n: np.ascontiguousarray(t) for n, t in g.tensors.items()}, folder / "model.safetensors"
    )
    return folder


@pytest.fixture
def run(capfd):
    """`run("totals", path)` -> (exit status, standard output, standard error), what other libraries print included."""

    def call(*arguments):
        status = main([str(a) for a in arguments])
        out, err = capfd.readouterr()
        for line in (out + err).splitlines():
            assert seen(line) == line
        return status, out, err

    return call


def refused(result) -> str:
    """The one line of a call that fails with 2."""
    status, out, err = result
    assert status == 2 and err.count("\n") == 1 and err.endswith("\n") and not out, (status, out, err)
    return err


# --- tokenizers -------------------------------------------------------------------------------------------------------

SPACES = {"type": "Whitespace"}


def word_list(vocab: dict[str, int], **other) -> dict:
    return {"pre_tokenizer": SPACES, "model": {"type": "WordLevel", "vocab": vocab}} | other


def of_library(model: dict, **other) -> dict:
    """One that the library reads."""
    no = dict.fromkeys(("truncation", "padding", "post_processor", "decoder")) | {"normalizer": {"type": "NFC"}}
    return {"version": "1.0", "added_tokens": [], "pre_tokenizer": SPACES, "model": model} | no | other


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory) -> Path:
    return folder_of("gpt2", tmp_path_factory.mktemp("gpt2"))


def with_tokenizer(folder: Path, listed: dict) -> Path:
    (folder / "tokenizer.json").write_text(json.dumps(listed))
    return folder


V = int(golden("gpt2").raw["vocab_size"])
UNK = {"type": "WordLevel", "vocab": {"a": 1, "[UNK]": 2}, "unk_token": "[UNK]"}


@pytest.mark.parametrize("id", [-1, V, 10**30, 2**63])
def test_an_id_beyond_the_vocabulary_is_refused(run, gpt2, id):
    said = refused(run("run", with_tokenizer(gpt2, word_list({"a": 1, "b": id})), "--text", "a b"))
    assert f"tokenizer.json: gives the token id {id}, and ids of this model run from 0 to {V - 1}; give the" in said
    named = word_list({"a": 1}, added_tokens=[{"id": id, "content": "New York"}])
    assert f"the token id {id}," in refused(run("run", with_tokenizer(gpt2, named), "--text", "a New York"))


def test_an_id_beyond_the_vocabulary_is_refused_of_the_library_too(run, gpt2):
    with_tokenizer(gpt2, of_library(UNK | {"vocab": {"a": V, "[UNK]": 2}}))
    assert f"the token id {V}," in refused(run("run", gpt2, "--text", "a"))


def test_a_word_of_no_id_and_an_id_of_no_word(run, gpt2):
    status, out, err = run("run", with_tokenizer(gpt2, word_list({"a": 1})), "--text", "a", "--top", V, "--generate", 2)
    assert status == 0 and not err and len(out.splitlines()) == 1 + V + 1 + 1 + 2 + 1 + 1
    assert "'b' is not one of the 1 words" in refused(run("run", gpt2, "--text", "b"))
    assert "half a character" in refused(run("run", gpt2, "--text", "\udcff"))


@pytest.mark.parametrize("library", [False, True])
def test_a_tokens_text_is_seen_and_not_obeyed(run, gpt2, library):
    words = [f"\x1b[31m\u202e\u2066\xad{i}\n\r\x9b" for i in range(V)]
    vocab = {word: i for i, word in enumerate(words)} | {"c": 3}
    with_tokenizer(gpt2, of_library(UNK | {"vocab": vocab | {"[UNK]": V}}) if library else word_list(vocab))
    status, out, err = run("run", gpt2, "--text", "c", "--generate", "2", "--top", "3")
    assert status == 0 and not err and len(out.splitlines()) == 4 + 1 + 3 + 1 + 1
    assert r"\x1b[31m\u202e\u2066\xad" in out.splitlines()[1] and r"\n\r\x9b" in out.splitlines()[-1]


def test_a_tokens_text_that_is_long_is_cut(run, gpt2):
    with_tokenizer(gpt2, word_list({"x" * 10_000 + str(i): i for i in range(V)} | {"a": 1}))
    assert max(map(len, run("run", gpt2, "--text", "a")[1].splitlines())) < 200


def test_tokenizers_as_large_as_the_published_ones_are_read(run, gpt2):
    """Gemma's has 33 million bytes; one beyond the bound is not opened."""
    file = with_tokenizer(gpt2, word_list({"a": 1})) / "tokenizer.json"
    file.write_text(file.read_text() + " " * (34 * 10**6))
    assert run("run", gpt2, "--text", "a")[0] == 0
    with file.open("r+b") as opened:
        opened.truncate(LARGEST_TOKENIZER + 1)  # a hole: no such file is written
    assert f"it has {LARGEST_TOKENIZER + 1:,} bytes, more than" in refused(run("run", gpt2, "--text", "a"))


# what stands in tokenizer.json, and what the line says
TOKENIZERS = {
    "empty": ("", "broken JSON"),
    "cut short": ('{"model": {', "broken JSON"),
    "a byte-order mark": ("\ufeff{}", "byte-order mark"),
    "deep": ('{"x": ' + "[" * 1_000_000, "broken JSON: nested too deeply"),
    "deep, to the library": ('{"model": ' + "[" * 1_000_000, "cannot be read: recursion limit"),
    "a list": ("[]", "cannot be read: "),
    "a number of 5,000 digits": ('{"model": ' + "9" * 5000 + "}", "cannot be read: "),
    "an id that is no u32": (of_library(UNK | {"vocab": {"a": -1}}), "cannot be read: "),
    "no token for unknown words": (of_library(UNK | {"vocab": {"a": 1}}), "cannot tokenize the text: "),
    "merges that stop the library": (
        of_library({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]}),
        "cannot be read: range end index",
    ),
    "a template that stops the library": (
        of_library(
            UNK,
            post_processor={
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "[X]", "type_id": 0}}],
                "pair": [],
                "special_tokens": {},
            },
        ),
        "cannot tokenize the text: no entry found for key",
    ),
}


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_tokenizer_that_cannot_be_read_is_one_line(run, gpt2, name):
    content, found = TOKENIZERS[name]
    (gpt2 / "tokenizer.json").write_text(content if isinstance(content, str) else json.dumps(content))
    said = refused(run("run", gpt2, "--text", "b a"))
    assert f"{gpt2 / 'tokenizer.json'}: " in said and found in said


def test_padding_and_truncation_of_a_file_change_no_text(run, gpt2):
    """They are for training, in batches: one would add tokens to a text, and a pad of 10¹² ends the process."""
    padding = {"strategy": {"Fixed": 10**12}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "a"}
    truncation = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    with_tokenizer(gpt2, of_library(UNK, padding=padding, truncation=truncation))
    assert (
        run("run", gpt2, "--text", "a a", "--top", 1)[1].splitlines()[1].split()[:2]
        == (run("run", gpt2, "--tokens", "1,1", "--top", 1)[1].splitlines()[1].split()[:2])
    )


def test_a_tokenizer_that_is_never_done_is_left(run, gpt2, monkeypatch):
    monkeypatch.setattr(tokenizers, "MOST_SECONDS", 0.001)
    with_tokenizer(gpt2, of_library(UNK))
    assert "the library tokenizers did not finish within 0.001 s" in refused(run("run", gpt2, "--text", "a"))


def test_a_tokenizer_that_takes_all_memory_ends_alone(run, gpt2, monkeypatch):
    monkeypatch.setattr(tokenizers, "MOST_MEMORY", 2**28)
    longer = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10**6}
    with_tokenizer(gpt2, of_library(UNK, normalizer={"type": "Sequence", "normalizers": [longer] * 3}))
    assert "the library tokenizers stopped without an answer" in refused(run("run", gpt2, "--text", "a"))


@pytest.mark.parametrize("file", ["tokenizer.json", "config.json", "model.safetensors", "sound.npy"])
def test_a_pipe_and_a_folder_are_no_files(run, tmp_path, file):
    folder = folder_of("whisper", tmp_path / "m")
    (folder / "tokenizer.json").write_text(json.dumps(word_list({"a": 1})))
    sound = folder / "sound.npy"
    np.save(sound, golden("whisper").source)
    for make in (os.mkfifo, os.mkdir):
        (folder / file).rmdir() if (folder / file).is_dir() else (folder / file).unlink()
        make(folder / file)
        assert str(folder / file) in refused(run("run", folder, "--text", "a", "--source", sound))
        if make is os.mkfifo:
            (folder / file).unlink()
            (folder / file).mkdir()


# --- arrays -----------------------------------------------------------------------------------------------------------


def npy(array: np.ndarray) -> bytes:
    written = io.BytesIO()
    np.save(written, array, allow_pickle=True)
    return written.getvalue()


def npy_of(header: str, data: bytes = b"", version: int = 1) -> bytes:
    """A file with this header."""
    said = header.encode("latin1")
    return b"\x93NUMPY" + bytes([version, 0]) + len(said).to_bytes(2 if version == 1 else 4, "little") + said + data


def a_zip() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        file.writestr("a.npy", b"")
    return written.getvalue()


SOUND = golden("whisper").source
ARRAYS = {
    "empty": (b"", "is not a .npy file; save the array by numpy.save"),
    "a zip": (a_zip(), "is not a .npy file"),
    "text": (b"0.5 0.5\n" * 99, "is not a .npy file"),
    "a header that is cut": (npy(SOUND)[:40], "is not a .npy file"),
    "a header that is deep": (npy_of("(" * 9000), "is not a .npy file"),
    "a long header": (npy_of(" " * 60_000), "is not a .npy file"),
    "of a later version": (npy_of("{}", version=9), "is not a .npy file"),
    "no type": (npy_of("{'descr': 'x9', 'fortran_order': False, 'shape': (1,)}"), "is not a .npy file"),
    "numbers that are cut": (npy(SOUND)[:-1], "bytes of numbers, and"),
    "two arrays": (npy(SOUND) * 2, "bytes of numbers, and"),
    "a huge shape": (npy_of(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({2**62}, {2**62})}}"), "is ["),
    "a shape below 0": (npy_of("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2)}"), "is [-1, 2]"),
    "another shape": (npy(SOUND[:-1]), f", and not {list(SOUND.shape)}; give an array of this shape"),
    "words": (npy(np.full(SOUND.shape, "a\x1b")), "holds '<U2', not floating-point or whole numbers"),
    "bytes": (npy(np.full(SOUND.shape, b"a")), "holds '|S1'"),
    "dates": (npy(np.full(SOUND.shape, np.datetime64("2024-01-01"))), "holds 'datetime64[D]'"),
    "complex": (npy(SOUND.astype(complex)), "holds 'complex128'"),
    "truths": (npy(SOUND > 0), "holds 'bool'"),
    "records": (npy(np.zeros(SOUND.shape, [("a", "f4")])), "not floating-point or whole numbers"),
    "objects": (npy(SOUND.astype(object)), "holds 'object'"),
    "NaN": (npy(np.where(SOUND > 0, np.nan, SOUND)), "holds NaN, infinity"),
    "too large for float32": (
        npy(SOUND.astype(float) + 1e300),
        "holds NaN, infinity, or a number beyond float32",
    ),
}


@pytest.fixture(scope="module")
def whisper(tmp_path_factory) -> Path:
    return folder_of("whisper", tmp_path_factory.mktemp("whisper"))


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_that_is_no_spectrogram_is_one_line(run, whisper, name):
    content, found = ARRAYS[name]
    sound = whisper / "sound.npy"
    sound.write_bytes(content)
    said = refused(run("run", whisper, "--tokens", "1", "--source", sound))
    assert f"--source {sound}: " in said and found in said


def test_arrays_of_every_kind_of_number_give_the_same(run, whisper):
    sound, whole = whisper / "sound.npy", np.round(SOUND * 3)
    answers = set()
    for made in (
        whole.astype("<f4"),
        whole.astype(">f8"),
        whole.astype("<i2"),
        np.asfortranarray(whole),
        whole.T.copy().T,
    ):
        sound.write_bytes(npy(made))
        answers.add(run("run", whisper, "--tokens", "1", "--source", sound))
    [(status, out, err)] = answers
    assert status == 0 and out and err.count("\n") == 1  # what is said of the model


# --- headers ----------------------------------------------------------------------------------------------------------


def header_of(*tensors: tuple, data: int = 0) -> bytes:
    """The beginning of a file: a name, a type, a shape, the offsets of each; and so many bytes behind."""
    listed = ",".join(
        f"{json.dumps(name)}: {json.dumps({'dtype': dtype, 'shape': shape, 'data_offsets': offsets})}"
        for name, dtype, shape, offsets in tensors
    )
    text = f"{{{listed}}}".encode()
    return of_text(text) + b"\0" * data


def of_text(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text


A, B = ("a", "F32", [2, 3], [0, 24]), ("b", "BF16", [4], [24, 32])
LYING = {
    "offsets of less": (header_of(A, ("b", "I8", [4], [24, 27])), "lists b as I8 [4], and gives it the bytes from 24"),
    "offsets that go back": (header_of(("a", "F32", [2, 3], [24, 0])), "the bytes from 24 to 0, which are not as many"),
    "a shape of more": (header_of(("a", "I8", [2**62] * 64, [0, 8])), "lists a as I8 [4611686018427387904, "),
    "2,000 axes": (header_of(("a", "I8", [2**62] * 2000, [0, 8])), "has no list of tensors: expected"),
    "200,000 axes": (header_of(("a", "I8", [2**62] * 200_000, [0, 8])), "has no list of tensors: expected"),
    "a size of 30 digits": (header_of(("a", "I8", [10**30], [0, 10**30])), "has no list of tensors"),
    "a size of 5,000 digits": (of_text(b'{"a":{"shape":[' + b"2" * 5000 + b"]}}"), "has no list of tensors"),
    "deep nesting": (of_text(b'{"a":' + b"[" * 10**5), "has no list of tensors"),
    "half of a character": (header_of(("\ud800", "F32", [1], [0, 4])), "has no list of tensors"),
    "another type": (header_of(("a", "F33", [1], [0, 4])), "a: dtype = 'F33': unknown; known ones: F64, "),
    "no offsets": (of_text(b'{"a":{"dtype":"F32"}}'), "has no list of tensors: "),
    "a name twice": (header_of(A, B, A), "lists twice: a; download the file again"),
    "a key twice": (of_text(header_of(A)[8:].replace(b'"dtype"', b'"shape":[6],"dtype"')), "lists twice: shape"),
    "an overlap": (header_of(A, ("b", "BF16", [4], [20, 28])), "lists overlapping tensors: b in a;"),
    "the same place": (header_of(A, ("b", "F32", [6], [0, 24])), "lists overlapping tensors: b in a"),
    "nothing but empty tensors": (header_of(("a", "F32", [0, 3], [0, 0])), "all tensors that are listed are empty"),
}


@pytest.mark.parametrize("name", LYING)
def test_a_header_that_cannot_be_is_one_line(run, tmp_path, name):
    content, found = LYING[name]
    file = tmp_path / "x.safetensors"
    file.write_bytes(content)
    assert found in refused(run("totals", file))


# what stands in a file, what is said of it, and how many numbers are counted
ODD = {
    "a gap": (header_of(A, ("b", "BF16", [4], [32, 40])), "bytes that belong to no tensor: 8 before b", 10),
    "a gap before all": (header_of(("a", "F32", [6], [8, 32])), "bytes that belong to no tensor: 8 before a", 6),
    "bytes behind": (header_of(A, data=30), "6 bytes after the last tensor", 6),
    "no number": (header_of(A, ("c", "F32", [0], [24, 24]), B), "empty, and not counted: c", 10),
}


@pytest.mark.parametrize("name", ODD)
def test_what_the_format_does_not_allow_is_said_and_refused_if_asked(run, tmp_path, name):
    content, found, numbers = ODD[name]
    file = tmp_path / "x.safetensors"
    file.write_bytes(content)
    status, out, err = run("totals", file)
    assert status == 0 and tomllib.loads(out)["published"]["parameters"] == numbers and found in err
    assert (" 1 tensor: " if numbers == 6 else " 2 tensors: ") in err
    assert f"{file}: {found}; leave out --strict" in refused(run("totals", file, "--strict"))
    file.write_bytes(header_of(A, B, data=32))
    assert run("totals", file, "--strict") == run("totals", file)


def test_a_name_in_two_files_is_refused(run, tmp_path):
    for name in "xy":
        (tmp_path / f"{name}.safetensors").write_bytes(header_of(A))
    assert "y.safetensors: lists tensors that x.safetensors also lists: a; give" in refused(run("totals", tmp_path))


def test_a_total_of_an_index_has_a_bound(run, tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_parameters": 10**400}}))
    assert "total_parameters = 1000" in refused(run("totals", index))


def test_a_pipe_of_tensors_is_not_waited_for(run, tmp_path):
    for name in ("x.safetensors", "model.safetensors.index.json"):
        os.mkfifo(tmp_path / name)
        assert f"{name}: cannot be read: it is a device or a pipe" in refused(run("totals", tmp_path / name))
    assert "cannot be read: it is a device or a pipe" in refused(run("totals", tmp_path))


def test_what_an_extra_row_names_excuses_no_other_tensor(run, tmp_path, monkeypatch):
    """Qwen3 0.6B stores its tied head twice: one more tensor is as it should be, and no other name or shape."""
    model = presets.model("qwen3-0.6b")
    embedding = next(shape for name, shape in model.counts.tensors() if name == "model.embed_tokens.weight")
    shapes = dict(model.counts.tensors()) | {"lm_head.weight": embedding}
    monkeypatch.setattr("macros.cli.totals.write", lambda *_: None)

    def status(shapes: dict) -> int:
        listed, end = [], 0
        for name, shape in shapes.items():
            begin, end = end, end + 2 * math.prod(map(int, shape))
            listed.append((name, "BF16", list(map(int, shape)), [begin, end]))
        (tmp_path / "x.safetensors").write_bytes(header_of(*listed))
        return run("totals", tmp_path, "--preset", "qwen3-0.6b")[0]

    assert status(shapes) == 0
    assert status({f"other.{name}": shape for name, shape in shapes.items()}) == 1
    assert status({name: shape[::-1] for name, shape in shapes.items()}) == 1


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


def test_an_interrupt_while_the_program_is_read_is_no_traceback():
    """Half a second of imports goes before the first line of a command."""
    program = """
import sys
from macros.__main__ import main

class Interrupted:
    def find_spec(self, name, *_):
        if name.startswith("macros.cli"):
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", program, "check"], cwd=ROOT, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
