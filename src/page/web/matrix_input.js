/* Hands on the matrix: mouse, fingers, and a table of the cells around the selection for those who read it. */
function cellAt(event) {
    const box = boxOf(matrix.canvas), x = event.clientX - box.left - plot.left,
          y = event.clientY - box.top - plot.top;
    const j = floor(place.x + x / place.z), i = floor(place.y + y / place.z);
    return {x, y, i, j, inside: x >= 0 && y >= 0 && i >= 0 && j >= 0 && i < M && j < N};
}

function hoverCell(event) {
    const {i, j, inside} = cellAt(event), weights = inside && row(state.head, i);
    tip(event,
        weights ? `${queryText(i)} → ${tokenText(j)}\n${cellText(i, j, weights[j])}` +
                (isFiltered(i, j) ? "" : `  (${fixed(weights[j] * keysSeen(i), 2)} × uniform)`) +
                `\nquery ${i}, key ${j}` :
                  "");
}

const matrixHands = {
    at: cellAt,
    zoom,
    pan(dx, dy) {
        place.x -= dx / place.z;
        place.y -= dy / place.z;
        keepInside();
        change();
    },
    fit,
    hover: hoverCell,
    click(event) {
        const {i, j, inside} = cellAt(event);
        if (inside) change({query: i, key: j});
    },
    brushing: () => matrix.brushing,
    brush(from, to) {
        const a = cellAt(from), b = cellAt(to);
        const range = (a, b, n) => [clamp(min(a, b), 0, n - 1), clamp(max(a, b), 0, n - 1) + 1];
        matrix.brush = [...range(a.i, b.i, M), ...range(a.j, b.j, N)];
        change();
    },
    brushed: () => showBrushed()
};
function clearBrush() {
    matrix.brush = null;
    if (matrix.found) put(matrix.found), matrix.found.hidden = true;
    change();
}

/* The strongest pairs of the rectangle. */
function showBrushed() {
    const [i0, i1, j0, j1] = matrix.brush, step = LONG ? ceil((i1 - i0) / 512) : 1;
    let best = [];
    for (let i = i0; i < i1; i += step) {
        const weights = row(state.head, i);
        best.push(...largest(weights.subarray(j0, j1), 10).map(j => [weights[j0 + j], i, j0 + j]));
        best = best.sort((a, b) => b[0] - a[0] || a[1] - b[1] || a[2] - b[2]).slice(0, 10);
    }
    matrix.foundOf = [state.head, version].join();
    const title = `Strongest pairs of queries ${i0} to ${i1 - 1} and keys ${j0} to ${j1 - 1}` +
        (step > 1 ? `, of every ${step}th query` : "");
    matrix.found.hidden = false;
    put(matrix.found, button("Close", clearBrush, {class: "close", title: "Esc"}),
        el("h3", {}, title),
        table(
            title, ["Query", "Key", "Weight", "Select"],
            best.map(
                ([p, i, j]) =>
                    [named(queryText, i), named(tokenText, j), weightText(p),
                     button("select", () => change({query: i, key: j}))])));
    change();
}

/* An ARIA grid of the cells around the selection: arrows move the selection and the focus with it. */
function drawCellTable() {
    if (!matrix.table.open || !thisData()) return;
    const nearby = (x, all) => {
        const n = min(all, 9), from = clamp(x - 4, 0, all - n);
        return listOf(n, k => from + k);
    };
    const focused = hasFocus(matrix.table) && document.activeElement.tagName === "TD";
    const is = nearby(state.query, M), js = nearby(state.key, N);
    const cellOf = (i, j) => {
        const on = i === state.query && j === state.key;
        return el(
            "td", {
                role: "gridcell",
                tabindex: on ? 0 : -1,
                "aria-selected": on,
                onclick: () => change({query: i, key: j})
            },
            cellText(i, j, row(state.head, i)[j]));
    };
    const line = i =>
        el("tr", {}, el("th", {scope: "row"}, bdi(queryText(i))), ...js.map(j => cellOf(i, j)));
    const grid =
        el("table", {role: "grid", label: "Weights around the selection"},
           el("thead", {},
              el("tr", {}, el("th", {scope: "col"}, "query \\ key"),
                 ...js.map(j => el("th", {scope: "col"}, bdi(tokenText(j)))))),
           el("tbody", {}, ...is.map(line)));
    matrix.table.querySelector(".scroll")?.remove();
    matrix.table.append(el("div", {class: "scroll"}, grid));
    if (focused) grid.querySelector('[tabindex="0"]').focus();
}
