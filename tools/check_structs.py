#!/usr/bin/env python3
"""Every struct of include/qkv can grow, or is said not to: it begins with struct_size, or docs/api.md names it under Structs."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
api = (ROOT / "docs/api.md").read_text().split("## Structs")[1].split("\n## ")[0]
named = set(re.findall(r"`(qkv_\w+)`", api)) - {"qkv_model_candidates"}
seen, wrong = set(), []
for header in sorted((ROOT / "include/qkv").glob("*.h")):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    for name, body in re.findall(r"struct (qkv_\w+) \{\s*(.*?)\}", text, flags=re.S):
        seen.add(name)
        sized = body.startswith("size_t struct_size;")
        if sized == (name in named):
            wrong.append(f"{header.name}: {name} " + ("has a struct_size, and is in a list" if sized else "is in no list"))
wrong += [f"{name} is in a list, and no struct" for name in sorted(named - seen)]
for line in wrong:
    print(f"docs/api.md, Structs: {line}")
print(f"structs: {len(seen)}, {len(wrong)} complaints")
sys.exit(bool(wrong))
