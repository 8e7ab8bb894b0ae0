#!/usr/bin/env python3
"""compare.py QKV LINES SEER IMAGES FOLDER: what engine.mjs made of each line, a text as JSON, and of each image, is what the tool makes
of it, byte by byte; what one of them refuses, the other one refuses with the same words."""
import json
import pathlib
import subprocess
import sys

QKV = pathlib.Path(sys.argv[1]).resolve()
LINES, SEER, IMAGES, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[2:])
n_wrong = 0


def look(words, **more):
    return subprocess.run([QKV, "look", "--quiet", *words], capture_output=True, **more)


def compare(what, made, words, **more):
    global n_wrong
    own = FOLDER / "native.html"
    page, said = look([*words, "-o", own], **more), look([*words, "--json"], **more)
    reason = made.with_suffix(made.suffix + ".error")
    if page.returncode or reason.exists():
        same = page.returncode and reason.exists() and page.stderr.decode() == f"qkv: {reason.read_text(encoding='utf-8')}\n"
        parts = [("refusal", same)]
    else:
        html, data = (made.with_suffix(made.suffix + ending) for ending in (".html", ".json"))
        parts = [("page", own.read_bytes() == html.read_bytes()), ("JSON", json.loads(said.stdout) == json.loads(data.read_text(encoding="utf-8")))]
    for part, same in parts:
        if not same:
            print(f"FAILED: the {part} of {what!r} {page.stderr.decode()}")
            n_wrong += 1


for i, line in enumerate(LINES.read_text(encoding="utf-8").splitlines()):
    text = json.loads(line)
    compare(text, FOLDER / str(i), ["-"], input=text.encode())
both = FOLDER / "both"  # where names are those of the engine
both.mkdir(exist_ok=True)
for file in (SEER, *IMAGES.iterdir()):
    (both / file.name).unlink(missing_ok=True)
    (both / file.name).symlink_to(file)
for file in sorted(IMAGES.iterdir()):
    compare(file.name, FOLDER / file.name, ["--image", file.name, "--model", SEER.name], cwd=both)
sys.exit(1 if n_wrong else 0)
