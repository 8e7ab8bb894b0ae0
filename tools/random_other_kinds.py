"""Kinds of random model folders for random_folders.py: other graphs than Llama's, GPT-NeoX, GPT-J, BLOOM, OPT, T5 and mT5."""
import transformers as t

from random_draw import edit
from random_folder_kinds import act, aliases, change_copies, decoder, encoder_decoder, kind, rename, save, weights
from random_rotary_kinds import positions

ENDS = dict(bos_token_id=2, eos_token_id=3, pad_token_id=0)


def sized(draw, dims):
    n, dim = draw.choice([1, 2, 3]), draw.choice(dims)
    return dict(num_attention_heads=n, hidden_size=n * dim, num_hidden_layers=draw.randint(1, 4), vocab_size=draw.randint(34, 60),
                max_position_embeddings=draw.randint(24, 48), **ENDS)


def causal(draw, folder, name, config):
    """A folder of the decoder whose classes begin with `name`."""
    loaded = getattr(t, name + "ForCausalLM")
    cls = draw.choice([loaded] * 3 + [getattr(t, name + "Model")])
    draw.note(cls.__name__)
    save(draw, weights(draw, cls(config)), folder)
    if cls is not loaded:
        t.GenerationConfig(bos_token_id=2, eos_token_id=3).save_pretrained(folder)
    return loaded


@kind
def gpt_neox(draw, folder):
    fields = {name: draw.choice(values) for name, values in
              dict(use_parallel_residual=[True, False], attention_bias=[True, False], layer_norm_eps=[1e-3],
                   tie_word_embeddings=[True, False]).items() if draw.maybe(0.5)}
    config = t.GPTNeoXConfig(**sized(draw, [8, 16]), intermediate_size=draw.randint(5, 40), hidden_act=act(draw), **fields)
    loaded = causal(draw, folder, "GPTNeoX", config)
    change_copies(draw, folder, [("gpt_neox.embed_in.weight", draw.choice(["embed_out.weight", "lm_head.weight"]))])
    rename(draw, folder, "gpt_neox.")
    fields |= positions(draw, ("rotary_emb_base", "rope_theta"), two_kinds=False)
    if draw.maybe(0.6):
        fields["rotary_pct"] = draw.choice([0.25, 0.3, 0.5, 0.75, 1.0, 1])
    for name in ("rope_parameters", "rope_scaling"):
        if fields.get(name) and draw.maybe(0.5):
            fields[name]["partial_rotary_factor"] = draw.choice([0.25, 0.5, 1.0])
    if draw.maybe(0.2):
        fields["partial_rotary_factor"] = 0.5  # at the top nothing reads it

    def say(saved):
        saved.pop("rope_parameters", None)
        saved.update(fields)
    edit(folder / "config.json", say)
    draw.note(str(fields))
    return decoder(draw, folder, loaded, config.vocab_size, config.max_position_embeddings)


@kind
def gptj(draw, folder):
    n, dim = draw.choice([1, 2, 3]), draw.choice([4, 6, 7, 8, 16])
    fields = {name: draw.choice(values) for name, values in
              dict(tie_word_embeddings=[True, False], n_inner=[None, 9, 30], layer_norm_epsilon=[1e-3]).items() if draw.maybe(0.5)}
    config = t.GPTJConfig(n_embd=n * dim, n_head=n, n_layer=draw.randint(1, 4), n_positions=draw.randint(24, 48),
                          vocab_size=draw.randint(34, 60), activation_function=act(draw),
                          rotary_dim=draw.choice([2, 4, dim - dim % 2]), **ENDS, **fields)
    loaded = causal(draw, folder, "GPTJ", config)
    change_copies(draw, folder, [("transformer.wte.weight", "lm_head.weight")])
    rename(draw, folder, "transformer.")
    aliases(draw, folder, {"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer",
                           "max_position_embeddings": "n_positions"})
    draw.note(f"rotary_dim {config.rotary_dim} of {dim}, {fields}")
    return decoder(draw, folder, loaded, config.vocab_size, config.max_position_embeddings)


@kind
def bloom(draw, folder):
    n, dim = draw.choice([1, 2, 3, 4, 5, 6, 7, 11, 12, 16, 20]), draw.choice([2, 3, 4, 8])
    fields = {name: draw.choice(values) for name, values in
              dict(apply_residual_connection_post_layernorm=[True, True, False], tie_word_embeddings=[True, False],
                   layer_norm_epsilon=[1e-3], pretraining_tp=[1, 2], slow_but_exact=[True, False]).items() if draw.maybe(0.4)}
    config = t.BloomConfig(hidden_size=n * dim, n_head=n, n_layer=draw.randint(1, 4), vocab_size=draw.randint(34, 60), **ENDS, **fields)
    loaded = causal(draw, folder, "Bloom", config)
    change_copies(draw, folder, [("transformer.word_embeddings.weight", "lm_head.weight")])
    rename(draw, folder, "transformer.")
    aliases(draw, folder, {"num_attention_heads": "n_head", "num_hidden_layers": "n_layer"})
    if draw.maybe(0.3, "n_embed"):  # it goes before hidden_size
        edit(folder / "config.json", lambda d: d.update(n_embed=n * dim, hidden_size=draw.choice([n * dim, 64])))
    draw.note(f"{n} heads, {fields}")
    return decoder(draw, folder, loaded, config.vocab_size, draw.randint(24, 48))


@kind
def opt(draw, folder):
    fields = {name: draw.choice(values) for name, values in
              dict(do_layer_norm_before=[True, False], _remove_final_layer_norm=[True, False], enable_bias=[True, False],
                   word_embed_proj_dim=[7, 12, 40], tie_word_embeddings=[True, False]).items() if draw.maybe(0.4)}
    config = t.OPTConfig(**sized(draw, [4, 6, 8]), ffn_dim=draw.randint(5, 40), activation_function=act(draw), **fields)
    loaded = causal(draw, folder, "OPT", config)
    change_copies(draw, folder, [("model.decoder.embed_tokens.weight", "lm_head.weight")])
    rename(draw, folder, "model.")
    draw.note(str(fields))
    return decoder(draw, folder, loaded, config.vocab_size, config.max_position_embeddings)


T5_GROUP = ("shared.weight", "lm_head.weight", "decoder.embed_tokens.weight", "encoder.embed_tokens.weight")
T5_NAMES = {"hidden_size": "d_model", "num_attention_heads": "num_heads", "num_hidden_layers": "num_layers", "head_dim": "d_kv"}


def distances(draw, folder, name):
    """T5 and mT5: of buckets and distances that texts of a dozen tokens reach, too."""
    fields = {field: draw.choice(values) for field, values in
              dict(relative_attention_num_buckets=[4, 8, 12, 32], relative_attention_max_distance=[17, 20, 128],
                   num_decoder_layers=[1, 2, 3], feed_forward_proj=["relu", "gated-gelu", "gelu", "gated-silu", "gated-relu"],
                   layer_norm_epsilon=[1e-3]).items() if draw.maybe(0.5)}
    config = getattr(t, name + "Config")(d_model=draw.randint(5, 24), d_kv=draw.choice([3, 4, 8, 16]), num_heads=draw.choice([1, 2, 3]),
                                         num_layers=draw.randint(1, 3), d_ff=draw.randint(5, 40), vocab_size=draw.randint(34, 60),
                                         decoder_start_token_id=0, dropout_rate=0.0, **fields)

    def say(saved):
        for field in ("dense_act_fn", "is_gated_act"):
            if draw.maybe(0.6):
                saved.pop(field, None)  # as files of before have it
        for field in ("scale_decoder_outputs", "tie_word_embeddings"):
            chosen = draw.choice(["as it is", None, True, False])
            if chosen is None:
                saved.pop(field, None)
            elif chosen != "as it is":
                saved[field] = chosen
                draw.note(f"{field} {chosen}")
    draw.note(str(fields))
    return encoder_decoder(draw, folder, config, getattr(t, name + "ForConditionalGeneration"), getattr(t, name + "Model"),
                           [T5_GROUP], T5_NAMES, say)


@kind
def t5(draw, folder):
    return distances(draw, folder, "T5")


@kind
def mt5(draw, folder):
    return distances(draw, folder, "MT5")
