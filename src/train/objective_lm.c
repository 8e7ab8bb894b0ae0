/*
 * GPT-2 (Radford et al. 2019), Llama and its relatives predict each token of a document from the
 * tokens before it.
 *
 *     <|endoftext|> t1 t2 … tn <|endoftext|>, cut after max_len + 1 tokens: all but the last are
 *     inputs, and the target of each is the token after it
 *
 * A document is a line of a text, or a sequence of sentences of a grammar.
 */

#include "train/trainer.h"

/*
 * A grammar's tokens are mostly words: so many bytes for each seldom leave a sequence short. What
 * it says in so many documents makes its vocabulary.
 */
enum { BYTES_PER_TOKEN = 8, VOCABULARY_DOCUMENTS = 2000, VOCABULARY_BYTES = 500 };

/* The next token of a document; every token but the first is a target. */
static void push(qkvi_example *slot, int64_t max_len, int32_t id) {
    if (slot->n > 0 && slot->n_targets < slot->n) {
        slot->targets[slot->n_targets] = slot->n - 1;
        slot->target_ids[slot->n_targets++] = id;
    }
    if (slot->n < max_len) slot->ids[slot->n++] = id;
}

static void take_ids(const qkvi_examples *examples, const qkv_encoding *encoding,
                     qkvi_example *slot) {
    int64_t from = 0, end = encoding->n;
    while (from < end && encoding->special[from]) from++; /* what stands around is ours to add */
    while (end > from && encoding->special[end - 1]) end--;
    push(slot, examples->max_len, examples->begin_id);
    for (int64_t i = from; i < end && slot->n_targets < examples->max_len; i++)
        push(slot, examples->max_len, encoding->ids[i]);
    if (slot->n_targets < slot->n) { /* it was not cut: it ends */
        slot->targets[slot->n_targets] = slot->n - 1;
        slot->target_ids[slot->n_targets++] = examples->end_id;
    }
    memset(slot->types, 0, (size_t)slot->n);
}

static void make_example(const qkvi_examples *examples, qkvi_split split, int64_t index,
                         qkvi_example *slot) {
    qkvi_growing text = { 0 };
    qkv_encoding *encoding = NULL;
    slot->status = qkvi_corpus_document(examples->corpus, split, index, examples->seed,
                                        BYTES_PER_TOKEN * examples->max_len, &text, &slot->error);
    if (slot->status == QKV_OK)
        slot->status = qkv_tokenizer_encode(examples->tokenizer, text.bytes, text.n, NULL, 0,
                                            &encoding, &slot->error);
    free(text.bytes);
    if (slot->status != QKV_OK) return;
    take_ids(examples, encoding, slot);
    qkv_encoding_free(encoding);
}

static qkv_status count_documents(const qkvi_trainer *trainer, qkvi_counter *words,
                                  qkv_error *error) {
    const qkvi_corpus *const corpus = trainer->corpus;
    const int is_text = trainer->options->text != NULL;
    const int64_t n = is_text ? qkvi_corpus_n_texts(corpus) : VOCABULARY_DOCUMENTS;
    qkvi_growing said = { 0 };
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < n && status == QKV_OK; i++) {
        int64_t bytes, count = 1;
        said.n = 0;
        const char *text = is_text ? qkvi_corpus_text(corpus, i, &bytes, &count) : NULL;
        if (!is_text) {
            status = qkvi_corpus_document(corpus, QKVI_SPLIT_TRAIN, i, trainer->options->seed,
                                          VOCABULARY_BYTES, &said, error);
            text = said.bytes;
            bytes = (int64_t)said.n;
        }
        if (status == QKV_OK) status = qkvi_bpe_count(words, text, (size_t)bytes, count, error);
    }
    free(said.bytes);
    return status;
}

static qkv_status make_vocabulary(qkvi_trainer *trainer, qkv_error *error) {
    return qkvi_bpe_vocabulary_make(trainer, &qkvi_bpe_gpt2, count_documents, error);
}

static void fill_llama(const qkvi_trainer *trainer, qkv_model_info *info) {
    const int64_t n_kv_heads = trainer->options->n_kv_heads;
    info->architecture = "llama";
    info->layer_norm_eps = 1e-6;
    info->activation = "silu";
    info->n_kv_heads = n_kv_heads > 0 ? n_kv_heads : info->n_heads;
    info->window_left = info->window_right = -1;
    info->rotary_dim = info->head_dim;
    info->rms_norm = 1;
    info->rope[0] = info->rope[1] = (qkv_rope){ .type = QKV_ROPE_DEFAULT,
                                                .theta = 10000,
                                                .factor = 1,
                                                .original_len = (double)info->max_len,
                                                .attention_factor = 1 };
}

static void fill_info(const qkvi_trainer *trainer, qkv_model_info *info) {
    info->architecture = "gpt2";
    info->layer_norm_eps = 1e-5;
    info->has_lm = 1;
    info->activation = "gelu_tanh";
    info->bos_id = info->eos_id = qkvi_bpe_vocabulary_id(trainer, qkvi_bpe_gpt2.eos);
    if (qkvi_trains_llama(trainer->options)) fill_llama(trainer, info);
}

static const char *const losses[] = { NULL }; /* one: it has no name */

const qkvi_objective qkvi_objective_lm = { .losses = losses,
                                           .example = make_example,
                                           .make_vocabulary = make_vocabulary,
                                           .save_vocabulary = qkvi_bpe_vocabulary_save,
                                           .fill_info = fill_info };
