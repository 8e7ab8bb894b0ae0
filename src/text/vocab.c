/**
 * A vocabulary of a given size from counted words.
 *
 * After the special tokens and the characters come frequent words, whole: merges would spend ids on
 * pieces within these words, which greedy matching never uses. The last eighth is for pieces,
 * merged from the words that are not in the vocabulary (from all words, if all are), so that other
 * words have few tokens. ASCII letters, digits and punctuation are always in it, so that any
 * English word can be spelled, whatever the text has.
 *
 * Words are in the order of descending counts, then of ascending bytes; of equal merges the one
 * with older symbols comes first. Nothing depends on hashes or on the order of the text.
 */
#include "text/vocab.h"

#include "core/sort.h"
#include "files/utf8.h"
#include "text/merges.h"
#include "text/unicode.h"

enum {
    MAX_WORD_CHARS = 100, /* longer words are [UNK] anyway */
    PIECES_SHARE = 8,     /* one in so many is a piece */
    N_SPECIAL = 5
};

const qkvi_bert_rules qkvi_bert_uncased = { 1, 1, 1, 1, 0 };

/* ---- Counting words -------------------------------------------------------------------------- */

struct qkvi_word_counts {
    qkvi_normalizer *normalizer;
    qkvi_bert_rules rules;
    qkvi_counter words;
    int64_t weight; /* of the text being read */
};

static qkv_status count_word(void *user, const qkvi_word *word) {
    qkvi_word_counts *counts = user;
    if (word->n_chars > MAX_WORD_CHARS) return QKV_OK;
    return qkvi_counter_add(&counts->words, word->bytes, word->n_bytes, counts->weight, NULL);
}

qkvi_word_counts *qkvi_word_counts_create(const qkvi_bert_rules *rules) {
    qkvi_word_counts *counts = calloc(1, sizeof *counts);
    if (counts == NULL) return NULL;
    counts->rules = *rules;
    counts->rules.clean_text = 1; /* no NUL, no newline in a token */
    counts->normalizer = qkvi_normalizer_create(&counts->rules, MAX_WORD_CHARS, count_word, counts);
    if (counts->normalizer) return counts;
    free(counts);
    return NULL;
}

void qkvi_word_counts_free(qkvi_word_counts *counts) {
    if (counts == NULL) return;
    qkvi_normalizer_free(counts->normalizer);
    qkvi_counter_free(&counts->words);
    free(counts);
}

qkv_status qkvi_word_counts_add(qkvi_word_counts *counts, const char *text, size_t text_bytes,
                                int64_t count, qkv_error *error) {
    const size_t valid = qkvi_utf8_valid(text, text_bytes);
    if (valid < text_bytes)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "text is not valid UTF-8 at byte %zu", valid);
    if (text_bytes > UINT32_MAX)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "text has %zu bytes, the limit is %u",
                              text_bytes, UINT32_MAX);
    counts->weight = count;
    const qkv_status status = qkvi_normalize(counts->normalizer, text, 0, (uint32_t)text_bytes);
    if (status == QKV_OK) return QKV_OK;
    return qkvi_error_set(error, status, "no memory to count %zu different words", counts->words.n);
}

/* ---- Choosing tokens ------------------------------------------------------------------------- */

struct maker {
    const qkvi_word_counts *counts;
    size_t size;
    qkvi_counter tokens; /* the vocabulary, in order of ids */
};

static qkv_status add_token(struct maker *maker, const char *mark, const char *bytes, size_t n) {
    char token[2 + 4 * MAX_WORD_CHARS];
    const size_t mark_bytes = strlen(mark);
    if (maker->tokens.n >= maker->size) return QKV_OK;
    memcpy(token, mark, mark_bytes);
    memcpy(token + mark_bytes, bytes, n);
    return qkvi_counter_add(&maker->tokens, token, mark_bytes + n, 0, NULL);
}

/* Entries of a counter by count descending, then bytes ascending. */
static int by_count(const void *a, const void *b, void *user) {
    const qkvi_counter *counter = user;
    const qkvi_count *x = &counter->entries[*(const size_t *)a];
    const qkvi_count *y = &counter->entries[*(const size_t *)b];
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    const size_t common = x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes;
    const int order = memcmp(counter->keys + x->offset, counter->keys + y->offset, common);
    return order ? order : (x->n_bytes > y->n_bytes) - (x->n_bytes < y->n_bytes);
}

static size_t *sorted_entries(const qkvi_counter *counter) {
    size_t *order = qkvi_malloc_array(counter->n, sizeof *order);
    if (order == NULL) return NULL;
    for (size_t i = 0; i < counter->n; i++) order[i] = i;
    qkvi_sort(order, counter->n, sizeof *order, by_count, (void *)counter);
    return order;
}

static qkv_status count_characters(const struct maker *maker, qkvi_counter *characters) {
    const qkvi_counter *words = &maker->counts->words;
    for (char c = '!'; c <= '~'; c++) { /* ASCII first, whatever its count */
        const int upper = c >= 'A' && c <= 'Z';
        if (upper && maker->counts->rules.lowercase) continue;
        QKV_TRY(qkvi_counter_add(characters, &c, 1, INT64_MAX, NULL));
    }
    for (size_t i = 0; i < words->n; i++) {
        const qkvi_count *word = &words->entries[i];
        const char *bytes = words->keys + word->offset;
        for (size_t at = 0; at < word->n_bytes;) {
            int32_t code;
            const size_t length = qkvi_utf8_next(bytes + at, word->n_bytes - at, &code);
            QKV_TRY(qkvi_counter_add(characters, bytes + at, length, word->count, NULL));
            at += length;
        }
    }
    return QKV_OK;
}

/* Can the character stand inside a word? */
static int continues(const qkvi_bert_rules *rules, const char *bytes, size_t n) {
    int32_t code = 0;
    qkvi_utf8_next(bytes, n, &code);
    const unsigned class = qkvi_char_class(code);
    return !(class & QKVI_CHAR_PUNCTUATION) && !(rules->split_cjk && (class & QKVI_CHAR_IDEOGRAPH));
}

/* The commonest characters, in at most half of the vocabulary beyond ASCII; first all alone, then
 * all continuing. */
static qkv_status add_characters(struct maker *maker, const qkvi_counter *characters,
                                 const size_t *order) {
    const size_t limit = maker->size / 4;
    size_t n = 0;
    while (n < characters->n && (n < limit || characters->entries[order[n]].count == INT64_MAX))
        n++;
    for (int inside = 0; inside < 2; inside++) {
        for (size_t i = 0; i < n; i++) {
            const qkvi_count *entry = &characters->entries[order[i]];
            const char *bytes = characters->keys + entry->offset;
            if (inside && !continues(&maker->counts->rules, bytes, entry->n_bytes)) continue;
            QKV_TRY(add_token(maker, inside ? "##" : "", bytes, entry->n_bytes));
        }
    }
    return QKV_OK;
}

static qkv_status add_alphabet(struct maker *maker) {
    qkvi_counter characters = { 0 };
    size_t *order = NULL;
    qkv_status status = count_characters(maker, &characters);
    if (status == QKV_OK) order = sorted_entries(&characters);
    if (status == QKV_OK && order == NULL) status = QKV_ERR_MEMORY;
    if (status == QKV_OK) status = add_characters(maker, &characters, order);
    free(order);
    qkvi_counter_free(&characters);
    return status;
}

/* Whole words by frequency, until the share of the pieces begins; into it only those that must be
 * whole. */
static qkv_status add_words(struct maker *maker, const size_t *order) {
    const qkvi_counter *words = &maker->counts->words;
    const size_t last = maker->size - (maker->size - maker->tokens.n) / PIECES_SHARE;
    for (size_t i = 0; i < words->n; i++) {
        const qkvi_count *word = &words->entries[order[i]];
        if (maker->tokens.n >= last && word->count < QKVI_WHOLE_WORD_COUNT) break;
        QKV_TRY(add_token(maker, "", words->keys + word->offset, word->n_bytes));
    }
    return QKV_OK;
}

/* Gives the merges the words that are no tokens, or all words. */
static qkv_status fill_merges(const struct maker *maker, const size_t *order, int all,
                              qkvi_merges *merges) {
    const qkvi_counter *words = &maker->counts->words;
    for (size_t i = 0; i < words->n; i++) {
        const qkvi_count *word = &words->entries[order[i]];
        const char *bytes = words->keys + word->offset;
        if (!all && qkvi_counter_find(&maker->tokens, bytes, word->n_bytes)) continue;
        QKV_TRY(qkvi_merges_add(merges, bytes, word->n_bytes, word->count));
    }
    return QKV_OK;
}

static qkv_status add_pieces(struct maker *maker, const size_t *order) {
    qkvi_merges merges = { .mark = "##" };
    qkv_status status = fill_merges(maker, order, 0, &merges);
    if (status == QKV_OK && merges.n_words == 0) status = fill_merges(maker, order, 1, &merges);
    while (status == QKV_OK && maker->tokens.n < maker->size) {
        qkvi_merge merge;
        status = qkvi_merges_next(&merges, 1, SIZE_MAX, &merge);
        if (status != QKV_OK || merge.text == NULL) break;
        status = add_token(maker, "", merge.text, merge.n_bytes);
    }
    qkvi_merges_free(&merges);
    return status;
}

static qkv_status choose(struct maker *maker) {
    static const char *const special[N_SPECIAL] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" };
    for (int i = 0; i < N_SPECIAL; i++) {
        QKV_TRY(add_token(maker, "", special[i], strlen(special[i])));
    }
    QKV_TRY(add_alphabet(maker));
    size_t *order = sorted_entries(&maker->counts->words);
    if (order == NULL) return QKV_ERR_MEMORY;
    qkv_status status = add_words(maker, order);
    if (status == QKV_OK) status = add_pieces(maker, order);
    free(order);
    return status;
}

static qkv_status write_lines(const qkvi_counter *tokens, char **vocab, size_t *vocab_bytes) {
    char *at = qkvi_malloc_array(tokens->keys_bytes + tokens->n, 1);
    if (at == NULL) return QKV_ERR_MEMORY;
    *vocab = at;
    *vocab_bytes = tokens->keys_bytes + tokens->n;
    for (size_t i = 0; i < tokens->n; i++) {
        memcpy(at, tokens->keys + tokens->entries[i].offset, tokens->entries[i].n_bytes);
        at += tokens->entries[i].n_bytes;
        *at++ = '\n';
    }
    return QKV_OK;
}

qkv_status qkvi_wordpiece_train(const qkvi_word_counts *counts, int32_t size, char **vocab,
                                size_t *vocab_bytes, qkv_error *error) {
    /* 5 special tokens, 32 punctuation marks, digits and letters alone and inside a word */
    const int32_t least = N_SPECIAL + 32 + 2 * (counts->rules.lowercase ? 36 : 62);
    *vocab = NULL;
    if (size < least)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "vocab_size = %d is less than the %d tokens of ASCII", size, least);
    struct maker maker = { .counts = counts, .size = (size_t)size };
    qkv_status status = choose(&maker);
    if (status == QKV_OK) status = write_lines(&maker.tokens, vocab, vocab_bytes);
    qkvi_counter_free(&maker.tokens);
    if (status == QKV_OK) return QKV_OK;
    return qkvi_error_set(error, status, "no memory for a vocabulary of %d tokens", size);
}
