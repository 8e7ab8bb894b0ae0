/* What groups of heads are worth together, beside the sum of what they are worth alone. */
#include "look/page_groups.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/heads_group.h"

void page_groups_free(struct page_groups *groups) {
    for (int64_t g = 0; groups->list && g < groups->n; g++) free(groups->list[g].heads);
    free(groups->list);
}

/* The next group, with room for `most` heads; NULL: no memory. */
static struct page_group *add_group(struct page_groups *groups, int64_t most) {
    struct page_group *const group = &groups->list[groups->n++];
    group->heads = calloc((size_t)most + 1, sizeof *group->heads);
    return group->heads ? group : NULL;
}

static int64_t index_of(const struct look *look, const qkv_page_head *head) {
    return head->layer * look_info(look)->n_heads + head->head;
}

/* Where the page has a head; -1: nowhere. */
static int64_t place_of(const struct look *look, const qkv_page_head *heads, int64_t n_heads,
                        int64_t index) {
    for (int64_t h = 0; h < n_heads; h++)
        if (index_of(look, &heads[h]) == index) return h;
    return -1;
}

/* One of --group: each head once, and each of them in the page. */
static qkv_status take_given(const struct look *look, const char *text, const qkv_page_head *heads,
                             int64_t n_heads, struct page_groups *groups, qkv_error *error) {
    const int64_t n_layers = look_info(look)->n_layers, across = look_info(look)->n_heads,
                  n = heads_group(text, n_layers, across, NULL);
    if (n < 0)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--group: '%s' is none of layers, labels and all, and no list of heads "
                          "L.H or layers L.*, layers 0 to %" PRId64 ", heads 0 to %" PRId64,
                          text, n_layers - 1, across - 1);
    struct page_group *const group = add_group(groups, n);
    if (!group) return text_no_memory(error);
    text_append(group->name, sizeof group->name, "%.96s", text);
    heads_group(text, n_layers, across, group->heads);
    for (int64_t i = 0; i < n; i++) {
        const int64_t head = group->heads[i];
        bool again = false;
        for (int64_t j = 0; j < group->n; j++) again |= group->heads[j] == head;
        if (!again) group->heads[group->n++] = head;
        if (place_of(look, heads, n_heads, head) < 0)
            return text_error(error, QKV_ERR_ARGUMENT,
                              "--group: head %" PRId64 ".%" PRId64 " of '%s' is not in the page",
                              head / across, head % across, text);
    }
    return QKV_OK;
}

/* Heads of a layer, or with a label; those with layer -1 and without a label are all. */
static qkv_status take_alike(const struct look *look, int64_t layer, const char *label,
                             const qkv_page_head *heads, int64_t n_heads,
                             struct page_groups *groups, qkv_error *error) {
    struct page_group *const group = add_group(groups, n_heads);
    if (!group) return text_no_memory(error);
    for (int64_t h = 0; h < n_heads; h++)
        if ((layer < 0 || heads[h].layer == layer) &&
            (!label || (heads[h].label && strcmp(heads[h].label, label) == 0)))
            group->heads[group->n++] = index_of(look, &heads[h]);
    if (layer >= 0)
        text_append(group->name, sizeof group->name, "layer %" PRId64, layer);
    else
        text_append(group->name, sizeof group->name, label ? "label %.80s" : "%.80s",
                    label ? label : "all heads");
    if (group->n < 2) { /* it is no group */
        free(group->heads);
        *group = (struct page_group){ .n = 0 };
        groups->n--;
    }
    return QKV_OK;
}

static bool has_label_before(const qkv_page_head *heads, int64_t h) {
    for (int64_t before = 0; before < h; before++)
        if (heads[before].label && strcmp(heads[before].label, heads[h].label) == 0) return true;
    return false;
}

/* Each layer, each label, or all: those with several heads in the page. */
static qkv_status take_kind(const struct look *look, const char *kind, const qkv_page_head *heads,
                            int64_t n_heads, struct page_groups *groups, qkv_error *error) {
    const int64_t n_layers = *kind == 'a' ? 0 : look_info(look)->n_layers;
    const bool labels = strcmp(kind, "labels") == 0;
    qkv_status status = QKV_OK;
    if (*kind == 'a') return take_alike(look, -1, NULL, heads, n_heads, groups, error);
    for (int64_t layer = 0; !labels && layer < n_layers && status == QKV_OK; layer++)
        status = take_alike(look, layer, NULL, heads, n_heads, groups, error);
    for (int64_t h = 0; labels && h < n_heads && status == QKV_OK; h++)
        if (heads[h].label && *heads[h].label && !has_label_before(heads, h))
            status = take_alike(look, -1, heads[h].label, heads, n_heads, groups, error);
    return status;
}

static bool is_kind(const char *text) {
    return strcmp(text, "layers") == 0 || strcmp(text, "labels") == 0 || strcmp(text, "all") == 0;
}

qkv_status page_groups_make(const struct look *look, const qkv_page_head *heads, int64_t n_heads,
                            struct page_groups *groups, qkv_error *error) {
    const struct arg_texts *const given = &look->options->groups;
    const int64_t most = look_info(look)->n_layers + n_heads + 1; /* of one --group */
    qkv_status status = QKV_OK;
    groups->list = calloc((size_t)(given->n * most) + 1, sizeof *groups->list);
    if (!groups->list) return text_no_memory(error);
    for (int g = 0; g < given->n && status == QKV_OK; g++)
        status = (is_kind(given->list[g]) ? take_kind : take_given)(look, given->list[g], heads,
                                                                    n_heads, groups, error);
    for (int64_t g = 0; g < groups->n; g++) groups->n_all += groups->list[g].n;
    return status;
}

qkv_status page_groups_table(const struct look *look, const qkv_page *page,
                             const qkv_page_head *heads, const struct page_groups *groups,
                             struct page_tables *tables, qkv_error *error) {
    enum { HEADS, SUM, TOGETHER, P, N };
    static const char *const names[N] = { "heads", "sum", "together", "P" };
    if (groups->n == 0) return QKV_OK;
    struct page_table *const table =
        page_table_add(tables, groups->n, N, TABLE_CELLS | TABLE_VALUES, error);
    if (!table) return QKV_ERR_MEMORY;
    text_append(table->name, sizeof table->name, "What groups of heads are worth");
    caption_add(&table->caption,
                "together: by how much %s changes if all heads of the group give 0, in nats; below "
                "0 they help. sum: the same of each head alone, added. Heads can replace each "
                "other, and then the sum is nearer to 0. P: its probability without the group; "
                "%.4f by the whole model.",
                page->effect_of, exp(page->effect_log_p));
    table->corner = "group";
    table->value_name = "nats";
    table->is_signed = true;
    for (int c = 0; c < N; c++) table->cols[c] = page_table_text("%s", names[c]);
    for (int64_t g = 0; g < groups->n; g++) {
        const struct page_group *const group = &groups->list[g];
        char **const cells = table->cells + g * N;
        double *const values = table->values + g * N;
        double sum = 0;
        for (int64_t i = 0; i < group->n; i++)
            sum += heads[place_of(look, heads, page->n_heads, group->heads[i])].effect;
        values[SUM] = sum;
        values[TOGETHER] = group->effect;
        table->rows[g] = page_table_text("%s", group->name);
        cells[HEADS] = page_table_text("%" PRId64, group->n);
        cells[SUM] = page_table_text("%+.4f", sum);
        cells[TOGETHER] = page_table_text("%+.4f", group->effect);
        cells[P] = page_table_text("%.4f", exp(page->effect_log_p + group->effect));
    }
    return QKV_OK;
}
