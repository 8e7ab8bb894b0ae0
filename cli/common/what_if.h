/* --what-if: runs of a model whose attention is changed, and the words that say how. */
#ifndef QKV_CLI_COMMON_WHAT_IF_H
#define QKV_CLI_COMMON_WHAT_IF_H

#include "common/cli.h"
#include "common/json.h"
#include "common/text.h"
#include <qkv/model.h>

enum { WHAT_IF_WORDS = 300 };

/* Shown with every output of such a run. */
#define WHAT_IF_BADGE "modified: not what the model computed"

struct what_if {
    qkv_run_options run_options;
    const struct arg_texts *given; /* the values of the option */
    bool any;
    uint8_t *dropped;          /* [n], 1: the token is dropped; malloc; NULL: none is */
    const uint8_t *inputs[1];  /* { dropped }, since a run has an array of texts */
    int64_t *cuts, n_cuts;     /* as qkv_run_options has them; malloc; NULL: none */
    char words[WHAT_IF_WORDS]; /* "causal, temperature 2, without the (token 4, one of 2)" */
};

/*
 * Parses the values; what_if_of_text later finds the tokens of drop=TOKEN. Returns an exit code,
 * having said what is wrong.
 */
int what_if_parse(const struct cli_command *command, const struct arg_texts *given,
                  struct what_if *what_if);

/* In a table of options: --what-if. */
#define WHAT_IF_ROW(field)                                                                         \
    OPTION_ROW("--what-if", "causal|no-scale|temperature=T|drop=TOKEN|cut=Q>K", ARG_TEXTS, field,  \
               .suggest = "causal|no-scale|temperature=|drop=|cut=")

/* The attention whose edges cut=... names, and what its queries and keys are called. */
struct what_if_edges {
    qkv_attention_kind which;
    int64_t n_layers, n_heads, n_queries, n_keys;
    char *const *queries, *const *keys;
    bool causal; /* it is, whatever the options say */
};

/*
 * Refuses drop=TOKEN and cut=... where there are several texts, by the option `with`: their tokens
 * differ. Returns an exit code.
 */
int what_if_check_drop(const struct cli_command *command, const struct arg_texts *given,
                       const char *with);

/*
 * Copies `parsed` to what_if, and finds the dropped tokens of a text, and the queries and keys of
 * edges, by their labels. what_if_free frees the copy, after a failure too.
 */
qkv_status what_if_of_text(const struct what_if *parsed, char *const *labels, int64_t n,
                           const struct what_if_edges *edges, struct what_if *what_if,
                           qkv_error *error);

/* What the value of cut=... names, for edges of one text. */
struct what_if_cut {
    int64_t layer, head;     /* -1: all */
    uint8_t *queries, *keys; /* marks, from malloc */
    int64_t n;               /* edges */
    char place[64];          /* "", " in head 1.2", " in layer 1" */
};
/* Edges in words of a user, QUERY>KEY[@L.H]; option: for messages. what_if_cut_free in any case. */
qkv_status what_if_cut_read(const char *option, const char *value,
                            const struct what_if_edges *edges, struct what_if_cut *cut,
                            qkv_error *error);
/* Writes the edges, [cut->n][4], as qkv_run_options.cuts has them. */
void what_if_cut_list(const struct what_if_edges *edges, const struct what_if_cut *cut,
                      int64_t *list);
void what_if_cut_free(struct what_if_cut *cut);
void what_if_free(struct what_if *what_if);

/* Of a changed run: appends "MODIFIED: not what the model computed (…). " */
void what_if_caption(const struct what_if *what_if, struct caption *caption);
/* Of a changed run: adds "modified" and "what_if". */
void what_if_json(const struct what_if *what_if, json_t *object);

#endif
