/* Keys, and the window that lists them. Every one of them is also a control on the page. */
const transpose = () => change({to: !state.to});
const scales = ["linear", "log", "uniform"];
const keyTable = [
    ["← → ↑ ↓", "move the selection"], ["[ ]", "layer before, after"],
    ["{ }", "head before, after"], ["1 … 8", "view"], ["/", "find a token"],
    ["Enter", "keep the query under the mouse"],
    ["Esc", "close what is open; then clear: added queries and heads, search"],
    ["t", "attention from or to"], ["l", "scale"], ["s", "special tokens"], ["w", "whole words"],
    ["c", "copy the row"], ["+ − 0", "zoom matrix and map; fit"], ["Shift ← → ↑ ↓", "move them"],
    ["d", "drop the key"], ["?", "this list"]
];

/* In Tokens left and right move the query along the text; elsewhere rows are queries and columns keys. */
function move(across, down) {
    const inText = state.tab === "tokens", by = inText ? across : down,
          byKey = inText ? down : across;
    if (by)
        change({
            query: clamp(state.query + by, 0, M - 1),
            key: state.tab === "matrix" || state.tab === "why" ? state.key : undefined,
            hover: null
        });
    if (byKey) change({key: clamp(state.key + byKey, 0, N - 1)});
    reveal();
}

const keyRuns = {
    ArrowLeft: () => move(-1, 0),
    ArrowRight: () => move(1, 0),
    ArrowUp: () => move(0, -1),
    ArrowDown: () => move(0, 1),
    "[": () => stepLayer(-1),
    "]": () => stepLayer(1),
    "{": () => stepHead(-1),
    "}": () => stepHead(1),
    "/": () => byId("find").focus(),
    Enter: () => state.hover !== null && change({query: state.hover, hover: null}),
    Escape: () => {
        if (closeOne()) return;
        strip.found = byId("find").value = "";
        change({more: [], others: [], hover: null});
    },
    t: transpose,
    l: () => change({scale: scales[(scales.indexOf(state.scale) + 1) % 3]}),
    s: () => manifest.special && ask({specials: !whatIf.specials}),
    w: () => hasWords() && change({words: !state.words}),
    c: copyRow,
    d: dropKey,
    "+": () => handsNow().zoom(1.5),
    "=": () => handsNow().zoom(1.5),
    "-": () => handsNow().zoom(1 / 1.5),
    0: () => handsNow().fit(),
    "?": () => byId("help").showModal(),
};

const panKeys = {
    ArrowLeft: [60, 0],
    ArrowRight: [-60, 0],
    ArrowUp: [0, 60],
    ArrowDown: [0, -60]
};

function listenToKeys() {
    hear(window, "keydown", event => {
        if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
        // a box takes the space bar, and a slider arrows: other keys are those of the page
        const {tagName, type} = event.target;
        const own = {checkbox: / /, range: /^Arrow/}[type] || /./,
              typing = /^(INPUT|SELECT|TEXTAREA)$/.test(tagName) && own.test(event.key),
              pressed = event.target.closest("a, button, summary, [role=button]");
        if (typing && event.key !== "Escape") return;
        if (pressed && (event.key === "Enter" || event.key === " ")) return;
        const pan = event.shiftKey && panKeys[event.key];
        if (pan && !typing) {
            event.preventDefault();
            return handsNow().pan(...pan);
        }
        const tab = /^[1-9]$/.test(event.key) && tabOrder[event.key - 1];
        if (tab)
            change({tab});
        else if (Object.hasOwn(keyRuns, event.key)) {
            event.preventDefault();
            keyRuns[event.key]();
            // keys are the page's again
            if (typing && type !== "select-one") byId("panel").focus({preventScroll: true});
        }
    });
    byId("help").append(
        el("h2", {id: "help-name"}, "Keys"),
        el("div", {class: "keys"},
           ...keyTable.flatMap(
               ([keys, text]) =>
                   [el("span", {},
                       ...keys.split(" ").flatMap(
                           key => [key === "…" ? key : el("kbd", {}, key), " "])),
                    el("span", {}, text)])),
        note(
            "A click on a token selects the query, Shift adds one, Alt selects the key. In matrix and map the wheel or two fingers zoom, dragging moves, a click selects, double click fits."),
        el("p", {}, button("Close", () => byId("help").close())));
    hear(byId("help-open"), "click", () => byId("help").showModal());
}

function showTabs() {
    const made = tabOrder.map(
        (id, at) => button(
            tabs[id].name, () => change({tab: id}),
            {role: "tab", id: "tab-" + id, "aria-controls": "panel", title: `key ${at + 1}`}));
    byId("tabs").append(...made);
    hear(byId("tabs"), "keydown", event => {
        const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
        if (!by) return;
        event.preventDefault();
        event.stopPropagation();
        const to = (tabOrder.indexOf(state.tab) + by + tabOrder.length) % tabOrder.length;
        change({tab: tabOrder[to]});
        made[to].focus();
    });
    let seenTab = "";
    drawn.push(() => {
        for (const [at, tab] of made.entries()) {
            tab.setAttribute("aria-selected", tabOrder[at] === state.tab);
            tab.tabIndex = tabOrder[at] === state.tab ? 0 : -1;
            if (tabOrder[at] === state.tab && seenTab !== state.tab)
                byId("tabs").scrollLeft = tab.offsetLeft - byId("tabs").offsetLeft - 40;
        }
        seenTab = state.tab;
        byId("panel").setAttribute("aria-labelledby", "tab-" + state.tab);
    });
}
