/**
 * Byte-pair merging (Sennrich et al. 2016, algorithm 1) on symbols that carry WordPiece's
 * continuation mark.
 *
 * The counts of all pairs are kept; a merge walks all words and recounts those that hold the pair.
 * That is O(text) a merge, with a small constant, and needs no queue.
 */
#include "model/text/merges.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/text/unicode.h"

enum { MARK_BYTES = 2 }; /* "##" */

static const int64_t max_word_count = (int64_t)1 << 40; /* sums over 2^22 words fit */

static qkv_status reserve(qkvi_merges *merges, size_t more) {
    size_t capacity = merges->sequence_capacity ? merges->sequence_capacity : 1024;
    while (capacity - merges->n_sequence < more) capacity *= 2;
    if (capacity > merges->sequence_capacity) {
        int32_t *grown = qkvi_realloc_array(merges->sequence, capacity, sizeof *grown);
        if (grown == NULL) return QKV_ERR_MEMORY;
        merges->sequence = grown;
        merges->sequence_capacity = capacity;
    }
    if (merges->n_words == merges->words_capacity) {
        const size_t n = merges->words_capacity ? 2 * merges->words_capacity : 256;
        struct qkvi_merge_word *grown = qkvi_realloc_array(merges->words, n, sizeof *grown);
        if (grown == NULL) return QKV_ERR_MEMORY;
        merges->words = grown;
        merges->words_capacity = n;
    }
    return QKV_OK;
}

qkv_status qkvi_merges_add(qkvi_merges *merges, const char *word, size_t n_bytes, int64_t count) {
    QKV_TRY(reserve(merges, n_bytes));
    const size_t begin = merges->n_sequence;
    for (size_t at = 0; at < n_bytes;) {
        char symbol[MARK_BYTES + 4] = "##";
        int32_t code;
        size_t entry;
        const size_t length = qkvi_utf8_next(word + at, n_bytes - at, &code);
        memcpy(symbol + MARK_BYTES, word + at, length);
        const size_t skip = at == 0 ? MARK_BYTES : 0;
        QKV_TRY(qkvi_counter_add(&merges->symbols, symbol + skip, MARK_BYTES + length - skip, 0,
                                 &entry));
        merges->sequence[merges->n_sequence++] = (int32_t)entry;
        at += length;
    }
    merges->words[merges->n_words++] =
        (struct qkvi_merge_word){ begin, (uint32_t)(merges->n_sequence - begin),
                                  count < max_word_count ? count : max_word_count };
    return QKV_OK;
}

/* Adds (sign 1) or takes back (sign -1) the pairs of a word. */
static qkv_status count_word(qkvi_merges *merges, const struct qkvi_merge_word *word, int sign) {
    for (uint32_t i = 0; i + 1 < word->length; i++) {
        const int32_t *pair = merges->sequence + word->begin + i;
        QKV_TRY(qkvi_counter_add(&merges->pairs, pair, 2 * sizeof *pair, sign * word->count, NULL));
    }
    return QKV_OK;
}

static int best_pair(const qkvi_merges *merges, int32_t pair[2]) {
    int64_t best = 0;
    for (size_t i = 0; i < merges->pairs.n; i++) {
        const qkvi_count *entry = &merges->pairs.entries[i];
        if (entry->count <= 0 || entry->count < best) continue;
        int32_t key[2];
        memcpy(key, merges->pairs.keys + entry->offset, sizeof key);
        const int older = key[0] < pair[0] || (key[0] == pair[0] && key[1] < pair[1]);
        if (entry->count > best || older) memcpy(pair, key, sizeof key);
        best = entry->count;
    }
    return best > 0;
}

/* The text of a followed by that of b without its mark, as a new symbol. */
static qkv_status join(qkvi_merges *merges, const int32_t pair[2], size_t *joined) {
    const qkvi_count *a = &merges->symbols.entries[pair[0]];
    const qkvi_count *b = &merges->symbols.entries[pair[1]];
    const size_t b_bytes = b->n_bytes - MARK_BYTES;
    char *text = qkvi_malloc_array(a->n_bytes + b_bytes, 1);
    if (text == NULL) return QKV_ERR_MEMORY;
    memcpy(text, merges->symbols.keys + a->offset, a->n_bytes);
    memcpy(text + a->n_bytes, merges->symbols.keys + b->offset + MARK_BYTES, b_bytes);
    const qkv_status status =
        qkvi_counter_add(&merges->symbols, text, a->n_bytes + b_bytes, 0, joined);
    free(text);
    return status;
}

static int holds(const int32_t *sequence, uint32_t length, const int32_t pair[2]) {
    for (uint32_t i = 0; i + 1 < length; i++) {
        if (sequence[i] == pair[0] && sequence[i + 1] == pair[1]) return 1;
    }
    return 0;
}

static uint32_t replace(int32_t *sequence, uint32_t length, const int32_t pair[2], int32_t joined) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < length; i++) {
        const int match = i + 1 < length && sequence[i] == pair[0] && sequence[i + 1] == pair[1];
        sequence[n++] = match ? joined : sequence[i];
        i += (uint32_t)match;
    }
    return n;
}

qkv_status qkvi_merges_next(qkvi_merges *merges, const char **symbol, size_t *n_bytes) {
    int32_t pair[2] = { 0, 0 };
    size_t joined;
    *symbol = NULL;
    for (size_t w = 0; w < merges->n_words && !merges->counted; w++) {
        QKV_TRY(count_word(merges, &merges->words[w], 1));
    }
    merges->counted = 1;
    if (!best_pair(merges, pair)) return QKV_OK;
    QKV_TRY(join(merges, pair, &joined));
    for (size_t w = 0; w < merges->n_words; w++) {
        struct qkvi_merge_word *word = &merges->words[w];
        int32_t *sequence = merges->sequence + word->begin;
        if (!holds(sequence, word->length, pair)) continue;
        QKV_TRY(count_word(merges, word, -1));
        word->length = replace(sequence, word->length, pair, (int32_t)joined);
        QKV_TRY(count_word(merges, word, 1));
    }
    *symbol = merges->symbols.keys + merges->symbols.entries[joined].offset;
    *n_bytes = merges->symbols.entries[joined].n_bytes;
    return QKV_OK;
}

void qkvi_merges_free(qkvi_merges *merges) {
    qkvi_counter_free(&merges->symbols);
    qkvi_counter_free(&merges->pairs);
    free(merges->sequence);
    free(merges->words);
    *merges = (qkvi_merges){ 0 };
}
