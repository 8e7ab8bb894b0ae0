/*
 * View 2: all heads at once, layers down and heads across, or in groups; one scale of colours for all. The pictures
 * are one drawing, and over each lies a button: with the mouse, a finger or the arrows it leads to its head.
 */
const modelView = {
    group: "layer",
    adds: false,  // a click lays a head over the selected one
    tiles: []
};
const setGroup = group => {
    modelView.group = group;
    change();
};

/* The end of the scale of all heads: a round number that no weight of a thumbnail is above. */
const topOfAll = () => {
    const most = heads().reduce((top, i) => max(top, topOf(i, true)), 0);
    return tops.find(top => top >= most) || 1;
};
const effectGroups = [
    ["help by more than 0.1 nats", e => e < -0.1], ["help a little", e => e >= -0.1 && e < -0.01],
    ["change less than 0.01 nats", e => abs(e) <= 0.01],
    ["hinder a little", e => e > 0.01 && e <= 0.1], ["hinder by more than 0.1 nats", e => e > 0.1],
    ["not measured", e => !Number.isFinite(e)]
];
/* [{name, heads}] */
function modelGroups() {
    const all = heads();
    if (modelView.group === "effect" && manifest.effects)
        return effectGroups
            .map(([name, holds]) => ({
                     name,
                     heads: all.filter(i => holds(HEADS[i].effect ?? NaN))
                                .sort((a, b) => HEADS[a].effect - HEADS[b].effect)
                 }))
            .filter(({heads}) => heads.length);
    if (modelView.group === "label") {
        const labels = [...new Set(all.map(i => HEADS[i].label || ""))].sort(
            (a, b) => !a - !b || (a < b ? -1 : 1));
        return labels.map(label => ({
                              name: label || "no label",
                              heads: all.filter(i => (HEADS[i].label || "") === label)
                          }));
    }
    return [...new Set(all.map(i => HEADS[i].layer))].map(
        layer =>
            ({name: `layer ${layer}`, layer, heads: all.filter(i => HEADS[i].layer === layer)}));
}

const LEAST_TILE = 24, LARGEST_TILE = 420, SPACE = 4;
/* Where the tiles lie in a drawing of that width, as large as fits its height: {tiles, names, height}. */
function modelPlaces(width, height) {
    const groups = modelGroups(), byLayer = modelView.group === "layer", line = 20 * em();
    const left = byLayer ? textWidth(`layer ${max(...groups.map(g => g.layer ?? 0))}`, 12) + 12 : 0,
          heading = byLayer ? line : 0, columns = max(...heads().map(i => HEADS[i].head)) + 1;
    const bar = manifest.effects ? 7 : 0,
          widest = max(...heads().map(i => textWidth(tileName(i), 12)));
    const across = size => max(1, floor((width - left + SPACE) / (size + SPACE)));
    const fits = size => heading +
                groups.reduce(
                    (sum, {heads}) => sum + (byLayer ? 0 : line + 6) +
                        (byLayer ? 1 : ceil(heads.length / across(size))) * (size + under + SPACE),
                    0) <=
            height &&
        !(byLayer && columns > across(size));
    const largestFrom = least => {
        let size = LARGEST_TILE;
        while (size > least && !fits(size)) size--;
        return size;
    };
    let under = 18 * em() + bar, size = largestFrom(max(44, widest + 8));
    const named = fits(size);
    if (!named) {
        under = bar;
        size = largestFrom(LEAST_TILE);
    }
    const tiles = [], names = [];
    let y = heading;
    for (const {name, heads: mine} of groups) {
        if (byLayer)
            names.push({text: name, x: 0, y: y + size / 2 + 5});
        else
            names.push({text: `${name} · ${mine.length}`, x: 0, y: (y += line) - 5});
        mine.forEach((head, at) => {
            const column = byLayer ? HEADS[head].head : at % across(size),
                  down = byLayer ? 0 : floor(at / across(size));
            tiles.push(
                {head, x: left + column * (size + SPACE), y: y + down * (size + under + SPACE)});
        });
        y += (byLayer ? 1 : ceil(mine.length / across(size))) * (size + under + SPACE) +
            (byLayer ? 0 : 6);
    }
    if (byLayer && size >= 2 * LEAST_TILE || columns * size < 1e4 && byLayer)
        for (let column = 0; column < columns; column++)
            if (size > textWidth("00", 12) + 2)
                names.push({
                    text: String(column),
                    x: left + column * (size + SPACE) + size / 2,
                    y: 14 * em(),
                    middle: true
                });
    const right = tiles.reduce((most, {x}) => max(most, x + size), 0);
    return {tiles, names, size, bar, named, under, height: y, width: max(right, width)};
}

const tileName = i => `${HEADS[i].layer}.${HEADS[i].head}`;
const effectText = i => Number.isFinite(HEADS[i].effect) ?
    `effect ${signed(HEADS[i].effect).trim().replace(" ", "")} nats` :
    "";
const tileTitle = i => [headName(i), HEADS[i].label && `label: ${HEADS[i].label}`, effectText(i),
                        ...["confidence", "entropy_normalized"]
                            .filter(key => Number.isFinite(numberOf(i, key)))
                            .map(key => `${statNames[key][0]} ${fixed(numberOf(i, key), 2)}`)]
                           .filter(Boolean)
                           .join("\n");

function openTile(head, event) {
    if (modelView.adds || event.shiftKey || event.ctrlKey || event.metaKey)
        return toggleOverlaid(head);
    change({head, tab: "matrix"});
}
function tileButton({head}) {
    const made = button([], event => openTile(head, event), {
        "data-head": head,
        "data-place": head,
        label: [headName(head), HEADS[head].label, effectText(head)].filter(Boolean).join(", ")
    });
    saysAt(made, () => tileTitle(head));
    return made;
}

/* Arrows go to the nearest tile in their direction. */
function stepTile(event) {
    const by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [
                    0, 1
                ]}[event.key];
    const from = modelView.tiles.find(({head}) => head === +document.activeElement.dataset.head);
    if (!by || !from || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    const far = ({x, y}) => {
        const along = (x - from.x) * by[0] + (y - from.y) * by[1],
              aside = abs((x - from.x) * by[1]) + abs((y - from.y) * by[0]);
        return along > 0 ? along + 4 * aside : Infinity;
    };
    const to = modelView.tiles.reduce((best, tile) => far(tile) < far(best) ? tile : best, from);
    if (to !== from) focusTile(to.head);
}
function focusTile(head) {
    change({head});
    draw();
    modelView.box.querySelector(`[data-head="${head}"]`)?.focus();
}

/* Writes the names into a drawing; what it returns draws a tile, in a file of cells, else as pixels. */
function modelPainter(figure, {tiles, names, size, bar, named}, inFile) {
    const top = topOfAll(), most = max(0.1, ...heads().map(i => abs(HEADS[i].effect) || 0)),
          thumb = el("canvas");
    const name = (words, x, y, color, middle) => figure.append(written(
        words, x, y, {size: 12 * em(), fill: css(color), anchor: middle ? "middle" : null}));
    for (const {text, x, y, middle} of names) name(text, x, y, "faint", middle);
    return at => {
        const {head, x, y} = tiles[at], {side, rows, label, effect} = HEADS[head];
        Object.assign(thumb, {width: side, height: rows});
        drawThumb(thumb, head, top);
        figure.append(cellsOf(thumb, x, y, size, size, inFile ? CELLS : 0));
        if (named) {
            const wide = textWidth(tileName(head), 12), room = size - wide - 14,
                  line = y + size + bar + 13 * em();
            name(tileName(head), x + 4, line, "ink");
            if (label && room > 24) name(cutTo(label, room, 12), x + wide + 11, line, "faint");
        }
        if (!Number.isFinite(effect)) return;
        // what the head is worth: a bar from the middle, to the left where it helps
        const half = size / 2, long = effect / most * half;
        figure.append(svg("rect", {
            x: x + half + min(0, long),
            y: y + size + 1,
            width: max(1, abs(long)),
            height: 5,
            fill: css(effect < 0 ? "accent" : "warn")
        }));
    };
}

tabs.model = {
    name: "Model",
    canvas: true,
    show(panel) {
        modelView.box = el("div", {class: "model", role: "group", label: "All heads"});
        modelView.stage =
            el("div", {class: "stage scrolls", tabindex: -1}, modelView.drawn = svg("svg"),
               modelView.box);
        modelView.note = el("figcaption");
        modelView.legend = el("span", {class: "end"});
        modelView.key = "";
        hear(modelView.box, "keydown", stepTile);
        const ways = [["layer", "layer"], ["label", "label"]];
        if (manifest.effects) ways.push(["effect", "effect"]);
        if (!ways.some(([way]) => way === modelView.group)) modelView.group = "layer";
        modelView.ways = select("Group by", ways, modelView.group, setGroup);
        panel.append(
            el("div", {class: "tools"}, modelView.ways, scaleSelect(),
               check(
                   "add on click", modelView.adds, on => modelView.adds = on,
                   "a click lays the head over the selected one, in Tokens; or click with Shift"),
               modelView.over = el("span", {class: "over"}), modelView.legend),
            el("div", {}, unasked("All heads are shown without What if.")), modelView.stage,
            below(modelView.note));
        refit.observe(modelView.stage);
    },
    draw() {
        put(modelView.legend, legend(state.head, topOfAll()));
        modelView.note.textContent = this.says() + caption();
        refit.size = sizeOf(modelView.stage);
        const {clientWidth, clientHeight} = modelView.stage, key = [
            manifest.at, clientWidth, clientHeight, em(), modelView.group, state.scale, dark
        ].join();
        modelView.ways.querySelector("select").value = modelView.group;
        if (key !== modelView.key) {
            const places = modelPlaces(clientWidth, clientHeight);
            modelView.key = key;
            modelView.tiles = places.tiles;
            modelView.box.style.width = places.width + "px";
            modelView.box.style.height = max(places.height, 1) + "px";
            put(modelView.box, ...places.tiles.map(tile => {
                const made = tileButton(tile);
                Object.assign(made.style, {
                    left: tile.x + "px",
                    top: tile.y + "px",
                    width: places.size + "px",
                    height: places.size + places.under + "px"
                });
                return made;
            }));
            const figure = sheet(places.width, places.height);
            figure.setAttribute("aria-hidden", "true");
            modelView.drawn.replaceWith(modelView.drawn = figure);
            inSlices("model", places.tiles.length, modelPainter(figure, places), () => {});
        }
        const over = overlaidHeads();
        for (const made of modelView.box.children) {
            const head = +made.dataset.head, now = head === state.head, at = over.indexOf(head);
            made.setAttribute("aria-pressed", now);
            made.tabIndex = now ? 0 : -1;
            made.style.outlineColor = at > 0 ? colorOfOverlaid(at) : "";
            made.classList.toggle("laid", at > 0);
        }
        if (!modelView.box.querySelector('[tabindex="0"]') && modelView.box.firstChild)
            modelView.box.firstChild.tabIndex = 0;
        const overKey = [over, state.head, dark].join();
        if (modelView.over.dataset.key !== overKey)
            put(modelView.over, ...(over.length ? overlayTools() : []));
        modelView.over.dataset.key = overKey;
    },
    says: () => `${heads().length} heads on one scale` +
        (modelView.group === "layer" ? ", layers down, heads across. " :
                                       `, by ${modelView.group}. `) +
        ofCells +
        (manifest.effects ?
             "The bar below a head is its effect: to the left it helps the prediction, to the right it hinders. " :
             ""),
    figure() {
        const {clientWidth, clientHeight} = modelView.stage,
                            places = modelPlaces(clientWidth, clientHeight),
                            figure = sheet(places.width, places.height);
        listOf(places.tiles.length, modelPainter(figure, places, true));
        return figure;
    }
};
