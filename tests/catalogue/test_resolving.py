"""Names of models: each means one model, is asked back, or is not known; none is answered by a neighbor."""

from __future__ import annotations

from pathlib import Path

import pytest

from macros.catalogue import hub, presets
from macros.catalogue.resolving import Known, Meant, pieces_of, reference, resolve, words_of
from macros.counting.formats import WEIGHTS
from macros.engine.errors import Problem

# name -> slug and format; "?" for a name that is asked back, "-" for one that is not known
NAMES = """
qwen3-8b                                                   qwen3-8b
Qwen/Qwen3-8B                                              qwen3-8b
qwen/QWEN3-8b                                              qwen3-8b
Qwen3-8B                                                   qwen3-8b
qwen3_8b                                                   qwen3-8b
Llama-3-8B                                                 llama3-8b
llama-3-70b-instruct                                       llama3-70b
meta-llama/Meta-Llama-3-8B-Instruct                        llama3-8b
meta-llama/Llama-3.1-8B-Instruct                           llama3.1-8b
deepseek-ai/DeepSeek-R1                                    deepseek-v3
google/gemma-3-27b-it                                      gemma3-27b
openai-community/gpt2                                      gpt2
openai/gpt-oss-120b                                        gpt-oss-120b
moonshotai/Kimi-K2-Instruct                                kimi-k2
HuggingFaceTB/SmolLM2-135M-Instruct                        smollm2-135m
https://huggingface.co/Qwen/Qwen3-8B                       qwen3-8b
https://huggingface.co/Qwen/Qwen3-8B/                      qwen3-8b
huggingface.co/Qwen/Qwen3-8B                               qwen3-8b
https://hf.co/Qwen/Qwen3-8B/tree/main                      qwen3-8b
https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json qwen3-8b
https://huggingface.co/Qwen/Qwen3-8B/raw/main/config.json  qwen3-8b
https://huggingface.co/api/models/Qwen/Qwen3-8B            qwen3-8b
https://huggingface.co/Qwen/Qwen3-8B?library=vllm          qwen3-8b
https://huggingface.co/Qwen/Qwen3-8B.git                   qwen3-8b
https://modelscope.cn/models/Qwen/Qwen3-8B/summary         qwen3-8b
models--Qwen--Qwen3-8B                                     qwen3-8b
Qwen/Qwen3-8B@main                                         qwen3-8b
qwen3:8b                                                   qwen3-8b
qwen3:30b-a3b                                              qwen3-30b-a3b
gpt-oss:20b                                                gpt-oss-20b
llama3.1:70b-instruct-q4_K_M                               llama3.1-70b Q4_K_M
qwen2.5:7b-instruct-q8_0                                   qwen2.5-7b Q8_0
qwen2.5-coder:32b                                          qwen2.5-coder-32b
deepseek-r1:671b                                           deepseek-v3
mixtral:8x7b                                               mixtral-8x7b
phi4:14b                                                   phi-4
phi3:mini                                                  phi-3-mini
gemma3:4b-it-qat                                           gemma3-4b
llama4:scout                                               llama4-scout
https://ollama.com/library/qwen3:8b                        qwen3-8b
unsloth/Qwen3-8B                                           qwen3-8b
NousResearch/Meta-Llama-3-8B                               llama3-8b
unsloth/Qwen3-8B-GGUF                                      qwen3-8b
unsloth/Qwen3-8B-GGUF:Q4_K_M                               qwen3-8b Q4_K_M
hf.co/unsloth/gemma-3-27b-it-GGUF:Q4_K_M                   gemma3-27b Q4_K_M
unsloth/DeepSeek-V3-0324-GGUF:UD-Q2_K_XL                   deepseek-v3
bartowski/Qwen_Qwen3-32B-GGUF                              qwen3-32b
mradermacher/Qwen3-32B-i1-GGUF                             qwen3-32b
anybody/Qwen3-32B-GGUF                                     qwen3-32b
TheBloke/Llama-2-7B-Chat-GGUF                              llama2-7b
Qwen3-8B-Q4_K_M.gguf                                       qwen3-8b Q4_K_M
https://hf.co/bartowski/Llama-3.2-1B-Instruct-GGUF/resolve/main/Llama-3.2-1B-Instruct-Q4_K_M.gguf llama3.2-1b Q4_K_M
mlx-community/Qwen3-8B-4bit                                qwen3-8b mlx-4bit
mlx-community/Qwen3-8B-4bit-DWQ                            qwen3-8b mlx-4bit
mlx-community/Llama-3.3-70B-Instruct-8bit                  llama3.3-70b mlx-8bit
mlx-community/Qwen3-8B-bf16                                qwen3-8b bfloat16
Qwen/Qwen3-8B-AWQ                                          qwen3-8b awq-4bit-g128
hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4         llama3.1-8b awq-4bit-g128
Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4                         qwen2.5-7b gptq-4bit-g128
Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8                         qwen2.5-7b gptq-8bit-g128
TheBloke/Llama-2-13B-GPTQ                                  llama2-13b gptq-4bit-g128
Qwen/Qwen3-8B-FP8                                          qwen3-8b fp8-block
RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic            llama3.1-8b fp8-channel
neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w4a16     llama3.1-8b w4a16
RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w8a8         llama3.1-8b w8a8
nvidia/DeepSeek-R1-NVFP4                                   deepseek-v3 nvfp4-linear
nvidia/Llama-3.3-70B-Instruct-FP4                          llama3.3-70b nvfp4-linear
unsloth/Qwen3-8B-unsloth-bnb-4bit                          qwen3-8b nf4-dq
turboderp/Llama-3.1-8B-Instruct-exl2                       llama3.1-8b
mistral:7b                                                 ? mistral-7b-v0.1 mistral-7b-v0.2 mistral-7b-v0.3
llama3.2                                                   ? llama3.2-1b llama3.2-3b
llama3.2:latest                                            ? llama3.2-1b llama3.2-3b
deepseek-r1:8b                                             ? deepseek-r1-distill-llama-8b qwen3-8b
https://huggingface.co/Models/Qwen/Qwen3-8B/Tree/main      qwen3-8b
turboderp/Qwen3-8B-4.5bpw-exl2                             qwen3-8b
unsloth/Qwen3-8B-rhtdbpw-GGUF:Q4_K_M                       -
unsloth/Qwen3-8B-remix-GGUF                                -
granite3.1:1b                                              granite-3.1-1b-a400m
someone/Qwen3-8B                                           ? qwen3-8b
someone/Qwen3-8B-medical                                   -
Qwen/Qwen3-9B                                              -
Qwen/Qwen3-88B                                             -
qwen-33-2b                                                 -
qwen3:8b-thinking                                          -
TheBloke/Mistral-7B-Instruct-v0.4-GGUF                     -
gpt-6                                                      -
https://huggingface.co/datasets/Qwen/Qwen3-8B/tree/main    -
https://huggingface.co                                     -
"""
ROWS = [line.split() for line in NAMES.strip().splitlines()]


@pytest.mark.parametrize("name, said", [(name, said) for name, *said in ROWS], ids=[name for name, *_ in ROWS])
def test_a_name(name, said):
    found = presets.meant(name)
    if said[0] == "?":
        assert not found.slug and set(said[1:]) <= set(found.candidates)
        with pytest.raises(Problem) as problem:
            presets.load(name)
        assert all(slug in str(problem.value) for slug in said[1:])
    elif said[0] == "-":
        assert not found.slug
        with pytest.raises(Problem, match="unknown model|could be several"):
            presets.load(name)
    else:
        assert [found.slug, *([found.format] if found.format else [])] == said
        assert presets.load(name).slug == found.slug


# The same for names of public repositories and tags, and neighbors that mean no model of the catalog; `uncounted`
# where the name states a format that no figure is counted in.
PUBLIC = Path(__file__).with_name("names_of_models.tsv").read_text().splitlines()


def test_public_names():
    """Mend: correct the line, or the word in resolving.py that reads it so."""
    wrong = []
    for line in PUBLIC:
        name, said = line.split("\t")
        found, meant = presets.meant(name), said.split()
        form = found.format or ("uncounted" if "its own format is not counted" in found.why else "")
        if meant[0] == "?":
            is_right = not found.slug and found.candidates and set(meant[1:]) <= set(found.candidates)
        elif meant[0] == "-":  # until a preset is of this very repository
            is_right = not found.slug or presets.preset(found.slug).hub == name
        else:
            is_right = [found.slug, *([form] if form else [])] == meant
        if not is_right:
            wrong.append(f"{name}: {said}, and not {found}")
    assert len(PUBLIC) > 600 and not wrong, "\n".join(wrong)


APART = {
    "unsloth/Qwen3-8B-GGUF/Qwen3-14B-Q4_K_M.gguf": "the file is Qwen3 14B’s; name qwen3-8b or qwen3-14b",
    "https://hf.co/unsloth/Qwen3-8B-GGUF/blob/main/Qwen_Qwen3-14B-Q4_K_M.gguf": "is Qwen3 14B’s; name qwen3-8b or",
    "unsloth/Qwen3-VL-8B-Instruct-GGUF/mmproj-F16.gguf": "the file is not named after it; name qwen3-vl-8b",
}


@pytest.mark.parametrize("name", APART)
def test_a_file_of_another_model_is_told(name):
    """And no hub is asked."""
    for load in (presets.load, hub.load):
        with pytest.raises(Problem) as problem:
            load(name)
        assert "the repository is Qwen3" in str(problem.value) and APART[name] in str(problem.value)


def test_a_file_of_a_known_model_in_an_unknown_repository_is_asked_back():
    assert presets.meant("someone/files/Qwen_Qwen3-8B-Q4_K_M.gguf").candidates == ("qwen3-8b",)


@pytest.mark.parametrize("more", ["-medical", "-1M", "x2", "-v9", ":9b"])
def test_a_further_word_is_another_model(more):
    for known in presets.names().values():
        for name in filter(None, (known.hub or known.title, *known.aliases[-1:])):
            assert not presets.meant(name + more).slug, name + more
            assert not presets.meant(f"{name}{more}-GGUF:Q4_K_M").slug, name + more


@pytest.mark.parametrize("slug", list(presets.readable()))
def test_every_name_of_a_preset_means_it(slug):
    """Mend: two presets share a name; give one of them another title, or take the alias off one."""
    known = presets.names()[slug]
    for name in filter(None, (slug, known.title, known.hub, *known.aliases)):
        assert presets.meant(name).slug == slug, name
        assert presets.meant(name.upper()).slug == slug, name
        if "/" in name:
            assert presets.meant(f"https://huggingface.co/{name}/resolve/main/config.json").slug == slug
            assert presets.meant(f"{name}-GGUF").slug == slug


UNCOUNTED = "aqlm autoround exl2 exl3 ggml hqq marlin mxfp8 onnx ov w4a4 w4a8 w8a16 3.0bpw int8mix q4ks".split()


@pytest.mark.parametrize("word", UNCOUNTED)
def test_a_format_that_is_not_counted_is_told(word):
    found = presets.meant(f"someone/Qwen3-8B-{word}")
    assert found.slug == "qwen3-8b" and "its own format is not counted" in found.why and not found.format


def test_what_was_taken_for_granted_is_said():
    assert presets.meant("Qwen/Qwen3-8B").why == ""
    assert presets.meant("deepseek-ai/DeepSeek-R1").why == "the same shapes"
    assert presets.meant("unsloth/Qwen3-8B").why == "a conversion"
    assert presets.meant("nvidia/DeepSeek-R1-NVFP4").why == "a conversion, the same shapes"
    assert presets.meant("unsloth/Qwen3-8B-GGUF:UD-Q4_K_XL").why == "a conversion, its own format is not counted"
    assert presets.meant("unsloth/Qwen3-8B-GGUF").why == "a conversion, no format named, such as :Q4_K_M"
    assert presets.meant("Qwen/Qwen3-8B-AWQ").why == "a conversion, groups of 128 assumed"
    assert presets.meant("bartowski/zai-org_GLM-4.6-GGUF").why == "a conversion, no format named, such as :Q4_K_M"
    assert presets.meant("granite4:tiny-h").why == ""
    assert "“instruct” taken to have the base’s shapes" in presets.meant("unsloth/Qwen3-0.6B-Instruct-GGUF").why


def test_a_name_is_compared_by_words():
    assert pieces_of("Meta-Llama-3.1-8B-Instruct-quantized.w4a16") == [
        "meta",
        "llama",
        "3.1",
        "8b",
        "instruct",
        "quantized",
        "w4a16",
    ]
    assert words_of(["qwen3", "1.7b"]) == ("qwen", "3", "1.7", "b")
    assert reference("https://hub.example/gpt2/tree/main") == ("", "gpt2", "", "main")
    assert reference("https://hub.example/a/b/blob/main/c/d.gguf?x=1#y") == ("a", "b", "", "d.gguf")
    few = {"m-3-2b": Known("M 3 2B", "", (), "2B"), "m-32b": Known("M 32B", "", (), "32B")}
    assert resolve("m32b", few, tuple(WEIGHTS)).slug == "m-32b"
    assert resolve("m-3-2b", few, tuple(WEIGHTS)).slug == "m-3-2b"
    assert resolve("", few, tuple(WEIGHTS)) == Meant("")


@pytest.mark.parametrize(
    "name", ["/", ":", "://", "a/b/c/d", "models--", "@", "-" * 300, "q" * 10_000, "ä/ö", "\x00/\x00"]
)
def test_a_name_from_outside_never_fails(name):
    assert presets.meant(name).slug == ""


def test_bounds():
    """Of a long name the first 24 pieces are looked through; of many models that it could mean, eight are named."""
    assert [one.slug for one in presets.inside("x-" * 22 + "qwen3-8b")] == ["qwen3-8b"]
    assert not presets.inside("x-" * 23 + "qwen3-8b")
    said = str(presets.unknown("qwen3"))
    assert said.count("qwen3-") == 8 and f"or one of {len(presets.meant('qwen3').candidates) - 8} more" in said
