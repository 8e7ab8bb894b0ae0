/* A plot of numbers over places: bars or a line, an axis with round numbers, the numbers as a table. */
function roundUp(x) {
    const unit = 10 ** floor(Math.log10(x || 1));
    return [1, 2, 5, 10].map(m => m * unit).find(top => top >= x * 0.999);
}

/* values [n]; more than the width has pixels are drawn as the largest of each pixel. */
function plotFigure({name, values, labels, unit = "", from = 0, mark = -1}) {
    const width = clamp(panelWidth() - 60, 300, 900), height = 150, left = 46, n = values.length,
          bars = min(n, floor((width - left) / 3));
    const top = roundUp(max(1e-9, ...listOf(n, i => values[i] || 0))),
          figure = drawing(width, height + 22, name + "; the numbers are in the table below");
    for (const part of [0, 0.5, 1]) {
        const y = height - part * (height - 12);
        figure.append(
            svg("line", {x1: left, x2: width, y1: y, y2: y, stroke: css("line")}),
            written(+(part * top).toPrecision(3), left - 6, y + 4, {size: 11, anchor: "end"}));
    }
    for (let b = 0; b < bars; b++) {
        const first = floor(b * n / bars), end = max(first + 1, floor((b + 1) * n / bars));
        let at = first;
        for (let i = first; i < end; i++)
            if (values[i] > values[at]) at = i;
        const x = left + b * (width - left) / bars, tall = (values[at] || 0) / top * (height - 12),
              on = mark >= first && mark < end;
        figure.append(
            svg("rect", {
                x: x.toFixed(1),
                y: (height - tall).toFixed(1),
                width: max(1, (width - left) / bars - 1).toFixed(1),
                height: max(0, tall).toFixed(1),
                fill: css(on ? "strong" : "accent")
            },
                svg("title", {}, `${labels(at)}: ${fixed(values[at], 3)} ${unit}`)));
    }
    const middle = floor((n - 1) / 2);
    for (const [i, anchor] of [[0, "start"], [middle, "middle"], [n - 1, "end"]])
        figure.append(written(
            from + i, left + (i + 0.5) * (width - left) / n, height + 16, {size: 11, anchor}));
    return figure;
}

function plot1(parts) {
    const lines = () => listOf(
        min(2000, parts.values.length), i => [bdi(parts.labels(i)), fixed(parts.values[i], 4)]);
    return el(
        "figure", {}, el("h3", {}, parts.name), plotFigure(parts), el("figcaption", {}, parts.text),
        asTable(parts.name, [parts.what, parts.unit || "value"], lines));
}
