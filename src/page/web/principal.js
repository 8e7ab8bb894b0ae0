/*
 * Places of a head that the file has none of: the two principal components of queries and keys together, from q and
 * k as they are. Of a long text they are those of the points that are shown. Components are found by repeated
 * multiplication with the covariance, the second in what the first leaves.
 */
const PRINCIPAL_STEPS = 60;

/* [M + N][2], moved so that the smallest is 0, and scaled so that the widest side is 1. */
function principal({q, k}) {
    const at = p => p < M ? [q, p * D] : [k, (p - M) * D], points = mapPoints(),
          mean = new Float64Array(D), covariance = new Float64Array(D * D);
    for (const p of points) {
        const [from, first] = at(p);
        for (let c = 0; c < D; c++) mean[c] += from[first + c] / points.length;
    }
    const off = new Float64Array(D);
    for (const p of points) {
        const [from, first] = at(p);
        for (let c = 0; c < D; c++) off[c] = from[first + c] - mean[c];
        for (let c = 0; c < D; c++)
            for (let e = 0; e <= c; e++) covariance[c * D + e] += off[c] * off[e];
    }
    for (let c = 0; c < D; c++)
        for (let e = 0; e < c; e++) covariance[e * D + c] = covariance[c * D + e];
    const axes = [component(covariance, []), null];
    axes[1] = component(covariance, [axes[0]]);
    const places = new Float32Array(2 * (M + N)), low = [Infinity, Infinity],
          high = [-Infinity, -Infinity];
    for (let p = 0; p < M + N; p++) {
        const [from, first] = at(p);
        axes.forEach((axis, a) => {
            let sum = 0;
            for (let c = 0; c < D; c++) sum += (from[first + c] - mean[c]) * axis[c];
            places[2 * p + a] = sum;
            low[a] = min(low[a], sum);
            high[a] = max(high[a], sum);
        });
    }
    const span = max(high[0] - low[0], high[1] - low[1]) || 1;
    return places.map((x, at) => (x - low[at % 2]) / span);
}

/* The unit vector along which the covariance is largest, at right angles to those before; its largest entry is
 * above 0. */
function component(covariance, before) {
    let axis = Float64Array.from({length: D}, (_, c) => 1 + (c * 7 % 11) / 11);
    for (let step = 0; step <= PRINCIPAL_STEPS; step++) {
        const next = new Float64Array(D);
        for (let c = 0; c < D; c++)
            for (let e = 0; e < D; e++) next[c] += covariance[c * D + e] * axis[e];
        for (const other of before) {
            const along = next.reduce((sum, x, c) => sum + x * other[c], 0);
            next.forEach((_, c) => next[c] -= along * other[c]);
        }
        const length = sqrt(next.reduce((sum, x) => sum + x * x, 0));
        if (!(length > 1e-30)) return new Float64Array(D);
        axis = next.map(x => x / length);
    }
    const tall = axis.reduce((best, x) => abs(x) > abs(best) ? x : best, 0);
    return tall < 0 ? axis.map(x => -x) : axis;
}
