/*
 * Findings of `qkv look`: see findings.h.
 *
 * The word is the most likely one at the [MASK] of the shown row, or the most likely next token; of
 * an encoder-decoder it is the word of the target that the row predicts. Ablation is that of
 * qkv_inspect_effects: the head gives 0, and all that depends on it is computed anew. Sentences
 * have numbers with two decimals, or two significant digits. A change below 0.005 counts as none,
 * unless it is by half.
 *
 * A token that is part of a word is named by the whole word. If it looks at another part of its own
 * word, that is no finding about the text. If no key has a weight of 1/20, the head reads none.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "look/text.h"

static const double least_change = 0.005, least_p = 0.001, least_weight = 0.05;

static bool is_change(double before, double without) {
    const double change = fabs(without - before);
    return change >= least_change || (before >= least_p && change >= before / 2);
}

/* ---- The word -------------------------------------------------------------------------------- */

/* The [MASK] of the shown row, else the first one; -1: there is none. */
static int64_t mask_of(const struct text_seen *t) {
    const struct predictions *p = &t->predictions;
    for (int64_t m = 0; m < p->n_masks; m++)
        if (p->positions[m] == t->seen.choice.query) return m;
    return p->n_masks > 0 && p->top > 0 ? 0 : -1;
}

/* Whose words it is of. */
static const qkv_tokenizer *words_of(const struct text_seen *t) {
    return t->text.pair.next ? t->text.session->target : t->text.session->tokenizer;
}

static void find_word(const struct text_seen *t, struct findings *f) {
    const struct pair *pair = &t->text.pair;
    const struct predictions *p = &t->predictions;
    const int64_t mask = mask_of(t);
    f->word = -1;
    if (pair->next && t->text.session->info->has_lm && t->seen.choice.query >= 0) {
        f->position = t->seen.choice.query;
        f->word = pair->next->ids[f->position];
    } else if (!pair->next && mask >= 0) {
        f->position = p->positions[mask];
        f->word = p->candidates[mask * p->top].id;
    }
}

/* ---- Ablations ------------------------------------------------------------------------------- */

/* Multiplications of a pass over a text, roughly, up to which one head or several are ablated. */
static const double pass_limit = 1e10, all_limit = 2e9;

/* Multiplications of linear layers over all tokens, which are most of a pass. */
static double work_of_pass(const struct attended *text) {
    const qkv_model_info *info = text->session->info;
    const double h = (double)info->hidden, n = (double)text->input->n;
    const double encoder =
        (double)info->n_layers * (4 * h * h + 2 * h * (double)info->intermediate);
    const double decoder =
        (double)info->n_decoder_layers * (8 * h * h + 2 * h * (double)info->decoder_intermediate);
    const double n_target = text->pair.next ? (double)text->pair.next->n : 0;
    return n * encoder + n_target * decoder;
}

bool ablation_quick(const struct attended *text, int64_t n) {
    const double work = work_of_pass(text);
    return n == 1 ? work <= pass_limit : work * (double)n <= all_limit;
}

qkv_effects ablation_options(const struct text_seen *t, bool is_next) {
    qkv_effects options = qkv_effects_init();
    options.which = t->text.view.which;
    options.target = t->text.pair.next ? &t->text.pair.inputs : NULL;
    options.head = is_next ? QKV_HEAD_NEXT : QKV_HEAD_MASKED;
    return options;
}

/* ln P of the word: [0] as the model is, [1 + s] without the s-th of the heads. */
static qkv_status ablate_heads(const struct text_seen *t, const struct findings *f,
                               const int64_t *heads, int64_t n, double *log_p, qkv_error *error) {
    const struct session *session = t->text.session;
    qkv_effects options = ablation_options(t, t->text.session->info->has_lm);
    options.n_places = 1;
    options.positions = &f->position;
    options.words = &f->word;
    options.n_sets = n;
    options.heads = heads;
    return qkv_inspect_effects(session->ctx, session->model, t->text.input, &options, log_p, NULL,
                               error);
}

/* What a head reads from a query. */
static qkv_status read_key(const struct text_seen *t, int64_t index, struct finding *one,
                           qkv_error *error) {
    float weight = NAN;
    const qkv_status status =
        qkv_heads_look(t->text.heads, index, one->query, &one->key, &weight, error);
    one->weight = (double)weight;
    return status;
}

/* The shown head alone, or all of them and the one that is worth most. */
static qkv_status measure_heads(const struct text_seen *t, struct findings *f, bool all,
                                qkv_error *error) {
    const int64_t n = all ? t->seen.n_heads : 1, shown_head = t->seen.head;
    int64_t *heads = calloc((size_t)n + 1, sizeof *heads), most = 0;
    double *p = calloc((size_t)n + 2, sizeof *p), *log_p = calloc((size_t)n + 2, sizeof *log_p);
    qkv_status status = heads && p && log_p ? QKV_OK : text_no_memory(error);
    for (int64_t s = 0; status == QKV_OK && s < n; s++) heads[s] = all ? s : shown_head;
    if (status == QKV_OK) status = ablate_heads(t, f, heads, n, log_p, error);
    for (int64_t s = 0; status == QKV_OK && s <= n; s++) p[s] = exp(log_p[s]);
    if (status == QKV_OK && all)
        f->log_p = log_p;
    else
        free(log_p);
    if (status == QKV_ERR_UNSUPPORTED) { /* it looks all the same */
        free(heads);
        free(p);
        return QKV_OK;
    }
    f->none = all;
    for (int64_t s = 0; status == QKV_OK && s < n; s++) {
        if (p[1 + s] < p[1 + most]) most = s;
        if (is_change(p[0], p[1 + s])) f->none = false;
    }
    const bool falls =
        status == QKV_OK && all && p[1 + most] < p[0] && is_change(p[0], p[1 + most]);
    if (status == QKV_OK) {
        f->most = falls && most == shown_head;
        f->list[0].before = p[0];
        f->list[0].without = p[1 + (all ? shown_head : 0)];
    }
    if (falls && most != shown_head) {
        struct finding *const one = &f->list[f->n++];
        *one = (struct finding){ .layer = most / t->seen.info->n_heads,
                                 .head = most % t->seen.info->n_heads,
                                 .query = f->list[0].query,
                                 .before = p[0],
                                 .without = p[1 + most] };
        if (one->query >= 0) status = read_key(t, most, one, error);
    }
    free(heads);
    free(p);
    return status;
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* The token's word, in new memory: its label, or those of all its pieces without their marks. */
static char *name_word(const qkv_token_list *list, char *const *labels, const int32_t *words,
                       int64_t at) {
    const int64_t n = list->tokens->n;
    char text[240] = "";
    int64_t first = at, end = at + 1;
    while (first > 0 && words[first - 1] == words[at]) first--;
    while (end < n && words[end] == words[at]) end++;
    if (end - first == 1) return strdup(labels[at]);
    for (int64_t i = first; i < end; i++)
        text_append(text, sizeof text, "%s",
                    labels[i] + (i > first && strncmp(labels[i], "##", 2) == 0 ? 2 : 0));
    return strdup(text);
}

/* Words of queries and of keys; of a pair queries are named by what they read and predict. */
static qkv_status words_make(const struct text_seen *t, int32_t *words[2], qkv_error *error) {
    const qkv_token_list *const lists[2] = { &t->text.view.queries, &t->text.view.keys };
    for (int i = 0; i < 2; i++) {
        words[i] = calloc((size_t)lists[i]->tokens->n + 1, sizeof *words[i]);
        if (!words[i]) return text_no_memory(error);
        qkv_inspect_words(lists[i]->tokenizer, lists[i]->tokens, words[i]);
    }
    return QKV_OK;
}

/* What a finding names: the word of its query and of its key, and whether they are one. */
static qkv_status name_places(const struct text_seen *t, struct finding *one, qkv_error *error) {
    const qkv_token_list *const queries = &t->text.view.queries, *const keys = &t->text.view.keys;
    int32_t *words[2] = { NULL, NULL };
    qkv_status status = words_make(t, words, error);
    if (status == QKV_OK && one->query >= 0)
        one->from = t->text.pair.next
                        ? strdup(t->seen.queries.names[one->query])
                        : name_word(queries, t->seen.queries.names, words[0], one->query);
    if (status == QKV_OK && one->key >= 0) {
        one->read = name_word(keys, t->seen.keys.names, words[1], one->key);
        one->own = !t->text.pair.next && one->query >= 0 && one->query != one->key &&
                   words[0][one->query] == words[1][one->key];
    }
    if (status == QKV_OK && ((one->query >= 0 && !one->from) || (one->key >= 0 && !one->read)))
        status = text_no_memory(error);
    free(words[0]);
    free(words[1]);
    return status;
}

/* ---- Sentences ------------------------------------------------------------------------------- */

enum { P_BYTES = 16 };

/* "0.42", "0.0041": two decimals, and below a tenth two digits that count. */
static const char *p_format(char text[P_BYTES], double p) {
    if (p >= 0.0995 || p == 0)
        snprintf(text, P_BYTES, "%.2f", p);
    else if (p >= 0.000995)
        snprintf(text, P_BYTES, "%.*f", p >= 0.00995 ? 3 : 4, p);
    else
        snprintf(text, P_BYTES, "%.1e", p);
    return text;
}

static const char *change_of(const struct finding *one) {
    return !is_change(one->before, one->without) ? "stays at"
           : one->without < one->before          ? "falls"
                                                 : "rises";
}

/* "P(it) falls from 1.00 to 0.42"; of what comes next, "P(next is it)". */
static void add_worth(const struct text_seen *t, const struct finding *one, const char *word,
                      bool first, char *text, size_t bytes) {
    char before[P_BYTES], without[P_BYTES];
    const bool changes = is_change(one->before, one->without);
    text_append(text, bytes, "P(%s%.60s) %s ",
                t->predictions.is_next && !t->text.pair.next ? "next is " : "", word,
                change_of(one));
    if (first && changes) text_append(text, bytes, "from %s ", p_format(before, one->before));
    text_append(text, bytes, "%s%s", changes ? "to " : "", p_format(without, one->without));
}

/* What the row is for: "To fill [MASK], ", "To say what comes next, ", "At cat, ". */
static void add_purpose(const struct text_seen *t, const struct findings *f, const char *word,
                        char *text, size_t bytes) {
    const int64_t query = t->seen.choice.query;
    const bool here = f->word >= 0 && f->position == query;
    if (t->text.pair.next && here)
        text_append(text, bytes, "To write %.60s, ", word);
    else if (here && t->predictions.is_next)
        text_append(text, bytes, "To say what comes next, ");
    else if (here && t->predictions.n_masks > 1)
        text_append(text, bytes, "To fill %.60s at token %" PRId64 ", ",
                    t->seen.queries.names[query], query);
    else if (here)
        text_append(text, bytes, "To fill %.60s, ", t->seen.queries.names[query]);
    else
        text_append(text, bytes, "At %.60s, ", f->list[0].from);
}

static bool reads_key(const struct finding *one) {
    return one->key >= 0 && !one->own && one->weight >= least_weight;
}

static bool has_worth(const struct finding *one) {
    return !isnan(one->before) && !isnan(one->without);
}

/* Is there anything to say of the shown head? If it was named, what it is worth is always said. */
static bool is_telling(const struct text_seen *t, const struct findings *f) {
    const struct finding *const one = &f->list[0];
    return reads_key(one) ||
           (has_worth(one) && (t->seen.by_name || f->none || is_change(one->before, one->without)));
}

static void say_shown(const struct text_seen *t, struct findings *f, const char *word) {
    struct finding *const one = &f->list[0];
    const size_t bytes = sizeof one->text;
    char weight[P_BYTES];
    if (reads_key(one)) {
        add_purpose(t, f, word, one->text, bytes);
        text_append(one->text, bytes, "head %" PRId64 ".%" PRId64 " reads %.60s (%s)%s", one->layer,
                    one->head, one->read, p_format(weight, one->weight),
                    has_worth(one) ? "; without it " : "");
    } else {
        text_append(one->text, bytes, "Without head %" PRId64 ".%" PRId64 " ", one->layer,
                    one->head);
    }
    if (has_worth(one)) add_worth(t, one, word, true, one->text, bytes);
    if (f->most) text_append(one->text, bytes, ", more than without any other head");
    if (f->none) text_append(one->text, bytes, ", as without any other head");
    text_append(one->text, bytes, ".");
}

static void say_worth_most(const struct text_seen *t, struct findings *f, const char *word) {
    struct finding *const one = &f->list[1];
    const size_t bytes = sizeof one->text;
    char weight[P_BYTES];
    text_append(one->text, bytes,
                "Of all %" PRId64 " heads %" PRId64 ".%" PRId64
                " is worth most for it: without it ",
                t->seen.n_heads, one->layer, one->head);
    add_worth(t, one, word, false, one->text, bytes);
    if (reads_key(one))
        text_append(one->text, bytes, ". It reads %.60s (%s)", one->read,
                    p_format(weight, one->weight));
    text_append(one->text, bytes, ".");
}

/*
 * The sentences. Where there is nothing to say of the shown head, the head that is worth most has
 * the first and only one.
 */
static qkv_status say_findings(const struct text_seen *t, struct findings *f, const char *word,
                               qkv_error *error) {
    const int n = f->n;
    qkv_status status = QKV_OK;
    for (int i = 0; i < n && status == QKV_OK; i++) status = name_places(t, &f->list[i], error);
    if (status == QKV_OK && n > 1 && !is_telling(t, f)) {
        const struct finding shown = f->list[0];
        f->list[0] = f->list[1];
        f->list[1] = shown;
        f->most = true;
        f->n = 1;
    }
    if (status == QKV_OK && !is_telling(t, f)) f->n = 0;
    if (status == QKV_OK && f->n > 0) say_shown(t, f, word);
    if (status == QKV_OK && f->n > 1) say_worth_most(t, f, word);
    for (int i = 0; i < n; i++) {
        free(f->list[i].from);
        free(f->list[i].read);
        f->list[i].from = f->list[i].read = NULL;
    }
    return status;
}

qkv_status findings_make(struct text_seen *t, qkv_error *error) {
    struct findings *const f = &t->findings;
    const qkv_heads_choice *const choice = &t->seen.choice;
    f->word = -1;
    if (t->text.what_if.any || choice->key < 0) return QKV_OK;
    f->n = 1;
    f->list[0] = (struct finding){ .layer = choice->layer,
                                   .head = choice->head,
                                   .query = choice->query,
                                   .key = choice->key,
                                   .weight = (double)choice->weight,
                                   .before = NAN,
                                   .without = NAN };
    find_word(t, f);
    char *word = NULL;
    qkv_status status = QKV_OK;
    if (f->word >= 0) {
        word = token_label(words_of(t), f->word);
        status = word ? QKV_OK : text_no_memory(error);
    }
    if (status == QKV_OK && word && ablation_quick(&t->text, 1))
        status = measure_heads(t, f, !t->seen.by_name && ablation_quick(&t->text, t->seen.n_heads),
                               error);
    if (status == QKV_OK) status = say_findings(t, f, word ? word : "", error);
    free(word);
    return status;
}

void findings_print(const struct findings *f, struct term *term) {
    for (int i = 0; i < f->n; i++) {
        char *const spelt = term->unicode ? NULL : term_spell_out(f->list[i].text);
        term_wrap_styled(term, i ? STYLE_NONE : STYLE_BOLD, spelt ? spelt : f->list[i].text);
        free(spelt);
    }
    if (f->n > 0) term_newline(term);
}

json_t *findings_json(const struct text_seen *t) {
    const struct findings *const f = &t->findings;
    json_t *const list = json_array();
    for (int i = 0; i < f->n; i++) {
        const struct finding *const one = &f->list[i];
        json_t *const object =
            json_set(NULL, "text:t layer:i head:i query:i key:i weight:n", one->text, one->layer,
                     one->head, one->query, one->key, one->weight);
        if (f->word >= 0 && !isnan(one->before))
            json_set(object, "position:i token:o probability:n without:n", f->position,
                     token_json(words_of(t), f->word), one->before, one->without);
        json_array_append_new(list, object);
    }
    return list;
}
