/* The table of heads as JSON, CSV and TSV: numbers with 9 significant digits, missing ones null or empty. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/csv.h"
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
    if (!heads->text.input) {
        json_object_set_new(object, "label_share", json_number(row->label_share));
        json_object_set(object, "spread", spread);
    }
    json_decref(spread);
    return object;
}

static json_t *rules_json(const struct heads *heads) {
    json_t *rules = json_array();
    const qkv_head_rule *rule;
    for (int i = 0; (rule = qkv_heads_rule(i)); i++)
        if ((!(head_column_of(rule)->needs & QKV_NEEDS_PROBES) || heads->probes) &&
            heads_label_exists(heads, rule))
            json_array_append_new(rules,
                                  json_pack("{s:s, s:s, s:o}", "label", rule->label, "number",
                                            rule->number, rule->or_equal ? "at_least" : "above",
                                            json_number(rule->threshold)));
    return rules;
}

static json_t *probes_json(const struct heads *heads) {
    json_t *probes = json_pack(
        "{s:I, s:I, s:I, s:I}", "n_texts", (json_int_t)heads->probes->n_texts, "period",
        (json_int_t)heads->probes->period, "n_probes", (json_int_t)heads->probes->n_probes, "seed",
        (json_int_t)heads_seed(heads->options));
    if (heads->probes->n_probes)
        json_object_set_new(probes, "chance", json_number(heads->probes->chance));
    if (*heads->probe_note) json_object_set_new(probes, "note", json_string(heads->probe_note));
    return probes;
}

qkv_status heads_object(const struct heads *heads, json_t **json, qkv_error *error) {
    json_t *object = json_object(), *rows = json_array();
    const char *attention = attention_key(heads->text.session, heads->which);
    if (attention) json_object_set_new(object, "attention", json_string(attention));
    if (heads->text.input) {
        json_object_set_new(object, "tokens",
                            text_tokens_json(heads->text.session, heads->text.input));
        if (heads->text.pair.next) pair_json(heads->text.session, &heads->text.pair, object);
    } else {
        json_object_set_new(object, "n_texts", json_integer(heads->n_texts));
        json_object_set_new(object, "n_tokens", json_integer(heads->n_tokens));
        if (heads->n_targets)
            json_object_set_new(object, "n_decoder_tokens", json_integer(heads->n_targets));
    }
    json_object_set_new(object, "n_queries", json_integer(heads->n_queries));
    for (int64_t i = 0; i < heads->n_rows; i++)
        json_array_append_new(rows, row_json(heads, &heads->rows[i]));
    json_object_set_new(object, "heads", rows);
    json_object_set_new(object, "rules", rules_json(heads));
    if (heads->probes) json_object_set_new(object, "probes", probes_json(heads));
    if (heads->what_if->any) {
        json_object_set_new(object, "modified", json_string(WHAT_IF_BADGE));
        json_object_set_new(object, "what_if", json_text(heads->what_if->words));
    }
    if (heads->options->like)
        json_object_set_new(object, "like", json_string(heads->options->like));
    *json = object;
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
