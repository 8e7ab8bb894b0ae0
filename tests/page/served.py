"""
`qkv look --serve` in a browser: the page follows what is typed, strangers are refused, a signal ends it. browser.py as `t`.
"""
import http.client
import pathlib
import re
import select
import signal
import subprocess
import time

from playwright.sync_api import Error

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"


class Server:
    """A server on a free port; whatever happens, it is ended."""

    def __init__(self, t):
        self.patience = t.PATIENCE
        self.process = subprocess.Popen([t.QKV, "look", "--serve", "--quiet", "--model", GOLDEN / "bert_old"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        ready, _, _ = select.select([self.process.stdout], [], [], self.patience)
        self.url = self.process.stdout.readline().strip() if ready else ""
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(self.patience)
        self.process.stdout.close()

    def status(self, port, path, host):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=self.patience)
        try:
            connection.request("GET", path, headers={"Host": host})
            return connection.getresponse().status
        finally:
            connection.close()


def until(t, good):
    """What good() returns once it is true. A frame may be replaced while it is asked: then once more."""
    end, value = time.monotonic() + t.PATIENCE, None
    while not value and time.monotonic() < end:
        try:
            value = good()
        except Error:
            value = None
        if not value:
            time.sleep(0.05)
    return value


def shown(page):
    """The frame of the page of a text: the one that is not behind another."""
    element = page.query_selector("main iframe:not(.coming)")
    return element and element.content_frame()


def in_frame(page, expression):
    """None while there is no frame."""
    frame = shown(page)
    return frame and frame.evaluate(expression)


def typed(t, page, text, ready):
    page.fill("#text", "")
    page.type("#text", text)
    found = until(t, lambda: in_frame(page, ready))
    t.check(f"served: the page follows {text!r}", found, found)
    return found


def served(t, browser):
    with Server(t) as server:
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/", server.url)
        t.check("served: an address", found, server.url)
        if not found:
            return
        port, word = int(found[1]), found[2]
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.set_default_timeout(1000 * t.PATIENCE)
        page, errors, asked = context.new_page(), [], []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(server.url)
        t.check("served: a hint, as no text is there", "[MASK]" in (page.get_attribute("#text", "placeholder") or ""))
        words = typed(t, page, "the man opened", "HEADS.length > 0 && N === 5 && Array.from({ length: N }, (_, i) => tokenText(i))")
        t.check("served: its tokens", words and words[1:4] == ["the", "man", "opened"], words)
        t.check("served: its heads", shown(page).locator("#grid [data-head]").count() == shown(page).evaluate("HEADS.length"))
        typed(t, page, "the [MASK] opened a man.", "N === 8 && tokenText(2) === '[MASK]'")
        panel = lambda: in_frame(page, "document.getElementById('panel').innerText") or ""
        filled = until(t, lambda: re.search(r"To fill \[MASK\], head \d\.\d reads .* P\(\S+\) (falls|rises) from \d", panel()))
        t.check("served: [MASK] is filled", filled, (panel())[:300])
        typed(t, page, "the [mask] opened", "N > 4 && tokenText(2) !== '[MASK]'")
        t.check("served: a hint for [mask]", until(t, lambda: "[MASK]" in panel() and "[mask]" in panel()), (panel())[:900])
        t.check("served: no errors", not errors, errors)
        outside = [url for url in asked if not url.startswith((server.url, "blob:", "data:", "about:"))]
        t.check("served: nothing asked of others", not outside, outside)
        context.close()
        own = f"127.0.0.1:{port}"
        t.check("served: the word is right", server.status(port, f"/{word}/", own) == 200)
        wrong = word.translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
        t.check("served: a wrong word is refused", server.status(port, f"/{wrong}/", own) == 403)
        t.check("served: a foreign Host is refused", server.status(port, f"/{word}/", f"evil.example:{port}") == 403)
        server.process.send_signal(signal.SIGTERM)
        try:
            code = server.process.wait(t.PATIENCE)
        except subprocess.TimeoutExpired:
            code = None
        t.check("served: SIGTERM ends it", code == 0, code)


PARTS = (served,)
