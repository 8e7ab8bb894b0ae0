/* The selected pair in numbers, the strongest keys of the query, the head, and what the numbers mean. */
const chip = (i, kind) =>
    el("span", {class: "chip " + kind}, kind === "q" ? queryText(i) : tokenText(i));
const facts = pairs =>
    el("dl", {},
       ...pairs.filter(Boolean).flatMap(
           ([name, value, hint]) => [el("dt", {}, define(name, hint)), el("dd", {}, value)]));

function pairFacts(weights) {
    const data = thisData(), {query, key} = pairNow(), hidden = whyHidden(data, query, key);
    let rank = 1;
    for (const p of weights)
        if (p > weights[key]) rank++;
    return facts([
        ...scoreSteps(data, query, key)
            .map(
                ([done, value, name]) =>
                    [done || name, fixed(value, 3),
                     done ? `${name}: what this step makes of the number above` :
                            "the sum over components of query times key"]),
        hidden && ["seen", "no: " + hidden],
        [
            "lse of the query", fixed(weights.lse, 3),
            "log of the sum of exp of its scores, over the keys that it sees"
        ],
        [
            "rank among its keys", `${hidden ? "–" : rank} of ${keysSeen(query)}`,
            "1 is the key with the largest weight, of those that the query sees"
        ],
        [
            "times uniform", fixed(weights[key] * keysSeen(query), 2),
            "weight × number of keys that the query sees"
        ],
        PLACED &&
            [
                "distance", fixed(key - placeOf(query), 0),
                "place of the key minus place of the query"
            ],
        isModified() &&
            ["without What if", weightText(row(state.head, query, true, true)[key]), "the weight"]
    ]);
}

function bar(share) {
    const filled = el("i");
    filled.style.width = 100 * share + "%";
    return el("i", {class: "share"}, filled);
}
function topKeys(weights) {
    const best = largest(weights, 10), reach = tops.find(top => top >= weights[best[0]]) || 1;
    return el(
        "ol", {class: "top"},
        ...best.map(
            j =>
                el("li", {},
                   button(
                       [
                           bdi(tokenText(j)), bar(weights[j] / reach),
                           el("span", {}, weightText(weights[j]))
                       ],
                       () => change({key: j}), {
                           "aria-pressed": j === pairNow().key,
                           title: `place ${j}`,
                           label: `${tokenText(j)}, place ${j}, weight ${weightText(weights[j])}`
                       }))));
}

function headFacts() {
    const {label, stats, type, error} = thisHead();
    const lines = [
        ["label", label || "none", "the first rule of docs/statistics.md that holds for this text"]
    ];
    if (stats)
        lines.push(
            ["entropy", fixed(stats.entropy, 3) + " nats", "mean over queries of −Σ p ln p"],
            ...["confidence", "effective_keys", "mean_distance", "mass_previous", "mass_next",
                "mass_self"]
                .filter(key => known().includes(key))
                .map(key => [statNames[key][0], statText(thisHead(), key), statNames[key][1]]));
    if (type === "f16")
        lines.push(
            ["weights off by at most", weightText(error), "q and k are in this file as f16"]);
    return facts(lines);
}

drawn.push(function drawInspector() {
    const {query, key} = pairNow();
    const weights = row(state.head, query), all = row(state.head, query, false, true);
    if (!weights) {
        put(byId("inspector"), note("Loading this head …"));
        return;
    }
    const best = largest(weights, 3);
    put(byId("inspector"),
        el("h2", {}, state.hover === null ? "Selected pair" : "Preview of a query"),
        el("p", {class: "pair"}, chip(query, "q"), " looks at ", chip(key, "k")),
        el("p", {class: "big"},
           define(
               weightText(all[key]),
               "weight: the share of what this query reads that comes from this key; all its weights sum to 1")),
        note(
            `query at place ${query}, key at place ${key}` +
            (isModified() ? "; modified by What if" : "") +
            (isFiltered(query, key) ? "; not among the pairs that are shown" : "")),
        pairFacts(all),
        el("h3", {title: "bars end at a round number not below the first"}, "Its strongest keys"),
        topKeys(weights), el("hr"),
        el("h2", {}, `Layer ${thisHead().layer} · head ${thisHead().head}`),
        unasked("without What if"), headFacts(), note(caption()),
        note(
            "A weight says how values were mixed in this layer. It does not prove why the model answered."));
    say((isModified() ? "modified: " : "") +
        `${headName(state.head)}: query ${query} ${queryText(query)} → ` +
        best.map(j => tokenText(j) + " " + fixed(weights[j], 2)).join(", "));
});
