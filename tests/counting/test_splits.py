"""Splits over devices: which there are, and what the fullest device holds, each by hand."""

from __future__ import annotations

import math

import pytest
from reference.configs import all_configs

from macros.catalogue import presets
from macros.counting.accelerators import accelerator
from macros.counting.conditions import Conditions
from macros.counting.costs import Costs
from macros.counting.costs import of as costs_of
from macros.counting.links import transfers
from macros.counting.splits import Split

# One of each mechanism: fused and padded, latents, an indexer, experts by name and stacked, groups, recurrences, shared
# blocks, an encoder.
SLUGS = (
    "gpt2 llama3-70b phi-4 deepseek-v3.2 deepseek-v4-flash mixtral-8x7b dbrx gpt-oss-20b qwen3-next-80b-a3b mamba-2.8b "
    "rwkv-4-169m nemotron-3-nano-30b-a3b falcon-h1-0.5b zamba2-7b kimi-linear-48b-a3b inkling-975b t5-base"
).split()


def of(slug: str) -> Costs:
    return costs_of(presets.model(slug).counts)


def made(**config) -> Costs:
    return costs_of(presets.make("made", config).counts)


# --- by hand ----------------------------------------------------------------------------------------------------------

LLAMA = dict(D=8192, L=80, F=28672, V=128256, N=64, K=8, H=128)


@pytest.mark.parametrize(
    "devices, queries, keys", [(1, 64, 8), (2, 32, 4), (4, 16, 2), (8, 8, 1), (16, 4, 1), (64, 1, 1)]
)
def test_llama_3_70b_by_hand(devices, queries, keys):
    """64 query heads are cut, 8 key/value heads are cut down to one and then copied; 128,256 tokens need no padding."""
    D, L, F, V, H = (LLAMA[k] for k in "DLFVH")
    layer = 2 * D * queries * H + 2 * D * keys * H + 3 * D * F // devices
    costs = of("llama3-70b")
    assert costs.devices.splits(devices)[0] == Split(tensor=devices)
    assert costs.devices.split_weight_bytes(devices) == 2 * (2 * V * D // devices + L * layer + (2 * L + 1) * D)
    assert costs.devices.split_cache_bytes(1000, devices) == 1000 * L * 2 * keys * H * 2


def test_llama_3_70b_is_not_split_by_what_divides_nothing():
    costs = of("llama3-70b")
    assert costs.devices.tensors == [1, 2, 4, 8, 16, 32, 64] and costs.devices.stages == [
        1,
        2,
        4,
        5,
        8,
        10,
        16,
        20,
        40,
        80,
    ]
    assert [n for n in range(1, 17) if costs.devices.splits(n)] == [1, 2, 4, 5, 8, 10, 16]
    assert costs.devices.splits(5) == [Split(pipeline=5)] and costs.devices.splits(8)[0] == Split(tensor=8)
    assert costs.device_bytes(Conditions(4096, devices=7)) is None and costs.devices.split_weight_bytes(7) is None


def test_stages_by_hand():
    """Over five stages the first has the input table, the last the head and the last norm; 16 layers each."""
    D, L, F, V, N, K, H = (LLAMA[k] for k in "DLFVNKH")
    layer = 2 * D * N * H + 2 * D * K * H + 3 * D * F + 2 * D
    costs, five = of("llama3-70b"), Split(pipeline=5)
    assert costs.devices._stage_weights(five, "bfloat16") == [
        2 * (L // 5 * layer + more) for more in (V * D, 0, 0, 0, V * D + D)
    ]
    assert costs.devices._stage_cache(five, 1000, 2) == [1000 * L // 5 * 2 * K * H * 2] * 5
    assert costs.devices.split_bytes(five, Conditions(1000, 3))["cache"] == 3 * 1000 * L // 5 * 2 * K * H * 2


@pytest.mark.parametrize("tensor", [2, 8])
def test_a_table_of_ngrams_is_cut_by_rows(tensor):
    """Qwen3.8 Flash Next by hand, as vLLM's Qwen4ExpPLELayer: the projections are copied, the rows found are summed."""
    D, streams, rows, row, each = 2560, 4, 320_001_536, 160, 16
    costs, split = of("qwen3.8-flash-next"), Split(tensor=tensor)
    parts = [(w.name, shape) for _, w, shape, _, _ in costs.devices.parts_by_stage(split) if ".ple." in w.name]
    shapes = {name.partition(".ple.")[2].removesuffix(".weight"): shape for name, shape in parts}
    assert shapes["ple_embedding.ngram_embedding"] == [rows // tensor, row]
    assert (shapes["key_proj"], shapes["value_proj"]) == ([streams * D, each * row], [D, each * row])
    [sums] = [t for t in transfers(costs, split, 3, Conditions(99)) if t.after == "ngram_embedding"]
    assert (sums.times, sums.total) == (1, 2 * (tensor - 1) * 3 * each * row * 2)


def test_a_token_reads_a_few_rows_of_a_table_of_ngrams():
    """Qwen3.8 Flash Next: a token reads 16 rows of 160 numbers in 16 bits, besides its row of the embedding."""
    costs = of("qwen3.8-flash-next")
    more = costs.traffic.weight_bytes_read(1, 5, least=True) - costs.traffic.weight_bytes_read(1, 1, least=True)
    assert more == 4 * (16 * 160 + 2560) * 2 and costs.traffic.weight_bytes_read(1, 1) < 16e9


@pytest.mark.parametrize("tensor", [2, 4])
def test_tables_of_ngrams_at_the_input_count_as_looked_up(tensor):
    """LongCat-Flash-Lite by hand, as vLLM's NgramEmbedding: six tables of a row per token, maps that are copied."""
    raw = all_configs()["longcat_flash_ngram"]
    costs, V, D, n, size = made(**raw), 61, 48, 6, int(0.9 * 61) + 1
    rows, counts = [size + 2 * i for i in range(n)], costs.counts
    assert sum(int(w.count) for w in counts.ngram_tables) == sum(rows) * D // n
    assert counts.active - counts.active_excluding_input_embedding == sum(rows) * D // n + V * D
    more = costs.traffic.weight_bytes_read(1, 3, least=True) - costs.traffic.weight_bytes_read(1, 1, least=True)
    assert more == 2 * (D + n * D // n) * 2
    split = Split(tensor=tensor)
    shapes = {
        w.name: shape for _, w, shape, _, _ in costs.devices.parts_by_stage(split) if "ngram_embeddings" in w.name
    }
    for i in range(n):
        assert shapes[f"model.ngram_embeddings.embedders.{i}.weight"][1] == D // n
        assert shapes[f"model.ngram_embeddings.embedders.{i}.weight"][0] * tensor >= rows[i]
        assert shapes[f"model.ngram_embeddings.post_projs.{i}.weight"] == [D, D // n]
    [sums] = [t for t in transfers(costs, split, 3, Conditions(9)) if t.after == "ngram_embedding"]
    assert sums.total == 2 * (tensor - 1) * 3 * D * 2


def test_stages_take_turns_at_a_token():
    """Five stages write one text no faster than one device would, and five texts or a prompt five times as fast."""
    costs, h100 = of("llama3-70b"), accelerator("h100")
    one, five = (Conditions(4096, devices=n, accelerator=h100) for n in (1, 5))
    assert costs.bound(1, five).seconds == costs.bound(1, one).seconds
    assert costs.bound(4096, five).seconds == costs.bound(4096, one).seconds / 5
    more = (Conditions(4096, 7, devices=n, accelerator=h100) for n in (5, 1))
    assert 5 * costs.bound(1, next(more)).seconds == costs.bound(1, next(more)).seconds


def deepseek(attention: int, rest: int, experts: int) -> int:
    """Elements of DeepSeek-V3 on a device, with attention, other matrices and routed experts cut over so many."""
    D, Q, C, R, N, F, E, V = 7168, 1536, 512, 64, 128, 2048, 256, 129280
    heads = N // attention * (Q * (128 + R) + C * (128 + 128) + 128 * D)
    latents = D * Q + Q + D * (C + R) + C
    layer = heads + latents + 2 * D
    sparse = E // experts * 3 * D * F + 3 * D * F // rest + E * D
    return 61 * layer + 3 * 3 * D * 18432 // rest + 58 * sparse + 2 * V * D // rest + D


def test_deepseek_v3_by_hand():
    """16 devices: 8 heads and 16 experts each, latents copied; or split by sequences, all heads and 4 of 64 texts."""
    costs, given = of("deepseek-v3"), Conditions(4096, 64, "bfloat16")
    rows = 61 * (512 + 64) * 4096 * 2
    tensor, sequences = Split(tensor=16, expert=16), Split(data=16, expert=16)
    assert (
        costs.devices.splits(16, 64)[0] == tensor
        and sequences in costs.devices.splits(16, 64)
        and not costs.devices.splits(9, 64)
    )
    cut, copied = costs.devices.split_bytes(tensor, given), costs.devices.split_bytes(sequences, given)
    assert (cut["weights"], cut["cache"]) == (2 * deepseek(16, 16, 16), 64 * rows)
    assert (copied["weights"], copied["cache"]) == (2 * deepseek(1, 1, 16), 4 * rows)
    assert copied["activations"] == costs.devices.split_bytes(Split(), Conditions(4096, 4, "bfloat16"))["activations"]


def test_the_least_split_of_deepseek_v3():
    """64 texts of 4,096 tokens in FP8 on H100: its bytes would need nine, its sizes take 8 or 16."""
    costs, h100 = of("deepseek-v3"), accelerator("h100")
    given = Conditions(4096, 64, "fp8", accelerator=h100)
    assert costs.devices.least_split(given, h100.memory_bytes) == Split(tensor=16, expert=16)
    assert costs.devices.least_split_by_sequences(given, h100.memory_bytes) == Split(data=16, expert=16)
    assert costs.devices_needed(given) == 16
    assert sum(costs.devices.split_bytes(Split(8, 8), given).values()) > h100.memory_bytes


@pytest.mark.parametrize("devices, queries, keys", [(1, 32, 2), (2, 16, 1), (8, 4, 1), (32, 1, 1)])
def test_fewer_key_value_heads_than_devices(devices, queries, keys):
    """ChatGLM's 2 key/value heads: on 32 devices there are 16 copies of each."""
    costs = made(
        model_type="llama", hidden_size=256, num_hidden_layers=3, num_attention_heads=32, num_key_value_heads=2,
        head_dim=8, intermediate_size=96, vocab_size=100, rms_norm_eps=1e-5, tie_word_embeddings=True,
    )  # fmt: skip
    rows = 100 if devices == 1 else 128 // devices
    assert costs.devices.tensors == [1, 2, 4, 8, 16, 32]
    layer = 2 * 256 * 8 * (queries + keys) + 3 * 256 * 96 // devices + 2 * 256
    assert costs.devices.split_weight_bytes(devices) == 2 * (rows * 256 + 3 * layer + 256)
    assert costs.devices.split_cache_bytes(10, devices) == 10 * 3 * 2 * keys * 8 * 2


def test_mamba_by_hand():
    """The inner width is cut, with its convolution and state; what all channels share is cut along that width too."""
    D, I, N, R, K, L = 2560, 5120, 16, 160, 4, 64
    inner = 2 * I * D + I * K + I + (R + 2 * N) * I + I * R + I + I * N + I + D * I
    padded = 50304  # the next multiple of 64 after 50,280
    costs = of("mamba-2.8b")
    assert costs.devices.splits(4)[0] == Split(tensor=4)
    assert costs.devices.split_weight_bytes(4) == 2 * (padded * D // 4 + L * (inner // 4 + D) + D)
    assert costs.devices.split_cache_bytes(10**6, 4) == L * (K * I * 2 + I * N * 4) // 4


def test_gpt_oss_by_hand():
    """8 devices: 4 of 32 experts with their biases, 8 of 64 query heads with their sinks, one key/value head."""
    D, F, L, E, V = 2880, 2880, 24, 32, 201088
    heads = (8 + 2) * 64 * D + (8 + 2) * 64 + 8 + 8 * 64 * D
    experts = E // 8 * (D * 2 * F + 2 * F + F * D + D)
    copied = D + 2 * D + E * D + E  # the bias of the output projection, norms, the router
    costs = of("gpt-oss-20b")
    assert costs.devices.splits(8)[0] == Split(tensor=8, expert=8)
    assert costs.devices.split_weight_bytes(8) == 2 * (2 * V * D // 8 + L * (heads + experts + copied) + D)
    assert costs.devices.split_cache_bytes(128, 8) == 128 * L * 2 * 64 * 2


def test_a_vocabulary_is_padded_and_experts_stay_whole():
    gpt2, mixtral = of("gpt2"), of("mixtral-8x7b")
    assert gpt2.devices.tensors == [1, 2, 3, 4, 6, 12] and gpt2.devices.splits(8)[0] == Split(tensor=4, pipeline=2)
    assert gpt2.devices.split_weight_bytes(3) == 2 * (
        math.ceil(50257 / 192) * 192 // 3 * 768
        + 1024 * 768
        + 12 * (12 * 768 * 768 // 3 + 4 * 768 // 3 + 9 * 768)
        + 1536
    )
    assert mixtral.devices.splits(16)[0] == Split(tensor=16, expert=8), (
        "8 experts over 16 devices: two share the width of one"
    )
    assert mixtral.devices.splits(3) == [] and mixtral.devices.splits(3, 64) == [], (
        "8 experts over 3 groups of sequences"
    )


def test_state_space_groups_divide_or_are_one():
    """Nemotron 3 Nano has 8 groups, Falcon H1 one, which each device copies."""
    assert of("nemotron-3-nano-30b-a3b").devices.tensors[-1] == 8
    falcon = of("falcon-h1-0.5b")
    state, convolution = 24 * 64 * 128 * 4 // 8, 4 * (24 * 64 // 8 + 2 * 128) * 2
    assert falcon.devices.split_cache_bytes(0, 8) == 36 * (state + convolution)


# --- for any model ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", SLUGS)
def test_all_devices_together_hold_the_whole_copies_and_padding_besides(slug):
    """Of each weight the parts are the whole as often as it is copied; only the vocabulary has rows more."""
    costs = of(slug)
    stages = costs.devices.stages[-1]
    splits = [s for n in costs.devices.tensors[-3:] for s in costs.devices.splits(n)] + costs.devices.splits(stages)
    for split in splits:
        cuts, routed = costs.devices._local(split)
        for w in costs.counts.weights:
            shape, members = costs.devices._part(w, split, cuts, routed)
            parts = math.prod(shape) * members * split.tensor * split.data
            whole = math.prod(map(int, w.shape)) * int(w.members or 1)
            names = {s for d in w.shape for s in d.expr.symbols}
            if names & {"vocab_size", "per_layer_vocab_size"} and w.routed is None:
                assert 0 <= parts // split.data - whole < 64 * split.tensor * whole // max(map(int, w.shape)), w.name
            elif names & {"n_kv_heads", "n_groups"} or any(n.endswith("kv_heads") for n in names):
                assert whole <= parts <= whole * split.tensor * split.data, w.name
            else:
                assert parts % whole == 0 and parts // whole in (
                    1,
                    split.data,
                    split.width,
                    split.tensor * split.data,
                ), w.name
    held = costs.devices._stage_weights(Split(pipeline=stages), "float32")
    beside = [
        w
        for w, layers in costs.devices._placed
        if w.layers is None
        for _ in {layer * stages // costs.devices.n_layers for layer in layers}
    ]
    again = [w for w in costs.counts.weights if w.layers is None]
    copies = sum(4 * int(w.count) for w in beside) - sum(4 * int(w.count) for w in again)
    assert sum(held) == costs.weight_bytes("float32") + copies
    assert sum(costs.devices._stage_cache(Split(pipeline=stages), 999, 2)) == costs.counts.cache_bytes(999)


@pytest.mark.exhaustive
def test_every_model_is_split_by_what_its_heads_divide_by():
    for slug in presets.paths():
        if presets.preset(slug).config is not None:
            costs = of(slug)
            sizes = costs.counts.values()
            assert all(sizes.get("n_heads", n) % n == 0 for n in costs.devices.tensors), slug
