/* The strip of questions: each is answered by softmax over changed scores or keys, from q and k, at once. */
const pairNames = {
    "00": "A→A",
    "01": "A→B",
    "10": "B→A",
    "11": "B→B"
};

const temperatureText = () => String(+whatIf.temperature.toPrecision(4));
function modifications() {
    return [
        !whatIf.scaled && "without the scale",
        whatIf.temperature !== 1 && `temperature ${temperatureText()}`,
        whatIf.causal && !modelRules.causal && "causal",
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

/* What can be asked of this text, of what not all texts have. */
const canAsk = {
    causal: () => PLACED && !modelRules.causal,
    specials: () => !!manifest.special,
    pairs: () => !CROSS && !!manifest.segment?.includes(1)
};

/* For a page around this one, which shows another text next: what is asked, or null. */
function askedNow() { return isAsked() ? {...whatIf, dropped: [...whatIf.dropped]} : null; }
/* The same asked here, without what cannot be asked of this text: its names are returned. */
function askAgain({dropped, ...settings}) {
    const plain = nothingAsked(),
          ends =
              Object.keys(canAsk).filter(name => settings[name] !== plain[name] && !canAsk[name]());
    for (const name of ends) settings[name] = plain[name];
    ask({...settings, dropped: new Set(dropped)});
    const words = {causal: "causal", specials: "special tokens", pairs: "pairs"};
    return ends.map(name => words[name]);
}

function dropKey() {
    const dropped = new Set(whatIf.dropped);
    if (!dropped.delete(state.key)) dropped.add(state.key);
    ask({dropped});
}
const resetWhatIf = () => ask(nothingAsked());

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
        id: "heat",
        // of two digits, so that what is said is what is computed with
        oninput: event => ask({temperature: +(10 ** event.target.value).toPrecision(2)})
    });
    const name =
        scaleOf(thisHead()).toFixed(4) === (1 / sqrt(D)).toFixed(4) ? "scale 1/√d" : "scale";
    const parts = [
        el("span", {class: "name"}, "What if"),
        check(name, whatIf.scaled, scaled => ask({scaled}), "multiply scores by the model's scale"),
        el("label", {title: "scores are divided by it"}, "temperature", temperature,
           el("output", {id: "temperature"})),
        canAsk.causal() &&
            check(
                "causal", whatIf.causal, causal => ask({causal}),
                "a query sees itself and the keys before it"),
        canAsk.specials() &&
            check(
                "special tokens", whatIf.specials, specials => ask({specials}),
                "off: they are no keys, and the other weights sum to 1"),
        canAsk.pairs() &&
            select(
                "pairs", [["", "all"], ...Object.entries(pairNames)], whatIf.pairs,
                pairs => ask({pairs}),
                "only queries of one text and keys of one text; weights stay"),
        button(
            whatIf.dropped.has(state.key) ? "Bring key back" : "Drop key", dropKey,
            {title: `softmax without the selected key, ${tokenText(state.key)}`}),
        note("Every number below is computed again; the pair's weight is shown before → after.")
    ];
    put(box, ...parts.filter(Boolean));
    drawBadge(box);
    [...box.querySelectorAll("input,button,select")][focused]?.focus();
});
function drawBadge(box) {
    box.querySelector("#temperature").textContent = temperatureText();
    byId("heat").setAttribute("aria-valuetext", temperatureText());
}
/* What is asked, on every view: whether the drawer is open or not. */
drawn.push(function drawAsked() {
    const badge = byId("badge"), {query, key} = pairNow();
    const text = [
        isModified() ? "modified: not what the model computed" : manifest.modified,
        whatIf.pairs && "filtered: " + pairNames[whatIf.pairs]
    ].filter(Boolean).join("; ");
    badge.className = text ? "badge" : "";
    badge.textContent = text;
    byId("asked").hidden = !text;
    byId("reset").hidden = !isAsked();
    const before = isModified() && row(state.head, query, true, true),
          after = before && row(state.head, query, false, true);
    byId("before-after").textContent = after ?
        `${modifications().join(", ")}: ${queryText(query)} → ${tokenText(key)} ${
            weightText(before[key])} → ${weightText(after[key])}` :
        "";
});

/* What was computed before it is asked for. */
const unasked = (text, name = "p") => isAsked() ? el(name, {class: "badge"}, text) : "";

/* How the score of a pair comes about: [what is done, the value after it, what that is]. */
function scoreSteps(data, i, j) {
    const {q, k, alibi, distances, scale} = data, added = biasOf(data, i, j),
                                   biased = alibi ? "before ALiBi" :
        distances                                 ? "before the bias by distance" :
                                                    "";
    let value = dot(q, i * D, k, j * D);
    const steps = [["", value, "q·k"]];
    const step = (done, next, name) => steps.push([done, value = next, name]);
    step(
        whatIf.scaled ? `× ${fixed(scale, 4)}` : "without the scale",
        whatIf.scaled ? value * scale : value, CAP ? "before softcap" : biased || "score");
    if (CAP) step(`softcap ${CAP}`, CAP * tanh(value / CAP), biased || "score");
    if (biased) step(signed(added), value + added, "score");
    if (whatIf.temperature !== 1)
        step(`÷ ${temperatureText()}`, value / whatIf.temperature, "score / temperature");
    return steps;
}

/* Why query i does not see key j; "" if it does. */
function whyHidden(data, i, j) {
    const [first, end] = visibleKeys(i, rulesOf(data));
    if (maySee(data, i, j)) return "";
    if (whatIf.dropped.has(j)) return "dropped by What if";
    if (isGone(j)) return "special, hidden by What if";
    if (j >= first && j < end && sees(data, i, j)) return "after the query, hidden by What if";
    return "hidden by the mask";
}

/* A weight of the row of query i. */
const cellText = (i, j, p) => isFiltered(i, j) ? "not shown" : weightText(p);
