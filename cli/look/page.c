/* The page of `qkv look`: the chosen head first, then those with the sharpest queries. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look/page_table.h"

void look_tokens_free(struct look_tokens *tokens, int64_t n) {
    session_labels_free(tokens->texts, n);
    free(tokens->words);
}

qkv_status look_tokens_make(struct look_tokens *tokens, const qkv_token_list *list,
                            qkv_error *error) {
    const int64_t n = list->tokens->n;
    tokens->texts = calloc((size_t)n + 1, sizeof *tokens->texts);
    tokens->words = calloc((size_t)n + 1, sizeof *tokens->words);
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

qkv_status look_page_head(const struct look *look, int64_t index, float scale, qkv_page_head *head,
                          qkv_error *error) {
    qkv_head_view seen = qkv_head_view_init();
    const qkv_status status = qkv_heads_view(look->text.heads, index, &seen, error);
    if (status != QKV_OK) return status;
    *head =
        (qkv_page_head){ .q = seen.q,
                         .k = seen.k,
                         .lse = seen.lse,
                         .scale = seen.desc->scale != scale ? seen.desc->scale : 0,
                         .numbers = look_numbers(look, index),
                         .label = look_label(look, index),
                         .has_window = !look->arrays && seen.desc->flags & QKV_SET_WINDOW ? 1 : 0,
                         .window_left = seen.desc->window_left,
                         .window_right = seen.desc->window_right };
    look_place(look, index, &head->layer, &head->head);
    if (head->layer < 0) head->layer = 0;
    return QKV_OK;
}

qkv_status look_page_heads(const struct look *look, qkv_page_head *heads, float *scale,
                           qkv_error *error) {
    const int64_t n_all = look_n_heads(look), n = look->list ? look->n_list : n_all,
                  across = look_info(look)->n_heads;
    int64_t chosen = 0;
    qkv_head_view first_of_all = qkv_head_view_init();
    qkv_status status = qkv_heads_view(look->text.heads, 0, &first_of_all, error);
    if (status != QKV_OK) return status;
    *scale = first_of_all.desc->scale;
    for (int64_t i = 0; status == QKV_OK && i < n; i++) {
        const int64_t index = look->list ? look->list[i].layer * across + look->list[i].head : i;
        status = look_page_head(look, index, *scale, &heads[i], error);
    }
    if (status != QKV_OK || look->list || (look->arrays && look->given)) return status;
    const double *const numbers = look_numbers(look, look_chosen(look));
    qsort(heads, (size_t)n, sizeof *heads, by_confidence);
    while (heads[chosen].numbers != numbers) chosen++;
    const qkv_page_head first = heads[chosen];
    memmove(heads + 1, heads, (size_t)chosen * sizeof *heads);
    heads[0] = first;
    return QKV_OK;
}

/* Adds to a text of a fixed size; what does not fit is left out. */
static void add(char *text, size_t bytes, const char *before, const char *more) {
    const size_t used = strlen(text);
    if (used + strlen(before) + strlen(more) < bytes)
        memcpy(stpcpy(text + used, before), more, strlen(more) + 1);
}

/* So much of a text as has room, which ends with whole characters. */
static void add_cut(char *title, size_t bytes, const char *text) {
    const size_t used = strlen(title), room = bytes - used - 4; /* for "…" */
    size_t n = strlen(text);
    const bool cut = n > room;
    if (cut) n = room;
    while (cut && n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    memcpy(title + used, text, n);
    strcpy(title + used + n, cut ? "\u2026" : "");
}

/* The text, as the tokenizer makes it of its tokens; special ones that it added are left out. */
void look_page_title(const struct look *look, char title[LOOK_TITLE]) {
    const qkv_encoding *input = look->text.input;
    int32_t *ids = malloc((size_t)input->n * sizeof *ids + 1);
    qkv_text *text = NULL;
    qkv_error error;
    int64_t n = 0;
    for (int64_t i = 0; ids && i < input->n; i++)
        if (!input->special[i] || input->begin[i] != input->end[i]) ids[n++] = input->ids[i];
    if (ids &&
        qkv_tokenizer_decode(look->text.session->tokenizer, ids, n, 0, &text, &error) == QKV_OK) {
        const char *begin = text->bytes + strspn(text->bytes, " ");
        char *escaped = term_escape(begin, (size_t)(text->bytes + text->n - begin));
        if (escaped) add_cut(title, LOOK_TITLE, escaped);
        free(escaped);
    }
    qkv_text_free(text);
    free(ids);
    if (look->text.pair.next) add(title, LOOK_TITLE, " \u2192 ", look->text.pair.target);
}

static void put_best(const struct look *look, const struct predictions *predictions, int64_t m,
                     const char *before, char *line, size_t bytes) {
    const qkv_candidate *best = &predictions->candidates[m * predictions->top];
    char *word = session_token(look->text.session, best->id);
    text_append(line, bytes, "%s%s (%.2f)", before, word ? word : "", (double)best->probability);
    free(word);
}

static void add_predictions(const struct look *look, char *caption, size_t bytes) {
    const struct predictions *made = &look->predictions;
    char *mask = mask_name(look->text.session);
    for (int64_t m = 0; m < made->n_masks; m++) {
        char line[160] = "";
        if (made->is_next)
            text_append(line, sizeof line, "The model goes on");
        else
            text_append(line, sizeof line, "The model fills %.40s at place %" PRId64,
                        mask ? mask : "", made->positions[m]);
        put_best(look, made, m, " with ", line, sizeof line);
        if (look->before.n_masks > m)
            put_best(look, &look->before, m, ", unmodified ", line, sizeof line);
        text_append(line, sizeof line, ".");
        add(caption, bytes, " ", line);
    }
    free(mask);
}

static void make_caption(const struct look *look, char *caption, size_t bytes) {
    const qkv_model_info *info = look->text.session->info;
    int64_t n;
    const double perplexity = look_perplexity(look, &n);
    char line[200] = "";
    look_modified(look, caption, bytes);
    text_append(caption, bytes, "Model %s (%s), %s%" PRId64 " layer%s of %" PRId64 " heads.",
                info->source, info->architecture, look_attention(look), look->text.view.n_layers,
                look->text.view.n_layers == 1 ? "" : "s", look->text.view.n_heads);
    if (look->text.view.which == QKV_CROSS)
        add(caption, bytes, " ",
            "A query is a token that the decoder read \u2192 the one that it predicts.");
    if (look->text.view.which == QKV_DECODER)
        add(caption, bytes, " ",
            "Tokens are those that the decoder read; each predicts the next one.");
    add_predictions(look, caption, bytes);
    if (n > 0)
        text_append(line, sizeof line, "Perplexity of %s %.4g.",
                    look->text.pair.next ? "the target" : "the text", perplexity);
    if (n > 0) add(caption, bytes, " ", line);
}

void look_page_rules(const struct look *look, qkv_page *page, char modified[WHAT_IF_WORDS + 60]) {
    static const qkv_attention_desc causal = { .struct_size = sizeof causal,
                                               .flags = QKV_SET_CAUSAL };
    snprintf(modified, WHAT_IF_WORDS + 60, WHAT_IF_BADGE " (%s)", look->text.what_if.words);
    if (look->text.what_if.any) page->modified = modified;
    if (look->text.view.which != QKV_DECODER) page->dropped = look->text.what_if.dropped;
    if (look_info(look)->causal) page->rules = &causal;
    page->two_texts = look->text.view.which == QKV_CROSS;
    page->softcap = (double)look_info(look)->softcap;
}

qkv_page look_page_of(const struct look *look, const char *title, const char *caption) {
    return (qkv_page){ .struct_size = sizeof(qkv_page),
                       .n = look->n_cols,
                       .head_dim = look_info(look)->head_dim,
                       .query = look->choice.query,
                       .head_bytes = sizeof(qkv_page_head),
                       .run_bytes = sizeof(qkv_page_run),
                       .title = title,
                       .caption = caption,
                       .limit_bytes = LOOK_PAGE_BYTES,
                       .ctx = look->ctx };
}

qkv_status look_text_page(const struct look *look, qkv_page_head *heads, const char *path,
                          qkv_error *error) {
    const struct attention_view *view = &look->text.view;
    const qkv_page_run queries = { .tokens = (const char *const *)look->rows,
                                   .special = view->queries.tokens->special };
    char title[LOOK_TITLE] = "", caption[600 + WHAT_IF_WORDS] = "", modified[WHAT_IF_WORDS + 60];
    qkv_page page = look_page_of(look, title, caption);
    struct look_tokens keys = { NULL, NULL };
    struct page_effects effects = { .word = NULL };
    struct page_tables tables = { .n = 0 };
    qkv_page_table *put = NULL;
    qkv_status status = look_tokens_make(&keys, &view->keys, error);
    page.n_heads = look->list ? look->n_list : look->given ? 1 : look_n_heads(look);
    page.tokens = (const char *const *)keys.texts;
    page.words = keys.words;
    page.special = view->keys.tokens->special;
    page.segments = view->which == QKV_DECODER ? NULL : view->keys.tokens->types;
    if (view->which == QKV_CROSS) {
        page.n_queries = look->n_rows;
        page.queries = &queries;
    }
    if (*look->text.session->hint) page.hint = look->text.session->hint;
    look_page_rules(look, &page, modified);
    look_page_title(look, title);
    make_caption(look, caption, sizeof caption);
    if (status == QKV_OK) status = look_page_heads(look, heads, &page.scale, error);
    if (status == QKV_OK && look->options->lens) status = page_lens(look, &page, &tables, error);
    if (status == QKV_OK) status = look_page_effects(look, &page, heads, &effects, &tables, error);
    if (status == QKV_OK && !(put = page_tables_put(&tables, &page, error)))
        status = QKV_ERR_MEMORY;
    if (status == QKV_OK) status = look_page_write(look, &page, heads, path, error);
    free(put);
    page_tables_free(&tables);
    free(effects.word);
    look_tokens_free(&keys, look->n_cols);
    return status;
}
