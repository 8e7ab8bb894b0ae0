/* The steps of one query of a model's head, from token ids to the output of the layer. */
#include <inttypes.h>
#include <math.h>

#include "explain/explain.h"

/* A step whose result is one vector for each token; and the table of some of them. */
static void step(struct report *report, const char *title, const char *formula,
                 const qkv_steps *s) {
    report_step(report, title, formula, NULL);
    report_shape(report, "(batch, time, channel) = (1, %" PRId64 ", %" PRId64 ")", s->n, s->hidden);
}

static void vectors(struct report *report, const char *title, const char *formula,
                    const qkv_steps *s) {
    step(report, title, formula, s);
    report_vectors(report, s->hidden);
}

/* ---- Before the layer ------------------------------------------------------------------------ */

static void tokens(struct report *report, const struct explain *t) {
    const int64_t n = t->input->n;
    report_step(report, "Tokens", "text → pieces → ids", NULL);
    report_shape(report, "(batch, time) = (1, %" PRId64 ")", n);
    enum { MOST_LINES = 4 };
    const int64_t across = report->n_components, lines = (n + across - 1) / across;
    for (int64_t line = 0; line < lines && line < MOST_LINES; line++) {
        char kinds[16] = "w";
        const int64_t first = line * across, end = first + across < n ? first + across : n;
        for (int64_t i = first; i < end; i++) kinds[1 + i - first] = 'n';
        report_table_numbered(report, kinds, first);
        report_row(report, false);
        report_cell(report, "token");
        for (int64_t i = first; i < end; i++) report_cell(report, WORD, t->labels[i]);
        report_row(report, false);
        report_cell(report, "id");
        for (int64_t i = first; i < end; i++) report_cell(report, "%d", t->input->ids[i]);
    }
    if (lines > MOST_LINES) report_note(report, "… and %" PRId64 " more.", n - MOST_LINES * across);
}

static void embedding(struct report *report, const struct explain *t) {
    const qkv_steps *s = t->steps;
    const int64_t i = s->query, hidden = s->hidden;
    const qkv_model_info *info = t->session->info;
    const bool has_segments = info->n_types > 0;
    vectors(report, "Embedding of the query",
            info->scales_words ? "e = √hidden word[id] + position[i]"
            : has_segments     ? "e = word[id] + segment + position[i]"
                               : "e = word[id] + position[i]",
            s);
    report_vector(report, hidden, s->word, false, "word %d", t->input->ids[i]);
    if (has_segments)
        report_vector(report, hidden, s->segment, false, "segment %d", t->input->types[i]);
    report_vector(report, hidden, s->position, false, "position %" PRId64, i);
    report_vector(report, hidden, s->embedding, true, "e");
    report_note(report, "Positions are %s.%s",
                info->sinusoidal_positions ? "sinusoids" : "learned, a vector for each place",
                s->causal ? "" : " Attention itself is blind to order (qkv explain --shuffle).");

    if (!s->embed_norm) return;
    step(report, "Layer norm", "x = (e − mean) / √(variance + ε) · γ + β", s);
    double mean = 0, variance = 0;
    char a[NUMBER_BYTES], b[NUMBER_BYTES];
    for (int64_t c = 0; c < hidden; c++) mean += s->embedding[c] / (double)hidden;
    for (int64_t c = 0; c < hidden; c++)
        variance += (s->embedding[c] - mean) * (s->embedding[c] - mean) / (double)hidden;
    report_text(report, "mean of e = %s, variance = %s, ε = %.0e", report_format(a, mean),
                report_format(b, variance), info->layer_norm_eps);
    report_vectors(report, hidden);
    report_vector(report, hidden, s->embedded, true, "x");
}

static void projections(struct report *report, const struct explain *t) {
    const qkv_steps *s = t->steps;
    const int64_t hidden = s->hidden, d = s->head_dim, j = explain_best_key(s);
    const char *query = t->labels[s->query];
    if (s->layer > 0) {
        char title[64];
        snprintf(title, sizeof title, "Input of layer %" PRId64, s->layer);
        vectors(report, title, "x after the layers before it", s);
        report_vector(report, hidden, s->x + s->query * hidden, true, "x " WORD, query);
        if (j != s->query)
            report_vector(report, hidden, s->x + j * hidden, false, "x " WORD, t->labels[j]);
    }
    if (s->pre_norm) {
        vectors(report, "Layer norm", "z = (x − mean) / √(variance + ε) · γ + β", s);
        report_vector(report, hidden, s->read + s->query * hidden, true, "z " WORD, query);
        report_note(report, "In this model a norm comes before each part of a block, and not after "
                            "it.");
    }
    report_step(report, "Project: query, key, value",
                s->pre_norm ? "q = z W_Q + b_Q   k = z W_K + b_K   v = z W_V + b_V"
                            : "q = x W_Q + b_Q   k = x W_K + b_K   v = x W_V + b_V",
                NULL);
    report_shape(report,
                 "q, k, v: (1, %" PRId64 ", %" PRId64 ") = %" PRId64 " heads of (1, %" PRId64
                 ", %" PRId64 ")",
                 s->n, hidden, s->n_heads, s->n, d);
    report_vectors(report, d);
    report_vector(report, d, s->q, true, "q " WORD, query);
    report_vector(report, d, s->k + j * d, false, "k " WORD, t->labels[j]);
    report_vector(report, d, s->v + j * d, false, "v " WORD, t->labels[j]);
    report_note(report,
                "Three linear maps of the same tokens; head %" PRId64 " has channels %" PRId64
                " to %" PRId64 " of %" PRId64 ".",
                s->head, s->head * d, (s->head + 1) * d - 1, hidden);
}

/* ---- After attention ------------------------------------------------------------------------- */

static void heads(struct report *report, const qkv_steps *s) {
    enum { MOST_HEADS = 16 };
    const int64_t d = s->head_dim;
    step(report, "All heads side by side", "concat = [o of head 0, o of head 1, …]", s);
    report_vectors(report, d);
    for (int64_t h = 0; h < s->n_heads; h++) {
        if (s->n_heads > MOST_HEADS && h != s->head) continue;
        report_vector(report, d, s->concat + h * d, h == s->head, "o head %" PRId64, h);
    }
    vectors(report, "Output projection", "a = concat W_O + b_O", s);
    report_vector(report, s->hidden, s->projected, true, "a");
    vectors(report, s->pre_norm ? "Add, then norm" : "Add & norm",
            s->pre_norm ? "x₁ = x + a   y₁ = norm(x₁)" : "y₁ = norm(x + a)", s);
    report_vector(report, s->hidden, s->added, false, "x + a");
    report_vector(report, s->hidden, s->normed, true, "norm(x + a)");
}

static void feed_forward(struct report *report, const qkv_steps *s) {
    char formula[96], title[64];
    snprintf(formula, sizeof formula, "f = %s(y₁ W_U + b_U) W_D + b_D", s->activation);
    report_step(report, "Feed-forward", formula, NULL);
    report_shape(report,
                 "(1, %" PRId64 ", %" PRId64 ") → (1, %" PRId64 ", %" PRId64 ") → (1, %" PRId64
                 ", %" PRId64 ")",
                 s->n, s->hidden, s->n, s->intermediate, s->n, s->hidden);
    report_vectors(report, s->hidden);
    report_vector(report, s->intermediate, s->up, false, "up");
    report_vector(report, s->intermediate, s->gelu, false, "%s", s->activation);
    report_vector(report, s->hidden, s->down, true, "f");
    snprintf(title, sizeof title, "%s: output of layer %" PRId64,
             !s->pre_norm ? "Add & norm" : "Add", s->layer);
    vectors(report, title,
            !s->pre_norm   ? "y = norm(y₁ + f)"
            : s->last_norm ? "y = norm(x₁ + f), the norm that ends the stack"
                           : "y = x₁ + f",
            s);
    report_vector(report, s->hidden, s->y, true, "y");
}

static void check(struct report *report, const qkv_steps *s) {
    explain_check_step(report);
    report_table(report, "wn", "", "largest difference");
    const struct {
        const char *name;
        double error;
    } errors[] = {
        { "embeddings", s->embedded_error }, { "q", s->q_error },
        { "k of all keys", s->k_error },     { "log Σ exp s", s->lse_error },
        { "weights", s->weights_error },     { "output of layer", s->y_error },
    };
    for (int i = 0; i < CLI_COUNT(errors); i++) {
        report_row(report, false);
        report_cell(report, "%s", errors[i].name);
        report_cell(report, "%.1e", errors[i].error);
    }
}

qkv_status explain_model(struct report *report, const struct explain *t, qkv_error *error) {
    (void)error;
    const qkv_steps *s = t->steps;
    const qkv_model_info *info = t->session->info;
    const bool hides = s->causal && s->query + 1 < s->n;
    const struct explained e = { s, s->head_dim, t->labels[s->query], t->labels, hides, t->n_rows };
    const int64_t j = explain_best_key(s);
    char weight[NUMBER_BYTES], why[160];
    report_title(report, "Layer %" PRId64 ", head %" PRId64 ": " WORD " looks at " WORD " with %s",
                 s->layer, s->head, t->labels[s->query], t->labels[j],
                 report_format(weight, s->weights[j]));
    report_subtitle(report,
                    "Model %s: %" PRId64 " layers of %" PRId64 " heads, %" PRId64
                    " channels, %" PRId64
                    " a head. Everything counts from 0. |x| is the length of a vector.%s%s%s",
                    info->source, info->n_layers, info->n_heads, s->hidden, s->head_dim,
                    t->rule ? " Shown is " : "", t->rule ? t->rule : "", t->rule ? "." : "");
    tokens(report, t);
    embedding(report, t);
    projections(report, t);
    if (hides)
        snprintf(why, sizeof why,
                 "A decoder sees what came before: %" PRId64 " of %" PRId64
                 " keys stand after the query and become −∞, whose exp is 0.",
                 s->n - 1 - s->query, s->n);
    explain_attention(report, &e,
                      hides ? why
                      : s->causal
                          ? "A decoder hides keys after the query. There are none."
                          : "Nothing is hidden: in an encoder every token sees every token. A "
                            "decoder hides all keys after the query.");
    heads(report, s);
    feed_forward(report, s);
    check(report, s);
    report_note(report,
                "A weight says how values were mixed; it does not prove why the model answered.");
    return QKV_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *numbers(int64_t n, const double *values) {
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_number(values[i]));
    return list;
}

qkv_status explain_model_json(const struct explain *t, json_t **json, qkv_error *error) {
    const qkv_steps *s = t->steps;
    const int64_t d = s->head_dim, hidden = s->hidden;
    const struct {
        const char *name;
        int64_t n;
        const double *values;
    } rows[] = {
        { "embedding", hidden, s->embedding },
        { "embedded", hidden, s->embedded },
        { "x", hidden, s->x + s->query * hidden },
        { "q", d, s->q },
        { "products", s->n, s->products },
        { "scores", s->n, s->scores },
        { "exponentials", s->n, s->exponentials },
        { "weights", s->n, s->weights },
        { "o", d, s->o },
        { "concat", hidden, s->concat },
        { "projected", hidden, s->projected },
        { "normed", hidden, s->normed },
        { "down", hidden, s->down },
        { "y", hidden, s->y },
    };
    json_t *object =
        json_set(NULL, "layer:i head:i query:i tokens:o scale:n largest:n sum:n", s->layer, s->head,
                 s->query, text_tokens_json(t->session, t->input), s->scale, s->largest, s->sum);
    for (int i = 0; object && i < CLI_COUNT(rows); i++)
        json_object_set_new(object, rows[i].name, numbers(rows[i].n, rows[i].values));
    *json = json_set(object, "differences:o",
                     json_set(NULL, "embedded:n q:n k:n lse:n weights:n y:n", s->embedded_error,
                              s->q_error, s->k_error, s->lse_error, s->weights_error, s->y_error));
    return *json ? QKV_OK : text_no_memory(error);
}
