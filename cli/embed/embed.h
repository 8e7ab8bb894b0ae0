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
    const char *file, *journal, *similar, *out, *prompt, *word, *image, *pairs;
    bool normalize, no_prompt, tokens;
    struct arg_int token_layer;
};

/* Texts and their vectors; the last text is that of --similar, if it is given. */
struct embed {
    const struct session *session;
    const struct embed_options *options;
    struct text *texts;       /* [n] */
    qkv_encoding **encodings; /* [n] */
    int64_t n, room, n_cut;
    const char *prompt; /* put before each text; NULL: none */
    int64_t n_prompt;   /* tokens of the prompt that are not pooled */
    qkv_pooling pooling;
    float *vectors; /* [n][dim] */
    int64_t dim;
    double *lengths; /* [n], norms of the vectors */
};

/* Reads the texts: of the command line, or the lines of a file (read.c). */
qkv_status embed_read(struct embed *embed, int n_words, char **words, qkv_error *error);
void embed_free(struct embed *embed);

/* Finds the prompt, by the options and the model; embed_read calls it, too. */
qkv_status embed_find_prompt(struct embed *embed, qkv_error *error);
/* Encodes prompt and text, cut to the model's length of sentences. */
qkv_status embed_encode(struct embed *embed, const char *bytes, size_t n_bytes,
                        qkv_encoding **encoding, qkv_error *error);

/* Allocate all vectors; compute them, with ranks sharing the texts (compute.c). */
qkv_status embed_begin(struct embed *embed, qkv_error *error);
qkv_status embed_compute(struct embed *embed, qkv_error *error);

/* --tokens: vectors of tokens, on the terminal, as JSON, or in a file (tokens.c). */
qkv_status embed_tokens(const struct embed *embed, qkv_error *error);

/* --pairs: what a classifier says of pairs of texts, shown or written (pairs.c). */
qkv_status embed_pairs(const struct embed *embed, qkv_error *error);

/*
 * --image: how well texts match it, on the terminal or as an object; without texts its vector, as
 * that of a text whose words are its name (image.c).
 */
int embed_match(struct embed *embed, int n_words, char **words);
qkv_status embed_see(struct embed *embed, qkv_error *error);

/* Show the result on the terminal, as JSON, and as a file (show.c). */
qkv_status embed_print(const struct embed *embed, qkv_error *error);
json_t *embed_json(const struct embed *embed);
qkv_status embed_write(const struct embed *embed, qkv_error *error);

#endif
