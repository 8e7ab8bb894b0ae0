/*
 * What `look` shows: heads, the names of their queries and keys, and captions. A source (cli/look:
 * a text, windows of a text, two models, arrays) makes a struct seen, which then is only read.
 * Sinks (sinks.h) show it, and know no source: whatever differs between sources is a field here.
 */
#ifndef QKV_CLI_SINKS_SEEN_H
#define QKV_CLI_SINKS_SEEN_H

#include "common/heads_list.h"
#include "common/pair.h"
#include "common/pictured.h"
#include "common/ranks.h"
#include "common/term.h"
#include <qkv/inspect.h>

struct page;

/* Ranks may share the work of arrays; only the first one writes files and prints. */
static inline bool is_first_rank(void) { return ranks_rank() == 0; }

/* ---- Options of sinks ------------------------------------------------------------------------ */

enum plot_kind { PLOT_QUERIES, PLOT_RECEIVED, PLOT_OFFSETS };

struct sink_options {
    struct arg_int pool; /* qkv_tile_kind */
    struct arg_int plot; /* enum plot_kind */
    struct arg_int map;  /* 0: cosine, 1: inner */
    struct picture_options picture;
    qkv_text **page; /* where a page goes instead of into a file; NULL: into a file */
    bool no_maps;    /* for now: notes in their place */
};

/* ---- What is seen ---------------------------------------------------------------------------- */

/* The queries, rows of a map, or the keys, its columns. The source owns what pointers point to. */
struct seen_side {
    int64_t n;
    char *const *names;           /* [n], escaped */
    int tokens_a_name;            /* 2 if a name is "read -> predicts", else 1 */
    const qkv_token_list *tokens; /* what a CSV has instead of names; NULL: it has names */
    bool numbered;                /* a chart has numbers instead of names */
    const char *sign;             /* before the number of a tile, "q" */
    const char *axis, *note; /* of a picture: title of the axis, or NULL; for its caption, "" */
};

/*
 * What a terminal shows of all heads: nothing, thumbnails, or a line of numbers for each head.
 * OVERVIEW_WORDS: no head at all, not even the shown one, only what seen->print prints.
 */
enum overview { OVERVIEW_NONE, OVERVIEW_GRID, OVERVIEW_NUMBERS, OVERVIEW_WORDS };

/* What cells are, if not weights. The source owns what pointers point to. */
struct seen_quantity {
    const char *name;     /* in an object, and of files: "norms" */
    const char *one;      /* a column of a CSV: "norm" */
    const char *title;    /* of a picture's scale */
    const char *verb;     /* in place of "looks at" */
    const char *cell;     /* what a cell is, for the caption of a picture */
    const float *factors; /* [n_heads][n_keys] on weights; their largest product is no 1. NULL */
    const float *map;     /* [n_queries][n_keys] in place of heads, with QKV_CELL_HIDDEN; NULL */
};

struct seen {
    const struct cli_common *common;
    const struct sink_options *sink;
    qkv_ctx *ctx;
    qkv_heads *heads;
    const qkv_heads_info *info;
    struct seen_side queries, keys;

    /* Heads */
    int64_t n_heads;
    struct head_name *names; /* [n_heads] */
    const char **labels;     /* [n_heads], "" for none */
    qkv_heads_choice choice; /* the shown head: its layer, number, and a query of it */
    int64_t head;            /* its index in names and labels */
    bool by_name;            /* the user named it */
    const char *rule;        /* the rule that chose it; NULL: none did */
    bool in_layers;          /* files have [layers][heads]; else heads are one list */
    bool own_windows;        /* each head may have a window of its own */
    int64_t first, n_file;   /* files have the n_file heads from index `first` on */
    bool one;                /* files have one head, without a dimension for heads */
    /*
     * Indices [n_order] of the heads of a page, in this order. NULL: the shown head and those with
     * the sharpest queries.
     */
    int64_t *order;
    int64_t n_order;

    /* Cells of maps: each is a weight, or a tile of weights where a side is too long for a sink */
    bool pools;         /* such maps may be pooled */
    int64_t side;       /* most tiles a side on the terminal; 0: as many as there are weights */
    bool has_weights;   /* JSON has the weights of the shown head */
    bool is_mean;       /* weights are means over windows of a text */
    const char *advice; /* added to the refusal of a table that is too large; NULL */
    const struct seen_quantity *quantity; /* what cells are; NULL: weights */

    /* Words. said: as in text_job. target: of an encoder-decoder, else NULL. */
    enum overview overview;
    bool own_object;         /* a JSON object has no heads, only what add_json adds */
    char name[HEAD_NAME];    /* of the shown head: "Cross-attention, layer 0, head 1" */
    char all[160];           /* of all heads in a picture: "4 layers of 4 heads" */
    const char *of_heads;    /* follows "All heads" */
    struct caption about[2]; /* where heads come from: of all heads, and of the shown one */
    struct caption legend;   /* what a cell on the terminal is */
    const struct text *said[2];
    const char *target;
    char content[64]; /* what the name of a file says it has, if not heads; "" */

    /*
     * Functions of the source; NULL: nothing. print: prints above the heads on a terminal.
     * add_json: adds members to an object, called before heads are added, and after (`behind`).
     * make_page: adds texts and heads (page.h). draw: draws a picture instead of heads.
     */
    void (*print)(const struct seen *seen, struct term *term);
    void (*add_json)(const struct seen *seen, bool behind, json_t *object);
    qkv_status (*make_page)(const struct seen *seen, struct page *page, qkv_error *error);
    qkv_status (*draw)(const struct seen *seen, const char *path, qkv_error *error);
};

/*
 * Sets heads, info, n_heads, names and labels from heads that were measured. seen_free, which is
 * called after a failure, too, frees the lists but not the heads.
 */
qkv_status seen_heads(struct seen *seen, qkv_heads *heads, qkv_error *error);
void seen_free(struct seen *seen);

static inline const double *seen_numbers(const struct seen *seen, int64_t index) {
    return qkv_heads_numbers(seen->heads, index);
}
/* Appends a title such as "Layer 3, head 0: door looks at it, 0.97". */
void seen_title(const struct seen *seen, struct caption *title);
/* "looks at", or what is true of other cells than weights. */
static inline const char *seen_verb(const struct seen *seen) {
    return seen->quantity ? seen->quantity->verb : "looks at";
}
/* Appends what a cell is: " Pooled: …", or " A cell is the weight …" if tile is 1. */
void seen_cell(const struct seen *seen, int64_t tile, struct caption *caption);

/* ---- Cells ----------------------------------------------------------------------------------- */

/* The least tile with which no side has more than `most` cells; 1 if cells are not pooled. */
struct tiles {
    int64_t tile, rows, cols;
};
struct tiles tiles_of(const struct seen *seen, int64_t most);
/* The cells of a head, [rows][cols]; QKV_CELL_HIDDEN where no query sees a key. */
qkv_status seen_cells(const struct seen *seen, int64_t index, const struct tiles *tiles,
                      float *cells, qkv_error *error);
/* The cells of the shown head in new memory; NULL: *error says why. */
float *head_cells(const struct seen *seen, int64_t most, struct tiles *tiles, qkv_error *error);

/* The largest weight of a head, and where it is. */
qkv_status seen_largest(const struct seen *seen, int64_t index, qkv_sharpest *found,
                        qkv_error *error);

enum { WEIGHTS_LIMIT = 1 << 28, CSV_LIMIT = 1 << 24 };
/* The longest sides of a map, and of a thumbnail beside others, before they are pooled. */
enum { MAP_SIDE = 1024, THUMBNAIL_SIDE = 128 };
/*
 * The cells of the heads that files have, [n_file][rows][cols]. More than `limit` cells are an
 * error, whose message ends with advice (NULL: that for pictures). The caller frees *cells, after a
 * failure too.
 */
qkv_status file_cells(const struct seen *seen, int64_t most, int64_t limit, const char *advice,
                      struct tiles *tiles, float **cells, qkv_error *error);

#endif
