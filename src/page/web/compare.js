/*
 * View 6: two heads, or one before and after What if. Differences B - A cell by cell; for each query the
 * Jensen-Shannon divergence of the two rows, 0 to ln 2.
 */
const compare = {
    b: ""
};

const rowA = i => row(state.head, i, compare.b === "modified");
const rowB = i => compare.b === "modified" ? row(state.head, i) : row(+compare.b, i);
function divergence(a, b) {
    let sum = 0;
    for (let j = 0; j < N; j++) {
        const m = (a[j] + b[j]) / 2;
        if (a[j] > 0) sum += a[j] * log(a[j] / m) / 2;
        if (b[j] > 0) sum += b[j] * log(b[j] / m) / 2;
    }
    return max(0, sum);
}

const headOfRun = i =>
    headName(i) + (manifest.runs ? ` · ${manifest.runs[HEADS[i].run].name}` : "");

tabs.compare = {
    name: "Compare",
    show(panel) {
        if (!compare.b) compare.b = HEADS.length > 1 ? String(state.head ? 0 : 1) : "modified";
        const heads = [...HEADS.keys()].slice(0, 400).map(
            i => [String(i), [headOfRun(i), HEADS[i].label].filter(Boolean).join(" · ")]);
        compare.body = el("div");
        compare.key = "";
        panel.append(
            el("div", {class: "tools"}, el("span", {id: "compare-a"}),
               select(
                   "with B:", [["modified", "itself under What if"], ...heads], compare.b,
                   b => {
                       compare.b = b;
                       change();
                   })),
            compare.body);
    },
    draw() {
        byId("compare-a").textContent = `A: ${headOfRun(state.head)}`;
        const key = [state.head, compare.b, version, dark].join();
        if (key === compare.key || !thisData() ||
            (compare.b !== "modified" && !headData(+compare.b)))
            return;
        compare.key = key;
        compareAll();
    },
    figure: () => compare.js && plotFigure(divergencePlot()),
};
const divergencePlot = () => ({
    name: "Divergence of each query",
    values: compare.js,
    labels: r => `${queryText(compare.places[r])} (${compare.places[r]})`,
    what: "Query",
    unit: "nats"
});

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
            const map = picture(
                {
                    head: state.head,
                    rows: [0, side],
                    cols: [0, N],
                    size: [side, min(N, 512)],
                    plain: compare.b === "modified"
                },
                "difference", () => {}, difference,
                p => shades[round(127.5 + 127.5 * p / (most || 1))] ?? GREY_PIXEL);
            showCompared(
                map, most,
                changes.sort((x, y) => y[0] - x[0] || x[1] - y[1] || x[2] - y[2]).slice(0, 12));
        });
}

function showCompared(map, most, changes) {
    const mean = compare.js.reduce((a, b) => a + b, 0) / compare.js.length;
    map.setAttribute("role", "img");
    map.setAttribute("aria-label", "Map of differences; the largest are in the table below");
    map.className = "difference";
    map.style.aspectRatio = clamp(N / M, 1 / 3, 3);
    hear(map, "pointermove", event => {
        const box = boxOf(map),
              i = clamp(floor((event.clientY - box.top) / box.height * M), 0, M - 1),
              j = clamp(floor((event.clientX - box.left) / box.width * N), 0, N - 1);
        const a = rowA(i)[j], b = rowB(i)[j];
        tip(event,
            `${queryText(i)} → ${tokenText(j)}\n` +
                (isFiltered(i, j) ?
                     "not shown" :
                     `A ${weightText(a)}, B ${weightText(b)}\nB − A ${fixed(b - a, 3)}`));
    });
    hear(map, "pointerleave", event => tip(event, ""));
    const same = compare.b === "modified" && !isModified() ?
        el("p", {class: "badge"},
           "Nothing that changes a weight is asked in What if, so both are the same.") :
        compare.b === "modified" ? "" :
                                   unasked("A and B are both under What if.");
    put(compare.body, same,
        el("figure", {}, map,
           el("figcaption", {},
              `B − A: orange where B is larger, blue where A is, from −${weightText(most)} to ${
                  weightText(most)}. Rows queries, columns keys${
                  N > 512 ? "; a pixel is the largest difference of its keys" : ""}.`)),
        el("h3", {}, "Largest differences"),
        table(
            "Largest differences", ["Query", "Key", "A", "B", "B − A", "Select"],
            changes.map(
                ([, i, j, a, b]) =>
                    [named(queryText, i), named(tokenText, j), weightText(a), weightText(b),
                     fixed(b - a, 3), button("select", () => change({query: i, key: j}))])),
        plot1({
            ...divergencePlot(),
            text:
                `Jensen–Shannon divergence of the query's two rows, 0 (same) to ln 2 = 0.693; mean ${
                    fixed(mean, 4)}` +
                (compare.js.length < M ? ` over ${compare.js.length} queries, evenly spread.` : ".")
        }));
}
