/*
 * What each head is worth for the likeliest label of an image: ablated, with all that follows
 * computed anew. A page has it with --effect, or if it is quick.
 */
#include <stdlib.h>
#include <string.h>

#include "common/predict.h"
#include "look/findings.h"
#include "look/image.h"
#include "sinks/page.h"
#include <qkv/effects.h>

enum { BYTES = 160 };

/* The heads of the page, each a set of its own; NULL: no memory. */
static int64_t *heads_of(const struct image_seen *t, struct page *page) {
    const int64_t n = page->desc.n_heads;
    int64_t *const heads = page_room(page, n, sizeof *heads);
    for (int64_t i = 0; heads && i < n; i++)
        heads[i] = page->heads[i].layer * t->seen.info->n_heads + page->heads[i].head;
    return heads;
}

static qkv_status describe_effects(const struct image_seen *t, int32_t label, double log_p,
                                   struct page *page, qkv_error *error) {
    char room[LABEL_ROOM];
    const char *const name = label_name(t->session, label, room);
    char *const what = page_room(page, BYTES, 1), *const word = page_room(page, BYTES, 1);
    char *const shown = term_escape(name, strlen(name));
    if (what && word && shown) {
        snprintf(word, BYTES, "%.100s", shown);
        snprintf(what, BYTES, "ln P(%.100s)", shown);
        page->desc.effect_of = what;
        page->desc.effect_word = word;
        page->desc.effect_query = -1;
        page->desc.effect_log_p = log_p;
    }
    free(shown);
    return what && word && shown ? QKV_OK : text_no_memory(error);
}

qkv_status image_effects(const struct image_seen *t, struct page *page, qkv_error *error) {
    const int64_t n = page->desc.n_heads;
    const bool must = t->options->effect;
    struct progress progress;
    int32_t label = 0;
    if (!t->labels || t->session->info->label_kind == QKV_LABELS_VALUES) {
        if (!must) return QKV_OK;
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--effect: a %s without a classifier tells no labels",
                          t->session->info->architecture);
    }
    if (!must && (t->text.what_if.any || !ablation_quick(&t->text, n))) return QKV_OK;
    for (int32_t c = 0; c < t->session->info->n_labels; c++)
        if (t->labels[c] > t->labels[label]) label = c;
    qkv_effects request = qkv_effects_init();
    request.head = QKV_HEAD_LABEL;
    request.n_places = 1;
    request.words = &label;
    request.n_sets = n;
    request.heads = heads_of(t, page);
    double *const log_p = page_room(page, n + 1, sizeof *log_p);
    if (!request.heads || !log_p) return text_no_memory(error);
    const qkv_call_options call = progress_call(&progress, "ablating", t->options->common.quiet);
    qkv_status status = qkv_inspect_effects(t->session->ctx, t->session->model, t->input, &request,
                                            log_p, &call, error);
    progress_end(&progress);
    for (int64_t h = 0; status == QKV_OK && h < n; h++)
        page->heads[h].effect = log_p[h + 1] - log_p[0];
    return status == QKV_OK ? describe_effects(t, label, log_p[0], page, error) : status;
}
