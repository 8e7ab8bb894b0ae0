#!/usr/bin/env python3
"""Checks the prose of the project: width, length of sentences, links.

usage: tools/check_prose.py [FILE...]      without files: README, HACKING, CONTRIBUTING, SECURITY,
                                           docs/*.md, include/qkv/*.h

Rules
  width      no line of prose above 100 columns; tables, code blocks and links alone are exempt
  sentence   at most 25 words in a sentence of README.md, HACKING.md, CONTRIBUTING.md, python/README.md, docs/*.md and
             the comments of public headers; code, formulas and table rows are exempt
  word       no nobody, everybody, somebody or anybody: which thread, query, reader or caller is meant
  link       a relative link of a Markdown file names a file, and a heading of it

tools/prose_exceptions.txt lists the sentences that may be longer, one a line: FILE TAB first words.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_WIDTH, MAX_WORDS = 100, 25
VAGUE = re.compile(r"\b(no|every|some|any)body\b", re.I)


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


def blocks_of_markdown(text):
    """Yields (line number, paragraph)."""
    paragraph, start = [], 0
    for number, line, is_prose in prose_of_markdown(text):
        item = re.match(r"\s*([-*]|\d+\.)\s+(.*)", line)
        heading = line.startswith("#")
        if not is_prose or not line.strip() or item or heading:
            if paragraph:
                yield start, " ".join(paragraph)
            paragraph = []
        if is_prose and line.strip() and not heading:
            if not paragraph:
                start = number
            paragraph.append(item.group(2) if item else line.strip())
    if paragraph:
        yield start, " ".join(paragraph)


def blocks_of_header(text):
    """Yields (line number, paragraph) of the comments of a C header; indented lines are formulas or lists."""
    for comment in re.finditer(r"/\*\*?(.*?)\*/", text, re.S):
        first = text.count("\n", 0, comment.start()) + 1
        paragraph, start = [], first
        for offset, raw in enumerate(comment.group(1).split("\n")):
            line = re.sub(r"^\s*\* ?", "", raw).rstrip() if offset else raw.strip()
            is_shape = re.match(r"\s{4,}\S", line) is not None or re.search(r"\S {3,}\S", line)
            tag = re.match(r"@(param|return)\b", line) or re.match(r"[A-Z][A-Za-z, ]{2,30}: ", line)
            if not line.strip() or is_shape or tag:
                if paragraph:
                    yield start, " ".join(paragraph)
                paragraph = []
            if line.strip() and not is_shape:
                if not paragraph:
                    start = first + offset
                paragraph.append(line.strip())
        if paragraph:
            yield start, " ".join(paragraph)


def sentences_of(paragraph):
    text = re.sub(r"`[^`]*`", "CODE", paragraph)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\b(e\.g|i\.e|et al|etc|vs|cf|No|Fig|sec)\.", r"\1", text)
    text = re.sub(r"(\d)\.(\d)", r"\1,\2", text)
    return [s for s in re.split(r"(?<=[.!?])[\"')\]*_]*\s+", text) if s.strip()]


def words_of(sentence):
    return [w for w in sentence.split() if re.search(r"[A-Za-z]", w)]


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


def exceptions():
    file = ROOT / "tools/prose_exceptions.txt"
    if not file.exists():
        return set()
    lines = file.read_text(encoding="utf-8").split("\n")
    return {tuple(line.split("\t", 1)) for line in lines if "\t" in line and not line.startswith("#")}


def check(path, allowed):
    text = path.read_text(encoding="utf-8")
    relative = str(path.relative_to(ROOT))
    is_header = path.suffix == ".h"
    found = []

    def complain(number, rule, what):
        found.append(f"{relative}:{number}: {rule}: {what}")

    if is_header:
        lines = [(n, line, True) for n, line in enumerate(text.split("\n"), 1)]
    else:
        lines = list(prose_of_markdown(text))
        check_links(path, text, complain)
    for number, line, is_prose in lines:
        only_link = re.match(r"\s*[-*]?\s*\[[^\]]*\]\([^)]*\)\S?$", line)
        if is_prose and len(line) > MAX_WIDTH and not only_link:
            complain(number, "width", f"{len(line)} columns")
    for number, paragraph in (blocks_of_header if is_header else blocks_of_markdown)(text):
        for sentence in sentences_of(paragraph):
            vague = VAGUE.search(sentence)
            if vague:
                complain(number, "word", f"{vague.group(0)}: {sentence[:70]}...")
            n = len(words_of(sentence))
            if n > MAX_WORDS and not any(f == relative and sentence.startswith(s) for f, s in allowed):
                complain(number, "sentence", f"{n} words: {sentence[:70]}...")
    return found


def main(names):
    files = [pathlib.Path(n).resolve() for n in names] or [
        *(ROOT / n for n in ("README.md", "HACKING.md", "CONTRIBUTING.md", "SECURITY.md")),
        ROOT / "python/README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "include/qkv").glob("*.h")),
    ]
    allowed = exceptions()
    found = [line for file in files for line in check(file, allowed)]
    print("\n".join(found + [f"prose: {len(files)} files, {len(found)} complaints"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
