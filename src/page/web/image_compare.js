/*
 * Compare in pages of images: A and B side by side, each image below the weights of its head from the query, on one
 * scale; beside them the difference B - A of each patch; below them that difference in every head, on one scale, with
 * the divergence of the query's two rows. B is another head, the same head of another image, or A under What if.
 */
const photoPair = {
    stages: [],
    tiles: [],
    gridKey: "",
    drawnKey: ""
};
const PAIR = [150, 340];  // sides in CSS pixels, from … to

const pairName = (letter, index) => `${letter}: ${headOfRun(index)}` +
    (letter === "B" && compare.b === "modified" ? " under What if" : "");
const imageOf = index => manifest.runs?.[HEADS[index].run].image || manifest.image;
const indexB = () => compare.b === "modified" ? state.head : compare.head;

/* Rows of the query in both; null: not there yet. */
function pairRows(i = queries()[0]) {
    const a = rowA(i), b = rowB(i);
    return a && b && {a, b};
}
const pairSays = j => {
    const both = pairRows();
    return both ? `${queryText(queries()[0])} → ${tokenText(j)}: A ${weightText(both.a[j])}, B ${
                      weightText(both.b[j])}, B − A ${fixed(both.b[j] - both.a[j], 3)}` :
                  "";
};

function pairSize() {
    const {width, height} = manifest.image, room = panelWidth() - 48,
                  side =
                      clamp(floor(room / (room < 560 ? 2 : 3)) - 12, ...PAIR) / max(width, height);
    return [round(width * side), round(height * side)];
}

/* A drawing with the frames of query and key. */
function pairFigure(label, layers) {
    const {rows, columns} = manifest.image, [width, height] = pairSize(), now = pairNow(),
                 unit = [width / columns, height / rows], figure = drawing(width, height, label);
    figure.append(
        ...layers(width, height), ...patchFrame(now.key, unit, "4 3"),
        ...patchFrame(now.query, unit));
    return figure;
}

const patchDifference = ({a, b}, most) => {
    const shades = pixelsOf(diverging());
    return patchCanvas(j => shades[round(127.5 + 127.5 * (b[j] - a[j]) / most)]);
};
const mostOf = ({a, b}) =>
    a.reduce((most, p, j) => max(most, isPatch(j) ? abs(b[j] - p) : 0), 1e-9);

/* What stands in each of the three places: its drawing, and what is said below it. */
function pairDrawings(both) {
    const top = isLinear() ? max(patchTop(both.a), patchTop(both.b)) : 1,
          seen = () => keysSeen(queries()[0]), most = mostOf(both), query = queryText(queries()[0]);
    const weights = (letter, index, values) => {
        const name = pairName(letter, index);
        return [
            pairFigure(
                `${name}: weights from ${query}`,
                (width, height) => photoLayers(values, width, height, seen, top, imageOf(index))),
            `${name}. Weights from ${query}` + (isLinear() ? `, 0 to ${weightText(top)}.` : ".")
        ];
    };
    return [
        weights("A", state.head, both.a), weights("B", indexB(), both.b),
        [
            pairFigure(
                `Difference of the weights from ${query}`,
                (width, height) =>
                    [cellsOf(patchDifference(both, most), 0, 0, width, height),
                     svg("rect", {width, height, fill: "none", stroke: css("line")})]),
            `B − A, −${weightText(most)} to ${
                weightText(most)}: orange where B is larger. Its two ` +
                `rows have a divergence of ${fixed(divergence(both.a, both.b), 3)} nats.`
        ]
    ];
}

/* ---- The query in every head ---- */

/* Heads that are compared with themselves: under What if, or of the other image. */
const pairs = () => compare.b === "modified" ? heads().map(a => [a, a]) :
    compare.b === "twin" ? heads().map(a => [a, twin(a)]).filter(([, b]) => b >= 0) :
                           [];

function pairTile([head, other]) {
    const {width, height} = manifest.image, unit = tileSide() / max(width, height),
                  canvas = el("canvas", {"aria-hidden": "true"}), number = el("small"),
                  made = button(
                      [canvas, el("small", {}, tileName(head), el("br")), number],
                      () => change({head}), {"data-place": "pair" + head});
    Object.assign(canvas.style, {
        display: "block",
        width: round(width * unit) + "px",
        height: round(height * unit) + "px",
        imageRendering: "pixelated"
    });
    made.style.padding = "2px";
    saysAt(made, () => made.getAttribute("aria-label"));
    return {head, other, made, canvas, number, both: null};
}

function drawPairTile({head, made, canvas, number, both}, most) {
    const js = divergence(both.a, both.b), drawn = patchDifference(both, most);
    canvas.width = drawn.width;
    canvas.height = drawn.height;
    canvas.getContext("2d").drawImage(drawn, 0, 0);
    number.textContent = fixed(js, 3);
    made.setAttribute("aria-label", [
        headName(head), HEADS[head].label && `label: ${HEADS[head].label}`,
        `divergence of the query's rows ${fixed(js, 3)} nats`
    ].filter(Boolean).join("\n"));
}

/* Rows first, for one scale, then drawings. */
function showPairTiles() {
    const {tiles} = photoPair, i = queries()[0], itself = compare.b === "modified",
          key = [compare.b, manifest.at, document.readyState, i, version, dark].join();
    for (const {head, made} of tiles) made.setAttribute("aria-pressed", head === state.head);
    if (key === photoPair.drawnKey || state.hover !== null) return;
    photoPair.drawnKey = key;
    const rowsOf = tile => {
        const a = row(tile.head, i, itself), b = row(tile.other, i);
        tile.both = a && b && {a, b};
    };
    inSlices("pair", tiles.length, at => rowsOf(tiles[at]), done => {
        if (!done) return;
        const there = tiles.filter(({both}) => both),
              most = there.reduce((most, {both}) => max(most, mostOf(both)), 1e-9);
        photoPair.scale.textContent = weightText(most);
        inSlices("pair", there.length, at => drawPairTile(there[at], most), () => {});
    });
}

function showPairGrid() {
    photoPair.drawnKey = "";
    photoPair.tiles = pairs().map(pairTile);
    photoPair.scale = el("span");
    put(photoPair.grid,
        ...photoPair.tiles.length ?
            [
                el("h3", {}, "The query's difference in every head"),
                flowing(
                    el("div", {role: "group", label: "The query's difference in every head"},
                       ...photoPair.tiles.map(({made}) => made))),
                note(
                    "B − A of each head, all on one scale of up to ", photoPair.scale,
                    ", and the divergence of the query's two rows.",
                    manifest.tables ? " The mean over all queries is in Tables." : "")
            ] :
            []);
}

compare.photos = {
    tools: () => [...photoTools(), photoPair.legend = el("span")],
    show() {
        photoPair.before = beforeBox();
        photoPair.grid = el("div");
        photoPair.gridKey = "";
        photoPair.stages = ["A", "B", "Difference"].map(name => {
            const stage = photoStage(name, pairSays), words = el("figcaption"),
                  figure = el("figure", {}, stage, words);
            figure.style.margin = 0;
            return {stage, words, figure};
        });
        return el(
            "div", {}, photoPair.before,
            flowing(el("div", {}, ...photoPair.stages.map(({figure}) => figure)), 12),
            photoPair.grid, el("h3", {}, "All queries"));
    },
    draw() {
        const both = pairRows();
        if (!both) return;
        const gridKey = [compare.b, manifest.at].join();
        if (gridKey !== photoPair.gridKey) showPairGrid();
        photoPair.gridKey = gridKey;
        const top = isLinear() ? max(patchTop(both.a), patchTop(both.b)) : 1;
        put(photoPair.legend,
            scaleBar(scaleEnds(weightText(top)), level => text(photoColors()[round(level)])));
        showBefore(
            photoPair.before, j => `${weightText(both.a[j])} → ${weightText(both.b[j])}`, pairSays);
        pairDrawings(both).forEach(([drawn, said], at) => {
            const {stage, words, figure} = photoPair.stages[at];
            put(stage, drawn);
            words.textContent = said;
            figure.style.maxWidth = drawn.getAttribute("width") + "px";
        });
        showPairTiles();
    }
};
