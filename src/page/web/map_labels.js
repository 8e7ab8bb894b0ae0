/* What lies over the points of the map: names where there is room, and a corner that says which part is seen. */
/* Names beside points, the selected ones first; none over another name or a selected point. */
function mapLabels(figure, points, shown, at, rem) {
    const {claim, take} = claims(), {width, height} = plane, LABELS = 160;
    const dots = list => list.forEach(p => {
        const [x, y] = at(p);
        take([x - 4, y - 4, x + 4, y + 4]);
    });
    dots([...shown]);
    if (plane.z > 1) take([width - MINIMAP - 22, height - MINIMAP - 22, width, height]);
    let made = 0;
    for (const p of [...shown, -1, ...points.filter(p => !shown.has(p))]) {
        if (made >= LABELS) break;
        if (p < 0) {  // names of what is not selected cover no point
            dots(points);
            continue;
        }
        const [x, y] = at(p), chosen = shown.has(p), size = chosen ? 14 : 12,
                  text = cut(p < M ? queryText(p) : tokenText(p - M), 18),
                  w = textWidth(text, size, chosen ? 650 : 400), h = size * rem * 1.2,
                  far = 10 * rem;
        const sides = [
            [x + far, y], [x - far - w, y], [x - w / 2, y - far - h / 2],
            [x - w / 2, y + far + h / 2], [x + far, y - h], [x + far, y + h], [x - far - w, y - h],
            [x - far - w, y + h]
        ];
        const side = sides.slice(0, chosen ? 8 : 4)
                         .find(
                             ([left, middle]) => left > 0 && left + w < width && middle > h / 2 &&
                                 middle < height - h / 2 &&
                                 claim([left, middle - h / 2, left + w, middle + h / 2]));
        if (!side) continue;
        made++;
        figure.append(
            svg("text", {
                x: side[0],
                y: side[1] + size * rem * 0.35,
                size: size * rem,
                "font-weight": chosen ? 650 : 400,
                fill: css(chosen ? "strong" : "faint"),
                "pointer-events": "none"
            },
                text));
    }
}

/* Where the part that is seen lies: all points small, and a frame. */
function mapCorner(points, xy, reach, across, up) {
    const unit = MINIMAP / max(across, up), left = plane.width - across * unit - 14,
          top = plane.height - up * unit - 14, box = svg("g", {"aria-hidden": "true"});
    const frame = {fill: css("raised"), stroke: css("edge")};
    box.append(
        svg("rect",
            {x: left - 4, y: top - 4, width: across * unit + 8, height: up * unit + 8, ...frame}));
    for (const p of mapPoints().filter((_, at) => at % ceil((M + N) / EVERY / 200) === 0))
        box.append(svg("circle", {
            cx: left + xy[2 * p] / reach * unit,
            cy: top + (up - xy[2 * p + 1] / reach) * unit,
            r: 1,
            fill: css("faint")
        }));
    const w = plane.width / plane.unit / plane.z * unit,
          h = plane.height / plane.unit / plane.z * unit,
          x0 = left + (across / 2 + plane.x - 0.5) * unit - w / 2,
          y0 = top + (up / 2 + plane.y - 0.5) * unit - h / 2,
          x1 = clamp(x0, left - 3, left + across * unit), y1 = clamp(y0, top - 3, top + up * unit);
    box.append(svg("rect", {
        x: x1,
        y: y1,
        width: max(3, min(x0 + w, left + across * unit + 3) - x1),
        height: max(3, min(y0 + h, top + up * unit + 3) - y1),
        fill: "none",
        stroke: css("accent"),
        "stroke-width": 2
    }));
    return box;
}
