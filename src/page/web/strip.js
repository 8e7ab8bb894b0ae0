/*
 * Text as buttons, shaded by weights: the strip below every view, and the large one of the view Tokens; of queries
 * that are other tokens than keys a list of their own.
 * Of long texts a window of tokens around the query is there.
 */
const WINDOW = 300;
const strip = {
    sets: "query",
    found: "",
    first: -1
};

/* A list of token buttons, of keys or of queries: fill it, then shade it as often as needed. */
function tokenList(large, of) {
    const part = of === asked ? "query" : "key", setsNow = () => CROSS ? part : strip.sets,
          name = CROSS ? {query: "Queries", key: "Keys"}[part] : "Tokens";
    const box = el("div", {class: large ? "tokens large" : "tokens", role: "group", label: name});
    let made = [], key = "", scrolled = -1;
    const unitAt = event => {
        const target = event.target.closest("button");
        return target ? made[[...box.children].indexOf(target) - CROSS].unit : null;
    };
    hear(box, "click", event => {
        const unit = unitAt(event);
        if (!unit) return;
        if (!CROSS && (event.altKey || event.ctrlKey || event.metaKey) || setsNow() === "key")
            change({key: unit.from, hover: null});
        else if (event.shiftKey)
            change({more: [...state.more, unit.from], hover: null});
        else
            change({query: unit.from, hover: null});
    });
    hear(box, "pointerover", event => {
        const unit = unitAt(event);
        // only the list of this view previews: another view would show a second pair
        if (large && unit && event.pointerType === "mouse" && setsNow() === "query")
            change({hover: unit.from});
    });
    hear(box, "pointerleave", () => {
        if (state.hover !== null) change({hover: null});
    });

    function fill(list) {
        put(box, CROSS ? el("span", {class: "name"}, name) : "");
        made = list.map(unit => {
            const number = el("small", {}), bars = el("i", {class: "bars"}),
                  token =
                      el("button", {type: "button"}, bdi(unitText(unit)),
                         ...(large ? [number, bars] : []));
            box.append(token);
            return {unit, token, number, bars};
        });
    }
    function shade() {
        const values = shading(of), now2 = pairNow(), at = now2[part];
        if (!values) return;
        const first = max(0, floor(unitOf(at, of) / WINDOW) * WINDOW),
              list = units(of).slice(first, first + WINDOW);
        const now = [first, state.words, manifest.at].join();
        if (key !== now) fill(list);
        key = now;
        const top = isLinear() ? max(1e-9, ...list.map(unit => unitValue(values, unit) || 0)) : 1;
        const chosen = new Set(of === asked ? queries().map(i => unitOf(i, of)) : []);
        const others = large && !isTo(of) && of === manifest ? overlaid(queries()) : [];
        made.forEach(({unit, token, number, bars}, at) => {
            const p = unitValue(values, unit),
                  rgb = colorOf(p, keysSeen(isTo(of) ? unit.from : queries()[0]), top),
                  query = chosen.has(first + at),
                  gone = !isTo(of) && of === manifest && isGone(unit.from),
                  pair = isTo(of) ? [unit.from, CROSS ? now2.key : queries()[0]] :
                                    [queries()[0], unit.from];
            const isKey = of === manifest && now2.key >= unit.from && now2.key < unit.to;
            token.style.setProperty("--shade", text(rgb));
            token.style.setProperty("--on", inkOn(rgb));
            token.className = (query ? "query " : "") + (isKey ? "key " : "") +
                (gone ? "off " : "") +
                (strip.found && unitText(unit).toLowerCase().includes(strip.found) ? "found" : "");
            token.setAttribute("aria-pressed", query);
            token.setAttribute(
                "aria-label",
                `${unitText(unit)}, place ${unit.from}, weight ${
                    isUnknown(of) ? "not computed" : cellText(...pair, p)}${
                    query ? ", query" : ""}${isKey ? ", key" : ""}${gone ? ", no key" : ""}`);
            number.textContent = p >= 0.01 ? fixed(p, 2) : "";
            token.style.setProperty("--weight", clamp(p / top, 0, 1) || 0);
            showBars(bars, others, unit);
        });
        if (scrolled !== at && state.hover === null) {
            const {token} = made[unitOf(scrolled = at, of) - first];
            if (large) box.scrollTop = max(0, token.offsetTop - box.offsetTop - 80);
            box.scrollLeft = token.offsetLeft - box.offsetLeft - box.clientWidth / 2;
        }
    }
    return {box, shade};
}
const tokenLists = large =>
    (CROSS ? [asked, manifest] : [manifest]).map(of => tokenList(large, of));

/* What the search looks in, and what "earlier" moves. */
const searched = () => strip.sets === "key" ? [manifest, "key"] : [asked, "query"];

function find(by = 1) {
    if (!strip.found) return;
    const [{tokens, n}, part] = searched();
    for (let step = 1; step <= n; step++) {
        const i = (state[part] + by * step + n * step) % n;
        if (!signs(tokens[i]).toLowerCase().includes(strip.found)) continue;
        change({[part]: i});
        return;
    }
    say(`no token holds ${strip.found}`);
}

/* Weights on a key that a LONG text has no time for. */
const isUnknown = of => LONG && isModified() && isTo(of);

/* On to the next of a list of places that the file has of this head. */
const goTo = (part, list) => () => {
    const places = thisHead()[list] || [];
    if (places[0] >= 0) change({[part]: places.find(i => i > state[part]) ?? places[0]});
};

const stripLists = tokenLists(false);
function showStrip() {
    const search = el(
        "input", {type: "search", id: "find", placeholder: "Find a token", label: "Find a token"});
    hear(search, "input", () => {
        strip.found = search.value.toLowerCase();
        change();
    });
    hear(search, "keydown", event => {
        if (event.key === "Enter") find(event.shiftKey ? -1 : 1);
    });
    const which = select(
        CROSS ? "Find in" : "A click sets",
        [["query", CROSS ? "queries" : "the query"], ["key", CROSS ? "keys" : "the key"]],
        strip.sets, value => strip.sets = value);
    const go = by => () => {
        const [{n}, part] = searched();
        change({[part]: clamp(state[part] + by, 0, n - 1)});
    };
    const tools = [el("p", {class: "note", id: "strip-note"}), which, search];
    if (max(M, N) > WINDOW)
        tools.push(
            button(
                "Next sink", goTo("key", "sinks"),
                {title: "the next of the eight keys that receive most"}),
            PLACED ? button("Next far-reaching query", goTo("query", "far"), {
                title: "the next of the 64 queries whose keys are farthest away on average"
            }) :
                     "",
            strip.unasked = el("span", {class: "badge"}, "without What if"),
            button("‹ Earlier", go(-WINDOW)), button("Later ›", go(WINDOW)));
    put(byId("strip"), el("div", {class: "strip-head"}, ...tools),
        ...stripLists.map(list => list.box));
}

drawn.push(function drawStrip() {
    const range = (name, i, n) => {
        const first = floor(i / WINDOW) * WINDOW;
        return name + (n > WINDOW ? ` ${first} to ${min(n, first + WINDOW) - 1} of ${n}` : "");
    };
    byId("strip-note").textContent =
        (CROSS ? `${range("Queries", state.query, M)}: how much each looks at the key; ${
                     range("keys", state.key, N)}: how much the query looks at each` :
                 `${range("Tokens", state.query, N)}: how much ${
                     state.to ? "each looks at the selected token" : "the query looks at each"}`) +
        (isLinear() ? ", from 0 to the largest." : ".") +
        ([asked, manifest].some(isUnknown) ?
             " Weights on a token are not computed under What if: the text is too long." :
             "");
    if (strip.unasked) strip.unasked.hidden = !isModified();
    for (const list of stripLists) {
        list.box.hidden = state.tab === "tokens";
        if (!list.box.hidden) list.shade();
    }
});
