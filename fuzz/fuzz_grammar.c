/*
 * A grammar file. What is accepted can speak: pairs and probes of both splits are drawn, and what
 * is said is split, matched and, with a word masked, filled again with that word.
 */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "train/grammar/grammar.h"

static bool has_word(const int32_t *set, int32_t n, int32_t word) {
    for (int32_t i = 0; i < n; i++)
        if (set[i] == word) return true;
    return false;
}

/* A pair that belongs together is in the language, and so is each of its words in its place. */
static void check_pair(const qkvi_grammar *g, const qkvi_pair *pair, int32_t *set) {
    qkvi_sentence sentence;
    FUZZ_CHECK(pair->a_bytes > 0 && pair->a_bytes + pair->b_bytes <= QKVI_PAIR_BYTES);
    if (!qkvi_grammar_split(g, pair->a, pair->a_bytes, pair->b_bytes ? pair->b : NULL,
                            pair->b_bytes, &sentence))
        return;
    if (!pair->is_next) return;
    FUZZ_CHECK(qkvi_grammar_said(g, &sentence, 3) != QKVI_NEVER_SAID);
    const int32_t word = sentence.words[0];
    sentence.words[0] = -1;
    FUZZ_CHECK(has_word(set, qkvi_grammar_admissible(g, &sentence, set), word));
}

static void speak(const qkvi_grammar *g) {
    int32_t *const set = fuzz_alloc((size_t)g->n_words * sizeof *set);
    qkvi_pair pair;
    for (int64_t i = 0; i < 4; i++) {
        qkvi_grammar_pair(g, QKVI_SPLIT_TRAIN, i, 1, &pair);
        check_pair(g, &pair, set);
        qkvi_grammar_pair(g, QKVI_SPLIT_HELD_OUT, i, 1, &pair);
        check_pair(g, &pair, set);
        if (qkvi_grammar_probe(g, i, 1, &pair)) check_pair(g, &pair, set);
    }
    free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkvi_grammar *grammar;
    qkv_error error;
    const qkv_status status =
        qkvi_grammar_parse("x", (const char *)bytes, n_bytes, &grammar, &error);
    if (fuzz_accepted(status, &error))
        speak(grammar);
    else
        FUZZ_CHECK(!grammar);
    qkvi_grammar_free(grammar);
    return 0;
}
