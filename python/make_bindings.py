#!/usr/bin/env python3
"""Writes the ctypes declarations of every public header: constants, structures and functions.

usage: make_bindings.py INCLUDE_FOLDER [OUTPUT]

Every pointer is a c_void_p, so that an address is passed as an integer; const char *, a text that a NUL ends, is a
c_char_p. A char * is bytes with a length beside it, which may hold NULs: read as a c_char_p it would lose its address.
python/tests/test_layout.py compiles the same headers and compares sizes and offsets.
"""
import keyword
import pathlib
import re
import sys

SCALARS = {
    "int": "c_int", "float": "c_float", "double": "c_double", "size_t": "c_size_t", "char": "c_char",
    "int32_t": "c_int32", "int64_t": "c_int64", "uint8_t": "c_uint8", "uint16_t": "c_uint16",
    "uint32_t": "c_uint32", "uint64_t": "c_uint64", "int16_t": "c_int16", "int8_t": "c_int8",
}
# status.h comes first: all others need it.
FIRST = ["status.h", "qkv.h"]


def top_level(text):
    """Yields the declarations of a header: everything to a ';' outside braces, or to a closing brace of a body."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0 and text[start:at].lstrip().startswith(("static inline", "QKV_NODISCARD static inline")):
                start = at + 1
        elif char == ";" and depth == 0:
            yield " ".join(text[start:at].split())
            start = at + 1


def clean(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"^[ \t]*#[^\n]*", "", text, flags=re.M)
    text = re.sub(r"QKV_DEFINE_INIT\(\w+\)", " ", text)
    text = re.sub(r"\bstruct (qkv_\w+)(?=\s*\*)", r"\1", text)
    text = re.sub(r"\bunsigned char\b", "uint8_t", text)
    text = re.sub(r"\bunsigned( int)?\b", "uint32_t", text)
    return re.sub(r'extern "C" \{', " ", text)


class Bindings:
    def __init__(self):
        self.constants, self.enums, self.structs, self.functions = {}, [], {}, {}

    def value(self, text):
        expression = re.sub(r"\b(\d+)u?l?l?\b", r"\1", text)
        return eval(expression, {"__builtins__": {}}, dict(self.constants))  # numbers and names of our own headers

    def read_enum(self, name, body):
        last = -1
        for item in filter(None, (part.strip() for part in body.split(","))):
            key, _, text = item.partition("=")
            last = self.value(text) if text else last + 1
            self.constants[key.strip()] = last
        if name:
            self.enums.append(name)

    def type_of(self, text):
        """The ctypes name of a C type without its declarator."""
        words = [word for word in text.replace("*", " * ").split() if word not in ("const", "struct", "enum")]
        if words == ["char", "*"] and "const" in text.split():
            return "c_char_p"
        if "*" in words:
            return "c_void_p"
        name = words[0]
        if name == "void":
            return "None"
        if name in SCALARS:
            return SCALARS[name]
        if name in self.enums:
            return "c_int"
        if name in self.structs:
            return name
        raise ValueError(f"unknown type: {text}")

    def fields_of(self, body):
        for declaration in filter(None, (part.strip() for part in body.split(";"))):
            pointer = re.match(r"[\w\s*]+?\(\*(\w+)\)\(.*\)$", declaration)
            if pointer:
                yield pointer[1], "c_void_p"
                continue
            words = re.match(r"((?:const\s+)?\w+)\s*(.*)$", declaration)
            for declarator in words[2].split(","):
                parts = re.match(r"\s*((?:\*|const|\s)*)(\w+)((?:\[[^\]]*\])*)$", declarator)
                made = self.type_of(words[1] + " " + parts[1])
                for size in reversed(re.findall(r"\[([^\]]*)\]", parts[3])):
                    made = f"{made} * {self.value(size)}"
                yield parts[2] + "_" * keyword.iskeyword(parts[2]), made

    def parameters_of(self, text):
        depth, piece, pieces = 0, "", []
        for char in text + ",":
            depth += (char == "(") - (char == ")")
            if char == "," and depth == 0:
                pieces.append(piece.strip())
                piece = ""
            else:
                piece += char
        for piece in pieces:
            if piece in ("", "void"):
                continue
            if "(*" in piece or piece.endswith("]"):
                yield "c_void_p"
            else:
                yield self.type_of(re.sub(r"\w+$", "", piece) if not re.fullmatch(r"\w+", piece) else piece)

    def read(self, header):
        for text in top_level(clean(header.read_text())):
            text = text.lstrip("} ")
            if match := re.match(r"typedef enum (\w+) \{(.*)\} \w+$", text):
                self.read_enum(match[1], match[2])
            elif match := re.match(r"enum \{(.*)\}$", text):
                self.read_enum(None, match[1])
            elif match := re.match(r"(?:typedef )?struct (\w+) \{(.*)\}(?: \w+)?$", text):
                self.structs[match[1]] = None  # a field may point at its own struct
                self.structs[match[1]] = list(self.fields_of(match[2]))
            elif re.match(r"typedef (struct (\w+) \w+|\w+ \w+\(.*\))$", text):
                continue  # of pointers to these, only the address counts
            elif match := re.match(r"QKV_API (?:QKV_NODISCARD )?(.*?)(qkv_\w+) ?\((.*)\)$", text):
                arguments = list(self.parameters_of(match[3]))
                self.functions[match[2]] = (self.type_of(match[1]), arguments)
            elif text:
                raise ValueError(f"{header.name}: not understood: {text}")

    def write(self, out):
        out.write('"""Declarations of the C headers. Made by make_bindings.py: do not edit."""\n')
        out.write("from __future__ import annotations\n\nfrom ctypes import (\n    Structure, c_char, c_char_p, "
                  "c_double, c_float, c_int, c_int32, c_int64, c_size_t,\n    c_uint8, c_uint32, c_uint64, c_void_p)\n")
        out.write("from typing import Any\n\n")
        for name, value in self.constants.items():
            out.write(f"{name} = {value}\n")
        for name, fields in self.structs.items():
            out.write(f"\n\nclass {name}(Structure):\n")
            for field, made in fields:
                kind = {"c_int": "int", "c_float": "float", "c_double": "float", "c_size_t": "int"}.get(made)
                kind = kind or ("int" if re.fullmatch(r"c_u?int\d*", made) else "Any")
                out.write(f"    {field}: {kind}\n")
            out.write("    _fields_ = [\n")
            for field, made in fields:
                out.write(f'        ("{field}", {made}),\n')
            out.write("    ]\n")
        out.write("\n\nFUNCTIONS: dict[str, tuple[Any, list[Any]]] = {\n")
        for name, (returned, arguments) in self.functions.items():
            out.write(f'    "{name}": ({returned}, [{", ".join(arguments)}]),\n')
        out.write("}\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    # qkv/mpi.h is for programs built against an MPI; no package has its library.
    names = sorted(path.name for path in folder.glob("*.h") if path.name != "mpi.h")
    bindings = Bindings()
    # A header comes after those that it includes.
    done = []

    def read(name):
        if name in done:
            return
        done.append(name)
        for other in re.findall(r'#include "qkv/(\w+\.h)"', (folder / name).read_text()):
            if not (name == "qkv.h" and other == "stats.h"):
                read(other)
        bindings.read(folder / name)

    for name in FIRST + names:
        read(name)
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as out:
            bindings.write(out)
    else:
        bindings.write(sys.stdout)


if __name__ == "__main__":
    main()
