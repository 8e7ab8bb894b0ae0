#!/usr/bin/env python3
"""
compare_outputs.py OLD NEW [PATTERN]            commands of the documentation
compare_outputs.py --tests OLD NEW [PATTERN]    the scripts of tests/cli

Two builds of the tool, the same commands, the same answers? For a change that should change nothing.

Without --tests: every command that stands in README, docs, help and manual pages, and every line "run ..." of tests/cli
without variables, with both tools, each in a folder of its own that starts with links to models, examples and
tests/cli/data. With --tests: each script of tests/cli with both tools, in the same folder, one after the other, and of each
command that it checks what was recorded (RECORD in lib.sh). Scripts may fail, as they are those of one of the two.

Compares exit codes, standard output, standard error and each file that was written, byte for byte, but for times ("3.1 s",
"58 tokens/s", "seconds" of JSON) and names of temporary folders. Prints what differs, and how much was compared. PATTERN
is a regular expression of commands, or of names of scripts.
"""
import argparse
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
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Servers, processes of others, and what takes minutes or says how long it took.
LEFT_OUT = re.compile(r"--serve|--mpi|mpirun|qkv (bench|check|learn)\b|[…|<>$&;]|[A-Z]{4,}\.|--(steps|restarts) \d{3}|"
                      r"--shapes \d{4}")
# Scripts that need programs of the build, measure, or send signals at some time.
SCRIPTS_LEFT_OUT = {"terminal", "serve", "bench", "interrupts", "resume"}
TIMES = re.compile(rb"[\d.]+ (tokens/s|s left|s\b)|\"seconds\":[\d.e+-]+|tmp\.\w{10}")
FOUR = r"^ {4}(?:\$ )?(?:\./dev run|qkv) ([a-z].*)$"


def commands() -> list[str]:
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md"), *ROOT.glob("models/*/README.md"),
             ROOT / "examples/README.md", *ROOT.glob("cli/help/*.txt"), *ROOT.glob("cli/man/*.scd")]
    found: list[str] = []
    for page in pages:
        text = re.sub(r" *\\\n *", " ", page.read_text())
        found += re.findall(FOUR, text, re.MULTILINE) + re.findall(r"`qkv ([a-z]+ [^`]*)`", text)
        found += re.findall(r"^\tqkv ([a-z].*)$", text, re.MULTILINE)
    for script in sorted(ROOT.glob("tests/cli/test_*.sh")):
        found += re.findall(r"^ *(?:run|narrow \d+) ([a-z].*[^\\])$", script.read_text(), re.MULTILINE)
    unique = dict.fromkeys(shortened("qkv " + command.strip()) for command in found)
    return [command for command in unique if not LEFT_OUT.search(command) and parsed(command)]


def shortened(command: str) -> str:
    """A training of one small step, which writes no model of ours."""
    if not command.startswith("qkv train "):
        return command
    return re.sub(r" --(steps|batch|out) \S+", "", command) + " --steps 1 --batch 2 --out trained"


def parsed(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def place(folder: pathlib.Path) -> None:
    """What commands of docs and of tests find where they run."""
    for name in ("models", "examples", "docs"):
        (folder / name).symlink_to(ROOT / name)
    for path in (ROOT / "tests/cli").iterdir():
        if not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)
    (folder.parent / "golden").symlink_to(ROOT / "tests/golden")


def answer(tool: str, command: str) -> dict[str, bytes]:
    """Exit code, output, errors, and what was written."""
    with tempfile.TemporaryDirectory() as outer:
        folder = pathlib.Path(outer) / "cli"
        folder.mkdir()
        place(folder)
        before = {path.name for path in folder.iterdir()}
        environment = {"PATH": os.environ["PATH"], "HOME": outer, "LANG": "C.UTF-8", "TERM": "dumb", "COLUMNS": "80"}
        try:
            ran = subprocess.run([tool, *parsed(command)[1:]], check=False, cwd=folder, env=environment,
                                 stdin=subprocess.DEVNULL, capture_output=True, timeout=1800)
        except subprocess.TimeoutExpired:
            return {"exit code": b"none after 30 minutes"}
        said = {"exit code": str(ran.returncode).encode()}
        for name, data in (("output", ran.stdout), ("errors", ran.stderr)):
            said[name] = TIMES.sub(b"TIME", data.replace(outer.encode(), b"FOLDER"))
        for path in sorted(folder.rglob("*")):
            if path.relative_to(folder).parts[0] not in before and path.is_file():
                said[f"file {path.relative_to(folder)}"] = path.read_bytes()
        return said


def records(tool: str, script: pathlib.Path, outer: pathlib.Path) -> dict[str, bytes]:
    """Of each command of a script, in their order, what lib.sh recorded."""
    record = outer / "record"
    for old in outer.glob("record*"):
        old.unlink()
    environment = {**os.environ, "RECORD": str(record), "TMPDIR": str(outer), "HOME": str(outer)}
    subprocess.run(["sh", script, tool, outer / "folder"], check=False, cwd=script.parent, env=environment,
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=7200)
    said: dict[str, bytes] = {}
    seen: dict[bytes, int] = {}
    for part in (record.read_bytes() if record.exists() else b"").split(b"=== ")[1:]:
        command, _, rest = part.partition(b"\n")
        if b", SIG" in command:  # ended by a signal, at some time
            continue
        seen[command] = seen.get(command, 0) + 1
        again = f" (time {seen[command]})" if seen[command] > 1 else ""
        said[command.decode(errors="replace") + again] = TIMES.sub(b"TIME", rest.replace(tool.encode(), b"QKV"))
    return said


def differences(old: dict[str, bytes], new: dict[str, bytes]) -> Iterator[str]:
    for part in dict.fromkeys([*old, *new]):
        a, b = old.get(part), new.get(part)
        if a == b:
            continue
        if a is None or b is None:
            yield f"  {part}: only {'new' if a is None else 'old'}"
        elif len(a) + len(b) < 1 << 16:
            lines = difflib.unified_diff(a.decode(errors="replace").splitlines(), b.decode(errors="replace").splitlines(),
                                         "old", "new", n=0, lineterm="")
            yield "\n".join([f"  {part}:", *("    " + line[:160] for line in list(lines)[2:22])])
        else:
            yield f"  {part}: {len(a)} and {len(b)} bytes"


def compare_commands(old: str, new: str, pattern: str) -> int:
    wanted = [command for command in commands() if re.search(pattern, command)]
    differ = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        answers = threads.map(lambda command: (answer(old, command), answer(new, command)), wanted)
        for command, (a, b) in zip(wanted, answers):
            found = list(differences(a, b))
            differ += bool(found)
            if found:
                print("\n".join([command, *found]), flush=True)
    print(f"{len(wanted)} commands, {differ} differ")
    return differ


def compare_script(old: str, new: str, script: pathlib.Path) -> tuple[int, list[str]]:
    with tempfile.TemporaryDirectory() as outer:
        a, b = (records(tool, script, pathlib.Path(outer)) for tool in (old, new))
    return len(a.keys() | b.keys()), list(differences(a, b))


def compare_tests(old: str, new: str, pattern: str) -> int:
    scripts = [script for script in sorted(ROOT.glob("tests/cli/test_*.sh")) if re.search(pattern, script.stem) and
               script.stem.removeprefix("test_") not in SCRIPTS_LEFT_OUT]
    n_commands = differ = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        for script, (n, found) in zip(scripts, threads.map(lambda one: compare_script(old, new, one), scripts)):
            n_commands += n
            differ += len(found)
            print("\n".join([f"{script.name}: {n} commands", *found]), flush=True)
    print(f"{n_commands} commands of {len(scripts)} scripts, {differ} differ")
    return differ


def main() -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("pattern", nargs="?", default="")
    options = parser.parse_args()
    old, new = (str(pathlib.Path(shutil.which(path) or path).resolve()) for path in (options.old, options.new))
    return (compare_tests if options.tests else compare_commands)(old, new, options.pattern) > 0


if __name__ == "__main__":
    sys.exit(main())
