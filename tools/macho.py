#!/usr/bin/env python3
"""What a program or a library for macOS asks of the system, by its load commands: <mach-o/loader.h>, <mach-o/nlist.h>.

macho.py FILE            processor, oldest macOS, signature, libraries, and the symbols that it takes of each
macho.py FILE --check    without the symbols; exits with 1 unless that is macOS 11 or an older one, and libSystem alone beside ours
"""
import pathlib
import struct
import sys

PROCESSORS = {0x01000007: "x86_64", 0x0100000C: "arm64"}
SYMTAB, LOAD_DYLIB, LOAD_WEAK_DYLIB, REEXPORT_DYLIB, CODE_SIGNATURE, BUILD_VERSION = 0x2, 0xC, 0x80000018, 0x8000001F, 0x1D, 0x32
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
        self.libraries: list[str] = []
        self.symbols: list[tuple[str, str]] = []  # library, name
        at = 32
        tables = (0, 0, 0)
        for _ in range(n_commands):
            command, size = struct.unpack_from("<2I", self.bytes, at)
            if command in (LOAD_DYLIB, LOAD_WEAK_DYLIB, REEXPORT_DYLIB):
                self.libraries.append(self.text(at + struct.unpack_from("<I", self.bytes, at + 8)[0]))
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

    def complaints(self) -> list[str]:
        found = [f"needs {library}" for library in self.libraries if not is_known(library)]
        found += [f"takes {name} of {library}" for library, name in self.symbols if not is_known(library)]
        if not (0, 0) < self.oldest <= OLDEST:
            found.append(f"is for macOS {self.oldest[0]}.{self.oldest[1]}")
        if self.processor == "arm64" and not self.is_signed:
            found.append("has no signature, without which nothing runs there")
        if not self.symbols:
            found.append("takes no symbols")
        return found


def main() -> int:
    program = Program(sys.argv[1])
    print(f"{program.processor}, macOS {program.oldest[0]}.{program.oldest[1]} or later, {'signed' if program.is_signed else 'not signed'}")
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
