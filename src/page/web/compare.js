/*
 * View 6: two heads, or one before and after What if. Differences B - A cell by cell; for each query the
 * Jensen-Shannon divergence of the two rows, 0 to ln 2.
 */
const compare = {
    b: "",  // the place of a head; modified: A under What if; twin: the same head of the other text
    head: -1,     // the place of B, as it is drawn; -1: none, or A itself
    photos: null  // of images: what stands above the numbers (image_compare.js)
};

/* The same head of the other one of two texts; -1: there is none. */
function twin(index) {
    const {layer, head, run} = HEADS[index];
    return manifest.runs?.length === 2 ?
        HEADS.findIndex(h => h.layer === layer && h.head === head && h.run !== run) :
        -1;
}

const rowA = i => row(state.head, i, compare.b === "modified");
const rowB = i => row(compare.b === "modified" ? state.head : compare.head, i);
function divergence(a, b) {
    let sum = 0;
    for (let j = 0; j < N; j++) {
        const m = (a[j] + b[j]) / 2;
        if (a[j] > 0) sum += a[j] * log(a[j] / m) / 2;
        if (b[j] > 0) sum += b[j] * log(b[j] / m) / 2;
    }
    return max(0, sum);
}

/* Without the letter that a text's name may begin with. */
function headOfRun(index) {
    const name = manifest.runs?.[HEADS[index].run].name.replace(/^[AB]: /, "");
    return headName(index) + (name ? ` · ${name}` : "");
}

tabs.compare = {
    name: "Compare",
    show(panel) {
        const other = twin(state.head) >= 0;
        if (!compare.b || (compare.b === "twin" && !other))
            compare.b = other ? "twin" : HEADS.length > 1 ? String(state.head ? 0 : 1) : "modified";
        const heads = [...HEADS.keys()].slice(0, 400).map(
            i => [String(i), [headOfRun(i), HEADS[i].label].filter(Boolean).join(" · ")]);
        compare.body = el("div");
        compare.key = "";
        panel.append(
            el("div", {class: "tools"}, el("span", {id: "compare-a"}),
               select(
                   "with B:",
                   [
                       ...other ? [[
                           "twin", `the same head of the other ${manifest.image ? "image" : "text"}`
                       ]] :
                                  [],
                       ["modified", "itself under What if"], ...heads
                   ],
                   compare.b, sets(compare, "b")),
               ...compare.photos?.tools() || []),
            compare.photos?.show() || "", compare.body);
    },
    draw() {
        byId("compare-a").textContent = `A: ${headOfRun(state.head)}`;
        const itself = compare.b === "modified", twins = compare.b === "twin";
        compare.head = itself ? -1 : twins ? twin(state.head) : +compare.b;
        if (!thisData() || (!itself && compare.head >= 0 && !headData(compare.head))) return;
        const key = [state.head, compare.b, version, dark].join(), none = twins && compare.head < 0;
        if (!none) compare.photos?.draw();
        if (key === compare.key) return;
        compare.key = key;
        if (none)
            put(compare.body, note("The file has no such head of the other. Choose another B."));
        else
            compareAll();
    },
    compared() {
        const b = compare.b === "modified" ? "the same under What if" : headOfRun(compare.head);
        return `A: ${headOfRun(state.head)}. B: ${
            b}. Weight p = exp(score − lse) in each, over the keys that a query sees.`;
    },
    figure: () => figuresOfView()
};

function compareAll() {
    const n = LONG ? 256 : M, changes = [];
    let most = 0;
    compare.js = [];
    compare.places = [];
    inSlices(
        "compare", n,
        r => {
            const i = floor((r + 0.5) * M / n), a = rowA(i), b = rowB(i),
                  off = Float32Array.from(a, (p, j) => abs(b[j] - p));
            compare.places.push(i);
            compare.js.push(divergence(a, b));
            for (const j of largest(off, 5)) {
                changes.push([off[j], i, j, a[j], b[j]]);
                most = max(most, off[j]);
            }
        },
        done => {
            if (!done) return;
            const side = min(n, 512), shades = pixelsOf(diverging());
            const difference = (head, [from], range, columns, out) => {
                const i = floor((from + 0.5) * M / side), a = rowA(i), b = rowB(i);
                out.fill(0);
                for (let j = 0; j < N; j++) {
                    const at = floor(j * columns.n / N);
                    if (abs(b[j] - a[j]) > abs(out[at])) out[at] = b[j] - a[j];
                }
                return i;
            };
            picture(
                {
                    head: state.head,
                    rows: [0, side],
                    cols: [0, N],
                    size: [side, min(N, 512)],
                    plain: compare.b === "modified"
                },
                "difference",
                (done, map) => done &&
                    showCompared(map, most,
                                 changes.sort((x, y) => y[0] - x[0] || x[1] - y[1] || x[2] - y[2])
                                     .slice(0, 12)),
                difference, p => shades[round(127.5 + 127.5 * p / (most || 1))] ?? GREY_PIXEL);
        });
}

/* The map, with tokens where all have room. */
function differenceFigure(map) {
    const rem = em(), line = 15 * rem, most = panelWidth() - 44,
          fit = max(M, N) * line < most - 120 * rem, text = name => fit ? name : String,
          wide = (n, name) =>
              8 + min(110 * rem, max(...listOf(min(n, 99), i => textWidth(text(name)(i), 12)))),
          left = wide(M, queryText), y = wide(N, tokenText),
          width = clamp(most - left, 120, fit ? max(460, N * line) : 460),
          height = width / clamp(N / M, 1 / 3, 3),
          figure = drawing(
              left + width, y + height, "Map of differences; the largest are in the table below");
    const names = (n, name, length, place) => {
        for (let i = 0; i < n; i += ceil(line * n / length))
            figure.append(written(
                cutTo(text(name)(i), 110 * rem, 12), 0, 4 * rem,
                {size: 12 * rem, fill: css("ink"), ...place((i + 0.5) * length / n)}));
    };
    names(
        M, queryText, height,
        at => ({transform: `translate(${left - 6} ${y + at})`, anchor: "end"}));
    names(N, tokenText, width, at => ({transform: `translate(${left + at} ${y - 6}) rotate(-90)`}));
    const cells = svg(
        "rect",
        {x: left, y, width, height, fill: "none", stroke: css("line"), "pointer-events": "all"});
    figure.append(cellsOf(map, left, y, width, height), cells);
    saysAt(cells, event => {
        const box = boxOf(cells), at = (part, n) => clamp(floor(part * n), 0, n - 1),
              i = at((event.clientY - box.top) / box.height, M),
              j = at((event.clientX - box.left) / box.width, N), a = rowA(i)[j], b = rowB(i)[j];
        return `${queryText(i)} → ${tokenText(j)}\n` +
            (isFiltered(i, j) ? "not shown" :
                                `A ${weightText(a)}, B ${weightText(b)}\nB − A ${fixed(b - a, 3)}`);
    });
    return figure;
}

function showCompared(map, most, changes) {
    const mean = compare.js.reduce((a, b) => a + b, 0) / compare.js.length;
    const itself = compare.b === "modified",
          same = itself && !isModified() ?
        el("p", {class: "badge"},
           "Nothing that changes a weight is asked in What if, so both are the same.") :
        itself ? "" :
                 unasked("A and B are both under What if.");
    put(compare.body, same,
        el("figure", {}, differenceFigure(map),
           scaleBar(
               [`A is larger, −${weightText(most)}`, `${weightText(most)}, B is larger`],
               level => text(diverging()[round(level)])),
           el("figcaption", {},
              `B − A: orange where B is larger, blue where A is. Rows queries, columns keys${
                  N > 512 ? "; a pixel is the largest difference of its keys" : ""}.`)),
        el("h3", {}, "Largest differences"),
        table(
            "Largest differences", ["Query", "Key", "A", "B", "B − A", "Select"],
            changes.map(
                ([, i, j, a, b]) =>
                    [named(queryText, i), named(tokenText, j), weightText(a), weightText(b),
                     fixed(b - a, 3), button("select", () => change({query: i, key: j}))])),
        plot1({
            name: "Divergence of each query",
            values: compare.js,
            labels: r => `${queryText(compare.places[r])} (${compare.places[r]})`,
            what: "Query",
            unit: "nats",
            text:
                `Jensen–Shannon divergence of the query's two rows, 0 (same) to ln 2 = 0.693; mean ${
                    fixed(mean, 4)}` +
                (compare.js.length < M ? ` over ${compare.js.length} queries, evenly spread.` : ".")
        }));
}
