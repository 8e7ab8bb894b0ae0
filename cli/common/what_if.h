/* --what-if: runs of a model whose attention is changed, and the words that say how. */
#ifndef QKV_CLI_COMMON_WHAT_IF_H
#define QKV_CLI_COMMON_WHAT_IF_H

#include "common/cli.h"
#include <qkv/model.h>

enum { WHAT_IF_WORDS = 300 };

/* Shown with every output of such a run. */
#define WHAT_IF_BADGE "modified: not what the model computed"

struct what_if {
    qkv_run_options asked;
    const struct arg_texts *given; /* the values of the option */
    bool any;
    uint8_t *dropped;          /* [n], 1: the token is dropped; malloc; NULL: none is */
    const uint8_t *inputs[1];  /* { dropped }, since a run has an array of texts */
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
    OPTION_ROW("--what-if", "causal|no-scale|temperature=T|drop=TOKEN", ARG_TEXTS, field,          \
               .suggest = "causal|no-scale|temperature=|drop=")

/*
 * Refuses drop=TOKEN where there are several texts, by the option `with`: their tokens differ.
 * Returns an exit code.
 */
int what_if_check_drop(const struct cli_command *command, const struct arg_texts *given,
                       const char *with);

/*
 * Copies `parsed` to what_if, and finds the dropped tokens of a text by their labels. what_if_free
 * frees the copy, after a failure too.
 */
qkv_status what_if_of_text(const struct what_if *parsed, char *const *labels, int64_t n,
                           struct what_if *what_if, qkv_error *error);
void what_if_free(struct what_if *what_if);

#endif
