"use strict";
/*
 * In the frame of a live page, behind the scripts of the page in it (src/page/web), whose names these functions use: the page
 * goes on to another text. What it shows then is what the page of that text shows, at the same head, query, view and scroll; only
 * what a new document costs is saved. tests/live compares the two.
 */

/* Whether the page can go on to `text`, the manifest of another one: of the same model, and without parts that are made only once. */
function canFollow(text) {
    const kind = ({head_dim, scale, softcap, rules, numbers, segment, heads}) => JSON.stringify([
        head_dim, scale, softcap, rules, numbers.map(([name]) => name), !segment,
        heads.map(({layer, head}) => `${layer}.${head}`).sort()
    ]);
    const only = ({runs, queries, image, tables, dropped}) =>
        !(runs || queries || image || tables || dropped);
    return only(manifest) && only(text) && max(N, text.n) <= WINDOW &&
        kind(manifest) === kind(text);
}

/* Where the view is scrolled to: asking for it later would take a layout. */
let panelTop = 0;
hear(byId("panel"), "scroll", ({target}) => panelTop = target.scrollTop);

function forgetText() {
    for (const cache of [decoded, rows, counts, intervals, peaks]) cache.clear();
    unitLists = {};
    normed.key = rail.key = byId("what-if").dataset.key = "";
    plane.pcaOf = plane.tableOf = peakRow.head = matrix.brush = null;
    manifest.at = ++version;
    tip(null, "");
}

/*
 * Asks in What if what was asked of a text whose tokens were `tokens`; places: for each of them where it is now, null: nowhere.
 * Returns what cannot be asked any more.
 */
function askMoved(question, tokens, places) {
    const {dropped} = question, isThere = at => places[at] !== null;
    return [
        ...dropped.filter(at => !isThere(at)).map(at => `${tokens[at]} dropped`),
        ...askAgain({...question, dropped: dropped.filter(isThere).map(at => places[at])})
    ];
}

/* texts: those of the heads. places, and what it returns: as askMoved. */
function follow(text, texts, places) {
    const names = [state.head, ...state.others].map(placeName),
          own = state.query === manifest.query, other = HEADS[compare.b] && placeName(compare.b),
          question = askedNow(), {tokens} = manifest, top = panelTop, now = at => places[at],
          {query, key, more} = state;
    byId("qkv-manifest").textContent = JSON.stringify(text);  // before takeText changes it
    for (const field in manifest) delete manifest[field];
    Object.assign(manifest, text);
    takeText();
    texts.forEach((words, head) => byId("qkv-head-" + head).textContent = words);
    forgetText();
    const placed = name => HEADS.findIndex((_, i) => placeName(i) === name);
    [state.head, ...state.others] = names.map(placed);
    if (other) compare.b = String(placed(other));
    if (!HEADS.some(({label}) => label === rail.filter)) rail.filter = "";
    const gone = question ? askMoved(question, tokens, places) : [];
    const kept = own ? null : now(query);
    Object.assign(state, {hover: null, more: more.map(now).filter(at => at !== null)});
    state.query = kept ?? firstQuery();
    state.key = (kept === null ? null : now(key)) ?? strongest();
    document.title = manifest.title || "Attention";
    showTitle();
    showRail();
    showTab();
    draw();
    if (top) byId("panel").scrollTop = top;
    return gone;
}
