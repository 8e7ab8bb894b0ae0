/*
 * `qkv look --slide N,STRIDE`: a text that is longer than the model takes, as windows of N of its
 * tokens, between the special tokens that the tokenizer puts around a text. The last window ends
 * with the text, so that all are of one length, and what is shown are means over them by place in
 * the window.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "look/look.h"

enum { BEGINS = 60 };

int windows_parse(const struct cli_command *command, const struct look_options *options,
                  struct windows_rule *rule) {
    int n = 0;
    if (!options->windows) return EXIT_OK;
    int64_t *numbers = number_list(options->windows, 1, INT32_MAX, &n);
    if (n == 1 || n == 2) *rule = (struct windows_rule){ numbers[0], numbers[n - 1] };
    free(numbers);
    if (n != 1 && n != 2)
        return cli_usage(command, "--slide: '%s' is not N or N,STRIDE, whole numbers from 1",
                         options->windows);
    if (rule->stride > rule->n)
        return cli_usage(command,
                         "--slide: a stride of %" PRId64 " leaves out tokens between windows "
                         "of %" PRId64,
                         rule->stride, rule->n);
    const int code = what_if_check_drop(command, &options->what_if, "--slide: windows");
    if (code) return code;
    const char *other = options->pair ? "--pair" : options->common.truncate ? "--truncate" : NULL;
    return other ? cli_usage(command, "--slide together with %s", other) : EXIT_OK;
}

/* The special tokens around it, and between them the tokens from `first` on. */
static bool fill(const struct windows *windows, const qkv_encoding *text, int64_t first,
                 qkv_encoding *window) {
    if (!encoding_room(window, windows->n)) return false;
    for (int64_t i = 0; i < windows->n; i++)
        encoding_copy(window, i, text,
                      i < windows->before                ? i
                      : i >= windows->n - windows->after ? text->n - windows->n + i
                                                         : first + i);
    return true;
}

/* Adds a window's weights and numbers to the means, which have the rules of the first. */
static qkv_status add_window(struct look *look, const struct look *one, qkv_error *error) {
    const qkv_heads_info *info = look_info(one);
    qkv_status status = QKV_OK;
    if (!look->text.heads)
        status = qkv_heads_open_mean(info->n_layers, info->n_heads, 0, look->windows->n_all,
                                     one->text.heads, &look->text.heads, error);
    return status == QKV_OK ? qkv_heads_add(look->text.heads, one->text.heads, error) : status;
}

static char *begins(const struct windows *windows, char *const *labels) {
    char text[4 * BEGINS + 8] = "";
    for (int64_t i = windows->before; i < windows->n - windows->after; i++) {
        if (term_columns(text) >= BEGINS) break;
        text_append(text, sizeof text, "%s%.60s", *text ? " " : "", labels[i]);
    }
    return strdup(text);
}

static qkv_status note_window(const struct windows *windows, struct text_window *window,
                              const struct look *one, qkv_error *error) {
    const qkv_heads_choice *choice = &one->choice;
    char *const *labels = one->text.labels;
    window->choice = *choice;
    window->begins = begins(windows, labels);
    if (choice->key >= 0) {
        window->query = strdup(labels[choice->query]);
        window->key = strdup(labels[choice->key]);
    }
    const bool made = window->begins && (choice->key < 0 || (window->query && window->key));
    return made ? QKV_OK : text_no_memory(error);
}

/* ---- All windows ----------------------------------------------------------------------------- */

static void free_window(struct text_window *window) {
    attended_free(&window->of);
    free(window->encoding.begin);
    window->of = (struct attended){ .input = NULL };
    window->encoding = (qkv_encoding){ .n = 0 };
}

static qkv_status run_window(struct look *look, const qkv_encoding *text,
                             const struct what_if *parsed, int64_t w, qkv_error *error) {
    struct windows *windows = look->windows;
    struct text_window *const window = &windows->list[w];
    struct look one = { .text = { .session = look->text.session, .input = &window->encoding },
                        .ctx = look->ctx,
                        .options = look->options,
                        .given = look->given,
                        .choice = look->choice };
    if (!fill(windows, text, window->first, &window->encoding)) return text_no_memory(error);
    qkv_status status = look_make(&one, parsed, error);
    if (status == QKV_OK) status = add_window(look, &one, error);
    if (status == QKV_OK) status = note_window(windows, window, &one, error);
    /* its words; nothing is dropped */
    if (status == QKV_OK && w == 0) look->text.what_if = one.text.what_if;
    window->of = one.text;
    one.text = (struct attended){ .input = NULL };
    look_free_text(&one);
    if (status != QKV_OK || w >= windows->n_kept) free_window(window);
    return status;
}

static qkv_status run_windows(struct look *look, const qkv_encoding *text,
                              const struct what_if *parsed, qkv_error *error) {
    struct windows *windows = look->windows;
    const int64_t last = windows->n_tokens - (windows->n - windows->before - windows->after);
    struct progress progress;
    qkv_status status = QKV_OK;
    progress_begin(&progress, look->options->common.quiet);
    for (int64_t w = 0; status == QKV_OK && w < windows->n_all; w++) {
        const int64_t first = w * windows->rule.stride;
        windows->list[w].first = first < last ? first : last;
        status = cli_cancelled ? text_error(error, QKV_ERR_CANCELLED, "nothing was written")
                               : run_window(look, text, parsed, w, error);
        windows->n_windows++;
        progress_bar(&progress, "windows", w + 1, windows->n_all);
    }
    progress_end(&progress);
    return status;
}

/* Places in the window, counted from 1; special tokens by name. */
static qkv_status label_places(struct look *look, qkv_error *error) {
    const struct windows *windows = look->windows;
    char **labels;
    qkv_status status =
        session_labels(look->text.session, &windows->encoding, &look->text.labels, error);
    labels = look->text.labels;
    for (int64_t i = windows->before; status == QKV_OK && i < windows->n - windows->after; i++) {
        free(labels[i]);
        if (asprintf(&labels[i], "%" PRId64, i - windows->before + 1) >= 0) continue;
        labels[i] = NULL;
        status = text_no_memory(error);
    }
    return status;
}

/* The named head, else that of the sharpest look of all windows. */
static void choose(struct look *look) {
    struct text_window *best = &look->windows->list[0];
    for (int64_t w = 1; w < look->windows->n_windows; w++)
        if (look->windows->list[w].choice.weight > best->choice.weight)
            best = &look->windows->list[w];
    look->choice = best->choice;
    look->choice.query = look->choice.key = -1;
    look->choice.weight = 0;
}

/* A special token that the tokenizer added. */
static bool is_added(const qkv_encoding *text, int64_t i) {
    return text->special[i] && text->begin[i] == text->end[i];
}

static qkv_status windows_open(struct look *look, const struct windows_rule *rule,
                               qkv_error *error) {
    const qkv_encoding *text = look->text.input;
    const qkv_model_info *info = look->text.session->info;
    struct windows *windows = look->windows;
    while (windows->before < text->n && is_added(text, windows->before)) windows->before++;
    while (windows->before + windows->after < text->n &&
           is_added(text, text->n - 1 - windows->after))
        windows->after++;
    const int64_t n_heads = info->n_layers * info->n_heads,
                  framed = windows->before + windows->after;
    const int64_t n_tokens = text->n - framed, n = rule->n < n_tokens ? rule->n : n_tokens,
                  all = n + framed;
    if (all > info->max_len)
        return text_error(error, QKV_ERR_SHAPE,
                          "--slide %" PRId64 ": with %" PRId64 " special tokens more than the "
                          "%" PRId64 " that the model takes",
                          rule->n, framed, info->max_len);
    if (all * all > WEIGHTS_LIMIT / n_heads)
        return text_error(error, QKV_ERR_LIMIT,
                          "--slide %" PRId64 ": the mean weights of %" PRId64
                          " heads are more than the limit of %d; name fewer tokens",
                          rule->n, n_heads, WEIGHTS_LIMIT);
    windows->rule = *rule;
    windows->n = all;
    windows->n_tokens = n_tokens;
    windows->n_all = 1 + (n_tokens - n + rule->stride - 1) / rule->stride;
    windows->n_kept = windows_page_room(look, all);
    windows->list = calloc((size_t)windows->n_all, sizeof *windows->list);
    return windows->list && fill(windows, text, 0, &windows->encoding) ? QKV_OK
                                                                       : text_no_memory(error);
}

qkv_status windows_make(struct look *look, const struct what_if *parsed,
                        const struct windows_rule *rule, qkv_error *error) {
    const qkv_encoding *text = look->text.input;
    look->windows = calloc(1, sizeof *look->windows);
    if (!look->windows) return text_no_memory(error);
    qkv_status status = windows_open(look, rule, error);
    if (status == QKV_OK) status = run_windows(look, text, parsed, error);
    if (status != QKV_OK) return status;
    choose(look);
    look->text.input = &look->windows->encoding;
    look->text.view = pair_view(look->text.session, look->text.input, NULL, QKV_SELF);
    look->n_rows = look->n_cols = look->windows->n;
    status = label_places(look, error);
    look->rows = look->cols = look->text.labels;
    return status;
}

void windows_free(struct windows *windows) {
    if (!windows) return;
    for (int64_t w = 0; windows->list && w < windows->n_all; w++) {
        free(windows->list[w].query);
        free(windows->list[w].key);
        free(windows->list[w].begins);
        free_window(&windows->list[w]);
    }
    free(windows->list);
    free(windows->encoding.begin);
    free(windows);
}
