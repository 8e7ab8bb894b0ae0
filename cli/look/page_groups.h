/* Groups of heads of a page, which are ablated together (page_groups.c). */
#ifndef QKV_CLI_LOOK_PAGE_GROUPS_H
#define QKV_CLI_LOOK_PAGE_GROUPS_H

#include "look/page_table.h"

/* Heads are layer * n_heads + head, each once. */
struct page_group {
    char name[100];
    int64_t *heads, n;
    double effect; /* of all together, in nats */
};
struct page_groups {
    struct page_group *list;
    int64_t n, n_all; /* groups, and heads of all of them */
};

/* Those of --group, of heads that the page has. */
qkv_status page_groups_make(const struct look *look, const qkv_page_head *heads, int64_t n_heads,
                            struct page_groups *groups, qkv_error *error);
void page_groups_free(struct page_groups *groups);

/* The table of their effects, beside those of their heads alone, which the page has. */
qkv_status page_groups_table(const struct look *look, const qkv_page *page,
                             const qkv_page_head *heads, const struct page_groups *groups,
                             struct page_tables *tables, qkv_error *error);

#endif
