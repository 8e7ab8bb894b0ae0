/*
 * Text as buttons, shaded by weights: the strip below every view, and the large one of the view Tokens.
 * Of long texts a window of tokens around the query is there.
 */
const WINDOW = 300;
const strip = {
    sets: "query",
    found: "",
    first: -1
};

/* A list of token buttons: fill it, then shade it as often as needed. */
function tokenList(large) {
    const box =
        el("div", {class: large ? "tokens large" : "tokens", role: "group", label: "Tokens"});
    let made = [], key = "", scrolled = -1;
    const unitAt = event => {
        const target = event.target.closest("button");
        return target ? made[[...box.children].indexOf(target)].unit : null;
    };
    hear(box, "click", event => {
        const unit = unitAt(event);
        if (!unit) return;
        if (event.altKey || event.ctrlKey || event.metaKey || strip.sets === "key")
            change({key: unit.from, hover: null});
        else if (event.shiftKey)
            change({more: [...state.more, unit.from], hover: null});
        else
            change({query: unit.from, hover: null});
    });
    hear(box, "pointerover", event => {
        const unit = unitAt(event);
        if (unit && event.pointerType === "mouse" && strip.sets === "query")
            change({hover: unit.from});
    });
    hear(box, "pointerleave", () => {
        if (state.hover !== null) change({hover: null});
    });

    function fill(list) {
        put(box);
        made = list.map(unit => {
            const number = el("small", {}),
                  token =
                      el("button", {type: "button"}, bdi(unitText(unit)), large ? number : null);
            box.append(token);
            return {unit, token, number};
        });
    }
    function shade(values) {
        const first = max(0, floor(unitOf(state.query) / WINDOW) * WINDOW),
              list = units().slice(first, first + WINDOW);
        const now = [first, state.words, manifest.at].join();
        if (key !== now) fill(list);
        key = now;
        const top = state.scale === "linear" ?
            max(1e-9, ...list.map(unit => unitValue(values, unit) || 0)) :
            1;
        const chosen = new Set(queries().map(i => unitOf(i))), m = keysSeen(queries()[0]);
        made.forEach(({unit, token, number}, at) => {
            const p = unitValue(values, unit), rgb = colorOf(p, m, top),
                  query = chosen.has(first + at);
            const isKey = state.key >= unit.from && state.key < unit.to;
            token.style.setProperty("--shade", text(rgb));
            token.style.setProperty("--on", inkOn(rgb));
            token.className = (query ? "query " : "") + (isKey ? "key " : "") +
                (whatIf.dropped.has(unit.from) ? "off " : "") +
                (strip.found && unitText(unit).toLowerCase().includes(strip.found) ? "found" : "");
            token.setAttribute("aria-pressed", query);
            token.setAttribute(
                "aria-label",
                `${unitText(unit)}, place ${unit.from}, weight ${weightText(p)}${
                    query ? ", query" : ""}${isKey ? ", key" : ""}`);
            number.textContent = p >= 0.01 ? fixed(p, 2) : "";
        });
        if (scrolled !== state.query) {
            const {token} = made[unitOf(scrolled = state.query) - first],
                  outer = large ? box : byId("strip");
            outer.scrollTop = max(0, token.offsetTop - outer.offsetTop - 80);
        }
    }
    return {box, shade};
}

function find(by = 1) {
    if (!strip.found) return;
    for (let step = 1; step <= N; step++) {
        const i = (state.query + by * step + N * step) % N;
        if (!tokenText(i).toLowerCase().includes(strip.found)) continue;
        change({query: i});
        return;
    }
    say(`no token holds ${strip.found}`);
}

/* On to the next of a list of places that the file has of this head. */
const goTo = (part, list) => () => {
    const places = thisHead()[list] || [];
    if (places[0] >= 0) change({[part]: places.find(i => i > state[part]) ?? places[0]});
};

const stripList = tokenList(false);
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
    const sets =
        select("A click sets", [["query", "the query"], ["key", "the key"]], strip.sets, value => {
            strip.sets = value;
        });
    const tools = [el("p", {class: "note", id: "strip-note"}), sets, search];
    if (N > WINDOW)
        tools.push(
            button(
                "Next sink", goTo("key", "sinks"),
                {title: "the next of the eight keys that receive most"}),
            button(
                "Next far-reaching query", goTo("query", "far"),
                {title: "the next of the 64 queries whose keys are farthest away on average"}),
            button("‹ Earlier", () => change({query: max(0, state.query - WINDOW)})),
            button("Later ›", () => change({query: min(N - 1, state.query + WINDOW)})));
    put(byId("strip"), el("div", {class: "strip-head"}, ...tools), stripList.box);
}

drawn.push(function drawStrip() {
    const values = shading(), first = floor(unitOf(state.query) / WINDOW) * WINDOW;
    stripList.box.hidden = state.tab === "tokens";
    byId("strip-note").textContent =
        (N > WINDOW ? `Tokens ${first} to ${min(N, first + WINDOW) - 1} of ${N}, shaded ` :
                      "Shaded ") +
        (state.to ? "by how much each looks at the selected token" :
                    "by how much the query looks at each") +
        (state.scale === "linear" ? ", from 0 to the largest." : ".");
    if (values && !stripList.box.hidden) stripList.shade(values);
});
