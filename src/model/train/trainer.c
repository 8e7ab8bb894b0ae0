/*
 * Training: make the vocabulary, make the model, and for each step: examples, losses and gradients, clipped AdamW, pack.
 * See trainer.h for why a run is a pure function of its options.
 */
#include "model/train/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attn/ctx.h"
#include "core/alloc.h"
#include "core/fpstate.h"
#include "core/options.h"
#include "model/text/vocab.h"
#include "model/train/progress.h"
#include "model/train/schedule.h"

enum { HELD_OUT_PAIRS = 128, MIN_LEN = 5, MAX_BATCH = 1 << 16 };

void qkv_train_options_default(qkv_train_options *options) {
    *options = (qkv_train_options){ .struct_size = sizeof *options,
                                    .n_layers = 4,
                                    .n_heads = 4,
                                    .hidden = 128,
                                    .intermediate = 512,
                                    .vocab_size = 2000,
                                    .max_len = 32,
                                    .n_steps = 3000,
                                    .batch = 128,
                                    .warmup = 200,
                                    .checkpoint_every = 500,
                                    .report_every = 20,
                                    .learning_rate = 1.5e-3,
                                    .weight_decay = 0.01,
                                    .beta1 = 0.9,
                                    .beta2 = 0.98,
                                    .clip = 1,
                                    .seed = 1 };
}

/* ---- Options ----------------------------------------------------------------------------------------------- */

typedef struct range {
    const char *name;
    int64_t value, least, most;
} range;

static qkv_status check_numbers(const qkv_train_options *o, qkv_error *error) {
    const range ranges[] = { { "n_layers", o->n_layers, 1, 1024 },
                             { "n_heads", o->n_heads, 1, 65536 },
                             { "hidden", o->hidden, 1, 65536 },
                             { "intermediate", o->intermediate, 1, 1 << 20 },
                             { "vocab_size", o->vocab_size, 16, 1 << 24 },
                             { "max_len", o->max_len, MIN_LEN, 1 << 20 },
                             { "n_steps", o->n_steps, 1, INT32_MAX },
                             { "batch", o->batch, 1, MAX_BATCH },
                             { "warmup", o->warmup, 0, INT32_MAX },
                             { "checkpoint_every", o->checkpoint_every, 0, INT32_MAX },
                             { "report_every", o->report_every, 0, INT32_MAX } };
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
        if (ranges[r].value < ranges[r].least || ranges[r].value > ranges[r].most)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s = %lld is not between %lld and %lld",
                                  ranges[r].name, (long long)ranges[r].value,
                                  (long long)ranges[r].least, (long long)ranges[r].most);
    if (o->hidden % o->n_heads != 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "hidden = %lld is not a multiple of n_heads = %lld",
                              (long long)o->hidden, (long long)o->n_heads);
    if (!(o->learning_rate > 0 && o->learning_rate < 100) || !(o->weight_decay >= 0) ||
        !(o->beta1 >= 0 && o->beta1 < 1) || !(o->beta2 >= 0 && o->beta2 < 1) || !(o->clip >= 0))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "learning_rate = %g, weight_decay = %g, beta1 = %g, beta2 = %g or "
                              "clip = %g is out of range",
                              o->learning_rate, o->weight_decay, o->beta1, o->beta2, o->clip);
    return QKV_OK;
}

static qkv_status check_options(const qkv_train_options *options, qkv_error *error) {
    if (!options->out) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "out is NULL");
    if (!options->text == !options->grammar)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "exactly one of text and grammar must be given");
    return check_numbers(options, error);
}

/* ---- Setting up -------------------------------------------------------------------------------------------- */

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
    QKV_TRY(qkvi_bert_table(&t->info, &t->table, error));
    t->params = qkvi_params_arena(&t->table);
    t->grads = qkvi_params_arena(&t->table);
    t->m = qkvi_params_arena(&t->table);
    t->v = qkvi_params_arena(&t->table);
    if (!t->params || !t->grads || !t->m || !t->v)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for four times %zu parameters",
                              t->table.n_elems);
    qkvi_init_weights(t->options->seed, t->info.sinusoidal_positions, &t->table, t->params);
    QKV_TRY(qkvi_bert_bind(&t->info, &t->table, t->params, QKVI_BERT_FORWARD | QKVI_BERT_BACKWARD,
                           &t->weights, error));
    QKV_TRY(qkvi_bert_bind(&t->info, &t->table, t->grads, 0, &t->gradients, error));
    return qkvi_bert_pass_create(&t->pass, error);
}

static qkv_status make_optimizer(qkvi_trainer *trainer, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    const int64_t capacity = options->batch > HELD_OUT_PAIRS ? options->batch : HELD_OUT_PAIRS;
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

static qkv_status set_up(qkvi_trainer *trainer, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    if (options->text)
        QKV_TRY(qkvi_corpus_open_text(options->text, &trainer->corpus, error));
    else
        QKV_TRY(qkvi_corpus_open_grammar(options->grammar, &trainer->corpus, error));
    QKV_TRY(make_vocabulary(trainer, error));
    QKV_TRY(make_model(trainer, error));
    QKV_TRY(make_optimizer(trainer, error));
    QKV_TRY(make_folder(options->out, error));
    if (options->resume) QKV_TRY(qkvi_checkpoint_load(trainer, options->resume, error));
    qkvi_bert_pack(trainer->ctx, trainer->weights);
    return QKV_OK;
}

static void tear_down(qkvi_trainer *trainer) {
    qkvi_feed_free(&trainer->batch);
    qkvi_examples_free(&trainer->examples);
    qkvi_adamw_free(&trainer->adamw);
    qkvi_bert_pass_free(trainer->pass);
    qkvi_bert_free(trainer->gradients);
    qkvi_bert_free(trainer->weights);
    free(trainer->params);
    free(trainer->grads);
    free(trainer->m);
    free(trainer->v);
    qkvi_params_free(&trainer->table);
    qkv_tokenizer_free(trainer->tokenizer);
    free(trainer->vocab);
    qkvi_corpus_free(trainer->corpus);
}

/* ---- Steps ------------------------------------------------------------------------------------------------- */

static qkv_status run_step(qkvi_trainer *t, qkvi_progress *progress, double rate,
                           qkv_error *error) {
    const int64_t n = t->options->batch;
    qkvi_bert_losses losses;
    QKV_TRY(qkvi_examples_fill(t->ctx, &t->examples, QKVI_SPLIT_TRAIN, t->step * n, n, &t->batch,
                               error));
    QKV_TRY(
        qkvi_bert_loss(t->ctx, t->weights, &t->batch.view, t->pass, t->gradients, &losses, error));
    const double norm =
        qkvi_adamw_run(t->ctx, &t->adamw, t->step + 1, rate, t->grads, t->params, t->m, t->v);
    if (!isfinite(norm))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "step %lld: the gradient is not finite; a smaller learning_rate than "
                              "%g may help",
                              (long long)t->step + 1, t->options->learning_rate);
    qkvi_bert_pack(t->ctx, t->weights);
    qkvi_progress_add(progress, &losses, t->batch.n_tokens);
    t->step++;
    return QKV_OK;
}

static qkv_status held_out_loss(qkvi_trainer *t, double *loss, qkv_error *error) {
    const int64_t pairs = qkvi_corpus_held_out_pairs(t->corpus);
    qkvi_bert_losses losses = { 0 };
    QKV_TRY(qkvi_examples_fill(t->ctx, &t->examples, QKVI_SPLIT_HELD_OUT, 0,
                               pairs < HELD_OUT_PAIRS ? pairs : HELD_OUT_PAIRS, &t->batch, error));
    if (pairs > 0)
        QKV_TRY(qkvi_bert_loss(t->ctx, t->weights, &t->batch.view, t->pass, NULL, &losses, error));
    *loss = losses.mlm + losses.nsp;
    return QKV_OK;
}

static int is_due(const qkvi_trainer *t, int64_t every) {
    return every > 0 && (t->step % every == 0 || t->step == t->options->n_steps);
}

static qkv_status run_steps(qkvi_trainer *t, qkvi_progress *progress, qkv_error *error) {
    const qkv_train_options *const o = t->options;
    while (t->step < o->n_steps) {
        const double rate = qkvi_schedule_rate(o->learning_rate, o->warmup, o->n_steps, t->step);
        qkv_status status = QKV_OK;
        double loss;
        QKV_TRY(run_step(t, progress, rate, error));
        if (is_due(t, o->report_every)) {
            QKV_TRY(held_out_loss(t, &loss, error));
            status = qkvi_progress_report(progress, t, rate, loss, error);
        }
        if (status == QKV_ERR_CANCELLED || is_due(t, o->checkpoint_every))
            QKV_TRY(qkvi_checkpoint_save(t, o->out, error));
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

static qkv_status train(qkvi_trainer *trainer, qkv_error *error) {
    qkvi_progress progress;
    QKV_TRY(set_up(trainer, error));
    QKV_TRY(qkvi_progress_begin(trainer->options->out, trainer->step, &progress, error));
    const qkv_status status = run_steps(trainer, &progress, error);
    qkvi_progress_end(&progress);
    if (status != QKV_OK) return status;
    QKV_TRY(qkvi_trainer_save(trainer, error));
    qkvi_checkpoint_remove(trainer->options->out);
    return QKV_OK;
}

qkv_status qkv_train(qkv_ctx *ctx, const qkv_train_options *options, qkv_error *error) {
    qkv_train_options own;
    if (!ctx || !options)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", ctx ? "options" : "ctx");
    QKV_TRY(qkvi_options_read(&own, sizeof own, options, "qkv_train_options", error));
    QKV_TRY(check_options(&own, error));
    qkvi_trainer trainer = { .ctx = ctx, .options = &own };
    const uint32_t saved = qkvi_fpstate_enter();
    const qkv_status status = train(&trainer, error);
    tear_down(&trainer);
    qkvi_fpstate_leave(saved);
    return status;
}
