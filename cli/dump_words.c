/* What is said about a dump: in captions, titles and labels. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "term.h"

static void add_mask(const struct dump *dump, char *text) {
    const bool moved = dump->q_offset != 0;
    if (!dump->causal && !dump->window) text_append(text, DUMP_CAPTION, ", no mask");
    if (dump->causal && !moved)
        text_append(text, DUMP_CAPTION, ", causal: query i sees keys j \u2264 i");
    if (dump->causal && moved)
        text_append(text, DUMP_CAPTION, ", causal: query i sees keys j \u2264 i %+" PRId64,
                    dump->q_offset);
    if (!dump->window) return;
    text_append(text, DUMP_CAPTION, ", window: ");
    if (dump->window_left >= 0)
        text_append(text, DUMP_CAPTION, "%" PRId64 " keys before its place, ", dump->window_left);
    else
        text_append(text, DUMP_CAPTION, "all keys before its place, ");
    if (dump->window_right >= 0)
        text_append(text, DUMP_CAPTION, "%" PRId64 " after", dump->window_right);
    else
        text_append(text, DUMP_CAPTION, "all after");
}

void dump_describe(const struct dump *dump, char text[DUMP_CAPTION]) {
    char *q = term_escape(dump->options->q, strlen(dump->options->q)),
         *k = term_escape(dump->options->k, strlen(dump->options->k));
    text[0] = '\0';
    text_append(text, DUMP_CAPTION, "Arrays %.100s and %.100s: %" PRId64, q ? q : "", k ? k : "",
                dump->n_heads);
    text_append(text, DUMP_CAPTION, dump->n_heads == 1 ? " head" : " heads");
    if (dump->n_kv_heads < dump->n_heads)
        text_append(text, DUMP_CAPTION, " (%" PRId64 " of keys)", dump->n_kv_heads);
    text_append(text, DUMP_CAPTION,
                ", %" PRId64 " quer%s, %" PRId64 " key%s, head size %" PRId64 "; scale %.6g",
                dump->n_queries, dump->n_queries == 1 ? "y" : "ies", dump->n_keys,
                dump->n_keys == 1 ? "" : "s", dump->head_dim, dump->scale);
    add_mask(dump, text);
    text_append(text, DUMP_CAPTION, ".");
    free(q);
    free(k);
}

void dump_head_name(const struct dump *dump, int64_t shown, bool capital, char text[80]) {
    const int64_t head = dump->names[shown];
    if (dump->layer >= 0)
        snprintf(text, 80, "%cayer %" PRId64 ", head %" PRId64, capital ? 'L' : 'l', dump->layer,
                 head);
    else
        snprintf(text, 80, "%cead %" PRId64, capital ? 'H' : 'h', head);
}

const char *dump_key_label(const struct dump *dump, int64_t j, int64_t tile,
                           char room[DUMP_LABEL]) {
    if (tile == 1) return dump->labels[j];
    snprintf(room, DUMP_LABEL, "%" PRId64, j);
    return room;
}

const char *dump_query_label(const struct dump *dump, int64_t i, int64_t tile,
                             char room[DUMP_LABEL]) {
    if (tile == 1 && dump->q_labels) return dump->q_labels[i];
    if (tile == 1 && dump->self) return dump->labels[i];
    snprintf(room, DUMP_LABEL, dump->self ? "%" PRId64 : "q%" PRId64, i);
    return room;
}

void dump_title(const struct dump *dump, int64_t shown, char text[DUMP_TITLE]) {
    const struct dump_head *head = &dump->heads[shown];
    char name[80], room[DUMP_LABEL];
    dump_head_name(dump, shown, true, name);
    text[0] = '\0';
    text_append(text, DUMP_TITLE, "%s", name);
    if (head->key >= 0)
        text_append(text, DUMP_TITLE, ": %.60s looks at %.60s, %.2f",
                    dump_query_label(dump, head->query, 1, room), dump->labels[head->key],
                    (double)head->weight);
}
