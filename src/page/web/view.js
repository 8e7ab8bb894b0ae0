/*
 * What the matrix and the map have in common: the wheel, two fingers and + − 0 zoom, a drag or Shift with arrows
 * moves, a click selects. hands says how: at(event) → {x, y, …}, zoom(factor, x, y), pan(dx, dy), fit(),
 * click(event), hover(event), and, where rectangles are drawn, brush(from, to) and brushed().
 */
let rem = 1;  // the reader's size of text, of that of the style
const em = () => rem;
const measureRem = () => {
    rem = parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;
};
/* What fills its place is drawn again when that is no longer of refit.size. */
const sizeOf = ({clientWidth, clientHeight}) => clientWidth + "," + clientHeight;
const refit = new ResizeObserver(([{target}]) => {
    if (sizeOf(target) !== refit.size) change();
});
const font = (size, weight = 400) => `${weight} ${size * em()}px system-ui, sans-serif`;
const ruler = el("canvas").getContext("2d");
function textWidth(text, size, weight = 400) {
    ruler.font = font(size, weight);
    return ruler.measureText(text).width;
}
/* As much of a text as fits a width, ending in …. */
function cutTo(text, width, size) {
    if (textWidth(text, size) <= width) return text;
    const letters = [...text];
    while (letters.length && textWidth(letters.join("") + "…", size) > width) letters.pop();
    return letters.join("") + "…";
}

function listenToHands(node, hands) {
    const held = new Map();
    let start = null, moved = false, apart = 0;
    const both = () => [...held.values()];
    const spread = ([a, b]) => hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    hear(node, "wheel", event => {
        event.preventDefault();
        const {x, y} = hands.at(event);
        hands.zoom(exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0022)), x, y);
    }, {passive: false});
    hear(node, "pointerdown", event => {
        held.set(event.pointerId, event);
        moved = false;
        start = {event, last: event, brush: hands.brush && (event.shiftKey || hands.brushing())};
        if (held.size === 2) apart = spread(both());
    });
    hear(node, "pointermove", event => {
        if (!held.has(event.pointerId)) return hands.hover(event);
        held.set(event.pointerId, event);
        if (held.size === 2) {
            const now = spread(both()), [a, b] = both().map(hands.at);
            hands.zoom(now / apart, (a.x + b.x) / 2, (a.y + b.y) / 2);
            apart = now;
            moved = true;
            return;
        }
        const far = hypot(event.clientX - start.event.clientX, event.clientY - start.event.clientY);
        if (far < 5 && !moved) return;
        if (!moved) node.setPointerCapture(event.pointerId);  // before it, points hear clicks
        moved = true;
        tip(event, "");
        if (start.brush)
            hands.brush(start.event, event);
        else
            hands.pan(event.clientX - start.last.clientX, event.clientY - start.last.clientY);
        start.last = event;
    });
    const release = event => {
        if (!held.delete(event.pointerId) || held.size) return;
        if (moved && start.brush)
            hands.brushed();
        else if (!moved && event.type === "pointerup")
            hands.click(event);
    };
    for (const end of ["pointerup", "pointercancel"]) hear(node, end, release);
    hear(node, "pointerleave", event => {
        if (!moved) held.delete(event.pointerId);
        tip(event, "");
    });
    hear(node, "dblclick", hands.fit);
}

/* The view that + − 0 and Shift with arrows move. */
const handsNow = () => state.tab === "map" ? mapHands : matrixHands;
const zoomTools = hands => [el(
    "span", {class: "zooms"},
    button("+", () => hands.zoom(1.5), {label: "+ zoom in", title: "zoom in: +"}),
    button("−", () => hands.zoom(1 / 1.5), {label: "− zoom out", title: "zoom out: −"}),
    button("Fit", () => hands.fit(), {title: "0, or double click"}))];

/* Boxes that are taken: claim(box) is false if one of them is in the way. Boxes are [left, top, right, bottom]; they
 * lie in buckets of BUCKET pixels, so that many cost little. */
const BUCKET = 64;
function claims() {
    const buckets = new Map();
    const over = ([left, top, right, bottom]) => {
        const names = [];
        for (let x = floor(left / BUCKET); x <= floor(right / BUCKET); x++)
            for (let y = floor(top / BUCKET); y <= floor(bottom / BUCKET); y++)
                names.push(x * 65536 + y);
        return names;
    };
    const take = box => {
        for (const name of over(box))
            if (buckets.has(name))
                buckets.get(name).push(box);
            else
                buckets.set(name, [box]);
        return true;
    };
    const free = box => over(box).every(
        name =>
            (buckets.get(name) ||
             []).every(b => box[2] <= b[0] || box[0] >= b[2] || box[3] <= b[1] || box[1] >= b[3]));
    return {take, free, claim: box => free(box) && take(box)};
}
