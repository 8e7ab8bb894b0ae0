/*
 * `qkv explain --shuffle`: attention does not know the order of its tokens. The same words in another
 * order go through a head of layer 0; outputs are compared word by word.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "explain/explain.h"

/* What one head of layer 0 makes of a text: o [n][head_dim]. */
static qkv_status run(const struct session *session, const qkv_encoding *input, int64_t head,
                      int positions, float *o, qkv_error *error) {
    const int64_t n = input->n, d = session->info->head_dim;
    float *block = calloc((size_t)(3 * n * d) + 1, sizeof(*block));
    if (!block) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    float *q = block, *k = q + n * d, *v = k + n * d;
    qkv_status status =
        qkv_inspect_projections(session->model, input, head, positions, q, k, v, error);
    qkv_attention_desc desc;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, n, n, d, d);
    if (status == QKV_OK) {
        status = qkv_attention_forward(session->ctx, &desc, q, k, v, o, NULL, NULL);
        if (status != QKV_OK) text_error(error, status, "%s", qkv_ctx_message(session->ctx));
    }
    free(block);
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

struct shuffled {
    const struct explain_text *t;
    const int64_t *order;
    const float *o[2], *other[2]; /* without and with positions */
    int64_t head;
};

static void outputs(struct report *report, const struct shuffled *s, int positions) {
    const int64_t n = s->t->input->n, d = s->t->session->info->head_dim;
    report_table(report, "wnnwnn", "output of", "0", "1", " shuffled", "0", "1");
    for (int64_t i = 0; i < n; i++) {
        const int64_t from = s->order[i];
        report_row(report, false);
        report_cell(report, WORD, s->t->labels[i]);
        for (int c = 0; c < 2; c++) report_cell(report, "%.5f", (double)s->o[positions][i * d + c]);
        report_cell(report, " " WORD, s->t->labels[from]);
        for (int c = 0; c < 2; c++)
            report_cell(report, "%.5f", (double)s->other[positions][i * d + c]);
    }
}

static void tell(struct report *report, const struct shuffled *s) {
    const struct explain_text *t = s->t;
    const int64_t n = t->input->n, d = t->session->info->head_dim;
    report_title(report, "Attention is blind to order");
    report_subtitle(report,
                    "The same words, shuffled (seed %" PRId64
                    "; special tokens stay), through head "
                    "%" PRId64 " of layer 0 of the model %s: the first two of %" PRId64
                    " components of each word's output.",
                    t->options->seed.value, s->head, t->session->info->source, d);
    const double blind = difference(n, d, s->order, s->o[0], s->other[0]);
    const double seeing = difference(n, d, s->order, s->o[1], s->other[1]);
    report_step(report, "Without positions", "x = norm(word + segment)", NULL);
    outputs(report, s, 0);
    report_text(report,
                "Every word gets the same output wherever it stands: largest difference %.1e, the "
                "rounding of sums in another order.",
                blind);
    report_step(report, "With positions", "x = norm(word + segment + position)", NULL);
    outputs(report, s, 1);
    report_text(report, "Now the place matters: largest difference %.3f.", seeing);
}

qkv_status explain_shuffle(struct report *report, const struct explain_text *t, int64_t head,
                           qkv_error *error) {
    const int64_t n = t->input->n, d = t->session->info->head_dim;
    int64_t *order = calloc((size_t)n + 1, sizeof(*order));
    float *o = calloc((size_t)(4 * n * d) + 1, sizeof(*o));
    qkv_encoding other = *t->input;
    other.ids = calloc((size_t)n + 1, sizeof(*other.ids));
    other.types = calloc((size_t)n + 1, sizeof(*other.types));
    qkv_status status = QKV_OK;
    if (!order || !o || !other.ids || !other.types)
        status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    if (status == QKV_OK) {
        shuffle(t->input, (uint64_t)t->options->seed.value, order);
        for (int64_t i = 0; i < n; i++) {
            other.ids[i] = t->input->ids[order[i]];
            other.types[i] = t->input->types[order[i]];
        }
    }
    for (int positions = 0; positions < 2 && status == QKV_OK; positions++) {
        float *here = o + 2 * positions * n * d;
        status = run(t->session, t->input, head, positions, here, error);
        if (status == QKV_OK)
            status = run(t->session, &other, head, positions, here + n * d, error);
    }
    if (status == QKV_OK) {
        const struct shuffled s = {
            t, order, { o, o + 2 * n * d }, { o + n * d, o + 3 * n * d }, head
        };
        tell(report, &s);
    }
    free(order);
    free(o);
    free(other.ids);
    free(other.types);
    return status;
}
