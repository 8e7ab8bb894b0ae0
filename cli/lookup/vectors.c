/*
 * Vectors of words and of sentences.
 *
 *     word      mean over its pieces of the model's word vectors, minus the mean of the vocabulary
 *     sentence  mean over its tokens of the last hidden states of the model
 *
 * All word vectors of a model have a large common part that says nothing about meaning; without it,
 * unrelated words are nearly orthogonal (Mu and Viswanath 2018, "All-but-the-top").
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lookup/lookup.h"

/* The mean of the vectors of all words that are not special, in double precision. */
static double *vocabulary_mean(const struct session *session) {
    const int64_t dim = session->info->embedding_size;
    const int64_t n = qkv_tokenizer_size(session->tokenizer);
    double *mean = calloc((size_t)dim + 1, sizeof(*mean));
    float *vector = calloc((size_t)dim + 1, sizeof(*vector));
    int64_t n_words = 0;
    for (int32_t id = 0; mean && vector && id < n; id++) {
        size_t bytes = 0;
        const char *token = qkv_tokenizer_token(session->tokenizer, id, &bytes);
        if (!token || (bytes > 2 && token[0] == '[' && token[bytes - 1] == ']')) continue;
        if (qkv_model_word_vector(session->model, id, vector, NULL) != QKV_OK) continue;
        for (int64_t c = 0; c < dim; c++) mean[c] += (double)vector[c];
        n_words++;
    }
    for (int64_t c = 0; mean && n_words > 0 && c < dim; c++) mean[c] /= (double)n_words;
    if (!vector) {
        free(mean);
        mean = NULL;
    }
    free(vector);
    return mean;
}

static qkv_status encode(const struct session *session, const char *text, const char *what,
                         qkv_encoding **input, qkv_error *error) {
    const qkv_status status =
        qkv_tokenizer_encode(session->tokenizer, text, strlen(text), NULL, 0, input, error);
    if (status != QKV_OK) return status;
    int64_t n_pieces = 0;
    for (int64_t i = 0; i < (*input)->n; i++) n_pieces += (*input)->end[i] > (*input)->begin[i];
    if (n_pieces > 0) return QKV_OK;
    char *shown = term_escape(text, strlen(text));
    text_error(error, QKV_ERR_ARGUMENT, "%s '%.60s' has no tokens", what, shown ? shown : "");
    free(shown);
    return error->status;
}

/* What a mean of pieces is worth: a word that is none of the model's may mean little. */
static void count_pieces(const struct session *session, const qkv_encoding *input,
                         struct lookup_pieces *pieces) {
    const int32_t unk = qkv_tokenizer_special(session->tokenizer, QKV_TOKEN_UNK);
    *pieces = (struct lookup_pieces){ .n = 0 };
    for (int64_t i = 0; i < input->n; i++) {
        if (input->end[i] <= input->begin[i]) continue;
        size_t bytes = 0;
        const char *token = qkv_tokenizer_token(session->tokenizer, input->ids[i], &bytes);
        pieces->n++;
        pieces->split |= token && bytes > 2 && memcmp(token, "##", 2) == 0;
        pieces->unknown |= input->ids[i] == unk;
    }
}

static void tell_query(const struct session *session, const char *text,
                       const struct lookup_pieces *pieces) {
    if (!pieces->unknown && !pieces->split) return;
    char *shown = term_escape(text, strlen(text));
    if (pieces->unknown)
        cli_note(session->common->quiet,
                 "qkv: '%.60s' is not in the vocabulary of the model ([UNK]): what is found means "
                 "nothing",
                 shown ? shown : "");
    else
        cli_note(session->common->quiet,
                 "qkv: '%.60s' is not a word of the model: it stands for the mean of its %" PRId64
                 " pieces, which may mean little",
                 shown ? shown : "", pieces->n);
    free(shown);
}

static void tell_keys(const struct session *session, int64_t n_keys, int64_t n_split,
                      int64_t n_unknown) {
    if (n_unknown > 0)
        cli_note(
            session->common->quiet,
            "qkv: %" PRId64 " of %" PRId64
            " keys are not in the vocabulary of the model ([UNK]): who finds them means nothing",
            n_unknown, n_keys);
    if (n_split > 0)
        cli_note(session->common->quiet,
                 "qkv: %" PRId64 " of %" PRId64
                 " keys have words that are none of the model's: they stand for the mean of their "
                 "pieces, which may mean little",
                 n_split, n_keys);
}

/* The mean of the vectors of a word's pieces, without what all words share. */
static qkv_status word(const struct session *session, const qkv_encoding *input, const double *mean,
                       float *vector, qkv_error *error) {
    const int64_t dim = session->info->embedding_size;
    double *sum = calloc((size_t)dim + 1, sizeof(*sum)), n = 0;
    qkv_status status = sum ? QKV_OK : text_no_memory(error);
    for (int64_t i = 0; status == QKV_OK && i < input->n; i++) {
        if (input->end[i] <= input->begin[i]) continue;
        status = qkv_model_word_vector(session->model, input->ids[i], vector, error);
        for (int64_t c = 0; status == QKV_OK && c < dim; c++) sum[c] += (double)vector[c];
        n++;
    }
    for (int64_t c = 0; status == QKV_OK && c < dim; c++) vector[c] = (float)(sum[c] / n - mean[c]);
    free(sum);
    return status;
}

/*
 * The mean of the last hidden states, [CLS] and [SEP] among them, as sentence models are trained.
 */
static qkv_status sentence(const struct session *session, const qkv_encoding *input, float *vector,
                           qkv_error *error) {
    qkv_embed_options options = qkv_embed_options_init();
    options.pooling = QKV_POOLING_MEAN;
    options.normalize = -1; /* by the metric: below */
    return qkv_model_embed(session->ctx, session->model, 1, &input, &options, vector, error);
}

/* Adds the vector of one word of a sum. */
static qkv_status add_term(const struct lookup *l, const struct lookup_term *term,
                           const double *mean, float *vector, float *sum,
                           struct lookup_pieces *pieces, qkv_error *error) {
    char *const text = strndup(term->text, term->n);
    struct lookup_pieces here = { .n = 0 };
    qkv_encoding *input = NULL;
    qkv_status status =
        text ? encode(l->session, text, "the query", &input, error) : text_no_memory(error);
    if (status == QKV_OK) status = word(l->session, input, mean, vector, error);
    if (status == QKV_OK) count_pieces(l->session, input, &here);
    for (int64_t c = 0; status == QKV_OK && c < l->dim; c++)
        sum[c] += (float)term->sign * vector[c];
    pieces->n += here.n;
    pieces->split |= here.split;
    pieces->unknown |= here.unknown;
    qkv_encoding_free(input);
    free(text);
    return status;
}

/* "king - man + woman" */
static qkv_status sum_of(const struct lookup *l, const char *text, const double *mean, float *sum,
                         struct lookup_pieces *pieces, qkv_error *error) {
    struct lookup_term term = { .begin = text };
    float *const vector = calloc((size_t)l->dim + 1, sizeof *vector);
    qkv_status status = vector ? QKV_OK : text_no_memory(error);
    *pieces = (struct lookup_pieces){ .n = 0 };
    while (status == QKV_OK && lookup_next_term(&text, &term))
        status = add_term(l, &term, mean, vector, sum, pieces, error);
    free(vector);
    return status;
}

static qkv_status one(struct lookup *l, int64_t i, const double *mean, struct lookup_pieces *pieces,
                      qkv_error *error) {
    const int64_t n_keys = l->table->n_rows;
    const bool is_key = i < n_keys;
    const char *text = is_key ? l->table->keys[i] : l->queries[i - n_keys];
    const char *what = is_key ? "the key" : "the query";
    float *vector = is_key ? l->k + i * l->dim : l->q + (i - n_keys) * l->dim;
    if (!is_key && !l->options->sentence && lookup_is_sum(text))
        return sum_of(l, text, mean, vector, pieces, error);
    qkv_encoding *input = NULL;
    qkv_status status = encode(l->session, text, what, &input, error);
    if (status == QKV_OK)
        status = l->options->sentence ? sentence(l->session, input, vector, error)
                                      : word(l->session, input, mean, vector, error);
    if (status == QKV_OK) count_pieces(l->session, input, pieces);
    qkv_encoding_free(input);
    return status;
}

/* Is the query also one of those before it? Its warning was said then. */
static bool was_asked(const struct lookup *l, int64_t query) {
    int64_t first = 0;
    while (strcmp(l->queries[first], l->queries[query]) != 0) first++;
    return first < query;
}

static qkv_status all(struct lookup *l, const double *mean, qkv_error *error) {
    const int64_t n_keys = l->table->n_rows, n = n_keys + l->n_queries;
    int64_t n_split = 0, n_unknown = 0;
    struct progress progress;
    progress_begin(&progress, l->options->common.quiet);
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && status == QKV_OK; i++) {
        struct lookup_pieces pieces = { .n = 0 };
        status = one(l, i, mean, &pieces, error);
        progress_bar(&progress, "vectors", i + 1, n);
        if (i < n_keys) {
            n_unknown += pieces.unknown;
            n_split += pieces.split && !pieces.unknown;
        } else if (status == QKV_OK) {
            l->unknown[i - n_keys] = pieces.unknown;
            if (!l->options->sentence && !was_asked(l, i - n_keys))
                tell_query(l->session, l->queries[i - n_keys], &pieces);
        }
    }
    progress_end(&progress);
    if (status == QKV_OK && !l->options->sentence)
        tell_keys(l->session, n_keys, n_split, n_unknown);
    return status;
}

/* With cosine to length 1, so that products are cosines; a vector of 0 stays. */
static void measure(struct lookup *l) {
    const int64_t n_keys = l->table->n_rows;
    for (int64_t i = 0; i < n_keys + l->n_queries; i++) {
        float *const vector = i < n_keys ? l->k + i * l->dim : l->q + (i - n_keys) * l->dim;
        const double length = sqrt(rows_product(vector, vector, l->dim));
        l->lengths[i] = 1;
        if (l->options->metric.value != LOOKUP_COSINE || !(length > 0)) continue;
        l->lengths[i] = length;
        for (int64_t c = 0; c < l->dim; c++) vector[c] = (float)((double)vector[c] / length);
    }
}

static qkv_status of_model(struct lookup *l, qkv_error *error) {
    double *const mean = vocabulary_mean(l->session);
    const qkv_status status = mean ? all(l, mean, error) : text_no_memory(error);
    free(mean);
    return status;
}

qkv_status lookup_vectors(struct lookup *l, qkv_error *error) {
    const qkv_model_info *info = l->session->info;
    l->dim = l->own                 ? l->own->n_values
             : l->options->sentence ? info->pooled_dim
                                    : info->embedding_size;
    l->k = calloc((size_t)(l->table->n_rows * l->dim) + 1, sizeof(*l->k));
    l->q = calloc((size_t)(l->n_queries * l->dim) + 1, sizeof(*l->q));
    l->unknown = calloc((size_t)l->n_queries + 1, 1);
    l->lengths = calloc((size_t)(l->table->n_rows + l->n_queries) + 1, sizeof *l->lengths);
    if (!l->k || !l->q || !l->unknown || !l->lengths) return text_no_memory(error);
    const qkv_status status = l->own ? lookup_own(l, error) : of_model(l, error);
    if (status == QKV_OK) measure(l);
    return status;
}
