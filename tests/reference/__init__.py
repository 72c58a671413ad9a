"""What the tests hold the engine against: golden checkpoints and reference tensor lists."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from pathlib import Path
from unittest import mock

import numpy as np

from macros.catalogue.checks import REFERENCES
from macros.catalogue.presets import Model, make
from macros.engine.architectures import architectures, find
from macros.engine.architectures.gemma4 import seen_by
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache
from macros.engine.predictions import forward
from macros.engine.steps import Holds, Role

from .packing import unfuse

TESTS = Path(__file__).parent.parent
DRAFTS = TESTS / "golden" / "drafts"

# DESIGN.md: logits and hidden states agree within this share of the largest value.
TOLERANCE = 1e-5

# What single precision may add to that: at most 2.3e-5 on the processors seen so far (zamba2).
ROUNDING = 1e-4

# Past its trained length, dynamic scaling turns by other angles with each token; kept keys are turned as they were.
DYNAMIC = "llama_dynamic_rope"
# Checkpoints whose `hidden` has what each block gives, and not what it is given.
WITH_OUTPUTS = ("mamba", "mamba_gelu", "mamba2", "falcon_mamba_second", "rwkv_second")
DECAYS = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")
# Encoders read a text at once, each token in the light of those after it too; their scores are for hidden words.
ENCODERS = (
    *("bert", "modernbert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert", "albert", "mpnet"),
    *("nomic_bert", "eurobert", "ernie", "megatron-bert", "data2vec-text", "roberta-prelayernorm", "xlm-roberta-xl"),
    *("rembert", "roformer", "gte", "jina_embeddings_v3", "deberta-v2", "bert-generation", "flaubert"),
    *("deberta", "ibert", "mobilebert", "roc_bert", "squeezebert", "xmod", "big_bird", "llada", "Dream"),
    *("ultrabert", "layoutlm", "tapas", "luke", "convbert", "neomme"),
)
# Each token of a canvas sees those after it too: in parts, a canvas is another.
IN_ONE = (*ENCODERS, "diffusion_gemma_text")
# Where patches end depends on the text: on shapes, a text has another number of them.
BY_TEXT = ("blt",)
# These read a text with an encoder, and write another: what is read stands in their checkpoints as `source`.
WITH_ENCODER = (
    *("bart", "mt5", "t5", "umt5", "whisper", "mbart", "m2m_100", "marian", "pegasus", "blenderbot"),
    *("blenderbot-small", "plbart", "mvp", "switch_transformers", "mllama_text_model"),
    *("t5gemma", "t5gemma2", "fsmt", "longt5", "led", "nllb-moe", "pegasus_x", "trocr", "bigbird_pegasus"),
    *("prophetnet", "blip_text_model", "pix2struct_text_model", "pp_formulanet_text", "mbart_decoder", "bert_decoder"),
    *("roberta_decoder", "bert_generation_decoder", "gpt2_decoder", "encoder-decoder", "idefics", "evolla"),
    *("seamless_m4t", "seamless_m4t_v2", "udop"),
)
# Of these, what reads the vectors of an image, or of a protein.
OF_IMAGES = (
    *("mllama_text_model", "trocr", "blip_text_model", "pix2struct_text_model", "pp_formulanet_text"),
    *("mbart_decoder", "bert_decoder", "roberta_decoder", "bert_generation_decoder", "gpt2_decoder"),
    *("idefics", "evolla"),
)
# And of these, what keeps nothing of it.
LOOKING = ("idefics", "evolla")
# What transformers says of decoders whose config says that attention looks both ways; Gemma 3's key for that,
# and LFM2's class.
BOTH_WAYS_FILE = TESTS / "golden" / "both_ways" / "scores.npz"
LFM2_CLASS = "Lfm2BidirectionalModel"
KEY_OF_GEMMA = "use_bidirectional_attention"
# A decoder that reads what it is given at once in both directions.
BOTH_WAYS = ("cpmant",)


def close(ours, reference, tolerance=TOLERANCE, what=""):
    """Fail unless max|Δ| ≤ tolerance · max(1, max|reference|), and unless the shapes are equal; `what` begins the
    message."""
    assert np.shape(ours) == np.shape(reference), f"{what}{np.shape(ours)} against {np.shape(reference)}"
    off, allowed = np.abs(ours - reference).max(), tolerance * max(1, np.abs(reference).max())
    assert off <= allowed, f"{what}differs by {off:.3g}, allowed {allowed:.3g}"  # NaN fails too


def in_double():
    """Weights are loaded as float64 within: processors round products in single precision differently, and small random
    models let that grow beyond the tolerance.
    """
    return mock.patch.object(Arrays, "__call__", lambda self, *of: self._checked(*of).astype(np.float64))


def digest(tensors):
    """Of a list of tensors, by their names: the same in any order."""
    lines = (f"{name} {list(map(int, shape))}" for name, shape in sorted(tensors.items()))
    return blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()


def number(name, shape):
    """A number for each place of a stored tensor, from its name and the place alone: none is 0."""
    first = 1 + int.from_bytes(blake2b(name.encode(), digest_size=2).digest(), "little")
    return np.arange(first, first + math.prod(shape), dtype=np.float32).reshape(shape)


def drawn(shapes):
    """Random tensors, each from its name alone: norms near 1, matrices that keep a vector's length."""
    arrays = {}
    for name, shape in shapes.items():
        size = tuple(map(int, shape))
        rng = np.random.default_rng(list(name.encode()))
        near = 1 if len(size) == 1 and name.endswith("norm.weight") else 0
        arrays[name] = (near + rng.normal(size=size) / (3 if len(size) == 1 else size[-1] ** 0.5)).astype(np.float32)
        if name.endswith("vocab_sizes"):  # of tables, of which none is empty
            arrays[name] = np.ones(size, np.float32)
    return arrays


def drafted(model, ids):
    """What one module of a model says after the last token: all tensors that it reads, its scores, hidden states."""
    counts, c = model.prediction.counts, model.config
    tables = dict.fromkeys(("model.embed_tokens.weight", "lm_head.weight"), (c.vocab_size, c.d_model))
    arrays = drawn(dict(counts.tensors()) | dict(counts.tensors(counts.buffers)) | tables)
    states = drawn({"states": (len(ids), c.d_model)})["states"]
    scores = forward(Arrays(arrays), ids, c, Cache(states=states), model.architecture.predicts, model.raw, 1)
    return arrays, scores, states


def content(tensors):
    """A digest of tensors by their names, of all their numbers: the same in any order."""
    total = blake2b(digest_size=8)
    for name, array in sorted(tensors.items()):
        total.update(f"{name} {list(array.shape)}".encode())
        total.update(np.ascontiguousarray(array, np.float32).tobytes())
    return total.hexdigest()


def changed(raw, changes):
    """A config with other values of keys, those of its tables by dots: `vision_config.hidden_size`."""
    raw = deepcopy(raw)
    for path, value in changes.items():
        *tables, name = path.split(".")
        inner = raw
        for table in tables:
            inner = inner[table]
        inner[name] = value
    return raw


def each_has(lacking, what, mend):
    """Fail with a line for each type that lacks something, and the mend; in it, TYPE is the type."""
    assert not lacking, "\n" + "\n".join(f"{one}: {what}; {mend.replace('TYPE', one)}" for one in sorted(lacking))


@dataclass(frozen=True)
class Golden:
    """One golden checkpoint: a config, weights, token ids and what they compute."""

    name: str

    @cached_property
    def raw(self) -> dict:
        return json.loads(str(self.npz["config_json"]))

    @property
    def model_type(self) -> str:
        return self.raw["model_type"]

    @cached_property
    def npz(self):
        return np.load(TESTS / "golden" / f"{self.name}.npz")

    @cached_property
    def architecture(self):
        return find(self.model_type)

    @cached_property
    def config(self):
        return self.architecture.config.read(self.raw)[0]

    @cached_property
    def tensors(self) -> dict[str, np.ndarray]:
        """Every weight and buffer, in the published file's names and packing."""
        return unfuse(self.architecture, self.packed)

    @cached_property
    def packed(self) -> dict[str, np.ndarray]:
        """The same in transformers 5's names and packing.

        Without the matrices that transformers makes for experts that are nothing, which no published file has, and
        without MiniMax's tables of decays, which are computed.
        """
        stored = {k[2:]: self.npz[k] for k in self.npz.files if k[:2] in ("w/", "b/") and not k.endswith(DECAYS)}
        if self.raw.get("zero_expert_num"):
            experts = self.raw["n_routed_experts"]
            stored = {k: a[:experts] if k.endswith("experts.gate_up_proj") else a for k, a in stored.items()}
        return stored

    @cached_property
    def ids(self):
        return self.npz["input_ids"][0]

    @cached_property
    def source(self):
        """What the encoder reads, where there is one."""
        return self.npz["source"][0] if "source" in self.npz.files else None

    def start(self) -> Cache:
        """The cache of the first step: nothing but what an encoder is to read."""
        return Cache(read=self.source)

    @cached_property
    def logits(self):
        return self.npz["logits"][0]

    @cached_property
    def double(self):
        """Our logits in double precision."""
        with in_double():
            return logits(self.architecture, self.config, self.weights(), self.ids, self.start())[0]

    def close(self, single):
        """Fail unless logits in single precision are those recorded, but for what that precision adds."""
        close(self.double, self.logits)
        close(single, self.double, ROUNDING, "in single precision: ")

    @cached_property
    def hidden(self):
        """The input of each block, then the head's; some files have the blocks' outputs, which lack the first."""
        hidden = self.npz["hidden"]
        if self.name not in WITH_OUTPUTS:
            return hidden
        return np.concatenate([self._first[None], hidden[:-2], hidden[-1:]])

    @property
    def _first(self):
        """The first block's input: the embeddings, RWKV's normed."""
        if self.model_type != "rwkv":
            return self.tensors["backbone.embeddings.weight"][self.ids]
        x = self.tensors["rwkv.embeddings.weight"][self.ids]
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + self.raw["layer_norm_epsilon"])
        return x * self.tensors["rwkv.blocks.0.pre_ln.weight"] + self.tensors["rwkv.blocks.0.pre_ln.bias"]

    @cached_property
    def blocks(self):
        """What `Blocks` sees of it: the input of each block, of several residual streams where it has them, the head's.

        A file without the head's input lets that of ours pass. An encoder's blocks come first.
        """
        if self.model_type == "hrm_text":
            return self._runs()
        if self.source is not None:
            return [*self.npz["source_hidden"][:-1], *self.npz["hidden"]]
        if not self.has_streams:
            return list(self.hidden)
        final = [self.npz["final"]] if "final" in self.npz.files and self.npz["final"].size else []
        return [*self.npz["streams"][: self.config.n_layers], *final]

    def _runs(self):
        """HRM-Text's file has each run's output; where a stack begins, its input is the sum of both stacks' last."""
        blocks, c = list(self.hidden), self.config
        low, high = None, self.tensors["model.embed_tokens.weight"][self.ids] * c.embedding_scale
        for i in range(c.n_stack_layers, c.n_layers, c.n_stack_layers):
            out = blocks[i] / np.sqrt((blocks[i] ** 2).mean(-1, keepdims=True) + c.norm_eps)
            is_high = i // c.n_stack_layers % (c.low_cycles + 1) == 0
            low, high = (low, out) if is_high else (out, high)
            blocks[i] = low + high
        return blocks

    @property
    def has_streams(self) -> bool:
        """Whether its blocks carry several residual streams."""
        return "streams" in self.npz.files

    def weights(self, watch=None) -> Arrays:
        return Arrays(self.tensors, watch=watch)


class Draft(Golden):
    """A golden checkpoint of a draft head: what it computes from token ids and hidden states of its target."""

    @cached_property
    def npz(self):
        return np.load(DRAFTS / f"{self.name}.npz")

    @cached_property
    def model(self) -> Model:
        return make(self.name, self.raw)

    @property
    def architecture(self):
        return self.model.architecture

    @property
    def config(self):
        return self.model.config

    @cached_property
    def own(self) -> dict[str, np.ndarray]:
        """The tensors of its own file."""
        return {k[2:]: self.npz[k] for k in self.npz.files if k[:2] == "w/"}

    @cached_property
    def borrowed(self) -> dict[str, np.ndarray]:
        """The target's tensors."""
        return {k[2:]: self.npz[k] for k in self.npz.files if k[:2] == "t/"}

    @cached_property
    def tensors(self) -> dict[str, np.ndarray]:
        return self.own | self.borrowed

    @cached_property
    def states(self):
        """The hidden states that it reads."""
        return self.npz["states"][0]

    @cached_property
    def rows(self):
        """The target's keys and values that an assistant reads, by the mask of their layers."""
        masks = {str(mask): mask for mask in map(seen_by, getattr(self.config, "masks", ()))}
        names = [name.split("/") for name in self.npz.files if name[:2] == "r/"]
        return {(Holds(holds), masks[mask]): self.npz[f"r/{holds}/{mask}"] for _, holds, mask in names}

    def start(self) -> Cache:
        return Cache(states=self.states, rows=self.rows)


@cache
def golden(name: str) -> Golden:
    return Golden(name)


@cache
def _goldens() -> tuple[str, ...]:
    names = (path.stem for path in sorted((TESTS / "golden").glob("*.npz")))
    return tuple(name for name in names if golden(name).model_type in architectures())


def goldens() -> list[str]:
    """Every golden checkpoint whose architecture is registered."""
    return [*_goldens()]


@cache
def draft(name: str) -> Golden:
    """One golden checkpoint of a draft head, with the tensors of the target that it reads."""
    return Draft(name)


def drafts() -> list[str]:
    """Every golden checkpoint of a draft head."""
    return sorted(path.stem for path in DRAFTS.glob("*.npz"))


@cache
def checkpoint(slug: str) -> dict | None:
    """A reference tensor list."""
    path = REFERENCES / f"{slug}.json"
    return json.loads(path.read_bytes()) if path.exists() else None


class Blocks:
    """A watch for `Arrays`: the input of every block and of the head, in order; of a head in two parts, once."""

    def __init__(self):
        self.depth, self.seen = 0, []

    def call(self, step, args, kwargs):
        is_again = bool(self.seen) and self.seen[-1] is args[0]
        if self.depth == 0 and step.role in (Role.LAYER, Role.UNEMBED) and not is_again:
            self.seen.append(args[0])
        self.depth += 1
        try:
            return step.function(*args, **kwargs)
        finally:
            self.depth -= 1
