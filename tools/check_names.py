#!/usr/bin/env python3
"""Names in C: what is defined twice, comments that name a file that is not there, and lines beyond 100 columns.

check_names.py [TREE]
"""
import os
import pathlib
import re
import subprocess
import sys

WIDTH = 100
#: Files of others that comments name.
FOREIGN = {"ggml-common.h", "ggml-quants.c", "third_party/darts_clone/darts.h"}
#: Python elsewhere is that of transformers and others.
OUR_PYTHON = ("tools/", "bench/", "python/", "tests/")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
FILE = re.compile(r"(?<![\w./*<{-])((?:[\w-]+/)*[\w-]+\.(?:c|h|S|sh|py|js|css|cmake|md))(?![\w*])")
TYPE = re.compile(r"^\}\s*(qkvi?_\w+);|^(?:struct|union|enum)\s+(qkvi?_\w+)\s*\{|"
                  r"^typedef\s+(?:struct|union|enum)?\s*\w*\s*\{[^{}]*\}\s*(qkvi?_\w+);|"
                  r"^typedef\s+[^{};]*?\b(qkvi?_\w+)(?:\([^;]*\))?;", re.M)
FUNCTION = re.compile(r"^(?:(?:static|inline|V_INLINE|QKV_API|QKV_NODISCARD|const|extern)\s+)*[a-z]\w*[\s*]+"
                      r"(qkvi_\w+)\([^;{}]*\)\s*\{", re.M)


def doubled(files: list[pathlib.Path]) -> list[str]:
    """Types and functions of src whose name stands for two things. Stubs of instruction sets share templates, and of the
    files of systems each build has one."""
    places: dict[str, set[str]] = {}
    for path in files:
        text = COMMENT.sub(" ", path.read_text())
        for found in TYPE.finditer(text):
            name = next(group for group in found.groups() if group)
            if not re.search(rf"^typedef\s+(?:struct|union|enum)\s+{name}\s+{name};", found[0]):
                places.setdefault(name, set()).add(str(path))
        for found in FUNCTION.finditer(text):
            places.setdefault(found[1] + "()", set()).add(str(path))
    return [f"{name} is defined in {' and '.join(sorted(where))}" for name, where in sorted(places.items())
            if len({place for place in where if "/vec/" not in place and "/os_windows" not in place}) > 1]


def stale(files: list[pathlib.Path], known: set[str]) -> list[str]:
    """Comments that name a file that is not in the tree. A name may begin in any folder."""
    found = []
    for path in files:
        text = path.read_text()
        for comment in COMMENT.finditer(text):
            for name in FILE.finditer(comment[0]):
                if name[1].startswith("torch/") or name[1].endswith(".py") and not name[1].startswith(OUR_PYTHON):
                    continue
                if name[1] not in known and name[1] not in FOREIGN:
                    line = text.count("\n", 0, comment.start() + name.start()) + 1
                    found.append(f"{path}:{line}: a comment names {name[1]}, which is not there")
    return found


def wide(files: list[pathlib.Path]) -> list[str]:
    """Lines that are too wide. Strings are not broken for it."""
    return [f"{path}:{number}: {len(line)} columns" for path in files
            for number, line in enumerate(path.read_text().split("\n"), 1) if len(line) > WIDTH and '"' not in line]


def main() -> int:
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    tracked = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.split("\n")
    tracked = [name for name in tracked if name and os.path.isfile(name)]
    known = {"/".join(name.split("/")[at:]) for name in tracked for at in range(name.count("/") + 1)}
    code = [pathlib.Path(name) for name in tracked if name.endswith((".c", ".h", ".S"))]
    src = [path for path in code if path.parts[0] == "src"]
    complaints = doubled(src) + stale(code, known) + wide([path for path in code if path.suffix != ".S"])
    print("\n".join(complaints), end="\n" if complaints else "")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
