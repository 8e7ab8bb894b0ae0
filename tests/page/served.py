"""
`qkv look --serve` in a browser: the page follows what is typed, strangers are refused, a signal ends it. browser.py as `t`.
"""
import http.client
import pathlib
import re
import select
import signal
import subprocess

from harness import Open, frame_of, until

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


def in_frame(page, expression):
    """None while there is no frame."""
    frame = frame_of(page)
    return frame and frame.evaluate(expression)


def typed(t, page, text, ready):
    page.fill("#text", "")
    page.type("#text", text)
    found = until(lambda: in_frame(page, ready))
    t.check(f"served: the page follows {text!r}", found, found)
    return found


def served(t, browser):
    with Server(t) as server:
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([0-9a-f]{32})/", server.url)
        t.check("served: an address", found, server.url)
        if not found:
            return
        port, word = int(found[1]), found[2]
        tab = Open(browser, server.url, offline=False, viewport={"width": 1280, "height": 800})
        page = tab.page
        t.check("served: a hint, as no text is there", "[MASK]" in (page.get_attribute("#text", "placeholder") or ""))
        words = typed(t, page, "the man opened", "HEADS.length > 0 && N === 5 && Array.from({ length: N }, (_, i) => tokenText(i))")
        t.check("served: its tokens", words and words[1:4] == ["the", "man", "opened"], words)
        t.check("served: its heads", frame_of(page).locator("#grid [data-head]").count() == frame_of(page).evaluate("HEADS.length"))
        typed(t, page, "the [MASK] opened a man.", "N === 8 && tokenText(2) === '[MASK]'")
        panel = lambda: in_frame(page, "document.getElementById('panel').innerText") or ""
        filled = until(lambda: re.search(r"To fill \[MASK\], head \d\.\d reads .* P\(\S+\) (falls|rises) from \d", panel()))
        t.check("served: [MASK] is filled", filled, (panel())[:300])
        typed(t, page, "the [mask] opened", "N > 4 && tokenText(2) !== '[MASK]'")
        t.check("served: a hint for [mask]", until(lambda: "[MASK]" in panel() and "[mask]" in panel()), (panel())[:900])
        tab.clean("served", [server.url])
        tab.context.close()
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
