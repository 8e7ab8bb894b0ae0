"""scikit-build-core, after one question: whether qkv can be built on this system.

pip asks the hooks below. Elsewhere it stops at the first of them and says why, before anything is compiled.
"""
import platform
import sys

MACHINES = ("x86_64", "aarch64")
GLIBC = (2, 34)


def why_not(system, machine, libc):
    """What keeps qkv from being built on this system; None: nothing does. libc: as platform.libc_ver() has it."""
    needs = f"qkv is built on Linux with glibc {GLIBC[0]}.{GLIBC[1]} or later on {' or '.join(MACHINES)}"
    wheels = "There, ./dev wheel --all makes wheels for older ones, for musl, Windows and macOS."
    if system != "linux":
        return f"{needs}, and this is {system}. {wheels}"
    if machine not in MACHINES:
        return f"{needs}, and this processor is {machine}."
    name, version = libc
    if name != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < GLIBC:
        return f"{needs}, and this system has {name or 'another C library'} {version}".rstrip() + f". {wheels}"
    return None


reason = why_not(sys.platform, platform.machine(), platform.libc_ver())
if reason:
    sys.exit(reason)

from scikit_build_core.build import *  # noqa: E402, F403
