/* What is drawn around and over the cells: numbers, the cross of the selection, tokens, axes, the minimap. */
function paintCells(context) {
    const {rows: r, cols: c} = seen();
    const gap = css("page");
    context.fillStyle = gap;
    for (let j = c[0]; j <= c[1]; j++) context.fillRect(atX(j) - 0.5, plot.top, 1, plot.height);
    for (let i = r[0]; i <= r[1]; i++) context.fillRect(plot.left, atY(i) - 0.5, plot.width, 1);
    if (place.z < 32 || !thisData()) return;
    context.font = `${min(13, place.z / 3)}px system-ui, sans-serif`;
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
    if (place.z >= 11) return listOf(to - from, k => [from + k, name(from + k)]);
    const steps = [5, 50, 500, 5000, 50000].flatMap(x => [x, 2 * x, 4 * x]),
          step = steps.find(x => x * place.z >= 52) || 500000;
    return listOf(
               floor((to - 1) / step) - ceil(from / step) + 1, k => (ceil(from / step) + k) * step)
        .map(i => [i, String(i)]);
}
function paintAxes(context) {
    const {rows: r, cols: c} = seen(), room = plot.left > 100 ? 15 : 7, ink = css("ink"),
                          accent = css("accent");
    const font = weight => `${weight} ${min(13, max(10, place.z * 0.8))}px system-ui, sans-serif`;
    const label = (name, chosen, x, y, align, turn) => {
        context.save();
        context.translate(x, y);
        context.rotate(turn);
        context.fillStyle = chosen ? accent : ink;
        context.font = font(chosen ? 700 : 400);
        context.textAlign = align;
        context.textBaseline = "middle";
        context.fillText(cut(name, turn ? 11 : room), 0, 0);
        context.restore();
    };
    const inside = (at, low, size) => at >= low - 1 && at <= low + size + 1;
    for (const [i, name] of axisMarks(r, queryText))
        if (inside(atY(i + 0.5), plot.top, plot.height))
            label(name, i === state.query, plot.left - 8, atY(i + 0.5), "right", 0);
    for (const [j, name] of axisMarks(c))
        if (inside(atX(j + 0.5), plot.left, plot.width))
            label(name, j === state.key, atX(j + 0.5), plot.top - 8, "left", -Math.PI / 3.2);
    context.fillStyle = css("faint");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "left";
    context.fillText("key is looked at →", 0, 14);
    context.fillText("query looks ↓", 0, 32);
    if (place.z > fitZoom() * 1.02) paintMinimap(context, r, c);
}

function paintMinimap(context, r, c) {
    const unit = 84 / max(M, N), width = max(3, N * unit), height = max(3, M * unit),
          x = plot.left + plot.width - width - 6, y = plot.top + plot.height - height - 6;
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

/* The same with true text, for files: up to 4,096 cells as rectangles, more as an image. */
function matrixFigure() {
    const {rows: r, cols: c} = seen(), z = max(place.z, 1e-6),
                          width = plot.left + (c[1] - c[0]) * z + 12,
                          height = plot.top + (r[1] - r[0]) * z + 12;
    const figure = svg(
        "svg",
        {viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "system-ui, sans-serif"});
    const cells = (r[1] - r[0]) * (c[1] - c[0]);
    if (cells > 4096)
        figure.append(svg("image", {
            x: plot.left,
            y: plot.top,
            width: (c[1] - c[0]) * z,
            height: (r[1] - r[0]) * z,
            href: matrix.now.canvas.toDataURL(),
            preserveAspectRatio: "none",
            style: "image-rendering:pixelated"
        }));
    for (let i = r[0]; cells <= 4096 && i < r[1]; i++) {
        const weights = row(state.head, i);
        for (let j = c[0]; j < c[1]; j++) {
            if (isHidden(thisData(), [i, i + 1], j, j + 1)) continue;
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
    const ink = css("ink");
    for (const [i, name] of axisMarks(r, queryText))
        figure.append(
            svg("text", {
                x: plot.left - 8,
                y: plot.top + (i - r[0] + 0.5) * z + 4,
                anchor: "end",
                size: 12,
                fill: ink
            },
                cut(name, 15)));
    for (const [j, name] of axisMarks(c))
        figure.append(
            svg("text", {
                transform: `translate(${plot.left + (j - c[0] + 0.5) * z + 4} ${
                    plot.top - 8}) rotate(-56)`,
                size: 12,
                fill: ink
            },
                cut(name, 11)));
    return figure;
}
