#!/usr/bin/env python3
"""The live page in Debian's Chromium, headless, from disk and without a network, beside the tool.

live.py QKV PAGE.html FOLDER [N SEED [PART…]]: N texts (50) of a seed, each page compared byte by byte with `qkv look -o`. Pictures are
left in FOLDER. PART: functions of this file, in place of all. Exit status 1 if something is wrong; the last line is "N cases".
"""
import base64
import gzip
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("live", "page")]
import harness  # noqa: E402
from harness import check, until  # noqa: E402
from sentences import sentences  # noqa: E402

MODELS = ROOT / "models"
QKV, PAGE, FOLDER = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
N, SEED = int(sys.argv[4]) if len(sys.argv) > 4 else 50, int(sys.argv[5]) if len(sys.argv) > 5 else time.time_ns() % 10**6
FIRST = (ROOT / "live/examples.txt").read_text(encoding="utf-8").splitlines()[0]


def native(text, *options, **more):
    """The tool's page: of a text, or, if that is None, of the image that options name."""
    file = FOLDER / "native.html"
    words = [QKV, "look", *(["-"] if text is not None else []), "-o", file, "--quiet", *options]
    subprocess.run(words, input=(text or "").encode(), check=True, **more)
    return file.read_bytes()


class Live(harness.Open):
    """The live page."""

    def __init__(self, browser, page=PAGE, link="", wait=True, init="", **options):
        super().__init__(browser, f"file://{page}{link}", init, **{"viewport": {"width": 1280, "height": 860}, **options})
        if wait:
            check("an engine", self.until("document.documentElement.dataset.engine"), self.page.inner_text("#problem"))

    def frame(self):
        return harness.frame_of(self.page)

    def in_frame(self, script):
        """What a script gives in the page of the text, once it is true."""
        return until(lambda: (frame := self.frame()) and frame.evaluate(script))

    def write(self, text):
        self.page.fill("#text", text)
        found = self.until("() => answered === document.querySelector('#text').value && !coming && !next && shown?.of === answered")
        check(f"follows {text!r}", found)

    def saved(self):
        with self.page.expect_download() as download:
            self.page.click("#save")
        return pathlib.Path(download.value.path()).read_bytes()


def before_the_engine(browser):
    """The first page is there, and can be used, when no worker answers."""
    with Live(browser, wait=False, init="window.Worker = class { postMessage() {} terminate() {} }") as live:
        check("first: heads", live.in_frame("HEADS.length") == 16)
        check("first: a map", live.in_frame("HEADS.every(head => head.map)"))
        check("first: its text", live.page.input_value("#text") == FIRST)
        check("first: one line says what this is", "Nothing is sent" in live.page.inner_text("#what"))
        live.clean("first")


def follows(browser):
    with Live(browser) as live:
        page = live.page
        check("engine: relaxed SIMD", page.evaluate("engine.name") == "relaxed", page.evaluate("engine.reasons"))
        check("engine: its kernels", page.evaluate("engine.model.isa") == "wasm")
        check("a prediction", live.until("document.querySelector('#says li button')?.textContent === 'it'"), page.inner_text("#says"))
        check("what the head is worth", re.search(r"To fill \[MASK\], head \d\.\d reads .* P\(it\)", page.inner_text("#says")), page.inner_text("#says"))
        check("the first page was not made again", page.evaluate("shown.whole"))
        check("and it is the tool's", live.saved() == native(FIRST))

        # What is chosen stays while the text changes: tab, head, query, scroll, theme, panels.
        live.frame().evaluate("readAddress('#1.2/4/5/matrix'), setOpen('side', false), draw()")
        live.frame().click("#theme")
        theme = live.frame().evaluate("document.documentElement.dataset.theme")
        live.frame().evaluate("byId('rail').scrollTop = byId('grid').scrollTop = 40")
        scrolled = live.frame().evaluate("[byId('rail').scrollTop, byId('grid').scrollTop]")
        page.evaluate("""() => { window.blank = 0; window.frames_seen = 0; const look = () => { window.frames_seen++;
            const all = [...document.querySelectorAll('main iframe:not(.coming)')];
            if (all.length !== 1 || !all[0].contentDocument?.getElementById('panel')?.children.length) window.blank++;
            requestAnimationFrame(look); }; look(); }""")
        page.focus("#text")
        page.keyboard.press("End")
        page.keyboard.type(" Now it is here.", delay=30)
        check("typed", live.until("() => shown.of === document.querySelector('#text').value && !coming"))
        check("nothing blank meanwhile", page.evaluate("window.blank") == 0 and page.evaluate("window.frames_seen") > 5, page.evaluate("[blank, frames_seen]"))
        check("tab, head, query and key stay", live.in_frame("address()") == "#1.2/4/5/matrix", live.in_frame("address()"))
        check("the theme stays", live.in_frame("document.documentElement.dataset.theme") == theme)
        check("and is that of the page around", page.evaluate("document.documentElement.dataset.theme") == theme)
        check("a folded panel stays", live.in_frame("document.body.classList.contains('no-side')"))
        check("scrolled as before", live.frame().evaluate("[byId('rail').scrollTop, byId('grid').scrollTop]") == scrolled)
        page.fill("#text", "Then " + page.input_value("#text"))
        check("the query moves with its token", live.in_frame("address() === '#1.2/5/6/matrix'"), live.in_frame("address()"))
        check("the text keeps the focus", page.evaluate("document.activeElement.id") == "text")

        # A map is made when it is looked at.
        live.write("The [MASK] was open.")
        live.frame().click("#tab-map")
        check("the map comes", live.in_frame("HEADS[state.head].map && state.tab === 'map'"))
        live.clean("follows")


SHOWN = """() => ({
    ...Object.fromEntries(["subtitle", "rail", "tabs", "what-if", "asked", "panel", "inspector", "strip"].map(id => [id, byId(id).outerHTML])),
    pixels: [...document.querySelectorAll("canvas")].map(canvas => canvas.toDataURL()), address: address(), sees: [N, M, HEADS.length, LONG, MASK, EVERY, LABEL],
})"""


def difference(one, other):
    at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return "\n".join(f"  at {at}: …{words[max(0, at - 100):at + 100]}…" for words in ("", one, other) if words)


def one_document(browser):
    """The document goes on from text to text, and shows what a new one of that text shows: each view, with pixels. Choices stay."""
    texts = sentences(32, SEED)[12:] + ["The door was old.", "I [MASK] a dog. I saw a dog.", "(old) door, [MASK]!", "umbrella [MASK] umbrellas"]
    with Live(browser) as live:
        page = live.page
        page.evaluate("window.firstFrame = shown")
        for at, text in enumerate(texts):
            tab = ("start", "model", "tokens", "matrix", "why", "numbers", "compare")[at % 7]
            live.frame().evaluate(f"change({{tab: '{tab}', head: {at * 5 % 16}}}), draw()")
            if at % 3 == 1:
                live.frame().evaluate(f"change({{query: {at % 4}, more: [2]}}), draw()")
            live.frame().evaluate("toggleOverlaid(3), draw()" if at % 5 == 2 else "0")
            live.write(text)
            check(f"one document: {text!r}", page.evaluate("shown === firstFrame"))
            other = live.frame().evaluate("[compare.b, HEADS[compare.b] && placeName(compare.b), state.key, state.more, state.others.map(placeName)]")
            live.page.wait_for_timeout(150)
            followed = live.frame().evaluate(SHOWN)
            page.evaluate("shown.hashes = shown.of = '', changed()")
            check(f"one document: a new one of {text!r}", live.until("shown !== firstFrame && shown.of === text.value && !coming && !quick.busy"))
            live.frame().evaluate("""([b, name, key, more, others]) => { const placed = name => HEADS.findIndex((_, i) => placeName(i) === name);
                compare.b = name ? String(placed(name)) : b; Object.assign(state, {key, more, others: others.map(placed)}); shownTab = ""; draw(); }""", other)
            live.page.wait_for_timeout(150)
            fresh = live.frame().evaluate(SHOWN)
            if tab == "tokens":
                del followed["strip"]  # is hidden there, and not drawn
            for part, shown in followed.items():
                check(f"one document: {part} of {text!r} in {tab}", shown == fresh[part], difference(str(shown), str(fresh[part])))
            page.evaluate("window.firstFrame = shown")
        live.write("The [MASK] was new.")
        check("one document: of the file's own query the strongest key", live.frame().evaluate("state.query === manifest.query && state.key === strongest()"))
        live.frame().evaluate("change({scale: 'log', tab: 'matrix', more: [1]}), sets(rail, 'sort')('confidence'), fit(), zoom(2), draw()")
        zoomed = live.frame().evaluate("place.z")
        live.write("Then the [MASK] was new.")
        kept = live.frame().evaluate("[state.scale, rail.sort, byId('rail-tools').querySelector('select').value, place.fitted, place.z, state.more]")
        check("one document: what was chosen stays", kept == ["log", "confidence", "confidence", False, zoomed, [2]], kept)
        live.clean("one document")


def asks(browser):
    """What is asked in What if goes on being asked of the next text, and of the same text's page with maps."""
    with Live(browser) as live:
        page = live.page
        live.write("The [MASK] was open.")
        live.frame().evaluate("setOpen('what-if', true), ask({ temperature: 0.5, specials: false, dropped: new Set([2, 3]) })")
        live.write("Then the [MASK] was open again.")
        now = live.in_frame("({ ...askedNow(), open: isOpen('what-if'), badge: byId('badge').textContent, tokens: manifest.tokens })")
        check("asks: settings stay", now["temperature"] == 0.5 and now["specials"] is False and now["scaled"] is True, now)
        check("asks: dropped tokens move with the text", [now["tokens"][at] for at in now["dropped"]] == ["[MASK]", "was"], now)
        check("asks: the drawer stays open", now["open"])
        check("asks: the badge", "modified" in now["badge"], now["badge"])
        check("asks: nothing ended", page.is_hidden("#ended"))
        alone = live.in_frame("Array.from(row(state.head, 3))")
        check("asks: weights are those of the question", live.in_frame("""(() => { const sum = row(state.head, 3).reduce((a, p) => a + p, 0);
            return Math.abs(sum - 1) < 1e-5 && whatIf.dropped.size === 2 && [...whatIf.dropped].every(j => row(state.head, 3)[j] === 0); })()"""), alone)
        live.frame().click("#tab-map")
        check("asks: the page with maps has them, too", live.in_frame("HEADS[state.head].map && askedNow()?.temperature === 0.5 && whatIf.dropped.size === 2"))
        live.frame().click("#tab-tokens")
        live.write("Then the [MASK] opened the door again.")
        ended = page.inner_text("#ended")
        check("asks: what has gone is said", "was dropped" in ended and "[MASK]" not in ended, ended)
        check("asks: the rest stays", live.in_frame("askedNow().dropped.map(j => manifest.tokens[j]).join() === '[MASK]'"), live.in_frame("askedNow()"))
        live.write("Then the [MASK] opened the door again!")
        check("asks: what was said stays", "was dropped" in page.inner_text("#ended"))
        page.click("#ended button")
        check("asks: until it was read", page.is_hidden("#ended"))
        live.frame().click("#reset")
        live.write("The man was open.")
        check("asks: Reset ends it", live.frame().evaluate("askedNow()") is None)
        live.clean("asks")


def around(browser):
    """Words, candidates, examples, reset, errors, an empty text, links, Esc."""
    with Live(browser) as live:
        page = live.page
        live.write("The door was old.")
        page.click("#words button:has-text('door')")
        check("a click masks a word", page.input_value("#text") == "The [MASK] was old.")
        live.until("shown.of === 'The [MASK] was old.' && !coming")
        page.click("#words button:has-text('[MASK]')")
        check("and gives it back", page.input_value("#text") == "The door was old.")
        live.write("The [MASK] was old.")
        word = page.inner_text("#says li button")
        page.click("#says li button")
        check("a candidate goes into the text", page.input_value("#text") == f"The {word} was old.")
        live.write("My umbrella is in \u65e5 here.")
        kinds = page.evaluate("Object.fromEntries([...document.querySelectorAll('#words button')].map(b => [b.textContent, b.className]))")
        check("words in pieces are marked", kinds.get("umbrella") == "pieces" and kinds.get("is") == "", kinds)
        check("and words that are not read", kinds.get("\u65e5") == "unknown", kinds)
        check("tokens are counted", re.fullmatch(r"\d+ of 48 tokens", page.inner_text("#count")), page.inner_text("#count"))
        before = live.in_frame("manifest.title")
        page.fill("#text", "the door " * 30)
        check("too long: the reason", live.until("document.querySelector('#problem').textContent.includes('62')"), page.inner_text("#problem"))
        check("too long: counted", page.inner_text("#count") == "62 of 48 tokens", page.inner_text("#count"))
        check("too long: the old page, dimmed", live.in_frame("manifest.title") == before and
              float(page.evaluate("getComputedStyle(document.querySelector('main iframe')).opacity")) < 1 or time.sleep(0.3) or
              float(page.evaluate("getComputedStyle(document.querySelector('main iframe')).opacity")) < 1)
        page.fill("#text", "")
        check("empty: an invitation", page.is_visible("#invitation") and "[MASK]" in page.inner_text("#invitation"))
        check("empty: no error", page.inner_text("#problem") == "")
        page.click("#examples button >> nth=1")
        check("an example", live.until("shown.of === EXAMPLES[1] && !coming") and not page.is_visible("#invitation"))
        live.frame().evaluate("readAddress('#2.1/3/4/why'), draw()")
        page.wait_for_timeout(100)
        page.click("#share")
        link = page.evaluate("location.hash")
        check("a link", urllib.parse.parse_qs(link[1:]) == {"at": ["2.1/3/4/why"], "text": [page.evaluate("EXAMPLES[1]")]}, link)
        page.click("#reset")
        check("reset", page.input_value("#text") == FIRST and live.until("shown.of === EXAMPLES[0] && !coming"))
        page.evaluate("quick.worker.postMessage = () => {}")
        page.fill("#text", "The cat slept.")
        live.until("quick.busy")
        page.press("#text", "Escape")
        check("Esc stops", live.until("document.querySelector('#state').textContent === 'stopped'"))
        live.write("The cat [MASK] there.")
        live.clean("around")
    with Live(browser, link=link) as live:
        check("a link gives the text", live.until("shown?.of === EXAMPLES[1] && !coming"))
        check("and the place", live.in_frame("address()") == "#2.1/3/4/why", live.in_frame("address()"))
        live.clean("a link")


def models(browser):
    """Models of the reader: a folder, files, GGUF, what is none, what is broken; and back."""
    with Live(browser) as live:
        page = live.page
        page.click("#models summary")
        check("models: says that nothing leaves", "does not leave this computer" in page.inner_text("#models"))
        page.set_input_files("#model-folder", MODELS / "writer")
        check("a folder", live.until("engine.given?.name === 'writer' && model.architecture"), page.inner_text("#problem"))
        check("a folder: what comes next", live.until("document.querySelector('#says h2')?.textContent === 'Next'"), page.inner_text("#says"))
        text = "I was watching the door when"
        live.write(text)
        check("a folder: the tool's page", live.saved() == native(text, "--model", "writer", cwd=MODELS))
        gguf = MODELS.parent / "tests/golden/gguf/tiny.gguf"
        page.set_input_files("#model-files", gguf)
        check("GGUF", live.until("engine.given?.name.endsWith('tiny.gguf') || document.querySelector('#problem').textContent"), page.inner_text("#problem"))
        print(f"GGUF: {page.evaluate('[engine.given?.name, model, document.querySelector(`#problem`).textContent]')}")
        page.set_input_files("#model-files", [MODELS / "default" / name for name in ("config.json", "vocab.txt", "model.safetensors")])
        check("files", live.until("engine.given?.name === 'model' && model.mask === '[MASK]'"), page.inner_text("#problem"))
        live.write("The [MASK] was open.")
        check("files: a prediction", live.until("document.querySelector('#says h2')?.textContent === '[MASK]'"))
        page.set_input_files("#model-files", [MODELS / "default" / "config.json"])
        check("a model without weights: the reason", live.until("document.querySelector('#problem').textContent.includes('safetensors')"), page.inner_text("#problem"))
        check("and the model before it stays", page.evaluate("engine.given.name") == "model")
        live.write("The man was tired.")
        page.evaluate("""() => { const data = new DataTransfer(); data.items.add(new File(["x"], "notes.txt"));
            window.dispatchEvent(new DragEvent("dragenter", {dataTransfer: data})); }""")
        check("a place to drop", page.is_visible("#dropped"))
        page.evaluate("""() => { const data = new DataTransfer(); data.items.add(new File(["x"], "notes.txt"));
            window.dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true})); }""")
        check("what is no model", live.until("document.querySelector('#problem').textContent.startsWith('No model')"), page.inner_text("#problem"))
        check("nothing to drop any more", not page.is_visible("#dropped"))
        page.click("#models summary")
        page.click("#model-own")
        check("the model of the page again", live.until("!engine.given && shown?.of === text.value && !coming"))
        live.write(FIRST)
        check("has the tool's page", live.saved() == native(FIRST))
        live.clean("models")


def images(browser):
    """Images, by a model that reads them: pages of the tool, byte by byte; what is refused, and that the tab lives on."""
    both = FOLDER / "images"
    both.mkdir(exist_ok=True)
    for file in (MODELS / "seer", *(ROOT / "examples/images" / name for name in ("two-boats.png", "three-balls.png")),
                 *(ROOT / "tests/golden/image/files" / name for name in ("turned_6.jpg", "cmyk.jpg", "palette_clear.png"))):
        (both / file.name).unlink(missing_ok=True)
        (both / file.name).symlink_to(file)
    with Live(browser) as live:
        page = live.page
        give = """([name, type]) => { const data = new DataTransfer(); data.items.add(new File(["x"], name, { type }));
            window.dispatchEvent(new DragEvent("drop", {dataTransfer: data, cancelable: true})); }"""
        page.evaluate(give, ["cat.png", "image/png"])
        check("images: a model of texts reads none", live.until("document.querySelector('#problem').textContent.startsWith('cat.png: the model that is open reads texts')"),
              page.inner_text("#problem"))
        check("images: no field for them", page.is_hidden("#image-file"))
        page.set_input_files("#model-folder", MODELS / "seer")
        check("images: the model", live.until("model.images && !model.texts"), page.inner_text("#problem"))
        check("images: an invitation", page.is_visible("#invitation") and "Drop an image" in page.inner_text("#invitation"), page.inner_text("#invitation"))
        check("images: a field for them, none for texts", page.is_visible("#image-file") and page.is_hidden("#text"))

        def look(file):
            page.set_input_files("#image-file", both / file)
            found = live.until(f"image?.name === '{file}' && !quick.busy && (byId('problem').textContent || answered === image && !coming && !next && shown.of === image)")
            check(f"images: {file}", found is True, found)
            check(f"images: the tool's page of {file}", live.saved() == native(None, "--image", file, "--model", "seer", cwd=both))

        look("two-boats.png")
        check("images: its view", live.in_frame("state.tab === 'image'"))
        check("images: labels", page.inner_text("#says li >> nth=0").startswith("two red boats"), page.inner_text("#says"))
        page.click("#findings button")
        check("images: a head", live.in_frame("state.tab === 'image' && placeName(state.head)") in page.inner_text("#findings"))
        live.frame().evaluate("change({ query: 9 }), ask({ temperature: 2 })")
        look("three-balls.png")
        check("images: the query stays, and what is asked", live.in_frame("state.query === 9 && askedNow().temperature === 2"))
        for file in ("turned_6.jpg", "cmyk.jpg", "palette_clear.png"):
            look(file)
        page.evaluate(give, ["cat.png", "image/png"])
        check("images: a broken one is refused", live.until("byId('problem').textContent.includes('cat.png')"), page.inner_text("#problem"))
        page.evaluate(give, ["cat.gif", "image/gif"])
        check("images: and the tab lives on", live.until("byId('problem').textContent.includes('cat.gif')"), page.inner_text("#problem"))
        look("two-boats.png")
        page.screenshot(path=FOLDER / "live-image.png")
        page.click("#models summary")
        page.click("#model-own")
        check("images: texts again", live.until("model.texts && shown.of === text.value && !coming"))
        check("images: in their own view", live.in_frame("state.tab !== 'image'"))
        live.clean("images")


def fallback(browser):
    """An engine that refuses the module, and a processor without FMA: the exact module, with the same bits."""
    broken = FOLDER / "broken.html"
    html = PAGE.read_text(encoding="utf-8")
    unknown = bytes.fromhex("0061736d01000000 010401600000 03020100 0a0701 0500fdff7f0b")  # a function of an instruction that there is not
    broken.write_text(re.sub(r'(id="relaxed">)[^<]*', rf"\g<1>{base64.b64encode(gzip.compress(unknown)).decode()}", html), encoding="utf-8")
    for what, opened, options in (("refused", broken, []), ("without FMA", PAGE, ["--js-flags=--no-enable-fma3"])):
        own = harness.launch(browser.browser_type, *options) if options else browser
        with Live(own, opened) as live:
            check(f"{what}: the exact module", live.run("engine.name") == "exact", live.run("engine.name"))
            print(f"{what}: {live.run('engine.reasons')}")
            live.write("The [MASK] was in the garden when Anna came.")
            check(f"{what}: the tool's page", live.saved() == native("The [MASK] was in the garden when Anna came."))
            live.clean(what)
        if options:
            own.close()


def same_bytes(browser):
    with Live(browser) as live:
        for text in sentences(N, SEED):
            live.write(text)
            if live.run("document.documentElement.classList.contains('failed')"):
                check(f"{text!r}", False, live.page.inner_text("#problem"))
                continue
            check(f"the tool's page of {text!r}", live.saved() == native(text))
        best = min(live.run("""async () => { const times = []; for (let i = 0; i < 20; i++)
            times.push((await quick.ask({kind: 'look', text: EXAMPLES[0]})).ms); return times; }"""))
        print(f"{N} texts of seed {SEED}; a page without maps in {best:.1f} ms, the best of 20")
        live.clean("same bytes")


def memory(browser):
    """500 texts, one after another: what the tab holds after them is what it held after 50."""
    with Live(browser) as live:
        devices = live.context.new_cdp_session(live.page)
        devices.send("Performance.enable")

        def held():
            devices.send("HeapProfiler.collectGarbage")
            found = {each["name"]: each["value"] for each in devices.send("Performance.getMetrics")["metrics"]}
            return [found[name] for name in ("Documents", "Frames", "Nodes", "JSHeapUsedSize")]
        texts = sentences(512, SEED)[12:]
        for n, text in enumerate(texts, 1):
            live.page.fill("#text", text)
            live.until("answered === document.querySelector('#text').value && !coming && !next")
            if n == 50:
                early = held()
        late = held()
        print(f"documents, frames, nodes, bytes after 50 and after 500 texts: {early}, {late}")
        check("memory: documents and frames", late[:2] == early[:2], (early, late))
        check("memory: nodes", late[2] < 1.5 * early[2], (early, late))
        check("memory: heap", late[3] < early[3] + 8e6, (early, late))
        live.clean("memory")


def pictures(browser):
    for width, height in ((390, 844), (1280, 860), (1920, 1080)):
        for scheme in ("light", "dark"):
            with Live(browser, viewport={"width": width, "height": height}, color_scheme=scheme) as live:
                live.until("document.querySelector('#says li')")
                check(f"{width} {scheme}: nothing is wider", live.run("document.documentElement.scrollWidth <= innerWidth"))
                live.page.wait_for_timeout(300)
                live.page.screenshot(path=FOLDER / f"live-{width}-{scheme}.png")
                live.clean(f"{width} {scheme}")


def readers(browser):
    """axe-core's rules, with a text, with an error, empty."""
    with Live(browser) as live:
        for text in FIRST, "the " * 60, "":
            live.page.fill("#text", text)
            live.page.wait_for_timeout(500)
            found = live.violations(options="{iframes: false}")
            check(f"axe: {text[:20]!r}", not found, found)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    parts = (before_the_engine, follows, one_document, asks, around, models, images, fallback, same_bytes, memory, pictures, readers)
    return harness.run({part.__name__: part for part in parts if len(sys.argv) < 7 or part.__name__ in sys.argv[6:]})


sys.exit(main())
