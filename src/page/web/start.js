/*
 * View 1: what is true of this text, computed from the file; each sentence leads to the view that shows it, and each
 * number says what it is. Effects are those that the command measured, if it was asked to.
 */
const heads = () => headOrder("");  // of the text that is shown
const numberOf = (i, key) => HEADS[i].stats?.[key];

/* The n heads with the largest number; NaN never. */
const foremost = (key, n = 1, sign = 1) =>
    heads()
        .filter(i => Number.isFinite(numberOf(i, key)))
        .sort((a, b) => sign * (numberOf(b, key) - numberOf(a, key)))
        .slice(0, n);
const meaningOf = key => `${statNames[key][0]}: ${statNames[key][1]}`;
const figureOf = (text, meaning) => define(text, meaning, "plain");
const shownNumber = (i, key) => figureOf(fixed(numberOf(i, key), 2), meaningOf(key));

/* "P(it) falls from 1.00 to 0.42", with as many digits as tell the two apart, up to four. */
function changeOf(word, what, before, after) {
    const digits = [2, 3, 4].find(n => fixed(before, n) !== fixed(after, n)),
          number = (p, more) =>
              figureOf(fixed(p, digits || 2), `${what}, as a probability, ${more}`);
    if (!digits) return [`P(${word}) hardly changes from `, number(before, "by the whole model")];
    return [
        `P(${word}) ${after < before ? "falls" : "rises"} from `,
        number(before, "by the whole model"), " to ", number(after, "without the head")
    ];
}

/* What the query looks at in a head as the model computed it: "reads door (0.97)". */
function reading(head, query) {
    const weights = row(head, query, true, true);
    if (!weights) return null;
    const [key] = largest(weights, 1);
    if (key === undefined) return null;
    const p = weights[key];
    return {
        key,
        nodes: [
            el("b", {}, bdi(tokenText(key))), " (",
            figureOf(
                fixed(p, 2),
                `weight of ${queryText(query)} on ${tokenText(key)} in ${
                    headName(head)}: all weights of a query sum to 1`),
            ")"
        ]
    };
}
const toHead = (i, patch = {}, name = placeName(i)) =>
    ({name, patch: {head: i, tab: "tokens", ...patch}});

const toModel = (name, patch, group) =>
    ({name, patch: {...patch, tab: "model"}, run: () => setGroup(group)});

/* What a prediction is for: "To fill [MASK], ", as the command says it. */
function purpose({word, place, what}) {
    const at = el("b", {}, bdi(queryText(place)));
    if (what === `ln P(${word}) at token ${place}`) return ["To fill ", at, ", "];
    if (what === `ln P(${word}) after token ${place}`) return ["To say what comes next, "];
    if (what === `ln P(${word}) after token ${place} of the target`)
        return ["To write ", el("b", {}, bdi(word)), ", "];
    return ["At ", at, ", "];
}

/*
 * "To fill [MASK], head 3.0 reads door (0.97); without it P(it) falls from 1.00 to 0.42 (−0.87 nats)."
 */
function effectFindings() {
    const {effects} = manifest;
    if (!effects) return [];
    const {word, place, log_p, what} = effects;
    const measured = heads().filter(i => Number.isFinite(HEADS[i].effect)),
          byEffect = measured.sort((a, b) => HEADS[a].effect - HEADS[b].effect);
    const one = i => {
        const {effect} = HEADS[i], at = place >= 0 ? {query: place} : {},
              read = place >= 0 && reading(i, place), after = exp(log_p + effect);
        const nats = figureOf(
            `${fixed(abs(effect), 2)} nats`,
            `effect: change of ${
                what} if this head gives 0 and all that reads it is computed again; below 0 the head helps`);
        const parts = word ?
            [
                ...changeOf(word, what, exp(log_p), after), ` (${effect < 0 ? "−" : "+"}`, nats,
                ")."
            ] :
            [`${what} ${effect < 0 ? "falls" : "rises"} by `, nats, "."];
        const before = place >= 0 ?
            [
                ...purpose(effects), `head ${placeName(i)} reads `, ...(read ? read.nodes : ["…"]),
                "; without it "
            ] :
            [`Without head ${placeName(i)} `];
        return {
            text: [...before, ...parts],
            links: [toHead(i, at), toModel("all effects", {head: i, ...at}, "effect")]
        };
    };
    const helps = byEffect.filter(i => HEADS[i].effect < -0.01).slice(0, 3),
          hurts = byEffect.filter(i => HEADS[i].effect > 0.01).slice(-1);
    if (!helps.length && !hurts.length && measured.length)
        return [{
            text: [`No single head matters for this prediction: without any one of them, ${
                what} changes by less than 0.01 nats.`],
            links: []
        }];
    return [...helps, ...hurts].map(one);
}

function firstFinding() {
    const i = heads().includes(0) ? 0 : heads()[0] ?? 0, query = firstQuery(),
          read = reading(i, query);
    if (!read || manifest.effects) return [];
    return [{
        text: [
            `In head ${placeName(i)}, `, el("b", {}, bdi(queryText(query))), " looks at ",
            ...read.nodes, "."
        ],
        links: [toHead(i, {query}), {name: "why", patch: {head: i, query, tab: "why"}}]
    }];
}

/* For each label: how many heads have it, and the one that does it most. */
const labelTexts = {
    next: ["looks", "look", "at the token after the query", "mass_next"],
    prev: ["looks", "look", "at the token before the query", "mass_previous"],
    "[CLS]": ["rests", "rest", "on [CLS]", "mass_cls"],
    "[SEP]": ["rests", "rest", "on [SEP]", "mass_sep"],
    punctuation: ["looks", "look", "at punctuation", "mass_punctuation"],
    broad: ["looks", "look", "at nearly everything alike", "entropy_normalized"],
    sink: ["gives most", "give most", "to one of the first keys", "received_early"],
    duplicate: ["looks", "look", "at earlier places of the same token", "duplicate"],
    induction: ["looks", "look", "at what followed the same token before", "induction"],
    "same-token": ["looks", "look", "at the same token elsewhere", "mass_same_token"],
    "coreference-like": ["looks", "look", "from a pronoun at a noun before it", "antecedent"]
};
/* A label may be any text, and every object has a constructor. */
const labelText = label =>
    Object.hasOwn(labelTexts, label) ? labelTexts[label] : ["has", "have", `the label ${label}`];
function labelFindings() {
    const labels = [...new Set(heads().map(i => HEADS[i].label).filter(Boolean))];
    return labels.map(label => {
        const mine = heads().filter(i => HEADS[i].label === label),
              [one, many, text, key] = labelText(label),
              known = key in statNames && Number.isFinite(numberOf(mine[0], key)),
              best = known ? mine.sort((a, b) => numberOf(b, key) - numberOf(a, key))[0] : mine[0];
        return {
            text: [
                figureOf(
                    mine.length === 1 ? `Head ${placeName(best)}` :
                                        `${mine.length} of ${heads().length} heads`,
                    "heads with the label " + label +
                        ", the first rule of docs/statistics.md that holds for this text"),
                ` ${mine.length === 1 ? one : many} ${text}`,
                ...(known ?
                        [
                            mine.length === 1 ? " (" : `, head ${placeName(best)} most (`,
                            shownNumber(best, key), ")."
                        ] :
                        ["."])
            ],
            links: [toHead(best), toModel(`all ${label}`, {head: best}, "label")]
        };
    });
}

function numberFindings() {
    const made = [], add = (i, before, key, after) => i !== undefined && made.push({
        text: [`Head ${placeName(i)} ${before}`, shownNumber(i, key), after],
        links: [toHead(i)]
    });
    if (heads().length < 2 || !HEADS[0].stats) return made;
    add(foremost("confidence")[0], "is the surest: a query's largest weight is ", "confidence",
        " on average.");
    add(foremost("entropy_normalized")[0], "spreads most: its entropy is ", "entropy_normalized",
        " of the largest there could be.");
    if (PLACED)
        add(foremost("mean_distance")[0], "looks farthest: ", "mean_distance",
            " tokens away on average.");
    const [most] = foremost("received_largest");
    if (most !== undefined && HEADS[most].received_key >= 0)
        made.push({
            text: [
                el("b", {}, bdi(tokenText(HEADS[most].received_key))),
                ` at place ${HEADS[most].received_key} receives most of a single head: `,
                shownNumber(most, "received_largest"),
                ` of each query's weight in head ${placeName(most)}.`
            ],
            links: [toHead(
                most, {key: HEADS[most].received_key, tab: "matrix"},
                `${placeName(most)} as a matrix`)]
        });
    return made;
}

/* "Of layers 0, 1, 3 each query sees 4 keys before itself." */
function windowFindings() {
    const windows = new Map();
    for (const i of heads())
        if (HEADS[i].window) {
            const name = windowText(rulesOf(HEADS[i]).window);
            windows.set(name, [...(windows.get(name) || []), i]);
        }
    return [...windows].map(([name, mine]) => {
        const layers = [...new Set(mine.map(i => HEADS[i].layer))];
        return {
            text: [`${name}: layer${layers.length > 1 ? "s" : ""} ${layers.join(", ")}.`],
            links: [toHead(mine[0], {tab: "matrix"}, "as a matrix")]
        };
    });
}

/* A link has an address, so that it can be copied; a click needs none. */
function findingLink({name, patch, run}) {
    const {head = state.head, query = state.query, key, tab} = patch;
    const weights = row(head, query, true, true),
          at = key ?? (weights ? largest(weights, 1)[0] : 0) ?? 0;
    return el(
        "a", {
            href: `#${placeName(head)}/${query}/${at}/${tab}`,
            onclick: event => {
                if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                event.preventDefault();
                run?.();
                change({hover: null, ...patch});
            }
        },
        name);
}

/* A number stays in the line of the brackets and stops beside it. */
function keepWhole(p) {
    for (const number of p.querySelectorAll("button")) {
        const whole = el("span", {class: "whole"}),
              {previousSibling: before, nextSibling: after} = number;
        number.before(whole);
        if (before?.data) whole.append(before.splitText(before.data.search(/\S*$/)));
        whole.append(number);
        if (!after?.data) continue;
        after.splitText(after.data.search(/\s|$/));
        whole.append(after);
    }
    return p;
}

const startView = {
    key: ""
};
tabs.start = {
    name: "Start",
    show(panel) {
        startView.list = el("ol", {class: "findings"});
        startView.note = el("div");
        startView.key = "";
        panel.append(
            el("h2", {}, "What there is to see"), startView.note, startView.list,
            note(
                "Computed from the numbers in this file. A sentence is about this text only. A weight says how values were mixed in a layer; what a head is worth for a prediction is its effect" +
                (manifest.effects ? "." :
                                    ", which `qkv look --effect -o FILE.html` adds to a page.")));
    },
    draw() {
        const key = [manifest.at, document.readyState, version, isAsked()].join();
        if (key === startView.key) return;
        startView.key = key;
        put(startView.note,
            ...((manifest.hint || "").match(/.+/g) || [])
                .map(line => el("p", {class: "badge"}, `Note: ${line}.`)),
            unasked("Findings without What if"));
        const found = [
            ...effectFindings(), ...firstFinding(), ...labelFindings(), ...numberFindings(),
            ...windowFindings()
        ];
        put(startView.list,
            ...found.map(
                ({text, links}) =>
                    el("li", {}, keepWhole(el("p", {}, ...text)),
                       el("p", {class: "links"}, ...links.map(findingLink)))));
    },
    figure: () => null
};
