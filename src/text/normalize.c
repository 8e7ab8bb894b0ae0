/**
 * BERT's normalisation as a pipeline: each stage passes code points to the next one.
 *
 *     push_any         lower case, with lower_first
 *     push_raw         clean, ideographs, white space
 *     push_decomposed  order of marks
 *     push_ordered     accents, lower case
 *     push_lowered     punctuation
 *     end_word         the callback
 *
 * Canonical ordering (Unicode 3.11, D109): within a run of code points of combining class > 0,
 * stable sort by class. A run is collected in `marks` and sorted by counting, in linear time. Each
 * code point has its range of the raw text; that of a dropped accent is added to the letter before
 * it.
 */
#include "text/normalize.h"

#include "files/utf8.h"
#include "text/unicode.h"

/* A mark that waits for its place: 8 bytes, for there may be millions in hostile text. */
struct mark {
    uint32_t begin;
    uint32_t code : 21, n_bytes : 3, combining : 8;
};

struct qkvi_normalizer {
    qkvi_bert_rules rules;
    qkvi_word_fn *emit;
    void *user;
    qkvi_normal_text *normal;    /* not NULL: text is made, not words */
    struct mark *marks, *sorted; /* marks_capacity each */
    size_t n_marks, marks_capacity;
    qkvi_word word; /* bytes and chars point to the arrays below */
    uint32_t max_chars;
    qkvi_word_char *chars; /* max_chars + 1 */
    char *bytes;           /* 4 each */
};

qkvi_normalizer *qkvi_normalizer_create(const qkvi_bert_rules *rules, uint32_t max_chars,
                                        qkvi_word_fn *emit, void *user) {
    const size_t n_chars = (size_t)max_chars + 1;
    qkvi_normalizer *n = calloc(1, sizeof *n);
    if (n == NULL) return NULL;
    n->rules = *rules;
    n->emit = emit;
    n->user = user;
    n->max_chars = max_chars;
    n->chars = qkvi_malloc_array(n_chars, sizeof *n->chars);
    n->bytes = qkvi_malloc_array(n_chars, 4);
    if (n->chars == NULL || n->bytes == NULL) {
        qkvi_normalizer_free(n);
        return NULL;
    }
    n->word.chars = n->chars;
    n->word.bytes = n->bytes;
    return n;
}

void qkvi_normalizer_free(qkvi_normalizer *n) {
    if (n == NULL) return;
    free(n->marks);
    free(n->sorted);
    free(n->chars);
    free(n->bytes);
    free(n);
}

static qkv_status end_word(qkvi_normalizer *n) {
    if (n->word.n_chars == 0) return QKV_OK;
    const qkv_status status = n->emit(n->user, &n->word);
    n->word.n_chars = 0;
    n->word.n_bytes = 0;
    return status;
}

static void append(qkvi_normalizer *n, int32_t code, uint32_t begin, uint32_t end) {
    qkvi_word *word = &n->word;
    if (word->n_chars == 0 || begin < word->begin) word->begin = begin;
    if (word->n_chars == 0 || end > word->end) word->end = end;
    if (word->n_chars > n->max_chars) return; /* too long already: only its range grows */
    n->chars[word->n_chars++] = (qkvi_word_char){ word->n_bytes, begin, end };
    word->n_bytes += (uint32_t)qkvi_utf8_put(code, n->bytes + word->n_bytes);
}

void qkvi_normal_text_free(qkvi_normal_text *normal) {
    free(normal->bytes.bytes);
    free(normal->chars);
    *normal = (qkvi_normal_text){ 0 };
}

qkv_status qkvi_normal_text_put(qkvi_normal_text *normal, int32_t code, uint32_t begin,
                                uint32_t end) {
    char bytes[4];
    const size_t n_bytes = (size_t)qkvi_utf8_put(code, bytes);
    if (normal->bytes.n > UINT32_MAX - sizeof bytes) return QKV_ERR_MEMORY; /* places are 32 bits */
    QKV_TRY(qkvi_reserve(&normal->chars, &normal->capacity, normal->n_chars + 1,
                         sizeof *normal->chars));
    normal->chars[normal->n_chars++] = (qkvi_word_char){ (uint32_t)normal->bytes.n, begin, end };
    return qkvi_growing_put(&normal->bytes, bytes, n_bytes);
}

/* An accent that is dropped belongs to the letter before it, if there is one. */
static void widen_text(qkvi_normal_text *normal, uint32_t begin, uint32_t end) {
    if (normal->n_chars == 0) return;
    qkvi_word_char *const last = &normal->chars[normal->n_chars - 1];
    int32_t code = 0;
    qkvi_utf8_next(normal->bytes.bytes + last->offset, normal->bytes.n - last->offset, &code);
    if (last->end == begin && !(qkvi_char_class(code) & (QKVI_CHAR_SPACE | QKVI_CHAR_PUNCTUATION)))
        last->end = end;
}

static void widen_last(qkvi_normalizer *n, uint32_t begin, uint32_t end) {
    qkvi_word *word = &n->word;
    if (n->normal) widen_text(n->normal, begin, end);
    if (word->n_chars == 0 || word->end != begin) return;
    word->end = end;
    qkvi_word_char *last = &n->chars[word->n_chars - 1];
    if (last->end == begin) last->end = end;
}

static qkv_status push_lowered(qkvi_normalizer *n, int32_t code, uint32_t begin, uint32_t end) {
    if (n->normal) return qkvi_normal_text_put(n->normal, code, begin, end);
    if (!(qkvi_char_class(code) & QKVI_CHAR_PUNCTUATION)) {
        append(n, code, begin, end);
        return QKV_OK;
    }
    QKV_TRY(end_word(n));
    append(n, code, begin, end);
    return end_word(n);
}

static qkv_status push_ordered(qkvi_normalizer *n, int32_t code, uint32_t begin, uint32_t end) {
    if (n->rules.strip_accents && (qkvi_char_class(code) & QKVI_CHAR_ACCENT)) {
        widen_last(n, begin, end);
        return QKV_OK;
    }
    int32_t lower[2] = { code, 0 };
    const int count = n->rules.lowercase ? qkvi_char_lower(code, lower) : 1;
    for (int i = 0; i < count; i++) QKV_TRY(push_lowered(n, lower[i], begin, end));
    return QKV_OK;
}

/* Stable counting sort of the waiting marks by combining class, if they are out of order. */
static const struct mark *sort_marks(qkvi_normalizer *n) {
    size_t i = 1;
    while (i < n->n_marks && n->marks[i - 1].combining <= n->marks[i].combining) i++;
    if (i >= n->n_marks) return n->marks;
    size_t place[257] = { 0 };
    for (i = 0; i < n->n_marks; i++) place[n->marks[i].combining + 1]++;
    for (int c = 0; c < 256; c++) place[c + 1] += place[c];
    for (i = 0; i < n->n_marks; i++) n->sorted[place[n->marks[i].combining]++] = n->marks[i];
    return n->sorted;
}

static qkv_status flush_marks(qkvi_normalizer *n) {
    if (n->n_marks == 0) return QKV_OK;
    const struct mark *marks = sort_marks(n);
    const size_t n_marks = n->n_marks;
    n->n_marks = 0;
    for (size_t i = 0; i < n_marks; i++) {
        QKV_TRY(push_ordered(n, (int32_t)marks[i].code, marks[i].begin,
                             marks[i].begin + marks[i].n_bytes));
    }
    return QKV_OK;
}

/*
 * `sorted` holds nothing now, and realloc grows a large array where it is: 16 bytes a mark, not 24.
 */
static qkv_status grow_marks(qkvi_normalizer *n) {
    const size_t capacity = n->marks_capacity ? 2 * n->marks_capacity : 64;
    struct mark *const marks = qkvi_realloc_array(n->marks, capacity, sizeof *marks);
    if (marks == NULL) return QKV_ERR_MEMORY;
    n->marks = marks;
    free(n->sorted);
    n->sorted = qkvi_malloc_array(capacity, sizeof *n->sorted);
    n->marks_capacity = n->sorted ? capacity : 0;
    if (n->sorted) return QKV_OK;
    n->n_marks = 0;
    return QKV_ERR_MEMORY;
}

static qkv_status push_decomposed(qkvi_normalizer *n, int32_t code, uint32_t begin, uint32_t end) {
    const unsigned combining = qkvi_char_combining(code);
    if (combining == 0) {
        QKV_TRY(flush_marks(n));
        return push_ordered(n, code, begin, end);
    }
    if (n->n_marks == n->marks_capacity) QKV_TRY(grow_marks(n));
    n->marks[n->n_marks++] = (struct mark){ .begin = begin,
                                            .code = (uint32_t)code & 0x1FFFFF,
                                            .n_bytes = (end - begin) & 7,
                                            .combining = combining & 0xFF };
    return QKV_OK;
}

static qkv_status push_space(qkvi_normalizer *n, uint32_t begin, uint32_t end) {
    QKV_TRY(flush_marks(n));
    return n->normal ? qkvi_normal_text_put(n->normal, ' ', begin, end) : end_word(n);
}

static int are_accents(const int32_t *codes, int count) {
    int i = 0;
    while (i < count && (qkvi_char_class(codes[i]) & QKVI_CHAR_ACCENT)) i++;
    return i == count;
}

/*
 * The bytes of a character belong to its parts that stay. One of them may follow an accent (U+0CC7
 * begins with U+0CBF, which is dropped): that must not give the bytes to the letter before.
 */
static qkv_status push_char(qkvi_normalizer *n, int32_t code, uint32_t begin, uint32_t end) {
    if (!n->rules.strip_accents) return push_ordered(n, code, begin, end);
    int32_t parts[QKVI_MAX_DECOMPOSITION];
    const int count = qkvi_char_decompose(code, parts), stays = !are_accents(parts, count);
    for (int i = 0; i < count; i++) {
        const int empty = stays && are_accents(&parts[i], 1);
        QKV_TRY(push_decomposed(n, parts[i], begin, empty ? begin : end));
    }
    return QKV_OK;
}

static qkv_status push_raw(qkvi_normalizer *n, int32_t code, uint32_t begin, uint32_t end) {
    const unsigned class = qkvi_char_class(code);
    if (n->rules.clean_text && (class & QKVI_CHAR_DROPPED)) return QKV_OK;
    if (class & QKVI_CHAR_SPACE) {
        const int stays = n->normal && !n->rules.clean_text; /* only cleaning makes it U+0020 */
        return stays ? push_char(n, code, begin, end) : push_space(n, begin, end);
    }
    if (!(n->rules.split_cjk && (class & QKVI_CHAR_IDEOGRAPH))) {
        return push_char(n, code, begin, end);
    }
    QKV_TRY(push_space(n, begin, begin));
    QKV_TRY(push_char(n, code, begin, end));
    return push_space(n, end, end);
}

static qkv_status push_any(qkvi_normalizer *n, int32_t code, uint32_t begin, uint32_t end) {
    int32_t lower[2] = { code, 0 };
    const int count = n->rules.lower_first ? qkvi_char_lower(code, lower) : 1;
    for (int i = 0; i < count; i++) QKV_TRY(push_raw(n, lower[i], begin, end));
    return QKV_OK;
}

/* From nothing to a whole stretch, but for its end. */
static qkv_status push_all(qkvi_normalizer *n, const char *text, uint32_t begin, uint32_t end) {
    n->n_marks = 0;
    n->word.n_chars = 0;
    n->word.n_bytes = 0;
    for (uint32_t at = begin; at < end;) {
        int32_t code;
        const uint32_t length = (uint32_t)qkvi_utf8_next(text + at, end - at, &code);
        QKV_TRY(push_any(n, code, at, at + length));
        at += length;
    }
    return flush_marks(n);
}

qkv_status qkvi_normalize(qkvi_normalizer *n, const char *text, uint32_t begin, uint32_t end) {
    QKV_TRY(push_all(n, text, begin, end));
    return end_word(n);
}

qkv_status qkvi_normalize_text(qkvi_normalizer *n, const char *text, uint32_t begin, uint32_t end,
                               qkvi_normal_text *normal) {
    normal->bytes.n = 0;
    normal->n_chars = 0;
    n->normal = normal;
    const qkv_status status = push_all(n, text, begin, end);
    n->normal = NULL;
    return status;
}

qkv_status qkvi_normalize_words(qkvi_normalizer *n, const qkvi_normal_text *normal, size_t first,
                                size_t last) {
    n->word.n_chars = 0;
    n->word.n_bytes = 0;
    for (size_t i = first; i < last; i++) {
        const qkvi_word_char from = normal->chars[i];
        int32_t code = 0;
        qkvi_utf8_next(normal->bytes.bytes + from.offset, normal->bytes.n - from.offset, &code);
        if (qkvi_char_class(code) & QKVI_CHAR_SPACE)
            QKV_TRY(end_word(n));
        else
            QKV_TRY(push_lowered(n, code, from.begin, from.end));
    }
    return end_word(n);
}
