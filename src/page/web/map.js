/*
 * View 4: queries (discs) and keys (triangles) of the head in the plane, as the file has them: near each other is
 * what t-SNE or PCA put there. Lines lead from the query to its strongest keys. Of long texts some tokens are shown.
 */
const EVERY = ceil((M + N) / 3000);
const plane = {
    kind: "map",
    color: "place"
};

/* Classes of tokens, and segments: colours with a contrast of 3 to the page, told apart by everybody. */
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
    const {groups, ends} = colorings[plane.color], norms = allNorms(),
                   said = ends || [fixed(norms.low, 2), fixed(norms.high, 2)];
    if (groups)
        return el("span", {class: "legend"}, ...groups.flatMap((name, group) => {
            const mark = el("i", {class: "swatch"});
            mark.style.background = swatches[+dark][group];
            return [mark, name];
        }));
    const bar = el("canvas", {width: 160, height: 1, role: "img", label: "colour scale"}),
          context = bar.getContext("2d");
    for (let x = 0; x < 160; x++) {
        context.fillStyle = rampAt(x * 255 / 159);
        context.fillRect(x, 0, 1, 1);
    }
    return el("span", {class: "legend"}, said[0], bar, said[1]);
}

tabs.map = {
    name: "Map",
    show(panel) {
        plane.body = el("figure");
        const set = what => value => {
            plane[what] = value;
            change();
        };
        panel.append(
            el("div", {class: "tools"},
               select("Places by", [["map", "t-SNE"], ["pca", "PCA"]], plane.kind, set("kind")),
               select(
                   "Colour by",
                   Object.entries(colorings)
                       .filter(([, {absent}]) => !absent)
                       .map(([key, {name}]) => [key, name]),
                   plane.color, set("color")),
               plane.legend = el("span")),
            plane.body);
    },
    draw() {
        const figure = mapFigure(), {map, map_note} = thisHead();
        put(plane.legend, map ? mapLegend() : "");
        refill(
            plane.body, figure || "",
            el("figcaption", {},
               map ?
                   this.says() :
                   map_note || "The file has no map of this head: `qkv map --head L.H` makes one."),
            map ? asTable("Places", ["Point", "x", "y"], () => {
                const xy = mapPlaces();
                return listOf(
                    min(M + N, 4000),
                    p =>
                        [pointName(p), fixed(xy[2 * p] / 65535, 3),
                         fixed(xy[2 * p + 1] / 65535, 3)]);
            }) : "");
    },
    figure: () => mapFigure(),
    says: () => "● query, ▲ key" + (EVERY > 1 ? `, one token of ${EVERY}` : "") +
        `, coloured by ${colorings[plane.color].name}` +
        ". Lines lead from the query to its five strongest keys, as wide as their weights. " +
        (plane.kind === "pca" ? "The two principal components of queries and keys together." :
                                (thisHead().map_note || "t-SNE") +
                 ". Recall: share of queries whose nearest key here has the largest q·k; correlation of distance and q·k. Distances between far groups mean little. "),
};
const pointName = p =>
    p < M ? `query ${queryText(p)} (${p})` : `key ${tokenText(p - M)} (${p - M})`;
const mapPlaces = () => new Uint16Array(bytesOf(thisHead()[plane.kind]).buffer);

function mapFigure() {
    if (!thisHead().map) return null;
    const xy = mapPlaces(), width = clamp(panelWidth() - 50, 280, 900), height = width * 0.62;
    const reach = axis =>
              xy.reduce((most, place, at) => at % 2 === axis ? max(most, place) : most, 1),
          across = reach(0), up = reach(1), unit = min((width - 120) / across, (height - 50) / up);
    const x = p => width / 2 - 20 + (xy[2 * p] - across / 2) * unit,
          y = p => height / 2 - (xy[2 * p + 1] - up / 2) * unit;
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
    for (let p = 0; p < M + N; p++) {
        const key = p >= M, i = key ? p - M : p, on = key ? i === state.key : i === state.query,
              size = on ? 8 : 5, name = pointName(p), token = key ? tokenText(i) : queryText(i);
        if (i % EVERY && !shown.has(p)) continue;
        const fill = pointColor(p);
        const shape = {
            fill,
            stroke: css(on ? "strong" : "page"),
            "stroke-width": on ? 2 : 1,
            cursor: "pointer",
            role: "button",
            tabindex: on ? 0 : -1,
            "data-place": p,
            "aria-pressed": on,
            label: name,
            opacity: key && isGone(i) ? 0.35 : null
        };
        const point = key ?
            svg("path",
                {...shape, d: `M${x(p)} ${y(p) - size}l${size} ${1.8 * size}h${- 2 * size}z`}) :
            svg("circle", {...shape, cx: x(p), cy: y(p), r: size});
        const pick = () => change(key ? {key: i} : {query: i});
        pickable(point, pick);
        hear(
            point, "pointermove",
            event => tip(
                event,
                name + (key && weights ? `\nweight ${cellText(state.query, i, weights[i])}` : "")));
        hear(point, "pointerleave", event => tip(event, ""));
        figure.append(point);
        if (shown.has(p) || (M + N <= 32 && width > 500))
            figure.append(
                svg("text", {
                    x: x(p) + size + 4,
                    y: y(p) + 5,
                    size: 13,
                    "font-weight": shown.has(p) ? 650 : 400,
                    fill: css(shown.has(p) ? "strong" : "faint"),
                    "pointer-events": "none"
                },
                    cut(token, 14)));
    }
    return figure;
}
