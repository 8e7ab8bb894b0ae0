/**
 * Attention as alignment (inspect.h has the formula): the weights of heads of a layer of
 * cross-attention are averaged, tokens joined to words, and each word of the target is aligned to
 * the source word with the largest weight.
 */
#include <math.h>

#include "core/fpstate.h"
#include "core/options.h"
#include "files/base.h"
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
    qkv_capture capture = qkv_capture_init();
    const int64_t layer = w->o.sharpest ? 0 : w->o.layer;
    QKV_TRY(qkv_run_capture(w->run, QKV_CROSS, w->b, layer, &capture, error));
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
        QKV_TRY(qkv_run_weights(w->run, QKV_CROSS, w->b, w->o.layer, h, w->weights, error));
        add_head(w);
    }
    finish(w);
    for (int64_t j = 0; j < w->n_keys; j++)
        if (is_marked(w->o.keys, j)) marks[word_of(w->o.key_words, j)] = 1;
    choose(w, marks, aligned);
    return QKV_OK;
}

/* The mean over words of how sharply they look; words that are aligned to nothing add nothing. */
static double sharpness(const struct work *w, const qkv_aligned *aligned) {
    double sum = 0;
    for (int64_t a = 0; a < w->n_row_words; a++)
        if (aligned[a].weight > 0) sum += aligned[a].weight;
    return sum / (double)w->n_row_words;
}

/* Of equal layers the first. */
static qkv_status run_layers(struct work *w, uint8_t *marks, qkv_aligned *aligned,
                             qkv_error *error) {
    const int search = w->o.sharpest;
    qkv_capture capture = qkv_capture_init();
    int64_t best = w->o.layer;
    double largest = -1;
    for (int64_t layer = 0; search; layer++) {
        if (qkv_run_capture(w->run, QKV_CROSS, w->b, layer, &capture, NULL) != QKV_OK) break;
        w->o.layer = layer;
        QKV_TRY(run_heads(w, marks, aligned, error));
        const double now = sharpness(w, aligned);
        if (!(now > largest)) continue;
        largest = now;
        best = layer;
    }
    if (w->o.taken) *w->o.taken = best;
    const int is_there = search && best == w->o.layer;
    w->o.layer = best;
    return is_there ? QKV_OK : run_heads(w, marks, aligned, error);
}

qkv_status qkv_inspect_align(const qkv_run *run, int64_t b, const qkv_align_options *options,
                             qkv_aligned *aligned, size_t aligned_bytes, double *table,
                             qkv_error *error) {
    const qkv_align_options defaults = qkv_align_options_init();
    struct work w = { .run = run, .b = b };
    if (!run || !aligned)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", run ? "aligned" : "run");
    QKV_TRY(qkvi_options_read(&w.o, sizeof w.o, options ? options : &defaults, "qkv_align_options",
                              error));
    QKV_TRY(qkvi_element_check(aligned_bytes, sizeof *aligned, "aligned_bytes", error));
    QKV_TRY(check(&w, error));
    uint8_t *const marks = qkvi_calloc_array((size_t)w.n_key_words, 1);
    double *const own =
        table ? NULL : qkvi_malloc_array((size_t)(w.n_row_words * w.n_key_words), sizeof *own);
    qkv_aligned *const found = qkvi_malloc_array((size_t)w.n_row_words, sizeof *found);
    w.weights = qkvi_malloc_array((size_t)(w.n * w.n_keys), sizeof *w.weights);
    w.table = table ? table : own;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status =
        marks && found && w.weights && w.table
            ? run_layers(&w, marks, found, error)
            : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %lld x %lld weights",
                             (long long)w.n, (long long)w.n_keys);
    qkvi_fpstate_leave(saved);
    for (int64_t a = 0; status == QKV_OK && a < w.n_row_words; a++)
        qkvi_element_write(aligned, a, aligned_bytes, &found[a], sizeof *found);
    free(marks);
    free(found);
    free(w.weights);
    free(own);
    return status;
}
