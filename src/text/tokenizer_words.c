/* The long lists of a tokenizer.json: see tokenizer_words.h. */
#include "text/tokenizer_words.h"

#include "text/tokenizer_fields.h"

/* Of a whole file, with the lists. */
static const qkvi_json_limits whole_limits = { .max_bytes = QKVI_TOKENIZER_MAX_BYTES,
                                               .max_values = 2500000,
                                               .max_containers = 700000,
                                               .max_depth = 64 };

struct finding {
    qkvi_tokenizer_words *words;
    size_t n;
    int depth; /* 0: in the file, 1: in its model */
    int is_broken;
};

static int is_key(const char *text, qkvi_json_span key, const char *name) {
    const size_t n = strlen(name);
    return key.end - key.begin == n + 2 && memcmp(text + key.begin + 1, name, n) == 0;
}

/* The first list of a name. A second one stays among the values, and its key is refused there. */
static void keep(qkvi_json_span *list, const char *text, qkvi_json_span value) {
    if (list->end == 0 && (text[value.begin] == '{' || text[value.begin] == '[')) *list = value;
}

static qkv_status visit(void *user, qkvi_json_span key, qkvi_json_span value) {
    struct finding *const f = user;
    const char *const text = f->words->text;
    if (f->depth == 1 && is_key(text, key, "vocab")) keep(&f->words->vocab, text, value);
    if (f->depth == 1 && is_key(text, key, "merges")) keep(&f->words->merges, text, value);
    if (f->depth == 1 || !is_key(text, key, "model")) return QKV_OK;
    f->depth = 1;
    size_t at = value.begin;
    const qkv_status status = qkvi_json_walk(text, value.end, &at, &f->is_broken, visit, f);
    f->depth = 0;
    return status;
}

/*
 * A list with nothing in it but its lines, so that places in messages stay right. Returns its end
 * in the copy.
 */
static char *empty_list(char *to, const char *text, qkvi_json_span list) {
    *to++ = text[list.begin];
    for (size_t i = list.begin + 1; i + 1 < list.end; i++)
        if (text[i] == '\n') *to++ = '\n';
    *to++ = text[list.begin] == '{' ? '}' : ']';
    return to;
}

/* The text with empty lists. NULL without memory. */
static char *copy_rest(const qkvi_tokenizer_words *words, size_t n, size_t *n_copy) {
    const qkvi_json_span *const a = &words->vocab, *const b = &words->merges;
    const qkvi_json_span *const lists[2] = { a->begin < b->begin ? a : b,
                                             a->begin < b->begin ? b : a };
    size_t n_lines = 0, cut = 0;
    for (int i = 0; i < 2; i++) {
        cut += lists[i]->end - lists[i]->begin;
        for (size_t at = lists[i]->begin; at < lists[i]->end; at++)
            n_lines += words->text[at] == '\n';
    }
    char *const copy = malloc(n - cut + n_lines + 4);
    char *to = copy;
    size_t from = 0;
    if (copy == NULL) return NULL;
    for (int i = 0; i < 2; i++) {
        if (lists[i]->end == 0) continue;
        memcpy(to, words->text + from, lists[i]->begin - from);
        to = empty_list(to + (lists[i]->begin - from), words->text, *lists[i]);
        from = lists[i]->end;
    }
    memcpy(to, words->text + from, n - from);
    *n_copy = (size_t)(to - copy) + (n - from);
    return copy;
}

qkv_status qkvi_tokenizer_words_load(const char *file, const char *bytes, size_t n,
                                     qkvi_tokenizer_words *words, json_t **root, qkv_error *error) {
    struct finding f = { .words = words, .n = n };
    size_t at = qkvi_json_skip_blanks(bytes, n, 0), n_copy = 0;
    *words = (qkvi_tokenizer_words){ .text = bytes };
    *root = NULL;
    if (n > whole_limits.max_bytes)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: %zu bytes of JSON, the limit is %zu", file,
                              n, whole_limits.max_bytes);
    QKV_TRY(qkvi_json_scan(file, bytes, n, &whole_limits, error));
    QKV_TRY(qkvi_json_walk(bytes, n, &at, &f.is_broken, visit, &f));
    if (words->vocab.end == 0 && words->merges.end == 0)
        return qkvi_json_load(file, bytes, n, &qkvi_json_limits_tokenizer, root, error);
    char *const copy = copy_rest(words, n, &n_copy);
    if (copy == NULL)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to parse the JSON", file);
    const qkv_status status =
        qkvi_json_load(file, copy, n_copy, &qkvi_json_limits_tokenizer, root, error);
    free(copy);
    return status;
}
