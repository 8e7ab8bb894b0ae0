#!/usr/bin/env python3
"""Checks what is in a wheel: its size with and without the model, licences, libraries, types.

usage: tools/check_wheel.py WHEEL
"""
import sys
import zipfile

MIB = 1 << 20
#: Of other libraries: those that ./dev wheel puts beside ours, and those that ./dev wheel --all has inside of ours.
BESIDE = {"jansson": "libjansson", "png": "libpng16", "jpeg62-turbo": "libjpeg", "utf8proc": "libutf8proc"}
INSIDE = [*BESIDE, "zlib"]
BY_ZIG = ("manylinux2014", "manylinux_2_17", "musllinux")


def main():
    path = sys.argv[1]
    with zipfile.ZipFile(path) as wheel:
        infos = wheel.infolist()
    names = [info.filename for info in infos]
    size = sum(info.compress_size for info in infos)
    model = sum(info.compress_size for info in infos if info.filename.startswith("qkv/model/"))
    by_zig = any(platform in path for platform in BY_ZIG)
    libraries = ["libqkv.so.", "libqkvmodel.so.", "libqkvtorch.so"] + ([] if by_zig else ["libqkvview.so."])
    needed = ["qkv/py.typed", "qkv/_c.py", "qkv/model/model.safetensors", *(f"qkv/lib/{name}" for name in libraries),
              *(f"qkv/licences/{name}.txt" for name in ("qkv", *(INSIDE if by_zig else BESIDE)))]
    complaints = [f"{name} is missing" for name in needed if not any(each.startswith(name) for each in names)]
    bundled = {name.split("/")[1].split("-")[0] for name in names if name.startswith("qkv.libs/lib")}
    if bundled != (set() if by_zig else set(BESIDE.values())):
        complaints.append(f"bundled are {sorted(bundled)}: each needs its licence")
    for limit, found, what in ((4 * MIB, size - model, "without the model"), (8 * MIB, size, "with the model")):
        if found > limit:
            complaints.append(f"{found} bytes {what}, and at most {limit}")
    print(f"{path}: {size / 1e6:.2f} MB, {(size - model) / 1e6:.2f} MB without the model, {len(complaints)} complaints")
    print("\n".join(complaints))
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
