/*
 * `qkv embed TEXT... --tokens`: the hidden states of tokens, not pooled. --word W selects the
 * places of one token in all texts, and compares their states layer by layer: the embedding is the
 * same at all places, and differences come from the context.
 */
#include "embed/embed.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 1 << 28, MOST_SHOWN = 20 };

/* A token of a text whose vectors are kept: [n_kept][hidden]. */
struct place {
    int64_t text, position;
    float *states;
};

struct places {
    const struct embed *e;
    struct place *list;
    int64_t n, room, n_layers, hidden;
    int64_t first, n_kept; /* layers that are kept: of a word all, else the one that is written */
    int64_t layer;         /* of vectors that are written */
};

static void places_free(struct places *p) {
    for (int64_t i = 0; i < p->n; i++) free(p->list[i].states);
    free(p->list);
}

/* Is it one that was asked for? Special tokens count only if they are named. */
static bool wanted(const struct embed *e, const qkv_encoding *input, int64_t i) {
    const char *const word = e->options->word;
    if (!word) return true;
    char *const label = session_token(e->session, input->ids[i]);
    const bool is = label && label_is(label, word);
    free(label);
    return is;
}

static qkv_status keep(struct places *p, const qkv_run *run, int64_t text, int64_t position,
                       qkv_error *error) {
    if (p->n == p->room) {
        const int64_t room = p->room ? 2 * p->room : 64;
        struct place *const list = realloc(p->list, (size_t)room * sizeof *list);
        if (!list) return text_no_memory(error);
        p->list = list;
        p->room = room;
    }
    const int64_t n = p->n_kept * p->hidden;
    if (p->n + 1 > MOST_NUMBERS / n)
        return text_error(error, QKV_ERR_LIMIT,
                          "vectors of more than %" PRId64 " tokens, of %" PRId64 " layer%s, have "
                          "more than %d numbers",
                          p->n, p->n_kept, p->n_kept == 1 ? "" : "s", MOST_NUMBERS);
    float *const states = malloc((size_t)n * sizeof *states);
    if (!states) return text_no_memory(error);
    for (int64_t l = 0; l < p->n_kept; l++)
        memcpy(states + l * p->hidden,
               qkv_run_hidden(run, QKV_SELF, 0, p->first + l) + position * p->hidden,
               (size_t)p->hidden * sizeof *states);
    p->list[p->n++] = (struct place){ text, position, states };
    return QKV_OK;
}

static qkv_status run_text(struct places *p, int64_t t, qkv_error *error) {
    const struct embed *const e = p->e;
    const qkv_encoding *const input = e->encodings[t];
    qkv_run *run = NULL;
    qkv_status status = qkv_model_run(e->session->ctx, e->session->model, 1, &input, QKV_RUN_HIDDEN,
                                      NULL, &run, error);
    for (int64_t i = 0; status == QKV_OK && i < input->n; i++)
        if (wanted(e, input, i)) status = keep(p, run, t, i, error);
    qkv_run_free(run);
    return status;
}

/* After a layer that is kept. */
static const float *state(const struct places *p, int64_t i, int64_t layer) {
    return p->list[i].states + (layer - p->first) * p->hidden;
}

/* Their cosine after a layer; NaN if a vector is 0. */
static double cosine(const struct places *p, int64_t a, int64_t b, int64_t layer) {
    const float *const x = state(p, a, layer), *const y = state(p, b, layer);
    return rows_product(x, y, p->hidden) /
           sqrt(rows_product(x, x, p->hidden) * rows_product(y, y, p->hidden));
}

/* ---- Terminal -------------------------------------------------------------------------------- */

/* "text 1, token 4" */
static void name_place(const struct places *p, int64_t i, char name[64]) {
    snprintf(name, 64, "text %" PRId64 ", token %" PRId64, p->list[i].text, p->list[i].position);
}

/* The other token that is nearest after the layer, -1: there is none. */
static int64_t nearest(const struct places *p, int64_t a, double *best) {
    int64_t found = -1;
    *best = -INFINITY;
    for (int64_t b = 0; b < p->n; b++) {
        const double c = b == a ? NAN : cosine(p, a, b, p->layer);
        if (!(c > *best)) continue;
        *best = c;
        found = b;
    }
    return found;
}

static char *label_of(const struct places *p, int64_t i) {
    const struct place *const at = &p->list[i];
    return session_token(p->e->session, p->e->encodings[at->text]->ids[at->position]);
}

static void put_label(struct report *report, const struct places *p, int64_t i) {
    char *const label = label_of(p, i);
    report_word(report, label ? label : "", label ? strlen(label) : 0);
    free(label);
}

/* Each token with the one that is nearest to it. */
static void put_tokens(struct report *report, const struct places *p) {
    report_table(report, "ntwnwt", "text", "at", "token", "cosine", "nearest", "at");
    for (int64_t i = 0; i < p->n && i < MOST_SHOWN; i++) {
        double best;
        const int64_t other = nearest(p, i, &best);
        char name[64] = "";
        report_row(report, false);
        report_cell(report, "%" PRId64, p->list[i].text);
        report_cell(report, "%" PRId64, p->list[i].position);
        put_label(report, p, i);
        if (other < 0) continue;
        name_place(p, other, name);
        report_cell(report, "%.3f", best);
        put_label(report, p, other);
        report_cell(report, "%s", name);
    }
    if (p->n > MOST_SHOWN)
        report_note(report, "and %" PRId64 " more: -o FILE.npy writes all vectors",
                    p->n - MOST_SHOWN);
}

/* The places of a word: each with the first one, layer by layer. */
static void put_word(struct report *report, const struct places *p) {
    const char *names[12];
    char kinds[14] = "t", numbers[12][24];
    const int64_t most = 8, step = (p->n_layers + most - 1) / most;
    int n = 1;
    for (int64_t l = 0; l <= p->n_layers && n < 11; l += step) {
        snprintf(numbers[n], sizeof numbers[n], "%s%" PRId64, l == 0 ? "layer " : "", l);
        names[n] = numbers[n];
        kinds[n++] = 'n';
    }
    kinds[n] = '\0';
    char first[64];
    name_place(p, 0, first);
    char heading[96];
    snprintf(heading, sizeof heading, "cosine with %s", first);
    names[0] = heading;
    report_table_named(report, kinds, names);
    for (int64_t i = 1; i < p->n && i <= MOST_SHOWN; i++) {
        char name[64];
        name_place(p, i, name);
        report_row(report, false);
        report_cell(report, "%s", name);
        for (int64_t l = 0; l <= p->n_layers; l += step)
            report_cell(report, "%.3f", cosine(p, 0, i, l));
    }
    if (p->n > MOST_SHOWN + 1)
        report_note(report, "and %" PRId64 " more: --json has all", p->n - 1 - MOST_SHOWN);
}

static qkv_status print_places(const struct places *p, qkv_error *error) {
    struct term term;
    struct report report;
    const struct embed *const e = p->e;
    term_init(&term, stdout, &e->options->common);
    report_begin(&report, 0, false);
    if (e->options->word)
        report_heading(&report, "%s, %" PRId64 " time%s", e->options->word, p->n,
                       p->n == 1 ? "" : "s");
    else
        report_heading(&report, "%" PRId64 " tokens of %" PRId64 " text%s", p->n, e->n,
                       e->n == 1 ? "" : "s");
    if (e->options->word && p->n > 1)
        put_word(&report, p);
    else if (!e->options->word)
        put_tokens(&report, p);
    report_text(&report, "%s", "");
    if (e->options->word)
        report_note(&report,
                    "Vectors are hidden states: layer 0 is the word with its position, before any "
                    "attention; %" PRId64 " is the last layer. Model %s.",
                    p->n_layers, e->session->info->source);
    else
        report_note(&report,
                    "A token is a vector of %" PRId64
                    " numbers: its hidden state after layer %" PRId64 " of %" PRId64 "; model %s.",
                    p->hidden, p->layer, p->n_layers, e->session->info->source);
    return report_end(&report, &term, error);
}

/* ---- JSON and files -------------------------------------------------------------------------- */

static json_t *token_object(const struct places *p, int64_t i) {
    const struct place *const at = &p->list[i];
    json_t *const cosines = json_array();
    char *const label = label_of(p, i);
    json_t *const object =
        json_set(NULL, "text:i position:i token:t vector:o", at->text, at->position,
                 label ? label : "", json_floats(p->hidden, state(p, i, p->layer)));
    for (int64_t l = 0; p->e->options->word && l <= p->n_layers; l++)
        json_array_append_new(cosines, json_number(cosine(p, 0, i, l)));
    if (p->e->options->word)
        json_set(object, "cosine_with_first:o", cosines);
    else
        json_decref(cosines);
    free(label);
    return object;
}

static json_t *tokens_object(const struct places *p) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < p->n; i++) json_array_append_new(list, token_object(p, i));
    return json_set(NULL, "dim:i layer:i tokens:o", p->hidden, p->layer, list);
}

static qkv_status write_file(const struct places *p, const char *path, qkv_error *error) {
    if (text_ends(path, ".json")) return json_write_file(path, tokens_object(p), error);
    float *const vectors = malloc((size_t)(p->n * p->hidden) * sizeof *vectors + 1);
    if (!vectors) return text_no_memory(error);
    for (int64_t i = 0; i < p->n; i++)
        memcpy(vectors + i * p->hidden, state(p, i, p->layer), (size_t)p->hidden * sizeof *vectors);
    const qkv_array array = { .type = QKV_ARRAY_F32,
                              .rank = 2,
                              .shape = { p->n, p->hidden },
                              .n_elems = p->n * p->hidden,
                              .data = vectors };
    const qkv_status status = qkv_array_write(path, &array, error);
    free(vectors);
    return status;
}

/* ---------------------------------------------------------------------------------------------- */

static qkv_status show(const struct places *p, qkv_error *error) {
    const struct embed_options *const o = p->e->options;
    if (o->out) return write_file(p, o->out, error);
    if (!o->common.json) return print_places(p, error);
    return json_print(stdout, tokens_object(p)) ? QKV_OK
                                                : text_error(error, QKV_ERR_IO, "cannot write");
}

qkv_status embed_tokens(const struct embed *e, qkv_error *error) {
    const qkv_model_info *const info = e->session->info;
    const struct embed_options *const o = e->options;
    struct places p = { .e = e, .n_layers = info->n_layers, .hidden = info->hidden };
    qkv_status status = QKV_OK;
    p.layer = o->token_layer.set ? o->token_layer.value : info->n_layers;
    if (p.layer > info->n_layers)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--layer %" PRId64 ": the model has layers 0 (embeddings) to %" PRId64,
                          p.layer, info->n_layers);
    p.first = o->word ? 0 : p.layer;
    p.n_kept = o->word ? info->n_layers + 1 : 1;
    for (int64_t t = 0; status == QKV_OK && t < e->n; t++)
        status = cli_cancelled ? text_error(error, QKV_ERR_CANCELLED, "nothing was written")
                               : run_text(&p, t, error);
    if (status == QKV_OK && p.n == 0)
        status =
            text_error(error, QKV_ERR_ARGUMENT,
                       "--word: '%s' is no token of the texts; 'qkv tokenize' shows them", o->word);
    if (status == QKV_OK) status = show(&p, error);
    places_free(&p);
    return status;
}
