/* View 5: all heads as a table, and the selected one over places: entropy, largest weight, received, distance. */
const numbers = {
    sort: "",
    sums: null,
    key: ""
};

tabs.numbers = {
    name: "Numbers",
    show(panel) {
        numbers.heads = el("div");
        numbers.plots = el("div");
        numbers.key = "";
        panel.append(numbers.heads, numbers.plots);
    },
    draw() {
        const key = [state.head, version, dark, !thisData()].join();
        if (!hasFocus(numbers.heads) || numbers.drawn !== key + numbers.sort)
            put(numbers.heads, headTable());
        numbers.drawn = key + numbers.sort;
        if (key === numbers.key || !thisData()) return;
        numbers.key = key;
        sumUp(state.head, "numbers", (sums, done) => {
            if (done) {
                numbers.sums = sums;
                put(numbers.plots, ...headPlots(sums));
            }
        });
    },
    says: () => "Numbers of one head over queries, keys, distances and cells. ",
    figure: () => figuresOfView()
};

const statText = ({stats}, key) => Number.isFinite(stats[key]) ? fixed(stats[key], 3) : "–";
function headTable() {
    if (!HEADS[0].stats) return "";
    const keys = known(), order = headOrder(numbers.sort);
    const sorts = key => button(statNames[key][0] + (numbers.sort === key ? " ↓" : ""), () => {
        numbers.sort = numbers.sort === key ? "" : key;
        change();
    }, {title: statNames[key][1]});
    const open = i =>
        button(placeName(i), () => change({head: i}), {label: headName(i), class: "plain"});
    return el(
        "div", {}, el("h2", {}, "All heads"),
        unasked("Labels and numbers without What if; the plots below are under it."),
        note(
            "Means over queries that are neither [CLS], [SEP] nor [PAD]. A column's name sorts by it."),
        table(
            "All heads", ["Head", "Label", ...keys.map(sorts)],
            order.slice(0, 200).map(
                i =>
                    [open(i), HEADS[i].label || "–",
                     ...keys.map(
                         key => statText(HEADS[i], key) +
                             (key === "received_largest" && HEADS[i].received_key >= 0 ?
                                  ` (${HEADS[i].received_key})` :
                                  ""))]),
            r => order[r] === state.head),
        el("details", {class: "table"}, el("summary", {}, "What the numbers are"),
           table(
               "What the numbers are", ["Number", "Definition"],
               [
                   ["label", "the first rule of docs/statistics.md that holds for this text"],
                   ...keys.map(key => statNames[key])
               ],
               undefined, "words")));
}

/* Sums over the rows of a head: all of them, or 512 evenly spread in a long text. */
function sumUp(head, name, painted) {
    const n = LONG ? 512 : M, sums = {
        n,
        places: [],
        entropy: [],
        largest: [],
        received: new Float64Array(N),
        distance: new Float64Array(M + N - 1),
        histogram: new Float64Array(17)
    };
    inSlices(name, n, r => {
        const i = floor((r + 0.5) * M / n), weights = row(head, i);
        let most = 0;
        for (let j = 0; j < N; j++) {
            const p = weights[j];
            if (!(p > 0)) continue;
            if (p > most) most = p;
            sums.received[j] += p;
            sums.distance[j - i + M - 1] += p / n;
            sums.histogram[max(0, 16 + ceil(log2(p) - 1e-9))]++;
        }
        sums.places.push(i);
        const none = weights.lse === -Infinity;  // no key, so nothing that could be measured
        sums.entropy.push(none ? NaN : entropyOf(weights));
        sums.largest.push(none ? NaN : most);
    }, done => painted(sums, done));
}
/* Over all queries where the file says so. */
const allReceived = () => thisHead().received && !isAsked() ?
    new Float32Array(bytesOf(thisHead().received).buffer) :
    null;

function headPlots(sums) {
    const of = sums.n < M ? ` of ${sums.n} queries, evenly spread` : "",
          label = r => `${queryText(sums.places[r])} (${sums.places[r]})`,
          left = max(-24, 1 - M - OFFSET), right = min(24, N - 1 - OFFSET);
    const near = listOf(max(0, right - left + 1), k => sums.distance[M - 1 + OFFSET + left + k]),
          mark = sums.places.findIndex(i => i === state.query),
          keys = listOf(N, j => !unseen[j] && !isGone(j)).filter(Boolean).length,
          together = sums.received.reduce((a, b) => a + b, 0);
    return [
        el("h2", {},
           `Layer ${thisHead().layer}, head ${thisHead().head}` +
               (isModified() ? ", modified by What if" : "") +
               (whatIf.pairs ? `, only pairs ${pairNames[whatIf.pairs]}` : "")),
        plot1({
            name: "Entropy of each query",
            values: sums.entropy,
            labels: label,
            what: "Query",
            unit: "nats",
            mark,
            text: `H = −Σ p ln p${of}; 0 (one key) to ln n = ${fixed(log(keys), 2)} (all alike).`
        }),
        plot1({
            name: "Largest weight of each query",
            values: sums.largest,
            labels: label,
            what: "Query",
            mark,
            text: `max over keys of p${of}; 1/n to 1.`
        }),
        plot1({
            name: "Attention received",
            values: allReceived() || sums.received,
            labels: j => `${tokenText(j)} (${j})`,
            what: "Key",
            unit: "sum of weights",
            mark: state.key,
            text: "r = sum over queries of their weight on the key" +
                (allReceived() ? "." : `${of}; all keys together: ${+ together.toFixed(2)}.`)
        }),
        PLACED ? plot1({
            name: "Weight by distance",
            values: near,
            labels: k => `${k + left > 0 ? "+" : ""}${k + left}`.replace("-", "−"),
            what: "Key minus query",
            from: left,
            mark: -left,
            text: `mean over queries${of} of the weight at its place + distance, for ${left} to ${
                right}.`
        }) :
                 "",
        plot1({
            name: "How large weights are",
            values: sums.histogram,
            labels: b => b ? `2^${b - 17} to 2^${b - 16}` : "up to 2^−16",
            what: "Weight",
            unit: "cells",
            from: -16,
            text: `number of cells by log2 p${of}, rounded up.`
        })
    ];
}
