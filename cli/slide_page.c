/*
 * The page of `qkv look --slide`: windows as texts to choose from. As many are kept as are sure to fit;
 * the others are named in a message, and in the page's caption.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look.h"

/* Of a window: those of --heads, the one of --head, or all. */
static int64_t heads_of_window(const struct look *look) {
    const qkv_model_info *info = look->session->info;
    return look->list ? look->n_list : look->given ? 1 : info->n_layers * info->n_heads;
}

int64_t slide_page_room(const struct look *look, int64_t n) {
    const char *path = look->options->out, *dot = path ? strrchr(path, '.') : NULL;
    const double width = n > 64 ? 2 : 4, /* f16 where the writer may choose it */
        bytes = (double)heads_of_window(look) *
                (((double)(2 * n * look->session->info->head_dim) * width + 4 * (double)n) * 4 / 3 +
                 1500);
    if (!dot || strcmp(dot, ".html") != 0) return 0;
    const double room = LOOK_PAGE_BYTES / bytes;
    return room < 1 ? 1 : (int64_t)room;
}

/* What the page needs of all windows. */
struct windows {
    int64_t n, n_heads; /* windows; heads of each */
    struct look_tokens *tokens;
    qkv_page_run *runs;
    char (*names)[120];
    qkv_page_head *heads; /* [n][n_heads], and room for one window more */
};

static void windows_free(struct windows *windows, int64_t n_tokens) {
    for (int64_t w = 0; windows->tokens && w < windows->n; w++)
        look_tokens_free(&windows->tokens[w], n_tokens);
    free(windows->tokens);
    free(windows->runs);
    free(windows->names);
    free(windows->heads);
}

/* The heads of one window, as a look at it alone would have them. */
static qkv_status add_window(const struct look *look, int64_t w, struct windows *windows,
                             float *scale, qkv_error *error) {
    const struct slide_window *window = &look->slide->windows[w];
    const struct look one = { .session = look->session,
                              .options = look->options,
                              .input = window->encoding,
                              .view = view_of_text(look->session, window->encoding),
                              .run = window->run,
                              .stats = window->stats,
                              .given = look->given,
                              .list = look->list,
                              .n_list = look->n_list,
                              .choice = look->choice };
    qkv_page_head *heads = windows->heads + w * windows->n_heads;
    qkv_status status = look_tokens_make(&windows->tokens[w], &one.view.keys, error);
    if (status == QKV_OK) status = look_page_heads(&one, heads, scale, error);
    for (int64_t h = 0; status == QKV_OK && h < windows->n_heads; h++) heads[h].run = w;
    windows->names[w][0] = '\0';
    text_append(windows->names[w], sizeof windows->names[w], "%" PRId64 ": %.90s", window->first,
                window->begins);
    windows->runs[w] =
        (qkv_page_run){ windows->names[w], (const char *const *)windows->tokens[w].texts,
                        window->encoding->special, NULL, windows->tokens[w].words };
    return status;
}

static qkv_status windows_make(const struct look *look, struct windows *windows, float *scale,
                               qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    const struct slide *slide = look->slide;
    const int64_t n_all_heads = info->n_layers * info->n_heads;
    windows->n = slide->n_windows < slide->n_kept ? slide->n_windows : slide->n_kept;
    windows->n_heads = heads_of_window(look);
    windows->tokens = calloc((size_t)windows->n, sizeof *windows->tokens);
    windows->runs = calloc((size_t)windows->n, sizeof *windows->runs);
    windows->names = calloc((size_t)windows->n, sizeof *windows->names);
    windows->heads =
        calloc((size_t)(windows->n * windows->n_heads + n_all_heads), sizeof *windows->heads);
    if (!windows->tokens || !windows->runs || !windows->names || !windows->heads)
        return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = QKV_OK;
    for (int64_t w = 0; status == QKV_OK && w < windows->n; w++)
        status = add_window(look, w, windows, scale, error);
    return status;
}

static void make_caption(const struct look *look, int64_t n, char *caption, size_t bytes) {
    const struct slide *slide = look->slide;
    caption[0] = '\0';
    if (look->what_if.any)
        text_append(caption, bytes, "MODIFIED: not what the model computed (%s). ",
                    look->what_if.words);
    text_append(caption, bytes,
                "Model %.200s. Windows of %" PRId64 " tokens with the special ones, every %" PRId64
                ", of a text of %" PRId64 " tokens",
                look->session->info->source, slide->encoding->n, slide->rule.stride,
                slide->n_tokens);
    if (n < slide->n_all)
        text_append(caption, bytes, "; the first %" PRId64 " of %" PRId64 " are in this file", n,
                    slide->n_all);
    text_append(caption, bytes, ".");
}

qkv_status slide_page(const struct look *look, const char *path, qkv_error *error) {
    const struct slide *slide = look->slide;
    const int64_t n = slide->encoding->n;
    struct windows windows = { .n = 0 };
    char title[200] = "", caption[600 + WHAT_IF_WORDS], modified[WHAT_IF_WORDS + 60];
    qkv_page page = { .struct_size = sizeof page,
                      .n = n,
                      .head_dim = look->session->info->head_dim,
                      .query = -1,
                      .title = title,
                      .caption = caption,
                      .limit_bytes = LOOK_PAGE_BYTES };
    qkv_page_result result;
    qkv_status status = windows_make(look, &windows, &page.scale, error);
    if (status == QKV_OK) {
        text_append(title, sizeof title, "%s \u2026", slide->windows[0].begins);
        make_caption(look, windows.n, caption, sizeof caption);
        look_page_rules(look, &page, modified);
        page.n_runs = windows.n;
        page.runs = windows.runs;
        page.n_heads = windows.n * windows.n_heads;
        page.heads = windows.heads;
        status = qkv_view_page_write(&page, path, &result, error);
    }
    if (status == QKV_OK && !look->options->common.quiet) {
        look_page_tell(&result, page.n_heads);
        if (windows.n < slide->n_all)
            cli_note(false,
                     "qkv: the page has the first %" PRId64 " of %" PRId64
                     " windows; fewer heads (--heads) leave room for more",
                     windows.n, slide->n_all);
    }
    windows_free(&windows, n);
    return status;
}
