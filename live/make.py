#!/usr/bin/env python3
"""One file of the live page: the engine in two modules, the files of the model once, and a first page that is finished.

make.py RELAXED.wasm EXACT.wasm MODEL FIRST.html OUT VERSION LICENCES

OUT/qkv.html is the page, OUT/qkv-wasm a package for npm of the same parts. MODEL is a folder with config.json, vocab.txt and
model.safetensors; FIRST.html is `qkv look` of the first example, with FIRST.json beside it, and with image.html, a page of an image, whose
script is another one; LICENCES is a folder of those of the
libraries in the modules. What is binary is packed by gzip, and written as base64, which a browser unpacks. Scripts may use no network:
the policy allows the scripts and the styles by their hashes, and workers that they make.
"""
import base64
import gzip
import hashlib
import json
import pathlib
import re
import shutil
import sys
from html import escape

HERE = pathlib.Path(__file__).parent
LIMIT = 9_000_000
MODEL_FILES = ("config.json", "vocab.txt", "model.safetensors")
SCRIPT, STYLE = r"<script>(.*?)</script>", r"<style>(.*?)</style>"


def packed(data):
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()


def hash_of(text):
    """'sha256-…', as a policy has it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def hashes(html, tag):
    """Those of what stands between tags of that name."""
    return " ".join(map(hash_of, re.findall(tag, html, re.DOTALL)))


def read(name):
    return (HERE / name).read_text(encoding="utf-8")


def as_script(*names):
    """Modules as one script: imports of each other go, exports become plain."""
    text = "\n".join(read(name) for name in names)
    return re.sub(r"^export ", "", re.sub(r"^import .*\n", "", text, flags=re.M), flags=re.M)


def write_package(folder, relaxed, exact, model, version, licences):
    about = {"name": "qkv-wasm", "version": version, "description": "What each attention head does with a sentence: qkv in WebAssembly",
             "type": "module", "exports": {".": {"types": "./index.d.ts", "default": "./index.mjs"}}, "license": "Apache-2.0",
             "engines": {"node": ">=18"}, "sideEffects": False}
    (folder / "model").mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    for name in ("index.mjs", "engine.mjs", "wasi.mjs", "index.d.ts"):
        shutil.copy(HERE / name, folder)
    shutil.copy(HERE / "package.md", folder / "README.md")
    shutil.copy(HERE.parent / "LICENSE", folder)
    (folder / "LICENSE.libraries").write_text(licences + "\n", encoding="utf-8")
    shutil.copy(relaxed, folder / "engine-relaxed.wasm")
    shutil.copy(exact, folder / "engine-exact.wasm")
    for name in MODEL_FILES:
        shutil.copy(model / name, folder / "model")


def main():
    relaxed, exact, model, first, out = map(pathlib.Path, sys.argv[1:6])
    out.mkdir(parents=True, exist_ok=True)
    licences = "\n\n".join(f"{file.stem}\n\n{file.read_text(encoding='utf-8').strip()}" for file in sorted(pathlib.Path(sys.argv[7]).glob("*.txt")))
    write_package(out / "qkv-wasm", relaxed, exact, model, sys.argv[6], licences)
    first_page = first.read_text(encoding="utf-8")
    pages = first_page + first.with_name("image.html").read_text(encoding="utf-8")
    files = {"relaxed": relaxed, "exact": exact, **dict(zip(("config", "vocab", "weights"), (model / name for name in MODEL_FILES)))}
    holes = {
        "style": read("live.css"),
        "script": read("live.js"),
        "follow": read("follow.js"),
        "follow_hash": hash_of(read("follow.js")),
        "examples": escape(json.dumps(read("examples.txt").splitlines(), ensure_ascii=False)),
        "worker": as_script("wasi.mjs", "engine.mjs", "worker.mjs"),
        "licences": escape((HERE.parent / "LICENSE").read_text(encoding="utf-8") + "\n\n" + licences, quote=False),
        "first": packed(first.read_bytes()),
        "seen": first.with_suffix(".json").read_text(encoding="utf-8").strip().replace("<", "\\u003c"),
        "packed": "\n".join(f'<script type="application/octet-stream" id="{name}">{packed(file.read_bytes())}</script>'
                            for name, file in files.items()),
    }
    for name in ("script", "follow", "worker"):
        if "</script" in holes[name]:
            sys.exit(f"make.py: the {name} would end its element")
    html = read("live.html")
    html = re.sub(r"@\{(style|script)\}", lambda hole: holes[hole[1]], html)
    # Frames inherit the policy, and pages have a script and a style of their own; live.js lets follow.js into them.
    policy = (f"default-src 'none'; script-src {hashes(html, SCRIPT)} {hashes(pages, SCRIPT)} {holes['follow_hash']} 'wasm-unsafe-eval' blob:; "
              f"style-src {hashes(html, STYLE)} {hashes(first_page, STYLE)}; img-src data: blob:; worker-src blob:; "
              "base-uri 'none'; form-action 'none'")
    html = re.sub(r"@\{(\w+)\}", lambda hole: policy if hole[1] == "policy" else holes[hole[1]], html)
    page = out / "qkv.html"
    page.write_text(html, encoding="utf-8")
    n = page.stat().st_size
    print(f"{page}: {n} bytes")
    if n > LIMIT:
        sys.exit(f"make.py: {n} bytes are more than {LIMIT}")


main()
