#!/usr/bin/env python3
"""Circles of src and cli: folders that include each other, and units that call each other.

A unit is a .c file. Unit A depends on unit B if A uses a function or an object that B defines, whichever header
declares it. A circle is a set of units, or of folders, each of which depends on each other one by some way. Those that are
known are in ALLOWED, with the reason: one subject that is cut in several files for its size.

check_circles.py [--list] [TREE]: prints each circle that is not allowed, or all; 1 if there is one that is not.
"""
import os
import pathlib
import re
import sys

ROOMS = ("src", "cli")
#: Circles by the first name in order: one subject in several files, and no more files than there are today.
ALLOWED = {
    "src/kernels": (3, "a template is compiled by the kernels that use it, and uses their contract"),
    "src/files/audit": (3, "what a strict reading asks, of tensors and of names"),
    "src/inspect/heads": (4, "heads, their mean, weights and profile: one object"),
    "src/inspect/steps": (4, "steps of a layer, of a block of it, and of the rows of an image"),
    "src/model/config/recipe": (3, "steps of a recipe, and their files"),
    "src/model/generate/beams": (2, "a search with beams, and without"),
    "src/gguf/config": (2, "config.json of a GGUF file, and its positions"),
    "src/mpi/mpi_explain": (2, "a group, and what it plans"),
    "src/text/bpe": (2, "BPE, and its kind over metaspaces"),
    "src/train/checkpoint": (2, "a checkpoint is fine-tuned, and written"),
    "src/train/eval": (4, "an evaluation of blanks, pieces and probes"),
    "src/train/grammar/draw": (4, "templates are drawn, matched and made wrong by each other"),
    "src/train/objective": (3, "the objective of a model, by kind"),
}

NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
WORD = re.compile(r"[A-Za-z_]\w*")
#: A definition begins in the first column; its name stands before "(" or, of an object, before "=", "[" or ";".
FUNCTION = re.compile(r"^(?!static\b|typedef\b|extern\b|V_INLINE\b)[A-Za-z_][\w\s*]*?\b(\w+)\([^;{}]*?\)\s*\{", re.M)
OBJECT = re.compile(r"^(?!static\b|typedef\b|extern\b|struct\s+\w+\s*\{|enum\b|union\b|return\b|#)"
                    r"(?:[A-Za-z_]\w*[\s*]+)+(\w+)(?:\[[^\]]*\])*\s*(?:=|;)", re.M)


def code_of(path: pathlib.Path) -> str:
    return NOISE.sub(" ", path.read_text())


def circles_of(edges: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one node (Tarjan 1972), each sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            part = sorted(stack[at:])
            del stack[at:]
            if len(part) > 1:
                found.append(part)

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def unit_edges(files: list[pathlib.Path]) -> dict[str, set[str]]:
    defines: dict[str, set[str]] = {}
    uses: dict[str, set[str]] = {}
    for path in files:
        code = code_of(path)
        unit = str(path.with_suffix(""))
        uses[unit] = set(WORD.findall(code))
        for name in FUNCTION.findall(code) + OBJECT.findall(code):
            defines.setdefault(name, set()).add(unit)
    edges: dict[str, set[str]] = {unit: set() for unit in uses}
    for unit, words in uses.items():
        for word in words:
            if len(where := defines.get(word, ())) == 1:
                edges[unit] |= where
        edges[unit].discard(unit)
    return edges


def folder_edges(files: list[pathlib.Path]) -> dict[str, set[str]]:
    edges: dict[str, set[str]] = {}
    for path in files:
        room = path.parts[0]
        for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(), re.M):
            other = str((pathlib.Path(room) / name).parent)
            if other != str(path.parent) and not name.startswith("qkv/"):
                edges.setdefault(str(path.parent), set()).add(other)
    return edges


def main() -> int:
    arguments = [a for a in sys.argv[1:] if a != "--list"]
    everything = "--list" in sys.argv[1:]
    os.chdir(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    sys.setrecursionlimit(10000)
    bad = 0
    for room in ROOMS:
        files = sorted(path for end in ("*.c", "*.h") for path in pathlib.Path(room).rglob(end))
        for what, edges in (("folders", folder_edges(files)), ("units", unit_edges([path for path in files if path.suffix == ".c"]))):
            circles = circles_of(edges)
            for circle in circles:
                allowed = len(circle) <= ALLOWED.get(circle[0], (0, ""))[0]
                bad += not allowed
                if everything or not allowed:
                    print(f"circle of {len(circle)} {what}: {' '.join(circle)}{' (allowed)' if allowed else ''}")
            if everything:
                print(f"{room}: {len(circles)} circles of {what}, of {sum(map(len, circles))}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
