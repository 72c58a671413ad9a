"""Draft heads: tensors, logits and totals as their makers have them, and what a head takes from its target."""

import json

import numpy as np
import pytest
from reference import DRAFTS, close, digest, draft, drafts

from macros.catalogue.presets import make
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache

VARIANTS = json.loads((DRAFTS / "tensors.json").read_text("utf-8"))
LLAMA = dict(model_type="llama", hidden_size=4096, num_hidden_layers=1, num_attention_heads=32, num_key_value_heads=8)
LLAMA |= dict(vocab_size=128256, intermediate_size=14336, rms_norm_eps=1e-5)
EAGLE3 = LLAMA | {"architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000}
QWEN = LLAMA | {"model_type": "qwen3", "head_dim": 128}
BLOCKS = ("dflash", "domino", "dspark")
DFLASH = QWEN | {"architectures": ["DFlashDraftModel"], "block_size": 16, "dflash_config": {"target_layer_ids": [1, 9]}}
OF_DOMINO = {"projector_type": "domino", "mask_token_id": 3, "target_layer_ids": [1, 9, 17, 25, 33], "emb_dim": 256}
OF_DOMINO |= {"pure_draft_prefix_len": 1, "gru_hidden_dim": 1024, "shift_label": True}
OF_DSPARK = {"projector_type": "dspark", "mask_token_id": 3, "target_layer_ids": [1, 9, 17, 25, 33]}
OF_DSPARK |= {"markov_rank": 256, "markov_head_type": "vanilla", "attention_mode": "gqa"}
OF_DSPARK |= {"confidence_head_alpha": 1.0, "confidence_head_with_markov": True, "enable_confidence_head": True}
DOMINO = DFLASH | {"architectures": ["DominoDraftModel"], "emb_dim": 256, "dflash_config": OF_DOMINO}
DSPARK = DFLASH | {"architectures": ["DSparkDraftModel"], "block_size": 7, "dflash_config": OF_DSPARK}


@pytest.mark.parametrize("name", drafts())
def test_logits(name):
    g = draft(name)
    ours, _ = logits(g.architecture, g.config, Arrays(g.tensors), g.ids, g.start())
    close(ours, g.logits)
    last, _ = logits(g.architecture, g.config, Arrays(g.tensors), g.ids, g.start(), last=True)
    close(last, g.logits[-1:])


@pytest.mark.parametrize("cuts", [(3,), (1, 2, 6)], ids=str)
@pytest.mark.parametrize("name", drafts())
def test_a_text_in_parts_is_the_text(name, cuts):
    """DFlash proposes a block after each part, from all hidden states so far: the last one is that of the text."""
    g, cache, rows = draft(name), draft(name).start(), []
    for part in np.split(g.ids, cuts):
        out, cache = logits(g.architecture, g.config, Arrays(g.tensors), part, cache)
        rows.append(out)
    close(rows[-1] if g.architecture.name in BLOCKS else np.concatenate(rows), g.logits)
    kept = sum(array.size for array in cache.kept.values())
    assert 2 * kept == g.model.counts.cache_bytes(len(g.ids))


@pytest.mark.parametrize("name", drafts())
def test_its_own_tensors_and_its_targets(name):
    """Every tensor of a head's file is counted, and none that the target's file holds."""
    g = draft(name)
    counts, asked = g.model.counts, set()

    class Watched(dict):
        def __getitem__(self, key):
            asked.add(key)
            return super().__getitem__(key)

    logits(g.architecture, g.config, Arrays(Watched(g.tensors)), g.ids, g.start())
    assert asked == set(g.tensors)
    listed = dict(counts.tensors()) | dict(counts.tensors(counts.buffers))
    assert listed == {one: array.shape for one, array in g.own.items()}
    assert counts.trace.borrowed.keys() == g.borrowed.keys()
    buffers = dict(counts.tensors(counts.buffers))
    assert counts.total == sum(array.size for one, array in g.own.items() if one not in buffers)


@pytest.mark.parametrize("name", drafts())
def test_variants_have_the_tensors_of_the_makers_code(name):
    assert len(VARIANTS[name]) > 10
    for changes, parameters, tensors in VARIANTS[name]:
        counts = make(name, draft(name).raw | changes).counts
        assert counts.total == parameters, changes
        assert digest(dict(counts.tensors()) | dict(counts.tensors(counts.buffers))) == tensors, changes


@pytest.mark.parametrize(
    "sizes, billions",
    [
        (dict(hidden_size=4096, intermediate_size=11008, num_attention_heads=32), "0.24"),  # Vicuna 7B
        (dict(hidden_size=5120, intermediate_size=13824, num_attention_heads=40), "0.37"),  # Vicuna 13B
        (dict(hidden_size=8192, intermediate_size=28672, num_attention_heads=64, num_key_value_heads=8), "0.99"),
        (dict(hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8), "0.25"),
    ],
)
def test_eagles_have_the_parameters_that_their_maker_states(sizes, billions):
    """README.md of SafeAILab/EAGLE: of Llama 2 and 3, 7B to 70B."""
    raw = {"model_type": "llama", "architectures": ["LlamaForCausalLMEagle"], "num_hidden_layers": 1} | sizes
    assert f"{make('it', raw | {'vocab_size': 32000}).counts.total / 1e9:.2f}" == billions


def test_eagle_3_of_llama_3_1_8b():
    """Its file of 849 MB in 16 bits has no embedding: with the target's the modules of its class have 950,026,240."""
    counts = make("it", EAGLE3).counts
    assert counts.total == 424_689_664
    [(embedding, _)] = counts.trace.borrowed.values()
    assert counts.total + int(embedding.count) == 950_026_240
    assert counts.cache_bytes_per_token() == 2 * 2 * 8 * 128
    plain = {key: value for key, value in EAGLE3.items() if key != "architectures"}
    assert make("it", plain | {"architectures": ["LlamaForCausalLM"]}).counts.total == counts.total


ASSISTANT_TEXT = dict(model_type="gemma4_text", vocab_size=262144, hidden_size=256, intermediate_size=2048)
ASSISTANT_TEXT |= dict(num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, num_kv_shared_layers=4)
ASSISTANT_TEXT |= dict(hidden_size_per_layer_input=0, sliding_window=512)
ASSISTANT = {"model_type": "gemma4_assistant", "backbone_hidden_size": 2560, "use_ordered_embeddings": True}
ASSISTANT |= {"text_config": ASSISTANT_TEXT}


def test_the_assistant_of_gemma_4_e4b():
    """Its maker's file has 78.8M values, those of the order of its tokens included (the card of its GGUF files)."""
    counts = make("it", ASSISTANT).counts
    assert counts.total == 78_517_760
    assert round(counts.total + 262_144, -5) == 78_800_000
    assert counts.cache_bytes(4096) == 0


def test_what_domino_and_dspark_add_to_dflash():
    """The sizes of SpecForge's configs for Qwen3-8B."""
    sizes = {"vocab_size": 151936, "num_hidden_layers": 5, "intermediate_size": 12288}
    plain = make("it", DFLASH | sizes | {"dflash_config": {"target_layer_ids": OF_DSPARK["target_layer_ids"]}}).counts
    domino, dspark = make("it", DOMINO | sizes).counts, make("it", DSPARK | sizes).counts
    assert domino.total - plain.total == 3 * 1024 * (4096 + 1024) + 256 * (4096 + 1024) + 151936 * 256
    assert dspark.total - plain.total == 2 * 151936 * 256 + 4096 + 256 + 1
    assert domino.cache_bytes_per_token() == dspark.cache_bytes_per_token() == plain.cache_bytes_per_token()


@pytest.mark.parametrize(
    "raw, kind",
    [
        (LLAMA | {"architectures": ["EagleLlamaForCausalLM"]}, "eagle"),
        ({"model_type": "eagle", "architectures": ["EAGLEModel"], "model": LLAMA}, "eagle"),
        (QWEN | {"architectures": ["Eagle3Qwen3ForCausalLM"], "draft_vocab_size": 500}, "eagle3"),
        ({"medusa_num_heads": 4, "hidden_size": 40, "vocab_size": 90}, "medusa"),
        ({"model_type": "medusa", "architectures": ["MedusaModel"], "num_heads": 4, "num_hidden_layers": 1}
         | {"hidden_size": 40, "vocab_size": 90, "truncated_vocab_size": 50}, "medusa"),
        (DFLASH, "dflash"),
        (DOMINO, "domino"),
        (DSPARK, "dspark"),
        ({"speculators_model_type": "eagle3", "transformer_layer_config": LLAMA, "draft_vocab_size": 90}, "eagle3"),
    ],
)  # fmt: skip
def test_each_spelling_is_read(raw, kind):
    assert make("it", raw).architecture.name == kind


def test_what_the_spelling_decides():
    eagle = LLAMA | {"architectures": ["LlamaForCausalLMEagle"]}
    assert make("it", eagle).counts.total - make("it", eagle | {"bias": False}).counts.total == 4096
    engine = LLAMA | {"architectures": ["EagleLlamaForCausalLM"]}
    assert make("it", engine).counts.total == make("it", eagle | {"bias": False}).counts.total
    normed = make("it", QWEN | {"architectures": ["Eagle3Qwen3ForCausalLM"]}).counts.total
    assert normed - make("it", QWEN | {"architectures": ["LlamaForCausalLMEagle3"]}).counts.total == 2 * 128
    medusa = dict(hidden_size=40, vocab_size=90, architectures=["MedusaModel"])
    with_bias = make("it", medusa | {"medusa_num_heads": 3}).counts.total
    assert with_bias - make("it", medusa | {"model_type": "medusa", "num_heads": 3}).counts.total == 3 * 40
    assert make("it", DFLASH).config.n_features == 2
    assert make("it", DFLASH | {"dflash_config": {"mask_token_id": 3}}).config.n_features == 1


@pytest.mark.parametrize(
    "raw, said",
    [
        (EAGLE3 | {"draft_vocab_size": 128257}, "draft_vocab_size = 128257 exceeds vocab_size"),
        (EAGLE3 | {"eagle_config": {"use_aux_hidden_state": False}}, "a head that fuses nothing"),
        (EAGLE3 | {"norm_before_fc": True, "fc_norm": True}, "are both true"),
        (EAGLE3 | {"num_aux_hidden_states": 10**6, "fc_norm": True}, "expected at most 128"),
        (DFLASH | {"mask_token_id": 128256}, "no token of the vocabulary"),
        ({"model_type": ["medusa"], "medusa_num_heads": 3}, "vocab_size is missing"),
        ({"model_type": {}, "hidden_size": 3}, "model_type = "),
        (DFLASH | {"dflash_config": {"projector_type": "dspark"}}, "a variant of DFlash"),
        (DFLASH | {"block_size": 1}, "block_size = 1"),
        (
            ASSISTANT | {"text_config": {**ASSISTANT_TEXT, "hidden_size_per_layer_input": 256}},
            "no vectors of a token's",
        ),
        (ASSISTANT | {"text_config": {**ASSISTANT_TEXT, "num_kv_shared_layers": 2}}, "has no keys of its own"),
        (ASSISTANT | {"text_config": {**ASSISTANT_TEXT, "enable_moe_block": True}}, "has no experts"),
        (ASSISTANT | {"text_config": {**ASSISTANT_TEXT, "use_double_wide_mlp": True}}, "no wider layers"),
        (ASSISTANT | {"tie_word_embeddings": False}, "nothing would read its embedding"),
        (ASSISTANT | {"num_centroids": 2047}, "num_centroids = 2047 does not divide vocab_size"),
        (ASSISTANT | {"text_config": None}, "vocab_size is missing"),
        ({"medusa_num_heads": 65, "hidden_size": 4, "vocab_size": 9}, "expected at most 64"),
        ({"medusa_num_heads": 3, "medusa_num_layers": 2, "hidden_size": 4, "vocab_size": 9}, "repeats one layer"),
        ({"medusa_num_heads": 3}, "vocab_size is missing"),
        ({"model_type": "medusa", "num_heads": 3, "original_lm_head": True}, "share the target's"),
        ({"model_type": "eagle", "model": LLAMA, "add_para_norm": True}, "norms of its own"),
        ({"speculators_model_type": "dflash", "architectures": ["DFlashDraftModel"]}, "of speculators' heads EAGLE-3"),
        ({"speculators_model_type": "eagle", "architectures": ["EagleSpeculator"]}, "EAGLE over other layers"),
        (LLAMA | {"architectures": ["EagleMistralForCausalLM"]}, "EAGLE over other layers"),
        (LLAMA | {"architectures": ["Qwen3DSparkModel"]}, "DSpark"),
        (LLAMA | {"architectures": ["DSparkDraftModel"]}, "DSpark"),
        (DOMINO | {"dflash_config": OF_DOMINO | {"pure_draft_prefix_len": 15}}, "no scores of a block are corrected"),
        (DOMINO | {"dflash_config": OF_DOMINO | {"projector_type": "dspark"}}, "a variant of DFlash"),
        (DSPARK | {"dflash_config": OF_DSPARK | {"markov_head_type": "gatd"}}, "did you mean 'gated'|gated"),
        (DSPARK | {"dflash_config": OF_DSPARK | {"markov_rank": 0}}, "without a markov_rank"),
        (LLAMA | {"architectures": ["HydraModel"]}, "Hydra"),
    ],
)
def test_other_heads_are_refused_by_name(raw, said):
    with pytest.raises(Problem, match=said):
        make("it", raw)


def test_p_eagle_is_eagle_3_with_a_vector_for_the_tokens_to_come():
    """Under the classes of vLLM 0.33 and the name of speculators: mask_hidden, as wide as what the head fuses."""
    plain = make("it", LLAMA | {"architectures": ["Eagle3LlamaForCausalLM"], "draft_vocab_size": 32})
    for keys in ({"architectures": ["PeagleLlamaForCausalLM"]}, {"architectures": ["PEagleDraftModel"]}):
        made = make("it", LLAMA | keys | {"draft_vocab_size": 32, "pard_token": 3})
        new = {*made.counts.tensors()} - {*plain.counts.tensors()}
        assert new == {("mask_hidden", (1, 3 * LLAMA["hidden_size"]))} and not made.unknown
    kept = {"speculators_model_type": "peagle", "transformer_layer_config": LLAMA, "mask_token_id": 3}
    made = make("it", kept | {"architectures": ["PEagleDraftModel"], "draft_vocab_size": 32})
    assert made.counts.total == plain.counts.total + 3 * LLAMA["hidden_size"]


def test_without_hidden_states_there_is_an_error():
    g = draft("eagle")
    with pytest.raises(Problem, match="none are given"):
        logits(g.architecture, g.config, Arrays(g.tensors), g.ids)
    with pytest.raises(Problem, match="give 24 numbers for each of 10 tokens"):
        logits(g.architecture, g.config, Arrays(g.tensors), g.ids, Cache(states=g.states[:9]))
