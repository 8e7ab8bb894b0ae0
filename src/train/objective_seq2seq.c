/*
 * BART, Marian (Lewis et al. 2019; Vaswani et al. 2017) predict each token of a target from its
 * source and from the tokens before it (teacher forcing).
 *
 *     encoder   the encoded source:                             <s> a1 … an </s>
 *     decoder   start, then the target without its last token:  </s> <s> b1 … bm
 *     targets   the encoded target:                             <s> b1 … bm </s>
 *
 * as transformers trains them. A line of a text is a source, a TAB and a target.
 */

#include "model/arch/family.h"
#include "train/trainer.h"

static qkv_status encode(const qkvi_examples *examples, const qkv_tokenizer *tokenizer,
                         const char *text, int64_t n_bytes, qkv_encoding **encoding,
                         qkv_error *error) {
    QKV_TRY(qkv_tokenizer_encode(tokenizer, text, (size_t)n_bytes, NULL, 0, encoding, error));
    qkv_tokenizer_cut(NULL, *encoding, examples->max_len);
    return QKV_OK;
}

static void make_example(const qkvi_examples *examples, qkvi_split split, int64_t index,
                         qkvi_example *slot) {
    qkvi_pair pair;
    qkv_encoding *source = NULL, *target = NULL;
    qkvi_corpus_translation(examples->corpus, split, index, examples->seed, &pair);
    slot->status =
        encode(examples, examples->tokenizer, pair.a, pair.a_bytes, &source, &slot->error);
    if (slot->status == QKV_OK)
        slot->status = encode(examples, examples->target_tokenizer, pair.b, pair.b_bytes, &target,
                              &slot->error);
    if (slot->status == QKV_OK) {
        slot->n = source->n;
        memcpy(slot->ids, source->ids, (size_t)source->n * sizeof *slot->ids);
        memset(slot->types, 0, (size_t)source->n);
        slot->n_decoder = slot->n_targets = target->n;
        for (int64_t i = 0; i < target->n; i++) {
            slot->decoder_ids[i] = i == 0 ? examples->start_id : target->ids[i - 1];
            slot->targets[i] = i;
            slot->target_ids[i] = target->ids[i];
        }
    }
    qkv_encoding_free(source);
    qkv_encoding_free(target);
}

static qkv_status check(const qkvi_trainer *trainer, qkv_error *error) {
    const char *const path = trainer->options->text;
    qkv_error cause;
    const qkv_status status = qkvi_corpus_check_translations(trainer->corpus, &cause);
    if (status == QKV_OK || !path)
        return status ? qkvi_error_set(error, status, "%s", cause.message) : QKV_OK;
    return qkvi_error_set(error, status, "%s: %s", QKVI_PRINTABLE(QKVI_NAME_BYTES, path),
                          cause.message);
}

static qkv_status count_both(const qkvi_trainer *trainer, qkvi_counter *words, qkv_error *error) {
    const int64_t n = qkvi_corpus_n_texts(trainer->corpus);
    for (int64_t i = 0; i < n; i++) {
        qkvi_pair pair;
        qkvi_corpus_translation(trainer->corpus, QKVI_SPLIT_HELD_OUT, i, 0, &pair);
        QKV_TRY(qkvi_bpe_count(words, pair.a, (size_t)pair.a_bytes, 1, error));
        QKV_TRY(qkvi_bpe_count(words, pair.b, (size_t)pair.b_bytes, 1, error));
    }
    return QKV_OK;
}

static qkv_status make_vocabulary(qkvi_trainer *trainer, qkv_error *error) {
    return qkvi_bpe_vocabulary_make(trainer, &qkvi_bpe_bart, count_both, error);
}

static void fill_info(const qkvi_trainer *trainer, qkv_model_info *info) {
    const qkv_train_options *const o = trainer->options;
    info->architecture = "bart";
    info->layer_norm_eps = 1e-5;
    info->has_lm = 1;
    info->first_position = qkvi_family_of("bart")->first_position;
    info->n_decoder_layers = o->n_decoder_layers ? o->n_decoder_layers : o->n_layers;
    info->n_decoder_heads = o->n_heads;
    info->decoder_intermediate = o->intermediate;
    info->bos_id = qkvi_bpe_vocabulary_id(trainer, qkvi_bpe_bart.bos);
    info->eos_id = info->start_id = qkvi_bpe_vocabulary_id(trainer, qkvi_bpe_bart.eos);
    info->pad_id = qkvi_bpe_vocabulary_id(trainer, qkvi_bpe_bart.pad);
}

static const char *const losses[] = { NULL }; /* one: it has no name */

const qkvi_objective qkvi_objective_seq2seq = { .losses = losses,
                                                .example = make_example,
                                                .check = check,
                                                .make_vocabulary = make_vocabulary,
                                                .save_vocabulary = qkvi_bpe_vocabulary_save,
                                                .fill_info = fill_info };
