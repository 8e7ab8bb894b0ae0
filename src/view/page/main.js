/* Begins: what is there once, then the first drawing. Heads that the browser has not read yet come later. */
tabOrder.push("tokens", "matrix", "why", "numbers", "compare");

function showTop() {
    byId("title").textContent = manifest.title || "Attention";
    byId("subtitle").textContent = [
        manifest.caption, `${N} tokens`,
        `${HEADS.length} ${HEADS.length === 1 ? "head" : "heads"} of ${D}`
    ].filter(Boolean).join(" \u00b7 ");
    byId("theme").addEventListener("click", () => {
        document.documentElement.dataset.theme = isDark() ? "light" : "dark";
        change();
    });
    drawn.push(() => {
        byId("theme").textContent = isDark() ? "Light" : "Dark";
    });
}

showTop();
readAddress();
showTabs();
showRail();
showStrip();
showSave();
listenToKeys();
draw();
addEventListener("resize", () => change());
addEventListener("hashchange", () => {
    readAddress();
    change();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change());
addEventListener("DOMContentLoaded", () => change());
