/* Begins: what is there once, then a first drawing; heads may come later. */
tabOrder.unshift(
    "start", ...tabs.image ? ["image"] : [], "model", "tokens", "matrix", "why", "map", "numbers",
    "compare");

function showTitle() {
    byId("title").textContent = manifest.title || "Attention";
    byId("subtitle").textContent = [
        manifest.caption, CROSS ? `${M} queries, ${N} keys` : `${N} tokens`,
        `${HEADS.length} ${HEADS.length === 1 ? "head" : "heads"}, d = ${D}`
    ].filter(Boolean).join(" · ");
}
hear(byId("theme"), "click", () => {
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    change();
});
drawn.push(() => {
    byId("theme").textContent = dark ? "Light" : "Dark";
});

measureRem();
showTitle();
readAddress();
showTabs();
showFolds();
showRail();
showStrip();
showSave();
listenToKeys();
draw();
hear(window, "resize", () => change());
hear(window, "beforeprint", draw);
hear(window, "hashchange", () => {
    readAddress();
    change();
});
hear(prefersDark, "change", () => change());
hear(window, "DOMContentLoaded", () => change());
