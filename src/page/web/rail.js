/* The rail of heads: a thumbnail for each, sorted and filtered; arrows move, one of them is in the tab order. */
const statNames =
    Object.fromEntries(manifest.numbers.map(([name, ...titleAndTip]) => [name, titleAndTip]));
/* Those that the file knows of some head. */
const known = () =>
    Object.keys(statNames).filter(key => HEADS.some(head => Number.isFinite(head.stats?.[key])));
const rail = {
    sort: "",
    filter: "",
    least: "",
    order: [],
    key: ""
};

const ofCells =
    (manifest.omitted ? `${manifest.omitted} more heads did not fit into the file. ` : "") +
    "A cell is the largest weight of its tile; rows are queries, columns keys. ";

/* By layer and head, or by a statistic, largest first. */
const headOrder = sort =>
    listOf(HEADS.length, i => i)
        .filter(i => HEADS[i].run === thisHead().run)
        .sort(
            (a, b) => (sort && (HEADS[b].stats[sort] ?? -1) - (HEADS[a].stats[sort] ?? -1)) ||
                HEADS[a].layer - HEADS[b].layer || HEADS[a].head - HEADS[b].head);

function drawThumb(canvas, index, top = topOf(index, true)) {
    const {side, rows, mask, window} = HEADS[index];
    const thumb = thumbOf(index), context = canvas.getContext("2d");
    const image = context.createImageData(side, rows), out = new Uint32Array(image.data.buffer);
    const hides = {window, mask: mask && bytesOf(mask)};
    const query = r => ceil(r * M / rows), key = c => ceil(c * N / side);
    for (let r = 0; r < rows; r++) {
        const isHidden = hiding(hides, [query(r), query(r + 1)], true);
        for (let c = 0, at = r * side; c < side; c++, at++)
            if (!isHidden(key(c), key(c + 1))) out[at] = pixelOfWeight(levels[thumb[at]], N, top);
    }
    context.putImageData(image, 0, 0);
}

function headButton(index) {
    const {layer, head, label, side, rows} = HEADS[index];
    const {entropy_normalized, confidence} = HEADS[index].stats || {};
    const lines = [
        `layer ${layer}, head ${head} counted from 0 (${layer + 1} and ${head + 1} from 1)`,
        label && `label: ${label}`,
        HEADS[index].stats &&
            `entropy / ln n ${fixed(entropy_normalized, 2)}, confidence ${fixed(confidence, 2)}`,
        isLinear() && `colours from 0 to ${topOf(index, true)}`, isAsked() && "without What if"
    ];
    return button(
        [
            el("canvas", {width: side, height: rows, "aria-hidden": "true"}),
            el("span", {}, tileName(index)), el("span", {class: "tag"}, label || "")
        ],
        () => change({head: index}), {
            "data-head": index,
            "aria-pressed": "false",
            tabindex: -1,
            label: headName(index) + (label ? ", " + label : ""),
            title: lines.filter(Boolean).join("\n")
        });
}

function showRail() {
    const labels = [...new Set(HEADS.map(head => head.label).filter(Boolean))].sort();
    const tools = [];
    if (manifest.runs)
        tools.push(select(
            "Text",
            manifest.runs.map(({name}, run) => [run, name])
                .filter(([run]) => HEADS.some(head => head.run === run)),
            thisHead().run, run => {
                const {layer, head} = thisHead(), of = HEADS.filter(h => h.run == run);
                change({
                    head: HEADS.indexOf(of.find(h => h.layer === layer && h.head === head) || of[0])
                });
            }));
    if (HEADS.length > 1 && HEADS[0].stats)
        tools.push(
            select(
                "Sort", [["", "by layer"], ...known().map(key => [key, statNames[key][0]])],
                rail.sort, sets(rail, "sort"), "largest first"),
            el("label", {title: "heads whose number, that of Sort, is at least this"}, "From",
               el("input", {
                   type: "text",
                   inputmode: "decimal",
                   id: "least",
                   placeholder: "any number",
                   value: rail.least,
                   oninput: event => sets(rail, "least")(event.target.value)
               })));
    if (labels.length)
        tools.push(select(
            "Show", [["", "all heads"], ...labels.map(label => [label, label])], rail.filter,
            sets(rail, "filter"), "heads with this label"));
    put(byId("rail-tools"), ...tools);
}
hear(byId("grid"), "keydown", event => {
    const across = getComputedStyle(byId("grid")).gridTemplateColumns.split(" ").length;
    const by = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across}[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    stepHead(by);
    byId("grid").querySelector('[aria-pressed="true"]')?.focus();
});

function stepHead(by) {
    const at = rail.order.indexOf(state.head),
          to = rail.order[max(0, min(rail.order.length - 1, at + by))];
    if (to !== undefined) {
        change({head: to});
        draw();
    }
}
/* The same head of another layer. */
function stepLayer(by) {
    const {layer, head, run} = thisHead();
    const to = HEADS.findIndex(h => h.layer === layer + by && h.head === head && h.run === run);
    if (to >= 0) change({head: to});
}

drawn.push(function drawRail() {
    const order = headOrder(rail.sort).filter(
              i => (!rail.filter || HEADS[i].label === rail.filter) &&
                  !(HEADS[i].stats?.[rail.sort] < parseFloat(rail.least))),
          key = [
              manifest.at, rail.sort, rail.filter, rail.least, state.scale, dark, isAsked()
          ].join();
    rail.order = order;
    byId("rail-badge").hidden = !isAsked();
    if (key !== rail.key) {
        rail.key = key;
        byId("rail-note").textContent = ofCells +
            (isLinear() ? "Colours of a head end at a weight of its own: Model has one scale." :
                          "");
        put(byId("grid"), ...order.map(headButton));
        const made = [...byId("grid").children];
        inSlices(
            "thumbs", made.length, at => drawThumb(made[at].firstChild, +made[at].dataset.head),
            () => {});
    }
    for (const made of byId("grid").children) {
        const now = +made.dataset.head === state.head;
        made.setAttribute("aria-pressed", now);
        made.tabIndex = now ? 0 : -1;
    }
    if (!order.includes(state.head) && byId("grid").firstChild)
        byId("grid").firstChild.tabIndex = 0;
});
