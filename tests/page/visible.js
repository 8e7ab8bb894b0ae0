/*
 * node visible.js PROGRAM visible.js [SEED]: the page's one function of visibility against the library, over the
 * problems that PROGRAM (print_visible) prints.
 */
"use strict";
const {readFileSync} = require("fs"), {execFileSync} = require("child_process");
const [program, source, ...seed] = process.argv.slice(2);
const {max, min, floor} = Math;
const {RULES, intervalOf} = new Function(
    "max", "min", "floor", readFileSync(source, "utf8") + "; return {RULES, intervalOf};")(
    max, min, floor);

const lines = execFileSync(program, seed, {encoding: "utf8", maxBuffer: 1 << 28}).trim().split("\n");
const met = new Set();
let queries = 0;
for (const line of lines) {
    const {rules, n, keys} = JSON.parse(line);
    Object.keys(rules).forEach(name => met.add(name));
    keys.forEach((wanted, i) => {
        const got = intervalOf(rules, n, i), empty = wanted[0] === wanted[1];
        queries++;
        if (empty ? got[0] === got[1] : got[0] === wanted[0] && got[1] === wanted[1]) return;
        console.log(`query ${i} sees [${got}) of the page, [${wanted}) of the library: ${line}`);
        process.exit(1);
    });
}
const unmet = Object.keys(RULES).filter(name => !met.has(name));
if (unmet.length) {
    console.log("no problem has the rule", unmet.join(", "));
    process.exit(1);
}
console.log(`${lines.length} problems, ${queries} queries, rules: ${[...met].sort().join(", ")}`);
