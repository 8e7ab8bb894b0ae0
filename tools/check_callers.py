#!/usr/bin/env python3
"""Public functions without a caller.

Each function of include/qkv is called by the tool, the live page, Python, an example, the C of a page of docs/, or by another
room of src than the one that defines it (a `_fill` by an inline function of its header). Tests and fuzzers are no callers.
What is called by nobody is not worth a promise.

check_callers.py [TREE]
"""
import os
import pathlib
import re
import sys

FUNCTION = re.compile(r"QKV_API\b[^;{]*?\b(qkv\w*)\(")
DEFINITION = re.compile(r"^[a-z][\w\s*]*?\b(qkv(?:mpi)?_\w+)\([^;{}]*\)\s*\{", re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
CODE = re.compile(r"```c\n(.*?)```|((?:^    [^\n]*\n)+)", re.S | re.M)
#: Folders whose files are callers, and the endings of these files.
CALLERS = {"cli": (".c", ".h"), "live": (".c",), "examples": (".c",), "python/src": (".py", ".c", ".cpp"), "bench": (".py", ".c")}
#: Without a caller, and why it stays.
ALLOWED: dict[str, str] = {}


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\bqkv\w*", text))


def room_of(path: pathlib.Path) -> str:
    return "/".join(path.parts[:2])


def main() -> int:
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    headers = {path: COMMENT.sub(" ", path.read_text()) for path in sorted(pathlib.Path("include/qkv").glob("*.h"))}
    declared = {name: path for path, text in headers.items() for name in FUNCTION.findall(text)}
    called: set[str] = set()
    for folder, endings in CALLERS.items():
        for path in pathlib.Path(folder).rglob("*"):
            if path.suffix in endings:
                called |= words_of(COMMENT.sub(" ", path.read_text()))
    for path in pathlib.Path("docs").rglob("*.md"):
        called |= words_of("\n".join(fenced or indented for fenced, indented in CODE.findall(path.read_text())))
    for text in headers.values():
        inline = re.findall(r"static inline\b[^;{]*\{(.*?)\n\}", text, re.S)
        called |= words_of("\n".join(inline))
    defined: dict[str, str] = {}
    used: dict[str, set[str]] = {}
    for path in pathlib.Path("src").rglob("*.[ch]"):
        text = COMMENT.sub(" ", path.read_text())
        if path.suffix == ".c":
            defined.update(dict.fromkeys(DEFINITION.findall(text), room_of(path)))
        for name in words_of(text):
            used.setdefault(name, set()).add(room_of(path))
    bad = [f"{path}: {name} has no caller" for name, path in sorted(declared.items())
           if name not in called and not used.get(name, set()) - {defined.get(name, "")} and name not in ALLOWED]
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
