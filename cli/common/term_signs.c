/* Signs that ASCII lacks, as they are spelt out where the terminal has no others. */
#include <stdlib.h>
#include <string.h>

#include "common/term.h"

size_t term_sign(const char *text, const char **spelt) {
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

char *term_spell_out(const char *text) {
    char *const made = malloc(strlen(text) * TERM_SIGN_BYTES + 1), *end = made;
    while (made && *text) {
        const char *spelt;
        const size_t n = term_sign(text, &spelt);
        if (n)
            end = stpcpy(end, spelt);
        else
            *end++ = *text;
        text += n ? n : 1;
    }
    if (made) *end = '\0';
    return made;
}
