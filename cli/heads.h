/* The table of heads: its columns, its rows, and the ways to write them. */
#ifndef QKV_CLI_HEADS_H
#define QKV_CLI_HEADS_H

#include "input.h"
#include "pair.h"
#include "term.h"
#include <qkv/inspect.h>

/* ---- Columns --------------------------------------------------------------------------------- */

enum column_kind {
    COLUMN_SHARE, /* 0 ... 1 */
    COLUMN_SIZE,  /* from 0 on */
    COLUMN_PLACE  /* of a token; -1: none */
};

/* Where a column's number is. */
enum column_source { COLUMN_OF_STATS, COLUMN_OF_PROBES, COLUMN_OF_ROW };

enum { MAX_COLUMNS = 24 };

struct head_column {
    const char *name;  /* of the field, in JSON, CSV, --sort and --columns */
    const char *title; /* on the terminal */
    const char *what;  /* its definition */
    enum column_kind kind;
    enum column_source source;
    size_t offset;
    int rank;      /* which columns are shown where not all have room: the smallest first */
    bool alike;    /* joins the distance of --like */
    bool one_text; /* compares places or tokens of queries and keys: not of cross-attention */
};

/* The index-th column, NULL past the end; by name, -1 if there is none. */
const struct head_column *head_column_at(int index);
int head_column_find(const char *name, size_t n_bytes);

/* ---- Rows ------------------------------------------------------------------------------------ */

struct head_row {
    qkv_head_stats stats;       /* of a text, or means over texts */
    qkv_head_probes probes;     /* NaN without */
    const char *label;          /* with probes, if they were made */
    double label_share;         /* of the texts: those that give this label; NaN for one text */
    double distance;            /* of --like */
    double spread[MAX_COLUMNS]; /* standard deviation over texts; NaN for fewer than two */
};

double head_number(const struct head_row *row, const struct head_column *column);
/* The column of the number of a rule for labels; NULL: there is none. */
const struct head_column *head_column_of(const qkv_head_rule *rule);

/* {"layer", "head", "label", "entropy", ...}: what `look --json` and `heads --json` have alike. */
json_t *head_json(const qkv_head_stats *stats);

/* ---- The command ----------------------------------------------------------------------------- */

struct heads_options {
    struct cli_common common;
    const char *pair, *file, *sort, *label, *like, *columns, *grammar, *out;
    struct arg_int top, seed;
    bool reverse, probes;
    struct arg_texts what_if;
    struct pair_options which;
};

/* What was found out, by rows in the order in which they are shown. */
struct heads {
    const struct session *session;
    const struct heads_options *options;
    const qkv_encoding *input; /* of one text; NULL for many */
    struct pair pair;          /* of one: what its decoder reads */
    qkv_attention_of which;
    int64_t n_targets; /* tokens of targets */
    int64_t n_texts, n_cut, n_queries, n_tokens;
    const qkv_probe_report *probes; /* NULL without */
    const struct what_if *what_if;
    const char *probe_note; /* why a rule about probes does not apply; "" */
    struct head_row *rows;
    int64_t n_rows, n_all;
};

/* Does a column say something about these heads? */
static inline bool heads_have(qkv_attention_of which, const struct head_column *column) {
    return which != QKV_CROSS || !column->one_text;
}

/* Can a rule give a label to these heads? */
bool heads_label_exists(const struct heads *heads, const qkv_head_rule *rule);

static inline uint64_t heads_seed(const struct heads *heads) {
    return heads->options->seed.set ? (uint64_t)heads->options->seed.value : 1;
}

/* Names in the options that are none: EXIT_USAGE, having said so (heads_order.c). */
int heads_check_options(const struct cli_command *command, const struct heads_options *options);
/* The index of the head of --like, -1 without. Returns an exit code. */
int heads_like(const struct session *session, const struct heads_options *options, int64_t *index);
/* Keeps the rows that are asked for, in the order that is; like: the index of a head, or -1. */
qkv_status heads_arrange(struct heads *heads, int64_t like, qkv_error *error);

/* The label of a head, with its probes if there are any: [heads], NULL for none. */
const char *heads_label(const qkv_head_stats *stats, const qkv_head_probes *probes, int64_t index);

/* Sums over texts (heads_sum.c). probes as above. */
struct heads_sum;
qkv_status heads_sum_make(const struct session *session, qkv_attention_of which,
                          const qkv_head_probes *probes, struct heads_sum **sum, qkv_error *error);
/* The heads of one more text. */
void heads_sum_add(struct heads_sum *sum, const qkv_head_stats *stats);
/* Means, spreads and labels into rows, which hold their probes already. */
void heads_sum_rows(const struct heads_sum *sum, struct head_row *rows);
void heads_sum_free(struct heads_sum *sum);

/* Adds up the texts of --file, and counts what there is to count (heads_file.c). */
qkv_status heads_read(struct heads *heads, struct heads_sum *sum, qkv_error *error);

/* As an object, and as a file with commas or tabs (heads_write.c). */
qkv_status heads_object(const struct heads *heads, json_t **json, qkv_error *error);
qkv_status heads_table(const struct heads *heads, const char *path, char separator,
                       qkv_error *error);
/* On standard output (heads_text.c, heads_legend.c). */
void heads_print(const struct heads *heads);

/* ---- Running (heads_run.c) ------------------------------------------------------------------- */

/* What answering needs beside the text. */
struct heads_job {
    struct text_job texts;
    int64_t like;           /* index of a head, -1 without */
    struct what_if what_if; /* all but tokens to drop */
    qkv_head_probes *probes;
    qkv_probe_report report;
    const char *probe_note;
};

/* Which of .csv, .tsv, .json a path ends in, -1 for none. */
int heads_ending(const char *path);
/* Makes the probes of --probes, once for all texts; the caller frees them. */
qkv_status heads_probe(struct heads_job *job, qkv_error *error);
/* One text, as text_job wants it; and those of --file, with an exit code. */
qkv_status heads_answer(struct text_job *texts, const qkv_encoding *input, json_t **json,
                        qkv_error *error);
int heads_answer_file(const struct heads_job *job);

#endif
