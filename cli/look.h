/* Everything that `qkv look` knows about one text, and the ways to show it. */
#ifndef QKV_CLI_LOOK_H
#define QKV_CLI_LOOK_H

#include "choose.h"
#include "heads_list.h"
#include "pair.h"
#include "predict.h"
#include "term.h"
#include <qkv/inspect.h>
#include <qkv/view.h>

struct look_options {
    struct cli_common common;
    const char *pair, *out, *heads, *file, *slide;
    struct pair_options which;
    bool align; /* of --cross (look_align.c) */
    struct arg_int top;
    struct arg_texts what_if;
    /* --q, --k: arrays in place of a text (look_arrays.c) */
    const char *q, *k, *tokens, *q_tokens, *causal, *window;
    struct arg_real scale;
    struct arg_int pool;
    struct arg_int plot; /* enum plot_kind */
    struct arg_int map;  /* 0: cosine, 1: inner */
};

struct look {
    const struct session *session;
    const struct look_options *options;
    const qkv_encoding *input; /* the text; of a pair its source */
    struct attention_view view;
    int64_t n_rows, n_cols; /* of its maps */
    char **rows, **cols;    /* names of its queries and keys; of labels or of the pair, below */
    bool causal;            /* a query sees keys up to its own place only */
    struct pair pair;
    struct look_alignment *alignment; /* of --align; NULL */
    double *log_p; /* [n_rows - 1] or, of a pair, [n_rows]: of the tokens that come next; NULL */
    qkv_run *run;
    struct predictions predictions;
    double *replaced;             /* [n], of a model that judges tokens; NULL */
    struct what_if what_if;       /* of this text */
    struct predictions before;    /* where something is asked: those of the model as it is */
    qkv_head_stats *stats;        /* [n_layers * n_heads] of the view */
    char **labels;                /* tokens of input, escaped */
    struct slide *slide;          /* of --slide: the rest is then means over windows … */
    float *mean;                  /* … such as weights, [n_layers][n_heads][n][n] */
    bool given;                   /* a head was named */
    const struct head_name *list; /* of --heads, the first of which is the one above */
    int n_list;
    struct choice choice;
};

/* Runs the model; and frees what that made, also after a failure (look_make.c). */
qkv_status look_make(struct look *look, const struct what_if *parsed, qkv_error *error);
void look_free(struct look *look);
/* The weights of a head, [n_rows][n_cols]; means with --slide. A key that is not seen has 0 … */
qkv_status look_head_weights(const struct look *look, int64_t layer, int64_t head, float *weights,
                             qkv_error *error);
/* … and is not shown: this says which, and this writes MAP_HIDDEN (draw.h) in their places. */
bool look_sees(const struct look *look, int64_t row, int64_t col);
void look_hide(const struct look *look, float *weights);
static inline int64_t look_n_heads(const struct look *look) {
    return look->view.n_layers * look->view.n_heads;
}
/* "Cross-attention, layer 0, head 1" of the choice; and in captions "the decoder's …, ", or nothing. */
void look_head_name(const struct look *look, char name[HEAD_NAME]);
static inline const char *look_attention(const struct look *look) {
    return attention_words(look->session, look->view.which);
}
/* e^(-mean of log_p), and how many tokens that is over; 0: none. */
double look_perplexity(const struct look *look, int64_t *n);

/* ---- Pairs: --cross, --decoder (pair.h), --align (look_align.c) ----------------------------------- */

/* What looks at the decoder of a pair, --cross or another; NULL for none. */
const char *look_pair_option(const struct look_options *options);
qkv_attention_of look_which(const struct look_options *options);

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

/* ---- --slide: windows of a text of any length (slide.c) ------------------------------------------ */

struct slide_rule {
    int64_t n, stride; /* tokens, besides those that the model adds */
};

/* What one window showed. */
struct slide_window {
    int64_t first; /* its first token, of those of the text */
    struct choice choice;
    char *query, *key; /* labels of the choice; NULL: there is none */
    char *begins;      /* its first words */
    /* For a page, as long as it has room: */
    qkv_run *run;
    qkv_head_stats *stats;
    qkv_encoding *encoding;
};

struct slide {
    struct slide_rule rule;
    int64_t n_tokens;      /* of the text */
    int64_t n_windows;     /* that were looked at: all, or those before Ctrl-C */
    int64_t n_all, n_kept; /* there are; whose runs are kept for a page, at most */
    struct slide_window *windows;
    qkv_encoding *encoding; /* of the first window: places of the means */
};

/* Special tokens that nobody wrote, at the beginning and at the end of a text (slide_window.c). */
struct frame {
    int64_t before, after;
};
struct frame slide_frame_of(const qkv_encoding *text);
/* All of it in one block, for free(). NULL: no memory. */
qkv_encoding *slide_encoding_make(int64_t n);
/* The frame, and between it the tokens from `first` on. */
void slide_encoding_fill(qkv_encoding *window, const qkv_encoding *text, struct frame frame,
                         int64_t first);

/* An exit code. */
int slide_parse(const struct cli_command *command, const struct look_options *options,
                struct slide_rule *rule);
/* Looks at each window of look->input; look is then about their means, and owns all of it. */
qkv_status slide_make(struct look *look, const struct what_if *parsed,
                      const struct slide_rule *rule, qkv_error *error);
void slide_free(struct slide *slide); /* NULL is allowed */
/* "means over 12 windows of 60 tokens, …" and the list of windows (slide_show.c). */
void slide_words(const struct slide *slide, char *text, size_t bytes);
void slide_print(const struct look *look, struct term *term);
void slide_json(const struct look *look, json_t *object);
/* A page of the windows, from which a reader chooses (slide_page.c). */
qkv_status slide_page(const struct look *look, const char *path, qkv_error *error);
/* How many windows a page may have. */
int64_t slide_page_room(const struct look *look, int64_t n);

/* ---- Options (look_options.c); exit codes, having said what is wrong ------------------------------ */

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

/* On the terminal: predictions, grid of heads, heat map of the chosen head (look_text.c). */
qkv_status look_print(const struct look *look, qkv_error *error);
/* As an object (look_json.c). */
qkv_status look_json(const struct look *look, json_t **json, qkv_error *error);

/* Arrays of any model, without the model. An exit code (look_arrays.c). */
int look_arrays(const struct cli_command *command, const struct look_options *options);

/* ---- Files: of the named head, else of all heads --------------------------------------------- */

/* A picture, by the path's ending: .png, .svg or .pdf (look_picture.c). */
qkv_status look_picture(const struct look *look, const char *path, qkv_error *error);
qkv_theme look_theme(const struct look_options *options);
/* What a caption of a question, or of windows, begins with. */
enum { LOOK_CAPTION = 700 + WHAT_IF_WORDS };
void look_begin_caption(const struct look *look, char caption[LOOK_CAPTION]);

/* --plot: a chart of one head, the named one or that which was chosen; .csv, too (look_plot.c). */
enum plot_kind { PLOT_QUERIES, PLOT_RECEIVED, PLOT_OFFSETS };
qkv_status look_plot(const struct look *look, const char *path, qkv_error *error);
/* What a title says after the name of the head; writes the chart. */
const char *plot_title(enum plot_kind plot);
qkv_status plot_write(enum plot_kind plot, const qkv_head_profile *profile, const char *path,
                      qkv_error *error);

/* A page for a browser (look_page.c). */
qkv_status look_page(const struct look *look, const char *path, qkv_error *error);

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
/* Where queries and keys hide one another: flags, dropped keys and the badge of a page. */
void look_page_rules(const struct look *look, qkv_page *page, char modified[WHAT_IF_WORDS + 60]);

enum { LOOK_PAGE_BYTES = 32000000 }; /* of a page with several heads */
/* One line about what a page holds, of n_heads that were asked for. */
void look_page_tell(const qkv_page_result *result, int64_t n_heads);

/* Maps of the first head of a page and, where that is quick, of all (look_maps.c). */
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

/* [n, n] of the named head, else [layers, heads, n, n]; NaN for keys that are not seen (look_table.c). */
qkv_status look_npy(const struct look *look, const char *path, qkv_error *error);
/*
 * The named head: a row for each query, with tokens as the first row and column. All heads: a row
 * for each weight, layer,head,query,key,weight (look_table.c).
 */
qkv_status look_csv(const struct look *look, const char *path, qkv_error *error);

enum { WEIGHTS_LIMIT = 1 << 28, CSV_LIMIT = 1 << 24 };

/*
 * The weights that a file holds in a new array, at most `limit` of them; otherwise, says what else
 * to do, and `advice`.
 */
qkv_status look_weights(const struct look *look, int64_t limit, const char *advice, float **weights,
                        qkv_error *error);

#endif
