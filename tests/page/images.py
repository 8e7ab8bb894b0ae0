"""Parts of browser.py: the view of an image, whose patches are tokens, and two images compared."""
import math
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]

TOKENS, BEFORE, SIDE, PATCH = 54, 5, 7, 8  # those of make_page's "image": [CLS], four registers, 7 x 7 patches
WIDTH = SIDE * PATCH


def pixel(x, y):
    """make_page.c's image."""
    dx, dy = x - WIDTH // 3, y - WIDTH // 2
    return [230, 120, 40] if 16 * (dx * dx + dy * dy) < WIDTH * WIDTH else [40 + 100 * y // WIDTH, 90 + 100 * x // WIDTH, 160]


def painted(tab, figure="photoFigure()"):
    """The middle of each patch of a figure, as the browser paints it."""
    return tab.run("""async () => {
        const figure = FIGURE, image = new Image(), width = +figure.getAttribute("width"), height = +figure.getAttribute("height"),
            canvas = el("canvas", { width, height });
        figure.setAttribute("xmlns", "http://www.w3.org/2000/svg");
        figure.querySelectorAll("rect").forEach(frame => frame.remove());
        image.src = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(figure));
        await image.decode();
        const context = canvas.getContext("2d"), { rows, columns } = manifest.image;
        context.drawImage(image, 0, 0);
        return listOf(rows * columns, at => [...context.getImageData(floor((at % columns + 0.5) * width / columns),
            floor((floor(at / columns) + 0.5) * height / rows), 1, 1).data].slice(0, 3)); }""".replace("FIGURE", figure))


def image(t, browser):
    weights = t.attend(t.page_file("image").stem)
    rows = [weights[i * TOKENS:(i + 1) * TOKENS] for i in range(TOKENS)]
    with t.Tab(browser, t.page_file("image"), start=True) as tab:
        t.check("image: it is the first view", tab.state("tab") == "image" and tab.run("tabOrder[1]") == "image")
        drawn = "document.querySelectorAll(\"[aria-label='The query in every head'] svg\").length"
        t.check("image: all heads, as the page opens", tab.until(f"{drawn} === 12"), tab.run(drawn))
        pixels = tab.run("[...bytesOf(manifest.image.pixels)].slice(0, %d)" % (3 * WIDTH * WIDTH))
        t.check("image: pixels", pixels == [c for y in range(WIDTH) for x in range(WIDTH) for c in pixel(x, y)])
        tab.run("change({ head: 0 })")
        figure = tab.page.locator("[aria-label='The image'] > svg").bounding_box()
        for r, c in ((0, 0), (2, 5), (SIDE - 1, SIDE - 1)):
            tab.page.mouse.click(figure["x"] + (c + 0.5) * figure["width"] / SIDE, figure["y"] + (r + 0.5) * figure["height"] / SIDE)
            tab.wait()
            t.check(f"image: a click on {r},{c}", tab.state("query") == BEFORE + SIDE * r + c, tab.state("query"))
        query = BEFORE + 2 * SIDE + 3
        tab.run(f"change({{ query: {query}, key: 9 }})")
        tab.wait()
        shown = tab.run("Array.from(shading(manifest))")
        t.check("image: weights", max(abs(a - b) for a, b in zip(shown, rows[query])) < 1e-5)
        outside = sum(rows[query][:BEFORE])
        t.check("image: the weight on other tokens is said", tab.run(f"weightText({outside})") in tab.run("tabs.image.says()"), tab.run("tabs.image.says()"))

        # Each patch is the image below the colour of its weight, at the opacity that is set.
        top, ramp = max(rows[query][BEFORE:]), tab.run("ramps[1]")
        for opacity in (0, 40, 100):
            tab.run(f"photoView.opacity = {opacity}; change()")
            tab.wait()
            found, wrong = painted(tab), []
            for at in range(SIDE * SIDE):
                x, y = PATCH * (at % SIDE) + PATCH // 2, PATCH * (at // SIDE) + PATCH // 2
                color = ramp[round(255 * min(1, rows[query][BEFORE + at] / top))]
                wanted = [a + (b - a) * opacity / 100 for a, b in zip(pixel(x, y), color)]
                if max(abs(a - b) for a, b in zip(found[at], wanted)) > 12:  # the image is enlarged, colours are steps
                    wrong.append((at, found[at], wanted))
            t.check(f"image: colours at {opacity} %", not wrong, wrong[:3])
        tab.run("change({ to: true })")
        tab.wait()
        t.check("image: on a token", max(abs(a - row[query]) for a, row in zip(tab.run("Array.from(shading(manifest))"), rows)) < 1e-5)
        tab.run("change({ to: false })")

        tab.page.locator("[aria-label='The image']").focus()
        tab.press("ArrowDown", "ArrowRight")
        t.check("image: arrows", tab.state("query") == query + SIDE + 1)
        tab.page.locator("[aria-label='Tokens before the image'] button").nth(1).click()
        tab.wait()
        t.check("image: a register is a query", tab.state("query") == 1)
        t.check("image: no strip of patches below", tab.run("stripLists[0].box.hidden") and not tab.run("change({ tab: 'why' }), draw(), stripLists[0].box.hidden"))
        tab.tab("image")
        tab.settle()
        tiles = tab.page.locator("[aria-label='The query in every head'] button")
        t.check("image: all heads", tiles.count() == 12 and tab.run(drawn) == 12)
        tiles.nth(7).click()
        tab.wait()
        t.check("image: a head", tab.state("head") == 7)
        saved = tab.run("figureSvg().text")
        t.check("image: what is saved", saved.count("<image") >= 2 and "% opacity" in saved)
        tab.sound("image")
    t.check("image: other pages have no such view", "photoView" not in t.page_file("small").read_text())


def divergence(a, b):
    """Jensen-Shannon, in nats."""
    part = lambda p, m: p * math.log(p / m) / 2 if p > 0 else 0
    return sum(part(x, (x + y) / 2) + part(y, (x + y) / 2) for x, y in zip(a, b))


def two_images(t, browser):
    """Compare of two images: both with the map of the head, what differs patch by patch, and in every head."""
    # Names of which no line can be broken at a space or a hyphen.
    files = [t.FOLDER / f"a_picture_from_a_folder_with_a_long_name_{name}.png" for name in ("two-boats", "three-balls")]
    for file, name in zip(files, ("two-boats.png", "three-balls.png")):
        file.write_bytes((ROOT / "examples/images" / name).read_bytes())
    model = ["--model", str(ROOT / "models/seer")]
    page = t.look(t.FOLDER / "two_images.html", "--image", files[0], "--against", files[1], *model)
    rows = {}

    def weights(name):
        for at, file in enumerate(files):
            if (name, at) not in rows:
                rows[name, at] = t.look(None, "--image", file, "--head", name, *model)["weights"]
        return rows[name, 0], rows[name, 1]

    with t.Tab(browser, page, start=True) as tab:
        tab.tab("compare")
        tab.settle()
        name = tab.run("placeName(state.head)").removesuffix(".1")
        t.check("two images: the same head of the other", tab.run("compare.b === 'twin' && [placeName(state.head), placeName(compare.head)].sort().join()") ==
                f"{name},{name}.1", tab.run("[compare.b, placeName(state.head), placeName(compare.head)]"))
        tab.run("change({ head: HEADS.findIndex(h => h.layer === 2 && h.head === 3 && !h.run) })")
        tab.settle()
        t.check("two images: B follows", tab.run("placeName(compare.head)") == "2.3.1")
        first, side = tab.run("manifest.image.first"), tab.run("manifest.image.columns")
        width = tab.run("manifest.image.width")
        patch, n = width // side, side * side
        query = first + 2 * side + 3
        tab.run(f"change({{ query: {query} }})")
        tab.settle()
        both = [each[query] for each in weights("2.3")]
        for at, letter in enumerate("AB"):
            got = tab.run(f"Array.from(pairRows().{letter.lower()})")
            t.near(f"two images: weights of {letter}", got, both[at], 2e-6)

        # Each image below the colours of its own weights, on one scale.
        top, ramp = max(max(row[first:]) for row in both), tab.run("ramps[1]")
        images = [tab.run(f"[...bytesOf(manifest.runs[{at}].image.pixels)]") for at in (0, 1)]
        t.check("two images: they differ", images[0] != images[1])
        for at, letter in enumerate("AB"):
            found, wrong = painted(tab, f"pairDrawings(pairRows())[{at}][0]"), []
            for j in range(n):
                x, y = patch * (j % side) + patch // 2, patch * (j // side) + patch // 2
                pixel = images[at][3 * (y * width + x):][:3]
                wanted = [a + 0.65 * (b - a) for a, b in zip(pixel, ramp[round(255 * both[at][first + j] / top)])]
                around = [images[at][3 * (v * width + u):][:3] for u in (x - 1, x, x + 1) for v in (y - 1, y, y + 1)]
                flat = all(max(p[c] for p in around) - min(p[c] for p in around) < 8 for c in range(3))
                if flat and max(abs(a - b) for a, b in zip(found[j], wanted)) > 12:  # the image is enlarged, colours are steps
                    wrong.append((j, found[j], wanted))
            t.check(f"two images: colours of {letter}", not wrong, wrong[:3])
        apart = [b - a for a, b in zip(*both)]
        most, ramp = max(map(abs, apart[first:])), tab.run("diverging()")
        found = painted(tab, "pairDrawings(pairRows())[2][0]")
        wrong = [(j, found[j]) for j in range(n) if max(abs(a - b) for a, b in zip(found[j], ramp[round(127.5 + 127.5 * apart[first + j] / most)])) > 3]
        t.check("two images: colours of the difference", not wrong, wrong[:3])
        words = tab.page.inner_text("#panel")
        t.check("two images: which is which", "A: layer 2, head 3 · " in words and "two-boats.png" in words and "three-balls.png" in words, words[:400])

        tiles = tab.page.locator("[aria-label=\"The query's difference in every head\"] button")
        heads = tab.run("photoPair.tiles.map(({ head }) => [placeName(head), HEADS[head].layer, HEADS[head].head])")
        t.check("two images: all heads", tiles.count() == 12 == len(heads), tiles.count())
        for at in (0, 5, 11):
            a, b = (each[query] for each in weights(heads[at][0]))
            t.check(f"two images: divergence of {heads[at][0]}", tiles.nth(at).inner_text().split()[-1] == f"{divergence(a, b):.3f}",
                    (tiles.nth(at).inner_text(), divergence(a, b)))
        tiles.nth(5).focus()
        tab.press("Enter")
        tab.settle()
        t.check("two images: a head by Enter", tab.run("placeName(state.head)") == heads[5][0] and
                tab.run("placeName(compare.head)") == heads[5][0] + ".1")
        t.check("two images: the focus stays", tab.run("document.activeElement.getAttribute('aria-pressed')") == "true")

        stage = tab.page.locator("#panel figure > div").nth(1)
        box = stage.locator("svg").bounding_box()
        tab.page.mouse.click(box["x"] + 0.5 * box["width"] / side, box["y"] + 1.5 * box["height"] / side)
        tab.wait()
        t.check("two images: a click on B", tab.state("query") == first + side, tab.state("query"))
        stage.focus()
        tab.press("ArrowDown", "ArrowRight")
        t.check("two images: arrows", tab.state("query") == first + 2 * side + 1, tab.state("query"))
        saved = tab.run("figureSvg().text")
        t.check("two images: what is saved", saved.count("<image") >= 2 and "A: layer" in saved and "B − A" in saved)
        tab.run("change({ head: twin(state.head) })")
        tab.settle()
        t.check("two images: the other one is A", "A: layer" in tab.page.inner_text("#panel figure >> nth=0") and
                "three-balls.png" in tab.page.inner_text("#panel figure >> nth=0"), tab.page.inner_text("#panel figure >> nth=0"))
        tab.run("compare.b = 'modified', whatIf.temperature = 0.5, changeAll()")
        tab.settle()
        t.check("two images: A under What if", "under What if" in tab.page.inner_text("#panel figure >> nth=1"))
        tab.run("compare.b = '0', change()")
        tab.settle()
        t.check("two images: another head has no grid", tiles.count() == 0)
        tab.run("compare.b = 'twin', resetWhatIf()")
        tab.settle()
        tab.sound("two images")


PARTS = (image, two_images)
