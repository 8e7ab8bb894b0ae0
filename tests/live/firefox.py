#!/usr/bin/env python3
"""The live page in Debian's Firefox, headless, from disk: firefox.py QKV PAGE.html FOLDER.

Firefox is driven by its own protocol, Marionette: JSON over a socket, each message behind its length. A proxy that is not there stands
for a missing network. What a page saves is compared with the tool's, byte by byte; pictures are left in FOLDER. Exit status 1 if
something is wrong; the last line is "N cases".
"""
import base64
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/page"))
import harness  # noqa: E402
from harness import PATIENCE, check, until  # noqa: E402

QKV, PAGE, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
FIRST = (ROOT / "live/examples.txt").read_text(encoding="utf-8").splitlines()[0]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element in an answer: WebDriver


class Failed(Exception):
    pass


class Firefox:
    """A browser with a profile of its own, which is gone with it. Its page is asked by scripts, which see what window has."""

    def __init__(self):
        self.profile = pathlib.Path(tempfile.mkdtemp(prefix="firefox", dir=FOLDER))
        self.downloads = self.profile / "downloads"
        self.downloads.mkdir()
        settings = {"marionette.port": 0, "browser.download.folderList": 2, "browser.download.dir": str(self.downloads),
                    "browser.download.useDownloadDir": True, "browser.download.always_ask_before_handling_new_types": False,
                    "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9, "network.proxy.ssl": "127.0.0.1",
                    "network.proxy.ssl_port": 9, "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False}
        (self.profile / "user.js").write_text("".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in settings.items()))
        self.log = open(FOLDER / "firefox.log", "w", encoding="utf-8")
        self.process = subprocess.Popen(["firefox-esr", "--headless", "--marionette", "--no-remote", "--profile", self.profile],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        port = self.profile / "MarionetteActivePort"
        if not until(lambda: self.process.poll() is not None or port.exists() and port.read_text()):
            raise Failed("Firefox does not start")
        self.socket = socket.create_connection(("127.0.0.1", int(port.read_text())), PATIENCE)
        self.stream, self.n = self.socket.makefile("rb"), 0
        self.receive()
        self.call("NewSession", capabilities={"alwaysMatch": {"pageLoadStrategy": "normal"}})
        self.call("SetTimeouts", script=int(1000 * PATIENCE), pageLoad=int(1000 * PATIENCE))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.socket.close()
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self):
        length = b""
        while not length.endswith(b":"):
            byte = self.stream.read(1)
            if not byte:
                raise Failed("Firefox has ended")
            length += byte
        return json.loads(self.stream.read(int(length[:-1])))

    def call(self, name, **parameters):
        self.n += 1
        message = json.dumps([0, self.n, f"WebDriver:{name}", parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, value = self.receive()
        if error:
            raise Failed(f"{name}: {error['error']}: {error['message']}")
        return value

    def run(self, script):
        """The value of an expression. `page` is the document of the shown text; there is none before the first."""
        wanted = f"""const page = document.querySelector("main iframe:not(.coming)")?.contentDocument,
            byId = id => document.getElementById(id); return ({script});"""
        return self.call("ExecuteScript", script=wanted, args=[], newSandbox=True)["value"]

    def until(self, script):
        def good():
            try:
                return self.run(script)
            except Failed:
                return None
        return until(good)

    def find(self, selector):
        return self.call("FindElement", using="css selector", value=selector)["value"][ELEMENT]

    def click(self, selector):
        self.call("ElementClick", id=self.find(selector))

    def write(self, text):
        self.call("ElementClear", id=self.find("#text"))
        self.call("ElementSendKeys", id=self.find("#text"), text=text)

    def give(self, selector, *files):
        """Files, as if they were chosen."""
        self.call("ElementSendKeys", id=self.find(selector), text="\n".join(map(str, files)))

    def saved(self):
        """The bytes of what Save page saves."""
        for old in self.downloads.iterdir():
            old.unlink()
        self.click("#save")
        made = until(lambda: [f for f in self.downloads.iterdir() if f.suffix == ".html" and f.stat().st_size and not list(self.downloads.glob("*.part"))])
        return made[0].read_bytes() if made else b""

    def picture(self, name, width, height):
        self.call("SetWindowRect", width=width, height=height)
        time.sleep(0.5)
        (FOLDER / name).write_bytes(base64.b64decode(self.call("TakeScreenshot", full=False)["value"]))


def native(words, text="", **more):
    file = FOLDER / "native.html"
    subprocess.run([QKV, "look", *words, "-o", file, "--quiet"], input=text.encode(), check=True, **more)
    return file.read_bytes()


def texts(firefox):
    check("Firefox: an engine", firefox.until("document.documentElement.dataset.engine"), firefox.run("byId('problem').textContent"))
    print(f"Firefox: {firefox.run('navigator.userAgent')}, {firefox.until('byId(`state`).textContent.startsWith(`Engine`) && byId(`state`).textContent')}")
    check("Firefox: a prediction", firefox.until("document.querySelector('#says li button')?.textContent === 'it'"))
    check("Firefox: the first page", firefox.saved() == native(["-"], FIRST))
    for text in ("The [MASK] was open.", "Zo\u00eb saw \u65e5\u672c and the [MASK]."):
        firefox.write(text)
        wanted = native(["-"], text)
        title = "JSON.parse(page.getElementById('qkv-manifest').textContent).title"
        title_wanted = re.search(rb'"title":("(?:[^"\\\\]|\\\\.)*")', wanted)[1].decode()
        check(f"Firefox: follows {text!r}", firefox.until(f"{title} === {title_wanted}"), firefox.run(title))
        check("Firefox: its heads", firefox.run("page.querySelectorAll('#grid [data-head]').length") == 16)
        check(f"Firefox: the tool's page of {text!r}", firefox.saved() == wanted)
    firefox.write("the door " * 30)
    check("Firefox: too long", firefox.until("byId('problem').textContent.includes('62')"), firefox.run("byId('problem').textContent"))


def images(firefox):
    both = FOLDER / "images"
    both.mkdir(exist_ok=True)
    for file in (ROOT / "models/seer", ROOT / "examples/images/two-boats.png", ROOT / "tests/golden/image/files/turned_6.jpg"):
        (both / file.name).unlink(missing_ok=True)
        (both / file.name).symlink_to(file)
    firefox.click("#models summary")
    firefox.give("#model-files", *(both / "seer" / name for name in ("config.json", "preprocessor_config.json", "model.safetensors")))
    check("Firefox: a model of images", firefox.until("document.documentElement.dataset.reads === 'images'"), firefox.run("byId('problem').textContent"))
    (both / "model").unlink(missing_ok=True)
    (both / "model").symlink_to(ROOT / "models/seer")  # files without a folder are called so
    for file in ("two-boats.png", "turned_6.jpg"):
        firefox.give("#image-file", both / file)
        check(f"Firefox: {file}", firefox.until(f"byId('image-name').textContent.startsWith('{file}')"), firefox.run("byId('problem').textContent"))
        check(f"Firefox: the tool's page of {file}", firefox.saved() == native(["--image", file, "--model", "model"], cwd=both))
    firefox.picture("firefox-image.png", 1280, 900)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    with Firefox() as firefox:
        firefox.call("Navigate", url=f"file://{PAGE}")
        texts(firefox)
        for width, height in ((390, 844), (1280, 900)):
            firefox.picture(f"firefox-{width}.png", width, height)
        images(firefox)
    print(f"{harness.n_cases} cases")
    return harness.n_failed > 0


sys.exit(main())
