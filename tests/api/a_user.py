"""A program that uses the Python API. The type checker reads it (test_python_page.py); nobody runs it."""

from pathlib import Path
from typing import assert_type

import every_parameter as ep

m = ep.load("llama3-8b")
assert_type(m, ep.Model)
ep.load(Path("config.json"))
ep.load({"model_type": "gpt2", "n_embd": 48})
assert_type(m.parameters, ep.Parameters)
assert_type(m.parameters.total, ep.Quantity)
assert_type(m.parameters.total + 1, int)
assert_type(m.parameters.stored, int)
assert_type(m.parameters.tensors, ep.Table)
assert_type(m.kv_cache(context=32768, batch=2, dtype="fp8"), ep.Quantity)
assert_type(m.flops(context=4096, new_tokens=4096).unit, str)
assert_type(m.memory(weights="fp8").to_csv(), str)
assert_type(m.what_if(n_layers=64), ep.Model)
assert_type(m.formula.symbols, dict[str, int])
assert_type(m.diagram, ep.Picture)
assert_type(ep.models(family="Llama"), ep.Table)
assert_type(ep.compare(m, "gpt2", on="h100"), ep.Comparison)
assert_type(ep.fits(m, on="24GB"), ep.Fit)
assert_type(ep.fits(["gpt2", m], on="24GB"), ep.Table)
assert_type(ep.fits(on="24GB"), ep.Choices)
assert_type(ep.fits(m), ep.Choices)
assert_type(ep.run("capitals", "The capital of France is").tokens, list[int])
for row in m.parameters.patterns:
    print(row["tensor"])
try:
    m.kv_cache(context="4096")  # pyright: ignore[reportArgumentType]
    m.parameters.totl.rows()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    ep.fits()  # pyright: ignore[reportCallIssue]
except ep.Problem as problem:
    print(problem)
