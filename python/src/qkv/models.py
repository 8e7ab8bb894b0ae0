"""Models: folders of transformers, the Hugging Face cache, and the small one that is part of this package."""
from __future__ import annotations

import ctypes
import os
import pathlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _c
from ._library import copied, init, lib, string
from .arrays import integers, numbers
from .checked import a_text as one_text
from .checked import integer, real, some_texts
from .checked import path as path_of
from .checked import text as text_of
from .context import Context, Interruptible, context, context_of_heads, given
from .errors import ArgumentError, ErrorText, NoCopies
from .heads import Flow, Heads
from .page import Worth

Element = TypeVar("Element", bound=np.generic)
_EMBEDDED = pathlib.Path(__file__).parent / "model"
_WEIGHTS = {"file": _c.QKV_WEIGHTS_FILE, "f32": _c.QKV_WEIGHTS_F32, "bf16": _c.QKV_WEIGHTS_BF16,
            "int8": _c.QKV_WEIGHTS_INT8}
_ENDS = ("eos", "string", "max_new", "model_length", "caller", "forbidden")


class Candidate(NamedTuple):
    """A word for a place of a text."""

    token: str
    id: int
    probability: float


class Generated(NamedTuple):
    """A text that a model has written: its tokens, its score, and why it ends ("eos", "max_new", …)."""

    text: str
    ids: list[int]
    score: float
    end: str


class Tokens(NoCopies):
    """A text, a pair or an image as tokens: ids, how they are shown, and their bytes in the text.

    Of an image: "[CLS]" and registers, then its patches, "row,column"; `grid` is (rows, columns) of these, and
    `n_prefix` the number of tokens before them. Of a text `grid` is None.
    """

    def __init__(self, handle: int, tokenizer: int) -> None:
        self._handle: int | None = handle
        found = _c.qkv_encoding.from_address(handle)
        n = int(found.n)
        self.ids = _array(found.ids, n, np.int32)
        self.types = _array(found.types, n, np.uint8)
        self.special = _array(found.special, n, np.uint8)
        self.spans = list(zip(_array(found.begin, n, np.int64).tolist(), _array(found.end, n, np.int64).tolist()))
        self.grid: tuple[int, int] | None = None
        self.n_prefix = 0
        self._image: int | None = None
        if found.image:
            image = _c.qkv_image_tokens.from_address(found.image)
            self._image = int(found.image)
            self.grid, self.n_prefix = (int(image.rows), int(image.columns)), int(image.n_prefix)
            self.texts = [_patch(handle, i) for i in range(n)]
        else:
            self.texts = [_shown(tokenizer, int(token)) for token in self.ids]

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            lib.qkv_encoding_free(self._handle)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<qkv.Tokens {' '.join(self.texts)}>"


def _array(address: int | None, n: int, kind: type[Element]) -> NDArray[Element]:
    return np.frombuffer(copied(address, n * np.dtype(kind).itemsize), dtype=kind)


def _taken_text(handle: ctypes.c_void_p) -> str:
    found = _c.qkv_text.from_address(handle.value or 0)
    text = string(copied(found.bytes, found.n))
    lib.qkv_text_free(handle)
    return text


def _shown(tokenizer: int, token: int) -> str:
    text, error = ctypes.c_void_p(), ErrorText()
    error.check(lib.qkv_tokenizer_show(tokenizer, token, ctypes.byref(text), error.pointer))
    return _taken_text(text)


def _patch(encoding: int, index: int) -> str:
    name = ctypes.create_string_buffer(32)
    lib.qkv_image_token(encoding, index, name)
    return name.value.decode()


def _opened_image(image: Any) -> ctypes.c_void_p:
    """A file or its bytes, an array [height, width, 3] of uint8 (or grey), or an image of PIL; to be freed."""
    made, error = ctypes.c_void_p(), ErrorText()
    if isinstance(image, (str, os.PathLike)):
        error.check(lib.qkv_image_read(path_of(image, "image"), ctypes.byref(made), error.pointer))
        return made
    if isinstance(image, bytes):
        error.check(lib.qkv_image_parse(b"the image", image, len(image), ctypes.byref(made), error.pointer))
        return made
    if hasattr(image, "convert") and hasattr(image, "size"):
        image = image.convert("RGB")
    pixels = numbers(image, "image")
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[:, :, None], 3, axis=2)
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise ArgumentError(f"image has shape {list(pixels.shape)} and type {pixels.dtype}, and must be uint8 "
                            "[height, width, 3], a path, the bytes of a file, or an image of PIL")
    pixels = np.ascontiguousarray(pixels)
    error.check(lib.qkv_image_from_rgb(pixels.ctypes.data, pixels.shape[0], pixels.shape[1], ctypes.byref(made),
                                       error.pointer))
    return made


class _Run(NoCopies):
    """A run of a model, which keeps what it read."""

    def __init__(self, handle: int, kept: Any) -> None:
        self.handle, self.kept = handle, kept

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            lib.qkv_run_free(self.handle)


def _is_embedded(path: bytes) -> bool:
    """Whether a path is that of the embedded model in the source, and no such folder is here. The tool has the same."""
    name = path.replace(os.sep.encode(), b"/").rstrip(b"/")
    return name == b"models/default" and not os.path.exists("models/default/config.json")


class Model(NoCopies):
    """A model of qkv.load. It is read-only: any number of threads may use it at once."""

    def __init__(self, folder: str | pathlib.Path | None = None, *,
                 weights: Literal["file", "f32", "bf16", "int8"] = "file", context: Context | None = None) -> None:
        self._handle: int | None = None
        self._context = given(context)
        if not isinstance(weights, str) or weights not in _WEIGHTS:
            raise ArgumentError(f'weights is {weights!r}, and must be "file", "f32", "bf16" or "int8"')
        options, made = init(_c.qkv_model_open_options, weights=_WEIGHTS[weights]), ctypes.c_void_p()
        if folder is not None and _is_embedded(path_of(folder, "folder")):
            folder = None
        error, path = ErrorText(), path_of(_EMBEDDED if folder is None else folder, "folder")
        error.check(lib.qkv_model_open(path, ctypes.byref(options), ctypes.byref(made), error.pointer))
        self._handle = made.value
        self._info = _c.qkv_model_info.from_address(lib.qkv_model_get_info(made))
        self.architecture = string(self._info.architecture)
        self.name = "embedded" if folder is None else os.fsdecode(path)
        self.n_layers, self.n_heads, self.hidden = (int(getattr(self._info, field))
                                                    for field in ("n_layers", "n_heads", "hidden"))
        self.n_parameters, self.max_len = int(self._info.n_parameters), int(self._info.max_len)
        self.kind = ("encoder", "decoder", "pair")[self._info.kind]

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            lib.qkv_model_free(self._handle)

    def __repr__(self) -> str:
        return (f"<qkv.Model {self.name}: {self.architecture}, {self.n_layers} layers of {self.n_heads} heads, "
                f"{self.n_parameters:,} parameters>")

    def _ctx(self) -> Context:
        return self._context or context()

    def _tokenizer(self, side: int = _c.QKV_SOURCE) -> int:
        found = lib.qkv_model_tokenizer(self._handle, side)
        if not found:
            raise ArgumentError(f"{self.name}: a {self.architecture} reads images, not texts")
        return int(found)

    # ---- Texts ----

    def tokenize(self, text: str, pair: str | None = None) -> Tokens:
        """The tokens of a text or a pair, with the special ones that the model puts around them."""
        made, error = ctypes.c_void_p(), ErrorText()
        first = one_text(text, "text").encode()
        second = None if pair is None else one_text(pair, "pair").encode()
        error.check(lib.qkv_tokenizer_encode(self._tokenizer(), first, len(first), second, len(second or b""),
                                             ctypes.byref(made), error.pointer))
        return Tokens(made.value or 0, self._tokenizer())

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of ids."""
        given, text, error = numbers(ids, "ids"), ctypes.c_void_p(), ErrorText()
        values = integers(given, np.int32, "ids", (given.size,))
        flags = _c.QKV_DECODE_SKIP_SPECIAL if skip_special else 0
        error.check(lib.qkv_tokenizer_decode(self._tokenizer(_c.QKV_TARGET), values.ctypes.data, len(values), flags,
                                             ctypes.byref(text), error.pointer))
        return _taken_text(text)

    # ---- Images ----

    @property
    def _images(self) -> int:
        """The part of the model that reads images."""
        found = lib.qkv_model_images(self._handle)
        if not found:
            raise ArgumentError(f"{self.name}: a {self.architecture} reads texts, not images")
        return int(found)

    def see(self, image: Any, *, size: int | None = None) -> Tokens:
        """The tokens of an image, prepared as the model's files say: a path, the bytes of a file, an array of uint8
        [height, width, 3], or an image of PIL. `size` asks for another side, in pixels, than that of the model."""
        model, made, error = self._images, ctypes.c_void_p(), ErrorText()
        options = init(_c.qkv_see_options, size=0 if size is None else integer(size, "size", least=1))
        opened = _opened_image(image)
        status = lib.qkv_image_see(model, opened, ctypes.byref(options), ctypes.byref(made), error.pointer)
        lib.qkv_image_free(opened)
        error.check(status)
        return Tokens(made.value or 0, 0)

    def labels(self, image: Any, *, n: int = 5, size: int | None = None) -> list[Candidate]:
        """What an image shows: the labels of a classifier of images, the likeliest first."""
        tokens, model = self.see(image, size=size), self._images
        info = _c.qkv_model_info.from_address(lib.qkv_model_get_info(model))
        run, error, n_labels = self._run(tokens), ErrorText(), max(1, int(info.n_labels))
        logits, shares = np.zeros(n_labels, dtype=np.float32), np.zeros(n_labels)
        error.check(lib.qkv_model_classify(self._ctx().handle, model, run.handle, 0, logits.ctypes.data, error.pointer))
        error.check(lib.qkv_model_probabilities(model, None, 1, logits.ctypes.data, shares.ctypes.data, error.pointer))
        best = np.argsort(-shares, kind="stable")[:integer(n, "n", least=1)].tolist()
        return [Candidate(string(lib.qkv_model_label(model, i) or str(i).encode()), i, float(shares[i])) for i in best]

    def _run(self, tokens: Tokens, targets: Tokens | None = None, *, hidden: bool = False) -> _Run:
        made, error = ctypes.c_void_p(), ErrorText()
        inputs = (ctypes.c_void_p * 1)(tokens._handle)
        outputs = None if targets is None else (ctypes.c_void_p * 1)(targets._handle)
        options = init(_c.qkv_run_options, targets=ctypes.addressof(outputs) if outputs else None)
        model = self._handle if tokens.grid is None else self._images
        flags = _c.QKV_RUN_CAPTURE | (_c.QKV_RUN_HIDDEN if hidden else 0)
        error.check(lib.qkv_model_run(self._ctx().handle, model, 1, ctypes.byref(inputs), flags, ctypes.byref(options),
                                      ctypes.byref(made), error.pointer))
        return _Run(made.value or 0, (self, tokens, targets, inputs, outputs))

    def fill(self, text: str, *, n: int = 5) -> list[list[Candidate]]:
        """The likeliest words at each [MASK] of a text (encoders), best first."""
        tokens, n = self.tokenize(text), integer(n, "n", least=1, most=int(self._info.vocab_size))
        mask = lib.qkv_tokenizer_special(self._tokenizer(), _c.QKV_TOKEN_MASK)
        places = np.flatnonzero(tokens.ids == mask)
        if not len(places):
            raise ArgumentError(f"the text has no {_shown(self._tokenizer(), mask) if mask >= 0 else 'mask'}")
        run, error, found = self._run(tokens), ErrorText(), []
        for place in places.tolist():
            rows = (_c.qkv_candidate * n)()
            error.check(lib.qkv_model_candidates(self._ctx().handle, self._handle, run.handle, _c.QKV_HEAD_MASKED, 0,
                                                 place, n, ctypes.byref(rows), ctypes.sizeof(_c.qkv_candidate),
                                                 error.pointer))
            found.append([Candidate(_shown(self._tokenizer(), row.id), row.id, row.probability) for row in rows])
        return found

    def follows(self, first: str, second: str) -> float:
        """The probability that the second text follows the first (models with a head for next sentences)."""
        first, second = one_text(first, "first"), one_text(second, "second")
        run, error, logits = self._run(self.tokenize(first, second)), ErrorText(), (ctypes.c_float * 2)()
        error.check(lib.qkv_model_nsp(self._ctx().handle, self._handle, run.handle, 0, ctypes.byref(logits),
                                      error.pointer))
        return float(1 / (1 + np.exp(logits[1] - logits[0])))

    def embed(self, texts: Sequence[str], *, prompt: str | None = None) -> NDArray[np.float32]:
        """Vectors of texts, [texts, dim], pooled as the model's files say. Longer texts are cut to sentence_len."""
        if isinstance(texts, str):
            raise ArgumentError("texts is a str, and must be a sequence of texts")
        texts, tokenizer = some_texts(texts, "texts"), self._tokenizer()
        asked = None if prompt is None else text_of(prompt, "prompt")
        vectors, error = np.zeros((len(texts), int(self._info.sentence_dim)), dtype=np.float32), ErrorText()
        for vector, text in zip(vectors, texts):
            made, n_prompt, encoded = ctypes.c_void_p(), ctypes.c_int64(), text.encode()
            error.check(lib.qkv_model_encode_sentence(self._handle, asked, encoded, len(encoded), ctypes.byref(made),
                                                      ctypes.byref(n_prompt), error.pointer))
            lib.qkv_tokenizer_cut(tokenizer, made, self._info.sentence_len)
            inputs = (ctypes.c_void_p * 1)(made)
            options = init(_c.qkv_embed_options, n_prompt=n_prompt.value)
            status = lib.qkv_model_embed(self._ctx().handle, self._handle, 1, ctypes.byref(inputs),
                                         ctypes.byref(options), vector.ctypes.data, error.pointer)
            lib.qkv_encoding_free(made)
            error.check(status)
        return vectors

    def generate(self, text: str = "", *, max_new: int = 40, sample: bool | None = None, seed: int | None = None,
                 temperature: float | None = None, top_k: int | None = None, top_p: float | None = None,
                 beams: int | None = None) -> Generated:
        """What follows a text (decoders), or its translation (pairs). Options that are None are the model's own.

        sample: True draws tokens by their probabilities. A seed, temperature, top_k or top_p implies it, as in the
        tool; with sample=False they have no effect. seed: default 0; the same seed, the same text.
        """
        if sample is None and any(each is not None for each in (seed, temperature, top_k, top_p)):
            sample = True
        options, error = init(_c.qkv_generate_options), ErrorText()
        options.n_beams = options.n_return = 1
        options.length_penalty = options.temperature = options.top_p = options.repetition_penalty = 1.0
        options.forced_bos = options.forced_eos = -1
        given: dict[str, Any] = {
            "sample": None if sample is None else int(bool(sample)),
            "temperature": None if temperature is None else real(temperature, "temperature"),
            "top_p": None if top_p is None else real(top_p, "top_p"),
            "n_beams": None if beams is None else integer(beams, "beams"),
            "top_k": None if top_k is None else integer(top_k, "top_k"),
        }
        for name in ("sample", "n_beams"):  # what the model's own options are read for
            if given[name] is not None:
                setattr(options, name, given[name])
        error.check(lib.qkv_generate_options_read(self._handle, ctypes.byref(options), error.pointer))
        for name, value in given.items():
            if value is not None:
                setattr(options, name, value)
        options.max_new = integer(max_new, "max_new")
        options.seed = 0 if seed is None else integer(seed, "seed", ctypes.c_uint64)
        tokens = self.tokenize(text) if one_text(text, "text") or self.kind == "pair" else None
        made = ctypes.c_void_p()
        error.check(lib.qkv_generate(self._ctx().handle, self._handle, tokens._handle if tokens else None,
                                     ctypes.byref(options), ctypes.byref(made), error.pointer))
        found = _c.qkv_generation.from_address(made.value or 0)
        first = _c.qkv_sequence.from_address(ctypes.c_void_p.from_address(found.sequences).value or 0)
        result = Generated(string(copied(first.text, first.n_bytes)), _array(first.ids, first.n, np.int32).tolist(),
                           first.score, _ENDS[first.end])
        lib.qkv_generation_free(made)
        return result

    # ---- Heads ----

    def look(self, text: str | None = None, pair: str | None = None, *, image: Any = None,
             size: int | None = None) -> Heads:
        """What every head of the model looks at on a text or a pair; of pairs, the heads of the encoder. Or on an
        `image`, as `see` takes it."""
        if (text is None) == (image is None) or (image is not None and pair is not None):
            raise ArgumentError("look takes a text, or an image")
        if size is not None and image is None:
            raise ArgumentError("size is given without an image: it is the side of one, in pixels")
        if image is not None:
            return self._look_at(image, size)
        text = one_text(text, "text")
        tokens, ctx = self.tokenize(text, pair), self._context or context_of_heads()
        run, made, error = self._run(tokens, hidden=True), ctypes.c_void_p(), ErrorText()
        queries = _c.qkv_token_list(tokenizer=self._tokenizer(), tokens=tokens._handle)
        with ctx.lock:
            error.check(lib.qkv_heads_open_run(ctx.handle, run.handle, _c.QKV_SELF, 0, ctypes.byref(queries), None,
                                               ctypes.byref(made), error.pointer))
        caption = (f"Model {self.name} ({self.architecture}), {self.n_layers} layers of {self.n_heads} heads. "
                   f"{self._prediction(run, tokens)}")
        # A title ends at a NUL.
        title = (text if pair is None else f"{text} / {pair}").replace("\0", "␀")
        return Heads(made.value or 0, ctx, (run, queries, tokens), tokens.texts, None, title, caption.strip(),
                     tokens.special, lambda places: self._worth(run, tokens, places), "model.look(text)",
                     Flow(self._handle, run, self._ctx))

    def _look_at(self, image: Any, size: int | None) -> Heads:
        tokens, ctx = self.see(image, size=size), self._context or context_of_heads()
        run, made, error = self._run(tokens, hidden=True), ctypes.c_void_p(), ErrorText()
        queries = _c.qkv_token_list(tokens=tokens._handle)
        with ctx.lock:
            error.check(lib.qkv_heads_open_run(ctx.handle, run.handle, _c.QKV_SELF, 0, ctypes.byref(queries), None,
                                               ctypes.byref(made), error.pointer))
        rows, columns = tokens.grid or (0, 0)
        caption = f"Model {self.name} ({self.architecture}), {rows} by {columns} patches."
        title = os.fsdecode(image) if isinstance(image, (str, os.PathLike)) else "an image"
        return Heads(made.value or 0, ctx, (run, queries, tokens), tokens.texts, None, title.replace("\0", "␀"),
                     caption, tokens.special, lambda places: self._label_worth(run, tokens, places),
                     "model.look(image=image)", Flow(self._images, run, self._ctx), tokens._image)

    def _label_worth(self, run: _Run, tokens: Tokens, places: Sequence[tuple[int, int]]) -> Worth:
        """The effects of heads on the likeliest label of an image."""
        model = self._images
        info = _c.qkv_model_info.from_address(lib.qkv_model_get_info(model))
        if not info.n_labels:
            raise ArgumentError(f"effects=True: {self.name} has no classifier, and effects on images are on its labels")
        logits, error = np.zeros(int(info.n_labels), dtype=np.float32), ErrorText()
        error.check(lib.qkv_model_classify(self._ctx().handle, model, run.handle, 0, logits.ctypes.data, error.pointer))
        words = np.array([logits.argmax()], dtype=np.int32)
        heads = np.array([layer * self.n_heads + head for layer, head in places], dtype=np.int64)
        asked = init(_c.qkv_effects, which=_c.QKV_SELF, head=_c.QKV_HEAD_LABEL, n_places=1, words=words.ctypes.data,
                     n_sets=len(places), heads=heads.ctypes.data)
        log_p = self._ablated(model, tokens, asked, (len(places) + 1, 1))[:, 0]
        label = string(lib.qkv_model_label(model, int(words[0])) or str(words[0]).encode())
        return Worth(f"ln P({label})", label, -1, float(log_p[0]), (log_p[1:] - log_p[0]).tolist())

    def _ablated(self, model: int | None, tokens: Tokens, asked: Any, shape: tuple[int, int]) -> np.ndarray[Any, Any]:
        log_p, call, error = np.zeros(shape), Interruptible(), ErrorText()
        status = lib.qkv_inspect_effects(self._ctx().handle, model, tokens._handle, ctypes.byref(asked),
                                         log_p.ctypes.data, call.pointer, error.pointer)
        call.raise_pending()
        error.check(status)
        return log_p

    def _best(self, run: _Run, head: int, place: int) -> Any:
        row, error = (_c.qkv_candidate * 1)(), ErrorText()
        error.check(lib.qkv_model_candidates(self._ctx().handle, self._handle, run.handle, head, 0, place, 1,
                                             ctypes.byref(row), ctypes.sizeof(_c.qkv_candidate), error.pointer))
        return row[0]

    def _masks(self, tokens: Tokens) -> list[int]:
        mask = lib.qkv_tokenizer_special(self._tokenizer(), _c.QKV_TOKEN_MASK)
        return np.flatnonzero(tokens.ids == mask).tolist() if self._info.has_mlm and mask >= 0 else []

    def _worth(self, run: _Run, tokens: Tokens, places: Sequence[tuple[int, int]]) -> Worth:
        """The effects of heads on the likeliest words: of masks, or of what comes next."""
        following = self.kind == "decoder" and bool(self._info.has_lm)
        where = [len(tokens) - 1] if following else self._masks(tokens)
        if not where or not len(tokens):
            raise ArgumentError("effects=True: the model predicts nothing here: a text with [MASK], or a language "
                                "model")
        head = _c.QKV_HEAD_NEXT if following else _c.QKV_HEAD_MASKED
        words = np.array([self._best(run, head, place).id for place in where], dtype=np.int32)
        positions = np.array(where, dtype=np.int64)
        heads = np.array([layer * self.n_heads + head for layer, head in places], dtype=np.int64)
        asked = init(_c.qkv_effects, which=_c.QKV_SELF, head=head, n_places=len(where), positions=positions.ctypes.data,
                     words=words.ctypes.data, n_sets=len(places), heads=heads.ctypes.data)
        log_p = self._ablated(self._handle, tokens, asked, (len(places) + 1, len(where)))
        means = log_p.mean(axis=1)
        changes = (means[1:] - means[0]).tolist()
        if len(where) > 1:
            what = f"the mean ln P of the {len(where)} likeliest words for the blanks"
            return Worth(what, "", -1, float(means[0]), changes)
        word = _shown(self._tokenizer(), int(words[0]))
        what = f"ln P({word}) {'after' if following else 'at'} token {where[0]}"
        return Worth(what, word, where[0], float(means[0]), changes)

    def _prediction(self, run: _Run, tokens: Tokens) -> str:
        said = []
        for place in self._masks(tokens):
            best = self._best(run, _c.QKV_HEAD_MASKED, place)
            said.append(f"The model fills place {place} with {_shown(self._tokenizer(), best.id)} "
                        f"({best.probability:.2f}).")
        return " ".join(said)


def load(folder: str | pathlib.Path | None = None, *, weights: Literal["file", "f32", "bf16", "int8"] = "file",
         context: Context | None = None) -> Model:
    """Opens a model: a folder of transformers, a GGUF file, `ollama:NAME[:TAG]`, a name in the local Hugging Face
    cache, or None for the small English encoder of this package. Nothing is downloaded. `weights="bf16"` keeps linear
    layers in half the memory, `weights="int8"` in about a quarter. `weights="file"` multiplies by the blocks of a GGUF
    file as they lie, and is f32 for all else."""
    return Model(folder, weights=weights, context=context)
