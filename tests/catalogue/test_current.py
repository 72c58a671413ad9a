"""The models of autumn 2026 that were looked for: each is in the catalog, or the page on coverage says why not."""

from macros.catalogue.presets import paths, preset
from macros.engine.files import PACKAGE

# Repositories of the hub.
CATALOGUED = """
humain-ai/ALLaM-7B-Instruct-preview reflection/Beam-1.0-501B-A23B deepseek-ai/DeepSeek-V4.1-Flash
mistralai/Devstral-2-123B-Instruct-2512 mistralai/Devstral-Small-2-24B-Instruct-2512
nvidia/NVIDIA-Nemotron-Labs-Dory1.0-4B-BF16 dots-studio/dots3-note-prev fireworks-ai/ember-1
baidu/ERNIE-4.5-0.3B-PT baidu/ERNIE-4.5-300B-A47B-PT LGAI-EXAONE/EXAONE-3.0-7.8B-Instruct
LGAI-EXAONE/EXAONE-4.5-33B tiiuae/Falcon-H1-3B-Base tiiuae/Falcon-H1-7B-Base google/gemma-4-12B-it
zai-org/GLM-4.1V-9B-Thinking zai-org/GLM-5.3 ibm-granite/granite-4.0-h-1b ibm-granite/granite-4.0-h-tiny
ibm-granite/granite-swash-2b tencent/Hunyuan-4B-Instruct tencent/Hunyuan-7B-Instruct tencent/Hy4-preview
PrimeIntellect/INTELLECT-3 IQuestLab/IQuest-Coder-V1-40B-Instruct autotrust/JEV-9B LGAI-EXAONE/K-EXAONE-236B-A23B
moonshotai/Kimi-K2.7-Code Aleph-Alpha/Kolibri-1 poolside/Laguna-S-2.1 LiquidAI/LFM2-2.6B LiquidAI/LFM2.5-VL-1.6B
LiquidAI/LFM3-VL-2B inclusionAI/Ling-3.0-tiny meta-llama/Llama-3.2-90B-Vision-Instruct
meituan-longcat/LongCat-Flash-Chat XiaomiMiMo/MiMo-V2.5 XiaomiMiMo/MiMo-V2.6-Flash-RL
mistralai/Ministral-3-8B-Base-2512 mistralai/Mistral-Large-4-1T-A52B meta-models/Muse-Spark-Open-816B-A42B
NaiveAI/Naive-N0.5-Flash nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16 allenai/olmOCR-2-7B-1025
ornith-ai/Ornith-1.5-35B-A3B microsoft/Phi-mini-MoE-instruct Qwen/Qwen3-ASR-1.7B Qwen/Qwen3-Embedding-8B
Qwen/Qwen3.8-2.4T-A95B Qwen/Qwen3.8-27B sarvamai/sarvam-105b sarvamai/sarvam-30b upstage/Solar-Open2-250B
stepfun-ai/Step-3.7-Flash arcee-ai/Trinity-Large-Base arcee-ai/Trinity-Nano-Preview mistralai/Voxtral-Mini-3B-2507
NX-AI/xLSTM-7b XingChen-AGI/Xing4.0-29B-A4B
"""
# Names on the page on coverage, of models whose sizes nothing confirms.
MISSING = (
    "Apertus 1.5 8B",
    "Hy4",
    "Inkling 2 Mini",
    "Inkling 2 Small",
    "K-EXAONE 2.0 750B-A37B",
    "Lara 4 Mini",
    "MiMo-V2.6-Pro",
)


def test_each_has_a_preset_or_a_reason():
    known = {name for slug in paths() for name in (preset(slug).hub, *preset(slug).aliases)}
    assert not set(CATALOGUED.split()) - known
    gaps = (PACKAGE.parent / "docs/reference/coverage.md").read_text("utf-8").partition("## Known gaps")[2]
    reasons = [line for line in gaps.replace("\n  ", " ").splitlines() if "not in the catalog" in line]
    assert all("2026)" in line for line in reasons)
    assert not [name for name in MISSING if not any(name in line for line in reasons)]
    assert not {preset(slug).name for slug in paths()} & {*MISSING}
