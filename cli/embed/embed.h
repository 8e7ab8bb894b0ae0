/* `qkv embed`: what its parts share. */
#ifndef QKV_CLI_EMBED_H
#define QKV_CLI_EMBED_H

#include "common/job.h"
#include "common/lines.h"
#include "common/report.h"
#include "common/rows.h"

struct embed_options {
    struct cli_common common;
    struct arg_int pooling, top;
    const char *file, *journal, *similar, *out, *prompt, *word;
    bool normalize, no_prompt, tokens;
    struct arg_int token_layer;
};

/* Texts and their vectors; with --similar the last text is that one. */
struct embed {
    const struct session *session;
    const struct embed_options *options;
    struct text *texts;       /* [n] */
    qkv_encoding **encodings; /* [n] */
    int64_t n, room, n_cut;
    const char *prompt; /* text before each text; NULL: none */
    int64_t n_prompt;   /* of its tokens how many are not pooled */
    qkv_pooling pooling;
    float *vectors; /* [n][dim] */
    int64_t dim;
    double *lengths; /* [n], of the vectors */
};

/* Texts of the command line, or the lines of a file (read.c). */
qkv_status embed_read(struct embed *embed, int n_words, char **words, qkv_error *error);
void embed_free(struct embed *embed);

/* What stands before each text, by the options and the model; embed_read asks it, too. */
qkv_status embed_find_prompt(struct embed *embed, qkv_error *error);
/* One text, with what stands before it, cut to the length of the model's sentences. */
qkv_status embed_encode(struct embed *embed, const char *bytes, size_t n_bytes,
                        qkv_encoding **encoding, qkv_error *error);

/* Memory for all vectors; then the vectors, whose texts ranks share (compute.c). */
qkv_status embed_begin(struct embed *embed, qkv_error *error);
qkv_status embed_compute(struct embed *embed, qkv_error *error);

/* --tokens: vectors of tokens, to the terminal, as an object, or to a file (tokens.c). */
qkv_status embed_tokens(const struct embed *embed, qkv_error *error);

/* The cosine of two texts' vectors; NaN if one is 0. */
double embed_cosine(const struct embed *embed, int64_t a, int64_t b);
/* Texts that are ranked: all but that of --similar. */
int64_t embed_n_ranked(const struct embed *embed);
/* The nearest texts to text a, itself left out, best first; returns how many, at most `most`. */
int64_t embed_nearest(const struct embed *embed, int64_t a, int64_t most, int64_t *nearest);

/* On the terminal, as an object, and as a file (show.c). */
qkv_status embed_print(const struct embed *embed, qkv_error *error);
json_t *embed_json(const struct embed *embed);
qkv_status embed_write(const struct embed *embed, qkv_error *error);

#endif
