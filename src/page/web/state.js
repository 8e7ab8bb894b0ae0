/*
 * The one selection that all views show, and the list of what to draw when it changes. Drawing happens once a
 * frame. The address after # holds the selection, so a link to a file can name a pair.
 */
const state = {
    head: 0,
    query: 0,
    key: 0,
    more: [],
    hover: null,
    to: false,
    tab: "start",
    scale: max(M, N) > 128 ? "log" : "linear",
    words: false,
    others: []  // heads that Tokens lays over this one
};
const tabs = {}, tabOrder = [];  // id → { name, show(panel), draw() }
const drawn = [];                // called at each frame that something changed in

const thisHead = () => HEADS[state.head], thisData = () => headData(state.head);
/* That of the file; else the first that is not special and sees more than one key: a single one has all the weight. */
const firstQuery = () => {
    const plain = listOf(min(M, 4096), i => i).filter(i => !asked.special?.[i]);
    return manifest.query >= 0 ? manifest.query :
                                 plain.find(i => !thisData() || keysSeen(i) > 1) ?? plain[0] ?? 0;
};
/* Under the mouse another query is previewed: everywhere it, and the key that it looks at most. */
const queries = () => state.hover === null ? [state.query, ...state.more] : [state.hover];
const pairNow = () =>
    state.hover === null ? state : {query: state.hover, key: strongest(state.hover)};

let framed = false, shownTab = "", version = 0;
function change(patch = {}) {
    const moved = "query" in patch || "head" in patch;
    if ("query" in patch && !("more" in patch)) state.more = [];
    Object.assign(state, patch);
    if (moved && patch.key === undefined) state.key = strongest();
    if (framed) return;
    framed = true;
    requestAnimationFrame(() => {
        framed = false;
        measureRem();
        draw();
    });
}

/* The key a query looks at most; the query itself if its head is not there yet. */
function strongest(query = state.query) {
    const weights = row(state.head, query);
    return (weights && largest(weights, 1)[0]) ?? min(query, N - 1);
}

/* After a change of What if or of the theme nothing that was computed holds. */
function changeAll(patch) {
    rows.clear();
    counts.clear();
    version++;
    change(patch);
}

/* Another text of several: its tokens, and everything that shows them anew. */
function enterRun() {
    const run = thisHead().run || 0;
    if (!manifest.runs || manifest.at === run) return;
    state.others = state.others.filter(i => HEADS[i].run === run);
    Object.assign(manifest, manifest.runs[run], {at: run});
    unitLists = {};
    shownTab = "";
    version++;
}

function showTab() {
    shownTab = state.tab;
    refit.disconnect();
    put(byId("panel"));
    byId("panel").className = tabs[shownTab].canvas ? "canvas" : "";
    Object.keys(jobs).filter(name => name !== "thumbs").forEach(stop);
    tabs[shownTab].show(byId("panel"));
}

function draw() {
    enterRun();
    chooseColors();
    if (openDefinition && !openDefinition.isConnected) closeDefinition();
    if (state.tab !== shownTab) {
        showTab();
        byId("panel").scrollTop = 0;
    }
    for (const view of drawn) view();
    tabs[shownTab].draw();
    clearTimeout(draw.later);
    draw.later = setTimeout(writeAddress, 200);  // a browser takes milliseconds for it
}

/* A page around this one asks for it, and gives one to readAddress. */
function address() { return `#${placeName(state.head)}/${state.query}/${state.key}/${state.tab}`; }
function writeAddress() {
    // the frame of a notebook's cell, or of a live page, has no address of its own
    if (location.protocol === "about:") return;
    history.replaceState(null, "", address());
}
/* A % that escapes nothing is itself. */
const unescaped = text => {
    try {
        return decodeURIComponent(text);
    } catch {
        return text;
    }
};
/* Any address gives a view: a part that names nothing is as if it were not there. */
function readAddress(from = location.hash) {
    const [head, query, key, tab] = unescaped(from.slice(1)).split("/");
    const found = HEADS.findIndex((_, i) => placeName(i) === head);
    const numbered = (x, n) => /^\d+$/.test(x) && +x < n ? +x : null;
    if (found >= 0) state.head = found;
    state.query = numbered(query, M) ?? firstQuery();
    state.key = numbered(key, N) ?? strongest();
    const isTab = Object.hasOwn(tabs, tab);  // every object has a constructor
    if (isTab || found >= 0) state.tab = isTab ? tab : "tokens";
    Object.assign(state, {more: [], hover: null});
    place.fitted = true;
    mapHands.fit();
}

/* "floor((i + q_offset) / chunk) == floor(j / chunk), chunk = 4" */
const ruleText = ({
    definition,
    ...fields
}) => [definition, ...Object.keys(fields).map(name => `${name} = ${fields[name]}`)].join(", ");

/* "At most 3 keys before and 0 behind the query's place" */
const windowText = ({window_left, window_right}) => {
    const sides = [[window_left, "before"], [window_right, "behind"]].filter(([n]) => n >= 0);
    return `Window: at most ${sides.map(([n, side]) => `${n} keys ${side}`).join(" and ")} the ` +
        "query's place";
};

/* What a figure says below itself, on the screen and in files: of one head, or of `compared`. */
function caption(compared) {
    const {layer, head, alibi, distances, sink, mask, type} = thisHead();
    const scaled = whatIf.scaled ? fixed(scaleOf(thisHead()), 4) + " q·k" : "q·k";
    const score = (CAP ? `${CAP} tanh(${scaled} / ${CAP})` : scaled) +
        (alibi ? `${signed(alibi)} (j − i${OFFSET ? signed(-OFFSET) : ""})` : "") +
        (distances ? " + bias(j − i)" : "");
    const logit = whatIf.temperature === 1 ? score : `(${score}) / ${temperatureText()}`;
    const parts = [
        manifest.caption,
        compared ||
            `Layer ${layer}, head ${head}, counted from 0. Weight p = exp(${
                logit} − lse); each query's weights sum to 1${
                Number.isFinite(sink) ? ", its sink's with them" : ""}${
                isModified() ? "" :
                               `, up to the rounding of lse to f32${
                                   type === "f16" ? " and of q and k to f16" : ""}`}.`
    ];
    if (modelRules.causal)
        parts.push(
            OFFSET ? `Causal: query i sees keys j ≤ i${signed(OFFSET)}.` :
                     "Causal: a query sees itself and keys before it.");
    for (const name in modelRules)
        if (!["causal", "window", "q_offset"].includes(name))
            parts.push(`Rule ${name}: ${ruleText(modelRules[name])}.`);
    const {window} = rulesOf(thisHead());
    if (window && !compared) parts.push(windowText(window) + " are seen.");
    if (mask && !compared) parts.push("A mask hides keys from queries, pair by pair.");
    if (isModified())
        parts.push(
            "MODIFIED: not what the model computed (" + modifications().join(", ") +
            "); lse is over the keys that are left, and a query without one has no weight.");
    if (whatIf.pairs) parts.push(`Only pairs ${pairNames[whatIf.pairs]} are shown.`);
    return parts.filter(Boolean).join(" ");
}
