/*
 * Text files as pairs.
 *
 * A line is a sentence, or a sentence TAB the one that follows it; blank lines are skipped. CR LF
 * and LF both end a line, and a byte order mark is skipped. In half of the training pairs the
 * second half is that of another line, drawn at random.
 */
#include "train/corpus.h"

#include "core/rng.h"
#include "files/file.h"
#include "files/utf8.h"
#include "train/run_fields.h"

enum { TEXT_BYTES = 1 << 30, LINE_BYTES = 1 << 20 };

typedef struct text_line {
    int64_t begin, tab, end; /* tab == end: no TAB */
} text_line;

struct qkvi_text {
    char *bytes;
    text_line *lines;
    int64_t n_lines;
    int64_t *tabbed; /* the lines with a TAB */
    int64_t n_tabbed;
    uint64_t hash; /* of the file's bytes */
};

/* Fills lines, or only counts them. The TAB that counts is the first. */
static qkv_status split_lines(const char *name, const char *bytes, int64_t n_bytes,
                              text_line *lines, int64_t *n_lines, qkv_error *error) {
    *n_lines = 0;
    int64_t number = 0;
    for (int64_t from = (int64_t)qkvi_utf8_mark(bytes, (size_t)n_bytes); from < n_bytes;) {
        const char *const newline = memchr(bytes + from, '\n', (size_t)(n_bytes - from));
        const int64_t next = newline ? newline - bytes + 1 : n_bytes + 1;
        int64_t end = next - 1;
        ++number;
        if (end > from && bytes[end - 1] == '\r') --end;
        if (end - from > LINE_BYTES)
            return qkvi_error_set(error, QKV_ERR_LIMIT, "%s:%lld: a line of more than %d bytes",
                                  name, (long long)number, LINE_BYTES);
        const size_t n_valid = qkvi_utf8_valid(bytes + from, (size_t)(end - from));
        if (n_valid < (size_t)(end - from))
            return qkvi_error_set(error, QKV_ERR_FORMAT,
                                  "%s:%lld: not valid UTF-8 at byte %zu of the line", name,
                                  (long long)number, n_valid);
        int64_t first = from;
        while (first < end && (bytes[first] == ' ' || bytes[first] == '\t')) ++first;
        if (first < end) {
            const char *const tab = memchr(bytes + first, '\t', (size_t)(end - first));
            if (lines) lines[*n_lines] = (text_line){ first, tab ? tab - bytes : end, end };
            ++*n_lines;
        }
        from = next;
    }
    return QKV_OK;
}

static qkv_status list_tabbed(qkvi_text *text, qkv_error *error) {
    text->tabbed = qkvi_malloc_array((size_t)text->n_lines, sizeof *text->tabbed);
    if (!text->tabbed) return qkvi_error_set(error, QKV_ERR_MEMORY, "out of memory");
    for (int64_t i = 0; i < text->n_lines; ++i)
        if (text->lines[i].tab + 1 < text->lines[i].end) text->tabbed[text->n_tabbed++] = i;
    return QKV_OK;
}

qkv_status qkvi_text_open(const char *path, qkvi_text **text, qkv_error *error) {
    char name[QKVI_NAME_BYTES];
    size_t n_bytes = 0;
    *text = calloc(1, sizeof **text);
    if (!*text) return qkvi_error_set(error, QKV_ERR_MEMORY, "out of memory");
    qkvi_escape(name, sizeof name, path, strlen(path));
    qkv_status status = qkvi_file_load_text(path, TEXT_BYTES, &(*text)->bytes, &n_bytes, error);
    if (status == QKV_OK) (*text)->hash = qkvi_hash(QKVI_HASH_START, (*text)->bytes, n_bytes);
    if (status == QKV_OK)
        status =
            split_lines(name, (*text)->bytes, (int64_t)n_bytes, NULL, &(*text)->n_lines, error);
    if (status == QKV_OK && (*text)->n_lines == 0)
        status = qkvi_error_set(error, QKV_ERR_FORMAT, "%s: no line has any text", name);
    if (status == QKV_OK) {
        (*text)->lines = qkvi_malloc_array((size_t)(*text)->n_lines, sizeof *(*text)->lines);
        status = (*text)->lines ? split_lines(name, (*text)->bytes, (int64_t)n_bytes,
                                              (*text)->lines, &(*text)->n_lines, error)
                                : qkvi_error_set(error, QKV_ERR_MEMORY, "out of memory");
    }
    if (status == QKV_OK) status = list_tabbed(*text, error);
    if (status != QKV_OK) {
        qkvi_text_free(*text);
        *text = NULL;
    }
    return status;
}

void qkvi_text_free(qkvi_text *text) {
    if (!text) return;
    free(text->bytes);
    free(text->lines);
    free(text->tabbed);
    free(text);
}

uint64_t qkvi_text_hash(const qkvi_text *text) { return text->hash; }

int64_t qkvi_text_n_lines(const qkvi_text *text) { return text->n_lines; }

const char *qkvi_text_line(const qkvi_text *text, int64_t index, int64_t *bytes) {
    *bytes = text->lines[index].end - text->lines[index].begin;
    return text->bytes + text->lines[index].begin;
}

int64_t qkvi_text_n_pairs(const qkvi_text *text) {
    return text->n_lines + (text->n_tabbed > 1 ? text->n_tabbed : 0);
}

/*
 * A tabbed line other than `line`: the one `offset` places further on, 0 <= offset < n_tabbed - 1.
 */
static int64_t another(const qkvi_text *text, int64_t line, int64_t offset) {
    int64_t low = 0, high = text->n_tabbed;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (text->tabbed[middle] < line)
            low = middle + 1;
        else
            high = middle;
    }
    return text->tabbed[(low + 1 + offset) % text->n_tabbed];
}

/* The first half of `line` and the second of `from`; a line without TAB stands alone. */
static void take(const qkvi_text *text, int64_t line, int64_t from, qkvi_pair *pair) {
    const text_line *const a = &text->lines[line], *const b = &text->lines[from];
    pair->a = text->bytes + a->begin;
    pair->a_bytes = a->tab - a->begin;
    pair->b = text->bytes + (b->tab < b->end ? b->tab + 1 : b->end);
    pair->b_bytes = b->tab < b->end ? b->end - b->tab - 1 : 0;
    pair->is_next = line == from;
    pair->counts_for_mlm = 1;
    pair->has_probe = 0;
    pair->n_content = 0;
}

void qkvi_text_pair(const qkvi_text *text, qkvi_split split, int64_t index, uint64_t seed,
                    qkvi_pair *pair) {
    const bool has_others = text->n_tabbed > 1;
    if (split == QKVI_SPLIT_HELD_OUT) {
        const int64_t i = index % qkvi_text_n_pairs(text);
        const int64_t line = i < text->n_lines ? i : text->tabbed[i - text->n_lines];
        take(text, line, i < text->n_lines ? line : another(text, line, 0), pair);
        return;
    }
    qkvi_rng rng = qkvi_rng_make(seed, (uint32_t)split, (uint64_t)index);
    const int64_t line = (int64_t)qkvi_rng_below(&rng, (uint32_t)text->n_lines);
    const bool is_pair = text->lines[line].tab + 1 < text->lines[line].end;
    const bool is_next = !is_pair || !has_others || qkvi_rng_below(&rng, 2) == 0;
    take(text, line,
         is_next ? line : another(text, line, qkvi_rng_below(&rng, (uint32_t)(text->n_tabbed - 1))),
         pair);
}

/* ---- Lines as they are ---- */

int64_t qkvi_text_draw(const qkvi_text *text, qkvi_split split, int64_t index, uint64_t seed) {
    if (split == QKVI_SPLIT_HELD_OUT) return index % text->n_lines;
    qkvi_rng rng = qkvi_rng_make(seed, (uint32_t)split, (uint64_t)index);
    return (int64_t)qkvi_rng_below(&rng, (uint32_t)text->n_lines);
}

void qkvi_text_halves(const qkvi_text *text, int64_t line, qkvi_pair *pair) {
    take(text, line, line, pair);
}

qkv_status qkvi_text_check_tabs(const qkvi_text *text, qkv_error *error) {
    for (int64_t i = 0; i < text->n_lines; ++i) {
        const text_line *const line = &text->lines[i];
        if (line->tab > line->begin && line->tab + 1 < line->end) continue;
        int64_t number = 1;
        for (int64_t at = 0; at < line->begin; ++at) number += text->bytes[at] == '\n';
        return qkvi_error_set(error, QKV_ERR_FORMAT, "line %lld is not source TAB target",
                              (long long)number);
    }
    return QKV_OK;
}
