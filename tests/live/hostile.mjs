/*
 * node hostile.mjs ENGINE.wasm MODEL GGUF SEED: models that are damaged end in a message, and the engine beside them works on; 500 texts leave
 * the memory of the module as large as the first 50 did. A trap of the module (WebAssembly.RuntimeError) is a failure, whatever caused it.
 */
import {readdirSync, readFileSync} from "node:fs";
import {basename, join} from "node:path";

import {Engine} from "../../live/engine.mjs";

const [, , wasm, model, gguf, seed] = process.argv;
let nCases = 0;
function check(what, good, more = "") {
    nCases++;
    if (good) return;
    console.error(`FAILED: ${what} ${more}`);
    process.exitCode = 1;
}
/* Numbers of a seed, in [0, n): xorshift32. */
let state = (Number(seed) >>> 0) || 1;
function draw(n) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % n;
}

const module = await WebAssembly.compile(readFileSync(wasm));
const readAll = folder =>
    readdirSync(folder).map(name => [name, new Uint8Array(readFileSync(join(folder, name)))]);
const whole = new Map(readAll(model)), file = basename(gguf),
      tiny = new Uint8Array(readFileSync(gguf));
const bytesOf = text => new TextEncoder().encode(text);

/* Opens it and looks; what it says of it, "" if all of it works. An engine of its own: what is damaged may fill its memory. */
async function attempt(name, files) {
    const tried = await Engine.start(module, new Map(files));
    try {
        if (tried.open(name).texts) tried.look("the cat sat");
        return "";
    } catch (error) {
        check(`${name}: no trap`, !(error instanceof WebAssembly.RuntimeError), error.stack);
        return error.message || "no message";
    }
}
const folder = changes => [...new Map([...whole, ...changes])].map(
    ([name, bytes]) => [`given/${name}`, bytes]);

// A header of safetensors: the length of its JSON, then the JSON.
function header(text, length = text.length) {
    const bytes = new Uint8Array(8 + text.length);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
    bytes.set(bytesOf(text), 8);
    return bytes;
}
const config = JSON.parse(new TextDecoder().decode(whole.get("config.json"))),
      weights = whole.get("model.safetensors");
const withConfig = changes => [["config.json", bytesOf(JSON.stringify({...config, ...changes}))]];
const withWeights = bytes => [["model.safetensors", bytes]];
const deep = 1e5, nested = "[".repeat(deep) + "]".repeat(deep);
const huge = `{"a": {"dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 64]}}`;
const damaged = {
    "an empty config.json": [["config.json", new Uint8Array(0)]],
    "a nested config.json": [["config.json", bytesOf(nested)]],
    "a config.json of 3 MB": [["config.json", bytesOf(`{"a": "${"x".repeat(3e6)}"`)]],
    "a width of 2^31": withConfig({hidden_size: 2 ** 31}),
    "10^9 layers": withConfig({num_hidden_layers: 1e9}),
    "10^9 positions": withConfig({max_position_embeddings: 1e9}),
    "10^9 words": withConfig({vocab_size: 1e9}),
    "no heads": withConfig({num_attention_heads: 0}),
    "half of the weights": withWeights(weights.slice(0, weights.length >> 1)),
    "a header of 2^62 bytes": withWeights(header("{}", 2n ** 62n)),
    "a header of 4 GB": withWeights(header("{}", 2n ** 32n - 1n)),
    "a nested header": withWeights(header(nested)),
    "a tensor of 2^64 numbers": withWeights(header(huge)),
    "an empty tokenizer": [["tokenizer.json", new Uint8Array(0)]],
    "a nested tokenizer": [["tokenizer.json", bytesOf(nested)]],
    "a word of 3 MB": [[
        "tokenizer.json",
        bytesOf(`{"model": {"type": "WordPiece", "vocab": {"${"x".repeat(3e6)}": 0}}}`)
    ]]
};
for (const [what, changes] of Object.entries(damaged)) {
    const reason = await attempt("given", folder(changes));
    check(`${what}: a reason`, reason.includes("given"), reason);
}
check("the model itself is fine", await attempt("given", folder([])) === "");

// A GGUF file, cut short and with bytes changed: most of them at its start, where lengths and counts are.
let nRefused = 0;
for (let round = 0; round < 150; round++) {
    const broken = round < 30 ? tiny.slice(0, draw(tiny.length)) : tiny.slice();
    for (let n = round < 30 ? 0 : 1 + draw(3); n > 0; n--)
        broken[draw(draw(3) ? Math.min(2000, broken.length) : broken.length)] ^= 1 << draw(8);
    nRefused += await attempt(file, [[file, broken]]) !== "";
}
check("damaged GGUF files are refused", nRefused > 50, nRefused);

// 500 texts.
const engine = await Engine.start(module);
engine.openFiles(["config.json", "vocab.txt", "model.safetensors"].map(name => whole.get(name)));
const words = ["the", "man", "saw", "[MASK]", "door", "when", "it", "opened", "a", "dog"],
      sizes = [];
for (let at = 0; at < 500; at++) {
    const largest = at % 25 === 0, n = largest ? 45 : 3 + draw(8);  // it comes first, and again
    engine.page(Array.from({length: n}, () => words[draw(words.length)]).join(" "), largest);
    sizes.push(engine.calls.memory.buffer.byteLength);
}
check(
    "memory after 500 texts is that after 50", sizes[499] === sizes[49],
    [sizes[0], sizes[49], sizes[499]]);
console.log(`seed ${seed}: ${nRefused} of 150 damaged GGUF files refused; 500 texts in ${
    sizes[499] / 2 ** 20} MB`);
console.log(`${nCases} cases`);
