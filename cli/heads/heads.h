/* `qkv heads`: the table of heads, its columns and rows, and the ways to write it. */
#ifndef QKV_CLI_HEADS_H
#define QKV_CLI_HEADS_H

#include "common/attended.h"
#include "common/pictured.h"
#include "common/term.h"
#include <qkv/inspect.h>

/* ---- Columns --------------------------------------------------------------------------------- */

/* Columns are the numbers of heads (qkv/heads.h), and after them the distance of --like. */
enum { MAX_COLUMNS = 48, NEEDS_LIKE = 1 << 16 };

/*
 * The index-th column, NULL past the end; the index of a column by its name or its heading, -1 if
 * there is none.
 */
const qkv_head_number *head_column_at(int index);
int head_column_find(const char *name, size_t n_bytes);
/* The column of the number of a rule for labels. */
const qkv_head_number *head_column_of(const qkv_head_rule *rule);

/* ---- Rows ------------------------------------------------------------------------------------ */

struct head_row {
    int64_t layer, head;
    const double *numbers, *spread; /* spread: standard deviations over texts; NULL for one text */
    const char *label;              /* uses probes, if they were made */
    double label_share;             /* the share of texts with this label; NaN for one text */
    double distance;                /* of --like */
    const char *word;               /* the sort key (order.c), if it is a label; else NULL, */
    double key;                     /* and this number is the sort key */
    bool falls;                     /* in descending order */
};

/* The number in the index-th column. */
double head_number(const struct head_row *row, int index);

/* ---- The command ----------------------------------------------------------------------------- */

struct heads_options {
    struct cli_common common;
    const char *pair, *file, *image, *journal, *sort, *label, *like, *columns, *grammar, *out;
    struct arg_int top, seed;
    bool reverse, probes;
    struct arg_texts what_if;
    /* of --effect, and of --fires */
    bool effect, loss;
    struct arg_int ablate;
    const char *reference, *patch, *word, *fires;
    struct arg_texts groups, edges;
    struct pair_options which;
    struct picture_options picture;
};

/* The result; rows are in the order in which they are shown. */
struct heads {
    const struct heads_options *options;
    struct attended text; /* of many texts: without input, its heads are means */
    qkv_attention_kind which;
    int64_t n_targets; /* tokens of targets */
    int64_t n_texts, n_cut, n_queries, n_tokens;
    const qkv_probe_report *probes; /* NULL: none were made */
    const struct what_if *what_if;
    const char *probe_note; /* why a rule about probes does not apply; "" */
    struct head_row *rows;
    int64_t n_rows, n_all, n_layers, n_heads;
};

/* Does a column apply to heads of this kind of attention? */
static inline bool heads_have(qkv_attention_kind which, const qkv_head_number *column) {
    return which != QKV_CROSS || !(column->needs & QKV_NEEDS_ONE_TEXT);
}

/* Does a file have this column; and has the column a spread? */
bool heads_write(const struct heads *heads, const qkv_head_number *column);
bool heads_spread(const struct heads *heads, const qkv_head_number *column);

/* Can a rule give a label to these heads? */
bool heads_label_exists(const struct heads *heads, const qkv_head_rule *rule);

static inline uint64_t heads_seed(const struct heads_options *options) {
    return options->seed.set ? (uint64_t)options->seed.value : 1;
}

/* Refuses unknown names in options (order.c). Returns an exit code. */
int heads_check_options(const struct cli_command *command, const struct heads_options *options);
/* Finds the index of the head of --like, -1 without. Returns an exit code. */
int heads_like(const struct session *session, const struct heads_options *options, int64_t *index);
/* Selects and sorts rows by the options; like: the index of a head, or -1. */
qkv_status heads_arrange(struct heads *heads, int64_t like, qkv_error *error);

/* The table as JSON, and as a CSV or TSV file (write.c). */
qkv_status heads_object(const struct heads *heads, json_t **json, qkv_error *error);
qkv_status heads_table(const struct heads *heads, const char *path, char separator,
                       qkv_error *error);
/* On standard output (text.c). */
void heads_print(const struct heads *heads);

/* The columns that are shown, by their index. */
struct layout {
    bool shown[MAX_COLUMNS];
    double largest[MAX_COLUMNS]; /* the largest number, which has the full colour */
    bool empty[MAX_COLUMNS];     /* no row has a number */
    int label_width, n_hidden;
};
/*
 * Prints what columns mean, the rules of labels that occur, and which probes were run (legend.c).
 */
void heads_legend(struct term *term, const struct heads *heads, const struct layout *layout);

/* ---- Running (run.c) ------------------------------------------------------------------------- */

/* A job over texts, and what is the same for all texts. */
struct heads_job {
    struct text_job texts;
    int64_t like;           /* index of the head of --like, -1 without */
    struct what_if what_if; /* without tokens to drop */
    qkv_head_probes *probes;
    qkv_probe_report report;
    const char *probe_note;
};

#define HEADS_ENDINGS ".csv .tsv .json"
/* Makes the probes of --probes, once for all texts; the caller frees them. */
qkv_status heads_probe(struct heads_job *job, qkv_error *error);
/* Answers one text, as text_job wants it; those of --file, returning an exit code. */
qkv_status heads_answer(struct text_job *texts, const qkv_encoding *input, json_t **json,
                        qkv_error *error);
int heads_answer_file(const struct heads_job *job);

#endif
