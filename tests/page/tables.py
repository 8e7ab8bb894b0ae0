"""Parts of browser.py: tables of a page, which are the logit lens, groups of heads and two models."""
import json
import shutil
import struct
import subprocess

TEXT = "I was watching the [MASK] when it opened."


def tuned(t):
    """The embedded model with other queries and keys in two layers."""
    folder = t.FOLDER / "tuned"
    source = t.pathlib.Path(__file__).resolve().parent.parent.parent / "models" / "default"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    for name, tensor in json.loads(data[8:8 + length]).items():
        if ".self.query.weight" not in name or (".layer.1." not in name and ".layer.3." not in name):
            continue
        begin, end = (8 + length + at for at in tensor["data_offsets"])
        numbers = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
        data[begin:end] = struct.pack(f"<{len(numbers)}f", *(1.5 * x for x in numbers))
    path.write_bytes(data)
    return folder


def cells(tab, at):
    """The texts of a table, row by row, with names of rows."""
    return tab.run(f"""[...document.querySelectorAll("#panel section")[{at}].querySelectorAll("tbody tr")]
        .map(row => [...row.children].map(cell => cell.textContent))""")


def opened(t, tab):
    tab.tab("tables")
    t.check("tables: key 9", tab.run("tabOrder[8]") == "tables")


def lens(t, browser):
    """What `look --lens` and `heads --effect --group` print is in the tables."""
    file = t.look(t.FOLDER / "lens.html", TEXT, "--lens", "--effect", "--group", "1.*", "--group", "layers")
    said = json.loads(subprocess.run([t.QKV, "look", TEXT, "--lens", "--json"], check=True, capture_output=True, text=True).stdout)
    layers = said["lens"][0]["layers"]
    asked = [t.QKV, "heads", TEXT, "--effect", "--group", "1.*", "--json"]
    group = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)["groups"][0]
    with t.Tab(browser, file) as tab:
        opened(t, tab)
        place = said["lens"][0]["position"]
        t.check("lens: a row for each layer, a column for each token",
                [len(row) for row in cells(tab, 0)] == [1 + tab.run("M")] * len(layers))
        t.check("lens: the words of the terminal", [row[1 + place] for row in cells(tab, 0)] == [x["best"] for x in layers])
        wanted = [[str(x["layer"]), x["best"], f"{x['best_probability']:.4f}", f"{x['probability']:.4f}", str(x["rank"]),
                   f"{x['entropy']:.4f}"] for x in layers]
        t.check("lens: the numbers of the terminal", cells(tab, 1) == wanted, cells(tab, 1))
        together = cells(tab, 2)[0]
        t.check("groups: the numbers of heads", together[:4] == ["1.*", "4", f"{group['sum_nats']:+.4f}", f"{group['nats']:+.4f}"],
                together)
        colours = tab.run("[...document.querySelectorAll('#panel section td > *')].filter(x => x.style.background).length")
        t.check("lens: cells have colours", colours == len(layers) * (tab.run("M") + 2) + 2 * len(cells(tab, 2)), colours)
        tab.page.click("#panel section >> nth=0 >> tbody tr >> nth=1 >> button >> nth=3")
        tab.wait()
        t.check("lens: a cell selects its token", tab.state("query") == 3 and tab.state("tab") == "tables")
        with tab.page.expect_download() as saved:
            tab.page.click("#panel section >> nth=1 >> p button")
        lines = open(saved.value.path(), encoding="utf-8").read().splitlines()
        t.check("tables: as TSV", lines[1].split("\t")[:2] == ["layer", "best"] and len(lines) == 2 + len(layers), lines[:3])
        tab.sound("lens")


def against(t, browser):
    """Two models: a cell opens both heads in Compare, whose rows are those of each model alone."""
    other = tuned(t)
    with t.Tab(browser, t.look(t.FOLDER / "against.html", TEXT, "--against", str(other))) as tab:
        said = json.loads(subprocess.run([t.QKV, "look", TEXT, "--against", other, "--json"], check=True, capture_output=True, text=True).stdout)
        opened(t, tab)
        first = said["heads"][0]
        grid = tab.run("manifest.tables[0].values")
        t.near("against: the numbers of the terminal", [grid[4 * h["layer"] + h["head"]] for h in said["heads"]],
               [h["js"] for h in said["heads"]], 1e-7)
        tab.page.click(f"#panel section >> nth=0 >> tbody tr >> nth={first['layer']} >> button >> nth={first['head']}")
        tab.wait()
        name = f"{first['layer']}.{first['head']}"
        t.check("against: both are compared", tab.state("tab") == "compare" and
                tab.run("[placeName(state.head), placeName(compare.head)].join()") == f"{name},{name}.1",
                tab.run("[placeName(state.head), compare.b].join()"))
        t.check("against: which model is which", "embedded" in tab.page.inner_text("#compare-a"))
        for at, model in (("state.head", []), ("compare.head", ["--model", str(other)])):
            weights = t.look(None, TEXT, "--head", name, *model)["weights"]
            got = tab.run(f"Array.from({{ length: M }}, (_, i) => Array.from(row({at}, i))).flat()")
            t.near(f"against: weights of {model or 'A'}", got, [p for line in weights for p in line], 2e-6)
        tab.until("compare.js && compare.js.length === M")
        t.near("against: the divergence", [tab.run("compare.js.reduce((a, b) => a + b, 0) / M")], [first["js"]], 1e-6)
        tab.tab("tables")
        tab.sound("against")


def many_columns(t, browser):
    """Of a wide table the columns around the selected query are shown."""
    words = "the man opened the door . she saw it when he came . " * 3
    with t.Tab(browser, t.look(t.FOLDER / "wide.html", words + "[MASK]", "--lens", "--head", "0.0")) as tab:
        opened(t, tab)
        tab.run("Object.assign(manifest.tables[0], {rows: Array(100).fill('x')}); changeAll({query: 30})")
        tab.wait()
        shown = len(cells(tab, 0)[0]) - 1
        t.check("wide: columns around the query", shown == 15, shown)
        t.check("wide: which", "Columns 23 to 37 of" in tab.page.inner_text("#panel"), tab.page.inner_text("#panel")[-300:])
        tab.clean("wide")


PARTS = (lens, against, many_columns)
