/*
 * BERT (Devlin et al. 2018): masked words, and whether the second sentence follows the first.
 *
 * 15 % of the tokens that are not special are targets; of these 80 % are replaced by [MASK], 10 %
 * by another token, and 10 % stay. The draw for a token is a pure function of (seed, split, index,
 * position).
 */

#include "core/rng.h"
#include "text/vocab.h"
#include "train/trainer.h"

enum { MASK_PERCENT = 15, PURPOSE_MASK = 0x6d61736b /* "mask" */, MAX_LEN = 1 << 20 };

/* ---- Examples -------------------------------------------------------------------------------- */

/* A token that the model has and that is not one of the five special ones. */
static int32_t random_token(qkvi_rng *rng, const qkv_tokenizer *tokenizer, int64_t n_words) {
    const int32_t n = qkv_tokenizer_size(tokenizer);
    const uint32_t size = (uint32_t)(n < n_words ? n : n_words);
    for (int attempt = 0; attempt < 100; attempt++) {
        const int32_t id = (int32_t)qkvi_rng_below(rng, size);
        int special = 0;
        for (int role = QKV_TOKEN_UNK; role <= QKV_TOKEN_MASK; role++)
            special |= id == qkv_tokenizer_special(tokenizer, (qkv_token_role)role);
        if (!special) return id;
    }
    return 0; /* a vocabulary of special tokens only */
}

/* Masks the token at a position, or not. The draws: told or not, how, and by what. */
static void mask_token(const qkvi_examples *examples, uint64_t index, int64_t at, int counts,
                       qkvi_example *slot) {
    qkvi_rng rng = qkvi_rng_make(examples->seed, PURPOSE_MASK, index * MAX_LEN + (uint64_t)at);
    if (qkvi_rng_below(&rng, 100) >= MASK_PERCENT) return;
    const uint32_t how = qkvi_rng_below(&rng, 10);
    if (counts) {
        slot->targets[slot->n_targets] = at;
        slot->target_ids[slot->n_targets++] = slot->ids[at];
    }
    if (how < 8)
        slot->ids[at] = qkv_tokenizer_special(examples->tokenizer, QKV_TOKEN_MASK);
    else if (how == 8)
        slot->ids[at] = random_token(&rng, examples->tokenizer, examples->n_words);
}

/* Of a model that does not predict the next sentence, a pair that does not belong together is its
 * first half. */
static void make_example(const qkvi_examples *examples, qkvi_split split, int64_t index,
                         qkvi_example *slot) {
    qkvi_pair pair;
    qkv_encoding *encoding = NULL;
    qkvi_corpus_pair(examples->corpus, split, index, examples->seed, &pair);
    const int alone = pair.b_bytes == 0 || (examples->alone && !pair.is_next);
    slot->status = qkv_tokenizer_encode(examples->tokenizer, pair.a, (size_t)pair.a_bytes,
                                        alone ? NULL : pair.b, alone ? 0 : (size_t)pair.b_bytes,
                                        &encoding, &slot->error);
    if (slot->status != QKV_OK) return;
    qkv_tokenizer_cut(NULL, encoding, examples->max_len);
    slot->n = encoding->n;
    slot->label = alone || examples->alone ? -1 : !pair.is_next;
    memcpy(slot->ids, encoding->ids, (size_t)slot->n * sizeof *slot->ids);
    memcpy(slot->types, encoding->types, (size_t)slot->n * sizeof *slot->types);
    const uint64_t number = (uint64_t)index * 2 + (split == QKVI_SPLIT_HELD_OUT);
    const int counts = pair.counts_for_mlm || examples->alone;
    for (int64_t at = 0; at < slot->n; at++)
        if (!encoding->special[at]) mask_token(examples, number, at, counts, slot);
    qkv_encoding_free(encoding);
}

/* ---- Vocabulary ------------------------------------------------------------------------------ */

static qkv_status count_words(const qkvi_corpus *corpus, qkvi_word_counts *counts,
                              qkv_error *error) {
    const int64_t n = qkvi_corpus_n_texts(corpus);
    for (int64_t i = 0; i < n; i++) {
        int64_t bytes, count;
        const char *const text = qkvi_corpus_text(corpus, i, &bytes, &count);
        QKV_TRY(qkvi_word_counts_add(counts, text, (size_t)bytes, count, error));
    }
    return QKV_OK;
}

/* A grammar's words must be single tokens, or they could not be filled into a blank. */
static qkv_status check_words_whole(const qkvi_trainer *trainer, qkv_error *error) {
    const int64_t n = qkvi_corpus_n_texts(trainer->corpus);
    char printable[64];
    int64_t n_split = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t bytes, count;
        qkv_encoding *encoding;
        const char *const text = qkvi_corpus_text(trainer->corpus, i, &bytes, &count);
        QKV_TRY(qkv_tokenizer_encode(trainer->tokenizer, text, (size_t)bytes, NULL, 0, &encoding,
                                     error));
        const int whole = encoding->n == 3; /* [CLS] word [SEP] */
        qkv_encoding_free(encoding);
        if (!whole && n_split++ == 0) qkvi_escape(printable, sizeof printable, text, (size_t)bytes);
    }
    if (n_split == 0) return QKV_OK;
    return qkvi_error_set(
        error, QKV_ERR_ARGUMENT,
        "vocab_size = %lld leaves %lld words of the grammar in pieces, '%s' first",
        (long long)trainer->options->vocab_size, (long long)n_split, printable);
}

static qkv_status make_vocabulary(qkvi_trainer *trainer, qkv_error *error) {
    qkvi_word_counts *const counts = qkvi_word_counts_create(&qkvi_bert_uncased);
    if (!counts) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to count words");
    qkv_status status = count_words(trainer->corpus, counts, error);
    if (status == QKV_OK)
        status = qkvi_wordpiece_train(counts, (int32_t)trainer->options->vocab_size,
                                      &trainer->vocab, &trainer->vocab_bytes, error);
    qkvi_word_counts_free(counts);
    if (status != QKV_OK) return status;
    QKV_TRY(qkv_tokenizer_open_memory(trainer->vocab, trainer->vocab_bytes, NULL, 0,
                                      &trainer->tokenizer, error));
    return trainer->options->grammar ? check_words_whole(trainer, error) : QKV_OK;
}

static qkv_status save_vocabulary(const qkvi_trainer *trainer, qkvi_files *files,
                                  qkv_error *error) {
    return qkvi_tokenizer_save(files, trainer->vocab, trainer->vocab_bytes, &qkvi_bert_uncased,
                               trainer->info.max_len, error);
}

/* ---------------------------------------------------------------------------------------------- */

static void fill_info(const qkvi_trainer *trainer, qkv_model_info *info) {
    info->architecture = "bert";
    info->n_types = 2;
    info->layer_norm_eps = 1e-12;
    info->has_mlm = info->has_nsp = info->has_pooler = 1;
    info->pad_id = qkv_tokenizer_special(trainer->tokenizer, QKV_TOKEN_PAD);
    info->sinusoidal_positions = trainer->options->sinusoidal_positions;
}

static const char *const losses[] = { "mlm_loss", "nsp_loss", NULL };

const qkvi_objective qkvi_objective_mlm = { .losses = losses,
                                            .example = make_example,
                                            .make_vocabulary = make_vocabulary,
                                            .save_vocabulary = save_vocabulary,
                                            .fill_info = fill_info };
