/*
 * Draws a text of a template: first a lexeme for each variable in the order of the family, from
 * those that satisfy the relations to the variables before; then the words. A draw that fails is
 * repeated, so every text of the grammar is possible, and the result depends only on the random
 * stream.
 */
#include "train/grammar/template.h"
#include "train/grammar/words.h"

/* ---- Pools ----------------------------------------------------------------------------------- */

/*
 * The pools that says are drawn from, and the check that each of their templates can be drawn: so
 * the generator never searches in vain, and a grammar that contradicts itself is refused when it is
 * read.
 */

enum {
    MOST_DRAWS = 20000,  /* to draw a template at all */
    MOST_WORK = 1 << 26, /* to draw all of them: frames looked at, and as many for a draw itself: */
    DRAW_WORK = 64,
    POOL_SHARE = 840 /* entries of a family of weight 1: divisible by 1 … 8 templates */
};

static bool belongs(const qkvi_grammar *g, const qkvi_sentence_template *template, int pool) {
    switch (pool) {
    case QKVI_POOL_SINGLE: return !template->is_pair && !template->is_held;
    case QKVI_POOL_PAIR: return template->is_pair && !template->is_held;
    case QKVI_POOL_HELD_SINGLE: return !template->is_pair && qkvi_template_can_be_held(g, template);
    case QKVI_POOL_HELD_PAIR: return template->is_pair && qkvi_template_can_be_held(g, template);
    default: return template->has_probe && qkvi_template_can_be_held(g, template);
    }
}

/* Each family puts POOL_SHARE * weight entries in, shared by its templates. */
static qkv_status fill_pool(const qkvi_reader *r, int which) {
    const qkvi_grammar *const g = r->g;
    qkvi_template_pool *const pool = &r->g->pools[which];
    int32_t capacity = 0;
    for (int32_t f = 0; f < g->n_families; ++f) {
        const qkvi_family *const family = &g->families[f];
        int32_t n = 0;
        for (int32_t s = 0; s < family->n_templates; ++s)
            n += belongs(g, &g->templates[family->first_template + s], which);
        for (int32_t s = 0; s < family->n_templates; ++s) {
            if (!belongs(g, &g->templates[family->first_template + s], which)) continue;
            const int32_t share = POOL_SHARE * family->weight / n;
            for (int32_t i = 0; i < (share ? share : 1); ++i) {
                QKV_TRY(
                    qkvi_reader_grow(r, &pool->entries, pool->n, &capacity, sizeof *pool->entries));
                pool->entries[pool->n++] = family->first_template + s;
            }
        }
    }
    return QKV_OK;
}

/*
 * A draw's share of MOST_WORK: all frames are looked at for what is held out, if it is reached, and
 * again and again for what does not belong together.
 */
static int64_t work_of(const qkvi_grammar *g, const qkvi_sentence_template *template, qkvi_wish w) {
    int64_t work = DRAW_WORK;
    if (w.is_held) work += template->is_held ? g->n_frames : g->n_frames / QKVI_HELD_ONE_IN;
    if (!w.is_next) work += (int64_t)QKVI_DRAW_TRIES * g->n_frames;
    return work;
}

/*
 * Draws what the generator will want of a template, so that it can never search in vain. *work_left
 * is for all templates: a file may be made to take for ever.
 */
static qkv_status try_say(const qkvi_reader *r, int32_t s, qkvi_wish w, int64_t *work_left) {
    const qkvi_grammar *const g = r->g;
    const qkvi_sentence_template *const template = &g->templates[s];
    qkvi_rng rng = qkvi_rng_make(0, 3, (uint64_t)s);
    qkvi_assignment assignment;
    qkvi_sentence sentence;
    for (int32_t i = 0; i < MOST_DRAWS; ++i) {
        *work_left -= work_of(g, template, w);
        if (*work_left < 0)
            return qkvi_reader_fail(
                r, QKV_ERR_LIMIT,
                "the sentences are too many, or of words too rare, to draw each of them");
        if (qkvi_template_try(g, &rng, template, w, &assignment, &sentence)) return QKV_OK;
    }
    return qkvi_reader_fail(r, QKV_ERR_FORMAT, "sentence %d of family '%s' is never %s%s",
                            (int)(s - g->families[template->family].first_template + 1),
                            g->families[template->family].name, w.is_held ? "held out" : "drawn",
                            w.is_next ? "" : " with a wrong second half");
}

qkv_status qkvi_grammar_pools(const qkvi_reader *r) {
    for (int u = 0; u < QKVI_N_POOLS; ++u) QKV_TRY(fill_pool(r, u));
    if (!r->g->pools[QKVI_POOL_SINGLE].n && !r->g->pools[QKVI_POOL_PAIR].n)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "every sentence is held, none is left to train");
    int64_t work_left = MOST_WORK;
    for (int32_t s = 0; s < r->g->n_templates; ++s) {
        qkvi_reader at = *r;
        at.line = r->g->families[r->g->templates[s].family].line;
        const qkvi_sentence_template *const template = &r->g->templates[s];
        for (int next = 1; next >= !template->is_pair; --next) {
            if (!template->is_held)
                QKV_TRY(try_say(&at, s, (qkvi_wish){ false, next }, &work_left));
            if (qkvi_template_can_be_held(r->g, template))
                QKV_TRY(try_say(&at, s, (qkvi_wish){ true, next }, &work_left));
        }
    }
    return QKV_OK;
}

static uint32_t template_vars(const qkvi_sentence_template *template) {
    return template->vars[0] | template->vars[1];
}

/*
 * Draws a lexeme that stands in its relations to the assigned variables; false after
 * QKVI_DRAW_TRIES.
 */
static bool draw_var(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_var *var, int32_t *lexeme,
                     const qkvi_assignment *assignment) {
    const qkvi_domain *const domain = &var->domains[QKVI_ANY];
    for (int32_t i = 0; i < QKVI_DRAW_TRIES; ++i) {
        *lexeme = domain->pool[qkvi_rng_below(rng, (uint32_t)domain->n_pool)];
        if (qkvi_relations_hold(g, var, *lexeme, assignment)) return true;
    }
    return false;
}

bool qkvi_template_draw(const qkvi_grammar *g, qkvi_rng *rng,
                        const qkvi_sentence_template *template, qkvi_assignment *assignment) {
    const qkvi_family *const family = &g->families[template->family];
    for (int32_t v = 0; v < QKVI_MAX_VARS; ++v) assignment->lexeme[v] = -1;
    for (int32_t v = 0; v < family->n_vars; ++v) {
        if (!(template_vars(template) >> v & 1)) continue;
        int32_t lexeme;
        if (!draw_var(g, rng, &family->vars[v], &lexeme, assignment)) return false;
        assignment->lexeme[v] = lexeme;
    }
    return true;
}

const qkvi_sentence_frame *qkvi_template_frame(const qkvi_grammar *g,
                                               const qkvi_sentence_template *template,
                                               const qkvi_assignment *assignment) {
    uint32_t bits = 0;
    for (int32_t i = 0; i < template->n_optional; ++i) {
        const int32_t v = template->optional[i];
        const qkvi_domain *const bare = &g->families[template->family].vars[v].domains[QKVI_BARE];
        bits |= (uint32_t)qkvi_domain_has(bare, assignment->lexeme[v]) << i;
    }
    return &g->frames[template->first_frame + (int32_t)bits];
}

void qkvi_template_half(const qkvi_grammar *g, qkvi_rng *rng,
                        const qkvi_sentence_template *template, int half,
                        const qkvi_assignment *assignment, qkvi_sentence *sentence) {
    const qkvi_sentence_frame *const frame = qkvi_template_frame(g, template, assignment);
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

bool qkvi_template_try(const qkvi_grammar *g, qkvi_rng *rng, const qkvi_sentence_template *template,
                       qkvi_wish wish, qkvi_assignment *assignment, qkvi_sentence *sentence) {
    if (!qkvi_template_draw(g, rng, template, assignment)) return false;
    if (qkvi_is_held(g, template, assignment) != wish.is_held) return false;
    if (!wish.is_next) return qkvi_template_wrong(g, rng, template, assignment, sentence);
    sentence->n = 0;
    qkvi_template_half(g, rng, template, 0, assignment, sentence);
    if (template->is_pair) qkvi_template_half(g, rng, template, 1, assignment, sentence);
    return !wish.is_held || qkvi_grammar_said(g, sentence, 3) == QKVI_HELD_OUT;
}

bool qkvi_template_can_be_held(const qkvi_grammar *g, const qkvi_sentence_template *template) {
    const qkvi_family *const family = &g->families[template->family];
    uint32_t needed = 0;
    for (int32_t i = 0; i < family->n_hold; ++i) needed |= 1u << family->hold[i];
    return template->is_held || (needed && (template_vars(template) & needed) == needed);
}
