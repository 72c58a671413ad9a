"""What a model costs: compute, bytes moved, memory and bounds on time, as functions of new tokens, context and batch.

Everything is read off the trace. Conventions: 2 FLOPs per multiply-add; `in full` counts every pair of a query and a key
that is multiplied, `causal` only the pairs that the mask lets through; elements have the size of their format, GB is 10⁹
bytes. Times are lower bounds: no machine does better, most do worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, wraps

from ..engine.array import Node, Spec
from ..engine.dims import Call, Dim, Poly, product
from ..engine.ops import SlidingWindow
from ..engine.tensors import Kept, Weight
from .accelerators import Accelerator
from .parameters import HEAD, INDEX, INPUT_TABLES, Counts
from .parts import cut


@dataclass(frozen=True)
class Format:
    """A number format for weights: bits of an element, and what each block of elements stores besides (its scale)."""

    name: str
    bits: int
    block: tuple[int, ...] = ()
    scale_bits: int = 0
    peak: str = "bfloat16"
    why: str = ""

    @property
    def bits_per_weight(self) -> Fraction:
        """Bits of one weight, its share of the block's scale included, where blocks are full."""
        return self.bits + Fraction(self.scale_bits, math.prod(self.block))

    def size(self, shape: Iterable[int], copies: int = 1) -> int:
        """Bytes of so many tensors of this shape; blocks lie along the last axes, the last ones need not be full."""
        shape = [int(d) for d in shape]
        at = len(shape) - len(self.block)
        blocks = (
            math.prod(shape[:at]) * math.prod(-(-d // b) for d, b in zip(shape[at:], self.block)) if self.block else 0
        )
        return -(-(math.prod(shape) * self.bits + blocks * self.scale_bits) * copies // 8)


FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("float32", 32, why="1 sign, 8 exponent and 23 fraction bits"),
        Format("bfloat16", 16, why="1 sign, 8 exponent and 7 fraction bits: the range of float32, fewer digits"),
        Format("float16", 16, why="1 sign, 5 exponent and 10 fraction bits: a smaller range, more digits"),
        Format(
            "fp8",
            8,
            (128, 128),
            32,
            "fp8",
            "1 sign, 4 exponent and 3 fraction bits, and a float32 scale for each block of 128 × 128 weights, as DeepSeek-V3 publishes",
        ),
        Format(
            "int8", 8, (128,), 16, "int8", "a whole number of 8 bits, and a float16 scale for each 128 weights of a row"
        ),
        Format(
            "int4", 4, (128,), 16, why="a whole number of 4 bits, and a float16 scale for each 128 weights of a row"
        ),
        Format(
            "mxfp4",
            4,
            (32,),
            8,
            why="1 sign, 2 exponent and 1 fraction bit, and a shared exponent of 8 bits for each 32 weights of a row (OCP Microscaling, v1.0)",
        ),
    )
}

# Bytes of an element of the cache, by the name of its type. Scales of a quantised cache are left out.
CACHE_BYTES: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1, "int8": 1}


@dataclass(frozen=True)
class PartFlops:
    """FLOPs of one step in all layers of a kind: everything, and what it counts over (query, key) pairs, masked or not."""

    name: str
    kind: object
    layers: int | None
    total: int
    pairs: int
    causal_pairs: int

    @property
    def causal(self) -> int:
        """The FLOPs where only the pairs that the mask lets through count."""
        return self.total - self.pairs + self.causal_pairs


@dataclass(frozen=True)
class _Pairs:
    """A contraction over (query, key) pairs, with the rule that masks it."""

    leaf: Node
    layers: int
    queries: Poly
    keys: Poly
    reach: object

    def flops(self, values: Mapping[str, int]) -> int:
        return self.leaf.own_flops.at(values) * self.layers

    def share(self, values: Mapping[str, int]) -> Fraction:
        """The share of the pairs that the mask lets through."""
        new, context = values["T"], values["S"]
        reach = SlidingWindow(self.picked(values)) if self.picks else self.reach
        return Fraction(
            reach.pairs(context) - reach.pairs(context - new), self.queries.at(values) * self.keys.at(values)
        )

    @property
    def picks(self) -> bool:
        """Whether each query has keys picked for it, a fixed number at most: min(S, index_topk)."""
        [(monomial, _)] = self.keys.terms.items() if len(self.keys.terms) == 1 else [((), 0)]
        return len(monomial) == 1 and isinstance(monomial[0][0], Call) and not getattr(self.reach, "size", None)

    def picked(self, values: Mapping[str, int]) -> int:
        [(atom, _)] = next(iter(self.keys.terms))
        return min(p.at(values) for p in atom.args if not p.is_free)


def once(method):
    """Compute each figure of a model once: tables ask for the same ones again and again."""

    @wraps(method)
    def wrapper(self, *args, **kwargs):
        key = method.__name__, args, tuple(kwargs.items())
        if key not in self._memory:
            self._memory[key] = method(self, *args, **kwargs)
        return self._memory[key]

    return wrapper


class Costs:
    """The costs of one model. T new tokens end at a context of S tokens, the last new one included; B texts at once."""

    def __init__(self, counts: Counts):
        self.counts, self.trace = counts, counts.trace
        self._memory: dict[tuple, object] = {}

    # --- compute ----------------------------------------------------------------------------------------------------

    @once
    def flops_by_part(self, new: int, context: int) -> tuple[PartFlops, ...]:
        """Each step with FLOPs, in forward order, by layer kind; the totals add up to `counts.flops_at`."""
        values, rows = self._values(new, context), []
        for node, step, flops, pairs in self._parts:
            full = [p.flops(values) for p in pairs]
            rows.append(
                PartFlops(
                    step.name,
                    node.kind if node.layers is not None else None,
                    int(node.layer_count) if node.layers is not None else None,
                    flops.at(values) * int(node.layer_count),
                    sum(full),
                    sum(int(n * p.share(values)) for n, p in zip(full, pairs)),
                )
            )
        return tuple(rows)

    @cached_property
    def _parts(self) -> list[tuple[Node, Node, Poly, list[_Pairs]]]:
        """Each step with FLOPs: its layer, itself, FLOPs in one layer, and its contractions over pairs."""
        pairs, found = {id(p.leaf): p for p in self._pairs}, []
        for node, step in cut(self.trace):
            if (flops := step.flops).terms:
                found.append((node, step, flops, [pairs[id(leaf)] for leaf in step.walk() if id(leaf) in pairs]))
        return found

    def pair_flops(self, new: int, context: int) -> int:
        """FLOPs of the contractions over (query, key) pairs, scores in full."""
        return sum(part.pairs for part in self.flops_by_part(new, context))

    @once
    def causal_flops(self, new: int, context: int) -> int:
        """FLOPs of a step where only the pairs that the mask lets through count."""
        return sum(part.causal for part in self.flops_by_part(new, context))

    @once
    def expanded_flops(self, new: int, context: int, *, causal: bool = False) -> int:
        """The same with the keys and values of latent attention written out per head; without latents, no difference.

        Fewer FLOPs for a long text, because a pair then costs the width of a head and not of the latent; more for one new
        token, because the keys and values of the whole context are made again.
        """
        values = self._values(new, context)
        total = self.causal_flops(new, context) if causal else self.counts.flops_at(new, context)
        for node, latent in self._latents.items():
            here = [p for p in self._pairs if node in p.leaf.path()]
            for p in here:
                wide = {"latent_scores": latent.nope, "mix_latents": latent.value}.get(p.leaf.parent.name)
                if wide is not None and any(
                    int(d) == int(latent.rank) and d.symbols & latent.rank.symbols for d in p.leaf.inputs[1].shape
                ):
                    flops = p.flops(values) * (p.share(values) if causal else 1)
                    total -= int(flops - flops * Fraction(int(wide), int(latent.rank)))
            made = sum(leaf.flops.at(values) for leaf in latent.reads) * int(node.layer_count)
            total += made * context // new - made
        return total

    def least_flops(self, new: int, context: int) -> int:
        """The fewer FLOPs of the two forms of latent attention, masked pairs left out: what a bound on time may count."""
        absorbed = self.causal_flops(new, context)
        return min(absorbed, self.expanded_flops(new, context, causal=True)) if self._latents else absorbed

    def training_flops_per_token(self, context: int, *, causal: bool = False) -> Fraction:
        """FLOPs of forward and backward for one token of texts of `context` tokens, logits for all of them.

        The backward pass costs twice the forward pass: one contraction for the inputs' gradient, one for the weights'.
        Latent attention is trained with its keys and values written out.
        """
        head = sum(n.flops.at(self._values(1, 1)) for n in self.trace.root.children if n.name == HEAD)
        return Fraction(3 * (self.expanded_flops(context, context, causal=causal) + (context - 1) * head), context)

    @cached_property
    def _pairs(self) -> tuple[_Pairs, ...]:
        """The contractions over (query, key) pairs: two axes that vary with T and S, in a layer that keeps rows."""
        reaches = {k.layers: k.reach for k in self.trace.kept if k.reach is not None}
        new, found = Poly.of(self.trace.root.inputs[0].shape[0]), []
        for node in self.trace.root.children:
            for leaf in node.walk() if node.layers in reaches else ():
                if leaf.own_flops is not None and leaf.note:
                    free = [d.expr for d in _letters(leaf).values() if d.expr.is_free]
                    if len(free) == 2 and new in free:
                        found.append(
                            _Pairs(
                                leaf,
                                int(node.layer_count),
                                new,
                                next(p for p in free if p != new),
                                reaches[node.layers],
                            )
                        )
        return tuple(found)

    @cached_property
    def _latents(self) -> dict[Node, _Latent]:
        """Of each kind of layer with latent attention: how wide the latent and the heads' keys and values are."""
        found = {}
        for node in self.trace.root.children:
            steps = (
                {n.name: n for n in node.walk() if n.name in ("ask_latents", "read_values")}
                if node.layers is not None
                else {}
            )
            if len(steps) == 2:
                (_, nope, rank), (heads, value, _) = (
                    steps[name].inputs[1].shape for name in ("ask_latents", "read_values")
                )
                found[node] = _Latent(heads, nope, value, rank, tuple(steps.values()))
        return found

    # --- bytes moved ------------------------------------------------------------------------------------------------

    @once
    def weight_bytes_read(self, new: int, batch: int = 1, format: str = "bfloat16") -> int:
        """Bytes of weights that a step reads: a row per token of the input tables, each routed expert that any token chose
        (expected, choices taken as independent and even), all else once."""
        always, tables, routed = self._read_by(format)
        tokens = new * batch
        total = always + sum(
            _format(w, format).size((min(int(w.shape[0]), tokens), *w.shape[1:]), int(w.copies)) for w in tables
        )
        return total + sum(int(size * (1 - (1 - used / members) ** tokens)) for (members, used), size in routed.items())

    @once
    def _read_by(self, format: str) -> tuple[int, tuple[Weight, ...], dict[tuple[int, int], int]]:
        """Bytes that every step reads, the input tables that are not the head too, and bytes of the experts by (held, used)."""
        tables, head = (
            {w for n in self.trace.root.children if n.name in names for w in n.all_weights()}
            for names in (INPUT_TABLES, (HEAD,))
        )
        looked_up = tuple(w for w in self.counts.weights if w in tables and w not in head)
        always, routed = 0, {}
        for w in self.counts.weights:
            if w.routed:
                key = int(w.routed[0]), int(w.routed[1])
                routed[key] = routed.get(key, 0) + _bytes(w, format)
            elif w not in looked_up:
                always += _bytes(w, format)
        return always, looked_up, routed

    @once
    def cache_bytes_read(self, new: int, context: int, batch: int = 1, item_bytes: int = 2) -> int:
        """Bytes of the cache that a step reads, all texts; behind an indexer only the tokens that it picked."""
        values, total = self._values(new, context), 0
        for k in self.trace.kept:
            if k.row is None:
                total += k.elements.at(values) * (k.item_bytes or item_bytes)
                continue
            rows = k.seen.expr.at(values)
            if (k.name, k.layers) in self._picked:
                rows = min(rows, self._picked[k.name, k.layers].at(values) * new)
            total += rows * k.elements_per_token.at(values) * (k.item_bytes or item_bytes)
        return total * batch

    @once
    def cache_bytes_written(self, new: int, context: int, batch: int = 1, item_bytes: int = 2) -> int:
        """Bytes of the cache that a step writes, all texts: the new rows that stay, and each fixed state."""
        values, total = self._values(new, context), 0
        for k in self.trace.kept:
            size = k.elements.at(values)
            size = min(size, k.elements_per_token.at(values) * new) if k.row is not None else size
            total += size * (k.item_bytes or item_bytes)
        return total * batch

    def bytes_moved(self, new: int, context: int, batch: int = 1, format: str = "bfloat16", item_bytes: int = 2) -> int:
        """Bytes of weights and cache that a step reads and writes: the least that has to move."""
        return (
            self.weight_bytes_read(new, batch, format)
            + self.cache_bytes_read(new, context, batch, item_bytes)
            + self.cache_bytes_written(new, context, batch, item_bytes)
        )

    def intensity(
        self, new: int, context: int, batch: int = 1, format: str = "bfloat16", item_bytes: int = 2
    ) -> Fraction:
        """FLOPs per byte moved, masked pairs left out."""
        return Fraction(
            self.least_flops(new, context) * batch, self.bytes_moved(new, context, batch, format, item_bytes)
        )

    @cached_property
    def _picked(self) -> dict[tuple, Poly]:
        """Of each kept entry from which a step takes only picked rows: how many for each new token."""
        found = {}
        for node in self.trace.root.children:
            for leaf in node.walk() if node.layers is not None else ():
                if (
                    leaf.name == "take"
                    and len(leaf.inputs) == 2
                    and isinstance(leaf.inputs[0].source, Node)
                    and leaf.inputs[0].source.inputs
                ):
                    label = leaf.inputs[0].source.inputs[0].label
                    if label.startswith("past "):
                        found[label[5:], node.layers] = leaf.inputs[1].shape[-1].expr
        return found

    # --- cache ------------------------------------------------------------------------------------------------------

    def cache_by_entry(self, context: int, item_bytes: int = 2) -> list[tuple[Kept, int]]:
        """Each kept entry of each kind of layer with its bytes after `context` tokens."""
        values = self.counts.values(S=context)
        return [(k, k.elements.at(values) * (k.item_bytes or item_bytes)) for k in self.trace.kept]

    def index_bytes(self, context: int, item_bytes: int = 2) -> int:
        """The part of the cache that is an indexer's keys."""
        return sum(size for k, size in self.cache_by_entry(context, item_bytes) if k.name == INDEX)

    @property
    def has_latents(self) -> bool:
        """Whether latent vectors are kept in the place of keys and values."""
        return bool(self._latents)

    def expanded_cache_bytes(self, context: int, item_bytes: int = 2) -> int:
        """Bytes of the cache if latent attention kept every head's keys and values; the same as the cache without latents."""
        expanded = {node.layers: latent for node, latent in self._latents.items()}
        total = 0
        for k, size in self.cache_by_entry(context, item_bytes):
            if k.layers in expanded and k.name != INDEX:
                latent = expanded[k.layers]
                # the row with the latent gives keys and values without position, the other one the rotated part of every head's key
                width = latent.nope + latent.value if k.row[-1].symbols & latent.rank.symbols else k.row[-1]
                size = size // int(product(k.row)) * int(latent.heads) * int(width)
            total += size
        return total

    # --- memory -----------------------------------------------------------------------------------------------------

    @once
    def weight_bytes(self, format: str = "bfloat16") -> int:
        """Bytes of all weights: matrices in `format`, vectors (norms, biases) in 16 bits, or 32 with float32."""
        return sum(_bytes(w, format) for w in self.counts.weights)

    def inference_bytes(
        self,
        new: int,
        context: int,
        batch: int = 1,
        format: str = "bfloat16",
        item_bytes: int = 2,
        *,
        pairs: bool = True,
    ) -> dict[str, int]:
        """Weights, cache after the step, and the arrays of the step's largest operation at 2 bytes an element."""
        return {
            "weights": self.weight_bytes(format),
            "cache": self.counts.cache_bytes(context, item_bytes) * batch,
            "activations": self.largest_operation(new, context, pairs=pairs)[1] * batch * 2,
        }

    @once
    def largest_operation(self, new: int, context: int, *, pairs: bool = True) -> tuple[Node, int]:
        """The operation whose inputs and output together are largest, weights and cache aside, and their elements.

        Without `pairs`, arrays over (query, key) pairs are left out: attention computed in blocks never holds them.
        """
        values = self._values(new, context)
        found = max(
            (sum(size.at(values) for size, is_paired in sizes if pairs or not is_paired), -i, leaf)
            for i, (leaf, sizes) in enumerate(self._operations)
        )
        return found[2], found[0]

    @cached_property
    def _operations(self) -> list[tuple[Node, tuple[tuple[Poly, bool], ...]]]:
        """Every operation that computes, with the elements of each array of data that it reads or makes, and whether it is over pairs.

        One operation for each set of arrays.
        """
        found = {}
        for leaf in self.trace.root.walk():
            if not leaf.children and leaf.name not in VIEWS:
                arrays = [
                    x
                    for x in _distinct(map(_origin, (*leaf.inputs, *leaf.outputs)))
                    if _is_data(x) and not _is_cache(x)
                ]
                same = tuple(sorted(tuple(id(d.expr) for d in x.shape) for x in arrays))
                if same not in found:
                    found[same] = leaf, tuple((_size(x), _is_paired(x)) for x in arrays)
        return list(found.values())

    def training_bytes(self, context: int, batch: int = 1, **how: bool) -> dict[str, int]:
        """Memory of mixed-precision AdamW (arXiv 1910.02054, 3.1): weights and gradients at 2 bytes, and at 4 bytes each a copy
        of the weights, the momentum and the variance; then the activations (`how` as in `activation_bytes`)."""
        n = self.counts.total
        return {
            "weights": 2 * n,
            "gradients": 2 * n,
            "master weights": 4 * n,
            "momentum": 4 * n,
            "variance": 4 * n,
            "activations": self.activation_bytes(context, batch, **how),
        }

    @once
    def activation_bytes(self, context: int, batch: int = 1, *, pairs: bool = True, recompute: bool = False) -> int:
        """Bytes of what the backward pass needs from the forward pass, at 2 bytes an element (after arXiv 2205.05198, 4.1).

        Each step keeps the arrays that it read, once where several read the same; the softmax keeps its output; moving, adding,
        masking and rotating keep nothing; the logits of all tokens are kept at 4 bytes. No dropout. Without `pairs`, arrays
        over (query, key) pairs are not kept (attention computed in blocks). With `recompute`, only each layer's input is
        kept, and the largest layer's own once.
        """
        values = self._values(context, context)

        def own(nodes: list[Node]) -> int:
            saved = _distinct(x for node in nodes for x in _saved(node))
            return sum(_elements(x, values) for x in saved if pairs or not _is_paired(x))

        layers = [n for n in self.trace.root.children if n.layers is not None]
        elements = own([n for n in self.trace.root.children if n.layers is None and n.name != HEAD])
        if recompute:
            elements += sum(_elements(n.outputs[0], values) * int(n.layer_count) for n in layers)
            elements += max((own([n]) for n in layers), default=0)
        else:
            elements += sum(own([n]) * int(n.layer_count) for n in layers)
        logits = 0
        for node in self.trace.root.children:
            if node.name == HEAD:  # the trace has the last token's; training needs all tokens'
                rows = [_elements(x, values) for x in node.inputs if _is_data(x)]
                elements += (
                    rows[0] + own([n for n in node.children if n.children and n.name not in KEEPS_NOTHING]) * context
                )
                logits += sum(_elements(x, values) for x in node.outputs) * context
        return (elements * 2 + logits * 4) * batch

    # --- several devices --------------------------------------------------------------------------------------------

    def split_weight_bytes(self, devices: int, format: str = "bfloat16") -> int:
        """Bytes of weights on the fullest of `devices` under tensor parallelism (arXiv 1909.08053).

        Matrices are cut along heads, d_ff, experts or the vocabulary, whole heads to a device: with fewer key/value heads
        than devices each device holds a copy of one. Vectors and matrices without such an axis are copied.
        """
        return sum(math.ceil(_bytes(w, format) * self._share(w, devices)) for w in self.counts.weights)

    def copied_weight_bytes(self, format: str = "bfloat16") -> int:
        """Bytes of the weights of which every device holds all."""
        return sum(_bytes(w, format) for w in self.counts.weights if self._share(w, 2) == 1 and self._share(w, 3) == 1)

    def split_cache_bytes(self, context: int, devices: int, batch: int = 1, item_bytes: int = 2) -> int:
        """Bytes of the cache on the fullest device: what belongs to heads is divided, a latent and an indexer's keys are copied."""
        values = self.counts.values(S=context)
        total = sum(
            k.elements.at(values)
            * (k.item_bytes or item_bytes)
            * self._cut(frozenset().union(*(d.symbols for d in k.shape)), devices)
            for k in self.trace.kept
        )
        return math.ceil(total * batch)

    def _share(self, w: Weight, devices: int) -> Fraction:
        """The largest share of a weight that one device holds."""
        if not _is_matrix(w):
            return Fraction(1)
        if w.routed is not None and int(w.routed[0]) > int(w.routed[1]):
            return Fraction(1, devices)  # each expert cut along its inner width
        sums = [d.expr for d in w.shape if len(d.expr.terms) > 1 and any(s.endswith("_heads") for s in d.symbols)]
        if sums:  # queries, keys and values in one matrix: each term by its own heads
            values = self.counts.values()
            terms = [Poly({m: c}) for m, c in sums[0].terms.items()]
            return sum(t.at(values) * self._cut(t.symbols, devices) for t in terms) / sums[0].at(values)
        if w.layers is not None and all(d.expr.symbols <= {"d_model", "d_embedding"} for d in w.shape):
            return self._cut(
                frozenset({"n_heads" if "n_heads" in self.trace.symbols else "d_inner"}), devices
            )  # heads as wide as d_model together
        return self._cut(frozenset().union(*(d.symbols for d in w.shape)), devices)

    def _cut(self, symbols: frozenset[str], devices: int) -> Fraction:
        """The share of an array with these sizes: whole heads to a device, inner widths and the vocabulary evenly."""
        for heads in sorted(
            (s for s in symbols if s.endswith("_heads") and not s.startswith(INDEX)), key=lambda s: s != "n_heads"
        ):
            n = self.trace.symbols.get(heads, 1)
            return Fraction(-(-n // devices), n)
        return Fraction(1, devices) if any(s.startswith(EVENLY) for s in symbols) else Fraction(1)

    # --- time -------------------------------------------------------------------------------------------------------

    def bound(
        self,
        accelerator: Accelerator,
        new: int,
        context: int,
        batch: int = 1,
        format: str = "bfloat16",
        item_bytes: int = 2,
        devices: int = 1,
    ) -> Bound:
        """The least time of a step on `devices` of an accelerator that share all work evenly and talk to each other in no time."""
        return roofline(
            self.least_flops(new, context) * batch,
            self.bytes_moved(new, context, batch, format, item_bytes),
            accelerator.peak(FORMATS[format].peak) * devices,
            accelerator.bytes_per_second * devices,
        )

    def critical_batch(
        self,
        accelerator: Accelerator,
        context: int | None,
        format: str = "bfloat16",
        item_bytes: int = 2,
        most: int = 2**20,
    ) -> int | None:
        """The smallest batch at which a decoding step is bound by compute; None where the cache alone keeps it bound by memory.

        Without a context no cache is moved and nothing is scored. Compute grows in proportion to the batch. Bytes grow ever more
        slowly (more experts are read, up to all), so there is one crossing at most.
        """
        peak = accelerator.peak(FORMATS[format].peak)
        if context is None:
            flops, cache = sum(p.total - p.pairs for p in self.flops_by_part(1, 1)), 0
        else:
            flops = self.least_flops(1, context)
            cache = self.cache_bytes_read(1, context, 1, item_bytes) + self.cache_bytes_written(
                1, context, 1, item_bytes
            )

        def is_compute_bound(batch: int) -> bool:  # seconds of compute ≥ seconds of memory
            return (
                flops * batch * accelerator.bytes_per_second
                >= (self.weight_bytes_read(1, batch, format) + cache * batch) * peak
            )

        if not is_compute_bound(most):
            return None
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_compute_bound(middle) else (middle, high)
        return high

    def devices_needed(
        self, accelerator: Accelerator, context: int, batch: int = 1, format: str = "bfloat16", item_bytes: int = 2
    ) -> int:
        """How many of an accelerator hold weights, cache and one decoding step's largest operation, if nothing were copied."""
        return -(-sum(self.inference_bytes(1, context, batch, format, item_bytes).values()) // accelerator.memory_bytes)

    def largest_batch(self, memory_bytes: int, context: int, format: str = "bfloat16", item_bytes: int = 2) -> int:
        """How many texts of `context` tokens fit into the memory beside the weights while they are continued."""
        one = self.inference_bytes(1, context, 1, format, item_bytes)
        return max(0, (memory_bytes - one["weights"]) // (one["cache"] + one["activations"]))

    def _values(self, new: int, context: int) -> Mapping[str, int]:
        return self.counts.values(T=new, S=context)


COMPUTE, MEMORY = "compute", "memory bandwidth"


@dataclass(frozen=True)
class Bound:
    """The least time that a step can take on an accelerator, and which of the two limits it."""

    compute_seconds: Fraction
    memory_seconds: Fraction

    @property
    def seconds(self) -> Fraction:
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def limited_by(self) -> str:
        return COMPUTE if self.compute_seconds >= self.memory_seconds else MEMORY


def roofline(flops: int, bytes_moved: int, peak_flops: int, bytes_per_second: int) -> Bound:
    """No step is faster than its FLOPs at the peak rate, nor than its bytes at the full bandwidth (Williams et al. 2009)."""
    return Bound(Fraction(flops, peak_flops), Fraction(bytes_moved, bytes_per_second))


def fits(
    costs: Iterable[Costs],
    memory_bytes: int,
    context: int,
    batch: int = 1,
    format: str = "bfloat16",
    item_bytes: int = 2,
) -> list[Costs]:
    """The models whose weights, cache and largest operation of one new token fit into that memory."""
    return [c for c in costs if sum(c.inference_bytes(1, context, batch, format, item_bytes).values()) <= memory_bytes]


# Sizes that tensor parallelism cuts evenly.
EVENLY = ("d_ff", "d_expert", "d_shared", "d_inner", "vocab")
# Calls that only move numbers or look at them another way: no array of their own.
VIEWS = frozenset(
    {
        "reshape",
        "transpose",
        "swapaxes",
        "moveaxis",
        "getitem",
        "split",
        "repeat",
        "expand_dims",
        "broadcast_to",
        "astype",
        "concatenate",
        "stack",
        "take",
    }
)
# Calls whose output is their first input, looked at another way.
LOOKS = ("reshape", "transpose", "swapaxes", "moveaxis", "getitem", "split", "repeat", "share_heads")
# Steps and calls whose gradient needs none of their inputs.
KEEPS_NOTHING = VIEWS | {
    "add",
    "subtract",
    "masked",
    "where",
    "share_heads",
    "rotate",
    "rotate_pairs",
    "embed",
    "embed_positions",
    "last_row",
    "arange",
}


@dataclass(frozen=True)
class _Latent:
    """The sizes of latent attention, and the steps that turn queries and averages by the heads' matrices."""

    heads: Dim
    nope: Dim
    value: Dim
    rank: Dim
    reads: tuple[Node, ...]


def _is_matrix(w: Weight) -> bool:
    """Whether one member of a weight is a matrix: norms and biases are not, also where experts' are stacked."""
    one = w.shape[1:] if w.routed is not None and w.members is None else w.shape
    return sum(int(d) > 1 for d in one) > 1


def _format(w: Weight, format: str) -> Format:
    """The format of a weight where matrices are in `format`."""
    return FORMATS[format] if _is_matrix(w) or format == "float32" else FORMATS["bfloat16"]


def _bytes(w: Weight, format: str) -> int:
    return _format(w, format).size(w.shape, int(w.copies))


def _saved(node: Node) -> list[Spec]:
    """The arrays that the steps inside `node` keep for the backward pass: a step without steps inside keeps its inputs."""
    inner = [c for c in node.children if c.children]
    if node.name in KEEPS_NOTHING:
        return []
    if node.name == "softmax":
        return [_origin(x) for x in node.outputs]
    if not inner:
        return [_new_rows(x) for x in node.inputs if _is_data(x) and x.dtype.kind == "f"]
    return [x for child in node.children if child.outputs and child.outputs[0].dtype.kind == "f" for x in _saved(child)]


def _origin(x: Spec) -> Spec:
    """The array that a view looks at."""
    while isinstance(x.source, Node) and x.source.name in LOOKS:
        x = x.source.inputs[0]
    return x


def _is_cache(x: Spec) -> bool:
    """Whether an array is what the cache holds after the step: earlier rows and the new ones."""
    return (
        isinstance(x.source, Node) and x.source.name == "concatenate" and x.source.inputs[0].label.startswith("past ")
    )


def _new_rows(x: Spec) -> Spec:
    """Of rows added to a cache, the new ones."""
    x = _origin(x)
    return _origin(x.source.inputs[-1]) if _is_cache(x) else x


def _distinct(arrays: Iterable[Spec]) -> list[Spec]:
    return list({id(x): x for x in arrays}.values())


def _letters(leaf: Node) -> dict[str, Dim]:
    """The size of each axis of an einsum's subscripts."""
    terms = leaf.note.partition("->")[0].split(",")
    return {letter: d for term, x in zip(terms, leaf.inputs) for letter, d in zip(term, x.shape)}


def _elements(x: Spec, values: Mapping[str, int]) -> int:
    return _size(x).at(values)


def _size(x: Spec) -> Poly:
    """An array's elements."""
    return _shape(tuple(d.expr for d in x.shape))[0]


def _is_paired(x: Spec) -> bool:
    """Whether an array has an axis of queries and one of keys."""
    return _shape(tuple(d.expr for d in x.shape))[1]


@cache
def _shape(axes: tuple[Poly, ...]) -> tuple[Poly, bool]:
    """(elements, whether two axes vary with the text) of a shape: models share many of them."""
    return math.prod(axes, start=Poly.of(1)), sum(p.is_free for p in axes) > 1


@cache
def of(counts: Counts) -> Costs:
    """The costs of a model, with what was already computed of them."""
    return Costs(counts)


def _is_data(x: Spec) -> bool:
    return not isinstance(x.source, Weight) and not x.label.startswith("past ")
