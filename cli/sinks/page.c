/* The memory, heads and tables of a page: see page.h. */
#include "sinks/page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory ---------------------------------------------------------------------------------- */

static void *keep(struct page *page, void *memory, int64_t n_texts) {
    if (page->n_memory == page->room) {
        const int64_t room = 2 * page->room + 16;
        struct page_memory *const more = realloc(page->memory, (size_t)room * sizeof *more);
        if (!more) {
            free(memory);
            return NULL;
        }
        page->memory = more;
        page->room = room;
    }
    page->memory[page->n_memory++] = (struct page_memory){ memory, n_texts };
    return memory;
}

void *page_room(struct page *page, int64_t n, size_t bytes) {
    return keep(page, calloc((size_t)n + 1, bytes), 0);
}

char **page_texts(struct page *page, int64_t n) {
    return keep(page, calloc((size_t)n + 1, sizeof(char *)), n);
}

void page_free(struct page *page) {
    for (int64_t i = 0; i < page->n_memory; i++) {
        char **const texts = page->memory[i].bytes;
        for (int64_t t = 0; texts && t < page->memory[i].n; t++) free(texts[t]);
        free(texts);
    }
    free(page->memory);
    free(page->heads);
}

/* ---- Texts and heads ------------------------------------------------------------------------- */

void page_begin(struct page *page, const struct seen *seen) {
    *page = (struct page){ .common = seen->common, .sink = seen->sink };
    page->desc = (qkv_page){ .struct_size = sizeof(qkv_page),
                             .n = seen->keys.n,
                             .head_dim = seen->info->head_dim,
                             .query = seen->choice.query,
                             .head_bytes = sizeof(qkv_page_head),
                             .text_bytes = sizeof(qkv_page_text),
                             .title = page->title.text,
                             .caption = page->caption.text,
                             .limit_bytes = PAGE_BYTES,
                             .ctx = seen->ctx };
}

qkv_status page_tokens(struct page *page, const qkv_token_list *list, struct page_tokens *tokens,
                       qkv_error *error) {
    const int64_t n = list->tokens->n;
    tokens->texts = page_texts(page, n);
    tokens->words = page_room(page, n, sizeof *tokens->words);
    bool made = tokens->texts && tokens->words;
    for (int64_t i = 0; made && i < n; i++) {
        tokens->texts[i] = token_shown(list->tokenizer, list->tokens->ids[i]);
        made = tokens->texts[i] != NULL;
    }
    if (made) qkv_inspect_words(list->tokenizer, list->tokens, tokens->words);
    return made ? QKV_OK : text_no_memory(error);
}

/* In the order in which heads are kept: by confidence. */
static int by_confidence(const void *a, const void *b) {
    const qkv_page_head *x = a, *y = b;
    const double first = qkv_head_number_value(x->numbers, "confidence"),
                 second = qkv_head_number_value(y->numbers, "confidence");
    if (first != second) return first < second ? 1 : -1;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return x->head < y->head ? -1 : x->head > y->head;
}

/* Whether queries see different keys, besides the rules. */
static bool has_mask(const qkv_attention_desc *desc) {
    return desc->flags & QKV_SET_MASK && desc->mask_type == QKV_MASK_BOOL &&
           desc->mask_stride[2] != 0;
}

/* The mask of such a head, as bits; NULL: it has none, or no memory. */
static const uint8_t *bits_of(struct page *page, const qkv_attention_desc *desc) {
    const int64_t stride = (desc->len_k + 7) / 8;
    const uint8_t *const sees = desc->mask;
    if (!has_mask(desc)) return NULL;
    uint8_t *const bits = page_room(page, desc->len_q * stride, 1);
    for (int64_t i = 0; bits && i < desc->len_q; i++)
        for (int64_t j = 0; j < desc->len_k; j++)
            if (sees[i * desc->mask_stride[2] + j])
                bits[i * stride + j / 8] |= (uint8_t)(1 << j % 8);
    return bits;
}

void page_rules(struct page *page, const struct seen *seen, const struct what_if *what_if) {
    static const qkv_attention_desc causal = { .struct_size = sizeof causal,
                                               .flags = QKV_SET_CAUSAL };
    snprintf(page->modified, sizeof page->modified, WHAT_IF_BADGE " (%s)", what_if->words);
    if (what_if->any) page->desc.modified = page->modified;
    page->desc.dropped = what_if->dropped;
    if (seen->info->causal) page->desc.rules = &causal;
}

qkv_status page_head(struct page *page, const struct seen *seen, int64_t index, qkv_page_head *head,
                     qkv_error *error) {
    const float scale = page->desc.scale;
    const struct head_name *const name = &seen->names[index];
    qkv_head_view view = qkv_head_view_init();
    const qkv_status status = qkv_heads_view(seen->heads, index, &view, error);
    if (status != QKV_OK) return status;
    *head =
        (qkv_page_head){ .layer = name->layer < 0 ? 0 : name->layer,
                         .head = name->head,
                         .q = view.q,
                         .k = view.k,
                         .lse = view.lse,
                         .scale = view.desc->scale != scale ? view.desc->scale : 0,
                         .numbers = seen_numbers(seen, index),
                         .label = seen->labels[index],
                         .alibi = view.desc->alibi_slopes ? (double)*view.desc->alibi_slopes : 0,
                         .sink = view.desc->sinks,
                         .mask = bits_of(page, view.desc),
                         .distance_bias = view.desc->distance_bias,
                         .distance_before = view.desc->distance_before,
                         .distance_after = view.desc->distance_after,
                         .has_window = seen->own_windows && view.desc->flags & QKV_SET_WINDOW,
                         .window_left = view.desc->window_left,
                         .window_right = view.desc->window_right };
    if (has_mask(view.desc) && !head->mask) return text_no_memory(error);
    return QKV_OK;
}

qkv_page_head *page_heads_room(struct page *page, int64_t n, qkv_error *error) {
    const int64_t before = page->desc.n_heads;
    qkv_page_head *const heads =
        realloc(page->heads, (size_t)(before + n + 1) * sizeof *page->heads);
    if (!heads) {
        text_no_memory(error);
        return NULL;
    }
    page->heads = heads;
    page->desc.n_heads += n;
    return heads + before;
}

/* `first` before all others. */
static void sort_heads(const struct seen *seen, int64_t first, qkv_page_head *heads) {
    int64_t at = 0;
    qsort(heads, (size_t)seen->n_heads, sizeof *heads, by_confidence);
    while (heads[at].numbers != seen_numbers(seen, first)) at++;
    const qkv_page_head shown = heads[at];
    memmove(heads + 1, heads, (size_t)at * sizeof *heads);
    heads[0] = shown;
}

qkv_status page_heads(struct page *page, const struct seen *seen, int64_t first, int64_t run,
                      qkv_error *error) {
    const int64_t n = seen->order ? seen->n_order : seen->n_heads;
    qkv_head_view view = qkv_head_view_init();
    qkv_status status = qkv_heads_view(seen->heads, 0, &view, error);
    if (status != QKV_OK) return status;
    page->desc.scale = view.desc->scale;
    qkv_page_head *const heads = page_heads_room(page, n, error);
    if (!heads) return QKV_ERR_MEMORY;
    for (int64_t i = 0; status == QKV_OK && i < n; i++) {
        status = page_head(page, seen, seen->order ? seen->order[i] : i, &heads[i], error);
        heads[i].text = run;
    }
    if (status == QKV_OK && !seen->order) sort_heads(seen, first, heads);
    page->desc.n_heads -= n - seen->n_order; /* of all heads, sorted, only the first */
    return status;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static int64_t *places(struct page *page, int64_t n) {
    int64_t *const made = page_room(page, n, sizeof *made);
    for (int64_t i = 0; made && i < n; i++) made[i] = -1;
    return made;
}

struct page_table *page_table(struct page *page, int64_t n_rows, int64_t n_cols, int lists,
                              const char *const *cols, qkv_error *error) {
    const int64_t n = n_rows * n_cols;
    const bool has_room = page->n_tables < (int)CLI_COUNT(page->tables);
    struct page_table *const table = has_room ? page_room(page, 1, sizeof *table) : NULL;
    bool made = table;
    if (made) {
        page->tables[page->n_tables++] = table;
        table->put = (qkv_page_table){ .n_rows = n_rows, .n_cols = n_cols, .corner = "" };
        made = (table->rows = page_texts(page, n_rows)) && (table->cols = page_texts(page, n_cols));
    }
    if (made && lists & TABLE_CELLS) made = (table->cells = page_texts(page, n));
    if (made && lists & TABLE_VALUES)
        made = (table->values = page_room(page, n, sizeof *table->values));
    if (made && lists & TABLE_QUERIES) made = (table->queries = places(page, n_cols));
    if (made && lists & TABLE_HEADS)
        made = (table->heads = places(page, n)) && (table->others = places(page, n));
    if (!made) {
        text_no_memory(error);
        return NULL;
    }
    for (int64_t i = 0; table->values && i < n; i++) table->values[i] = NAN;
    for (int64_t c = 0; cols && c < n_cols; c++) table->cols[c] = page_cell("%s", cols[c]);
    return table;
}

char *page_cell(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int n = vasprintf(&text, format, arguments);
    va_end(arguments);
    return n < 0 ? NULL : text;
}

/* The largest magnitude of the values, or 1: a scale ends somewhere. */
static double high_of(const qkv_page_table *put, const double *values) {
    double high = put->high;
    for (int64_t i = 0; values && !(put->high > 0) && i < put->n_rows * put->n_cols; i++)
        if (fabs(values[i]) > high) high = fabs(values[i]);
    return high > 0 ? high : 1;
}

qkv_status page_tables(struct page *page, qkv_error *error) {
    qkv_page_table *const made = page_room(page, page->n_tables, sizeof *made);
    if (!made) return text_no_memory(error);
    for (int t = 0; t < page->n_tables; t++) {
        const struct page_table *const table = page->tables[t];
        made[t] = table->put;
        made[t].name = table->name;
        made[t].caption = table->caption.text;
        made[t].row_names = (const char *const *)table->rows;
        made[t].col_names = (const char *const *)table->cols;
        made[t].cells = (const char *const *)table->cells;
        made[t].values = table->values;
        made[t].high = high_of(&table->put, table->values);
        made[t].queries = table->queries;
        made[t].heads = table->heads;
        made[t].others = table->others;
    }
    page->desc.n_tables = page->n_tables;
    page->desc.tables = made;
    page->desc.table_bytes = sizeof *made;
    return QKV_OK;
}
