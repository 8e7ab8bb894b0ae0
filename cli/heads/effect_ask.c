/*
 * The request of --effect to the library: words, sets of heads, and the output of ablated heads.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/heads_list.h"
#include "common/predict.h"
#include "heads/effect.h"
#include "heads/texts.h"

/* ---- Words ----------------------------------------------------------------------------------- */

static qkv_status words_room(struct effect *effect, int64_t n, qkv_error *error) {
    effect->positions = calloc((size_t)n + 1, sizeof *effect->positions);
    effect->words = calloc((size_t)n + 1, sizeof *effect->words);
    effect->request.n_places = n;
    effect->request.positions = effect->positions;
    effect->request.words = effect->words;
    return effect->positions && effect->words ? QKV_OK : text_no_memory(error);
}

/* The token that a user means by a word; one that follows a space first. */
static qkv_status find_word(const struct effect *effect, int32_t *id, qkv_error *error) {
    const char *const word = effect->options->word;
    const int32_t n = qkv_tokenizer_size(effect->words_of);
    *id = -1;
    for (int32_t i = 0; i < n; i++) {
        char *const label = token_label(effect->words_of, i);
        if (!label) return text_no_memory(error);
        const bool same = label_is(label, word), exact = strcmp(label, word) == 0;
        free(label);
        if (same && (*id < 0 || !exact)) *id = i;
        if (same && !exact) return QKV_OK;
    }
    if (*id >= 0) return QKV_OK;
    return text_error(error, QKV_ERR_ARGUMENT,
                      "--word: '%s' is no token of the model; 'qkv tokenize' shows what it is made "
                      "of",
                      word);
}

/* What the model would say at each place, or the word that is given. */
static qkv_status best_words(struct effect *effect, int64_t last, qkv_error *error) {
    const struct session *const session = effect->session;
    struct predictions predictions = { .n_masks = 0 };
    qkv_run *run = NULL;
    qkv_status status =
        qkv_model_run(session->ctx, session->model, 1, &effect->input, 0, NULL, &run, error);
    if (status == QKV_OK)
        status = last >= 0 ? predictions_next(session, run, last, 1, &predictions, error)
                           : predictions_make(session, run, effect->input, 1, &predictions, error);
    if (status == QKV_OK) status = words_room(effect, predictions.n_masks, error);
    for (int64_t m = 0; status == QKV_OK && m < predictions.n_masks; m++) {
        effect->positions[m] = predictions.positions[m];
        effect->words[m] = predictions.candidates[m].id;
    }
    predictions_free(&predictions);
    qkv_run_free(run);
    if (status != QKV_OK || !effect->options->word) return status;
    if (effect->request.n_places > 1)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--word: the text has %" PRId64 " places for a word",
                          effect->request.n_places);
    return find_word(effect, &effect->words[0], error);
}

/* The words of the text, each given those before it. */
static qkv_status own_words(struct effect *effect, const qkv_encoding *next, int64_t skip,
                            qkv_error *error) {
    const qkv_status status = words_room(effect, next->n - skip, error);
    for (int64_t i = 0; status == QKV_OK && i < next->n - skip; i++) {
        effect->positions[i] = i;
        effect->words[i] = next->ids[i + skip];
    }
    effect->is_loss = true;
    return status;
}

/* ---- Labels of an image ---------------------------------------------------------------------- */

/* A label by its name, or by its number. */
static qkv_status find_label(const struct effect *effect, int32_t *label, qkv_error *error) {
    const struct session *const session = effect->session;
    const char *const word = effect->options->word;
    const int64_t n = session->info->n_labels;
    int64_t number;
    char room[LABEL_ROOM];
    for (int64_t c = 0; c < n; c++)
        if (strcmp(label_name(session, c, room), word) == 0) {
            *label = (int32_t)c;
            return QKV_OK;
        }
    if (number_int(word, 0, n - 1, &number)) {
        *label = (int32_t)number;
        return QKV_OK;
    }
    char *const shown = term_escape(word, strlen(word));
    text_error(error, QKV_ERR_ARGUMENT, "--word: '%.80s' is none of the %" PRId64 " labels of %s",
               shown ? shown : "", n, session->info->source);
    free(shown);
    return QKV_ERR_ARGUMENT;
}

/* The likeliest label, or the one that is given. */
static qkv_status label_words(struct effect *effect, struct text_job *job, qkv_error *error) {
    const struct session *const session = effect->session;
    double *labels = NULL;
    qkv_run *run = NULL;
    if (session->info->n_labels == 0 || session->info->label_kind == QKV_LABELS_VALUES)
        return text_error(error, QKV_ERR_UNSUPPORTED,
                          "--effect: a %s without a classifier tells no labels, and effects are on "
                          "them",
                          session->info->architecture);
    effect->request.head = QKV_HEAD_LABEL;
    effect->is_label = true;
    qkv_status status = words_room(effect, 1, error);
    effect->request.positions = NULL;
    if (status == QKV_OK && effect->options->word) {
        status = find_label(effect, effect->words, error);
        job->usage = status == QKV_ERR_ARGUMENT;
        return status;
    }
    if (status == QKV_OK)
        status =
            qkv_model_run(session->ctx, session->model, 1, &effect->input, 0, NULL, &run, error);
    if (status == QKV_OK) status = labels_make(session, run, &labels, error);
    for (int32_t c = 0; status == QKV_OK && c < session->info->n_labels; c++)
        if (labels[c] > labels[effect->words[0]]) effect->words[0] = c;
    free(labels);
    qkv_run_free(run);
    return status;
}

/* ---- What is looked at ----------------------------------------------------------------------- */

qkv_status effect_words(struct effect *effect, struct text_job *job, qkv_error *error) {
    const struct heads_options *const options = effect->options;
    if (options->image) return label_words(effect, job, error);
    const qkv_model_info *const info = effect->session->info;
    const bool pairs = info->kind == QKV_MODEL_PAIR;
    effect->request.head = info->has_lm ? QKV_HEAD_NEXT : QKV_HEAD_MASKED;
    effect->words_of = pairs ? effect->session->target : effect->session->tokenizer;
    job->usage = true; /* of what is refused here */
    if (pairs && options->word)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--word: words of an encoder-decoder are those of --target");
    if (!info->has_lm && options->loss)
        return text_error(error, QKV_ERR_UNSUPPORTED,
                          "--loss is of a language model; %s fills [MASK]", info->source);
    if (!info->has_lm && count_masks(effect->session, effect->input) == 0)
        return text_error(error, QKV_ERR_ARGUMENT, "there is no [MASK] in the text");
    if (options->loss && !pairs && effect->input->n < 2)
        return text_error(error, QKV_ERR_ARGUMENT, "--loss: one token has none before it");
    job->usage = false;
    if (pairs) return own_words(effect, effect->pair.next, 0, error);
    if (options->loss) return own_words(effect, effect->input, 1, error);
    const qkv_status status = best_words(effect, info->has_lm ? effect->input->n - 1 : -1, error);
    job->usage = status == QKV_ERR_ARGUMENT;
    return status;
}

/* ---- Sets ------------------------------------------------------------------------------------ */

int effect_check(const struct session *session, const struct heads_options *options) {
    int64_t n_layers, n_heads;
    session_sizes(session, pair_which(&options->which), &n_layers, &n_heads);
    for (int i = 0; i < options->groups.n; i++)
        if (heads_group(options->groups.list[i], n_layers, n_heads, NULL) < 0)
            return cli_usage(session->command,
                             "--group: '%s' is no list of heads L.H or layers L.*, layers 0 to "
                             "%" PRId64 ", heads 0 to %" PRId64,
                             options->groups.list[i], n_layers - 1, n_heads - 1);
    return EXIT_OK;
}

qkv_status effect_sets(struct effect *effect, qkv_error *error) {
    const struct arg_texts *const groups = &effect->options->groups;
    const int64_t n_sets = effect->n_all + groups->n;
    int64_t n = effect->n_all;
    for (int i = 0; i < groups->n; i++)
        n += heads_group(groups->list[i], effect->n_layers, effect->n_heads, NULL);
    effect->heads = calloc((size_t)n + 1, sizeof *effect->heads);
    effect->ends = calloc((size_t)n_sets + 1, sizeof *effect->ends);
    effect->sets = calloc((size_t)n_sets + 1, sizeof *effect->sets);
    effect->order = calloc((size_t)effect->n_all + 1, sizeof *effect->order);
    if (!effect->heads || !effect->ends || !effect->sets || !effect->order)
        return text_no_memory(error);
    int64_t end = 0;
    for (int64_t s = 0; s < n_sets; s++) {
        struct effect_set *const set = &effect->sets[s];
        set->heads = effect->heads + end;
        set->n = 1;
        if (s < effect->n_all)
            effect->heads[end] = s;
        else
            set->n = heads_group(groups->list[s - effect->n_all], effect->n_layers, effect->n_heads,
                                 effect->heads + end);
        effect->ends[s] = end += set->n;
    }
    effect->request.n_sets = n_sets;
    effect->request.ends = effect->ends;
    effect->request.heads = effect->heads;
    return QKV_OK;
}

/* ---- What ablated heads give ----------------------------------------------------------------- */

struct means {
    double *sums;
    int64_t n;
    qkv_attention_kind which;
};

/* Nothing is kept of a text: sums go over tokens, one after the other. */
static qkv_status add_text(void *user, const struct texts_one *one, struct text *record,
                           qkv_error *error) {
    struct means *const means = user;
    (void)record;
    means->n += means->which == QKV_SELF ? one->input->n : one->pair->inputs.n;
    return qkv_run_add_outputs(one->run, means->which, one->b, means->sums, error);
}

/* The text itself. */
static qkv_status add_own(const struct effect *effect, struct means *means, qkv_error *error) {
    const qkv_run_options options = qkv_run_options_init();
    qkv_run *run = NULL;
    qkv_status status = pair_model_run(effect->session, 1, &effect->input, &effect->pair,
                                       QKV_RUN_OUTPUTS, &options, &run, error);
    const struct texts_one one = { run, 0, 1, effect->input, &effect->pair };
    if (status == QKV_OK) status = add_text(means, &one, NULL, error);
    qkv_run_free(run);
    return status;
}

static qkv_status make_means(struct effect *effect, qkv_error *error) {
    const qkv_model_info *const info = effect->session->info;
    const bool self = effect->which == QKV_SELF;
    const int64_t width = self ? info->n_heads * info->head_dim : info->hidden;
    const int64_t n = effect->n_layers * width;
    const qkv_run_options run_options = qkv_run_options_init();
    struct means means = { calloc((size_t)n + 1, sizeof(double)), 0, effect->which };
    effect->means = calloc((size_t)n + 1, sizeof *effect->means);
    struct texts texts = { .session = effect->session,
                           .path = effect->options->reference,
                           .which = effect->which,
                           .flags = QKV_RUN_OUTPUTS,
                           .run_options = &run_options,
                           .make = add_text,
                           .user = &means };
    qkv_status status = means.sums && effect->means ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK)
        status = texts.path ? texts_read(&texts, error) : add_own(effect, &means, error);
    for (int64_t c = 0; status == QKV_OK && c < n; c++)
        effect->means[c] = (float)(means.sums[c] / (double)means.n);
    effect->n_mean = means.n;
    effect->request.means = effect->means;
    free(means.sums);
    return status;
}

/* The text of --patch, whose decoder reads the same target, or its own translation. */
static qkv_status make_source(struct effect *effect, qkv_error *error) {
    const char *const text = effect->options->patch, *const target = effect->options->which.target;
    const struct session *const session = effect->session;
    const qkv_run_options options = qkv_run_options_init();
    const struct text given = { (char *)(uintptr_t)target, target ? strlen(target) : 0 };
    const bool image = effect->options->image;
    qkv_status status = image ? session_see(session, text, NULL, &effect->source, error)
                              : qkv_tokenizer_encode(session->tokenizer, text, strlen(text), NULL,
                                                     0, &effect->source, error);
    if (status == QKV_OK && effect->which != QKV_SELF)
        status = pair_make(session, effect->source, given, &effect->source_pair, error);
    if (status != QKV_OK) return status;
    const bool self = effect->which == QKV_SELF;
    const int64_t n = self ? effect->input->n : effect->pair.inputs.n;
    const int64_t n_source = self ? effect->source->n : effect->source_pair.inputs.n;
    if (n != n_source)
        return text_error(error, QKV_ERR_SHAPE,
                          "--patch: %s has %" PRId64 " tokens and the %s %" PRId64
                          ": activations are taken token by token, so both must have as many",
                          image  ? "its image"
                          : self ? "its text"
                                 : "its target",
                          n_source, image ? "image" : "text", n);
    status =
        pair_model_run(session, 1, (const qkv_encoding *const *)&effect->source,
                       &effect->source_pair, QKV_RUN_OUTPUTS, &options, &effect->source_run, error);
    effect->request.source = effect->source_run;
    return status;
}

qkv_status effect_given(struct effect *effect, qkv_error *error) {
    if (effect->options->patch) return make_source(effect, error);
    return effect->options->ablate.value ? make_means(effect, error) : QKV_OK;
}
