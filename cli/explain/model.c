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

static void patches(struct report *report, const struct explain *t) {
    const qkv_image_tokens *const image = t->input->image;
    const qkv_model_info *const info = t->session->info;
    report_step(report, "Patches", "image → squares of pixels → tokens", NULL);
    report_shape(report, "(batch, time) = (1, %" PRId64 ")", t->input->n);
    report_text(report,
                "%" PRId64 " by %" PRId64 " pixels become %" PRId64 " by %" PRId64
                " patches of %" PRId64 " by %" PRId64
                " (width by height), each a vector of %" PRId64
                " numbers, and each is a token, row by row; %" PRId64 " stand%s before them.",
                image->width, image->height, image->columns, image->rows, image->patch_width,
                image->patch_height, 3 * info->patch_width * info->patch_height, image->n_prefix,
                image->n_prefix == 1 ? "s" : "");
}

static void tokens(struct report *report, const struct explain *t) {
    const int64_t n = t->input->n;
    if (t->input->image) {
        patches(report, t);
        return;
    }
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

static bool is_rotary(const qkv_model_info *info) { return info->rope[0].type != QKV_ROPE_NONE; }

/* The formula of a norm of x. */
static const char *norm_formula(const qkv_steps *s) {
    return s->rms == 2   ? "z = x / √(mean x² + ε) · (1 + γ)"
           : s->rms == 1 ? "z = x / √(mean x² + ε) · γ"
                         : "z = (x − mean) / √(variance + ε) · γ + β";
}

/* The norm of the embedding. */
static void embed_norm(struct report *report, const struct explain *t) {
    const qkv_steps *s = t->steps;
    const int64_t hidden = s->hidden;
    if (!s->embed_norm) return;
    step(report, "Layer norm", "x = (e − mean) / √(variance + ε) · γ + β", s);
    double mean = 0, variance = 0;
    char a[NUMBER_BYTES], b[NUMBER_BYTES];
    for (int64_t c = 0; c < hidden; c++) mean += s->embedding[c] / (double)hidden;
    for (int64_t c = 0; c < hidden; c++)
        variance += (s->embedding[c] - mean) * (s->embedding[c] - mean) / (double)hidden;
    report_text(report, "mean of e = %s, variance = %s, ε = %.0e", report_format(a, mean),
                report_format(b, variance), t->session->info->layer_norm_eps);
    report_vectors(report, hidden);
    report_vector(report, hidden, s->embedded, true, "x");
}

static void embed_image(struct report *report, const struct explain *t) {
    const qkv_steps *s = t->steps;
    const qkv_image_tokens *const image = t->input->image;
    const qkv_model_info *const info = t->session->info;
    const bool patch = s->query >= image->n_prefix, turns = is_rotary(info);
    const bool placed = !turns && (patch || s->query < image->n_prefix - image->n_registers);
    const bool own_size =
        image->height / image->patch_height == info->image_height / info->patch_height &&
        image->width / image->patch_width == info->image_width / info->patch_width;
    vectors(report, "Embedding of the query",
            patch    ? placed ? "e = W_E p + b + position[r, c]" : "e = W_E p + b"
            : placed ? "e = row + position"
                     : "e = row",
            s);
    report_vector(report, s->hidden, s->word, false, patch ? "W_E p + b" : "row");
    if (placed) report_vector(report, s->hidden, s->position, false, "position");
    report_vector(report, s->hidden, s->embedding, true, "e");
    report_note(
        report, "%s %s",
        patch ? "p has the pixels of the patch; W_E is one matrix for all patches."
              : "No pixel is in it: the row was learned.",
        turns ? "Places are angles by which queries and keys are turned in the layers."
        : own_size
            ? "Positions are learned, a vector for each place."
            : "Positions are learned, and interpolated to as many places as this image has.");
    embed_norm(report, t);
}

static void embedding(struct report *report, const struct explain *t) {
    const qkv_steps *s = t->steps;
    const int64_t i = s->query, hidden = s->hidden;
    const qkv_model_info *info = t->session->info;
    if (t->input->image) {
        embed_image(report, t);
        return;
    }
    const bool has_segments = info->n_types > 0;
    const bool rotary = is_rotary(info), distances = info->max_distance > 0 || info->alibi;
    vectors(report, "Embedding of the query",
            rotary && info->scales_words           ? "e = √hidden word[id]"
            : rotary || distances                  ? "e = word[id]"
            : info->scales_words                   ? "e = √hidden word[id] + position[i]"
            : has_segments                         ? "e = word[id] + segment + position[i]"
            : info->embedding_size != info->hidden ? "e = W_in word[id] + position[i]"
                                                   : "e = word[id] + position[i]",
            s);
    report_vector(report, hidden, s->word, false, "word %d", t->input->ids[i]);
    if (has_segments)
        report_vector(report, hidden, s->segment, false, "segment %d", t->input->types[i]);
    if (!rotary && !distances)
        report_vector(report, hidden, s->position, false, "position %" PRId64, i);
    report_vector(report, hidden, s->embedding, true, "e");
    report_note(report, "%s.%s",
                rotary ? "Positions are angles by which queries and keys are turned in the layers"
                : distances ? "There are no positions: scores have a bias by distance in the layers"
                : info->sinusoidal_positions ? "Positions are sinusoids"
                                             : "Positions are learned, a vector for each place",
                s->causal ? "" : " Attention itself is blind to order (qkv explain --shuffle).");
    embed_norm(report, t);
}

/* What queries and keys become before they are compared: norms, and turns by their position. */
static void place(struct report *report, const struct explain *t) {
    const qkv_steps *s = t->steps;
    const int64_t d = s->head_dim, j = explain_best_key(s);
    if (!s->rotated && !s->qk_norm) return;
    report_step(report, s->rotated ? "Turn by the position" : "Norms of queries and keys",
                s->rotated && s->qk_norm ? "q = R(i) norm(q)   k = R(j) norm(k)"
                : s->rotated             ? "q = R(i) q   k = R(j) k"
                                         : "q = norm(q)   k = norm(k)",
                NULL);
    report_vectors(report, d);
    report_vector(report, d, s->q, true, "q " WORD, t->labels[s->query]);
    report_vector(report, d, s->k + j * d, false, "k " WORD, t->labels[j]);
    const qkv_model_info *const info = t->session->info;
    const bool neighbours = info->rotary_neighbours;
    if (s->rotated && t->input->image) {
        report_note(report, "R turns half of the channels by the row of a patch and half by its "
                            "column, so that q·k depends on how far apart two patches are. What "
                            "stands before the patches is not turned.");
        return;
    }
    if (s->rotated && info->rotary_dim < d)
        report_note(report,
                    "R(p) turns channels %s of the first r = %" PRId64
                    " as one vector by the angle p·w_c, and leaves the others as they are.",
                    neighbours ? "2c and 2c + 1" : "c and c + r/2", info->rotary_dim);
    else if (s->rotated)
        report_note(report,
                    "R(p) turns channels %s as one vector by the angle p·w_c, so "
                    "q·k depends on the distance i − j alone.",
                    neighbours ? "2c and 2c + 1" : "c and c + d/2");
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
        vectors(report, s->rms ? "RMSNorm" : "Layer norm", norm_formula(s), s);
        report_vector(report, hidden, s->read + s->query * hidden, true, "z " WORD, query);
        report_note(report,
                    "In this model a norm comes before each part of a block, and %s after it.",
                    s->attended && !s->layer_scale ? "another one" : "not");
    }
    report_step(report, "Project: query, key, value",
                s->pre_norm ? "q = z W_Q + b_Q   k = z W_K + b_K   v = z W_V + b_V"
                            : "q = x W_Q + b_Q   k = x W_K + b_K   v = x W_V + b_V",
                NULL);
    report_shape(report,
                 "q, k, v: (1, %" PRId64 ", %" PRId64 ") = %" PRId64 " heads of (1, %" PRId64
                 ", %" PRId64 ")",
                 s->n, s->n_heads * d, s->n_heads, s->n, d);
    if (t->session->info->n_kv_heads < s->n_heads)
        report_note(report,
                    "k and v have %" PRId64 " heads, of which each serves %" PRId64
                    " heads of queries.",
                    t->session->info->n_kv_heads, s->n_heads / t->session->info->n_kv_heads);
    report_vectors(report, d);
    report_vector(report, d, s->q_projected, true, "q " WORD, query);
    report_vector(report, d, s->k_projected + j * d, false, "k " WORD, t->labels[j]);
    report_vector(report, d, s->v + j * d, false, "v " WORD, t->labels[j]);
    report_note(report,
                "Three linear maps of the same tokens; head %" PRId64 " has channels %" PRId64
                " to %" PRId64 " of %" PRId64 ".",
                s->head, s->head * d, (s->head + 1) * d - 1, s->n_heads * d);
    place(report, t);
}

/* ---- After attention ------------------------------------------------------------------------- */

/* Whether the feed-forward part reads a norm: not in OLMo 2. */
static bool has_norm2(const qkv_steps *s) { return !s->attended || s->pre_norm; }

static void heads(struct report *report, const qkv_steps *s) {
    enum { MOST_HEADS = 16 };
    const int64_t d = s->head_dim;
    report_step(report, "All heads side by side", "concat = [o of head 0, o of head 1, …]", NULL);
    report_shape(report, "(batch, time, channel) = (1, %" PRId64 ", %" PRId64 ")", s->n,
                 s->n_heads * d);
    report_vectors(report, d);
    for (int64_t h = 0; h < s->n_heads; h++) {
        if (s->n_heads > MOST_HEADS && h != s->head) continue;
        report_vector(report, d, s->concat + h * d, h == s->head, "o head %" PRId64, h);
    }
    vectors(report, "Output projection", "a = concat W_O + b_O", s);
    report_vector(report, s->hidden, s->projected, true, "a");
    const bool normed = has_norm2(s);
    vectors(report,
            !normed       ? "Norm, then add"
            : s->parallel ? "Add, and norm of the input"
            : s->adds     ? "Add, then norm"
                          : "Add & norm",
            !normed           ? "y₁ = x + norm(a)"
            : s->layer_scale  ? "x₁ = x + λ ⊙ a   y₁ = norm(x₁)"
            : s->attended     ? "x₁ = x + norm(a)   y₁ = norm(x₁)"
            : s->parallel     ? "x₁ = x + a   y₁ = norm(x)"
            : s->adds_to_norm ? "x₁ = z + a   y₁ = norm(x₁)"
            : s->adds         ? "x₁ = x + a   y₁ = norm(x₁)"
                              : "y₁ = norm(x + a)",
            s);
    if (s->attended)
        report_vector(report, s->hidden, s->attended, false, s->layer_scale ? "λ ⊙ a" : "norm(a)");
    report_vector(report, s->hidden, s->added, !normed,
                  s->layer_scale    ? "x + λ ⊙ a"
                  : s->attended     ? "x + norm(a)"
                  : s->adds_to_norm ? "z + a"
                                    : "x + a");
    if (normed)
        report_vector(report, s->hidden, s->normed, true,
                      s->attended       ? "y₁"
                      : s->parallel     ? "norm(x)"
                      : s->adds_to_norm ? "norm(z + a)"
                                        : "norm(x + a)");
}

static void feed_forward(struct report *report, const qkv_steps *s) {
    char formula[96], title[64];
    snprintf(formula, sizeof formula,
             s->gate ? "f = (%s(y₁ W_G) ⊙ y₁ W_U) W_D" : "f = %s(y₁ W_U + b_U) W_D + b_D",
             s->activation);
    report_step(report, "Feed-forward", formula, NULL);
    report_shape(report,
                 "(1, %" PRId64 ", %" PRId64 ") → (1, %" PRId64 ", %" PRId64 ") → (1, %" PRId64
                 ", %" PRId64 ")",
                 s->n, s->hidden, s->n, s->intermediate, s->n, s->hidden);
    report_vectors(report, s->hidden);
    if (s->gate) report_vector(report, s->intermediate, s->gate, false, "gate");
    report_vector(report, s->intermediate, s->up, false, "up");
    report_vector(report, s->intermediate, s->gelu, false, s->gate ? "%s(gate) ⊙ up" : "%s",
                  s->activation);
    report_vector(report, s->hidden, s->down, true, "f");
    snprintf(title, sizeof title, "%s: output of layer %" PRId64,
             s->layer_scale ? "Scale, then add"
             : s->fed       ? "Norm, then add"
             : !s->adds     ? "Add & norm"
                            : "Add",
             s->layer);
    char sum[64], output[128];
    snprintf(sum, sizeof sum, "%s + %s", has_norm2(s) && s->adds && !s->adds_to_norm ? "x₁" : "y₁",
             s->layer_scale ? "λ ⊙ f"
             : s->fed       ? "norm(f)"
                            : "f");
    snprintf(output, sizeof output,
             !s->adds       ? "y = norm(%s)"
             : s->last_norm ? "y = norm(%s), the norm that ends the stack"
                            : "y = %s",
             sum);
    vectors(report, title, output, s);
    if (s->fed)
        report_vector(report, s->hidden, s->fed, false, s->layer_scale ? "λ ⊙ f" : "norm(f)");
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
    const int64_t n_hidden = s->n - (s->end_key - s->first_key);
    const bool hides = n_hidden > 0, windowed = hides && (s->first_key > 0 || !s->causal);
    const struct explained e = { s, s->head_dim, t->labels[s->query], t->labels, hides, t->n_rows };
    const int64_t j = explain_best_key(s);
    char weight[NUMBER_BYTES], why[200];
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
    if (hides && !windowed)
        snprintf(why, sizeof why,
                 "A decoder sees what came before: %" PRId64 " of %" PRId64
                 " keys stand after the query and become −∞, whose exp is 0.",
                 n_hidden, s->n);
    if (windowed)
        snprintf(why, sizeof why,
                 "A layer with a window: %" PRId64 " of %" PRId64
                 " keys are too far away, or come after the query, and become −∞, whose exp is 0.",
                 n_hidden, s->n);
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
