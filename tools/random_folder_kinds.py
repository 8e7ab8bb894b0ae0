"""Kinds of random model folders for random_folders.py: BERT and its kin, GPT-2, BART and Marian; see random_rotary_kinds.py, too.

A kind of folder is a function with @kind that writes it and returns a Case.
"""
import dataclasses
import json

import torch
import transformers as t
from safetensors.torch import load_file, save_file

import folder_checks as checks
from fixtures import randomize, vocabulary
from random_draw import edit, odd_value

NO_LIMIT = 1000000000000000019884624838656  # what transformers writes for no limit
KINDS = {}


@dataclasses.dataclass
class Case:
    """A folder, and the comparisons that it must stand: functions of a Tool and a list of notes."""
    drawn: list
    checks: list
    kind: type  # the class of transformers that has all of it
    text: str = ""  # to train it further on


def kind(function):
    KINDS[function.__name__.rstrip("_")] = function
    return function


# ---- Drawing ---------------------------------------------------------------------------------------


ACTIVATIONS = ["gelu"] * 6 + ["gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python", "gelu_accurate",
                              "gelu_python_tanh", "relu", "silu", "swish", "tanh", "quick_gelu", "mish", "relu2"]


def act(draw):
    chosen = draw.choice(ACTIVATIONS)
    if chosen != "gelu":
        draw.note(chosen)
    return chosen


def heads(draw):
    """Width and number of heads."""
    n = draw.choice([1, 2, 3, 4])
    return n * draw.choice([3, 4, 6, 8]), n


def weights(draw, model):
    tables = ("embeddings", "wte", "wpe", "shared", "embed_tokens", "embed_positions", "decoder.weight", "projector.weight",
              "lm_head.weight")
    norms = ("orm.weight", "norm_embedding.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight")
    generator = torch.Generator().manual_seed(draw.getrandbits(40))
    model.double()
    randomize(model, generator, norms=norms, tables=tables, gain=1.0)
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias" and draw.maybe(0.5):
                buffer.copy_(torch.randn(buffer.shape, generator=generator, dtype=torch.float64))
    return model.float()


def tie(draw):
    tied = not draw.maybe(0.3, "untied by config")
    return {} if tied and draw.maybe(0.5) else {"tie_word_embeddings": tied}


# ---- Writing a folder ------------------------------------------------------------------------------


def save(draw, model, folder, rounds=True):
    dtype = draw.choice([torch.float32] * 4 + [torch.float16, torch.bfloat16] * rounds)
    if dtype != torch.float32:
        draw.note(str(dtype).split(".")[1])
    sharded = {"max_shard_size": draw.choice([3000, 20000])} if draw.maybe(0.2, "sharded") else {}
    model.to(dtype).save_pretrained(folder, **sharded)


def stored(folder):
    """All tensors of a folder, and the file of each."""
    where = {}
    for file in sorted(folder.glob("*.safetensors")):
        for name in load_file(file):
            where[name] = file
    return where


def store(folder, tensors, drop=()):
    """Puts tensors in place of those of their names, or into the last file, and drops others."""
    where = stored(folder)
    last = max(where.values())
    for file in set(where.values()):
        state = {n: tensors.get(n, v) for n, v in load_file(file).items() if n not in drop}
        if file == last:
            state |= {n: v for n, v in tensors.items() if n not in where}
        save_file(state, file, metadata={"format": "pt"})
    index = folder / "model.safetensors.index.json"
    if index.exists():
        edit(index, lambda d: d.update(weight_map={n: f.name for n, f in stored(folder).items()}))


def change_copies(draw, folder, groups):
    """Of each group (source, copies), stores copies of the source that are equal or differ, and may drop the source."""
    for source, *copies in groups:
        where = stored(folder)
        if source not in where or not draw.maybe(0.45):
            continue
        value = load_file(where[source])[source]
        more, drop = {}, []
        for name in copies:
            if name in where or not draw.maybe(0.6):
                continue
            differs = draw.maybe(0.6)
            more[name] = value + (torch.randn(value.shape) * 0.3).to(value.dtype) if differs else value.clone()
            draw.note(f"{'other' if differs else 'same'} {name}")
        if more and draw.maybe(0.2, f"no {source}"):
            drop.append(source)
        store(folder, more, drop)


def rename(draw, folder, prefix):
    """Without the prefix of the whole model, as the base class would have it."""
    if not draw.maybe(0.15, "no prefix"):
        return
    for file in set(stored(folder).values()):
        save_file({n.removeprefix(prefix): v for n, v in load_file(file).items()}, file, metadata={"format": "pt"})
    index = folder / "model.safetensors.index.json"
    if index.exists():
        edit(index, lambda d: d.update(weight_map={n: f.name for n, f in stored(folder).items()}))


def aliases(draw, folder, names):
    """Sizes by their general names, which win over the model's own."""
    def change(config):
        for general, own in names.items():
            if not draw.maybe(0.4):
                continue
            config[general] = config[own]
            if draw.maybe(0.5):
                del config[own]
            elif draw.maybe(0.5):
                config[own] = 2 * config[own]
    if draw.maybe(0.15, "general names of sizes"):
        edit(folder / "config.json", change)


def tokenizer(draw, folder, n_rows, reserved=0):
    """vocab.txt, with the words that a text may use; more or fewer tokens than rows."""
    more = draw.choice([0, 0, 0, 0, 1, 2, -1, -3])
    if more:
        draw.note(f"{more:+} tokens")
    tokens = vocabulary(n_rows + more)
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    if draw.maybe(0.6):
        limit = draw.choice([NO_LIMIT, NO_LIMIT, 512, None, 10**400])
        draw.note(f"model_max_length {'10^400' if limit == 10**400 else limit and f'{limit:.3g}'}")
        fields = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
        text = json.dumps(fields | ({} if limit is None else {"model_max_length": 0}))
        (folder / "tokenizer_config.json").write_text(text.replace('"model_max_length": 0', f'"model_max_length": {limit or 0}'))
    return [w for w in tokens[5:min(n_rows, len(tokens)) - reserved] if w.isalnum()], tokens[n_rows:]


def big_integers(draw, folder):
    """Fields that are not needed, beyond 64 bits."""
    for name in ("config.json", "generation_config.json"):
        if (folder / name).exists() and draw.maybe(0.2, f"big integer in {name}"):
            edit(folder / name, lambda d: d.update(nobody_needs=draw.choice([NO_LIMIT, -NO_LIMIT, 2**63, 10**25])))


GENERATION = [
    {}, {}, {}, {"temperature": 0.0}, {"temperature": 0.7}, {"temperature": -1}, {"top_p": 0}, {"top_p": 1.5}, {"top_k": 0},
    {"min_p": 0.1}, {"forced_eos_token_id": [6, 9]}, {"forced_eos_token_id": 6}, {"forced_bos_token_id": 9},
    {"max_length": NO_LIMIT, "max_new_tokens": 9}, {"max_length": 17}, {"max_new_tokens": 5}, {"max_length": 10**18, "max_new_tokens": 7},
    {"repetition_penalty": 1.3}, {"no_repeat_ngram_size": 2}, {"bad_words_ids": [[7], [8, 9]]}, {"typical_p": 0.5}, {"top_h": 0.5},
    {"epsilon_cutoff": 0.1}, {"eta_cutoff": 0.1}, {"suppress_tokens": [7, 8]}, {"begin_suppress_tokens": [8]}, {"max_time": 0.0},
    {"num_beams": 3}, {"num_beams": 3, "length_penalty": 0.5, "early_stopping": True}, {"num_beams": 3, "num_beam_groups": 3},
    {"num_beam_groups": 2}, {"diversity_penalty": 0.5}, {"do_sample": True, "top_k": 1}, {"early_stopping": "maybe"},
    {"do_sample": True, "top_k": 1, "temperature": 0.0}, {"do_sample": True, "top_k": 1, "min_p": 0.2},
    {"do_sample": True, "typical_p": 0.5, "top_k": 1}, {"encoder_no_repeat_ngram_size": 2}, {"encoder_repetition_penalty": 1.5},
    {"exponential_decay_length_penalty": [3, 1.2]}, {"renormalize_logits": True}, {"remove_invalid_values": True},
    {"guidance_scale": 1.5}, {"guidance_scale": 1}, {"token_healing": True}, {"watermarking_config": {}}, {"penalty_alpha": 0.6},
    {"use_cache": False}, {"cache_implementation": "dynamic"}, {"prompt_lookup_num_tokens": 3}, {"eos_token_id": -1},
    {"eos_token_id": [6, -1, 9]}, {"eos_token_id": None}, {"pad_token_id": -1}, {"stop_strings": ["zzz"]}, {"unknown_field": [1, 2]},
    {"num_return_sequences": 2}, {"min_new_tokens": 4}, {"min_length": 6}, {"is_assistant": True}, {"low_memory": True},
    {"forced_decoder_ids": [[1, 7]]}, {"sequence_bias": [[[7], -5.0]]}, {"num_beams": 2, "do_sample": False, "top_p": 0.9},
    {"length_penalty": 40.0}, {"num_beams": 1, "early_stopping": True}, {"decoder_start_token_id": None}, {"bos_token_id": None},
    {"no_repeat_ngram_size": -1}, {"min_length": -1},
]


def generation(draw, folder):
    """generation_config.json with one of many things in it, or none; returns the length to ask for."""
    path = folder / "generation_config.json"
    if draw.maybe(0.2, "no generation_config.json"):
        path.unlink()
        return 12
    fields = draw.choice(GENERATION)
    if fields:
        draw.note(f"generation {fields}")
        edit(path, lambda d: d.update(fields))
    if draw.maybe(0.1, "no eos in generation_config.json"):
        edit(path, lambda d: d.pop("eos_token_id", None))
    return None if {"max_new_tokens"} & fields.keys() else draw.choice([4, 12])


# Fields that published files have, or that older versions read; most of them change nothing.
PUBLISHED = [
    {"gradient_checkpointing": True}, {"use_cache": False}, {"output_past": True}, {"chunk_size_feed_forward": 3}, {"pruned_heads": {}},
    {"position_embedding_type": "absolute"}, {"position_embedding_type": "relative_key"}, {"torchscript": True},
    {"id2label": {"0": "A"}, "label2id": {"A": 0}}, {"num_labels": 5}, {"finetuning_task": "mnli"}, {"prefix": "summarize: "},
    {"task_specific_params": {"text-generation": {"do_sample": True, "max_length": 5}}}, {"num_beams": 4}, {"max_length": 7},
    {"no_repeat_ngram_size": 1}, {"min_length": 9}, {"forced_bos_token_id": 8}, {"length_penalty": 3.0}, {"n_ctx": 5},
    {"summary_type": "first"}, {"is_decoder": False}, {"is_decoder": True}, {"is_encoder_decoder": False}, {"is_encoder_decoder": True},
    {"add_cross_attention": False}, {"tie_encoder_decoder": True}, {"num_key_value_heads": 1}, {"head_dim": 2}, {"sep_token_id": 4},
    {"cls_token_id": 4}, {"bos_token_id": 7}, {"eos_token_id": 8}, {"eos_token_id": [8, 9]}, {"pad_token_id": 6}, {"pad_token_id": None},
    {"pad_token_id": -1}, {"decoder_start_token_id": 5}, {"decoder_start_token_id": None}, {"tokenizer_class": None}, {"dtype": "float16"},
    {"torch_dtype": "bfloat16"}, {"architectures": ["Other"]}, {"architectures": None}, {"auto_map": {"AutoModel": "m.M"}},
    {"transformers_version": "2.0"}, {"attention_dropout": 0.5}, {"layerdrop": 0.5}, {"encoder_layerdrop": 0.9}, {"classifier_dropout": None},
    {"tie_weights_": False}, {"sinusoidal_pos_embds": True}, {"type_vocab_size": 2}, {"layer_norm_eps": 0.1}, {"layer_norm_epsilon": 0.1},
    {"scale_embedding": True}, {"scale_attn_weights": False}, {"attn_implementation": "sdpa"}, {"_attn_implementation": "eager"},
    {"reorder_and_upcast_attn": True}, {"embedding_size": 5}, {"hidden_act": "relu"}, {"activation_function": "silu"}, {"activation": "tanh"},
    {"normalize_before": False}, {"add_final_layer_norm": False}, {"static_position_embeddings": True}, {"initializer_range": 7},
    {"rope_theta": 10000.0}, {"sliding_window": 3}, {"rope_scaling": {"type": "linear", "factor": 2.0}},
    {"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, {"attention_bias": True}, {"original_max_position_embeddings": 9}, {"attention_bias": False}, {"num_hidden_layers": 1}, {"n_layer": 1}, {"d_model": 12},
    {"quantization_config": {"quant_method": "fp8"}}, {"is_causal": False}, {"attention_chunk_size": 3},
    {"transformers_weights": "other.safetensors"}, {"text_config": {"hidden_size": 5}}, {"encoder": {}}, {"hidden_size": 6},
    {"num_attention_heads": 1}, {"n_head": 1}, {"intermediate_size": 3}, {"max_position_embeddings": 9}, {"vocab_size": 33},
]


def odd_fields(draw, folder):
    """config.json with fields that are published, that have odd values, or that are gone."""
    def change(config):
        for _ in range(draw.choice([1, 1, 2])):
            way, name = draw.random(), draw.choice(sorted(config))
            if way < 0.5:
                fields = draw.choice(PUBLISHED)
            elif way < 0.85:
                fields = {name: odd_value(draw, config[name])}
            else:
                draw.note(f"no {name}")
                config.pop(name)
                continue
            draw.note(f"config {fields}")
            config.update(fields)
    edit(folder / "config.json", change)


# ---- Kinds -----------------------------------------------------------------------------------------


def fills(draw, folder, config, classes, head, more=(), after_padding=True):
    """The case of an encoder whose files are written. classes: as saved, and as loaded to compare."""
    saved, loaded = classes
    words, beyond = tokenizer(draw, folder, config.vocab_size)
    big_integers(draw, folder)
    longest = config.max_position_embeddings - (config.pad_token_id or 0 if after_padding else 0) - 4
    text, masked = draw.words(words, 1, longest), draw.words(words, 1, 4) + " [MASK] " + draw.words(words, 0, 3)
    texts = draw.words(words, 1, 5), draw.words(words, 1, 5)
    reference = lambda tool: checks.Reference(loaded, tool.folder)
    tests = [lambda tool, notes: checks.encoder(tool, reference(tool), text)]
    if head:
        tests.append(lambda tool, notes: checks.masked_words(tool, reference(tool), masked, head))
    tests += [lambda tool, notes, c=c: c(tool, *texts) for c in more]
    trains = head and saved.__name__.endswith(("MaskedLM", "ForPreTraining"))
    lines = "\n".join(draw.words(words, 2, 6) for _ in range(12)) if trains else ""
    return Case(draw.drawn, tests + refuses(beyond), loaded, lines)


def encoder(draw, folder, classes, config, groups, prefix, head, names=None, more=()):
    """classes: as saved, one of; as loaded to compare."""
    saved, loaded = classes
    cls = draw.choice(saved)
    draw.note(cls.__name__)
    save(draw, weights(draw, cls(config)), folder)
    change_copies(draw, folder, groups)
    rename(draw, folder, prefix)
    aliases(draw, folder, names or {})
    return fills(draw, folder, config, (cls, loaded), head, more)


def refuses(beyond):
    """A token without a row is refused where a text has it."""
    if not beyond:
        return []
    return [lambda tool, notes: checks.wants_refusal(lambda: tool.json("look", beyond[-1]), ["the model has ids"]) or iter(())]


def bert_sizes(draw):
    width, n = heads(draw)
    return dict(hidden_size=width, num_attention_heads=n, num_hidden_layers=draw.randint(1, 3), intermediate_size=draw.randint(5, 40),
                vocab_size=draw.randint(34, 60), max_position_embeddings=draw.randint(16, 40), hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0, layer_norm_eps=draw.choice([1e-12, 1e-5]))


@kind
def bert(draw, folder):
    config = t.BertConfig(**bert_sizes(draw), hidden_act=act(draw), type_vocab_size=2, **tie(draw))
    return encoder(draw, folder, ([t.BertForPreTraining, t.BertForMaskedLM, t.BertModel, t.BertForSequenceClassification], t.BertForPreTraining),
                   config, [("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
                            ("cls.predictions.bias", "cls.predictions.decoder.bias")], "bert.", ("cls.predictions",),
                   more=[lambda tool, *both: checks.next_sentence(tool, checks.Reference(t.BertForPreTraining, tool.folder), *both)])


@kind
def roberta(draw, folder):
    config = t.RobertaConfig(**bert_sizes(draw), hidden_act=act(draw), type_vocab_size=draw.choice([1, 2]), pad_token_id=draw.choice([0, 1]),
                             **tie(draw))
    return encoder(draw, folder, ([t.RobertaForMaskedLM, t.RobertaForMaskedLM, t.RobertaModel], t.RobertaForMaskedLM), config,
                   [("roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight"), ("lm_head.bias", "lm_head.decoder.bias")],
                   "roberta.", ("lm_head",))


@kind
def distilbert(draw, folder):
    s = bert_sizes(draw)
    config = t.DistilBertConfig(dim=s["hidden_size"], n_heads=s["num_attention_heads"], n_layers=s["num_hidden_layers"],
                                hidden_dim=s["intermediate_size"], vocab_size=s["vocab_size"], activation=act(draw),
                                max_position_embeddings=s["max_position_embeddings"], dropout=0.0, attention_dropout=0.0, **tie(draw))
    return encoder(draw, folder, ([t.DistilBertForMaskedLM, t.DistilBertForMaskedLM, t.DistilBertModel], t.DistilBertForMaskedLM), config,
                   [("distilbert.embeddings.word_embeddings.weight", "vocab_projector.weight")], "distilbert.", ("vocab_",),
                   names={"hidden_size": "dim", "num_attention_heads": "n_heads", "num_hidden_layers": "n_layers"})


@kind
def electra(draw, folder):
    sizes = bert_sizes(draw)
    config = t.ElectraConfig(**sizes, hidden_act=act(draw), embedding_size=draw.choice([sizes["hidden_size"], 7, 12]), **tie(draw))
    if draw.maybe(0.5):
        return encoder(draw, folder, ([t.ElectraForPreTraining], t.ElectraForPreTraining), config, [], "electra.", (),
                       more=[lambda tool, a, b: checks.replaced(tool, checks.Reference(t.ElectraForPreTraining, tool.folder), a)])
    return encoder(draw, folder, ([t.ElectraForMaskedLM, t.ElectraForMaskedLM, t.ElectraModel], t.ElectraForMaskedLM), config,
                   [("electra.embeddings.word_embeddings.weight", "generator_lm_head.weight")], "electra.", ("generator_",))


def decoder(draw, folder, kind, size, length):
    """The case of a model of texts that go on, of `size` rows and texts of at most `length` tokens, whose files are written."""
    words, beyond = tokenizer(draw, folder, size)
    max_new = generation(draw, folder)
    big_integers(draw, folder)
    text, prompt = draw.words(words, 1, length - 3), draw.words(words, 1, 5)
    reference = lambda tool: checks.Reference(kind, tool.folder)
    tests = [lambda tool, notes: checks.causal(tool, reference(tool), text),
             lambda tool, notes: checks.writing(tool, reference(tool), prompt, max_new, notes)]
    lines = "\n".join(draw.words(words, 2, 6) for _ in range(12))
    return Case(draw.drawn, tests + refuses(beyond), kind, lines)


@kind
def gpt2(draw, folder):
    width, n = heads(draw)
    size, length = draw.randint(34, 60), draw.randint(24, 48)
    config = t.GPT2Config(n_embd=width, n_head=n, n_layer=draw.randint(1, 3), n_inner=draw.choice([None, 11, 30]), n_positions=length,
                          vocab_size=size, activation_function=draw.choice(["gelu_new"] * 4 + [act(draw)]), bos_token_id=2, eos_token_id=3,
                          scale_attn_weights=not draw.maybe(0.1, "unscaled"), resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                          scale_attn_by_inverse_layer_idx=draw.maybe(0.1, "scaled by layer"), **tie(draw))
    cls = draw.choice([t.GPT2LMHeadModel] * 3 + [t.GPT2Model])
    draw.note(cls.__name__)
    save(draw, weights(draw, cls(config)), folder)
    if cls is t.GPT2Model:
        t.GenerationConfig(bos_token_id=2, eos_token_id=3).save_pretrained(folder)
    change_copies(draw, folder, [("transformer.wte.weight", "lm_head.weight")])
    rename(draw, folder, "transformer.")
    aliases(draw, folder, {"hidden_size": "n_embd", "max_position_embeddings": "n_positions", "num_attention_heads": "n_head",
                           "num_hidden_layers": "n_layer"})
    return decoder(draw, folder, t.GPT2LMHeadModel, size, length)


def stacks(draw, width):
    fits = [n for n in (1, 2, 3, 4, 6) if width % n == 0]
    return {f"{side}_{field}": value for side in ("encoder", "decoder")
            for field, value in (("layers", draw.randint(1, 3)), ("attention_heads", draw.choice(fits)), ("ffn_dim", draw.randint(5, 40)))}


PAIR_GROUP = ("model.shared.weight", "lm_head.weight", "model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight")


PAIR_NAMES = {"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads", "num_hidden_layers": "encoder_layers"}


def encoder_decoder(draw, folder, config, whole, bare, groups, names=PAIR_NAMES, say=None):
    """say: what else changes config.json."""
    cls = draw.choice([whole] * 3 + [bare])
    draw.note(cls.__name__)
    save(draw, weights(draw, cls(config)), folder)
    if cls is bare:
        t.GenerationConfig(decoder_start_token_id=config.decoder_start_token_id, eos_token_id=config.eos_token_id,
                           pad_token_id=config.pad_token_id).save_pretrained(folder)
    change_copies(draw, folder, groups)
    if cls is whole:
        rename(draw, folder, "model.")
    aliases(draw, folder, names)
    if say:
        edit(folder / "config.json", say)
    rows = config.vocab_size, getattr(config, "decoder_vocab_size", config.vocab_size)
    words, beyond = tokenizer(draw, folder, min(rows))
    max_new = generation(draw, folder)
    big_integers(draw, folder)
    source, target = draw.words(words, 1, 12), draw.words(words, 1, 9)
    reference = lambda tool: checks.Reference(whole, tool.folder)
    tests = [lambda tool, notes: checks.pair(tool, reference(tool), source, target),
             lambda tool, notes: checks.writing(tool, reference(tool), source, max_new, notes)]
    pairs = "\n".join(draw.words(words, 2, 6) + "\t" + draw.words(words, 2, 6) for _ in range(12))
    return Case(draw.drawn, tests + refuses(beyond if rows[0] <= rows[1] else []), whole, pairs)


@kind
def bart(draw, folder):
    width, _ = heads(draw)
    config = t.BartConfig(d_model=width, **stacks(draw, width), vocab_size=draw.randint(34, 60), max_position_embeddings=draw.randint(24, 48),
                          scale_embedding=draw.maybe(0.3, "scaled"), activation_function=act(draw), dropout=0.0, attention_dropout=0.0,
                          activation_dropout=0.0, **tie(draw))
    return encoder_decoder(draw, folder, config, t.BartForConditionalGeneration, t.BartModel, [PAIR_GROUP])


@kind
def marian(draw, folder):
    width, _ = heads(draw)
    size, apart = draw.randint(34, 60), draw.maybe(0.3, "separate words")
    target = draw.randint(34, 60) if apart else size
    start = min(size, target) - 1
    config = t.MarianConfig(d_model=width, **stacks(draw, width), vocab_size=size, max_position_embeddings=draw.randint(24, 48),
                            scale_embedding=draw.maybe(0.5, "scaled"), activation_function=act(draw), dropout=0.0, attention_dropout=0.0,
                            activation_dropout=0.0, pad_token_id=start, decoder_start_token_id=start, decoder_vocab_size=target,
                            share_encoder_decoder_embeddings=not apart, **tie(draw))
    groups = [("model.decoder.embed_tokens.weight", "lm_head.weight") if apart else PAIR_GROUP]
    case = encoder_decoder(draw, folder, config, t.MarianMTModel, t.MarianModel, groups)
    if draw.maybe(0.3, "stored positions"):
        prefix = "" if any(n.startswith("encoder.") for n in stored(folder)) else "model."
        shape = (config.max_position_embeddings, width)
        store(folder, {f"{prefix}{side}.embed_positions.weight": torch.randn(shape) for side in ("encoder", "decoder")})
    return case
