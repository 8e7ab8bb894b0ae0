"use strict";
/*
 * The live page: a text is typed, or an image given, workers compute (worker.mjs), and the page of it is shown in a frame
 * below, as `qkv look -o FILE.html` writes it. The document in the frame goes on to the next text (follow.js). Where it cannot,
 * such as to another model, a new one takes its place when it is drawn, at the same head, query, tab, scroll and theme. The first
 * page is in this file, finished: it is there before the engine is.
 */
const byId = id => document.getElementById(id);
const text = byId("text"), main = document.querySelector("main"), root = document.documentElement;
/* After the last key, in ms: then the page with maps is made, too; sooner if a map is what is shown. */
const PAUSE = 1200, MAP_PAUSE = 300;
const EXAMPLES = JSON.parse(byId("examples").dataset.texts);
const el = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
        if (key.startsWith("on"))
            made.addEventListener(key.slice(2), value);
        else if (value !== false && value !== null && value !== undefined)
            made.setAttribute(key, value === true ? "" : value);
    made.append(...children);
    return made;
};
const button = (name, onclick, more = {}) => el("button", {type: "button", onclick, ...more}, name);
const says = words => {
    if (byId("state").textContent !== words) byId("state").textContent = words;
};

/* ---- Workers ------------------------------------------------------------------------------------ */

/* A worker that answers one request at a time; end() drops what it computes. */
class Desk {
    constructor() {
        this.busy = false;
        this.last = 0;
        this.#hire();
    }
    #hire() {
        const url =
            URL.createObjectURL(new Blob([byId("worker").textContent], {type: "text/javascript"}));
        this.worker = new Worker(url);
        this.worker.onmessage = ({data}) => {
            if (data.id !== this.last) return;
            this.busy = false;
            this.done(data);
        };
        this.worker.onerror = event => {
            this.busy = false;
            this.done({error: event.message || "the worker cannot be started"});
        };
    }
    ask(request) {
        this.busy = true;
        return new Promise(done => {
            this.done = done;
            this.worker.postMessage({id: ++this.last, ...request});
        });
    }
    end() {
        this.worker.terminate();
        this.#hire();
        if (this.busy) this.done({ended: true});
        this.busy = false;
    }
}

let engine = null;  // what `begin` answered: module, files, model
let model = {
    mask: "[MASK]",
    texts: true,
    images: false
};                              // of the first page, until the engine has told
let quick = null, slow = null;  // desks: pages without maps, and whole ones

/* Opens the model in the worker of a desk: the reader's, or the one of this page. */
function open(desk, given) {
    const {module, files} = engine;
    return desk.open = desk.ask({kind: "again", module, files, given});
}
async function ready(desk) {
    await (desk.open ?? open(desk, engine.given));
    return desk;
}

async function begin() {
    quick = new Desk();
    const packed = name => byId(name).textContent;
    const answer = await quick.ask({
        kind: "begin",
        modules: {relaxed: packed("relaxed"), exact: packed("exact")},
        files: ["config", "vocab", "weights"].map(packed)
    });
    if (answer.error) {
        problem(`The engine cannot be started in this browser: ${answer.error}`);
        return;
    }
    engine = answer;
    model = engine.model;
    for (const name of ["relaxed", "exact", "config", "vocab", "weights"]) byId(name).remove();
    quick.open = Promise.resolve();
    root.dataset.engine = engine.name;
    says(engineText());
    changed();
}
const engineText = () =>
    `Engine: WebAssembly, ${engine.name === "relaxed" ? "relaxed SIMD" : "SIMD"}`;

/* ---- The frame ---------------------------------------------------------------------------------- */

let shown = null, coming = null;  // frames
let next = null;                  // a page that waits for the one that is coming
let linked = null;                // a place that the address of this page names, for the next page

const docOf = frame => frame.contentDocument;
const tabNow = () =>
    shown && docOf(shown)?.querySelector("#tabs [aria-selected=true]")?.id.slice(4);

/* What the reader chose, and where it is scrolled to. */
function placeOf(frame) {
    const [head, query, key, tab] = frame.contentWindow.address().slice(1).split("/"),
                             page = docOf(frame);
    return {
        head,
        query: +query === frame.query ? null : +query,
        key: +key,
        tab,
        tokens: frame.tokens,
        closed: ["rail", "side"].filter(name => page.body.classList.contains("no-" + name)),
        asking: !page.getElementById("what-if").hidden,
        scrolled: ["panel", "rail", "grid", "inspector"].map(
            id => [id, page.getElementById(id)?.scrollTop]),
        top: frame.contentWindow.scrollY
    };
}

/*
 * For each token of a text before it was edited its place in the text now; null: it is gone. Tokens that a longest common
 * subsequence has are the same; as many others between two of them stand for each other, such as [MASK] for a word.
 */
const MOST_ALIGNED = 4e6;  // pairs of tokens
function placesIn(before, now) {
    let from = 0, end = 0;
    const most = Math.min(before.length, now.length), places = Array(before.length).fill(null);
    while (from < most && before[from] === now[from]) places[from] = from++;
    while (end < most - from && before.at(-1 - end) === now.at(-1 - end)) end++;
    const n = before.length - end, m = now.length - end, behind = m - n;
    for (let i = n; i < before.length; i++) places[i] = i + behind;
    alignMiddle(before, now, [from, n], [from, m], places);
    for (let i = from, j = from; i < n;) {
        let next = i;
        while (next < n && places[next] === null) next++;
        const to = next < n ? places[next] : m;
        if (next - i === to - j)
            while (i < next) places[i++] = j++;
        i = next + 1;
        j = to + 1;
    }
    return places;
}
function alignMiddle(before, now, [a, n], [b, m], places) {
    const wide = m - b + 1;
    if ((n - a) * wide > MOST_ALIGNED) return;
    const longest = new Uint16Array((n - a + 1) * wide), at = (i, j) => (i - a) * wide + j - b;
    for (let i = n - 1; i >= a; i--)
        for (let j = m - 1; j >= b; j--)
            longest[at(i, j)] = before[i] === now[j] ?
                longest[at(i + 1, j + 1)] + 1 :
                Math.max(longest[at(i + 1, j)], longest[at(i, j + 1)]);
    for (let i = a, j = b; i < n && j < m;)
        if (before[i] === now[j])
            places[i++] = j++;
        else if (longest[at(i + 1, j)] >= longest[at(i, j + 1)])
            i++;
        else
            j++;
}

function addressFor(place, tokens) {
    if (!place) return "";
    const {head, tab} = place;
    if (!place.tokens)
        return `#${head}/${place.query ?? ""}/${place.key ?? ""}/${tab}`;  // of a link
    const places = placesIn(place.tokens, tokens),
          kept = place.query === null ? null : places[place.query],
          key = kept === null ? null : places[place.key];
    return `#${head}/${kept ?? ""}/${key ?? ""}/${tab}`;
}

/*
 * Asks of another text what a frame asks in What if. A dropped token has moved with the text, or is gone; what does not apply any
 * more is said.
 */
function askAsBefore(from, to) {
    const asked = from.contentWindow.askedNow(), {tokens} = from;
    if (asked) tellGone(to.contentWindow.askMoved(asked, tokens, placesIn(tokens, to.tokens)));
}
function tellGone(names) {
    if (names.length)
        tellEnded(
            `No longer asked in What if, as this text does not have it: ${names.join(", ")}.`);
}
function tellEnded(words) {
    const box = byId("ended");
    box.hidden = !words;
    if (words) box.replaceChildren(words, " ", button("OK", () => tellEnded("")));
}

/* What a page is made of, from its file: the hashes of its script and style, its manifest, its heads. */
function partsOf(words) {
    const [, hashes] = words.match(/http-equiv="Content-Security-Policy" content="([^"]*)/),
             [, manifest] = words.match(/id="qkv-manifest">([^<]*)/);
    return {
        hashes,
        manifest: JSON.parse(manifest),
        heads: Array.from(words.matchAll(/id="qkv-head-\d+">([^<]*)/g), ([, head]) => head)
    };
}

/* The page for a frame: with the theme that the reader chose, and follow.js, which its policy does not know. */
function framed(words) {
    const {theme} = root.dataset, {hash} = byId("follow").dataset,
          page = words.replace("script-src ", `script-src ${hash} `);
    return theme ? page.replace("<html ", `<html data-theme="${theme}" `) : page;
}
function letFollow(frame) {
    const script = docOf(frame).createElement("script");
    script.textContent = byId("follow").textContent;
    docOf(frame).head.append(script);
}

/* The document that is shown goes on to the text of a page, where it can. */
function followed(page, {hashes, manifest, heads}) {
    if (hashes !== shown?.hashes || !shown.contentWindow.canFollow?.(manifest)) return false;
    const {tokens, query} = manifest,
                   gone =
                       shown.contentWindow.follow(manifest, heads, placesIn(shown.tokens, tokens));
    Object.assign(shown, page, {tokens, query});
    if (linked) goTo(shown, addressFor(linked, tokens));
    linked = null;
    tellGone(gone);
    askForMap();
    return true;
}

function showPage(page) {
    if (coming) {
        next = page;
        return;
    }
    const words = new TextDecoder().decode(page.bytes), parts = partsOf(words), {of, whole} = page;
    if (followed({of, whole}, parts)) return;
    const frame = coming = el("iframe", {title: "Attention of the text", class: "coming"}),
          place = linked ?? (shown && isText(shown.of) === isText(of) ? placeOf(shown) : null),
          {hashes, manifest: {tokens, query}} = parts;
    linked = null;
    Object.assign(frame, {of, whole, hashes, tokens, query});
    const adopt = () => {
        letFollow(frame);
        fitIn(docOf(frame));
        if (shown) askAsBefore(shown, frame);
        settle(frame, place);
        shown?.remove();
        frame.className = "";
        shown = frame;
        coming = null;
        watch(frame);
        const waiting = next;
        next = null;
        if (waiting) showPage(waiting);
    };
    // As soon as its scripts have run and its heads are there, without waiting for its load event: one frame fewer is painted.
    const isThere = () => frame.contentWindow?.askAgain && docOf(frame).readyState !== "loading";
    const wait = () => {
        isThere() ? adopt() : requestAnimationFrame(wait);
    };
    requestAnimationFrame(wait);
    frame.srcdoc = framed(words);
    main.append(frame);
}

/* The text stands in the field above; in a corner below there is the state of this page. */
function fitIn(page) {
    page.getElementById("title").style.display = "none";
    page.getElementById("strip").style.paddingBottom = "24px";
}

function goTo(frame, address) {
    frame.contentWindow.readAddress(address);
    frame.contentWindow.draw();
}

function settle(frame, place) {
    if (!place) return;
    const page = docOf(frame);
    goTo(frame, addressFor(place, frame.tokens));
    for (const name of place.closed) frame.contentWindow.setOpen(name, false);
    if (place.asking) frame.contentWindow.setOpen("what-if", true);
    for (const [id, top] of place.scrolled)
        if (top) page.getElementById(id).scrollTop = top;
    frame.contentWindow.scrollTo(0, place.top ?? 0);
}

/* The theme of the page is that of this one; a map is asked for where it is looked at. */
function watch(frame) {
    const page = docOf(frame), html = page.documentElement;
    new MutationObserver(() => {
        if (html.dataset.theme) root.dataset.theme = html.dataset.theme;
    }).observe(html, {attributeFilter: ["data-theme"]});
    new MutationObserver(askForMap).observe(
        page.getElementById("tabs"), {attributes: true, subtree: true});
    page.addEventListener("keydown", cancelOnEscape);
    page.addEventListener("dragenter", () => root.classList.add("dropping"));
    for (const event of ["pointerup", "keyup"]) page.addEventListener(event, writeLinkSoon);
    askForMap();
}
function askForMap() {
    if (tabNow() === "map" && !shown.whole) showWhole(shown);
}

/* ---- A model of the reader's -------------------------------------------------------------------- */

/*
 * What to open of files with paths: the folder of config.json, or a GGUF file. Files of no folder become one. {name, files}: pairs of a
 * path and a File.
 */
function modelOf(files) {
    const inFolder =
              files.map(([path, file]) => [path.includes("/") ? path : `model/${path}`, file]),
          config = inFolder.find(([path]) => /(^|\/)config\.json$/.test(path)),
          gguf = inFolder.find(([path]) => /\.gguf$/i.test(path));
    if (config) return {name: config[0].replace(/\/?config\.json$/, ""), files: inFolder};
    return gguf && {name: gguf[0], files: inFolder};
}

async function openModel(given) {
    byId("models").open = false;
    if (!engine) return;
    tellEnded("");
    says(given ? `opening ${given.name} …` : "opening …");
    for (const desk of [quick, slow]) desk?.end();
    if (slow) slow.open = null;
    const answer = await open(quick, given);
    if (answer.error || answer.ended) {
        quick.open = null;
        says("");
        if (answer.error) problem(answer.error);
        return;
    }
    const {mask} = model;
    engine.given = given;
    model = answer.model;
    if (mask && model.texts)
        text.value = text.value.replaceAll(mask, model.mask ?? "").replace(/ {2,}/g, " ");
    if (!model.images) image = null;
    root.dataset.reads = ["texts", "images"].filter(kind => model[kind]).join(" ");
    answered = whole = null;
    says(engineText());
    unmasked.clear();
    showExamples();
    changed();
}

/* A model, or an image for the one that is open. */
function openFiles(files) {
    const given = modelOf(files), found = files.find(([, file]) => file.type.startsWith("image/"));
    byId("models").open = false;
    if (given)
        openModel(given);
    else if (!found)
        problem(
            "No model: a folder has a config.json and .safetensors files, or take a .gguf file.");
    else if (!model.images)
        problem(`${
            found[0]}: the model that is open reads texts, not images. Open one of images first.`);
    else
        openImage(found[1]);
}

const filesOfInput =
    input => [...input.files].map(file => [file.webkitRelativePath || file.name, file]);

/* Files in what was dropped; a browser may not open folders for a page from disk, and says so. */
async function filesOfEntry(entry, path = "") {
    const own = path + entry.name;
    if (entry.isFile) return [[own, await new Promise((done, fail) => entry.file(done, fail))]];
    const reader = entry.createReader(), all = [];
    for (;;) {
        const some = await new Promise((done, fail) => reader.readEntries(done, fail));
        if (!some.length) return all;
        for (const inside of some) all.push(...await filesOfEntry(inside, own + "/"));
    }
}
async function drop(event) {
    event.preventDefault();
    root.classList.remove("dropping");
    const {items, files} = event.dataTransfer,
                  entries = [...items].map(item => item.webkitGetAsEntry?.()),
                  plain = [...files].map(file => [file.name, file]);
    try {
        const isFolder = entries.some(entry => entry?.isDirectory);
        openFiles(
            isFolder ? (await Promise.all(entries.map(entry => filesOfEntry(entry)))).flat() :
                       plain);
    } catch {
        problem("This browser does not open dropped folders here: take Model, Folder.");
    }
}
function listenForModels() {
    for (const id of ["model-folder", "model-files", "image-file"])
        byId(id).addEventListener("change", ({target}) => {
            if (target.files.length) openFiles(filesOfInput(target));
            target.value = "";
        });
    byId("model-own").addEventListener("click", () => openModel(null));
    for (const on of ["dragenter", "dragover"])
        addEventListener(on, event => {
            event.preventDefault();
            root.classList.add("dropping");
        });
    addEventListener(
        "dragleave", event => event.relatedTarget || root.classList.remove("dropping"));
    addEventListener("drop", drop);
}

/* ---- A text, or an image ------------------------------------------------------------------------ */

/* What is looked at is a text, or an image, {name, file}, another object each time that one is given. */
let image = null;
const lookedAt = () => image ?? text.value, isText = of => typeof of === "string",
      isNothing = () => !image && !(model.texts && text.value.trim()),
      requestOf = of => isText(of) ? {text: of} : {image: of};
let answered = null,
    whole = null;  // what was answered last; {of, made}: the page with maps
let due = false, later = 0;

function openImage(file) {
    image = {name: file.name, file};
    tellEnded("");
    changed();
}

/* What a message advises for the command line means nothing here. */
function problem(words) {
    byId("problem").textContent = words.replace(/: --\w.*$/, "");
    root.classList.toggle("failed", !!words);
}

function invite(on) {
    const box = byId("invitation");
    root.classList.toggle("empty", on);
    box.hidden = !on;
    if (on) {
        byId("says").replaceChildren();
        byId("words").replaceChildren();
        byId("count").textContent = "";
        problem("");
    }
}

/* After each change of what is looked at. */
function changed() {
    clearTimeout(later);
    writeLinkSoon();
    invite(isNothing());
    if (isNothing() || !engine) return;
    if (quick.busy) {
        due = true;
        return;
    }
    compute();
}

async function compute() {
    const wanted = lookedAt(), late = setTimeout(() => says("computing … (Esc stops it)"), 300),
          {textContent: before} = byId("problem");
    due = false;
    const answer = await (await ready(quick)).ask({kind: "look", ...requestOf(wanted)});
    clearTimeout(late);
    if (answer.ended) return;
    if (answer.words) showWords(answer.words, wanted);
    if (answer.error) {
        problem(answer.error);
    } else if (!isNothing()) {
        answered = wanted;
        if (byId("problem").textContent === before) problem("");  // what is told meanwhile stays
        if (isText(wanted))
            showSays(answer.seen);
        else
            showImageSays(answer.seen, wanted);
        says(`${engineText()}: ${answer.ms.toFixed(0)} ms`);
        take({bytes: answer.page, of: wanted});  // last: what stands above takes its place before
        later = taken?.of === wanted ? setTimeout(showWhole, MAP_PAUSE, taken) :
                                       setTimeout(() => makeWhole(), PAUSE);
    }
    if (due || lookedAt() !== wanted) changed();
}

/* A page without maps. While a map is looked at, the old one stays until there is a new one: `taken` is kept for it. */
let taken = null;
function take(page) {
    taken = null;
    if ((next ?? coming ?? shown)?.of === page.of) return;
    if (tabNow() === "map" && shown.whole)
        taken = page;
    else
        showPage(page);
}

/* The page with maps, once for each text or image; before the first answer, of what is written there. */
function makeWhole(wanted = answered ?? lookedAt()) {
    if (whole?.of === wanted) return whole.made;
    if (slow?.busy) slow.end(), slow.open = null;
    slow ??= new Desk();
    const made = (async () => {
        const answer = await (await ready(slow)).ask({kind: "page", ...requestOf(wanted)});
        if (answer.error || answer.ended) {
            if (whole?.made === made) whole = null;
            return null;
        }
        return answer.page;
    })();
    whole = {of: wanted, made};
    return made;
}

/* In place of the page that is shown, or of one that waits: of the same, without maps. */
async function showWhole(page) {
    const frame = shown, {of} = page;
    says("making the map …");
    const bytes = await makeWhole(of), isNow = shown === frame && !coming && page.of === of;
    if (!bytes || !isNow || page.whole || ![frame, taken].includes(page)) return;
    showPage({of, bytes, whole: true});
    says(engineText());
}

/* ---- What stands around the text ---------------------------------------------------------------- */

function write(words) {
    image = null;
    text.value = words;
    fit();
    changed();
}

const bytesOf = words => new TextEncoder().encode(words);
const ABOUT = [
    "not in the vocabulary of the model: it reads [UNK]",
    "the model was never shown this word: it reads it in pieces", "", ""
];

/* Each word is a button that masks it; a mask that was made so gives its word back. */
const unmasked = new Map();
function showWords({n, words}, of) {
    const bytes = bytesOf(of), {mask, most} = model,
          part = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
    byId("count").textContent = `${n} of ${most} tokens`;
    byId("words").replaceChildren(
        ...words.filter(([begin, end]) => part(begin, end).trim()).map(([begin, end, state]) => {
            const word = part(begin, end), before = part(0, begin), after = part(end),
                  isMask = word === mask, back = isMask && unmasked.get(before + mask + after),
                  into = isMask ? back : mask;
            const what = into && (isMask ? `click: ${back} again` : `click: ${mask} in its place`);
            const click = () => {
                if (!isMask) unmasked.set(before + mask + after, word);
                write(before + into + after);
            };
            return button(word, click, {
                class: ["unknown", "pieces", "", "special"][state],
                disabled: !into,
                title: [ABOUT[state], what].filter(Boolean).join("; ")
            });
        }));
}

const percent = p => p >= 0.0995 ? `${(100 * p).toFixed(0)} %` :
    p >= 0.00095 ? `${(100 * p).toFixed(1)} %` :
                   "< 0.1 %";

/* Candidates of a [MASK] or of the next token, as a list with bars. */
function guesses(name, list, fill) {
    return el(
        "div", {class: fill ? "guesses" : "guesses labels"}, el("h2", {}, name),
        el("ol", {},
           ...list.map(
               ({token, probability}) =>
                   el("li", {},
                      el("button", {
                          type: "button",
                          title: fill && "click: this word in its place",
                          disabled: !fill,
                          onclick: () => fill?.(token)
                      },
                         token),
                      el("meter", {value: probability, "aria-hidden": "true"}),
                      el("span", {}, percent(probability))))));
}

/* Puts a candidate in the place of the n-th mask. */
function fillMask(n, token) {
    const parts = text.value.split(model.mask);
    if (n + 1 < parts.length)
        write(parts.slice(0, n + 1).join(model.mask) + token + parts.slice(n + 1).join(model.mask));
}

function allGuesses({predictions = [], next, labels}) {
    const {mask} = model;
    if (labels) {
        const list = labels.map(
            ({label: token, probability, value}) => ({token, probability: probability ?? value}));
        return [guesses("Labels", list, null)];
    }
    if (next) {
        const list = next.map(
            ({token, probability}) =>
                ({token: token.replace(/^[\u0120\u2581]/, "\u2423"), probability}));
        return [guesses("Next", list, token => write(text.value + token.replace("\u2423", " ")))];
    }
    return predictions.slice(0, 3).map(
        ({candidates}, n) => guesses(
            predictions.length > 1 ? `${mask} ${n + 1}` : mask, candidates,
            token => fillMask(n, token)));
}

const showHead = ({layer, head, query, key}, tab = "tokens") => button(
    `Show head ${layer}.${head}`,
    () => shown && goTo(shown, `#${layer}.${head}/${query}/${key}/${tab}`));

/* Predictions, and the heads that they rest on. */
function showSays(seen) {
    const made = allGuesses(seen), {mask} = model,
          told = (seen.findings ?? [])
                     .slice(0, 2)
                     .map(found => el("p", {}, found.text + " ", showHead(found)));
    if (!made.length && mask)
        told.unshift(
            el("p", {class: "hint"},
               `Click a word, or write ${
                   mask} in its place: the model says which word it expects there.`));
    byId("says").replaceChildren(...made, el("div", {id: "findings"}, ...told));
}

/* Labels, and the patch that the sharpest head looks at. */
function showImageSays(
    {classes, image: {width, height}, tokens, query, map, shown: found}, {name}) {
    const LISTED = 5, weights = map.flat(), best = Math.max(...weights), at = weights.indexOf(best),
          key = tokens.length - weights.length + at,
          list = (classes ?? [])
                     .map(
                         ({label: token, probability, value}) =>
                             ({token, probability: probability ?? value}))
                     .sort((a, b) => b.probability - a.probability)
                     .slice(0, LISTED);
    byId("image-name").textContent = `${name}, ${width} × ${height}`;
    byId("says").replaceChildren(
        ...list.length ? [guesses("Labels", list, null)] : [],
        el("div", {id: "findings"},
           el("p", {},
              `In head ${found.layer}.${found.head} ${
                  query === "all" ? "the mean of all patches" :
                                    query} looks most at patch ${tokens[key]} (${
                  best.toFixed(3)}): no head of the last layer looks at a patch more. `,
              showHead({...found, query: tokens.indexOf(query), key}, "image"))));
}

/* With the mask of the model; for one that goes on, what stands before it. */
const examples = () => EXAMPLES.map(
    words => model.mask ? words.replaceAll("[MASK]", model.mask) : words.split("[MASK]")[0].trim());

function showExamples() {
    byId("examples")
        .replaceChildren(
            el("span", {}, "Try"), ...examples().map(words => button(words, () => write(words))));
    const how = model.mask ? `, with ${model.mask} for a word to predict,` : "",
          type = `Write a sentence${how} or take one of the examples`,
          give = "Drop an image here, a PNG or a JPEG, or choose one above.";
    byId("invitation").textContent = !model.images ? `${type}.` :
        model.texts ? `${type}. ${give}` :
                      give;
}

/* ---- Links and files ---------------------------------------------------------------------------- */

/* #at=3.0/5/8/tokens&text=…: the text, and what is shown of it. */
function writeLink() {
    const link = new URLSearchParams(), tab = tabNow();
    if (tab) link.set("at", shown.contentWindow.address().slice(1));
    if (!image && model.texts) link.set("text", text.value);
    try {
        history.replaceState(null, "", "#" + link);
    } catch { /* a browser that is asked too often */
    }
}
/* A browser takes milliseconds for it. */
function writeLinkSoon() {
    clearTimeout(writeLink.later);
    writeLink.later = setTimeout(writeLink, 300);
}
function readLink() {
    const link = new URLSearchParams(location.hash.slice(1)), at = link.get("at")?.split("/");
    const [head, query, key, tab] = at || [];
    return {
        text: link.get("text"),
        place: at ? {head, query, key, tab, closed: [], scrolled: []} : null
    };
}

async function copyLink() {
    writeLink();
    if (image) {
        says("a link holds no image: Save page writes a file that does");
        return;
    }
    try {
        await navigator.clipboard.writeText(location.href);
        says("link copied");
    } catch {
        says("the link is the address of this page");
    }
}

async function save() {
    says("making the page …");
    const bytes = await makeWhole();
    if (!bytes) {
        says("there is no page to save");
        return;
    }
    const url = URL.createObjectURL(new Blob([bytes], {type: "text/html"}));
    el("a", {href: url, download: "look.html"}).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
    says("saved look.html");
}

/* ---- Begin -------------------------------------------------------------------------------------- */

/* Where field-sizing is not known. */
function fit() {
    if (CSS.supports("field-sizing", "content")) return;
    text.style.height = "auto";
    text.style.height = `${text.scrollHeight + 2}px`;
}

function cancelOnEscape(event) {
    if (event.key !== "Escape" || !quick?.busy || !engine) return;
    quick.end();
    quick.open = null;
    due = false;
    says("stopped");
}

async function unpackedFirst() {
    const packed = Uint8Array.from(atob(byId("first").textContent), c => c.charCodeAt(0)),
          stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function showFirst() {
    const link = readLink();
    text.value = link.text ?? EXAMPLES[0];
    linked = link.place;
    fit();
    if (text.value !== EXAMPLES[0]) return;
    showSays(JSON.parse(byId("first-seen").textContent));
    const bytes = await unpackedFirst();
    whole ??= {of: EXAMPLES[0], made: Promise.resolve(bytes)};
    if (!shown && !coming) showPage({bytes, of: EXAMPLES[0], whole: true});
}

text.addEventListener("input", () => {
    image = null;
    fit();
    changed();
});
text.addEventListener("keydown", event => {
    cancelOnEscape(event);
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) event.preventDefault();
});
document.querySelector("form").addEventListener("submit", event => event.preventDefault());
byId("share").addEventListener("click", copyLink);
byId("save").addEventListener("click", save);
byId("reset").addEventListener("click", () => {
    tellEnded("");
    write(examples()[0]);
    text.focus();
});
addEventListener("hashchange", () => {
    const link = readLink();
    if (link.text === null || link.text === text.value) return;
    linked = link.place;
    write(link.text);
});
listenForModels();
says("loading …");
showExamples();
showFirst();
if (document.readyState === "loading")
    addEventListener("DOMContentLoaded", begin);
else
    begin();
