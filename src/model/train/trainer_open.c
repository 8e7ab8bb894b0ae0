/* Setting up a training run: corpus, vocabulary, model, optimizer, folder; and taking it down. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/status.h"
#include "model/text/vocab.h"
#include "model/train/trainer.h"

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

static qkv_model_info make_info(const qkvi_trainer *trainer) {
    const qkv_train_options *const o = trainer->options;
    return (qkv_model_info){ .architecture = "bert",
                             .source = o->out,
                             .n_layers = o->n_layers,
                             .n_heads = o->n_heads,
                             .hidden = o->hidden,
                             .embedding_size = o->hidden,
                             .head_dim = o->hidden / o->n_heads,
                             .intermediate = o->intermediate,
                             .vocab_size = qkv_tokenizer_size(trainer->tokenizer),
                             .max_len = o->max_len,
                             .n_types = 2,
                             .layer_norm_eps = 1e-12,
                             .has_mlm = 1,
                             .has_nsp = 1,
                             .has_pooler = 1,
                             .sinusoidal_positions = o->sinusoidal_positions };
}

static qkv_status make_model(qkvi_trainer *t, qkv_error *error) {
    t->info = make_info(t);
    QKV_TRY(qkvi_net_table(&t->info, &t->table, error));
    t->params = qkvi_params_arena(&t->table);
    t->grads = qkvi_params_arena(&t->table);
    t->m = qkvi_params_arena(&t->table);
    t->v = qkvi_params_arena(&t->table);
    if (!t->params || !t->grads || !t->m || !t->v)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for four times %zu parameters",
                              t->table.n_elems);
    qkvi_init_weights(t->options->seed, t->info.sinusoidal_positions, &t->table, t->params);
    QKV_TRY(qkvi_net_bind(&t->info, &t->table, t->params, QKVI_NET_FORWARD | QKVI_NET_BACKWARD,
                          &t->weights, error));
    QKV_TRY(qkvi_net_bind(&t->info, &t->table, t->grads, 0, &t->gradients, error));
    return qkvi_net_pass_create(&t->pass, error);
}

static qkv_status make_optimizer(qkvi_trainer *trainer, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    const int64_t capacity =
        options->batch > QKVI_HELD_OUT_PAIRS ? options->batch : QKVI_HELD_OUT_PAIRS;
    QKV_TRY(qkvi_adamw_make(&trainer->table, &trainer->adamw, error));
    trainer->adamw.beta1 = options->beta1;
    trainer->adamw.beta2 = options->beta2;
    trainer->adamw.eps = 1e-8;
    trainer->adamw.weight_decay = options->weight_decay;
    trainer->adamw.clip = options->clip;
    QKV_TRY(qkvi_examples_make(&trainer->examples, trainer->corpus, trainer->tokenizer,
                               options->seed, capacity, options->max_len, error));
    return qkvi_feed_make(&trainer->batch, capacity, options->max_len, error);
}

static qkv_status make_folder(const char *path, qkv_error *error) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_IO, "cannot make the folder to write: %s",
                          strerror(errno));
}

qkv_status qkvi_trainer_open(qkvi_trainer *trainer, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    if (options->text)
        QKV_TRY(qkvi_corpus_open_text(options->text, &trainer->corpus, error));
    else
        QKV_TRY(qkvi_corpus_open_grammar(options->grammar, &trainer->corpus, error));
    QKV_TRY(qkvi_corpus_fingerprint(options->text ? options->text : options->grammar,
                                    &trainer->fingerprint, error));
    QKV_TRY(make_vocabulary(trainer, error));
    QKV_TRY(make_model(trainer, error));
    QKV_TRY(make_optimizer(trainer, error));
    if (options->resume)
        QKV_TRY(qkvi_checkpoint_load(trainer, options->resume, error));
    else
        QKV_TRY(qkvi_checkpoint_none(trainer, options->out, error));
    QKV_TRY(make_folder(options->out, error));
    qkvi_checkpoint_sweep(options->out);
    if (!options->resume) qkvi_checkpoint_remove(options->out);
    qkvi_net_pack(trainer->ctx, trainer->weights);
    return QKV_OK;
}

void qkvi_trainer_close(qkvi_trainer *trainer) {
    qkvi_feed_free(&trainer->batch);
    qkvi_examples_free(&trainer->examples);
    qkvi_adamw_free(&trainer->adamw);
    qkvi_net_pass_free(trainer->pass);
    qkvi_net_free(trainer->gradients);
    qkvi_net_free(trainer->weights);
    free(trainer->params);
    free(trainer->grads);
    free(trainer->m);
    free(trainer->v);
    qkvi_params_free(&trainer->table);
    qkv_tokenizer_free(trainer->tokenizer);
    free(trainer->vocab);
    qkvi_corpus_free(trainer->corpus);
}
