"""The modules without weights of transformers' models, by type: activations, dropouts, tables of rotations.

A program that looks for modules by name, such as PEFT, finds these too. Written by `tests/reference/weightless.py`: the
types, and the last two parts of the names, with `*` for a number.
"""

from __future__ import annotations

# ruff: noqa: E501
_LISTED = """\
xlm: *.act
idefics: *.act self_attn.rotary_emb mlp.act_fn cross_attn.rotary_emb *.act_cross_attn *.act_dense
bart bigbird_pegasus biogpt blenderbot blenderbot-small led mbart mbart_decoder mvp opt pegasus plbart trocr whisper: *.activation_fn
pp_formulanet_text: *.activation_fn model.encoder
longt5 mt5 t5 udop umt5: *.dropout DenseReluDense.dropout DenseReluDense.act encoder.dropout decoder.dropout
switch_transformers: *.dropout mlp.dropout mlp.act expert_0.dropout expert_0.act expert_1.dropout expert_1.act expert_2.dropout expert_2.act expert_3.dropout expert_3.act expert_4.dropout expert_4.act encoder.dropout decoder.dropout
distilbert: .activation embeddings.dropout attention.dropout ffn.dropout ffn.activation .mlm_loss_fct
gpt_neox_japanese: attention.attention_dropout mlp.act gpt_neox_japanese.rotary_emb
rwkv: attention.time_shift feed_forward.time_shift
muse_glimmer_text: embed_tokens.embed_norm self_attn.qk_norm mlp.act_fn model.rotary_emb model.perception_emb_norm
muse_spark_text: embed_tokens.embed_norm self_attn.qk_norm self_attn.o_norm mlp.act_fn *.post_attention_layernorm gate.scoring_function experts.act_fn model.rotary_emb model.perception_emb_norm
modernbert: embeddings.drop *.attn_norm attn.out_drop mlp.act mlp.drop model.rotary_emb head.act
modernbert-decoder: embeddings.drop *.attn_norm attn.out_drop mlp.act mlp.drop model.rotary_emb lm_head.act
albert: embeddings.dropout attention.attention_dropout attention.output_dropout *.activation *.dropout predictions.activation
squeezebert: embeddings.dropout attention.dropout attention.softmax attention.matmul_qk attention.matmul_qkv post_attention.dropout intermediate.act output.dropout pooler.activation transform.transform_act_fn
mpnet: embeddings.dropout attn.dropout attention.dropout intermediate.intermediate_act_fn output.dropout
luke: embeddings.dropout entity_embeddings.dropout self.dropout output.dropout intermediate.intermediate_act_fn pooler.activation transform.transform_act_fn .loss_fn
gte: embeddings.dropout gte.rotary_emb *.post_attention_dropout *.post_mlp_dropout mlp.act_fn mlp.dropout
nomic_bert: embeddings.dropout nomic_bert.rotary_emb *.post_attention_dropout *.post_mlp_dropout mlp.act_fn transform.transform_act_fn
big_bird: embeddings.dropout output.dropout intermediate.intermediate_act_fn bert.activation transform.transform_act_fn
jina_embeddings_v3: embeddings.dropout roberta.rotary_emb *.post_attention_dropout *.post_mlp_dropout mlp.activation_fn
mobilebert: embeddings.dropout self.dropout intermediate.intermediate_act_fn bottleneck.dropout transform.transform_act_fn
bert-generation bert_generation_decoder camembert data2vec-text git roberta roberta-prelayernorm roberta_decoder xlm-roberta xlm-roberta-xl: embeddings.dropout self.dropout output.dropout intermediate.intermediate_act_fn
xmod: embeddings.dropout self.dropout output.dropout intermediate.intermediate_act_fn en_XX.adapter_act_fn de_DE.adapter_act_fn zh_CN.adapter_act_fn
electra: embeddings.dropout self.dropout output.dropout intermediate.intermediate_act_fn generator_predictions.activation
encoder-decoder layoutlm: embeddings.dropout self.dropout output.dropout intermediate.intermediate_act_fn pooler.activation transform.transform_act_fn
rembert: embeddings.dropout self.dropout output.dropout intermediate.intermediate_act_fn predictions.activation
bert bert_decoder blip_text_model ernie megatron-bert roc_bert roformer tapas: embeddings.dropout self.dropout output.dropout intermediate.intermediate_act_fn transform.transform_act_fn
deberta-v2: embeddings.dropout self.pos_dropout self.dropout output.dropout intermediate.intermediate_act_fn conv.dropout transform.transform_act_fn
deberta: embeddings.dropout self.pos_dropout self.dropout output.dropout intermediate.intermediate_act_fn transform.transform_act_fn
convbert: embeddings.dropout self.unfold self.dropout output.dropout intermediate.intermediate_act_fn generator_predictions.activation
ibert: embeddings.embeddings_act1 embeddings.embeddings_act2 LayerNorm.activation embeddings.output_activation embeddings.dropout self.query_activation self.key_activation self.value_activation self.output_activation self.dropout self.softmax output.ln_input_act output.output_activation output.dropout intermediate.intermediate_act_fn intermediate.output_activation *.pre_intermediate_act *.pre_output_act
fsmt m2m_100 marian pegasus_x: encoder.embed_positions *.activation_fn decoder.embed_positions
nllb-moe: encoder.embed_positions *.attn_dropout ffn.dropout ffn.act *.ff_dropout expert_0.dropout expert_0.act expert_1.dropout expert_1.act expert_2.dropout expert_2.act expert_3.dropout expert_3.act expert_4.dropout expert_4.act expert_5.dropout expert_5.act experts.token_dropout decoder.embed_positions *.activation_fn
longcat_flash: experts.act_fn experts.identity_expert *.act_fn model.rotary_emb
qwen3_moe qwen3_omni_moe_text qwen3_vl_moe_text: experts.act_fn mlp.act_fn model.rotary_emb
flex_olmo granitemoe minimax_m2 mixtral olmoe phimoe: experts.act_fn model.rotary_emb
qwen2_moe: experts.act_fn shared_expert.act_fn mlp.act_fn model.rotary_emb
lara_mini qwen3_5_moe_text qwen4_exp_text: experts.act_fn shared_expert.act_fn model.rotary_emb
aria_text kolibri1 solar_open: experts.act_fn shared_experts.act_fn model.rotary_emb
hunyuan_v1_moe: experts.act_fn shared_mlp.act_fn model.rotary_emb
granitemoehybrid: experts.act_fn shared_mlp.activation mamba.act
granitemoeshared: experts.act_fn shared_mlp.activation model.rotary_emb
granitemoe_swa: experts.act_fn shared_mlp.activation model.rotary_emb model.rotary_embs
bamba falcon_h1: feed_forward.act_fn mamba.act model.rotary_emb
prophetnet: feed_forward.activation_fn
mpt: ffn.act *.resid_attn_dropout
gpt_neox: gpt_neox.emb_dropout *.post_attention_dropout *.post_mlp_dropout mlp.act gpt_neox.rotary_emb
zamba: mamba.act feed_forward.act_fn
jamba: mamba.act feed_forward.act_fn experts.act_fn
zamba2: mamba.act feed_forward.act_fn model.rotary_emb
mamba mamba2: mixer.act
nemotron_h: mixer.act experts.act_fn shared_experts.act_fn mixer.fc1_latent_proj mixer.fc2_latent_proj mixer.act_fn
falcon_mamba: mixer.act mixer.dt_layernorm mixer.b_layernorm mixer.c_layernorm
starcoder2: mlp.act model.rotary_emb
emu3_text_model stablelm: mlp.act_fn *.dropout model.rotary_emb
olmo: mlp.act_fn *.input_layernorm *.post_attention_layernorm model.norm model.rotary_emb
evolla: mlp.act_fn adapter.dropout ff.activation model.rotary_emb
glm5_next_text: mlp.act_fn attn_hc.input_norm ffn_hc.input_norm shared_experts.act_fn model.hc_head
hy_v4 hy_v4_vl_text: mlp.act_fn attn_hc.input_norm ffn_hc.input_norm shared_experts.act_fn model.rotary_emb hc_head.input_norm
beam mellum mimo_v2_flash: mlp.act_fn experts.act_fn model.rotary_emb
flint qwen3_next: mlp.act_fn experts.act_fn shared_expert.act_fn model.rotary_emb
inkling_text kimi_linear: mlp.act_fn experts.act_fn shared_experts.act_fn
axk1 bailing_hybrid cohere2_moe deepseek_ocr2_text deepseek_v2 deepseek_v3 deepseek_v32 dots1 dots3_note_text ernie4_5_moe exaone_moe glm4_moe glm4_moe_lite glm4v_moe_text glm_moe_dsa hy_v3 laguna mistral4 step3p5 unlimited_ocr_text: mlp.act_fn experts.act_fn shared_experts.act_fn model.rotary_emb
ernie4_5_vl_moe_text: mlp.act_fn experts.act_fn shared_experts.act_fn model.rotary_emb spatial_linear.act_fn temporal_linear.act_fn
blt: mlp.act_fn local_encoder.rotary_emb global_transformer.rotary_emb local_decoder.rotary_emb patcher.rotary_emb
axk2: mlp.act_fn mlp.activation_fn experts.act_fn shared_experts.act_fn model.rotary_emb
t5gemma: mlp.act_fn mlp.dropout *.dropout encoder.dropout encoder.rotary_emb decoder.dropout decoder.rotary_emb
t5gemma2: mlp.act_fn mlp.dropout *.dropout text_model.dropout text_model.rotary_emb multi_modal_projector.avg_pool decoder.dropout decoder.rotary_emb
arcee bitnet chameleon cohere cohere2 cohere_compass_text cwm doge ernie4_5 eurobert exaone4 gemma gemma2 gemma3_text granite helium hunyuan_v1_dense hunyuan_vl_text hyperclovax internlm3 iquestcoder jais2 llama minicpm3 ministral ministral3 mistral mllama_text_model nemotron olmo2 olmo3 olmo_hybrid qwen2 qwen2_5_omni_text qwen2_5_vl_text qwen2_vl_text qwen3 qwen3_5_text qwen3_vl_text seed_oss smollm3 vaultgemma youtu: mlp.act_fn model.rotary_emb
ultrabert: mlp.act_fn model.rotary_emb head.act_fn .decoder
granite4_vision_text: mlp.act_fn model.rotary_emb model.layerwise_projectors *.dropout qformer.dropout output.dropout intermediate_query.intermediate_act_fn output_query.dropout
molmo2_text: mlp.act_fn model.rotary_emb model.rotary_emb_unscaled
granite_swa: mlp.act_fn model.rotary_emb model.rotary_embs
voxtral_realtime_text: mlp.act_fn model.rotary_emb multi_modal_projector.act model.time_embedding
paddleocr_vl_text: mlp.act_fn model.rotary_emb projector.act
afmoe: mlp.act_fn shared_experts.act_fn experts.act_fn model.rotary_emb
granite_docling_text: mlp.act_fn text_model.rotary_emb
jetmoe: mlp.activation model.rotary_emb
phi3: mlp.activation_fn *.resid_attn_dropout *.resid_mlp_dropout model.rotary_emb
phi4_multimodal: mlp.activation_fn *.resid_attn_dropout *.resid_mlp_dropout model.rotary_emb model.embed_dropout
phi: mlp.activation_fn *.resid_dropout model.rotary_emb model.embed_dropout
glm glm4 glm4v_text glm_ocr_text: mlp.activation_fn model.rotary_emb
cosmos3_edge_text: mlp.activation_fn model.rotary_emb projector.act_fn
inkling2_text: mlp_input.norm k_proj.norm v_proj.norm experts.act_fn gate.score_fn attention_input.norm norm.l2_clip norm.log_scale final_input.norm .logit_softcap
inkling2_loop_text: mlp_input.norm k_proj.norm v_proj.norm experts.act_fn gate.score_fn attention_input.norm norm.l2_clip norm.log_scale q_message_gate.norm k_message_gate.norm v_message_gate.norm mlp_message_gate.norm final_input.norm message_input.norm .logit_softcap
xlstm: mlstm_layer.ogate_act_fn mlstm_layer.mlstm_backend ffn.act_fn
xglm: model.embed_positions *.activation_fn
kosmos_2_5_text_model kosmos_2_text_model: model.embed_positions ffn.activation_fn
lfm2_moe: model.pos_emb
apertus apertus1p5_text gpt_oss lfm2 lfm3 minimax_m3_vl_text: model.rotary_emb
hrm_text: model.rotary_emb mlp.act_fn *.input_layernorm *.post_attention_layernorm L_module.final_norm H_module.final_norm
mistral_large4_text: multi_modal_projector.act mlp.act_fn experts.act_fn shared_experts.act_fn model.rotary_emb
neomme: patch_embeddings.act_fn model.rotary_emb model.embedding_norm model.final_norm self_attn.q_norm self_attn.k_norm mlp.act_fn *.input_layernorm *.post_attention_layernorm
xlnet: rel_attn.dropout ff.dropout ff.activation_function *.dropout transformer.dropout
zaya: router_mlp.act_fn experts.act_fn model.rotary_emb
falcon: self_attention.attention_dropout mlp.act transformer.rotary_emb
bloom: self_attention.attention_dropout mlp.gelu_impl
pix2struct_text_model: self_attention.dropout encoder_decoder_attention.dropout DenseReluDense.dropout DenseReluDense.act mlp.dropout .dropout
cpmant: self_attention.softmax self_attention.dropout w_in.act ffn.dropout
minimax: self_attn.act_fn experts.act_fn model.rotary_emb
persimmon: self_attn.attention_dropout mlp.act *.dropout model.rotary_emb
diffllama: self_attn.groupnorm mlp.act_fn model.rotary_emb
deepseek_v4: self_attn.q_b_norm gate.score_fn experts.act_fn shared_experts.act_fn attn_hc.input_norm ffn_hc.input_norm compressor.rotary_emb indexer.rotary_emb model.rotary_emb hc_head.input_norm
nanochat: self_attn.q_norm self_attn.k_norm mlp.activation_fn *.input_layernorm *.post_attention_layernorm model.norm model.rotary_emb
llama4_text: self_attn.qk_norm feed_forward.activation_fn experts.act_fn shared_expert.activation_fn model.rotary_emb
moshi: self_attn.rotary_emb mlp.activation_fn
gemma3n_text gemma4_text: self_attn.v_norm mlp.act_fn *.act_fn model.rotary_emb
gemma4_unified_text: self_attn.v_norm mlp.act_fn model.rotary_emb
diffusion_gemma_text: self_attn.v_norm mlp.act_fn router.norm experts.act_fn model.rotary_emb decoder.rotary_emb self_conditioning.post_norm self_conditioning.act_fn
recurrent_gemma: temporal_block.act_fn mlp_block.act_fn temporal_block.rotary_emb
seamless_m4t seamless_m4t_v2: text_encoder.embed_positions *.attn_dropout ffn.dropout ffn.act *.ffn_dropout text_decoder.embed_positions *.activation_fn
gpt_neo: transformer.drop attention.attn_dropout attention.resid_dropout mlp.act mlp.dropout
gpt2_decoder: transformer.drop attn.attn_dropout attn.resid_dropout crossattention.attn_dropout crossattention.resid_dropout mlp.act mlp.dropout
gpt2 openai-gpt: transformer.drop attn.attn_dropout attn.resid_dropout mlp.act mlp.dropout
gpt_bigcode: transformer.drop attn.resid_dropout mlp.act mlp.dropout
codegen gptj: transformer.drop attn.resid_dropout mlp.act mlp.dropout transformer.rotary_emb
ctrl: transformer.dropout *.dropout1 *.dropout2
dbrx: transformer.rotary_emb mlp.activation_fn
"""


def _by_type(lines: str) -> dict[str, tuple[str, ...]]:
    listed = (line.partition(": ") for line in lines.split("\n") if line)
    return {name: tuple(modules.split()) for types, _, modules in listed for name in types.split()}


WEIGHTLESS = _by_type(_LISTED)
