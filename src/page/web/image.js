/*
 * View 10, in pages of an image: what the model saw, its patches shaded by the weights from the query (or on it); and
 * below it the same query in every head. Tokens before the first patch are buttons above the image. The image is
 * the same in both themes, so its colours are those of the dark one.
 */
const photoView = {
    opacity: 65,
    smooth: false,
    tiles: [],
    drawnKey: ""
};
const PHOTO = 520, TILE = [44, 76];  // sides in CSS pixels, at most; in the grid, from … to

/* What was decoded of each image: its address, which <image> reads. */
const photoUrls = new Map();
function photoUrl({width, height, pixels} = manifest.image) {
    if (photoUrls.has(pixels)) return photoUrls.get(pixels);
    const canvas = el("canvas", {width, height}), context = canvas.getContext("2d"),
          made = context.createImageData(width, height), {data} = made, bytes = bytesOf(pixels);
    for (let at = 0; at < width * height; at++) {
        for (let c = 0; c < 3; c++) data[4 * at + c] = bytes[3 * at + c];
        data[4 * at + 3] = 255;
    }
    context.putImageData(made, 0, 0);
    photoUrls.set(pixels, canvas.toDataURL());
    return photoUrls.get(pixels);
}

const photoColors = () => state.scale === "uniform" ? divergingRamps[1] : ramps[1];
const isPatch = j => j >= manifest.image.first;
const patchPlace = j => {
    const {first, columns} = manifest.image;
    return [floor((j - first) / columns), (j - first) % columns];
};
/* The end of the linear scale: the largest weight of a patch. */
const patchTop = values => values.reduce((top, p, j) => isPatch(j) && p > top ? p : top, 1e-9);
const shownTop = values => isLinear() ? patchTop(values) : 1;

/* A pixel for each patch, of the token that it is. */
function patchCanvas(pixel) {
    const {rows, columns, first} = manifest.image,
                          canvas = el("canvas", {width: columns, height: rows}),
                          context = canvas.getContext("2d"),
                          made = context.createImageData(columns, rows),
                          words = new Uint32Array(made.data.buffer);
    for (let at = 0; at < words.length; at++) words[at] = pixel(first + at) ?? GREY_PIXEL;
    context.putImageData(made, 0, 0);
    return canvas;
}

/* The image and weights over it. */
function photoLayers(values, width, height, seen, top, image = manifest.image) {
    const pixels = pixelsOf(photoColors()),
          canvas = patchCanvas(j => pixels[levelOf(values[j], seen(j), top)]),
          map = photoView.smooth ?
        svg("image", {width, height, href: canvas.toDataURL(), preserveAspectRatio: "none"}) :
        cellsOf(canvas, 0, 0, width, height);
    return [
        svg("image", {width, height, href: photoUrl(image), preserveAspectRatio: "none"}),
        svg("g", {opacity: photoView.opacity / 100}, map)
    ];
}

/* The frame of a patch; a dashed one within a frame of its own colour is seen on any image. */
function patchFrame(j, unit, dashes) {
    if (!isPatch(j)) return [];
    const [r, c] = patchPlace(j), [dx, dy] = unit,
              place = {x: c * dx, y: r * dy, width: dx, height: dy, fill: "none"};
    return [
        svg("rect", {...place, stroke: "#000", "stroke-width": 4}),
        svg("rect", {...place, stroke: "#fff", "stroke-width": 2, "stroke-dasharray": dashes})
    ];
}

function photoSize() {
    const {width, height} = manifest.image,
                  side = clamp(panelWidth() - 48, 240, PHOTO) / max(width, height);
    return [round(width * side), round(height * side)];
}

const photoSeen = () => state.to ? keysSeen : () => keysSeen(queries()[0]);
function photoFigure(values = shading(manifest)) {
    if (!values) return null;
    const {rows, columns} = manifest.image, [width, height] = photoSize(),
                 unit = [width / columns, height / rows], now = pairNow(),
                 figure = drawing(width, height, photoName());
    figure.append(
        ...photoLayers(values, width, height, photoSeen(), shownTop(values)),
        ...patchFrame(now.key, unit, "4 3"), ...patchFrame(now.query, unit));
    return figure;
}
const photoName = () => `The image, shaded by the weights ${state.to ? "on" : "from"} ${
    queryText(queries()[0])} in ${headName(state.head)}`;

/* "0,3: weight 0.021" */
const patchSays = (j, values) => `${tokenText(j)}: weight ${weightText(values[j])} ${
    state.to ? "on" : "from"} ${queryText(queries()[0])}`;

/* The patch below a pointer, over the box of the figure in a stage. */
function patchAt(event) {
    const {rows, columns, first} = manifest.image,
                          {left, top, width, height} = boxOf(event.currentTarget.firstChild);
    const r = floor((event.clientY - top) / height * rows),
          c = floor((event.clientX - left) / width * columns);
    return r >= 0 && r < rows && c >= 0 && c < columns ? first + r * columns + c : -1;
}

/* A place for a drawing of patches: a click and arrows select one. says(j): what is said under the mouse. */
function photoStage(label, says) {
    const stage = el("div", {tabindex: 0, role: "group", label});
    stage.style.cursor = "crosshair";
    hear(stage, "click", event => {
        const j = patchAt(event);
        if (j < 0) return;
        if (event.altKey || event.ctrlKey || event.metaKey || strip.sets === "key")
            change({key: j, hover: null});
        else if (event.shiftKey)
            change({more: [...state.more, j], hover: null});
        else
            change({query: j, hover: null});
    });
    saysAt(stage, event => {
        const j = patchAt(event);
        return j >= 0 ? says(j) : "";
    });
    // arrows go from patch to patch
    hear(stage, "keydown", event => {
        const {columns} = manifest.image,
              by = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns}[event.key];
        if (!by || event.shiftKey) return;
        event.preventDefault();
        event.stopPropagation();
        const to = state.query + by;
        if (to >= 0 && to < N) change({query: to, hover: null});
        say(queryText(state.query));
    });
    return stage;
}

/* Tokens that are no part of the image, as buttons with their numbers. */
function showBefore(box, number, says) {
    const now = pairNow();
    const press = j => button(
        [bdi(tokenText(j)), el("small", {}, " " + number(j))],
        () => change({query: j, hover: null}),
        {"aria-pressed": j === now.query, "data-place": "before" + j, label: says(j)});
    refill(box, ...listOf(manifest.image.first, press));
}

/* A row that breaks. */
function flowing(made, gap = 4) {
    Object.assign(
        made.style, {display: "flex", flexWrap: "wrap", gap: gap + "px", margin: "8px 0"});
    return made;
}
const beforeBox = () => flowing(el("div", {role: "group", label: "Tokens before the image"}));

/* Scale and opacity of weights over an image. */
function photoTools() {
    const opacity = el("input", {
        type: "range",
        min: 0,
        max: 100,
        step: 5,
        value: photoView.opacity,
        oninput: e => sets(photoView, "opacity", Number)(e.target.value)
    });
    return [
        scaleSelect(),
        check(
            "smooth", photoView.smooth, sets(photoView, "smooth"),
            "weights between the middles of patches are interpolated"),
        el("label", {}, "Opacity", opacity)
    ];
}

/* ---- The query in every head ---- */

/* A layer is a line, where its heads fit into one. */
function tileSide() {
    const across = max(...heads().map(i => HEADS[i].head)) + 1,
          side = floor((panelWidth() - 48) / across) - 12;
    return side < TILE[0] ? TILE[1] : min(side, TILE[1]);
}

function photoTile(head) {
    const {width, height} = manifest.image, unit = tileSide() / max(width, height),
                  made = button([], () => change({head}), {"data-place": "photo" + head});
    made.style.padding = "2px";
    saysAt(made, () => headName(head) + (HEADS[head].label ? `\nlabel: ${HEADS[head].label}` : ""));
    return {head, made, width: round(width * unit), height: round(height * unit)};
}

/* Each on its own scale: where it looks, not how much. */
function drawTile({head, made, width, height}) {
    const i = queries()[0], values = state.to ? column(head, i) : row(head, i);
    if (!values) return;
    const figure = sheet(width, height);
    figure.setAttribute("aria-hidden", "true");
    figure.append(...photoLayers(values, width, height, photoSeen(), shownTop(values)));
    put(made, figure, el("small", {}, el("br"), tileName(head)));
    made.setAttribute("aria-label", `${headName(head)}: the query ${queryText(i)} over the image`);
}

function showTiles() {
    const key = [
        manifest.at, document.readyState, queries(), state.to, state.scale, version,
        photoView.opacity, photoView.smooth
    ].join();
    for (const {head, made} of photoView.tiles)
        made.setAttribute("aria-pressed", head === state.head);
    if (key === photoView.drawnKey || state.hover !== null) return;
    photoView.drawnKey = key;
    inSlices("photo", photoView.tiles.length, at => drawTile(photoView.tiles[at]), () => {});
}

tabs.image = {
    name: "Image",
    show(panel) {
        photoView.tiles = heads().map(photoTile);
        photoView.drawnKey = "";
        photoView.before = beforeBox();
        photoView.stage = photoStage("The image", j => {
            const values = shading(manifest);
            return values ? patchSays(j, values) : "";
        });
        photoView.note = el("figcaption");
        photoView.legend = el("span");
        const grid = flowing(
            el("div", {role: "group", label: "The query in every head"},
               ...photoView.tiles.map(({made}) => made)));
        panel.append(
            el("div", {class: "tools"}, shadeSelect(), ...photoTools(), photoView.legend),
            photoView.before, el("figure", {}, photoView.stage, photoView.note),
            el("h3", {}, "The query in every head"), grid,
            note("Each head on a scale of its own, up to its largest weight on a patch."));
    },
    draw() {
        const values = shading(manifest);
        if (!values) return;
        put(photoView.legend,
            scaleBar(
                scaleEnds(weightText(patchTop(values))),
                level => text(photoColors()[round(level)])));
        showBefore(photoView.before, j => weightText(values[j]), j => patchSays(j, values));
        put(photoView.stage, photoFigure(values));
        photoView.note.textContent = this.says(values);
        showTiles();
    },
    says(values = shading(manifest)) {
        const before = values?.slice(0, manifest.image.first) || [],
              outside = state.to ? 0 : before.reduce((sum, p) => sum + p, 0);
        return `Weights ${state.to ? "on" : "from"} ${queryText(queries()[0])} over the image, at ${
                   photoView.opacity} % opacity${photoView.smooth ? ", interpolated" : ""}. ` +
            (outside ? `${weightText(outside)} of the weight is on tokens that are no patch. ` :
                       "") +
            "Solid frame: query; dashed: key. ";
    },
    figure: photoFigure
};

Object.assign(state, {tab: "image", scale: "linear"});
drawn.push(() => {
    if (state.tab === "image")
        for (const {box} of stripLists) box.hidden = true;
});
