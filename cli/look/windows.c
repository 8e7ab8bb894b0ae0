/* Looks at each window of a text, and makes means over them: see windows.h. */
#include "look/windows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/conflicts.h"
#include "common/number.h"
#include "sinks/page.h"

/* What one window showed. */
struct window {
    int64_t first; /* its first token, of those of the text */
    qkv_heads_choice choice;
    char *query, *key; /* labels of the choice; NULL: there is none */
    char *begins;      /* its first words */
    qkv_encoding encoding;
    struct text_seen *of; /* for a page, as long as that has room; else NULL */
};

struct windows {
    struct text_seen mean; /* the first: what a sink knows */
    const struct text_job *job;
    struct windows_rule rule;
    int64_t n_tokens;      /* of the text, without those … */
    int64_t before, after; /* … special ones that the tokenizer added at its beginning and end */
    int64_t n_windows;     /* that were looked at: all, or those before Ctrl-C */
    int64_t n_all, n_kept; /* there are; whose runs are kept for a page, at most */
    int64_t n;             /* tokens of each, with the special ones */
    struct window *list;
    qkv_encoding encoding; /* of the first window: places of the means */
};

enum { BEGINS = 60, LINES = 24 };

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
static bool fill_window(const struct windows *windows, const qkv_encoding *text, int64_t first,
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
static qkv_status add_window(struct windows *windows, const struct text_seen *one,
                             qkv_error *error) {
    const qkv_heads_info *info = one->seen.info;
    struct attended *const mean = &windows->mean.text;
    qkv_status status = QKV_OK;
    if (!mean->heads)
        status = qkv_heads_open_mean(info->n_layers, info->n_heads, 0, windows->n_all,
                                     one->text.heads, &mean->heads, error);
    return status == QKV_OK ? qkv_heads_add(mean->heads, one->text.heads, error) : status;
}

static char *first_words(const struct windows *windows, char *const *labels) {
    char text[4 * BEGINS + 8] = "";
    for (int64_t i = windows->before; i < windows->n - windows->after; i++) {
        if (term_columns(text) >= BEGINS) break;
        text_append(text, sizeof text, "%s%.60s", *text ? " " : "", labels[i]);
    }
    return strdup(text);
}

static qkv_status note_window(const struct windows *windows, struct window *window,
                              qkv_error *error) {
    const qkv_heads_choice *choice = &window->of->seen.choice;
    char *const *labels = window->of->text.labels;
    window->choice = *choice;
    window->begins = first_words(windows, labels);
    if (choice->key >= 0) {
        window->query = strdup(labels[choice->query]);
        window->key = strdup(labels[choice->key]);
    }
    const bool made = window->begins && (choice->key < 0 || (window->query && window->key));
    return made ? QKV_OK : text_no_memory(error);
}

/* ---- All windows ----------------------------------------------------------------------------- */

static void free_run(struct window *window) {
    if (window->of) text_free(window->of);
    free(window->of);
    free(window->encoding.begin);
    window->of = NULL;
    window->encoding = (qkv_encoding){ .n = 0 };
}

static qkv_status run_window(struct windows *windows, const qkv_encoding *text,
                             const struct what_if *parsed, int64_t w, qkv_error *error) {
    struct window *const window = &windows->list[w];
    struct text_seen *const mean = &windows->mean;
    struct text_seen *const of = window->of = calloc(1, sizeof *window->of);
    if (!of || !fill_window(windows, text, window->first, &window->encoding))
        return text_no_memory(error);
    text_begin(of, windows->job, &window->encoding, mean->list, mean->n_list);
    qkv_status status = text_look(of, parsed, error);
    if (status == QKV_OK) status = add_window(windows, of, error);
    if (status == QKV_OK) status = note_window(windows, window, error);
    /* its words; nothing is dropped */
    if (status == QKV_OK && w == 0) mean->text.what_if = of->text.what_if;
    if (status != QKV_OK || w >= windows->n_kept) free_run(window);
    return status;
}

static qkv_status run_windows(struct windows *windows, const qkv_encoding *text,
                              const struct what_if *parsed, qkv_error *error) {
    const int64_t last = windows->n_tokens - (windows->n - windows->before - windows->after);
    struct progress progress;
    qkv_status status = QKV_OK;
    progress_begin(&progress, windows->mean.options->common.quiet);
    for (int64_t w = 0; status == QKV_OK && w < windows->n_all; w++) {
        const int64_t first = w * windows->rule.stride;
        windows->list[w].first = first < last ? first : last;
        status = cli_cancelled ? text_error(error, QKV_ERR_CANCELLED, "nothing was written")
                               : run_window(windows, text, parsed, w, error);
        windows->n_windows++;
        progress_bar(&progress, "windows", w + 1, windows->n_all);
    }
    progress_end(&progress);
    return status;
}

/* A special token that the tokenizer added. */
static bool is_added(const qkv_encoding *text, int64_t i) {
    return text->special[i] && text->begin[i] == text->end[i];
}

/* How many windows of n tokens a page has room for. */
static int64_t page_windows(const struct windows *windows, int64_t n) {
    const struct text_seen *const mean = &windows->mean;
    const qkv_model_info *const info = mean->text.session->info;
    const int64_t n_heads = mean->list           ? mean->n_list
                            : mean->seen.by_name ? 1
                                                 : info->n_layers * info->n_heads;
    const double width = n > 64 ? 2 : 4, /* f16 where the writer may choose it */
        bytes = (double)n_heads *
                (((double)(2 * n * info->head_dim) * width + 4 * (double)n) * 4 / 3 + 1500);
    if (path_ending(mean->options->out, ".html") < 0) return 0;
    const double room = PAGE_BYTES / bytes;
    return room < 1 ? 1 : (int64_t)room;
}

static qkv_status windows_open(struct windows *windows, const qkv_encoding *text,
                               const struct windows_rule *rule, qkv_error *error) {
    const qkv_model_info *info = windows->mean.text.session->info;
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
    windows->n_kept = page_windows(windows, all);
    windows->list = calloc((size_t)windows->n_all, sizeof *windows->list);
    return windows->list && fill_window(windows, text, 0, &windows->encoding)
               ? QKV_OK
               : text_no_memory(error);
}

/* ---- Means ----------------------------------------------------------------------------------- */

/* Places in the window, counted from 1; special tokens by name. */
static qkv_status name_places(struct windows *windows, qkv_error *error) {
    struct attended *const text = &windows->mean.text;
    qkv_status status = session_labels(text->session, &windows->encoding, &text->labels, error);
    for (int64_t i = windows->before; status == QKV_OK && i < windows->n - windows->after; i++) {
        free(text->labels[i]);
        if (asprintf(&text->labels[i], "%" PRId64, i - windows->before + 1) >= 0) continue;
        text->labels[i] = NULL;
        status = text_no_memory(error);
    }
    return status;
}

/* The named head, else that of the sharpest look of all windows. */
static void choose_head(struct windows *windows) {
    const struct window *best = &windows->list[0];
    for (int64_t w = 1; w < windows->n_windows; w++)
        if (windows->list[w].choice.weight > best->choice.weight) best = &windows->list[w];
    qkv_heads_choice *const choice = &windows->mean.seen.choice;
    *choice = best->choice;
    choice->query = choice->key = -1;
    choice->weight = 0;
}

/* The label that more than half of the windows give. */
static const char *label_of(const struct seen *seen, int64_t index) {
    const qkv_head_rule *rule;
    for (int i = 0; (rule = qkv_head_rule_at(i)); i++)
        if (qkv_heads_label_share(seen->heads, index, rule->label) > 0.5) return rule->label;
    return "";
}

static qkv_status describe_means(struct windows *windows, qkv_error *error) {
    struct seen *const seen = &windows->mean.seen;
    struct attended *const text = &windows->mean.text;
    char means[200] = "";
    qkv_status status = name_places(windows, error);
    if (status == QKV_OK) status = seen_heads(seen, text->heads, error);
    if (status != QKV_OK) return status;
    for (int64_t i = 0; i < seen->n_heads; i++) seen->labels[i] = label_of(seen, i);
    seen->queries = (struct seen_side){
        .n = windows->n, .names = text->labels, .tokens_a_name = 1, .sign = "", .note = ""
    };
    seen->keys = seen->queries;
    text_append(means, sizeof means,
                "Means over %" PRId64 " window%s of %" PRId64 " tokens with the special ones, by "
                "place in the window, of a text of %" PRId64 " tokens. ",
                windows->n_windows, windows->n_windows == 1 ? "" : "s", windows->n,
                windows->n_tokens);
    text_describe(&windows->mean, means);
    return QKV_OK;
}

/* ---- Words ----------------------------------------------------------------------------------- */

static const struct windows *windows_of(const struct seen *seen) {
    return (const struct windows *)(const void *)seen;
}

static void print_windows(const struct seen *seen, struct term *term) {
    const struct windows *const windows = windows_of(seen);
    term_styled(term, STYLE_BOLD, "Windows");
    fputs(term->width < 80 ? "  first token, sharpest look\n"
                           : "  first token, sharpest look of one token at another, first words\n",
          term->out);
    for (int64_t w = 0; w < windows->n_windows && w < LINES; w++) {
        const struct window *window = &windows->list[w];
        char look_text[120] = "";
        if (window->key)
            text_append(look_text, sizeof look_text, "%" PRId64 ".%" PRId64 " %.24s %s %.24s %.2f",
                        window->choice.layer, window->choice.head, window->query,
                        term->unicode ? "\u2192" : "->", window->key,
                        (double)window->choice.weight);
        fprintf(term->out, "%6" PRId64 "  ", window->first);
        term_put(term, look_text, term->width < 76 ? 24 : 36, false);
        if (term->width >= 60) {
            fputs("  ", term->out);
            term_put(term, window->begins, term->width - (term->width < 76 ? 34 : 46), false);
        }
        term_newline(term);
    }
    if (windows->n_windows > LINES)
        fprintf(term->out, "        and %" PRId64 " more; --json has all\n",
                windows->n_windows - LINES);
    term_newline(term);
    text_print(seen, term);
}

static json_t *window_json(const struct window *window) {
    const qkv_heads_choice *choice = &window->choice;
    return json_set(NULL, "first:i begins:t sharpest:o", window->first, window->begins,
                    !window->key ? json_null()
                                 : json_set(NULL, "layer:i head:i query:t key:t weight:n",
                                            choice->layer, choice->head, window->query, window->key,
                                            (double)choice->weight));
}

static void add_json(const struct seen *seen, bool behind, json_t *object) {
    const struct windows *const windows = windows_of(seen);
    if (behind) {
        text_add_json(seen, true, object);
        return;
    }
    json_t *list = json_array();
    for (int64_t w = 0; w < windows->n_windows; w++)
        json_array_append_new(list, window_json(&windows->list[w]));
    json_set(object, "slide:o windows:o places:o",
             json_set(NULL, "n:i stride:i n_tokens:i n_windows:i", windows->rule.n,
                      windows->rule.stride, windows->n_tokens, windows->n_windows),
             list, json_texts(windows->n, seen->queries.names));
    text_add_words(&windows->mean, object);
}

/* ---- A page of windows, from which a reader chooses ------------------------------------------ */

/* The heads of one window, as a look at it alone would have them. */
static qkv_status add_run(const struct windows *windows, int64_t w, struct page *page,
                          qkv_page_text *run, qkv_error *error) {
    enum { BYTES = 120 };
    const struct window *const window = &windows->list[w];
    struct page_tokens tokens;
    char *const name = page_room(page, BYTES, 1);
    qkv_status status = name ? page_tokens(page, &window->of->text.view.keys, &tokens, error)
                             : text_no_memory(error);
    if (status == QKV_OK)
        status = page_heads(page, &window->of->seen, windows->mean.seen.head, w, error);
    if (status != QKV_OK) return status;
    text_append(name, BYTES, "%" PRId64 ": %.90s", window->first, window->begins);
    *run = (qkv_page_text){ .name = name,
                            .tokens = (const char *const *)tokens.texts,
                            .special = window->encoding.special,
                            .words = tokens.words };
    return QKV_OK;
}

static void add_caption(const struct windows *windows, int64_t n, struct page *page) {
    char *const caption = page->caption.text;
    what_if_caption(&windows->mean.text.what_if, &page->caption);
    text_append(caption, PAGE_CAPTION,
                "Model %.200s. Windows of %" PRId64 " tokens with the special ones, every %" PRId64
                ", of a text of %" PRId64 " tokens",
                windows->mean.text.session->info->source, windows->n, windows->rule.stride,
                windows->n_tokens);
    if (n < windows->n_all)
        text_append(caption, PAGE_CAPTION,
                    "; the first %" PRId64 " of %" PRId64 " are in this file", n, windows->n_all);
    text_append(caption, PAGE_CAPTION, ".");
}

/* As many windows as are sure to fit; a message and the caption say how many others there are. */
static qkv_status make_page(const struct seen *seen, struct page *page, qkv_error *error) {
    const struct windows *const windows = windows_of(seen);
    const int64_t n = windows->n_windows < windows->n_kept ? windows->n_windows : windows->n_kept;
    qkv_page_text *const runs = page_room(page, n, sizeof *runs);
    qkv_status status = runs ? QKV_OK : text_no_memory(error);
    for (int64_t w = 0; status == QKV_OK && w < n; w++)
        status = add_run(windows, w, page, &runs[w], error);
    page->desc.head_dim = windows->mean.text.session->info->head_dim;
    page->desc.n_texts = n;
    page->desc.texts = runs;
    text_append(page->title.text, PAGE_TITLE, "%s \u2026", windows->list[0].begins);
    add_caption(windows, n, page);
    text_page_rules(&windows->mean, page);
    if (n < windows->n_all)
        text_append(page->note, sizeof page->note,
                    "qkv: the page has the first %" PRId64 " of %" PRId64
                    " shown; fewer heads (--heads) leave room for more",
                    n, windows->n_all);
    return status;
}

/* ---------------------------------------------------------------------------------------------- */

qkv_status windows_look(const struct text_job *job, const qkv_encoding *text,
                        const struct head_name *list, int n_list, const struct what_if *parsed,
                        const struct windows_rule *rule, struct text_seen **made,
                        qkv_error *error) {
    struct windows *const windows = calloc(1, sizeof *windows);
    if (!windows) return text_no_memory(error);
    struct text_seen *const mean = *made = &windows->mean;
    windows->job = job;
    text_begin(mean, job, &windows->encoding, list, n_list);
    mean->seen.is_mean = true;
    mean->seen.print = print_windows;
    mean->seen.add_json = add_json;
    mean->seen.make_page = make_page;
    qkv_status status = windows_open(windows, text, rule, error);
    if (status == QKV_OK) status = run_windows(windows, text, parsed, error);
    if (status != QKV_OK) return status;
    choose_head(windows);
    mean->text.view = pair_view(mean->text.session, &windows->encoding, NULL, QKV_SELF);
    return describe_means(windows, error);
}

void windows_free(struct text_seen *made) {
    struct windows *const windows = (struct windows *)(void *)made;
    if (!windows) return;
    text_free(&windows->mean);
    for (int64_t w = 0; windows->list && w < windows->n_all; w++) {
        free(windows->list[w].query);
        free(windows->list[w].key);
        free(windows->list[w].begins);
        free_run(&windows->list[w]);
    }
    free(windows->list);
    free(windows->encoding.begin);
    free(windows);
}
