/*
 * Colours of weights, the same as in the pictures of qkv: the manifest has 17 samples of each ramp. Three
 * scales: linear from 0 to a round number, log from 2^-16 to 1, and times uniform, log2(p m) from -4 to 4
 * for a query that sees m keys, with two colours that meet at 0.
 */
let dark = false, colors = [], pixels = [];  // of the frame that is drawn
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
function chooseColors() {
    const theme = document.documentElement.dataset.theme;
    dark = theme ? theme === "dark" : prefersDark.matches;
    colors = state.scale === "uniform" ? diverging() : ramps[+dark];
    pixels = pixelsOf(colors);
}
const split = rgb => [rgb >> 16, rgb >> 8 & 255, rgb & 255];
const meeting = [
    [0x0b3d91, 0x5f9fd8, 0xf2f2f0, 0xe08a3c, 0x8a3b00],
    [0x8fc1ff, 0x3a72b8, 0x1c1f25, 0xa8621c, 0xffbe73]
];

/* 256 colours between samples. */
function ramp(samples) {
    return listOf(256, level => {
        const at = level / 255 * (samples.length - 1), i = min(samples.length - 2, floor(at));
        const a = split(samples[i]), b = split(samples[i + 1]);
        return a.map((x, c) => round(x + (b[c] - x) * (at - i)));
    });
}
const ramps = manifest.ramps.map(ramp), divergingRamps = meeting.map(ramp), GREY = [140, 140, 140];
const diverging = () => divergingRamps[+dark];
/* The same as words of an image. */
const pixelOf = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;
const pixelsOf = ramp => ramp.pixels ||= Uint32Array.from(ramp, pixelOf);
const GREY_PIXEL = pixelOf(GREY);

/* The end of the linear scale: a round number not below the largest weight of the head. */
const tops = [0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1];
const peaks = new Map();
function topOf(head, plain) {
    if (isModified() && !plain) return 1;
    if (!peaks.has(head)) peaks.set(head, levels[max(...thumbOf(head))]);
    return tops.find(top => top >= peaks.get(head) * 0.98) || 1;
}

const isLinear = () => state.scale === "linear";

/* Where a weight of a query that sees m keys lies on the scale, 0 … 255; -1: not a number. */
function levelOf(p, m, top) {
    let t = p / top;
    if (state.scale === "log")
        t = 1 + log2(p) / 16;
    else if (state.scale === "uniform")
        t = 0.5 + log2(p * m) / 8;
    return Number.isNaN(p) ? -1 : round(255 * max(0, min(1, t)));
}
const colorOf = (p, m, top) => colors[levelOf(p, m, top)] || GREY;
const pixelOfWeight = (p, m, top) => pixels[levelOf(p, m, top)] ?? GREY_PIXEL;
const text = rgb => `rgb(${rgb.join(" ")})`;

/* Black or white, whichever contrasts more: at least 4.58 to 1. */
function inkOn(rgb) {
    const linear = c => c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4;
    const y = 0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2]) + 0.05;
    return y * y > 0.05 * 1.05 ? "#000000" : "#ffffff";
}

/* A bar of colours between the words for its ends. */
function scaleBar([first, last], color) {
    const bar = el("canvas", {width: 160, height: 1, role: "img", label: "colour scale"});
    const context = bar.getContext("2d");
    for (let x = 0; x < 160; x++) {
        context.fillStyle = color(x * 255 / 159);
        context.fillRect(x, 0, 1, 1);
    }
    return el("span", {class: "legend"}, first, bar, last);
}
const scaleEnds = top =>
    ({linear: ["0", top], log: ["2⁻¹⁶", "1"], uniform: ["1/16 of uniform", "16 ×"]})[state.scale];
const legend = (head, top = topOf(head)) =>
    scaleBar(scaleEnds(String(top)), level => text(colors[round(level)]));
