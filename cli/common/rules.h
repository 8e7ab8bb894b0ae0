/*
 * Options of the rules of visibility, made from the library's table (qkv_attention_rule): --causal,
 * --window LEFT,RIGHT, --chunk N, --kv-len N[,N...]. A command has them by a row of kind ARG_RULES.
 */
#ifndef QKV_CLI_COMMON_RULES_H
#define QKV_CLI_COMMON_RULES_H

#include "common/cli.h"

/*
 * The index-th option of the rules in `names`, such as "causal|prefix"; NULL past the end. Its
 * value goes into cli_common.rules.
 */
const struct cli_option *rules_option(const char *names, int index);

/*
 * The rules of a command line, parsed before any file is read. A list has one number for all
 * batches, or one for each batch.
 */
struct rules {
    enum { CAUSAL_NONE, CAUSAL_TOP_LEFT, CAUSAL_BOTTOM_RIGHT, CAUSAL_OFFSETS } causal;
    struct {
        int64_t *values;
        int n;
        int64_t *per_batch; /* [n_batch], which the descriptor points to */
    } given[ARG_MOST_RULES];
};

/* These return an exit code, having said what is wrong. rules_free also after a failure. */
int rules_parse(const struct cli_command *command, const struct cli_common *options,
                struct rules *rules);
/* Parses one rule, for a command that has its option in a row of its own; text: nullable. */
int rules_parse_one(const struct cli_command *command, uint32_t flag, const char *text,
                    struct rules *rules);
/* --causal of arrays that are one batch: it has one offset at most. */
int rules_parse_causal(const struct cli_command *command, const char *text, struct rules *rules);
/* Sets flags and fields of desc, whose sizes are set. desc points into rules from then on. */
int rules_apply(struct rules *rules, qkv_attention_desc *desc);
void rules_free(struct rules *rules);

#endif
