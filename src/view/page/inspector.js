/* The selected pair in numbers, the strongest keys of the query, the head, and what the numbers mean. */
const chip = (i, kind) => element("span", {class: "chip " + kind}, tokenText(i));
const facts = pairs => element(
    "dl", {},
    ...pairs.filter(Boolean).flatMap(
        ([name, value, hint]) => [element("dt", {title: hint}, name), element("dd", {}, value)]));

function pairFacts(weights) {
    const data = headData(state.head), {query, key} = state;
    const s = dot(data.q, query * D, data.k, key * D);
    let rank = 1;
    for (const p of weights)
        if (p > weights[key]) rank++;
    return facts([
        ["q\u00b7k", fixed(s, 3)],
        [
            `\u00d7 ${fixed(manifest.scale, 4)}`, fixed(s * manifest.scale, 3),
            "the score before softmax"
        ],
        ["lse of the query", fixed(data.lse[query], 3), "log of the sum of exp of its scores"],
        ["rank among its keys", `${rank} of ${keysSeen(query)}`],
        [
            "times uniform", fixed(weights[key] * keysSeen(query), 2),
            "weight \u00d7 number of keys that the query sees"
        ],
        ["distance", fixed(key - query, 0), "place of the key minus place of the query"]
    ]);
}

function topKeys(weights) {
    const best = largest(weights, 10);
    return element(
        "ol", {class: "top"},
        ...best.map(
            j => element(
                "li", {},
                element(
                    "button", {
                        type: "button",
                        "aria-pressed": j === state.key,
                        onclick: () => change({key: j}),
                        title: `place ${j}`,
                        "aria-label":
                            `${tokenText(j)}, place ${j}, weight ${weightText(weights[j])}`,
                    },
                    bdi(tokenText(j)),
                    element("meter", {min: 0, max: 1, value: weights[j], "aria-hidden": "true"}),
                    element("span", {}, weightText(weights[j]))))));
}

function headFacts() {
    const {label, stats, type, error} = HEADS[state.head];
    const lines = [
        ["label", label || "none", "the first rule of docs/statistics.md that holds for this text"]
    ];
    if (stats)
        lines.push(
            [
                "entropy", fixed(stats.entropy, 3) + " nats",
                "mean over queries of \u2212\u03a3 p ln p"
            ],
            ...["confidence", "mean_distance", "mass_previous", "mass_next", "mass_self"].map(
                key => [statNames[key][0], fixed(stats[key], 3), statNames[key][1]]));
    if (type === "f16")
        lines.push(
            ["weights off by at most", weightText(error), "q and k are in this file as f16"]);
    return facts(lines);
}

drawn.push(function drawInspector() {
    if (state.hover !== null) return;
    const weights = row(state.head, state.query);
    if (!weights) {
        byId("inspector")
            .replaceChildren(element("p", {class: "note"}, "Loading this head \u2026"));
        return;
    }
    const best = largest(weights, 3), {query, key} = state;
    byId("inspector")
        .replaceChildren(
            element("h2", {}, "Selected pair"),
            element("p", {class: "pair"}, chip(query, "q"), " looks at ", chip(key, "k")),
            element("p", {class: "big"}, weightText(weights[key])),
            element(
                "p", {class: "note"},
                `query at place ${query}, key at place ${key}` +
                    (isModified() ? "; modified by What if" : "")),
            pairFacts(weights), element("h3", {}, "Its strongest keys"), topKeys(weights),
            element("hr"),
            element(
                "h2", {}, `Layer ${HEADS[state.head].layer} \u00b7 head ${HEADS[state.head].head}`),
            headFacts(), element("p", {class: "note"}, caption()),
            element(
                "p", {class: "note"},
                "A weight says how values were mixed in this layer. It does not prove why the model answered."));
    say(`${headName(state.head)}: query ${query} ${tokenText(query)} \u2192 ` +
        best.map(j => tokenText(j) + " " + fixed(weights[j], 2)).join(", "));
});
