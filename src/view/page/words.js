/*
 * Tokens as a reader sees them. What cannot be seen gets a sign; directions of right-to-left scripts are
 * isolated by <bdi>. A unit is a token, or a word of several tokens: keys of a word are summed, its queries
 * averaged (Clark et al. 2019, section 4.1).
 */
const signs = text => text === "" ?
    "∅" :
    text.replace(/^[\x20\u2581\u0120]+|\x20+$/g, run => "\u2423".repeat(run.length))
        .replace(/\n|\u010a/g, "⏎")
        .replace(/\t/g, "⇥");
const tokenText = i => signs(manifest.tokens[i]);
const bdi = text => el("bdi", {}, text);

const tokenUnits = () => listOf(N, i => ({from: i, to: i + 1}));
function wordUnits() {
    const made = [];
    for (let i = 0; i < N; i++) {
        const last = made[made.length - 1];
        if (last && manifest.word[i] === manifest.word[i - 1])
            last.to = i + 1;
        else
            made.push({from: i, to: i + 1});
    }
    return made;
}
const unitLists = {};
const units = () =>
    state.words ? unitLists.words ||= wordUnits() : unitLists.tokens ||= tokenUnits();
const hasWords = () => !!manifest.word && (unitLists.words ||= wordUnits()).length < N;
const unitText = unit => signs(listOf(unit.to - unit.from, k => manifest.tokens[unit.from + k])
                                   .map((token, k) => k ? token.replace(/^##/, "") : token)
                                   .join(""));
const unitOf = i => state.words ? units().findIndex(unit => i < unit.to) : i;

/* The mean row of all tokens of the selected queries. */
function queryRow() {
    const wanted = queries().flatMap(i => {
        const unit = units()[unitOf(i)];
        return listOf(unit.to - unit.from, k => unit.from + k);
    });
    if (wanted.length === 1) return row(state.head, wanted[0]);
    const mean = new Float32Array(N);
    for (const i of wanted) {
        const weights = row(state.head, i);
        if (!weights) return null;
        for (let j = 0; j < N; j++) mean[j] += weights[j] / wanted.length;
    }
    return mean;
}

/* What shades the text: the weights from the queries, or those on the selected token; null: not there yet. */
const shading = () => state.to ? column(state.head, queries()[0]) : queryRow();

/* A unit's share of such a vector: a sum over its keys, or the mean over its queries. */
function unitValue(values, unit) {
    let sum = 0;
    for (let i = unit.from; i < unit.to; i++) sum += values[i];
    return state.to ? sum / (unit.to - unit.from) : sum;
}
const cut = (text, n) => [...text].length > n ? [...text].slice(0, n - 1).join("") + "…" : text;
