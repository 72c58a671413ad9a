"""GGUF files: their headers, their models, their numbers; and files that are what no program writes."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import gguf
import gguf.quants
import numpy as np
import pytest
from gguf_files import METADATA, QUANTIZED, D, L, V, tensors, text, value, write
from reference import golden

from macros.__main__ import main
from macros.api.changes import changed
from macros.catalogue import gguf_checkpoint, presets
from macros.catalogue.checkpoints import checkpoint
from macros.catalogue.gguf_header import Placed, Values, read_gguf
from macros.counting.costs import of as costs_of
from macros.counting.gguf_types import BY_ID
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Cache

FOLDER = Path(__file__).parent.parent / "golden" / "gguf"
CONVERTED = sorted(path.stem for path in FOLDER.glob("*.gguf"))


def test_a_file_is_described_with_its_own_bytes(tmp_path, capsys):
    path = tmp_path / "small.gguf"
    total = write(path, METADATA | {"general.file_type": 7}, tensors(), QUANTIZED)
    model = presets.load(str(path))
    assert model.model_type == "llama" and model.config.n_layers == L and model.config.rope.theta == 5000
    assert model.counts.total == sum(array.size for array in tensors().values())
    assert costs_of(model.counts).weight_bytes("published") == total and model.file_difference == ""
    assert main(["describe", "--strict", str(path)]) == 0
    said = capsys.readouterr()
    assert f"weights {total:,}" in said.out, "memory and time are with the file's own bytes"
    assert f"{total:,}" in said.out and "Q8_0 and float32" in said.out and said.err == ""
    assert main(["fits", str(path), "--on", "24GB"]) == 0 and f"{total:,}" in capsys.readouterr().out
    larger = changed(model, {"vocab_size": V + 8})
    assert larger.counts.total == model.counts.total + 2 * 8 * D


def test_a_mix_says_what_the_named_format_does_not_hold(tmp_path, capsys):
    path = tmp_path / "small.gguf"
    types = QUANTIZED | {f"blk.{i}.attn_v.weight": "F16" for i in range(L)}
    write(path, METADATA | {"general.file_type": 7}, tensors(), types)
    assert main(["describe", str(path)]) == 0
    said = capsys.readouterr().err
    assert "Q8_0 with tensors of other types" in said and "3 in F16 (blk.{i}.attn_v.weight × 3)" in said


@pytest.mark.parametrize("name", CONVERTED)
def test_what_the_converter_wrote_is_the_checkpoint(name):
    """Names, shapes and numbers, rows that rotate together and shifted norms included: the file gives the checkpoint's
    own logits (tests/reference/gguf_numbers.py)."""
    file, ours = checkpoint(str(FOLDER / f"{name}.gguf")), golden(name)
    counts = presets.make("x", ours.raw).counts
    assert file.model.counts.total == counts.total
    assert file.model.counts.cache_bytes(4096) == counts.cache_bytes(4096)
    assert file.model.file_difference == ""
    scores, _ = logits(file.model.architecture, file.model.config, file.weights(), ours.ids, Cache())
    assert np.abs(scores - ours.logits).max() <= 1e-5 * max(1, np.abs(ours.logits).max())


def test_enough_of_them_are_converted():
    assert len(CONVERTED) >= 8


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0"])
def test_weights_run_in_their_types(tmp_path, capsys, kind):
    if kind.startswith("Q"):
        pytest.importorskip("gguf")
    path = tmp_path / "small.gguf"
    write(path, METADATA, tensors(), dict.fromkeys(QUANTIZED, kind))
    assert main(["run", str(path), "--tokens", "1,2,3", "--top", "2"]) == 0
    assert "token id" in capsys.readouterr().out
    exact = tmp_path / "exact.gguf"
    write(exact, METADATA, tensors(), {})
    near, true = (checkpoint(str(one)).files["model.layers.1.mlp.up_proj.weight"] for one in (path, exact))
    off = np.abs(near - true).max() / np.abs(true).max()
    assert 0 < off < {"F16": 0.001, "BF16": 0.01, "Q8_0": 0.01, "Q4_0": 0.15}[kind]


@pytest.mark.filterwarnings("ignore::RuntimeWarning:gguf")
def test_every_type_that_the_package_dequantizes_is_read(tmp_path):
    """To the bit and by its size: a whole tensor, and one of two that stand in one, behind other bytes."""
    traits, sizes = gguf.quants._type_traits, gguf.constants.GGML_QUANT_SIZES
    draw, path = np.random.default_rng(0), tmp_path / "x"
    for kind in traits:
        block, size = sizes[kind]
        assert BY_ID[kind.value] == (kind.name, block, size)
        data = draw.integers(0, 256, 2 * 3 * 2 * size, np.uint8)
        path.write_bytes(bytes(100) + data.tobytes())
        placed = Placed(kind.name, (2, 3, 2 * block), data.size, path, 100)
        true = gguf.quants.dequantize(data, kind).reshape(2, 3, 2 * block).astype(np.float32)
        assert np.array_equal(gguf_checkpoint.read_tensor(placed, "x"), true, equal_nan=True), kind.name
        assert np.array_equal(gguf_checkpoint.read_tensor(placed, "x", 1), true[1], equal_nan=True), kind.name
    assert len(traits) >= 24


def test_a_tied_table_is_read_once(tmp_path, monkeypatch):
    """Two steps request it, and unpacking a table of a large vocabulary takes as long as a layer."""
    path, read = tmp_path / "small.gguf", []
    write(path, METADATA, {name: a for name, a in tensors().items() if name != "output.weight"}, {})
    opened, of_file = checkpoint(str(path)), gguf_checkpoint.read_tensor
    monkeypatch.setattr(gguf_checkpoint, "read_tensor", lambda at, name, *n: read.append(name) or of_file(at, name, *n))
    scores, _ = logits(opened.model.architecture, opened.model.config, opened.weights(), [1, 2, 3], Cache())
    assert sorted(read) == sorted(set(read)) and "token_embd.weight" in read and np.isfinite(scores).all()


def test_a_tokenizer_is_read_from_the_metadata(tmp_path, capsys):
    pytest.importorskip("tokenizers")
    tokens = ["<s>", "a", "b", "c", "Ġ", "ab", "Ġab", "Ġc"] + [f"x{n}" for n in range(V - 8)]
    said = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3] + [1] * (V - 1),
        "tokenizer.ggml.merges": ["a b", "Ġ ab", "Ġ c"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
    }
    path = tmp_path / "small.gguf"
    write(path, METADATA | said, tensors(), {})
    assert checkpoint(str(path)).tokenizer.encode("ab ab cab") == [0, 5, 6, 7, 5]
    assert main(["run", str(path), "--text", "ab c", "--top", "1"]) == 0
    pieces = ["<unk>", "<s>", "▁", "a", "b", "▁a", "ab", "▁ab"] + [f"<0x{n:02X}>" for n in range(V - 8)]
    other = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.scores": [0.0, 0.0, -5.0, -6.0, -7.0, -2.0, -3.0, -1.0] + [0.0] * (V - 8),
        "tokenizer.ggml.token_type": [2, 3] + [1] * 6 + [6] * (V - 8),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    write(path, METADATA | other, tensors(), {})
    assert checkpoint(str(path)).tokenizer.encode("ab") == [1, 7]
    assert checkpoint(str(path)).tokenizer.decode([7, 4]) == "abb"
    for wrong, part in (
        ({"tokenizer.ggml.model": "plamo2"}, "plamo2"),
        ({**said, "tokenizer.ggml.pre": "new-pre"}, "new-pre"),
        ({**other, "tokenizer.ggml.scores": [0.5]}, "1 scores"),
    ):
        write(path, METADATA | {"tokenizer.ggml.tokens": tokens, **wrong}, tensors(), {})
        assert main(["run", str(path), "--text", "ab"]) == 2
        assert part in (line := capsys.readouterr().err) and line.count("\n") == 1


def test_totals_are_read_from_the_header(tmp_path, capsys):
    path = tmp_path / "small.gguf"
    write(path, METADATA, tensors(), QUANTIZED)
    assert main(["totals", str(path), "--hub", "somebody/small-GGUF"]) == 0
    assert f"parameters = {sum(array.size for array in tensors().values()):_}" in (out := capsys.readouterr()).out
    assert "Q8_0" in out.out + out.err


def test_a_split_file_is_one(tmp_path):
    both = list(tensors().items())
    total = 0
    for n, some in enumerate((both[:9], both[9:])):
        said = (METADATA if n == 0 else {"general.architecture": "llama"}) | {"split.no": n, "split.count": 2}
        part = tmp_path / f"m-{n + 1:05}-of-00002.gguf"
        total += write(part, said | {"split.tensors.count": len(both)}, dict(some), {})
    model = presets.load(str(tmp_path / "m-00001-of-00002.gguf"))
    assert costs_of(model.counts).weight_bytes("published") == total and model.file_difference == ""
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(Problem, match="00002-of-00002"):
        presets.load(str(tmp_path / "m-00001-of-00002.gguf"))


WRONG_PARTS = {
    "lists token_embd.weight, which another part lists too": ({}, {}, slice(0, None)),
    "has 30 tensors in 2 files, and says 29": ({"split.tensors.count": 29}, {}, slice(9, None)),
    "split.count = 3, and its name says 2": ({}, {"split.count": 3}, slice(9, None)),
    "split.count = 0, and its name says 2": ({"split.count": 0}, {}, slice(9, None)),
    "split.no = 0, and its name makes it number 1": ({}, {"split.no": 0}, slice(9, None)),
}


@pytest.mark.parametrize("said", WRONG_PARTS)
def test_parts_that_do_not_go_together(tmp_path, said):
    first, second, rest = WRONG_PARTS[said]
    of_first = {"split.no": 0, "split.count": 2, "split.tensors.count": len(tensors())} | first
    of_second = {"general.architecture": "llama", "split.no": 1, "split.count": 2} | second
    some = list(tensors().items())
    write(tmp_path / "m-00001-of-00002.gguf", METADATA | of_first, dict(some[:9]), {})
    write(tmp_path / "m-00002-of-00002.gguf", of_second, dict(some[rest]), {})
    with pytest.raises(Problem) as problem:
        read_gguf(tmp_path / "m-00001-of-00002.gguf")
    assert said in str(problem.value)


def test_one_file_may_say_that_it_is_not_split_and_a_thousand_parts_are_looked_for(tmp_path):
    write(tmp_path / "m.gguf", METADATA | {"split.count": 0}, tensors(), {})
    assert read_gguf(tmp_path / "m.gguf").files == 1
    with pytest.raises(Problem, match="is one of 99999 files, .*m-00003-of-99999.gguf and 997 more"):
        read_gguf(tmp_path / "m-00001-of-99999.gguf")
    for length in (1000, 1001):
        (tmp_path / "name.gguf").write_bytes(header(count=1, rest=tensor("n" * length)) + bytes(128))
        try:
            assert len(next(iter(read_gguf(tmp_path / "name.gguf").tensors))) == length == 1000
        except Problem as problem:
            assert length == 1001 and "has a text of 1,001 bytes in its header, more than 1,000" in str(problem)


def test_what_the_metadata_and_the_tensors_say_otherwise_is_told(tmp_path, capsys):
    path = tmp_path / "small.gguf"
    there = {name: array for name, array in tensors().items() if name != "blk.1.ffn_up.weight"}
    write(path, METADATA, there | {"extra.weight": np.zeros((3, 5), np.float32)}, {})
    assert main(["describe", str(path)]) == 0
    said = capsys.readouterr().err
    assert "asked for and not there: blk.1.ffn_up.weight" in said and "there and not asked for: extra.weight" in said
    assert main(["describe", "--strict", str(path)]) == 1


def header(version: int = 3, count: int = 0, keys: int = 0, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, count, keys) + rest


def tensor(name: str = "a", axes: int = 1, shape=(32,), kind: int = 0, offset: int = 0) -> bytes:
    return (
        text(name)
        + struct.pack("<I", axes)
        + b"".join(struct.pack("<Q", n) for n in shape)
        + struct.pack("<IQ", kind, offset)
    )


BROKEN = {
    "empty": b"",
    "not GGUF": b"PK\3\4" + bytes(40),
    "version 1": header(1),
    "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "many keys": header(keys=2**40),
    "many tensors": header(count=2**60),
    "a long key": header(keys=1, rest=struct.pack("<Q", 2**50)),
    "a key twice": header(keys=2, rest=(text("a") + value(1)) * 2),
    "a type of no kind": header(keys=1, rest=text("a") + struct.pack("<I", 77)),
    "a list of lists": header(keys=1, rest=text("a") + struct.pack("<IIQ", 9, 9, 1)),
    "a long list": header(keys=1, rest=text("a") + struct.pack("<IIQ", 9, 8, 2**61)),
    "a list of long texts": header(keys=1, rest=text("a") + struct.pack("<IIQQ", 9, 8, 1, 2**61)),
    "an alignment of 0": header(keys=1, rest=text("general.alignment") + struct.pack("<II", 4, 0)),
    "many axes": header(1, 1, rest=tensor(axes=2**31)).replace(struct.pack("<I", 1), struct.pack("<I", 3), 1),
    "a tensor of no type": header(count=1, rest=tensor(kind=1000)),
    "a tensor twice": header(count=2, rest=tensor() + tensor(offset=128)),
    "overlapping tensors": header(count=2, rest=tensor() + tensor("b", offset=32)),
    "an odd offset": header(count=1, rest=tensor(offset=7)),
    "half a block": header(count=1, rest=tensor(shape=(31,), kind=8)),
    "a huge shape": header(count=1, rest=tensor(axes=3, shape=(2**40, 2**40, 2**40))),
    "no architecture": header(),
    "another architecture": header(keys=1, rest=text("general.architecture") + value("nothing-like-it")),
    "no sizes": header(keys=1, rest=text("general.architecture") + value("llama")),
}


@pytest.mark.parametrize("command", ["describe", "run"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_line(tmp_path, capsys, name, command):
    path = tmp_path / "broken.gguf"
    path.write_bytes(BROKEN[name])
    assert main([command, str(path), *(["--tokens", "1"] if command == "run" else [])]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "broken.gguf" in said


def test_bounds_of_tensors(tmp_path):
    """A shape of 2^62 numbers is read, more are not; of a small tensor alone the numbers are."""
    path = tmp_path / "x.gguf"
    for sides, is_read in (((2**31, 2**31), True), ((2**31, 2**31 + 32), False)):
        path.write_bytes(header(count=1, rest=tensor(axes=2, shape=sides)) + bytes(64))
        if is_read:
            assert read_gguf(path).tensors["a"].size == 4 * 2**62
        else:
            with pytest.raises(Problem, match="numbers, more than 4,611,686,018,427,387,904"):
                read_gguf(path)
    path.write_bytes(bytes(70_000))
    assert len(Placed("F32", (16_384,), 65_536, path, 0).floats()) == 16_384
    assert Placed("F32", (16_385,), 65_540, path, 0).floats() == []
    assert Placed("F16", (4,), 8, path, 0).floats() == [] == Placed("F32", (4,), 16, path, 69_990).floats()


FREQUENCIES = {"rope_freqs.weight": np.array([1, 2, 4, 8, 1, 1, 1, 1], np.float32)}
STRANGE = {
    "heads in words": {"llama.attention.head_count": "many"},
    "heads in part": {"llama.attention.head_count": 0.5, "llama.attention.key_length": 16},
    "a list of architectures": {"general.architecture": ["llama"]},
    "no angles": {"llama.rope.freq_base": 0.0},
    "angles that grow": {"llama.rope.freq_base": -1.0},
    "the same angles": {"llama.rope.freq_base": 1.0},
    "angles that are no number": {"llama.rope.freq_base": float("nan")},
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_metadata_are_an_answer_or_one_line(tmp_path, capsys, name):
    path = tmp_path / "strange.gguf"
    write(path, METADATA | STRANGE[name], tensors() | FREQUENCIES, {})
    status = main(["describe", "--format", "json", "--context", "64", str(path)])
    said = capsys.readouterr().err
    assert status in (0, 2) and said.count("\n") >= status // 2
    assert not isinstance(STRANGE[name].get("general.architecture"), list) or "a list of 1: expected a name" in said


def test_every_cut_of_a_file_is_one_line_or_the_same(tmp_path, capsys):
    whole, path = tmp_path / "whole.gguf", tmp_path / "cut.gguf"
    write(whole, METADATA, tensors(), {})
    data = whole.read_bytes()
    start = min(one.start for one in read_gguf(whole).tensors.values())
    for end in (*range(0, start, 97), start):
        path.write_bytes(data[:end])
        status = main(["describe", "--format", "json", "--context", "64", str(path)])
        assert (status == 2 or end > start - 32) and capsys.readouterr().err.count("\n") == status // 2
    assert main(["run", str(path), "--tokens", "1"]) == 2
    assert "its tensors end at" in capsys.readouterr().err


def test_lists_of_the_metadata_are_read_when_asked_for(tmp_path):
    path = tmp_path / "small.gguf"
    write(path, METADATA | {"a.texts": ["one", "zwei"], "a.numbers": [1, 2, 3], "a.truths": [True, False]}, {}, {})
    found = read_gguf(path).metadata
    said = {key: one.all() for key, one in found.items() if isinstance(one, Values)}
    assert said == {"a.texts": ["one", "zwei"], "a.numbers": [1, 2, 3], "a.truths": [True, False]}
    assert json.dumps(found["llama.block_count"]) == str(L)
