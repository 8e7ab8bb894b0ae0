#!/usr/bin/env python3
"""
compare_outputs.py OLD NEW [PATTERN]: two builds of the tool, the same commands, the same answers?

Runs every command that stands in README, docs, help and manual pages, and every line "run ..." of tests/cli without
variables, with both tools, each in a folder of its own that starts with links to models, examples and tests/cli/data.
Compares exit codes, standard output, standard error and each file that was written, byte for byte. PATTERN is a regular
expression of commands. Prints what differs, and the number of commands. For a change that should change nothing.
"""
import concurrent.futures
import difflib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Servers, processes of others, and what takes minutes or says how long it took.
LEFT_OUT = re.compile(r"--serve|--mpi|mpirun|qkv (bench|check|learn)\b|[…|<>$&;]|[A-Z]{4,}\.|--(steps|restarts) \d{3}|--shapes \d{4}")
TIMES = re.compile(rb"[\d.]+ (tokens/s|s left|s\b)")
FOUR = r"^ {4}(?:\$ )?(?:\./dev run|qkv) ([a-z].*)$"


def commands():
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md"), *ROOT.glob("models/*/README.md"),
             ROOT / "examples/README.md", *ROOT.glob("cli/help/*.txt"), *ROOT.glob("cli/man/*.scd")]
    found = []
    for page in pages:
        text = re.sub(r" *\\\n *", " ", page.read_text())
        found += re.findall(FOUR, text, re.M) + re.findall(r"`qkv ([a-z]+ [^`]*)`", text) + re.findall(r"^\tqkv ([a-z].*)$", text, re.M)
    for script in sorted(ROOT.glob("tests/cli/test_*.sh")):
        found += re.findall(r"^ *(?:run|narrow \d+) ([a-z].*[^\\])$", script.read_text(), re.M)
    unique = dict.fromkeys("qkv " + command.strip() for command in found)
    return [command for command in unique if not LEFT_OUT.search(command) and parsed(command)]


def parsed(command):
    try:
        return shlex.split(command)
    except ValueError:
        return None


def place(folder):
    """What commands of docs and of tests find where they run."""
    for name in ("models", "examples", "docs"):
        (folder / name).symlink_to(ROOT / name)
    for path in (ROOT / "tests/cli").iterdir():
        if not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)
    (folder.parent / "golden").symlink_to(ROOT / "tests/golden")


def answer(tool, command):
    """Exit code, output, errors, and what was written."""
    with tempfile.TemporaryDirectory() as outer:
        folder = pathlib.Path(outer) / "cli"
        folder.mkdir()
        place(folder)
        before = {path.name for path in folder.iterdir()}
        environment = {"PATH": os.environ["PATH"], "HOME": outer, "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "80"}
        try:
            ran = subprocess.run([tool, *parsed(command)[1:]], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=1800)
        except subprocess.TimeoutExpired:
            return {"exit code": b"none after 30 minutes"}
        hide = lambda data: TIMES.sub(b"TIME", data.replace(outer.encode(), b"FOLDER"))
        said = {"exit code": str(ran.returncode).encode(), "output": hide(ran.stdout), "errors": hide(ran.stderr)}
        for path in sorted(folder.rglob("*")):
            if path.relative_to(folder).parts[0] not in before and path.is_file():
                said[f"file {path.relative_to(folder)}"] = path.read_bytes()
        return said


def differences(old, new):
    for part in sorted(old.keys() | new.keys()):
        a, b = old.get(part), new.get(part)
        if a == b:
            continue
        if a is None or b is None:
            yield f"  {part}: only {'new' if a is None else 'old'}"
        elif len(a) + len(b) < 1 << 16:
            lines = difflib.unified_diff(a.decode(errors="replace").splitlines(), b.decode(errors="replace").splitlines(), "old", "new", n=0, lineterm="")
            yield "\n".join([f"  {part}:", *("    " + line[:160] for line in list(lines)[2:22])])
        else:
            yield f"  {part}: {len(a)} and {len(b)} bytes"


def main():
    old, new = (str(pathlib.Path(shutil.which(path) or path).resolve()) for path in sys.argv[1:3])
    wanted = [command for command in commands() if len(sys.argv) < 4 or re.search(sys.argv[3], command)]
    differ = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        answers = threads.map(lambda command: (answer(old, command), answer(new, command)), wanted)
        for command, (a, b) in zip(wanted, answers):
            found = list(differences(a, b))
            differ += bool(found)
            if found:
                print("\n".join([command, *found]), flush=True)
    print(f"{len(wanted)} commands, {differ} differ")
    return differ > 0


sys.exit(main())
