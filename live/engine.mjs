/*
 * The engine (engine.c) for scripts: a model is open, a text or an image becomes what `qkv look` makes of it. Works in a browser, in a worker,
 * and in Node.
 */
import {wasi} from "./wasi.mjs";

const utf8 = new TextEncoder(), words = new TextDecoder();

/*
 * An engine with the model of `files`, of the first module that fits: relaxed SIMD where this machine knows it and its multiply-add is
 * an FMA, else the exact one, which comes last. {engine, module, name, model, reasons}: why the others do not fit.
 */
export async function best(modules, files) {
    const reasons = [], names = Object.keys(modules);
    for (const name of names) {
        try {
            const module = await WebAssembly.compile(await modules[name]()),
                  engine = await Engine.start(module), model = engine.openFiles(files);
            if (model.isa === "wasm" || name === names.at(-1))
                return {engine, module, name, model, reasons};
            reasons.push(`${name}: its multiply-add rounds twice here`);
        } catch (error) {
            reasons.push(`${name}: ${error.message}`);
        }
    }
    throw new Error(reasons.join("; "));
}

export class Engine {
    /* module: a WebAssembly.Module. files: Map of what paths hold, for models by name. */
    static async start(module, files = new Map()) {
        const engine = new Engine(), system = wasi(files, () => engine.calls.memory), imports = {};
        engine.files = files;
        for (const {module: from, name} of WebAssembly.Module.imports(module))
            (imports[from] ??= {})[name] = system(name);
        engine.calls = (await WebAssembly.instantiate(module, imports)).exports;
        engine.calls._initialize();
        return engine;
    }

    #put(at, bytes) {
        if (!at) throw new Error("out of memory");
        new Uint8Array(this.calls.memory.buffer, at, bytes.length).set(bytes);
    }
    #give(text) {
        const bytes = utf8.encode(text);
        this.#put(this.calls.live_room(bytes.length), bytes);
    }
    /* What a call left, as bytes of its own; an Error if it failed. */
    #taken(result) {
        const at = this.calls.live_answer(), n = this.calls.live_bytes(),
              bytes = new Uint8Array(this.calls.memory.buffer, at, n).slice();
        if (result !== 0) throw new Error(words.decode(bytes));
        return bytes;
    }
    #json = result => JSON.parse(words.decode(this.#taken(result)));

    /* Opens the model of a file or a folder, {source, architecture, most, isa, mask, texts, images}. */
    open(name) {
        this.#give(name);
        return this.#json(this.calls.live_open());
    }
    /* The same of config.json, vocab.txt and model.safetensors, as Uint8Arrays. */
    openFiles(files) {
        files.forEach(
            (bytes, which) => this.#put(this.calls.live_file(which, bytes.length), bytes));
        return this.open("");
    }
    /* {n, words: [[begin, end, state], …]}: engine.h. */
    words(text) {
        this.#give(text);
        return this.#json(this.calls.live_words());
    }
    /* What `qkv look TEXT --json` prints. */
    look(text) {
        this.#give(text);
        return this.#json(this.calls.live_look(0));
    }
    /* The bytes of `qkv look TEXT -o FILE.html`; without maps they are there sooner. */
    page(text, maps = true) {
        this.#give(text);
        return this.#taken(this.calls.live_page(0, maps ? 1 : 0));
    }
    /* Both, {page, seen}, of one pass through the model; the page is without maps. */
    both(text) {
        this.#give(text);
        return this.#pair(0);
    }
    #pair(image) {
        const page = this.#taken(this.calls.live_both(image));
        return {page, seen: this.#json(this.calls.live_seen())};
    }

    /* The bytes of a PNG or a JPEG are a file of that name while it is looked at. */
    #withImage(name, bytes, look) {
        const before = this.files.get(name);
        this.files.set(name, bytes);
        try {
            this.#give(name);
            return look();
        } finally {
            this.files.delete(name);
            if (before) this.files.set(name, before);
        }
    }
    /* What `qkv look --image NAME --json` prints. */
    lookImage(name, bytes) {
        return this.#withImage(name, bytes, () => this.#json(this.calls.live_look(1)));
    }
    /* As both. */
    bothOfImage(name, bytes) { return this.#withImage(name, bytes, () => this.#pair(1)); }
    /* The bytes of `qkv look --image NAME -o FILE.html`. */
    pageImage(name, bytes, maps = true) {
        return this.#withImage(
            name, bytes, () => this.#taken(this.calls.live_page(1, maps ? 1 : 0)));
    }
}
