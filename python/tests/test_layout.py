"""Structures of the bindings have the sizes and offsets that a C compiler gives those of the headers."""
import ctypes
import pathlib
import re
import subprocess
import tempfile
import unittest

from qkv import _c

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"

# Headers of libqkv. That of libqkvmpi needs <mpi.h>, and the bindings do not have it.
HEADERS = sorted(path for path in INCLUDE.glob("qkv/*.h") if path.name != "mpi.h")


def structures():
    return [kind for kind in vars(_c).values()
            if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure]


class Layout(unittest.TestCase):
    def test_every_structure(self):
        lines, ours = [], []
        for kind in structures():
            name = kind.__name__
            lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
            ours.append(f"{name} {ctypes.sizeof(kind)}")
            for field, *_ in kind._fields_:
                lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field.rstrip("_")}));')
                ours.append(f"{name}.{field} {getattr(kind, field).offset}")
        headers = "".join(f'#include "{path.relative_to(INCLUDE)}"\n' for path in HEADERS)
        source = f"#include <stdio.h>\n{headers}int main(void) {{\n{chr(10).join(lines)}\nreturn 0;\n}}\n"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "layout.c")
            path.write_text(source)
            subprocess.run(["cc", "-std=c17", "-I", INCLUDE, path, "-o", path.with_suffix("")], check=True)
            theirs = subprocess.run([path.with_suffix("")], check=True, capture_output=True, text=True).stdout
        self.assertEqual(theirs.splitlines(), ours)
        self.assertGreater(len(structures()), 40)

    def test_every_function_of_the_headers(self):
        text = "".join(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S) for path in HEADERS)
        named = {name for piece in text.split("QKV_API")[1:] for name in re.findall(r"\b(qkv_\w+)\(", piece[:300])[:1]}
        self.assertEqual(named, set(_c.FUNCTIONS))


if __name__ == "__main__":
    unittest.main()
