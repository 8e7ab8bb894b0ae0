/* The strip of questions: each is answered by softmax over changed scores or keys, from q and k, at once. */
const pairNames = {
    "00": "A→A",
    "01": "A→B",
    "10": "B→A",
    "11": "B→B"
};

function modifications() {
    return [
        !whatIf.scaled && "without the scale",
        whatIf.temperature !== 1 && `temperature ${whatIf.temperature.toPrecision(2)}`,
        whatIf.causal && !manifest.causal && "causal",
        !whatIf.specials && "without special tokens as keys",
        whatIf.dropped.size > 0 &&
            "without " + [...whatIf.dropped].slice(0, 4).map(tokenText).join(" ") +
                (whatIf.dropped.size > 4 ? " …" : "")
    ].filter(Boolean);
}
const ask = patch => {
    Object.assign(whatIf, patch);
    changeAll();
};

function dropKey() {
    const dropped = new Set(whatIf.dropped);
    if (!dropped.delete(state.key)) dropped.add(state.key);
    ask({dropped});
}
const resetWhatIf = () => ask(
    {scaled: true, temperature: 1, causal: false, specials: true, dropped: new Set(), pairs: ""});

drawn.push(function drawWhatIf() {
    const box = byId("what-if"), key = JSON.stringify([whatIf, [...whatIf.dropped], state.key]);
    if (box.dataset.key === key) return;
    box.dataset.key = key;
    if (hasFocus(box) && document.activeElement.type === "range") return drawBadge(box);
    const focused = hasFocus(box) ?
        [...box.querySelectorAll("input,button,select")].indexOf(document.activeElement) :
        -1;
    const temperature = el("input", {
        type: "range",
        min: -1,
        max: 1,
        step: 0.05,
        value: Math.log10(whatIf.temperature),
        label: "Temperature",
        "aria-valuetext": whatIf.temperature.toPrecision(2),
        oninput: event =>
            ask({temperature: abs(event.target.value) < 0.01 ? 1 : 10 ** event.target.value})
    });
    const name =
        scaleOf(thisHead()).toFixed(4) === (1 / sqrt(D)).toFixed(4) ? "scale 1/√d" : "scale";
    put(box, el("span", {class: "name"}, "What if"),
        check(name, whatIf.scaled, scaled => ask({scaled}), "multiply scores by the model's scale"),
        el("label", {title: "scores are divided by it"}, "temperature", temperature,
           el("output", {id: "temperature"})),
        manifest.causal || !PLACED ? "" :
                                     check(
                                         "causal", whatIf.causal, causal => ask({causal}),
                                         "a query sees itself and the keys before it"),
        manifest.special ? check(
                               "special tokens", whatIf.specials, specials => ask({specials}),
                               "off: they are no keys, and the other weights sum to 1") :
                           "",
        !CROSS && manifest.segment?.includes(1) ?
            select(
                "pairs", [["", "all"], ...Object.entries(pairNames)], whatIf.pairs,
                pairs => ask({pairs}),
                "only queries of one text and keys of one text; weights stay") :
            "",
        button(
            whatIf.dropped.has(state.key) ? "Bring key back" : "Drop key", dropKey,
            {title: `softmax without the selected key, ${tokenText(state.key)}`}),
        isModified() || whatIf.pairs ? button("Reset", resetWhatIf) : "",
        el("span", {id: "badge"}));
    if (focused >= 0) [...box.querySelectorAll("input,button,select")][focused]?.focus();
    drawBadge(box);
});
function drawBadge(box) {
    const badge = box.querySelector("#badge");
    box.querySelector("#temperature").textContent = whatIf.temperature.toPrecision(2);
    const text = isModified() ?
        "modified: not what the model computed" :
        manifest.modified || (whatIf.pairs ? "filtered: " + pairNames[whatIf.pairs] : "");
    badge.className = text ? "badge" : "";
    badge.textContent = text;
}
