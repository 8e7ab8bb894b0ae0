/*
 * node outside.js FOLDER: the page's scripts in FOLDER, without a browser, on names that come from outside: any address gives a
 * view, any label of a head a sentence, and any name of a table keeps the focus. Names of what every object has are names as others are.
 */
"use strict";
const {readFileSync} = require("fs"), assert = require("assert");
const folder = process.argv[2];
let cases = 0;

/* The script of a file, which sees `given` as its globals; `names` of it come back. */
function load(file, given, names) {
    const source = readFileSync(`${folder}/${file}`, "utf8");
    return new Function(...Object.keys(given), `${source}; return {${names}};`)(...Object.values(given));
}
const INHERITED = [...Object.getOwnPropertyNames(Object.prototype), "prototype"];

// ---- The address ----

function page(given = {}) {
    const location = {hash: ""}, places = ["0.0", "0.1", "3.2.1"];
    const made = load(
        "state.js", {
            max: Math.max,
            min: Math.min,
            M: 5,
            N: 7,
            HEADS: [{}, {}, {}],
            manifest: {query: 2},
            asked: {},
            listOf: (n, make) => Array.from({length: n}, (_, i) => make(i)),
            row: () => [0, 0, 0, 0, 1, 0, 0],
            largest: weights => [weights.indexOf(Math.max(...weights))],
            placeName: i => places[i],
            place: {},
            mapHands: {fit() {}},
            location,
            ...given
        },
        "state, tabs, readAddress");
    for (const id of ["start", "tokens", "matrix"]) made.tabs[id] = {show() {}, draw() {}};
    return {
        at(address) {
            location.hash = address && "#" + address;
            made.readAddress();
            const {head, query, key, tab} = made.state;
            return [head, query, key, tab].join();
        }
    };
}
function gives(address, wanted) {
    cases++;
    let got;
    try {
        got = page().at(address);
    } catch (error) {
        got = error;
    }
    assert.strictEqual(String(got), wanted, `#${address}`);
}

gives("", "0,2,4,start");
gives("0.1/1/6/matrix", "1,1,6,matrix");
gives("3.2.1/1/6/tokens", "2,1,6,tokens");
gives("0%2E1/1/6/m%61trix", "1,1,6,matrix");
gives("0.1%2F1%2F6%2Fmatrix", "1,1,6,matrix");
gives("0.1", "1,2,4,tokens");
gives("///matrix", "0,2,4,matrix");
gives("9.9/5/7/matrix", "0,2,4,matrix");
gives("0.1/-1/1e0/nothing", "1,2,4,tokens");
gives("0.1/99999999999999999999/ 1/", "1,2,4,tokens");
// a % that escapes nothing
for (const bad of ["%", "%%", "%2", "%zz", "%ff", "%C3%28", "%uD800"]) gives(bad, "0,2,4,start");
gives("0.1/1/6/%", "1,1,6,tokens");
gives("0.1/%/6/matrix", "1,2,6,matrix");
for (const name of INHERITED) {
    gives(`0.1/1/6/${name}`, "1,1,6,tokens");
    gives(`${name}/1/6/${name}`, "0,1,6,start");
    gives(name, "0,2,4,start");
}

// ---- The first query ----

/* Of queries that see `seen` keys: one of a single key has nothing to choose from. */
function opens(seen, wanted, more = {}) {
    cases++;
    const made = page({headData: () => ({}), keysSeen: i => seen[i], manifest: {}, ...more});
    assert.strictEqual(made.at("").split(",")[1], String(wanted), `keys that are seen: ${seen}`);
}
opens([1, 2, 3, 4, 5], 1);
opens([5, 5, 5, 5, 5], 0);
opens([0, 1, 1, 1, 2], 4);
opens([1, 1, 1, 1, 1], 0);
opens([1, 2, 3, 4, 5], 2, {asked: {special: [1, 1, 0, 0, 0]}});
opens([1, 1, 1, 1, 1], 1, {asked: {special: [1, 0, 0, 0, 0]}});
opens([1, 2, 3, 4, 5], 0, {manifest: {query: 0}});
opens([1, 2, 3, 4, 5], 0, {headData: () => null});  // not read yet

// ---- Labels of heads ----

for (const label of [...INHERITED, "next", "a label of a caller"]) {
    cases++;
    const {labelFindings} = load(
        "start.js", {
            tabs: {},
            HEADS: [{label}, {}],
            headOrder: () => [0, 1],
            statNames: {},
            placeName: i => `0.${i}`,
            el: (name, attributes, ...children) => children.join(""),
            define: text => text
        },
        "labelFindings");
    const [{text}] = labelFindings();
    assert.strictEqual(
        text.join(""), label === "next" ? "Head 0.0 looks at the token after the query." : `Head 0.0 has the label ${label}.`);
}

// ---- Who made the page ----

for (const [end, wanted] of [
         ["is its effect.", "is its effect. Made by `$&()`."],
         ["its effect, which `qkv look --effect -o FILE.html` adds to a page.", "its effect. Made by `$&()`."],
     ]) {
    cases++;
    const panel = {lastElementChild: {}}, map = "There is none: `qkv map --head L.H` makes one. ",
          tabs = {start: {show: given => given.lastElementChild.textContent = end}, map: {says: () => map}};
    load("made_by.js", {tabs, manifest: {made_by: "`$&()`"}}, "");
    tabs.start.show(panel);
    assert.strictEqual(panel.lastElementChild.textContent, wanted);
    assert.strictEqual(tabs.map.says(), "There is none. ");
}
const written = ["start", "map"].map(name => readFileSync(`${folder}/${name}.js`, "utf8"));
assert.match(written[0], /, which `qkv look [^`]*` adds to a page\."/);  // what it takes away
assert.match(written[1], /: `qkv map [^`]*` makes one\."/);

// ---- Names of tables ----

for (const place of ["12", "a \"table\"] 3", "back\\slash 4", ...INHERITED]) {
    cases++;
    let focused = null;
    const button = name => ({dataset: {place: name}, focus: () => focused = name});
    const active = button(place), children = [button("other"), button(place)];
    const node = {
        contains: () => true,
        replaceChildren() {},
        // a selector of the attribute alone; others are left to the browser, which fails at a bare quote
        querySelectorAll: selector => (assert.strictEqual(selector, "[data-place]"), children),
        querySelector: selector => assert.fail(`${selector} has a name from outside`)
    };
    load("dom.js", {document: {activeElement: active}}, "refill").refill(node, ...children);
    assert.strictEqual(focused, place);
}

console.log(`${cases} cases`);
