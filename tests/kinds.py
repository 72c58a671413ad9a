"""A page of each kind, for the tests in a browser and the benchmark of loading; not the longest ones."""

TEXT, OTHER = 150_000, 250_000  # bytes of a first load, compressed, with the fonts

KINDS = {
    "": OTHER,
    "costs/": TEXT,
    "costs/kv-cache/": OTHER,
    "model-size/": OTHER,
    "what-happens/": OTHER,
    "what-happens/attention-deep-dive/": OTHER,
    "life-of-a-tensor/": OTHER,
    "real-numbers/step-by-step/": OTHER,
    "checked-claims/": OTHER,
    "models/": OTHER,
    "models/gallery/": OTHER,
    "models/atlas/": OTHER,
    "models/llama/": OTHER,
    "models/gpt/gpt2/": OTHER,
    "models/claude/claude-3-opus/": TEXT,
    "tools/fits/": OTHER,
    "tools/plan/": OTHER,
    "tools/what-if/": OTHER,
    "reference/how-it-works/": OTHER,
    "reference/glossary/": OTHER,
    "reference/licence/": TEXT,
    "404.html": TEXT,
}
