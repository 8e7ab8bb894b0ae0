/* What opens and closes around the views: the panels at the sides, the drawer of What if, definitions of numbers. */
const folds = {
    rail: "fold-rail",
    side: "fold-side",
    "what-if": "what-if-open"
};
const isOpen = name => byId(folds[name]).getAttribute("aria-expanded") === "true";
function setOpen(name, open) {
    byId(folds[name]).setAttribute("aria-expanded", open);
    if (name === "what-if")
        byId(name).hidden = !open;
    else
        document.body.classList.toggle("no-" + name, !open);
    change();
}
function showFolds() {
    for (const name in folds) hear(byId(folds[name]), "click", () => setOpen(name, !isOpen(name)));
    if (matchMedia("(max-width: 40em)").matches) byId("rail-more").open = false;
    hear(byId("reset"), "click", resetWhatIf);
    hear(window, "click", event => {
        if (!event.target.closest(".def")) closeDefinition();
    });
}

/* Esc closes the last of what is open; false: nothing was. */
function closeOne() {
    const save = byId("save");
    if (openDefinition) {
        closeDefinition();
        return true;
    }
    if (save.open) {
        save.open = false;
        save.firstElementChild.focus();
        return true;
    }
    if (matrix.brush) {
        clearBrush();
        return true;
    }
    if (isOpen("what-if")) {
        const inside = hasFocus(byId("what-if"));
        setOpen("what-if", false);
        if (inside) byId("what-if-open").focus();
        return true;
    }
    return false;
}

/* A number, or the name of one, that says on request what it is. */
let openDefinition = null;
function define(text, meaning, kind = "") {
    if (!meaning) return text;
    const click = ({currentTarget: node}) => {
        const again = openDefinition === node;
        closeDefinition();
        if (again) return;
        const {left, bottom} = boxOf(node);
        node.setAttribute("aria-expanded", "true");
        tip({clientX: left - 16, clientY: bottom - 12}, meaning);
        openDefinition = node;
    };
    return button(text, click, {
        class: "def " + kind,
        title: meaning,
        label: `${text}: ${meaning}`,
        "aria-expanded": "false"
    });
}
function closeDefinition() {
    if (!openDefinition) return;
    openDefinition.setAttribute("aria-expanded", "false");
    openDefinition = null;
    tip(null, "");
}
