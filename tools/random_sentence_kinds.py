"""Folders of sentence-transformers for random_tokenizers.py, and the comparison of their vectors."""
import json
import pathlib
import shutil
import tempfile

import numpy
import torch
import transformers as t
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules as m

import random_tokenizer_kinds as tokenizers
from fixtures import randomize
from random_draw import edit

KINDS = {}
MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
OLD = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken",
       "mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "weightedmean": "weightedmean_tokens"}


def kind(function):
    KINDS[function.__name__] = function
    return function


# ---- The comparison ----------------------------------------------------------------------------------


def reference(folder, texts, names):
    """Vectors of each text alone, behind each prompt; a text that is too long for the model is None."""
    try:
        model = SentenceTransformer(str(folder), device="cpu")
    except BaseException as error:
        return None, f"{type(error).__name__} {error}".split("\n")[0], None
    vectors = {}
    for name in names:
        if name and name not in model.prompts:
            continue
        vectors[name] = []
        for text in texts:
            try:
                vectors[name].append(model.encode([text], prompt_name=name)[0])
            except BaseException:
                vectors[name].append(None)
    return vectors, "", model.get_embedding_dimension()


def ours(options, folder, texts, name):
    with tempfile.TemporaryDirectory() as place:
        lines, out = pathlib.Path(place) / "texts.txt", pathlib.Path(place) / "v.npy"
        lines.write_text("".join(text + "\n" for text in texts), encoding="utf-8")
        words = ["embed", "--model", str(folder), "--file", str(lines), "-o", str(out), "--truncate", "--quiet"]
        _, err = tokenizers.run(options, words + (["--prompt", name] if name else []), [])
        return (numpy.load(out), "") if out.exists() else (None, err)


def comparison(folder, texts_of, names):
    def compare(options, draw):
        texts = [text for text in texts_of(draw, options.texts) if not set(text) & set("\n\r\0")]
        wanted, complaint, dim = reference(folder, texts, names)
        worst = 0
        for name in wanted or {None: None}:
            got, refusal = ours(options, folder, texts, name)
            if got is None:
                if not refusal.startswith("qkv: ") or len(refusal.splitlines()) != 1:
                    return "DIFFERS", f"no refusal in a line: {refusal!r}"
                return "refused" if wanted is not None else "unread", refusal.replace(str(folder), "…")
            if wanted is None:
                return "lenient", complaint[:160]
            for text, a, b in zip(texts, wanted[name], got):
                if a is None:
                    continue
                if len(a) != len(b):
                    return "DIFFERS", f"{len(a)} numbers, not {len(b)}"
                a, b = numpy.asarray(a, dtype=numpy.float64), b.astype(numpy.float64)
                odd = ~(numpy.isfinite(a) & numpy.isfinite(b))
                with numpy.errstate(invalid="ignore"):
                    off = numpy.abs(a - b)[~odd].max(initial=0) / max(numpy.abs(a[~odd]).max(initial=0), 1e-6)
                if off > 1e-4 or not numpy.array_equal(a[odd], b[odd], equal_nan=True):
                    return "DIFFERS", f"prompt {name!r}, {ascii(text)}: {a[:3]}, not {b[:3]} (off {off:.1e})"
                worst = max(worst, off)
        return "same", f"{worst:.0e}"

    return compare


# ---- Writing -----------------------------------------------------------------------------------------


def bert(draw, folder):
    names, vocabulary = tokenizers.wordpiece_vocabulary(draw)
    maker = t.BertTokenizer(vocab=dict(vocabulary), do_lower_case=draw.maybe(0.5, "lower"),
                            strip_accents=draw.choice([None, False]), **names)
    added = tokenizers.add_tokens(draw, maker)
    config = dict(vocab_size=len(maker) + draw.choice([0, 0, 3]), hidden_size=12, num_hidden_layers=2,
                  num_attention_heads=2, intermediate_size=17, max_position_embeddings=draw.choice([40, 64]))
    model_type = draw.pick(bert=3, distilbert=1)
    if model_type == "bert":
        model = t.BertModel(t.BertConfig(**config), add_pooling_layer=draw.maybe(0.5))
    else:
        model = t.DistilBertModel(t.DistilBertConfig(vocab_size=config["vocab_size"], dim=12, n_layers=2, n_heads=2,
                                                     hidden_dim=17, max_position_embeddings=40))
    return maker, model, added + tokenizers.WORDS


def roberta(draw, folder):
    merges = tokenizers.merges_of(draw, 60)
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] + tokenizers.byte_characters() + ["".join(p) for p in merges]
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    maker = t.RobertaTokenizer(vocab=vocabulary, merges=merges, add_prefix_space=draw.maybe(0.3))
    added = tokenizers.add_tokens(draw, maker)
    model = t.RobertaModel(t.RobertaConfig(vocab_size=len(maker), hidden_size=12, num_hidden_layers=1, pad_token_id=1,
                                           num_attention_heads=3, intermediate_size=17, max_position_embeddings=50,
                                           type_vocab_size=1), add_pooling_layer=False)
    return maker, model, added + tokenizers.WORDS


def gpt2(draw, folder):
    merges = tokenizers.merges_of(draw, 60)
    tokens = ["<|endoftext|>"] + tokenizers.byte_characters() + ["".join(pair) for pair in merges]
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    maker = t.GPT2Tokenizer(vocab=vocabulary, merges=merges, pad_token="<|endoftext|>")
    added = tokenizers.add_tokens(draw, maker)
    model = t.GPT2Model(t.GPT2Config(vocab_size=len(maker), n_embd=12, n_layer=2, n_head=2, n_positions=48, bos_token_id=0,
                                    eos_token_id=0))
    return maker, model, added + tokenizers.WORDS


ACTS = [torch.nn.Tanh(), torch.nn.Identity(), torch.nn.ReLU(), torch.nn.GELU(), torch.nn.Sigmoid(), torch.nn.SiLU(),
        torch.nn.ELU(), torch.nn.Softplus()]


def after_pooling(draw, width, generator):
    parts = []
    for _ in range(draw.choice([0, 0, 1, 1, 2, 3])):
        what = draw.pick(dense=4, normalize=3, layer_norm=1, dropout=1)
        if what == "dense":
            n_out = draw.choice([width, 5, 9, 20])
            part = m.Dense(width, n_out, bias=draw.maybe(0.7), activation_function=draw.choice(ACTS[:6] * 4 + ACTS[6:]),
                           use_residual=draw.maybe(0.2, "residual"))
            draw.note(type(part.activation_function).__name__)
            width = n_out
        else:
            part = {"normalize": m.Normalize, "layer_norm": lambda: m.LayerNorm(width), "dropout": lambda: m.Dropout(0.3)}[what]()
        for parameter in part.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) * (0.4 if parameter.dim() > 1 else 1)
        parts.append(part)
    return parts, width


PROMPTS = {"query": "query: ", "passage": "passage: ", "q": "Represent the door: ", "x": "é中 ", "long": "watching " * 30, "none": ""}


def older_pooling(folder, modes):
    data = {f"pooling_mode_{name}": mode in modes for mode, name in OLD.items()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 12, **data}))


def change(draw, folder, modes):
    """What other versions write, and what people edit."""
    limit = draw.choice([None, None, 7, 20, 64, 999])
    bert_config = folder / "sentence_bert_config.json"
    if draw.maybe(0.35, "older bert config"):
        other = draw.choice(["sentence_bert_config.json"] * 4 + ["sentence_roberta_config.json"])
        bert_config.unlink()
        fields = {"max_seq_length": limit, "do_lower_case": draw.maybe(0.5)}
        draw.note(str(fields))
        (folder / other).write_text(json.dumps(fields))
    elif draw.maybe(0.1, "no bert config"):
        bert_config.unlink()
    elif draw.maybe(0.3, "lower case"):
        edit(bert_config, lambda c: c.update(do_lower_case=True))
    elif draw.maybe(0.1, "odd bert config"):
        edit(bert_config, lambda c: c.update(draw.choice([{"processing_kwargs": {"text": {"max_length": 9}}}, {"query_length": 5},
                                                          {"transformer_task": "fill-mask"}, {"unpad_inputs": False}])))
    if draw.maybe(0.4):
        length = draw.choice([tokenizers.NO_LIMIT, 9, 30, 512, None])
        draw.note(f"model_max_length {length}".replace(str(tokenizers.NO_LIMIT), "none"))
        edit(folder / "tokenizer_config.json", lambda c: c.update(model_max_length=length))
    if draw.maybe(0.15, "cuts left"):
        edit(folder / "tokenizer_config.json", lambda c: c.update(truncation_side="left"))
    if draw.maybe(0.1, "taken as it is"):
        edit(folder / "tokenizer_config.json", lambda c: c.update(tokenizer_class="TokenizersBackend"))
    if draw.maybe(0.25, "older pooling") and len(set(modes)) == len(modes) and sorted(modes, key=MODES.index) == list(modes):
        older_pooling(folder, modes)
    if draw.maybe(0.15, "older names"):
        text = (folder / "modules.json").read_text()
        for now in ("base.modules.transformer", "sentence_transformer.modules.pooling", "base.modules.dense",
                    "base.modules.normalize", "sentence_transformer.modules.layer_norm", "sentence_transformer.modules.dropout"):
            text = text.replace(f"sentence_transformers.{now}.", "sentence_transformers.models.")
        (folder / "modules.json").write_text(text)
    if draw.maybe(0.05, "no modules.json"):
        (folder / "modules.json").unlink()
    if draw.maybe(0.1, "model config"):
        edit(folder / "config_sentence_transformers.json",
             lambda c: c.update(draw.choice([{"truncate_dim": 3}, {"truncate_dim": 400}, {"similarity_fn_name": "dot"},
                                             {"default_prompt_name": "nobody"}, {"model_type": "SparseEncoder"},
                                             {"prompts": {"query": None, "a": "a "}, "default_prompt_name": "a"}])))
    if (folder / "modules.json").exists() and draw.maybe(0.06, "order"):
        def swap(c):
            i, j = draw.sample(range(len(c)), 2)
            c[i], c[j] = c[j], c[i]
        edit(folder / "modules.json", swap)


@kind
def sentence(draw, folder):
    plain = folder / "plain"
    generator = torch.Generator().manual_seed(draw.getrandbits(40))
    maker, model, words = {"bert": bert, "roberta": roberta, "gpt2": gpt2}[draw.pick(bert=6, roberta=2, gpt2=1)](draw, folder)
    model.double()
    randomize(model, generator, norms=("orm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight"),
              tables=("embeddings", "wte", "wpe"), gain=1.0)
    model.float().save_pretrained(plain)
    maker.save_pretrained(plain)
    modes = draw.sample(MODES, draw.choice([1, 1, 1, 2, 3]))
    draw.note("+".join(modes))
    pooling = m.Pooling(12, modes, include_prompt=not draw.maybe(0.3, "prompt left out"))
    parts, width = after_pooling(draw, 12 * len(modes), generator)
    limit = draw.choice([None, None, 10, 25])
    draw.note(f"limit {limit}")
    prompts = {name: PROMPTS[name] for name in draw.sample(list(PROMPTS), draw.choice([0, 1, 2]))}
    default = draw.choice(list(prompts)) if prompts and draw.maybe(0.5, "default prompt") else None
    first = m.Transformer(str(plain), max_seq_length=limit, do_lower_case=draw.maybe(0.2, "made lower"))
    made = SentenceTransformer(modules=[first, pooling] + parts, device="cpu", prompts=prompts, default_prompt_name=default,
                               truncate_dim=draw.choice([None] * 5 + [4]))
    made.save_pretrained(str(folder), create_model_card=False)
    shutil.rmtree(plain)
    change(draw, folder, modes)
    added = [word for word in words if word not in tokenizers.WORDS]
    draw_of = draw.drawn

    def texts_of(draw, n):
        texts = [tokenizers.text_of(draw, tokenizers.WORDS, added) or "x" for _ in range(max(6, n // 4))]
        empty = [] if "gpt2" in draw_of else [""]  # of GPT-2 an empty text has no tokens
        return texts + empty + [" ".join(draw.choice(tokenizers.WORDS) for _ in range(70))]

    return comparison(folder, texts_of, [None, "query", *list(prompts)[:1]])


# ---- What is not a sentence model ----------------------------------------------------------------------


@kind
def refusals(draw, folder):
    """A module that is not supported, or weights that are none: refused in words, whatever the library does."""
    compare = sentence(draw, folder)
    what = draw.pick(router=1, static=1, words=1, custom=1, weights=1, extra=1, token_dense=1)
    modules = json.loads((folder / "modules.json").read_text()) if (folder / "modules.json").exists() else []
    dense = [module for module in modules if module["type"].endswith("Dense")]
    if what in ("router", "static", "words", "custom") and modules:
        modules[draw.randrange(len(modules))]["type"] = {
            "router": "sentence_transformers.base.modules.router.Router",
            "static": "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding",
            "words": "sentence_transformers.models.WordEmbeddings", "custom": "modeling_own.Pooling"}[what]
        (folder / "modules.json").write_text(json.dumps(modules))
    elif dense:
        path = folder / dense[0]["path"]
        if what == "weights":
            (path / "model.safetensors").unlink()
        elif what == "extra":
            save_file(load_file(path / "model.safetensors") | {"more": torch.zeros(3)}, path / "model.safetensors")
        else:
            edit(path / "config.json", lambda c: c.update(module_input_name="token_embeddings"))
    return compare
