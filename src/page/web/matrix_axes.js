/* What is drawn around and over the cells: numbers, the cross of the selection, tokens, axes, the minimap. */
function paintCells(context) {
    const {rows: r, cols: c} = seen();
    const gap = css("page");
    context.fillStyle = gap;
    for (let j = c[0]; j <= c[1]; j++) context.fillRect(atX(j) - 0.5, plot.top, 1, plot.height);
    for (let i = r[0]; i <= r[1]; i++) context.fillRect(plot.left, atY(i) - 0.5, plot.width, 1);
    if (place.z < 32 || !thisData()) return;
    context.font = `${min(22 * em(), place.z / 3)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let i = r[0]; i < r[1]; i++) {
        const weights = row(state.head, i), m = keysSeen(i), top = topOf(state.head);
        for (let j = c[0]; j < c[1]; j++) {
            if (weights[j] < 0.005) continue;
            context.fillStyle = inkOn(colorOf(weights[j], m, top));
            context.fillText(fixed(weights[j], 2), atX(j + 0.5), atY(i + 0.5) + 0.5);
        }
    }
}

function paintMarks(context) {
    const side = max(place.z, 3), z = max(place.z, 1);
    context.strokeStyle = css("accent");
    context.lineWidth = 1;
    context.globalAlpha = 0.75;
    const width = min(plot.width, N * place.z), height = min(plot.height, M * place.z);
    context.strokeRect(plot.left - 2, atY(state.query), width + 4, z);
    context.strokeRect(atX(state.key), plot.top - 2, z, height + 4);
    context.globalAlpha = 1;
    context.lineWidth = 2.5;
    context.strokeRect(atX(state.key) - 1, atY(state.query) - 1, side + 2, side + 2);
    if (!matrix.brush) return;
    const [i0, i1, j0, j1] = matrix.brush;
    context.setLineDash([5, 4]);
    context.strokeRect(atX(j0), atY(i0), (j1 - j0) * place.z, (i1 - i0) * place.z);
    context.setLineDash([]);
}

/* Tokens where there is room for them, else places. */
function axisMarks([from, to], name = tokenText) {
    if (namesFit()) return listOf(to - from, k => [from + k, name(from + k)]);
    const steps = [5, 50, 500, 5000, 50000].flatMap(x => [x, 2 * x, 4 * x]),
          step = steps.find(x => x * place.z >= 52 * em()) || 500000;
    return listOf(
               floor((to - 1) / step) - ceil(from / step) + 1, k => (ceil(from / step) + k) * step)
        .map(i => [i, String(i)]);
}

/* The labels around the cells, none over another. Those of keys are turned: two of them are as far from each other
 * as the sine of the turn says. */
function axisLabels(r, c) {
    const size = min(LABEL, max(10, place.z * 0.8 / em())), half = size * em() / 2, made = [];
    const one = ([i, name], chosen, isKey, {claim}) => {
        const at = isKey ? atX(i + 0.5) : atY(i + 0.5), low = isKey ? plot.left : plot.top,
              room = isKey ? plot.width : plot.height, across = at * (isKey ? sin(TURN) : 1);
        if (at < low - 1 || at > low + room + 1 || !claim([0, across - half, 1, across + half]))
            return;
        const text = cutTo(name, isKey ? plot.names : plot.labels, size),
              width = textWidth(text, size, chosen ? 700 : 400);
        made.push({text, size, chosen, isKey, at, width});
    };
    const all = (marks, now, isKey) => {
        const side = claims(), chosen = marks.find(([i]) => i === now);
        if (chosen) one(chosen, true, isKey, side);
        for (const mark of marks)
            if (mark !== chosen) one(mark, false, isKey, side);
    };
    all(axisMarks(r, queryText), state.query, false);
    all(axisMarks(c), state.key, true);
    return made;
}
function paintAxes(context) {
    const {rows: r, cols: c} = seen(), ink = css("ink"), accent = css("accent"), rem = em();
    matrix.labels = axisLabels(r, c);
    for (const {text, size, chosen, isKey, at} of matrix.labels) {
        context.save();
        context.translate(isKey ? at : plot.left - 8, isKey ? plot.top - 7 : at);
        context.rotate(isKey ? -TURN : 0);
        context.fillStyle = chosen ? accent : ink;
        context.font = font(size, chosen ? 700 : 400);
        context.textAlign = isKey ? "left" : "right";
        context.textBaseline = "middle";
        context.fillText(text, 0, 0);
        context.restore();
    }
    Object.assign(
        context,
        {fillStyle: css("faint"), font: font(12), textAlign: "left", textBaseline: "alphabetic"});
    const words = plot.left < textWidth("key is looked at →", 12) ?
        ["key →", "query ↓"] :
        ["key is looked at →", "query looks ↓"];
    words.forEach((text, line) => context.fillText(text, 0, (14 + 17 * line) * rem));
    if (isPart()) paintMinimap(context, r, c);
}

const MINIMAP = 96;
function paintMinimap(context, r, c) {
    const unit = MINIMAP / max(M, N), width = max(3, N * unit), height = max(3, M * unit),
          x = plot.left + min(plot.width, N * place.z) - width - 6,
          y = plot.top + min(plot.height, M * place.z) - height - 6;
    context.fillStyle = css("raised");
    context.fillRect(x - 3, y - 3, width + 6, height + 6);
    const thumb = byId("grid").querySelector('[aria-pressed="true"] canvas');
    context.imageSmoothingEnabled = false;
    if (thumb && !isAsked()) context.drawImage(thumb, x, y, width, height);
    context.strokeStyle = css("edge");
    context.lineWidth = 1;
    context.strokeRect(x - 3, y - 3, width + 6, height + 6);
    context.strokeStyle = css("accent");
    context.lineWidth = 2;
    context.strokeRect(
        x + c[0] * unit, y + r[0] * unit, max(3, (c[1] - c[0]) * unit),
        max(3, (r[1] - r[0]) * unit));
}

/* The same with true text, for files: up to 4,096 cells with their weights. */
function matrixFigure() {
    const {rows: r, cols: c} = seen();
    const z = max(place.z, 1e-6),
          width = plot.left + (c[1] - c[0]) * z + plot.names * cos(TURN) + 12,
          height = plot.top + (r[1] - r[0]) * z + 12, names = axisLabels(r, c);
    const figure = sheet(width, height);
    const cells = (r[1] - r[0]) * (c[1] - c[0]);
    if (cells > 4096)
        figure.append(
            cellsOf(matrix.now.canvas, plot.left, plot.top, (c[1] - c[0]) * z, (r[1] - r[0]) * z));
    for (let i = r[0]; cells <= 4096 && i < r[1]; i++) {
        const weights = row(state.head, i), isHidden = hiding(thisData(), [i, i + 1]);
        for (let j = c[0]; j < c[1]; j++) {
            if (isHidden(j, j + 1)) continue;
            const rgb = colorOf(weights[j], keysSeen(i), topOf(state.head)),
                  x = plot.left + (j - c[0]) * z, y = plot.top + (i - r[0]) * z;
            figure.append(svg(
                "rect", {x, y, width: z - 1, height: z - 1, fill: text(rgb)},
                svg("title", {}, `${queryText(i)} → ${tokenText(j)} ${weightText(weights[j])}`)));
            if (z >= 32 && weights[j] >= 0.005)
                figure.append(svg(
                    "text",
                    {x: x + z / 2, y: y + z / 2 + 4, anchor: "middle", size: 11, fill: inkOn(rgb)},
                    fixed(weights[j], 2)));
        }
    }
    const x = plot.left - 8, right = (place.x - c[0]) * z + 4, down = (place.y - r[0]) * z;
    for (const {text: name, size, isKey, at} of names) {
        const where = isKey ? {transform: `translate(${at + right} ${plot.top - 8}) rotate(-56)`} :
                              {x, y: at + down + size * em() / 3, anchor: "end"};
        figure.append(svg("text", {...where, size: size * em(), fill: css("ink")}, name));
    }
    return figure;
}
