"""The config of DeepSeek V4.1, and which entries, tables and choices each of its layers has."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..errors import Problem
from ..interface import Mask
from ..ops import Compressed, Full, Rope
from ..ops.ngrams import primes_from
from ..pcg64 import random_integers
from .config import Config, Interval, Positive, Raw, Size, Taps, config, derived, key
from .deepseek_v4 import two_rope_tables
from .rope_config import OLDER_ROPE_KEYS, read_rope

# What a hash reads of a token of an image, and the seed of a layer's hash for its number in the model.
DEAD, SEED_OF_LAYER = -1, 10007
LARGEST = 2**63 - 1


class SharedKind(Struct, frozen=True):
    """A layer's compressed entries in addition to its window, and its table of n-grams, if it has one.

    `every`: the number of tokens per entry, 0 for a window alone. `makes`: entries and their keys are its own, not an
    earlier layer's. `picks`: it chooses among them itself. `proposes`: its choice of blocks bounds that of all later
    layers, which are `bounded`.
    """

    every: int
    makes: bool = False
    picks: bool = False
    proposes: bool = False
    bounded: bool = False
    table: int | None = None

    @property
    def mask(self) -> Mask:
        """The entries that a token sees."""
        return Full() if self.every == 1 else Compressed(self.every)

    def __str__(self) -> str:
        if not self.every:
            reach = "window"
        else:
            way = "own" if self.makes else "indexed" if self.picks else "shared"
            reach = f"{way} {int(self.every)}" + (", blocks" if self.proposes else "")
        return reach + ("" if self.table is None else ", ngrams")


@config
class DeepSeekV41(Config):
    """Hyperparameters of DeepSeek V4.1, in forward order. d_ff_expert is the inner width of one expert."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    image_token: int = key("image_token_id", DEAD)
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-20)
    n_streams: Size = key("hc_mult", 4)
    stream_rounds: Interval = key("hc_sinkhorn_iters", 20)
    stream_floor: float = key("hc_eps", 1e-6)
    # tables of n-grams
    ngram_layers: list[int] = key("engram_layer_ids", lambda c: [])
    table_rows: list[int] = key("engram_num_embeddings", lambda c: [])
    longest_ngram: Taps = key("engram_max_ngram_size", 4)
    ngram_rows: Interval = key("engram_vocab_size", 16_000_000)
    n_ngram_heads: Size = key("engram_n_heads", 8)
    d_ngram_row: Size = key("engram_head_dim", 256)
    ngram_filler: int = key("engram_pad_token_id", 2)
    ngram_ids: Interval = key("engram_compressed_vocab_size", lambda c: int(c.vocab_size))
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = key("head_dim", 512)
    q_lora_rank: Size = key("q_lora_rank")
    qk_rope_head_dim: Size = key("qk_rope_head_dim", 64)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    compressed_theta: Positive = key("compress_rope_theta", 160000.0)
    sliding_window: Size = key("sliding_window", 128)
    ratios: list[int] = key("compress_ratios")
    compressed_by: Size | None = derived(lambda c: c.tokens_per_entry())
    sources: list[int] = key("kv_source_layer_ids")
    pickers: list[int] = key("index_source_layer_ids")
    index_n_heads: Size = key("index_n_heads")
    index_head_dim: Size = key("index_head_dim")
    index_topk: Size = key("index_topk")
    proposer: int = key("candidate_source_layer_id", -1)
    n_proposed_blocks: Size = key("candidate_topk_blocks", 2048)
    proposed_block_size: Size = key("candidate_block_size", 8)
    n_output_groups: Size = key("o_groups")
    o_lora_rank: Size = key("o_lora_rank")
    # experts
    n_experts: Size = key("n_routed_experts")
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_shared_experts: Literal[1] = key("n_shared_experts", 1)
    scoring: Literal["sqrtsoftplus"] = key("scoring_func", "sqrtsoftplus")
    normalise: bool = key("norm_topk_prob", True)
    routed_scale: Positive = key("routed_scaling_factor", 1.5)
    d_ff_expert: Size = key("moe_intermediate_size")
    activation: Literal["silu"] = key("hidden_act", "silu")
    gate_limit: Positive = key("swiglu_limit", 10.0)
    # head
    tied: Literal[False] = key("tie_word_embeddings", False)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset({"attention_bias", "num_key_value_heads", "topk_method", "num_nextn_predict_layers"}) | {
        f"dspark_{name}"
        for name in (
            "block_size",
            "noise_token_id",
            "target_layer_ids",
            "markov_rank",
            "n_routed_experts",
            "num_experts_per_tok",
        )
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The tables for the two rotary embeddings."""
        return two_rope_tables(raw)

    def check(self) -> None:
        self.must_not_exceed("n_experts_per_token", "n_experts")
        self.must_not_exceed("qk_rope_head_dim", "d_head")
        self.must_not_exceed("qk_rope_head_dim", "index_head_dim")
        self.must_divide("n_output_groups", "n_heads")
        for name in ("main", "compress"):
            self.rope(name).turning(self.qk_rope_head_dim)
        if self.index_topk > self.n_proposed_blocks * self.proposed_block_size:
            raise Problem(
                f"index_topk = {int(self.index_topk)} is more than the blocks to choose from hold",
                "correct it, candidate_topk_blocks or candidate_block_size",
            )
        self._check_tables()

    def _check_tables(self) -> None:
        """Raise `Problem` for tables of n-grams that are missing, or smaller than their heads."""
        if len(self.table_rows) != len(self.ngram_layers):
            raise Problem(
                f"engram_num_embeddings has {len(self.table_rows)} entries, engram_layer_ids {len(self.ngram_layers)}",
                "correct one of the two",
            )
        if self.ngram_layers and self.longest_ngram < 2:
            raise Problem(f"engram_max_ngram_size = {self.longest_ngram}: no n-gram is of one token", "give 2 or more")
        for i in range(len(self.ngram_layers)):
            if sum(self.heads_of_table(i)) > self.table_rows[i]:
                raise Problem(
                    f"engram_num_embeddings: {self.table_rows[i]} rows, and the heads of the table have more",
                    "correct it, engram_vocab_size or engram_n_heads",
                )

    def must_run(self) -> None:
        """Raise `Problem` if n-grams are of fewer ids than the vocabulary: the map is made of the tokenizer."""
        super().must_run()
        if self.ngram_layers and self.ngram_ids != self.vocab_size:
            raise Problem(
                f"engram_compressed_vocab_size = {self.ngram_ids}: tokens that are spelled alike share an id, by a map "
                "that no checkpoint holds",
                "the model is counted, and cannot be run here",
            )

    def tokens_per_entry(self) -> int | None:
        """The number of tokens that an entry stands for, if it is more than one. Raises `Problem` for several such
        numbers."""
        found = sorted({every for every in self.ratios[: self.n_layers] if every not in (0, 1)})
        if len(found) > 1 or (found and found[0] < 0):
            raise Problem(f"compress_ratios has {found}", "give 0, 1 and one other number of tokens")
        return found[0] if found else None

    def rope(self, name: str) -> Rope:
        """The rotary embedding of layers with only a window ("main"), or of the others ("compress")."""
        return read_rope(self.rope_parameters, layer_type=name)

    @property
    def kinds(self) -> list[SharedKind]:
        """In order: the entries that a layer looks at, and whose they are."""
        if len(self.ratios) < self.n_layers:
            raise Problem(
                f"compress_ratios has {len(self.ratios)} entries, and num_hidden_layers = {int(self.n_layers)}",
                "correct one of the two",
            )
        found, every_before, is_picked = list[SharedKind](), 0, False
        for i, every in enumerate(self.ratios[: self.n_layers]):
            table = self.ngram_layers.index(i) if i in self.ngram_layers else None
            if not every:
                found.append(SharedKind(0, table=table))
                continue
            makes, picks = i in self.sources, i in self.pickers
            every_before, is_picked = every if makes else every_before, picks or (is_picked and not makes)
            if every_before != every or not is_picked:
                raise Problem(
                    f"layer {i} has no entries of {every} tokens from an earlier layer, or no choice among them",
                    "correct compress_ratios, kv_source_layer_ids or index_source_layer_ids",
                )
            bounded = picks and 0 <= self.proposer < i
            tokens = 1 if every == 1 else self.size("compressed_by")
            found.append(SharedKind(tokens, makes, picks, picks and i == self.proposer, bounded, table))
        return found

    @property
    def n_ngram_columns(self) -> int:
        """The rows of a table that a token reads: some for each length of n-gram."""
        return int(self.n_ngram_heads) * (int(self.longest_ngram) - 1)

    def heads_of_table(self, table: int) -> list[int]:
        """The rows of each head of a table, each a different prime number."""
        per_table = self.n_ngram_columns
        return list(primes_from(int(self.ngram_rows), (table + 1) * per_table)[table * per_table :])

    def multipliers(self, table: int) -> list[int]:
        """The odd numbers that a table's hash multiplies ids with, the newest one's first."""
        most = max(1, LARGEST // self.ngram_ids // 2)
        seed = SEED_OF_LAYER * self.ngram_layers[table]
        return [2 * number + 1 for number in random_integers(seed, most, int(self.longest_ngram))]
