/* The page of a text: its title and caption, its tokens, rules of its attention, and its heads. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look/text.h"
#include "sinks/page.h"

/* Adds to a text of a fixed size; what does not fit is left out. */
static void add(char *text, size_t bytes, const char *before, const char *more) {
    const size_t used = strlen(text), n = strlen(before);
    if (used + n + strlen(more) >= bytes) return;
    memcpy(text + used, before, n);
    memcpy(text + used + n, more, strlen(more) + 1);
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

/* As the tokenizer makes it of its tokens; special ones that it added are left out. */
void text_page_title(const struct text_seen *t, struct page *page) {
    const qkv_encoding *input = t->text.input;
    int32_t *ids = malloc((size_t)input->n * sizeof *ids + 1);
    qkv_text *text = NULL;
    qkv_error error;
    int64_t n = 0;
    for (int64_t i = 0; ids && i < input->n; i++)
        if (!input->special[i] || input->begin[i] != input->end[i]) ids[n++] = input->ids[i];
    if (ids &&
        qkv_tokenizer_decode(t->text.session->tokenizer, ids, n, 0, &text, &error) == QKV_OK) {
        const char *begin = text->bytes + strspn(text->bytes, " ");
        char *escaped = term_escape(begin, (size_t)(text->bytes + text->n - begin));
        if (escaped) add_cut(page->title.text, PAGE_TITLE, escaped);
        free(escaped);
    }
    qkv_text_free(text);
    free(ids);
    if (t->text.pair.next) add(page->title.text, PAGE_TITLE, " \u2192 ", t->text.pair.target);
}

static void put_best(const struct text_seen *t, const struct predictions *predictions, int64_t m,
                     const char *before, char *line, size_t bytes) {
    const qkv_candidate *best = &predictions->candidates[m * predictions->top];
    char *word = session_token(t->text.session, best->id);
    text_append(line, bytes, "%s%s (%.2f)", before, word ? word : "", (double)best->probability);
    free(word);
}

static void add_predictions(const struct text_seen *t, char *caption) {
    const struct predictions *made = &t->predictions;
    char *mask = mask_name(t->text.session);
    for (int64_t m = 0; m < made->n_masks; m++) {
        char line[160] = "";
        if (made->is_next)
            text_append(line, sizeof line, "The model goes on");
        else
            text_append(line, sizeof line, "The model fills %.40s at place %" PRId64,
                        mask ? mask : "", made->positions[m]);
        put_best(t, made, m, " with ", line, sizeof line);
        if (t->before.n_masks > m) put_best(t, &t->before, m, ", unmodified ", line, sizeof line);
        text_append(line, sizeof line, ".");
        add(caption, PAGE_CAPTION, " ", line);
    }
    free(mask);
}

static void add_caption(const struct text_seen *t, struct page *page) {
    const qkv_model_info *info = t->text.session->info;
    const struct attention_view *const view = &t->text.view;
    char *const caption = page->caption.text;
    int64_t n;
    const double perplexity = text_perplexity(t, &n);
    char line[200] = "";
    what_if_caption(&t->text.what_if, &page->caption);
    text_append(caption, PAGE_CAPTION, "Model %s (%s), %s%" PRId64 " layer%s of %" PRId64 " heads.",
                info->source, info->architecture, attention_words(t->text.session, view->which),
                view->n_layers, view->n_layers == 1 ? "" : "s", view->n_heads);
    if (view->which == QKV_CROSS)
        add(caption, PAGE_CAPTION, " ",
            "A query is a token that the decoder read \u2192 the one that it predicts.");
    if (view->which == QKV_DECODER)
        add(caption, PAGE_CAPTION, " ",
            "Tokens are those that the decoder read; each predicts the next one.");
    add_predictions(t, caption);
    if (n > 0)
        text_append(line, sizeof line, "Perplexity of %s %.4g.",
                    t->text.pair.next ? "the target" : "the text", perplexity);
    if (n > 0) add(caption, PAGE_CAPTION, " ", line);
}

void text_page_rules(const struct text_seen *t, struct page *page) {
    qkv_page *const p = &page->desc;
    page_rules(page, &t->seen, &t->text.what_if);
    if (t->text.view.which == QKV_DECODER) p->dropped = NULL; /* it drops tokens of the source */
    p->two_texts = t->text.view.which == QKV_CROSS;
    p->softcap = (double)t->seen.info->softcap;
}

static qkv_status add_tokens(const struct text_seen *t, struct page *page, qkv_error *error) {
    const struct attention_view *view = &t->text.view;
    qkv_page *const p = &page->desc;
    struct page_tokens keys;
    qkv_page_text *const queries = page_room(page, 1, sizeof *queries);
    const qkv_status status =
        queries ? page_tokens(page, &view->keys, &keys, error) : text_no_memory(error);
    if (status != QKV_OK) return status;
    p->tokens = (const char *const *)keys.texts;
    p->words = keys.words;
    p->special = view->keys.tokens->special;
    p->segments = view->which == QKV_DECODER ? NULL : view->keys.tokens->types;
    if (view->which != QKV_CROSS) return QKV_OK;
    queries->tokens = (const char *const *)t->seen.queries.names;
    queries->special = view->queries.tokens->special;
    p->n_queries = t->seen.queries.n;
    p->queries = queries;
    return QKV_OK;
}

qkv_status text_make_page(const struct seen *seen, struct page *page, qkv_error *error) {
    const struct text_seen *const t = text_of(seen);
    qkv_status status = add_tokens(t, page, error);
    if (*t->text.session->hint) page->desc.hint = t->text.session->hint;
    text_page_rules(t, page);
    text_page_title(t, page);
    add_caption(t, page);
    if (status == QKV_OK) status = page_heads(page, seen, seen->head, 0, error);
    if (status == QKV_OK && t->options->lens) status = text_lens(t, page, error);
    return status == QKV_OK ? text_effects(t, page, error) : status;
}
