/*
 * What is seen of heads: of a text, of windows of one, of arrays. A source, which is another
 * room, makes it, and from then on it is only read. Sinks (sinks.h) show it, and know no source:
 * what differs between sources is here, as a number, a name or a sentence.
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

/* Of ranks that share the work of arrays the first one alone writes, and speaks. */
static inline bool is_first_rank(void) { return ranks_rank() == 0; }

/* ---- Options of sinks ------------------------------------------------------------------------ */

enum plot_kind { PLOT_QUERIES, PLOT_RECEIVED, PLOT_OFFSETS };

struct sink_options {
    struct arg_int pool; /* qkv_tile_kind */
    struct arg_int plot; /* enum plot_kind */
    struct arg_int map;  /* 0: cosine, 1: inner */
    struct picture_options picture;
    qkv_text **page; /* receives a page in place of a file; NULL: a file it is */
};

/* ---- What is seen ---------------------------------------------------------------------------- */

/* Queries, which are the rows of a map, or keys, its columns. Pointers are the source's. */
struct seen_side {
    int64_t n;
    char *const *names;           /* [n], escaped */
    int tokens_a_name;            /* 1; 2: "read -> predicts" */
    const qkv_token_list *tokens; /* what a CSV has in place of names; NULL: names it is */
    bool numbered;                /* a chart has numbers in place of names */
    const char *sign;             /* before the number of a tile, "q" */
    const char *axis, *note;      /* of a picture: beside it, NULL; and in its caption, "" */
};

/*
 * What a terminal shows of all heads: thumbnails, or a line of numbers for each; OVERVIEW_WORDS:
 * neither them nor the shown one, but the words of the source alone.
 */
enum overview { OVERVIEW_NONE, OVERVIEW_GRID, OVERVIEW_NUMBERS, OVERVIEW_WORDS };

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
    bool by_name;            /* the shown one was named */
    qkv_heads_choice choice; /* the shown head and a query of it … */
    int64_t head;            /* … its index … */
    const char *rule;        /* … and by what it was chosen; NULL: named, or without a rule */
    bool in_layers;          /* heads are in layers, which files tell; else in one list */
    bool own_windows;        /* a head may have a window of its own */
    int64_t first, n_file;   /* heads that files have … */
    bool one;                /* … which is one alone, without a number */
    int64_t *order;          /* [n_order], that a page has in this order; NULL: the shown one … */
    int64_t n_order;         /* … and those with the sharpest queries */

    /* Cells: each weight is one, or pooled in tiles where a side is too long for a sink */
    bool pools;
    int64_t side;       /* most tiles a side on the terminal; 0: as many as there are weights */
    bool has_weights;   /* JSON has those of the shown head */
    bool is_mean;       /* over windows of a text */
    const char *advice; /* what else has every weight, if a table would be too large; NULL */

    /* Words. said: as in text_job. target: of an encoder-decoder, else NULL. */
    enum overview overview;
    bool own_object;         /* an object has nothing of heads but what add_json makes */
    char name[HEAD_NAME];    /* of the shown head: "Cross-attention, layer 0, head 1" */
    char all[160];           /* of all heads in a picture: "4 layers of 4 heads" */
    const char *of_heads;    /* behind "All heads" */
    struct caption about[2]; /* where heads are from: all of them, and the shown one */
    struct caption legend;   /* what a cell of the terminal is */
    const struct text *said[2];
    const char *target;
    char content[64]; /* for the name of a file, where heads are not what it has; "" */

    /*
     * What only the source has words for; NULL: nothing. print: what a terminal shows above the
     * heads. add_json: what an object has beside heads and weights, before and behind heads.
     * make_page: texts and heads (page.h). draw: a picture of what is there in place of heads.
     */
    void (*print)(const struct seen *seen, struct term *term);
    void (*add_json)(const struct seen *seen, bool behind, json_t *object);
    qkv_status (*make_page)(const struct seen *seen, struct page *page, qkv_error *error);
    qkv_status (*draw)(const struct seen *seen, const char *path, qkv_error *error);
};

/*
 * Takes heads that were measured: info, n_heads, names as layer and head, labels. seen_free frees
 * the lists, and not the heads; it is for after a failure, too.
 */
qkv_status seen_heads(struct seen *seen, qkv_heads *heads, qkv_error *error);
void seen_free(struct seen *seen);

static inline const double *seen_numbers(const struct seen *seen, int64_t index) {
    return qkv_heads_numbers(seen->heads, index);
}
/* Appends "Layer 3, head 0: door looks at it, 0.97"; " Pooled: …" or " A cell is the weight …". */
void seen_title(const struct seen *seen, struct caption *title);
void seen_cell(const struct seen *seen, int64_t tile, struct caption *caption);

/* ---- Cells ----------------------------------------------------------------------------------- */

/* Tiles so that no side has more than `most` cells, if cells are pooled; else tile is 1. */
struct tiles {
    int64_t tile, rows, cols;
};
struct tiles tiles_of(const struct seen *seen, int64_t most);
/* The cells of a head, [rows][cols]; QKV_CELL_HIDDEN where no query sees a key. */
qkv_status seen_cells(const struct seen *seen, int64_t index, const struct tiles *tiles,
                      float *cells, qkv_error *error);
/* Those of the shown head, to be freed; NULL: none, and *error says why. */
float *head_cells(const struct seen *seen, int64_t most, struct tiles *tiles, qkv_error *error);

/* The largest weight of one head alone. */
qkv_status seen_largest(const struct seen *seen, int64_t index, qkv_sharpest *found,
                        qkv_error *error);

enum { WEIGHTS_LIMIT = 1 << 28, CSV_LIMIT = 1 << 24 };
/* Sides above which a map is pooled, and a small one beside others. */
enum { MAP_SIDE = 1024, THUMBNAIL_SIDE = 128 };
/*
 * The cells of heads of files, [n_file][rows][cols], at most `limit`; *cells is to be freed after a
 * failure, too. advice: what a message ends with; NULL: a picture's.
 */
qkv_status file_cells(const struct seen *seen, int64_t most, int64_t limit, const char *advice,
                      struct tiles *tiles, float **cells, qkv_error *error);

#endif
