/*
 * `qkv embed --pairs F`: what a classifier says of pairs of texts, a line of F each, with a TAB
 * between the two: how well a text answers a question, by a cross-encoder (Nogueira and Cho 2019).
 * The model reads both at once, so there are no vectors.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "common/predict.h"
#include "embed/embed.h"
#include <qkv/files.h>

enum { BATCH = 32, MOST_SHOWN = 10, MOST_PAIRS = 1 << 24 };

struct pair_of_texts {
    char *bytes; /* both, a NUL behind each */
    size_t n[2];
};

struct pairs {
    const struct embed *e;
    struct pair_of_texts *list;
    int64_t n, room, n_done, n_labels;
    float *logits;                /* [n][n_labels] */
    qkv_encoding *waiting[BATCH]; /* of list[n_done] and those behind it */
    int64_t n_waiting;
};

static struct text text_of(const struct pair_of_texts *pair, int which) {
    return (struct text){ pair->bytes + (which ? pair->n[0] + 1 : 0), pair->n[which] };
}

/* ---- Reading and running --------------------------------------------------------------------- */

static qkv_status run_waiting(struct pairs *p, qkv_error *error) {
    const struct session *const session = p->e->session;
    qkv_run *run = NULL;
    if (p->n_waiting == 0) return QKV_OK;
    qkv_status status =
        qkv_model_run(session->ctx, session->model, p->n_waiting,
                      (const qkv_encoding *const *)p->waiting, 0, NULL, &run, error);
    for (int64_t b = 0; b < p->n_waiting; b++) {
        if (status == QKV_OK)
            status = qkv_model_classify(session->ctx, session->model, run, b,
                                        p->logits + (p->n_done + b) * p->n_labels, error);
        qkv_encoding_free(p->waiting[b]);
    }
    qkv_run_free(run);
    p->n_done += p->n_waiting;
    p->n_waiting = 0;
    return status;
}

static qkv_status grow(struct pairs *p, qkv_error *error) {
    if (p->n < p->room) return QKV_OK;
    const int64_t room = p->room ? 2 * p->room : 64;
    if (room > MOST_PAIRS)
        return text_error(error, QKV_ERR_LIMIT, "more than %d pairs", MOST_PAIRS);
    struct pair_of_texts *const list = realloc(p->list, (size_t)room * sizeof *list);
    if (list) p->list = list;
    float *const logits = realloc(p->logits, (size_t)room * (size_t)p->n_labels * sizeof *logits);
    if (logits) p->logits = logits;
    if (!list || !logits) return text_no_memory(error);
    p->room = room;
    return QKV_OK;
}

static qkv_status encode(struct pairs *p, const struct pair_of_texts *pair, qkv_error *error) {
    const struct session *const session = p->e->session;
    const struct text first = text_of(pair, 0), second = text_of(pair, 1);
    qkv_encoding **const made = &p->waiting[p->n_waiting];
    const qkv_status status = qkv_tokenizer_encode(session->tokenizer, first.bytes, first.n,
                                                   second.bytes, second.n, made, error);
    if (status != QKV_OK) return status;
    p->n_waiting++;
    return text_shorten(session, session->tokenizer, session->info->max_len, "the pair", "takes",
                        NULL, *made, error);
}

static qkv_status add_line(void *user, const struct text *line, qkv_error *error) {
    struct pairs *const p = user;
    const char *const tab = line->n > 0 ? memchr(line->bytes, '\t', line->n) : NULL;
    const size_t first = tab ? (size_t)(tab - line->bytes) : 0;
    if (!tab || memchr(tab + 1, '\t', line->n - first - 1))
        return text_error(error, QKV_ERR_FORMAT, "a pair is two texts with one TAB between them");
    qkv_status status = grow(p, error);
    if (status != QKV_OK) return status;
    struct pair_of_texts *const pair = &p->list[p->n];
    *pair = (struct pair_of_texts){ malloc(line->n + 1), { first, line->n - first - 1 } };
    if (!pair->bytes) return text_no_memory(error);
    memcpy(pair->bytes, line->bytes, line->n);
    pair->bytes[first] = pair->bytes[line->n] = '\0';
    p->n++;
    status = encode(p, pair, error);
    return status == QKV_OK && p->n_waiting == BATCH ? run_waiting(p, error) : status;
}

/* ---- Showing --------------------------------------------------------------------------------- */

static int64_t best_label(const double *labels, int64_t n) {
    int64_t best = 0;
    for (int64_t l = 1; l < n; l++)
        if (labels[l] > labels[best]) best = l;
    return best;
}

static void put_row(struct report *report, const struct pairs *p, int64_t pair,
                    const double *labels) {
    const struct text first = text_of(&p->list[pair], 0), second = text_of(&p->list[pair], 1);
    const int64_t best = best_label(labels, p->n_labels);
    char number[24];
    report_row(report, false);
    report_cell(report, "%.4f", labels[best]);
    if (p->n_labels > 1) report_cell(report, "%s", label_name(p->e->session, best, number));
    report_word(report, first.bytes, first.n);
    report_word(report, second.bytes, second.n);
}

/* In the order of the file; of one label the largest first. */
static qkv_status print_pairs(const struct pairs *p, struct sort_key *order, const double *labels,
                              qkv_error *error) {
    const struct embed_options *const o = p->e->options;
    const int64_t top = o->top.set ? o->top.value : MOST_SHOWN;
    const char *const what =
        p->e->session->info->label_kind == QKV_LABELS_VALUES ? "value" : "probability";
    struct term term;
    struct report report;
    term_init(&term, stdout, &o->common);
    report_begin(&report, 0, false);
    for (int64_t i = 0; i < p->n; i++)
        order[i] = (struct sort_key){ p->n_labels == 1 ? -(double)p->logits[i] : 0, i };
    sort_keys(order, p->n);
    report_heading(&report, "%" PRId64 " pair%s%s", p->n, p->n == 1 ? "" : "s",
                   p->n_labels == 1 && p->n > 1 ? ", the largest first" : "");
    if (p->n_labels == 1)
        report_table(&report, "ntt", what, "text", "second text");
    else
        report_table(&report, "nttt", what, "label", "text", "second text");
    for (int64_t i = 0; i < p->n && i < top; i++)
        put_row(&report, p, order[i].index, labels + order[i].index * p->n_labels);
    if (p->n > top)
        report_note(&report, "and %" PRId64 " more: --json and -o have all", p->n - top);
    return report_end(&report, &term, error);
}

static json_t *pairs_json(const struct pairs *p, const double *labels) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < p->n; i++) {
        const struct text first = text_of(&p->list[i], 0), second = text_of(&p->list[i], 1);
        json_array_append_new(list, json_set(NULL, "text:o pair:o labels:o",
                                             json_bytes(first.bytes, first.n),
                                             json_bytes(second.bytes, second.n),
                                             labels_json(p->e->session, labels + i * p->n_labels)));
    }
    return json_set(NULL, "pairs:o", list);
}

static qkv_status show(const struct pairs *p, qkv_error *error) {
    const struct embed_options *const o = p->e->options;
    double *const labels = calloc((size_t)p->n, (size_t)p->n_labels * sizeof *labels);
    struct sort_key *const order = calloc((size_t)p->n, sizeof *order);
    const qkv_array array = { .type = QKV_ARRAY_F32,
                              .rank = 2,
                              .shape = { p->n, p->n_labels },
                              .n_elems = p->n * p->n_labels,
                              .data = p->logits };
    qkv_status status = labels && order ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK)
        status =
            qkv_model_probabilities(p->e->session->model, NULL, p->n, p->logits, labels, error);
    if (status == QKV_OK) {
        if (o->out && text_ends(o->out, ".npy"))
            status = qkv_array_write(o->out, &array, error);
        else if (o->out)
            status = json_write_file(o->out, pairs_json(p, labels), error);
        else if (!o->common.json)
            status = print_pairs(p, order, labels, error);
        else if (!json_print(stdout, pairs_json(p, labels)))
            status = text_error(error, QKV_ERR_IO, "cannot write");
    }
    free(labels);
    free(order);
    return status;
}

/* ---------------------------------------------------------------------------------------------- */

static qkv_status check(const struct embed *e, qkv_error *error) {
    const qkv_model_info *const info = e->session->info;
    if (info->n_labels > 0 && info->label_task == QKV_LABELS_OF_TEXTS && e->session->tokenizer)
        return e->options->out ? qkv_file_writable(e->options->out, error) : QKV_OK;
    return text_error(error, QKV_ERR_UNSUPPORTED,
                      "%s: the model has no classifier of texts, which --pairs needs",
                      info->source);
}

qkv_status embed_pairs(const struct embed *e, qkv_error *error) {
    struct pairs p = { .e = e, .n_labels = e->session->info->n_labels };
    qkv_status status = check(e, error);
    if (status == QKV_OK)
        status =
            lines_each(e->options->pairs, e->options->common.quiet, NULL, "", add_line, &p, error);
    if (status == QKV_OK) status = run_waiting(&p, error);
    if (status == QKV_OK && cli_cancelled)
        status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    if (status == QKV_OK && p.n == 0)
        status = text_error(error, QKV_ERR_FORMAT, "there is no pair of texts");
    if (status == QKV_OK) status = show(&p, error);
    for (int64_t b = 0; b < p.n_waiting; b++) qkv_encoding_free(p.waiting[b]);
    for (int64_t i = 0; i < p.n; i++) free(p.list[i].bytes);
    free(p.list);
    free(p.logits);
    return status;
}
