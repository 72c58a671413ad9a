"""`@step`: turns a function into a step of the trace, with a role. On real arrays it is the function itself.

This is NumPy's own dispatch mechanism (NEP 18) applied to our functions: an argument that carries a `__tracer__`
receives the call. Everything that views and costs need to know about a step is declared where the step is defined; no
figure depends on its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, StrEnum
from functools import cached_property, wraps
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar


class Role(StrEnum):
    """The role of a step. The value is its name in pages and data: `params("gpt2", "attention")`.

    `term` is the field's term, or several separated by commas; `terms` refines it using the trace of a step.
    """

    term: str

    def __new__(cls, value: str, term: str) -> Role:
        member = str.__new__(cls, value)
        member._value_, member.term = value, term
        return member

    FORWARD = "forward", "forward pass"
    LAYER = "layer", "transformer block"
    # parts of a layer, which contain other steps
    ATTENTION = "attention", "self-attention"
    CROSS_ATTENTION = "cross_attention", "cross-attention"
    LIGHTNING_ATTENTION = "lightning_attention", "lightning attention"
    GATED_DELTA_NET = "gated_delta_net", "gated DeltaNet"
    KIMI_DELTA_ATTENTION = "kimi_delta_attention", "Kimi Delta Attention"
    MAMBA = "mamba", "Mamba"
    MAMBA2 = "mamba2", "Mamba-2"
    RECURRENT_BLOCK = "recurrent_block", "Griffin recurrent block"
    SHORT_CONVOLUTION = "short_convolution", "gated short convolution"
    TIME_MIX = "time_mix", "RWKV time mixing"
    MLSTM_LAYER = "mlstm_layer", "linear attention"
    INDEXER = "indexer", "lightning indexer"
    FEED_FORWARD = "feed_forward", "MLP"
    CHANNEL_MIX = "channel_mix", "RWKV channel mixing"
    MIXTURE_OF_EXPERTS = "mixture_of_experts", "mixture of experts"
    EXPERTS = "experts", "routed experts"
    GATED_EXPERTS = "gated_experts", "routed experts"
    ZERO_EXPERTS = "zero_experts", "zero experts"
    PACKED_EXPERTS = "packed_experts", "routed experts"
    SHARED_EXPERTS = "shared_experts", "shared experts"
    LAYER_INPUT = "layer_input", "per-layer input"
    # either end of the model
    EMBED = "embed", "token embedding"
    EMBED_SEGMENTS = "embed_segments", "segment embedding"
    EMBED_POSITIONS = "embed_positions", "learned position embedding"
    SINUSOIDS = "sinusoids", "sinusoidal position embedding"
    EMBED_LAYERS = "embed_layers", "per-layer embeddings"
    LAYER_INPUTS = "layer_inputs", "per-layer inputs"
    LAST_ROW = "last_row", "last hidden state"
    UNEMBED = "unembed", "unembedding, LM head, logits"
    CORRECTION = "correction", "LM head"
    TASK_HEAD = "task_head", "task head"
    # products with weights
    LINEAR = "linear", "linear layer"
    SHIFT = "shift", "bias"
    CONV1D = "conv1d", "linear layer"
    EXPERT_LINEAR = "expert_linear", "routed experts"
    # norms
    LAYER_NORM = "layer_norm", "LayerNorm"
    RMS_NORM = "rms_norm", "RMSNorm"
    HEAD_NORMS = "head_norms", "QK-norm"
    GATED_RMS_NORM = "gated_rms_norm", "gated RMSNorm"
    L2_NORM = "l2_norm", "L2 normalization"
    UNIT_NORM = "unit_norm", "RMSNorm"
    SELF_GATED_NORM = "self_gated_norm", "gated RMSNorm"
    # activation functions
    GELU = "gelu", "activation function, GELU"
    GELU_TANH = "gelu_tanh", "activation function, GELU"
    SILU = "silu", "activation function, SiLU"
    RELU = "relu", "activation function, ReLU"
    RELU_SQUARED = "relu_squared", "activation function, squared ReLU"
    XIELU = "xielu", "activation function, xIELU"
    CLIP = "clip", "clamp"
    CLIPPED_SWIGLU = "clipped_swiglu", "activation function, SwiGLU"
    GAUSSIAN_TOP_K = "gaussian_top_k", "activation sparsity"
    SIGMOID = "sigmoid", "sigmoid"
    SOFTPLUS = "softplus", "softplus"
    SOFT_CAP = "soft_cap", "soft-capping"
    # attention
    ROPE_TABLE = "rope_table", "RoPE"
    ROPE = "rope", "RoPE"
    ROPE_PAIRS = "rope_pairs", "RoPE"
    REPEAT_KV = "repeat_kv", "grouped-query attention"
    TEMPERATURE = "temperature", "attention temperature"
    SCORES = "scores", "scaled dot product, attention scores"
    RELATIVE_LOGITS = "relative_logits", "relative position bias"
    RELATIVE_BIAS = "relative_bias", "relative position bias"
    CAUSAL_MASK = "causal_mask", "causal mask"
    WINDOW_MASK = "window_mask", "sliding window"
    SOFTMAX = "softmax", "softmax"
    SOFTMAX_WITH_SINK = "softmax_with_sink", "softmax, attention sink"
    DYNAMIC_MASK = "dynamic_mask", "dynamic mask"
    DIFFERENTIAL_LAMBDA = "differential_lambda", "differential attention"
    WEIGHTED_SUM = "weighted_sum", "weighted sum"
    # latent attention and its indexer
    LATENT_QUERIES = "latent_queries", "absorbed up-projection"
    LATENT_SCORES = "latent_scores", "scaled dot product, attention scores"
    LATENT_WEIGHTED_SUM = "latent_weighted_sum", "weighted sum"
    LATENT_VALUES = "latent_values", "absorbed up-projection"
    GATHER_ROWS = "gather_rows", "gather"
    INDEX_SCORES = "index_scores", "lightning indexer"
    # caches of fewer entries
    COMPRESSOR = "compressor", "token compression"
    PATCH_ENDS = "patch_ends", "patching"
    UNFINISHED_PATCH = "unfinished_patch", "patching"
    PATCH_POOL = "patch_pool", "max pooling"
    GROUPED_LINEAR = "grouped_linear", "grouped output projection"
    # residual streams
    ATTENTION_RESIDUALS = "attention_residuals", "attention residuals"
    EXPAND_STREAMS = "expand_streams", "hyper-connections"
    STREAM_SHARES = "stream_shares", "hyper-connections"
    NGRAMS = "ngrams", "n-gram embedding"
    NGRAM_EMBEDDING = "ngram_embedding", "n-gram embedding"
    NGRAM_HASH = "ngram_hash", "hash"
    GATED_SUM = "gated_sum", "gated residual connection"
    ALTUP_STREAMS = "altup_streams", "AltUp"
    ALTUP_PREDICT = "altup_predict", "AltUp"
    ALTUP_CORRECT = "altup_correct", "AltUp"
    ALTUP_JOIN = "altup_join", "AltUp"
    LAUREL = "laurel", "LAuReL"
    SINKHORN = "sinkhorn", "Sinkhorn-Knopp"
    READ_STREAMS = "read_streams", "hyper-connections"
    WRITE_STREAMS = "write_streams", "hyper-connections"
    REDUCE_STREAMS = "reduce_streams", "hyper-connections"
    # routing
    HASHED_EXPERTS = "hashed_experts", "hash routing"
    SIGMOID_SCORES = "sigmoid_scores", "router, sigmoid"
    EXPERT_GROUPS = "expert_groups", "group-limited routing"
    TOP_K = "top_k", "top-k selection"
    ROUTING_WEIGHTS = "routing_weights", "routing weights"
    SPARSE_MIXER = "sparse_mixer", "router, routing weights"
    COMBINE = "combine", "weighted sum"
    # recurrences
    STATE_UPDATE = "state_update", "state update"
    CAUSAL_CONV = "causal_conv", "causal convolution"
    CONV_STEM = "conv_stem", "convolution"
    CONVOLVE = "convolve", "convolution"
    TOKEN_SHIFT = "token_shift", "token shift"
    SELECTIVE_SCAN = "selective_scan", "selective scan"
    RG_LRU = "rg_lru", "RG-LRU"
    DECAYING_ATTENTION = "decaying_attention", "linear attention"
    GATED_DELTA_RULE = "gated_delta_rule", "gated delta rule"
    WKV = "wkv", "WKV"
    WKV7 = "wkv7", "gated delta rule"
    MLSTM = "mlstm", "linear attention"


NORMS = frozenset({Role.LAYER_NORM, Role.RMS_NORM})  # of a whole vector, with weights
WEIGHTLESS_NORMS = frozenset({Role.L2_NORM, Role.UNIT_NORM})
WHOLE_NORMS = NORMS | WEIGHTLESS_NORMS  # of a whole vector
EVERY_NORM = WHOLE_NORMS | {Role.HEAD_NORMS, Role.GATED_RMS_NORM}
ACTIVATIONS = frozenset({Role.GELU, Role.GELU_TANH, Role.SILU, Role.RELU, Role.RELU_SQUARED, Role.XIELU})
ROPES = frozenset({Role.ROPE, Role.ROPE_PAIRS})
FEED_FORWARDS = frozenset({Role.FEED_FORWARD, Role.CHANNEL_MIX, Role.MIXTURE_OF_EXPERTS})


class Holds(StrEnum):
    """The content of an entry of the cache in each layer; the value is its name in data."""

    KEYS = "k"
    VALUES = "v"
    SOURCE_KEYS = "source k"
    SOURCE_VALUES = "source v"
    LATENT = "latent"
    ROPE_KEY = "k_rope"
    INDEX_KEYS = "index"
    KEYS_AND_VALUES = "kv"
    LAYER_INPUT = "layer input"
    COMPRESSED = "compressed"
    PATCH_KEYS = "patch k"
    PATCH_VALUES = "patch v"
    WAITING = "unfinished window"
    WINDOW_BEFORE = "window before"
    INDEX_WAITING = "index, unfinished window"
    INDEX_WINDOW_BEFORE = "index, window before"
    CONVOLUTION = "convolution"
    TOKEN_IDS = "token ids"
    STATE = "state"
    ATTENTION_SHIFT = "attention's last token"
    FEED_FORWARD_SHIFT = "feed-forward's last token"
    WEIGHTED_SUM = "weighted sum"
    SUM_OF_WEIGHTS = "sum of weights"
    LARGEST_WEIGHT = "largest weight"


# Rows that wait for an entry for several tokens: at most two windows.
BUFFERS = frozenset({Holds.WAITING, Holds.WINDOW_BEFORE, Holds.INDEX_WAITING, Holds.INDEX_WINDOW_BEFORE})

# Entries for an encoder's input: filled in the first step, read in all later ones.
OF_SOURCE = frozenset({Holds.SOURCE_KEYS, Holds.SOURCE_VALUES})


class Keeps(Enum):
    """The activations of a call that training keeps for the backward pass."""

    INPUTS = "inputs"
    OUTPUT = "output"
    NOTHING = "nothing"


class Access(Enum):
    """How a call treats numbers: it computes new ones, only moves them, or is a view of its first input."""

    COMPUTES = "computes"
    MOVES = "moves"
    LOOKS = "looks"


class Step:
    """A function that the trace records, and its facts; `name` is for messages."""

    def __init__(
        self,
        function: Callable[..., Any],
        role: Role,
        keeps: Keeps = Keeps.INPUTS,
        access: Access = Access.COMPUTES,
        rule: Callable[..., Ruling] | None = None,
    ):
        self.function, self.role, self.keeps, self.access, self.rule = function, role, keeps, access, rule
        self.name = function.__name__

    @cached_property
    def doc(self) -> str:
        """The first line of its docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]


# A step's rule for a call: the output's shape, and the multiply-adds.
Ruling: TypeAlias = tuple[tuple[int, ...], int]


class Reached(Exception):
    """Raised at a replaced step to end the forward pass."""

    def __init__(self, hidden: Any):
        self.hidden = hidden
        super().__init__("reached")


def stop(hidden: Any, *rest: Any, **options: Any) -> Any:
    """Replace a step: ends the forward pass with the step's input."""
    raise Reached(hidden)


# The replacement for the steps of a role, transparent to the forward pass.
Instead: TypeAlias = Mapping[Role, Callable[..., Any]]


class Tracer(Protocol):
    """Observes the calls of steps, and runs them."""

    def call(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...

    def repeat(self, body: Callable[..., tuple[Any, Any]], state: Any, xs: tuple[Any, ...]) -> tuple[Any, Any]: ...


class Replacing:
    """Replaces the steps of a role; all others run as they are, or through `watch`."""

    def __init__(self, instead: Instead, watch: Tracer | None = None):
        self.instead, self.watch = instead, watch

    def call(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a step, or its replacement."""
        if step.role in self.instead:
            return self.instead[step.role](*args, **kwargs)
        return step.function(*args, **kwargs) if self.watch is None else self.watch.call(step, args, kwargs)

    def repeat(self, body: Callable[..., tuple[Any, Any]], state: Any, xs: tuple[Any, ...]) -> tuple[Any, Any]:
        """Weights are not used for recurrences."""
        raise NotImplementedError("weights carry no recurrence")


P = ParamSpec("P")
R = TypeVar("R")


def step(
    role: Role,
    *,
    keeps: Keeps = Keeps.INPUTS,
    access: Access = Access.COMPUTES,
    rule: Callable[..., Ruling] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Record each call of a function as one step of this role, with everything it calls inside as its children.

    `keeps` are the activations that training keeps from it. With `rule`, the function is one indivisible operation with
    data-dependent internals (a loop over the chosen experts): on shapes it is not run, and `rule(*args, **kwargs)`
    returns (output shape, multiply-adds) instead. Raises TypeError for an unknown role.
    """
    if type(role) is not Role:
        raise TypeError(f"{role!r} is no Role of a step: write one of macros/engine/steps.py, or add one there")

    def make(function: Callable[P, R]) -> Callable[P, R]:
        this = Step(function, role, keeps, access, rule)

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            tracer = tracer_of(args)
            return function(*args, **kwargs) if tracer is None else tracer.call(this, args, kwargs)

        setattr(wrapper, "step", this)  # noqa: B010 (a function has no such attribute by type)
        return wrapper

    return make


def tracer_of(args: Iterable[object]) -> Tracer | None:
    """The tracer that the first of `args` carries, or None."""
    for a in args:
        tracer: Tracer | None = getattr(a, "__tracer__", None)
        if tracer is not None:
            return tracer
    return None
