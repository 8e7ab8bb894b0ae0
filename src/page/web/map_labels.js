/* What lies over the points of the map: names where there is room, and a corner that says which part is seen. */
/*
 * Names beside points, the selected ones first; none over another name or a selected point. Only those of selected
 * points cover others, where there is no room beside them.
 */
function mapLabels(figure, points, shown, at, rem) {
    const names = claims(), dots = claims(), {width, height} = plane, far = 11 * rem;
    for (const p of points) {
        const [x, y] = at(p), r = (isSelected(p) ? 9 : 6) * rem,
                  box = [x - r, y - 1.2 * r, x + r, y + r];
        dots.take(box);
        if (shown.has(p)) names.take(box);
    }
    if (plane.z > 1) names.take([width - MINIMAP - 22, height - MINIMAP - 22, width, height]);
    let room = 160;
    for (const p of [...shown, ...points.filter(p => !shown.has(p))]) {
        if (!room) break;
        const [x, y] = at(p), chosen = shown.has(p), size = chosen ? 14 : 12,
                  text = cut(p < M ? queryText(p) : tokenText(p - M), 18),
                  w = textWidth(text, size, chosen ? 650 : 400), h = size * rem * 1.2;
        const boxes =
            [
                [x + far, y], [x - far - w, y], [x - w / 2, y - far - h / 2],
                [x - w / 2, y + far + h / 2], [x + far, y - h], [x + far, y + h],
                [x - far - w, y - h], [x - far - w, y + h]
            ].slice(0, chosen ? 8 : 4)
                .map(([left, middle]) => [left, middle - h / 2, left + w, middle + h / 2])
                .filter(box => box[0] > 0 && box[2] < width && box[1] > 0 && box[3] < height)
                .filter(names.free);
        const box = boxes.find(dots.free) || (chosen && boxes[0]);
        if (!box) continue;
        room--;
        names.take(box);
        figure.append(
            svg("text", {
                x: box[0],
                y: box[1] + h / 2 + size * rem * 0.35,
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
