"""Models of a hub that the catalog lacks, asked of a local server that speaks the hub's protocol, by its own client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from copies import ROOT
from gguf_files import METADATA, QUANTIZED, tensors, write
from huggingface_hub import errors
from local_hub import COMMIT, Hub, counts, hub

from macros.catalogue import hub as hub_client
from macros.catalogue.hub import config_file, load
from macros.engine.errors import Problem


def every_parameter(endpoint: str, home, *arguments: str, **more: str) -> subprocess.CompletedProcess:
    """The command, with the hub's client pointed at the server."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    env |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_ETAG_TIMEOUT": "2", "HF_HUB_DOWNLOAD_TIMEOUT": "2"}
    env |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0", "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"} | more
    command = [sys.executable, "-m", "macros", *arguments]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=200)


REFUSED = {
    "org/gated": "gives its files only to those who accepted its terms; accept its terms on 127.0.0.1, then",
    "org/private": "127.0.0.1 has no such model, or it is private; check the name; for a private model, set HF_TOKEN",
    "org/none": "127.0.0.1 has no such model, or it is private; check the name; for a private model, set HF_TOKEN",
    "org/empty": "its repository has no such file as config.json or model.safetensors; give a repository with a config",
    "org/bad": "broken JSON",
    "org/markup": "model_type = '<script>alert(1)</script>'",
    "org/huge": "config.json has 1,000,000,000,000 bytes",
    "org/cut": "",
    "org/lying": "",
    "org/slow": "127.0.0.1 cannot be reached",
}


@pytest.mark.processes
def test_what_cannot_be_had_is_one_line_each(tmp_path):
    with hub() as endpoint:
        made = every_parameter(endpoint, tmp_path, "describe", *REFUSED, "org/small", "--format", "json")
    lines = made.stderr.splitlines()
    assert made.returncode == 2 and len(lines) == len(REFUSED), made.stderr
    for name, said in REFUSED.items():
        [line] = [line for line in lines if f": {name}: " in line or f"'{name}'" in line]
        assert said in line, line
    assert json.loads(made.stdout)["parameters"]["total"] == counts().total


@pytest.mark.processes
def test_a_preset_begins_with_a_name_on_the_hub(tmp_path):
    with hub() as endpoint:
        made = every_parameter(endpoint, tmp_path, "add", "org/small")
        none = every_parameter(endpoint, tmp_path, "add", "org/none")
    assert made.returncode == 0 and 'hub = "org/small"' in made.stdout, made.stderr
    assert "look up: headline, licence and licence_source" in made.stderr
    assert none.returncode == 2 and REFUSED["org/none"] in none.stderr and none.stderr.count("\n") == 1


@pytest.mark.processes
@pytest.mark.parametrize(
    "name, said", [("org/busy", "asks for fewer requests"), ("org/broken", "answered with status 500")]
)
def test_a_hub_that_refuses_for_now(tmp_path, name, said):
    with hub() as endpoint:
        made = every_parameter(endpoint, tmp_path, "describe", name)
    assert made.returncode == 2 and said in made.stderr and made.stderr.count("\n") == 1


@pytest.mark.processes
@pytest.mark.parametrize("name, size", [("org/small", 4), ("org/sharded", 2)])
def test_headers_alone_are_read(tmp_path, name, size):
    """The config says bfloat16; one file has float32, and decides. No weight is asked for."""
    with hub() as endpoint:
        made = every_parameter(
            endpoint, tmp_path, "describe", name, "--files", "--weights", "published", "--format", "json"
        )
        again = every_parameter(endpoint, tmp_path, "describe", name, "--format", "json", HF_HUB_OFFLINE="1")
    assert json.loads(made.stdout)["weights"]["bytes"] == size * counts().total, made.stderr
    assert ("the files decide" in made.stderr) == (size == 4)
    assert Hub.sent < 300_000  # what a socket holds of a range that was asked for
    assert json.loads(again.stdout)["parameters"]["total"] == counts().total


@pytest.mark.processes
def test_wrong_files(tmp_path):
    wrong = {"org/away": "names '../../secret.safetensors'", "org/long-header": "begins with a list of tensors of"}
    wrong |= {"org/cut-header": "list of tensors"}
    with hub() as endpoint:
        made = every_parameter(endpoint, tmp_path, "describe", *wrong, "--files")
    for name, said in wrong.items():
        assert any(name in line and said in line for line in made.stderr.splitlines()), made.stderr
    assert "Traceback" not in made.stderr and Hub.sent < 300_000


GGUF_REFUSED = {
    "org/Small-GGUF": "has 4 such GGUF files: Cut-Q4_0.gguf, Not-Q5_0.gguf, Small-Q8_0.gguf, Small-UD-Q8_0.gguf",
    "org/Small-GGUF:Q6_K": "its repository has no such GGUF file; name one, as organization/name:Q4_K_M, or give its",
    "org/Small-GGUF:Q4_0": "Cut-Q4_0.gguf: ends within its header",
    "org/Small-GGUF/Not-Q5_0.gguf": "Not-Q5_0.gguf: does not begin with GGUF",
    "org/none-GGUF": "has no such model, or it is private",
}


@pytest.mark.processes
def test_the_header_of_a_gguf_file_is_read(tmp_path):
    """Its metadata give the config, which its repository lacks; a file in parts is one. No weight is asked for."""
    whole = ("org/Small-GGUF:Q8_0", "{}/org/Small-GGUF/blob/main/UD/Small-UD-Q8_0-00001-of-00002.gguf")
    with hub() as endpoint:
        names = [name.format(endpoint) for name in whole]
        options = "--files", "--weights", "published", "--context", "64", "--format", "json"
        made = every_parameter(endpoint, tmp_path, "describe", *names, *options)
        assert not [path for _, path in Hub.asked if "mmproj" in path or "Cut" in path]
        sent = Hub.sent
        refused = every_parameter(endpoint, tmp_path, "describe", *GGUF_REFUSED, "--files")
    total = write(tmp_path / "same.gguf", METADATA, tensors(), QUANTIZED)
    found = [json.loads(line) for line in made.stdout.splitlines()]
    assert [one["weights"]["bytes"] for one in found] == [total, total], made.stderr
    assert found[0]["model"] == "org/Small-GGUF/Small-Q8_0.gguf" and sent < 5_000_000
    lines = refused.stderr.splitlines()
    for (name, said), line in zip(GGUF_REFUSED.items(), lines, strict=True):
        assert said in line and "/tmp" not in line, (name, line)


@pytest.mark.processes
def test_revisions_tokens_and_the_cache(tmp_path):
    with hub() as endpoint:
        at = every_parameter(endpoint, tmp_path, "describe", "org/small", "--revision", COMMIT, "--format", "json")
        none = every_parameter(endpoint, tmp_path, "describe", "org/small", "--revision", "nightly")
        gated = every_parameter(endpoint, tmp_path, "describe", "org/gated", HF_TOKEN="hf_secret")
        offline = every_parameter(endpoint, tmp_path, "describe", "org/sharded", HF_HUB_OFFLINE="1")
        before = len(Hub.asked)
        known = every_parameter(endpoint, tmp_path, "describe", "gpt2", "openai-community/gpt2", "--format", "json")
        assert len(Hub.asked) == before  # the catalog has it: nobody is asked
    assert json.loads(at.stdout)["parameters"]["total"] == counts().total
    assert "no revision 'nightly'; name a branch, a tag or a commit" in none.stderr
    assert "no such file as config.json" in gated.stderr  # with the token the terms are accepted
    assert "HF_HUB_OFFLINE is set; unset HF_HUB_OFFLINE to ask the hub" in offline.stderr
    assert known.returncode == 0
    unreachable = every_parameter("http://127.0.0.1:9", tmp_path, "describe", "org/other")
    assert "127.0.0.1 cannot be reached" in unreachable.stderr and unreachable.returncode == 2


def test_options_of_the_hub_are_for_a_model_of_the_hub():
    import every_parameter as ep

    with pytest.raises(ep.Problem, match="files: is for a model of the hub|files"):
        ep.load("gpt2", files=True)


PATHS = "/models/mine/config.json my/models/llama/config.json /home/me ./org/name ~/org/name \\\\org/name".split()


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_no_name_of_the_hub(path):
    """A mistyped path is not told to another host."""
    with pytest.raises(Problem, match="unknown model|cannot be read|no such file"):
        load(path)
    assert config_file(path) == path


def downloaded(path):
    """A library of the hub that has a file in its cache."""
    return SimpleNamespace(
        try_to_load_from_cache=lambda *_, **more: str(path), hf_hub_download=lambda *_, **more: str(path), errors=errors
    )


@pytest.mark.parametrize(
    "file", [".safetensors", ".hidden.safetensors", "a/b.safetensors", "a\\\\b.safetensors", "x.bin", "/x.safetensors"]
)
def test_an_index_names_files_beside_it(tmp_path, file):
    path = tmp_path / "index.json"
    path.write_text(json.dumps({"weight_map": {"t": file}}))
    with pytest.raises(Problem, match="names '"):
        hub_client._files(downloaded(path), "org/x", None)


class Answer:
    """Of a host: so many bytes of a file, whatever range was asked for."""

    def __init__(self, status: int, content: bytes):
        self.status_code, self.content = status, content

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def iter_bytes(self, size: int):
        yield from (self.content[at : at + size] for at in range(0, len(self.content), size))


def answering(status: int, content: bytes):
    """A library of the hub whose host answers so."""
    session = SimpleNamespace(stream=lambda *_, **more: Answer(status, content))
    utils = SimpleNamespace(build_hf_headers=dict, hf_raise_for_status=lambda answer: None)
    return SimpleNamespace(utils=utils, get_session=lambda: session, hf_hub_url=lambda *_, **more: "https://x")


def test_ranges_that_a_host_answers_otherwise():
    """A whole file for its beginning is cut; for a later part it is refused; an end within the header is told."""
    file = (200_000).to_bytes(8, "little") + bytes(300_000)
    assert hub_client._range(answering(200, file), "org/x", "x", None, 0, 100) == file[:100]
    with pytest.raises(Problem, match="does not answer range requests"):
        hub_client._header(answering(200, file), "org/x", "x", None)
    with pytest.raises(Problem, match="ends within its list of tensors"):
        hub_client._header(answering(206, file[:1000]), "org/x", "x", None)
    for length in (0, 7):
        with pytest.raises(Problem, match="it is no safetensors file"):
            hub_client._header(answering(206, file[:length]), "org/x", "x", None)
    assert (
        len(hub_client._header(answering(206, (99_992).to_bytes(8, "little") + bytes(9**6)), "org/x", "x", None))
        == 10**5
    )


def test_bounds_of_what_lies_in_the_cache(tmp_path):
    path = tmp_path / "config.json"
    path.write_bytes(bytes(1000))
    assert hub_client._downloaded(downloaded(path), "org/x", "config.json", None, 1000) == path
    with pytest.raises(Problem, match="config.json has 1,000 bytes, and at most 999 are read"):
        hub_client._downloaded(downloaded(path), "org/x", "config.json", None, 999)
    for n, is_read in ((0, False), (1, True), (2000, True), (2001, False)):
        path.write_text(json.dumps({"weight_map": {f"t{i}": f"m{i}.safetensors" for i in range(n)}}))
        try:
            assert len(hub_client._files(downloaded(path), "org/x", None)) == n and is_read
        except Problem as problem:
            assert not is_read and f"names {n:,} files" in str(problem)
