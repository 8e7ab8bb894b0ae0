#!/usr/bin/env python3
"""check_examples.py COMPILER BUILD FOLDER [MPI_INCLUDE...]: the C that stands in pages and at the head of public headers compiles without
a warning, and programs of pages run. Commands of pages are run by tests/cli/test_docs.sh, examples/ by ctest -R example_."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "examples/README.md"]
WARNINGS = ["-std=c17", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include"]

# What calls a function that a page shows without a main, and what it must print.
MAINS = {
    "attend": ("""
#include <stdlib.h>
int main(void) {
    const size_t n = 12 * 4096 * 64;
    float *x = calloc(n, sizeof *x), *o = calloc(n, sizeof *o);
    if (!x || !o) return 2;
    for (size_t i = 0; i < n; i += 64) x[i] = 1;
    if (attend(x, x, x, o) != 0) return 3;
    printf("%g %g\\n", (double)o[0], (double)o[1]);
}
""", "1 0\n"),
}

# Names that the example of a header takes as given.
COMMON = "qkv_ctx *ctx; qkv_error error; qkv_status status; const char *text; const float *q, *k, *v; float *o, *lse;"
GIVEN = {
    "columns.h": "qkv_attention_desc desc; float *received;",
    "files.h": "",
    "generate.h": "qkv_model *model; qkv_encoding *prompt;",
    "heads.h": "qkv_run *run; qkv_token_list tokens;",
    "image.h": "",
    "kv.h": "qkv_attention_desc desc; qkv_kv_view view; int64_t n_batch, len;",
    "layers.h": "int64_t n_rows, n_in, n_out; const float *x, *weight, *bias; float *y;",
    "model.h": "const float *hidden;",
    "mpi.h": "int argc, provided; char **argv; int64_t my_len; qkv_attention_desc desc;",
    "onnx.h": "float *o;",
    "qkv.h": "",
    "stats.h": "qkv_attention_desc desc; float *entropy;",
    "tokenizer.h": "",
    "train.h": "",
}


def compiles(command, name, source, what):
    name.write_text(source)
    done = subprocess.run([*command, str(name)], capture_output=True, text=True)
    if done.returncode:
        print(f"{what} does not compile:\n{done.stderr}")
    return done.returncode == 0


def page_programs():
    for page in PAGES:
        for n, code in enumerate(re.findall(r"^```c\n(.*?)^```", page.read_text(), flags=re.S | re.M)):
            yield f"{page.relative_to(ROOT)}, block {n + 1}", code


def run_program(compiler, build, folder, what, code):
    expected = None
    if "int main(" not in code:
        name = next((name for name in MAINS if re.search(rf"\b{name}\(", code)), None)
        if name is None:
            print(f"{what} has no main, and check_examples.py none that calls it")
            return False
        code, expected = code + MAINS[name][0], MAINS[name][1]
    libraries = [f"-L{build}", f"-Wl,-rpath,{build}", "-lqkvview", "-lqkvmodel", "-lqkv", "-lm"]
    program = folder / "program"
    source = folder / "program.c"
    source.write_text(code)
    done = subprocess.run([compiler, *WARNINGS, str(source), "-o", str(program), *libraries], capture_output=True, text=True)
    if done.returncode == 0:
        done = subprocess.run([str(program)], capture_output=True, text=True, cwd=ROOT)
    if done.returncode or expected not in (None, done.stdout):
        print(f"{what}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return False
    return True


def header_example(header):
    """The indented lines that come first in its first comment."""
    comment = header.read_text().split("*/")[0]
    lines = [line[3:] for line in re.findall(r"(?:^ \*     .*\n)+", comment, flags=re.M)[:1] for line in line.splitlines()]
    code = "\n".join(lines)
    return code if re.search(r"\w\);$", code, flags=re.M) else None


def main():
    compiler, build, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
    mpi = [f"-isystem{path}" for path in sys.argv[4:]]
    folder.mkdir(parents=True, exist_ok=True)
    good = [run_program(compiler, build, folder, what, code) for what, code in page_programs()]
    for header in sorted((ROOT / "include/qkv").glob("*.h")):
        if header.name == "mpi.h" and not (build / "libqkvmpi.so").exists():
            continue
        code = header_example(header)
        if (code is None) == (header.name in GIVEN):
            print(f"{header.name}: {'no example' if code is None else 'check_examples.py does not know its example'}")
            good.append(False)
        if code is None or header.name not in GIVEN:
            continue
        source = (f"#include <stdio.h>\n#include <string.h>\n#include <qkv/{header.name}>\n"
                  f"{COMMON}\n{GIVEN[header.name]}\n"
                  f"int example(void);\nint example(void) {{\n{code}\nreturn 0;\n}}\n")
        good.append(compiles([compiler, *WARNINGS, *mpi, "-fsyntax-only"], folder / "example.c", source, header.name))
    print(f"{len(good)} examples, {good.count(False)} complaints")
    sys.exit(not all(good) or not good)


main()
