/* node run.mjs PROGRAM.wasm ARGS…: a program of WASI in Node, with no files. Its exit status. */
import {readFile} from "node:fs/promises";
import {WASI} from "node:wasi";

const [, , file, ...args] = process.argv;
const wasi = new WASI({version: "preview1", args: [file, ...args], returnOnExit: true});
const module = await WebAssembly.compile(await readFile(file));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
