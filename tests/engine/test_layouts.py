"""Each layout of a checkpoint: what transformers saves of every small model, and what makers call their tensors."""

import json
import time

import numpy as np
import pytest
from reference import TESTS, content, each_has, golden, number
from reference.configs import configs
from safetensors.numpy import save_file

from macros.catalogue.checkpoints import Checkpoint
from macros.catalogue.checks import expand
from macros.catalogue.presets import make
from macros.catalogue.stored import differences
from macros.engine.architectures import find
from macros.engine.errors import Problem
from macros.engine.layouts import Layout, names_in_files

# {name: the type of the text where it is a whole's, the stored names and shapes where they are not ours, a digest}
LAYOUTS = json.loads((TESTS / "golden" / "layouts.json").read_text("utf-8"))
OTHERS = {name: row for name, row in LAYOUTS.items() if row["stored"]}


def checkpoint(folder, raw, tensors):
    """The folder of these tensors."""
    (folder / "config.json").write_text(json.dumps(raw))
    save_file(tensors, folder / "model.safetensors")
    return Checkpoint(str(folder), folder)


def asked(model):
    """The names and shapes of all that a forward pass asks for."""
    return {n: tuple(map(int, s)) for n, s in (*model.counts.tensors(), *model.counts.tensors(model.counts.buffers))}


def config_of(name):
    text = LAYOUTS[name]["text"]
    return configs()[name] if text is None else {"model_type": name, "text_config": configs()[text]}


def test_every_type_was_saved_by_transformers():
    lacking = configs().keys() - LAYOUTS.keys()
    each_has(lacking, "has no row in tests/golden/layouts.json", "python -m tests.reference.layouts TYPE")
    assert len(OTHERS) > 40


@pytest.mark.parametrize("name", OTHERS)
def test_what_transformers_saves_is_read(tmp_path, name):
    stored = dict(expand(OTHERS[name]["stored"]))
    folder = checkpoint(tmp_path, config_of(name), {called: number(called, shape) for called, shape in stored.items()})
    weights = folder.weights()
    read = {called: weights(called, *shape) for called, shape in asked(folder.model).items()}
    assert content(read) == OTHERS[name]["content"]
    assert folder.files.used == stored.keys()


@pytest.mark.parametrize("name", sorted(configs()))
def test_our_own_names_mean_themselves(name):
    """No spelling of another file's is a part of one of ours, so each file may be read by all of them."""
    names = asked(make(name, configs()[name]))
    layout = Layout(make(name, configs()[name]).architecture, names)
    assert not layout.called.keys() & names.keys()
    assert all(layout.find(one).cuts[0].stored == one for one in names)


# What DeepSeek calls its tensors where transformers 5.24 saves other names, which its conversion_mapping.py reads, too.
OF_DEEPSEEK = {
    "model.embed_tokens.": "embed.",
    "model.layers.": "layers.",
    "model.norm.": "norm.",
    "model.hc_head.hc_": "hc_head_",
    ".attn.norm.": ".attn.kv_norm.",
}


def test_what_deepseek_calls_its_tensors_is_read(tmp_path):
    ours = golden("deepseek_v4").tensors
    stored = dict(expand(LAYOUTS["deepseek_v4"]["stored"]))
    saved = Layout(golden("deepseek_v4").architecture, stored)
    tensors = {}
    for name, array in ours.items():
        [cut] = saved.find(name).cuts
        called = cut.stored
        for theirs, its in OF_DEEPSEEK.items():
            called = called.replace(theirs, its)
        tensors[called] = array
    assert {
        "embed.weight",
        "norm.weight",
        "head.weight",
        "hc_head_fn",
        "layers.0.attn.kv_norm.weight",
    } <= tensors.keys()
    folder = checkpoint(tmp_path, golden("deepseek_v4").raw, tensors)
    weights = folder.weights()
    for name, shape in asked(folder.model).items():
        np.testing.assert_array_equal(weights(name, *shape), ours[name], name)
    assert not folder.files.warnings()


@pytest.mark.parametrize("name", ["llama", "mistral", "ministral", "ministral3"])
def test_what_mistral_and_meta_call_their_tensors_is_read(tmp_path, name):
    """Their own files, `consolidated.safetensors`: queries and keys turn in pairs of neighbors.

    As transformers' models/mistral/convert_mistral_weights_to_hf.py has it.
    """
    names = {"model.embed_tokens.": "tok_embeddings.", "lm_head.": "output.", "input_layernorm": "attention_norm"}
    names |= {"post_attention_layernorm": "ffn_norm", "self_attn.": "attention.", "mlp.": "feed_forward."}
    names |= {f"{one}_proj": f"w{one}" for one in "qkvo"} | {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}
    ours, width = golden(name).tensors, int(golden(name).config.d_head)
    tensors = {}
    for called, array in ours.items():
        for here, there in names.items():
            called = called.replace(here, there)
        if called.endswith((".wq.weight", ".wk.weight")):
            heads = array.reshape(-1, 2, width // 2, array.shape[1])  # of halves
            array = np.ascontiguousarray(heads.swapaxes(1, 2).reshape(array.shape))
        tensors[called.removeprefix("model.")] = array
    assert "layers.0.attention.wk.weight" in tensors and "norm.weight" in tensors
    folder = checkpoint(tmp_path, golden(name).raw, tensors)
    weights = folder.weights()
    for called, shape in asked(folder.model).items():
        np.testing.assert_array_equal(weights(called, *shape), ours[called], called)
    assert not folder.files.warnings()


@pytest.mark.exhaustive
def test_a_list_of_names_alone_is_enough():
    """As an index has them: what is there and what is not."""
    for name, row in OTHERS.items():
        model = make(name, config_of(name))
        stored = dict(expand(row["stored"]))
        layout = Layout(model.architecture, dict.fromkeys(stored))
        with_shapes = Layout(model.architecture, stored)
        for one, shape in asked(model).items():
            assert layout.find(one) is not None and layout.shape(layout.find(one)) is None
            assert with_shapes.shape(with_shapes.find(one)) == shape, (name, one)


@pytest.mark.exhaustive
def test_nothing_is_missing_and_nothing_left_over():
    """As `totals` compares a file with a preset."""
    for name, row in OTHERS.items():
        model = make(name, config_of(name))
        found = differences(model.counts, Layout(model.architecture, dict(expand(row["stored"]))))
        assert found.rest == found.missing == found.apart == [] and len(found.said) == 1, (name, found.said)


def test_parts_that_do_not_fit_together_are_refused_in_one_line(tmp_path):
    row = OTHERS["qwen3_5_moe_text"]
    stored = dict(expand(row["stored"]))
    wrong = "model.layers.0.mlp.experts.1.gate_proj.weight"
    tensors = {name: number(name, shape[:-1] + (3,) if name == wrong else shape) for name, shape in stored.items()}
    weights = checkpoint(tmp_path, configs()["qwen3_5_moe_text"], tensors).weights()
    with pytest.raises(Problem, match=r"^model\.layers\.0\.mlp\.experts\.gate_up_proj is .* whose shapes differ"):
        weights("model.layers.0.mlp.experts.gate_up_proj", 5, 26, 24)


def test_what_files_may_call_a_tensor_of_ours():
    """As the lists in a quantized file's config name its modules."""
    for model_type, ours, theirs in (
        ("deepseek_v4", "model.layers.{i}.self_attn.q_a_proj.weight", "model.layers.{i}.self_attn.wq_a.weight"),
        ("hy_v3", "model.layers.{i}.mlp.gate.weight", "model.layers.{i}.mlp.router.gate.weight"),
        ("mistral_large4_text", "model.layers.{i}.self_attn.q_proj.weight", "layers.{i}.attention.wq.weight"),
        ("qwen3_5_moe_text", "a.mlp.experts.down_proj", "a.mlp.experts.{e}.down_proj.weight"),
        ("mixtral", "a.block_sparse_moe.experts.{e}.w1.weight", "a.mlp.experts.gate_up_proj"),
        ("axk1", "model.layers.{i}.mlp.post_mlp_layernorm.weight", "model.layers.{i}.post_mlp_layernorm.weight"),
    ):
        assert names_in_files(ours, find(model_type))[0] == ours and theirs in names_in_files(ours, find(model_type))


@pytest.mark.exhaustive
def test_a_list_of_a_million_strange_names_is_read_in_passing():
    names = dict.fromkeys(f"a{i}.x.b{i}" for i in range(1_000_000))
    began = time.process_time()
    layout = Layout(find("deepseek_v4"), names | {"model.norm.weight": None})
    assert layout.find("model.norm.weight") and time.process_time() - began < 2
