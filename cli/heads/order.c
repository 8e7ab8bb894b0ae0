/*
 * Which heads are shown, and in which order: --label, --like, --sort, --reverse, --top.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/heads.h"

static const char no_label[] = "none";

/* ---- Names ----------------------------------------------------------------------------------- */

bool heads_label_exists(const struct heads *heads, const qkv_head_rule *rule) {
    const qkv_head_number *column = head_column_of(rule);
    return !column || heads_have(heads->which, column);
}

/* What compares a query with the keys of its own text, cross-attention has not. */
static int check_texts(const struct cli_command *command, const struct heads_options *options,
                       const char *option, const char *name, const qkv_head_number *column) {
    if (!column || heads_have(pair_which(&options->which), column)) return EXIT_OK;
    return cli_usage(
        command, "%s: %s compares queries with keys of the same text, and --cross has two texts",
        option, name);
}

/* "; did you mean 'H'?", or ": there are entropy (H), ..." */
static void add_known(char *text, size_t bytes, const char *word, bool places) {
    const char *names[2 * MAX_COLUMNS + 1] = { NULL };
    const qkv_head_number *column;
    for (int i = 0, n = 0; (column = head_column_at(i)); i++) {
        if (!column->title) continue;
        names[n++] = column->name;
        names[n++] = column->title;
    }
    const char *const nearest = args_nearest(word, names);
    if (nearest) {
        text_append(text, bytes, "; did you mean '%s'?", nearest);
        return;
    }
    text_append(text, bytes, ": there are %s", places ? "head, label, " : "");
    for (int n = 0; names[n]; n += 2)
        text_append(text, bytes, "%s%s (%s)", n ? ", " : "", names[n], names[n + 1]);
}

/* places: heads and labels are columns, too. */
static int check_column(const struct cli_command *command, const struct heads_options *options,
                        const char *option, const char *name, size_t n_bytes, bool places) {
    char word[64], known[900] = "";
    const int at = head_column_find(name, n_bytes);
    const qkv_head_number *column = at < 0 ? NULL : head_column_at(at);
    if (column && column->needs & QKV_NEEDS_PROBES && !options->probes && !options->grammar)
        return cli_usage(command, "%s: %s is known with --probes only", option, column->name);
    if (column && column->needs & NEEDS_LIKE && !options->like)
        return cli_usage(command, "%s: %s is known with --like only", option, column->name);
    if (column) return check_texts(command, options, option, column->name, column);
    snprintf(word, sizeof word, "%.*s", (int)n_bytes, name);
    add_known(known, sizeof known, word, places);
    return cli_usage(command, "%s: there is no column '%s'%s", option, word, known);
}

static int check_label(const struct cli_command *command, const struct heads_options *options) {
    const char *const label = options->label;
    char list[256] = "";
    const qkv_head_rule *rule;
    if (strcmp(label, no_label) == 0) return EXIT_OK;
    for (int i = 0; (rule = qkv_head_rule_at(i)); i++) {
        const qkv_head_number *column = head_column_of(rule);
        if (strcmp(rule->label, label) == 0)
            return check_texts(command, options, "--label", label, column);
        text_append(list, sizeof list, "%s, ", rule->label);
    }
    return cli_usage(command, "--label: '%s' is none of %s%s", label, list, no_label);
}

static bool is_sortable(const char *name) {
    return strcmp(name, "head") == 0 || strcmp(name, "label") == 0;
}

int heads_check_options(const struct cli_command *command, const struct heads_options *options) {
    int code = EXIT_OK;
    if (options->sort && !is_sortable(options->sort))
        code = check_column(command, options, "--sort", options->sort, strlen(options->sort), true);
    for (const char *at = options->columns; code == EXIT_OK && at && *at;) {
        const size_t n = strcspn(at, ",");
        code = check_column(command, options, "--columns", at, n, false);
        at += n + (at[n] == ',');
    }
    if (code == EXIT_OK && options->label) code = check_label(command, options);
    if (code == EXIT_OK && options->like && options->sort)
        code = cli_usage(command, "--like sorts by distance: --sort %s does not go with it",
                         options->sort);
    if (code == EXIT_OK && options->reverse && !options->sort && !options->like)
        code = cli_usage(command, "--reverse without --sort or --like");
    return code;
}

int heads_like(const struct session *session, const struct heads_options *options, int64_t *index) {
    const qkv_attention_kind which = pair_which(&options->which);
    const char *const like = options->like;
    int64_t n_layers, n_heads, layer, head;
    *index = -1;
    if (!like) return EXIT_OK;
    if (!session_place(like, &layer, &head))
        return cli_usage(session->command, "--like: '%s' is not L.H", like);
    session_sizes(session, which, &n_layers, &n_heads);
    *index = layer * n_heads + head;
    return session_check_head(session, which, "--like", like, layer, head, "model");
}

/* ---- Distances ------------------------------------------------------------------------------- */

static qkv_status measure_distances(struct heads *heads, int64_t like, qkv_error *error) {
    double *distances = calloc((size_t)heads->n_all + 1, sizeof *distances);
    if (!distances) return text_no_memory(error);
    qkv_heads_unlike(heads->n_all, qkv_heads_numbers(heads->text.heads, 0), like, distances);
    for (int64_t i = 0; i < heads->n_all; i++) heads->rows[i].distance = distances[i];
    free(distances);
    return QKV_OK;
}

/* ---- Order ----------------------------------------------------------------------------------- */

static int by_place(const struct head_row *a, const struct head_row *b) {
    if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
    return a->head < b->head ? -1 : a->head > b->head;
}

/* Last in every order: heads without a label, or without the number. */
static bool is_missing(const struct head_row *row) {
    return row->word ? !*row->word : isnan(row->key);
}

static int compare_rows(const void *x, const void *y) {
    const struct head_row *a = x, *b = y;
    if (is_missing(a) != is_missing(b)) return is_missing(a) ? 1 : -1;
    int order = 0;
    if (a->word)
        order = strcmp(a->word, b->word);
    else if (!is_missing(a))
        order = (a->key > b->key) - (a->key < b->key);
    if (order == 0) return by_place(a, b);
    return a->falls ? -order : order;
}

/* Numbers fall where nothing else is asked; places, distances, heads and labels rise. */
static void sort_rows(struct heads *heads, const char *sort) {
    const int at = head_column_find(sort, strlen(sort));
    const qkv_head_number *column = at < 0 ? NULL : head_column_at(at);
    const bool falls = column && column->kind != QKV_NUMBER_PLACE && !(column->needs & NEEDS_LIKE);
    for (int64_t i = 0; i < heads->n_all; i++) {
        struct head_row *row = &heads->rows[i];
        row->word = strcmp(sort, "label") == 0 ? row->label : NULL;
        row->key = column ? head_number(row, at) : (double)i;
        row->falls = falls != heads->options->reverse;
    }
    qsort(heads->rows, (size_t)heads->n_all, sizeof *heads->rows, compare_rows);
}

static bool is_kept(const struct heads *heads, const struct head_row *row) {
    const char *const label = heads->options->label;
    if (!label) return true;
    return strcmp(row->label, strcmp(label, no_label) == 0 ? "" : label) == 0;
}

qkv_status heads_arrange(struct heads *heads, int64_t like, qkv_error *error) {
    const struct heads_options *options = heads->options;
    const qkv_status status = like >= 0 ? measure_distances(heads, like, error) : QKV_OK;
    if (status != QKV_OK) return status;
    const char *const sort = like >= 0 ? "distance" : options->sort;
    if (sort) sort_rows(heads, sort);
    heads->n_rows = 0;
    for (int64_t i = 0; i < heads->n_all; i++)
        if (is_kept(heads, &heads->rows[i])) heads->rows[heads->n_rows++] = heads->rows[i];
    if (options->top.set && heads->n_rows > options->top.value) heads->n_rows = options->top.value;
    return QKV_OK;
}
