/*
 * Weights: p_ij = exp(scale q_i . k_j - lse_i), with the lse of the model. Where a question of What if
 * changes scores or keys, softmax is computed anew: p_ij = exp(z_ij - max z) / sum. Sums are doubles.
 */
const whatIf = {
    scaled: true,
    temperature: 1,
    causal: false,
    specials: true,
    dropped: new Set(),
    pairs: ""
};
const isModified = () => !whatIf.scaled || whatIf.temperature !== 1 ||
    (whatIf.causal && !manifest.causal) || (!whatIf.specials && !!manifest.special) ||
    whatIf.dropped.size > 0;
const isSpecial = i => !!(manifest.special && manifest.special[i]);
const segmentOf = i => manifest.segment ? manifest.segment[i] : 0;

/* Keys first <= j < end that query i may see. */
function visibleKeys(i, causal = manifest.causal) {
    const [left, right] = manifest.window;
    return [
        left === null ? 0 : max(0, i - left),
        min(N, causal ? i + 1 : N, right === null ? N : i + right + 1)
    ];
}

function dot(a, at, b, bt) {
    let sum = 0;
    for (let c = 0; c < D; c++) sum += a[at + c] * b[bt + c];
    return sum;
}

const unseen = manifest.dropped || [];  // keys that no query sees

/* As the model computed it; keys from ... to (all by default) into out. */
function modelRow(data, i, out, from = 0, to = N) {
    const [first, end] = visibleKeys(i), lse = data.lse[i];
    out.fill(0, from, to);
    if (lse === -Infinity) return out;
    for (let j = max(first, from); j < min(end, to); j++)
        out[j] = unseen[j] ? 0 : exp(dot(data.q, i * D, data.k, j * D) * SCALE - lse);
    return out;
}

function modifiedRow(data, i, out) {
    const [first, end] = visibleKeys(i, manifest.causal || whatIf.causal);
    const factor = (whatIf.scaled ? SCALE : 1) / whatIf.temperature;
    let most = -Infinity, sum = 0;
    out.fill(-Infinity);
    for (let j = first; j < end; j++) {
        if (unseen[j] || whatIf.dropped.has(j) || (!whatIf.specials && isSpecial(j))) continue;
        out[j] = dot(data.q, i * D, data.k, j * D) * factor;
        if (out[j] > most) most = out[j];
    }
    for (let j = 0; j < N; j++) sum += out[j] = out[j] === -Infinity ? 0 : exp(out[j] - most);
    if (sum !== 0)
        for (let j = 0; j < N; j++) out[j] /= sum;
    return out;
}

/* A filter of pairs of segments hides cells and changes no weight. */
function hidePairs(i, out) {
    const [from, to] = whatIf.pairs;
    for (let j = 0; j < N; j++)
        if (segmentOf(i) !== +from || segmentOf(j) !== +to) out[j] = 0;
}

/* Rows that were asked for last, 16 MB of them. */
const rows = new Map(), ROWS = max(8, floor(4e6 / N));

/* The weights of query i under What if; null while its head is not there. */
function row(head, i, plain = false) {
    const name = head * N + i + (plain ? 0.5 : 0);
    let found = rows.get(name);
    if (!found) {
        const data = headData(head);
        if (!data) return null;
        found = new Float32Array(N);
        if (!plain && isModified())
            modifiedRow(data, i, found);
        else
            modelRow(data, i, found);
        if (!plain && whatIf.pairs) hidePairs(i, found);
        if (rows.size >= ROWS) rows.delete(rows.keys().next().value);
        rows.set(name, found);
    }
    return found;
}

/* The weights on key j over all queries. */
function column(head, j) {
    const out = new Float32Array(N), data = headData(head);
    if (!data) return out;
    const cheap = !isModified() && !whatIf.pairs;
    for (let i = 0; i < N; i++) {
        const [first, end] = visibleKeys(i);
        if (!cheap)
            out[i] = N <= LONG ? row(head, i)[j] : 0;
        else if (j >= first && j < end && !unseen[j] && data.lse[i] !== -Infinity)
            out[i] = exp(dot(data.q, i * D, data.k, j * D) * SCALE - data.lse[i]);
    }
    return out;
}

/* Places of the n largest values, ties to the smaller place; NaN never. */
function largest(values, n) {
    const best = [];
    for (let j = 0; j < values.length; j++) {
        if (!(values[j] > 0) || (best.length === n && !(values[j] > values[best[n - 1]]))) continue;
        let at = best.length;
        while (at > 0 && values[j] > values[best[at - 1]]) at--;
        best.splice(at, 0, j);
        if (best.length > n) best.pop();
    }
    return best;
}

/* Entropy of a row in nats, and how many keys it may see. */
const entropyOf = weights => weights.reduce((sum, p) => p > 0 ? sum - p * log(p) : sum, 0);
function keysSeen(i) {
    const [first, end] = visibleKeys(i, manifest.causal || whatIf.causal);
    return max(1, end - first);
}
