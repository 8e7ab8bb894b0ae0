/**
 * Words and their symbols: see merges.h. merge_queue.c finds the next pair.
 *
 * A merge changes only the counts of the pairs next to it:
 *
 *     … p [a b] n …  →  … p [ab] n …    (p, a) and (b, n) lose one, (p, ab) and (ab, n) gain one
 *
 * where p is the symbol after merges further left in the word. So counts are exact at any time.
 */
#include "text/merges.h"

#include "files/utf8.h"

static const int64_t max_word_count = (int64_t)1 << 40; /* sums over 2^22 words fit */

static qkv_status reserve(qkvi_merges *merges, size_t more) {
    QKV_TRY(qkvi_reserve(&merges->sequence, &merges->sequence_capacity, merges->n_sequence + more,
                         sizeof *merges->sequence));
    return qkvi_reserve(&merges->words, &merges->words_capacity, merges->n_words + 1,
                        sizeof *merges->words);
}

qkv_status qkvi_merges_add(qkvi_merges *merges, const char *word, size_t n_bytes, int64_t count) {
    enum { MAX_MARK = 2 };
    const size_t mark_bytes = strlen(merges->mark);
    QKV_TRY(reserve(merges, n_bytes));
    const size_t begin = merges->n_sequence;
    for (size_t at = 0; at < n_bytes;) {
        char symbol[MAX_MARK + 4];
        int32_t code;
        size_t entry;
        const size_t length = qkvi_utf8_next(word + at, n_bytes - at, &code);
        const size_t skip = at == 0 ? 0 : mark_bytes;
        memcpy(symbol, merges->mark, skip);
        memcpy(symbol + skip, word + at, length);
        QKV_TRY(qkvi_counter_add(&merges->symbols, symbol, skip + length, 0, &entry));
        merges->sequence[merges->n_sequence++] = (int32_t)entry;
        at += length;
    }
    merges->words[merges->n_words++] =
        (struct qkvi_merge_word){ begin, (uint32_t)(merges->n_sequence - begin),
                                  count < max_word_count ? count : max_word_count };
    return QKV_OK;
}

/* ---- Merging --------------------------------------------------------------------------------- */

static qkv_status begin_queue(qkvi_merges *merges) {
    merges->queue = qkvi_merge_queue_create();
    if (merges->queue == NULL) return QKV_ERR_MEMORY;
    for (size_t w = 0; w < merges->n_words; w++) {
        const struct qkvi_merge_word *word = &merges->words[w];
        const int32_t *sequence = merges->sequence + word->begin;
        for (uint32_t i = 0; i + 1 < word->length; i++)
            QKV_TRY(
                qkvi_merge_queue_more(merges->queue, sequence[i], sequence[i + 1], w, word->count));
    }
    return qkvi_merge_queue_sort(merges->queue);
}

/* How many bytes the two have together, the mark of the right one dropped. */
static size_t joined_bytes(const qkvi_merges *merges, const int32_t pair[2]) {
    const qkvi_count *entries = merges->symbols.entries;
    return (size_t)entries[pair[0]].n_bytes + entries[pair[1]].n_bytes - strlen(merges->mark);
}

/* The text of a followed by that of b without its mark, as a new symbol. */
static qkv_status join(qkvi_merges *merges, const int32_t pair[2], size_t *joined) {
    const qkvi_count *a = &merges->symbols.entries[pair[0]];
    const qkvi_count *b = &merges->symbols.entries[pair[1]];
    const size_t n_bytes = joined_bytes(merges, pair), mark_bytes = strlen(merges->mark);
    char *text = qkvi_malloc_array(n_bytes, 1);
    if (text == NULL) return QKV_ERR_MEMORY;
    memcpy(text, merges->symbols.keys + a->offset, a->n_bytes);
    memcpy(text + a->n_bytes, merges->symbols.keys + b->offset + mark_bytes,
           b->n_bytes - mark_bytes);
    const qkv_status status = qkvi_counter_add(&merges->symbols, text, n_bytes, 0, joined);
    free(text);
    return status;
}

/* Merges the pair in a word, if the word still holds it, and counts its new neighbours. */
static qkv_status merge_word(qkvi_merges *merges, size_t w, const int32_t pair[2], int32_t joined) {
    struct qkvi_merge_word *const word = &merges->words[w];
    int32_t *const sequence = merges->sequence + word->begin;
    struct qkvi_merge_queue *const queue = merges->queue;
    uint32_t n = 0;
    for (uint32_t i = 0; i < word->length; i++) {
        if (i + 1 == word->length || sequence[i] != pair[0] || sequence[i + 1] != pair[1]) {
            sequence[n++] = sequence[i];
            continue;
        }
        if (n > 0) {
            qkvi_merge_queue_fewer(queue, sequence[n - 1], pair[0], word->count);
            QKV_TRY(qkvi_merge_queue_more(queue, sequence[n - 1], joined, w, word->count));
        }
        i++;
        if (i + 1 < word->length) {
            qkvi_merge_queue_fewer(queue, pair[1], sequence[i + 1], word->count);
            QKV_TRY(qkvi_merge_queue_more(queue, joined, sequence[i + 1], w, word->count));
        }
        sequence[n++] = joined;
    }
    word->length = n;
    return QKV_OK;
}

qkv_status qkvi_merges_next(qkvi_merges *merges, int64_t least, size_t max_bytes,
                            qkvi_merge *merge) {
    int32_t pair[2];
    size_t joined, w;
    *merge = (qkvi_merge){ 0 };
    if (merges->queue == NULL) QKV_TRY(begin_queue(merges));
    do {
        if (!qkvi_merge_queue_best(merges->queue, least, pair)) return QKV_OK;
    } while (joined_bytes(merges, pair) > max_bytes);
    QKV_TRY(join(merges, pair, &joined));
    while (qkvi_merge_queue_word(merges->queue, &w))
        QKV_TRY(merge_word(merges, w, pair, (int32_t)joined));
    QKV_TRY(qkvi_merge_queue_sort(merges->queue));
    const qkvi_count *const symbol = &merges->symbols.entries[joined];
    *merge = (qkvi_merge){ merges->symbols.keys + symbol->offset, symbol->n_bytes,
                           merges->symbols.entries[pair[0]].n_bytes };
    return QKV_OK;
}

void qkvi_merges_free(qkvi_merges *merges) {
    qkvi_counter_free(&merges->symbols);
    qkvi_merge_queue_free(merges->queue);
    free(merges->sequence);
    free(merges->words);
    *merges = (qkvi_merges){ 0 };
}
