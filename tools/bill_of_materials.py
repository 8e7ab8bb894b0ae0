#!/usr/bin/env python3
"""What each file of a release contains of others, with licences, in SPDX 2.3: bill_of_materials.py VERSION SECONDS DIST > F.spdx.json

DIST is the folder of the files, each of which must have a line in FILES. What is linked statically has the version that
cmake/dependencies.txt names; what a system links when a program starts has none.
"""
import datetime
import fnmatch
import hashlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# name: licence, where it comes from
PARTS = {
    "zlib": ("Zlib", "https://zlib.net"),
    "jansson": ("MIT", "https://github.com/akheron/jansson"),
    "utf8proc": ("MIT AND Unicode-DFS-2015", "https://juliastrings.github.io/utf8proc"),
    "libpng": ("libpng-2.0", "http://www.libpng.org"),
    "libjpeg-turbo": ("IJG AND BSD-3-Clause AND Zlib", "https://libjpeg-turbo.org"),
    "musl": ("MIT", "https://musl.libc.org"),
    "wasi-libc": ("MIT AND (Apache-2.0 WITH LLVM-exception)", "https://github.com/WebAssembly/wasi-libc"),
    "mingw-w64": ("ZPL-2.1 AND MIT", "https://www.mingw-w64.org"),
    "compiler-rt": ("Apache-2.0 WITH LLVM-exception", "https://compiler-rt.llvm.org"),
    "cairo": ("LGPL-2.1-only OR MPL-1.1", "https://www.cairographics.org"),
    "pango": ("LGPL-2.0-or-later", "https://pango.gnome.org"),
    "openmpi": ("BSD-3-Clause-Open-MPI", "https://www.open-mpi.org"),
}
READERS = ["zlib", "jansson", "utf8proc", "libpng", "libjpeg-turbo"]
IN_A_BROWSER = {"STATIC_LINK": [*READERS, "wasi-libc", "compiler-rt"]}
# of a file of the release: what is linked into it, lies in it, or is linked with it when it starts. The first line that fits counts.
FILES = {
    "qkv-VERSION.tar.gz": {},
    "qkv-VERSION-linux-*": {"STATIC_LINK": [*READERS, "musl", "compiler-rt"]},
    "qkv-VERSION-live.html": IN_A_BROWSER,
    "qkv-wasm-VERSION.tgz": IN_A_BROWSER,
    "qkv-VERSION-py3-none-*manylinux2014_*.whl": {"STATIC_LINK": [*READERS, "compiler-rt"]},
    "qkv-VERSION-py3-none-musllinux_*.whl": {"STATIC_LINK": [*READERS, "compiler-rt"], "DYNAMIC_LINK": ["musl"]},
    "qkv-VERSION-py3-none-win_amd64.whl": {"STATIC_LINK": [*READERS, "mingw-w64", "compiler-rt"]},
    "qkv-VERSION-py3-none-macosx_*.whl": {"STATIC_LINK": [*READERS, "compiler-rt"]},
    "qkv-VERSION-py3-none-manylinux_*.whl": {"CONTAINS": READERS[1:], "DYNAMIC_LINK": ["zlib", "cairo", "pango"]},
    "qkv_VERSION-*.dsc": {},
    "qkv_VERSION-*.debian.tar.xz": {},
    "*-dbgsym_VERSION-*.deb": {},
    "libqkv0.*_VERSION-*.deb": {},
    "libqkvmodel0.*_VERSION-*.deb": {"DYNAMIC_LINK": READERS},
    "libqkvview0.*_VERSION-*.deb": {"DYNAMIC_LINK": ["cairo", "pango"]},
    "libqkvmpi0.*_VERSION-*.deb": {"DYNAMIC_LINK": ["openmpi"]},
    "libqkv-dev_VERSION-*.deb": {},
    "qkv_VERSION-*.deb": {"DYNAMIC_LINK": [*READERS, "cairo", "pango"]},
    "qkv-mpi_VERSION-*.deb": {"DYNAMIC_LINK": [*READERS, "cairo", "pango", "openmpi"]},
    "qkv-data_VERSION-*.deb": {},
    "python3-qkv_VERSION-*.deb": {},
}


def versions():
    """Of what is built here from the sources of cmake/dependencies.txt."""
    found = {}
    for line in (ROOT / "cmake/dependencies.txt").read_text().splitlines():
        match = re.match(r"source \S+ (\w[\w.-]*?)[\d.]*_([\d.]+\d)", line)
        if match:
            found[match[1]] = match[2]
    return found


def package(name, version, licence, where):
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
        "name": name,
        **({"versionInfo": version} if version else {}),
        "downloadLocation": where,
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
    }


def parts_of(file, version):
    for pattern, parts in FILES.items():
        if fnmatch.fnmatchcase(file.name, pattern.replace("VERSION", version)):
            return parts
    sys.exit(f"bill_of_materials.py: FILES has no line for {file.name}")


def document(version, seconds, dist):
    known = versions()
    packages = [package(name, known.get(name), *PARTS[name]) for name in PARTS]
    relations = []
    for file in sorted(pathlib.Path(dist).iterdir()):
        if file.is_dir() or file.name == "SHA256SUMS" or file.suffix == ".json":
            continue
        of = package(file.name, version, "Apache-2.0", "NOASSERTION")
        of["packageFileName"] = file.name
        of["checksums"] = [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(file.read_bytes()).hexdigest()}]
        packages.append(of)
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", of["SPDXID"]))
        relations += [(of["SPDXID"], kind, "SPDXRef-" + part) for kind, parts in parts_of(file, version).items() for part in parts]
    created = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"qkv-{version}",
        "documentNamespace": f"https://qkv.invalid/spdx/qkv-{version}",
        "creationInfo": {"created": created, "creators": ["Tool: tools/bill_of_materials.py"]},
        "packages": packages,
        "relationships": [
            {"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations
        ],
    }


if len(sys.argv) != 4:
    sys.exit(__doc__)
json.dump(document(sys.argv[1], int(sys.argv[2]), sys.argv[3]), sys.stdout, indent=1)
print()
