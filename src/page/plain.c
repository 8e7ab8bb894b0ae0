/** The page for readers without scripts: for each of the first queries its three strongest keys. */
#include <math.h>

#include "model/store/encode.h"
#include "page/mask.h"
#include "page/parts.h"

enum { TOP = 3 };

struct best {
    int64_t key[TOP];
    double weight[TOP];
};

/* In order of weight; of equal weights the earlier key. */
static void keep(struct best *best, int64_t j, double p) {
    int at = TOP;
    while (at > 0 && (best->key[at - 1] < 0 || p > best->weight[at - 1])) at--;
    for (int r = TOP - 1; r > at; r--) {
        best->key[r] = best->key[r - 1];
        best->weight[r] = best->weight[r - 1];
    }
    if (at == TOP) return;
    best->key[at] = j;
    best->weight[at] = p;
}

static struct best best_of(const qkv_page *page, const qkv_page_head *head, int64_t i) {
    struct best best = { .key = { -1, -1, -1 } };
    int64_t first, end;
    qkvi_page_visible(page, i, &first, &end);
    for (int64_t j = first; j < end && head->lse[i] > -INFINITY; j++) {
        if (qkvi_page_hidden(page, head, i, j)) continue;
        double dot = 0;
        for (int64_t c = 0; c < page->head_dim; c++)
            dot +=
                (double)head->q[i * page->head_dim + c] * (double)head->k[j * page->head_dim + c];
        keep(&best, j, exp(qkvi_page_score(page, head, i, j, dot) - (double)head->lse[i]));
    }
    return best;
}

void qkvi_page_add_shown(qkvi_bytes *file, const char *text) {
    char *const shown = qkvi_shown(text);
    if (shown == NULL)
        file->failed = 1;
    else
        qkvi_markup_add(file, shown, strlen(shown));
    free(shown);
}

static void add_row(qkvi_bytes *file, const qkv_page *page, int64_t i) {
    const struct best best = best_of(page, &page->heads[0], i);
    qkvi_bytes_text(file, "<tr><th scope=\"row\"><bdi>");
    qkvi_page_add_shown(file, qkvi_page_queries(page).tokens[i]);
    qkvi_bytes_text(file, "</bdi></th>");
    for (int r = 0; r < TOP && best.key[r] >= 0; r++) {
        char number[32];
        qkvi_number(number, sizeof number, best.weight[r], 3);
        qkvi_bytes_text(file, "<td><bdi>");
        qkvi_page_add_shown(file, page->tokens[best.key[r]]);
        qkvi_bytes_text(file, "</bdi> ");
        qkvi_bytes_text(file, number);
        qkvi_bytes_text(file, "</td>");
    }
    qkvi_bytes_text(file, "</tr>\n");
}

void qkvi_page_add_plain(qkvi_bytes *file, const qkv_page *page, const qkvi_page_measure *measure) {
    qkvi_bytes_text(file, "<noscript><h1>");
    qkvi_page_add_shown(file, page->title ? page->title : "Attention");
    qkvi_bytes_text(file, "</h1><p>");
    qkvi_page_add_shown(file, page->modified ? page->modified : page->caption);
    qkvi_bytes_text(file, "</p><p>Without scripts: layer ");
    qkvi_json_int(file, page->heads[0].layer);
    qkvi_bytes_text(file, ", head ");
    qkvi_json_int(file, page->heads[0].head);
    qkvi_bytes_text(file, ", counted from 0.</p>\n");
    qkvi_page_add_drawing(file, page, measure);
    qkvi_bytes_text(file, "<p>The strongest keys of the first queries:</p>\n<table>\n");
    for (int64_t i = 0; i < page->n_queries && i < QKVI_PAGE_PLAIN_ROWS; i++)
        add_row(file, page, i);
    qkvi_bytes_text(file, "</table></noscript>\n");
}
