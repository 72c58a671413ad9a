"""Adding a correct preset is adding one file: every test that reads the catalogue passes as it is."""

import subprocess
import sys
from string import Template

import pytest
from copies import environment, whole

PRESET = Template("""name = "$name"
family = "$family"
organization = "Nobody"
released = $released

$rest
[sources]
config = "$source"
verified = 2026-11-21
""")
CONFIG = Template("""[config]
model_type = "$model_type"
hidden_size = $D
intermediate_size = $F
num_hidden_layers = $L
num_attention_heads = $N
num_key_value_heads = $K
vocab_size = $V
max_position_embeddings = 16384
rms_norm_eps = 1e-6
rope_theta = 250000.0
""")
EXPERTS = "num_local_experts = 12\nnum_experts_per_tok = 3\n"
TOTAL = '\n[published]\nparameters = 502_375_488\nexact = true\nsource = "this test"\n'


def preset(name: str, family: str, released: str, config: str = "") -> str:
    source = "this test" if config else "not disclosed by the maker"
    return PRESET.substitute(name=name, family=family, released=released, rest=config, source=source)


def config(model_type: str, D: int, F: int, L: int, N: int, K: int, V: int, more: str = "") -> str:
    return CONFIG.substitute(model_type=model_type, D=D, F=F, L=L, N=N, K=K, V=V) + more


NEW = {
    # Families that are there: a model among others, one that is larger than all and new, one that is smaller and old.
    "llama/novel-3b": preset("Novel 3B", "Llama", "2025-03-14", config("llama", 2560, 6912, 30, 20, 4, 50432)),
    "llama/novel-2t": preset("Novel 2T", "Llama", "2026-10-14", config("llama", 32768, 131072, 128, 256, 8, 50432)),
    "qwen/novel-5m": preset("Novel 5M", "Qwen", '"2017"', config("qwen2", 64, 172, 2, 4, 1, 40960)),
    # A family of its own: an exact total, experts, nothing disclosed.
    "novel/novel-0.5b": preset("Novel 0.5B", "Novel", '"2025"', config("qwen2", 1216, 3392, 26, 19, 1, 40960, TOTAL)),
    "novel/novel-8b": preset(
        "Novel 8B", "Novel", '"2025-06"', config("mixtral", 1920, 5120, 22, 15, 5, 40960, EXPERTS)
    ),
    "novel/novel-x": preset("Novel X", "Novel", "2026-01-02"),
}


@pytest.mark.share(18, of="copies of the project")
@pytest.mark.slow("the tests of the catalogue, in a copy with new presets")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("room", ["catalogue", "counting", "views"])
def test_new_presets_break_no_test(tmp_path, room):
    folder = whole(tmp_path, "tests", "pyproject.toml", ".taplo.toml")
    for name, text in NEW.items():
        path = folder / f"macros/presets/{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    # The cases of the new presets, and every test with a case of the others.
    for chosen in (["-k", "novel"], ["--few", "1"]):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", "-n0", "-m", "quick", *chosen, f"tests/{room}"],
            cwd=folder,
            env=environment(PYTHONPATH=str(folder), CI=""),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        assert room != "catalogue" or "novel" not in chosen or all(name.split("/")[1] in done.stdout for name in NEW)
