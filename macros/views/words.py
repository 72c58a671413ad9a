"""Plain words for steps and weights: what an operation does, its equation, why it is there; and the field's terms.

The term of a step is said by the engine (`terms`), that of a weight or a NumPy call here, beside its plain words.

`STEPS` is keyed by a step's role (or by the role around it and its own), `WEIGHTS` by the last parts of a tensor's
checkpoint name without `.weight` or `.bias` (the longest match wins: `mlp.c_proj` before `c_proj`). A family with names
of its own adds rows, nothing else. What has no row falls back to the step's docstring and its name; a test lists those,
so that none of the presets needs it. What stands in ⟨ ⟩ is multiplied by a number of the model's own, which the
walkthrough puts in.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ..engine import terms
from ..engine.array import Node
from ..engine.steps import Role


class Words(NamedTuple):
    """What happens (title), its equation as LaTeX, why, the name of what comes out (`q`), and the field's term."""

    title: str
    equation: str = ""
    why: str = ""
    gives: str = ""
    term: str = ""

    @property
    def terms(self) -> tuple[str, ...]:
        """The field's terms, those left out that the title says already."""
        terms = dict.fromkeys(term for term in self.term.split(", ") if term)
        return tuple(term for term in terms if term.lower() != self.title.lower())


_NORM_WHY = "Sums of many layers grow; a common size before each part keeps the numbers in range and training stable."
_EXPERT = "Only the chosen experts compute: the others’ weights wait in memory for other tokens."
_GATE_WHY = "The gate decides, number by number, how much of the other half passes."
_FIXED_STATE = "Information moves along the text through a state of fixed size, one token after the other."
_BOUNDED = "Keeps the scores from growing without bound."
_BETWEEN = "Without an activation function between them, two matrices would be one."


def _norm(title: str) -> Words:
    """A norm, which has the equation and the term of its step."""
    return Words(title, why=_NORM_WHY)


def _in_experts(of_one: Words, equation: str) -> Words:
    """What each of a token's experts does."""
    return Words(f"{of_one.title}, in each chosen expert", equation, _EXPERT, of_one.gives, of_one.term)


def _in_shared(of_one: Words) -> Words:
    """What the expert does that every token passes through."""
    said = "The shared expert computes for every token."
    return of_one._replace(title=f"{of_one.title}, in the shared expert", why=said)


# What a step does, by its role. The parts that hold other steps come first.
STEPS: dict[Role | tuple[Role | None, Role | None] | None, Words] = {
    Role.FORWARD: Words("From token ids to a score for every token of the vocabulary"),
    Role.LAYER: Words("Layer"),
    Role.ATTENTION: Words(
        "Attention", why="Here tokens see each other: each gathers what it needs from those that it sees."
    ),
    Role.CROSS_ATTENTION: Words(
        "Attention to what was read",
        why="What is written asks, what the encoder read answers: queries of the one, keys and values of the other.",
    ),
    Role.LISTEN: Words(
        "Listen", why="Each vector stands for two moments of sound, and for those beside them; there are half as many."
    ),
    Role.FEED_FORWARD: Words("Feed-forward", why="Each token is worked on by itself, in a wider space."),
    Role.LIGHTNING_ATTENTION: Words(
        "Lightning attention",
        why="Linear attention whose memory fades, in each head at its own rate: memory does not grow with the text.",
    ),
    Role.MIXTURE_OF_EXPERTS: Words(
        "Mixture of experts",
        why="Many feed-forward parts of which each token uses a few: more weights at little more work.",
    ),
    Role.EXPERTS: Words("Experts", why=_EXPERT),
    **dict.fromkeys((Role.MAMBA, Role.MAMBA2), Words("State-space mixer", why=_FIXED_STATE)),
    Role.TIME_MIX: Words(
        "Time mixing", why="A recurrence in the place of attention: the past is held in a state of fixed size."
    ),
    Role.CHANNEL_MIX: Words("Channel mixing", why="The feed-forward part of this family."),
    Role.GATED_DELTA_NET: Words(
        "Gated delta rule",
        why="Linear attention whose state forgets and corrects itself: its size does not grow with the text.",
    ),
    Role.KIMI_DELTA_ATTENTION: Words(
        "Delta rule that forgets by channel",
        why="Linear attention whose state corrects itself; each channel of a key forgets at its own rate.",
    ),
    Role.SHORT_CONVOLUTION: Words(
        "Gated short convolution",
        why="Each token sees only the few before it: what is kept does not grow with the text.",
    ),
    Role.RECURRENT_BLOCK: Words("Gated recurrence", why=_FIXED_STATE),
    # at either end
    Role.EMBED: Words(
        "Look up each token’s vector",
        r"x_t = E_{\mathrm{id}_t}",
        "A token id is only a number; its row of the table is where its meaning starts.",
    ),
    Role.EMBED_POSITIONS: Words(
        "Look up each position’s vector",
        r"p_t = P_t",
        "Attention by itself does not see order; here it is learned, one vector per place.",
    ),
    Role.SINUSOIDS: Words(
        "Compute each position’s vector",
        r"p_t = [\sin(t \omega_i), \cos(t \omega_i)]",
        "Attention by itself does not see order; sines of many lengths tell places apart, and nothing is learned.",
    ),
    Role.EMBED_LAYERS: Words(
        "Look up a vector for each layer",
        r"e_{t,l} = P_{\mathrm{id}_t, l}",
        "One row of the table holds a short vector for every layer: much to store, and nothing to multiply.",
    ),
    Role.LAYER_INPUTS: Words(
        "What each layer is to add", why="The token’s own part of what each layer adds, made once before the first."
    ),
    Role.LAYER_INPUT: Words(
        "Add the token’s own vector", why="A gate chooses what of the layer’s short vector joins the stream."
    ),
    Role.LAST_ROW: Words("Keep the last token’s vector", r"x_T", "Only it predicts the next token."),
    Role.UNEMBED: Words(
        "Score every token of the vocabulary",
        r"\mathrm{logits} = x_T \, W_U^{\top}",
        "The last token’s vector is compared with one row for each possible next token; softmax turns the scores into "
        "probabilities.",
    ),
    Role.SOFT_CAP: Words("Squeeze large scores", r"c \tanh(x / c)", "Keeps every score between −c and c."),
    # norms and activations
    Role.LAYER_NORM: Words(
        "Normalise", r"\frac{x - \mathrm{mean}(x)}{\sqrt{\mathrm{var}(x) + \epsilon}} \odot g + b", _NORM_WHY
    ),
    Role.RMS_NORM: Words("Normalise", r"\frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}} \odot g", _NORM_WHY),
    Role.GATED_RMS_NORM: Words(
        "Normalise, gated",
        r"\frac{x \odot \mathrm{silu}(z)}{\sqrt{\mathrm{mean}(\cdot^2) + \epsilon}} \odot g",
        _NORM_WHY,
    ),
    Role.L2_NORM: Words(
        "Bring each vector to length 1", r"\frac{x}{\lVert x \rVert}", "Only the direction counts from here on."
    ),
    Role.UNIT_NORM: Words(
        "Normalise, without weights",
        r"\frac{x}{\sqrt{\mathrm{mean}(x^2) + \epsilon}}",
        _BOUNDED,
    ),
    Role.SELF_GATED_NORM: Words(
        "Normalise, and gate by itself",
        r"y \odot \sigma(W_2 \, \mathrm{silu}(W_1 y))",
        "The normed vector decides, number by number, how much of itself passes.",
    ),
    Role.CLIP: Words("Cut off what is too large", r"\min(x, c)", "No number goes beyond the limit."),
    Role.TEMPERATURE: Words(
        "Sharpen the queries far into a text", r"q_t \cdot s_t", "Many keys would share the softmax out too thinly."
    ),
    **dict.fromkeys((Role.GELU, Role.GELU_TANH), Words("Weaken what is negative", r"x \cdot \Phi(x)", _BETWEEN)),
    Role.SILU: Words("Weaken what is negative", r"x \cdot \sigma(x)", _BETWEEN),
    Role.RELU: Words("Weaken what is negative", r"\max(x, 0)", _BETWEEN),
    Role.RELU_SQUARED: Words("Weaken what is negative", r"\max(x, 0)^2", _BETWEEN),
    Role.XIELU: Words(
        "Reshape each number",
        r"\mathrm{xielu}(x)",
        f"{_BETWEEN.rstrip('.')}; two trained numbers shape this one.",
    ),
    Role.CLIPPED_SWIGLU: Words(
        "Clip both halves, and gate",
        r"\tilde{g} \, \sigma(\alpha \tilde{g}) \, (\tilde{u} + 1)",
        "No number of either half goes beyond the limit. " + _GATE_WHY,
    ),
    Role.SPARSIFY: Words(
        "Cut off all but the largest",
        r"\max(g - \mu - \sigma \, \Phi^{-1}(p), 0)",
        "Most numbers become 0: what is left is what stands out of the vector.",
    ),
    Role.SIGMOID: Words("Open the gate between 0 and 1", r"\sigma(g)", "0 lets nothing pass, 1 everything."),
    Role.SOFTPLUS: Words("Make positive", r"\ln(1 + e^x)", "A step size cannot be negative."),
    # attention
    Role.ROPE_TABLE: Words(
        "Work out each position’s angles",
        r"\theta_{t,w} = t \cdot f_w",
        "Cosine and sine of each position’s angles, for the layers to share.",
    ),
    Role.ROPE: Words(
        "Rotate by position",
        r"\mathrm{rope}(x, t)",
        "Each pair of numbers turns with the position, so that a query and a key compare by their distance.",
    ),
    Role.ROPE_PAIRS: Words(
        "Rotate by position",
        r"\mathrm{rope}(x, t)",
        "Each pair of neighbouring numbers turns with the position, so that a query and a key compare by their "
        "distance.",
    ),
    Role.REPEAT_KV: Words(
        "Let query heads share key/value heads",
        r"x_{n} = x_{\lfloor n K / N \rfloor}",
        "Fewer key/value heads make the cache smaller; a copy in name only, a good kernel never makes it.",
    ),
    Role.SCORES: Words(
        "Compare every query with every key",
        r"⟨q \, k^{\top}⟩",
        "A high score: this earlier token has what the new one looks for.",
    ),
    Role.PROFILE_BIAS: Words(
        "Rate the distance",
        r"b_{t,s} = r_t \cdot P_{t - s}",
        "Each head mixes trained profiles of distance; the vectors themselves are not told where they stand.",
    ),
    Role.RELATIVE_BIAS: Words(
        "Look up what distances add",
        r"b_{t,s} = B_{\text{bucket}(s - t)}",
        "A number of each head for each distance, far ones together; the vectors are not told where they stand.",
    ),
    Role.CONVOLVE: Words(
        "Mix moments that are beside each other",
        r"y_t = \sum_i W_i \, x_{p t + i}",
        "A word of sound is longer than a moment. Where half as many moments come out, p is 2, else 1.",
    ),
    Role.CAUSAL_MASK: Words(
        "Hide the future", r"s_{t,s} = -\infty \text{ where } s > t", "A token must not see what it is to predict."
    ),
    Role.WINDOW_MASK: Words(
        "Hide what is far away",
        r"s_{t,s} = -\infty \text{ where } |t - s| > W/2",
        "A layer with a window reads near words, before and behind; the others read all.",
    ),
    Role.SOFTMAX: Words(
        "Turn scores into shares", r"\mathrm{softmax}(s)", "Shares that add up to 1 for each new token."
    ),
    Role.SOFTMAX_WITH_SINK: Words(
        "Turn scores into shares, with a sink",
        r"\mathrm{softmax}([s, s_0])",
        "A trained extra score takes the share that goes to no token.",
    ),
    Role.MIX: Words(
        "Average the values by the shares",
        r"\mathrm{softmax}(s) \, v",
        "What the earlier tokens have to say, weighted by how well they fit.",
    ),
    (Role.ATTENTION, Role.SOFTPLUS): Words(
        "Open the gate", r"\ln(1 + e^x)", "0 lets nothing pass; there is no upper end."
    ),
    # mixture of experts
    Role.TOP_K: Words(
        "Choose the experts", r"\mathrm{top}_k(g)", "Each token goes to the few experts with the highest scores."
    ),
    Role.HASHED_EXPERTS: Words(
        "Look the experts up by token id",
        r"e_t = H_{\mathrm{id}_t}",
        "A fixed table: in the first layers a vector says little more than which token it is.",
    ),
    Role.ZERO_EXPERTS: Words(
        "Experts, some of which do nothing",
        r"y_e = x",
        "A token that needs little work keeps its vector, and its experts’ weights rest.",
    ),
    Role.ROUTING_WEIGHTS: Words(
        "Weigh the chosen experts",
        r"w_e = \gamma \, \frac{g_e}{\sum g}",
        "How much each of them counts in the answer; γ is a number of the config, or 1.",
    ),
    Role.SPARSE_MIXER: Words(
        "Choose two experts, one after the other",
        "",
        "Each is weighed against those whose score is near its own, and not against all.",
    ),
    Role.SIGMOID_SCORES: Words(
        "Score each expert by itself", r"\sigma(g)", "Between 0 and 1, without regard to the others."
    ),
    Role.EXPERT_GROUPS: Words(
        "Leave only the best groups of experts", "", "A token’s experts then sit on few machines."
    ),
    **dict.fromkeys((Role.GATED_EXPERTS, Role.PACKED_EXPERTS), Words("Chosen experts", why=_EXPERT)),
    Role.INDEXER: Words(
        "Pick the tokens to look at", why="A small, cheap attention chooses which earlier tokens the real one looks at."
    ),
    (Role.INDEXER, Role.TOP_K): Words(
        "Keep the tokens that matter most", r"\mathrm{top}_k(s)", "The real attention looks at no others."
    ),
    Role.INDEX_SCORES: Words(
        "Rate every earlier token",
        r"\sum_h w_h \, \mathrm{relu}\left(⟨q_h k^{\top}⟩\right)",
        "With few and small heads: cheaper than attention itself.",
    ),
    Role.PICK_ROWS: Words("Fetch what was picked", r"k_{i}", "The rest of the cache is not read."),
    # caches of fewer entries
    Role.COMPRESSOR: Words(
        "Make one entry of several tokens",
        r"\sum_j \mathrm{softmax}_j(g_j + b_j) \odot v_j",
        "A cache of fewer entries: each is an average over a window of tokens, number by number by gates of its own.",
    ),
    Role.GROUPED_LINEAR: Words(
        "Narrow each group of heads",
        r"y_g \, W_g^{\top}",
        "A matrix for each group is far smaller than one for all heads.",
    ),
    # residual streams
    Role.DEPTH_AVERAGE: Words(
        "Attend to the blocks of layers before",
        r"\sum_m \mathrm{softmax}_m(q \cdot \tilde{x}_m) \, \tilde{x}_m",
        "A trained query chooses from which depth a part reads, where others read the sum of all.",
    ),
    Role.SPREAD_STREAMS: Words(
        "Begin several streams", r"x_m = x", "Each starts with the token’s vector; the layers tell them apart."
    ),
    Role.STREAM_SHARES: Words(
        "Work out how to read and write the streams",
        r"[r, w, M] = f(x_1, \ldots, x_m)",
        "Each token decides from all of its streams what the next part reads, and where its answer goes.",
    ),
    Role.GATED_SUM: Words(
        "Divide between the stream and the answer",
        r"\sqrt{1 - \beta^2} \, x + \beta \, y",
        "A trained gate says, number by number, how much of the old is kept; the sum keeps its size.",
    ),
    Role.NGRAMS: Words(
        "Say what the last few tokens are together",
        why="A large table answers at once what layers would have to work out; its rows are read, hardly anything is "
        "computed.",
    ),
    Role.NGRAM_TABLE: Words(
        "Look n-grams up", r"E_{h(\mathrm{id}_{t-n+1}, \ldots, \mathrm{id}_t)}", "One row for each head of the table."
    ),
    Role.NGRAM_PLACES: Words(
        "Hash the last ids",
        r"\bigoplus_j a_j \, \mathrm{id}_{t-j} \bmod p",
        "There are far more n-grams than rows: several share one, in each head others.",
    ),
    Role.ALTUP_STREAMS: Words(
        "Begin several streams", why="The first is the token’s vector, the others are projections as long as it is."
    ),
    Role.ALTUP_PREDICT: Words(
        "Predict every stream",
        r"x'_n = x_n + \sum_m p_{nm} \, x_m",
        "A layer computes one stream; what it will do to the others is a mixture that each token chooses.",
    ),
    Role.ALTUP_CORRECT: Words(
        "Correct every stream",
        r"x_n = x'_n + c_n \, (y - x'_a)",
        "What the layer made otherwise than predicted goes into each stream, by its share.",
    ),
    Role.ALTUP_JOIN: Words(
        "Bring the streams together",
        why="The head scores one vector: the mean of all, projected to the first’s length.",
    ),
    Role.LAUREL: Words(
        "A narrow way around attention", why="Two thin matrices beside the residual connection, learned with it."
    ),
    Role.SINKHORN: Words(
        "Balance the mixture",
        r"\sum_i M_{ij} = \sum_j M_{ij} = 1",
        "Rows and columns that add up to 1 let no stream grow with the depth.",
    ),
    Role.READ_STREAMS: Words("Read the streams", r"\sum_m r_m \, x_m", "A part works on one vector, a mixture of all."),
    Role.WRITE_STREAMS: Words(
        "Write into the streams",
        r"x'_k = \sum_m M_{mk} \, x_m + w_k \, y",
        "The streams are mixed, and each takes its share of the answer: this stands where others add a residual.",
    ),
    Role.HEAD_STREAMS: Words(
        "Bring the streams together", r"\sum_m r_m \, x_m", "The head scores one vector, a mixture of all streams."
    ),
    Role.LATENT_QUERIES: Words(
        "Rewrite each query, so that it fits the latents",
        r"q' = q \, W_{UK}",
        "The map to the keys is applied to the query, once, and not to every cached latent.",
    ),
    Role.LATENT_SCORES: Words(
        "Compare every query with every latent",
        r"⟨q' c^{\top} + q_R k_R^{\top}⟩",
        "By content and by position; the keys themselves are never made.",
    ),
    Role.MIX_LATENTS: Words(
        "Average the latents by the shares",
        r"\mathrm{softmax}(s) \, c",
        "One average for each head, still in compressed form.",
    ),
    Role.LATENT_VALUES: Words(
        "Read each head’s value out of its average",
        r"y = c \, W_{UV}^{\top}",
        "The map to the values, applied once after averaging, and not to every cached latent.",
    ),
    Role.SHARED_EXPERTS: Words("Shared experts", why="They compute for every token, beside the chosen ones."),
    Role.COMBINE: Words("Add up the experts’ answers", r"\sum_e g_e \, y_e", "Weighted by the router’s scores."),
    Role.EXPERT_LINEAR: Words("Multiply by the chosen experts’ weights", r"x \, W_e^{\top}", _EXPERT),
    Role.LINEAR: Words("Multiply by a weight matrix", r"x \, W^{\top}"),
    Role.CONV1D: Words("Multiply by a weight matrix", r"x \, W + b"),
    # state-space and recurrent layers
    Role.SELECTIVE_SCAN: Words(
        "Carry a state from token to token",
        r"h_t = \bar{A}_t h_{t-1} + \bar{B}_t x_t",
        "The state holds what came before: its size does not grow with the text.",
    ),
    Role.RG_LRU: Words(
        "Carry a number for each channel from token to token",
        r"h_t = a_t \odot h_{t-1} + \sqrt{1 - a_t^2} \odot x_t",
        "What is kept and what comes in balance each other, so that the state keeps its size.",
    ),
    Role.DECAYING_ATTENTION: Words(
        "Carry a fading memory from token to token",
        r"S_t = a_t S_{t-1} + k_t v_t^{\top}, \quad y_t = q_t S_t",
        "Attention without softmax: the past is one matrix for each head, whose size does not grow with the text.",
    ),
    Role.GATED_DELTA_RULE: Words(
        "Carry a memory that corrects itself",
        r"S_t = a_t S_{t-1} + \beta_t k_t (v_t - a_t k_t^{\top} S_{t-1})^{\top}",
        "What the memory already says to a key is taken out before the new value is written.",
    ),
    Role.WKV: Words(
        "Average all values so far, fading",
        r"\frac{\sum_s e^{k_s - (t - s) w} v_s}{\sum_s e^{k_s - (t - s) w}}",
        "Two running sums stand for the whole past: their size does not grow with the text.",
    ),
    Role.CONVOLUTION: Words(
        "Mix each channel over the last few tokens",
        r"\sum_j w_j \, x_{t-j}",
        "A short convolution sees only the tokens just before.",
    ),
    Role.TOKEN_SHIFT: Words("Shift by one token", r"x_{t-1}", "Each token also sees the one before it."),
}

_Q = Words("Make the queries", r"q = x \, W_q^{\top}", "What each token looks for.", "q", term="query projection")
_K = Words(
    "Make the keys", r"k = x \, W_k^{\top}", "What each token offers to be found by.", "k", term="key projection"
)
_V = Words(
    "Make the values",
    r"v = x \, W_v^{\top}",
    "What each token hands over when it is found.",
    "v",
    term="value projection",
)
_QKV = Words(
    "Make queries, keys and values",
    r"[q, k, v] = x \, W_{qkv}^{\top}",
    "One matrix for all three: what each token looks for, what it is found by, what it hands over.",
    "q, k, v",
    term="fused QKV projection",
)
_O = Words(
    "Mix the heads’ answers",
    r"y \, W_o^{\top}",
    "The heads worked apart; this puts their findings together and back to the model’s width.",
    term="output projection",
)
_UP = Words(
    "Widen",
    r"u = x \, W_{up}^{\top}",
    "More room to work in: each of the new numbers is a question put to the vector.",
    "up",
    term="up projection",
)
_GATE = Words("Make the gate", r"g = x \, W_{gate}^{\top}", _GATE_WHY, "gate", term="gate projection")
_GATE_UP = Words(
    "Make gate and widened vector",
    r"[g, u] = x \, W_{gate,up}^{\top}",
    _GATE_WHY,
    "gate, up",
    term="gate projection, up projection",
)
_RECEPTANCE = Words("Make the gate", r"r = \sigma(x \, W_r^{\top})", _GATE_WHY, "r", term="receptance")
_DOWN = Words(
    "Narrow back",
    r"y \, W_{down}^{\top}",
    "The answers to those questions, written back at the model’s width.",
    term="down projection",
)
_ROUTER = Words(
    "Score the experts",
    r"g = x \, W_r^{\top}",
    "One score per expert decides where each token goes.",
    "expert scores",
    term="router",
)
_ROUTER_BIAS = Words(
    "Balance the experts’ choice",
    r"g + b",
    "Set during training so that no expert is overrun; used for the choice only, not for the weights.",
    term="load-balancing bias",
)
_HEAD = STEPS[Role.UNEMBED]._replace(term=Role.UNEMBED.term)
_BEFORE_ATTENTION = _norm("Normalise before attention")
_BEFORE_FF = _norm("Normalise before the feed-forward part")
_AFTER_ATTENTION = _norm("Normalise what attention found")
_AFTER_FF = _norm("Normalise what the feed-forward part found")
_OF_EMBEDDINGS = _norm("Normalise the embeddings")
_OF_MIXER = _norm("Normalise the mixer’s result, gated")
_LAST_NORM = Words("Normalise the last time", "", "The head expects vectors of a common size.")
_OF_READING = Words(
    "Normalise what was read", "", "All layers that write look at it, and expect vectors of a common size."
)
_Q_NORM = Words("Normalise the queries", "", _BOUNDED, "q", term="QK-norm")
_K_NORM = Words("Normalise the keys", "", _BOUNDED, "k", term="QK-norm")
_CONV = STEPS[Role.CONVOLUTION]._replace(term=Role.CONVOLUTION.term)
_TABLE = STEPS[Role.EMBED]._replace(term=Role.EMBED.term)
_POSITIONS = STEPS[Role.EMBED_POSITIONS]._replace(term=Role.EMBED_POSITIONS.term)
_IN = Words(
    "Widen, and make the gate",
    r"[x, z] = x \, W_{in}^{\top}",
    "One half goes through the recurrence, the other gates its result.",
    term="input projection",
)
_OUT = Words(
    "Back to the model’s width",
    r"y \, W_{out}^{\top}",
    "The result joins the residual stream.",
    term="output projection",
)
_DECAY = Words(
    "How fast each channel forgets",
    r"A = -e^{A_{\log}}",
    "Trained as a logarithm, so that it always decays.",
    term="state matrix",
)
_DT_BIAS = Words(
    "Shift the step size", r"\Delta + b", "Each channel starts with a time scale of its own.", term="step size"
)
_ADAPTER_IN = Words(
    "Narrow, for the adapter",
    r"x \, A^{\top}",
    "A shared matrix is adapted by two thin ones wherever it is used.",
    term="LoRA, adapter",
)
_ADAPTER_OUT = _ADAPTER_IN._replace(title="Widen back, for the adapter", equation=r"a \, B^{\top}")
_STRENGTH = Words(
    "Make the strength of writing",
    r"b = x \, W_b^{\top}",
    "How much of the new token is written into the state.",
    term="write strength",
)
_DECAY_OF_TOKEN = Words("Make the decay", r"a = x \, W_a^{\top}", "How much of the old state is kept.", term="decay")
_ANSWER_GATE = Words("Gate the heads’ answers", r"\sigma(x \, W_g^{\top})", _GATE_WHY, "gate", term="output gate")
_NARROW_GATE = Words(
    "Narrow, for the gate",
    r"x \, W^{\top}",
    "Two thin matrices in the place of a large one.",
    term="low-rank projection",
)
_NARROW_DECAY = _NARROW_GATE._replace(title="Narrow, for the decay")
_SKIP = Words(
    "Let the input pass beside the state", r"y + D \odot x", "What the state need not carry.", term="skip connection"
)

# Words for a weight, by the last parts of its name.
WEIGHTS = {
    # ends
    "wte": _TABLE,
    "embed_tokens": _TABLE,
    "tokens_embed": _TABLE,
    "word_embeddings": _TABLE,
    "embed_in": _TABLE,
    "embeddings": _TABLE,
    "wpe": _POSITIONS,
    "positions_embed": _POSITIONS,
    "embed_positions": _POSITIONS,
    "lm_head": _HEAD,
    "embed_out": _HEAD,
    "head": _HEAD,
    "output_layer": _HEAD,
    "embed_tokens_per_layer": STEPS[Role.EMBED_LAYERS]._replace(term=Role.EMBED_LAYERS.term),
    "per_layer_model_projection": Words(
        "Project the token’s vector for each layer",
        r"x \, W^{\top}",
        "A part of each layer’s vector depends on the embedding, the rest is looked up.",
        term="per-layer projection",
    ),
    "per_layer_projection_norm": _norm("Normalise each layer’s vector"),
    "per_layer_input_gate": Words(
        "Make the gate, as wide as the layer’s vector",
        r"g = x \, W_g^{\top}",
        "The stream decides how much of the layer’s own vector passes.",
        "gate",
        term="gate projection",
    ),
    "per_layer_projection": Words(
        "Widen to the stream",
        r"y \, W^{\top}",
        "The layer’s short vector becomes as wide as the stream that it joins.",
        term="per-layer projection",
    ),
    "post_per_layer_input_norm": _norm("Normalise what is let in"),
    **dict.fromkeys(
        ("altup_projections", "altup_unembed_projections"),
        Words("Project a stream", r"x \, W^{\top}", "A matrix for each stream but the first.", term="AltUp"),
    ),
    "modality_router": Words(
        "Read a number for each stream",
        r"\tanh(x \, W^{\top})",
        "What of the vector belongs to which stream.",
        term="AltUp",
    ),
    "prediction_coefs": Words(
        "Make the mixture", r"p = r \, W^{\top}", "How each stream depends on all.", term="AltUp"
    ),
    "correction_coefs": Words(
        "Make the shares", r"c = 1 + r \, W^{\top}", "How much each stream learns.", term="AltUp"
    ),
    "router_norm": _norm("Normalise the stream that is read"),
    "correct_output_scale": Words(
        "Scale each channel", r"s \odot x", "A trained number for each channel.", term="AltUp"
    ),
    "linear_left": Words("Narrow", r"x \, W_l^{\top}", "Far fewer numbers than the stream has.", term="LAuReL"),
    "linear_right": Words("Widen again", r"y \, W_r^{\top}", "Back to the stream that it joins.", term="LAuReL"),
    "post_laurel_norm": _norm("Normalise the narrow way’s result"),
    "layer_scalar": Words(
        "Scale the stream", r"s \, x", "One number for each layer, stored and not trained.", term="layer scale"
    ),
    "embeddings.token_type_embeddings": Words(
        "Look up which of the texts a token belongs to",
        r"s_0",
        "For a pair of texts; of a single one all tokens have the first row.",
        term="segment embedding",
    ),
    "embeddings.tok_embeddings": _TABLE,
    "embeddings.position_embeddings": _POSITIONS,
    "embeddings.LayerNorm": _OF_EMBEDDINGS,
    "embeddings.norm": _OF_EMBEDDINGS,
    "transform.dense": Words(
        "Change the vector once more", r"x \, W^{\top} + b", "The scores are for this token.", term="LM head"
    ),
    "head.dense": Words(
        "Change the vector once more", r"x \, W^{\top}", "The scores are for this token.", term="LM head"
    ),
    "transform.LayerNorm": _LAST_NORM,
    "head.norm": _LAST_NORM,
    "cls.predictions.bias": Words("A score of its own for each token", r"+ b", "Trained.", term="bias"),
    "decoder.bias": Words("A score of its own for each token", r"+ b", "Trained.", term="bias"),
    "project_in": Words(
        "Widen to the layers’ width",
        r"x \, W_{in}^{\top}",
        "The embedding table is narrower than the layers.",
        term="embedding projection",
    ),
    "project_out": Words(
        "Narrow to the table’s width",
        r"x \, W_{out}^{\top}",
        "The head is the embedding table, which is narrower than the layers.",
        term="embedding projection",
    ),
    "shared": _TABLE,
    "encoder.conv1": STEPS[Role.CONVOLVE]._replace(term=Role.CONVOLVE.term),
    "encoder.conv2": Words(
        "Mix moments again, every second one",
        r"y_t = \sum_i W_i \, x_{2t + i}",
        "Half as many vectors are left.",
        term=Role.CONVOLVE.term,
    ),
    # norms
    "encoder.final_layer_norm": _OF_READING,
    "encoder.layer_norm": _OF_READING,
    "decoder.layer_norm": _LAST_NORM,
    "layernorm_embedding": _OF_EMBEDDINGS,
    "layer.0.layer_norm": _BEFORE_ATTENTION,
    "encoder.block.layer.1.layer_norm": _BEFORE_FF,
    "decoder.block.layer.1.layer_norm": _norm("Normalise before cross-attention"),
    "layer.2.layer_norm": _BEFORE_FF,
    "encoder_attn_layer_norm": _norm("Normalise around cross-attention"),
    "attention.output.LayerNorm": _AFTER_ATTENTION,
    "output.LayerNorm": _AFTER_FF,
    "attn_norm": _BEFORE_ATTENTION,
    "mlp_norm": _BEFORE_FF,
    "ln_1": _BEFORE_ATTENTION,
    "ln_2": _BEFORE_FF,
    "ln1": _BEFORE_ATTENTION,
    "ln2": _BEFORE_FF,
    "input_layernorm": _norm("Normalise before the layer’s first part"),
    "attention_layernorm": _BEFORE_ATTENTION,
    "self_attn_layer_norm": _norm("Normalise around attention"),
    "ln_attn": _BEFORE_ATTENTION,
    "post_attention_layernorm": _norm("Normalise after attention"),
    "ln_mlp": _BEFORE_FF,
    "feedforward_layernorm": _BEFORE_FF,
    "pre_feedforward_layernorm": _BEFORE_FF,
    "pre_ff_layernorm": _BEFORE_FF,
    "post_feedforward_layernorm": _AFTER_FF,
    "post_feedforward_layernorm_1": _AFTER_FF,
    "post_feedforward_layernorm_2": _norm("Normalise what the experts found"),
    "pre_feedforward_layernorm_2": _norm("Normalise before the experts"),
    "post_self_attn_layernorm": _AFTER_ATTENTION,
    "pre_mlp_layernorm": _BEFORE_FF,
    "post_mlp_layernorm": _AFTER_FF,
    "layers.final_layer_norm": _norm("Normalise around the feed-forward part"),
    "post_operator_norm": _norm("Normalise what the layer’s first part found"),
    "post_ffn_norm": _AFTER_FF,
    "operator_norm": _norm("Normalise before the layer’s first part"),
    "ffn_norm": _BEFORE_FF,
    "temporal_pre_norm": _norm("Normalise before the layer’s first part"),
    "channel_pre_norm": _BEFORE_FF,
    "embedding_norm": _LAST_NORM,
    "final_norm": _LAST_NORM,
    "pre_ln": _OF_EMBEDDINGS,
    "word_embeddings_layernorm": _OF_EMBEDDINGS,
    "ln_f": _LAST_NORM,
    "norm_f": _LAST_NORM,
    "ln_out": _LAST_NORM,
    "final_layer_norm": _LAST_NORM,
    "final_layernorm": _LAST_NORM,
    "model.norm": _LAST_NORM,
    "model.layer_norm": _LAST_NORM,
    "norm_1": _BEFORE_ATTENTION,
    "norm_2": _BEFORE_FF,
    "layers.norm": _norm("Normalise before the mixer"),
    "mixer.norm": _OF_MIXER,
    "mamba.norm": _OF_MIXER,
    "linear_attn.norm": _norm("Normalise each head’s result, gated"),
    "self_attn.norm": _norm("Normalise the heads’ answers"),
    "attn_sub_norm": _norm("Normalise the heads’ answers"),
    "ffn_sub_norm": _norm("Normalise what passed the gate"),
    "q_norm": _Q_NORM,
    "k_norm": _K_NORM,
    "q_layernorm": _Q_NORM,
    "k_layernorm": _K_NORM,
    "query_layernorm": _Q_NORM,
    "key_layernorm": _K_NORM,
    "q_a_layernorm": _norm("Normalise the compressed queries"),
    "q_a_norm": _norm("Normalise the compressed queries"),
    "kv_norm": _norm("Normalise the vector that is key and value"),
    "compressor.kv_norm": _norm("Normalise the entries"),
    "compressor.indexer.kv_norm": _norm("Normalise the indexer’s entries"),
    "indexer.q_input_norm": _norm("Normalise before the indexer’s queries"),
    "kv_a_layernorm": _norm("Normalise the latent"),
    "dt_layernorm": _norm("Normalise the step sizes"),
    "b_layernorm": _norm("Normalise the input map"),
    "c_layernorm": _norm("Normalise the output map"),
    "indexer.k_norm": _norm("Normalise the indexer’s keys"),
    # attention
    "q_proj": _Q,
    "k_proj": _K,
    "v_proj": _V,
    "self.query": _Q,
    "SelfAttention.q": _Q,
    "SelfAttention.k": _K,
    "SelfAttention.v": _V,
    "SelfAttention.o": _O,
    "EncDecAttention.q": _Q,
    "EncDecAttention.k": _K,
    "EncDecAttention.v": _V,
    "EncDecAttention.o": _O,
    "relative_attention_bias": STEPS[Role.RELATIVE_BIAS]._replace(term=Role.RELATIVE_BIAS.term),
    "self.key": _K,
    "self.value": _V,
    "attention.output.dense": _O,
    "attn.Wo": _O,
    "wq": _Q,
    "wk": _K,
    "wv": _V,
    "c_attn": _QKV._replace(equation=r"[q, k, v] = x \, W_{qkv} + b"),
    "query_key_value": _QKV,
    "qkv_proj": _QKV,
    "Wqkv": _QKV,
    "o_proj": _O,
    "out_proj": _O,
    "dense": _O,
    "wo": _O,
    "attn.c_proj": _O._replace(equation=r"y \, W_o + b"),
    "output_gate": Words("Gate the heads’ answers", r"\sigma(x \, W_g^{\top})", _GATE_WHY, "gate", term="output gate"),
    "self_attn.gate_proj": Words(
        "Gate what attention found", r"\sigma(x \, W_g^{\top})", _GATE_WHY, "gate", term="output gate"
    ),
    "self_attn.g_proj": Words(
        "Gate each head’s answer",
        r"g = x \, W_g^{\top}",
        "The gate decides, head by head, how much of what was found passes.",
        "gate",
        term="output gate",
    ),
    "sinks": Words(
        "A score for looking at nothing",
        r"[s, s_0]",
        "A trained extra score for each head takes the share that goes to no token.",
        term="attention sink",
    ),
    "q_a_proj": Words(
        "Compress the queries",
        r"c_q = x \, W_{DQ}^{\top}",
        "Two thin matrices in the place of a large one.",
        "compressed q",
        term="query down-projection",
    ),
    "q_b_proj": Words(
        "Make the queries",
        r"q = c_q \, W_{UQ}^{\top}",
        "What each token looks for, from its compressed form.",
        "q",
        term="query up-projection",
    ),
    "kv_a_proj_with_mqa": Words(
        "Compress keys and values into a latent",
        r"[c_{kv}, k_R] = x \, W_{DKV}^{\top}",
        "The cache keeps this short vector, and one rope key, for all heads together.",
        "latent, rope key",
        term="KV down-projection, latent",
    ),
    "kv_b_proj": Words(
        "Take the map from latent to keys and values apart",
        r"[k, v] = c_{kv} \, W_{UKV}^{\top}",
        "One part is applied to the query, the other to the average: the same result, and the cache stays compressed.",
        term="KV up-projection",
    ),
    "indexer.wq_b": Words(
        "Make the indexer’s queries",
        r"q_I = c_q \, W^{\top}",
        "A small attention that only chooses where the real one looks.",
        "indexer q",
        term="lightning indexer, query projection",
    ),
    "indexer.wk": Words(
        "Make the indexer’s key",
        r"k_I = x \, W^{\top}",
        "One key for all of its heads.",
        "indexer k",
        term="lightning indexer, key projection",
    ),
    "indexer.weights_proj": Words(
        "Weigh the indexer’s heads",
        r"w = x \, W^{\top}",
        "How much each of its heads counts in the choice.",
        term="lightning indexer",
    ),
    "kv_proj": Words(
        "Make the one vector that is key and value",
        r"c = x \, W^{\top}",
        "All heads share it, and the cache keeps nothing else of a token.",
        "kv",
        term="shared key and value",
    ),
    "compressor.kv_proj": Words(
        "Make what an entry averages", r"v = x \, W^{\top}", "Each token’s part of an entry.", "v", term="compressor"
    ),
    "compressor.gate_proj": Words(
        "Make the gates of the average",
        r"g = x \, W^{\top}",
        "How much each token counts in an entry, number by number.",
        "g",
        term="compressor",
    ),
    "position_bias": Words(
        "Weigh the places in a window",
        r"g + b",
        "A trained number for each place of a window, beside what the token says.",
        term="compressor",
    ),
    "compressor.indexer.kv_proj": Words(
        "Make what the indexer’s entries average", r"v = x \, W^{\top}", "", "v", term="lightning indexer, compressor"
    ),
    "compressor.indexer.gate_proj": Words(
        "Make the gates of the indexer’s average",
        r"g = x \, W^{\top}",
        "",
        "g",
        term="lightning indexer, compressor",
    ),
    "indexer.q_b_proj": Words(
        "Make the indexer’s queries",
        r"q_I = c_q \, W^{\top}",
        "A small attention that only chooses where the real one looks.",
        "indexer q",
        term="lightning indexer, query projection",
    ),
    "indexer.q_proj": Words(
        "Make the indexer’s queries",
        r"q_I = x \, W^{\top}",
        "A small attention that only chooses where the real one looks.",
        "indexer q",
        term="lightning indexer, query projection",
    ),
    "indexer.k_proj": Words(
        "Make the indexer’s key",
        r"k_I = x \, W^{\top}",
        "One key for all of its heads.",
        "indexer k",
        term="lightning indexer, key projection",
    ),
    "scorer.weights_proj": Words(
        "Weigh the indexer’s heads",
        r"w = x \, W^{\top}",
        "How much each of its heads counts in the choice.",
        term="lightning indexer",
    ),
    "post_attention_residual_gate.gate": Words(
        "How much of the answer is taken", r"\beta", "A trained number for each of the vector’s.", term="residual gate"
    ),
    "post_feedforward_residual_gate.gate": Words(
        "How much of the answer is taken", r"\beta", "A trained number for each of the vector’s.", term="residual gate"
    ),
    "pre_expert_proj": Words(
        "Narrow before the experts", r"x \, W^{\top}", "Experts in a narrower space are smaller.", term="latent experts"
    ),
    "pre_expert_norm": _norm("Normalise before the experts"),
    "post_expert_norm": _norm("Normalise each expert’s answer"),
    "post_expert_proj": Words(
        "Widen after the experts", r"y \, W^{\top}", "Back to the model’s width.", term="latent experts"
    ),
    **dict.fromkeys(
        ("attention_input.query", "mlp_input.query", "final_input.query"),
        Words("The query to the depth", r"q", "Trained, the same for every token.", term="attention residuals"),
    ),
    "sink_proj": Words(
        "Make a sink for each head",
        r"s_0 = x \, W^{\top}",
        "How much of the shares goes to no token.",
        term="attention sink",
    ),
    **dict.fromkeys(
        ("q_l2_clip.scale", "rel_l2_clip.scale"), Words("Scale before clipping", "", "Trained.", term="scaling")
    ),
    **dict.fromkeys(
        ("k_sconv.static_weight", "v_sconv.static_weight"),
        Words("Fixed taps", "", "Those of every token.", term="causal convolution"),
    ),
    **dict.fromkeys(
        ("k_sconv.weight_proj", "v_sconv.weight_proj"),
        Words("Make the taps", r"x \, W^{\top}", "Taps that the token chooses.", term="causal convolution"),
    ),
    **dict.fromkeys(("post_attention_convolution.conv1d", "post_mlp_convolution.conv1d"), _CONV),
    "q_input_layernorm": _BEFORE_ATTENTION,
    "k_input_layernorm": _BEFORE_ATTENTION,
    "v_input_layernorm": _BEFORE_ATTENTION,
    "ngram_embedding": Words(
        "The table of n-grams", r"E", "Rows that a hash of the last ids chooses.", term="n-gram embedding"
    ),
    **dict.fromkeys(
        ("layer_multipliers", "ngram_heads_vocab_sizes", "ngram_heads_offsets"),
        Words("Numbers of the hash", "", "Fixed before training.", term="hash"),
    ),
    "ple.key_proj": Words("Make a key for each stream", r"x \, W^{\top}", "", "k", term="n-gram embedding"),
    "ple.value_proj": Words("Make what is added", r"x \, W^{\top}", "", "v", term="n-gram embedding"),
    "ple.norm_key": _norm("Normalise the keys of the n-grams"),
    "ple.norm_query": _norm("Normalise the streams"),
    "ple.norm_conv": _norm("Normalise before the convolution"),
    "ple.conv1d": _CONV,
    "hc_norm": _norm("Normalise the streams"),
    "input_mix_weight_down": Words(
        "Narrow all streams", r"x \, W^{\top}", "Two thin matrices make the gates.", term="hyper-connections"
    ),
    "input_mix_weight_up": Words(
        "Make a gate for each number of the streams", r"y \, W^{\top}", "", term="hyper-connections"
    ),
    "block_inject_weight": Words(
        "Score the streams",
        r"x \, W^{\top}",
        "How much of the answer each stream takes.",
        term="hyper-connections",
    ),
    "indexer.index_qk_proj": Words(
        "Make the indexer’s queries and key",
        r"[q_I, k_I] = x \, W^{\top}",
        "A small attention that only chooses where the real one looks.",
        "indexer q, k",
        term="lightning indexer",
    ),
    "indexer.q_layernorm": _norm("Normalise the indexer’s queries"),
    "indexer.k_layernorm": _norm("Normalise the pools’ keys"),
    "r_proj": Words(
        "Make what mixes the profiles",
        r"r = x \, W_r^{\top}",
        "How much each profile of distance counts for this token.",
        "r",
        term="relative position bias",
    ),
    "rel_logits_proj.proj": Words(
        "Profiles of distance", r"P", "What a distance is worth, for each profile.", term="relative position bias"
    ),
    "embed_norm": _OF_EMBEDDINGS,
    **dict.fromkeys(
        ("k_sconv.conv1d", "v_sconv.conv1d", "attn_sconv.conv1d", "mlp_sconv.conv1d"),
        STEPS[Role.CONVOLUTION]._replace(term=Role.CONVOLUTION.term),
    ),
    "global_scale": Words("Scale the answer", r"s \, y", "A trained number.", term="scaling"),
    "o_a_proj": _O,
    "o_b_proj": _OUT,
    "q_gate_proj": Words(
        "Make queries and gates",
        r"[q, g] = [c_q, \tilde{c}_q] \, W^{\top}",
        "One matrix for what each token looks for and for how much of the answer passes.",
        "q, gate",
        term="query projection, output gate",
    ),
    "softmax_scaling.scale": Words(
        "Learn how much sharper", r"s \, \ln(t + 1)", "A trained number for each head.", term="attention temperature"
    ),
    "softmax_scaling": Words(
        "Learn how sharp", r"+ b", "A trained number for each head.", term="attention temperature"
    ),
    "rotary_emb.alpha": Words(
        "Change how fast each pair turns", r"f_w e^{\alpha_w}", "Trained for each pair of numbers.", term="RoPE"
    ),
    **{
        f"{where}_hc.{part}": Words(title, equation, why, term="hyper-connections")
        for where in ("attn", "ffn")
        for part, title, equation, why in (
            ("fn", "Score the streams", r"f = \tilde{x} \, W^{\top}", "One score for each share, from all streams."),
            ("base", "Where each share begins", r"+ b", "What the shares are before a token says anything."),
            ("scale", "How much a token moves the shares", r"\alpha f", "Trained, for each of the kinds of shares."),
        )
    },
    "hc_head.hc_fn": Words(
        "Score the streams", r"f = \tilde{x} \, W^{\top}", "One score for each stream.", term="hyper-connections"
    ),
    "hc_head.hc_base": Words("Where each share begins", r"+ b", "", term="hyper-connections"),
    "hc_head.hc_scale": Words("How much a token moves the shares", r"\alpha f", "", term="hyper-connections"),
    "gate.tid2eid": Words(
        "The table of each token’s experts",
        r"H",
        "Fixed before training; no vector has a say.",
        term="hash routing",
    ),
    # feed-forward
    "gate_proj": _GATE,
    "up_proj": _UP,
    "down_proj": _DOWN,
    "gate_up_proj": _GATE_UP,
    "intermediate.dense": _UP,
    "DenseReluDense.wi": _UP,
    "DenseReluDense.wi_0": _GATE,
    "DenseReluDense.wi_1": _UP,
    "DenseReluDense.wo": _DOWN,
    "output.dense": _DOWN,
    "mlp.Wi": _GATE_UP,
    "mlp.Wo": _DOWN,
    "w1": _GATE,
    "w3": _UP,
    "w2": _DOWN,
    "c_fc": _UP._replace(equation=r"u = x \, W_{up} + b"),
    "mlp.c_proj": _DOWN._replace(equation=r"y \, W_{down} + b"),
    "fc1": _UP,
    "fc2": _DOWN,
    "fc_in": _UP,
    "fc_out": _DOWN,
    "dense_h_to_4h": _UP,
    "dense_4h_to_h": _DOWN,
    "act_fn.alpha_p": Words(
        "Shape the curve above zero", r"\alpha_p", "A trained number of this model’s own.", term="activation function"
    ),
    "act_fn.alpha_n": Words(
        "Shape the curve below zero", r"\alpha_n", "A trained number of this model’s own.", term="activation function"
    ),
    # mixture of experts
    "mlp.gate": _ROUTER,
    "block_sparse_moe.gate": _ROUTER,
    "mixer.gate": _ROUTER,
    "router": _ROUTER,
    "router.proj": _ROUTER,
    "router.scale": Words(
        "Scale each channel for the router",
        r"s \odot x",
        "The router sees the vector through its own scale.",
        term="router",
    ),
    "per_expert_scale": Words(
        "Weigh each expert by its own number",
        r"w_e \, s_e",
        "A trained number for each expert, besides the share that the router gives it.",
        term="expert scale",
    ),
    "router.layer": _ROUTER,
    "router.classifier": _ROUTER,
    "router.gate": _ROUTER,
    "gate.wg": _ROUTER,
    "e_score_correction_bias": _ROUTER_BIAS,
    "expert_bias": _ROUTER_BIAS,
    "fc1_latent_proj": Words(
        "Narrow, for the experts",
        r"x \, W_1^{\top}",
        "The routed experts work in a narrower space: more of them for the same work.",
        term="low-rank projection",
    ),
    "fc2_latent_proj": Words(
        "Widen the experts’ answer", r"y \, W_2^{\top}", "Back to the model’s width.", term="low-rank projection"
    ),
    "feed_forward.gate": _ROUTER,
    "gate.bias": _ROUTER_BIAS,
    "shared_expert_gate": Words(
        "Gate the shared expert",
        r"\sigma(x \, w_g^{\top})",
        "How much of the shared expert’s answer passes, one number for each token.",
        term="shared-expert gate",
    ),
    "experts.gate_proj": _in_experts(_GATE, r"g_e = x \, W_{gate,e}^{\top}"),
    "experts.up_proj": _in_experts(_UP, r"u_e = x \, W_{up,e}^{\top}"),
    "experts.down_proj": _in_experts(_DOWN, r"y_e \, W_{down,e}^{\top}"),
    "experts.w1": _in_experts(_GATE, r"g_e = x \, W_{1,e}^{\top}"),
    "experts.w3": _in_experts(_UP, r"u_e = x \, W_{3,e}^{\top}"),
    "experts.w2": _in_experts(_DOWN, r"y_e \, W_{2,e}^{\top}"),
    "experts.mlp.w1": _in_experts(_GATE, r"g_e = x \, W_{1,e}^{\top}"),
    "experts.mlp.v1": _in_experts(_UP, r"u_e = x \, V_{1,e}^{\top}"),
    "experts.mlp.w2": _in_experts(_DOWN, r"y_e \, W_{2,e}"),
    "experts.gate_up_proj": _in_experts(_GATE_UP, r"[g_e, u_e] = x \, W_e"),
    "experts.gate_up_proj_bias": Words("Shift gate and widened vector", r"+ b_e", _EXPERT, term="bias"),
    "experts.down_proj_bias": Words("Shift the expert’s answer", r"+ b_e", _EXPERT, term="bias"),
    "block_sparse_moe.input_linear": _in_experts(_GATE_UP, r"[g_e, u_e] = x \, W_e^{\top}"),
    "block_sparse_moe.output_linear": _in_experts(_DOWN, r"y_e \, W_e^{\top}"),
    "shared_mlp.input_linear": _in_shared(_GATE_UP),
    "shared_mlp.output_linear": _in_shared(_DOWN),
    **{
        f"{shared}.{part}": _in_shared(words)
        for shared in ("shared_expert", "shared_experts", "shared_mlp")
        for part, words in (("gate_proj", _GATE), ("up_proj", _UP), ("down_proj", _DOWN))
    },
    # state-space layers and linear attention
    "in_proj": _IN,
    "conv1d": _CONV,
    "mixer.out_proj": _OUT,
    "mamba.out_proj": _OUT,
    "linear_attn.out_proj": _OUT,
    "x_proj": Words(
        "Make step size, input map and output map",
        r"[\Delta, B, C] = x \, W_x^{\top}",
        "Each token decides what the state takes in and gives out: this is what “selective” means.",
        term="selection mechanism",
    ),
    "dt_proj": Words(
        "Widen the step size",
        r"\Delta = \mathrm{softplus}(\delta \, W_{\Delta}^{\top} + b)",
        "One step size for each channel.",
        term="step size",
    ),
    "A_log": _DECAY,
    "D": _SKIP,
    "dt_bias": _DT_BIAS,
    "in_proj_qkvz": Words(
        "Make queries, keys, values and the gate",
        r"[q, k, v, z] = x \, W^{\top}",
        _QKV.why,
        "q, k, v, z",
        term="fused QKV projection, gate projection",
    ),
    "in_proj_qkv": _QKV,
    "in_proj_z": Words("Make the gate", r"z = x \, W_z^{\top}", _GATE_WHY, "gate", term="gate projection"),
    "in_proj_ba": Words(
        "Make strength and decay",
        r"[b, a] = x \, W^{\top}",
        "How much of the new token is written, and how much of the old is kept.",
        term="write strength, decay",
    ),
    "in_proj_b": _STRENGTH,
    "in_proj_a": _DECAY_OF_TOKEN,
    "b_proj": _STRENGTH,
    "a_proj": _DECAY_OF_TOKEN,
    "f_proj": _DECAY_OF_TOKEN,
    "f_a_proj": _NARROW_DECAY,
    "f_b_proj": _DECAY_OF_TOKEN._replace(equation=r"a = f \, W_a^{\top}"),
    "g_proj": _ANSWER_GATE,
    "g_a_proj": _NARROW_GATE,
    "g_b_proj": _ANSWER_GATE._replace(equation=r"\sigma(g \, W_g^{\top})"),
    "o_norm": _norm("Normalise each head’s result"),
    "conv.in_proj": Words(
        "Make the input and its two gates",
        r"[b, c, x] = x \, W_{in}^{\top}",
        "One gate before the convolution, one after it.",
        term="input projection",
    ),
    "conv.conv": _CONV,
    "conv_1d": _CONV,
    "conv.out_proj": _OUT,
    # RecurrentGemma
    "linear_x": Words("Make the recurrence’s input", r"x \, W_x^{\top}", "", term="input projection"),
    "linear_y": Words("Make the gate", r"y = x \, W_y^{\top}", _GATE_WHY, "gate", term="gate projection"),
    "linear_out": _OUT,
    "input_gate_weight": Words(
        "Make the gate of what comes in", r"x \, W_i", "Each block of channels by itself.", term="input gate"
    ),
    "input_gate_bias": Words("Shift the gate of what comes in", r"+ b_i", "", term="input gate"),
    "recurrent_gate_weight": Words(
        "Make the gate of what is kept", r"x \, W_a", "Each block of channels by itself.", term="recurrence gate"
    ),
    "recurrent_gate_bias": Words("Shift the gate of what is kept", r"+ b_a", "", term="recurrence gate"),
    "recurrent_param": Words(
        "How fast each channel forgets",
        r"a = e^{-8 r \, \mathrm{softplus}(\Lambda)}",
        "Trained for each channel; the gate makes it slower or faster for a token.",
        term="decay",
    ),
    # Zamba 2
    **{
        f"{name}.{place}": words
        for name in (
            "linear_q_adapter_list",
            "linear_k_adapter_list",
            "linear_v_adapter_list",
            "gate_up_proj_adapter_list",
        )
        for place, words in (("0", _ADAPTER_IN), ("1", _ADAPTER_OUT))
    },
    "layers.linear": Words(
        "Hand what the shared block found to the mixer", r"y \, W^{\top}", "", term="output projection"
    ),
    # RWKV
    "time_decay": Words(
        "How fast each channel forgets",
        r"e^{-e^{w}}",
        "Trained for each channel; the same for every token.",
        term="decay",
    ),
    "time_first": Words(
        "A bonus for the token itself", r"u", "The newest token is not yet in the state.", term="time-first bonus"
    ),
    **{
        f"time_mix_{name}": Words(
            f"Blend with the token before, for the {purpose}",
            r"\mu \odot x_t + (1 - \mu) \odot x_{t-1}",
            "Each channel learns how much of the previous token it sees.",
            term="token shift",
        )
        for name, purpose in (("key", "key"), ("value", "value"), ("receptance", "gate"))
    },
    "attention.key": _K,
    "attention.value": _V,
    "attention.receptance": _RECEPTANCE,
    "attention.output": _O,
    "feed_forward.key": _UP,
    "feed_forward.value": _DOWN,
    "feed_forward.receptance": _RECEPTANCE,
    "embed": _TABLE,
}

# NumPy calls between the steps that mean something to a reader; the rest is glue.
CALLS = {
    "distance": Words(
        "Add what the distance says",
        r"s_{t,s} + b_{t,s}",
        "Each head prefers some distances to others.",
        term="relative position bias",
    ),
    "alibi": Words(
        "Give each head its own fading with distance",
        r"b_{n,s} = -m_n \, (t - s)",
        "A penalty that grows with distance stands in for position embeddings.",
        term="ALiBi",
    ),
    "scale_embeddings": Words(
        "Scale the vectors",
        r"x \cdot \sqrt{D}",
        "Brings them to the size that the layers were trained with.",
        term="embedding scaling",
    ),
    "reshape": Words(
        "Cut into heads",
        "",
        "The same numbers in the same order, read as several shorter vectors: nothing is computed.",
        term="attention head",
    ),
    "merge": Words(
        "Put the heads side by side",
        "",
        "The same numbers in the same order: nothing is computed.",
        term="attention head",
    ),
    "split": Words("Cut apart", "", "One vector holds several; each goes its own way from here.", term="split"),
    "concatenate": Words("Join", "", "Side by side in one vector.", term="concatenation"),
    "cache": Words(
        "Put them behind the cached ones",
        r"[\mathrm{past}, \mathrm{new}]",
        "What earlier steps computed for earlier tokens is read from the cache, not computed again.",
        term="KV cache",
    ),
    "multiply": Words("Multiply, number by number", r"g \odot u", _GATE_WHY, term="gating"),
    "residual": Words(
        "Add to the residual stream",
        r"x + y",
        "Nothing is overwritten: each part adds its finding to the vector that runs through the model.",
        term="residual connection, residual stream",
    ),
    "add": Words("Add", r"x + y", "", term="addition"),
    "positions": Words(
        "Add token and position vectors",
        r"x + p",
        "From here on the vector knows what the token is and where it stands.",
        term="learned position embedding",
    ),
    "einsum": Words("Contract", "", "A sum of products over a shared axis.", term="contraction"),
}

# Steps that say little by themselves: their weight's name says what they are for.
NAMED_BY_WEIGHT = frozenset(
    {Role.LINEAR, Role.CONV1D, Role.EXPERT_LINEAR, Role.LAYER_NORM, Role.RMS_NORM, Role.HEAD_NORMS, Role.GATED_RMS_NORM}
)

# The factors and the result of a product of two arrays, neither of them a weight, by its step.
FACTORS: dict[Role | None, tuple[str, str, str]] = {
    Role.SCORES: ("q", "kᵀ", "scores"),
    Role.MIX: ("shares", "v", "averages"),
    Role.MIX_LATENTS: ("shares", "c", "averages"),
    Role.COMBINE: ("shares", "answers", "y"),
}

# Parts whose name in a sentence is not their title in lower case.
IN_A_SENTENCE: dict[Role | None, str] = {
    Role.CROSS_ATTENTION: "cross-attention",
    Role.FEED_FORWARD: "the feed-forward part",
    Role.MIXTURE_OF_EXPERTS: "the experts",
    Role.EXPERTS: "the experts",
    Role.LAYER_INPUT: "the layer’s own input",
    Role.LAUREL: "the narrow way",
    **dict.fromkeys((Role.GATED_EXPERTS, Role.PACKED_EXPERTS), "the chosen experts"),
    Role.COMPRESSOR: "the compressor",
    Role.STREAM_SHARES: "the streams’ shares",
    Role.SHARED_EXPERTS: "the shared experts",
    **dict.fromkeys((Role.MAMBA, Role.MAMBA2), "the state-space mixer"),
    Role.GATED_DELTA_NET: "the delta rule",
    Role.KIMI_DELTA_ATTENTION: "the delta rule",
    Role.SHORT_CONVOLUTION: "the short convolution",
    Role.RECURRENT_BLOCK: "the recurrence",
}

# Headings of a parameter table's groups, by the step that uses the weights.
GROUPS: dict[Role | None, str] = {
    Role.EMBED: "Token embedding",
    Role.EMBED_POSITIONS: "Position embedding",
    Role.UNEMBED: "Head",
    Role.LAYER_NORM: "Norms",
    Role.RMS_NORM: "Norms",
    Role.LINEAR: "Projections",
    Role.LAYER: "Layer",
}


# Kinds of layers, as the architectures name them.
KINDS = {
    "moe": "mixture of experts",
    "full": "full attention",
    "sliding": "sliding window",
    "chunked": "attention in chunks",
    "shared": "keys and values of an earlier layer",
    "clamped": "clamped gates",
    "sparse": "most of each gate cut off",
    "NoPE": "no rotation by position",
    "shared index": "an earlier layer’s choice",
    "shared latents": "an earlier layer’s latents",
    "picked blocks": "picked blocks of tokens",
    "window": "window alone",
    "hash": "experts by token id",
    "mamba": "state space",
    "linear": "linear attention",
    "lightning": "lightning attention",
    "convolution": "short convolution",
    "recurrent": "gated recurrence",
    "hybrid": "state space and shared attention",
    "encoder": "encoder",
    "decoder": "decoder",
}


def of_kind(kind: object) -> str:
    """The kind of a layer in words: `sliding, moe` is sliding window, mixture of experts."""
    name, _, number = str(kind).rpartition(" ")  # kinds that print alike have a number
    if not number.isdigit():
        name, number = str(kind), ""
    return ", ".join(KINDS.get(part, part) for part in name.split(", ")) + (f" {number}" if number else "")


@cache
def of_weight(name: str) -> Words | None:
    """The words of a tensor, by the longest tail of its name that has some, its number left out if need be."""
    parts = [p for p in name.split(".") if not p.startswith("{")]
    whole = ".".join(parts)
    for suffix in (".weight", ".bias"):
        if whole.endswith(suffix) and whole not in WEIGHTS:
            parts = whole.removesuffix(suffix).split(".")
    for tail in [parts, parts[:-1]] if parts[-1].isdigit() else [parts]:
        for start in range(max(0, len(tail) - 5), len(tail)):
            words = WEIGHTS.get(".".join(tail[start:]))
            if words:
                return words
    return None


def of_step(node: Node) -> Words:
    """The words of a step: of its role inside that of the step around it, of its role, or else its docstring's."""
    return of_call(node.role, node.parent.role if node.parent else None, node.doc)._replace(term=terms.of(node))


def of_call(role: Role | None, inside: Role | None, doc: str) -> Words:
    """The same, by its role, that of the step around it and its docstring."""
    return STEPS.get((inside, role)) or STEPS.get(role) or of_docstring(doc)


def of_docstring(doc: str) -> Words:
    """Words for a step that has none: the first sentence of its docstring."""
    return Words(doc.partition(": [")[0].partition(": same shape")[0].rstrip("."))


def of_tensor(name: str) -> Words:
    """The words of a tensor, or its name where it has none."""
    return of_weight(name) or Words(name.removesuffix(".weight").rpartition(".")[2].replace("_", " ").capitalize())


def group(node: Node) -> str:
    """The heading of the part that a step is."""
    return GROUPS.get(node.role) or of_step(node).title
