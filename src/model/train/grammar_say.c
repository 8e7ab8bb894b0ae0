/* Making text: draws a say, then lexemes for its variables, then writes the words.
 *
 * A pair that does not belong together is wrong for a reason that the text shows, never because two
 * halves happen not to be listed. Either its second half is that of a true pair in which one shared
 * variable stands for something else (another entity, gender or number), or it is taken from another
 * say and speaks of something that the first half does not mention. In both cases the grammar is
 * asked whether it could say the result as a true pair; if so it is drawn again.
 *
 * Everything is drawn from one Philox stream per (seed, split, index).
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/train/grammar_words.h"

enum {
    SINGLE_PERCENT = 50,   /* sentences alone; the rest are pairs */
    NEGATIVE_PERCENT = 50, /* of the pairs */
    FOREIGN_PERCENT = 30,  /* of the negatives: second half from another say */
    TRIES = 40,
    MOST_DRAWS = 20000, /* to draw a say at all */
    URN_SHARE = 840     /* balls of a family of weight 1: divisible by 1 … 8 says */
};

/* ---- Drawing ---- */

static uint32_t say_vars(const qkvi_say *say) { return say->vars[0] | say->vars[1]; }

/* Draws a lexeme that stands in its relations to the assigned variables; false after TRIES. */
static bool draw_var(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_var *var, int32_t *lexeme,
                     const qkvi_assignment *assignment) {
    const qkvi_domain *const domain = &var->domains[QKVI_ANY];
    for (int32_t i = 0; i < TRIES; ++i) {
        *lexeme = domain->urn[qkvi_rng_below(rng, (uint32_t)domain->n_urn)];
        if (qkvi_relations_hold(g, var, *lexeme, assignment)) return true;
    }
    return false;
}

static bool draw(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say,
                 qkvi_assignment *assignment) {
    const qkvi_family *const family = &g->families[say->family];
    for (int32_t v = 0; v < QKVI_MAX_VARS; ++v) assignment->lexeme[v] = -1;
    for (int32_t v = 0; v < family->n_vars; ++v) {
        if (!(say_vars(say) >> v & 1)) continue;
        int32_t lexeme;
        if (!draw_var(g, rng, &family->vars[v], &lexeme, assignment)) return false;
        assignment->lexeme[v] = lexeme;
    }
    return true;
}

/* ---- Writing ---- */

/* The frame of a say for which the variables in <> are as bare as their lexemes. */
static const qkvi_frame *frame_for(const qkvi_grammar *g, const qkvi_say *say,
                                   const qkvi_assignment *assignment) {
    uint32_t bits = 0;
    for (int32_t i = 0; i < say->n_optional; ++i) {
        const int32_t v = say->optional[i];
        const qkvi_domain *const bare = &g->families[say->family].vars[v].domains[QKVI_BARE];
        bits |= (uint32_t)qkvi_domain_has(bare, assignment->lexeme[v]) << i;
    }
    return &g->frames[say->first_frame + (int32_t)bits];
}

/* Appends the words of one half; *probe is the place of the probe's element, or stays. */
static void add_half(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say, int half,
                     const qkvi_assignment *assignment, qkvi_sentence *sentence) {
    const qkvi_frame *const frame = frame_for(g, say, assignment);
    const int32_t from = half ? frame->n_a : 0, to = half ? frame->n_elements : frame->n_a;
    for (int32_t i = from; i < to; ++i) {
        int32_t words[QKVI_MAX_ALTERNATIVES];
        const int32_t n =
            qkvi_element_words(g, &g->elements[frame->first_element + i], assignment, words);
        sentence->words[sentence->n++] =
            words[n > 1 ? (int32_t)qkvi_rng_below(rng, (uint32_t)n) : 0];
    }
    if (!half) sentence->n_a = sentence->n;
}

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

/* ---- Pairs that do not belong together ---- */

/* Relations between variables of the second half only: it must make sense by itself. */
static bool half_holds(const qkvi_grammar *g, const qkvi_say *say, int half,
                       const qkvi_assignment *assignment) {
    const qkvi_family *const family = &g->families[say->family];
    qkvi_assignment part = *assignment;
    for (int32_t v = 0; v < family->n_vars; ++v)
        if (!(say->vars[half] >> v & 1)) part.lexeme[v] = -1;
    for (int32_t v = 0; v < family->n_vars; ++v)
        if (part.lexeme[v] >= 0 && !qkvi_relations_hold(g, &family->vars[v], part.lexeme[v], &part))
            return false;
    return true;
}

/* The same pair, but in its second half one shared variable stands for something else. */
static bool change_entity(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say,
                          const qkvi_assignment *assignment, qkvi_sentence *sentence) {
    const uint32_t shared = say->vars[0] & say->vars[1];
    for (int32_t i = 0; i < TRIES; ++i) {
        const int32_t v = (int32_t)qkvi_rng_below(rng, QKVI_MAX_VARS);
        if (!(shared >> v & 1)) continue;
        const qkvi_domain *const domain = &g->families[say->family].vars[v].domains[QKVI_ANY];
        qkvi_assignment other = *assignment;
        other.lexeme[v] = domain->urn[qkvi_rng_below(rng, (uint32_t)domain->n_urn)];
        if (!half_holds(g, say, 1, &other)) continue;
        sentence->n = 0;
        add_half(g, rng, say, 0, assignment, sentence);
        add_half(g, rng, say, 1, &other, sentence);
        if (!qkvi_grammar_is_pair(g, sentence)) return true;
    }
    return false;
}

/* Whether the first half mentions neither the noun nor anything with the pronoun of `lexeme`. */
static bool is_unmentioned(const qkvi_grammar *g, const qkvi_element *element,
                           const qkvi_lexeme *lexeme, const qkvi_assignment *a) {
    for (int32_t v = 0; v < QKVI_MAX_VARS; ++v) {
        if (a->lexeme[v] < 0) continue;
        const qkvi_lexeme *const known = &g->lexemes[a->lexeme[v]];
        if (element->kind == QKVI_PERSON && known->person == lexeme->person) return false;
        if (element->kind == QKVI_FORM &&
            (known->forms[0] == lexeme->forms[0] || known->forms[1] == lexeme->forms[0] ||
             known->forms[2] == lexeme->forms[0]))
            return false;
    }
    return true;
}

/* Whether some reference of the second half goes to something that the first does not mention. */
static bool speaks_of_another(const qkvi_grammar *g, const qkvi_say *say, const qkvi_frame *frame,
                              const qkvi_assignment *b, const qkvi_assignment *a) {
    const uint32_t shared = say->vars[0] & say->vars[1];
    for (int32_t i = frame->n_a; i < frame->n_elements; ++i) {
        const qkvi_element *const element = &g->elements[frame->first_element + i];
        if (element->kind != QKVI_FORM && element->kind != QKVI_PERSON) continue;
        if (element->kind == QKVI_PERSON && element->form > QKVI_OWN) continue;
        if (!(shared >> element->var & 1)) continue;
        const qkvi_lexeme *const lexeme = &g->lexemes[b->lexeme[element->var]];
        if (lexeme->person >= 0 && is_unmentioned(g, element, lexeme, a)) return true;
    }
    return false;
}

/* The first half of one say, the second of another, which speaks of something else. */
static bool change_subject(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say,
                           const qkvi_assignment *assignment, qkvi_sentence *sentence) {
    const qkvi_urn *const urn = &g->urns[QKVI_URN_PAIR];
    qkvi_assignment first = *assignment, other;
    for (int32_t v = 0; v < QKVI_MAX_VARS; ++v)
        if (!(say->vars[0] >> v & 1)) first.lexeme[v] = -1;
    for (int32_t i = 0; i < TRIES; ++i) {
        const qkvi_say *const from = &g->says[urn->balls[qkvi_rng_below(rng, (uint32_t)urn->n)]];
        if (from == say || !draw(g, rng, from, &other)) continue;
        if (!speaks_of_another(g, from, frame_for(g, from, &other), &other, &first)) continue;
        sentence->n = 0;
        add_half(g, rng, say, 0, assignment, sentence);
        add_half(g, rng, from, 1, &other, sentence);
        if (sentence->n <= QKVI_PAIR_WORDS && !qkvi_grammar_is_pair(g, sentence)) return true;
    }
    return false;
}

/* ---- One pair ---- */

static void note_probe(const qkvi_grammar *g, const qkvi_say *say,
                       const qkvi_assignment *assignment, const qkvi_sentence *sentence,
                       qkvi_pair *pair) {
    const qkvi_frame *const frame = frame_for(g, say, assignment);
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

/* Makes the words of a true or a false pair; false if the draw was unlucky. */
static bool make_words(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say,
                       const qkvi_assignment *assignment, bool is_next, qkvi_sentence *sentence) {
    if (!is_next) {
        const bool foreign = qkvi_rng_below(rng, 100) < FOREIGN_PERCENT;
        return foreign ? change_subject(g, rng, say, assignment, sentence)
                       : change_entity(g, rng, say, assignment, sentence);
    }
    sentence->n = 0;
    add_half(g, rng, say, 0, assignment, sentence);
    if (say->is_pair) add_half(g, rng, say, 1, assignment, sentence);
    return true;
}

/* What the generator wants of a say. */
typedef struct wish {
    bool is_held, is_next;
} wish;

/* Draws a say's variables and words once; false if that gave something else than the wish. */
static bool try_words(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_say *say, wish w,
                      qkvi_assignment *assignment, qkvi_sentence *sentence) {
    if (!draw(g, rng, say, assignment) || qkvi_is_held(g, say, assignment) != w.is_held)
        return false;
    if (!make_words(g, rng, say, assignment, w.is_next, sentence)) return false;
    return !w.is_held || !w.is_next || qkvi_grammar_said(g, sentence) == QKVI_HELD_OUT;
}

/* The label is drawn before the words, and a say that was drawn is kept until it succeeds: so nothing but
 * the words tells whether a pair belongs together. (qkvi_grammar_urns has tried that every say can succeed.) */
static void make_pair(const qkvi_grammar *g, qkvi_rng *rng, int urn, qkvi_pair *pair) {
    const qkvi_say *const say =
        &g->says[g->urns[urn].balls[qkvi_rng_below(rng, (uint32_t)g->urns[urn].n)]];
    const wish w = { urn != QKVI_URN_SINGLE && urn != QKVI_URN_PAIR,
                     !say->is_pair || qkvi_rng_below(rng, 100) >= NEGATIVE_PERCENT };
    qkvi_assignment assignment;
    qkvi_sentence sentence;
    while (!try_words(g, rng, say, w, &assignment, &sentence)) {
    }
    write_text(g, &sentence, pair);
    pair->is_next = w.is_next;
    pair->counts_for_mlm = w.is_next;
    pair->has_probe = 0;
    pair->n_content = 0;
    if (!say->is_pair) note_probe(g, say, &assignment, &sentence, pair);
}

void qkvi_grammar_pair(const qkvi_grammar *g, qkvi_split split, int64_t index, uint64_t seed,
                       qkvi_pair *pair) {
    qkvi_rng rng = qkvi_rng_make(seed, (uint32_t)split, (uint64_t)index);
    int single = QKVI_URN_SINGLE, both = QKVI_URN_PAIR;
    const bool holds_out = g->urns[QKVI_URN_HELD_SINGLE].n || g->urns[QKVI_URN_HELD_PAIR].n;
    if (split == QKVI_SPLIT_HELD_OUT && holds_out) {
        single = QKVI_URN_HELD_SINGLE;
        both = QKVI_URN_HELD_PAIR;
    }
    const bool alone =
        g->urns[single].n && (!g->urns[both].n || qkvi_rng_below(&rng, 100) < SINGLE_PERCENT);
    make_pair(g, &rng, alone ? single : both, pair);
}

int qkvi_grammar_probe(const qkvi_grammar *g, int64_t index, uint64_t seed, qkvi_pair *pair) {
    if (!g->urns[QKVI_URN_PROBE].n) return 0;
    qkvi_rng rng = qkvi_rng_make(seed, 2, (uint64_t)index);
    make_pair(g, &rng, QKVI_URN_PROBE, pair);
    return 1;
}

/* ---- The urns ---- */

/* Whether some of what the say says is held out. */
static bool can_be_held(const qkvi_grammar *g, const qkvi_say *say) {
    const qkvi_family *const family = &g->families[say->family];
    uint32_t needed = 0;
    for (int32_t i = 0; i < family->n_hold; ++i) needed |= 1u << family->hold[i];
    return say->is_held || (needed && (say_vars(say) & needed) == needed);
}

static bool belongs(const qkvi_grammar *g, const qkvi_say *say, int urn) {
    switch (urn) {
    case QKVI_URN_SINGLE: return !say->is_pair && !say->is_held;
    case QKVI_URN_PAIR: return say->is_pair && !say->is_held;
    case QKVI_URN_HELD_SINGLE: return !say->is_pair && can_be_held(g, say);
    case QKVI_URN_HELD_PAIR: return say->is_pair && can_be_held(g, say);
    default: return say->has_probe && can_be_held(g, say);
    }
}

/* Each family puts URN_SHARE * weight balls in, shared by its says. */
static qkv_status fill_urn(const qkvi_reader *r, int which) {
    const qkvi_grammar *const g = r->g;
    qkvi_urn *const urn = &r->g->urns[which];
    int32_t capacity = 0;
    for (int32_t f = 0; f < g->n_families; ++f) {
        const qkvi_family *const family = &g->families[f];
        int32_t n = 0;
        for (int32_t s = 0; s < family->n_says; ++s)
            n += belongs(g, &g->says[family->first_say + s], which);
        for (int32_t s = 0; s < family->n_says; ++s) {
            if (!belongs(g, &g->says[family->first_say + s], which)) continue;
            const int32_t share = URN_SHARE * family->weight / n;
            for (int32_t i = 0; i < (share ? share : 1); ++i) {
                QKV_TRY(qkvi_reader_grow(r, &urn->balls, urn->n, &capacity, sizeof *urn->balls));
                urn->balls[urn->n++] = family->first_say + s;
            }
        }
    }
    return QKV_OK;
}

/* Draws what the generator will want of a say, so that it can never search in vain. */
static qkv_status try_say(const qkvi_reader *r, int32_t s, wish w) {
    const qkvi_grammar *const g = r->g;
    const qkvi_say *const say = &g->says[s];
    qkvi_rng rng = qkvi_rng_make(0, 3, (uint64_t)s);
    qkvi_assignment assignment;
    qkvi_sentence sentence;
    for (int32_t i = 0; i < MOST_DRAWS; ++i)
        if (try_words(g, &rng, say, w, &assignment, &sentence)) return QKV_OK;
    return qkvi_reader_fail(r, QKV_ERR_FORMAT, "sentence %d of family '%s' is never %s%s",
                            (int)(s - g->families[say->family].first_say + 1),
                            g->families[say->family].name, w.is_held ? "held out" : "drawn",
                            w.is_next ? "" : " with a wrong second half");
}

qkv_status qkvi_grammar_urns(const qkvi_reader *r) {
    for (int u = 0; u < QKVI_N_URNS; ++u) QKV_TRY(fill_urn(r, u));
    for (int32_t s = 0; s < r->g->n_says; ++s) {
        qkvi_reader at = *r;
        at.line = r->g->families[r->g->says[s].family].line;
        const qkvi_say *const say = &r->g->says[s];
        for (int next = 1; next >= !say->is_pair; --next) {
            if (!say->is_held) QKV_TRY(try_say(&at, s, (wish){ false, next }));
            if (can_be_held(r->g, say)) QKV_TRY(try_say(&at, s, (wish){ true, next }));
        }
    }
    return QKV_OK;
}
