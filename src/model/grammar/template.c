/*
 * Making a pair: draws a template, then its words, then writes them as text with the places of each.
 *
 * Everything is drawn from one Philox stream per (seed, split, index), so a pair is a pure function
 * of these three.
 */
#include <assert.h>

#include "model/grammar/template.h"

enum {
    SINGLE_PERCENT = 40,  /* sentences alone; the rest are pairs */
    NEGATIVE_PERCENT = 50 /* of the pairs */
};

/* ---- Writing ---- */

static bool hugs_left(const char *word) {
    return word[1] == '\0' && strchr(".,?!;:", word[0]) != NULL;
}

/* Writes the words with capitals and spaces, and notes their spans. */
static void write_text(const qkvi_grammar *g, qkvi_sentence *sentence, qkvi_pair *pair) {
    int32_t at = 0, start = 0;
    for (int32_t i = 0; i < sentence->n; ++i) {
        const char *const text = g->words[sentence->words[i]].text;
        const int32_t bytes = (int32_t)strlen(text);
        const int half = i >= sentence->n_a;
        const bool is_first = i == 0 || i == sentence->n_a;
        if (i == sentence->n_a) start = at;
        if (!is_first && !hugs_left(text)) pair->buffer[at++] = ' ';
        assert(at + bytes + 1 < QKVI_PAIR_BYTES);
        memcpy(pair->buffer + at, text, (size_t)bytes);
        if (is_first && text[0] >= 'a' && text[0] <= 'z')
            pair->buffer[at] = (char)(text[0] - 'a' + 'A');
        sentence->spans[i] = (qkvi_span){ half, at - start, at - start + bytes };
        at += bytes;
    }
    const int32_t a_bytes = sentence->n > sentence->n_a ? start : at;
    pair->a = pair->buffer;
    pair->a_bytes = a_bytes;
    pair->b = pair->buffer + a_bytes;
    pair->b_bytes = at - a_bytes;
}

/* ---- One pair ---- */

static void note_probe(const qkvi_grammar *g, const qkvi_template *template,
                       const qkvi_assignment *assignment, const qkvi_sentence *sentence,
                       qkvi_pair *pair) {
    const qkvi_frame *const frame = qkvi_template_frame(g, template, assignment);
    const qkvi_element *const elements = g->elements + frame->first_element;
    pair->n_content = 0;
    for (int32_t i = 0; i < sentence->n_a; ++i) {
        const qkvi_grammar_word *const word = &g->words[sentence->words[i]];
        if (word->is_content && !word->is_function)
            pair->content[pair->n_content++] = sentence->spans[i];
        if (!elements[i].is_probe) continue;
        pair->has_probe = 1;
        pair->pronoun = sentence->spans[i];
        for (int32_t k = 0; k < sentence->n_a; ++k)
            if (elements[k].kind == QKVI_FORM && elements[k].var == elements[i].var)
                pair->antecedent = sentence->spans[k];
    }
}

/*
 * The label is drawn before the words, and a template that was drawn is kept until it succeeds: so
 * nothing but the words tells whether a pair belongs together. (qkvi_grammar_urns has tried that
 * every template can succeed.)
 */
static void make_pair(const qkvi_grammar *g, qkvi_rng *rng, int pool, qkvi_pair *pair) {
    const qkvi_template *const template =
        &g->templates[g->pools[pool].entries[qkvi_rng_below(rng, (uint32_t)g->pools[pool].n)]];
    const qkvi_wish w = { pool != QKVI_POOL_SINGLE && pool != QKVI_POOL_PAIR,
                          !template->is_pair || qkvi_rng_below(rng, 100) >= NEGATIVE_PERCENT };
    qkvi_assignment assignment;
    qkvi_sentence sentence;
    while (!qkvi_template_try(g, rng, template, w, &assignment, &sentence)) {
    }
    write_text(g, &sentence, pair);
    pair->is_next = w.is_next;
    pair->counts_for_mlm = w.is_next;
    pair->has_probe = 0;
    pair->n_content = 0;
    if (!template->is_pair) note_probe(g, template, &assignment, &sentence, pair);
}

void qkvi_grammar_pair(const qkvi_grammar *g, qkvi_split split, int64_t index, uint64_t seed,
                       qkvi_pair *pair) {
    qkvi_rng rng = qkvi_rng_make(seed, (uint32_t)split, (uint64_t)index);
    int single = QKVI_POOL_SINGLE, both = QKVI_POOL_PAIR;
    const bool holds_out = g->pools[QKVI_POOL_HELD_SINGLE].n || g->pools[QKVI_POOL_HELD_PAIR].n;
    if (split == QKVI_SPLIT_HELD_OUT && holds_out) {
        single = QKVI_POOL_HELD_SINGLE;
        both = QKVI_POOL_HELD_PAIR;
    }
    const bool alone =
        g->pools[single].n && (!g->pools[both].n || qkvi_rng_below(&rng, 100) < SINGLE_PERCENT);
    make_pair(g, &rng, alone ? single : both, pair);
}

int qkvi_grammar_probe(const qkvi_grammar *g, int64_t index, uint64_t seed, qkvi_pair *pair) {
    if (!g->pools[QKVI_POOL_PROBE].n) return 0;
    qkvi_rng rng = qkvi_rng_make(seed, 2, (uint64_t)index);
    make_pair(g, &rng, QKVI_POOL_PROBE, pair);
    return 1;
}
