#!/usr/bin/env python3
"""The order of rooms: what a folder of src may include, which public headers it sees, and libraries of others.

A room sees itself and the rooms that stand for it in SEES; nothing sees a room that is not listed there. The tool sees
only include/qkv, core/os.h, itself and cli/common; ROOMS_BELOW and SUITE have what else its rooms see. Prints each include that breaks
this, and a room of src that has become too large.

check_layers.py [--lines] [TREE]        --lines: prints the lines of C of each room
"""
import collections
import os
import pathlib
import re
import sys

ENGINE = "core kernels attn layer"
#: A room of a model sees those before it.
MODEL = ["model/weights", "model/layer", "model/arch", "model/config", "model", "model/generate"]
UPPER = f"{ENGINE} files text gguf image {' '.join(MODEL)}"
#: room: the rooms that it sees beside itself.
SEES = {
    "core": "",
    "kernels": "core",
    "attn": "core kernels",
    "layer": "core kernels attn",
    "onnx": "core kernels attn",
    "dist": "core kernels attn",
    "mpi": "core kernels attn dist",
    "files": "core",
    "text": "core files",
    "image": "core files",
    "gguf": "core files text",
    **{room: f"{ENGINE} files text gguf image {' '.join(MODEL[:i])}" for i, room in enumerate(MODEL)},
    "train/grammar": "core files",
    "train": f"{UPPER} train/grammar",
    "inspect": f"{UPPER} train",
    "page": f"{UPPER} train inspect",
    "view": f"{UPPER} train inspect",
}
#: Folders of one room.
PART_OF = {"view/none": "view", "kernels/tmpl": "kernels", "kernels/vec": "kernels", "page/web": "page"}
#: A public header: the room to which it belongs. A room sees its own headers and those of rooms that it sees.
HEADERS = {"qkv": "core", "status": "core", "stats": "core", "ranks": "core", "kv": "attn", "columns": "attn",
           "layers": "layer", "onnx": "onnx", "mpi": "mpi", "files": "files", "tokenizer": "text", "image": "image",
           "model": "model/weights", "generate": "model/generate", "train": "train", "heads": "inspect",
           "inspect": "inspect", "patterns": "inspect", "effects": "inspect", "vision": "model", "page": "page", "picture": "view"}
#: Headers of other libraries, which libqkv does without: the rooms that may include them.
ABOVE = f"files text gguf image {' '.join(MODEL)} train/grammar train inspect page view"
LIBRARIES = {"jansson": ABOVE, "utf8proc": ABOVE, "zlib": ABOVE, "png.h": "image", "jpeglib.h": "image", "jerror.h": "image",
             "cairo": "view", "pango": "view", "mpi.h": "mpi"}
#: Rooms of the tool that see another one than common.
ROOMS_BELOW = {("look", "sinks"), ("look", "attend"), ("look", "serve")}
#: The most that a room has of the lines of C of src.
MOST_SHARE = 0.17
#: The only files of the tool that include something else.
EXCEPTIONS = {("cli/bench/cmd_check.c", "check/check.h")}
#: What `qkv bench` measures, for its room of the tool and for bench/*.py. It sees only include/qkv, core/os.h and itself.
SUITE = re.compile(r"suite/\w+[.]h")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.M)


def room_of(folder: str) -> str:
    return PART_OF.get(folder, folder)


def why_not(room: str, name: str, brackets: bool) -> str:
    """Why a file of that room of src may not include it; "" if it may."""
    seen = {room, *SEES[room].split()}
    if ".." in name:
        return "includes are relative to src"
    if public := re.fullmatch(r"qkv/(\w+)[.]h", name):
        if public[1] not in HEADERS:
            return "tools/check_layers.py does not know the header"
        return "" if HEADERS[public[1]] in seen else f"a header of {HEADERS[public[1]]}, which {room} does not see"
    if brackets:
        for library, rooms in LIBRARIES.items():
            if name.startswith(library) and room not in rooms.split():
                return f"{room} does not use {library}"
        return ""
    other = room_of(name.rpartition("/")[0])
    return "" if not other or other in seen else f"{room} does not see {other}"


def why_not_tool(path: pathlib.Path, name: str, brackets: bool) -> str:
    if brackets or name.startswith("qkv/") or name == "core/os.h" or (str(path), name) in EXCEPTIONS:
        return ""
    if path.suffix == ".S" and name in ("elf_notes.h", "embed.h"):
        return ""
    if path.parts[:2] in (("cli", "bench"), ("bench", "suite")) and SUITE.fullmatch(name):
        return ""
    if path.parts[0] == "bench":
        return "bench/suite sees only include/qkv, core/os.h and itself"
    if not (pathlib.Path("cli") / name).is_file():
        return "the tool sees only include/qkv"
    room, other = (path.parts[1] if len(path.parts) > 2 else ""), name.split("/")[0]
    if not room or other in (room, "common") or (room, other) in ROOMS_BELOW:
        return ""
    return f"{room} does not see {other}"


def lines_of(top: str) -> collections.Counter[str]:
    lines: collections.Counter[str] = collections.Counter()
    for path in pathlib.Path(top).rglob("*.[ch]"):
        lines["/".join(path.parts[:2]) if len(path.parts) > 2 else top] += path.read_text().count("\n")
    return lines


def print_lines() -> None:
    for top in ("src", "cli"):
        lines = lines_of(top)
        for room, n in sorted(lines.items()):
            print(f"{n:7} {100 * n / lines.total():5.1f} % {room}")
        print(f"{lines.total():7}         {top}")


def main() -> int:
    arguments = [argument for argument in sys.argv[1:] if argument != "--lines"]
    os.chdir(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    if "--lines" in sys.argv[1:]:
        print_lines()
    lines = lines_of("src")
    broken = [f"{room} has {n} of the {lines.total()} lines of src, more than {100 * MOST_SHARE:.0f} %: split a subject off"
              for room, n in sorted(lines.items()) if lines.total() >= 10000 and n > MOST_SHARE * lines.total()]
    for path in sorted(p for top in ("src", "cli", "bench/suite") for p in pathlib.Path(top).rglob("*.[chS]")):
        folder = room_of(str(path.parent.relative_to(path.parts[0])))
        if path.parts[0] == "src" and folder not in SEES:
            broken.append(f"{path}: {folder} is no room that tools/check_layers.py knows")
            continue
        text = path.read_text()
        for found in INCLUDE.finditer(text):
            brackets, name = found[1] == "<" and not found[2].startswith("qkv/"), found[2]
            reason = why_not(folder, name, brackets) if path.parts[0] == "src" else why_not_tool(path, name, brackets)
            if reason:
                broken.append(f"{path}:{text[:found.start()].count(chr(10)) + 1}: includes {name}: {reason}")
    print("\n".join(broken), end="\n" if broken else "", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
