"use strict";
/*
 * What the file holds: the manifest, and for each head q, k and lse, one after the other, as text. A head is
 * decoded when it is first shown; a few are kept. docs/page.md has the format.
 */
const {max, min, floor, ceil, abs, exp, log, log2, round, sqrt, hypot, tanh, imul} = Math;
const manifest = JSON.parse(document.getElementById("qkv-manifest").textContent);
const D = manifest.head_dim, CAP = manifest.softcap;
const scaleOf = head => head.scale ?? manifest.scale;

/* Queries are the tokens that keys are, or others (cross-attention). */
const asked = manifest.queries || manifest, CROSS = asked !== manifest;

/* Of a text; a live page goes on to another one. */
let N, M, HEADS, LONG, MASK, EVERY, LABEL;
function takeText() {
    N = manifest.n;
    M = asked.n;
    HEADS = manifest.heads;
    LONG = M > 512 && M * N > 2048 ** 2;  // then no view computes all rows at once
    MASK = ceil(N / 8);                   // bytes of a row
    EVERY = ceil((M + N) / 3000);         // tokens for one on the map
    LABEL = max(M, N) > 40 ? 13 : 16;
    for (const head of HEADS)
        head.stats &&=
            Object.fromEntries(manifest.numbers.map(([name], at) => [name, head.stats[at]]));
}
takeText();

/* Five digits are four bytes; the last may be zeros. Digits are ( to ~ without < and \. */
const digits = Uint8Array.from({length: 127}, (_, c) => c - 40 - (c > 60) - (c > 92));
function bytesOf(text) {
    const words = new Int32Array(text.length / 5);
    for (let at = 0, w = 0; w < words.length; w++) {
        let word = 0;
        for (const end = at + 5; at < end; at++)
            word = imul(word, 85) + digits[text.charCodeAt(at)] | 0;
        words[w] = word;
    }
    return new Uint8Array(words.buffer);
}

/* f16 to f32: the fraction moves up 13 bits, the exponent from bias 15 to 127; subnormals are multiples of 2^-24. */
function floatsOfHalves(halves) {
    const bits = new Uint32Array(halves.length), floats = new Float32Array(bits.buffer);
    for (let i = 0; i < halves.length; i++) {
        const x = halves[i], sign = (x & 0x8000) << 16, exponent = x >> 10 & 31,
              fraction = x & 1023;
        if (exponent === 31)
            bits[i] = sign | 0x7f800000 | fraction << 13;
        else if (exponent)
            bits[i] = sign | exponent + 112 << 23 | fraction << 13;
        else
            floats[i] = (sign ? -1 : 1) * fraction * 2 ** -24;
    }
    return floats;
}

const decoded = new Map(), DECODED = 4;

/* {q, k, lse, …} of a head; null while the browser has not read that far. */
function headData(index) {
    let data = decoded.get(index);
    if (data) return data;
    const element = document.getElementById("qkv-head-" + index);
    if (!element) return null;
    const bytes = bytesOf(element.textContent),
          {type, alibi = 0, distances, before, sink, mask, window} = HEADS[index],
          half = type === "f16";
    const numbers = (at, n) => half ? floatsOfHalves(new Uint16Array(bytes.buffer, at, n)) :
                                      new Float32Array(bytes.buffer, at, n);
    const size = D * (half ? 2 : 4);
    data = {
        q: numbers(0, M * D),
        k: numbers(M * size, N * D),
        lse: new Float32Array(bytes.slice((M + N) * size).buffer, 0, M),
        alibi,
        distances: distances && new Float32Array(bytesOf(distances).buffer),
        before,
        scale: scaleOf(HEADS[index]),
        sink: sink ?? -Infinity,
        window,
        mask: mask && bytesOf(mask)
    };
    decoded.set(index, data);
    if (decoded.size > DECODED) decoded.delete(decoded.keys().next().value);
    return data;
}

/* Thumbnails: log2 p from -24 to 0 as 0 ... 255. */
const levels =
    Float32Array.from({length: 256}, (_, level) => level ? 2 ** (level / 255 * 24 - 24) : 0);
const thumbOf = index => bytesOf(HEADS[index].thumb);
const headName = index => `layer ${HEADS[index].layer}, head ${HEADS[index].head}`;
const placeName = index => {
    const {layer, head, run} = HEADS[index];
    return `${layer}.${head}` + (run ? "." + run : "");
};
