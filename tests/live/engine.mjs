/*
 * node engine.mjs ENGINE.wasm MODEL LINES.txt SEER IMAGES OUT: the engine (live/engine.mjs) in Node. Each line of JSON of LINES.txt is
 * a text; its page is OUT/<line>.html, its JSON OUT/<line>.json. The model of the folder SEER looks at each file of the folder IMAGES:
 * OUT/<file>.html and .json, or OUT/<file>.error, the reason. Refusals, other models and misuse are tested here, too.
 */
import {readdirSync, readFileSync, writeFileSync} from "node:fs";
import {basename, join} from "node:path";

import {Engine} from "../../live/engine.mjs";

const [, , wasm, model, lines, seer, images, out] = process.argv;
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
        about.architecture === "bert" && about.texts && !about.images,
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
check("and both", refusal(() => engine.both(long)) === reason);
check("a quick page", engine.page("the man", false).length > 100000);

readFileSync(lines, "utf8")
    .trimEnd()
    .split("\n")
    .map(line => JSON.parse(line))
    .forEach((text, i) => {
        const seen = JSON.stringify(engine.look(text)), both = engine.both(text);
        writeFileSync(join(out, `${i}.html`), engine.page(text));
        writeFileSync(join(out, `${i}.json`), seen);
        check(
            `of one pass: ${text}`,
            JSON.stringify(both.seen) === seen &&
                !Buffer.compare(both.page, engine.page(text, false)));
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

// Images: those of tests, each also cut short and with bytes changed, which must leave an engine that works.
const filesOf = folder =>
          readdirSync(folder).map(name => [name, new Uint8Array(readFileSync(join(folder, name)))]),
      name = basename(seer),
      sees = await Engine.start(
          module, new Map(filesOf(seer).map(([file, bytes]) => [`${name}/${file}`, bytes])));
const eyes = sees.open(name);
check("a model of images", eyes.images && !eyes.texts && eyes.mask === null, JSON.stringify(eyes));
check(
    "it reads no texts", refusal(() => sees.look("a text")).includes("reads images"),
    refusal(() => sees.look("a text")));
check("nor their words", refusal(() => sees.words("a text")).includes("reads images"));
const [png] = filesOf(images).find(([file]) => file === "RGB.png") ?? [];
check(
    "a model of texts reads no images",
    refusal(() => engine.lookImage("a.png", readFileSync(join(images, png))))
        .includes("reads texts"));
for (const [file, bytes] of filesOf(images)) {
    try {
        writeFileSync(join(out, `${file}.json`), JSON.stringify(sees.lookImage(file, bytes)));
        writeFileSync(join(out, `${file}.html`), sees.pageImage(file, bytes));
    } catch (error) {
        writeFileSync(join(out, `${file}.error`), error.message);
    }
    nCases++;
    const short = bytes.slice(0, bytes.length >> 1);
    check(
        `${file}, cut short`, refusal(() => sees.lookImage(file, short)).startsWith(file),
        refusal(() => sees.lookImage(file, short)));
    for (let at = 40; at < bytes.length; at += 1 + (bytes.length >> 3)) {
        const broken = bytes.slice();
        broken[at] ^= 0x55;
        const reason = refusal(() => sees.lookImage(file, broken));
        check(`${file}, byte ${at}`, !reason || reason.startsWith(file), reason);
    }
}
check("the engine works on", sees.files.size === readdirSync(seer).length);
console.log(`${nCases} cases`);
