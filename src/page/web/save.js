/* Files made of what is seen: pictures with the caption inside, and rows as text. Nothing leaves the browser. */
function download(name, blob) {
    const link = el("a", {href: URL.createObjectURL(blob), download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    byId("save").open = false;
    say(`saved ${name}`);
}
/* "layer3-head0-query7-matrix": no two texts, heads, queries or views have one name. */
const fileName = (ending, what = state.tab) => {
    const {layer, head, run} = thisHead(), {query, key, tab} = state;
    const more = {
        why: `key${key}-`,
        compare: `with${HEADS[compare.head] ? placeName(compare.head) : "-itself"}-`
    }[tab] ||
        "";
    return `${run ? `text${run}-` : ""}layer${layer}-head${head}-query${query}-${more}${what}${
        isAsked() ? "-what-if" : ""}.${ending}`;
};

const saveNote = el("p", {class: "note", role: "status"});

/* The scale or the groups that a legend names, from (24, y) on. */
function saveLegend(shown, page, y) {
    let x = 24;
    for (const node of shown.childNodes) {
        const words = node.textContent, isBar = node.nodeName === "CANVAS",
              place = {x, y: y - 10, width: isBar ? 160 : 10, height: 10};
        if (isBar)
            page.append(
                svg("image", {...place, href: node.toDataURL(), preserveAspectRatio: "none"}));
        else if (words)
            page.append(written(words, x, y));
        else
            page.append(svg("rect", {...place, fill: node.style.background}));
        x += (words ? 7 * words.length : place.width) + 8;
    }
}

/* Words in lines of a width, from (x, y) on. */
function paragraph(words, width, x, y) {
    const lines = [""];
    for (const word of words.split(" ")) {
        if ((lines.at(-1) + word).length > width / 6.6) lines.push("");
        lines[lines.length - 1] += word + " ";
    }
    return lines.map((line, l) => written(line, x, y + 16 * l));
}

/* The figures of a view, with names and captions. */
function figuresOfView() {
    const all = [...byId("panel").querySelectorAll("figure")], page = sheet(panelWidth(), 0);
    let y = 0;
    for (const figure of all) {
        const drawn = figure.querySelector("svg").cloneNode(true),
              name = figure.querySelector("h3"),
              words = figure.querySelector("figcaption").textContent;
        if (name) page.append(headed(name.textContent, 0, y += 18));
        drawn.setAttribute("y", y += 10);
        y += +drawn.getAttribute("height") + 20;
        const lines = paragraph(words, +drawn.getAttribute("width"), 0, y);
        page.append(drawn, ...lines);
        y += 16 * lines.length + 8;
    }
    page.setAttribute("height", y);
    page.removeAttribute("viewBox");
    return y && page;
}

/*
 * The figure of the tab on a page of its own: title, scale, caption in lines below. Title and caption are
 * <title> and <desc>, too.
 */
function figureSvg() {
    const {figure: draws, says, compared} = tabs[state.tab], figure = draws();
    saveNote.textContent = figure ? "" : "This view has no picture here.";
    if (!figure) return null;
    const width = max(640, +figure.getAttribute("width")), height = +figure.getAttribute("height"),
          said = (says?.() || "") + caption(compared?.()),
          shown = byId("panel").querySelector(".legend"), top = height + (shown ? 104 : 80),
          lines = paragraph(said, width, 24, top), all = [width + 48, top + 4 + 16 * lines.length],
          page =
              svg("svg", {
                  xmlns: "http://www.w3.org/2000/svg",
                  viewBox: `0 0 ${all.join(" ")}`,
                  width: all[0],
                  height: all[1],
                  "font-family": "system-ui, sans-serif"
              },
                  svg("title", {}, manifest.title), svg("desc", {}, said),
                  svg("rect", {width: all[0], height: all[1], fill: css("page")}),
                  headed(cut(manifest.title, floor(width / 9)), 24, 34, 16));
    figure.setAttribute("x", 24);
    figure.setAttribute("y", 54);
    page.append(figure, ...lines);
    if (shown) saveLegend(shown, page, height + 76);
    return {text: new XMLSerializer().serializeToString(page), width: all[0], height: all[1]};
}

function savePng() {
    const made = figureSvg(), image = new Image();
    if (!made) return;
    image.onload = () => {
        const canvas = el("canvas", {width: 2 * made.width, height: 2 * made.height});
        canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob(blob => download(fileName("png"), blob));
    };
    image.src = "data:image/svg+xml," + encodeURIComponent(made.text);
}
const saveSvg = () => {
    const made = figureSvg();
    if (made) download(fileName("svg"), new Blob([made.text], {type: "image/svg+xml"}));
};

const cell = (i, of) => of.tokens[i].replace(/[\t\n\r]/g, " "), keyCell = j => cell(j, manifest),
      queryCell = i => cell(i, asked);
/* What the filter hides is no number: an empty field, null. */
const shownRow = i => Array.from(row(state.head, i), (p, j) => isFiltered(i, j) ? null : p);
function rowTsv() {
    const weights = shownRow(state.query);
    return `# ${caption()}\nquery\tkey\tquery_token\tkey_token\tweight\n` +
        listOf(N, j => [state.query, j, queryCell(state.query), keyCell(j), weights[j]].join("\t"))
            .join("\n") +
        "\n";
}
const headTsv = () => `# ${caption()}\nquery\t` + listOf(N, keyCell).join("\t") + "\n" +
    listOf(M, i => queryCell(i) + "\t" + shownRow(i).join("\t")).join("\n") + "\n";
const rowJson = () => JSON.stringify({
    caption: caption(),
    layer: thisHead().layer,
    head: thisHead().head,
    query: state.query,
    modified: isModified() || !!manifest.modified,
    what_if: modifications(),
    query_token: asked.tokens[state.query],
    tokens: manifest.tokens,
    weights: shownRow(state.query)
});

async function copyRow() {
    try {
        await navigator.clipboard.writeText(rowTsv());
        say("row copied");
    } catch {
        saveText("tsv", rowTsv(), "row");
    }
}
const saveText = (ending, words, what) =>
    download(fileName(ending, what), new Blob([words], {type: "text/plain;charset=utf-8"}));

function showSave() {
    const items = [
        ["Picture of this view, PNG", savePng], ["Picture of this view, SVG", saveSvg],
        ["Row of the query, TSV", () => saveText("tsv", rowTsv(), "row")],
        ["Row of the query, JSON", () => saveText("json", rowJson(), "row")]
    ];
    if (!LONG)
        items.push(["All rows of the head, TSV", () => saveText("tsv", headTsv(), "all-rows")]);
    items.push(["Copy the row", copyRow], [
        "Print",
        () => {
            byId("save").open = false;
            print();
        }
    ]);
    put(byId("save-list"), ...items.map(([name, run]) => button(name, run)), saveNote);
    hear(window, "click", event => {
        if (!byId("save").contains(event.target)) byId("save").open = false;
    });
}
