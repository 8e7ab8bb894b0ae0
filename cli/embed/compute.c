/*
 * Vectors of texts. Ranks share the work (share.h) in pieces of several texts. A piece is
 *
 *     [first text, number of texts: int64][bytes of each text: int64][texts]
 *
 * The first rank has the texts and their encodings; others encode the texts of a piece. An answer
 * is [text][dim] floats.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/ranks.h"
#include "common/share.h"
#include "embed/embed.h"

/*
 * Texts between two looks at the progress and at Ctrl-C: at most CHUNK, and fewer where a model is
 * large, so that the bar moves about twice a second on one core; but enough for batches.
 */
enum { CHUNK = 1024, LEAST_CHUNK = 16 };

struct computing {
    struct embed *e;
    qkv_embed_options options;
    struct progress progress;
    int64_t given, taken; /* texts */
    char *piece;          /* the last one */
};

static int64_t chunk_from(const struct embed *e, int64_t first) {
    const double most = 2e10, /* multiplications */
        of_token = (double)e->session->info->n_parameters;
    double work = 0;
    int64_t n = 0;
    while (n < CHUNK && first + n < e->n && (n < LEAST_CHUNK || work < most))
        work += of_token * (double)e->encodings[first + n++]->n;
    return n;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static bool next(void *user, struct text *piece, qkv_status *status, qkv_error *error) {
    struct computing *const x = user;
    const struct embed *const e = x->e;
    const int64_t head[2] = { x->given, chunk_from(e, x->given) };
    const size_t n = (size_t)head[1];
    if (n == 0) return false;
    size_t bytes = sizeof head + n * sizeof(int64_t);
    for (size_t i = 0; i < n; i++) bytes += e->texts[head[0] + (int64_t)i].n;
    free(x->piece);
    char *at = x->piece = malloc(bytes);
    if (!at) {
        *status = text_no_memory(error);
        return false;
    }
    *piece = (struct text){ at, bytes };
    memcpy(at, head, sizeof head);
    at += sizeof head;
    for (size_t i = 0; i < n; i++, at += sizeof(int64_t)) {
        const int64_t length = (int64_t)e->texts[head[0] + (int64_t)i].n;
        memcpy(at, &length, sizeof length);
    }
    for (size_t i = 0; i < n; i++) {
        const struct text *const text = &e->texts[head[0] + (int64_t)i];
        if (text->n > 0) memcpy(at, text->bytes, text->n);
        at += text->n;
    }
    x->given += head[1];
    return true;
}

/* What the first rank had at hand. */
static qkv_status encode(struct computing *x, const struct text *piece, int64_t n,
                         qkv_encoding **encodings, qkv_error *error) {
    const char *lengths = piece->bytes + 2 * sizeof(int64_t);
    const char *bytes = lengths + (size_t)n * sizeof(int64_t);
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && status == QKV_OK; i++, lengths += sizeof(int64_t)) {
        int64_t length;
        memcpy(&length, lengths, sizeof length);
        status = embed_encode(x->e, bytes, (size_t)length, &encodings[i], error);
        bytes += length;
    }
    x->options.n_prompt = x->e->n_prompt;
    return status;
}

static qkv_status make(void *user, const struct text *piece, struct text *answer,
                       qkv_error *error) {
    struct computing *const x = user;
    struct embed *const e = x->e;
    const bool first = ranks_rank() == 0;
    int64_t head[2];
    if (cli_cancelled) return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    memcpy(head, piece->bytes, sizeof head);
    const int64_t n = head[1];
    qkv_encoding **const own = calloc((size_t)n, sizeof *own);
    answer->n = (size_t)n * (size_t)e->dim * sizeof(float);
    answer->bytes = malloc(answer->n + 1);
    qkv_status status = own && answer->bytes ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK && !first) status = encode(x, piece, n, own, error);
    if (status == QKV_OK)
        status =
            qkv_model_embed(e->session->ctx, e->session->model, n,
                            (const qkv_encoding *const *)(first ? e->encodings + head[0] : own),
                            &x->options, (float *)(void *)answer->bytes, error);
    for (int64_t i = 0; own && i < n; i++) qkv_encoding_free(own[i]);
    free(own);
    if (status != QKV_OK) free(answer->bytes);
    return status;
}

static qkv_status take(void *user, const struct text *answer, qkv_error *error) {
    struct computing *const x = user;
    struct embed *const e = x->e;
    const size_t vector = (size_t)e->dim * sizeof(float);
    if (answer->n % vector || answer->n / vector > (size_t)(e->n - x->taken))
        return text_error(error, QKV_ERR_FORMAT, "an answer in the journal has %zu bytes",
                          answer->n);
    memcpy(e->vectors + x->taken * e->dim, answer->bytes, answer->n);
    x->taken += (int64_t)(answer->n / vector);
    progress_bar(&x->progress, "vectors", x->taken, e->n);
    return QKV_OK;
}

/* ---- All ------------------------------------------------------------------------------------- */

qkv_status embed_begin(struct embed *e, qkv_error *error) {
    const struct embed_options *const o = e->options;
    e->pooling = o->pooling.set ? (qkv_pooling)(o->pooling.value + QKV_POOLING_MEAN)
                                : e->session->info->pooling;
    e->dim = o->pooling.set ? e->session->info->pooled_dim : e->session->info->sentence_dim;
    e->vectors = calloc((size_t)e->n + 1, (size_t)e->dim * sizeof(*e->vectors));
    e->lengths = calloc((size_t)e->n + 1, sizeof(*e->lengths));
    return e->vectors && e->lengths ? QKV_OK : text_no_memory(error);
}

qkv_status embed_compute(struct embed *e, qkv_error *error) {
    const struct embed_options *const o = e->options;
    struct computing x = { .e = e, .options = qkv_embed_options_init() };
    const struct share share = { .user = &x,
                                 .next = next,
                                 .make = make,
                                 .take = take,
                                 .journal = o->journal,
                                 .model = o->common.model,
                                 .quiet = o->common.quiet };
    x.options.pooling = o->pooling.set ? e->pooling : QKV_POOLING_DEFAULT;
    x.options.normalize = o->normalize;
    x.options.n_prompt = e->n_prompt;
    progress_begin(&x.progress, o->common.quiet);
    qkv_status status = share_run(&share, error);
    progress_end(&x.progress);
    if (status == QKV_OK && ranks_rank() == 0 && x.taken < e->n)
        status = text_error(error, QKV_ERR_FORMAT, "the journal has vectors of %" PRId64 " texts",
                            x.taken);
    free(x.piece);
    for (int64_t i = 0; i < e->n && status == QKV_OK; i++) {
        const float *const vector = e->vectors + i * e->dim;
        e->lengths[i] = sqrt(rows_product(vector, vector, e->dim));
    }
    return status;
}
