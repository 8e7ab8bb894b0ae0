"""A part of browser.py: the view of an image, whose patches are tokens."""

TOKENS, BEFORE, SIDE, PATCH = 54, 5, 7, 8  # those of make_page's "image": [CLS], four registers, 7 x 7 patches
WIDTH = SIDE * PATCH


def pixel(x, y):
    """make_page.c's image."""
    dx, dy = x - WIDTH // 3, y - WIDTH // 2
    return [230, 120, 40] if 16 * (dx * dx + dy * dy) < WIDTH * WIDTH else [40 + 100 * y // WIDTH, 90 + 100 * x // WIDTH, 160]


def painted(tab):
    """The middle of each patch of the view, as the browser paints it."""
    return tab.run("""async () => {
        const figure = photoFigure(), [width, height] = photoSize(), image = new Image(), canvas = el("canvas", { width, height });
        figure.setAttribute("xmlns", "http://www.w3.org/2000/svg");
        figure.querySelectorAll("rect").forEach(frame => frame.remove());
        image.src = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(figure));
        await image.decode();
        const context = canvas.getContext("2d"), { rows, columns } = manifest.image;
        context.drawImage(image, 0, 0);
        return listOf(rows * columns, at => [...context.getImageData(floor((at % columns + 0.5) * width / columns),
            floor((floor(at / columns) + 0.5) * height / rows), 1, 1).data].slice(0, 3)); }""")


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


PARTS = (image,)
