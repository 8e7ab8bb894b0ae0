"""Kinds of random model folders with rotary positions for random_folders.py: Llama and its kin, and ModernBERT.

The weights do not depend on positions and windows, so that config.json says them after the model was saved: in the
spellings of transformers 4 and 5, in the place where they are read and in others.
"""
import torch
import transformers as t

from random_draw import edit
from random_folder_kinds import act, change_copies, decoder, fills, kind, rename, save, store, stored, tie, weights

FULL, SLIDING = "full_attention", "sliding_attention"


# ---- Positions -------------------------------------------------------------------------------------


def rope(draw):
    """An object of positions, whose type has one of its two names, or both."""
    type_ = draw.pick(default=2, linear=2, dynamic=1, llama3=2, yarn=5)
    fields = {name: type_ for name in draw.choice([["rope_type"], ["rope_type"], ["type"], ["rope_type", "type"]])}
    if draw.maybe(0.5):
        fields["rope_theta"] = draw.choice([30.0, 500.0, 10000.0])
    if type_ == "default":
        return fields
    fields["factor"] = draw.choice([1.0, 2.0, 2.5, 8.0])
    if draw.maybe(0.4):
        fields["original_max_position_embeddings"] = draw.choice([8, 16])
    if type_ == "llama3":
        fields |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    if type_ == "yarn":
        more = {"truncate": [True, False, None], "beta_fast": [2.0, 4.0], "beta_slow": [0.5, 1.0], "factor": [None],
                "attention_factor": [1.3], "mscale": [0.7], "mscale_all_dim": [1.3]}
        fields |= {name: draw.choice(values) for name, values in more.items() if draw.maybe(0.3)}
    return fields


def long_rope(draw, fields, n):
    """Factors of n channels, with which Phi-3 makes longrope of yarn."""
    for name in ("rope_scaling", "rope_parameters"):
        if "yarn" in (fields.get(name) or {}).values() and draw.maybe(0.6, "factors of channels"):
            fields[name] |= {"short_factor": [1.5] * n, "long_factor": [3.0] * n}


def positions(draw, thetas, two_kinds, strict=False):
    """Fields of config.json. thetas: what transformers 4 calls the angles of each kind of layers; strict: transformers
    takes a rope_parameters with an object of each kind and nothing else."""
    fields = {name: draw.choice([40.0, 700.0]) for name in thetas if draw.maybe(0.4)}
    if draw.maybe(0.2):
        fields["original_max_position_embeddings"] = draw.choice([8, 16])
    places = draw.pick(none=1, parameters=4, scaling=3, both=1)
    if places in ("scaling", "both"):
        fields["rope_scaling"] = draw.choice([None, {}] if places == "both" else [rope(draw)])
    if places in ("parameters", "both"):
        fields["rope_parameters"] = rope(draw)
        if two_kinds and (strict or draw.maybe(0.85)):
            objects = {FULL: rope(draw), SLIDING: draw.choice([rope(draw), {"rope_type": "default"}, None][:3 - strict])}
            if not strict and draw.maybe(0.3):
                objects["truncate"] = draw.choice([True, False])
            fields["rope_parameters"] = objects
    if fields:
        draw.note(str(fields))
    return fields


# ---- Windows ---------------------------------------------------------------------------------------


def layer_types(draw, n_layers):
    return {"layer_types": [draw.choice([FULL, SLIDING]) for _ in range(n_layers)]} if draw.maybe(0.3) else {}


def windows(draw, n_layers, *more):
    """Fields of config.json; `more` are functions that draw some of them."""
    fields = {"sliding_window": draw.choice([2, 3, 5, None])} if draw.maybe(0.7) else {}
    for draw_field in more:
        fields |= draw_field(draw, n_layers)
    if fields:
        draw.note(str(fields))
    return fields


def field(name, *values):
    return lambda draw, n_layers: {name: draw.choice(values)} if draw.maybe(0.6) else {}


USES = field("use_sliding_window", True, True, False), field("max_window_layers", 0, 1, 2), layer_types


# ---- Folders ---------------------------------------------------------------------------------------


def sizes(draw, biases, head_dim=True):
    kv_heads, groups, dim = draw.choice([1, 2]), draw.choice([1, 2, 3]), draw.choice([4, 8, 16])
    size = dict(num_attention_heads=kv_heads * groups, num_key_value_heads=kv_heads, num_hidden_layers=draw.randint(1, 4),
                hidden_size=kv_heads * groups * dim, intermediate_size=draw.randint(5, 40), vocab_size=draw.randint(34, 60),
                max_position_embeddings=draw.randint(24, 48), bos_token_id=2, eos_token_id=3, pad_token_id=0, **tie(draw))
    if head_dim:
        size["head_dim"] = draw.choice([dim, 8])
    return size | {name: True for name in biases if draw.maybe(0.4, name)}


def no_biases(draw, folder, config):
    """Biases that the type does not have, asked for and perhaps stored."""
    if not draw.maybe(0.4, "asks for biases"):
        return
    edit(folder / "config.json", lambda d: d.update(attention_bias=True, mlp_bias=True))
    if draw.maybe(0.5, "stores them"):
        rows = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
        rows = {"q_proj": rows[0], "k_proj": rows[1], "v_proj": rows[1], "o_proj": config.hidden_size}
        prefix = "model." if any(name.startswith("model.") for name in stored(folder)) else ""
        store(folder, {f"{prefix}layers.{i}.self_attn.{part}.bias": torch.randn(n) for i in range(config.num_hidden_layers)
                       for part, n in rows.items()})


def rotary(draw, folder, name, fields, size, rounds=True):
    """A folder of the decoder whose classes begin with `name`."""
    loaded = getattr(t, name + "ForCausalLM")
    config = loaded.config_class(**size)
    cls = draw.choice([loaded] * 3 + [getattr(t, name.replace("Gemma3", "Gemma3Text") + "Model")])
    draw.note(cls.__name__)
    save(draw, weights(draw, cls(config)), folder, rounds)
    if cls is not loaded:
        t.GenerationConfig(bos_token_id=2, eos_token_id=3).save_pretrained(folder)
    change_copies(draw, folder, [("model.embed_tokens.weight", "lm_head.weight")])
    rename(draw, folder, "model.")

    def say(saved):
        for old in ("rope_parameters", "layer_types", "sliding_window", "use_sliding_window", "max_window_layers",
                    "no_rope_layers", "no_rope_layer_interval", "_sliding_window_pattern"):
            saved.pop(old, None)
        saved.update(fields)
    edit(folder / "config.json", say)
    if name == "Mistral":
        no_biases(draw, folder, config)
    return decoder(draw, folder, loaded, config.vocab_size, config.max_position_embeddings)


ROTARY = [
    # type, its classes, biases, whether it has head_dim, whether layers are of two kinds, windows
    ("llama", "Llama", ("attention_bias", "mlp_bias"), True, False, None),
    ("mistral", "Mistral", (), True, False, (layer_types,)),
    ("qwen2", "Qwen2", (), False, False, USES),
    ("qwen3", "Qwen3", ("attention_bias",), True, False, USES),
    ("gemma", "Gemma", ("attention_bias",), True, False, None),
    ("gemma2", "Gemma2", ("attention_bias",), True, False, (layer_types,)),
    ("gemma3_text", "Gemma3", ("attention_bias",), True, True, (field("sliding_window_pattern", 2, 3), layer_types)),
    ("smollm3", "SmolLM3", ("attention_bias", "mlp_bias"), False, False, (field("no_rope_layer_interval", 2, 3), *USES[::2])),
    ("olmo2", "Olmo2", ("attention_bias",), False, False, None),
    ("phi3", "Phi3", (), False, False, ()),
]


def add(type_, name, biases, head_dim, two_kinds, slides):
    def write(draw, folder):
        size = sizes(draw, biases, head_dim)
        fields = {} if slides is None else windows(draw, size["num_hidden_layers"], *slides)
        thetas = ("rope_theta", "rope_local_base_freq")[:1 + two_kinds]
        if name != "Phi3":
            fields |= positions(draw, thetas, two_kinds)
        elif draw.maybe(0.4):
            fields |= positions(draw, thetas, two_kinds)
            long_rope(draw, fields, size["hidden_size"] // size["num_attention_heads"] // 2)
        return rotary(draw, folder, name, fields, size, rounds="Gemma" not in name)
    write.__name__ = type_
    kind(write)


for row in ROTARY:
    add(*row)


@kind
def modernbert(draw, folder):
    size = sizes(draw, ("attention_bias", "mlp_bias"), head_dim=False)
    del size["num_key_value_heads"]
    config = t.ModernBertConfig(**size, hidden_activation=act(draw), cls_token_id=2, sep_token_id=3)
    cls = draw.choice([t.ModernBertForMaskedLM] * 3 + [t.ModernBertModel])
    draw.note(cls.__name__)
    save(draw, weights(draw, cls(config)), folder)
    change_copies(draw, folder, [("model.embeddings.tok_embeddings.weight", "decoder.weight")])
    rename(draw, folder, "model.")
    fields = windows(draw, size["num_hidden_layers"], field("local_attention", 1, 4, 7), layer_types,
                     field("global_attn_every_n_layers", 2, 3))
    if fields.get("sliding_window", 0) is None:
        del fields["sliding_window"]
    fields |= positions(draw, ("global_rope_theta", "local_rope_theta"), two_kinds=True, strict=True)

    def say(saved):
        for old in ("rope_parameters", "layer_types", "local_attention"):
            saved.pop(old, None)
        saved.update(fields)
    edit(folder / "config.json", say)
    return fills(draw, folder, config, (cls, t.ModernBertForMaskedLM), ("head.", "decoder."), after_padding=False)
