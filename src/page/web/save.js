/* Files made of what is seen: pictures with the caption inside, and rows as text. Nothing leaves the browser. */
function download(name, blob) {
    const link = el("a", {href: URL.createObjectURL(blob), download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    byId("save").open = false;
    say(`saved ${name}`);
}
const fileName = ending => `layer${thisHead().layer}-head${thisHead().head}-${state.tab}.${ending}`;

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
            page.append(svg("text", {x, y, size: 12, fill: css("faint")}, words));
        else
            page.append(svg("rect", {...place, fill: node.style.background}));
        x += (words ? 7 * words.length : place.width) + 8;
    }
}

/*
 * The figure of the tab on a page of its own: title, scale, caption in lines below. Title and caption are
 * <title> and <desc>, too.
 */
function figureSvg() {
    const figure = tabs[state.tab].figure();
    saveNote.textContent = figure ? "" : "This view has no picture here.";
    if (!figure) return null;
    const width = max(640, +figure.getAttribute("width")), height = +figure.getAttribute("height"),
          said = (tabs[state.tab].says?.() || "") + caption(), lines = [""];
    for (const word of said.split(" ")) {
        if ((lines[lines.length - 1] + word).length > width / 6.6) lines.push("");
        lines[lines.length - 1] += word + " ";
    }
    const shown = byId("panel").querySelector(".legend"), top = height + (shown ? 104 : 80),
          all = [width + 48, top + 4 + 16 * lines.length],
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
                  svg("text", {x: 24, y: 34, size: 16, "font-weight": 600, fill: css("strong")},
                      cut(manifest.title, floor(width / 9))));
    figure.setAttribute("x", 24);
    figure.setAttribute("y", 54);
    page.append(
        figure,
        ...lines.map(
            (line, l) =>
                svg("text", {x: 24, y: top + 16 * l, size: 12, fill: css("faint")}, line)));
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
        saveText("tsv", rowTsv());
    }
}
const saveText = (ending, words) =>
    download(fileName(ending), new Blob([words], {type: "text/plain;charset=utf-8"}));

function showSave() {
    const items = [
        ["Picture of this view, PNG", savePng], ["Picture of this view, SVG", saveSvg],
        ["Row of the query, TSV", () => saveText("tsv", rowTsv())],
        ["Row of the query, JSON", () => saveText("json", rowJson())]
    ];
    if (!LONG) items.push(["All rows of the head, TSV", () => saveText("tsv", headTsv())]);
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
