"""Task heads in one module: `architectures` in a config.json names a class, whose head replaces the trunk's own.

A forward pass ends in its own head, scores for each token of the vocabulary; with another head it ends in that head's
output for the last hidden states. Sources: transformers 5.23, `modeling_layers.py` and the modeling files of each type;
Qwen2.5-Math-RM and -PRM, modeling_qwen2_rm.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from msgspec import Struct

from ..errors import Problem, named, shorten
from ..interface import Array, Weights
from ..keys import OF_TWO_MODELS, WRITER, Parts, language_part, named_keys, text_table
from ..ops import gelu, last_row, layer_norm, linear, relu
from ..steps import Role, step
from .config import BOTH_WAYS_CLASS, LARGEST_SIZE, activation, listed
from .drafts import COUNTED, as_draft
from .otherwise import with_rounded_head

# What a head makes of the last hidden states: [T D], its own weights, the trunk's, so many labels, the config.
Compute: TypeAlias = Callable[[Array, Weights, Weights, int, Any], Array]

USUAL_LABELS = 2  # where a config says nothing of them


class Head(Struct, frozen=True):
    """A head that replaces the trunk's own.

    `name`: the class. `kind`: the kind of head, in words. `prefix`: the prefix of the trunk's tensors; None if it is
    the same as with its own head.
    """

    name: str
    kind: str
    compute: Compute
    labels: int
    prefix: str | None

    @property
    def said(self) -> str:
        """The kind of head, and the number of labels."""
        return f"{self.kind}, {self.labels} label{'' if self.labels == 1 else 's'}" if self.labels else self.kind


class Kind(Struct, frozen=True):
    """A kind of head: its computation, and its number of labels, None for that of the config."""

    words: str
    compute: Compute
    labels: int | None = None
    prefix: str | None = None


# --- what a decoder has -----------------------------------------------------------------------------------------------


def nothing(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """The last hidden states themselves: [T D] -> [T D]."""
    return x


@step(Role.TASK_HEAD)
def score(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its last token: [T D], [C D] -> [1 C]."""
    return linear(last_row(x), w, "score", labels)


@step(Role.TASK_HEAD)
def score_first(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token: [T D], [C D] -> [1 C]."""
    return linear(x[:1], w, "score", labels)


@step(Role.TASK_HEAD)
def score_mean(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by the mean of its tokens' vectors: [T D], [C D] -> [1 C]."""
    return linear(x.mean(axis=0, keepdims=True), w, "score", labels)


@step(Role.TASK_HEAD)
def narrow(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """Each token's vector, as wide as the embedding is: [T D], [C D] -> [T C] (Voyage)."""
    return linear(x, w, "linear", labels)


@step(Role.TASK_HEAD)
def score_tokens(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of each token for each label: [T D], [C D], [C] -> [T C]."""
    return linear(x, w, "score", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_tokens(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of each token for each label: [T D], [C D], [C] -> [T C]."""
    return linear(x, w, "classifier", labels, bias=True)


@step(Role.TASK_HEAD)
def find_answer(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """Scores for the start and the end of an answer at each token: [T D], [C D], [C] -> [T C]."""
    return linear(x, w, "qa_outputs", labels, bias=True)


@step(Role.TASK_HEAD)
def reward(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """The quality of the text up to each token, by two maps: [T D] -> [T D] -> [T C] (Qwen2.5-Math-RM)."""
    return linear(relu(linear(x, w, "score.0", x.shape[-1], bias=True)), w, "score.2", labels, bias=True)


# --- what an encoder has, or both -------------------------------------------------------------------------------------


def pooled(x: Array, trunk: Weights) -> Array:
    """The first token's vector, transformed, represents the text: [T D] -> [1 D] (BERT)."""
    return np.tanh(linear(x[:1], trunk, "pooler.dense", x.shape[-1], bias=True))


@step(Role.TASK_HEAD)
def pool(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """The text's vector: [T D] -> [1 D]."""
    return pooled(x, trunk)


@step(Role.TASK_HEAD)
def classify_pooled(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its vector: [T D], [C D], [C] -> [1 C]."""
    return linear(pooled(x, trunk), w, "classifier", labels, bias=True)


@step(Role.TASK_HEAD)
def follows(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """Whether the second sentence follows the first, by the text's vector: [T D], [C D], [C] -> [1 C]."""
    return linear(pooled(x, trunk), w, "cls.seq_relationship", labels, bias=True)


def predict_both(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """Scores for hidden words and for the sentence that follows, one after the other: [T D] -> [T·V + C]."""
    from .bert import prediction_head  # here: a module of an architecture is imported where its type is asked for

    words = prediction_head(x, w, c, last=False)
    return np.concatenate([words.reshape(-1), follows(x, w, trunk, labels, c).reshape(-1)])


def changed(x: Array, w: Weights, c: Any) -> Array:
    """Each vector, transformed: [T D] -> [T D] (ModernBERT)."""
    y = activation(c.head_activation)(linear(x, w, "head.dense", x.shape[-1], bias=c.head_bias))
    return layer_norm(y, w, "head.norm", c.norm_eps, bias=c.norm_bias)


@step(Role.TASK_HEAD)
def classify_dense(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token's vector, changed once more: [T D] -> [1 C] (RoBERTa)."""
    y = np.tanh(linear(x[:1], w, "classifier.dense", x.shape[-1], bias=True))
    return linear(y, w, "classifier.out_proj", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_gelu(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token's vector, changed once more: [T D] -> [1 C] (ELECTRA)."""
    y = gelu(linear(x[:1], w, "classifier.dense", x.shape[-1], bias=True))
    return linear(y, w, "classifier.out_proj", labels, bias=True)


@step(Role.TASK_HEAD)
def find_replaced(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """How likely another model wrote each token: [T D] -> [T D] -> [T 1] (ELECTRA)."""
    y = activation(c.activation)(linear(x, w, "discriminator_predictions.dense", x.shape[-1], bias=True))
    return linear(y, w, "discriminator_predictions.dense_prediction", 1, bias=True)


@step(Role.TASK_HEAD)
def classify_relu(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token, changed once more: [T D] -> [1 C] (DistilBERT)."""
    y = relu(linear(x[:1], w, "pre_classifier", x.shape[-1], bias=True))
    return linear(y, w, "classifier", labels, bias=True)


def pooled_alone(x: Array, trunk: Weights) -> Array:
    """The first token's vector, changed once more, stands for the text: [T D] -> [1 D] (ALBERT)."""
    return np.tanh(linear(x[:1], trunk, "pooler", x.shape[-1], bias=True))


@step(Role.TASK_HEAD)
def pool_alone(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """The text's vector: [T D] -> [1 D] (ALBERT)."""
    return pooled_alone(x, trunk)


@step(Role.TASK_HEAD)
def classify_alone(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its vector: [T D], [C D], [C] -> [1 C] (ALBERT)."""
    return linear(pooled_alone(x, trunk), w, "classifier", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_activated(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token's vector, changed once more: [T D] -> [1 C] (RoFormer)."""
    y = activation(c.activation)(linear(x[:1], w, "classifier.dense", x.shape[-1], bias=True))
    return linear(y, w, "classifier.out_proj", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_context(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token's vector, changed once more: [T D] -> [1 C] (DeBERTa)."""
    y = gelu(linear(x[:1], w, "pooler.dense", x.shape[-1], bias=True))
    return linear(y, w, "classifier", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_last(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its last token: [T D], [C D] -> [1 C] (CTRL)."""
    return linear(last_row(x), w, "classifier", labels)


@step(Role.TASK_HEAD)
def classify_first(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token: [T D], [C D], [C] -> [1 C]."""
    return linear(changed(x[:1], w, c), w, "classifier", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_last_changed(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its last token: [T D], [C D], [C] -> [1 C]."""
    return linear(changed(last_row(x), w, c), w, "classifier", labels, bias=c.head_bias)


@step(Role.TASK_HEAD)
def classify_mean(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by the mean of its tokens' vectors: [T D], [C D], [C] -> [1 C]."""
    return linear(changed(x.mean(axis=0, keepdims=True), w, c), w, "classifier", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_changed(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of each token for each label: [T D], [C D], [C] -> [T C]."""
    return linear(changed(x, w, c), w, "classifier", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_written(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by the decoder's output for its last token: [T D] -> [1 C]."""
    y = np.tanh(linear(last_row(x), w, "classification_head.dense", x.shape[-1], bias=True))
    return linear(y, w, "classification_head.out_proj", labels, bias=True)


# --- which class has which --------------------------------------------------------------------------------------------

BASE = Kind("the last hidden states, no head", nothing, 0, "")
OWN = None  # the trunk's own head, as its forward pass has it

OWN_ENDS: Mapping[str, Kind | None] = {"ForCausalLM": OWN, "LMHeadModel": OWN}
DECODER: Mapping[str, Kind | None] = {
    **OWN_ENDS,
    "Model": BASE,
    "ForSequenceClassification": Kind("sequence classification", score),
    "ForTokenClassification": Kind("token classification", score_tokens),
    "ForQuestionAnswering": Kind("question answering", find_answer, 2),
}
# Types whose class for tokens calls its matrix as its own file did, before all types had the same class.
OLD_CLASSIFIER = frozenset("biogpt bloom falcon gpt2 gpt_bigcode gpt_neo gpt_neox mpt".split())
# Types whose class for answers calls the trunk `transformer.`, as it once was.
OLD_NAME = frozenset(
    """
    arcee diffllama exaone4 llama ministral nemotron qwen2 qwen3 qwen3_moe qwen3_next seed_oss smollm3
""".split()
)

# What several encoders have alike.
OF_ROBERTA: dict[str, Kind | None] = {
    "ForMaskedLM": OWN,
    "Model": Kind("the last hidden states and the text's vector", pool, 0, ""),
    "ForSequenceClassification": Kind("sequence classification", classify_dense),
    "ForTokenClassification": Kind("token classification", classify_tokens),
    "ForQuestionAnswering": Kind("question answering", find_answer),
    "ForMultipleChoice": Kind("multiple choice", classify_pooled, 1),
}
OF_REMBERT: dict[str, Kind | None] = OF_ROBERTA | {
    "ForSequenceClassification": Kind("sequence classification", classify_pooled),
}

# The heads of the forward passes that are no decoders, by their names: others than these they do not have.
OTHERS: Mapping[str, Mapping[str, Kind | None]] = {
    "bert": {
        "ForMaskedLM": OWN,
        "Model": Kind("the last hidden states and the text's vector", pool, 0, ""),
        "ForSequenceClassification": Kind("sequence classification", classify_pooled),
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnswering": Kind("question answering", find_answer),
        "ForMultipleChoice": Kind("multiple choice", classify_pooled, 1),
        "ForNextSentencePrediction": Kind("next sentence", follows, 2),
        "ForPreTraining": Kind("hidden words and next sentence", predict_both, 2),
    },
    "roberta": OF_ROBERTA,
    "mpnet": OF_ROBERTA,
    "electra": {
        "ForMaskedLM": OWN,
        "Model": BASE,
        "ForPreTraining": Kind("replaced tokens", find_replaced, 1),
        "ForSequenceClassification": Kind("sequence classification", classify_gelu),
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnswering": Kind("question answering", find_answer),
    },
    "distilbert": {
        "ForMaskedLM": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_relu),
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnswering": Kind("question answering", find_answer, 2),
        "ForMultipleChoice": Kind("multiple choice", classify_relu, 1),
    },
    "albert": {
        "ForMaskedLM": OWN,
        "Model": Kind("the last hidden states and the text's vector", pool_alone, 0, ""),
        "ForSequenceClassification": Kind("sequence classification", classify_alone),
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnswering": Kind("question answering", find_answer),
        "ForMultipleChoice": Kind("multiple choice", classify_alone, 1),
    },
    "nomic_bert": {
        "ForMaskedLM": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_pooled),
        "ForTokenClassification": Kind("token classification", classify_tokens),
    },
    "eurobert": {
        "ForMaskedLM": OWN,
        "Model": BASE,
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnswering": Kind("question answering", find_answer),
    },
    "rembert": OF_REMBERT,
    "roformer": {
        "ForMaskedLM": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_activated),
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnswering": Kind("question answering", find_answer, 2),
    },
    "deberta_v2": {
        "ForMaskedLM": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_context),
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnswering": Kind("question answering", find_answer),
        "ForMultipleChoice": Kind("multiple choice", classify_context, 1),
    },
    "big_bird": {
        "ForMaskedLM": OWN,
        "Model": Kind("the last hidden states and the text's vector", pool_alone, 0, ""),
        "ForSequenceClassification": Kind("sequence classification", classify_activated),
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForMultipleChoice": Kind("multiple choice", classify_alone, 1),
    },
    "xmod": OF_ROBERTA,
    "roc_bert": OF_REMBERT,
    "squeezebert": OF_REMBERT,
    "mobilebert": OF_REMBERT,
    "deberta": {
        "ForMaskedLM": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_context),
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnswering": Kind("question answering", find_answer),
    },
    "xlm": {
        "WithLMHeadModel": OWN,
        "Model": BASE,
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnsweringSimple": Kind("question answering", find_answer),
    },
    "xlnet": {
        "LMHeadModel": OWN,
        "Model": BASE,
        "ForTokenClassification": Kind("token classification", classify_tokens),
        "ForQuestionAnsweringSimple": Kind("question answering", find_answer),
    },
    "modernbert": {
        "ForMaskedLM": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_first),
        "ForTokenClassification": Kind("token classification", classify_changed),
        "ForQuestionAnswering": Kind("question answering", classify_changed),
        "ForMultipleChoice": Kind("multiple choice", classify_first, 1),
    },
    "modernbert_decoder": {
        "ForCausalLM": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_last_changed),
    },
    "bart": {
        "ForConditionalGeneration": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_written),
        "ForQuestionAnswering": Kind("question answering", find_answer, 2),
    },
    "t5": {
        "ForConditionalGeneration": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_written, None, "transformer."),
        "ForQuestionAnswering": Kind("question answering", find_answer),
    },
    "t5gemma": {"ForConditionalGeneration": OWN, "Model": BASE},
    "t5gemma2": {"ForConditionalGeneration": OWN, "Model": BASE},
    "fsmt": {"ForConditionalGeneration": OWN},
    "nllb_moe": {"ForConditionalGeneration": OWN, "Model": BASE},
    "pegasus_x": {"ForConditionalGeneration": OWN, "Model": BASE},
    "bigbird_pegasus": {
        "ForConditionalGeneration": OWN,
        "Model": BASE,
        "ForSequenceClassification": Kind("sequence classification", classify_written),
        "ForQuestionAnswering": Kind("question answering", find_answer, 2),
    },
    "prophetnet": {"ForConditionalGeneration": OWN, "Model": BASE},
    "trocr": {"ForCausalLM": OWN},
    "mbart_decoder": {},
    "gpt2_decoder": {},
    "bert_decoder": {},
    "encoder_decoder": {"Model": OWN},
    "blip": {"LMHeadModel": OWN},
    "pix2struct": {},
    "longt5": {"ForConditionalGeneration": OWN, "Model": BASE},
    "led": {
        "ForConditionalGeneration": OWN,
        "Model": BASE,
        "ForQuestionAnswering": Kind("question answering", find_answer, 2),
    },
    "whisper": {"ForConditionalGeneration": OWN, "Model": BASE},
    "seamless_m4t": {"ForTextToText": OWN, "Model": OWN},  # the whole, which has the head, too
    "udop": {"ForConditionalGeneration": OWN},
}

# What some types have besides, or otherwise than the others of their forward pass, or the decoders' common classes.
OF_TYPE: Mapping[str, Mapping[str, Kind | None]] = {
    "bert-generation": {"Decoder": OWN, "Encoder": BASE},
    "chatglm": {"Model": OWN, "ForConditionalGeneration": OWN},  # its auto_map makes the trunk's class the causal one
    "ctrl": {"ForSequenceClassification": Kind("sequence classification", classify_last)},
    "jina_embeddings_v3": {
        "Model": Kind("the last hidden states and the text's vector", pool, 0, ""),
        "ForSequenceClassification": Kind("sequence classification", classify_dense),
        "ForQuestionAnswering": Kind("question answering", find_answer),
    },
    "marian": {"MTModel": OWN},
    "gptj": {"ForQuestionAnswering": Kind("question answering", find_answer)},
    "qwen3": {"EmbedModel": Kind("an embedding", narrow)},
    "qwen2": {
        "ForRewardModel": Kind("reward", reward, 1),
        "ForProcessRewardModel": Kind("reward of each step", reward, 2),
    },
}


# The name that vLLM's registry has the classes of a type by, whose own name says nothing.
OF_VLLM: Mapping[str, Sequence[str]] = {"new": ("gte_new",), "qwen3": ("voyage_qwen3",)}

# What a head for the whole text reads, of a type whose attention looks both ways, by `pooling`: the mean where it says
# nothing.
POOLINGS: Mapping[str, Compute] = {"avg": score_mean, "mean": score_mean, "cls": score_first, "last": score}


def classes(raw: Mapping[str, Any]) -> list[str]:
    """The classes that a config.json names. Raises `Problem` if it is not a list of names."""
    given: object = raw.get("architectures")
    if given is None:
        return []
    names = [name for name in listed(given) or [None] if isinstance(name, str)]
    if given != names:
        raise Problem(f"architectures = {shorten(given)}: expected a list of class names", "correct the value")
    return names


def find_head(architecture: str, raw: Mapping[str, Any], own_names: Sequence[str]) -> Head | None:
    """The head that a config names, for a forward pass by its name; None for the trunk's own.

    `own_names`: makers' names for the class of this type with its own head. Raises `Problem` for an unknown class.
    """
    model_type, named_classes = raw["model_type"], classes(raw)
    if not named_classes or named_classes[0] in own_names or model_type in COUNTED:
        return None
    kinds = _kinds(architecture, model_type)
    found = _ending(named_classes[0], kinds, [model_type, *OF_VLLM.get(model_type, ()), *own_names])
    if found is None:
        counted = ", ".join(f"…{end}" for end in kinds)
        raise Problem(
            f"architectures = {shorten(named_classes[0])}: no known class of the type {named(model_type)}",
            f"known are {counted}; without the key it is counted with the trunk's own head",
        )
    kind = kinds[found]
    if kind is None:
        return None
    labels = labels_of(raw) if kind.labels is None else kind.labels
    compute = classify_mean if _takes_mean(kind, raw) else kind.compute
    if compute is score and BOTH_WAYS_CLASS in named_classes[0]:
        compute = _pooled(raw)
    renamed = "transformer." if found == "ForQuestionAnswering" and model_type in OLD_NAME else kind.prefix
    return Head(named_classes[0], kind.words, compute, labels, renamed)


def _pooled(raw: Mapping[str, Any]) -> Compute:
    """The head for a whole text whose tokens see each other. Raises `Problem` for an unknown `pooling`."""
    pooling: object = raw.get("pooling", "avg")
    if not isinstance(pooling, str) or pooling not in POOLINGS:
        raise Problem(f"pooling = {shorten(pooling)}", f"known are {', '.join(POOLINGS)}")
    return POOLINGS[pooling]


def _takes_mean(kind: Kind, raw: Mapping[str, Any]) -> bool:
    """Whether the head of a ModernBERT reads the mean of a text, instead of its first token."""
    return kind.compute is classify_first and raw.get("classifier_pooling") == "mean"


def _kinds(architecture: str, model_type: str) -> Mapping[str, Kind | None]:
    if architecture in OTHERS:
        return {**OF_TYPE.get(model_type, {}), **OTHERS[architecture], **OF_TYPE.get(model_type, {})}
    older = {"ForTokenClassification": Kind("token classification", classify_tokens)}
    return {**DECODER, **(older if model_type in OLD_CLASSIFIER else {}), **OF_TYPE.get(model_type, {})}


def _ending(name: str, ends: Mapping[str, Kind | None], of: Sequence[str]) -> str | None:
    """The end of a class's name, if it begins with that of the type, or of a known class of it."""
    name = name.replace(BOTH_WAYS_CLASS, "")
    begins = {plain(one) for one in of} | {plain(one).removesuffix("text") for one in of}
    begins |= {plain(one.removesuffix(end)) for one in of for end in ends if one.endswith(end)}
    return next((end for end in ends if name.endswith(end) and plain(name.removesuffix(end)) in begins), None)


def plain(name: str) -> str:
    """A type's or a class's name without the differences in spelling: qwen3_moe, Qwen3Moe -> qwen3moe."""
    return name.replace("_", "").replace("-", "").replace(".", "").lower()


def described(
    raw: Mapping[str, Any], known: Collection[str], names: Mapping[str, Sequence[str]]
) -> tuple[Mapping[str, Any], Parts | None, str | None]:
    """The language model's keys, and the parts of the config; and the type of the whole, if the keys are in an inner
    table and that type is none of the `known` ones. `names`: makers' names for the class of a type with its own head.

    If the class of the whole begins with its type, the text model has the class with the same ending; for an unknown
    whole, the one with its own head.
    """
    draft = as_draft(raw, classes(raw))
    if draft is not None:
        return draft, None, None
    keys, parts, strange = _described(raw, known, names)
    return with_rounded_head(keys), parts, strange


def _described(
    raw: Mapping[str, Any], known: Collection[str], names: Mapping[str, Sequence[str]]
) -> tuple[Mapping[str, Any], Parts | None, str | None]:
    raw = named_keys(raw, known)
    keys, parts = language_part(raw)
    keys = named_keys(keys, known)
    whole: object = raw.get("model_type")
    if not isinstance(whole, str):
        return keys, parts, None
    is_strange = whole not in known and f"{whole}_text" not in known and whole not in OF_TWO_MODELS
    table, named_classes, text = text_table(raw), classes(raw), keys.get("model_type")
    if table is None:  # an older file: the text model's keys stand beside the others
        if whole in known or is_strange or whole in OF_TWO_MODELS:
            return keys, parts, None
        keys, text = {**keys, "model_type": f"{whole}_text"}, f"{whole}_text"
    elif table != "text_config" or WRITER in raw:  # the part names its own class, or has its own head
        return keys, parts, whole if is_strange else None
    ends = {"ForConditionalGeneration": OWN, **(OWN_ENDS if is_strange else DECODER)}
    end = _ending(named_classes[0], ends, [whole]) if named_classes else None
    if named_classes and named_classes[0] in names.get(whole, ()):
        end = "ForConditionalGeneration"
    if end is not None:
        named_classes = [] if ends[end] is OWN else [f"{text}{end}"]
    if named_classes or end is not None:
        of_head = {name: raw[name] for name in ("id2label", "num_labels") if name in raw}
        keys = {**keys, **of_head, "architectures": named_classes}
    return keys, parts, whole if is_strange else None


def of_whole(whole: str, text: object, wrong: str) -> Problem:
    """The message about a config whose type is not known, and whose part does not match its type."""
    return Problem(
        f"model_type = {shorten(whole)} is not known, and its text_config (model_type = {shorten(text)}) is not what "
        f"that type has here: {wrong}",
        "every-parameter describe --types prints the known ones",
    )


def labels_of(raw: Mapping[str, Any]) -> int:
    """The number of labels of a config: transformers counts the names, if there are any."""
    names, number = raw.get("id2label"), raw.get("num_labels")
    if isinstance(names, Mapping):
        number = len(cast("Mapping[str, object]", names))
    if number is None:
        return USUAL_LABELS
    if type(number) is not int or not 0 < number <= LARGEST_SIZE:
        raise Problem(f"num_labels = {shorten(number)}: expected a whole number of at least 1", "correct the value")
    return number
