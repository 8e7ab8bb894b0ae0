/*
 * `qkv look --slide N,STRIDE`: a text that is longer than the model takes, as windows of N of its tokens,
 * between the special tokens that the tokenizer puts around a text. The last window ends with the text,
 * so that all are of one length, and what is shown are means over them by place in the window.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "heads.h"
#include "look.h"
#include "term.h"

enum { LABEL_BYTES = sizeof(((qkv_head_stats *)NULL)->label), BEGINS = 60 };

int slide_parse(const struct cli_command *command, const struct look_options *options,
                struct slide_rule *rule) {
    int n = 0;
    if (!options->slide) return EXIT_OK;
    int64_t *numbers = args_int_list(options->slide, 1, INT32_MAX, &n);
    if (n == 1 || n == 2) *rule = (struct slide_rule){ numbers[0], numbers[n - 1] };
    free(numbers);
    if (n != 1 && n != 2)
        return cli_usage(command, "--slide: '%s' is not N or N,STRIDE, whole numbers from 1",
                         options->slide);
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

/* ---- Means --------------------------------------------------------------------------------------- */

/* What goes through all windows. */
struct pass {
    const struct what_if *parsed;
    struct frame frame;
    int64_t n_heads;             /* of all layers */
    float *weights;              /* of one head */
    char (*labels)[LABEL_BYTES]; /* [n_all][n_heads] */
    struct heads_sum *sum;
};

static void pass_end(struct pass *pass) {
    free(pass->weights);
    free(pass->labels);
    heads_sum_free(pass->sum);
}

static qkv_status pass_begin(const struct look *look, struct pass *pass, qkv_error *error) {
    const size_t n = (size_t)look->slide->encoding->n;
    pass->weights = malloc(n * n * sizeof *pass->weights + 1);
    pass->labels = calloc((size_t)(look->slide->n_all * pass->n_heads) + 1, LABEL_BYTES);
    if (!pass->weights || !pass->labels) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    return heads_sum_make(look->session, QKV_SELF, NULL, &pass->sum, error);
}

/* Adds a window's weights, a share of 1 / n_all each, and its numbers. */
static qkv_status add_window(struct look *look, const struct look *one, const struct pass *pass,
                             qkv_error *error) {
    const int64_t n_heads = look->session->info->n_heads, cells = one->input->n * one->input->n;
    const double share = 1 / (double)look->slide->n_all;
    for (int64_t h = 0; h < pass->n_heads; h++) {
        const qkv_status status =
            look_head_weights(one, h / n_heads, h % n_heads, pass->weights, error);
        if (status != QKV_OK) return status;
        for (int64_t c = 0; c < cells; c++)
            look->mean[h * cells + c] += (float)share * pass->weights[c];
    }
    heads_sum_add(pass->sum, one->stats);
    return QKV_OK;
}

/* Means over windows. Which key receives most is another one in each. */
static qkv_status take_means(struct look *look, const struct pass *pass, qkv_error *error) {
    struct head_row *rows = calloc((size_t)pass->n_heads + 1, sizeof *rows);
    if (!rows) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    heads_sum_rows(pass->sum, rows);
    for (int64_t h = 0; h < pass->n_heads; h++) {
        look->stats[h] = rows[h].stats;
        look->stats[h].received_key = -1;
    }
    free(rows);
    return QKV_OK;
}

static char *begins(const struct look *one, struct frame frame) {
    char text[4 * BEGINS + 8] = "";
    for (int64_t i = frame.before; i < one->input->n - frame.after; i++) {
        if (term_columns(text) >= BEGINS) break;
        text_append(text, sizeof text, "%s%.60s", *text ? " " : "", one->labels[i]);
    }
    return strdup(text);
}

static qkv_status note_window(struct slide_window *window, const struct look *one,
                              struct frame frame, qkv_error *error) {
    const struct choice *choice = &one->choice;
    window->choice = *choice;
    window->begins = begins(one, frame);
    if (choice->key >= 0) {
        window->query = strdup(one->labels[choice->query]);
        window->key = strdup(one->labels[choice->key]);
    }
    const bool made = window->begins && (choice->key < 0 || (window->query && window->key));
    return made ? QKV_OK : text_error(error, QKV_ERR_MEMORY, "out of memory");
}

/* The label that more than half of the windows give a head, or "". */
static void label_heads(struct look *look, const struct pass *pass) {
    const int64_t n = look->slide->n_all, n_heads = pass->n_heads;
    for (int64_t h = 0; h < n_heads; h++) {
        const char *likely = "";
        int64_t votes = 0, count = 0;
        for (int64_t w = 0; w < n; w++) {
            const char *label = pass->labels[w * n_heads + h];
            if (votes == 0) likely = label;
            votes += strcmp(likely, label) == 0 ? 1 : -1;
        }
        for (int64_t w = 0; w < n; w++) count += strcmp(likely, pass->labels[w * n_heads + h]) == 0;
        if (2 * count > n) memcpy(look->stats[h].label, likely, LABEL_BYTES);
    }
}

/* For the page: the run and the statistics of a window change hands. */
static qkv_status keep(struct slide_window *window, struct look *one, qkv_error *error) {
    window->encoding = slide_encoding_make(one->input->n);
    if (!window->encoding) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    slide_encoding_fill(window->encoding, one->input, (struct frame){ one->input->n, 0 }, 0);
    window->run = one->run;
    window->stats = one->stats;
    one->run = NULL;
    one->stats = NULL;
    return QKV_OK;
}

/* ---- All windows --------------------------------------------------------------------------------- */

static qkv_status run_window(struct look *look, const struct pass *pass, int64_t w,
                             qkv_error *error) {
    struct slide_window *const window = &look->slide->windows[w];
    struct look one = { .session = look->session,
                        .options = look->options,
                        .input = look->slide->encoding,
                        .given = look->given,
                        .choice = look->choice };
    qkv_status status = look_make(&one, pass->parsed, error);
    if (status == QKV_OK) status = add_window(look, &one, pass, error);
    if (status == QKV_OK) status = note_window(window, &one, pass->frame, error);
    for (int64_t h = 0; status == QKV_OK && h < pass->n_heads; h++)
        memcpy(pass->labels[w * pass->n_heads + h], one.stats[h].label, LABEL_BYTES);
    if (status == QKV_OK && w < look->slide->n_kept) status = keep(window, &one, error);
    if (status == QKV_OK && w == 0) {
        look->what_if = one.what_if; /* its words; nothing is dropped */
        look->causal = one.causal;
    }
    look_free(&one);
    return status;
}

static qkv_status run_windows(struct look *look, const qkv_encoding *text, const struct pass *pass,
                              qkv_error *error) {
    struct slide *slide = look->slide;
    const struct frame frame = pass->frame;
    const int64_t last = slide->n_tokens - (slide->encoding->n - frame.before - frame.after);
    struct progress progress;
    qkv_status status = QKV_OK;
    progress_begin(&progress, look->options->common.quiet);
    for (int64_t w = 0; status == QKV_OK && w < slide->n_all; w++) {
        const int64_t first = w * slide->rule.stride;
        slide->windows[w].first = first < last ? first : last;
        slide_encoding_fill(slide->encoding, text, frame, slide->windows[w].first);
        status = cli_cancelled ? text_error(error, QKV_ERR_CANCELLED, "nothing was written")
                               : run_window(look, pass, w, error);
        slide->n_windows++;
        progress_bar(&progress, "windows", w + 1, slide->n_all);
    }
    progress_end(&progress);
    return status == QKV_OK ? take_means(look, pass, error) : status;
}

/* Places in the window, counted from 1; special tokens by name. */
static qkv_status label_places(struct look *look, struct frame frame, qkv_error *error) {
    const qkv_encoding *window = look->slide->encoding;
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
    struct slide_window *best = &look->slide->windows[0];
    for (int64_t w = 1; w < look->slide->n_windows; w++)
        if (look->slide->windows[w].choice.weight > best->choice.weight)
            best = &look->slide->windows[w];
    look->choice = best->choice;
    look->choice.query = look->choice.key = -1;
    look->choice.weight = 0;
}

static qkv_status slide_open(struct look *look, const struct slide_rule *rule, struct frame frame,
                             qkv_error *error) {
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
    struct slide *slide = look->slide;
    slide->rule = *rule;
    slide->n_tokens = n_tokens;
    slide->n_all = 1 + (n_tokens - n + rule->stride - 1) / rule->stride;
    slide->n_kept = slide_page_room(look, all);
    slide->windows = calloc((size_t)slide->n_all, sizeof *slide->windows);
    slide->encoding = slide_encoding_make(all);
    look->stats = calloc((size_t)n_heads + 1, sizeof *look->stats);
    look->mean = calloc((size_t)(n_heads * all * all) + 1, sizeof *look->mean);
    return slide->windows && slide->encoding && look->stats && look->mean
               ? QKV_OK
               : text_error(error, QKV_ERR_MEMORY, "out of memory");
}

qkv_status slide_make(struct look *look, const struct what_if *parsed,
                      const struct slide_rule *rule, qkv_error *error) {
    const qkv_encoding *text = look->input;
    const qkv_model_info *info = look->session->info;
    struct pass pass = { .parsed = parsed,
                         .frame = slide_frame_of(text),
                         .n_heads = info->n_layers * info->n_heads };
    look->slide = calloc(1, sizeof *look->slide);
    if (!look->slide) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = slide_open(look, rule, pass.frame, error);
    if (status == QKV_OK) status = pass_begin(look, &pass, error);
    if (status == QKV_OK) status = run_windows(look, text, &pass, error);
    if (status == QKV_OK) {
        label_heads(look, &pass);
        choose(look);
        slide_encoding_fill(look->slide->encoding, text, pass.frame, 0);
        look->input = look->slide->encoding;
        look->view = view_of_text(look->session, look->input);
        look->n_rows = look->n_cols = look->input->n;
        status = label_places(look, pass.frame, error);
        look->rows = look->cols = look->labels;
    }
    pass_end(&pass);
    return status;
}

void slide_free(struct slide *slide) {
    if (!slide) return;
    for (int64_t w = 0; slide->windows && w < slide->n_all; w++) {
        free(slide->windows[w].query);
        free(slide->windows[w].key);
        free(slide->windows[w].begins);
        free(slide->windows[w].stats);
        free(slide->windows[w].encoding);
        qkv_run_free(slide->windows[w].run);
    }
    free(slide->windows);
    free(slide->encoding);
    free(slide);
}
