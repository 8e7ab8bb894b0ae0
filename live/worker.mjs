/*
 * The worker of a live page: it has an engine, and answers one message at a time with {id, …} or {id, error}. `begin` has the
 * packed files of the page, or what another worker made of them, so that only the first one unpacks and compiles.
 */
import {best, Engine} from "./engine.mjs";

let engine = null;

async function unpacked(text) {
    const packed = Uint8Array.from(atob(text), character => character.charCodeAt(0)),
          stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

const answers = {
    async begin({modules, files}) {
        const unpack = text => () => unpacked(text), whole = await Promise.all(files.map(unpacked)),
              found = await best(
                  {relaxed: unpack(modules.relaxed), exact: unpack(modules.exact)}, whole);
        engine = found.engine;
        const {module, name, model, reasons} = found;
        return {module, name, model, reasons, files: whole};
    },
    /* given: {name, files}, a model of the reader's: pairs of a path and a File. */
    async again({module, files, given}) {
        engine = null;
        const started = await Engine.start(module, new Map(given?.files));
        const model = given ? started.open(given.name) : started.openFiles(files);
        engine = started;
        return {model};
    },
    /* Of a text, or of an image, {name, file}. */
    look({text, image}) {
        const began = performance.now(), words = image ? null : engine.words(text);
        try {
            const made = image ? engine.bothOfImage(image.name, image.file) : engine.both(text);
            return {words, ...made, ms: performance.now() - began};
        } catch (error) {
            return {words, error: error.message};
        }
    },
    page: ({text, image}) =>
        ({page: image ? engine.pageImage(image.name, image.file) : engine.page(text)}),
};

self.onmessage = async ({data}) => {
    const {id, kind} = data;
    const tell = answer =>
        self.postMessage({id, ...answer}, answer.page ? [answer.page.buffer] : []);
    try {
        tell(await answers[kind](data));
    } catch (error) {
        tell({error: error.message});
    }
};
