/* The effects of heads on a terminal: predictions, the table, and what its numbers mean. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/predict.h"
#include "heads/effect.h"

enum { SET_NAME = 96 };

/* "1.2" or "1.2+1.3"; long ones end in an ellipsis. */
static void name_set(const struct effect *effect, const struct effect_set *set,
                     char name[SET_NAME]) {
    name[0] = 0;
    for (int64_t i = 0; i < set->n; i++) {
        if (strlen(name) > SET_NAME - 32) {
            text_append(name, SET_NAME, "+...");
            return;
        }
        text_append(name, SET_NAME, "%s%" PRId64 ".%" PRId64, i ? "+" : "",
                    set->heads[i] / effect->n_heads, set->heads[i] % effect->n_heads);
    }
}

/* ---- What was looked at ---------------------------------------------------------------------- */

static void add_places(const struct effect *effect, struct caption *caption) {
    enum { MOST = 4 };
    char *const mask = mask_name(effect->session);
    const bool next = effect->request.head == QKV_HEAD_NEXT;
    for (int64_t t = 0; t < effect->request.n_places && t < MOST; t++) {
        char *const word = token_label(effect->words_of, effect->words[t]);
        if (next)
            caption_add(caption, "%s%.80s, as the next token", t ? "; " : "", word ? word : "");
        else
            caption_add(caption, "%s%.80s, at %.40s (token %" PRId64 ")", t ? "; " : "",
                        word ? word : "", mask ? mask : "", effect->positions[t]);
        caption_add(caption, ", p %.4f", exp(effect->log_p[t]));
        free(word);
    }
    if (effect->request.n_places > MOST)
        caption_add(caption, "; and %" PRId64 " more", effect->request.n_places - MOST);
    if (effect->request.n_places > 1) caption_add(caption, "; mean ln p %.4f", effect->value);
    caption_add(caption, ".");
    free(mask);
}

static void add_label(const struct effect *effect, struct caption *caption) {
    char room[LABEL_ROOM];
    const char *const name = label_name(effect->session, effect->words[0], room);
    char *const shown = term_escape(name, strlen(name));
    caption_add(caption, "Label %.80s of the image ", shown ? shown : "");
    caption_add_path(caption, effect->options->image);
    caption_add(caption, ", p %.4f.", exp(effect->log_p[0]));
    free(shown);
}

void effect_looked_at(const struct effect *effect, struct caption *caption) {
    if (effect->is_label) {
        add_label(effect, caption);
        return;
    }
    if (!effect->is_loss) {
        add_places(effect, caption);
        return;
    }
    caption_add(caption, "The %" PRId64 " tokens of the %s, each given %swhat is before it: ",
                effect->request.n_places, effect->pair.next ? "target" : "text",
                effect->pair.next ? "the source and " : "");
    caption_add(caption, "mean ln p %.4f, perplexity %.4g.", effect->value, exp(-effect->value));
}

/* ---- What was done, and what numbers are ----------------------------------------------------- */

static void add_given(const struct effect *effect, struct caption *caption) {
    const struct heads_options *const options = effect->options;
    if (options->patch)
        caption_add(caption, "what it gives on \"%.200s\", token by token", options->patch);
    else if (options->ablate.value)
        caption_add(caption, "its mean over %" PRId64 " tokens of %.200s", effect->n_mean,
                    options->reference ? options->reference
                    : effect->is_label ? "the image"
                                       : "the text");
    else
        caption_add(caption, "0");
}

void effect_caption(const struct effect *effect, bool table, struct caption *caption) {
    const bool several = effect->request.n_places > 1;
    caption_add(caption, "Each head alone is ablated: what it gives, before the output projection, "
                         "becomes ");
    add_given(effect, caption);
    caption_add(caption,
                ". All that follows is computed anew, so effects are exact. nats = change of "
                "%s; below 0 the head helps%s.",
                several ? "the mean ln p" : "ln p", effect->is_loss ? ", and the loss grows" : "");
    if (table)
        caption_add(caption, " prob = change of %s.",
                    several ? "exp of that mean" : "the probability");
    if (table && effect->options->groups.n > 0)
        caption_add(caption,
                    " A group is ablated together; sum = the effects of its heads alone, added. "
                    "Where they differ, heads can replace each other, or need each other.");
    if (table && effect->n_edges > 0)
        caption_add(caption, " An edge is cut: the query does not see the key there, and its other "
                             "weights grow.");
    caption_add(caption, " An effect is of this %s only.",
                effect->is_label ? "image and label" : "text and word");
}

void effect_together(const struct effect *effect, struct caption *caption) {
    enum { MOST = 6 };
    const int64_t n_groups = effect->request.n_sets - effect->n_all;
    for (int64_t g = 0; g < n_groups && g < MOST; g++) {
        const struct effect_set *const set = &effect->sets[effect->n_all + g];
        char name[SET_NAME];
        name_set(effect, set, name);
        caption_add(caption, "%s%s %+.4f nats (sum %+.4f)", g ? ", " : "Ablated together: ", name,
                    set->nats, set->sum);
    }
    if (n_groups > MOST) caption_add(caption, ", and %" PRId64 " more", n_groups - MOST);
    if (n_groups > 0) caption_add(caption, ". ");
    for (int64_t e = 0; e < effect->n_edges && e < MOST; e++) {
        char *const name = term_escape(effect->edges[e].name, strlen(effect->edges[e].name));
        caption_add(caption, "%s%.80s %+.4f nats", e ? ", " : "Without an edge: ", name ? name : "",
                    effect->edges[e].nats);
        free(name);
    }
    if (effect->n_edges > MOST)
        caption_add(caption, ", and %" PRId64 " more", effect->n_edges - MOST);
    if (effect->n_edges > 0) caption_add(caption, ". ");
}

/* ---- The table ------------------------------------------------------------------------------- */

static void print_number(struct term *term, double value, double largest, int decimals) {
    char text[40];
    const double t = largest > 0 && isfinite(value) ? fabs(value) / largest : 0;
    snprintf(text, sizeof text, isnan(value) ? "-" : "%+.*f", decimals, value);
    if (t > 0) {
        term_weight_bg(term, t);
        term_readable_on(term, t);
    }
    term_put(term, text, 9, true);
    term_reset(term);
    fputc(' ', term->out);
}

static double largest_of(const struct effect *effect) {
    double largest = 0;
    for (int64_t s = 0; s < effect->request.n_sets; s++)
        if (fabs(effect->sets[s].nats) > largest) largest = fabs(effect->sets[s].nats);
    for (int64_t e = 0; e < effect->n_edges; e++)
        if (fabs(effect->edges[e].nats) > largest) largest = fabs(effect->edges[e].nats);
    return largest;
}

static void print_set(struct term *term, const struct effect *effect, const struct effect_set *set,
                      int width, double largest, bool group) {
    char name[SET_NAME];
    name_set(effect, set, name);
    term_put(term, name, width, false);
    print_number(term, set->nats, largest, 4);
    print_number(term, set->probability, 0, 4);
    if (group) print_number(term, set->sum, 0, 4);
    term_newline(term);
}

static int name_width(const struct effect *effect, int64_t first, int64_t end, int least) {
    int width = least;
    for (int64_t s = first; s < end; s++) {
        char name[SET_NAME];
        name_set(effect, &effect->sets[s], name);
        const int columns = term_columns(name) + 1;
        if (columns > width) width = columns < 44 ? columns : 44;
    }
    return width;
}

static void print_edges(struct term *term, const struct effect *effect, double largest) {
    int width = 6;
    for (int64_t e = 0; e < effect->n_edges; e++) {
        const int columns = term_columns(effect->edges[e].name) + 1;
        if (columns > width) width = columns < 44 ? columns : 44;
    }
    fprintf(term->out, "\n%-*s%9s %9s\n", width, "edge", "nats", "prob");
    for (int64_t e = 0; e < effect->n_edges; e++) {
        char *const name = term_escape(effect->edges[e].name, strlen(effect->edges[e].name));
        term_put(term, name ? name : "", width, false);
        print_number(term, effect->edges[e].nats, largest, 4);
        print_number(term, effect->edges[e].probability, 0, 4);
        term_newline(term);
        free(name);
    }
}

static void print_table(struct term *term, const struct effect *effect) {
    const int64_t n_all = effect->n_all, n_sets = effect->request.n_sets;
    const double largest = largest_of(effect);
    fprintf(term->out, "%-6s%9s %9s\n", "head", "nats", "prob");
    for (int64_t i = 0; i < effect->n_shown; i++)
        print_set(term, effect, &effect->sets[effect->order[i].index], 6, largest, false);
    if (effect->n_edges > 0) print_edges(term, effect, largest);
    if (n_sets == n_all) return;
    const int width = name_width(effect, n_all, n_sets, 6);
    fprintf(term->out, "\n%-*s%9s %9s %9s\n", width, "group", "nats", "prob", "sum");
    for (int64_t s = n_all; s < n_sets; s++)
        print_set(term, effect, &effect->sets[s], width, largest, true);
}

void effect_print(const struct effect *effect) {
    const struct session *const session = effect->session;
    struct term term;
    struct caption line = { "" };
    term_init(&term, stdout, &effect->options->common);
    caption_add(&line, "What %" PRId64 " heads%s of %.300s are worth", effect->n_all,
                attention_heads(session, effect->which),
                session->is_embedded ? "the embedded model" : session->info->source);
    term_wrap_styled(&term, STYLE_BOLD, line.text);
    line.text[0] = 0;
    effect_looked_at(effect, &line);
    term_wrap(&term, line.text);
    term_newline(&term);
    print_table(&term, effect);
    term_newline(&term);
    line.text[0] = 0;
    effect_caption(effect, true, &line);
    term_wrap(&term, line.text);
}
