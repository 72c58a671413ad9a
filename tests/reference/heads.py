"""Every head of every trunk, as transformers builds it: `python -m tests.reference.heads [TYPE ...]`.

From the repository. For each class that transformers has of a type, its small config, with as many labels as `LABELS`,
is made a model without memory for its weights; ours has to have the same tensors. What transformers listed is written
into `tests/golden/heads.json`, against which the tests hold our lists. A class that ours refuses needs a reason here.
Of the types in `RUN`, each class also runs with random weights on a short text, and ours has to give the same numbers.
"""

from __future__ import annotations

import json
import math
import sys

import torch
import transformers
from transformers import AutoConfig
from transformers.models.auto import modeling_auto
from transformers.utils import ModelOutput

from macros.catalogue.presets import make
from macros.engine.errors import Problem
from macros.engine.forward import logits, renaming
from macros.engine.loaded import Arrays

from . import TESTS, close, digest, models, tensors
from .configs import MULTIMODAL, configs
from .packing import unfuse

FILE = TESTS / "golden" / "heads.json"
LABELS = 3  # neither what a config has that says nothing, nor what any head has by itself
KINDS = [
    f"MODEL_{kind}MAPPING_NAMES"
    for kind in (
        *("", "FOR_CAUSAL_LM_", "FOR_MASKED_LM_", "FOR_SEQUENCE_CLASSIFICATION_", "FOR_TOKEN_CLASSIFICATION_"),
        *("FOR_QUESTION_ANSWERING_", "FOR_MULTIPLE_CHOICE_", "FOR_NEXT_SENTENCE_PREDICTION_", "FOR_PRETRAINING_"),
        *("FOR_SEQ_TO_SEQ_CAUSAL_LM_", "FOR_SPEECH_SEQ_2_SEQ_", "FOR_TEXT_ENCODING_"),
    )
]
RUN = """
    llama gpt2 opt mistral qwen2 qwen3 bloom gpt_neox gptj mixtral phi falcon gemma2 mpt bert modernbert roberta electra
    distilbert albert mpnet nomic_bert roformer rembert modernbert-decoder biogpt deberta-v2
    jina_embeddings_v3 gte ernie big_bird deberta ibert mobilebert roc_bert squeezebert xmod
""".split()
TWO = ("DistilBertForQuestionAnswering",)  # which takes no other number of labels
REFUSED = {
    "BartForCausalLM": "the decoder alone",
    "WhisperForCausalLM": "the decoder alone",
    "BertLMHeadModel": "BERT as a decoder, with a cache",
    "RobertaForCausalLM": "RoBERTa as a decoder, with a cache",
    "XLMRobertaForCausalLM": "RoBERTa as a decoder, with a cache",
    "CamembertForCausalLM": "RoBERTa as a decoder, with a cache",
    "ElectraForCausalLM": "ELECTRA as a decoder, with a cache",
    **dict.fromkeys(
        [
            f"{name}ForCausalLM"
            for name in ("MBart", "Marian", "Pegasus", "Blenderbot", "BlenderbotSmall", "PLBart", "Mvp")
        ],
        "the decoder alone",
    ),
    **dict.fromkeys(
        [f"{name}ForCausalLM" for name in ("Ernie", "MegatronBert", "RemBert", "RoFormer")],
        "BERT as a decoder, with a cache",
    ),
    **dict.fromkeys(
        [f"{name}ForCausalLM" for name in ("Data2VecText", "RobertaPreLayerNorm", "XLMRobertaXL")],
        "RoBERTa as a decoder, with a cache",
    ),
    "FSMTModel": "its decoder has the head",
    **dict.fromkeys(
        [
            f"{name}For{task}"
            for name in ("XLM", "Flaubert", "XLNet")
            for task in ("MultipleChoice", "SequenceClassification")
        ],
        "a summary of the text that its config describes",
    ),
    **dict.fromkeys(
        [f"{name}ForCausalLM" for name in ("Xmod", "RoCBert", "BigBird")], "RoBERTa as a decoder, with a cache"
    ),
    "BigBirdForQuestionAnswering": "a class of its own for it",
    "BigBirdForPreTraining": "what it was trained with",
    **dict.fromkeys(("BigBirdPegasusForCausalLM", "ProphetNetForCausalLM"), "the decoder alone"),
    **dict.fromkeys(
        ("RoCBertForPreTraining", "MobileBertForNextSentencePrediction", "MobileBertForPreTraining"),
        "what it was trained with",
    ),
    **dict.fromkeys(("LongT5EncoderModel", "LEDForSequenceClassification"), "the encoder alone, or a class of its own"),
    "ElectraForMultipleChoice": "a class of its own for it",
    "T5GemmaForSequenceClassification": "reads what its config says",
    "T5GemmaForTokenClassification": "reads what its config says",
    "T5GemmaEncoderModel": "the encoder alone",
    "T5Gemma2Encoder": "the encoder alone",
    "T5Gemma2ForSequenceClassification": "reads what its config says",
    "T5Gemma2ForTokenClassification": "reads what its config says",
    "RoFormerForMultipleChoice": "a class of its own for it",
    "AlbertForPreTraining": "both heads at once",
    "EuroBertForSequenceClassification": "reads what its config says",
    "MT5EncoderModel": "the encoder alone",
    "MT5ForTokenClassification": "the encoder alone",
    "UMT5EncoderModel": "the encoder alone",
    "UMT5ForTokenClassification": "the encoder alone",
    "T5EncoderModel": "the encoder alone",
    "T5ForTokenClassification": "the encoder alone",
    **dict.fromkeys(
        ("SeamlessM4TForSpeechToText", "SeamlessM4Tv2ForSpeechToText"), "the speech encoder instead of the text’s"
    ),
    "UdopModel": "its tables of distances are apart",
}
WHOLES = ("SeamlessM4TModel", "SeamlessM4Tv2Model")  # with parts that make speech, which are not counted


def classes(model_type: str) -> list[str]:
    """The classes that transformers has of a type."""
    found = (getattr(modeling_auto, kind).get(model_type) for kind in KINDS)
    return sorted(
        {name for name in found if isinstance(name, str) and name not in WHOLES and hasattr(transformers, name)}
    )


def row(model_type: str, name: str) -> list | str:
    """What transformers has of a class: its parameters, and a digest of its list of tensors. A reason where ours does
    not count it. Raises AssertionError where ours has others."""
    raw = configs()[model_type]
    keys = {key: value for key, value in raw.items() if key != "model_type"}
    labels = 2 if name in TWO else LABELS
    config = AutoConfig.for_model(model_type, **keys, num_labels=labels)
    try:
        ours = make(name, raw | {"architectures": [name], "num_labels": labels})
    except Problem as problem:
        return REFUSED.get(name) or REFUSED.get(f"{name} of {model_type}") or f"refused: {problem}"
    with torch.device("meta"):
        model = models.unsaved(getattr(transformers, name)._from_config(config))
    there = tensors.shapes(ours, {n: t.to("cpu") for n, t in on_paper(model).items()})
    here = dict(ours.counts.tensors())
    assert here == there, sorted(here.items() ^ there.items())[:6]
    return [sum(map(math.prod, there.values())), digest(there)]


def run(model_type: str, name: str) -> None:
    """Raise AssertionError where a class gives other numbers than ours with the same random weights."""
    raw = configs()[model_type]
    keys = {key: value for key, value in raw.items() if key != "model_type"}
    keys["num_labels"] = 2 if name.endswith("ForQuestionAnswering") else LABELS  # a beginning and an end
    config = AutoConfig.for_model(model_type, **({"pad_token_id": None} | keys))
    torch.manual_seed(models.SEED)
    options = {"attn_implementation": "sdpa" if raw.get("alibi") else "eager", "experts_implementation": "eager"}
    model = getattr(transformers, name)._from_config(config, **options).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.copy_(torch.randn_like(parameter) / (parameter.shape[-1] ** 0.5 if parameter.ndim > 1 else 5))
    ids = models.token_ids(model, 7)
    given = model(ids[None] if name.endswith("ForMultipleChoice") else ids)
    ours = make(name, raw | {"architectures": [name], "num_labels": keys["num_labels"]})
    before, now = renaming(ours.architecture, ours.config, ours.head)
    arrays = unfuse(ours.architecture, {n: t.numpy() for n, t in model.state_dict().items()})
    here = {before + n.removeprefix(now) if n.startswith(now) and before != now else n: a for n, a in arrays.items()}
    scores, _ = logits(ours.architecture, ours.config, Arrays(here), ids[0].numpy(), head=ours.head)
    close(scores.reshape(-1), result(given).numpy().reshape(-1), 1e-4)


def result(given: ModelOutput) -> torch.Tensor:
    """What a class gives: scores, of a beginning and an end, of both that BERT was trained on, or the vectors."""
    if "start_logits" in given:
        return torch.stack([given.start_logits, given.end_logits], -1)
    if "prediction_logits" in given:
        return torch.cat([given.prediction_logits.flatten(), given.seq_relationship_logits.flatten()])
    return next(given[key] for key in ("logits", "pooler_output", "last_hidden_state") if given.get(key) is not None)


def on_paper(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The parameters' shapes, tied ones once: one number stands for all of each."""
    return {name: torch.zeros(()).expand(tuple(p.shape)) for name, p in model.named_parameters()}


def main(model_types: list[str]) -> None:
    known = json.loads(FILE.read_bytes()) if FILE.exists() else {}
    wrong = 0
    for model_type in model_types or [t for t in configs() if t not in MULTIMODAL]:
        rows = {}
        for name in classes(model_type):
            try:
                found = row(model_type, name)
                if model_type in RUN and not isinstance(found, str):
                    run(model_type, name)
            except AssertionError as error:
                found = f"refused: {error}"
            if isinstance(found, str) and found.startswith("refused: "):
                wrong += 1
                print(f"{model_type} {name}: {found[:400]}")
            rows[name] = found
        known[model_type] = rows
    if wrong:
        sys.exit(f"nothing is written: {wrong} are not the same")
    types = (f"{json.dumps(t)}: {json.dumps(known[t], separators=(',', ':'))}" for t in sorted(known))
    FILE.write_text("{\n" + ",\n".join(types) + "\n}\n", "utf-8")
    print({"types": len(known), "classes": sum(map(len, known.values()))})


if __name__ == "__main__":
    main(sys.argv[1:])
