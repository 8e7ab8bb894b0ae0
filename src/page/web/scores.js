/*
 * Weights: p_ij = exp(s_ij - lse_i), with the lse of the model and s_ij = softcap(scale q_i . k_j) + bias. Where
 * a question of What if changes scores or keys, softmax is computed anew: p_ij = exp(z_ij - max z) / sum, of which
 * a sink is a part. Sums are doubles.
 */
const nothingAsked = () =>
    ({scaled: true, temperature: 1, causal: false, specials: true, dropped: new Set(), pairs: ""});
const whatIf = nothingAsked();
const isGone = j => whatIf.dropped.has(j) || (!whatIf.specials && isSpecial(j));  // as a key
/* The rules of visibility as the model has them, and under What if. */
const modelRules = manifest.rules, ruleSets = new Map();

/* Those of a head: its own window narrows the page's; a side below 0 has no bound. */
const tighter = (a, b) => a < 0 ? b : b < 0 ? a : min(a, b);
function rulesOf({window}, causal = false) {
    const last = rulesOf.last;
    if (last && last.window === window && last.causal === causal) return last.rules;
    const name = [window, causal].join();
    if (!ruleSets.has(name)) {
        const rules = {...modelRules}, page = modelRules.window;
        if (window)
            rules.window = {
                definition: "",
                ...page,
                window_left: tighter(window[0], page ? page.window_left : -1),
                window_right: tighter(window[1], page ? page.window_right : -1)
            };
        if (causal) rules.causal ||= {};
        ruleSets.set(name, rules);
    }
    rulesOf.last = {window, causal, rules: ruleSets.get(name)};
    return rulesOf.last.rules;
}
const rulesNow = () => rulesOf(thisHead(), whatIf.causal);

/* Query i has the place i + OFFSET among keys, or queries are nowhere among them. */
const OFFSET = offsetOf(modelRules), placeOf = i => i + OFFSET, PLACED = !manifest.two_texts;

const isModified = () => !whatIf.scaled || whatIf.temperature !== 1 ||
    (whatIf.causal && !modelRules.causal) || (!whatIf.specials && !!manifest.special) ||
    whatIf.dropped.size > 0;
const isSpecial = i => !!(manifest.special && manifest.special[i]);
const segmentOf = i => manifest.segment ? manifest.segment[i] : 0;  // without CROSS

/* A filter of pairs of segments hides cells and changes no weight. */
const isFiltered = (i, j) =>
    !!whatIf.pairs && (segmentOf(i) !== +whatIf.pairs[0] || segmentOf(j) !== +whatIf.pairs[1]);
const isAsked = () => isModified() || !!whatIf.pairs;

/* Keys first <= j < end that query i sees by position; asked for once for each cell. */
const intervals = new Map();
function visibleKeys(i, rules = rulesNow()) {
    let known = intervals.get(rules);
    if (!known) intervals.set(rules, known = []);
    return known[i] ??= intervalOf(rules, N, i);
}
const keysOf = (data, i) => visibleKeys(i, rulesOf(data, whatIf.causal));

function dot(a, at, b, bt) {
    let sum = 0;
    for (let c = 0; c < D; c++) sum += a[at + c] * b[bt + c];
    return sum;
}

const unseen = manifest.dropped || [];  // keys that no query sees
const sees = ({mask}, i, j) => !unseen[j] && (!mask || mask[i * MASK + (j >> 3)] >> (j & 7) & 1);
const maySee = (data, i, j, [first, end] = keysOf(data, i)) =>
    j >= first && j < end && sees(data, i, j) && !isGone(j);
/* Does no query from a to b see a key from first to end, or is nothing of it shown? Such cells are not drawn. */
function hiding(data, [a, b], plain) {
    const rules = rulesOf(data, !plain && whatIf.causal), {mask} = data,
          [from] = visibleKeys(a, rules), to = visibleKeys(b - 1, rules)[1],
          filtered = !plain && !!whatIf.pairs;
    return (first, end) => {
        if (to <= first || from >= end) return true;
        for (let j = first; j < end; j++) {
            if (unseen[j] || (!plain && isGone(j))) continue;
            if (!mask && !filtered) return false;
            for (let i = a; i < b; i++)
                if (sees(data, i, j) && !(filtered && isFiltered(i, j))) return false;
        }
        return true;
    };
}
/* What is added to a score: ALiBi, a bias by distance. */
function biasOf({alibi, distances, before}, i, j) {
    const distance = j - placeOf(i), added = alibi * distance;
    return distances ? added + distances[min(max(before + distance, 0), distances.length - 1)] :
                       added;
}
function scoreOf(data, i, j, factor = data.scale) {
    const s = dot(data.q, i * D, data.k, j * D) * factor;
    return (CAP ? CAP * tanh(s / CAP) : s) + biasOf(data, i, j);
}
/* What softmax gets under What if. */
const logitOf = (data, i, j) =>
    scoreOf(data, i, j, whatIf.scaled ? data.scale : 1) / whatIf.temperature;

/* As the model computed it; keys from ... to (all by default) into out. A row has its lse, too. */
function modelRow(data, i, out, from = 0, to = N) {
    const [first, end] = visibleKeys(i, rulesOf(data)), lse = out.lse = data.lse[i];
    out.fill(0, from, to);
    if (lse === -Infinity) return out;
    for (let j = max(first, from); j < min(end, to); j++)
        if (sees(data, i, j)) out[j] = exp(scoreOf(data, i, j) - lse);
    return out;
}

function modifiedRow(data, i, out) {
    const [first, end] = keysOf(data, i), sink = data.sink / whatIf.temperature;
    let most = sink;
    out.fill(-Infinity);
    for (let j = first; j < end; j++) {
        if (!sees(data, i, j) || isGone(j)) continue;
        out[j] = logitOf(data, i, j);
        if (out[j] > most) most = out[j];
    }
    let sum = sink === -Infinity ? 0 : exp(sink - most);
    for (let j = 0; j < N; j++) sum += out[j] = out[j] === -Infinity ? 0 : exp(out[j] - most);
    if (sum !== 0)
        for (let j = 0; j < N; j++) out[j] /= sum;
    out.lse = sum === 0 ? -Infinity : most + log(sum);
    return out;
}

/* Rows that were asked for last, 16 MB of them. */
const rows = new Map();

/* The weights of query i under What if (plain: as the model computed them), those that the filter hides as 0 (all: as
 * they are); null while its head is not there. */
function row(head, i, plain = false, all = false) {
    const hides = whatIf.pairs && !all,
          name = head * M + i + (plain ? 0.5 : 0) + (hides ? 0 : 0.25);
    let found = rows.get(name);
    if (!found) {
        const data = headData(head);
        if (!data) return null;
        found = new Float32Array(N);
        if (!plain && isModified())
            modifiedRow(data, i, found);
        else
            modelRow(data, i, found);
        if (hides)
            for (let j = 0; j < N; j++)
                if (isFiltered(i, j)) found[j] = 0;
        if (rows.size >= max(8, floor(4e6 / N))) rows.delete(rows.keys().next().value);
        rows.set(name, found);
    }
    return found;
}

/* The weights on key j over all queries; NaN where that would take the whole row of each query of a LONG text. */
function column(head, j) {
    const out = new Float32Array(M), data = headData(head);
    if (!data) return out;
    for (let i = 0; i < M; i++)
        if (isModified())
            out[i] = LONG ? NaN : row(head, i)[j];
        else if (!isFiltered(i, j) && data.lse[i] !== -Infinity && maySee(data, i, j))
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

/* Entropy of a row in nats, and how many keys its query sees under What if. */
const entropyOf = weights => weights.reduce((sum, p) => p > 0 ? sum - p * log(p) : sum, 0);
function keysSeen(i) {
    const [first, end] = visibleKeys(i), data = thisData();
    if (!unseen.length && !data?.mask && whatIf.specials && !whatIf.dropped.size)
        return max(0, end - first);
    const name = [state.head, i].join();
    if (!counts.has(name)) {
        let n = 0;
        for (let j = first; j < end; j++)
            if (sees(data, i, j) && !isGone(j)) n++;
        counts.set(name, n);
    }
    return counts.get(name);
}
const counts = new Map();
