/*
 * node engine.mjs ENGINE.wasm MODEL LINES.txt OUT: the engine (live/engine.mjs) in Node. Each line of JSON of LINES.txt is a text; its
 * page is OUT/<line>.html, its JSON OUT/<line>.json. Refusals, other models and misuse are tested here, too.
 */
import {readdirSync, readFileSync, writeFileSync} from "node:fs";
import {join} from "node:path";

import {Engine} from "../../live/engine.mjs";

const [, , wasm, model, lines, out] = process.argv;
let nCases = 0;
function check(what, good, more = "") {
    nCases++;
    if (good) return;
    console.error(`FAILED: ${what} ${more}`);
    process.exitCode = 1;
}
const refusal = run => {
    try {
        run();
    } catch (error) {
        return error.message;
    }
    return "";
};

const module = await WebAssembly.compile(readFileSync(wasm)), engine = await Engine.start(module);
check(
    "no model", refusal(() => engine.look("x")) === "no model is open",
    refusal(() => engine.look("x")));
check(
    "no embedded model", refusal(() => engine.open("")).includes("no model is embedded"),
    refusal(() => engine.open("")));
const files =
    ["config.json", "vocab.txt", "model.safetensors"].map(name => readFileSync(join(model, name)));
const about = engine.openFiles(files);
check(
    "about",
    about.mask === "[MASK]" && about.most === 48 && about.source === "embedded" &&
        about.architecture === "bert",
    JSON.stringify(about));
console.log(`kernels: ${about.isa}`);

const {n, words} = engine.words("Zoë saw the 🐈 and [MASK].");
check("words", n === 12 || n > 6, n);
check(
    "states", words.at(-2)[2] === 3 && words.find(([begin]) => begin === 9)[2] === 2,
    JSON.stringify(words));
const long = "the ".repeat(60), reason = refusal(() => engine.look(long));
check("a long text has words", engine.words(long).n === 62);
check("a long text is refused", reason.includes("62") && reason.includes("48"), reason);
check("and so is its page", refusal(() => engine.page(long)) === reason);
check("a quick page", engine.page("the man", false).length > 100000);

readFileSync(lines, "utf8")
    .trimEnd()
    .split("\n")
    .map(line => JSON.parse(line))
    .forEach((text, i) => {
        writeFileSync(join(out, `${i}.html`), engine.page(text));
        writeFileSync(join(out, `${i}.json`), JSON.stringify(engine.look(text)));
        nCases++;
    });

// The same model as a folder, and what is none.
const folder = new Map(readdirSync(model).map(
    name => [`given/${name}`, new Uint8Array(readFileSync(join(model, name)))]));
const other = await Engine.start(module, folder);
check("a folder", other.open("given").source === "given", JSON.stringify(other.open("given")));
check(
    "has the same bits",
    JSON.stringify(other.look("the [MASK] opened")) ===
        JSON.stringify(engine.look("the [MASK] opened")));
check(
    "no folder", refusal(() => other.open("elsewhere")).includes("elsewhere"),
    refusal(() => other.open("elsewhere")));
folder.set("given/model.safetensors", new Uint8Array(100));
check(
    "a broken file", refusal(() => other.open("given")).includes("model.safetensors"),
    refusal(() => other.open("given")));
console.log(`${nCases} cases`);
