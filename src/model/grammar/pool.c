/*
 * The pools that says are drawn from, and the check that each of their templates can be drawn: so the
 * generator never searches in vain, and a grammar that contradicts itself is refused when it is
 * read.
 */
#include "model/grammar/template.h"
#include "model/grammar/words.h"

enum {
    MOST_DRAWS = 20000,  /* to draw a template at all */
    MOST_WORK = 1 << 26, /* to draw all of them: frames looked at, and as many for a draw itself: */
    DRAW_WORK = 64,
    POOL_SHARE = 840 /* entries of a family of weight 1: divisible by 1 … 8 templates */
};

static bool belongs(const qkvi_grammar *g, const qkvi_template *template, int pool) {
    switch (pool) {
    case QKVI_POOL_SINGLE: return !template->is_pair && !template->is_held;
    case QKVI_POOL_PAIR: return template->is_pair && !template->is_held;
    case QKVI_POOL_HELD_SINGLE: return !template->is_pair && qkvi_template_can_be_held(g, template);
    case QKVI_POOL_HELD_PAIR: return template->is_pair && qkvi_template_can_be_held(g, template);
    default: return template->has_probe && qkvi_template_can_be_held(g, template);
    }
}

/* Each family puts POOL_SHARE * weight entries in, shared by its templates. */
static qkv_status fill_urn(const qkvi_reader *r, int which) {
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
static int64_t work_of(const qkvi_grammar *g, const qkvi_template *template, qkvi_wish w) {
    int64_t work = DRAW_WORK;
    if (w.is_held) work += template->is_held ? g->n_frames : g->n_frames / QKVI_HELD_ONE_IN;
    if (!w.is_next) work += (int64_t)QKVI_DRAW_TRIES * g->n_frames;
    return work;
}

/*
 * Draws what the generator will want of a template, so that it can never search in vain. *work_left is
 * for all templates: a file may be made to take for ever.
 */
static qkv_status try_say(const qkvi_reader *r, int32_t s, qkvi_wish w, int64_t *work_left) {
    const qkvi_grammar *const g = r->g;
    const qkvi_template *const template = &g->templates[s];
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

qkv_status qkvi_grammar_urns(const qkvi_reader *r) {
    for (int u = 0; u < QKVI_N_URNS; ++u) QKV_TRY(fill_urn(r, u));
    if (!r->g->pools[QKVI_POOL_SINGLE].n && !r->g->pools[QKVI_POOL_PAIR].n)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "every sentence is held, none is left to train");
    int64_t work_left = MOST_WORK;
    for (int32_t s = 0; s < r->g->n_templates; ++s) {
        qkvi_reader at = *r;
        at.line = r->g->families[r->g->templates[s].family].line;
        const qkvi_template *const template = &r->g->templates[s];
        for (int next = 1; next >= !template->is_pair; --next) {
            if (!template->is_held)
                QKV_TRY(try_say(&at, s, (qkvi_wish){ false, next }, &work_left));
            if (qkvi_template_can_be_held(r->g, template))
                QKV_TRY(try_say(&at, s, (qkvi_wish){ true, next }, &work_left));
        }
    }
    return QKV_OK;
}
