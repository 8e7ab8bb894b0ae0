/*
 * The vocabulary and the merges of BPE: those of a tokenizer.json, or of
 *
 *     vocab.json    {"token": id, …}
 *     merges.txt    a line "a b" for each merge; lines that begin with "#version" are skipped
 *
 * A merge of a tokenizer.json is "a b" or ["a", "b"]. a, b and ab must be in the vocabulary, as in
 * the reference.
 */
#include "files/utf8.h"
#include "text/bpe.h"
#include "text/tokenizer_json.h"

/* ---- model.merges ---------------------------------------------------------------------------- */

/* "a b" or ["a", "b"]: its two parts; 0 if it is neither. */
static int parts_of(const json_t *merge, const char *parts[2], size_t n[2]) {
    if (json_is_string(merge)) {
        const char *text = json_string_value(merge), *space = strchr(text, ' ');
        if (space == NULL || strchr(space + 1, ' ')) return 0;
        parts[0] = text;
        n[0] = (size_t)(space - text);
        parts[1] = space + 1;
        n[1] = strlen(space + 1);
        return 1;
    }
    if (json_array_size(merge) != 2) return 0;
    for (size_t i = 0; i < 2; i++) {
        parts[i] = json_string_value(json_array_get(merge, i));
        if (parts[i] == NULL) return 0;
        n[i] = strlen(parts[i]);
    }
    return 1;
}

static qkv_status merge_failed(const qkvi_tokenizer_reader *r, size_t i) {
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT,
                               "model.merges[%zu] is neither \"a b\" nor [\"a\", \"b\"]", i);
}

/* The list among the values of jansson. */
static qkv_status add_values(const qkvi_tokenizer_reader *r, const json_t *merges) {
    char place[64];
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const char *parts[2];
        size_t n[2];
        if (!parts_of(json_array_get(merges, i), parts, n)) return merge_failed(r, i);
        snprintf(place, sizeof place, "model.merges[%zu]", i);
        QKV_TRY(qkvi_bpe_add_merge(r->tokenizer, r->name, place, parts, n, r->error));
    }
    return QKV_OK;
}

/*
 * A merge by its bytes, the same. Room for a token that is too long by one byte: no vocabulary has
 * it.
 */
struct merge {
    char bytes[2][QKVI_PIECE_MAX_BYTES + 1], line[2 * QKVI_PIECE_MAX_BYTES + 2];
    const char *parts[2];
    size_t n[2];
};

static int is_line(struct merge *m, size_t n) {
    const size_t kept = n < sizeof m->line ? n : sizeof m->line;
    const char *const space = memchr(m->line, ' ', kept);
    if (space == NULL || n > kept) return 0;
    const size_t first = (size_t)(space - m->line);
    m->parts[0] = m->line;
    m->n[0] = first;
    m->parts[1] = space + 1;
    m->n[1] = n - first - 1;
    return memchr(space + 1, ' ', m->n[1]) == NULL;
}

/* -1: not JSON; 0: neither of the two forms. */
static int take_merge(qkvi_json_cursor *c, struct merge *m) {
    size_t n = 0;
    if (qkvi_json_peek(c) == '"')
        return qkvi_json_take_text(c, m->line, sizeof m->line, &n) ? is_line(m, n) : -1;
    if (!qkvi_json_take_mark(c, '[')) return 0;
    for (int i = 0; i < 2; i++) {
        if (i > 0 && !qkvi_json_take_mark(c, ',')) return 0;
        if (qkvi_json_peek(c) != '"') return 0;
        if (!qkvi_json_take_text(c, m->bytes[i], sizeof m->bytes[i], &m->n[i])) return -1;
        m->parts[i] = m->bytes[i];
        if (m->n[i] > sizeof m->bytes[i]) m->n[i] = sizeof m->bytes[i];
    }
    return qkvi_json_take_mark(c, ']');
}

static qkv_status walk_merges(const qkvi_tokenizer_reader *r, qkvi_json_span list) {
    qkvi_json_cursor c = { r->words->text, list.begin, list.end };
    struct merge m;
    char place[64];
    int more = qkvi_json_take_mark(&c, '[') && qkvi_json_peek(&c) != ']';
    for (size_t i = 0; more; i++) {
        const int taken = take_merge(&c, &m);
        if (taken < 0) return qkvi_tokenizer_broken(r, "model.merges", &c);
        if (taken == 0) return merge_failed(r, i);
        snprintf(place, sizeof place, "model.merges[%zu]", i);
        QKV_TRY(qkvi_bpe_add_merge(r->tokenizer, r->name, place, m.parts, m.n, r->error));
        more = qkvi_json_take_mark(&c, ',');
    }
    if (qkvi_json_take_mark(&c, ']') && c.at == list.end) return QKV_OK;
    return qkvi_tokenizer_broken(r, "model.merges", &c);
}

qkv_status qkvi_bpe_read_merges(const qkvi_tokenizer_reader *r, const json_t *model) {
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "model", model);
    const json_t *merges = NULL;
    QKV_TRY(qkvi_json_take_array(&inner, "merges", &merges));
    if (merges == NULL) return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "model.merges is missing");
    if (r->words && r->words->merges.end > 0)
        QKV_TRY(walk_merges(r, r->words->merges));
    else
        QKV_TRY(add_values(r, merges));
    return qkvi_bpe_end_merges(r->tokenizer, r->name, r->error);
}

/* ---- vocab.json and merges.txt --------------------------------------------------------------- */

static const qkvi_json_limits vocab_limits = {
    .max_bytes = (size_t)16 << 20, .max_values = 600000, .max_containers = 2, .max_depth = 2
};

struct reading {
    const qkvi_text_files *files;
    qkv_tokenizer *tokenizer;
    qkv_error *error;
};

static qkv_status read_vocab(const struct reading *r) {
    const qkvi_text_file *file = &r->files->vocab;
    const qkvi_tokenizer_reader reader = { file->name, NULL, r->tokenizer, r->error, 0, NULL };
    json_t *root = NULL;
    QKV_TRY(qkvi_json_load(file->name, file->bytes, file->n_bytes, &vocab_limits, &root, r->error));
    qkv_status status = qkvi_tokenizer_read_ids(&reader, "the vocabulary", root);
    json_decref(root);
    if (status == QKV_OK) status = qkvi_tokenizer_seal_model(r->tokenizer, r->error);
    return status;
}

static qkv_status line_failed(const struct reading *r, int64_t line, qkv_status status,
                              const char *rule) {
    return qkvi_error_set(r->error, status, "%s: line %lld %s", r->files->merges.name,
                          (long long)line, rule);
}

static qkv_status read_line(const struct reading *r, int64_t number, const char *line, size_t n) {
    char place[32];
    if (n > 2 * QKVI_PIECE_MAX_BYTES + 1)
        return line_failed(r, number, QKV_ERR_LIMIT, "is longer than two tokens may be");
    if (qkvi_utf8_valid(line, n) < n)
        return line_failed(r, number, QKV_ERR_FORMAT, "is not valid UTF-8");
    if (number == 1 && n >= 3 && memcmp(line, "\xEF\xBB\xBF", 3) == 0)
        return line_failed(r, number, QKV_ERR_FORMAT, "starts with a byte order mark");
    if (n >= 8 && memcmp(line, "#version", 8) == 0) return QKV_OK;
    const char *space = n > 0 ? memchr(line, ' ', n) : NULL;
    const char *rest = space ? space + 1 : NULL;
    if (rest == NULL || memchr(rest, ' ', (size_t)(line + n - rest)))
        return line_failed(r, number, QKV_ERR_FORMAT, "is not two tokens with a space between");
    snprintf(place, sizeof place, "line %lld", (long long)number);
    const char *const parts[2] = { line, rest };
    const size_t lengths[2] = { (size_t)(space - line), (size_t)(line + n - rest) };
    return qkvi_bpe_add_merge(r->tokenizer, r->files->merges.name, place, parts, lengths, r->error);
}

static qkv_status read_merges(const struct reading *r) {
    const qkvi_text_file *file = &r->files->merges;
    const char *line = file->bytes, *const end = file->bytes + file->n_bytes;
    for (int64_t number = 1; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *stop = newline ? newline : end;
        const char *next = newline ? newline + 1 : end;
        if (newline && stop > line && stop[-1] == '\r') stop--;
        QKV_TRY(read_line(r, number, line, (size_t)(stop - line)));
        line = next;
    }
    return qkvi_bpe_end_merges(r->tokenizer, file->name, r->error);
}

qkv_status qkvi_bpe_read_files(const qkvi_text_files *files, qkv_tokenizer *tokenizer,
                               qkv_error *error) {
    const struct reading r = { files, tokenizer, error };
    QKV_TRY(read_vocab(&r));
    return read_merges(&r);
}
