"""
Every view at the widths of a phone, a laptop, a screen and a wide one, light and dark, with large letters, printed, and by
keyboard alone: what fills its place, what lies over what, what can be read, what opens and closes. Each function gets
browser.py as `t`.
"""
import json
import math
import re
import subprocess

SIZES = [(390, 844), (1280, 800), (1920, 1080)]
WIDE = (3840, 2160)
CONTROLS = "#main button, #main select, #main input, #main summary, .bar button, .bar summary, .strip-head button, .strip-head select, .strip-head input"


def text_boxes(tab):
    """Of all text in drawings that is seen: what it says, and its box. Names of the matrix are in their own turned frame."""
    boxes = tab.run("""[...document.querySelectorAll('#panel svg text')].filter(e => e.checkVisibility() && e.textContent.trim())
        .map(e => [e.textContent, e.getBoundingClientRect(), e.closest('svg')]).map(([text, b, svg]) => [text, b.left, b.top, b.right, b.bottom, [...document.querySelectorAll('svg')].indexOf(svg)])""")
    return boxes


def overlaps(boxes, slack=1.5):
    found = []
    for i, (a, *one) in enumerate(boxes):
        for b, *other in boxes[i + 1:]:
            if one[4:] == other[4:] and min(one[2], other[2]) - max(one[0], other[0]) > slack and min(one[3], other[3]) - max(one[1], other[1]) > slack:
                found.append((a, b))
    return found


def names_overlap(tab):
    """Those of the matrix: of two parallel lines of text the distance must be at least the height of letters."""
    labels = tab.run("matrix.labels.map(l => [l.isKey, l.at * (l.isKey ? sin(TURN) : 1), l.size * em(), l.text, l.width, l.isKey ? plot.names : plot.labels])")
    found = [f"{text} is {width} wide of {room}" for _, _, _, text, width, room in labels if width > room * 1.12 + 2]
    for is_key in (True, False):
        side = sorted((at, size, text) for key, at, size, text, *_ in labels if key is is_key)
        found += [f"{a[2]} and {b[2]}" for a, b in zip(side, side[1:]) if b[0] - a[0] < 0.99 * (a[1] + b[1]) / 2]
    return found


def names_on_points(tab, selected):
    """Names of the map that touch a point: those of selected points may where there is no room beside them."""
    names = tab.run("""[...document.querySelectorAll('#panel .map svg > text')].filter(e => +e.getAttribute('font-weight') < 600 || %s)
        .map(e => [e.textContent, e.getBoundingClientRect()]).map(([text, b]) => [text, b.left, b.top, b.right, b.bottom])""" % json.dumps(selected))
    points = tab.run("""[...document.querySelectorAll('#panel .map [data-place]')].map(e => [e.getAttribute('aria-label'), e.getBoundingClientRect()])
        .map(([text, b]) => [text, b.left, b.top, b.right, b.bottom])""")
    return [(a, b) for a, *one in names for b, *other in points
            if min(one[2], other[2]) - max(one[0], other[0]) > 0.5 and min(one[3], other[3]) - max(one[1], other[1]) > 0.5]


def parted(tab):
    """Numbers of sentences in another line than the bracket before them or the stop behind them."""
    return tab.run("""[...document.querySelectorAll('.findings p button')].flatMap(b => {
        const walk = document.createTreeWalker(b.closest('p'), NodeFilter.SHOW_TEXT), texts = [];
        while (walk.nextNode()) texts.push(walk.currentNode);
        const box = (node, from, to) => { const r = document.createRange(); r.setStart(node, from), r.setEnd(node, to); return r.getBoundingClientRect() };
        const first = texts.findIndex(n => b.contains(n)), own = b.getBoundingClientRect(), found = [];
        const before = texts[first - 1], after = texts[texts.findLastIndex(n => b.contains(n)) + 1];
        const apart = r => r.bottom <= own.top || r.top >= own.bottom;
        if (before && /\\S$/.test(before.data) && apart(box(before, before.length - 1, before.length))) found.push(before.data.slice(-8) + b.textContent);
        if (after && /^\\S/.test(after.data) && apart(box(after, 0, 1))) found.push(b.textContent + after.data.slice(0, 8));
        return found; })""")


def controls_overlap(tab):
    boxes = tab.run("""[...document.querySelectorAll(%s)].filter(e => e.checkVisibility() && !e.closest('.model, .tokens, .scroll, .found, #tabs'))
        .map(e => [e.id || e.textContent.slice(0, 20) || e.type, e.getBoundingClientRect()]).map(([name, b]) => [name, b.left, b.top, b.right, b.bottom])"""
                    % json.dumps(CONTROLS))
    return overlaps(boxes, 2)


def labels_under_controls(tab):
    """The words of a label end before its control begins, where both are on one line."""
    return tab.run("""[...document.querySelectorAll('label')].filter(e => e.checkVisibility() && e.firstChild.nodeType === 3).flatMap(label => {
        const words = document.createRange(), control = label.querySelector('select, input');
        words.selectNodeContents(label.firstChild);
        const [a, b] = [words.getBoundingClientRect(), control.getBoundingClientRect()];
        return a.bottom > b.top && b.bottom > a.top && a.left < b.left && a.right > b.left + 1 ? [label.firstChild.data] : [];
    })""")


def check_view(t, tab, what, name):
    tab.settle()
    t.check(f"{what}: {name}: no sideways scrolling", tab.run("document.documentElement.scrollWidth <= innerWidth"), tab.run("document.documentElement.scrollWidth"))
    lies = overlaps(text_boxes(tab))
    t.check(f"{what}: {name}: no text over text", not lies, lies[:4])
    lies = controls_overlap(tab)
    t.check(f"{what}: {name}: no control over a control", not lies, lies[:4])
    lies = labels_under_controls(tab)
    t.check(f"{what}: {name}: no label under its control", not lies, lies[:4])
    if name == "matrix":
        lies = names_overlap(tab)
        t.check(f"{what}: matrix: no name over a name", not lies, lies[:4])
    if name == "map":
        lies = names_on_points(tab, "effect" in what)
        t.check(f"{what}: map: no name over a point", not lies, lies[:4])
    if name == "start":
        lies = parted(tab)
        t.check(f"{what}: start: numbers in the line of their brackets", not lies, lies[:4])
    small = tab.small_targets()
    t.check(f"{what}: {name}: targets of 24 px", not small, small[:4])


def all_views(t, browser):
    """Every view at every width, light and dark, and with letters twice as large."""
    for file, hash_ in (("hands", "#1.1/10/20/"), ("effect", "#3.0/7/5/"), ("half", "#0.1/100/90/")):
        for size in SIZES + [WIDE]:
            for theme in ("light", "dark"):
                if theme == "dark" and file != "effect":
                    continue
                with t.Tab(browser, f"{t.page_file(file)}{hash_}tokens", viewport={"width": size[0], "height": size[1]}, color_scheme=theme) as tab:
                    for name in t.TABS:
                        tab.run(f"change({{ tab: '{name}' }})")
                        check_view(t, tab, f"{file} {size[0]} {theme}", name)
                    tab.clean(f"{file} {size[0]} {theme}")
    for size in SIZES:
        with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/tokens", viewport={"width": size[0], "height": size[1]}) as tab:
            tab.run("document.documentElement.style.fontSize = '187.5%'")
            for name in t.TABS:
                tab.run(f"change({{ tab: '{name}' }})")
                check_view(t, tab, f"200 % text {size[0]}", name)
            tab.clean(f"200 % text {size[0]}")


def contrasts(t, browser):
    for size in SIZES:
        for theme in ("light", "dark"):
            with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/tokens", viewport={"width": size[0], "height": size[1]}, color_scheme=theme) as tab:
                tab.run("setOpen('what-if', true), ask({ temperature: 2 }), change({ others: [1, 2] })")
                for name in t.TABS:
                    tab.run(f"change({{ tab: '{name}' }})")
                    tab.settle()
                    found = tab.violations(options="{ runOnly: ['color-contrast'] }")
                    t.check(f"contrast {size[0]} {theme}: {name}", not found, found[:3])
                ratio = """(a, b) => { const light = rgb => { const [r, g, b] = rgb.map(c => c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05 }, x = light(a), y = light(b); return Math.max(x, y) / Math.min(x, y) }"""
                numbers = "text => text.startsWith('#') ? [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16)) : text.match(/[\\d.]+/g).slice(0, 3).map(Number)"
                for ink in ("ink", "faint", "strong", "accent"):
                    got = tab.run(f"({ratio})(({numbers})(css('{ink}')), ({numbers})(css('page')))")
                    t.check(f"contrast of {ink} in drawings, {theme}", got >= 4.5, got)
                t.check(f"contrast of lines of heads, {theme}", tab.run(f"overlayColors[+dark].every(c => ({ratio})(({numbers})(c), ({numbers})(css('page'))) >= 3)"))
                t.check(f"contrast of numbers in cells, {theme}", tab.run(f"ramps[+dark].concat(diverging()).every(rgb => ({ratio})(rgb, ({numbers})(inkOn(rgb))) >= 4.5)"))


# ---- The canvas ---------------------------------------------------------------------------------------------------------

FILLED = "Math.max(N * place.z / plot.width, M * place.z / plot.height) > 0.985 || place.z === LARGEST"


def canvas(t, browser):
    """Matrix and map fill their place, at once, after a change of the window, of the panels, and by a link."""
    for file, hash_ in (("effect", "#3.0/7/5/"), ("long", "#3.2/100/90/"), ("cross", "#0.0/3/4/")):
        with t.Tab(browser, f"{t.page_file(file)}{hash_}matrix", viewport={"width": 1280, "height": 800}) as tab:
            shares = []
            for size in SIZES[1:] + [WIDE, (1024, 700), (1280, 800)]:
                tab.page.set_viewport_size({"width": size[0], "height": size[1]})
                tab.until("matrix.now && matrix.now.done")
                tab.settle()
                t.check(f"canvas: {file} fills {size[0]}", tab.run(FILLED) and tab.run("place.fitted"), tab.run("[N * place.z / plot.width, M * place.z / plot.height]"))
                if size[0] > 1100:
                    share = tab.run("boxOf(matrix.stage).height / byId('panel').clientHeight")
                    shares.append(share)
                    t.check(f"canvas: {file}: the stage has most of {size[0]}", share > 0.7, share)
            z = tab.run("place.z")
            tab.page.click("#fold-side")
            tab.page.click("#fold-rail")
            tab.settle()
            t.check(f"canvas: {file}: panels fold", not tab.page.is_visible("#rail") and not tab.page.is_visible("#inspector") and tab.page.get_attribute("#fold-rail", "aria-expanded") == "false")
            t.check(f"canvas: {file}: and it refits", tab.run(FILLED) and tab.run("place.z") >= z)
            tab.page.click("#fold-side")
            tab.page.click("#fold-rail")
            tab.settle()
            tab.press("+", "+")
            t.check(f"canvas: {file}: zoomed, a part is seen", tab.run("isPart()") and not tab.run("place.fitted"))
            tab.page.set_viewport_size({"width": 1400, "height": 900})
            tab.settle()
            t.check(f"canvas: {file}: what is zoomed stays so", tab.run("isPart()"))
            tab.run("location.hash = '%s/5/2/matrix'" % hash_.split("/")[0])
            tab.until("state.key === 2")
            tab.settle()
            t.check(f"canvas: {file}: a link opens all of it", tab.run(FILLED) and not tab.run("isPart()"))
            tab.clean(f"canvas {file}")
    with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/map", viewport={"width": 1280, "height": 800}) as tab:
        for size in SIZES[1:] + [WIDE]:
            tab.page.set_viewport_size({"width": size[0], "height": size[1]})
            tab.settle()
            spans = tab.run("""(() => { const b = [...document.querySelectorAll('#panel svg > [role=button]')].map(e => e.getBoundingClientRect()), s = boxOf(plane.stage);
                return [(Math.max(...b.map(x => x.right)) - Math.min(...b.map(x => x.left))) / s.width, (Math.max(...b.map(x => x.bottom)) - Math.min(...b.map(x => x.top))) / s.height] })()""")
            t.check(f"canvas: the map fills {size[0]}", max(spans) > 0.85, spans)
        t.check("canvas: no small map where all is seen", tab.page.locator("#panel svg g[aria-hidden]").count() == 0)
        tab.press("+")
        t.check("canvas: one where not", tab.page.locator("#panel svg g[aria-hidden]").count() == 1)
        tab.clean("canvas map")


def pinch(tab, selector, by):
    """Two fingers, from 100 to 100 * by pixels from each other."""
    box = tab.page.locator(selector).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = tab.context.new_cdp_session(tab.page)
    points = lambda apart: [{"x": x - apart / 2, "y": y, "id": 0}, {"x": x + apart / 2, "y": y, "id": 1}]
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points(100)})
    for step in range(1, 6):
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": points(100 * (1 + (by - 1) * step / 5))})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    tab.wait()


def alike(t, browser):
    """The same hands do the same in the matrix and on the map."""
    for name, stage, zoom, across, fitted in (("matrix", ".stage canvas", "place.z / window.z0", "place.x", "place.fitted"), ("map", ".stage.map", "plane.z", "plane.x", "plane.z === 1")):
        with t.Tab(browser, f"{t.page_file('hands')}#1.1/10/20/{name}", has_touch=True) as tab:
            tab.settle()
            tab.run("window.z0 = fitZoom()")
            box = tab.page.locator(stage).bounding_box()
            middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            tab.page.mouse.move(*middle)
            tab.page.mouse.wheel(0, -400)
            t.check(f"alike: {name}: the wheel", tab.until(f"{zoom} > 2") and tab.run(zoom) < 3, tab.run(zoom))
            x = tab.run(across)
            tab.page.mouse.down()
            tab.page.mouse.move(middle[0] - 60, middle[1] - 30, steps=4)
            tab.page.mouse.up()
            tab.wait()
            t.check(f"alike: {name}: a drag moves", tab.run(across) > x)
            t.check(f"alike: {name}: and selects nothing", tab.run("[state.query, state.key]") == [10, 20])
            x = tab.run(across)
            tab.press("Shift+ArrowRight")
            t.check(f"alike: {name}: Shift and an arrow move", tab.run(across) > x and tab.run("[state.query, state.key]") == [10, 20])
            before = tab.run(zoom)
            tab.press("+")
            t.check(f"alike: {name}: +", abs(tab.run(zoom) / before - 1.5) < 0.01)
            tab.press("-")
            t.check(f"alike: {name}: −", abs(tab.run(zoom) / before - 1) < 0.01)
            tab.press("0")
            t.check(f"alike: {name}: 0", tab.run(fitted))
            pinch(tab, stage, 2.5)
            t.check(f"alike: {name}: two fingers", abs(tab.run(zoom) - 2.5) < 0.2, tab.run(zoom))
            tab.page.mouse.dblclick(*middle)
            tab.wait()
            t.check(f"alike: {name}: a double click fits", tab.run(fitted))
            tab.clean(f"alike {name}")


def frame(t, browser):
    """The line of text, controls that stay, what Esc closes, and one pair at a time."""
    with t.Tab(browser, f"{t.page_file('long')}#3.2/100/90/numbers", viewport={"width": 1280, "height": 800}) as tab:
        tab.settle()
        tops = tab.run("[...new Set([...document.querySelectorAll('#strip .tokens button')].map(b => b.offsetTop))].length")
        strip = tab.run("(() => { const s = document.querySelector('#strip .tokens'), b = boxOf(s.querySelector('.query')), o = boxOf(s); return [s.scrollWidth > s.clientWidth, b.left >= o.left && b.right <= o.right, boxOf(byId('strip')).height] })()")
        t.check("frame: the text is one line that scrolls", tops == 1 and strip[0] and strip[1] and strip[2] < 110, (tops, strip))
        tab.run("byId('panel').scrollTop = 1e6")
        t.check("frame: tabs stay", tab.run("boxOf(byId('tabs')).top >= 0 && boxOf(byId('tabs')).bottom < 120"))
        tab.run("change({ tab: 'tokens' })")
        tab.settle()
        tab.run("byId('panel').scrollTop = 1e6")
        tab.wait()
        t.check("frame: controls stay", tab.run("boxOf(document.querySelector('#panel .tools')).top >= boxOf(byId('panel')).top - 1"))
        tab.clean("frame")
    with t.Tab(browser, f"{t.page_file('hands')}#1.1/10/20/tokens", viewport={"width": 390, "height": 844}) as tab:
        tab.settle()
        grid = tab.run("(() => { const g = byId('grid'), b = [...g.children].map(boxOf); return [new Set(b.map(x => Math.round(x.top))).size, boxOf(byId('rail')).bottom < boxOf(byId('panel')).top, boxOf(byId('rail')).height] })()")
        t.check("frame: heads are a strip at the top of a phone", grid[0] == 1 and grid[1] and grid[2] < 150, grid)
        tab.run("scrollTo(0, boxOf(byId('main')).bottom - 300)")
        tab.wait()
        t.check("frame: tabs stay on a phone", tab.run("boxOf(byId('tabs')).top >= -1 && boxOf(byId('tabs')).bottom < 80"))
    with t.Tab(browser, f"{t.page_file('hands')}#1.1/10/20/matrix") as tab:
        tab.settle()
        tab.page.click("#save summary")
        tab.press("Escape")
        t.check("Esc closes Save", tab.run("!byId('save').open"))
        tab.page.click("#what-if-open")
        t.check("frame: the drawer opens", tab.page.is_visible("#what-if"))
        tab.run("(matrix.brush = [2, 9, 2, 9], showBrushed())")
        tab.page.click("#inspector .def >> nth=0")
        t.check("frame: a definition", tab.page.is_visible("#tip") and "share of what" in tab.page.inner_text("#tip"))
        seen = lambda: (tab.page.is_visible("#tip"), tab.page.is_visible(".found"), tab.page.is_visible("#what-if"))
        states = [seen()]
        for _ in range(3):
            tab.press("Escape")
            states.append(seen())
        t.check("Esc closes one after another", states == [(True, True, True), (False, True, True), (False, False, True), (False, False, False)], states)
        tab.press("?", "Escape")
        t.check("Esc closes help", not tab.page.is_visible("#help"))
        tab.run("ask({ temperature: 2 })")
        tab.wait()
        words = tab.page.inner_text("#before-after")
        before, after = tab.run("[row(state.head, 10, true, true)[20], row(state.head, 10)[20]].map(weightText)")
        t.check("What if says before and after", words.endswith(f"{before} → {after}") and not tab.page.is_visible("#what-if"), words)
        tab.page.click("#reset")
        tab.wait()
        tab.page.hover("#strip .tokens button >> nth=12")
        tab.wait()
        t.check("the mouse on the line below another view previews nothing", tab.state("hover") is None)
        tab.run("change({ tab: 'tokens' })")
        tab.wait()
        tab.page.hover(".tokens.large button >> nth=15")
        tab.wait()
        key = tab.run("largest(row(state.head, 15), 1)[0]")
        shown = tab.run("""[[...document.querySelectorAll('.tokens.large button')].flatMap((b, i) => b.classList.contains('query') ? [i] : []),
            [...document.querySelectorAll('.tokens.large button')].flatMap((b, i) => b.classList.contains('key') ? [i] : []), document.querySelector('#inspector .big').textContent,
            [...document.querySelectorAll('#panel svg [aria-pressed=true]')].map(e => e.dataset.place)]""")
        t.check("under the mouse there is one pair", shown == [[15], [key], tab.run(f"weightText(row(state.head, 15)[{key}])"), ["0.15", f"1.{key}"]], (key, shown))
        tab.page.mouse.move(5, 5)
        tab.wait()
        t.check("and then the selected one again", tab.page.inner_text("#inspector .big") == tab.run("weightText(row(state.head, 10)[20])"))
        tab.clean("frame hands")


# ---- All heads, and what is found ---------------------------------------------------------------------------------------

def whole_model(t, browser):
    with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/model") as tab:
        tab.settle()
        tiles = tab.page.locator(".model button")
        t.check("model: a tile for each head", tiles.count() == tab.run("HEADS.length") == 16)
        places = tab.run("modelView.tiles.map(({head, x, y}) => [HEADS[head].layer, HEADS[head].head, x, y])")
        t.check("model: layers down, heads across", all((a[0] < b[0]) == (a[3] < b[3]) and (a[1] < b[1]) == (a[2] < b[2]) for a in places for b in places))
        t.check("model: the scale is said", tab.page.text_content("#panel .legend") == "0" + tab.run("String(topOfAll())") and tab.run("HEADS.every((_, i) => topOfAll() >= topOf(i, true))"))
        # the tiles are pictures in a drawing: onto a canvas with them, three pixels to one
        tab.run("""async () => { const c = el('canvas'), g = c.getContext('2d'), drawn = modelView.drawn;
            Object.assign(c, { width: 3 * drawn.width.baseVal.value, height: 3 * drawn.height.baseVal.value }), g.imageSmoothingEnabled = false, g.scale(3, 3);
            for (const node of drawn.querySelectorAll('image')) { const made = new Image(); made.src = node.getAttribute('href'); await made.decode();
                g.drawImage(made, ...['x', 'y', 'width', 'height'].map(name => +node.getAttribute(name))); } modelView.painted = c; }""")
        t.check("model: pixels are sharp", tab.run("[...modelView.drawn.querySelectorAll('image')].every(node => getComputedStyle(node).imageRendering === 'pixelated')"))
        off = tab.run("""(() => { const c = modelView.painted, r = c.width / modelView.drawn.width.baseVal.value, g = c.getContext('2d'), size = modelPlaces(modelView.stage.clientWidth, modelView.stage.clientHeight).size, bad = [];
            for (const {head, x, y} of modelView.tiles) { const {side, rows} = HEADS[head], thumb = thumbOf(head);
                for (const [i, j] of [[0, 0], [3, 4], [7, 5]]) { const d = g.getImageData((x + (j + .5) * size / side) * r, (y + (i + .5) * size / rows) * r, 1, 1).data, rgb = colorOf(levels[thumb[i * side + j]], N, topOfAll());
                    if (rgb.some((v, k) => Math.abs(v - d[k]) > 1)) bad.push([head, i, j, rgb, [...d]]); } } return bad })()""")
        t.check("model: each cell has its colour on that scale", off == [], off[:3])
        tab.page.focus('.model button[tabindex="0"]')
        tab.press("ArrowUp", "ArrowRight")
        t.check("model: arrows", tab.run("[thisHead().layer, thisHead().head]") == [2, 1] and tab.run("document.activeElement.dataset.head") == str(tab.state("head")))
        tab.press("Enter")
        t.check("model: Enter leads to the head", tab.state("tab") == "matrix" and tab.run("[thisHead().layer, thisHead().head]") == [2, 1])
        tab.run("change({ tab: 'model' })")
        tab.settle()
        listed = json.loads(subprocess.run([t.QKV, "heads", tab.run("manifest.title"), "--effect", "--json"], check=True, capture_output=True, text=True).stdout)["heads"]
        effects = tab.run("Object.fromEntries(HEADS.map(h => [h.layer + '.' + h.head, h.effect]))")
        t.check("model: effects are those of qkv heads", all(abs(effects[f"{h['layer']}.{h['head']}"] - h["nats"]) < 1e-9 for h in listed), effects)
        tab.page.select_option(".tools select >> nth=0", "effect")
        tab.settle()
        order = tab.run("modelView.tiles.map(({head}) => HEADS[head].effect)")
        t.check("model: by effect", len(order) == 16 and order == sorted(order))
        tab.page.select_option(".tools select >> nth=0", "label")
        tab.settle()
        groups = tab.run("modelGroups().map(g => [g.name, g.heads.map(i => HEADS[i].label || 'no label')])")
        t.check("model: by label", sum(len(g[1]) for g in groups) == 16 and all(set(of) == {name} for name, of in groups), groups)
        tab.run("change({ head: HEADS.findIndex(h => h.layer === 3 && h.head === 0) })")
        tab.wait()
        pick = lambda place: f'.model button[data-head="{tab.run(f"HEADS.findIndex((_, i) => placeName(i) === {json.dumps(place)})")}"]'
        tab.page.click(pick("1.0"), modifiers=["Shift"])
        tab.page.check(".tools input")
        tab.page.click(pick("1.1"))
        tab.wait()
        t.check("overlay: two heads over one", tab.run("overlaidHeads().map(placeName)") == ["3.0", "1.0", "1.1"])
        tab.run("change({ tab: 'tokens' })")
        tab.wait()
        lines = tab.run("[...document.querySelectorAll('#panel figure svg path')].map(p => [p.getAttribute('stroke'), p.getAttribute('stroke-dasharray')])")
        mine = {tuple(line) for line in lines if line[0] in tab.run("overlayColors[+dark]")}
        t.check("overlay: a colour and a stroke for each head", len(mine) == 3 and len({m[0] for m in mine}) == 3 and len({m[1] for m in mine}) == 3, mine)
        bars = tab.run("[...document.querySelectorAll('.tokens.large .bars')].map(b => b.style.background)")
        weights = tab.run("overlaidHeads().map(h => Array.from(row(h, state.query)))")
        widths = [[float(x) for x in re.findall(r"/ ([\d.]+)%", bar)] for bar in bars]
        t.check("overlay: bars are as long as weights", len(widths) == 11 and all(abs(widths[j][h] - 100 * weights[h][j]) < 0.06 for j in range(11) for h in range(3)), bars[:2])
        tab.page.click("button.overlaid >> nth=0")
        tab.wait()
        t.check("overlay: one is taken away", tab.run("overlaidHeads().map(placeName)") == ["3.0", "1.1"])
        tab.clean("model")


def findings(t, browser):
    with t.Tab(browser, t.page_file("effect"), start=True) as tab:
        t.check("findings: a page opens with them", tab.state("tab") == "start" and tab.page.locator(".findings li").count() >= 6)
        answer = json.loads(subprocess.run([t.QKV, "heads", tab.run("manifest.title"), "--effect", "--json"], check=True, capture_output=True, text=True).stdout)
        best, p = min(answer["heads"], key=lambda h: h["nats"]), math.exp(answer["log_p"])
        weights = t.look(None, tab.run("manifest.title"), "--head", f"{best['layer']}.{best['head']}")["weights"][7]
        first = tab.page.inner_text(".findings li:first-child p")
        wanted = f"To fill [MASK], head {best['layer']}.{best['head']} reads door ({max(weights):.2f}); without it P(it) falls from {p:.2f} to {p + best['probability']:.2f} (−{-best['nats']:.2f} nats)."
        t.check("findings: the first", " ".join(first.split()) == wanted, (first, wanted))
        for index in range(tab.page.locator(".findings li").count()):
            item = tab.page.locator(".findings li").nth(index)
            digits, defined = re.findall(r"\d\.\d\d\b", item.locator("p").first.inner_text()), item.locator(".def")
            t.check(f"findings: each number of {index} has a definition", defined.count() >= max(1, len(digits)) and all(len(defined.nth(d).get_attribute("title")) > 20 for d in range(defined.count())), item.inner_text())
        stats = tab.run("HEADS.map(h => h.stats.confidence)")
        t.check("findings: the surest head", any(f"is the surest: a query's largest weight is {max(stats):.2f}" in " ".join(text.split()) for text in tab.page.locator(".findings li").all_inner_texts()))
        tab.page.click(".findings .def >> nth=0")
        t.check("findings: a number says what it is", tab.page.is_visible("#tip") and "sum to 1" in tab.page.inner_text("#tip"))
        tab.press("Escape")
        links = tab.run("[...document.querySelectorAll('.findings a')].map(a => a.getAttribute('href'))")
        for index, link in enumerate(links):
            tab.run("change({ tab: 'start' })")
            tab.wait()
            tab.page.locator(".findings a").nth(index).click()
            tab.wait()
            place, query, key, view = link[1:].split("/")
            got = [tab.run("placeName(state.head)"), tab.state("query"), tab.state("key"), tab.state("tab")]
            t.check(f"findings: link {index} sets the view", got == [place, int(query), int(key), view], (got, link))
        with t.Tab(browser, f"{t.page_file('effect')}{links[0]}") as other:
            t.check("findings: its address does the same", other.run("placeName(state.head)") == links[0][1:].split("/")[0] and other.state("tab") == links[0].split("/")[-1])
        tab.clean("findings")


def sample(t, browser):
    """A head without a map in the file: principal components, those of the library where it has them."""
    with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/map") as tab:
        file = tab.run("(plane.kind = 'pca', Array.from(mapPlaces().xy))")
        mine = tab.run("Array.from(principal(thisData()))")
        for axis in (0, 1):
            a, b = file[axis::2], mine[axis::2]
            ma, mb = sum(a) / len(a), sum(b) / len(b)
            cov = sum((x - ma) * (y - mb) for x, y in zip(a, b))
            r = cov / math.sqrt(sum((x - ma) ** 2 for x in a) * sum((y - mb) ** 2 for y in b))
            t.check(f"sample: component {axis} is the library's", abs(abs(r) - 1) < 1e-6, r)
    with t.Tab(browser, f"{t.page_file('plane')}#0.0/2047/3/map") as tab:
        tab.settle()
        said = tab.page.inner_text("#panel figcaption")
        t.check("sample: a long text without a map has one of some tokens", tab.page.locator("#panel circle").count() == 1025 and "one token of 2" in said and "of those that are shown" in said, said)
        t.check("sample: labels have room", not overlaps(text_boxes(tab)))
        t.check("sample: elements", tab.run("document.querySelectorAll('*').length") < 5000)
        tab.clean("sample")


def sliding(t, browser):
    """Layers with windows: keys outside have no cell, in the matrix, in pictures of heads and under What if."""
    golden = t.pathlib.Path(__file__).resolve().parent.parent / "golden" / "llama"
    words = "she was when . , ? w0 w1 w2 w3"
    for model in ("mistral_1", "gemma3_text_1"):
        page = t.look(t.FOLDER / "sliding.html", words, "--model", golden / model)
        with t.Tab(browser, page) as tab:
            kinds = {json.dumps(w) for w in tab.run("HEADS.map(h => h.window || null)")}
            t.check(f"sliding: {model} has windows as numbers", any(k != "null" for k in kinds) and tab.run("HEADS.every(h => !h.mask)"), kinds)
            t.check("sliding: Start says it", "Window: at most" in (tab.run("change({ tab: 'start' })"), tab.wait(), tab.page.inner_text("#panel"))[2])
            for index in range(tab.run("HEADS.length")):
                tab.run(f"change({{ head: {index}, tab: 'matrix' }})")
                tab.wait()
                tab.until("matrix.now && matrix.now.done")
                wanted = t.look(None, words, "--model", golden / model, "--head", tab.run("placeName(state.head)"))["weights"]
                name = f"sliding: {model} {tab.run('placeName(state.head)')}"
                t.near(f"{name}: weights", t.rows(tab), [p or 0 for line in wanted for p in line], 2e-6)
                seen = [p is not None for line in wanted for p in line]
                drawn = "(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; return Array.from({ length: N * M }, (_, at) => d[4 * at + 3] > 0) })"
                t.check(f"{name}: cells", tab.run(f"{drawn}(matrix.now.canvas)") == seen)
                t.check(f"{name}: keys that are seen", tab.run("Array.from({ length: M }, (_, i) => keysSeen(i))") == [sum(p is not None for p in line) for line in wanted])
                tab.settle()
                t.check(f"{name}: the small picture", tab.run(f"{drawn}(document.querySelector('#grid [data-head=\"{index}\"] canvas'))") == seen)
                t.check(f"{name}: the caption", ("Window: at most" in tab.run("caption()")) == (tab.run("!!thisHead().window")))
                tab.run("ask({ temperature: 2 })")
                tab.wait()
                t.check(f"{name}: also under What if", tab.run("t => row(state.head, M - 1).every((p, j) => (p > 0) === t[j])".replace("t =>", "() =>").replace("t[j]", f"{json.dumps([p is not None for p in wanted[-1]])}[j]")))
                tab.run("resetWhatIf()")
            tab.clean(f"sliding {model}")


# ---- What is read ------------------------------------------------------------------------------------------------------

def captions(t, browser):
    """All of a caption can be read, by keyboard, and what it says is true of the numbers."""
    with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/model", viewport={"width": 1000, "height": 800}) as tab:
        for name in ("model", "matrix", "map"):
            tab.run(f"change({{ tab: '{name}' }})")
            tab.settle()
            hidden = lambda: tab.run("(note => note.scrollHeight - note.clientHeight)(document.querySelector('#panel figcaption'))")
            before = hidden()
            tab.page.focus("#panel .caption summary")
            tab.press("Enter")
            tab.settle()
            t.check(f"captions: {name}: all of it is there", hidden() <= 1 and (before > 1 or name == "matrix"), (before, hidden()))
            tab.press("Enter")
            tab.settle()
            t.check(f"captions: {name}: and two lines again", hidden() == before, (before, hidden()))
        t.check("captions: the sum is precise", "sum to 1, up to the rounding of lse to f32." in tab.run("caption()"), tab.run("caption()"))
        tab.run("ask({ temperature: 2 })")
        t.check("captions: under What if it is 1", "sum to 1. MODIFIED" in tab.run("caption()"), tab.run("caption()"))
        tab.run("resetWhatIf()")
        titles = tab.run("[...document.querySelectorAll('#grid button')].map(b => [+b.dataset.head, b.title])")
        wanted = tab.run("HEADS.map((_, i) => `colours from 0 to ${topOf(i, true)}`)")
        t.check("captions: pictures of heads say their scale", len(titles) == 16 and all(wanted[head] in title for head, title in titles), titles[:2])
        t.check("captions: and that it is not that of Model", "Model has one scale" in tab.page.inner_text("#rail-note"))
        tab.run("change({ scale: 'log' })")
        tab.wait()
        t.check("captions: on the scale of all they are alike", "Model has one" not in tab.page.inner_text("#rail-note") and
                tab.run("[...document.querySelectorAll('#grid button')].every(b => !b.title.includes('colours from'))"))
        tab.clean("captions")
    with t.Tab(browser, f"{t.page_file('half')}#0.1/100/90/matrix") as tab:
        t.check("captions: f16 is said", "lse to f32 and of q and k to f16." in tab.run("caption()"), tab.run("caption()"))


def compared(t, browser):
    """The map of Compare has its tokens, its places where they have no room, and a scale."""
    for file, names in (("effect", True), ("hands", True), ("long", False)):
        with t.Tab(browser, f"{t.page_file(file)}#1.1/5/5/compare", viewport={"width": 1920, "height": 1080}) as tab:
            tab.until("document.querySelector('#panel figure svg')")
            tab.settle()
            axis = tab.run("[...document.querySelector('#panel figure svg').querySelectorAll('text')].map(e => e.textContent)")
            tokens = tab.run("Array.from({ length: N }, (_, i) => tokenText(i))")
            t.check(f"compared: {file}: tokens at both sides", axis == tokens + tokens if names else len(axis) > 20 and all(text.isdigit() for text in axis), axis[:30])
            ends = tab.page.inner_text("#panel figure .legend")
            most = tab.run("weightText(Math.max(...[...document.querySelectorAll('#panel table tbody tr:first-child td')].slice(3, 4).map(e => Math.abs(+e.textContent.replace('\u2212', '-')))))")
            t.check(f"compared: {file}: a scale", f"\u2212{most}" in ends and ends.count(most) == 2, (ends, most))
            if not names:
                continue
            box = tab.page.locator("#panel figure svg rect").first.bounding_box()
            query, key, n = 2, 3, len(tokens)
            tab.page.mouse.move(box["x"] + (key + 0.5) * box["width"] / n, box["y"] + (query + 0.5) * box["height"] / n)
            tab.wait()
            t.check(f"compared: {file}: the mouse", tab.page.inner_text("#tip").startswith(f"{tokens[query]} → {tokens[key]}\nA "), tab.page.inner_text("#tip"))
            tab.clean(f"compared {file}")


def narrow(t, browser):
    """In the frame of a notebook's cell nothing is cut, and nothing is left empty."""
    for width in (640, 660, 760, 900, 1020, 1040):
        with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/tokens", viewport={"width": width, "height": 720}) as tab:
            for name in t.TABS:
                tab.run(f"change({{ tab: '{name}' }})")
                tab.settle()
                cut = tab.run("byId('tabs').scrollWidth > byId('tabs').clientWidth && getComputedStyle(byId('tabs')).scrollbarWidth !== 'none'")
                t.check(f"narrow {width}: {name}: no tab is cut", not cut)
                # 26 pixels: the arrow and what is around the text
                cut = tab.run("""[...document.querySelectorAll('select')].filter(s => s.checkVisibility()).map(s => [s.selectedOptions[0].text, s.clientWidth, textWidth(s.selectedOptions[0].text, 13.05) + 26])
                    .filter(([, has, needs]) => has < needs)""")
                t.check(f"narrow {width}: {name}: no select is cut", not cut, cut)
            tab.run("change({ tab: 'matrix' })")
            tab.settle()
            empty = tab.run("plot.height - M * place.z")
            t.check(f"narrow {width}: little is empty below the matrix", empty < 80, empty)
            tab.clean(f"narrow {width}")
    with t.Tab(browser, f"{t.page_file('causal')}#0.1/3/1/matrix") as tab:
        columns = lambda: tab.run("getComputedStyle(document.querySelector('#inspector dl')).gridTemplateColumns")
        shown = columns()
        tab.run("change({ key: 30 })")
        tab.wait()
        t.check("narrow: a pair that is not seen changes no column", "hidden by the mask" in tab.page.inner_text("#inspector") and columns() == shown, (shown, columns()))
    for width, height in ((1600, 800), (1920, 900), (1920, 1080)):
        with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/model", viewport={"width": width, "height": height}) as tab:
            tab.run("document.documentElement.style.fontSize = '187.5%', change()")
            tab.settle()
            size, named, under, needs, high = tab.run("(({ size, named, under }) => [size, named, under, textWidth('3.0', 12) + 8, modelView.stage.clientHeight])(modelPlaces(modelView.stage.clientWidth, modelView.stage.clientHeight))")
            room = high >= 20 * 2 + 4 * (max(44, needs) + 4 + 18 * 2 + 7)
            t.check(f"narrow: tiles of {size} pixels on {width} have names where they have room, {height}", named == room and size >= (max(44, needs) if named else 24), (named, room, under))
            t.check(f"narrow: and are as large as fits, {width} x {height}", 40 + 4 * (size + under + 4) <= high < 40 + 4 * (size + 1 + under + 4), (size, under, high))


# ---- Paper, and no mouse ------------------------------------------------------------------------------------------------

def on_paper(t, browser):
    for theme in ("light", "dark"):
        with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/tokens", color_scheme=theme) as tab:
            tab.page.emulate_media(media="print", color_scheme=theme)
            for name in t.TABS:
                tab.run(f"change({{ tab: '{name}' }})")
                tab.settle()
                hidden = [s for s in ("#rail", "#tabs", ".bar", "#panel .tools") if tab.run(f"document.querySelector('{s}')?.checkVisibility() ?? false")]
                t.check(f"print {theme}: {name} without controls", not hidden and tab.page.is_visible("#panel"), hidden)
                t.check(f"print {theme}: {name}: on white", tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", tab.run("getComputedStyle(document.body).backgroundColor"))
                lies = overlaps(text_boxes(tab))
                t.check(f"print {theme}: {name}: no text over text", not lies, lies[:3])
            tab.run("change({ tab: 'tokens' })")
            tab.wait()
            token = tab.run("(() => { const s = getComputedStyle(document.querySelector('.tokens.large button.key')), bar = getComputedStyle(document.querySelector('.tokens.large button.key'), '::after'); return [s.color, s.backgroundColor, bar.borderBottomWidth, parseFloat(bar.width)] })()")
            t.check(f"print {theme}: tokens need no backgrounds", token[:3] == ["rgb(0, 0, 0)", "rgba(0, 0, 0, 0)", "4px"] and token[3] > 10, token)
            pdf = tab.page.pdf(format="A4")
            t.check(f"print {theme}: a PDF", pdf[:5] == b"%PDF-" and len(pdf) > 5000)
            tab.clean(f"print {theme}")


def by_keyboard(t, browser):
    """Tab reaches all that can be pressed, in every view, shows where it is, and comes back."""
    with t.Tab(browser, f"{t.page_file('effect')}#3.0/7/5/tokens") as tab:
        for name in t.TABS:
            tab.run(f"change({{ tab: '{name}' }}), document.activeElement.blur()")
            tab.settle()
            wanted = set(tab.run("""(window.stops = [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex]')]
                .filter(e => e.tabIndex >= 0 && !e.disabled && e.checkVisibility() && !e.closest('dialog'))).map((_, i) => i)"""))
            met, faint = set(), []
            for _ in range(len(wanted) + 12):
                tab.page.keyboard.press("Tab")
                at, seen, what = tab.run("(() => { const e = document.activeElement, s = getComputedStyle(e); return [stops.indexOf(e), s.outlineStyle !== 'none' || e.className === 'skip', e.outerHTML.slice(0, 90)] })()")
                if at >= 0:
                    met.add(at)
                if at >= 0 and not seen:
                    faint.append(what)
            missed = tab.run(f"{json.dumps(sorted(wanted - met))}.map(i => stops[i].outerHTML.slice(0, 90))")
            t.check(f"keyboard: {name}: everything is reached", not missed, missed[:3])
            t.check(f"keyboard: {name}: and seen", not faint, faint[:3])
        tab.run("document.activeElement.blur()")
        tab.press("1")
        tab.page.focus(".findings a >> nth=0")
        tab.press("Enter")
        t.check("keyboard: Enter follows a finding", tab.state("tab") == "tokens")
        tab.page.focus("#what-if-open")
        tab.press("Enter")
        t.check("keyboard: Enter opens the drawer", tab.page.is_visible("#what-if"))
        tab.page.focus("#what-if input >> nth=0")
        tab.press(" ")
        t.check("keyboard: the space bar asks", tab.run("whatIf.scaled") is False)
        tab.press("Escape")
        t.check("keyboard: Esc closes it, and the focus is on its button", not tab.page.is_visible("#what-if") and tab.run("document.activeElement.id") == "what-if-open")
        tab.clean("keyboard")


def speed(t, browser):
    """What opening a page costs, and each view of it, of 12 x 12 x 512, as multiples of a known piece of work."""
    with t.Tab(browser, t.page_file("long"), start=True, timed=True) as tab:
        costs = {"opened": tab.cpu_ms()}
        tab.until("headData(143)")
        for name in t.TABS:
            costs[name] = tab.cost_ms(lambda: (tab.run(f"change({{ tab: '{name}' }})"), tab.settle()))
        said = ", ".join(f"{name} {ms:.0f}" for name, ms in costs.items()) + f" ms, the unit {tab.known_ms:.0f} ms"
        t.check("speed: opening", costs.pop("opened") < 40 * tab.known_ms, said)
        t.check("speed: every view", max(costs.values()) < 20 * tab.known_ms, said)
        for name in ("model", "matrix", "map"):
            tab.run("change({ tab: 'tokens' })")
            tab.settle()
            tab.run(f"(() => {{ const view = tabs.{name}, draw = view.draw; window.nDrawn = 0; view.draw = () => {{ nDrawn++; draw.call(view) }}; change({{ tab: '{name}' }}) }})()")
            tab.settle()
            n = tab.run("nDrawn")
            t.check(f"speed: {name} is drawn once when it opens", n == 1, n)
        print(f"512 tokens, 144 heads: {said}")
        tab.clean("speed")


PARTS = (all_views, contrasts, canvas, alike, frame, whole_model, findings, sample, sliding, captions, compared, narrow, on_paper, by_keyboard, speed)
