"""The caches of transformers and of mlx-lm, as they hold them: `python -m tests.reference.caches`, from the repository,
writes `tests/golden/caches.json`.

    pip install -e '.[reference]' 'mlx[cpu]' mlx-lm

Small models of the golden configs, with random weights, read a prompt and then a token at a time. Written down are the
bytes that the arrays of the cache occupy (of transformers their storages, which a view keeps whole): after the prompt,
and after two more tokens.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import golden

FILE = Path(__file__).parent.parent / "golden" / "caches.json"
NAMES = """
    llama qwen3 qwen3_moe gemma2 gemma3_text gemma4_text_moe gpt_oss phi3 mistral mixtral deepseek_v2_lite
    deepseek_v3 cohere2 exaone4 olmo3 mamba mamba2 falcon_h1 jamba lfm2 qwen3_next granitemoehybrid llama4_text
    starcoder2 gpt_neox glm4_moe deepseek_v32 minicpm3 glm4_moe_lite kimi_linear
""".split()
PROMPTS = (3, 37, 300)


def of_transformers(raw: dict[str, Any], prompt: int) -> list[int]:
    """Bytes of its dynamic cache in float32."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

    config = AutoConfig.for_model(**raw)
    config._experts_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    cache = DynamicCache(config=config)
    found: list[int] = []
    with torch.no_grad():
        for tokens in (prompt, 1, 1):
            ids = torch.ones((1, tokens), dtype=torch.long)
            cache = model(input_ids=ids, past_key_values=cache, use_cache=True).past_key_values
            storages = {}
            for layer in cache.layers:
                for value in vars(layer).values():
                    for tensor in value.values() if isinstance(value, dict) else (value,):
                        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                            storage = tensor.untyped_storage()
                            storages[storage.data_ptr()] = storage.nbytes()
            found.append(sum(storages.values()))
    return [found[0], found[2]]


def of_mlx(raw: dict[str, Any], prompt: int) -> list[int]:
    """Bytes of its prompt cache in float32."""
    import mlx.core as mx
    from mlx_lm.generate import generate_step
    from mlx_lm.models.cache import make_prompt_cache
    from mlx_lm.utils import _get_classes

    kind, arguments = _get_classes(raw)
    model = kind(arguments.from_dict(raw))
    cache = make_prompt_cache(model)
    steps = generate_step(mx.ones((prompt,), dtype=mx.int32), model, max_tokens=3, prompt_cache=cache)
    found: list[int] = []
    for _ in steps:
        mx.eval([c.state for c in cache])
        found.append(sum(c.nbytes for c in cache))
    return [found[0], found[-1]]


def main() -> None:
    made: dict[str, Any] = {}
    for name in NAMES:
        try:
            raw = dict(golden(name).raw)
        except Exception as error:
            print(name, "no golden config", error)
            continue
        for engine, measure in (("transformers", of_transformers), ("mlx", of_mlx)):
            try:
                made.setdefault(engine, {})[name] = {str(n): measure(raw, n) for n in PROMPTS}
            except Exception as error:
                print(engine, name, type(error).__name__, str(error)[:150], flush=True)
        print(name, {engine: rows.get(name) for engine, rows in made.items()}, flush=True)
    rows = [
        f'"{engine}": {{\n' + ",\n".join(f" {json.dumps(n)}: {json.dumps(v)}" for n, v in found.items()) + "\n}"
        for engine, found in made.items()
    ]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
