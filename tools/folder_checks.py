"""What transformers makes of a model folder beside what qkv makes of it: see random_folders.py.

The reference is the folder as from_pretrained reads it, in float64. A check returns (name, error over its bound)
for every number that it compares; what qkv refuses comes as Refused, with its message.
"""
import json
import pathlib
import subprocess
import tempfile

import numpy
import torch
import transformers as t

BOUND = 3e-5  # of weights and probabilities, and of hidden states over the largest of them
NEAR_TIE = 2e-3  # scores of the reference so near to each other that f32 may take the other


class Refused(Exception):
    """qkv says that it cannot, in words."""


class Broken(Exception):
    """qkv crashed, or wrote what cannot be read."""


class Tool:
    """The binary, on one folder."""

    def __init__(self, binary, folder):
        self.binary, self.folder = str(binary), str(folder)
        self.warnings = set()

    def run(self, *words):
        return self.run_plain(*words, "--model", self.folder)

    def run_plain(self, *words):
        done = subprocess.run([self.binary, *words], capture_output=True, timeout=120)
        said = done.stderr.decode("utf-8", "replace").strip()
        self.warnings.update(line for line in said.splitlines() if "warning:" in line)
        if done.returncode == 1 and said:
            raise Refused(said.splitlines()[-1])
        if done.returncode != 0:
            raise Broken(f"{words[0]}: exit {done.returncode}: {said[-300:]}")
        return done.stdout.decode()

    def json(self, *words):
        return json.loads(self.run(*words, "--json"))

    def array(self, *words):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place, "w.npy")
            self.run(*words, "-o", str(path))
            return numpy.load(path)

    def ids(self, text):
        return self.json("tokenize", text)["ids"]


# ---- The reference ---------------------------------------------------------------------------------


class Reference:
    """A folder in transformers: model (in float64), and names that the folder lacks for that class."""

    def __init__(self, kind, folder):
        self.model, told = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                output_loading_info=True)
        self.missing = set(told["missing_keys"])
        self.model = self.model.double().eval()

    def lacks(self, *parts):
        return sorted(name for name in self.missing if name.startswith(parts))

    def run(self, ids, **more):
        with torch.no_grad():
            return self.model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                              output_attentions=True, output_hidden_states=True, **more)


def compare(name, ours, theirs, scale=1.0):
    ours, theirs = numpy.asarray(ours, dtype=numpy.float64), numpy.asarray(theirs, dtype=numpy.float64)
    if ours.shape != theirs.shape:
        return name, float("inf")
    off = numpy.abs(ours - theirs).max() if ours.size else 0.0
    return name, float("inf") if not numpy.isfinite(off) else float(off / (BOUND * scale))


def weights_of(attentions):
    return torch.stack([a[0] for a in attentions]).numpy()


def softmax(logits):
    return torch.softmax(logits.double(), -1).numpy()


def vector(tool, text, hidden):
    """The mean of the last hidden states, by `embed`."""
    theirs = hidden[0].mean(0).numpy()
    ours = tool.json("embed", text)["vectors"][0]["vector"]
    return compare("embed", ours, theirs, max(1.0, float(numpy.abs(theirs).max())))


def all_candidates(candidates, n):
    p = numpy.full(n, numpy.nan)
    for c in candidates:
        p[c["id"]] = c["probability"]
    return p


def wants_refusal(call, words):
    """call must be refused, with one of the words in its message."""
    try:
        call()
    except Refused as said:
        if not any(word in str(said) for word in words):
            raise  # for another reason, which is told
        return
    raise Broken(f"not refused, though {words}")


# ---- Encoders --------------------------------------------------------------------------------------


def segments(config, ids):
    return {} if config.model_type in ("distilbert", "modernbert") else {"token_type_ids": torch.zeros(1, len(ids), dtype=torch.long)}


def encoder(tool, reference, text):
    model, ids = reference.model, tool.ids(text)
    out = reference.run(ids, **segments(model.config, ids))
    yield compare("weights", numpy.nan_to_num(tool.array("look", text)), weights_of(out.attentions))
    yield vector(tool, text, out.hidden_states[-1])


def masked_words(tool, reference, text, head):
    """The distribution over all words; refused where the reference lacks a part of the head."""
    model, ids = reference.model, tool.ids(text)
    n = model.config.vocab_size
    call = lambda: tool.json("fill", text, "--top", str(n))
    if reference.lacks(*head):
        wants_refusal(call, ["MLM"])
        return
    out = reference.run(ids, **segments(model.config, ids))
    logits = getattr(out, "prediction_logits", None)
    logits = out.logits if logits is None else logits
    for found in call()["predictions"]:
        yield compare("fill", all_candidates(found["candidates"], n), softmax(logits[0, found["position"]]))


def next_sentence(tool, reference, first, second):
    if reference.lacks("cls.seq_relationship", "bert.pooler"):
        wants_refusal(lambda: tool.json("next", first, second), ["NSP", "next-sentence"])
        return
    both = json.loads(tool.run("tokenize", first, "--pair", second, "--json"))
    ids, n = both["ids"], both["ids"].index(3) + 1
    types = torch.tensor([[0] * n + [1] * (len(ids) - n)])
    out = reference.run(ids, token_type_ids=types)
    yield compare("next", tool.json("next", first, second)["is_next"], softmax(out.seq_relationship_logits[0])[0])


def replaced(tool, reference, text):
    if reference.lacks("discriminator_predictions"):
        return
    ids = tool.ids(text)
    out = reference.run(ids, **segments(reference.model.config, ids))
    yield compare("replaced", tool.json("look", text)["replaced"], torch.sigmoid(out.logits[0]).numpy())


# ---- Decoders --------------------------------------------------------------------------------------


def causal(tool, reference, text):
    ids = tool.ids(text)
    n = reference.model.config.vocab_size
    out = reference.run(ids)
    yield compare("weights", numpy.nan_to_num(tool.array("look", text)), weights_of(out.attentions))
    yield vector(tool, text, out.hidden_states[-1])
    if reference.lacks("lm_head"):
        return
    said = tool.json("look", text, "--top", str(n))
    yield compare("next", all_candidates(said["next"], n), softmax(out.logits[0, -1]))
    p = softmax(out.logits[0])
    yield compare("expected", said["expected"], [p[i, ids[i + 1]] for i in range(len(ids) - 1)])


def pair(tool, reference, source, target):
    model, config = reference.model, reference.model.config
    ids, wanted = tool.ids(source), tool.ids(target)
    tokens = model.generation_config  # goes before config.json, with a warning
    starts = tokens.decoder_start_token_id, tokens.bos_token_id, config.decoder_start_token_id
    start = next(id for id in starts if id is not None)
    out = reference.run(ids, decoder_input_ids=torch.tensor([[start] + wanted[:-1]]))
    yield compare("weights", numpy.nan_to_num(tool.array("look", source)), weights_of(out.encoder_attentions))
    yield vector(tool, source, out.encoder_last_hidden_state)
    for option, theirs in (("--cross", out.cross_attentions), ("--decoder", out.decoder_attentions)):
        ours = tool.array("look", source, option, "--target", target)
        yield compare(option, numpy.nan_to_num(ours), weights_of(theirs))
    if reference.lacks("lm_head"):
        return
    p = softmax(out.logits[0])
    said = tool.json("look", source, "--cross", "--target", target)
    yield compare("expected", said["expected"], [p[i, w] for i, w in enumerate(wanted)])


# ---- Generation ------------------------------------------------------------------------------------


def generated(reference, ids, max_new):
    """The reference's tokens, or why it makes none."""
    length = {} if max_new is None else {"max_new_tokens": max_new}
    try:
        with torch.no_grad():
            made = reference.model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                                            output_scores=True, return_dict_in_generate=True, **length)
    except Exception as why:  # noqa: BLE001: any refusal counts
        return None, f"{type(why).__name__}: {why}".splitlines()[0]
    n = 1 if reference.model.config.is_encoder_decoder else len(ids)
    return made, made.sequences[0, n:].tolist()


def is_near_tie(made, ours, theirs, score):
    """Whether the first difference, or the whole beam, was decided by almost nothing."""
    if getattr(made, "sequences_scores", None) is not None:
        return abs(float(made.sequences_scores[0]) - score) < NEAR_TIE
    at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), None)
    if at is None:
        return False
    row = made.scores[at][0]
    return abs(float(row[ours[at]] - row[theirs[at]])) < NEAR_TIE


def ends_with_positions(reference, ids, ours, theirs):
    """Whether a text is only as long as texts of the model may be. With rotary positions transformers does not mind."""
    longest = getattr(reference.model.config, "max_position_embeddings", None)
    return theirs[:len(ours)] == ours and len(ids) + len(ours) == longest


def writing(tool, reference, text, max_new, notes):
    """Tokens that are generated, by the folder's own options."""
    if reference.lacks("lm_head"):
        wants_refusal(lambda: tool.json("generate", text), ["no head", "writes no text"])
        return
    length = [] if max_new is None else ["--max-new", str(max_new)]
    made, theirs = generated(reference, tool.ids(text), max_new)
    said = tool.json("generate", text, *length)["sequences"][0]
    ours = said["ids"]
    if made is None:
        notes.append(f"transformers fails: {theirs}")
        return
    pad = reference.model.generation_config.pad_token_id
    while theirs and len(theirs) > len(ours) and theirs[-1] == pad:
        theirs.pop()
    if ours == theirs:
        yield "generate", 0.0
    elif is_near_tie(made, ours, theirs, said["score"]):
        notes.append("near tie")
    elif ends_with_positions(reference, tool.ids(text), ours, theirs):
        notes.append("qkv ends where max_position_embeddings does, transformers goes on")
    else:
        notes.append(f"generated {ours}, transformers {theirs}")
        yield "generate", float("inf")
