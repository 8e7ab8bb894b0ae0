/*
 * The package qkv-wasm: `const {engine} = await load()` is an Engine (engine.mjs) with the embedded model.
 */
import {best, Engine} from "./engine.mjs";

const own = name => new URL(name, import.meta.url);

async function bytesOf(url) {
    if (url.protocol !== "file:") return new Uint8Array(await (await fetch(url)).arrayBuffer());
    const {readFile} = await import("node:fs/promises");
    return new Uint8Array(await readFile(url));
}

/* {engine, name: "relaxed" or "exact", model: {source, architecture, most, isa, mask, texts, images}, reasons} */
export async function load() {
    const files = await Promise.all(["config.json", "vocab.txt", "model.safetensors"].map(
        name => bytesOf(own(`./model/${name}`)))),
          module = name => () => bytesOf(own(`./engine-${name}.wasm`));
    return best({relaxed: module("relaxed"), exact: module("exact")}, files);
}

/* For a model of your own: an engine of the exact module, which runs everywhere; files as in Engine.start. */
export async function start(files) {
    return Engine.start(
        await WebAssembly.compile(await bytesOf(own("./engine-exact.wasm"))), files);
}

export {Engine};
