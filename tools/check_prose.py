#!/usr/bin/env python3
"""Checks the pages of the project: width, links, and the files that they name.

usage: tools/check_prose.py [FILE...]      without files: every page of the project (pages() below)
                                           and include/qkv/*.h

Rules
  width      no line of prose above 100 columns; tables, code blocks and links alone are exempt
  fence      a code block that is opened with ``` is closed
  link       a relative link names a file of the tree and, after a #, a heading of that file
  file       a path in backticks that begins with a folder of the tree, such as `src/attn/plan.c`,
             is there; * and … stand for any text. So is a file of tests that is named alone,
             `test_pipes.sh`

How sentences are written is not checked by a program. Read them aloud.
"""
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_WIDTH = 100
FOLDERS = ("src", "cli", "include", "tests", "tools", "docs", "cmake", "examples", "fuzz", "bench", "python",
           "models")
TEST = re.compile(r"`(?:\w+/)*(test_[a-z0-9_]+\.(?:c|h|py|sh))`")
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./*…-]*)`")


def prose_of_markdown(text):
    """Yields (line number, line, is_prose) of a Markdown file."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield number, line, False
        else:
            is_code = fenced or line.startswith("    ") and not re.match(r"\s*([-*]|\d+\.)\s", line)
            is_html = re.match(r"\s*</?(picture|source|img|p|a|sub|br)\b", line) is not None
            yield number, line, not (is_code or is_html or line.lstrip().startswith("|"))


def slug(heading):
    text = re.sub(r"`|\*|\[([^\]]*)\]\([^)]*\)", lambda m: m.group(1) or "", heading.strip().lower())
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text))


def headings_of(path):
    seen, slugs = {}, set()
    for _, line, is_prose in prose_of_markdown(path.read_text(encoding="utf-8")):
        match = re.match(r"#+\s+(.*)", line)
        if is_prose and match:
            name = slug(match.group(1))
            n = seen.get(name, 0)
            seen[name] = n + 1
            slugs.add(f"{name}-{n}" if n else name)
    return slugs


def check_links(path, text, complain):
    for number, line, _ in prose_of_markdown(text):
        for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", line):
            target = target[0] or target[1]
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists():
                complain(number, "link", f"{target} does not exist")
            elif anchor and file.suffix == ".md" and anchor not in headings_of(file):
                complain(number, "link", f"{target}: no such heading")


def check_files(text, complain):
    for number, line, _ in prose_of_markdown(text):
        for name in PATH.findall(line):
            if not any(ROOT.glob(name.replace("…", "*").rstrip("/"))):
                complain(number, "file", f"{name} does not exist")
        for name in TEST.findall(line):
            if name not in names_of_tests():
                complain(number, "file", f"{name} is in no folder of tests")


@functools.cache
def names_of_tests():
    return {path.name for folder in ("tests", "python/tests") for path in (ROOT / folder).rglob("test_*")}


def shown(path):
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def check(path):
    text = path.read_text(encoding="utf-8")
    found = []

    def complain(number, rule, what):
        found.append(f"{shown(path)}:{number}: {rule}: {what}")

    if path.suffix == ".h":
        lines = [(n, line, True) for n, line in enumerate(text.split("\n"), 1)]
    else:
        lines = list(prose_of_markdown(text))
        fences = [n for n, line, _ in lines if line.lstrip().startswith("```")]
        if len(fences) % 2:
            complain(fences[-1], "fence", "this ``` has no partner")
        check_links(path, text, complain)
        check_files(text, complain)
    for number, line, is_prose in lines:
        only_link = re.match(r"\s*[-*]?\s*!?\[[^\]]*\]\([^)]*\)\S?$", line)
        if is_prose and len(line) > MAX_WIDTH and not only_link:
            complain(number, "width", f"{len(line)} columns")
    return found


def pages():
    return [
        *sorted(ROOT.glob("*.md")),
        ROOT / "examples/README.md",
        ROOT / "python/README.md",
        *sorted((ROOT / ".github").rglob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "models").glob("*/README.md")),
        *sorted((ROOT / "include/qkv").glob("*.h")),
    ]


def main(names):
    files = [pathlib.Path(n).resolve() for n in names] or pages()
    found = [line for file in files for line in check(file)]
    print("\n".join(found + [f"prose: {len(files)} files, {len(found)} complaints"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
