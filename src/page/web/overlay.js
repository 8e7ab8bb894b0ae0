/*
 * Several heads over each other in Tokens: bars below each token and lines, each head with a colour and a stroke of
 * its own, since a colour alone says nothing to those who cannot see it.
 */
const OVERLAID = 5;  // beside the head itself
const strokes = ["", "9 4", "2 4", "10 3 2 3", "16 4", "5 2"];
const overlayColors = [
    ["#155eb1", "#b84a00", "#00734f", "#8a3b8f", "#7a6000", "#a8325e"],
    ["#2fc4c2", "#f5b041", "#7ddb8e", "#e3a6ea", "#d9d26a", "#ff9d9d"]
];
const colorOfOverlaid = at => overlayColors[+dark][at];

function toggleOverlaid(head) {
    if (head === state.head) return;
    const others = state.others.filter(i => i !== head);
    if (others.length === state.others.length) others.push(head);
    change({others: others.slice(-OVERLAID)});
}
/* The head itself and those over it, if there are any. */
const overlaidHeads = () => {
    const others = state.others.filter(i => i !== state.head && headData(i));
    return others.length ? [state.head, ...others] : [];
};
/* Their mean rows over some queries. */
const overlaid = wanted => overlaidHeads().map(head => meanRow(head, wanted));
/* A bar for each head, as long as its weight. */
function showBars(bars, rows, {from, to}) {
    bars.hidden = !rows.length;
    if (!rows.length) return;
    const bar = (weights, at) => {
        let sum = 0;
        for (let j = from; j < to; j++) sum += weights[j];
        const color = colorOfOverlaid(at);
        return `linear-gradient(${color}, ${color}) 0 ${at * 5}px / ${
            (100 * min(1, sum)).toFixed(1)}% 4px no-repeat`;
    };
    bars.style.background = [...rows.map(bar), css("page")].join(", ");
    bars.style.height = rows.length * 5 + "px";
}

/* Which head has which colour; each can be taken away, and others added. */
function overlayTools() {
    const heads = overlaidHeads(), of = headOrder("").slice(0, 400);
    const chips = heads.map((head, at) => {
        const line = svg("svg", {width: 26, height: 10, "aria-hidden": "true"}, svg("path", {
                             d: "M1 5h24",
                             fill: "none",
                             stroke: colorOfOverlaid(at),
                             "stroke-width": 3,
                             "stroke-dasharray": strokes[at]
                         }));
        return at ? button(
                        [line, placeName(head), " ✕"], () => toggleOverlaid(head),
                        {class: "overlaid", label: `${headName(head)}: take it away`}) :
                    el("span", {class: "overlaid"}, line, placeName(head));
    });
    const add = select(
        "Lay over",
        [
            ["", "a head …"],
            ...of.filter(i => i !== state.head && !state.others.includes(i))
                .map(i => [i, `${tileName(i)}${HEADS[i].label ? " " + HEADS[i].label : ""}`])
        ],
        "", value => value !== "" && toggleOverlaid(+value),
        "up to five heads beside this one, by colour and stroke");
    return [...chips, HEADS.length > 1 ? add : ""];
}
