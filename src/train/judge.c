/*
 * qkv_eval_sentences: which sentences of a text a grammar says.
 *
 * A line is cut after each . ? and !. Neighbouring cuts are joined to texts of the grammar: a
 * sentence, a pair, or the first half of a pair (a second half depends on the first, and does not
 * count alone). Of all ways to join them, the one counts that leaves the fewest cuts over, and of
 * these the one with the fewest held-out cuts:
 *
 *     best[i] = max(best[i - 1], best[i - m] + worth)      if the m cuts before i are such a text
 *
 * m is at most the number of . ? ! in the longest pair of the grammar, so the time is linear in the
 * number of cuts.
 */

#include "core/options.h"
#include "qkv/train.h"
#include "train/corpus.h"
#include "train/grammar/grammar.h"

/* Cuts 0 … i of a line, whose bytes end at `end`; said: what cut i is in the best reading. */
typedef struct cut {
    int64_t end, best;
    int32_t length; /* of the piece that ends here, in cuts */
    qkvi_said said; /* of that piece */
} cut;

typedef struct judge {
    const qkvi_grammar *g;
    int32_t most_ends; /* that one piece can have */
    cut *cuts;         /* room for those of any line; cuts[0] is the line's begin */
    const char *line;
    qkv_sentence_score *score;
    qkv_sentence_visit *visit;
    void *user;
} judge;

static bool is_end(char c) { return c == '.' || c == '?' || c == '!'; }

static bool is_end_word(const qkvi_grammar *g, const qkvi_element *element) {
    for (int32_t k = 0; element->kind == QKVI_LITERAL && k < element->n_words; ++k)
        if (is_end(g->words[element->words[k]].key[0])) return true;
    return false;
}

static int32_t most_ends(const qkvi_grammar *g) {
    int32_t most = 1;
    for (int32_t f = 0; f < g->n_frames; ++f) {
        int32_t n = 0;
        for (int32_t i = 0; i < g->frames[f].n_elements; ++i)
            n += is_end_word(g, &g->elements[g->frames[f].first_element + i]);
        if (n > most) most = n;
    }
    return most;
}

static bool is_only_spaces(const char *bytes, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
        if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r') return false;
    return true;
}

/* Cuts of a line, or (cuts NULL) their number. What follows the last end is one, too. */
static int64_t cut_line(const char *line, int64_t bytes, cut *cuts) {
    int64_t n = 0, from = 0;
    if (cuts) cuts[0] = (cut){ 0 };
    for (int64_t i = 0; i < bytes; ++i) {
        const bool is_last = i + 1 == bytes;
        if (!is_end(line[i]) && !is_last) continue;
        if (is_last && !is_end(line[i]) && is_only_spaces(line + from, bytes - from)) break;
        ++n;
        if (cuts) cuts[n] = (cut){ .end = i + 1 };
        from = i + 1;
    }
    return n;
}

/* ---- One piece ---- */

static qkvi_said said_of(const judge *j, int64_t from, int64_t middle, int64_t to) {
    qkvi_sentence sentence;
    const bool is_pair = middle < to;
    if (!qkvi_grammar_split(j->g, j->line + from, middle - from, is_pair ? j->line + middle : NULL,
                            to - middle, &sentence))
        return QKVI_NEVER_SAID;
    for (int32_t i = 0; i < sentence.n; ++i)
        if (sentence.words[i] < 0) return QKVI_NEVER_SAID; /* unknown, or [MASK] */
    return qkvi_grammar_said(j->g, &sentence, 2);
}

/* Cuts first + 1 … last as one sentence, as a first half, or as a pair: the best of these. */
static qkvi_said piece(const judge *j, int64_t first, int64_t last) {
    const int64_t from = j->cuts[first].end, to = j->cuts[last].end;
    qkvi_said said = said_of(j, from, to, to);
    for (int64_t k = first + 1; k < last && said != QKVI_TRAINED; ++k) {
        const qkvi_said pair = said_of(j, from, j->cuts[k].end, to);
        if (pair > said) said = pair;
    }
    return said;
}

/* ---- Lines ---- */

/* What m cuts add: first counts how many are said, and then how many of them are of training. */
static int64_t worth(qkvi_said said, int64_t m) {
    return said == QKVI_NEVER_SAID ? 0 : m << 32 | (said == QKVI_TRAINED ? m : 0);
}

static void read_cuts(const judge *j, int64_t n) {
    for (int64_t i = 1; i <= n; ++i) {
        cut *const c = &j->cuts[i];
        c->best = c[-1].best;
        c->length = 1;
        c->said = QKVI_NEVER_SAID;
        for (int32_t m = 1; m <= j->most_ends && m <= i; ++m) {
            const qkvi_said said = piece(j, i - m, i);
            const int64_t best = j->cuts[i - m].best + worth(said, m);
            if (best <= c->best) continue;
            c->best = best;
            c->length = m;
            c->said = said;
        }
    }
    for (int64_t i = n; i > 0; i -= j->cuts[i].length) /* every cut has what its piece has */
        for (int64_t k = 1; k < j->cuts[i].length; ++k) j->cuts[i - k].said = j->cuts[i].said;
}

static void count_cuts(const judge *j, int64_t n) {
    for (int64_t i = 1; i <= n; ++i) {
        const qkvi_said said = j->cuts[i].said;
        int64_t from = j->cuts[i - 1].end;
        const int64_t to = j->cuts[i].end;
        while (from < to && is_only_spaces(j->line + from, 1)) ++from;
        if (said == QKVI_NEVER_SAID && i == n && !is_end(j->line[to - 1])) {
            j->score->n_unfinished++;
            continue;
        }
        j->score->n_sentences++;
        j->score->n_said += said != QKVI_NEVER_SAID;
        j->score->n_held_out += said == QKVI_HELD_OUT;
        if (j->visit) j->visit(j->user, j->line + from, (size_t)(to - from), (int)said);
    }
}

static qkv_status judge_text(judge *j, const qkvi_text *text, qkv_error *error) {
    int64_t bytes, most = 0;
    for (int64_t i = 0; i < qkvi_text_n_lines(text); ++i) {
        const char *const line = qkvi_text_line(text, i, &bytes);
        const int64_t n = cut_line(line, bytes, NULL);
        if (n > most) most = n;
    }
    j->cuts = qkvi_malloc_array((size_t)most + 1, sizeof *j->cuts);
    if (!j->cuts) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to judge sentences");
    for (int64_t i = 0; i < qkvi_text_n_lines(text); ++i) {
        j->line = qkvi_text_line(text, i, &bytes);
        const int64_t n = cut_line(j->line, bytes, j->cuts);
        read_cuts(j, n);
        count_cuts(j, n);
    }
    free(j->cuts);
    return QKV_OK;
}

qkv_status qkv_eval_sentences(const char *grammar, const char *text, qkv_sentence_visit *visit,
                              void *user, qkv_sentence_score *score, qkv_error *error) {
    QKV_TRY(qkvi_need(grammar, "grammar", error));
    QKV_TRY(qkvi_need(text, "text", error));
    QKV_TRY(qkvi_need(score, "score", error));
    qkv_sentence_score made = qkv_sentence_score_init();
    QKV_TRY(qkvi_options_read(&made, sizeof made, score, "qkv_sentence_score", error));
    made = qkv_sentence_score_init();
    qkvi_options_write(score, &made, sizeof made);
    qkvi_corpus *corpus;
    qkvi_text *lines = NULL;
    QKV_TRY(qkvi_corpus_open_grammar(grammar, &corpus, error));
    qkv_status status = qkvi_text_open(text, &lines, error);
    if (status == QKV_OK) {
        const qkvi_grammar *const g = qkvi_corpus_grammar(corpus);
        judge j = {
            .g = g, .most_ends = most_ends(g), .score = &made, .visit = visit, .user = user
        };
        status = judge_text(&j, lines, error);
    }
    qkvi_options_write(score, &made, sizeof made);
    qkvi_text_free(lines);
    qkvi_corpus_free(corpus);
    return status;
}
