#!/usr/bin/env python3
"""Checks what is in a wheel: its size with and without the model, libraries, licences, types; tags, RECORD, rights and dates.

usage: tools/check_wheel.py WHEEL
"""
import base64
import csv
import hashlib
import re
import sys
import zipfile

MIB = 1 << 20
#: Of other libraries: those that ./dev wheel puts beside ours, and those that ./dev wheel --all has inside of ours.
BESIDE = {"jansson": "libjansson", "png": "libpng16", "jpeg62-turbo": "libjpeg", "utf8proc": "libutf8proc"}
INSIDE = [*BESIDE, "zlib"]
#: What ./dev wheel --all makes: by the tag, what its libraries are called, and the C library inside of them, if one is.
BY_ZIG = {
    "manylinux2014": (["libqkv.so.V", "libqkvmodel.so.V", "libqkvtorch.so"], []),
    "musllinux": (["libqkv.so.V", "libqkvmodel.so.V", "libqkvtorch.so"], ["musl"]),
    "win_amd64": (["libqkv.dll", "libqkvmodel.dll"], ["mingw-w64"]),
    "macosx_11_0": (["libqkv.V.dylib", "libqkvmodel.V.dylib"], []),
}
WITH_PICTURES = ["libqkv.so.V", "libqkvmodel.so.V", "libqkvtorch.so", "libqkvview.so.V"]


def expected_of(path):
    """Whether zig made it, the names of its libraries, and whose licences it needs."""
    version = re.search(r"qkv-(\d+\.\d+)", path)[1]
    by_zig = next((parts for tag, parts in BY_ZIG.items() if tag in path), None)
    libraries = by_zig[0] if by_zig else WITH_PICTURES
    licences = [*INSIDE, *by_zig[1]] if by_zig else list(BESIDE)
    return by_zig is not None, {name.replace("V", version) for name in libraries}, ["qkv", *licences]


def record_complaints(wheel, names):
    """RECORD has every file but itself, with its hash and its size."""
    own = next(name for name in names if name.endswith(".dist-info/RECORD"))
    rows = {name: (digest, size) for name, digest, size in csv.reader(wheel.read(own).decode().splitlines())}
    for name in sorted({*names, *rows}):
        if name not in names or name not in rows:
            yield f"{name} is {'in RECORD only' if name in rows else 'not in RECORD'}"
        elif name != own:
            data = wheel.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            if rows[name] != (f"sha256={digest}", str(len(data))):
                yield f"{name} is not what RECORD says"


def tag_complaints(wheel, names, path):
    """WHEEL has the tags of the file's name."""
    text = wheel.read(next(name for name in names if name.endswith(".dist-info/WHEEL"))).decode()
    python, abi, platforms = path.removesuffix(".whl").split("-")[-3:]
    wanted = {f"{python}-{abi}-{platform}" for platform in platforms.split(".")}
    found = set(re.findall(r"^Tag: (\S+)\s*$", text, re.M))
    if found != wanted:
        yield f"WHEEL has the tags {sorted(found)}"


def main():
    path = sys.argv[1]
    with zipfile.ZipFile(path) as wheel:
        infos = [info for info in wheel.infolist() if not info.is_dir()]
        names = [info.filename for info in infos]
        complaints = [*record_complaints(wheel, names), *tag_complaints(wheel, names, path)]
    size = sum(info.compress_size for info in infos)
    model = sum(info.compress_size for info in infos if info.filename.startswith("qkv/model/"))
    by_zig, libraries, licences = expected_of(path)
    needed = ["qkv/py.typed", "qkv/_c.py", "qkv/model/model.safetensors", *(f"qkv/licences/{name}.txt" for name in licences)]
    complaints += [f"{name} is missing" for name in needed if name not in names]
    found = {name.removeprefix("qkv/lib/") for name in names if name.startswith("qkv/lib/")}
    if found != libraries:
        complaints.append(f"qkv/lib has {sorted(found)}, and must have {sorted(libraries)}")
    bundled = {name.split("/")[1].split("-")[0] for name in names if name.startswith("qkv.libs/lib")}
    if bundled != (set() if by_zig else set(BESIDE.values())):
        complaints.append(f"bundled are {sorted(bundled)}: each needs its licence")
    complaints += [f"{info.filename} has the rights {info.external_attr >> 16:o}" for info in infos
                   if info.external_attr >> 16 & 0o777 not in (0o644, 0o755)]
    dates = {info.date_time for info in infos}
    if len(dates) != 1:
        complaints.append(f"files have {len(dates)} dates, {min(dates)} to {max(dates)}")
    for limit, found, what in ((4 * MIB, size - model, "without the model"), (8 * MIB, size, "with the model")):
        if found > limit:
            complaints.append(f"{found} bytes {what}, and at most {limit}")
    print(f"{path}: {size / 1e6:.2f} MB, {(size - model) / 1e6:.2f} MB without the model, {len(complaints)} complaints")
    print("\n".join(complaints))
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
