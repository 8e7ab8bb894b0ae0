/*
 * NFC: characters are decomposed, the marks after each starter sorted, and composed with the
 * starter where possible, in the order of the crate unicode-normalization.
 *
 *     put_char        lower case
 *     put_decomposed  the parts of a character
 *     put_part        a starter ends the run of marks before it
 *     end_marks       sorts the marks; each is composed with the starter, unless a mark of the same
 *                     class is between them
 *
 * A starter is composed with the one before it if nothing is between them (Hangul, and some Indic
 * vowels).
 */
#include "text/compose.h"

#include "files/utf8.h"
#include "text/unicode.h"

struct part {
    int32_t code;
    uint32_t begin, end;
    unsigned combining;
};

struct composer {
    qkvi_normal_text *normal;
    struct part starter; /* not written yet, if has_starter */
    int has_starter;
    const qkvi_compose_rules *rules;
    struct part *marks,
        *sorted; /* behind it: in order, with those that did not join, once end_marks was called */
    size_t n_marks, capacity;
};

int qkvi_is_composed(const char *text, size_t n) {
    size_t i = 0;
    while (i < n && (unsigned char)text[i] < 0xCC) i++; /* U+0300 is CC 80 */
    return i == n;
}

/* ---- Marks ----------------------------------------------------------------------------------- */

static qkv_status add_mark(struct composer *c, struct part mark) {
    if (c->n_marks == c->capacity) {
        const size_t capacity = c->capacity ? 2 * c->capacity : 32;
        struct part *const marks = qkvi_malloc_array(capacity, 2 * sizeof *marks);
        if (marks == NULL) return QKV_ERR_MEMORY;
        if (c->n_marks > 0) memcpy(marks, c->marks, c->n_marks * sizeof *marks);
        free(c->marks < c->sorted ? c->marks : c->sorted);
        c->marks = marks;
        c->sorted = marks + capacity;
        c->capacity = capacity;
    }
    c->marks[c->n_marks++] = mark;
    return QKV_OK;
}

/* Stable, by counting, as in normalize.c: a run of any length takes linear time. */
static void sort_marks(struct composer *c) {
    size_t place[257] = { 0 }, i = 1;
    while (i < c->n_marks && c->marks[i - 1].combining <= c->marks[i].combining) i++;
    if (i >= c->n_marks) return;
    for (i = 0; i < c->n_marks; i++) place[c->marks[i].combining + 1]++;
    for (int class = 0; class < 256; class ++) place[class + 1] += place[class];
    for (i = 0; i < c->n_marks; i++) c->sorted[place[c->marks[i].combining]++] = c->marks[i];
    struct part *const sorted = c->sorted;
    c->sorted = c->marks;
    c->marks = sorted;
}

static int joins(struct composer *c, struct part part) {
    const int32_t code = c->has_starter ? qkvi_char_compose(c->starter.code, part.code) : 0;
    if (code == 0) return 0;
    c->starter.code = code;
    if (part.begin < c->starter.begin) c->starter.begin = part.begin;
    if (part.end > c->starter.end) c->starter.end = part.end;
    return 1;
}

static void end_marks(struct composer *c) {
    size_t kept = 0;
    if (c->n_marks == 0) return;
    sort_marks(c);
    for (size_t i = 0; i < c->n_marks; i++) {
        const struct part mark = c->marks[i];
        const int blocked = kept > 0 && c->marks[kept - 1].combining >= mark.combining;
        if (blocked || !joins(c, mark)) c->marks[kept++] = mark;
    }
    c->n_marks = kept;
}

/* ---- Characters ------------------------------------------------------------------------------ */

static qkv_status put(struct composer *c, struct part part) {
    int32_t lower[2] = { part.code, 0 };
    const int count = c->rules->lowers_composed ? qkvi_char_lower(part.code, lower) : 1;
    for (int i = 0; i < count; i++)
        QKV_TRY(qkvi_normal_text_put(c->normal, lower[i], i > 0 ? part.end : part.begin, part.end));
    return QKV_OK;
}

/* Writes what waits. */
static qkv_status flush(struct composer *c) {
    if (c->has_starter) QKV_TRY(put(c, c->starter));
    for (size_t i = 0; i < c->n_marks; i++) QKV_TRY(put(c, c->marks[i]));
    c->has_starter = 0;
    c->n_marks = 0;
    return QKV_OK;
}

static qkv_status put_part(struct composer *c, struct part part) {
    part.combining = qkvi_char_combining(part.code);
    if (part.combining > 0) return add_mark(c, part);
    end_marks(c);
    if (c->n_marks == 0 && joins(c, part)) return QKV_OK;
    QKV_TRY(flush(c));
    c->starter = part;
    c->has_starter = 1;
    return QKV_OK;
}

/* Of several parts the first has the bytes. */
static qkv_status put_decomposed(struct composer *c, struct part whole) {
    int32_t parts[QKVI_MAX_DECOMPOSITION] = { whole.code };
    if (!c->rules->composes) return put(c, whole);
    const int count = qkvi_char_decompose(whole.code, parts);
    for (int i = 0; i < count; i++)
        QKV_TRY(
            put_part(c, (struct part){ parts[i], i > 0 ? whole.end : whole.begin, whole.end, 0 }));
    return QKV_OK;
}

static qkv_status put_char(struct composer *c, int32_t code, uint32_t begin, uint32_t end) {
    int32_t lower[2] = { code, 0 };
    const int count = c->rules->lowers ? qkvi_char_lower(code, lower) : 1;
    for (int i = 0; i < count; i++)
        QKV_TRY(put_decomposed(c, (struct part){ lower[i], i > 0 ? end : begin, end, 0 }));
    return QKV_OK;
}

static qkv_status put_all(struct composer *c, const char *text, uint32_t begin, uint32_t end) {
    for (uint32_t at = begin; at < end;) {
        int32_t code = 0;
        const uint32_t length = (uint32_t)qkvi_utf8_next(text + at, end - at, &code);
        QKV_TRY(put_char(c, code, at, at + length));
        at += length;
    }
    end_marks(c);
    return flush(c);
}

qkv_status qkvi_compose(const char *text, uint32_t begin, uint32_t end,
                        const qkvi_compose_rules *rules, qkvi_normal_text *normal) {
    struct composer c = { .normal = normal, .rules = rules };
    normal->bytes.n = 0;
    normal->n_chars = 0;
    const qkv_status status = put_all(&c, text, begin, end);
    free(c.marks < c.sorted ? c.marks : c.sorted);
    return status;
}
