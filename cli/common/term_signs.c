/* How signs that ASCII lacks are spelt out for a terminal without Unicode, or for --ascii. */
#include <stdlib.h>
#include <string.h>

#include "common/term.h"

/* The bytes of the sign that text begins with, 0 if it begins with none, and its spelling. */
static size_t sign(const char *text, const char **spelt) {
    static const char *const signs[][2] = {
        { "√", "sqrt " }, { "·", "*" },   { "÷", "/" },  { "Σ", "sum" },   { "−", "-" },
        { "…", "..." },   { "→", "->" },  { "ᵀ", "^T" }, { "γ", "gamma" }, { "β", "beta" },
        { "ε", "eps" },   { "∞", "inf" }, { "≤", "<=" }, { "×", "x" },     { "Φ", "Phi" },
        { "₀", "0" },     { "ᵢ", "_i" },  { "ⱼ", "_j" }, { "²", "^2" },    { "σ", "sigma" },
        { "‖", "|" },     { "μ", "mu" },  { "≈", "~" },  { "–", "-" },     { "∈", "in" },
        { "π", "pi" },    { "∂", "d" },   { "₁", "1" },
    };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const size_t n = strlen(signs[i][0]);
        if (strncmp(text, signs[i][0], n) != 0) continue;
        *spelt = signs[i][1];
        return n;
    }
    return 0;
}

char *term_plain(const char *text, bool ascii) {
    enum { MOST = 6 }; /* bytes in place of one */
    char *const made = malloc(strlen(text) * MOST + 1), *end = made;
    bool ours = true; /* words from outside stay as they are */
    while (made && *text) {
        if (*text == WORD_BEGIN || *text == WORD_END) ours = *text == WORD_END;
        const char *spelt = NULL;
        const size_t n = ascii && ours ? sign(text, &spelt) : 0;
        const bool shown = *text != WORD_BEGIN && *text != WORD_END;
        const size_t n_made = n ? strlen(spelt) : shown;
        memcpy(end, n ? spelt : text, n_made);
        end += n_made;
        text += n ? n : 1;
    }
    if (made) *end = '\0';
    return made;
}

char *term_spell_out(const char *text) { return term_plain(text, true); }
