/*
 * View 1: the text shaded by the weights from the query (or on it), and lines from queries to their
 * strongest keys: at most LINES in all, never n x n.
 */
const LINES = 200, BESIDE = 24, ROW = 30;
const tokensView = {
    lists: [],
    lines: null,
    perQuery: 5
};

tabs.tokens = {
    name: "Tokens",
    show(panel) {
        tokensView.lists = tokenLists(true);
        tokensView.lines = el("figure");
        panel.append(
            el("div", {class: "tools"}, CROSS ? null : shadeSelect(), scaleSelect(),
               hasWords() ? check(
                                "whole words", state.words, words => change({words}),
                                "w: keys of a word are summed, its queries averaged") :
                            null,
               select(
                   "Lines per query", [1, 2, 3, 5, 10].map(n => [String(n), String(n)]),
                   String(tokensView.perQuery), sets(tokensView, "perQuery", Number),
                   "to its strongest keys"),
               tokensView.over = el("span", {class: "over"})),
            el("figure", {}, ...tokensView.lists.map(list => list.box)),
            el("h3", {}, "Strongest keys of each query"), tokensView.lines);
    },
    draw() {
        const key = [state.head, state.others, dark, !thisData()].join();
        if (tokensView.over.dataset.key !== key) put(tokensView.over, ...overlayTools());
        tokensView.over.dataset.key = key;
        for (const list of tokensView.lists) list.shade();
        refill(
            tokensView.lines, linesFigure() || "",
            el("figcaption", {},
               "Left: queries, right: keys. A line's width is its weight; the selected query's lines are in colour. " +
                   (overlaidHeads().length ?
                        "Each head that is laid over has its colour and stroke. A bar below a token is its weight in that head, the whole width 1. " :
                        "") +
                   (max(M, N) > 2 * BESIDE ?
                        `Shown are ${
                            2 * BESIDE} tokens around the query, and its strongest keys. ` :
                        "") +
                   (isLinear() ? "The text above is shaded from 0 to its largest weight. " : "") +
                   (state.words ? "Keys of a word are summed, its queries averaged." : "")));
    },
    figure: () => linesFigure(),
};

const shadeSelect = () => select(
    "Shade by attention", [["", "from the query"], ["to", "to the selected token"]],
    state.to ? "to" : "", to => change({to: !!to}), "t");

const scaleSelect = () => select(
    "Scale", [["linear", "linear"], ["log", "log"], ["uniform", "times uniform"]], state.scale,
    scale => change({scale}), "l");

/* Weights of a unit of queries on each unit of keys that is shown. */
function unitWeights(unit, shown, head = state.head) {
    const mean = shown.map(() => 0);
    for (let i = unit.from; i < unit.to; i++) {
        const weights = row(head, i);
        if (!weights) return null;
        shown.forEach((key, at) => {
            for (let j = key.from; j < key.to; j++) mean[at] += weights[j] / (unit.to - unit.from);
        });
    }
    return mean;
}

/* Places of the units on either side: around the query, on the right its strongest keys as well. */
function linesPlaces() {
    const at = unitOf(queries()[0], asked), best = [
        queryRow() || [], ...overlaid(queries())
    ].flatMap(weights => largest(weights, 10).map(j => unitOf(j)));
    const around = (middle, {length}) => {
        const first = max(0, min(middle - BESIDE, length - 2 * BESIDE));
        return listOf(min(length, 2 * BESIDE), i => first + i);
    };
    const left = around(at, units(asked)), beside = CROSS ? around(best[0] || 0, units()) : left;
    return {at, left, right: [...new Set([...beside, ...best])].sort((a, b) => a - b)};
}

const curve = ([x1, x2], y1, y2) => {
    const middle = (x1 + x2) / 2;
    return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
};

/* Those of the query in each head that is laid over another, a little beside each other. */
function overlaidLines(x, y, l, unit, keys) {
    return overlaidHeads().flatMap((head, h) => {
        const weights = unitWeights(unit, keys, head), y1 = y(l) + 7 + 2 * h;
        return largest(weights, tokensView.perQuery).map(r => {
            const y2 = y(r) + 7 + 2 * h;
            return svg(
                "path", {
                    d: curve(x, y1, y2),
                    fill: "none",
                    stroke: colorOfOverlaid(h),
                    "stroke-dasharray": strokes[h] || null,
                    "stroke-width": (0.8 + 6 * weights[r]).toFixed(2)
                },
                svg("title", {},
                    `${headName(head)}: ${unitText(unit)} → ${unitText(keys[r])} ${
                        weightText(weights[r])}`));
        });
    });
}

function linesFigure() {
    const now = pairNow(), lists = [units(asked), units()], {at, left, right} = linesPlaces(),
          keys = right.map(i => lists[1][i]);
    const accent = css("accent"), faint = css("edge"), ink = css("ink"), strong = css("strong"),
          page = css("page");
    const width = clamp(panelWidth() - 44, 280, 900), x = [width * 0.33, width * 0.67],
          longest = floor(width / 27), y = i => 34 + i * ROW,
          height = y(max(left.length, right.length));
    const figure = drawing(width, height, "Lines from queries to keys", "group");
    const each = max(1, min(tokensView.perQuery, floor(LINES / left.length)));
    const lines = [[], []];
    for (const [l, place] of left.entries()) {
        const weights = unitWeights(lists[0][place], keys);
        if (!weights) return null;
        for (const r of largest(weights, place === at ? tokensView.perQuery : each)) {
            const on = place === at, y1 = y(l) + 11, y2 = y(r) + 11;
            lines[+on].push(
                svg("path", {
                    d: curve(x, y1, y2),
                    fill: "none",
                    "stroke-linecap": "round",
                    stroke: on ? accent : faint,
                    "stroke-width": (0.6 + 7 * weights[r]).toFixed(2),
                    "stroke-opacity": on ? 0.95 : (0.12 + 0.4 * weights[r]).toFixed(2)
                },
                    svg("title", {},
                        `${unitText(lists[0][place])} → ${unitText(keys[r])} ${
                            weightText(weights[r])}`)));
        }
    }
    if (overlaidHeads().length)
        lines[1] = overlaidLines(x, y, left.indexOf(at), lists[0][at], keys);
    figure.append(...lines[0], ...lines[1]);
    const wide = (name, on) => textWidth(cut(name, longest), 14, on ? 600 : 400) / em() + 22;
    const side = (places, which) => places.forEach((place, i) => {
        const query = which === 0, unit = lists[which][place],
              on = query ? place === at : now.key >= unit.from && now.key < unit.to;
        const gap = i > 0 && places[i - 1] !== place - 1;
        const name = unitText(unit),
              pick = () => change(query ? {query: unit.from, hover: null} : {key: unit.from});
        const token =
            svg("g", {
                role: "button",
                tabindex: place === (query ? at : unitOf(now.key)) ? 0 : -1,
                cursor: "pointer",
                "data-place": which + "." + place,
                label: `${query ? "query" : "key"} ${name}, place ${unit.from}`,
                "aria-pressed": on
            },
                svg("rect", {
                    x: query ? x[0] - wide(name, on) - 4 : x[1] + 4,
                    y: y(i),
                    width: wide(name, on),
                    height: 24,
                    rx: 6,
                    fill: on && query ? accent : page,
                    "fill-opacity": on ? 1 : 0,
                    stroke: on ? accent : "none",
                    "stroke-width": 1.5
                }),
                svg("text", {
                    x: query ? x[0] - 12 : x[1] + 14,
                    y: y(i) + 16.5,
                    size: 14,
                    anchor: query ? "end" : "start",
                    direction: "ltr",
                    "unicode-bidi": "plaintext",
                    fill: on && query ? css("on-accent") :
                        on            ? strong :
                                        ink,
                    "font-weight": on ? 600 : 400
                },
                    cut((gap ? "⋯ " : "") + name, longest)));
        pickable(token, pick);
        figure.append(token);
    });
    figure.append(
        written("query looks →", x[0] - 12, 16, {anchor: "end"}),
        written("key is looked at", x[1] + 14, 16));
    side(left, 0);
    side(right, 1);
    return figure;
}
