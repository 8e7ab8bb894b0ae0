/* The rail of heads: a thumbnail for each, sorted and filtered; arrows move, one of them is in the tab order. */
const statNames =
    Object.fromEntries(manifest.numbers.map(([name, ...titleAndTip]) => [name, titleAndTip]));
/* Those that the file knows of some head. */
const known =
    Object.keys(statNames).filter(key => HEADS.some(head => Number.isFinite(head.stats?.[key])));
const rail = {
    sort: "",
    filter: "",
    least: "",
    order: [],
    key: ""
};

/* By layer and head, or by a statistic, largest first. */
const headOrder = sort =>
    listOf(HEADS.length, i => i)
        .filter(i => HEADS[i].run === thisHead().run)
        .sort(
            (a, b) => (sort && (HEADS[b].stats[sort] ?? -1) - (HEADS[a].stats[sort] ?? -1)) ||
                HEADS[a].layer - HEADS[b].layer || HEADS[a].head - HEADS[b].head);

function drawThumb(canvas, index, top = topOf(index, true)) {
    const {side, rows, mask, window} = HEADS[index], thumb = thumbOf(index),
                             context = canvas.getContext("2d");
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
    return el(
        "button", {
            type: "button",
            "data-head": index,
            "aria-pressed": "false",
            tabindex: -1,
            onclick: () => change({head: index}),
            label: `${headName(index)}${label ? ", " + label : ""}`,
            title: `layer ${layer}, head ${head} counted from 0 (${layer + 1} and ${
                       head + 1} from 1)` +
                (label ? `\nlabel: ${label}` : "") +
                (HEADS[index].stats ?
                     `\nentropy / ln n ${
                         fixed(HEADS[index].stats.entropy_normalized, 2)}, confidence ${
                         fixed(HEADS[index].stats.confidence, 2)}` :
                     "") +
                (isAsked() ? "\nwithout What if" : ""),
        },
        el("canvas", {width: side, height: rows, "aria-hidden": "true"}),
        el("span", {}, `${layer}.${head}`), el("span", {class: "tag"}, label || ""));
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
        tools.push(select(
            "Sort", [["", "by layer"], ...known.map(key => [key, statNames[key][0]])],
            rail.sort, value => {
                rail.sort = value;
                change();
            }, "largest first"));
    if (HEADS.length > 1 && HEADS[0].stats)
        tools.push(
            el("label", {title: "heads whose number, that of Sort, is at least this"}, "From",
               el("input", {
                   type: "text",
                   inputmode: "decimal",
                   id: "least",
                   placeholder: "any number",
                   oninput: event => {
                       rail.least = event.target.value;
                       change();
                   }
               })));
    if (labels.length)
        tools.push(select(
            "Show", [["", "all heads"], ...labels.map(label => [label, label])],
            rail.filter, value => {
                rail.filter = value;
                change();
            }, "heads with this label"));
    put(byId("rail-tools"), ...tools);
    hear(byId("grid"), "keydown", event => {
        const across = getComputedStyle(byId("grid")).gridTemplateColumns.split(" ").length;
        const by = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across}[event.key];
        if (!by) return;
        event.preventDefault();
        event.stopPropagation();
        stepHead(by);
        byId("grid").querySelector('[aria-pressed="true"]')?.focus();
    });
    byId("rail-note").textContent =
        (manifest.omitted ? `${manifest.omitted} more heads did not fit into the file. ` : "") +
        "A cell is the largest weight of its tile; rows are queries, columns keys.";
}

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
        put(byId("grid"), ...order.map(headButton));
        const made = [...byId("grid").children];
        setTimeout(
            () => inSlices(
                "thumbs", made.length, at => drawThumb(made[at].firstChild, +made[at].dataset.head),
                () => {}));
    }
    for (const made of byId("grid").children) {
        const now = +made.dataset.head === state.head;
        made.setAttribute("aria-pressed", now);
        made.tabIndex = now ? 0 : -1;
    }
    if (!order.includes(state.head) && byId("grid").firstChild)
        byId("grid").firstChild.tabIndex = 0;
});
