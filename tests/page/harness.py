"""What tests in a browser share: cases that are counted, Debian's Chromium, headless, and a page of which every error and every request
is kept. Nothing waits for a time: what is awaited is a state of a page."""
import functools
import os
import pathlib
import time

import axe_playwright_python
from playwright.sync_api import Error, sync_playwright

# Seconds after which what is awaited is taken for hung. The runner says how many times slower than usual this machine is.
PATIENCE = 240 * float(os.environ.get("QKV_TEST_PACE") or 4)
n_cases = n_failed = 0


def check(what, good, more=""):
    global n_cases, n_failed
    n_cases += 1
    if not good:
        n_failed += 1
        print(f"FAILED: {what} {more}")


def near(what, got, wanted, bound):
    check(what, len(got) == len(wanted) and all(abs(a - b) <= bound for a, b in zip(got, wanted)),
          f"largest difference {max((abs(a - b) for a, b in zip(got, wanted)), default=None)}, bound {bound}")


def launch(chromium, *options):
    return chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", *options], timeout=1000 * PATIENCE)


def run(parts, *options):
    """Each part, a function of the browser, in turn; an exit status. The last line is "N cases"."""
    with sync_playwright() as playwright:
        browser = launch(playwright.chromium, *options)
        for name, part in parts.items():
            began = time.monotonic()
            part(browser)
            print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
        browser.close()
    print(f"{n_failed} failed")
    print(f"{n_cases} cases")
    return n_failed > 0


def until(good):
    """What good() returns once it is true; false after PATIENCE. A frame may be replaced while it is asked: then once more."""
    end, value = time.monotonic() + PATIENCE, None
    while not value and time.monotonic() < end:
        try:
            value = good()
        except Error:
            value = None
        if not value:
            time.sleep(0.02)
    return value


def frame_of(page):
    """The frame of the page of a text in a page around it: the one that is not behind another. None while there is none."""
    element = page.query_selector("main iframe:not(.coming)")
    return element and element.content_frame()


@functools.cache
def axe():
    return (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


class Open:
    """An open page."""

    def __init__(self, browser, url, init="", offline=True, **options):
        self.context = browser.new_context(**{"accept_downloads": True, **options})
        self.context.set_offline(offline)
        self.context.set_default_timeout(1000 * PATIENCE)
        if init:
            self.context.add_init_script(init)
        self.page, self.errors, self.requests = self.context.new_page(), [], []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.before()
        self.page.goto(url)

    def before(self):
        """Called before the page is there."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def run(self, script):
        return self.page.evaluate(script)

    def until(self, script):
        return until(lambda: self.run(script))

    def violations(self, of="document", options="{}"):
        """What axe-core finds: rules, places, and what is wrong there."""
        if self.run("typeof axe === 'undefined'"):
            self.run(axe())
        return self.run(f"""axe.run({of}, {options}).then(found => found.violations.flatMap(v => v.nodes.slice(0, 3)
            .map(n => [v.id, n.target, n.failureSummary].join(' '))))""")

    def clean(self, what, own=()):
        """Nothing failed, and nothing was asked of a network but of `own` addresses."""
        check(f"{what}: no errors", not self.errors, self.errors)
        outside = [url for url in self.requests if not url.startswith(("file:", "blob:", "data:", "about:", *own))]
        check(f"{what}: nothing asked of a network", not outside, outside)
