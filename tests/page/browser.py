"""
The page in a browser: browser.py QKV MAKE_PAGE FOLDER [GROUP or PART...]. Debian's Chromium, headless, without a network,
driven by Playwright. Each check is one case; the last line is "N cases". What a page computes is held against `qkv attend`
on the same arrays: attend's output for an identity as values are its weights. Each part makes the pages that it opens, so it
runs alone. Nothing waits for a time: what is awaited is a state of the page.
"""
import array
import functools
import json
import math
import pathlib
import struct
import subprocess
import sys
import xml.dom.minidom

import harness
import images
import served
import tables
import views
from harness import PATIENCE, check, near

QKV, MAKE_PAGE, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
TABS = ["start", "model", "tokens", "matrix", "why", "map", "numbers", "compare"]
# Counts the page's timers without a delay: slices of work that has not ended. Others save the address, or tidy up.
SLICES = """{ const later = window.setTimeout; window.slicesLeft = 0;
    window.setTimeout = (run, ms, ...more) => ms ? later(run, ms, ...more) : (slicesLeft++, later(() => { slicesLeft--; run(...more); })); }"""
# Three frames in which nothing was left to do: no picture half drawn, no button on its way to another colour.
AT_REST = """patience => new Promise(done => { let still = 0; const end = performance.now() + patience, frame = () => {
    still = slicesLeft || document.getAnimations().some(a => a.playState === 'running') ? 0 : still + 1;
    still > 2 || performance.now() > end ? done(still > 2) : requestAnimationFrame(frame); }; requestAnimationFrame(frame); })"""
# A known piece of work, whose time on this machine at this moment is the unit of all others.
KNOWN = "(() => { let sum = 0; for (let i = 1; i <= 3e7; i++) sum += Math.sqrt(i) / i; return sum })()"


def npy(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<H", data[8:10])
    numbers = array.array("f")
    numbers.frombytes(data[10 + length:])
    return list(numbers)


def make(name, *sizes):
    subprocess.run([MAKE_PAGE, FOLDER, name, *map(str, sizes)], check=True)
    return FOLDER / f"{name}.html"


@functools.cache
def page_file(name):
    """The page of that name, made the first time that a part opens it."""
    return PAGES[name]()


def look(file, *words):
    """qkv look into a file; or what --json prints."""
    if file:
        subprocess.run([QKV, "look", *words, "-o", file, "--quiet"], check=True)
        return file
    return json.loads(subprocess.run([QKV, "look", *words, "--json", "--quiet"], check=True, capture_output=True, text=True).stdout)


CROSS_NAMES = {"q": [f"query{i}" for i in range(30)], "k": [f"key{j}" for j in range(44)]}


@functools.cache
def cross_arrays():
    """Queries and keys of two texts, as options of look."""
    options = []
    for which, tokens in (("q", "--q-tokens"), ("k", "--tokens")):
        make(f"cross_{which}", len(CROSS_NAMES[which]), 16, 1, 1)
        names = FOLDER / f"cross_{which}.txt"
        names.write_text("\n".join(CROSS_NAMES[which]) + "\n")
        options += [f"--{which}", FOLDER / f"cross_{which}.{which}.npy", tokens, names]
    return options


TEXT = "I was watching the [MASK] when it opened."
PAGES = {
    "small": lambda: make("small", 40, 64, 2, 2),
    "causal": lambda: make("causal", 40, 64, 2, 2, "causal"),
    "half": lambda: make("half", 128, 64, 2, 2),
    "image": lambda: make("image", images.TOKENS, 16, 3, 4, "image"),
    "odd": lambda: make("odd", 60, 8, 1, 2),
    "hands": lambda: make("hands", 48, 16, 3, 4),
    "plane": lambda: make("plane", 2048, 8, 1, 2),
    "dump": lambda: make("dump", 2500, 16, 1, 1, "causal"),
    "eleven": lambda: make("eleven", 11, 64, 12, 12),
    "short": lambda: make("short", 128, 64, 12, 12),
    "long": lambda: make("long", 512, 64, 12, 12),
    "cross": lambda: look(FOLDER / "cross.html", *cross_arrays()),
    "what_if": lambda: look(FOLDER / "what_if.html", TEXT),
    "effect": lambda: look(FOLDER / "effect.html", TEXT.replace("[MASK]", "door").replace("it", "[MASK]"), "--effect"),
}


def attend(name, *options, keys=None, lse=False):
    part = lambda what: str(FOLDER / f"{name if what == 'q' else keys or name}.{what}.npy")
    out, sums = FOLDER / "out.npy", FOLDER / "lse.npy"
    subprocess.run([QKV, "attend", "--q", part("q"), "--k", part("k"), "--v", part("eye"), "-o", out, "--lse", sums, *options],
                   check=True, capture_output=True)
    return npy(sums if lse else out)


class Tab(harness.Open):
    """A page that is open."""

    def __init__(self, browser, file, start=False, timed=False, **options):
        self.timed = timed
        super().__init__(browser, f"file://{file}", SLICES, **{"viewport": {"width": 1440, "height": 900}, **options})
        self.wait()
        if not start and "#" not in str(file):
            self.run("change({ tab: 'tokens' })")
            self.wait()

    def before(self):
        if self.timed:
            self.metrics = self.context.new_cdp_session(self.page)
            self.metrics.send("Performance.enable", {"timeDomain": "threadTicks"})

    def wait(self):
        """Two frames: what was asked for is drawn."""
        if self.context.pages and self.page.url.startswith("file:"):
            self.run("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def settle(self):
        """All that was asked for is drawn, and no work is left."""
        if not self.page.evaluate(AT_REST, 1000 * PATIENCE):
            raise TimeoutError(f"{self.page.url} does not come to rest")

    def cpu_ms(self):
        """What the thread of the page has computed; the page is `timed`."""
        return 1000 * next(m["value"] for m in self.metrics.send("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")

    def cost_ms(self, work):
        before = self.cpu_ms()
        work()
        return self.cpu_ms() - before

    @functools.cached_property
    def known_ms(self):
        """The best of three: the first is not compiled."""
        return min(self.cost_ms(lambda: self.run(KNOWN)) for _ in range(3))

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        self.wait()

    def state(self, name):
        return self.run(f"state.{name}")

    def tab(self, name):
        self.page.click(f"#tab-{name}")
        self.wait()

    def small_targets(self):
        return self.run("""[...document.querySelectorAll("button, select, input, summary")].filter(e => e.offsetParent && !e.closest("#help"))
            .map(e => [e, (e.closest("label") || e).getBoundingClientRect()]).filter(([, b]) => b.width < 24 || b.height < 24)
            .map(([e, b]) => `${e.id || e.textContent} ${b.width} x ${b.height}`)""")

    def sound(self, what):
        """The view that is shown: axe-core's rules, light and dark; sizes on a phone and on a laptop, of which a picture is left."""
        for theme in ("light", "dark"):
            self.page.emulate_media(color_scheme=theme)
            self.settle()
            found = self.violations("'#panel'")
            check(f"{what}: axe, {theme}", not found, found)
        for width in (390, 1280):
            self.page.set_viewport_size({"width": width, "height": 844})
            self.settle()
            wide = self.run("document.documentElement.scrollWidth")
            check(f"{what}: no sideways scrolling at {width} px", wide <= width, wide)
            small = self.small_targets()
            check(f"{what}: targets of 24 px at {width} px", not small, small)
            self.page.screenshot(path=FOLDER / f"{what.replace(' ', '-')}-{width}.png", full_page=True)
        self.clean(what)


def rows(tab):
    return tab.run("Array.from({ length: M }, (_, i) => Array.from(row(state.head, i))).flat()")


# ---- What it says -----------------------------------------------------------------------------------------------------

def values(browser):
    for name, n, more in [("small", 40, []), ("causal", 40, ["causal"]), ("half", 128, [])]:
        file = page_file(name)
        rule = ["--causal", "top-left"] if more else []
        with Tab(browser, file) as tab:
            tab.run("change({ head: 0 })")
            half = tab.run("HEADS[0].type") == "f16"
            check(f"{name}: type", half == (n > 64))
            bound = tab.run("HEADS[0].error") + 1e-6 if half else 2e-6
            near(f"{name}: weights are attend's", rows(tab), attend(name, *rule), bound)
            row = attend(name, *rule)[7 * n:8 * n]
            near(f"{name}: a row", tab.run("Array.from(row(0, 7))"), row, bound)
            near(f"{name}: a column", tab.run("Array.from(column(0, 5))"), attend(name, *rule)[5::n], bound)
            wide = 6e-3 if half else 2e-6
            for what, patch, options in [
                ("without the scale", "{ scaled: false }", ["--scale", "1"]),
                ("temperature 2", "{ temperature: 2 }", ["--scale", repr(0.125 / 2)]),
                ("causal", "{ causal: true }", ["--causal", "top-left"]),
            ]:
                tab.run(f"ask({patch})")
                near(f"{name}: what if {what}", rows(tab), attend(name, *rule, *options) if "--causal" not in options or not rule
                     else attend(name, *rule), 0.1 if half and "scaled" in patch else wide)
                near(f"{name}: lse {what}", tab.run("Array.from({ length: M }, (_, i) => row(0, i).lse)"),
                     attend(name, *([] if "--causal" in options else rule), *options, lse=True), 0.1 if half else 1e-5)
                tab.run("resetWhatIf()")
            tab.run("ask({ dropped: new Set([3]), specials: false })")
            got, plain = rows(tab), attend(name, *rule)
            for i in range(n):
                gone = [0, 3, n - 1]
                left = 1 - sum(plain[i * n + j] for j in gone)
                wanted = [0 if j in gone else plain[i * n + j] / left for j in range(n)] if left > 1e-6 else [0] * n
                if i in (5, 20, n - 2):
                    near(f"{name}: row {i} without keys", got[i * n:i * n + n], wanted, 5 * wide)
            check(f"{name}: says that it is modified", "not what the model computed" in (tab.run("draw()"), tab.page.inner_text("#badge"))[1])
            tab.clean(name)


def scores(browser):
    """Everything that makes a score, at once: softcap, ALiBi, a sink, a mask of bits, a window, an offset."""
    n, part = 40, lambda what: str(FOLDER / f"scores.{what}.npy")
    rule = ["--causal", "2", "--window", "25,-1", "--softcap", "3", "--mask", part("mask"), "--alibi", part("alibi"), "--sink", part("sink")]
    with Tab(browser, make("scores", n, 16, 1, 2, "scores")) as tab:
        tab.run("change({ head: 0 })")
        wanted = attend("scores", *rule)
        near("scores: weights are attend's", rows(tab), wanted, 2e-6)
        near("scores: a column", tab.run("Array.from(column(0, 5))"), wanted[5::n], 2e-6)
        seen = [sum((7 * i + 3 * j) % 5 != 0 for j in range(max(0, i + 2 - 25), min(n, i + 3))) for i in range(n)]
        check("scores: keys that are seen", tab.run("Array.from({ length: N }, (_, i) => keysSeen(i))") == seen)
        thumb = tab.run("Array.from(thumbOf(0), level => levels[level])")
        near("scores: the thumbnail", [max(thumb)], [max(wanted)], 0.05)
        tab.run("ask({ temperature: 1.000001 })")
        near("scores: softmax anew has the same weights", rows(tab), wanted, 2e-5)
        tab.run("ask({ temperature: 1, scaled: false })")
        near("scores: without the scale", rows(tab), attend("scores", *rule, "--scale", "1"), 2e-6)
        near("scores: lse without the scale", tab.run("Array.from({ length: M }, (_, i) => row(0, i).lse)"), attend("scores", *rule, "--scale", "1", lse=True), 1e-5)
        tab.run("ask({ temperature: 3 })")
        for query, key in ((5, 0), (20, 11), (39, 38)):
            tab.run(f"change({{ query: {query}, key: {key}, tab: 'why' }})")
            tab.wait()
            shown, (p, lse, score, seen) = list(facts(tab).values()), tab.run(f"(() => {{ const w = row(0, {query}), d = thisData(); return [w[{key}], w.lse, logitOf(d, {query}, {key}), maySee(d, {query}, {key})] }})()")
            made = tab.run(f"scoreSteps(thisData(), {query}, {key}).map(([, value]) => value)")
            check(f"scores: steps of {query} and {key}", abs(made[-1] - score) < 1e-9 and shown[:len(made)] == tab.run(f"{json.dumps(made)}.map(x => fixed(x, 3))") and
                  abs((math.exp(score - lse) if seen else 0) - p) < 1e-6, (made, score, lse, p, shown))
            steps = tab.page.inner_text("#panel .steps")
            check(f"scores: and Why has each, {query} and {key}", all(text in steps for text in ("softcap 3", "before ALiBi", "without the scale", "\u00f7 3")), steps)
        tab.run("resetWhatIf()")
        said = tab.run("caption()")
        check("scores: the caption", all(text in said for text in ("3 tanh(0.2500 q·k / 3) + 0.03", "sink", "j ≤ i + 2", "mask")), said)
        tab.run("change({ query: 5, key: 0 })")
        for name in TABS:
            tab.tab(name)
        tab.tab("why")
        check("scores: Why has each step", "softcap 3" in tab.page.inner_text("#panel .steps") and "before ALiBi" in tab.page.inner_text("#panel .steps"))
        check("scores: and ends at the weight", tab.page.inner_text("#panel .steps .last b") == tab.run("weightText(row(0, 5)[0])"))
        tab.clean("scores")


def cross(browser):
    """Other queries than keys: every view, and each weight, under masks that leave a query's own place out, too."""
    names = CROSS_NAMES
    file = page_file("cross")
    for rule in [], ["--causal", "bottom-right"], ["--causal", "-3"], ["--causal", "9", "--window", "4,-1"], ["--window", "7,2"]:
        with Tab(browser, look(FOLDER / "cross_rule.html", *cross_arrays(), *rule, "--scale", "0.3")) as tab:
            wanted = attend("cross_q", *rule, "--scale", "0.3", keys="cross_k")
            near(f"cross {rule}: weights are attend's", rows(tab), wanted, 2e-6)
            near(f"cross {rule}: a column", tab.run("Array.from(column(0, 11))"), wanted[11::44], 2e-6)
            tab.clean(f"cross {rule}")
    with Tab(browser, file) as tab:
        lists = tab.page.locator(".tokens.large")
        check("cross: two lists", [lists.nth(l).locator("bdi").all_inner_texts() for l in (0, 1)] == [names["q"], names["k"]])
        lists.nth(0).locator("button").nth(29).click()
        lists.nth(1).locator("button").nth(43).click()
        tab.wait()
        check("cross: clicks", (tab.state("query"), tab.state("key")) == (29, 43))
        check("cross: the pair", "query29" in tab.page.inner_text("#inspector .pair") and "key43" in tab.page.inner_text("#inspector .pair"))
        shades = lists.nth(0).locator("button").evaluate_all("list => list.map(b => b.getAttribute('aria-label'))")
        check("cross: queries are shaded by the key", all(f"weight {tab.run(f'weightText(row(0, {i})[43])')}" in shades[i] for i in (0, 13, 29)), shades[13])
        tab.press("ArrowRight")
        check("cross: there is no query 30", tab.state("query") == 29)
        tab.run("change({ query: 29, key: 43 })")
        tab.press("ArrowDown")
        check("cross: nor key 44", tab.state("key") == 43)
        tab.page.fill("#find", "query12")
        tab.page.focus("#find")
        tab.press("Enter")
        check("cross: finds a query", tab.state("query") == 12)
        tab.page.select_option(".strip-head select", "key")
        tab.page.fill("#find", "key31")
        tab.page.focus("#find")
        tab.press("Enter")
        check("cross: finds a key", tab.state("key") == 31)
        tab.run("document.activeElement.blur(), change({ query: 2, key: 40 })")
        tab.tab("matrix")
        tab.until("matrix.now && matrix.now.done")
        size = tab.run("[matrix.now.canvas.width, matrix.now.canvas.height]")
        check("cross: the matrix is 44 across, 30 down", size == [44, 30], size)
        box = tab.page.locator(".stage canvas").bounding_box()
        tab.page.mouse.click(box["x"] + tab.run("atX(41.5)"), box["y"] + tab.run("atY(29.5)"))
        tab.wait()
        check("cross: the last row can be clicked", (tab.state("query"), tab.state("key")) == (29, 41))
        tab.page.click("#panel details.table summary")
        tab.wait()
        check("cross: cells around it", tab.page.locator("#panel [role=grid] tbody th").all_inner_texts() == names["q"][21:] and
              tab.page.locator("#panel [role=grid] thead th").all_inner_texts()[1:] == names["k"][35:])
        tab.tab("map")
        check("cross: the map", tab.page.locator("#panel circle").count() == 30 and tab.page.locator("#panel svg > [role=button]").count() == 74)
        tab.tab("numbers")
        check("cross: plots", tab.until("!!numbers.sums") and tab.run("numbers.sums.entropy.length") == 30)
        near("cross: received", tab.run("Array.from(numbers.sums.received)"), [math.fsum(tab.run("Array.from(column(0, %d))" % j)) for j in range(44)], 1e-5)
        tab.tab("compare")
        tab.run("ask({ temperature: 2 })")
        check("cross: compared", tab.until("compare.js && compare.js.length === 30"))
        tab.run("ask({ temperature: 1, dropped: new Set([40, 41]) })")
        tab.run("change({ query: 29, key: 41 })")
        tab.wait()
        check("cross: a dropped key", facts(tab).get("rank among its keys") == "\u2013 of 42" and facts(tab).get("seen") == "no: dropped by What if", facts(tab))
        tab.run("resetWhatIf()")
        near("cross: rows as TSV", [float(x) for line in tab.run("headTsv()").splitlines()[2:] for x in line.split("\t")[1:]], rows(tab), 1e-9)
        check("cross: their names", [line.split("\t")[0] for line in tab.run("headTsv()").splitlines()[2:]] == names["q"])
        tab.run("fit()")
        for name in TABS:
            tab.tab(name)
            tab.settle()
            violations = tab.violations()
            check(f"cross: axe: {name}", not violations, violations)
        tab.clean("cross")
    with Tab(browser, file, viewport={"width": 320, "height": 800}) as tab:
        for name in TABS:
            tab.tab(name)
            tab.settle()
            check(f"cross: {name} at 320 px", tab.run("document.documentElement.scrollWidth <= innerWidth") and not tab.small_targets(), tab.small_targets())
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{file}")
    check("cross: without scripts", page.locator("noscript table tr").count() == 30 and "query29" in page.inner_text("noscript table"))
    context.close()
    make("tall_q", 3000, 16, 1, 1)
    make("wide_q", 1500, 16, 1, 1)
    for queries, keys_ in (("tall_q", "wide_q"), ("wide_q", "tall_q"), ("tall_q", "cross_k")):
        file = look(FOLDER / "far.html", "--q", FOLDER / f"{queries}.q.npy", "--k", FOLDER / f"{keys_}.k.npy")
        with Tab(browser, file) as tab:
            name = f"{queries} and {keys_}"
            n = tab.run("N")
            plain = lambda i: tab.run(f"Array.from(row(0, {i}))")
            check(f"{name}: a row sums to 1", abs(sum(plain(17)) - 1) < 1e-3)
            check(f"{name}: elements", tab.run("document.querySelectorAll('*').length") < 5000)
            if tab.run("!!HEADS[0].peaks"):
                tab.run("""() => { window.best = new Map(); const { peak_side, peak_tile } = HEADS[0];
                    for (let i = 0; i < M; i++) row(0, i).forEach((p, j) => { const at = Math.floor(i / peak_tile) * peak_side + Math.floor(j / peak_tile);
                        if (p > (best.get(at) || 0)) best.set(at, p); }); window.stored = bytesOf(HEADS[0].peaks); }""")
                off = tab.run("Math.max(...[...best].map(([c, p]) => p < 2 ** -22 ? 0 : Math.abs(Math.log2(p) - Math.log2(levels[stored[c]] || 2 ** -24))))")
                check(f"{name}: the largest weights of tiles, off by 2^{off:.3f}", off < 0.1)
                received = tab.run("(() => { const r = new Float64Array(N); for (let i = 0; i < M; i++) row(0, i).forEach((p, j) => r[j] += p); return Array.from(r) })()")
                near(f"{name}: received", tab.run("Array.from(allReceived())"), received, 0.02 * max(received))
            for name2 in TABS:
                tab.tab(name2)
            tab.tab("numbers")
            check(f"{name}: plots", tab.until("!!numbers.sums"))
            tab.tab("matrix")
            check(f"{name}: the matrix", tab.until("matrix.now && matrix.now.done"))
            tab.clean(name)


def hostile(browser):
    with Tab(browser, page_file("odd")) as tab:
        wanted = tab.run("units().slice(0, 60).map(unitText)")
        check("tokens are text", tab.page.locator(".tokens.large bdi").all_inner_texts() == [text.strip() for text in wanted] or
              [t.replace("\u2423", " ") for t in tab.page.locator(".tokens.large bdi").all_inner_texts()] == [t.replace("\u2423", " ") for t in wanted])
        check("no element comes from a token", tab.page.locator("b:not(.steps b)").count() == 0)
        check("a token that closes a script is there", any("</script>" in text for text in wanted))
        check("title", tab.page.title() == "A test </title> of tokens")
        tab.run("""() => new Promise(done => { document.addEventListener("securitypolicyviolation", done);
                   const s = document.createElement("script"); s.textContent = "window.broken = 1"; document.body.append(s); })""")
        check("no script but ours runs", tab.run("window.broken === undefined"))
        tab.errors.clear()  # the policy says that it refused them
        check("no fetch", tab.run("fetch('https://example.org').then(() => 1, () => 0)") == 0)


# ---- Hands ------------------------------------------------------------------------------------------------------------

def keys(browser):
    with Tab(browser, page_file("hands")) as tab:
        tab.run("change({ head: 5, query: 10 })")
        tab.wait()
        for key, patch in [("ArrowRight", 11), ("ArrowLeft", 10)]:
            tab.press(key)
            check(f"{key} moves the query along the text", tab.state("query") == patch)
        key = tab.state("key")
        tab.press("ArrowDown")
        check("down moves the key there", tab.state("key") == min(47, key + 1))
        tab.press("4")
        check("4 is the matrix", tab.state("tab") == "matrix")
        tab.run("change({ query: 10, key: 20 })")
        tab.press("ArrowDown", "ArrowDown", "ArrowRight")
        check("arrows in the matrix", (tab.state("query"), tab.state("key")) == (12, 21))
        before = tab.run("place.z")
        tab.press("+")
        check("+ zooms in", tab.run("place.z") > before)
        tab.press("-", "-")
        tab.press("0")
        check("0 fits", abs(tab.run("place.z - fitZoom()")) < 1e-9)
        for key, name in zip("12345678", TABS):
            tab.press(key)
            check(f"{key} is {name}", tab.state("tab") == name and tab.page.get_attribute(f"#tab-{name}", "aria-selected") == "true")
        tab.press("3")
        layer = tab.run("HEADS[state.head].layer")
        tab.press("]")
        check("] is the next layer", tab.run("HEADS[state.head].layer") == layer + 1)
        tab.press("[")
        check("[ is the one before", tab.run("HEADS[state.head].layer") == layer)
        head = tab.state("head")
        tab.press("}")
        check("} is the next head", tab.state("head") == head + 1)
        tab.press("{")
        check("{ is the one before", tab.state("head") == head)
        tab.press("t")
        check("t turns from into to", tab.state("to") is True)
        tab.press("t")
        seen = []
        for _ in range(3):
            tab.press("l")
            seen.append(tab.state("scale"))
        check("l goes round the scales", sorted(seen) == ["linear", "log", "uniform"])
        tab.press("s")
        check("s hides special tokens", tab.run("whatIf.specials") is False)
        tab.press("s", "w")
        check("w joins words", tab.state("words") is True and tab.page.locator(".tokens.large button").count() < 48)
        tab.press("w", "d")
        check("d drops the key", tab.run("whatIf.dropped.size") == 1)
        tab.press("d")
        check("d brings it back", tab.run("whatIf.dropped.size") == 0)
        tab.press("/")
        check("/ is the search", tab.run("document.activeElement.id") == "find")
        tab.page.keyboard.type("opened")
        tab.press("Enter")
        check("Enter finds", tab.run("tokenText(state.query)") == "opened" and tab.page.locator(".tokens.large .found").count() > 1)
        tab.press("Escape")
        check("Esc clears", tab.page.input_value("#find") == "")
        check("Esc leaves the search", tab.run("document.activeElement.id") == "panel", tab.run("document.activeElement.outerHTML.slice(0, 80)"))
        tab.press("4")
        check("and keys are the page's again", tab.state("tab") == "matrix")
        tab.page.focus(".tools input[type=checkbox]")
        scale = tab.state("scale")
        tab.press("l")
        check("keys work beside a box", tab.state("scale") != scale)
        tab.press(" ")
        check("and the space bar is the box's", tab.page.is_checked(".tools input[type=checkbox]"))
        tab.press(" ", "3")
        check("digits, too", tab.state("tab") == "tokens")
        tab.page.click("#what-if-open")
        tab.page.focus("#heat")
        query = tab.state("query")
        tab.press("ArrowRight")
        check("arrows are the slider's", tab.run("whatIf.temperature") > 1 and tab.state("query") == query)
        tab.press("5")
        check("digits are not", tab.state("tab") == "why")
        tab.run("resetWhatIf()")
        tab.press("Escape", "3")
        tab.run("change({ scale: 'linear' }), document.activeElement.blur()")
        tab.page.hover(".tokens.large button >> nth=9")
        tab.wait()
        check("the mouse previews", tab.state("hover") == 9)
        tab.press("Enter")
        check("Enter keeps it", tab.state("query") == 9)
        tab.press("?")
        check("? helps", tab.page.is_visible("#help"))
        tab.press("Escape")
        check("Esc closes help", not tab.page.is_visible("#help"))
        tab.page.focus("#grid button[aria-pressed=true]")
        head = tab.state("head")
        tab.press("ArrowRight")
        check("arrows in the rail", tab.state("head") == head + 1 and tab.run("document.activeElement.dataset.head") == str(head + 1))
        tab.page.focus("#tab-tokens")
        tab.press("ArrowRight")
        check("arrows in the tabs", tab.state("tab") == "matrix" and tab.run("document.activeElement.id") == "tab-matrix")
        check("the live region speaks", "query 9" in tab.page.inner_text("#live"))
        tab.clean("keys")
    with Tab(browser, str(page_file("hands")) + "#9.9/0/0/compare") as tab:
        shown = tab.run("document.querySelector('#panel select').value")
        check("a link to Compare names the other head", shown == tab.run("compare.b") and shown != "modified", shown)


def controls(browser):
    """Every button, select and box that can be seen, in every view: nothing breaks; then the ones with an effect of their own."""
    with Tab(browser, page_file("hands")) as tab:
        tab.page.on("download", lambda download: None)
        tab.run("window.print = () => { window.printed = true; }")
        tab.page.click("#what-if-open")
        for name in TABS:
            tab.tab(name)
            for index in range(tab.page.locator("#main input[type=checkbox]").count()):
                box = tab.page.locator("#main input[type=checkbox]").nth(index)
                before = box.is_checked()
                box.click()
                tab.wait()
                check(f"{name}: box {index}", box.is_checked() != before)
            tab.run("resetWhatIf()")
            tab.wait()
            for index in range(tab.page.locator("#main select:visible").count()):
                select = tab.page.locator("#main select:visible").nth(index)
                for value in select.evaluate("s => [...s.options].map(o => o.value).slice(0, 4)"):
                    if select.evaluate("(s, value) => [...s.options].some(o => o.value === value)", value):  # a head that is laid over is gone
                        select.select_option(value)
                    tab.wait()
            for index in range(min(30, tab.page.locator("#panel button").count())):
                if index < tab.page.locator("#panel button").count():
                    tab.page.locator("#panel button").nth(index).click()
                    tab.wait()
            for summary in tab.page.query_selector_all("#panel summary"):
                summary.click()
                tab.wait()
            check(f"{name}: every control", not tab.errors, tab.errors)
            check(f"{name}: tables open", tab.page.locator("#panel details[open] table").count() == tab.page.locator("#panel details:not(.caption)").count())
            tab.run("resetWhatIf(), change({ to: false, words: false, scale: 'linear' })")
        tab.page.select_option("#rail-tools select >> nth=0", "confidence")
        tab.wait()
        check("heads sort", tab.page.locator("#grid button").first.get_attribute("data-head") == "3")
        tab.page.fill("#least", "0.15")
        tab.wait()
        check("heads filter by a number", tab.page.locator("#grid button").count() == tab.run("HEADS.filter(h => h.stats.confidence >= 0.15).length") == 3)
        tab.page.fill("#least", "")
        tab.page.select_option("#rail-tools select >> nth=1", "prev")
        tab.wait()
        check("heads filter", tab.page.locator("#grid button").count() == 3)
        tab.tab("tokens")
        tab.page.click(".tokens.large button >> nth=6")
        tab.page.click(".tokens.large button >> nth=8", modifiers=["Shift"])
        tab.wait()
        check("Shift adds a query", tab.run("[state.query, ...state.more].join()") == "6,8")
        tab.page.mouse.move(5, 5)
        tab.wait()
        near("queries are averaged", tab.run("Array.from(queryRow())"), tab.run("Array.from(row(state.head, 6), (p, j) => (p + row(state.head, 8)[j]) / 2)"), 1e-6)
        tab.page.click(".tokens.large button >> nth=11", modifiers=["Alt"])
        check("Alt selects the key", tab.state("key") == 11)
        theme = tab.run("dark")
        tab.page.click("#theme")
        tab.wait()
        check("the theme turns", tab.run("dark") != theme)
        tab.page.click("#inspector ol.top button >> nth=2")
        tab.wait()
        check("a key of the list", tab.state("hover") is None and tab.page.get_attribute("#inspector ol.top button >> nth=2", "aria-pressed") == "true")
        tab.clean("controls")


def matrix_hands(browser):
    with Tab(browser, page_file("half")) as tab:
        tab.tab("matrix")
        tab.until("matrix.now && matrix.now.done")
        box = tab.page.locator(".stage canvas").bounding_box()
        at = lambda i, j: (box["x"] + tab.run(f"atX({j} + 0.5)"), box["y"] + tab.run(f"atY({i} + 0.5)"))
        tab.page.mouse.click(*at(40, 60))
        tab.wait()
        check("a click selects a cell", (tab.state("query"), tab.state("key")) == (40, 60))
        tab.page.mouse.move(*at(30, 31))
        tab.wait()
        check("the tooltip has the number", tab.run("weightText(row(state.head, 30)[31])") in tab.page.inner_text("#tip"))
        before = tab.run("place.z")
        tab.page.mouse.wheel(0, -600)
        check("the wheel zooms", tab.until(f"place.z > {before} * 1.5"))
        cell = tab.run(f"(() => {{ const b = matrix.canvas.getBoundingClientRect(); return cellAt({{ clientX: {at(30, 31)[0]}, clientY: {at(30, 31)[1]} }}).i }})()")
        check("around the mouse", cell == 30)
        x = tab.run("place.x")
        tab.page.mouse.move(box["x"] + 400, box["y"] + 300)
        tab.page.mouse.down()
        tab.page.mouse.move(box["x"] + 340, box["y"] + 260, steps=4)
        tab.page.mouse.up()
        check("dragging moves", tab.run("place.x") > x)
        tab.page.mouse.dblclick(box["x"] + 300, box["y"] + 300)
        tab.wait()
        check("double click fits", abs(tab.run("place.z - fitZoom()")) < 1e-9)
        tab.page.keyboard.down("Shift")
        tab.page.mouse.move(*at(10, 20))
        tab.page.mouse.down()
        tab.page.mouse.move(*at(30, 50), steps=4)
        tab.page.mouse.up()
        tab.page.keyboard.up("Shift")
        tab.wait()
        check("a rectangle", tab.run("matrix.brush") == [10, 31, 20, 51])
        wanted = tab.run("(() => { let p = 0; for (let i = 10; i < 31; i++) for (let j = 20; j < 51; j++) p = Math.max(p, row(state.head, i)[j]); return weightText(p); })()")
        check("its strongest pair", tab.page.inner_text("#panel table tbody tr:first-child td:nth-child(3)") == wanted)
        painted = tab.run("""(() => { const c = matrix.now.canvas, d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, bad = [];
            for (const [i, j] of [[0, 0], [5, 6], [100, 101], [127, 3]]) { const rgb = colorOf(row(state.head, i)[j], keysSeen(i), topOf(state.head));
            if (c.width === N && rgb.some((x, k) => x !== d[4 * (i * N + j) + k])) bad.push([i, j]); } return bad; })()""")
        check("cells have the colour of their weight", painted == [], painted)
        tab.clean("matrix")
    with Tab(browser, page_file("half"), has_touch=True, viewport={"width": 420, "height": 800}) as tab:
        tab.page.tap("#tab-matrix")
        tab.until("matrix.now && matrix.now.done")
        tab.page.locator(".stage canvas").scroll_into_view_if_needed()
        box = tab.page.locator(".stage canvas").bounding_box()
        tab.page.touchscreen.tap(box["x"] + tab.run("atX(64.5)"), box["y"] + tab.run("atY(32.5)"))
        tab.wait()
        check("a finger selects a cell", (tab.state("query"), tab.state("key")) == (32, 64))
        tab.clean("touch")


def the_map(browser):
    with Tab(browser, page_file("hands")) as tab:
        tab.run("change({ head: 4, query: 10 })")
        tab.tab("map")
        points = tab.page.locator("#panel svg [role=button]")
        check("a point for each query and key", points.count() == 96)
        x = lambda: tab.run("[...document.querySelectorAll('#panel circle')].map(c => +c.getAttribute('cx'))")
        order = lambda numbers: sorted(range(48), key=lambda i: numbers[i])
        places = tab.run("Array.from(mapPlaces().xy)")
        check("drawn in their order", order(x()) == order(places[0:96:2]))
        check("a line to each of five keys", tab.page.locator("#panel svg > line").count() == 5)
        points.nth(48 + 7).dispatch_event("click")
        tab.wait()
        check("a key of the map", tab.state("key") == 7)
        points.nth(3).focus()
        tab.press("Enter")
        check("a query of the map", tab.state("query") == 3)
        check("the focus stays on it", tab.run("document.activeElement.getAttribute('aria-label')").startswith("query") and tab.run("document.activeElement.dataset.place") == "3")
        tab.page.select_option("#panel select >> nth=0", "pca")
        tab.wait()
        check("principal components", len(set(x())) == 1)
        for value in ("place", "kind", "class", "segment", "norm"):
            tab.page.select_option("#panel select >> nth=1", value)
            tab.wait()
            fills = tab.run("[...document.querySelectorAll('#panel svg > [role=button]')].map(p => p.getAttribute('fill'))")
            groups = {"kind": lambda p: p >= 48, "segment": lambda p: tab_segments[p % 48], "class": lambda p: tab_classes[p % 48]}
            tab_segments, tab_classes = tab.run("manifest.segment"), tab.run("manifest.tokens.map((_, i) => classOf(manifest, i))")
            if value in groups:
                check(f"map: a colour for each {value}", len({(groups[value](p), fill) for p, fill in enumerate(fills)}) == len(set(fills)) > 1, set(fills))
            else:
                check(f"map: a ramp by {value}", len(set(fills)) > 12, len(set(fills)))
            check(f"map: a legend of {value}", tab.page.locator("#panel .legend").count() == 1)
        norms = tab.run("Array.from(allNorms())")
        q = tab.run("Array.from(thisData().q.slice(0, D))")
        near("map: norms", norms[:1], [math.sqrt(math.fsum(c * c for c in q))], 1e-5)
        tab.run("change({ head: 0 })")
        tab.wait()
        said = tab.page.inner_text("#panel figcaption")
        check("a head without a map has its components, and says so", "no map of this head" in said and "computed here" in said and points.count() == 96, said)
        tab.tab("start")
        for index in (0, 1):
            tab.page.click("#save summary")
            tab.page.locator("#save-list button").nth(index).click()
            check("Save says where there is no picture", "no picture" in tab.page.inner_text("#save-list p"))
            tab.page.click("#save summary")
        tab.clean("map")
    with Tab(browser, page_file("plane")) as tab:
        tab.run("change({ head: 1, query: 2047 })")
        tab.tab("map")
        nodes, shown = tab.run("document.querySelectorAll('*').length"), tab.run("document.querySelectorAll('#panel circle').length")
        check(f"2048 tokens: {nodes} elements", nodes < 5000)
        check("every second query, and the selected one", shown == 1025 and "one token of 2," in tab.page.inner_text("#panel figcaption"))
        tab.clean("long map")


def files(browser):
    with Tab(browser, page_file("hands")) as tab:
        tab.run("change({ head: 5 })")
        names = []
        def save(index):
            tab.page.click("#save summary")
            with tab.page.expect_download() as made:
                tab.page.locator("#save-list button").nth(index).click()
            names.append(made.value.suggested_filename)
            path = FOLDER / f"saved_{made.value.suggested_filename}"
            made.value.save_as(path)
            return path
        for name in TABS[1:]:
            tab.tab(name)
            tab.until("!matrix.now || matrix.now.done")
            tab.settle()
            png = save(0).read_bytes()
            check(f"{name}.png", png[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">I", png[16:20])[0] >= 1280)
            page = xml.dom.minidom.parse(str(save(1)))
            check(f"{name}.svg has title and caption", page.getElementsByTagName("title")[0].firstChild.data == "A test </title> of tokens" and
                  "Weight p = exp" in page.getElementsByTagName("desc")[0].firstChild.data)
            check(f"{name}.svg says what lies where", (name == "map") == ("least of 32 runs" in page.getElementsByTagName("desc")[0].firstChild.data))
            shown = tab.run("document.querySelector('#panel .legend')?.textContent || ''")
            drawn = "".join(text.firstChild.data for text in page.getElementsByTagName("text") if text.firstChild)
            check(f"{name}.svg has the scale of the view", bool(shown) == (name in ("model", "matrix", "map", "compare")) and shown in drawn, shown)
            said = page.getElementsByTagName("desc")[0].firstChild.data
            if name in ("numbers", "compare"):
                figures = tab.run("[...document.querySelectorAll('#panel figure')].map(f => [f.querySelector('h3')?.textContent || '', f.querySelector('figcaption').textContent])")
                check(f"{name}.svg has each figure of the view", len(page.getElementsByTagName("svg")) == 2 + len(figures) > 3 and
                      all(title in drawn and words.replace(" ", "") in drawn.replace(" ", "") for title, words in figures), (figures, drawn))
                height = sum(float(svg.getAttribute("height")) for svg in page.getElementsByTagName("svg")[2:])
                check(f"{name}.svg has room for them", float(page.documentElement.getAttribute("height")) > height > 300, height)
            if name == "why":
                pair = tab.run("`${queryText(state.query)} looks at ${tokenText(state.key)}. `")
                check("why.svg says which pair", said.startswith(pair), (pair, said))
            if name == "compare":
                check("compare.svg says which heads", "A: layer 1, head 1. B: layer 0, head 0." in said and "counted from 0" not in said, said)
            if name in ("model", "matrix", "compare"):
                check(f"{name}.svg has cells, not pixels", len(page.getElementsByTagName("image")) == 1, len(page.getElementsByTagName("image")))
            if name == "model":
                cells = [path for g in page.getElementsByTagName("g") for path in g.getElementsByTagName("path")]
                area = sum(int(run.split("h")[1].split("v")[0]) for path in cells for run in path.getAttribute("d").split("M")[1:])
                check("model.svg has a square for each cell", area == tab.run("HEADS.reduce((sum, { side, rows }) => sum + side * rows, 0)"), area)
                colours = tab.run("[...new Set(HEADS.flatMap((_, i) => Array.from(thumbOf(i), level => text(colorOf(levels[level], N, topOfAll())))))]")
                check("model.svg has the colours of the scale", {path.getAttribute("fill") for path in cells} == set(colours))
            check(f"{name}.svg has no colours that only our style knows", "var(" not in page.toxml() and "light-dark" not in page.toxml())
        lines = save(2).read_text().splitlines()
        check("row as TSV", len(lines) == 50 and lines[1].split("\t") == ["query", "key", "query_token", "key_token", "weight"])
        near("its numbers", [float(line.split("\t")[4]) for line in lines[2:]], tab.run("Array.from(row(state.head, state.query))"), 1e-9)
        made = json.loads(save(3).read_text())
        check("row as JSON", made["query"] == tab.state("query") and made["modified"] is False and len(made["weights"]) == 48)
        lines = save(4).read_text().splitlines()
        check("all rows", len(lines) == 50 and all(len(line.split("\t")) == 49 for line in lines[1:]))
        for query, key in ((20, 3), (20, 4)):
            tab.run(f"change({{ query: {query}, key: {key}, tab: 'why' }})")
            tab.settle()
            save(1)
        tab.run("compare.b = '2', change({ tab: 'compare' })")
        tab.settle()
        save(1)
        tab.run("ask({ temperature: 2 })")
        tab.settle()
        save(1)
        save(2)
        check("no two files have one name", len(set(names)) == len(names) == 2 * len(TABS[1:]) + 8, names)
        tab.clean("files")


# ---- What if --------------------------------------------------------------------------------------------------------------

def number(text):
    return float((text or "nan").replace("\u2212", "-").replace("\u221e", "inf"))


def facts(tab):
    """The panel of the selected pair: its names and what stands beside them."""
    return tab.run("Object.fromEntries([...document.querySelector('#inspector dl').querySelectorAll('dt')].map(dt => [dt.textContent, dt.nextSibling.textContent]))")


def softmax(scores, seen):
    """Weights and lse of a row, in doubles."""
    most = max((s for s, see in zip(scores, seen) if see), default=0)
    total = math.fsum(math.exp(s - most) for s, see in zip(scores, seen) if see)
    return ([math.exp(s - most) / total if see else 0 for s, see in zip(scores, seen)], most + math.log(total)) if total else ([0] * len(scores), -math.inf)


def ask_pair(tab, what, query, key, scores, plain, heat, seen):
    """The panel and the steps of Why, against softmax in Python. scores: q.k, and with the scale of the model or without."""
    products, scaled = scores
    logits = [s / heat for s in scaled]
    weights, lse = softmax(logits, seen)
    tab.run(f"change({{ query: {query}, key: {key}, hover: null }})")
    tab.wait()
    shown, p, m, near_by = facts(tab), weights[key], sum(seen), lambda a, b: abs(a - b) <= 0.0011 or a == b
    name = f"what if: {what}: {query} looks at {key}"
    check(f"{name}: the weight", tab.page.inner_text("#inspector .big") == tab.run(f"weightText(Math.fround({p!r}))"), (tab.page.inner_text("#inspector .big"), p))
    check(f"{name}: q.k", near_by(number(shown.get("q\u00b7k")), products[key]), shown)
    steps = list(shown.values())[:list(shown).index("lse of the query") - ("seen" in shown)]
    check(f"{name}: the score", near_by(number(steps[-1]), logits[key]), (shown, logits[key]))
    check(f"{name}: the scale is said", ("\u00d7 0.1768" in shown) == (scaled is not products) and ("without the scale" in shown) == (scaled is products), shown)
    check(f"{name}: the temperature is said", any(fact.startswith("\u00f7 ") for fact in shown) == (heat != 1), shown)
    check(f"{name}: lse", near_by(number(shown.get("lse of the query")), lse), (shown, lse))
    rank = 1 + sum(w > p for w in weights) if seen[key] else "\u2013"
    check(f"{name}: rank", shown.get("rank among its keys") == f"{rank} of {m}", (shown, f"{rank} of {m}"))
    check(f"{name}: seen or not", ("seen" in shown) == (not seen[key]), shown)
    check(f"{name}: times uniform", abs(number(shown.get("times uniform")) - p * m) <= 0.0051, (shown, p * m))
    check(f"{name}: the weight without What if", shown.get("without What if") == tab.run(f"weightText(Math.fround({plain[key]!r}))"), shown)
    cards, signs = (tab.page.locator(f"#panel .steps {part}").all_inner_texts() for part in ("b", "> i"))
    check(f"{name}: Why begins with q.k", near_by(number(cards[0]), products[key]), cards)
    check(f"{name}: Why comes to the score", near_by(number(cards[len(steps) - 1]), logits[key]), (cards, logits[key]))
    log_weight = number(cards[len(steps)])
    check(f"{name}: Why subtracts the lse", near_by(log_weight, logits[key] - lse if seen[key] else -math.inf), (cards, lse))
    check(f"{name}: Why says the lse", not seen[key] or any(sign.endswith("(lse)") and near_by(number(sign.split()[1]), lse) for sign in signs), (signs, lse))
    check(f"{name}: Why ends at the weight", tab.page.inner_text("#panel .steps .last b") == tab.page.inner_text("#inspector .big") and
          (p == 0 or abs(math.exp(log_weight) - p) < 2e-3 * p + 1e-9), (cards, p))
    rivals = tab.run("[...document.querySelectorAll('#panel table')].filter(t => t.caption.textContent.startsWith('Softmax')).flatMap(t => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent)))")
    check(f"{name}: scores of the rivals", all(near_by(number(line[2]), logits[int(line[0].split("(")[-1][:-1])]) for line in rivals), rivals)


def ask_head(tab, what, answer, listed, before):
    """Everything else that is shown of a head under What if, against `look --what-if` and `heads --what-if` (layer 0)."""
    n, seen = tab.run("N"), [[p is not None for p in line] for line in answer["weights"]]
    wanted = [[p or 0 for p in line] for line in answer["weights"]]
    near(f"what if: {what}: weights are those of look --what-if", rows(tab), [p for line in wanted for p in line], 2e-6)
    check(f"what if: {what}: keys that are seen", tab.run("Array.from({ length: M }, (_, i) => keysSeen(i))") == [sum(line) for line in seen])
    said = tab.run("caption()")
    check(f"what if: {what}: the caption says how a weight is made", ("0.1768 q\u00b7k" in said) == tab.run("whatIf.scaled") and
          ("/ " in said.split("exp(")[1].split("lse")[0]) == (tab.run("whatIf.temperature") != 1) and "MODIFIED" in said, said)
    check(f"what if: {what}: thumbnails stay", tab.run("[...document.querySelectorAll('#grid canvas')].map(c => c.toDataURL()).join()") == before)
    check(f"what if: {what}: and say so", tab.run("document.querySelector('#rail .badge')?.checkVisibility() ?? false"))
    check(f"what if: {what}: so do labels of heads", tab.run("[...document.querySelectorAll('#grid button')].every(b => b.title.endsWith('without What if'))"))
    check(f"what if: {what}: numbers of the head say so", "without What if" in tab.run("document.querySelector('#inspector hr').nextSibling.nextSibling.textContent"))
    check(f"what if: {what}: Reset is there", tab.page.is_visible("#reset"))
    tab.tab("numbers")
    tab.until("numbers.sums && numbers.key === [state.head, version, dark, false].join()")
    check(f"what if: {what}: the table of heads says so", tab.page.locator("#panel .badge", has_text="without What if").count() == 1)
    entropies = tab.run("numbers.sums.entropy.map(h => Number.isNaN(h) ? null : h)")
    exact = [-math.fsum(p * math.log(p) for p in line if p > 0) if any(see) else None for line, see in zip(wanted, seen)]
    check(f"what if: {what}: entropies", all((a is None) == (b is None) and (a is None or abs(a - b) < 1e-5) for a, b in zip(entropies, exact)), (entropies, exact))
    plain = entropies[1:-1]  # without [CLS] and [SEP]
    if None not in plain:
        near(f"what if: {what}: their mean is that of heads --what-if", [math.fsum(plain) / len(plain)], [listed["entropy"]], 1e-5)
    near(f"what if: {what}: received", tab.run("Array.from(allReceived() || numbers.sums.received)"), [math.fsum(line[j] for line in wanted) for j in range(n)], 1e-5)
    texts = tab.page.locator("#panel figcaption").all_inner_texts()
    check(f"what if: {what}: received, together", any(f"all keys together: {round(math.fsum(map(math.fsum, wanted)), 2):g}." in text for text in texts), texts)
    left = n - sum(not any(line[j] for line in seen) for j in range(n))
    check(f"what if: {what}: entropy ends at ln of the keys that are left", any(f"ln n = {math.log(left):.2f}" in text for text in texts), (left, texts))
    tab.tab("matrix")
    tab.until("matrix.now && matrix.now.done")
    alpha = tab.run("(() => { const c = matrix.now.canvas, d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return Array.from({ length: N * M }, (_, at) => d[4 * at + 3] > 0) })()")
    check(f"what if: {what}: cells that are not seen are not drawn", alpha == [see for line in seen for see in line])
    tab.run("change({ scale: 'uniform' })")
    tab.wait()
    tab.until("matrix.now && matrix.now.done")
    off = tab.run("""(() => { const c = matrix.now.canvas, d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = %s; let off = 0;
        for (let i = 0; i < M; i++) for (let j = 0; j < N; j++) if (seen[i][j]) { const t = 0.5 + Math.log2(row(state.head, i)[j] * seen[i].filter(Boolean).length) / 8;
            const rgb = colors[Math.round(255 * Math.max(0, Math.min(1, t)))]; if (rgb.some((x, k) => x !== d[4 * (i * N + j) + k])) off++; } return off })()""" % json.dumps(seen))
    check(f"what if: {what}: colours in times uniform", off == 0, off)
    tab.run("change({ scale: 'linear' })")
    tab.tab("tokens")
    lost = [j for j in range(n) if not any(line[j] for line in seen)]
    off = tab.run("[...document.querySelectorAll('.tokens.large button')].flatMap((b, j) => b.classList.contains('off') ? [j] : [])")
    check(f"what if: {what}: tokens that are no keys are struck out", off == lost, (off, lost))
    saved = json.loads(tab.run("rowJson()"))
    check(f"what if: {what}: saved rows say so", saved["modified"] is True and saved.get("what_if") == tab.run("modifications()") and "MODIFIED" in saved["caption"] and "MODIFIED" in tab.run("rowTsv()"), saved)
    tab.tab("compare")
    tab.run("(compare.b = 'modified', change())")
    check(f"what if: {what}: compared with itself", tab.until("compare.key === [state.head, 'modified', version, dark].join() && compare.js.length === M && document.querySelector('#panel figure svg g')"))
    near(f"what if: {what}: divergences", tab.run("compare.js"), tab.run("Array.from({ length: M }, (_, i) => divergence(modelRow(thisData(), i, new Float32Array(N)), row(state.head, i)))"), 1e-6)
    check(f"what if: {what}: every difference is drawn", tab.until("[...document.querySelectorAll('#panel figure svg g path')].flatMap(path => path.getAttribute('d').match(/h\\d+v/g)).reduce((sum, run) => sum + +run.slice(1, -1), 0) === M * N"))
    tab.run("(compare.b = '0', change())")
    tab.until("compare.key === [state.head, '0', version, dark].join() && compare.js.length === M")
    check(f"what if: {what}: two heads are both under it, and say so", tab.until("document.querySelector('#panel .badge')?.textContent.includes('both')"))
    tab.tab("why")


def what_if(browser):
    """Every number and picture under every question, and all of them at once."""
    questions = {
        "without the scale": ("scaled: false", ["no-scale"]),
        "temperature": ("temperature: 2.5", ["temperature=2.5"]),
        "causal": ("causal: true", ["causal"]),
        "a dropped key": ("dropped: new Set([6])", ["drop=6"]),
        "without special tokens": ("specials: false", ["drop=0", "drop=5", "drop=10"]),
    }
    questions["all at once"] = (", ".join(patch for patch, _ in questions.values()), [q for _, more in questions.values() for q in more])
    with Tab(browser, page_file("what_if")) as tab:
        head = tab.run("HEADS.findIndex(h => h.layer === 0 && h.head === 1)")
        tab.page.click("#what-if-open")
        tab.run(f"change({{ head: {head}, tab: 'why' }})")
        tab.wait()
        n, d = tab.run("N"), tab.run("D")
        q, k, scale = tab.run("Array.from(thisData().q)"), tab.run("Array.from(thisData().k)"), tab.run("thisData().scale")
        products = [[math.fsum(a * b for a, b in zip(q[i * d:i * d + d], k[j * d:j * d + d])) for j in range(n)] for i in range(n)]
        tab.settle()  # thumbnails are drawn in slices
        before = tab.run("[...document.querySelectorAll('#grid canvas')].map(c => c.toDataURL()).join()")
        check("what if: nothing is marked where nothing is asked", tab.page.locator(".badge:visible").count() == 0 and not tab.page.is_visible("#reset"))
        for what, (patch, more) in questions.items():
            tab.run(f"ask({{ {patch} }})")
            tab.wait()
            asked = [word for question in more for word in ("--what-if", question)]
            lost = {int(question[5:]) for question in more if question.startswith("drop=")}
            for query, key in ((4, 2), (4, 6), (8, 6), (0, 0), (10, 5)):
                scaled = products[query] if "no-scale" in more else [scale * s for s in products[query]]
                seen = [j not in lost and ("causal" not in more or j <= query) for j in range(n)]
                plain, _ = softmax([scale * s for s in products[query]], [True] * n)
                ask_pair(tab, what, query, key, (products[query], scaled), plain, 2.5 if "temperature=2.5" in more else 1, seen)
            listed = json.loads(subprocess.run([QKV, "heads", TEXT, *asked, "--json"], check=True, capture_output=True, text=True).stdout)["heads"]
            ask_head(tab, what, look(None, TEXT, *asked, "--head", "0.1"), next(h for h in listed if (h["layer"], h["head"]) == (0, 1)), before)
            tab.page.click("#reset")
            tab.wait()
            check(f"what if: {what}: Reset", not tab.run("isModified()") and tab.page.locator(".badge:visible").count() == 0, tab.page.locator(".badge:visible").all_inner_texts())
        what_if_hands(tab)
        tab.clean("what if")
    filtered(browser)
    for theme in ("light", "dark"):
        with Tab(browser, page_file("what_if"), color_scheme=theme) as tab:
            tab.run(f"ask({{ {questions['all at once'][0]} }}), change({{ query: 4, key: 6 }})")
            for name in TABS:
                tab.tab(name)
                tab.settle()
                found = tab.violations()
                check(f"what if: axe: {name}, {theme}", not found, found)


def what_if_hands(tab):
    """What the strip of questions does under a hand, and what must not stay as it was."""
    slider = "#what-if input[type=range]"
    tab.page.focus(slider)
    tab.press(*["ArrowRight"] * 6)
    heat = tab.run("whatIf.temperature")
    check("what if: the slider", heat == 2 and tab.page.inner_text("#temperature") == "2" and tab.page.get_attribute(slider, "aria-valuetext") == "2", heat)
    check("what if: Reset is there after a change of temperature alone", tab.page.is_visible("#reset"))
    for _ in range(12):
        tab.press("ArrowLeft")
        check("what if: the temperature that is said is the one that is computed with", float(tab.page.inner_text("#temperature")) == tab.run("whatIf.temperature"), tab.run("whatIf.temperature"))
    if tab.page.is_visible("#reset"):
        tab.page.click("#reset")
    tab.run("resetWhatIf()")
    tab.wait()
    check("what if: Reset of the slider", tab.run("whatIf.temperature") == 1 and float(tab.page.input_value(slider)) == 0)
    tab.run("document.activeElement.blur()")
    tab.tab("matrix")
    tab.until("matrix.now && matrix.now.done")
    tab.run("(matrix.brush = [2, 9, 2, 9], showBrushed())")
    tab.wait()
    first = lambda: tab.page.inner_text("#panel table tbody tr:first-child td:nth-child(3)")
    for patch in ("{ temperature: 0.1 }", "{ temperature: 1 }"):
        tab.run(f"ask({patch})")
        tab.wait()
        wanted = tab.run("(() => { let p = 0; for (let i = 2; i < 9; i++) for (let j = 2; j < 9; j++) p = Math.max(p, row(state.head, i)[j]); return weightText(p) })()")
        check(f"what if: a rectangle under {patch}", first() == wanted, (first(), wanted))
    tab.run("zoom(3)")
    tab.wait()
    at = "(() => { const c = matrix.canvas, r = c.width / boxOf(c).width, s = MINIMAP / Math.max(M, N) * N, d = c.getContext('2d').getImageData((plot.left + Math.min(plot.width, N * place.z) - s - 6) * r, (plot.top + Math.min(plot.height, M * place.z) - s - 6) * r, s * r, s * r).data; return new Set(d).size })()"
    plain = tab.run(at)
    tab.run("ask({ temperature: 5 })")
    tab.wait()
    tab.until("matrix.now && matrix.now.done")
    check("what if: no thumbnail of other weights in the corner of the matrix", tab.run(at) < plain, (tab.run(at), plain))
    tab.run("(resetWhatIf(), fit())")
    tab.press("Escape")
    tab.tab("tokens")
    tab.page.hover(".tokens.large button >> nth=9")
    tab.wait()
    tab.press("s")
    check("what if: asked by a key while the mouse previews", tab.page.inner_text("#inspector .big") == tab.run("weightText(row(state.head, state.query)[state.key])") and
          "modified" in tab.page.inner_text("#inspector"))
    check("what if: the live region says so", tab.run("byId('live').textContent").startswith("modified"))
    tab.page.mouse.move(5, 5)
    tab.run("resetWhatIf()")
    tab.wait()


def filtered(browser):
    """A filter of pairs of segments hides cells; no weight changes, and none is shown as 0."""
    with Tab(browser, look(FOLDER / "pair.html", "I saw the door.", "--pair", "It was open.")) as tab:
        cut = tab.run("manifest.segment.indexOf(1)")
        tab.run(f"change({{ query: 2, key: {cut + 1}, tab: 'why' }})")
        tab.wait()
        before = facts(tab), tab.page.inner_text("#inspector .big"), tab.page.inner_text("#panel .steps")
        whole = json.loads(tab.run("rowJson()"))["weights"]
        tab.run("ask({ pairs: '00' })")
        tab.wait()
        check("filter: the pair's numbers stay", (facts(tab), tab.page.inner_text("#inspector .big"), tab.page.inner_text("#panel .steps")) == before, (facts(tab), before[0]))
        check("filter: the pair is marked", "not among the pairs that are shown" in tab.page.inner_text("#inspector"))
        check("filter: thumbnails are marked", tab.run("document.querySelector('#rail .badge')?.checkVisibility() ?? false"))
        saved = json.loads(tab.run("rowJson()"))
        check("filter: saved as JSON", saved["weights"] == whole[:cut] + [None] * (len(whole) - cut) and saved["modified"] is False, saved["weights"])
        lines = tab.run("rowTsv()").splitlines()[2:]
        check("filter: saved as TSV", [line.split("\t")[4] == "" for line in lines] == [j >= cut for j in range(len(lines))], lines)
        tab.tab("matrix")
        tab.until("matrix.now && matrix.now.done")
        drawn = tab.run("(() => { const c = matrix.now.canvas, d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return Array.from({ length: N * M }, (_, at) => d[4 * at + 3] > 0) })()")
        n = tab.run("N")
        check("filter: other cells are not drawn", drawn == [i < cut and j < cut for i in range(n) for j in range(n)])
        tab.page.click("#panel details.table summary")
        tab.wait()
        check("filter: the table of cells", "not shown" in tab.page.inner_text("#panel [role=grid]") and "\t0\t" not in tab.page.inner_text("#panel [role=grid]"))
        tab.tab("compare")
        tab.run("(compare.b = 'modified', change())")
        tab.until("compare.key === [state.head, 'modified', version, dark].join() && compare.js.length === M")
        check("filter: compared with itself nothing differs", tab.run("compare.js").count(0) == n, tab.run("compare.js"))
        tab.tab("tokens")
        check("filter: what a reader is told", tab.run(f"document.querySelectorAll('.tokens.large button')[{cut}].getAttribute('aria-label')").split("weight ")[1].startswith("not shown"))
        tab.run("ask({ temperature: 2 })")
        tab.wait()
        badge = tab.page.inner_text("#badge")
        check("filter: the badge has both", "not what the model" in badge and "A\u2192A" in badge, badge)
        tab.page.click("#reset")
        tab.wait()
        check("filter: Reset", tab.run("whatIf.pairs") == "" and json.loads(tab.run("rowJson()"))["weights"] == whole)
        tab.clean("filter")



# ---- Readers ----------------------------------------------------------------------------------------------------------

def accessible(browser):
    for theme in ("light", "dark"):
        with Tab(browser, page_file("hands"), color_scheme=theme) as tab:
            tab.run("change({ head: 1 })")
            for name in TABS:
                tab.tab(name)
                tab.settle()
                tab.run("document.querySelectorAll('#panel summary').forEach(s => s.click())")
                tab.wait()
                found = tab.violations(options="{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }")
                check(f"axe: {name}, {theme}", not found, found)
            tab.press("?")
            found = tab.violations("'#help'")
            check(f"axe: help, {theme}", not found, found)


def layouts(browser):
    for width in (320, 720, 1024, 1440):
        with Tab(browser, page_file("hands"), viewport={"width": width, "height": 800}) as tab:
            tab.run("change({ head: 1 })")
            for name in TABS:
                tab.tab(name)
                tab.settle()
                check(f"{name} at {width} px: no sideways scrolling", tab.run("document.documentElement.scrollWidth <= innerWidth"), tab.run("document.documentElement.scrollWidth"))
                small = tab.small_targets()
                check(f"{name} at {width} px: targets of 24 px", not small, small)
            tab.clean(f"{width} px")
    with Tab(browser, page_file("hands")) as tab:
        tab.page.emulate_media(media="print")
        check("print: the view and the caption, no rail", tab.page.is_visible("#panel") and not tab.page.is_visible("#rail") and tab.page.is_visible("figcaption"))
        tab.page.emulate_media(media="screen", forced_colors="active")
        tab.wait()
        check("forced colours: the head chosen is outlined", tab.run("getComputedStyle(document.querySelector('#grid [aria-pressed=true]')).outlineStyle") == "solid")
        tab.page.emulate_media(reduced_motion="reduce")
        check("reduced motion", tab.run("getComputedStyle(document.querySelector('button')).transitionDuration") == "0s")
        check("right to left is isolated", tab.run("getComputedStyle(document.querySelector('bdi')).unicodeBidi") == "isolate")
    with Tab(browser, str(page_file("hands")) + "#1.2/7/9/why") as tab:
        check("a link names the pair", (tab.run("headName(state.head)"), tab.state("query"), tab.state("key"), tab.state("tab")) == ("layer 1, head 2", 7, 9, "why"))
    with Tab(browser, str(page_file("hands")) + "#9.9/99999/-1/nowhere") as tab:
        check("a wrong link does no harm", tab.state("tab") == "start" and tab.state("query") == 16)
        tab.clean("link")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{page_file('hands')}")
    check("without scripts there is a table", page.locator("noscript table tr").count() == 48)
    context.close()


# ---- Sizes ------------------------------------------------------------------------------------------------------------

def sizes(browser):
    # As large as at commit c1e143d3, with a third of the scripts less.
    for name, n, limit in [("eleven", 11, 1345360), ("short", 128, 6780502), ("long", 512, 25995111)]:
        file = page_file(name)
        check(f"{n} tokens, 144 heads: {file.stat().st_size / 1e6:.2f} MB", file.stat().st_size <= limit)
        with Tab(browser, file) as tab:
            nodes = tab.run("document.querySelectorAll('*').length")
            check(f"{n} tokens: {nodes} elements", nodes < 5000)
            print(f"{n} tokens: {file.stat().st_size / 1e6:.2f} MB, {nodes} elements")
            tab.clean(name)
    text = (FOLDER / "short.html").read_text()
    code = sum(len(text.split(f"<{tag}>")[1].split(f"</{tag}>")[0].encode()) for tag in ("style", "script"))
    check(f"code and style: {code} bytes", code <= 199 * 1024)


def long_head(browser):
    n, dim = 32768, 64
    file = make("book", n, dim, 1, 1)
    check(f"32768 tokens: {file.stat().st_size / 1e6:.2f} MB", file.stat().st_size <= 12249343)
    with Tab(browser, file, timed=True) as tab:
        opened = tab.cpu_ms()
        check(f"32768 tokens: opens in {opened:.0f} ms of {tab.known_ms:.0f}", opened < 60 * tab.known_ms)
        nodes = tab.run("document.querySelectorAll('*').length")
        check(f"32768 tokens: {nodes} elements", nodes < 5000)
        q, k, i = npy(FOLDER / "book.q.npy"), npy(FOLDER / "book.k.npy"), 20000
        mine = q[i * dim:(i + 1) * dim]
        scores = [math.fsum(a * b for a, b in zip(mine, k[j * dim:(j + 1) * dim])) * 0.125 for j in range(n)]
        total = math.fsum(math.exp(s) for s in scores)
        check("32768 tokens: f16", tab.run("HEADS[0].type") == "f16")
        near("32768 tokens: a row", tab.run(f"Array.from(row(0, {i}))"), [math.exp(s) / total for s in scores], tab.run("HEADS[0].error") + 1e-6)
        tab.run("change({ query: 20000 })")
        ms = tab.cost_ms(lambda: tab.run("(() => { for (let i = 0; i < 10; i++) row(0, 3000 * i + 1) })()")) / 10
        tab.tab("matrix")
        check("32768 tokens: the matrix is drawn", tab.until("matrix.now && matrix.now.done"))
        for _ in range(12):
            tab.press("+")
        check("32768 tokens: zoomed to cells", tab.until("matrix.now && matrix.now.done") and tab.run("place.z") > 1)
        for name in TABS:
            tab.tab(name)
        tab.until("!!numbers.sums || state.tab !== 'numbers'")
        debugger = tab.context.new_cdp_session(tab.page)
        debugger.send("HeapProfiler.collectGarbage")  # what is held, not what is yet to be collected
        heap = tab.run("performance.memory.usedJSHeapSize")
        check(f"32768 tokens: {heap / 1e6:.0f} MB of memory", heap < 4 * file.stat().st_size)
        print(f"32768 tokens x 1 head: {file.stat().st_size / 1e6:.2f} MB, opened in {opened:.0f} ms, exact row {ms:.1f} ms, heap {heap / 1e6:.0f} MB")
        tab.clean("book")


def look_page(browser):
    file = FOLDER / "look.html"
    subprocess.run([QKV, "look", "I was watching the [MASK] when it opened.", "-o", file, "--quiet"], check=True)
    with Tab(browser, file) as tab:
        weights = json.loads(subprocess.run([QKV, "look", "I was watching the [MASK] when it opened.", "--head", tab.run("`${HEADS[state.head].layer}.${HEADS[state.head].head}`"),
                                             "--json"], check=True, capture_output=True, text=True).stdout)["weights"]
        near("weights are those of look --json", rows(tab), [p or 0 for line in weights for p in line], 1e-6)
        place = tab.run("placeName(state.head)")
        listed = json.loads(subprocess.run([QKV, "heads", "I was watching the [MASK] when it opened.", "--json"], check=True, capture_output=True, text=True).stdout)
        wanted = next(h for h in listed["heads"] if f"{h['layer']}.{h['head']}" == place)
        shown = tab.run("thisHead().stats")
        for name, value in shown.items():
            good = value is None if wanted[name] is None else abs(value - wanted[name]) <= 1e-7 * max(1, abs(value))
            check(f"the {name} of qkv heads", good, (value, wanted[name]))
        check("the key that receives most", tab.run("thisHead().received_key") == wanted["received_key"])
        tab.tab("numbers")
        check("all of them in Numbers", tab.page.locator("#panel table >> nth=0 >> thead th").count() == 2 + tab.run("known().length") and
              tab.run("known().length") == sum(any(h[name] is not None for h in listed["heads"]) for name in shown), tab.run("known()"))
        tab.tab("tokens")
        check("[MASK] is selected", tab.run("tokenText(state.query)") == "[MASK]")
        tab.clean("look")


def modified(browser):
    """What if, asked of the model: keys that are not seen, another scale, a badge that stays."""
    text = "I was watching the [MASK] when it opened."
    asked = ["--what-if", "causal", "--what-if", "drop=when", "--what-if", "temperature=2"]
    with Tab(browser, look(FOLDER / "modified.html", text, *asked)) as tab:
        place = tab.run("placeName(state.head)")
        wanted = [p or 0 for line in look(None, text, *asked, "--head", place)["weights"] for p in line]  # null: not seen
        near("modified: weights", rows(tab), wanted, 1e-6)
        n = tab.run("N")
        near("modified: a column", tab.run("Array.from(column(state.head, 3))"), wanted[3::n], 1e-6)
        check("modified: the dropped key", tab.run("column(state.head, 6).every(p => p === 0)"))
        badge = "modified: not what the model computed (causal, without when, temperature 2)"
        check("modified: the badge", sorted(tab.page.inner_text("#badge")) == sorted(badge), tab.page.inner_text("#badge"))
        check("modified: the caption", "MODIFIED" in tab.run("caption()"))
        check("modified: saved as JSON", json.loads(tab.run("rowJson()"))["modified"] is True)
        tab.run("ask({ dropped: new Set([0]) })")
        row = tab.run("Array.from(row(state.head, 8))")
        check("modified: What if on top", row[0] == 0 and row[6] == 0 and abs(sum(row) - 1) < 1e-5, row)
        tab.run("resetWhatIf()")
        tab.wait()
        check("modified: the badge stays", "not what the model" in tab.page.inner_text("#badge"))
        tab.clean("modified")


def decoders(browser):
    """Pages of the demonstrations in models/: causal heads of GPT-2, cross-attention of BART, and its two texts."""
    models = pathlib.Path(__file__).resolve().parent.parent.parent / "models"
    causal = lambda tab: tab.page.locator("#what-if label", has_text="causal").count()
    for name, asked in (("writer", []), ("translator", ["--decoder"]), ("translator", ["--cross"])):
        crosses, what = "--cross" in asked, " ".join([name, *asked])
        text = ["a red fox followed two cats", "--model", models / name, *asked]
        for dark in (False, True):
            with Tab(browser, look(FOLDER / "decoder.html", *text), color_scheme="dark" if dark else "light") as tab:
                place = tab.run("placeName(state.head)")
                answer = look(None, *text, "--head", place)
                near(f"{what}: weights", rows(tab), [p or 0 for line in answer["weights"] for p in line], 2e-6)
                check(f"{what}: title", tab.page.title().startswith("a red fox followed two cats"), tab.page.title())
                check(f"{what}: spaces are signs", any(token[0] == "\u2423" for token in tab.run("manifest.tokens")), tab.run("manifest.tokens"))
                check(f"{what}: no signs of vocabularies", not any("\u0120" in token for token in tab.run("[...manifest.tokens, ...asked.tokens]")))
                check(f"{what}: no question whether it is causal", causal(tab) == 0)
                check(f"{what}: distances", ("distance" in tab.page.inner_text("#inspector")) != crosses)
                tab.tab("numbers")
                check(f"{what}: sums", tab.until("!!numbers.sums && document.querySelectorAll('#panel figure').length > 3"))
                panel = tab.page.inner_text("#panel")
                check(f"{what}: weight by distance", ("Weight by distance" in panel) != crosses)
                check(f"{what}: columns of distances", any(key in tab.run("known()") for key in ("mean_distance", "mass_previous")) != crosses)
                for tab_name in TABS:
                    tab.tab(tab_name)
                tab.clean(what)


def windows(browser):
    """Several texts in one page."""
    words = ("the man opened the door . she saw it when he came . " * 6).split()
    text = FOLDER / "windows.txt"
    text.write_text(" ".join(words))
    tokens = look(None, " ".join(words[:18]))["tokens"]
    with Tab(browser, look(FOLDER / "windows.html", "--file", text, "--slide", "20,10")) as tab:
        check("windows: the first text", tab.run("manifest.tokens") == tokens, tab.run("manifest.tokens"))
        shown = tab.page.locator("#grid button").count()
        check("windows: heads of one text", shown == tab.run("HEADS.filter(h => h.run === 0).length") and shown < tab.run("HEADS.length"))
        last = tab.run("manifest.runs.length") - 1
        tab.run("change({ tab: 'tokens', words: true })")
        tab.wait()
        tab.page.select_option("#rail-tools select >> nth=0", str(last))
        tab.wait()
        other = tab.run("manifest.tokens")
        check("windows: the last text", other != tokens and tab.run("thisHead().run") == last)
        place = tab.run("`${thisHead().layer}.${thisHead().head}`")
        joined = " ".join(words[-16:])
        answer = look(None, joined, "--head", place)
        check("windows: its tokens", answer["tokens"] == other, answer["tokens"])
        near("windows: its weights", rows(tab), [p or 0 for line in answer["weights"] for p in line], 2e-6)
        check("windows: its text is shown", tab.page.locator(".tokens.large bdi").all_inner_texts() == tab.run("units().map(unitText)"))
        tab.press("]", "}", "[")
        check("windows: layers and heads stay in the text", tab.run("thisHead().run") == last)
        address = tab.run("(writeAddress(), location.hash)")
        check("windows: the address", address.split("/")[0].count(".") == 2, address)
        tab.run("change({ head: 0 })")
        tab.wait()
        check("windows: and back", tab.run("manifest.tokens") == tokens)
        # the address follows the selection a little later
        tab.until("location.hash === `#${placeName(state.head)}/${state.query}/${state.key}/${state.tab}`")
        tab.run(f"location.hash = '{address}'")
        tab.wait()
        check("windows: a link leads to a text", tab.until(f"thisHead().run === {last}"))
        for name in TABS:
            tab.tab(name)
        violations = tab.violations()
        check("windows: axe", not violations, violations)
        tab.clean("windows")


def dumped(browser):
    """Queries and keys from arrays, long enough for what is stored of all rows."""
    n = 2500
    page_file("dump")
    tokens = FOLDER / "dump.txt"
    tokens.write_text("".join(f"w{j}\n" for j in range(n)))
    part = lambda what: FOLDER / f"dump.{what}.npy"
    file = look(FOLDER / "dumped.html", "--q", part("q"), "--k", part("k"), "--causal", "top-left", "--tokens", tokens)
    with Tab(browser, file) as tab:
        tab.run("""() => { window.all = new Float64Array(N); window.reach = new Float64Array(N);
            const side = HEADS[0].peak_side, tile = Math.ceil(N / side); window.tileTops = new Float32Array(side * side);
            for (let i = 0; i < N; i++) row(0, i).forEach((p, j) => { all[j] += p; reach[i] += p * Math.abs(i - j);
                const at = Math.floor(i / tile) * side + Math.floor(j / tile); window.tileTops[at] = Math.max(window.tileTops[at], p); }); }""")
        bound = tab.run("HEADS[0].error") * n + 1e-3
        near("dumped: received", tab.run("Array.from(allReceived())"), tab.run("Array.from(all)"), bound)
        tab.run("window.stored = bytesOf(HEADS[0].peaks)")
        off = tab.run("Math.max(...window.tileTops.map((p, c) => p < 2 ** -22 ? 0 : Math.abs(Math.log2(p) - Math.log2(levels[stored[c]] || 2 ** -24))))")
        check(f"dumped: the largest weights of tiles, off by 2^{off:.3f}", off < 0.1)
        sinks = tab.run("HEADS[0].sinks")
        check("dumped: sinks", sinks == sorted(sorted(range(n), key=lambda j, r=tab.run("Array.from(allReceived())"): -r[j])[:8]), sinks)
        far = tab.run("HEADS[0].far")
        check("dumped: far-reaching queries", len(far) == 64 and
              min(tab.run(f"{far}.map(i => reach[i])")) >= sorted(tab.run("Array.from(reach)"))[-80], far)
        tab.run("change({ query: 1, key: 1 })")
        tab.wait()
        for button, name, places in [("Next sink", "key", sinks), ("Next far-reaching query", "query", far)]:
            for _ in range(len(places) + 1):
                before = tab.state(name)
                tab.page.click(f"text={button}")
                tab.wait()
                check(f"dumped: {button}", tab.state(name) == next((i for i in places if i > before), places[0]))
        tab.tab("matrix")
        tab.run("fit()")
        check("dumped: drawn from tiles", tab.until("matrix.now && matrix.now.done") and "the largest weight of" in tab.page.inner_text("figcaption"))
        tab.run("ask({ temperature: 2 })")
        tab.wait()
        check("dumped: not when modified", "A line of pixels is one query" in tab.page.inner_text("figcaption"))
        check("dumped: jumps to places of before are marked", tab.page.is_visible(".strip-head .badge"))
        tab.tab("tokens")
        tab.run("change({ to: true })")
        tab.wait()
        label = tab.page.get_attribute(".tokens.large button >> nth=3", "aria-label")
        check("dumped: weights that are not computed are not 0", "not computed" in label and "not computed" in tab.page.inner_text("#strip-note"), label)
        tab.run("change({ to: false })")
        tab.run("resetWhatIf()")
        tab.wait()
        check("dumped: jumps are not marked any more", not tab.page.is_visible(".strip-head .badge"))
        tab.tab("numbers")
        check("dumped: plots", tab.until("!!numbers.sums"))
        check("dumped: tokens", tab.run("tokenText(2499)") == "w2499")
        tab.clean("dumped")


def far_maps(browser):
    """A map of more points than the exact method takes, where it is asked for; by inner products."""
    make("far", 2100, 16, 1, 1)
    far = ["--q", FOLDER / "far.q.npy", "--k", FOLDER / "far.k.npy"]
    for metric, arrays, low, high, words in (("cosine", far, 2000, 3100, ("t-SNE, cosine", "Barnes-Hut")), ("inner", cross_arrays(), 74, 74, ("t-SNE, inner product",))):
        with Tab(browser, look(FOLDER / "far_map.html", *arrays, "--map", metric)) as tab:
            tab.tab("map")
            shown = tab.page.locator("#panel svg > [role=button]").count()
            check(f"far map: {metric}: {shown} points", low <= shown <= high)
            said = tab.page.inner_text("#panel figcaption")
            check(f"far map: {metric} is said", all(word in said for word in words), said)
            check(f"far map: {metric}: elements", tab.run("document.querySelectorAll('*').length") < 5000)
            tab.clean("far map")


def without_scripts(browser):
    for name in ("small", "half", "odd"):
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(f"file://{page_file(name)}")
        box = page.locator("svg[role=img]").bounding_box()
        check(f"without scripts: {name}: the drawing", box and box["width"] > 200 and box["height"] > 200, box)
        check(f"without scripts: {name}: the table", page.locator("table tr").count() >= 40)
        context.close()


PARTS = {part.__name__: part for part in (look_page, values, scores, cross, hostile, keys, controls, matrix_hands, the_map, files, what_if, accessible,
                                          layouts, sizes, long_head, modified, decoders, windows, dumped, far_maps, without_scripts)}
PARTS |= {part.__name__: functools.partial(part, sys.modules[__name__]) for part in views.PARTS + served.PARTS + tables.PARTS + images.PARTS}
# By subject, each a step of its own: tools/deep/page-GROUP.sh
GROUPS = {
    "numbers": ["look_page", "values", "scores", "cross", "modified", "decoders", "windows", "dumped", "far_maps", "sliding", "sample", "findings",
                "whole_model", "lens", "against", "many_columns", "without_scripts", "hostile", "served"],
    "hands": ["keys", "controls", "matrix_hands", "the_map", "files", "what_if", "alike", "frame", "by_keyboard"],
    "views": ["all_views", "image", "two_images", "canvas", "layouts", "captions", "compared", "narrow", "on_paper", "sizes", "long_head", "speed"],
    "readers": ["accessible", "contrasts"],
}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    chosen = [part for name in sys.argv[4:] or PARTS for part in GROUPS.get(name, [name])]
    return harness.run({name: PARTS[name] for name in chosen}, "--enable-precise-memory-info")


sys.exit(main())
