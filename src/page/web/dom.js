/* Small tools: elements, SVG, numbers as text, the live region, the tooltip, work in slices. */
const byId = id => document.getElementById(id);
const hear = (node, event, run, how) => node.addEventListener(event, run, how);
const boxOf = node => node.getBoundingClientRect();
const put = (node, ...children) => node.replaceChildren(...children);
const hasFocus = node => node.contains(document.activeElement);

/* Other children, of which the one with the same data-place has the focus again. */
function refill(node, ...children) {
    const place = hasFocus(node) && document.activeElement.dataset.place;
    put(node, ...children);
    if (place)
        [...node.querySelectorAll("[data-place]")]
            .find(made => made.dataset.place === place)
            ?.focus();
}
const clamp = (x, low, high) => max(low, min(high, x));
const panelWidth = () => byId("panel").clientWidth;

/* Short names of attributes that are written often. */
const longNames = {
    label: "aria-label",
    size: "font-size",
    anchor: "text-anchor"
};

/* el("div", { class: "x", onclick: f }, child, "text", …): text reaches the page as text only. */
const el = (name, attributes, ...children) =>
    furnish(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) =>
    furnish(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
function furnish(made, attributes = {}, children) {
    for (const [key, value] of Object.entries(attributes)) {
        const states = key.startsWith("aria-");  // "true" and "false"; others are there or not
        if (value === null || value === undefined || (value === false && !states)) continue;
        if (key.startsWith("on"))
            hear(made, key.slice(2), value);
        else
            made.setAttribute(longNames[key] || key, value === true && !states ? "" : value);
    }
    made.append(...children.filter(child => child !== null && child !== undefined));
    return made;
}

/* A text in a drawing. */
const written = (words, x, y, more) =>
    svg("text", {x, y, size: 12, fill: css("faint"), ...more}, words);

const headed = (words, x, y, size = 14) =>
    written(words, x, y, {size, "font-weight": 600, fill: css("strong")});

/* A drawing for the screen: "img" with a table beside it, "group" where its elements are pressed. */
const drawing = (width, height, label, role = "img") =>
    svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role, label});

/* A drawing for a file. */
const sheet = (width, height) =>
    svg("svg",
        {viewBox: `0 0 ${width} ${height}`, width, height, "font-family": "system-ui, sans-serif"});

/* What a click on an element of a drawing does, Enter and the space bar do, too. */
function pickable(node, pick) {
    hear(node, "click", pick);
    hear(node, "keydown", event => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        pick();
    });
}

const fixed = (x, digits) => Number.isFinite(x) ?
    x.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "−") :
    Number.isNaN(x) ? "NaN" :
    x < 0           ? "−∞" :
                      "∞";
const signed = x => (x < 0 ? " − " : " + ") + +abs(x).toPrecision(6);
/* A weight: 3 digits after the point, more where it is small. */
const weightText = p => p === 0 ? "0" :
    p < 0.0005                  ? p.toExponential(1).replace("-", "−") :
                                  fixed(p, 3);
const listOf = (n, make) => Array.from({length: n}, (_, i) => make(i));

/* A control's value becomes a part of a view. */
const sets = (of, name, make = value => value) => value => {
    of[name] = make(value);
    change();
};
const note = (...words) => el("p", {class: "note"}, ...words);
const choices = (pairs, chosen) =>
    pairs.map(([value, text]) => el("option", {value, selected: value === chosen}, text));
function select(name, pairs, chosen, change, hint) {
    return el(
        "label", {title: hint}, name,
        el("select", {onchange: e => change(e.target.value)}, ...choices(pairs, chosen)));
}
function check(name, on, change, hint) {
    const box = el("input", {type: "checkbox", onchange: e => change(e.target.checked)});
    box.checked = on;
    return el("label", {title: hint}, box, name);
}
const button = (name, click, more = {}) =>
    el("button", {type: "button", onclick: click, ...more}, ...[name].flat());

/* table(["Key", "Weight"], [[…], …]): cells are text or elements; the first of a row is its name. */
function table(caption, names, lines, mark = () => false, kind = "") {
    const line = (cells, r) =>
        el("tr", {class: mark(r) ? "now" : null},
           ...cells.map((cell, c) => el(c ? "td" : "th", c ? {} : {scope: "row"}, cell)));
    return el(
        "div", {class: "scroll " + kind, tabindex: 0, role: "region", label: caption},
        el("table", {}, el("caption", {class: "unseen"}, caption),
           el("thead", {}, el("tr", {}, ...names.map(name => el("th", {scope: "col"}, name)))),
           el("tbody", {}, ...lines.map(line))));
}
const asTable = (caption, names, lines) => {
    const details = el("details", {class: "table"}, el("summary", {}, "As table"));
    hear(details, "toggle", () => {
        if (details.open && details.children.length === 1)
            details.append(table(caption, names, lines()));
    });
    return details;
};

/* Below a figure: two lines of its caption, or all of it. */
const below = (note, more = "") =>
    el("div", {class: "below"}, el("details", {class: "caption"}, el("summary", {}, note)), more);

let spoken = "";
function say(text) {
    if (text !== spoken) byId("live").textContent = spoken = text;
}

function tip(event, text) {
    const box = byId("tip");
    box.hidden = !text;
    if (!text) return;
    box.textContent = text;
    const {width, height} = boxOf(box), {clientX: x, clientY: y} = event;
    box.style.left = max(4, min(x + 16, innerWidth - width - 8)) + "px";
    box.style.top = (y + height + 28 > innerHeight ? y - height - 12 : y + 18) + "px";
}

/* What is said under the mouse. */
function saysAt(node, text) {
    hear(node, "pointermove", event => tip(event, text(event)));
    hear(node, "pointerleave", event => tip(event, ""));
}

/* Calls step(i) for i = 0 … n - 1 in slices of 10 ms; painted() after each. A later job of that name ends it. */
const jobs = {};
function inSlices(name, n, step, painted) {
    const mine = jobs[name] = {};
    let at = 0;
    const slice = () => {
        if (jobs[name] !== mine) return;
        for (const end = performance.now() + 10; at < n && performance.now() < end; at++) step(at);
        painted(at === n);
        if (at < n) setTimeout(slice);
    };
    slice();
}
const stop = name => {
    jobs[name] = null;
};

/* A canvas as fine as the screen: its context in CSS pixels, cleared. */
function begin(canvas) {
    const ratio = min(3, devicePixelRatio || 1), {width, height} = boxOf(canvas);
    const w = max(1, round(width * ratio)), h = max(1, round(height * ratio));
    if (canvas.width !== w || canvas.height !== h) {
        canvas.width = w;
        canvas.height = h;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return {context, width, height};
}
/* A colour of the style in numbers, for canvases and files, of the theme that is on. */
const resolved = new Map();
function css(name) {
    const key = name + dark;
    if (!resolved.has(key)) {
        const probe = byId("live");
        probe.style.color = `var(--${name})`;
        resolved.set(key, getComputedStyle(probe).color);
    }
    return resolved.get(key);
}
