/**
 * A page for a browser: heads of one text in one .html file, which needs no network.
 *
 * Text: titles, captions and tokens are any bytes. What cannot be shown is escaped: broken UTF-8,
 *     control, invisible and direction-changing characters. NULL is no text.
 * File: it is written beside `path` and renamed. So `path` has a whole page, or what it had before.
 * Determinism: the same input gives the same bytes, in any locale and environment.
 *
 * docs/page.md has the format of the file.
 *
 * Experimental: see docs/api.md, Stability.
 */
#ifndef QKV_PAGE_H
#define QKV_PAGE_H

#include "qkv/heads.h"
#include "qkv/inspect.h"
#include "qkv/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/** One head of a page. */
typedef struct qkv_page_head {
    /* From 0. */
    int64_t layer, head;
    /* [n_queries][head_dim], [n][head_dim] and [n_queries], as in qkv_capture. */
    const float *q, *k, *lse;
    /* NULL, or those of qkv_heads_numbers. */
    const double *numbers;
    /* NULL, or the label of the head. */
    const char *label;
    /* NULL in both, or [n_queries + n][2]: places of queries, then of keys. They must be finite. */
    const double *map, *pca;
    /* How the map was made and what it is worth, or why there is none. */
    const char *map_note;
    /* Which of the page's texts, from 0. */
    int64_t text;

    /* For long texts, where the page looks at some queries only. Each pointer may be NULL. */

    /* [n]: of each key, the sum of its weights over all queries. */
    const float *received;
    /* [n_queries]: of each query, the sum of p |i + q_offset - j| over the keys. */
    const float *distance;
    /* [ceil(n_queries / tile)][side]: the largest weight of each tile. */
    const float *peaks;
    /* Of peaks: ceil(n / tile), 1 to 1024. */
    int64_t side;
    /* Queries and keys of a tile. 0: ceil(n / side). */
    int64_t tile;

    /* How a score is made, beside what the page says for all heads. */

    /* Adds alibi (j - i - q_offset) to a score. 0: none. */
    double alibi;
    /*
     * NULL, or [distance_before + 1 + distance_after]: adds element distance_before + n to a score,
     * n = j - i - q_offset, or the first or last element beyond them. Both are 0 to 2^20.
     */
    const float *distance_bias;
    int64_t distance_before, distance_after;
    /* NULL, or [1]: a score without a key. It is part of lse only. */
    const float *sink;
    /*
     * NULL, or [n_queries][ceil(n / 8)]: query i may see key j if bit j % 8 of byte j / 8 of its
     * row is 1.
     */
    const uint8_t *mask;
    /* The scale of this head's scores. 0: that of the page. */
    float scale;
    /*
     * 1: -window_left <= j - (i + q_offset) <= window_right, as in qkv_attention_desc, beside the
     * rules of the page. 0: neither is read.
     */
    int has_window;
    int64_t window_left, window_right;

    /* With effect_of of the page. */

    /* By how much the prediction changes without this head, in nats. NaN: not known. */
    double effect;
} qkv_page_head;

/**
 * An image whose patches are tokens. The page has a view that lays weights over it. Token `first` +
 * columns r + c is the patch of row r and column c, and the last patch is the last token.
 */
typedef struct qkv_page_image {
    /* [height][width][3], what the model saw, rows from the top; each side 1 to 4096. */
    const uint8_t *pixels;
    int64_t width, height;
    /* Patches, at most one for each pixel of a side; and tokens before the first one. */
    int64_t rows, columns, first;
} qkv_page_image;

/**
 * One of several texts. Arrays are those of qkv_page, and may be NULL where they may be NULL there.
 */
typedef struct qkv_page_text {
    /* The name by which a reader chooses it. */
    const char *name;
    /* [n] each, as in qkv_page. */
    const char *const *tokens;
    const uint8_t *special, *segments;
    const int32_t *words;
    /* Given for all texts of a page, or NULL for all. */
    const qkv_page_image *image;
} qkv_page_text;

/**
 * A table of numbers about the text, beside its heads: a view of its own shows it with its caption.
 * Texts may be NULL, and arrays of texts may have NULL.
 */
typedef struct qkv_page_table {
    /* What it is called; and what its rows, columns and numbers are. */
    const char *name, *caption;
    /* 1 to 2^16 each, and 2^18 cells at most. */
    int64_t n_rows, n_cols;
    /* [n_rows] and [n_cols]; and what rows and columns are, above the names of rows. */
    const char *const *row_names, *const *col_names;
    const char *corner;
    /* NULL: cells show their values. Otherwise [n_rows][n_cols]: what each cell says. */
    const char *const *cells;
    /*
     * NULL: no colours, if there are `cells`. Otherwise [n_rows][n_cols], NaN: not known; the name
     * of such a number, such as "p"; and the value with the last colour, above 0. The first colour
     * is that of 0, or, if is_signed, of -high.
     */
    const double *values;
    const char *value_name;
    double high;
    int is_signed;
    /* NULL, or [n_cols]: the query that a column is about, which its cells select; -1: none. */
    const int64_t *queries;
    /*
     * NULL, or [n_rows][n_cols]: the head of the page that a cell opens; -1: none. With `others`
     * it is compared with that one.
     */
    const int64_t *heads, *others;
} qkv_page_table;

/**
 * The page holds q, k and lse of heads. Its script computes any weight from them, and shows it:
 *
 *     s_ij = softcap(scale q_i . k_j) + alibi (j - i - q_offset) + distance_bias
 *            with softcap(x) = c tanh(x / c)
 *     p_ij = exp(s_ij - lse_i)    for the keys that query i may see, which are those that `rules`
 *            let it see, not dropped, and with a bit in the head's mask; all others have 0
 *
 * Shapes: n tokens, each a query and a key. With `queries` there are n keys, and n_queries other
 *     tokens are the queries. head_dim is the same for all heads.
 * Size: a head takes about 5/4 (8 or 4) n head_dim bytes, as f32 or f16. A map adds 22 n, a mask
 *     n n_queries / 6, an image 15/4 width height, and the page itself 0.2 MB and its tables. No
 *     number is stored for each weight.
 * Accuracy: q and k are written as f32 up to 64 tokens, and where f16 would change a weight by more
 *     than 1e-3. Otherwise they are f16. The change is measured over all rows up to 2,048 x 2,048
 *     weights, and over 512 rows above.
 * Limit: heads are taken in the order given until the file would exceed limit_bytes. The first head
 *     is always in the file, and is shown first.
 * Special values: a row with lse = -INFINITY sees no key, and its weights are 0. NaN stays NaN and
 *     is drawn as NaN.
 * Unsupported: additive masks other than ALiBi and a bias by distance. Segments and block masks
 *     must be given as bits of a mask.
 * Time: 2 n x n x head_dim multiplications a head, 1,024 x n x head_dim above 2,048 tokens.
 * Memory: the file, up to twice while it grows, and 8 n head_dim bytes for each thread.
 */
typedef struct qkv_page {
    size_t struct_size;
    /* 1 to 2^20 and 1 to 2^12. */
    int64_t n, head_dim;
    float scale;
    /* 0: none. */
    double softcap;
    /*
     * NULL: every query sees all keys. Otherwise the rules of qkv_attention_rule, except segments.
     * Other flags are refused, and other fields are not read: the sizes are those of the page, and
     * lists have the entry of one batch. The offset is the place of query 0 among the keys, for
     * masks, ALiBi and distances, too.
     */
    const qkv_attention_desc *rules;
    /*
     * 1: `queries` have no places among the keys, as in cross-attention, and the page shows no
     * distances. It needs `queries`, and no rule may be set.
     */
    int two_texts;
    /* The query that is selected first. -1: the first that is not special and sees several keys. */
    int64_t query;

    /* The text. */

    /* [n] */
    const char *const *tokens;
    /* NULL, or [n]: 1 for special tokens. */
    const uint8_t *special;
    /* NULL, or [n]: 0 and 1 for the texts of a pair. */
    const uint8_t *segments;
    /* NULL, or [n]: the tokens of a word have the same number. */
    const int32_t *words;
    /* NULL, or [n]: 1 for tokens that no query sees as a key. */
    const uint8_t *dropped;
    /* NULL, or the image that the tokens are of; not read where there are `texts`. */
    const qkv_page_image *image;

    /* Heads. */

    /* 1 to 2^16. */
    int64_t n_heads;
    const qkv_page_head *heads;
    /* sizeof(qkv_page_head). */
    size_t head_bytes;
    /* 0: no limit. */
    int64_t limit_bytes;
    /*
     * NULL: one thread. Otherwise the threads of this context measure heads. The file has the same
     * bytes.
     */
    qkv_ctx *ctx;

    /* Words around them. */

    /* What was run, on which model. */
    const char *title, *caption;
    /* NULL, or the text of a badge, where this is not what a model computed. */
    const char *modified;
    /* NULL, or what the text's writer may like to know about how it was read. */
    const char *hint;
    /*
     * NULL: the command qkv, and the page names what of it adds to a page. Otherwise the call of
     * another program that made the page, such as "`qkv.heads(q, k).page()`", which it names.
     */
    const char *made_by;

    /* Several texts, of which a reader chooses one. */

    /*
     * 0 to 2^16: the number of texts, of n tokens each, of which a reader chooses one. 0: there is
     * one text, that of tokens, special, segments and words.
     */
    int64_t n_texts;
    /* [n_texts]: in place of tokens, special, segments and words. */
    const qkv_page_text *texts;
    /* sizeof(qkv_page_text), if there are texts or queries. */
    size_t text_bytes;

    /* Cross-attention: the fields above are then those of the keys. */

    /* 0: n. */
    int64_t n_queries;
    /* NULL: the queries are the keys. Otherwise [1]: the n_queries tokens of the queries. */
    const qkv_page_text *queries;

    /* What heads are worth for a prediction (qkv/effects.h). */

    /* NULL: not known. Otherwise what was measured, such as "ln P(door) at token 5". */
    const char *effect_of;
    /* NULL, or the one word that it is about. */
    const char *effect_word;
    /* Where that is predicted, a query; -1: at several places. */
    int64_t effect_query;
    /* What was measured, of the whole model: at most 0, or NaN. */
    double effect_log_p;

    /* Tables beside the heads. */

    /* 0 to 64 tables, such as of qkv/effects.h, and sizeof(qkv_page_table). */
    int64_t n_tables;
    const qkv_page_table *tables;
    size_t table_bytes;
} qkv_page;

/** Made by qkv_page_result_init(). */
typedef struct qkv_page_result {
    size_t struct_size;
    /* Bytes of the file, heads in it, and those of them whose q and k are f16. */
    int64_t n_bytes, n_heads, n_f16;
    /* The largest change of a weight by f16. */
    double max_error;
} qkv_page_result;

QKV_DEFINE_INIT(qkv_page_result)

/**
 * Writes the page to `path`, which must end in .html.
 *
 * @param result  NULL, or receives what was written, after a success only.
 * @return QKV_OK; QKV_ERR_ARGUMENT for a NULL that is not allowed, another ending, a struct_size
 *         that is too small, or a rule that is not right; QKV_ERR_VERSION; QKV_ERR_SHAPE;
 *         QKV_ERR_UNSUPPORTED for `queries` together with texts, and for flags that are no rules of
 *         a page; QKV_ERR_IO; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_page_write(const qkv_page *page, const char *path,
                                                qkv_page_result *result, qkv_error *error);

/**
 * Makes the same bytes in memory, such as for a server. The memory is that of the whole page.
 *
 * @param html  receives the page, to be freed with qkv_text_free; NULL after a failure.
 * @return As qkv_page_write, but for what concerns a path.
 */
QKV_API QKV_NODISCARD qkv_status qkv_page_make(const qkv_page *page, qkv_text **html,
                                               qkv_page_result *result, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
