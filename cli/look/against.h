/*
 * `qkv look --against MODEL`: the heads of two models of the same shape on one text, each compared with
 * the head in its place: a base model and what was made of it.
 */
#ifndef QKV_CLI_LOOK_AGAINST_H
#define QKV_CLI_LOOK_AGAINST_H

#include "common/ranked.h"
#include "look/text.h"

/* How far a head is from the one in its place. */
struct distance {
    double mean;     /* Jensen-Shannon divergence of its rows, in nats */
    int64_t n_rows;  /* that have one */
    int64_t query;   /* of the largest divergence; -1: none */
    double largest;  /* that one */
    int64_t keys[2]; /* what it looks at most, in each model */
    float weights[2];
};

struct against {
    const struct look_options *options;
    struct text_seen *of[2]; /* A and B */
    struct distance *list;   /* [n_all] */
    struct ranked *order;    /* from the farthest head */
    int64_t n_layers, n_heads, n_all, n_shown;
};

/* On a terminal, as an object, and as a picture of all heads or of one (against_show.c). */
void against_print(const struct against *a);
json_t *against_json(const struct against *a);
qkv_status against_picture(const struct against *a, const char *path, qkv_error *error);
/* A page of the heads of both (against_page.c). */
qkv_status against_page(const struct against *a, const char *path, qkv_error *error);

/* "A is …, B is …", without an end; what a distance is; what a model is called. */
void against_models(const struct against *a, struct caption *caption);
extern const char against_what[];
static inline const char *against_source(const struct against *a, int m) {
    return a->of[m]->text.session->info->source;
}

/* Answers one text, by a second session. */
qkv_status look_against(struct text_job *job, const struct session *other,
                        const qkv_encoding *input, const struct what_if *what_if, json_t **json,
                        qkv_error *error);

#endif
