/**
 * Text to tokens: the template around a text, added tokens, and the stretches between these, which
 * the kind of the tokenizer encodes.
 *
 * The order is that of the reference: added tokens that are not normalised are found in the raw
 * bytes, the longest one first; each stretch between two of them is normalised by itself, then
 * searched for the added tokens that are normalised.
 */
#include "files/base.h"
#include "files/utf8.h"
#include "text/tokenizer.h"

/* ---- Tokens ---------------------------------------------------------------------------------- */

static qkv_status push(qkvi_tokens *list, qkvi_token token) {
    QKV_TRY(qkvi_reserve(&list->tokens, &list->capacity, (size_t)list->n + 1, sizeof token));
    list->tokens[list->n++] = token;
    return QKV_OK;
}

qkv_status qkvi_tokens_push(qkvi_tokens *list, int32_t id, uint32_t begin, uint32_t end) {
    return push(list, (qkvi_token){ id, list->type, 0, begin, end });
}

qkv_status qkvi_tokens_push_special(qkvi_tokens *list, int32_t id, uint32_t begin, uint32_t end) {
    return push(list, (qkvi_token){ id, list->type, 1, begin, end });
}

qkv_status qkvi_tokens_encoding(const qkvi_tokens *list, qkv_encoding **encoding) {
    qkv_encoding *out = calloc(1, sizeof *out);
    if (out == NULL) return QKV_ERR_MEMORY;
    const size_t n = (size_t)list->n;
    out->n = list->n;
    out->ids = qkvi_malloc_array(n, sizeof *out->ids);
    out->types = qkvi_malloc_array(n, sizeof *out->types);
    out->special = qkvi_malloc_array(n, sizeof *out->special);
    out->begin = qkvi_malloc_array(n, sizeof *out->begin);
    out->end = qkvi_malloc_array(n, sizeof *out->end);
    if (!out->ids || !out->types || !out->special || !out->begin || !out->end) {
        qkv_encoding_free(out);
        return QKV_ERR_MEMORY;
    }
    for (size_t i = 0; i < n; i++) {
        out->ids[i] = list->tokens[i].id;
        out->types[i] = list->tokens[i].type;
        out->special[i] = list->tokens[i].special;
        out->begin[i] = list->tokens[i].begin;
        out->end[i] = list->tokens[i].end;
    }
    *encoding = out;
    return QKV_OK;
}

void qkv_encoding_free(qkv_encoding *encoding) {
    if (encoding == NULL) return;
    free(encoding->ids);
    free(encoding->types);
    free(encoding->special);
    free(encoding->begin);
    free(encoding->end);
    if (encoding->image) {
        free((void *)(uintptr_t)encoding->image->pixels);
        free((void *)(uintptr_t)encoding->image->rgb);
    }
    free(encoding->image);
    free(encoding);
}

/* to [n] of `bytes` each: from [n_from], then `value` in each further element. */
static void *padded(const void *from, int64_t n_from, int64_t n, size_t bytes, const void *value) {
    char *const to = qkvi_malloc_array((size_t)n, bytes);
    if (!to) return NULL;
    if (n_from > 0) memcpy(to, from, (size_t)n_from * bytes);
    for (int64_t i = n_from; i < n; i++) memcpy(to + (size_t)i * bytes, value, bytes);
    return to;
}

qkv_status qkvi_encoding_pad(qkv_encoding *e, int64_t n, int32_t pad, qkv_error *error) {
    static const uint8_t none = 0, is_special = 1;
    const int64_t end = e->n > 0 && e->end ? e->end[e->n - 1] : 0;
    if (e->n >= n) return QKV_OK;
    qkv_encoding made = {
        .ids = padded(e->ids, e->n, n, sizeof pad, &pad),
        .types = e->types ? padded(e->types, e->n, n, 1, &none) : NULL,
        .special = e->special ? padded(e->special, e->n, n, 1, &is_special) : NULL,
        .begin = e->begin ? padded(e->begin, e->n, n, sizeof end, &end) : NULL,
        .end = e->end ? padded(e->end, e->n, n, sizeof end, &end) : NULL,
    };
    const int is_made = made.ids && !made.types == !e->types && !made.special == !e->special &&
                        !made.begin == !e->begin && !made.end == !e->end;
    qkv_encoding *const left = is_made ? e : &made; /* whose arrays are freed */
    free(left->ids);
    free(left->types);
    free(left->special);
    free(left->begin);
    free(left->end);
    if (!is_made) return qkvi_no_memory(error, "padding");
    e->ids = made.ids, e->types = made.types, e->special = made.special;
    e->begin = made.begin, e->end = made.end, e->n = n;
    return QKV_OK;
}

/* An encoding being made. */
struct encoder {
    const qkv_tokenizer *tokenizer;
    void *work; /* of the kind */
    qkvi_tokens list;
    qkvi_normal_text normal; /* a stretch, where added tokens are looked for in such text */
};

static qkv_status push_added(struct encoder *e, const char *text, qkvi_added_match match) {
    const qkv_tokenizer *tokenizer = e->tokenizer;
    const int is_special = tokenizer->added.flags[match.id] & QKVI_ADDED_SPECIAL;
    if (tokenizer->trim_offsets) qkvi_added_trim(text, tokenizer->trim_keeps_first, &match);
    return (is_special ? qkvi_tokens_push_special : qkvi_tokens_push)(&e->list, match.id,
                                                                      match.begin, match.end);
}

/* The raw bytes of characters [first … last), behind those of the token before. */
static qkvi_added_match raw_bytes(const qkvi_normal_text *normal, int32_t id, size_t first,
                                  size_t last, uint32_t floor) {
    qkvi_added_match match = { id, UINT32_MAX, floor };
    for (size_t i = first; i < last; i++) {
        const qkvi_word_char from = normal->chars[i];
        if (from.begin < match.begin) match.begin = from.begin;
        if (from.end > match.end) match.end = from.end;
    }
    if (match.begin < floor) match.begin = floor;
    if (match.begin > match.end) match.begin = match.end;
    return match;
}

/* Where the character at a place of the normalised text is, or its end; from is not behind it. */
static size_t char_at(const qkvi_normal_text *normal, size_t from, uint32_t place) {
    while (from < normal->n_chars && normal->chars[from].offset < place) from++;
    return from;
}

/* The second pass over a stretch that is normalised: its tokens are found in what it becomes. */
static qkv_status push_normal(struct encoder *e, const char *text, uint32_t begin, uint32_t end) {
    const qkvi_tokenizer_kind *kind = e->tokenizer->kind;
    qkvi_normal_text *const normal = &e->normal;
    QKV_TRY(kind->normalize(e->work, text, begin, end, normal));
    qkvi_added_walk walk = { normal->bytes.bytes, 0, (uint32_t)normal->bytes.n, 0, 0 };
    qkvi_added_match match;
    size_t from = 0;
    while (qkvi_added_next(&e->tokenizer->added, 1, &walk, &match)) {
        const size_t first = char_at(normal, from, match.begin);
        const size_t last = char_at(normal, first, match.end);
        QKV_TRY(kind->encode_normal(e->work, normal, from, first));
        match = raw_bytes(normal, match.id, first, last, begin);
        QKV_TRY(push_added(e, text, match));
        begin = match.end;
        from = last;
    }
    return kind->encode_normal(e->work, normal, from, normal->n_chars);
}

/*
 * 1 if a stretch must be normalised before the tokens of the second pass are looked for, or at all.
 */
static int has_two_steps(const qkv_tokenizer *tokenizer, const char *text, uint32_t begin,
                         uint32_t end) {
    const qkvi_tokenizer_kind *const kind = tokenizer->kind;
    if (!tokenizer->normalizes) return 0;
    if (kind->encode_normalizes && tokenizer->added.passes[1].patterns.n_sorted == 0) return 0;
    return !(kind->is_normal && kind->is_normal(tokenizer, text, begin, end));
}

/* Pass by pass; what no added token takes is the kind's. */
static qkv_status push_text(struct encoder *e, int pass, const char *text, uint32_t begin,
                            uint32_t end) {
    const qkv_tokenizer *tokenizer = e->tokenizer;
    if (begin == end) return QKV_OK;
    if (pass == QKVI_ADDED_PASSES) return tokenizer->kind->encode(e->work, text, begin, end);
    if (pass == 1 && has_two_steps(tokenizer, text, begin, end))
        return push_normal(e, text, begin, end);
    qkvi_added_walk walk = { text, begin, end, begin, begin };
    qkvi_added_match match;
    for (uint32_t from = begin; qkvi_added_next(&tokenizer->added, pass, &walk, &match);
         from = walk.from) {
        QKV_TRY(push_text(e, pass + 1, text, from, match.begin));
        QKV_TRY(push_added(e, text, match));
    }
    return push_text(e, pass + 1, text, walk.from, end);
}

static qkv_status push_template(struct encoder *e, const qkvi_template *template,
                                const char *const texts[2], const size_t bytes[2]) {
    uint32_t at = 0;   /* where an inserted token stands */
    int64_t first = 0; /* token of the text before it */
    for (int i = 0; i < template->n; i++) {
        const qkvi_template_item item = template->items[i];
        const bool is_there = e->tokenizer->ends_once && e->list.n > first &&
                              e->list.tokens[e->list.n - 1].id == item.id;
        e->list.type = e->tokenizer->has_types ? item.type : 0;
        if (item.id >= 0 && is_there) continue;
        if (item.id >= 0) {
            QKV_TRY(qkvi_tokens_push_special(&e->list, item.id, at, at));
        } else {
            const int which = item.id == QKVI_TEMPLATE_PAIR;
            first = e->list.n;
            at = (uint32_t)bytes[which];
            QKV_TRY(push_text(e, 0, texts[which], 0, at));
        }
    }
    return QKV_OK;
}

static qkv_status check_text(const char *name, const char *text, size_t bytes, qkv_error *error) {
    if (text == NULL && bytes > 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL but has %zu bytes", name, bytes);
    if (bytes > UINT32_MAX)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s has %zu bytes, the limit is %u", name,
                              bytes, UINT32_MAX);
    const size_t valid = qkvi_utf8_valid(text, bytes);
    if (valid < bytes)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s is not valid UTF-8 at byte %zu", name,
                              valid);
    return QKV_OK;
}

static qkv_status encode(const qkv_tokenizer *tokenizer, const qkvi_template *around,
                         const char *const texts[2], const size_t bytes[2], qkv_encoding **encoding,
                         qkv_error *error) {
    struct encoder e = { .tokenizer = tokenizer };
    e.work = tokenizer->kind->start(tokenizer, &e.list);
    qkv_status status = QKV_ERR_MEMORY;
    if (e.work) status = push_template(&e, around, texts, bytes);
    if (status == QKV_OK) status = qkvi_tokens_encoding(&e.list, encoding);
    tokenizer->kind->finish(e.work);
    free(e.list.tokens);
    qkvi_normal_text_free(&e.normal);
    if (status == QKV_ERR_MEMORY)
        return qkvi_error_set(error, status, "no memory for the tokens of %zu bytes",
                              bytes[0] + bytes[1]);
    return status;
}

qkv_status qkv_tokenizer_encode(const qkv_tokenizer *tokenizer, const char *text, size_t text_bytes,
                                const char *pair, size_t pair_bytes, qkv_encoding **encoding,
                                qkv_error *error) {
    if (encoding == NULL || tokenizer == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              encoding ? "tokenizer" : "encoding");
    *encoding = NULL;
    QKV_TRY(check_text("text", text, text_bytes, error));
    QKV_TRY(check_text("pair", pair, pair_bytes, error));
    return encode(tokenizer, pair ? &tokenizer->pair : &tokenizer->single,
                  (const char *[]){ text, pair }, (size_t[]){ text_bytes, pair_bytes }, encoding,
                  error);
}

qkv_status qkvi_tokenizer_encode_bare(const qkv_tokenizer *tokenizer, const char *text,
                                      size_t text_bytes, qkv_encoding **encoding,
                                      qkv_error *error) {
    QKV_TRY(check_text("text", text, text_bytes, error));
    return encode(tokenizer, &qkvi_bare_single, (const char *[]){ text, NULL },
                  (size_t[]){ text_bytes, 0 }, encoding, error);
}

/* ---- Cutting --------------------------------------------------------------------------------- */

/*
 * Cutting an encoding: see qkv/tokenizer.h. Time is linear in the tokens, so that a line of a
 * megabyte is cut as easily as a word.
 *
 * Of texts that have become as long, the one that was the shorter loses the next token, the first
 * if they were as long from the beginning (PyPI tokenizers, utils/truncation.rs, LongestFirst).
 *
 * The tokens of a text stand together. They end at an inserted token (special, of no bytes), where
 * the type changes, or where the bytes begin anew: two texts may have nothing between them.
 */

static void remove_tokens(qkv_encoding *encoding, int64_t at, int64_t count) {
    const size_t tail = (size_t)(encoding->n - at - count);
    memmove(encoding->ids + at, encoding->ids + at + count, tail * sizeof *encoding->ids);
    memmove(encoding->types + at, encoding->types + at + count, tail * sizeof *encoding->types);
    memmove(encoding->special + at, encoding->special + at + count,
            tail * sizeof *encoding->special);
    memmove(encoding->begin + at, encoding->begin + at + count, tail * sizeof *encoding->begin);
    memmove(encoding->end + at, encoding->end + at + count, tail * sizeof *encoding->end);
    encoding->n -= count;
}

static int is_inserted(const qkv_encoding *encoding, int64_t i) {
    return encoding->special[i] && encoding->begin[i] == encoding->end[i];
}

struct span {
    int64_t begin, length;
};

/* The next text at or behind a token; of length 0 if there is none. */
static struct span next_text(const qkv_encoding *encoding, int64_t at) {
    while (at < encoding->n && is_inserted(encoding, at)) at++;
    int64_t end = at < encoding->n ? at + 1 : at;
    while (end < encoding->n && !is_inserted(encoding, end) &&
           encoding->types[end] == encoding->types[at] &&
           encoding->begin[end] >= encoding->end[end - 1])
        end++;
    return (struct span){ at, end - at };
}

int64_t qkvi_encoding_second(const qkv_encoding *encoding) {
    const struct span first = next_text(encoding, 0);
    const struct span second = next_text(encoding, first.begin + first.length);
    return second.length > 0 ? second.begin : encoding->n;
}

/* Keeps `kept` tokens of a text. */
static void cut_span(qkv_encoding *encoding, struct span span, int64_t kept, int from_left) {
    const int64_t at = span.begin + (from_left ? 0 : kept);
    if (kept < span.length) remove_tokens(encoding, at, span.length - kept);
}

static void cut(qkv_encoding *encoding, int64_t max_len, int from_left) {
    if (!encoding || !encoding->ids || !encoding->types || !encoding->special || !encoding->begin ||
        !encoding->end)
        return;
    const int64_t excess = encoding->n - max_len;
    const struct span first = next_text(encoding, 0);
    const struct span second = next_text(encoding, first.begin + first.length);
    const int tie_takes_a = first.length <= second.length;
    int64_t a = first.length, b = second.length;
    for (int64_t i = 0; i < excess && a + b > 0; i++) {
        if (a > b || (a == b && tie_takes_a))
            a--;
        else
            b--;
    }
    cut_span(encoding, second, b, from_left);
    cut_span(encoding, first, a, from_left);
}

void qkv_tokenizer_cut(const qkv_tokenizer *tokenizer, qkv_encoding *encoding, int64_t max_len) {
    cut(encoding, max_len, tokenizer && tokenizer->cuts_left);
}
