/*
 * View 4: queries (discs) and keys (triangles) of the head in the plane, as the file has them: near each other is
 * what t-SNE or PCA put there. Lines lead from the query to its strongest keys. Of long texts some tokens are shown.
 */
const plane = {
    kind: "map",
    color: "place",
    z: 1,  // 1: all of it; (x, y) of 0 … 1 is in the middle
    x: 0.5,
    y: 0.5
};

/* Classes of tokens, and segments: colours with a contrast of 3 to the page, told apart by colour-blind readers. */
const swatches =
    [["#0072b2", "#c04f00", "#00805c", "#8a3b8f"], ["#56b4e9", "#f5b041", "#2fc48d", "#e3a6ea"]];
const classNames = ["word", "punctuation", "piece of a word", "special"];
function classOf({tokens, special}, i) {
    if (special?.[i]) return 3;
    if (/^[\p{P}\p{S}]+$/u.test(tokens[i])) return 1;
    return /^##./.test(tokens[i]) ? 2 : 0;
}
const normOf = (data, p) => {
    const from = p < M ? data.q : data.k, at = (p < M ? p : p - M) * D;
    return sqrt(dot(from, at, from, at));
};

/* For each way to colour: of a point a level 0 … 255 or a class, and what the legend says. */
const colorings = {
    place: {
        name: "place in the text",
        level: p => 255 * (p < M ? p / M : (p - M) / N),
        ends: ["first", "last"]
    },
    kind: {name: "query or key", group: p => +(p >= M), groups: ["query", "key"]},
    class: {
        name: "class of token",
        group: p => p < M ? classOf(asked, p) : classOf(manifest, p - M),
        groups: classNames
    },
    segment: {
        name: "segment",
        group: p => (p < M ? asked.segment?.[p] : manifest.segment?.[p - M]) || 0,
        groups: ["A", "B"],
        absent: !manifest.segment && !asked.segment
    },
    norm: {
        name: "norm |q|, |k|",
        level: (p, norms) => 255 * (norms[p] - norms.low) / (norms.high - norms.low || 1)
    }
};
/* Of the head that is shown. */
const normed = {};
function allNorms() {
    const data = thisData(), key = [state.head, !data].join();
    if (normed.key !== key) {
        const list = Float32Array.from({length: M + N}, (_, p) => data ? normOf(data, p) : 0);
        list.low = list.reduce((a, b) => min(a, b), Infinity);
        list.high = list.reduce((a, b) => max(a, b), 0);
        Object.assign(normed, {key, list});
    }
    return normed.list;
}
const rampAt = level => text(ramps[+dark][128 + floor(level * 127 / 255)]);
function pointColor(p) {
    const {level, group} = colorings[plane.color];
    return group ? swatches[+dark][group(p)] : rampAt(level(p, allNorms()));
}

function mapLegend() {
    const {groups, ends} = colorings[plane.color];
    const norms = allNorms(), said = ends || [fixed(norms.low, 2), fixed(norms.high, 2)];
    if (groups)
        return el("span", {class: "legend"}, ...groups.flatMap((name, group) => {
            const mark = el("i", {class: "swatch"});
            mark.style.background = swatches[+dark][group];
            return [mark, name];
        }));
    return scaleBar(said, rampAt);
}

const mapHands = {
    at(event) {
        const box = boxOf(plane.stage);
        return {x: event.clientX - box.left, y: event.clientY - box.top};
    },
    zoom(factor, x = plane.width / 2, y = plane.height / 2) {
        const before = plane.z;
        plane.z = clamp(plane.z * factor, 1, 200);
        const moved = (1 / before - 1 / plane.z) / plane.unit;
        plane.x += (x - plane.width / 2) * moved;
        plane.y += (y - plane.height / 2) * moved;
        mapHands.pan(0, 0);
    },
    pan(dx, dy) {
        const step = 1 / (plane.z * plane.unit), room = 0.5 - 0.5 / plane.z;
        plane.x = clamp(plane.x - dx * step, 0.5 - room, 0.5 + room);
        plane.y = clamp(plane.y - dy * step, 0.5 - room, 0.5 + room);
        change();
    },
    fit() {
        Object.assign(plane, {z: 1, x: 0.5, y: 0.5});
        change();
    },
    hover() {},
    click() {}
};

tabs.map = {
    name: "Map",
    canvas: true,
    show(panel) {
        plane.stage = el("div", {class: "stage map"});
        plane.note = el("figcaption");
        plane.table = el("div");
        panel.append(
            el("div", {class: "tools"}, ...zoomTools(mapHands),
               plane.kinds = select(
                   "Places by", [["map", "t-SNE"], ["pca", "PCA"]], plane.kind,
                   sets(plane, "kind")),
               select(
                   "Colour by",
                   Object.entries(colorings)
                       .filter(([, {absent}]) => !absent)
                       .map(([key, {name}]) => [key, name]),
                   plane.color, sets(plane, "color")),
               plane.legend = el("span")),
            plane.stage, below(plane.note, plane.table));
        listenToHands(plane.stage, mapHands);
        refit.observe(plane.stage);
    },
    draw() {
        plane.kinds.hidden = !thisHead().map;
        put(plane.legend, mapLegend());
        plane.note.textContent = this.says();
        const key = [state.head, mapKind()].join();
        if (plane.tableOf !== key || !plane.table.firstChild)
            put(plane.table, asTable("Places", ["Point", "x", "y"], () => {
                    const {xy, reach} = mapPlaces();
                    return mapPoints().slice(0, 4000).map(
                        p =>
                            [pointName(p), fixed(xy[2 * p] / reach, 3),
                             fixed(xy[2 * p + 1] / reach, 3)]);
                }));
        plane.tableOf = key;
        const {width, height} = boxOf(plane.stage);
        Object.assign(plane, {width, height});
        refit.size = sizeOf(plane.stage);
        refill(plane.stage, mapFigure() || "");
    },
    figure: () => mapFigure(true),
    says() {
        const {map, map_note} = thisHead(), pca = mapKind() === "pca";
        return "● query, ▲ key" + (EVERY > 1 ? `, one token of ${EVERY}` : "") +
            `, coloured by ${colorings[plane.color].name}` +
            ". Lines lead from the query to its five strongest keys, as wide as their weights. " +
            (pca ? "The two principal components of queries and keys together" +
                     (map           ? ". " :
                          EVERY > 1 ? ", of those that are shown, computed here. " :
                                      ", computed here. ") :
                   (map_note || "t-SNE") +
                     ". Recall: share of queries whose nearest key here has the largest q·k; correlation of distance and q·k. Distances between far groups mean little. ") +
            (map ? "" :
                   (map_note ||
                    "The file has no map of this head by t-SNE: `qkv map --head L.H` makes one.") +
                     " ");
    },
};
const pointName = p =>
    p < M ? `query ${queryText(p)} (${p})` : `key ${tokenText(p - M)} (${p - M})`;
const mapKind = () => thisHead().map ? plane.kind : "pca";

/* Places of the head's points, [queries and keys][2], from 0 to reach, the widest side. */
function mapPlaces() {
    if (thisHead().map)
        return {xy: new Uint16Array(bytesOf(thisHead()[plane.kind]).buffer), reach: 65535};
    if (plane.pcaOf !== state.head) plane.pca = principal(thisData());
    plane.pcaOf = state.head;
    return {xy: plane.pca, reach: 1};
}
/* Those that are drawn: of a long text one of EVERY, and what is selected. */
function mapPoints(more = new Set()) {
    return listOf(M + N, p => p).filter(p => (p < M ? p : p - M) % EVERY === 0 || more.has(p));
}

/* A drawing of width and height: the points, lines from the query, and such labels as have room. */
function mapFigure(alone) {
    if (!thisData()) return null;
    const {xy, reach} = mapPlaces(), {width, height} = plane, rem = em();
    const most = axis => {
        let far = 1e-9;
        for (let p = axis; p < xy.length; p += 2) far = max(far, xy[p]);
        return far / reach;
    };
    const across = most(0), up = most(1), pad = 28;
    plane.unit = min((width - 2 * pad) / across, (height - 2 * pad) / up);
    const unit = plane.unit * plane.z;
    const x = p => width / 2 + (xy[2 * p] / reach - across / 2 - (plane.x - 0.5)) * unit,
          y = p => height / 2 - (xy[2 * p + 1] / reach - up / 2 + (plane.y - 0.5)) * unit;
    const figure = drawing(width, height, "Map; the places are in the table below", "group");
    const weights = row(state.head, state.query), best = weights ? largest(weights, 5) : [],
          shown = new Set([state.query, ...best.map(j => M + j), M + state.key]);
    for (const j of best)
        figure.append(svg("line", {
            x1: x(state.query),
            y1: y(state.query),
            x2: x(M + j),
            y2: y(M + j),
            stroke: css("accent"),
            "stroke-width": (0.7 + 6 * weights[j]).toFixed(2),
            "stroke-opacity": 0.55
        }));
    const points = mapPoints(shown).filter(
        p => shown.has(p) || (x(p) > -9 && x(p) < width + 9 && y(p) > -9 && y(p) < height + 9));
    for (const p of points) figure.append(mapPoint(p, x(p), y(p), weights, alone));
    mapLabels(figure, points, shown, p => [x(p), y(p)], rem);
    if (plane.z > 1 && !alone) figure.append(mapCorner(points, xy, reach, across, up));
    return figure;
}

const isSelected = p => p === state.query || p === M + state.key;
function mapPoint(p, x, y, weights, alone) {
    const key = p >= M, i = key ? p - M : p, on = isSelected(p), size = (on ? 8 : 5) * em(),
          name = pointName(p);
    const shape = {
        fill: pointColor(p),
        stroke: css(on ? "strong" : "page"),
        "stroke-width": on ? 2 : 1,
        opacity: key && isGone(i) ? 0.35 : null,
        ...(alone ? {} : {
            cursor: "pointer",
            role: "button",
            tabindex: on ? 0 : -1,
            "data-place": p,
            "aria-pressed": on,
            label: name
        })
    };
    const point = key ?  // the middle of a triangle is a third above its base
        svg("path", {...shape, d: `M${x} ${y - 1.2 * size}l${size} ${1.8 * size}h${- 2 * size}z`}) :
        svg("circle", {...shape, cx: x, cy: y, r: size});
    if (alone) return point;
    pickable(point, () => change(key ? {key: i} : {query: i}));
    saysAt(
        point,
        () => name + (key && weights ? `\nweight ${cellText(state.query, i, weights[i])}` : ""));
    return point;
}
