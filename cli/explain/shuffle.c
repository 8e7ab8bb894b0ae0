/*
 * `qkv explain --shuffle`: attention does not know the order of its tokens. The same words in
 * another order go through a head of layer 0; outputs are compared word by word.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/explain.h"

/* What one head of layer 0 makes of a text: o [n][head_dim]. */
static qkv_status run(const struct explain *t, const qkv_encoding *input, int positions, float *o,
                      qkv_error *error) {
    const struct session *session = t->session;
    const int64_t n = input->n, d = session->info->head_dim;
    float *q = calloc((size_t)(3 * n * d) + 1, sizeof(*q)), *k = q + n * d, *v = k + n * d;
    if (!q) return text_no_memory(error);
    qkv_status status =
        qkv_inspect_projections(session->model, input, t->head, positions, q, k, v, error);
    qkv_attention_desc desc;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, n, n, d, d);
    if (status == QKV_OK) {
        status = qkv_attention_forward(session->ctx, &desc, q, k, v, o, NULL, NULL);
        if (status != QKV_OK) text_error(error, status, "%s", qkv_ctx_message(session->ctx));
    }
    free(q);
    return status;
}

/* A permutation of the tokens that are not special; the others stay. Fisher and Yates (1938). */
static void shuffle(const qkv_encoding *input, uint64_t seed, int64_t *order) {
    uint64_t state = seed;
    for (int64_t i = 0; i < input->n; i++) order[i] = i;
    for (int64_t i = input->n - 1; i > 0; i--) {
        if (input->special[i]) continue;
        int64_t n_before = 0, j = 0;
        for (int64_t b = 0; b <= i; b++) n_before += !input->special[b];
        /* splitmix64 (Steele, Lea and Flood 2014) */
        uint64_t z = state += 0x9E3779B97F4A7C15U;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
        z = (z ^ z >> 27) * 0x94D049BB133111EBU;
        int64_t pick = (int64_t)((z ^ z >> 31) % (uint64_t)n_before);
        while (input->special[j] || pick-- > 0) j++;
        const int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Largest difference of a word's output here and there: other[i] is that of token order[i]. */
static double difference(int64_t n, int64_t d, const int64_t *order, const float *o,
                         const float *other) {
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < d; c++) {
            const double x = fabs((double)other[i * d + c] - (double)o[order[i] * d + c]);
            if (x > largest) largest = x;
        }
    return largest;
}

/* Outputs of every word, [n][head_dim]: in the order of the text, and shuffled. */
struct outputs {
    float *here, *there;
};

static void table(struct report *report, const struct explain *t, const int64_t *order,
                  const struct outputs *o) {
    const int64_t d = t->session->info->head_dim;
    report_table(report, "wnnwnn", "output of", "0", "1", " shuffled", "0", "1");
    for (int64_t i = 0; i < t->input->n; i++) {
        report_row(report, false);
        report_cell(report, WORD, t->labels[i]);
        for (int c = 0; c < 2; c++) report_cell(report, "%.5f", (double)o->here[i * d + c]);
        report_cell(report, " " WORD, t->labels[order[i]]);
        for (int c = 0; c < 2; c++) report_cell(report, "%.5f", (double)o->there[i * d + c]);
    }
}

/* o: without positions, and with them. */
static void tell(struct report *report, const struct explain *t, const int64_t *order,
                 const struct outputs o[2]) {
    const int64_t n = t->input->n, d = t->session->info->head_dim;
    report_title(report, "Attention is blind to order");
    report_subtitle(report,
                    "The same words, shuffled (seed %" PRId64
                    "; special tokens stay), through head "
                    "%" PRId64 " of layer 0 of the model %s: the first two of %" PRId64
                    " components of each word's output.",
                    t->options->seed.value, t->head, t->session->info->source, d);
    report_step(report, "Without positions", "x = norm(word + segment)", NULL);
    table(report, t, order, &o[0]);
    report_text(report,
                "Every word gets the same output wherever it stands: largest difference %.1e, the "
                "rounding of sums in another order.",
                difference(n, d, order, o[0].here, o[0].there));
    report_step(report, "With positions", "x = norm(word + segment + position)", NULL);
    table(report, t, order, &o[1]);
    report_text(report, "Now the place matters: largest difference %.3f.",
                difference(n, d, order, o[1].here, o[1].there));
}

/* The text in another order; ids and types have room for it. */
static void reorder(const struct explain *t, int64_t *order, qkv_encoding *other) {
    shuffle(t->input, (uint64_t)t->options->seed.value, order);
    for (int64_t i = 0; i < t->input->n; i++) {
        other->ids[i] = t->input->ids[order[i]];
        other->types[i] = t->input->types[order[i]];
    }
}

qkv_status explain_shuffle(struct report *report, const struct explain *t, qkv_error *error) {
    const int64_t n = t->input->n, size = n * t->session->info->head_dim;
    int64_t *order = calloc((size_t)n + 1, sizeof(*order));
    float *o = calloc((size_t)(4 * size) + 1, sizeof(*o));
    qkv_encoding other = *t->input;
    other.ids = calloc((size_t)n + 1, sizeof(*other.ids));
    other.types = calloc((size_t)n + 1, sizeof(*other.types));
    qkv_status status = order && o && other.ids && other.types ? QKV_OK : text_no_memory(error);
    const struct outputs outputs[2] = { { o, o + size }, { o + 2 * size, o + 3 * size } };
    if (status == QKV_OK) reorder(t, order, &other);
    for (int positions = 0; positions < 2 && status == QKV_OK; positions++) {
        status = run(t, t->input, positions, outputs[positions].here, error);
        if (status == QKV_OK) status = run(t, &other, positions, outputs[positions].there, error);
    }
    if (status == QKV_OK) tell(report, t, order, outputs);
    free(order);
    free(o);
    free(other.ids);
    free(other.types);
    return status;
}
