"""Classes of task heads that several types have, by the end of a class's name; `heads` computes them."""

from __future__ import annotations

from ..facts import Task

BASE = Task("the last hidden states, no head", "nothing", 0, "")
OWN = None  # the trunk's own head, as its forward pass has it
NONE: dict[str, Task | None] = {}  # part of a whole that has the head
OWN_ENDS: dict[str, Task | None] = {"ForCausalLM": OWN, "LMHeadModel": OWN}
DECODER: dict[str, Task | None] = {
    **OWN_ENDS,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "score"),
    "ForTokenClassification": Task("token classification", "score_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer", 2),
}
# Where a class for tokens calls its matrix as its own file did, before all types had the same class.
OLD_CLASSIFIER = DECODER | {"ForTokenClassification": Task("token classification", "classify_tokens")}
# Where a class for answers calls the trunk `transformer.`, as it once was.
OLD_NAME = DECODER | {"ForQuestionAnswering": Task("question answering", "find_answer", 2, "transformer.")}

# Tables shared by several encoders.
OF_ROBERTA: dict[str, Task | None] = {
    "ForMaskedLM": OWN,
    "Model": Task("the last hidden states and the text's vector", "pool", 0, ""),
    "ForSequenceClassification": Task("sequence classification", "classify_dense"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
    "ForMultipleChoice": Task("multiple choice", "classify_pooled", 1),
}
OF_REMBERT: dict[str, Task | None] = OF_ROBERTA | {
    "ForSequenceClassification": Task("sequence classification", "classify_pooled"),
}
