/*
 * View 3: why this weight. q . k is the sum of d products; the scale and the lse of the query make a weight of it.
 */
const why = {
    sorted: false
};
function pairVectors() {
    const {q, k} = thisData(), of = (all, i) => all.subarray(i * D, i * D + D);
    return [of(q, state.query), of(k, state.key)];
}

tabs.why = {
    name: "Why",
    show(panel) {
        why.body = el("div");
        panel.append(
            el("div", {class: "tools"},
               select(
                   "Components", [["", "in order"], ["sorted", "by product"]],
                   why.sorted ? "sorted" : "", sets(why, "sorted", Boolean))),
            why.body);
    },
    draw() {
        const data = thisData(), weights = row(state.head, state.query),
              all = row(state.head, state.query, false, true);
        if (!weights) return;
        const [q, k] = pairVectors();
        put(why.body, whySteps(data, all),
            el("figure", {}, whyFigure(q, k),
               el("figcaption", {},
                  "Each bar is one of the d components of the head. The products in the third strip sum to q·k; the line is that sum from left to right. Components are directions of this head's space and have no meaning of their own.")),
            whyProducts(q, k), whyRivals(data, weights));
    },
    says: () => `${queryText(state.query)} looks at ${tokenText(state.key)}. `,
    figure: () => whyFigure(...pairVectors())
};
const products = (q, k) => Array.from(q, (x, c) => x * k[c]);

function whySteps(data, weights) {
    const {query, key} = state, [first, ...steps] = scoreSteps(data, query, key),
                  [, score] = steps[steps.length - 1], hidden = whyHidden(data, query, key),
                  asks = isModified();
    const card = (value, name, last) =>
        el("div", {class: last ? "last" : ""}, el("b", {}, value), el("span", {}, name));
    return el(
        "div", {}, el("p", {class: "pair"}, chip(query, "q"), " looks at ", chip(key, "k")),
        el("div", {class: "steps"}, card(fixed(first[1], 3), first[2]),
           ...steps.flatMap(
               ([done, value, name]) => [el("i", {}, done), card(fixed(value, 3), name)]),
           el("i", {}, hidden ? "not seen" : `− ${fixed(weights.lse, 3)} (lse)`),
           card(fixed(hidden ? -Infinity : score - weights.lse, 3), hidden ? hidden : "log weight"),
           el("i", {}, "exp"),
           card(weightText(weights[key]), asks ? "weight under What if" : "weight", true),
           asks ? card(weightText(row(state.head, query, true, true)[key]), "without What if") :
                  ""));
}

function whyFigure(q, k) {
    const product = products(q, k), order = listOf(D, c => c),
          width = clamp(panelWidth() - 60, 320, 1100), left = 64, strip = 84;
    if (why.sorted) order.sort((a, b) => product[b] - product[a]);
    const figure = drawing(
        width, 3 * strip + 44,
        "q, k and their products by component; the numbers are in the table below");
    const step = (width - left - 8) / D, gap = step > 4 ? 1 : 0;
    [["q", q, "edge"], ["k", k, "edge"], ["q ∘ k", product, "accent"]].forEach(
        ([name, values, color], s) => {
            const most = max(1e-9, ...values.map(abs)), zero = s * strip + strip / 2,
                  y = v => zero - v / most * (strip / 2 - 8);
            figure.append(
                headed(name, 0, zero + 5),
                written(fixed(most, 2), left - 8, zero - strip / 2 + 16, {size: 11, anchor: "end"}),
                svg("line", {x1: left, x2: width, y1: zero, y2: zero, stroke: css("line")}));
            order.forEach(
                (c, at) => figure.append(
                    svg("rect", {
                        x: (left + at * step).toFixed(2),
                        y: min(zero, y(values[c])).toFixed(2),
                        width: max(0.5, step - gap).toFixed(2),
                        height: max(0.5, abs(y(values[c]) - zero)).toFixed(2),
                        fill: css(color),
                        rx: step > 6 ? 1.5 : 0
                    },
                        svg("title", {},
                            `component ${c}: q ${fixed(q[c], 3)}, k ${fixed(k[c], 3)}, product ${
                                fixed(product[c], 3)}`))));
        });
    let sum = 0;
    const sums = order.map(c => sum += product[c]), reach = max(1e-9, ...sums.map(abs));
    figure.append(
        svg("polyline", {
            fill: "none",
            stroke: css("strong"),
            "stroke-width": 1.5,
            points: sums.map(
                            (v, at) => `${(left + (at + 0.5) * step).toFixed(1)},${
                                (2.5 * strip - v / reach * (strip / 2 - 8)).toFixed(1)}`)
                        .join(" ")
        }),
        written(
            why.sorted ? "components, largest product first; line: running sum" :
                         "components 0 to d − 1; line: running sum",
            left, 3 * strip + 18),
        written(
            `sum ${fixed(sum, 3)}`, width, 3 * strip + 36, {anchor: "end", fill: css("strong")}));
    return figure;
}

function whyProducts(q, k) {
    const product = products(q, k),
          order = listOf(D, c => c).sort((a, b) => product[b] - product[a]);
    const line = c => [String(c), fixed(q[c], 3), fixed(k[c], 3), fixed(product[c], 3)],
          names = ["Component", "q", "k", "q ∘ k"];
    const up = order.slice(0, 5).filter(c => product[c] > 0),
          down = order.slice(-5).filter(c => product[c] < 0).reverse();
    return el(
        "div", {},
        el("h3", {}, "The products that raise the score most, and those that lower it most"),
        table("Largest products", names, [...up, ...down].map(line)),
        asTable("All components", names, () => listOf(D, line)));
}

function whyRivals(data, weights) {
    const best = largest(weights, 8), keys = best.includes(state.key) ? best : [...best, state.key];
    return el(
        "div", {}, el("h3", {}, "Softmax among the strongest keys"),
        table(
            "Softmax among the strongest keys",
            [
                "Key", "q·k", whatIf.temperature === 1 ? "score" : "score / temperature", "weight",
                "Select"
            ],
            keys.map(j => {
                const s = dot(data.q, state.query * D, data.k, j * D);
                return [
                    named(tokenText, j), fixed(s, 3), fixed(logitOf(data, state.query, j), 3),
                    cellText(state.query, j, weights[j]), button("select", () => change({key: j}))
                ];
            }),
            r => keys[r] === state.key));
}
