/* --what-if: attention other than the model's, and how that is said. */
#ifndef QKV_CLI_COMMON_WHAT_IF_H
#define QKV_CLI_COMMON_WHAT_IF_H

#include "common/cli.h"
#include <qkv/model.h>

enum { WHAT_IF_WORDS = 300 };

/* Shown wherever what follows from a question is. */
#define WHAT_IF_BADGE "modified: not what the model computed"

struct what_if {
    qkv_run_options asked;
    const struct arg_texts *given;
    bool any;
    uint8_t *dropped;          /* [n] of the text; malloc */
    const uint8_t *inputs[1];  /* of the one text */
    char words[WHAT_IF_WORDS]; /* "causal, temperature 2, without the (token 4, one of 2)" */
};

/* Reads the options, all but which tokens drop=TOKEN means. An exit code. */
int what_if_parse(const struct cli_command *command, const struct arg_texts *given,
                  struct what_if *what_if);

/* In a table of options: --what-if. */
#define WHAT_IF_ROW(field)                                                                         \
    OPTION_ROW("--what-if", "causal|no-scale|temperature=T|drop=TOKEN", ARG_TEXTS, field,          \
               .suggest = "causal|no-scale|temperature=|drop=")

/* EXIT_USAGE, having said so, if a token is dropped from several texts, those of `with`. */
int what_if_check_drop(const struct cli_command *command, const struct arg_texts *given,
                       const char *with);

/* Finds the tokens of a text, by their labels, in a copy that is freed with what_if_free. */
qkv_status what_if_of_text(const struct what_if *parsed, char *const *labels, int64_t n,
                           struct what_if *what_if, qkv_error *error);
void what_if_free(struct what_if *what_if);

#endif
