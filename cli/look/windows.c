/*
 * `qkv look --slide N,STRIDE`: a text that is longer than the model takes, as windows of N of its tokens,
 * between the special tokens that the tokenizer puts around a text. The last window ends with the text,
 * so that all are of one length, and what is shown are means over them by place in the window.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/term.h"
#include "look/look.h"

enum { BEGINS = 60 };

int windows_parse(const struct cli_command *command, const struct look_options *options,
                  struct windows_rule *rule) {
    int n = 0;
    if (!options->windows) return EXIT_OK;
    int64_t *numbers = args_int_list(options->windows, 1, INT32_MAX, &n);
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
    for (int i = 0; i < options->what_if.n; i++)
        if (strncmp(options->what_if.list[i], "drop=", 5) == 0)
            return cli_usage(command,
                             "--what-if %s together with --slide: windows have other tokens",
                             options->what_if.list[i]);
    const char *other = options->pair ? "--pair" : options->common.truncate ? "--truncate" : NULL;
    return other ? cli_usage(command, "--slide together with %s", other) : EXIT_OK;
}

/* What goes through all windows. */
struct pass {
    const struct what_if *parsed;
    struct frame frame;
};

/* Adds a window's weights and numbers to the means, which have the rules of the first. */
static qkv_status add_window(struct look *look, const struct look *one, qkv_error *error) {
    const qkv_heads_info *info = look_info(one);
    qkv_status status = QKV_OK;
    if (!look->heads)
        status = qkv_heads_open_mean(info->n_layers, info->n_heads, 0, look->windows->n_all,
                                     one->heads, &look->heads, error);
    return status == QKV_OK ? qkv_heads_add(look->heads, one->heads, error) : status;
}

static char *begins(const struct look *one, struct frame frame) {
    char text[4 * BEGINS + 8] = "";
    for (int64_t i = frame.before; i < one->input->n - frame.after; i++) {
        if (term_columns(text) >= BEGINS) break;
        text_append(text, sizeof text, "%s%.60s", *text ? " " : "", one->labels[i]);
    }
    return strdup(text);
}

static qkv_status note_window(struct text_window *window, const struct look *one,
                              struct frame frame, qkv_error *error) {
    const qkv_heads_choice *choice = &one->choice;
    window->choice = *choice;
    window->begins = begins(one, frame);
    if (choice->key >= 0) {
        window->query = strdup(one->labels[choice->query]);
        window->key = strdup(one->labels[choice->key]);
    }
    const bool made = window->begins && (choice->key < 0 || (window->query && window->key));
    return made ? QKV_OK : text_error(error, QKV_ERR_MEMORY, "out of memory");
}

/* For the page: the run and the heads of a window change hands. */
static qkv_status keep(struct text_window *window, struct look *one, qkv_error *error) {
    window->encoding = windows_encoding_make(one->input->n);
    if (!window->encoding) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    windows_encoding_fill(window->encoding, one->input, (struct frame){ one->input->n, 0 }, 0);
    window->run = one->run;
    window->heads = one->heads;
    one->run = NULL;
    one->heads = NULL;
    return QKV_OK;
}

/* ---- All windows --------------------------------------------------------------------------------- */

static qkv_status run_window(struct look *look, const struct pass *pass, int64_t w,
                             qkv_error *error) {
    struct text_window *const window = &look->windows->list[w];
    struct look one = { .session = look->session,
                        .ctx = look->ctx,
                        .options = look->options,
                        .input = look->windows->encoding,
                        .given = look->given,
                        .choice = look->choice };
    qkv_status status = look_make(&one, pass->parsed, error);
    if (status == QKV_OK) status = add_window(look, &one, error);
    if (status == QKV_OK) status = note_window(window, &one, pass->frame, error);
    if (status == QKV_OK && w < look->windows->n_kept) status = keep(window, &one, error);
    if (status == QKV_OK && w == 0) look->what_if = one.what_if; /* its words; nothing is dropped */
    look_free(&one);
    return status;
}

static qkv_status run_windows(struct look *look, const qkv_encoding *text, const struct pass *pass,
                              qkv_error *error) {
    struct windows *windows = look->windows;
    const struct frame frame = pass->frame;
    const int64_t last = windows->n_tokens - (windows->encoding->n - frame.before - frame.after);
    struct progress progress;
    qkv_status status = QKV_OK;
    progress_begin(&progress, look->options->common.quiet);
    for (int64_t w = 0; status == QKV_OK && w < windows->n_all; w++) {
        const int64_t first = w * windows->rule.stride;
        windows->list[w].first = first < last ? first : last;
        windows_encoding_fill(windows->encoding, text, frame, windows->list[w].first);
        status = cli_cancelled ? text_error(error, QKV_ERR_CANCELLED, "nothing was written")
                               : run_window(look, pass, w, error);
        windows->n_windows++;
        progress_bar(&progress, "windows", w + 1, windows->n_all);
    }
    progress_end(&progress);
    return status;
}

/* Places in the window, counted from 1; special tokens by name. */
static qkv_status label_places(struct look *look, struct frame frame, qkv_error *error) {
    const qkv_encoding *window = look->windows->encoding;
    qkv_status status = session_labels(look->session, window, &look->labels, error);
    for (int64_t i = frame.before; status == QKV_OK && i < window->n - frame.after; i++) {
        char place[24];
        snprintf(place, sizeof place, "%" PRId64, i - frame.before + 1);
        free(look->labels[i]);
        if (!(look->labels[i] = strdup(place)))
            status = text_error(error, QKV_ERR_MEMORY, "out of memory");
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

static qkv_status windows_open(struct look *look, const struct windows_rule *rule,
                               struct frame frame, qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    const int64_t n_heads = info->n_layers * info->n_heads, framed = frame.before + frame.after;
    const int64_t n_tokens = look->input->n - framed, n = rule->n < n_tokens ? rule->n : n_tokens,
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
    struct windows *windows = look->windows;
    windows->rule = *rule;
    windows->n_tokens = n_tokens;
    windows->n_all = 1 + (n_tokens - n + rule->stride - 1) / rule->stride;
    windows->n_kept = windows_page_room(look, all);
    windows->list = calloc((size_t)windows->n_all, sizeof *windows->list);
    windows->encoding = windows_encoding_make(all);
    return windows->list && windows->encoding ? QKV_OK
                                              : text_error(error, QKV_ERR_MEMORY, "out of memory");
}

qkv_status windows_make(struct look *look, const struct what_if *parsed,
                        const struct windows_rule *rule, qkv_error *error) {
    const qkv_encoding *text = look->input;
    const struct pass pass = { .parsed = parsed, .frame = windows_frame_of(text) };
    look->windows = calloc(1, sizeof *look->windows);
    if (!look->windows) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = windows_open(look, rule, pass.frame, error);
    if (status == QKV_OK) status = run_windows(look, text, &pass, error);
    if (status == QKV_OK) {
        choose(look);
        windows_encoding_fill(look->windows->encoding, text, pass.frame, 0);
        look->input = look->windows->encoding;
        look->view = pair_view(look->session, look->input, NULL, QKV_SELF);
        look->n_rows = look->n_cols = look->input->n;
        status = label_places(look, pass.frame, error);
        look->rows = look->cols = look->labels;
    }
    return status;
}

void windows_free(struct windows *windows) {
    if (!windows) return;
    for (int64_t w = 0; windows->list && w < windows->n_all; w++) {
        free(windows->list[w].query);
        free(windows->list[w].key);
        free(windows->list[w].begins);
        qkv_heads_free(windows->list[w].heads);
        free(windows->list[w].encoding);
        qkv_run_free(windows->list[w].run);
    }
    free(windows->list);
    free(windows->encoding);
    free(windows);
}
