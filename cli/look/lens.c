/*
 * The logit lens as tables of a page: the most likely word of each layer at each token, and for
 * each word that the model predicts its probability after each layer.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/lens.h"
#include "look/text.h"
#include "sinks/page.h"

/*
 * Multiplications of the head that predicts words, for which all tokens are read: some seconds.
 * Above it only the tokens are read that a word is predicted at.
 */
static const double most_work = 1e11;
enum { MOST_PLACES = 8 }; /* that have a table of their own */

struct lens {
    const struct text_seen *t;
    qkv_word_head head;
    bool is_next;
    int64_t n_layers, n; /* with the embeddings; places */
    int64_t *positions;  /* [n] */
    qkv_lens *rows;      /* [n][n_layers] */
};

static bool reads_all(const struct text_seen *t, int64_t n_layers) {
    const qkv_model_info *const info = t->text.session->info;
    const double words = (double)qkv_tokenizer_size(t->text.session->tokenizer),
                 places = (double)(t->text.input->n * n_layers);
    return words * (double)info->hidden * places <= most_work;
}

/* The place of a word that the model says; -1: none is asked for there. */
static int64_t predicted(const struct text_seen *t, int64_t position) {
    const struct predictions *const made = &t->predictions;
    for (int64_t m = 0; m < made->n_masks; m++)
        if (made->positions[m] == position) return m;
    return -1;
}

static qkv_status read_all(struct lens *lens, struct page *page, qkv_error *error) {
    const struct text_seen *const t = lens->t;
    const bool all = reads_all(t, lens->n_layers);
    lens->n = all ? t->text.input->n : t->predictions.n_masks;
    lens->positions = page_room(page, lens->n, sizeof *lens->positions);
    lens->rows = page_room(page, lens->n * lens->n_layers, sizeof *lens->rows);
    qkv_status status = lens->positions && lens->rows ? QKV_OK : text_no_memory(error);
    for (int64_t i = 0; i < lens->n && status == QKV_OK; i++) {
        lens->positions[i] = all ? i : t->predictions.positions[i];
        const int64_t m = predicted(t, lens->positions[i]);
        const int32_t word = m < 0 ? -1 : t->predictions.candidates[m * t->predictions.top].id;
        status = cli_cancelled
                     ? text_error(error, QKV_ERR_CANCELLED, "nothing was written")
                     : lens_read(t->text.session, t->text.run, lens->head, lens->positions[i], word,
                                 &lens->rows[i * lens->n_layers], error);
    }
    return status;
}

static const char note[] =
    "Each layer's hidden state is read as if it were the last one (the logit lens). Layer 0 is the "
    "embeddings. Layers were not trained to be read so: early ones may say little.";

/* Layers down, tokens across. */
static qkv_status add_all(const struct lens *lens, struct page *page, qkv_error *error) {
    const qkv_tokenizer *const tokenizer = lens->t->text.session->tokenizer;
    struct page_table *const table = page_table(
        page, lens->n_layers, lens->n, TABLE_CELLS | TABLE_VALUES | TABLE_QUERIES, NULL, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "What each layer would predict");
    caption_add(
        &table->caption, "A cell is the likeliest word %s, and its colour p, from 0 to 1. %s",
        lens->is_next ? "after the column's token" : "in place of the column's token", note);
    table->put.corner = "layer";
    table->put.value_name = "p";
    table->put.high = 1;
    for (int64_t i = 0; i < lens->n; i++) {
        table->cols[i] = page_cell("%s", page->desc.tokens[lens->positions[i]]);
        table->queries[i] = lens->positions[i];
    }
    for (int64_t layer = 0; layer < lens->n_layers; layer++) {
        table->rows[layer] = page_cell("%" PRId64, layer);
        for (int64_t i = 0; i < lens->n; i++) {
            const qkv_lens *const row = &lens->rows[i * lens->n_layers + layer];
            table->cells[layer * lens->n + i] = token_shown(tokenizer, row->best);
            table->values[layer * lens->n + i] = exp(row->best_log_p);
        }
    }
    return QKV_OK;
}

/* One word, as `fill --lens` prints it: best, p, p(word), rank, entropy. */
static qkv_status add_word(const struct lens *lens, int64_t i, struct page *page,
                           qkv_error *error) {
    enum { BEST, P, P_WORD, RANK, ENTROPY, N };
    static const char *const names[N] = { "best", "p", "p(word)", "rank", "entropy" };
    const struct text_seen *const t = lens->t;
    const qkv_tokenizer *const tokenizer = t->text.session->tokenizer;
    const struct predictions *const made = &t->predictions;
    const int32_t word = made->candidates[predicted(t, lens->positions[i]) * made->top].id;
    char *const said = token_shown(tokenizer, word);
    struct page_table *const table =
        page_table(page, lens->n_layers, N, TABLE_CELLS | TABLE_VALUES, names, error);
    if (table)
        text_append(table->name, sizeof table->name, "How layers come to %.80s %s token %" PRId64,
                    said ? said : "", lens->is_next ? "after" : "at", lens->positions[i]);
    free(said);
    if (!table) return QKV_ERR_MEMORY;
    caption_add(&table->caption,
                "best = the likeliest word of a layer, with its p; p(word) and rank = of the word "
                "that the model says in the end; entropy = of all words, in nats. %s",
                note);
    table->put.corner = "layer";
    table->put.value_name = "p";
    table->put.high = 1;
    for (int64_t layer = 0; layer < lens->n_layers; layer++) {
        const qkv_lens *const row = &lens->rows[i * lens->n_layers + layer];
        char **const cells = table->cells + layer * N;
        double *const values = table->values + layer * N;
        table->rows[layer] = page_cell("%" PRId64, layer);
        values[P] = exp(row->best_log_p);
        values[P_WORD] = exp(row->log_p);
        cells[BEST] = token_shown(tokenizer, row->best);
        cells[P] = page_cell("%.4f", values[P]);
        cells[P_WORD] = page_cell("%.4f", values[P_WORD]);
        cells[RANK] = page_cell("%" PRId64, row->rank + 1);
        cells[ENTROPY] = page_cell("%.4f", row->entropy);
    }
    return QKV_OK;
}

qkv_status text_lens(const struct text_seen *t, struct page *page, qkv_error *error) {
    const bool is_next = t->predictions.is_next;
    struct lens lens = { .t = t,
                         .head = is_next ? QKV_HEAD_NEXT : QKV_HEAD_MASKED,
                         .is_next = is_next,
                         .n_layers = t->text.session->info->n_layers + 1 };
    qkv_status status = lens_check(t->text.session, error);
    if (status == QKV_OK && t->predictions.n_masks == 0 && !reads_all(t, lens.n_layers))
        status = text_error(error, QKV_ERR_ARGUMENT,
                            "--lens: the text is long, and no word in it is asked for: a text with "
                            "a mask, or a shorter one");
    if (status == QKV_OK) status = read_all(&lens, page, error);
    if (status == QKV_OK && lens.n > 0) status = add_all(&lens, page, error);
    for (int64_t i = 0, n = 0; i < lens.n && n < MOST_PLACES && status == QKV_OK; i++) {
        if (predicted(t, lens.positions[i]) < 0) continue;
        status = add_word(&lens, i, page, error);
        n++;
    }
    return status;
}
