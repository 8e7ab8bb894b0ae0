/*
 * `qkv look SOURCE --target TEXT --align`: for each word of the target, the word of the source with
 * the most weight in the rows that predict it (qkv_inspect_align). Layer and heads are those that
 * the user names, else all heads of the layer whose rows are sharpest. No word is aligned to a
 * special token.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/os.h"
#include "look/text.h"
#include <qkv/files.h>

/*
 * Words of a text: that of each token; their names; and those that are not special, which are
 * shown.
 */
struct words {
    int64_t n, n_shown;
    int32_t *of;
    char **names;   /* [n], escaped */
    int64_t *shown; /* [n_shown] */
    const char **shown_names;
};

/* A word of the target and the word of the source that its rows look at most. */
struct alignment {
    int64_t layer, n_heads; /* heads that count */
    struct words target, source;
    qkv_aligned *words;    /* [target.n] */
    uint8_t *keys, *heads; /* that are taken */
    double *table;         /* [target.n][source.n]: W of qkv_inspect_align */
};

/* ---- Words ----------------------------------------------------------------------------------- */

/* The text of some tokens, without spaces around it, escaped for printing. */
static qkv_status name_word(const qkv_token_list *list, int64_t first, int64_t end, char **name,
                            qkv_error *error) {
    qkv_text *text = NULL;
    const qkv_status status = qkv_tokenizer_decode(list->tokenizer, list->tokens->ids + first,
                                                   end - first, 0, &text, error);
    if (status != QKV_OK) return status;
    const char *from = text->bytes, *to = from + text->n;
    while (from < to && *from == ' ') from++;
    while (from < to && to[-1] == ' ') to--;
    *name = term_escape(from, (size_t)(to - from));
    qkv_text_free(text);
    return *name ? QKV_OK : text_no_memory(error);
}

/* The words of a text: the word of each token, and names. */
static qkv_status words_make(const qkv_token_list *list, struct words *words, qkv_error *error) {
    const int64_t n = list->tokens->n;
    words->of = calloc((size_t)n + 1, sizeof *words->of);
    words->names = calloc((size_t)n + 1, sizeof *words->names);
    words->shown = calloc((size_t)n + 1, sizeof *words->shown);
    words->shown_names = calloc((size_t)n + 1, sizeof *words->shown_names);
    if (!words->of || !words->names || !words->shown || !words->shown_names)
        return text_no_memory(error);
    words->n = qkv_inspect_words(list->tokenizer, list->tokens, words->of);
    for (int64_t i = 0, end; i < n; i = end) {
        const int32_t w = words->of[i];
        for (end = i + 1; end < n && words->of[end] == w; end++) {
        }
        const qkv_status status = name_word(list, i, end, &words->names[w], error);
        if (status != QKV_OK) return status;
        if (list->tokens->special[i]) continue;
        words->shown_names[words->n_shown] = words->names[w];
        words->shown[words->n_shown++] = w;
    }
    return QKV_OK;
}

static void words_free(struct words *words) {
    session_labels_free(words->names, words->n);
    free(words->of);
    free(words->shown);
    free(words->shown_names);
}

/* ---- Alignment ------------------------------------------------------------------------------- */

/* Layer and heads: those that were named, else all heads of the layer that looks most sharply. */
static qkv_status mark_heads(const struct text_seen *t, struct alignment *a, qkv_error *error) {
    const int64_t n_heads = t->text.view.n_heads;
    a->layer = t->seen.choice.layer;
    for (int64_t h = 0; h < n_heads; h++)
        a->heads[h] = !t->seen.by_name || (!t->list && h == t->seen.choice.head);
    for (int i = 0; i < t->n_list; i++) {
        if (t->list[i].layer != a->layer)
            return text_error(error, QKV_ERR_ARGUMENT,
                              "--align averages heads of one layer, not of %" PRId64
                              " and %" PRId64,
                              a->layer, t->list[i].layer);
        a->heads[t->list[i].head] = 1;
    }
    for (int64_t h = 0; h < n_heads; h++) a->n_heads += a->heads[h];
    return QKV_OK;
}

static void mark_keys(const qkv_encoding *source, uint8_t *keys) {
    int64_t n_ordinary = 0;
    for (int64_t j = 0; j < source->n; j++) n_ordinary += !source->special[j];
    for (int64_t j = 0; j < source->n; j++) keys[j] = n_ordinary == 0 || !source->special[j];
}

void alignment_free(struct alignment *alignment) {
    if (!alignment) return;
    words_free(&alignment->target);
    words_free(&alignment->source);
    free(alignment->words);
    free(alignment->keys);
    free(alignment->heads);
    free(alignment->table);
    free(alignment);
}

/* ---- Showing it ------------------------------------------------------------------------------ */

static void print_word(const struct alignment *a, int64_t i, struct term *term) {
    const qkv_aligned *word = &a->words[i];
    int bar = term->width - 50;
    if (bar > 40) bar = 40;
    fputs("  ", term->out);
    term_put(term, a->target.names[i], 18, false);
    fputs("  ", term->out);
    term_put(term, word->key_word < 0 ? "" : a->source.names[word->key_word], 18, false);
    fprintf(term->out, " %.4f ", word->weight);
    if (bar > 0) term_bar(term, word->weight, bar);
    term_newline(term);
}

static void describe_alignment(const struct text_seen *t, struct caption *text) {
    const struct alignment *a = t->alignment;
    caption_add(
        text,
        "Each word of the target, and the word of the source that it looks at most while it is "
        "written: weights of layer %" PRId64 "%s, mean over %" PRId64
        " head%s and the pieces of the target's word, sum over those of the source's. It is "
        "attention, and proves no translation.",
        a->layer,
        t->seen.by_name ? ""
                        : " (of all layers the one whose words look most sharply, by their mean)",
        a->n_heads, a->n_heads == 1 ? "" : "s");
}

void alignment_print(const struct text_seen *t, struct term *term) {
    const struct alignment *a = t->alignment;
    struct caption text = { "" };
    term_styled(term, STYLE_BOLD, "Alignment");
    term_newline(term);
    for (int64_t i = 0; i < a->target.n_shown; i++) print_word(a, a->target.shown[i], term);
    describe_alignment(t, &text);
    term_wrap_styled(term, STYLE_DIM, text.text);
    term_newline(term);
}

json_t *alignment_json(const struct text_seen *t) {
    const struct alignment *a = t->alignment;
    json_t *words = json_array();
    for (int64_t i = 0; i < a->target.n_shown; i++) {
        const qkv_aligned *const word = &a->words[a->target.shown[i]];
        const int64_t key = word->key_word;
        json_array_append_new(
            words,
            json_set(NULL, "target:t source:o source_word:i weight:n", a->target.shown_names[i],
                     key < 0 ? json_null() : json_text(a->source.names[key]), key, word->weight));
    }
    return json_set(NULL, "layer:i n_heads:i words:o", a->layer, a->n_heads, words);
}

/* ---- As a file ------------------------------------------------------------------------------- */

/* A word's number among those that are shown. */
static int64_t number_of(const struct words *words, int64_t word) {
    int64_t number = 0;
    while (words->shown[number] != word) number++;
    return number;
}

/*
 * Pharaoh's format, which aligners and their scores read: "0-0 2-1", the numbers of a word of the
 * source and of the word of the target that looks at it.
 */
qkv_status alignment_write(const struct seen *seen, const char *path, qkv_error *error) {
    const struct alignment *const a = text_of(seen)->alignment;
    char *bytes = NULL;
    size_t n = 0;
    FILE *const out = os_open_memory(&bytes, &n);
    if (!out) return text_no_memory(error);
    for (int64_t i = 0, told = 0; i < a->target.n_shown; i++) {
        const int64_t key = a->words[a->target.shown[i]].key_word;
        if (key < 0) continue;
        fprintf(out, "%s%" PRId64 "-%" PRId64, told++ ? " " : "", number_of(&a->source, key), i);
    }
    fputc('\n', out);
    const bool written = !ferror(out);
    const qkv_status status = os_close_memory(out) == 0 && written
                                  ? qkv_file_write(path, bytes, n, error)
                                  : text_no_memory(error);
    free(bytes);
    return status;
}

/* ---- As a picture ---------------------------------------------------------------------------- */

static qkv_status draw_alignment(const struct seen *seen, const char *path, qkv_error *error) {
    const struct text_seen *const t = text_of(seen);
    const struct alignment *const a = t->alignment;
    const struct words *const down = &a->target, *const across = &a->source;
    struct caption title = { "" }, caption = { "" };
    if (down->n_shown == 0 || across->n_shown == 0)
        return text_error(error, QKV_ERR_SHAPE, "--align: there are no words to align");
    float *const cells = calloc((size_t)(down->n_shown * across->n_shown), sizeof *cells);
    if (!cells) return text_no_memory(error);
    for (int64_t i = 0; i < down->n_shown; i++)
        for (int64_t j = 0; j < across->n_shown; j++)
            cells[i * across->n_shown + j] =
                (float)a->table[down->shown[i] * across->n + across->shown[j]];
    caption_add(&title, "Alignment, layer %" PRId64, a->layer);
    what_if_caption(&t->text.what_if, &caption);
    caption_add(&caption,
                "Model %s (%s). Rows are words of the target, columns words of the source. ",
                t->text.session->info->source, t->text.session->info->architecture);
    caption_add(&caption,
                "A cell is the weight with which the word of the row looks at that of the "
                "column while it is written: layer %" PRId64 "%s, mean over %" PRId64
                " head%s and the pieces of the row's word, sum over those of the "
                "column's. Special tokens are left out. It is attention, and proves no "
                "translation.",
                a->layer, t->seen.by_name ? "" : " (whose words look most sharply)", a->n_heads,
                a->n_heads == 1 ? "" : "s");
    caption_add_texts(&caption, t->seen.said);
    const qkv_heatmap map = { .struct_size = sizeof map,
                              .n_rows = down->n_shown,
                              .n_cols = across->n_shown,
                              .weights = cells,
                              .row_labels = down->shown_names,
                              .col_labels = across->shown_names,
                              .row_axis = "target",
                              .col_axis = "source",
                              .title = title.text,
                              .caption = caption.text,
                              .theme = (qkv_theme)t->options->common.theme.value };
    const qkv_status status = picture_heatmap(&t->options->sink.picture, map, path, error);
    free(cells);
    return status;
}

/* ---------------------------------------------------------------------------------------------- */

qkv_status text_align(struct text_seen *t, qkv_error *error) {
    const struct attended *text = &t->text;
    const qkv_token_list targets = { text->session->target, text->pair.next },
                         sources = { text->session->tokenizer, text->input };
    struct alignment *a = t->alignment = calloc(1, sizeof *a);
    if (!a) return text_no_memory(error);
    a->words = calloc((size_t)targets.tokens->n + 1, sizeof *a->words);
    a->keys = calloc((size_t)text->input->n + 1, 1);
    a->heads = calloc((size_t)text->view.n_heads + 1, 1);
    if (!a->words || !a->keys || !a->heads) return text_no_memory(error);
    mark_keys(text->input, a->keys);
    qkv_status status = mark_heads(t, a, error);
    if (status == QKV_OK) status = words_make(&targets, &a->target, error);
    if (status == QKV_OK) status = words_make(&sources, &a->source, error);
    if (status != QKV_OK) return status;
    qkv_align_options options = qkv_align_options_init();
    options.layer = a->layer;
    options.sharpest = !t->seen.by_name;
    options.taken = &a->layer;
    options.heads = a->heads;
    options.row_words = a->target.of;
    options.key_words = a->source.of;
    options.keys = a->keys;
    a->table = calloc((size_t)(a->target.n * a->source.n) + 1, sizeof *a->table);
    if (!a->table) return text_no_memory(error);
    status = qkv_inspect_align(text->run, 0, &options, a->words, sizeof *a->words, a->table, error);
    snprintf(t->seen.content, sizeof t->seen.content, "align-%" PRId64, a->layer);
    t->seen.overview = OVERVIEW_WORDS;
    t->seen.draw = draw_alignment;
    return status;
}
