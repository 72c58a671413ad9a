"""The module of each model type and tower, available without importing any. A test compares it with the modules."""

from __future__ import annotations

# A module of `architectures`, and the types that it registers; if none are listed, the type with the same name.
ARCHITECTURES = """
afmoe
albert
alice_ai
apertus: apertus apertus1p5_text
arcee: arcee cosmos3_edge_text
aria: aria_text
axk1
axk2
baichuan
baichuan_m1
bailing_hybrid
bailing_moe: bailing_moe bailing_moe_v2 param2moe sarvam_moe
bailing_moe_linear
bailing_moe_v2_5
bamba
bart: bart blenderbot blenderbot-small m2m_100 marian mbart mvp pegasus plbart
beam
bert: bert bert-generation ernie megatron-bert
bert_decoder: bert_decoder bert_generation_decoder roberta_decoder
big_bird
bigbird_pegasus
biogpt
bitnet
blip: blip_text_model
bloom
blt
chameleon
chatglm
codegen
cohere: cohere cohere2 cohere_compass_text
cohere2_moe
convbert
cpmant
ctrl
dbrx
deberta
deberta_v2: deberta-v2
deepseek: deepseek deepseek_ocr2_text unlimited_ocr_text
deepseek_v2
deepseek_v3: deepseek_v3 glm4_moe_lite kimi_k2 sarvam_mla
deepseek_v32: deepseek_v32 glm_moe_dsa
deepseek_v4
deepseek_v41: deepseek_v41_text
dflash
diffllama
diffusion_gemma: diffusion_gemma_text
distilbert
doge
domino
domyn_edge: domynedge
dory
dots1
dots3_note: dots3_note_text
dspark
eagle
eagle3
electra
encoder_decoder: encoder-decoder
ernie4_5
ernie4_5_moe
ernie4_5_vl_moe: ernie4_5_vl_moe_text
eurobert
evolla
exaone4
exaone_moe
falcon
falcon_h1
flex_olmo
flint
fsmt
gear
gemma
gemma2: gemma2 vaultgemma
gemma3: gemma3 gemma3_text
gemma3n: gemma3n_text
gemma4: gemma4 gemma4_text gemma4_unified gemma4_unified_text
gemma4_assistant: gemma4_assistant gemma4_unified_assistant
git
glm: glm glm4 glm4v_text glm_ocr_text
glm4_moe: glm4_moe glm4v_moe_text
glm5_next: glm5_next_text
gpt1: openai-gpt
gpt2: gpt2 gpt3
gpt2_decoder
gpt_bigcode
gpt_neo
gpt_neox
gpt_neox_japanese
gpt_oss
gptj
granite: TeleFLM granite granite4_vision_text granite_docling_text hyperclovax minicpm
granite_swa: granite_swa granitemoe_swa
granitemoe
granitemoehybrid
granitemoeshared
helium
hrm_text
hunyuan: hunyuan_v1_dense hunyuan_v1_moe hunyuan_vl_text
hunyuan_large: hunyuan
hy_v3
hy_v4: hy_v4 hy_v4_vl_text
idefics
inkling: inkling_text
inkling2: inkling2_text
inkling2_loop: inkling2_loop_text
internlm2
iquest_loopcoder: iquestloopcoder
jamba
jetmoe
k2_horizon
kimi_linear
klear: Klear klear
kolibri1
kosmos2: kosmos_2_5_text_model kosmos_2_text_model
laguna
lara_mini
layoutlm
led
lfm2: lfm2 lfm2_moe
lfm3
lille: lille-130m
llada: Dream llada
llama: PanguEmbedded cwm emu3_text_model exaone internlm internlm3 iquestcoder llama mistral paddleocr_vl_text telechat3
llama4: llama4_text
longcat_flash: longcat_flash longcat_flash_ngram
longcat_flash_sparse
longt5
luke
mamba: falcon_mamba mamba
mamba2
mbart_decoder: mbart_decoder pp_formulanet_text
medusa
mellum
mimo_v2_flash: mimo_v2 mimo_v2_flash
minicpm3
minimax: minimax minimax_m1 minimax_text_01
minimax_m2
minimax_m3: minimax_m3 minimax_m3_text minimax_m3_vl_text
ministral: ministral ministral3
mistral4
mistral_large4: mistral_large4_text
mixtral
mllama: mllama_text_model
mobilebert
modernbert
modernbert_decoder: modernbert-decoder
molmo2: molmo2_text
moshi
mpnet
mpt
muse: muse_glimmer_text muse_spark_text
naive_n05_flash
nanbeige
nanochat
nemotron: jais2 nemotron
nemotron_h: nemotron_h nemotron_h_puzzle
nemotron_nas: deci nemotron-nas
neomme
nllb_moe: nllb-moe
nomic_bert: gte jina_embeddings_v3 new nomic_bert
olmo
olmo2: olmo2 olmo3
olmo_hybrid
olmoe
openelm
openpangu: PanguProMoE pangu_ultra_moe
opt
pegasus_x
persimmon
phi
phi3: phi3 phi3_v phi4_multimodal
phi3small
phimoe
phixtral: phi-msft phixtral
pix2struct: pix2struct_text_model
plamo
plamo3
prophetnet
qwen
qwen2: mimo qwen2 qwen2_5_omni_text qwen2_5_vl_text qwen2_vl_text seed_oss
qwen2_moe
qwen3: qwen3 qwen3_vl qwen3_vl_text
qwen3_moe: qwen3_moe qwen3_omni_moe_text qwen3_vl_moe qwen3_vl_moe_text
qwen3_next: qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_next
qwen4_exp: qwen4_exp_text
recurrent_gemma
rembert
rnj1
roberta: camembert data2vec-text ibert roberta roberta-prelayernorm xlm-roberta xlm-roberta-xl
roc_bert
roformer
rwkv
rwkv7
seamless_m4t: seamless_m4t seamless_m4t_v2
smollm3
solar
solar_open
solar_open2
spark2_5
squeezebert
stablelm: orion stablelm
starcoder2
step1
step3: step3_text
step3p5
step5: step4 step5
t5: mt5 switch_transformers t5 umt5
t5gemma
t5gemma2
talkie
tapas
telechat
trocr
udop
ultrabert
voxtral_realtime: voxtral_realtime_text
whisper
xglm
xing4_0
xlm: flaubert xlm
xlnet
xlstm
xmod
youtu: youtu youtu_llm
zamba
zamba2
zaya
"""

# A module of `towers`, and the tables that it reads: the type of the wrapper config, and the key of the table.
TOWERS = """
aria: aria.vision_config
audioflamingo3: audioflamingo3.audio_config
aya_vision: aya_vision.vision_config
blip: blip.vision_config
blip_2: blip-2.vision_config
chameleon: chameleon.vq_config
clip: llava.vision_config
cohere2_vision: cohere2_vision.vision_config
cosmos3_edge: cosmos3_edge.vision_config
deepseek_ocr2: deepseek_ocr2.vision_config
deepseek_v41: deepseek_v41.vision_config
deepseek_vl: deepseek_vl.vision_config
deepseek_vl_hybrid: deepseek_vl_hybrid.vision_config
deit: vision-encoder-decoder.encoder
diffusion_gemma: diffusion_gemma.vision_config
donut_swin: vision-encoder-decoder.encoder
dots3_note: dots3_note.vision_config
dots3_note_audio: dots3_note.audio_config
emu3: emu3.vq_config
ernie4_5_vl: ernie4_5_vl_moe.vision_config
evolla: evolla.protein_encoder_config
exaone4_5: exaone4_5.vision_config
fast_vlm: fast_vlm.vision_config
florence2: florence2.vision_config
fun_asr_nano: fun_asr_nano.audio_config
fuyu: fuyu.vision_config
gemma3n_audio: gemma3n.audio_config
gemma3n_vision: gemma3n.vision_config
gemma4_audio: gemma4.audio_config
gemma4_unified_audio: gemma4_unified.audio_config
gemma4_unified_vision: gemma4_unified.vision_config
gemma4_vision: gemma4.vision_config
git: git.vision_config
glm4v: glm4v.vision_config glm4v_moe.vision_config glm46v.vision_config glmga.vision_config
glm5_next: glm5_next.vision_config
glm_ocr: glm_ocr.vision_config
glmasr: glmasr.audio_config
got_ocr2: got_ocr2.vision_config pp_chart2table.vision_config
granite4_vision: granite4_vision.vision_config
granite_docling: granite_docling.vision_config
granite_speech: granite_speech.encoder_config
granite_speech_plus: granite_speech_plus.encoder_config
hunyuan_vl: hunyuan_vl.vision_config
hyperclovax_vision_v2: hyperclovax_vision_v2.vision_config
idefics: idefics.vision_config
idefics2: idefics2.vision_config
idefics3: idefics3.vision_config smolvlm.vision_config
inkling: inkling_mm_model.vision_config
inkling2: inkling2.vision_config inkling2_loop.vision_config
inkling_audio: inkling_mm_model.audio_config
instructblip: instructblip.vision_config instructblipvideo.vision_config
internvl: internvl.vision_config
janus: janus.vision_config
kimi_k25: kimi_k25.vision_config
kimi_k3: kimi_k3.vision_config
kosmos_2: kosmos-2.vision_config
kosmos_2_5: kosmos-2.5.vision_config
lfm2_vl: lfm2_vl.vision_config
lfm3_vl: lfm3_vl.vision_config
lighton_ocr: lighton_ocr.vision_config
llama4: llama4.vision_config
llava_next: llava_next.vision_config llava_next_video.vision_config
llava_onevision: llava_onevision.vision_config
minicpm_ocr: minicpm_ocr.vision_config
minicpmv4_6: minicpmv4_6.vision_config minicpmv4_7.vision_config
minimax_m3_vision: minimax_m3_vl.vision_config
mllama: mllama.vision_config
modernvbert: modernvbert.vision_config
molmo2: molmo2.vision_config
moss_transcribe_diarize: moss_transcribe_diarize.audio_config
muse_glimmer: muse_glimmer.vision_config
muse_spark: muse_spark.vision_config
muse_spark_audio: muse_spark.audio_config
musicflamingo: musicflamingo.audio_config
nemotron_h_omni: nemotron_h_omni.vision_config
ovis2: ovis2.vision_config
paddleocr_vl: paddleocr_vl.vision_config
paligemma: paligemma.vision_config
parakeet: nemotron_h_omni.audio_config nemotron_h_omni.sound_config
perception_lm: perception_lm.vision_config
phi4_audio: phi4_multimodal.audio_config
phi4_vision: phi4_multimodal.vision_config
pix2struct: pix2struct.vision_config
pixtral: mistral3.vision_config mistral_large4.vision_config
pp_formulanet: pp_formulanet.vision_config
qianfan_ocr: qianfan_ocr.vision_config
qwen2_5_omni: qwen2_5_omni_thinker.vision_config
qwen2_5_omni_audio: qwen2_5_omni_thinker.audio_config
qwen2_5_vl: qwen2_5_vl.vision_config
qwen2_vl: qwen2_vl.vision_config
qwen3_asr: qwen3_asr.audio_config
qwen3_omni: qwen3_omni_moe_thinker.vision_config
qwen3_omni_audio: qwen3_omni_moe_thinker.audio_config
qwen3_vl: qwen3_vl.vision_config qwen3_vl_moe.vision_config qwen3_5.vision_config qwen3_5_moe.vision_config
qwen3_vl: qwen4_exp.vision_config cohere_compass.vision_config cosmos3_omni.vision_config
seamless_m4t: seamless_m4t.audio_config
seamless_m4t_v2: seamless_m4t_v2.audio_config
siglip: gemma3.vision_config shieldgemma2.vision_config
step3p7: step3p7.vision_config step5_vl.vision_config step3p5v.vision_config step_robotics.vision_config
t5gemma2: t5gemma2.vision_config
udop: udop.vision_config
unlimited_ocr: unlimited_ocr.vision_config
vibevoice_asr: vibevoice_asr.acoustic_tokenizer_encoder_config
video_llama_3: video_llama_3.vision_config
video_llava: video_llava.vision_config
vipllava: vipllava.vision_config
vit: vision-encoder-decoder.encoder
voxtral: voxtral.audio_config
voxtral_realtime: voxtral_realtime.audio_config
whisper: qwen2_audio.audio_config
"""


def by_type(lines: str) -> dict[str, str]:
    """The module of each type."""
    listed = (line.partition(":") for line in lines.split("\n") if line)
    return {name: module for module, _, types in listed for name in types.split() or [module]}


def by_table(lines: str) -> dict[tuple[str, str], list[str]]:
    """The modules of the towers, by the type of the model and the key of the table: several if they differ by type."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in filter(None, lines.split("\n")):
        module, _, tables = line.partition(": ")
        for table in tables.split():
            whole, _, part = table.rpartition(".")
            found.setdefault((whole, part), []).append(module)
    return found


MODULES = by_type(ARCHITECTURES)
TOWER_MODULES = by_table(TOWERS)
