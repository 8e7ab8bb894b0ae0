/**
 * The numbers of a chart as CSV (RFC 4180, lines end in LF): a line for each x, a column for each series. A
 * number has 9 digits; what is no number is an empty field.
 */
#include <math.h>

#include "model/store/encode.h"
#include "model/store/file.h"
#include "view/chart.h"

/* Quoted where it must be, and where a blank at an end might be dropped by a reader. */
static void add_text(qkvi_bytes *table, const char *text) {
    if (!text) return;
    const size_t n = strlen(text);
    const int blank = n > 0 && (strchr(" \t", text[0]) || strchr(" \t", text[n - 1]));
    const int plain = strpbrk(text, ",\"\r\n") == NULL && !blank;
    if (!plain) qkvi_bytes_text(table, "\"");
    for (const char *at = text; *at; at++) {
        if (*at == '"') qkvi_bytes_text(table, "\"");
        qkvi_bytes_add(table, at, 1);
    }
    if (!plain) qkvi_bytes_text(table, "\"");
}

static void add_number(qkvi_bytes *table, double x) {
    if (isfinite(x)) qkvi_json_real(table, x);
}

/* A series that has no name is called by its panel. */
static void add_heading(const qkv_chart *chart, qkvi_bytes *table) {
    add_text(table, chart->x_label && *chart->x_label ? chart->x_label : "x");
    if (chart->labels) qkvi_bytes_text(table, ",label");
    for (int64_t p = 0; p < chart->n_panels; p++) {
        const qkv_panel *const panel = &chart->panels[p];
        for (int64_t s = 0; s < panel->n_series; s++) {
            const char *const name = panel->series[s].name;
            qkvi_bytes_text(table, ",");
            add_text(table, name && *name ? name : panel->y_label ? panel->y_label : "y");
        }
    }
    qkvi_bytes_text(table, "\n");
}

qkv_status qkvi_chart_table(const qkv_chart *chart, const char *path, qkv_error *error) {
    qkvi_bytes table = { 0 };
    add_heading(chart, &table);
    for (int64_t i = 0; i < chart->n; i++) {
        if (chart->x)
            add_number(&table, chart->x[i]);
        else
            qkvi_json_int(&table, i);
        if (chart->labels) qkvi_bytes_text(&table, ",");
        if (chart->labels) add_text(&table, chart->labels[i]);
        for (int64_t p = 0; p < chart->n_panels; p++) {
            for (int64_t s = 0; s < chart->panels[p].n_series; s++) {
                qkvi_bytes_text(&table, ",");
                add_number(&table, chart->panels[p].series[s].y[i]);
            }
        }
        qkvi_bytes_text(&table, "\n");
    }
    const qkv_status status =
        table.failed ? qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a table of %lld lines",
                                      (long long)chart->n)
                     : qkvi_file_save(path, table.data, table.n, error);
    qkvi_bytes_free(&table);
    return status;
}
