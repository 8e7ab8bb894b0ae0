#!/usr/bin/env python3
"""One layer knows operating systems: src/core/os.h for the libraries, cli/common/os.h for the tool, tests/check/system.h for the check
of kernels; os_*.c implement them. Elsewhere in src/, cli/ and tests/check/ no preprocessor line asks for a system or a C library, and no header of POSIX or of Windows
is included; pthread.h is, on every system. Prints each line that breaks this. Processors and compilers (__x86_64__, __wasm_simd128__, __clang__) are no business of this check.

check_system.py [TREE]
"""
import pathlib
import re
import sys

LAYER = re.compile(r"(src/core|cli/\w+|tests/check|bench/suite)/os_\w+\.c")
HOME = {"src": "src/core/os.h and src/core/os_*.c", "cli": "cli/common/os.h and cli/common/os_*.c",
        "tests": "tests/check/system.h and tests/check/os_*.c", "bench": "src/core/os.h, or to a file os_*.c of bench/suite"}
SYSTEM = re.compile(
    r"^[ \t]*#[ \t]*(?:el)?if.*?\b(_WIN\w+|__MINGW\w+|_MSC_VER|__linux__|__gnu_linux__|__APPLE__|__MACH__|__unix__"
    r"|__\w*BSD\w*__|__GLIBC\w*|__wasi__|__ANDROID__|_POSIX\w*|O_\w+|MADV_\w+|TIOC\w+|SA_\w+|CLOCK_\w+)\b",
    re.M)
HEADERS = ("aio arpa dirent dlfcn fcntl fnmatch ftw glob grp ifaddrs io langinfo libgen malloc net netdb netinet poll process"
           " pwd sched semaphore signal spawn sys syslog termios ucontext unistd utime wordexp windows winsock2 direct").split()
INCLUDE = re.compile(rf"^[ \t]*#[ \t]*include[ \t]*<((?:{'|'.join(HEADERS)})(?:\.h|/[^>]*))>", re.M)


def main() -> int:
    tree = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    files = [file for folder in ("src/**", "cli/**", "tests/check", "bench/suite") for file in sorted(tree.glob(f"{folder}/*.[ch]"))
             if not LAYER.fullmatch(file.relative_to(tree).as_posix())]
    n_wrong = 0
    for file in files:
        text = file.read_text(encoding="utf-8")
        for found in sorted([*SYSTEM.finditer(text), *INCLUDE.finditer(text)], key=lambda m: m.start()):
            is_header = found.re is INCLUDE
            line = text.count("\n", 0, found.start()) + 1
            what = f"<{found[1]}> is a header of the system" if is_header else f"asks for a system ({found[1]})"
            print(f"{file.relative_to(tree)}:{line}: {what}: add what you need to {HOME[file.relative_to(tree).parts[0]]}, and call that")
            n_wrong += 1
    print(f"systems: {len(files)} files, {n_wrong} complaints")
    return 1 if n_wrong or not files else 0


sys.exit(main())
