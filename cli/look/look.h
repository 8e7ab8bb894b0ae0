/* What `qkv look` knows about the heads of a text, or of arrays, and the ways to show it. */
#ifndef QKV_CLI_LOOK_H
#define QKV_CLI_LOOK_H

#include "common/array_names.h"
#include "common/attended.h"
#include "common/pictured.h"
#include "common/predict.h"
#include "common/ranks.h"
#include "common/rules.h"
#include "common/term.h"
#include <qkv/files.h>
#include <qkv/inspect.h>
#include <qkv/page.h>
#include <qkv/picture.h>

struct look_options {
    struct cli_common common;
    const char *pair, *out, *heads, *file, *windows;
    qkv_text **page; /* receives the page in place of a file `out`; NULL: a file it is */
    struct pair_options which;
    bool align; /* of --cross (align.c) */
    struct arg_int top;
    struct arg_texts what_if;
    /* --q, --k: arrays in place of a text (arrays.c) */
    const char *q, *k, *tokens, *q_tokens, *causal, *window;
    struct arg_real scale;
    struct arg_int pool;
    struct arg_int plot;     /* enum plot_kind */
    struct arg_int map;      /* 0: cosine, 1: inner */
    bool lens;               /* common/lens.h */
    const char *against;     /* against.h */
    bool effect;             /* of a page (page_effect.c) … */
    struct arg_texts groups; /* … and of groups (page_groups.c) */
    bool serve;              /* serve.c */
    bool mpi;                /* of arrays (arrays_read.c) */
    struct arg_int port;
    struct picture_options picture;
};

/* A head that --heads names; layer -1: none was written. */
struct head_name {
    int64_t layer, head;
};

struct look {
    const struct look_options *options;
    qkv_ctx *ctx;
    const struct text *said[2];       /* of a text: it and its pair, as in text_job */
    const struct arrays *arrays;      /* of --q and --k; NULL: of a text */
    struct attended text;             /* of arrays only its heads; of --slide means over windows */
    int64_t n_rows, n_cols;           /* of maps */
    char *const *rows, *const *cols;  /* names of queries and keys */
    struct look_alignment *alignment; /* of --align; NULL */
    double *log_p; /* [n_rows - 1] or, of a pair, [n_rows]: of the tokens that come next; NULL */
    struct predictions predictions;
    struct predictions before;    /* where something is asked: those of the model as it is */
    double *labels;               /* [n_labels], of a classifier; NULL */
    double *replaced;             /* [n], of a model that judges tokens; NULL */
    struct windows *windows;      /* of --slide */
    bool given;                   /* a head was named */
    const struct head_name *list; /* of --heads, the first of which is the one above */
    int n_list;
    qkv_heads_choice choice;
};

/* Runs the model; and frees what that made, also after a failure (make.c). */
qkv_status look_make(struct look *look, const struct what_if *parsed, qkv_error *error);
void look_free_text(struct look *look);

static inline const qkv_heads_info *look_info(const struct look *look) {
    return qkv_heads_get_info(look->text.heads);
}
static inline int64_t look_n_heads(const struct look *look) {
    return look_info(look)->n_layers * look_info(look)->n_heads;
}
/* The index of the chosen head; layer (-1: none) and head by which one is named; its numbers. */
static inline int64_t look_chosen(const struct look *look) {
    return look->choice.layer * look_info(look)->n_heads + look->choice.head;
}
static inline int64_t look_top(const struct look *look) {
    return look->options->top.set ? look->options->top.value : 5;
}
void look_place(const struct look *look, int64_t index, int64_t *layer, int64_t *head);
static inline const double *look_numbers(const struct look *look, int64_t index) {
    return qkv_heads_numbers(look->text.heads, index);
}
/* Its label; of windows the one that more than half of them give. */
const char *look_label(const struct look *look, int64_t index);

/* ---- Cells of maps (cells.c) ----------------------------------------------------------------- */

/* Tiles of arrays, so that no side has more than `most` cells; of a text each weight is a cell. */
struct look_tiles {
    int64_t tile, rows, cols;
};
struct look_tiles look_tiles_of(const struct look *look, int64_t most);
/* The cells of a head, [rows][cols]; QKV_CELL_HIDDEN where no query sees a key. */
qkv_status look_cells(const struct look *look, int64_t index, const struct look_tiles *tiles,
                      float *cells, qkv_error *error);

/* Those of the chosen head, to be freed; NULL: none, and *error says why. */
float *look_chosen_cells(const struct look *look, int64_t most, struct look_tiles *tiles,
                         qkv_error *error);

/* What a file holds: the named head of a text, else all; of arrays all that were named. */
struct look_block {
    struct look_tiles tiles;
    int64_t first, n_heads;
    bool one;
    float *cells; /* [n_heads][rows][cols], to be freed after a failure, too */
};
enum { WEIGHTS_LIMIT = 1 << 28, CSV_LIMIT = 1 << 24 };
/* Maps of arrays are pooled above so many cells a side; and the small ones of several heads. */
enum { LOOK_MAP = 1024, LOOK_THUMBNAIL = 128 };
/* Without cells: the heads. */
struct look_block look_block_of(const struct look *look);
/* At most `limit` cells. advice: what a message ends with; NULL: a picture's. */
qkv_status look_block_read(const struct look *look, int64_t most, int64_t limit, const char *advice,
                           struct look_block *block, qkv_error *error);

/* ---- Words (words.c) ------------------------------------------------------------------------- */

/* "Cross-attention, layer 0, head 1" of the choice; and with what it looks at. */
void look_head_name(const struct look *look, char name[HEAD_NAME]);
void look_title(const struct look *look, struct caption *title);
static inline const char *look_attention(const struct look *look) {
    return attention_words(look->text.session, look->text.view.which);
}
/* e^(-mean of log_p), and how many tokens that is over; 0: none. */
double look_perplexity(const struct look *look, int64_t *n);
/* "MODIFIED: not what the model computed (…). ", if something is asked. */
void look_modified(const struct look *look, char *text, size_t bytes);
/* Where heads are from, in words: one head, or all. */
void look_source(const struct look *look, bool one, struct caption *caption);
/* Appends the rule that chose the head, if none was named. */
void look_add_rule(const struct look *look, struct caption *caption);
/* What a cell is, and where there is none. */
void look_cell_words(const struct look *look, int64_t tile, struct caption *caption);
/* ---- Pairs: --cross, --decoder (common/pair.h), --align (align.c) ---------------------------- */

static inline qkv_which look_which(const struct look_options *options) {
    return options->align ? QKV_CROSS : pair_which(&options->which);
}

/* Words of a text: that of each token; their names; which are special, and not shown. */
struct look_words {
    int64_t n;
    int32_t *of;
    char **names; /* escaped */
    uint8_t *special;
};
/* A word of the target and the word of the source that its rows look at most. */
struct look_alignment {
    int64_t layer, n_heads; /* heads that count */
    struct look_words target, source;
    qkv_aligned *words;    /* [target.n] */
    uint8_t *keys, *heads; /* that are taken */
    double *table;         /* [target.n][source.n]: W of qkv_inspect_align */
};
qkv_status look_align(struct look *look, qkv_error *error);
void look_align_free(struct look_alignment *alignment);
void look_align_print(const struct look *look, struct term *term);
json_t *look_align_json(const struct look *look);
/* All words of the target and of the source, as a picture. */
qkv_status look_align_picture(const struct look *look, const char *path, qkv_error *error);

/* ---- --slide: windows of a text of any length (windows.c) ------------------------------------ */

struct windows_rule {
    int64_t n, stride; /* tokens, besides those that the model adds */
};

/* What one window showed. */
struct text_window {
    int64_t first; /* its first token, of those of the text */
    qkv_heads_choice choice;
    char *query, *key; /* labels of the choice; NULL: there is none */
    char *begins;      /* its first words */
    qkv_encoding encoding;
    struct attended of; /* for a page, as long as it has room; else without heads */
};

struct windows {
    struct windows_rule rule;
    int64_t n_tokens;      /* of the text, without those … */
    int64_t before, after; /* … special ones that the tokenizer added at its beginning and end */
    int64_t n_windows;     /* that were looked at: all, or those before Ctrl-C */
    int64_t n_all, n_kept; /* there are; whose runs are kept for a page, at most */
    int64_t n;             /* tokens of each, with the special ones */
    struct text_window *list;
    qkv_encoding encoding; /* of the first window: places of the means */
};

/* An exit code. */
int windows_parse(const struct cli_command *command, const struct look_options *options,
                  struct windows_rule *rule);
/* Looks at each window of the text; look is then about their means, and owns all of it. */
qkv_status windows_make(struct look *look, const struct what_if *parsed,
                        const struct windows_rule *rule, qkv_error *error);
void windows_free(struct windows *windows); /* NULL is allowed */
/* "means over 12 windows of 60 tokens, …" and the list of windows (windows_show.c). */
void windows_words(const struct windows *windows, struct caption *caption);
void windows_print(const struct look *look, struct term *term);
void windows_json(const struct look *look, json_t *object);
/* A page of the windows, from which a reader chooses; how many of n tokens it may have. */
qkv_status windows_page(const struct look *look, const char *path, qkv_error *error);
int64_t windows_page_room(const struct look *look, int64_t n);

/* ---- --q and --k: queries and keys of any model, at any length (arrays.c) -------------------- */

/* Nothing here stores queries x keys unless a file of that size was asked for. */
struct arrays {
    const struct look_options *options;
    qkv_array *q, *k;
    qkv_heads_arrays given; /* what the library is told */
    struct rules rules;
    qkv_attention_desc seen; /* with these rules, of one head */
    bool window;
    struct array_names keys, queries; /* queries without any, with self: … */
    bool self;  /* … they are the tokens that keys are, as many and without names of their own */
    bool named; /* heads were named */
    int64_t side;    /* most tiles a side on the terminal, of the first rank */
    int64_t layer;   /* the name of their layer; -1: none */
    int64_t n_shown; /* heads that are looked at … */
    int64_t *names;  /* … and which: places in the array, unless that has one head only */
};

/*
 * An array of --q or --k, at least one of each: [L,D], [H,L,D] or [1,H,L,D]. Of several ranks each reads its
 * rows, `own` of them; the shape is that of the whole array (arrays_read.c). An exit code.
 */
int arrays_read(const char *option, const char *path, qkv_array **array, int64_t *own);

/* An exit code, having said what is wrong. */
int look_arrays(const struct cli_command *command, const struct look_options *options);
/* The largest weight of one head. */
qkv_status arrays_sharpest(const struct look *look, int64_t index, qkv_sharpest *found,
                           qkv_error *error);
/* Arrays, shapes, scale and mask in words (words.c). */
void arrays_describe(const struct arrays *arrays, struct caption *caption);
/* Statistics as an object; a line for each head and the map of one (arrays_show.c). */
qkv_status arrays_json(const struct look *look, json_t **json, qkv_error *error);
qkv_status arrays_print(const struct look *look, qkv_error *error);
/* The page of heads, at any length: queries, keys and lse, never weights (arrays_page.c). */
qkv_status arrays_page(const struct look *look, qkv_page_head *heads, const char *path,
                       qkv_error *error);

/* A browser does not compute all weights of these, and what keys receive is not measured. */
enum { LONG_SIDE = 2048, LONG_SAMPLE = 512 };
static inline bool arrays_are_long(const struct arrays *arrays) {
    return arrays->given.n_queries > LONG_SAMPLE &&
           arrays->given.n_queries > (int64_t)LONG_SIDE * LONG_SIDE / arrays->given.n_keys;
}

/* ---- Showing --------------------------------------------------------------------------------- */

/* "3.11,0.2", "11,2": an array to be freed in any case, in that order. Exit codes (list.c). */
int look_list_parse(const struct cli_command *command, const char *option, const char *text,
                    struct head_name **list, int *n);
/* --heads, all of them in the model. */
int look_list_heads(const struct cli_command *command, const struct look_options *options,
                    const struct session *session, struct head_name **list, int *n);

/* On the terminal: predictions, grid of heads, heat map of the chosen head (text.c). */
qkv_status look_print(const struct look *look, qkv_error *error);
/* Parts of it: the chosen head and what it looks at; its map, cell by cell. */
void look_print_title(const struct look *look, struct term *term);
qkv_status look_print_map(const struct look *look, struct term *term, qkv_error *error);
/* As an object, and the weights of the chosen head as rows (json.c). */
qkv_status look_json(const struct look *look, json_t **json, qkv_error *error);
qkv_status look_weights_json(const struct look *look, json_t **rows, qkv_error *error);
/* Shows, writes or makes an object of what is there (show.c). */
qkv_status look_show(const struct look *look, json_t **json, qkv_error *error);

/* Of ranks that share the work of arrays the first one alone writes, and speaks. */
static inline bool look_writes(void) { return ranks_rank() == 0; }

#define PICTURES ".png .svg .pdf"
#define ENDINGS  ".html " PICTURES " .json .csv .npy"

/* ---- Files: of the named head, else of all heads --------------------------------------------- */

/* A picture, by the path's ending: .png, .svg or .pdf (picture.c). */
qkv_status look_picture(const struct look *look, const char *path, qkv_error *error);

/* --plot: a chart of one head, the named one or that which was chosen; .csv, too (plot.c). */
enum plot_kind { PLOT_QUERIES, PLOT_RECEIVED, PLOT_OFFSETS };
qkv_status look_plot(const struct look *look, const char *path, qkv_error *error);

/* The page of a text for a browser (page.c); heads: room for all. */
qkv_status look_text_page(const struct look *look, qkv_page_head *heads, const char *path,
                          qkv_error *error);
enum { LOOK_PAGE_BYTES = 32000000 }; /* of a page with several heads */
/* A page without tokens and heads; title and caption must live as long. */
qkv_page look_page_of(const struct look *look, const char *title, const char *caption);
/* Writes it with maps of the first head, or of all where that is quick; and says so (page_write.c). */
qkv_status look_page_write(const struct look *look, qkv_page *page, qkv_page_head *heads,
                           const char *path, qkv_error *error);
/* Those maps (maps.c): places of each head its map and pca, [points][2] each; notes of each: to be freed. */
qkv_status look_maps_make(const struct look *look, qkv_page_head *heads, int64_t n_heads,
                          double **places, char **notes, qkv_error *error);
/* Puts a page where the options want it, and says what it holds of the heads that it was given. */
qkv_status look_page_put(const struct look_options *options, const qkv_page *page, const char *path,
                         qkv_error *error);

/* Per token of a text, as qkv_page wants it; and its heads, in the order in which they are kept. */
struct look_tokens {
    char **texts;
    int32_t *words;
};
qkv_status look_tokens_make(struct look_tokens *tokens, const qkv_token_list *list,
                            qkv_error *error);
void look_tokens_free(struct look_tokens *tokens, int64_t n);
qkv_status look_page_heads(const struct look *look, qkv_page_head *heads, float *scale,
                           qkv_error *error);
qkv_status look_page_head(const struct look *look, int64_t index, float scale, qkv_page_head *head,
                          qkv_error *error);
/* What each head is worth for the words that the model predicts (page_effect.c). */
struct page_effects {
    char what[160];
    char *word; /* to be freed */
};
struct page_tables; /* page_table.h */
qkv_status look_page_effects(const struct look *look, qkv_page *page, qkv_page_head *heads,
                             struct page_effects *made, struct page_tables *tables,
                             qkv_error *error);
/* The title of a page of a text. */
enum { LOOK_TITLE = 200 };
void look_page_title(const struct look *look, char title[LOOK_TITLE]);
/* Where queries and keys hide one another: rules, dropped keys and the badge of a page. */
void look_page_rules(const struct look *look, qkv_page *page, char modified[WHAT_IF_WORDS + 60]);

/* [n, n] of one head, else [layers, heads, n, n] or [heads, n, n]; NaN: not seen (table.c). */
qkv_status look_npy(const struct look *look, const char *path, qkv_error *error);
/*
 * The named head: a row for each query, with tokens as the first row and column. All heads: a row
 * for each weight, layer,head,query,key,weight (table.c).
 */
qkv_status look_csv(const struct look *look, const char *path, qkv_error *error);

#endif
