/*
 * Tokens as a reader sees them. What cannot be seen gets a sign; directions of right-to-left scripts are
 * isolated by <bdi>. A unit is a token, or a word of several tokens: keys of a word are summed, its queries
 * averaged (Clark et al. 2019, section 4.1).
 */
const signs = text => text === "" ?
    "∅" :
    text.replace(/^[\x20\u2581\u0120]+|\x20+$/g, run => "\u2423".repeat(run.length))
        .replace(/\n|\u010a/g, "↵")
        .replace(/\t/g, "⇥");
const tokenText = j => signs(manifest.tokens[j]), queryText = i => signs(asked.tokens[i]);
const named = (text, i) => el("bdi", {}, `${text(i)} (${i})`);
const bdi = text => el("bdi", {}, text);

/* Units of keys, or of queries (asked). */
function makeUnits(of, words) {
    const made = [];
    for (let i = 0; i < of.n; i++) {
        const last = made[made.length - 1];
        if (last && words && of.word?.[i] === of.word?.[i - 1] && of.word)
            last.to = i + 1;
        else
            made.push({of, from: i, to: i + 1});
    }
    return made;
}
let unitLists = {};
const units = (of = manifest, words = state.words) => unitLists[[words, of === manifest]] ||=
    makeUnits(of, words);
const hasWords = () => [manifest, asked].some(of => of.word && units(of, true).length < of.n);
const unitText = ({of, from, to}) =>
    signs(listOf(to - from, k => of.tokens[from + k])
              .map((token, k) => k ? token.replace(/^##/, "") : token)
              .join(""));
const unitOf = (i, of = manifest) => state.words ? units(of).findIndex(unit => i < unit.to) : i;

/* The mean row of some queries; null: it is not there yet. */
function meanRow(head, wanted) {
    const mean = new Float32Array(N);
    for (const i of wanted) {
        const weights = row(head, i);
        if (!weights) return null;
        for (let j = 0; j < N; j++) mean[j] += weights[j] / wanted.length;
    }
    return mean;
}
/* That of all tokens of the selected queries. */
function queryRow() {
    const wanted = queries().flatMap(i => {
        const unit = units(asked)[unitOf(i, asked)];
        return listOf(unit.to - unit.from, k => unit.from + k);
    });
    return wanted.length > 1 ? meanRow(state.head, wanted) : row(state.head, wanted[0]);
}

/* What shades a list: the weights from the queries, or those on the selected token or key; null: not there yet. */
const isTo = of => CROSS ? of === asked : state.to;
const shading = of =>
    isTo(of) ? column(state.head, CROSS ? pairNow().key : queries()[0]) : queryRow();

/* A unit's share of such a vector: a sum over its keys, or the mean over its queries. */
function unitValue(values, {of, from, to}) {
    let sum = 0;
    for (let i = from; i < to; i++) sum += values[i];
    return isTo(of) ? sum / (to - from) : sum;
}
const cut = (text, n) => [...text].length > n ? [...text].slice(0, n - 1).join("") + "…" : text;
