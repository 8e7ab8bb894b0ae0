/* The same steps of a query as an object: see model.c. */
#include "explain/explain.h"

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
        { "concat", s->n_heads * d, s->concat },
        { "projected", hidden, s->projected },
        { "normed", hidden, s->normed },
        { "down", hidden, s->down },
        { "y", hidden, s->y },
    };
    json_t *object = json_set(
        NULL, "layer:i head:i query:i tokens:o scale:n largest:n sum:n", s->layer, s->head,
        s->query, tokens_json(t->session->tokenizer, t->input), s->scale, s->largest, s->sum);
    for (int i = 0; object && i < CLI_COUNT(rows); i++)
        json_object_set_new(object, rows[i].name, json_doubles(rows[i].n, rows[i].values));
    *json = json_set(object, "differences:o",
                     json_set(NULL, "embedded:n q:n k:n lse:n weights:n y:n", s->embedded_error,
                              s->q_error, s->k_error, s->lse_error, s->weights_error, s->y_error));
    return *json ? QKV_OK : text_no_memory(error);
}
