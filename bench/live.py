#!/usr/bin/env python3
"""What the live page costs, in headless Chromium, beside the tool on the same machine.

live.py QKV PAGE.html FOLDER [ROUNDS]: medians of ROUNDS (20), of the module of relaxed SIMD and of the exact one, which a browser without
FMA takes:
  open      from the start of loading to the first page drawn, and to the engine that answers
  typed     a text of 11 tokens: from the change of the field to the frame behind the one in which its page is drawn
  MiniLM    a model of that shape (6 layers, 384 wide, 30,522 tokens; random weights, made in FOLDER) given to the page, and 128 tokens of it
The tool computes and writes the same page (`look -o`, with the start of its process) between the rounds. Nothing is checked here: the
bytes of the pages are a matter of tests/live. Needs playwright and numpy.
"""
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/page"))
import harness  # noqa: E402

QKV, PAGE, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
ROUNDS = int(sys.argv[4]) if len(sys.argv) > 4 else 20
TEXTS = ["I was watching the [MASK] when it opened.", "I was watching the [MASK] when it closed."]  # 11 tokens each, with [CLS] and [SEP]
ENGINES = {"relaxed": [], "exact": ["--js-flags=--no-enable-fma3"]}

OPENING = """(() => { const seen = window.opening = {}, look = () => {
    const frame = document.querySelector("main iframe");
    if (!seen.page && frame?.contentDocument?.getElementById("panel")?.children.length) seen.page = performance.now();
    if (!seen.engine && document.documentElement?.dataset.engine) seen.engine = performance.now();
    if (!seen.page || !seen.engine) requestAnimationFrame(look); };
    if (window === top) requestAnimationFrame(look); })()"""
TYPED = """text => new Promise(done => { const began = performance.now(), field = document.querySelector("#text"), look = () =>
    answered === text && !coming && !next && shown?.of === text ? requestAnimationFrame(() => done(performance.now() - began)) :
    requestAnimationFrame(look);
    field.value = text; field.dispatchEvent(new Event("input", {bubbles: true})); requestAnimationFrame(look); })"""


def mini_lm(folder):
    """The shape of all-MiniLM-L6: BERT of 6 layers with 12 heads of 32. Its words are those of models/default, then names."""
    folder.mkdir(exist_ok=True)
    words = (ROOT / "models/default/vocab.txt").read_text(encoding="utf-8").splitlines()
    words += [f"[unused{at}]" for at in range(30522 - len(words))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    config = dict(model_type="bert", architectures=["BertModel"], hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
                  vocab_size=30522, max_position_embeddings=512, type_vocab_size=2, hidden_act="gelu", layer_norm_eps=1e-12)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shapes = {"embeddings.word_embeddings.weight": (30522, 384), "embeddings.position_embeddings.weight": (512, 384),
              "embeddings.token_type_embeddings.weight": (2, 384), "embeddings.LayerNorm.weight": (384,), "embeddings.LayerNorm.bias": (384,)}
    for layer in range(6):
        parts = {"attention.self.query": (384, 384), "attention.self.key": (384, 384), "attention.self.value": (384, 384),
                 "attention.output.dense": (384, 384), "intermediate.dense": (1536, 384), "output.dense": (384, 1536),
                 "attention.output.LayerNorm": (384,), "output.LayerNorm": (384,)}
        for name, shape in parts.items():
            shapes[f"encoder.layer.{layer}.{name}.weight"] = shape
            shapes[f"encoder.layer.{layer}.{name}.bias"] = shape[:1]
    draw, header, at, tensors = numpy.random.default_rng(11), {}, 0, []
    for name, shape in shapes.items():
        tensor = draw.standard_normal(shape, numpy.float32) * numpy.float32(0.05) + numpy.float32(name.endswith("LayerNorm.weight"))
        header[name] = dict(dtype="F32", shape=shape, data_offsets=[at, at + tensor.nbytes])
        at += tensor.nbytes
        tensors.append(tensor)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(folder / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(head)) + head)
        for tensor in tensors:
            out.write(tensor.tobytes())
    return folder


def long_texts():
    """Two texts of 126 words, which are 128 tokens, with another last word."""
    words = "the dog saw the man and the man saw the old house in the garden".split()
    body = " ".join((words * 9)[:125])
    return [f"{body} {last}" for last in ("door", "house")]


def native(text, *options):
    began = time.perf_counter()
    subprocess.run([QKV, "look", text, "-o", FOLDER / "native.html", "--quiet", *options], check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.perf_counter() - began)


def typed(page, texts, options, rounds):
    """Medians of the page and of the tool, whose runs alternate."""
    here, tool = [], []
    page.evaluate(TYPED, texts[1])
    for at in range(rounds):
        here.append(page.evaluate(TYPED, texts[at % 2]))
        tool.append(native(texts[at % 2], *options))
    return statistics.median(here), statistics.median(tool)


def measured(browser, engine, model):
    opens = []
    for _ in range(5):
        with harness.Open(browser, f"file://{PAGE}", OPENING, viewport={"width": 1280, "height": 860}) as opened:
            opened.until("opening.page && opening.engine")
            opens.append(opened.run("[opening.page, opening.engine]"))
    first, ready = (statistics.median(each[at] for each in opens) for at in (0, 1))
    print(f"{engine:8} open: a page after {first:.0f} ms, the engine after {ready:.0f} ms", flush=True)
    with harness.Open(browser, f"file://{PAGE}", viewport={"width": 1280, "height": 860}) as opened:
        page = opened.page
        opened.until("document.documentElement.dataset.engine")
        assert opened.run("engine.name") == engine, opened.run("engine.reasons")
        here, tool = typed(page, TEXTS, [], ROUNDS)
        print(f"{engine:8} typed to painted, 11 tokens: {here:.1f} ms, {here / tool:.2f} of the tool's {tool:.1f} ms", flush=True)
        page.click("#models summary")
        began = time.perf_counter()
        page.set_input_files("#model-folder", model)
        opened.until("engine.given?.name === 'mini-lm' && model.architecture && !quick.busy")
        print(f"{engine:8} MiniLM's shape: open after {time.perf_counter() - began:.2f} s", flush=True)
        here, tool = typed(page, long_texts(), ["--model", model], max(3, ROUNDS // 4))
        print(f"{engine:8} MiniLM's shape, 128 tokens: {here / 1000:.2f} s, {here / tool:.2f} of the tool's {tool / 1000:.2f} s", flush=True)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    model = mini_lm(FOLDER / "mini-lm")
    with harness.sync_playwright() as playwright:
        for engine, options in ENGINES.items():
            browser = harness.launch(playwright.chromium, *options)
            measured(browser, engine, model)
            browser.close()


main()
