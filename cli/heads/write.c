/* The table of heads as JSON, CSV, TSV: numbers of 9 digits, missing ones null or empty. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/csv.h"
#include "common/head_numbers.h"
#include "heads/heads.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *row_json(const struct heads *heads, const struct head_row *row) {
    const qkv_head_number *column;
    json_t *object = head_json(row->layer, row->head, row->label, row->numbers),
           *spread = json_object();
    for (int c = 0; (column = head_column_at(c)); c++) {
        if (heads_write(heads, column) && column->needs & (NEEDS_LIKE | QKV_NEEDS_PROBES))
            json_object_set_new(object, column->name, json_number(head_number(row, c)));
        if (heads_spread(heads, column))
            json_object_set_new(spread, column->name, json_number(row->spread[c]));
    }
    if (!heads->text.input)
        return json_set(object, "label_share:n spread:o", row->label_share, spread);
    json_decref(spread);
    return object;
}

static json_t *rules_json(const struct heads *heads) {
    json_t *rules = json_array();
    const qkv_head_rule *rule;
    for (int i = 0; !heads->options->image && (rule = qkv_head_rule_at(i)); i++)
        if ((!(head_column_of(rule)->needs & QKV_NEEDS_PROBES) || heads->probes) &&
            heads_label_exists(heads, rule))
            json_array_append_new(rules, json_set(NULL,
                                                  rule->or_equal ? "label:s number:s at_least:n"
                                                                 : "label:s number:s above:n",
                                                  rule->label, rule->number, rule->threshold));
    return rules;
}

static json_t *probes_json(const struct heads *heads) {
    const qkv_probe_report *probes = heads->probes;
    json_t *object = json_set(NULL, "n_texts:i period:i n_probes:i seed:i", probes->n_texts,
                              probes->period, probes->n_probes, heads_seed(heads->options));
    if (probes->n_probes) json_set(object, "chance:n", probes->chance);
    if (*heads->probe_note) json_set(object, "note:s", heads->probe_note);
    return object;
}

qkv_status heads_object(const struct heads *heads, json_t **json, qkv_error *error) {
    const struct attended *text = &heads->text;
    json_t *object = json_set(NULL, "attention:s", attention_key(text->session, heads->which)),
           *rows = json_array();
    if (text->input) {
        if (heads->options->image) json_set(object, "image:t", heads->options->image);
        json_set(object, "tokens:o", tokens_json(text->session->tokenizer, text->input));
        if (text->pair.next) pair_json(text->session, &text->pair, object);
    } else {
        json_set(object, "n_texts:i n_tokens:i", heads->n_texts, heads->n_tokens);
        if (heads->n_targets) json_set(object, "n_decoder_tokens:i", heads->n_targets);
    }
    for (int64_t i = 0; i < heads->n_rows; i++)
        json_array_append_new(rows, row_json(heads, &heads->rows[i]));
    json_set(object, "n_queries:i heads:o rules:o", heads->n_queries, rows, rules_json(heads));
    if (heads->probes) json_set(object, "probes:o", probes_json(heads));
    what_if_json(heads->what_if, object);
    *json = json_set(object, "like:s", heads->options->like);
    return object ? QKV_OK : text_no_memory(error);
}

/* ---- CSV, TSV -------------------------------------------------------------------------------- */

static void put_number(struct csv *csv, char separator, double value) {
    csv_put(csv, "%c", separator);
    if (isfinite(value)) csv_put(csv, "%.9g", value);
}

static void put_names(struct csv *csv, const struct heads *heads, char separator) {
    const qkv_head_number *column;
    csv_put(csv, "layer%chead%clabel", separator, separator);
    if (!heads->text.input) csv_put(csv, "%clabel_share", separator);
    for (int c = 0; (column = head_column_at(c)); c++) {
        if (heads_write(heads, column)) csv_put(csv, "%c%s", separator, column->name);
        if (heads_spread(heads, column)) csv_put(csv, "%c%s_sd", separator, column->name);
    }
    csv_put(csv, "\n");
}

static void put_row(struct csv *csv, const struct heads *heads, const struct head_row *row,
                    char separator) {
    const qkv_head_number *column;
    csv_put(csv, "%" PRId64 "%c%" PRId64 "%c%s", row->layer, separator, row->head, separator,
            row->label);
    if (!heads->text.input) put_number(csv, separator, row->label_share);
    for (int c = 0; (column = head_column_at(c)); c++) {
        if (heads_write(heads, column)) put_number(csv, separator, head_number(row, c));
        if (heads_spread(heads, column)) put_number(csv, separator, row->spread[c]);
    }
    csv_put(csv, "\n");
}

qkv_status heads_table(const struct heads *heads, const char *path, char separator,
                       qkv_error *error) {
    struct csv csv;
    csv_open(&csv);
    put_names(&csv, heads, separator);
    for (int64_t i = 0; i < heads->n_rows; i++) put_row(&csv, heads, &heads->rows[i], separator);
    return csv_write(&csv, path, error);
}
