/* Everything that `qkv look` knows about the heads of a text, or of arrays, and the ways to show it. */
#ifndef QKV_CLI_LOOK_H
#define QKV_CLI_LOOK_H

#include "common/pair.h"
#include "common/predict.h"
#include "common/term.h"
#include "heads/list.h"
#include <qkv/inspect.h>
#include <qkv/page.h>
#include <qkv/picture.h>

struct look_options {
    struct cli_common common;
    const char *pair, *out, *heads, *file, *windows;
    struct pair_options which;
    bool align; /* of --cross (align.c) */
    struct arg_int top;
    struct arg_texts what_if;
    /* --q, --k: arrays in place of a text (of_arrays.c) */
    const char *q, *k, *tokens, *q_tokens, *causal, *window;
    struct arg_real scale;
    struct arg_int pool;
    struct arg_int plot; /* enum plot_kind */
    struct arg_int map;  /* 0: cosine, 1: inner */
};

struct look {
    const struct look_options *options;
    const struct session *session; /* NULL: of arrays */
    qkv_ctx *ctx;
    const struct arrays *arrays;     /* of --q and --k (arrays.h); NULL: of a text */
    const qkv_encoding *input;       /* the text; of a pair its source */
    struct attention_view view;      /* of a text */
    qkv_heads *heads;                /* of --slide means over windows */
    int64_t n_rows, n_cols;          /* of maps */
    char *const *rows, *const *cols; /* names of queries and keys */
    char **labels;                   /* tokens of input, escaped */
    struct pair pair;
    struct look_alignment *alignment; /* of --align; NULL */
    double *log_p; /* [n_rows - 1] or, of a pair, [n_rows]: of the tokens that come next; NULL */
    qkv_run *run;
    struct predictions predictions;
    double *replaced;             /* [n], of a model that judges tokens; NULL */
    struct what_if what_if;       /* of this text */
    struct predictions before;    /* where something is asked: those of the model as it is */
    struct windows *windows;      /* of --slide */
    bool given;                   /* a head was named */
    const struct head_name *list; /* of --heads, the first of which is the one above */
    int n_list;
    qkv_heads_choice choice;
};

/* Runs the model; and frees what that made, also after a failure (make.c). */
qkv_status look_make(struct look *look, const struct what_if *parsed, qkv_error *error);
void look_free(struct look *look);

static inline const qkv_heads_info *look_info(const struct look *look) {
    return qkv_heads_get_info(look->heads);
}
static inline int64_t look_n_heads(const struct look *look) {
    return look_info(look)->n_layers * look_info(look)->n_heads;
}
/* The index of the chosen head; layer (-1: none) and head by which one is named. */
static inline int64_t look_chosen(const struct look *look) {
    return look->choice.layer * look_info(look)->n_heads + look->choice.head;
}
void look_place(const struct look *look, int64_t index, int64_t *layer, int64_t *head);
/* Its label; of windows the one that more than half of them give. */
const char *look_label(const struct look *look, int64_t index);
/* The heads that a file holds: from `first` on, of arrays all that were named. */
int64_t look_files_heads(const struct look *look, int64_t *first);

/* Tiles of arrays, so that no side has more than `most` cells; of a text each weight is a cell. */
struct look_tiles {
    int64_t tile, rows, cols;
};
struct look_tiles look_tiles_of(const struct look *look, int64_t most);
/* The cells of a head, [rows][cols]; QKV_CELL_HIDDEN where no query sees a key. */
qkv_status look_cells(const struct look *look, int64_t index, const struct look_tiles *tiles,
                      float *cells, qkv_error *error);

/* "Cross-attention, layer 0, head 1" of the choice; and with what it looks at. */
enum { LOOK_TITLE = 300 };
void look_head_name(const struct look *look, char name[HEAD_NAME]);
void look_title(const struct look *look, char title[LOOK_TITLE]);
static inline const char *look_attention(const struct look *look) {
    return attention_words(look->session, look->view.which);
}
/* e^(-mean of log_p), and how many tokens that is over; 0: none. */
double look_perplexity(const struct look *look, int64_t *n);

/* ---- Pairs: --cross, --decoder (common/pair.h), --align (align.c) ----------------------------------- */

/* What looks at the decoder of a pair, --cross or another; NULL for none. */
const char *look_pair_option(const struct look_options *options);
qkv_which look_which(const struct look_options *options);

/* A word of the target and the word of the source that its rows look at most. */
struct look_alignment {
    int64_t layer, n_heads, n, n_sources; /* heads that count; words of target and source */
    qkv_aligned *words;                   /* [n] */
    char **targets, **sources;            /* escaped */
    uint8_t *special;                     /* [n] 1: a word of special tokens, which is not shown */
};
qkv_status look_align(struct look *look, qkv_error *error);
void look_align_free(struct look_alignment *alignment);
void look_align_print(const struct look *look, struct term *term);
json_t *look_align_json(const struct look *look);

/* ---- --slide: windows of a text of any length (windows.c) ------------------------------------------ */

struct windows_rule {
    int64_t n, stride; /* tokens, besides those that the model adds */
};

/* What one window showed. */
struct text_window {
    int64_t first; /* its first token, of those of the text */
    qkv_heads_choice choice;
    char *query, *key; /* labels of the choice; NULL: there is none */
    char *begins;      /* its first words */
    /* For a page, as long as it has room: */
    qkv_run *run;
    qkv_heads *heads;
    qkv_encoding *encoding;
};

struct windows {
    struct windows_rule rule;
    int64_t n_tokens;      /* of the text */
    int64_t n_windows;     /* that were looked at: all, or those before Ctrl-C */
    int64_t n_all, n_kept; /* there are; whose runs are kept for a page, at most */
    struct text_window *list;
    qkv_encoding *encoding; /* of the first window: places of the means */
};

/* Special tokens that nobody wrote, at the beginning and at the end of a text (windows_window.c). */
struct frame {
    int64_t before, after;
};
struct frame windows_frame_of(const qkv_encoding *text);
/* All of it in one block, for free(). NULL: no memory. */
qkv_encoding *windows_encoding_make(int64_t n);
/* The frame, and between it the tokens from `first` on. */
void windows_encoding_fill(qkv_encoding *window, const qkv_encoding *text, struct frame frame,
                           int64_t first);

/* An exit code. */
int windows_parse(const struct cli_command *command, const struct look_options *options,
                  struct windows_rule *rule);
/* Looks at each window of look->input; look is then about their means, and owns all of it. */
qkv_status windows_make(struct look *look, const struct what_if *parsed,
                        const struct windows_rule *rule, qkv_error *error);
void windows_free(struct windows *windows); /* NULL is allowed */
/* "means over 12 windows of 60 tokens, …" and the list of windows (windows_show.c). */
void windows_words(const struct windows *windows, char *text, size_t bytes);
void windows_print(const struct look *look, struct term *term);
void windows_json(const struct look *look, json_t *object);
/* A page of the windows, from which a reader chooses (windows_page.c). */
qkv_status windows_page(const struct look *look, const char *path, qkv_error *error);
/* How many windows a page may have. */
int64_t windows_page_room(const struct look *look, int64_t n);

/* ---- Options (options.c); exit codes, having said what is wrong ------------------------------ */

int look_check_input(const struct cli_command *command, const struct look_options *o, int n_words);
/* --target, and what needs it. */
int look_check_pair(const struct cli_command *command, const struct look_options *o);
/* known: the ending of -o is one that we write; page: it is that of a page. */
int look_check_out(const struct cli_command *command, const struct look_options *o, bool known,
                   bool page);
/* --plot: its file, and what it does not go with. */
int look_check_plot(const struct cli_command *command, const struct look_options *o);
/* --heads, all of them there. */
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

/* Arrays of any model, without the model. An exit code (arrays.c). */
int look_arrays(const struct cli_command *command, const struct look_options *options);

/* Shows, writes or makes an object of what is there (show.c). */
bool look_writes(const char *path);
bool look_writes_page(const char *path);
qkv_status look_show(const struct look *look, json_t **json, qkv_error *error);

/* ---- Files: of the named head, else of all heads --------------------------------------------- */

/* A picture, by the path's ending: .png, .svg or .pdf (picture.c). Pictures of arrays are pooled above
 * so many cells a side. */
enum { LOOK_MAP = 1024 };
qkv_status look_picture(const struct look *look, const char *path, qkv_error *error);
qkv_theme look_theme(const struct look_options *options);
/* Where heads are from, in words: one head, or all (words.c). */
enum { LOOK_CAPTION = 1400 + WHAT_IF_WORDS };
void look_source(const struct look *look, bool one, char caption[LOOK_CAPTION]);
/* Appends the rule that chose the head, if none was named. */
void look_add_rule(const struct look *look, char caption[LOOK_CAPTION]);
/* What a cell is, and where there is none. */
void look_cell_words(const struct look *look, int64_t tile, char caption[LOOK_CAPTION]);

/* --plot: a chart of one head, the named one or that which was chosen; .csv, too (plot.c). */
enum plot_kind { PLOT_QUERIES, PLOT_RECEIVED, PLOT_OFFSETS };
qkv_status look_plot(const struct look *look, const char *path, qkv_error *error);

/* A page for a browser (page.c); with maps, and a line about what it holds. */
qkv_status look_page(const struct look *look, const char *path, qkv_error *error);
qkv_status look_page_write(const struct look *look, qkv_page *page, qkv_page_head *heads,
                           const char *path, qkv_error *error);

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
/* Where queries and keys hide one another: rules, dropped keys and the badge of a page. */
void look_page_rules(const struct look *look, qkv_page *page, char modified[WHAT_IF_WORDS + 60]);

enum { LOOK_PAGE_BYTES = 32000000 }; /* of a page with several heads */
/* One line about what a page holds, of n_heads that were asked for. */
void look_page_tell(const qkv_page_result *result, int64_t n_heads);

/* Maps of the first head of a page and, where that is quick, of all (maps.c). */
struct look_maps {
    double *places; /* of each head: map and pca, [n_queries + n_keys][2] each */
    char *notes;
};
struct look_maps_job {
    qkv_ctx *ctx;
    int64_t n_queries, n_keys, head_dim;
    const struct look_options *options; /* --map, --quiet */
};
qkv_status look_maps_make(const struct look_maps_job *job, qkv_page_head *heads, int64_t n_heads,
                          struct look_maps *maps, qkv_error *error);
void look_maps_free(struct look_maps *maps);

/* [n, n] of one head, else [layers, heads, n, n], or of arrays [heads, n, n]; NaN: not seen (table.c). */
qkv_status look_npy(const struct look *look, const char *path, qkv_error *error);
/*
 * The named head: a row for each query, with tokens as the first row and column. All heads: a row
 * for each weight, layer,head,query,key,weight (table.c).
 */
qkv_status look_csv(const struct look *look, const char *path, qkv_error *error);

enum { WEIGHTS_LIMIT = 1 << 28, CSV_LIMIT = 1 << 24 };

#endif
