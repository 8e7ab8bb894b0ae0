/*
 * The steps of Unigram's normalizer: see unigram.h. Each step reads the characters that the step
 * before has made.
 *
 * The map is applied as in the reference: for a grapheme of fewer than 6 bytes the shortest rule
 * (not the longest) that matches at its beginning replaces all of it. Else it is applied to each
 * character.
 */
#include <utf8proc.h>

#include "files/utf8.h"
#include "text/unicode.h"
#include "text/unigram.h"

enum { SHORT_GRAPHEME = 6 };

static int32_t code_at(const qkvi_normal_text *text, size_t i) {
    int32_t code = 0;
    const size_t at = text->chars[i].offset;
    qkvi_utf8_next(text->bytes.bytes + at, text->bytes.n - at, &code);
    return code;
}

/* Where a character begins, or the text ends. */
static size_t place(const qkvi_normal_text *text, size_t i) {
    return i < text->n_chars ? text->chars[i].offset : text->bytes.n;
}

static qkv_status copy(const qkvi_normal_text *from, size_t i, qkvi_normal_text *to) {
    return qkvi_normal_text_put(to, code_at(from, i), from->chars[i].begin, from->chars[i].end);
}

/* ---- The map --------------------------------------------------------------------------------- */

/* The character behind the grapheme that begins at one. */
static size_t grapheme_end(const qkvi_normal_text *text, size_t i) {
    utf8proc_int32_t state = 0;
    for (int32_t code = code_at(text, i++); i < text->n_chars; i++) {
        const int32_t next = code_at(text, i);
        if (utf8proc_grapheme_break_stateful(code, next, &state)) break;
        code = next;
    }
    return i;
}

/* Characters [first … last) as a rule writes them; *is_there: there is one. */
static qkv_status put_rule(const qkvi_charsmap *map, const qkvi_normal_text *from, size_t first,
                           size_t last, qkvi_normal_text *to, int *is_there) {
    const size_t begin = place(from, first);
    const qkvi_charsmap_match match =
        qkvi_charsmap_shortest(map, from->bytes.bytes + begin, place(from, last) - begin);
    *is_there = match.length > 0;
    for (size_t at = 0, length; *is_there && at < match.string_bytes; at += length) {
        int32_t code = 0;
        length = qkvi_utf8_next(match.string + at, match.string_bytes - at, &code);
        QKV_TRY(
            qkvi_normal_text_put(to, code, from->chars[first].begin, from->chars[last - 1].end));
    }
    return QKV_OK;
}

static qkv_status apply_map(const qkvi_charsmap *map, const qkvi_normal_text *from,
                            qkvi_normal_text *to) {
    for (size_t first = 0, last; first < from->n_chars; first = last) {
        int is_there = 0;
        last = grapheme_end(from, first);
        if (place(from, last) - place(from, first) < SHORT_GRAPHEME)
            QKV_TRY(put_rule(map, from, first, last, to, &is_there));
        for (size_t i = first; i < last && !is_there; i++) {
            int is_ruled = 0;
            QKV_TRY(put_rule(map, from, i, i + 1, to, &is_ruled));
            if (!is_ruled) QKV_TRY(copy(from, i, to));
        }
    }
    if (to->n_chars > 0)
        to->chars[0].begin = from->chars[0].begin; /* with all that went before it */
    return QKV_OK;
}

/* ---- White space ----------------------------------------------------------------------------- */

static int is_white(const qkvi_normal_text *text, size_t i) {
    return qkvi_char_group_of(code_at(text, i)) == QKVI_GROUP_SPACE;
}

static qkv_status strip(const qkvi_unigram_step *step, const qkvi_normal_text *from,
                        qkvi_normal_text *to) {
    size_t first = 0, last = from->n_chars;
    while (step->left && first < last && is_white(from, first)) first++;
    while (step->right && last > first && is_white(from, last - 1)) last--;
    for (; first < last; first++) QKV_TRY(copy(from, first, to));
    return QKV_OK;
}

static qkv_status join_spaces(int32_t code, const qkvi_normal_text *from, qkvi_normal_text *to) {
    for (size_t i = 0, end; i < from->n_chars; i = end) {
        end = i;
        while (end < from->n_chars && code_at(from, end) == ' ') end++;
        if (end >= i + 2) {
            QKV_TRY(qkvi_normal_text_put(to, code, from->chars[i].begin, from->chars[end - 1].end));
            continue;
        }
        QKV_TRY(copy(from, i, to));
        end = i + 1;
    }
    return QKV_OK;
}

/* ---- All steps ------------------------------------------------------------------------------- */

static void clear(qkvi_normal_text *text) {
    text->bytes.n = 0;
    text->n_chars = 0;
}

static qkv_status write_raw(const char *text, uint32_t begin, uint32_t end,
                            qkvi_normal_text *normal) {
    clear(normal);
    for (uint32_t at = begin, length; at < end; at += length) {
        int32_t code = 0;
        length = (uint32_t)qkvi_utf8_next(text + at, end - at, &code);
        QKV_TRY(qkvi_normal_text_put(normal, code, at, at + length));
    }
    return QKV_OK;
}

static qkv_status apply(const qkvi_unigram *model, const qkvi_unigram_step *step,
                        const qkvi_normal_text *from, qkvi_normal_text *to) {
    switch (step->kind) {
    case QKVI_STEP_MAP: return apply_map(&model->map, from, to);
    case QKVI_STEP_STRIP: return strip(step, from, to);
    case QKVI_STEP_SPACES: break;
    }
    return join_spaces(step->code, from, to);
}

qkv_status qkvi_unigram_normalize(const qkvi_unigram *model, const char *text, uint32_t begin,
                                  uint32_t end, qkvi_normal_text *normal, qkvi_normal_text *spare) {
    QKV_TRY(write_raw(text, begin, end, normal));
    for (int s = 0; s < model->n_steps; s++) {
        const qkvi_normal_text before = *normal;
        *normal = *spare;
        *spare = before;
        clear(normal);
        QKV_TRY(apply(model, &model->steps[s], spare, normal));
    }
    return QKV_OK;
}
