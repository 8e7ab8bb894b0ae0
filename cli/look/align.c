/*
 * `qkv look SOURCE --target TEXT --align`: for each word of the target the word of the source that the
 * rows that write it look at most (qkv_inspect_align). Layer and heads are the named ones, else all heads of the
 * layer whose words look most sharply. Special tokens of the source are not aligned to.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look/look.h"

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

/* words: of each token; names of n words, and which are special. */
static qkv_status name_words(const qkv_token_list *list, const int32_t *words, char **names,
                             uint8_t *special, qkv_error *error) {
    const int64_t n = list->tokens->n;
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && words[end] == words[i]; end++) {
        }
        if (special) special[words[i]] = list->tokens->special[i];
        const qkv_status status = name_word(list, i, end, &names[words[i]], error);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

/* ---- Alignment ------------------------------------------------------------------------------- */

/* Per token, for the call. */
struct token_marks {
    int32_t *target_words, *source_words;
    uint8_t *keys, *heads;
};

static bool marks_make(const struct look *look, struct token_marks *marks) {
    const size_t n = (size_t)look->text.pair.next->n, n_keys = (size_t)look->text.input->n;
    marks->target_words = calloc(n + 1, sizeof(int32_t));
    marks->source_words = calloc(n_keys + 1, sizeof(int32_t));
    marks->keys = calloc(n_keys + 1, 1);
    marks->heads = calloc((size_t)look->text.view.n_heads + 1, 1);
    return marks->target_words && marks->source_words && marks->keys && marks->heads;
}

static void marks_free(struct token_marks *marks) {
    free(marks->target_words);
    free(marks->source_words);
    free(marks->keys);
    free(marks->heads);
}

/* Layer and heads: those that were named, else all heads of the layer that looks most sharply. */
static qkv_status mark_heads(const struct look *look, struct token_marks *marks,
                             struct look_alignment *a, qkv_error *error) {
    const int64_t n_heads = look->text.view.n_heads;
    a->layer = look->choice.layer;
    for (int64_t h = 0; h < n_heads; h++)
        marks->heads[h] = !look->given || (!look->list && h == look->choice.head);
    for (int i = 0; i < look->n_list; i++) {
        if (look->list[i].layer != a->layer)
            return text_error(error, QKV_ERR_ARGUMENT,
                              "--align averages heads of one layer, not of %" PRId64
                              " and %" PRId64,
                              a->layer, look->list[i].layer);
        marks->heads[look->list[i].head] = 1;
    }
    for (int64_t h = 0; h < n_heads; h++) a->n_heads += marks->heads[h];
    return QKV_OK;
}

static void mark_keys(const qkv_encoding *source, uint8_t *keys) {
    int64_t n_ordinary = 0;
    for (int64_t j = 0; j < source->n; j++) n_ordinary += !source->special[j];
    for (int64_t j = 0; j < source->n; j++) keys[j] = n_ordinary == 0 || !source->special[j];
}

static qkv_status align(const struct look *look, struct token_marks *marks,
                        struct look_alignment *a, qkv_error *error) {
    const qkv_token_list targets = { look->text.session->target, look->text.pair.next },
                         sources = { look->text.session->tokenizer, look->text.input };
    a->n = qkv_inspect_words(targets.tokenizer, targets.tokens, marks->target_words);
    a->n_sources = qkv_inspect_words(sources.tokenizer, sources.tokens, marks->source_words);
    a->words = calloc((size_t)a->n + 1, sizeof *a->words);
    a->targets = calloc((size_t)a->n + 1, sizeof(char *));
    a->sources = calloc((size_t)a->n_sources + 1, sizeof(char *));
    a->special = calloc((size_t)a->n + 1, 1);
    if (!a->words || !a->targets || !a->sources || !a->special) return text_no_memory(error);
    mark_keys(sources.tokens, marks->keys);
    qkv_align_options options = qkv_align_options_init();
    qkv_status status = mark_heads(look, marks, a, error);
    if (status == QKV_OK)
        status = name_words(&targets, marks->target_words, a->targets, a->special, error);
    if (status == QKV_OK)
        status = name_words(&sources, marks->source_words, a->sources, NULL, error);
    if (status != QKV_OK) return status;
    options.layer = a->layer;
    options.sharpest = !look->given;
    options.taken = &a->layer;
    options.heads = marks->heads;
    options.row_words = marks->target_words;
    options.key_words = marks->source_words;
    options.keys = marks->keys;
    return qkv_inspect_align(look->text.run, 0, &options, a->words, sizeof *a->words, NULL, error);
}

qkv_status look_align(struct look *look, qkv_error *error) {
    struct token_marks marks = { 0 };
    look->alignment = calloc(1, sizeof *look->alignment);
    const qkv_status status = marks_make(look, &marks) && look->alignment
                                  ? align(look, &marks, look->alignment, error)
                                  : text_no_memory(error);
    marks_free(&marks);
    return status;
}

void look_align_free(struct look_alignment *alignment) {
    if (!alignment) return;
    session_labels_free(alignment->targets, alignment->n);
    session_labels_free(alignment->sources, alignment->n_sources);
    free(alignment->words);
    free(alignment->special);
    free(alignment);
}

/* ---- Showing it ------------------------------------------------------------------------------ */

static void print_word(const struct look_alignment *a, int64_t i, struct term *term) {
    const qkv_aligned *word = &a->words[i];
    int bar = term->width - 50;
    if (bar > 40) bar = 40;
    fputs("  ", term->out);
    term_put(term, a->targets[i], 18, false);
    fputs("  ", term->out);
    term_put(term, word->key_word < 0 ? "" : a->sources[word->key_word], 18, false);
    fprintf(term->out, " %.4f ", word->weight);
    if (bar > 0) term_bar(term, word->weight, bar);
    term_newline(term);
}

void look_align_print(const struct look *look, struct term *term) {
    const struct look_alignment *a = look->alignment;
    char text[500];
    term_styled(term, STYLE_BOLD, "Alignment");
    term_newline(term);
    for (int64_t i = 0; i < a->n; i++)
        if (!a->special[i]) print_word(a, i, term);
    snprintf(
        text, sizeof text,
        "Each word of the target, and the word of the source that it looks at most while it is "
        "written: weights of layer %" PRId64 "%s, mean over %" PRId64
        " head%s and the pieces of the target's word, sum over those of the source's. It is "
        "attention, and proves no translation.",
        a->layer,
        look->given ? "" : " (of all layers the one whose words look most sharply, by their mean)",
        a->n_heads, a->n_heads == 1 ? "" : "s");
    term_wrap_styled(term, STYLE_DIM, text);
    term_newline(term);
}

json_t *look_align_json(const struct look *look) {
    const struct look_alignment *a = look->alignment;
    json_t *words = json_array();
    for (int64_t i = 0; i < a->n; i++) {
        const qkv_aligned *word = &a->words[i];
        if (a->special[i]) continue;
        json_t *source = word->key_word < 0 ? json_null() : json_text(a->sources[word->key_word]);
        json_array_append_new(words,
                              json_pack("{s:o, s:o, s:I, s:o}", "target", json_text(a->targets[i]),
                                        "source", source, "source_word", (json_int_t)word->key_word,
                                        "weight", json_number(word->weight)));
    }
    return json_pack("{s:I, s:I, s:o}", "layer", (json_int_t)a->layer, "n_heads",
                     (json_int_t)a->n_heads, "words", words);
}
