/**
 * Classes of code points, by libutf8proc and the lists of unicode_exceptions.h.
 *
 * Only properties of single code points are taken from libutf8proc. Its string functions are not
 * used: STRIPMARK removes more than category Mn, and its canonical ordering is quadratic in the
 * length of a run of marks.
 */
#include "text/unicode.h"

#include <utf8proc.h>

#include "text/unicode_exceptions.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int in_ranges(int32_t code, const struct qkvi_code_range *ranges, size_t n) {
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (code > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && code >= ranges[low].first;
}

static int is_white_space(int32_t code, int category) {
    return (code >= 0x09 && code <= 0x0D) || code == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

static int is_dropped(int32_t code, int category) {
    switch (category) {
    case UTF8PROC_CATEGORY_CC: return code != '\t' && code != '\n' && code != '\r';
    case UTF8PROC_CATEGORY_CF: return !in_ranges(code, qkvi_not_format, COUNT(qkvi_not_format));
    case UTF8PROC_CATEGORY_CO: return 1;
    default: return code == 0xFFFD;
    }
}

static int is_ascii_punctuation(int32_t code) {
    return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) ||
           (code >= 123 && code <= 126);
}

static int is_punctuation(int32_t code, int category) {
    if (code < 128) return is_ascii_punctuation(code);
    if (code == 0x166D || code == 0x111C9) return 1; /* the reference only */
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO &&
           !in_ranges(code, qkvi_not_punctuation, COUNT(qkvi_not_punctuation));
}

/* The sixth range begins at 2B920 in the reference; Google's code has 2B820. */
static int is_ideograph(int32_t code) {
    return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
           (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
           (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
           (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

static int is_accent(int32_t code, int category) {
    if (code == 0x1734) return 1; /* the reference only */
    return category == UTF8PROC_CATEGORY_MN &&
           !in_ranges(code, qkvi_not_mark, COUNT(qkvi_not_mark));
}

static int is_ascii_letter(int32_t code) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

unsigned qkvi_char_class(int32_t code) {
    if (is_ascii_letter(code)) return 0;
    const int category = utf8proc_get_property(code)->category;
    return (is_white_space(code, category) ? QKVI_CHAR_SPACE : 0u) |
           (is_dropped(code, category) ? QKVI_CHAR_DROPPED : 0u) |
           (is_punctuation(code, category) ? QKVI_CHAR_PUNCTUATION : 0u) |
           (is_ideograph(code) ? QKVI_CHAR_IDEOGRAPH : 0u) |
           (is_accent(code, category) ? QKVI_CHAR_ACCENT : 0u);
}

int qkvi_char_strips(int32_t code) {
    return (qkvi_char_class(code) & QKVI_CHAR_SPACE) || (code >= 0x1C && code <= 0x1F);
}

static qkvi_char_group unassigned_group(int32_t code) {
    if (in_ranges(code, qkvi_newer_letters, COUNT(qkvi_newer_letters))) return QKVI_GROUP_LETTER;
    if (in_ranges(code, qkvi_newer_numbers, COUNT(qkvi_newer_numbers))) return QKVI_GROUP_NUMBER;
    return QKVI_GROUP_OTHER;
}

qkvi_char_group qkvi_char_group_of(int32_t code) {
    if (is_ascii_letter(code)) return QKVI_GROUP_LETTER;
    const int category = utf8proc_get_property(code)->category;
    switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return QKVI_GROUP_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return QKVI_GROUP_NUMBER;
    case UTF8PROC_CATEGORY_CN: return unassigned_group(code);
    default: return is_white_space(code, category) ? QKVI_GROUP_SPACE : QKVI_GROUP_OTHER;
    }
}

int qkvi_char_is_numeric(int32_t code) {
    if ((code >= 0x11DE0 && code <= 0x11DE9) || (code >= 0x16FF4 && code <= 0x16FF6)) return 1;
    return qkvi_char_group_of(code) == QKVI_GROUP_NUMBER;
}

/* Symbols that are Alphabetic: letters in circles and squares (Other_Alphabetic, category So). */
static int is_enclosed_letter(int32_t code) {
    return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
           (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

int qkvi_char_is_word(int32_t code) {
    switch (utf8proc_get_property(code)->category) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return 1;
    case UTF8PROC_CATEGORY_CN:
        return unassigned_group(code) != QKVI_GROUP_OTHER ||
               in_ranges(code, qkvi_newer_marks, COUNT(qkvi_newer_marks));
    default:
        return code == 0x200C || code == 0x200D || is_enclosed_letter(code) ||
               qkvi_char_group_of(code) == QKVI_GROUP_LETTER;
    }
}

int qkvi_char_lower(int32_t code, int32_t lower[2]) {
    if (code < 128) {
        lower[0] = code >= 'A' && code <= 'Z' ? code + 32 : code;
        return 1;
    }
    if (code == 0x0130) { /* the only one that becomes two */
        lower[0] = 'i';
        lower[1] = 0x0307;
        return 2;
    }
    for (size_t i = 0; i < COUNT(qkvi_lower_extra); i++) {
        if (code >= qkvi_lower_extra[i].upper.first && code <= qkvi_lower_extra[i].upper.last) {
            lower[0] = code + qkvi_lower_extra[i].shift;
            return 1;
        }
    }
    lower[0] = utf8proc_tolower(code);
    return 1;
}

int qkvi_char_decompose(int32_t code, int32_t parts[QKVI_MAX_DECOMPOSITION]) {
    parts[0] = code;
    if (code < 0xC0 || code == 0x11938) return 1; /* 11938 does not decompose in the reference */
    const utf8proc_ssize_t n =
        utf8proc_decompose_char(code, parts, QKVI_MAX_DECOMPOSITION, UTF8PROC_DECOMPOSE, NULL);
    if (n < 1 || n > QKVI_MAX_DECOMPOSITION) { /* cannot happen: 4 is Unicode's own limit */
        parts[0] = code;
        return 1;
    }
    return (int)n;
}

/* Of two code points utf8proc's composition is that of a table; it is quadratic in nothing. */
int32_t qkvi_char_compose(int32_t first, int32_t second) {
    utf8proc_int32_t pair[2] = { first, second };
    if (second < 0x300) return 0;
    const utf8proc_ssize_t n =
        utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return n == 1 && pair[0] != 0x11938 ? pair[0] : 0; /* 11938: see decompose */
}

unsigned qkvi_char_combining(int32_t code) {
    if (code < 0x300) return 0;
    const unsigned combining = (unsigned)utf8proc_get_property(code)->combining_class;
    if (combining && in_ranges(code, qkvi_not_combining, COUNT(qkvi_not_combining))) return 0;
    return combining;
}
