"""A page of each kind, for the tests in a browser and the benchmark of loading; not the longest ones."""

TEXT, OTHER = 150_000, 250_000  # bytes of a first load, compressed, with the fonts
TOOL = 265_000  # with the compiled engine, which counts formats and several devices, too
PLAN = 280_000  # and with the rules of an inference engine (16 kB), the first of its tasks
LIST = 310_000  # and with the sizes of each model in each format that is tried (capacity.json, 42 kB)

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
    "tools/fits/": LIST,
    "tools/plan/": PLAN,
    "tools/what-if/": TOOL,
    "reference/how-it-works/": OTHER,
    "reference/glossary/": OTHER,
    "reference/licence/": TEXT,
    "404.html": TEXT,
}
