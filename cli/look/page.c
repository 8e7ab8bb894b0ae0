/* A page: its memory, its heads in order, and how it is written. See page.h. */
#include "look/page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look/sinks.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

static void *keep(struct page *page, void *memory, int64_t n_texts) {
    if (page->n_kept == page->room) {
        const int64_t room = 2 * page->room + 16;
        struct kept *const more = realloc(page->kept, (size_t)room * sizeof *more);
        if (!more) {
            free(memory);
            return NULL;
        }
        page->kept = more;
        page->room = room;
    }
    page->kept[page->n_kept++] = (struct kept){ memory, n_texts };
    return memory;
}

void *page_room(struct page *page, int64_t n, size_t bytes) {
    return keep(page, calloc((size_t)n + 1, bytes), 0);
}

char **page_texts(struct page *page, int64_t n) {
    return keep(page, calloc((size_t)n + 1, sizeof(char *)), n);
}

static void free_all(struct page *page) {
    for (int64_t i = 0; i < page->n_kept; i++) {
        char **const texts = page->kept[i].memory;
        for (int64_t t = 0; texts && t < page->kept[i].n; t++) free(texts[t]);
        free(texts);
    }
    free(page->kept);
    free(page->heads);
}

/* ---- Texts and heads ------------------------------------------------------------------------- */

void page_begin(struct page *page, const struct seen *seen) {
    *page = (struct page){ .options = seen->options };
    page->page = (qkv_page){ .struct_size = sizeof(qkv_page),
                             .n = seen->keys.n,
                             .head_dim = seen->info->head_dim,
                             .query = seen->choice.query,
                             .head_bytes = sizeof(qkv_page_head),
                             .run_bytes = sizeof(qkv_page_run),
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
    const double first = qkv_heads_value(x->numbers, "confidence"),
                 second = qkv_heads_value(y->numbers, "confidence");
    if (first != second) return first < second ? 1 : -1;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return x->head < y->head ? -1 : x->head > y->head;
}

qkv_status page_head(const struct seen *seen, int64_t index, float scale, qkv_page_head *head,
                     qkv_error *error) {
    const struct head_name *const name = &seen->names[index];
    qkv_head_view view = qkv_head_view_init();
    const qkv_status status = qkv_heads_view(seen->heads, index, &view, error);
    if (status != QKV_OK) return status;
    *head = (qkv_page_head){ .layer = name->layer < 0 ? 0 : name->layer,
                             .head = name->head,
                             .q = view.q,
                             .k = view.k,
                             .lse = view.lse,
                             .scale = view.desc->scale != scale ? view.desc->scale : 0,
                             .numbers = seen_numbers(seen, index),
                             .label = seen->labels[index],
                             .has_window = seen->own_windows && view.desc->flags & QKV_SET_WINDOW,
                             .window_left = view.desc->window_left,
                             .window_right = view.desc->window_right };
    return QKV_OK;
}

qkv_page_head *page_heads_room(struct page *page, int64_t n, qkv_error *error) {
    const int64_t before = page->page.n_heads;
    qkv_page_head *const heads =
        realloc(page->heads, (size_t)(before + n + 1) * sizeof *page->heads);
    if (!heads) {
        text_no_memory(error);
        return NULL;
    }
    page->heads = heads;
    page->page.n_heads += n;
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
    const int64_t n = seen->listed ? seen->n_paged : seen->n_heads;
    qkv_head_view view = qkv_head_view_init();
    qkv_status status = qkv_heads_view(seen->heads, 0, &view, error);
    if (status != QKV_OK) return status;
    page->page.scale = view.desc->scale;
    qkv_page_head *const heads = page_heads_room(page, n, error);
    if (!heads) return QKV_ERR_MEMORY;
    for (int64_t i = 0; status == QKV_OK && i < n; i++) {
        status =
            page_head(seen, seen->listed ? seen->listed[i] : i, page->page.scale, &heads[i], error);
        heads[i].run = run;
    }
    if (status == QKV_OK && !seen->listed) sort_heads(seen, first, heads);
    page->page.n_heads -= n - seen->n_paged;
    return status;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* One line about what a page holds, of n heads that were asked for. */
static void tell(const qkv_page_result *result, int64_t n) {
    fprintf(stderr, "qkv: %" PRId64 " of %" PRId64 " heads, %.2f MB", result->n_heads, n,
            (double)result->n_bytes / 1e6);
    if (result->n_f16)
        fprintf(stderr, ", %" PRId64 " of them as f16: weights off by at most %.1e", result->n_f16,
                result->max_error);
    if (result->n_heads < n)
        fprintf(stderr, "; more than %d MB is not written: name one with --head",
                PAGE_BYTES / 1000000);
    fputc('\n', stderr);
}

static qkv_status put(struct page *page, const char *path, qkv_error *error) {
    const struct look_options *const options = page->options;
    qkv_page_result result = qkv_page_result_init();
    page->page.heads = page->heads;
    const qkv_status status = options->page
                                  ? qkv_page_make(&page->page, options->page, &result, error)
                                  : qkv_page_write(&page->page, path, &result, error);
    if (status != QKV_OK || options->common.quiet) return status;
    tell(&result, page->page.n_heads);
    if (*page->note) fprintf(stderr, "%s\n", page->note);
    return status;
}

qkv_status page_end(struct page *page, const char *path, qkv_status status, qkv_error *error) {
    if (status == QKV_OK && look_writes()) {
        status = page_tables(page, error);
        if (status == QKV_OK && page->page.n_runs == 0) status = page_maps(page, error);
        if (status == QKV_OK) status = put(page, path, error);
    }
    free_all(page);
    return status;
}

qkv_status seen_page(const struct seen *seen, const char *path, qkv_error *error) {
    struct page page;
    page_begin(&page, seen);
    return page_end(&page, path, seen->make_page(seen, &page, error), error);
}
