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
 * texts: those of the heads. places: for each token where it is now, null: nowhere. Returns what was asked in What if and cannot be
 * asked any more.
 */
function follow(text, texts, places) {
    const names = [state.head, ...state.others].map(placeName),
          own = state.query === manifest.query, other = HEADS[compare.b] && placeName(compare.b),
          question = askedNow(),
          gone = (question?.dropped ?? [])
                     .filter(at => places[at] === null)
                     .map(at => `${manifest.tokens[at]} dropped`),
          top = panelTop, now = at => places[at], isThere = at => at !== null,
          {query, key, more} = state;
    const manifestText = JSON.stringify(text);
    for (const field in manifest) delete manifest[field];
    Object.assign(manifest, text);
    takeText();
    byId("qkv-manifest").textContent = manifestText;
    texts.forEach((words, head) => byId("qkv-head-" + head).textContent = words);
    forgetText();
    const placed = name => HEADS.findIndex((_, i) => placeName(i) === name);
    [state.head, ...state.others] = names.map(placed);
    if (other) compare.b = String(placed(other));
    if (!HEADS.some(({label}) => label === rail.filter)) rail.filter = "";
    const ends =
        question ? askAgain({...question, dropped: question.dropped.map(now).filter(isThere)}) : [];
    const kept = own ? null : now(query);
    Object.assign(state, {hover: null, more: more.map(now).filter(isThere)});
    state.query = kept ?? firstQuery();
    state.key = (kept === null ? null : now(key)) ?? strongest();
    document.title = manifest.title || "Attention";
    showTitle();
    showRail();
    showTab();
    draw();
    if (top) byId("panel").scrollTop = top;
    return [...gone, ...ends];
}
