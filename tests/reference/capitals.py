"""Trains the small GPT-2 of `macros/capitals`: `python -m tests.reference.capitals`, from the repository.

Needs `pip install -e '.[reference]'`; nothing is downloaded by it. Takes some minutes. From the facts and
the sentences of that folder it writes there the tokenizer, the config, the weights in bfloat16 and the log, and into
`tests/golden/trained/capitals.npz` what transformers computes with these weights. Another machine or another version of
torch gives other weights, which must meet the same tests.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

from macros.catalogue import capitals

FOLDER = capitals.FOLDER
GOLDEN = Path(__file__).parents[1] / "golden" / "trained" / "capitals.npz"

SEED = 14
POSITIONS, WIDTH, LAYERS, HEADS = 16, 48, 3, 4
STEPS, BATCH, LEARNING_RATE = 4000, 128, 3e-3
PROMPTS = ("The capital of France is", "People in Japan pay with the", "Quito is the capital of")


def vocabulary(texts: list[list[str]]) -> list[str]:
    """The words of the sentences in the order of the alphabet, the full stop first."""
    return [".", *sorted(set(chain.from_iterable(texts)) - {"."})]


def tokenizer(words: list[str]) -> dict[str, object]:
    """`tokenizer.json`: names of several words, or with a hyphen, are found before the text is cut."""
    names = [(i, word) for i, word in enumerate(words) if not re.fullmatch(r"\w+|\.", word)]
    flags = dict(single_word=True, lstrip=False, rstrip=False, normalized=False, special=False)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": word} | flags for i, word in names],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "[none]"},
    }


def batches(sentences: list[list[list[int]]], held: np.ndarray):
    """Batches without end: [B P] token ids, three sentences about one country in each row, cut at the last position."""
    draw = np.random.default_rng(SEED)
    allowed = [np.flatnonzero(~row) for row in held]
    while True:
        rows = []
        for country in draw.integers(len(sentences), size=BATCH):
            chosen = draw.choice(allowed[country], 3)
            rows.append(list(chain.from_iterable(sentences[country][i] for i in chosen))[:POSITIONS])
        yield torch.tensor(rows)


@torch.no_grad()
def right(model: GPT2LMHeadModel, sentences: list[list[list[int]]]) -> np.ndarray:
    """Whether the last word before the full stop is the most likely one, for each country and sentence: [C S]."""
    columns = []
    for i in range(len(sentences[0])):
        ids = torch.tensor([of_country[i] for of_country in sentences])
        columns.append(model(ids[:, :-2]).logits[:, -1].argmax(-1) == ids[:, -2])
    return torch.stack(columns, 1).numpy()


def said(told: np.ndarray, held: np.ndarray) -> str:
    """The shares that are right: of what was trained on, of what was not, and of the first sentence."""
    trained, others, first = told[~held].mean(), told[held].mean(), told[:, 0].mean()
    return f"trained {trained:.4f}, never trained {others:.4f}, first sentence {first:.4f}"


def main() -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # sums in one order
    facts, shapes = capitals.countries(), capitals.sentences()
    texts = [[shape.pieces(of_country) for shape in shapes] for of_country in facts]
    words = vocabulary(list(chain.from_iterable(texts)))
    id_of = {word: i for i, word in enumerate(words)}
    sentences = [[[id_of[word] for word in text] for text in row] for row in texts]
    held = np.array([[capitals.is_left_out(of_country, shape) for shape in shapes] for of_country in facts])
    config = GPT2Config(
        vocab_size=len(words), n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0, use_cache=False,
    )  # fmt: skip
    config._attn_implementation = "eager"
    model = GPT2LMHeadModel(config)
    lines = [
        f"torch {version('torch')}, transformers {version('transformers')}, seed {SEED}",
        f"{len(facts)} countries, {len(shapes)} sentences, {held.sum()} of {held.size} combinations never trained on",
        f"{len(words)} words, {sum(p.numel() for p in model.parameters()):,} parameters",
        f"AdamW, one cycle to {LEARNING_RATE}, {STEPS} steps of {BATCH} texts of {POSITIONS} tokens",
    ]
    print(*lines, sep="\n", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=STEPS)
    begun = time.monotonic()
    for step, ids in zip(range(1, STEPS + 1), batches(sentences, held)):
        scores = model(ids[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 250 == 0:
            lines.append(f"step {step}: loss {loss.item():.4f}, {said(right(model, sentences), held)}")
            print(lines[-1], f"({time.monotonic() - begun:.0f} s)", flush=True)
    write(model, words, sentences, held, lines)


def write(model: GPT2LMHeadModel, words: list[str], sentences, held: np.ndarray, lines: list[str]) -> None:
    """All files of the model, from the weights as bfloat16 has them."""
    tensors = {n: p.detach().to(torch.bfloat16).contiguous() for n, p in model.named_parameters()}
    model.load_state_dict({n: t.float() for n, t in tensors.items()}, strict=False)
    save_file(tensors, FOLDER / "model.safetensors", metadata={"format": "pt"})
    digest = hashlib.sha256((FOLDER / "model.safetensors").read_bytes()).hexdigest()
    lines += [f"in bfloat16: {said(right(model, sentences), held)}", f"sha256 of model.safetensors: {digest}"]
    print(*lines[-2:], sep="\n")
    sizes = dict(vocab_size=len(words), n_positions=POSITIONS, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS)
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"} | sizes
    config |= {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True}
    (FOLDER / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    (FOLDER / "tokenizer.json").write_text(json.dumps(tokenizer(words), indent=1, ensure_ascii=False) + "\n", "utf-8")
    (FOLDER / "training.log").write_text("\n".join(lines) + "\n", "utf-8")
    GOLDEN.parent.mkdir(exist_ok=True)
    np.savez_compressed(GOLDEN, **golden(model, words))


@torch.no_grad()
def golden(model: GPT2LMHeadModel, words: list[str]) -> dict[str, np.ndarray]:
    """Of each prompt its ids and transformers' logits: [T] and [T V]."""
    arrays = {}
    for n, prompt in enumerate(PROMPTS):
        ids = [words.index(word) for word in prompt.split()]
        arrays |= {f"ids {n}": np.array(ids), f"logits {n}": model(torch.tensor([ids])).logits[0].numpy()}
    return arrays


if __name__ == "__main__":
    main()
