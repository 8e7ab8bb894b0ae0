"""Tiny random models of transformers, with inputs that are padded. A lost mask shows in their logits."""
import inspect

import torch
import transformers as t

N_TOKENS = 99
# The name of a cache, since transformers 5.24 and before.
CACHE = "cache" if "cache" in inspect.signature(t.LlamaModel.forward).parameters else "past_key_values"
_TEXT = dict(vocab_size=N_TOKENS, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             initializer_range=0.3, pad_token_id=0, bos_token_id=1, eos_token_id=2, max_position_embeddings=64)
_GROUPED = dict(_TEXT, num_key_value_heads=2, head_dim=8)
_MIXED = ["sliding_attention", "full_attention"]
_PAIR = dict(vocab_size=N_TOKENS, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
             decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, init_std=0.3, pad_token_id=0,
             bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=None)


def _bert():
    return t.BertForMaskedLM(t.BertConfig(**_TEXT))


def _modernbert():
    return t.ModernBertForMaskedLM(t.ModernBertConfig(
        **_TEXT, local_attention=6, global_attn_every_n_layers=2, cls_token_id=1, sep_token_id=2,
        initializer_cutoff_factor=3.0))


def _gpt2():
    return t.GPT2LMHeadModel(t.GPT2Config(
        vocab_size=N_TOKENS, n_embd=32, n_layer=2, n_head=4, n_positions=64, initializer_range=0.3, pad_token_id=0,
        bos_token_id=1, eos_token_id=2))


def _llama():
    return t.LlamaForCausalLM(t.LlamaConfig(**_GROUPED))


def _qwen3():
    return t.Qwen3ForCausalLM(t.Qwen3Config(**_GROUPED))


def _gemma3():
    return t.Gemma3ForCausalLM(t.Gemma3TextConfig(
        **_GROUPED, sliding_window=5, layer_types=_MIXED, query_pre_attn_scalar=8))


def _gemma2():
    return t.Gemma2ForCausalLM(t.Gemma2Config(
        **_GROUPED, sliding_window=5, layer_types=_MIXED, query_pre_attn_scalar=8, attn_logit_softcapping=3.0))


def _mistral():
    return t.MistralForCausalLM(t.MistralConfig(**_GROUPED, sliding_window=5))


def _gpt_oss():
    made = t.GptOssForCausalLM(t.GptOssConfig(
        **_GROUPED, num_local_experts=4, num_experts_per_tok=2, sliding_window=5, layer_types=_MIXED))
    for layer in made.model.layers:
        torch.nn.init.normal_(layer.self_attn.sinks)
    return made


def _llama4():
    return t.Llama4ForCausalLM(t.Llama4TextConfig(
        **_GROUPED, intermediate_size_mlp=48, num_local_experts=2, num_experts_per_tok=1, attention_chunk_size=5,
        layer_types=["chunked_attention", "full_attention"], no_rope_layers=[1, 0], moe_layers=[]))


def _t5():
    return t.T5ForConditionalGeneration(t.T5Config(
        vocab_size=N_TOKENS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, initializer_factor=1.0,
        pad_token_id=0, eos_token_id=2, decoder_start_token_id=1, relative_attention_num_buckets=8,
        relative_attention_max_distance=12))


def _bart():
    return t.BartForConditionalGeneration(t.BartConfig(**_PAIR, max_position_embeddings=64))


def _vit():
    return t.ViTForImageClassification(t.ViTConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=24, patch_size=6,
        initializer_range=0.3, num_labels=5))


def _whisper():
    return t.WhisperForConditionalGeneration(t.WhisperConfig(
        **_PAIR, num_mel_bins=8, max_source_positions=20, max_target_positions=40, suppress_tokens=None,
        begin_suppress_tokens=None))


DECODERS = {"GPT-2": _gpt2, "Llama": _llama, "Qwen3": _qwen3, "Gemma 3": _gemma3, "Gemma 2": _gemma2,
            "Mistral": _mistral, "gpt-oss": _gpt_oss, "Llama 4": _llama4}
ENCODERS = {"BERT": _bert, "ModernBERT": _modernbert}
PAIRS = {"T5": _t5, "BART": _bart}
OTHERS = {"ViT": _vit, "Whisper": _whisper}
ALL = {**ENCODERS, **DECODERS, **PAIRS, **OTHERS}
WINDOWS = {"ModernBERT", "Gemma 3", "Gemma 2", "Mistral", "gpt-oss"}


def make(name, implementation="eager"):
    """A model, the same at each call."""
    torch.manual_seed(7)
    made = ALL[name]().eval()
    for part in made.modules():  # T5's own rule makes its biases small
        if isinstance(part, torch.nn.Embedding) and part.embedding_dim == 4:
            torch.nn.init.normal_(part.weight)
    if name == "gpt-oss":
        made.set_experts_implementation("eager")  # the other one has no float64
    made.set_attn_implementation(implementation)
    return made


def padding(side, n=3, length=12):
    """[n, length] of 1 for tokens and 0 for padding; the first row has none."""
    made = torch.ones(n, length, dtype=torch.long)
    for row, n_left, n_right in ((1, 2, 2), (2, 5, 4)):
        if side == "left":
            made[row, :n_left] = 0
        elif side == "right":  # fewer than a window: each query of a decoder sees a key
            made[row, length - n_right:] = 0
    return made


def ids(n=3, length=12, seed=1):
    return torch.randint(3, N_TOKENS, (n, length), generator=torch.Generator().manual_seed(seed))


def inputs(name, side="none"):
    """(keywords of a call, [batch, len] of the places whose logits count)."""
    mask = padding(side)
    if name == "ViT":
        pixels = torch.randn(3, 3, 24, 24, generator=torch.Generator().manual_seed(1))
        return {"pixel_values": pixels}, None
    if name == "Whisper":
        features = torch.randn(3, 8, 40, generator=torch.Generator().manual_seed(1))
        return {"input_features": features, "decoder_input_ids": ids(seed=2), "decoder_attention_mask": mask}, mask
    if name in PAIRS:
        return {"input_ids": ids(), "attention_mask": mask, "decoder_input_ids": ids(length=9, seed=2)}, None
    return {"input_ids": ids(), "attention_mask": mask}, mask
