/*
 * The page of `qkv look --slide`: windows as texts to choose from. As many are kept as are sure to
 * fit; the others are named in a message, and in the page's caption.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/given.h"
#include "look/look.h"

/* Of a window: those of --heads, the one of --head, or all. */
static int64_t heads_of_window(const struct look *look) {
    const qkv_model_info *info = look->text.session->info;
    return look->list ? look->n_list : look->given ? 1 : info->n_layers * info->n_heads;
}

int64_t windows_page_room(const struct look *look, int64_t n) {
    const double width = n > 64 ? 2 : 4, /* f16 where the writer may choose it */
        bytes = (double)heads_of_window(look) *
                (((double)(2 * n * look->text.session->info->head_dim) * width + 4 * (double)n) *
                     4 / 3 +
                 1500);
    if (given_ending(look->options->out, ".html") < 0) return 0;
    const double room = LOOK_PAGE_BYTES / bytes;
    return room < 1 ? 1 : (int64_t)room;
}

/* What the page needs of a window beside its heads. */
struct page_window {
    struct look_tokens tokens;
    char name[120];
};

/* What the page needs of all shown. */
struct page_windows {
    int64_t n, n_heads; /* shown; heads of each */
    struct page_window *list;
    qkv_page_run *runs;
    qkv_page_head *heads; /* [n][n_heads] */
};

static void page_windows_free(struct page_windows *shown, int64_t n_tokens) {
    for (int64_t w = 0; shown->list && w < shown->n; w++)
        look_tokens_free(&shown->list[w].tokens, n_tokens);
    free(shown->list);
    free(shown->runs);
    free(shown->heads);
}

/* The heads of one window, as a look at it alone would have them. */
static qkv_status add_window(const struct look *look, int64_t w, struct page_windows *shown,
                             float *scale, qkv_error *error) {
    const struct text_window *window = &look->windows->list[w];
    struct look one = *look;
    one.text = window->of;
    one.windows = NULL;
    struct page_window *made = &shown->list[w];
    qkv_page_head *heads = shown->heads + w * shown->n_heads;
    qkv_status status = look_tokens_make(&made->tokens, &one.text.view.keys, error);
    if (status == QKV_OK) status = look_page_heads(&one, heads, scale, error);
    for (int64_t h = 0; status == QKV_OK && h < shown->n_heads; h++) heads[h].run = w;
    text_append(made->name, sizeof made->name, "%" PRId64 ": %.90s", window->first, window->begins);
    shown->runs[w] = (qkv_page_run){ made->name, (const char *const *)made->tokens.texts,
                                     window->encoding.special, NULL, made->tokens.words };
    return status;
}

static qkv_status page_windows_make(const struct look *look, struct page_windows *shown,
                                    float *scale, qkv_error *error) {
    const qkv_model_info *info = look->text.session->info;
    const struct windows *windows = look->windows;
    shown->n = windows->n_windows < windows->n_kept ? windows->n_windows : windows->n_kept;
    shown->n_heads = heads_of_window(look);
    shown->list = calloc((size_t)shown->n, sizeof *shown->list);
    shown->runs = calloc((size_t)shown->n, sizeof *shown->runs);
    /* and room for all heads of one window */
    shown->heads = calloc((size_t)(shown->n * shown->n_heads + info->n_layers * info->n_heads),
                          sizeof *shown->heads);
    if (!shown->list || !shown->runs || !shown->heads) return text_no_memory(error);
    qkv_status status = QKV_OK;
    for (int64_t w = 0; status == QKV_OK && w < shown->n; w++)
        status = add_window(look, w, shown, scale, error);
    return status;
}

static void make_caption(const struct look *look, int64_t n, char *caption, size_t bytes) {
    const struct windows *windows = look->windows;
    look_modified(look, caption, bytes);
    text_append(caption, bytes,
                "Model %.200s. Windows of %" PRId64 " tokens with the special ones, every %" PRId64
                ", of a text of %" PRId64 " tokens",
                look->text.session->info->source, windows->n, windows->rule.stride,
                windows->n_tokens);
    if (n < windows->n_all)
        text_append(caption, bytes, "; the first %" PRId64 " of %" PRId64 " are in this file", n,
                    windows->n_all);
    text_append(caption, bytes, ".");
}

qkv_status windows_page(const struct look *look, const char *path, qkv_error *error) {
    const struct windows *windows = look->windows;
    struct page_windows shown = { .n = 0 };
    char title[200] = "", caption[600 + WHAT_IF_WORDS] = "", modified[WHAT_IF_WORDS + 60];
    qkv_page page = look_page_of(look, title, caption);
    page.head_dim = look->text.session->info->head_dim;
    qkv_status status = page_windows_make(look, &shown, &page.scale, error);
    if (status == QKV_OK) {
        text_append(title, sizeof title, "%s \u2026", windows->list[0].begins);
        make_caption(look, shown.n, caption, sizeof caption);
        look_page_rules(look, &page, modified);
        page.n_runs = shown.n;
        page.runs = shown.runs;
        page.n_heads = shown.n * shown.n_heads;
        page.heads = shown.heads;
        status = look_page_put(look->options, &page, path, error);
    }
    if (status == QKV_OK && shown.n < windows->n_all)
        cli_note(look->options->common.quiet,
                 "qkv: the page has the first %" PRId64 " of %" PRId64
                 " shown; fewer heads (--heads) leave room for more",
                 shown.n, windows->n_all);
    page_windows_free(&shown, windows->n);
    return status;
}
