#!/usr/bin/env python3
"""Checks what is in a wheel: its size with and without the model, licences, libraries, types.

usage: tools/check_wheel.py WHEEL
"""
import sys
import zipfile

MIB = 1 << 20
NEEDED = ("qkv/py.typed", "qkv/_c.py", "qkv/lib/libqkv.so.", "qkv/lib/libqkvmodel.so.", "qkv/lib/libqkvview.so.",
          "qkv/licences/qkv.txt",
          "qkv/licences/jansson.txt", "qkv/licences/utf8proc.txt", "qkv/licences/png.txt",
          "qkv/licences/jpeg62-turbo.txt", "qkv/model/model.safetensors")


def main():
    path = sys.argv[1]
    with zipfile.ZipFile(path) as wheel:
        infos = wheel.infolist()
    names = [info.filename for info in infos]
    size = sum(info.compress_size for info in infos)
    model = sum(info.compress_size for info in infos if info.filename.startswith("qkv/model/"))
    complaints = [f"{name} is missing" for name in NEEDED if not any(each.startswith(name) for each in names)]
    bundled = sorted(name for name in names if name.startswith("qkv.libs/lib"))
    if [name.split("/")[1].split("-")[0] for name in bundled] != ["libjansson", "libjpeg", "libpng16", "libutf8proc"]:
        complaints.append(f"bundled are {bundled}: each needs its licence")
    for limit, found, what in ((4 * MIB, size - model, "without the model"), (8 * MIB, size, "with the model")):
        if found > limit:
            complaints.append(f"{found} bytes {what}, and at most {limit}")
    print(f"{path}: {size / 1e6:.2f} MB, {(size - model) / 1e6:.2f} MB without the model, {len(complaints)} complaints")
    print("\n".join(complaints))
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
