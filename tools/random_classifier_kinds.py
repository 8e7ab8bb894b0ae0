"""Kinds of random model folders for random_folders.py: classifiers of texts, of tokens, and of answers to questions."""
import json

import numpy
import torch
import transformers as t

import folder_checks as checks
from random_draw import edit
from random_folder_kinds import Case, act, bert_sizes, big_integers, kind, rename, save, tokenizer, weights

TASKS = ["SequenceClassification", "TokenClassification", "QuestionAnswering"]
BOUND = 1e-5 / checks.BOUND  # of logits, over the largest of them


def labels(draw, task, name):
    """Fields of config.json about them."""
    if task == "QuestionAnswering":
        return draw.choice([{}, {}, {"num_labels": 2}, {"num_labels": 2 if name == "DistilBert" else 3}])
    n = draw.choice([1, 2, 3, 5])
    fields = draw.choice([{"num_labels": n}, {"id2label": {i: f"L {i}\u2028<{i}>" for i in range(n)}}])
    if draw.maybe(0.5):
        kinds = ["regression", "multi_label_classification"] + ["single_label_classification"] * (n > 1)
        fields["problem_type"] = draw.choice(kinds)
    return fields


def scores(rows, kind):
    """Logits, or what is left of them: of softmax their differences."""
    if kind == "value":
        return [row["value"] for row in rows]
    p = numpy.array([row["probability"] for row in rows])
    return numpy.log(p / (1 - p)) if kind == "each" else numpy.log(p)


def of_text(said, logits, problem):
    n = len(logits)
    kind = "value" if problem == "regression" else "each" if n == 1 or problem == "multi_label_classification" else "one"
    ours = scores(said["labels"], kind)
    theirs = logits if kind != "one" else torch.log_softmax(logits, -1)
    return ours, theirs


def compare(name, ours, theirs, logits):
    return checks.compare(name, ours, numpy.asarray(theirs), BOUND * max(1e-3, float(logits.abs().max())))


def classes(tool, reference, text, pair):
    config = reference.model.config
    both = json.loads(tool.run("tokenize", text, *(["--pair", pair] if pair else []), "--json"))["ids"]
    first = both.index(3) + 1
    more = {"token_type_ids": torch.tensor([[0] * first + [1] * (len(both) - first)])} if config.model_type in ("bert", "electra") else {}
    out = reference.run(both, **more)
    said = tool.json("look", text, *(["--pair", pair] if pair else []))
    if "start_logits" in out:
        begin = first if pair else 1
        seen = [i for i in range(len(both)) if i == 0 or (i >= begin and both[i] != 3)]
        for name, logits in (("begins", out.start_logits[0]), ("ends", out.end_logits[0])):
            rest = [said[name][i] for i in range(len(both)) if i not in seen]
            yield f"not {name}", float(any(rest)) * 2
            yield compare(name, numpy.log([said[name][i] for i in seen]), torch.log_softmax(logits[seen], -1), logits)
        return
    logits = out.logits[0]
    if logits.dim() == 1:
        ours, theirs = of_text(said, logits, config.problem_type)
        yield compare("labels", ours, theirs, logits)
        return
    p = [[row["probability"] for row in rows] for rows in said["token_labels"]]
    yield compare("token_labels", numpy.log(p), torch.log_softmax(logits, -1), logits)


def classifier(draw, folder, name, config, prefix, pairs):
    task = draw.choice(TASKS)
    fields = labels(draw, task, name)
    cls = getattr(t, f"{name}For{task}")
    draw.note(f"{cls.__name__} {fields}")
    made = type(config)(**(config.to_dict() | fields))
    save(draw, weights(draw, cls(made)), folder)
    rename(draw, folder, prefix)
    if draw.maybe(0.2, "without label2id"):
        edit(folder / "config.json", lambda d: d.pop("label2id", None))
    words, _ = tokenizer(draw, folder, config.vocab_size)
    big_integers(draw, folder)
    text = draw.words(words, 1, 5)
    pair = draw.words(words, 1, 4) if pairs and draw.maybe(0.6, "a pair") else None

    def check(tool, notes):
        reference = checks.Reference(cls, tool.folder)
        if reference.missing:
            notes.append(f"transformers misses {sorted(reference.missing)}")
            return iter(())
        return classes(tool, reference, text, pair)
    return Case(draw.drawn, [check], cls)


@kind
def bert_classes(draw, folder):
    return classifier(draw, folder, "Bert", t.BertConfig(**bert_sizes(draw), hidden_act=act(draw)), "bert.", True)


@kind
def roberta_classes(draw, folder):
    name, config = draw.choice([("Roberta", t.RobertaConfig), ("XLMRoberta", t.XLMRobertaConfig)])
    made = config(**bert_sizes(draw), hidden_act=act(draw), type_vocab_size=draw.choice([1, 2]), pad_token_id=draw.choice([0, 1]))
    return classifier(draw, folder, name, made, "roberta.", False)


@kind
def distilbert_classes(draw, folder):
    s = bert_sizes(draw)
    config = t.DistilBertConfig(dim=s["hidden_size"], n_heads=s["num_attention_heads"], n_layers=s["num_hidden_layers"],
                                hidden_dim=s["intermediate_size"], vocab_size=s["vocab_size"], activation=act(draw),
                                max_position_embeddings=s["max_position_embeddings"], dropout=0.0, attention_dropout=0.0)
    return classifier(draw, folder, "DistilBert", config, "distilbert.", False)


@kind
def electra_classes(draw, folder):
    sizes = bert_sizes(draw)
    config = t.ElectraConfig(**sizes, hidden_act=act(draw), embedding_size=draw.choice([sizes["hidden_size"], 7, 12]))
    return classifier(draw, folder, "Electra", config, "electra.", True)


@kind
def modernbert_classes(draw, folder):
    s = bert_sizes(draw)
    del s["layer_norm_eps"], s["hidden_dropout_prob"], s["attention_probs_dropout_prob"]
    s["hidden_size"] = 2 * s["num_attention_heads"] * (s["hidden_size"] // s["num_attention_heads"])
    config = t.ModernBertConfig(**s, hidden_activation=act(draw), cls_token_id=2, sep_token_id=3, pad_token_id=0, bos_token_id=2,
                                eos_token_id=3, local_attention=draw.choice([4, 8]), classifier_pooling=draw.choice(["cls", "mean"]),
                                attention_bias=draw.maybe(0.5), mlp_bias=draw.maybe(0.5), classifier_bias=draw.maybe(0.1))
    return classifier(draw, folder, "ModernBert", config, "model.", False)


def decoder_config(draw, name):
    n, dim, words = draw.choice([1, 2, 3]), draw.choice([4, 8]), draw.randint(34, 60)
    ends = dict(vocab_size=words, bos_token_id=2, eos_token_id=3, pad_token_id=draw.choice([0, 0, None]))
    layers, places = draw.randint(1, 3), draw.randint(24, 48)
    if name == "GPT2":
        return t.GPT2Config(n_embd=n * dim, n_head=n, n_layer=layers, n_positions=places, activation_function=act(draw), **ends)
    if name == "GPTJ":
        return t.GPTJConfig(n_embd=n * dim, n_head=n, n_layer=layers, n_positions=places, rotary_dim=4, activation_function=act(draw), **ends)
    if name == "Bloom":
        return t.BloomConfig(hidden_size=n * dim, n_head=n, n_layer=layers, **ends)
    sizes = dict(hidden_size=n * dim, num_attention_heads=n, num_hidden_layers=layers, max_position_embeddings=places, **ends)
    if name == "OPT":
        narrower = draw.choice([{}, {}, {}, {"word_embed_proj_dim": 7}])
        return t.OPTConfig(**sizes, ffn_dim=draw.randint(5, 40), activation_function=act(draw), **narrower)
    sizes |= dict(intermediate_size=draw.randint(5, 40))
    if name == "GPTNeoX":
        return t.GPTNeoXConfig(**sizes, hidden_act=act(draw))
    return getattr(t, name + "Config")(**sizes, num_key_value_heads=draw.choice([1, n]), head_dim=dim)


@kind
def decoder_classes(draw, folder):
    """The head `score` of a decoder, which reads the last token that is no padding; a text may end with padding."""
    name = draw.choice(["GPT2", "GPTJ", "Bloom", "OPT", "GPTNeoX", "Llama", "Mistral", "Qwen3", "Gemma", "Gemma2"])
    config, fields = decoder_config(draw, name), labels(draw, "SequenceClassification", name)
    cls = getattr(t, f"{name}ForSequenceClassification")
    draw.note(f"{cls.__name__} {fields}, padding {config.pad_token_id}")
    made = weights(draw, cls(type(config)(**(config.to_dict() | fields))))
    save(draw, made, folder, "Gemma" not in name)  # whose root of the width is rounded to the type that is stored
    rename(draw, folder, {"GPTNeoX": "gpt_neox."}.get(name, "transformer." if name in ("GPT2", "GPTJ", "Bloom") else "model."))
    tokenizer(draw, folder, config.vocab_size)
    big_integers(draw, folder)
    ids = [draw.randint(4, config.vocab_size - 1) for _ in range(draw.randint(1, 8))]
    ids += [0, 0] if draw.maybe(0.4, "padding at the end") else []

    def check(tool, notes):
        reference = checks.Reference(cls, tool.folder)
        if reference.missing:
            notes.append(f"transformers misses {sorted(reference.missing)}")
            return
        logits = reference.run(ids).logits[0]
        ours, theirs = of_text(tool.json("look", "--ids", " ".join(map(str, ids))), logits, reference.model.config.problem_type)
        yield compare("labels", ours, theirs, logits)
    return Case(draw.drawn, [check], cls)
