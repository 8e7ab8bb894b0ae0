#!/usr/bin/env python3
"""Gives all files of wheels the same rights, whoever checked the source out: 755 what may be run and folders, 644 all else.

usage: tools/wheel_rights.py WHEEL…
"""
import sys
import zipfile

for path in sys.argv[1:]:
    with zipfile.ZipFile(path) as wheel:
        entries = [(info, wheel.read(info)) for info in wheel.infolist()]
    with zipfile.ZipFile(path, "w") as wheel:
        for info, data in entries:
            mode = info.external_attr >> 16
            rights = 0o755 if info.is_dir() or mode & 0o100 else 0o644
            info.external_attr = (mode & ~0o777 | rights) << 16 | info.external_attr & 0xFFFF
            wheel.writestr(info, data, info.compress_type, 9)
