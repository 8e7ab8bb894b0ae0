/**
 * Attention as alignment (inspect.h has the formula): weights of the heads of a layer of cross-attention
 * are averaged, pieces become words, and each written word takes the source word with the largest weight.
 */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "core/status.h"
#include "qkv/inspect.h"

struct work {
    qkv_align_options o;
    const qkv_run *run;
    int64_t b, n, n_keys, n_heads, n_row_words, n_key_words, n_counted;
    float *weights; /* [n][n_keys] of one head */
    double *table;  /* [n_row_words][n_key_words] */
};

static int is_marked(const uint8_t *marks, int64_t i) { return !marks || marks[i]; }
static int64_t word_of(const int32_t *words, int64_t i) { return words ? words[i] : i; }

/* Words begin at 0 and go on by at most one. */
static qkv_status count_words(const char *name, const int32_t *words, int64_t n, int64_t *n_words,
                              qkv_error *error) {
    *n_words = n;
    for (int64_t i = 0; words && i < n; i++) {
        const int64_t before = i ? words[i - 1] : 0;
        if (words[i] != before && (i == 0 || words[i] != before + 1))
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "%s[%lld] = %d: words begin at 0 and follow one another", name,
                                  (long long)i, words[i]);
        *n_words = words[i] + 1;
    }
    return QKV_OK;
}

static qkv_status check(struct work *w, qkv_error *error) {
    qkv_capture capture;
    QKV_TRY(qkv_run_capture_of(w->run, QKV_CROSS, w->b, w->o.layer, &capture, error));
    w->n = capture.n, w->n_keys = capture.n_keys, w->n_heads = capture.n_heads;
    QKV_TRY(count_words("row_words", w->o.row_words, w->n, &w->n_row_words, error));
    QKV_TRY(count_words("key_words", w->o.key_words, w->n_keys, &w->n_key_words, error));
    for (int64_t h = 0; h < w->n_heads; h++) w->n_counted += is_marked(w->o.heads, h);
    if (w->n_counted > 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "heads marks none of the %lld heads",
                          (long long)w->n_heads);
}

static void add_head(const struct work *w) {
    for (int64_t i = 0; i < w->n; i++) {
        double *const row = w->table + word_of(w->o.row_words, i) * w->n_key_words;
        for (int64_t j = 0; j < w->n_keys; j++)
            if (is_marked(w->o.keys, j))
                row[word_of(w->o.key_words, j)] += (double)w->weights[i * w->n_keys + j];
    }
}

/* Means over rows of a word and over heads. */
static void finish(const struct work *w) {
    for (int64_t i = 0, end; i < w->n; i = end) {
        const int64_t word = word_of(w->o.row_words, i);
        for (end = i + 1; end < w->n && word_of(w->o.row_words, end) == word; end++) {
        }
        for (int64_t k = 0; k < w->n_key_words; k++)
            w->table[word * w->n_key_words + k] /= (double)((end - i) * w->n_counted);
    }
}

/* marks: of words that may be aligned to. */
static void choose(const struct work *w, const uint8_t *marks, qkv_aligned *aligned) {
    for (int64_t a = 0; a < w->n_row_words; a++) {
        const double *const row = w->table + a * w->n_key_words;
        qkv_aligned best = { -1, 0 };
        for (int64_t k = 0; k < w->n_key_words && !isnan(best.weight); k++) {
            if (isnan(row[k])) best = (qkv_aligned){ -1, row[k] };
            if (marks[k] && (best.key_word < 0 || row[k] > best.weight) && !isnan(row[k]))
                best = (qkv_aligned){ k, row[k] };
        }
        aligned[a] = best;
    }
}

static qkv_status run_heads(struct work *w, uint8_t *marks, qkv_aligned *aligned,
                            qkv_error *error) {
    for (int64_t i = 0; i < w->n_row_words * w->n_key_words; i++) w->table[i] = 0;
    for (int64_t h = 0; h < w->n_heads; h++) {
        if (!is_marked(w->o.heads, h)) continue;
        QKV_TRY(qkv_run_weights_of(w->run, QKV_CROSS, w->b, w->o.layer, h, w->weights, error));
        add_head(w);
    }
    finish(w);
    for (int64_t j = 0; j < w->n_keys; j++)
        if (is_marked(w->o.keys, j)) marks[word_of(w->o.key_words, j)] = 1;
    choose(w, marks, aligned);
    return QKV_OK;
}

qkv_status qkv_inspect_align(const qkv_run *run, int64_t b, const qkv_align_options *options,
                             qkv_aligned *aligned, double *table, qkv_error *error) {
    const qkv_align_options defaults = QKV_ALIGN_OPTIONS_INIT;
    struct work w = { .run = run, .b = b };
    if (!run || !aligned)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", run ? "aligned" : "run");
    QKV_TRY(qkvi_options_read(&w.o, sizeof w.o, options ? options : &defaults, "qkv_align_options",
                              error));
    QKV_TRY(check(&w, error));
    uint8_t *const marks = qkvi_calloc_array((size_t)w.n_key_words, 1);
    double *const own =
        table ? NULL : qkvi_malloc_array((size_t)(w.n_row_words * w.n_key_words), sizeof *own);
    w.weights = qkvi_malloc_array((size_t)(w.n * w.n_keys), sizeof *w.weights);
    w.table = table ? table : own;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status =
        marks && w.weights && w.table
            ? run_heads(&w, marks, aligned, error)
            : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld x %lld weights",
                             (long long)w.n, (long long)w.n_keys);
    qkvi_fpstate_leave(saved);
    free(marks);
    free(w.weights);
    free(own);
    return status;
}
