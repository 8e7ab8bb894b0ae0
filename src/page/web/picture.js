/*
 * Weights of a rectangle of cells as an image of at most R x C pixels. A pixel is the largest weight of its
 * tile, or the mass: the mean over its queries of the sum over its keys. In LONG texts a
 * pixel's row is one query, the one in the middle of its band; or, where the file has the largest weights of
 * tiles that are not much larger than pixels, those of all of them.
 */
const peakTile = () => thisHead().peaks && !isAsked() ? thisHead().peak_tile : Infinity;
function peakRow(head, [a], [first, end], {n}, out) {
    const tile = peakTile(), {peak_side} = HEADS[head];
    if (peakRow.head !== head) peakRow.map = bytesOf(HEADS[peakRow.head = head].peaks);
    for (let c = 0; c < n; c++)
        out[c] = levels[peakRow.map
                            [floor(a / tile) * peak_side +
                             floor((first + c * (end - first) / n) / tile)]];
    return a;
}

function pictureRow(head, band, range, columns, out) {
    const [a, b] = band, [first, end] = range, mass = columns.mass;
    const from = LONG ? a + b - 1 >> 1 : a, to = LONG ? from + 1 : b;
    out.fill(0);
    for (let i = from; i < to; i++) {
        let weights = isAsked() ? null : rows.get(head * M + i + 0.25);
        if (!weights && LONG && !isAsked())
            weights =
                modelRow(headData(head), i, pictureRow.scratch ||= new Float32Array(N), first, end);
        weights ||= row(head, i);
        for (let j = first; j < end; j++) {
            const at = floor((j - first) * columns.n / (end - first)), p = weights[j];
            if (mass)
                out[at] += p / (to - from);
            else if (!(p <= out[at]))
                out[at] = p;
        }
    }
    return from;
}

/* The pixels of a canvas as a drawing, sharp at any size: a path for each colour; of more than `most` an image. */
const CELLS = 65536;
function cellsOf(canvas, x, y, width, height, most = CELLS) {
    const {width: C, height: R} = canvas, paths = {};
    if (R * C > most)
        return svg("image", {
            ...{x, y, width, height},
            href: canvas.toDataURL(),
            preserveAspectRatio: "none",
            "image-rendering": "pixelated"
        });
    const {data} = canvas.getContext("2d").getImageData(0, 0, C, R),
          words = new Uint32Array(data.buffer);
    for (let at = 0, end; at < R * C; at = end) {
        for (end = at + 1; end % C && words[end] === words[at];) end++;
        if (words[at])  // else nothing is there
            (paths[words[at]] ||= [])
                .push(`M${at % C} ${floor(at / C)}h${end - at}v1h${at - end}z`);
    }
    return svg(
        "g", {
            transform: `translate(${x} ${y}) scale(${width / C} ${height / R})`,
            "shape-rendering": "crispEdges"
        },
        ...Object.entries(paths).map(
            ([word, d]) =>
                svg("path",
                    {fill: text([word & 255, word >> 8 & 255, word >> 16 & 255]), d: d.join("")})));
}

/* picture({ head, rows: [r0, r1], cols: [c0, c1], size: [R, C], mass, plain }, name, painted): a canvas that fills by and
 * by. plain: cells that only What if hides are drawn, too. */
function picture(wanted, name, painted, step = pictureRow, pixel = pixelOfWeight) {
    const {head, rows: [r0, r1], cols, size: [R, C], mass, plain} = wanted;
    const canvas = el("canvas", {width: C, height: R}), context = canvas.getContext("2d"),
          image = context.createImageData(C, R), top = mass ? 1 : topOf(head);
    const data = headData(head), out = new Float32Array(C),
          made = new Uint32Array(image.data.buffer), band = r => floor(r0 + r * (r1 - r0) / R),
          keys = listOf(C + 1, c => ceil(cols[0] + c * (cols[1] - cols[0]) / C));
    inSlices(
        name, R,
        r => {
            const queries = [band(r), max(band(r) + 1, band(r + 1))],
                  i = step(head, queries, cols, {n: C, mass}, out), m = keysSeen(i),
                  isHidden = hiding(data, queries, plain);
            for (let c = 0; c < C; c++)
                if (!isHidden(keys[c], max(keys[c] + 1, keys[c + 1])))
                    made[r * C + c] = pixel(out[c], m, top);
        },
        done => {
            context.putImageData(image, 0, 0);
            painted(done, canvas);
        });
    return canvas;
}
