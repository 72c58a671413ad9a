"""Task heads in one module: `architectures` in a config.json names a class, whose head replaces the trunk's own.

A forward pass ends in its own head, scores for each token of the vocabulary; with another head it ends in that head's
output for the last hidden states. Sources: transformers 5.24, `modeling_layers.py` and the modeling files of each type;
Qwen2.5-Math-RM and -PRM, modeling_qwen2_rm.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from msgspec import Struct

from ..errors import Problem, named, shorten
from ..facts import Task
from ..interface import Array, Weights
from ..keys import OF_TWO_MODELS, WRITER, Parts, language_part, named_keys, text_table
from ..ops import gelu, last_row, layer_norm, linear, relu
from ..renaming import with_names, with_text_sizes, with_text_type, with_type
from ..steps import Role, step
from . import Architecture
from .config import BOTH_WAYS_CLASS, LARGEST_SIZE, activation, listed
from .drafts import COUNTED, as_draft
from .pooling import pooled
from .tasks import DECODER, OWN, OWN_ENDS

# A head's output from the last hidden states [T D], its own weights, the trunk's, the number of labels, and the config.
Compute: TypeAlias = Callable[[Array, Weights, Weights, int, Any], Array]

USUAL_LABELS = 2  # if a config does not state them


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


# --- heads of decoders -----------------------------------------------------------------------------------------------


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


# --- heads of encoders, or of both
# -------------------------------------------------------------------------------------


@step(Role.TASK_HEAD)
def pool(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """The text's vector: [T D] -> [1 D]."""
    return pooled(x, trunk)


@step(Role.TASK_HEAD)
def classify_pooled(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its vector: [T D], [C D], [C] -> [1 C]."""
    return linear(pooled(x, trunk), w, "classifier", labels, bias=True)


def changed(x: Array, w: Weights, c: Any) -> Array:
    """Each vector, transformed: [T D] -> [T D] (ModernBERT)."""
    y = activation(c.head_activation)(linear(x, w, "head.dense", x.shape[-1], bias=c.head_bias))
    return layer_norm(y, w, "head.norm", c.norm_eps, bias=c.norm_bias)


@step(Role.TASK_HEAD)
def classify_dense(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token's vector, transformed once more: [T D] -> [1 C]
    (RoBERTa)."""
    y = np.tanh(linear(x[:1], w, "classifier.dense", x.shape[-1], bias=True))
    return linear(y, w, "classifier.out_proj", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_gelu(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token's vector, transformed once more: [T D] -> [1 C]
    (ELECTRA)."""
    y = gelu(linear(x[:1], w, "classifier.dense", x.shape[-1], bias=True))
    return linear(y, w, "classifier.out_proj", labels, bias=True)


@step(Role.TASK_HEAD)
def find_replaced(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """How likely another model wrote each token: [T D] -> [T D] -> [T 1] (ELECTRA)."""
    y = activation(c.activation)(linear(x, w, "discriminator_predictions.dense", x.shape[-1], bias=True))
    return linear(y, w, "discriminator_predictions.dense_prediction", 1, bias=True)


@step(Role.TASK_HEAD)
def classify_relu(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token, transformed once more: [T D] -> [1 C] (DistilBERT)."""
    y = relu(linear(x[:1], w, "pre_classifier", x.shape[-1], bias=True))
    return linear(y, w, "classifier", labels, bias=True)


def pooled_alone(x: Array, trunk: Weights) -> Array:
    """The first token's vector after one more transformation represents the text: [T D] -> [1 D] (ALBERT)."""
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
    """A score of the text for each label, by its first token's vector, transformed once more: [T D] -> [1 C]
    (RoFormer)."""
    y = activation(c.activation)(linear(x[:1], w, "classifier.dense", x.shape[-1], bias=True))
    return linear(y, w, "classifier.out_proj", labels, bias=True)


@step(Role.TASK_HEAD)
def classify_context(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token's vector, transformed once more: [T D] -> [1 C]
    (DeBERTa)."""
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

COMPUTES: dict[str, Compute] = {
    "nothing": nothing,
    "score": score,
    "score_first": score_first,
    "score_mean": score_mean,
    "narrow": narrow,
    "score_tokens": score_tokens,
    "classify_tokens": classify_tokens,
    "find_answer": find_answer,
    "reward": reward,
    "pool": pool,
    "classify_pooled": classify_pooled,
    "classify_dense": classify_dense,
    "classify_gelu": classify_gelu,
    "find_replaced": find_replaced,
    "classify_relu": classify_relu,
    "pool_alone": pool_alone,
    "classify_alone": classify_alone,
    "classify_activated": classify_activated,
    "classify_context": classify_context,
    "classify_last": classify_last,
    "classify_first": classify_first,
    "classify_last_changed": classify_last_changed,
    "classify_mean": classify_mean,
    "classify_changed": classify_changed,
    "classify_written": classify_written,
}

# What a head for the whole text reads, of a type whose attention looks both ways, by `pooling`: the mean where it says
# nothing.
POOLINGS = {"avg": "score_mean", "mean": "score_mean", "cls": "score_first", "last": "score"}


def classes(raw: Mapping[str, Any]) -> list[str]:
    """The classes that a config.json names. Raises `Problem` if it is not a list of names."""
    given: object = raw.get("architectures")
    if given is None:
        return []
    names = [name for name in listed(given) or [None] if isinstance(name, str)]
    if given != names:
        raise Problem(f"architectures = {shorten(given)}: expected a list of class names", "correct the value")
    return names


def find_head(architecture: Architecture, raw: Mapping[str, Any], own_names: Sequence[str]) -> Head | None:
    """The head that a config names; None for the trunk's own.

    `own_names`: makers' names for the class of this type with its own head. Raises `Problem` for an unknown class.
    """
    model_type, named_classes = raw["model_type"], classes(raw)
    if not named_classes or named_classes[0] in own_names or model_type in COUNTED:
        return None
    kinds = DECODER if architecture.heads is None else architecture.heads
    found = _ending(named_classes[0], kinds, [model_type, *architecture.called_by_vllm, *own_names])
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
    compute = "classify_mean" if _takes_mean(kind, raw) else kind.compute
    if compute == "score" and BOTH_WAYS_CLASS in named_classes[0]:
        compute = _pooled(raw)
    computed = COMPUTES[compute] if isinstance(compute, str) else compute
    return Head(named_classes[0], kind.words, computed, labels, kind.prefix)


def _pooled(raw: Mapping[str, Any]) -> str:
    """The head for a whole text whose tokens see each other. Raises `Problem` for an unknown `pooling`."""
    pooling: object = raw.get("pooling", "avg")
    if not isinstance(pooling, str) or pooling not in POOLINGS:
        raise Problem(f"pooling = {shorten(pooling)}", f"known are {', '.join(POOLINGS)}")
    return POOLINGS[pooling]


def _takes_mean(kind: Task, raw: Mapping[str, Any]) -> bool:
    """Whether the head of a ModernBERT reads the mean of a text, instead of its first token."""
    return kind.compute == "classify_first" and raw.get("classifier_pooling") == "mean"


def _ending(name: str, ends: Mapping[str, Task | None], of: Sequence[str]) -> str | None:
    """The end of a class's name, if it begins with the name of the type or of a known class of it."""
    name = name.replace(BOTH_WAYS_CLASS, "")
    begins = {plain(one) for one in of} | {plain(one).removesuffix("text") for one in of}
    begins |= {plain(one.removesuffix(end)) for one in of for end in ends if one.endswith(end)}
    return next((end for end in ends if name.endswith(end) and plain(name.removesuffix(end)) in begins), None)


def plain(name: str) -> str:
    """A type's or a class's name without the differences in spelling: qwen3_moe, Qwen3Moe -> qwen3moe."""
    return name.replace("_", "").replace("-", "").replace(".", "").lower()


def described(
    raw: Mapping[str, Any], known: Collection[str], names: Mapping[str, Sequence[str]], there: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Parts | None, str | None]:
    """The language model's keys, and the parts of the config; and the type of the whole, if the keys are in an inner
    table and that type is none of the `known` ones. `names`: makers' names for the class of a type with its own head;
    `there`: transformers' tables of names.

    If the class of the whole begins with its type, the text model has the class with the same ending; for an unknown
    whole, the one with its own head.
    """
    draft = as_draft(raw, classes(raw))
    if draft is not None:
        return draft, None, None
    whole = with_text_sizes(with_text_type(with_type(raw, there), known, there), there)
    keys, parts, strange = _described(whole, known, names)
    return with_names(keys, there), parts, strange


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
    if table is None:  # an older file, with the text model's keys next to the others
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
