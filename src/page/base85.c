/** See base85.h. */
#include "page/base85.h"

enum { BASE = 85, GROUP = 5, WORD = 4 };

static char digit_of(uint32_t value) {
    uint32_t c = '(' + value;
    c += c >= '<';
    c += c >= '\\';
    return (char)c;
}

static void put_word(uint32_t word, char *group) {
    for (int d = GROUP - 1; d >= 0; d--) {
        group[d] = digit_of(word % BASE);
        word /= BASE;
    }
}

void qkvi_base85_add(qkvi_bytes *bytes, const void *data, size_t n) {
    const unsigned char *const from = data;
    /* By lines: a call for each five characters would take most of the time. */
    char line[256 * GROUP];
    size_t used = 0;
    for (size_t i = 0; i < n; i += WORD) {
        uint32_t word = 0;
        for (size_t b = 0; b < WORD && i + b < n; b++) word |= (uint32_t)from[i + b] << 8 * b;
        put_word(word, line + used);
        used += GROUP;
        if (used == sizeof line) {
            qkvi_bytes_add(bytes, line, used);
            used = 0;
        }
    }
    qkvi_bytes_add(bytes, line, used);
}
