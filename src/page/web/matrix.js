/*
 * View 2: the matrix, rows queries, columns keys, at any zoom. place.z pixels are a cell; (place.x, place.y) is
 * the cell at the top left. What is seen is computed anew after each move, in slices; until then the old picture
 * is stretched.
 */
const place = {
    z: 0,
    x: 0,
    y: 0,
    fitted: true,  // all is shown, and still is when the window changes
    shown: ""
},
      plot = {
          left: 0,
          top: 0,
          width: 1,
          height: 1
      };
const matrix = {
    canvas: null,
    old: null,
    now: null,
    mass: false,
    brush: null,
    brushing: false
};

const LARGEST = 160;  // pixels of a cell
const fitZoom = () => min(LARGEST, plot.width / N, plot.height / M);
function keepInside() {
    if (place.fitted) place.z = fitZoom();
    place.z = clamp(place.z, fitZoom(), LARGEST);
    place.x = clamp(place.x, 0, max(0, N - plot.width / place.z));
    place.y = clamp(place.y, 0, max(0, M - plot.height / place.z));
}
function fit() {
    Object.assign(place, {fitted: true, x: 0, y: 0});
    keepInside();
    change();
}
/* Zooms by a factor; the cell at (x, y) of the plot stays where it is. */
function zoom(factor, x = plot.width / 2, y = plot.height / 2) {
    const before = place.z;
    place.z = clamp(place.z * factor, fitZoom(), LARGEST);
    place.fitted = place.z <= fitZoom();
    place.x += x / before - x / place.z;
    place.y += y / before - y / place.z;
    keepInside();
    change();
}
/* Moves so that the selected pair can be seen. */
function reveal() {
    const across = plot.width / place.z, down = plot.height / place.z;
    if (state.key < place.x || state.key + 1 > place.x + across) place.x = state.key - across / 2;
    if (state.query < place.y || state.query + 1 > place.y + down) place.y = state.query - down / 2;
}

function seen() {
    const cells = (from, pixels, n) => [max(0, floor(from)), min(n, ceil(from + pixels / place.z))];
    return {rows: cells(place.y, plot.height, M), cols: cells(place.x, plot.width, N)};
}

/* Queries to a line of pixels; and whether the tiles of the file are fine enough for it. */
const each = ([r0, r1], lines) => (r1 - r0) / lines;
const fromTiles = queries => !matrix.mass && peakTile() <= 3 * queries;

const isPart = ({rows: r, cols: c} = seen()) => r[1] - r[0] < M || c[1] - c[0] < N;

/* Starts the picture of what is seen, unless it is there. */
function render() {
    const {rows: r, cols: c} = seen(), size = [
        min(r[1] - r[0], ceil(plot.height)), min(c[1] - c[0], ceil(plot.width))
    ];
    const key =
        [state.head, r, c, size, state.scale, matrix.mass, version, dark, !thisData()].join();
    if (key === place.shown || !thisData()) return;
    place.shown = key;
    if (matrix.now && matrix.now.done) matrix.old = matrix.now;
    const made = {rows: r, cols: c, done: false, canvas: null};
    made.canvas =
        picture({head: state.head, rows: r, cols: c, size, mass: matrix.mass}, "matrix", done => {
            made.done = done;
            if (done) matrix.old = null;
            if (made.canvas) paint();
        }, fromTiles(each(r, size[0])) ? peakRow : pictureRow);
    matrix.now = made;
    if (made.done) matrix.old = null;
}

const atX = j => plot.left + (j - place.x) * place.z, atY = i => plot.top + (i - place.y) * place.z;
function paint() {
    if (!matrix.canvas || !matrix.canvas.isConnected) return;
    const {context} = begin(matrix.canvas);
    context.save();
    context.beginPath();
    context.rect(plot.left, plot.top, min(plot.width, N * place.z), min(plot.height, M * place.z));
    context.clip();
    context.imageSmoothingEnabled = false;
    for (const made of [matrix.old, matrix.now]) {
        if (made && made.canvas)
            context.drawImage(
                made.canvas, atX(made.cols[0]), atY(made.rows[0]),
                (made.cols[1] - made.cols[0]) * place.z, (made.rows[1] - made.rows[0]) * place.z);
    }
    if (place.z >= 14) paintCells(context);
    paintMarks(context);
    context.restore();
    paintAxes(context);
}

/* Where the cells lie: room for the names of tokens, or of places, but not more than a third of the drawing. What is
 * seen stays where it is. */
const TURN = Math.PI / 3.2, {sin, cos} = Math;
const namesFit = () => place.z >= 13 * em();
function measurePlot({width, height}) {
    const key = [width, height, em(), manifest.at, namesFit()].join();
    if (plot.key === key) return;
    const longest = (of, name, most) => {
        const n = min(of.n, 400),
              few = namesFit() ? listOf(n, i => name(floor(i * of.n / n))) : [String(of.n)];
        return min(most, max(36 * em(), ...few.map(text => textWidth(text, LABEL, 700) + 1)));
    };
    const {left, top} = plot;
    plot.key = key;
    plot.labels = longest(asked, queryText, width / 3 - 16);
    plot.names = longest(manifest, tokenText, height / 3);
    plot.left = plot.labels + 16;
    plot.top = plot.names * sin(TURN) + 26 * em();
    plot.width = max(1, width - plot.left - plot.names * cos(TURN) - 4);
    plot.height = max(1, height - plot.top - 4);
    if (place.fitted && fitZoom() >= 13 * em() && !namesFit()) {
        place.z = fitZoom();  // once more, with room for names
        return measurePlot({width, height});
    }
    place.x += (plot.left - left) / place.z || 0;
    place.y += (plot.top - top) / place.z || 0;
}

tabs.matrix = {
    name: "Matrix",
    show(panel) {
        matrix.canvas = el("canvas", {
            tabindex: 0,
            role: "img",
            label: "Matrix of weights, rows queries, columns keys; as a table below"
        });
        matrix.found = el("div", {class: "found", hidden: true});
        matrix.stage = el("div", {class: "stage"}, matrix.canvas, matrix.found);
        matrix.note = el("figcaption");
        matrix.legend = el("span", {class: "end"});
        matrix.table = el(
            "details", {class: "table"}, el("summary", {}, "Cells around the selection, as table"));
        hear(matrix.table, "toggle", drawCellTable);
        place.shown = "";
        panel.append(
            el("div", {class: "tools"}, ...zoomTools(matrixHands),
               check(
                   "Select a rectangle", matrix.brushing, on => matrix.brushing = on,
                   "drag over cells; or drag with Shift"),
               scaleSelect(),
               max(M, N) > 200 ?
                   select(
                       "A pixel is", [["", "the largest"], ["mass", "the mass"]],
                       matrix.mass ? "mass" : "", sets(matrix, "mass", Boolean),
                       "largest weight of its tile, or mean over its queries of the sum over its keys") :
                   null,
               matrix.legend),
            matrix.stage, below(matrix.note, matrix.table));
        listenToHands(matrix.canvas, matrixHands);
        refit.observe(matrix.stage);
    },
    canvas: true,
    draw() {
        put(matrix.legend, legend(state.head));
        matrix.note.textContent ||= caption();  // takes its place before the rest is measured
        refit.size = sizeOf(matrix.stage);
        measurePlot(boxOf(matrix.stage));
        keepInside();
        render();
        paint();
        const every = ceil(each(seen().rows, ceil(plot.height)));
        matrix.note.textContent =
            (fromTiles(every) ?
                 `Each point is the largest weight of ${peakTile()} × ${peakTile()}. ` :
                 LONG && every > 1 ?
                 `A line of pixels is one query of about ${every}: zoom in to see every one. ` :
                 "") +
            caption();
        if (matrix.table.open) drawCellTable();
        if (matrix.found.firstChild && matrix.foundOf !== [state.head, version].join())
            showBrushed();
    },
    figure: matrixFigure,
};
