/* Small tools: elements, SVG, numbers as text, the live region, the tooltip, work in slices. */
const byId = id => document.getElementById(id);

/* element("div", { class: "x", onclick: f }, child, "text", …): text reaches the page as text only. */
function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        const states =
            key.startsWith("aria-");  // those are "true" and "false", other attributes there or not
        if (value === null || value === undefined || (value === false && !states)) continue;
        if (key.startsWith("on"))
            made.addEventListener(key.slice(2), value);
        else
            made.setAttribute(key, value === true && !states ? "" : value);
    }
    made.append(...children.filter(child => child !== null && child !== undefined));
    return made;
}
function svg(name, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes))
        if (value !== null) made.setAttribute(key, value);
    made.append(...children);
    return made;
}

const fixed = (x, digits) => Number.isFinite(x) ?
    x.toFixed(digits).replace(/^-(0\.?0*)$/, "$1").replace("-", "\u2212") :
    "NaN";
/* A weight: 3 digits after the point, more where it is small. */
const weightText = p => p === 0 ? "0" :
    p < 0.0005                  ? p.toExponential(1).replace("-", "\u2212") :
                                  fixed(p, 3);
const listOf = (n, make) => Array.from({length: n}, (_, i) => make(i));

const choices = (pairs, chosen) =>
    pairs.map(([value, text]) => element("option", {value, selected: value === chosen}, text));
function select(name, pairs, chosen, change, hint) {
    return element(
        "label", {title: hint}, name,
        element("select", {onchange: e => change(e.target.value)}, ...choices(pairs, chosen)));
}
function check(name, on, change, hint) {
    const box = element("input", {type: "checkbox", onchange: e => change(e.target.checked)});
    box.checked = on;
    return element("label", {title: hint}, box, name);
}
const button = (name, click, more = {}) =>
    element("button", {type: "button", onclick: click, ...more}, name);

/* table(["Key", "Weight"], [[…], …]): cells are text or elements; the first of a row is its name. */
function table(caption, names, lines, mark = () => false) {
    return element(
        "div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
        element(
            "table", {}, element("caption", {class: "unseen"}, caption),
            element(
                "thead", {},
                element("tr", {}, ...names.map(name => element("th", {scope: "col"}, name)))),
            element(
                "tbody", {},
                ...lines.map(
                    (line, r) => element(
                        "tr", {class: mark(r) ? "now" : null},
                        ...line.map(
                            (cell, c) =>
                                element(c ? "td" : "th", c ? {} : {scope: "row"}, cell)))))));
}
const asTable = (caption, names, lines) => {
    const details = element("details", {class: "table"}, element("summary", {}, "As table"));
    details.addEventListener("toggle", () => {
        if (details.open && details.children.length === 1)
            details.append(table(caption, names, lines()));
    });
    return details;
};

let spoken = "";
function say(text) {
    if (text !== spoken) byId("live").textContent = spoken = text;
}

function tip(event, text) {
    const box = byId("tip");
    box.hidden = !text;
    if (!text) return;
    box.textContent = text;
    const {width, height} = box.getBoundingClientRect();
    box.style.left = Math.max(4, Math.min(event.clientX + 16, innerWidth - width - 8)) + "px";
    box.style.top = (event.clientY + height + 28 > innerHeight ? event.clientY - height - 12 :
                                                                 event.clientY + 18) +
        "px";
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
    const ratio = Math.min(3, devicePixelRatio || 1),
          {width, height} = canvas.getBoundingClientRect();
    const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
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
    const key = name + isDark();
    if (!resolved.has(key)) {
        const probe = byId("live");
        probe.style.color = `var(${name})`;
        resolved.set(key, getComputedStyle(probe).color);
    }
    return resolved.get(key);
}
