#!/usr/bin/env python3
"""compare.py QKV LINES FOLDER: what engine.mjs made of each line, a text as JSON, is what the tool makes of it, byte by byte."""
import json
import pathlib
import subprocess
import sys

qkv, lines, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
n_wrong = 0
for i, line in enumerate(lines.read_text(encoding="utf-8").splitlines()):
    text = json.loads(line)
    own = folder / "native.html"
    subprocess.run([qkv, "look", "-", "-o", own, "--quiet"], input=text.encode(), check=True)
    said = subprocess.run([qkv, "look", "-", "--json", "--quiet"], input=text.encode(), check=True, capture_output=True).stdout
    for what, same in (("page", own.read_bytes() == (folder / f"{i}.html").read_bytes()),
                       ("JSON", json.loads(said) == json.loads((folder / f"{i}.json").read_text(encoding="utf-8")))):
        if not same:
            print(f"FAILED: the {what} of {text!r}")
            n_wrong += 1
sys.exit(1 if n_wrong else 0)
