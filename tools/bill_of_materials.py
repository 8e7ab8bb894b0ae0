#!/usr/bin/env python3
"""What each file of a release contains of others, with licences, in SPDX 2.3: bill_of_materials.py VERSION SECONDS > F.spdx.json

What is linked statically has the version that cmake/dependencies.txt names; what a system links when a program starts has none.
"""
import datetime
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
    "compiler-rt": ("Apache-2.0 WITH LLVM-exception", "https://compiler-rt.llvm.org"),
    "cairo": ("LGPL-2.1-only OR MPL-1.1", "https://www.cairographics.org"),
    "pango": ("LGPL-2.0-or-later", "https://pango.gnome.org"),
    "openmpi": ("BSD-3-Clause-Open-MPI", "https://www.open-mpi.org"),
}
READERS = ["zlib", "jansson", "utf8proc", "libpng", "libjpeg-turbo"]
IN_A_BROWSER = {"STATIC_LINK": [*READERS, "wasi-libc", "compiler-rt"]}
# of a file of the release: what is linked into it, lies in it, or is linked with it when it starts
FILES = {
    "qkv-VERSION.tar.gz": {},
    "qkv-VERSION-linux-x86_64": {"STATIC_LINK": [*READERS, "musl", "compiler-rt"]},
    "qkv-VERSION-live.html": IN_A_BROWSER,
    "qkv-wasm-VERSION.tgz": IN_A_BROWSER,
    "qkv-VERSION-*.whl": {"CONTAINS": READERS, "DYNAMIC_LINK": ["cairo", "pango"]},
    "qkv_VERSION-*.deb": {"DYNAMIC_LINK": [*READERS, "cairo", "pango", "openmpi"]},
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


def document(version, seconds):
    known = versions()
    packages = [package(name, known.get(name), *PARTS[name]) for name in PARTS]
    relations = []
    for name, parts in FILES.items():
        of = package(name.replace("VERSION", version), version, "Apache-2.0", "NOASSERTION")
        packages.append(of)
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", of["SPDXID"]))
        relations += [(of["SPDXID"], kind, "SPDXRef-" + part) for kind in parts for part in parts[kind]]
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


if len(sys.argv) != 3:
    sys.exit(__doc__)
json.dump(document(sys.argv[1], int(sys.argv[2])), sys.stdout, indent=1)
print()
