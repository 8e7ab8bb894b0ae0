#!/usr/bin/env python3
"""What a program or a library for macOS asks of the system, by its load commands: <mach-o/loader.h>, <mach-o/nlist.h>.

macho.py FILE            processor, oldest macOS, signature, libraries, and the symbols that it takes of each
macho.py FILE --check    without the symbols; exits with 1 unless that is macOS 11 or an older one, and libSystem alone beside ours,
                         which lie beside it
macho.py FILE --exports  what others find in a library, by dlsym, too
"""
import pathlib
import struct
import sys

PROCESSORS = {0x01000007: "x86_64", 0x0100000C: "arm64"}
SYMTAB, LOAD_DYLIB, LOAD_WEAK_DYLIB, REEXPORT_DYLIB, CODE_SIGNATURE, BUILD_VERSION = 0x2, 0xC, 0x80000018, 0x8000001F, 0x1D, 0x32
ID_DYLIB, RPATH, DYLD_INFO, DYLD_INFO_ONLY, EXPORTS_TRIE = 0xD, 0x8000001C, 0x22, 0x80000022, 0x80000033
OLDEST = (11, 0)
SYSTEM = "/usr/lib/libSystem.B.dylib"
OURS = "@rpath/libqkv"


def is_known(library: str) -> bool:
    return library == SYSTEM or library.startswith(OURS)


class Program:
    def __init__(self, path: str) -> None:
        self.bytes = pathlib.Path(path).read_bytes()
        magic, processor, _, _, n_commands, _, _, _ = struct.unpack_from("<8I", self.bytes)
        if magic != 0xFEEDFACF:
            raise SystemExit(f"macho.py: {path}: no Mach-O file of 64 bits")
        self.processor = PROCESSORS.get(processor, hex(processor))
        self.oldest = (0, 0)
        self.is_signed = False
        self.name = ""  # by which others ask for it: a library's
        self.rpaths: list[str] = []
        self.trie = (0, 0)  # where it begins, and its bytes
        self.libraries: list[str] = []
        self.symbols: list[tuple[str, str]] = []  # library, name
        at = 32
        tables = (0, 0, 0)
        for _ in range(n_commands):
            command, size = struct.unpack_from("<2I", self.bytes, at)
            if command in (LOAD_DYLIB, LOAD_WEAK_DYLIB, REEXPORT_DYLIB):
                self.libraries.append(self.text(at + struct.unpack_from("<I", self.bytes, at + 8)[0]))
            elif command == ID_DYLIB:
                self.name = self.text(at + struct.unpack_from("<I", self.bytes, at + 8)[0])
            elif command == RPATH:
                self.rpaths.append(self.text(at + struct.unpack_from("<I", self.bytes, at + 8)[0]))
            elif command in (DYLD_INFO, DYLD_INFO_ONLY):
                self.trie = struct.unpack_from("<2I", self.bytes, at + 40)
            elif command == EXPORTS_TRIE:
                self.trie = struct.unpack_from("<2I", self.bytes, at + 8)
            elif command == BUILD_VERSION:
                oldest = struct.unpack_from("<I", self.bytes, at + 12)[0]
                self.oldest = (oldest >> 16, oldest >> 8 & 255)
            elif command == CODE_SIGNATURE:
                self.is_signed = True
            elif command == SYMTAB:
                tables = struct.unpack_from("<3I", self.bytes, at + 8)  # symbols, their number, names
            at += size
        for n in range(tables[1]):
            name, kind, _, description, value = struct.unpack_from("<IBBHQ", self.bytes, tables[0] + 16 * n)
            if kind & 0x0E == 0 and kind & 1 and value == 0:  # undefined, external
                ordinal = description >> 8  # of its library, counted from 1
                known = 1 <= ordinal <= len(self.libraries)
                self.symbols.append((self.libraries[ordinal - 1] if known else f"ordinal {ordinal}", self.text(tables[2] + name)))

    def text(self, at: int) -> str:
        return self.bytes[at : self.bytes.index(0, at)].decode()

    def number(self, at: int) -> tuple[int, int]:
        """An unsigned LEB128, and where it ends."""
        value = shift = 0
        while True:
            byte = self.bytes[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, at

    def exports(self) -> list[str]:
        """The names in the trie of exports: a node has the bytes of its symbol, 0 if none ends there, then its children."""
        begin, size = self.trie
        found = []
        nodes = [(0, b"")] if size else []
        while nodes:
            node, prefix = nodes.pop()
            n_bytes, at = self.number(begin + node)
            if n_bytes:
                found.append(prefix.decode())
            at += n_bytes
            n_children, at = self.bytes[at], at + 1
            for _ in range(n_children):
                end = self.bytes.index(0, at)
                child, following = self.number(end + 1)
                nodes.append((child, prefix + self.bytes[at:end]))
                at = following
        return sorted(found)

    def complaints(self) -> list[str]:
        found = [f"needs {library}" for library in self.libraries if not is_known(library)]
        found += [f"takes {name} of {library}" for library, name in self.symbols if not is_known(library)]
        if any(library.startswith("@rpath/") for library in self.libraries) and "@loader_path" not in self.rpaths:
            found.append(f"looks for ours in {self.rpaths}, and they lie beside it")
        if not (0, 0) < self.oldest <= OLDEST:
            found.append(f"is for macOS {self.oldest[0]}.{self.oldest[1]}")
        if self.processor == "arm64" and not self.is_signed:
            found.append("has no signature, without which nothing runs there")
        if not self.symbols:
            found.append("takes no symbols")
        return found


def main() -> int:
    program = Program(sys.argv[1])
    if "--exports" in sys.argv[2:]:
        print("\n".join(name.removeprefix("_") for name in program.exports()))
        return 0
    print(f"{program.processor}, macOS {program.oldest[0]}.{program.oldest[1]} or later, {'signed' if program.is_signed else 'not signed'}")
    if program.name:
        print(f"is called {program.name}")
    for library in program.libraries:
        names = sorted(name for of, name in program.symbols if of == library)
        print(f"{library}: {len(names)} symbols")
        if len(sys.argv) < 3:
            print("".join(f"    {name}\n" for name in names), end="")
    complaints = program.complaints() if "--check" in sys.argv[2:] else []
    for complaint in complaints:
        print(f"{sys.argv[1]} {complaint}")
    return 1 if complaints else 0


sys.exit(main())
