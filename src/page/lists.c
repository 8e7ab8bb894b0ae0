/** Copying the lists of a page: see parts.h. */
#include "page/parts.h"

#include "core/options.h"
#include "files/base.h"
#include "page/head.h"

enum { MOST = 1 << 16 /* qkv/page.h says so of heads and texts */ };

typedef struct list {
    const void *given;
    int64_t n;
    size_t given_bytes, our_bytes;
    const char *name, *size_name;
} list;

static qkv_status copy(const list *l, void **own, qkv_error *error) {
    *own = NULL;
    if (!l->given || l->n < 1 || l->n > MOST) return QKV_OK;
    QKV_TRY(qkvi_element_check(l->given_bytes, l->our_bytes, l->size_name, error));
    *own = qkvi_calloc_array((size_t)l->n, l->our_bytes);
    if (!*own) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for %s", l->name);
    for (int64_t i = 0; i < l->n; i++)
        QKV_TRY(qkvi_element_read((char *)*own + (size_t)i * l->our_bytes, l->our_bytes, l->given,
                                  i, l->given_bytes, l->name, error));
    return QKV_OK;
}

static qkv_status copy_texts(const qkv_page *page, const qkv_page_text *given, int64_t n,
                             const char *name, qkv_page_text **own, qkv_error *error) {
    const list texts = { given, n, page->text_bytes, sizeof *given, name, "text_bytes" };
    void *copied;
    const qkv_status status = copy(&texts, &copied, error);
    *own = copied;
    return status;
}

static qkv_status copy_tables(const qkv_page *page, qkv_page_table **own, qkv_error *error) {
    const list tables = { page->tables, page->n_tables, page->table_bytes,
                          sizeof **own, "tables",       "table_bytes" };
    void *copied;
    const qkv_status status = copy(&tables, &copied, error);
    *own = copied;
    return status;
}

qkv_status qkvi_page_lists_read(qkv_page *page, qkvi_page_lists *lists, qkv_error *error) {
    const list heads = { page->heads,         page->n_heads, page->head_bytes,
                         sizeof *page->heads, "heads",       "head_bytes" };
    void *copied;
    *lists = (qkvi_page_lists){ NULL, NULL, NULL, NULL };
    const qkv_status status = copy(&heads, &copied, error);
    lists->heads = copied;
    QKV_TRY(status);
    QKV_TRY(copy_texts(page, page->texts, page->n_texts, "runs", &lists->texts, error));
    QKV_TRY(copy_texts(page, page->queries, 1, "queries", &lists->queries, error));
    QKV_TRY(copy_tables(page, &lists->tables, error));
    if (lists->heads) page->heads = lists->heads;
    if (lists->texts) page->texts = lists->texts;
    if (lists->queries) page->queries = lists->queries;
    if (lists->tables) page->tables = lists->tables;
    return QKV_OK;
}

void qkvi_page_lists_free(qkvi_page_lists *lists) {
    free(lists->heads);
    free(lists->texts);
    free(lists->queries);
    free(lists->tables);
}

/* Places of the largest of many numbers: where to go in a long text. */

static int ascending(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int qkvi_page_largest(const float *values, int64_t n, int most, int64_t *places) {
    int count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(values[i] > 0) || (count == most && !(values[i] > values[places[most - 1]])))
            continue;
        int at = count < most ? count++ : most - 1;
        for (; at > 0 && values[i] > values[places[at - 1]]; at--) places[at] = places[at - 1];
        places[at] = i;
    }
    qsort(places, (size_t)count, sizeof *places, ascending);
    return count;
}
