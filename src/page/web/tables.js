/*
 * View 9, in pages that have tables: numbers about the text beside its heads, such as what each layer would predict.
 * A cell has the colour of its value; where it is about a query or a head, it leads there.
 */
const TABLE_CELLS = 1500;  // of one table on the page at a time
const tablesView = {
    key: ""
};

/* Columns that are shown: all, or those around the query that is selected. */
function shownColumns({rows, columns, queries}) {
    const n = min(columns.length, max(4, floor(TABLE_CELLS / rows.length)));
    if (n === columns.length || !queries) return [0, n];
    const far = queries.map(query => query < 0 ? Infinity : abs(query - state.query)),
          from = clamp(far.indexOf(min(...far)) - floor(n / 2), 0, columns.length - n);
    return [from, from + n];
}

const tableRgb = ({signed, high}, value) =>
    (signed ?
         diverging() :
         ramps[+dark])[round(255 * clamp(signed ? 0.5 + value / high / 2 : value / high, 0, 1))];

const shown = name => bdi(signs(name ?? "\u2013"));

/* Where a cell leads; null: nowhere. Heads that did not fit into the file have no place there. */
function cellPatch({queries, heads, others}, at, column) {
    const head = heads?.[at] ?? -1, other = others?.[at] ?? -1, query = queries?.[column] ?? -1;
    if (other >= 0 && HEADS[head] && HEADS[other])
        return {name: `compare ${headName(head)}`, patch: {head, tab: "compare"}, other};
    if (HEADS[head]) return {name: `open ${headName(head)}`, patch: {head, tab: "matrix"}};
    return query >= 0 ? {name: `select query ${query}`, patch: {query}} : null;
}

function tableCell(table, r, column) {
    const at = r * table.columns.length + column, {cells, values, value: name} = table,
          value = values?.[at] ?? NaN, number = weightText(value), known = Number.isFinite(value),
          word = shown(
              cells     ? cells[at] :
                  known ? number :
                          "–");
    const said = [
        `${table.rows[r]}, ${table.columns[column]}`, cells && known && `${name} ${number}`
    ].filter(Boolean).join("\n");
    const leads = cellPatch(table, at, column), to = leads && (() => {
                                                         if (leads.other !== undefined)
                                                             compare.b = "twin";
                                                         change({hover: null, ...leads.patch});
                                                     });
    const made = leads ?
        button(word, to, {title: `${said}\n${leads.name}`, "data-place": `${table.name} ${at}`}) :
        el("span", {title: said}, word);
    if (known) {
        const rgb = tableRgb(table, value);
        Object.assign(made.style, {
            display: "block",
            width: "100%",
            padding: "1px 4px",
            borderRadius: "6px",
            background: text(rgb),
            color: inkOn(rgb)
        });
    }
    return made;
}
const tableTsv = ({name, caption, corner, rows, columns, cells, values}) => {
    const line = r => rows.length && columns.map((_, c) => {
        const at = r * columns.length + c;
        return [...(cells ? [cells[at]] : []), ...(values ? [values[at] ?? ""] : [])].join(" ");
    });
    return [
        `# ${name}. ${caption}`, [corner, ...columns], ...rows.map((row, r) => [row, ...line(r)])
    ]
               .map(
                   all => [].concat(all)
                              .map(text => String(text ?? "").replace(/[\t\n\r]/g, " "))
                              .join("\t"))
               .join("\n") +
        "\n";
};

function showTable(of, number) {
    const {name, caption: words, corner, rows, columns} = of, [from, end] = shownColumns(of),
                                               listed = listOf(end - from, c => from + c),
                                               part = `Columns ${from} to ${end - 1} of ${
                                                   columns.length}, around the selected query. `;
    const made = table(
        name, [corner, ...listed.map(c => shown(columns[c]))],
        rows.map((row, r) => [shown(row), ...listed.map(c => tableCell(of, r, c))]));
    for (const row of made.querySelectorAll("tbody th"))  // in sight, however wide the table is
        Object.assign(row.style, {position: "sticky", left: 0, background: "var(--page)"});
    made.style.marginBottom = "4px";
    return el(
        "section", {}, el("h2", {}, name), made,
        note(
            listed.length < columns.length ? part : "", words, " ",
            button(
                "TSV", () => saveText(`${number}.tsv`, tableTsv(of)),
                {title: "save the whole table"})));
}

tabs.tables = {
    name: "Tables",
    show(panel) {
        tablesView.box = el("div");
        tablesView.key = "";
        panel.append(tablesView.box);
    },
    draw() {
        const key = [state.query, dark, version].join();
        if (key === tablesView.key) return;
        tablesView.key = key;
        refill(
            tablesView.box, unasked("Tables are without What if."),
            ...manifest.tables.map(showTable));
        for (const section of tablesView.box.querySelectorAll("section"))
            section.style.marginBottom = "24px";
    },
    figure: () => null
};
tabOrder.push("tables");  // the others come before it: main.js
