/*
 * The page follows what is typed. After a pause the text is sent into a frame behind the one that
 * is shown, and the two change places once it is there. One text at a time is on its way; of those
 * that are typed meanwhile the last one follows.
 */
const form = document.querySelector("form"), text = form.elements.text,
      state = document.querySelector("#state"), PAUSE = 400;
let shown = document.querySelector("iframe"), busy = false, due = false, pause = 0, sent = null;

const says = words => {
    state.textContent = words;
};

/* The view of the old page: its head and tab. The query is the new text's own. */
function view() {
    try {
        const [head, , , tab] =
            decodeURIComponent(shown.contentWindow.location.hash.slice(1)).split("/");
        return tab && tab !== "start" ? `#${head}///${tab}` : "";
    } catch {
        return "";
    }
}

/* Is the page there, or did the browser put its own error in the frame? */
function arrived(frame) {
    try {
        return frame.contentWindow.location.href !== "about:blank";
    } catch {
        return null;
    }
}

function look() {
    clearTimeout(pause);
    if (busy) {
        due = true;
        return;
    }
    busy = true;
    due = false;
    sent = text.value;
    const next = document.createElement("iframe"),
          late = setTimeout(() => says("computing …"), 300);
    next.title = shown.title;
    next.className = "coming";
    next.name = shown.name === "page" ? "next" : "page";
    shown.after(next);
    next.addEventListener("load", () => {
        const here = arrived(next);
        if (here === false || !busy) return;
        clearTimeout(late);
        says(here ? "" : "qkv has ended: no answer");
        busy = false;
        if (here) {
            shown.remove();
            next.className = "";
            shown = next;
        } else {
            next.remove();
        }
        if (here && due) look();
    });
    form.target = next.name;
    form.action = "page" + view();
    form.submit();
}

form.addEventListener("submit", event => {
    event.preventDefault();
    look();
});
text.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(() => text.value !== sent && look(), PAUSE);
});
text.addEventListener("keydown", event => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    look();
});
if (text.value.trim()) look();
