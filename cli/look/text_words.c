/* Words about a text: captions, lines above its heads on a terminal, members of a JSON object. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "look/text.h"

/* ---- Captions -------------------------------------------------------------------------------- */

/* The rule that chose the head and the query, and the key that it found; "": they were named. */
static void add_rule(const struct seen *seen, struct caption *caption) {
    const qkv_heads_choice *choice = &seen->choice;
    if (!seen->rule) return;
    caption_add(caption, " Shown is %s", seen->rule);
    if (choice->rule_key >= 0 && choice->rule_key != choice->key)
        caption_add(caption, " (%.60s, %.2f)", seen->keys.names[choice->rule_key],
                    (double)choice->rule_weight);
    caption_add(caption, ".");
}

static void describe_source(struct text_seen *t, const char *means, bool one) {
    const qkv_model_info *info = t->text.session->info;
    const struct attention_view *const view = &t->text.view;
    struct caption *const about = &t->seen.about[one];
    what_if_caption(&t->text.what_if, about);
    caption_add(about, "%sModel %s (%s), %s", means, info->source, info->architecture,
                attention_words(t->text.session, view->which));
    if (one)
        caption_add(about,
                    "layer %" PRId64 " of %" PRId64 ", head %" PRId64 " of %" PRId64
                    ", counted from 0.",
                    t->seen.choice.layer, view->n_layers, t->seen.choice.head, view->n_heads);
    else
        caption_add(about, "layers and heads counted from 0.");
    if (one) add_rule(&t->seen, about);
}

static void describe_cell(struct text_seen *t, const char *means) {
    struct caption *const legend = &t->seen.legend;
    if (t->text.what_if.any)
        caption_add(legend, "Modified: not what the model computed (%s). ", t->text.what_if.words);
    caption_add(legend,
                "%sA cell is the weight, in percent, with which the row's token (query) looks at "
                "the column's token (key); a row sums to 100.%s%s Model: %s. Layers and heads "
                "count from 0.",
                means,
                t->text.pair.next
                    ? " A row is a token that the decoder read, and the one that it predicts."
                    : "",
                t->seen.info->causal ? " Tokens after a query are hidden from it: no cell." : "",
                t->text.session->info->source);
    add_rule(&t->seen, legend);
}

/* Files and the terminal have the named head, else all. */
static void place_heads(struct text_seen *t) {
    struct seen *const seen = &t->seen;
    const int64_t across = seen->info->n_heads;
    const bool one = seen->by_name;
    seen->head = seen->choice.layer * across + seen->choice.head;
    seen->rule = one ? NULL : seen->choice.rule;
    seen->first = one ? seen->head : 0;
    seen->n_file = one ? 1 : seen->n_heads;
    seen->one = seen->has_weights = one;
    seen->overview = one ? OVERVIEW_NONE : OVERVIEW_GRID;
    seen->n_order = t->list ? t->n_list : seen->n_file;
}

void text_describe(struct text_seen *t, const char *means) {
    struct seen *const seen = &t->seen;
    const struct session *const session = t->text.session;
    const qkv_attention_kind which = t->text.view.which;
    place_heads(t);
    attention_head(session, which, seen->choice.layer, seen->choice.head, seen->name);
    seen->of_heads = attention_heads(session, which);
    snprintf(seen->all, sizeof seen->all, "%" PRId64 " layer%s of %" PRId64 " heads%s",
             seen->info->n_layers, seen->info->n_layers == 1 ? "" : "s", seen->info->n_heads,
             seen->of_heads);
    describe_source(t, means, false);
    describe_source(t, means, true);
    describe_cell(t, means);
}

double text_perplexity(const struct text_seen *t, int64_t *n) {
    double sum = 0;
    *n = 0;
    for (int64_t i = 0; t->log_p && i < t->seen.queries.n; i++) {
        if (!t->text.pair.next && i + 1 == t->seen.queries.n) break; /* no next token is known */
        sum -= t->log_p[i];
        ++*n;
    }
    return *n ? exp(sum / (double)*n) : 0;
}

/* ---- The terminal ---------------------------------------------------------------------------- */

/* Whatever is below the line is what would be, and not what the model computed. */
static void print_badge(const struct text_seen *t, struct term *term) {
    char text[WHAT_IF_WORDS + 80] = "";
    if (!t->text.what_if.any) return;
    if (t->before.n_masks > 0) {
        term_styled(term, STYLE_BOLD, "As the model is");
        term_newline(term);
        predictions_print(t->text.session, &t->before, term);
        term_newline(term);
    }
    text_append(text, sizeof text, "[" WHAT_IF_BADGE ": %s]", t->text.what_if.words);
    term_wrap_styled(term, STYLE_ACCENT, text);
    term_newline(term);
}

/* How well the model expected what is there. */
static void print_expected(const struct text_seen *t, struct term *term) {
    char text[200];
    int64_t n;
    const double perplexity = text_perplexity(t, &n);
    if (n == 0) return;
    snprintf(text, sizeof text,
             "Perplexity %.4g over %" PRId64 " token%s of the %s, each given %swhat is before it.",
             perplexity, n, n == 1 ? "" : "s", t->text.pair.next ? "target" : "text",
             t->text.pair.next ? "the source and " : "");
    term_wrap(term, text);
}

static void print_predictions(const struct text_seen *t, struct term *term) {
    const struct session *session = t->text.session;
    const int64_t top = look_top(t->options);
    if (t->replaced) {
        replaced_print(session, t->text.input, t->replaced, top, term);
    } else if (t->labels) {
        labels_print(session, t->labels, top, term);
    } else if (t->token_labels) {
        token_labels_print(session, t->text.input, t->token_labels, top, term);
    } else if (t->predictions.n_masks > 0) {
        predictions_print(session, &t->predictions, term);
    } else if (session->info->kind == QKV_MODEL_PAIR && !t->log_p) {
        term_wrap(term, "An encoder predicts nothing: --cross shows what its decoder looks at.");
    } else if (!session->info->has_mlm && !t->log_p) {
        term_wrap(term, "The model has no MLM head, so it predicts nothing.");
    } else if (!t->log_p) {
        return;
    }
    print_expected(t, term);
    term_newline(term);
}

void text_print(const struct seen *seen, struct term *term) {
    const struct text_seen *const t = text_of(seen);
    /* of a named head the line above its map says as much */
    if (!seen->by_name || t->findings.word >= 0) findings_print(&t->findings, term);
    print_badge(t, term);
    print_predictions(t, term);
    if (t->alignment) alignment_print(t, term);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Probabilities of the tokens that come next: of a text all but its first one, of a target all. */
static void add_expected(const struct text_seen *t, json_t *object) {
    json_t *list = json_array();
    int64_t n;
    const double perplexity = text_perplexity(t, &n);
    for (int64_t i = 0; i < n; i++) json_array_append_new(list, json_number(exp(t->log_p[i])));
    json_set(object, "expected:o perplexity:n", list, n ? perplexity : NAN);
}

void text_add_words(const struct text_seen *t, json_t *object) {
    const struct attended *text = &t->text;
    const struct session *session = text->session;
    json_set(object, "attention:s", attention_key(session, text->view.which));
    if (text->pair.next) pair_json(session, &text->pair, object);
    json_set(object, t->predictions.is_next ? "next:o" : "predictions:o",
             predictions_json(session, &t->predictions));
    if (t->log_p) add_expected(t, object);
    if (t->alignment) json_set(object, "alignment:o", alignment_json(t));
    what_if_json(&text->what_if, object);
    if (text->what_if.any) {
        json_set(object, t->before.is_next ? "next_before:o" : "predictions_before:o",
                 predictions_json(session, &t->before));
    }
    if (t->replaced)
        json_set(object, "replaced:o", json_doubles(text->input->n, t->replaced));
    else if (t->labels)
        json_set(object, "labels:o", labels_json(session, t->labels));
    else if (t->token_labels)
        token_labels_json(session, text->input, t->token_labels, look_top(t->options), object);
    else if (!session->info->has_mlm && !t->log_p)
        json_set(object, "note:s", "the model has no MLM head, so it predicts nothing");
}

void text_add_json(const struct seen *seen, bool behind, json_t *object) {
    const struct text_seen *const t = text_of(seen);
    const qkv_heads_choice *const choice = &seen->choice;
    if (!behind) {
        json_set(object, "tokens:o", tokens_json(t->text.session->tokenizer, t->text.input));
        text_add_words(t, object);
        return;
    }
    if (seen->quantity) {
        text_flow_json(t, object);
        return;
    }
    json_set(object, "sharpest:o",
             choice->key < 0
                 ? json_null()
                 : json_set(NULL, "layer:i head:i query:i key:i weight:n", choice->layer,
                            choice->head, choice->query, choice->key, (double)choice->weight));
    if (t->findings.n > 0) json_set(object, "findings:o", findings_json(t));
}
