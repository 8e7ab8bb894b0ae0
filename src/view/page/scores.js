/*
 * Weights: p_ij = exp(s_ij - lse_i), with the lse of the model and s_ij = softcap(scale q_i . k_j) + ALiBi. Where
 * a question of What if changes scores or keys, softmax is computed anew: p_ij = exp(z_ij - max z) / sum, of which
 * a sink is a part. Sums are doubles.
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
const segmentOf = i => manifest.segment ? manifest.segment[i] : 0;  // without CROSS

/* Keys first <= j < end that query i may see. */
function visibleKeys(i, causal = manifest.causal) {
    const [left, right] = manifest.window, at = placeOf(i);
    return [
        left === null ? 0 : clamp(at - left, 0, N),
        clamp(min(causal ? at + 1 : N, right === null ? N : at + right + 1), 0, N)
    ];
}

function dot(a, at, b, bt) {
    let sum = 0;
    for (let c = 0; c < D; c++) sum += a[at + c] * b[bt + c];
    return sum;
}

const unseen = manifest.dropped || [],
      MASK = ceil(N / 8);  // keys that no query sees; bytes of a row
const sees = ({mask}, i, j) => !unseen[j] && (!mask || mask[i * MASK + (j >> 3)] >> (j & 7) & 1);
const maySee = (data, i, j, [first, end] = visibleKeys(i)) =>
    j >= first && j < end && sees(data, i, j);
/* Does no query from a to b see a key from first to end? Such cells are not drawn. */
const isHidden = ([a, b], first, end, causal = manifest.causal || whatIf.causal) =>
    visibleKeys(b - 1, causal)[1] <= first || visibleKeys(a, causal)[0] >= end ||
    end - first === 1 && unseen[first];
function scoreOf({q, k, alibi, scale}, i, j, factor = scale) {
    const s = dot(q, i * D, k, j * D) * factor;
    return (CAP ? CAP * tanh(s / CAP) : s) + alibi * (j - placeOf(i));
}

/* As the model computed it; keys from ... to (all by default) into out. */
function modelRow(data, i, out, from = 0, to = N) {
    const [first, end] = visibleKeys(i), lse = data.lse[i];
    out.fill(0, from, to);
    if (lse === -Infinity) return out;
    for (let j = max(first, from); j < min(end, to); j++)
        if (sees(data, i, j)) out[j] = exp(scoreOf(data, i, j) - lse);
    return out;
}

function modifiedRow(data, i, out) {
    const [first, end] = visibleKeys(i, manifest.causal || whatIf.causal);
    const factor = whatIf.scaled ? data.scale : 1, sink = data.sink / whatIf.temperature;
    let most = sink;
    out.fill(-Infinity);
    for (let j = first; j < end; j++) {
        if (!sees(data, i, j) || whatIf.dropped.has(j) || (!whatIf.specials && isSpecial(j)))
            continue;
        out[j] = scoreOf(data, i, j, factor) / whatIf.temperature;
        if (out[j] > most) most = out[j];
    }
    let sum = sink === -Infinity ? 0 : exp(sink - most);
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
    const name = head * M + i + (plain ? 0.5 : 0);
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
    const out = new Float32Array(M), data = headData(head);
    if (!data) return out;
    const cheap = !isModified() && !whatIf.pairs;
    for (let i = 0; i < M; i++)
        if (!cheap)
            out[i] = LONG ? 0 : row(head, i)[j];
        else if (data.lse[i] !== -Infinity && maySee(data, i, j))
            out[i] = exp(scoreOf(data, i, j) - data.lse[i]);
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
    const [first, end] = visibleKeys(i, manifest.causal || whatIf.causal), data = thisData();
    if (!unseen.length && !data?.mask) return max(1, end - first);
    const name = [state.head, i, whatIf.causal].join();
    if (!counts.has(name)) {
        let n = 0;
        for (let j = first; j < end; j++)
            if (sees(data, i, j)) n++;
        counts.set(name, max(1, n));
    }
    return counts.get(name);
}
const counts = new Map();
