/*
 * `qkv look --q F --k F`: queries and keys of any model, without the model, at any length. Nothing
 * here stores queries x keys unless a file of that size was asked for.
 */
#ifndef QKV_CLI_DUMP_H
#define QKV_CLI_DUMP_H

#include "look.h"

/* Which keys query i sees: first <= j - i <= last, both open by default. */
struct dump_mask {
    bool from, to;
    int64_t first, last;
};

struct dump_head {
    qkv_head_stats stats;  /* its layer and head are names */
    double effective_keys; /* mean of 1 / sum p^2 */
    int64_t n_empty, n_nan;
    int64_t query, key; /* the largest weight; -1: there is none */
    float weight;
    float *lse;      /* [n_queries] */
    float *distance; /* [n_queries]: sum over keys of p |i - j|, place counted as masks do */
    float *entropy, *largest; /* [n_queries], for --plot queries; NULL otherwise */
    /* Of a long text, for its page: */
    float *received; /* [n_keys] */
    float *peaks;    /* [side][side] */
    int64_t side, tile;
};

struct dump {
    const struct look_options *options;
    qkv_ctx *ctx;
    qkv_array *q, *k;
    int64_t n_heads, n_kv_heads, n_queries, n_keys, head_dim;
    double scale;
    bool causal, window; /* as asked for, to be said */
    int64_t q_offset, window_left, window_right;
    struct dump_mask mask; /* both as one */
    char **tokens;         /* [n_keys], of --tokens; NULL: numbers */
    char **labels;         /* [n_keys], escaped */
    char **q_tokens;       /* [n_queries], of --q-tokens, and escaped; NULL: those of keys if … */
    char **q_labels;
    bool self; /* … queries are the tokens that keys are, as many and without names of their own */
    bool given;      /* heads were named */
    int64_t layer;   /* the name of their layer; -1: none */
    int64_t n_shown; /* heads that are looked at … */
    int64_t *names;  /* … and which: places in the array, unless that has one head only */
    int64_t chosen;  /* of those: the named one, else that with the sharpest queries */
    struct dump_head *heads;
};

/* ---- What is there (dump_read.c, dump_tokens.c) ------------------------------------------------ */

/* Exit codes, having said what is wrong: of the options before any file is read, then of the files. */
int dump_parse(const struct cli_command *command, const struct look_options *options,
               struct dump *dump);
int dump_read(struct dump *dump);
int dump_tokens_read(struct dump *dump);
void dump_free(struct dump *dump);

const float *dump_queries(const struct dump *dump, int64_t shown);
const float *dump_keys(const struct dump *dump, int64_t shown);

/* ---- What is computed (dump_compute.c, dump_pool.c) --------------------------------------------- */

/* A head as a problem: one batch, one head, values of one 0. */
void dump_desc(const struct dump *dump, qkv_attention_desc *d);
/* lse and statistics of every head that is looked at. */
qkv_status dump_compute(struct dump *dump, qkv_error *error);

/* All weights of a head, [n_queries][n_keys]. */
qkv_status dump_weights(const struct dump *dump, int64_t shown, float *weights, qkv_error *error);

enum dump_pooling { POOL_PEAK, POOL_MASS };

/* Tiles of `tile` queries and keys, so that no side has more than `most` of them. */
struct dump_tiles {
    int64_t tile, rows, cols;
};
struct dump_tiles dump_tiles_of(const struct dump *dump, int64_t most);
/* Queries see none of the keys of this tile: it has no weight and no cell. */
bool dump_hides(const struct dump *dump, const struct dump_tiles *tiles, int64_t row, int64_t col);
/* Writes `none` into the cells that are hidden. */
void dump_hide(const struct dump *dump, const struct dump_tiles *tiles, float none, float *cells);

/*
 * The pooled map of a head, [rows][cols] of cells: of each tile the largest weight, or (mass) the sum
 * over its keys, mean over its queries that see a key. In memory of a few tiles.
 */
qkv_status dump_pool(const struct dump *dump, int64_t shown, enum dump_pooling pooling,
                     const struct dump_tiles *tiles, float *cells, qkv_error *error);

/* As --pool asks for, largest weights by default; and exactly where a tile is one pair. */
enum dump_pooling dump_pooling_of(const struct dump *dump);
qkv_status dump_cells(const struct dump *dump, int64_t shown, const struct dump_tiles *tiles,
                      float *cells, qkv_error *error);

/*
 * Sums over all queries of their weights on each key, [n_keys], and means of the diagonals
 * i + q_offset - j = delta, [n_queries + n_keys - 1], from delta = q_offset - (n_keys - 1) on: either may
 * be NULL (dump_columns.c).
 */
qkv_status dump_columns(const struct dump *dump, int64_t shown, float *received, float *diagonal,
                        qkv_error *error);

enum {
    DUMP_MAP = 1024
}; /* cells a side of a pooled map, at most; of shorter ones they are weights */

/* ---- What is said (dump_words.c) ----------------------------------------------------------------- */

enum { DUMP_CAPTION = 900, DUMP_TITLE = 300, DUMP_LABEL = 24 };
/* Arrays, shapes, scale and mask in words. */
void dump_describe(const struct dump *dump, char text[DUMP_CAPTION]);
/* "layer 3, head 11", or "head 11" where no layer was named; begins with a capital if asked. */
void dump_head_name(const struct dump *dump, int64_t shown, bool capital, char text[80]);
/*
 * The label of a key or a query: its token (that of a query is its own, or that of the key where queries and
 * keys are the same), or its number, as the first of a tile.
 */
typedef const char *dump_label(const struct dump *dump, int64_t i, int64_t tile,
                               char room[DUMP_LABEL]);
dump_label dump_key_label, dump_query_label;
/* Are keys hidden from queries? And what a caption then says. */
static inline bool dump_masks(const struct dump *dump) { return dump->mask.from || dump->mask.to; }
#define DUMP_NO_CELL " Keys that a query does not see have no cell."
/* Which head, and its largest weight. */
void dump_title(const struct dump *dump, int64_t shown, char text[DUMP_TITLE]);

/* ---- How it is shown (dump_text.c, dump_json.c, dump_picture.c, dump_page.c, dump_files.c, dump_plot.c) ------- */

qkv_status dump_print(const struct dump *dump, qkv_error *error);
qkv_status dump_json(const struct dump *dump, json_t **json, qkv_error *error);
qkv_status dump_picture(struct dump *dump, const char *path, qkv_error *error);
/* --plot; and an exit code if there is more than a chart has room for. */
int dump_plot_check(const struct dump *dump);
qkv_status dump_plot(struct dump *dump, const char *path, qkv_error *error);
qkv_status dump_page(struct dump *dump, const char *path, qkv_error *error);
qkv_status dump_npy(struct dump *dump, const char *path, qkv_error *error);
qkv_status dump_csv(struct dump *dump, const char *path, qkv_error *error);

#endif
