/* Setting up a training run: corpus, vocabulary, model, optimizer, folder; and taking it down. */
#include <errno.h>
#include <math.h>

#include "core/os.h"
#include "core/rng.h"
#include "gguf/gguf.h"
#include "model/model_impl.h"
#include "train/trainer.h"

/* ---- Options --------------------------------------------------------------------------------- */

/* Options of a training run: defaults, and every rule that they must keep. */

enum { MIN_LEN = 5, MAX_BATCH = 1 << 16 };

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
                             { "report_every", o->report_every, 0, INT32_MAX },
                             { "kind", (int)o->kind, QKV_MODEL_ENCODER, QKV_MODEL_PAIR },
                             { "accumulate", o->accumulate, 1, MAX_BATCH },
                             { "n_slices", o->n_slices, 1, MAX_BATCH },
                             { "share_moments", o->share_moments, 0, 1 },
                             { "n_decoder_layers", o->n_decoder_layers, 0, 1024 },
                             { "n_kv_heads", o->n_kv_heads, 0, o->n_heads },
                             { "compute", (int)o->compute, QKV_WEIGHTS_F32,
                               QKV_WEIGHTS_BF16_AMX } };
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
        if (ranges[r].value < ranges[r].least || ranges[r].value > ranges[r].most)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s = %lld is not between %lld and %lld",
                                  ranges[r].name, (long long)ranges[r].value,
                                  (long long)ranges[r].least, (long long)ranges[r].most);
    if (o->n_slices > o->batch)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "n_slices = %lld is more than batch = %lld sequences",
                              (long long)o->n_slices, (long long)o->batch);
    if (o->ranks && o->ranks->n_ranks > o->n_slices)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "n_slices = %lld is less than the %d ranks: each needs a slice",
                              (long long)o->n_slices, o->ranks->n_ranks);
    if (o->hidden % o->n_heads != 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "hidden = %lld is not a multiple of n_heads = %lld",
                              (long long)o->hidden, (long long)o->n_heads);
    return QKV_OK;
}

/* From least on, or above it, and below most. */
typedef struct real_range {
    const char *name;
    double value, least, most;
    int above;
} real_range;

static qkv_status check_reals(const qkv_train_options *o, qkv_error *error) {
    const real_range ranges[] = {
        { "learning_rate", o->learning_rate, 0, 100, 1 },
        { "weight_decay", o->weight_decay, 0, INFINITY, 0 },
        { "beta1", o->beta1, 0, 1, 0 },
        { "beta2", o->beta2, 0, 1, 0 },
        { "eps", o->eps, 0, INFINITY, 1 },
        { "clip", o->clip, 0, INFINITY, 0 },
        { "dropout", o->dropout, 0, 1, 0 },
        { "label_smoothing", o->label_smoothing, 0, 1, 0 },
    };
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        const real_range *const x = &ranges[r];
        if (x->value < x->most && (x->above ? x->value > x->least : x->value >= x->least)) continue;
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s = %g is not in %c%g, %g)", x->name,
                              x->value, x->above ? '(' : '[', x->least, x->most);
    }
    return QKV_OK;
}

/* The architecture, and what is of Llama alone. */
static qkv_status check_architecture(const qkv_train_options *o, qkv_error *error) {
    static const char *const texts[] = { "bert", "gpt2", "bart" };
    const char *const usual[] = { qkvi_trains_images(o) ? "vit" : texts[0], texts[1], texts[2] };
    const bool llama = qkvi_trains_llama(o);
    if (o->architecture && !(llama && o->kind == QKV_MODEL_DECODER) &&
        strcmp(o->architecture, usual[o->kind]) != 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "architecture '%s' is none of a %s that can be trained anew",
                              QKVI_PRINTABLE(64, o->architecture), usual[o->kind]);
    if (o->n_kv_heads > 0 && !llama)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_kv_heads is not for this kind of model");
    if (o->n_kv_heads > 0 && o->n_heads % o->n_kv_heads != 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "n_heads = %lld is not a multiple of n_kv_heads = %lld",
                              (long long)o->n_heads, (long long)o->n_kv_heads);
    if (llama && o->hidden / o->n_heads % 2 != 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "hidden = %lld makes heads of %lld channels, which is odd",
                              (long long)o->hidden, (long long)(o->hidden / o->n_heads));
    return QKV_OK;
}

/* Options that mean something for one kind of model only. Of a model to fine-tune it is not known
 * yet which that is. */
static qkv_status check_kind(const qkv_train_options *o, qkv_error *error) {
    const char *name = NULL;
    if (o->from) return QKV_OK;
    const bool of_images = qkvi_trains_images(o);
    if (o->kind == QKV_MODEL_ENCODER && !of_images && o->label_smoothing > 0)
        name = "label_smoothing";
    if ((o->kind != QKV_MODEL_ENCODER || of_images) && o->sinusoidal_positions)
        name = "sinusoidal_positions";
    if (o->kind != QKV_MODEL_PAIR && o->n_decoder_layers) name = "n_decoder_layers";
    if (!name) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is not for this kind of model", name);
}

/* What is trained on: exactly one of four. */
static qkv_status check_source(const qkv_train_options *o, qkv_error *error) {
    const int n = (o->text != NULL) + (o->grammar != NULL) + (o->shapes != 0) + (o->images != NULL);
    if (n != 1)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "exactly one of text, grammar, shapes and images must be given");
    if (!qkvi_trains_images(o)) return QKV_OK;
    if (o->from || o->kind != QKV_MODEL_ENCODER)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is not for a model of images",
                              o->from ? "from" : "kind");
    if (o->patch_size < 1 || o->image_size < o->patch_size || o->image_size > 1024 ||
        o->image_size % o->patch_size != 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "image_size = %lld is not a multiple of patch_size = %lld, at most "
                              "1,024",
                              (long long)o->image_size, (long long)o->patch_size);
    return QKV_OK;
}

qkv_status qkvi_train_options_check(const qkv_train_options *options, qkv_error *error) {
    if (!options->out) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "out is NULL");
    QKV_TRY(check_source(options, error));
    QKV_TRY(check_numbers(options, error));
    QKV_TRY(check_reals(options, error));
    if (!options->from) QKV_TRY(check_architecture(options, error));
    return check_kind(options, error);
}

/* ---- First weights --------------------------------------------------------------------------- */

/*
 * First weights: see trainer.h. A sum of uniform numbers needs no logarithm, so it has the same
 * bits everywhere. Sinusoids have entries of size 1, in which words of size 0.02 would drown for
 * thousands of steps: next to them words begin with the deviation of Vaswani et al. 2017,
 * 1/sqrt(hidden).
 */

enum { PURPOSE_INIT = 0x696e6974 /* "init" */ };

static const double usual_deviation = 0.02; /* BERT's initializer_range */

/*
 * Eight 16-bit numbers, uniform in 0 … 65535, have mean 4 · 65535 and variance 8 (65536² - 1) / 12.
 */
static float normal(uint64_t seed, uint64_t index, double deviation) {
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    uint32_t words[4] = { 0, PURPOSE_INIT, (uint32_t)index, (uint32_t)(index >> 32) };
    const double scale = deviation / sqrt(8.0 * (65536.0 * 65536.0 - 1) / 12.0);
    int64_t sum = -4 * 65535;
    qkvi_philox(key, words, words);
    for (int w = 0; w < 4; w++) sum += (words[w] & 65535) + (words[w] >> 16);
    return (float)((double)sum * scale);
}

/* Of GPT-2 (Radford et al. 2019, section 2.3), and of Llama: two in each layer. */
static int is_residual(const qkvi_param *row) {
    return qkvi_ends_with(row->name, ".c_proj.weight") ||
           qkvi_ends_with(row->name, ".self_attn.o_proj.weight") ||
           qkvi_ends_with(row->name, ".mlp.down_proj.weight");
}

static double deviation_of(const qkvi_param *row, int sinusoidal, int64_t n_residual) {
    const int is_word = strcmp(row->name, "bert.embeddings.word_embeddings.weight") == 0;
    if (sinusoidal && is_word) return 1 / sqrt((double)row->shape[1]);
    return is_residual(row) ? usual_deviation / sqrt((double)n_residual) : usual_deviation;
}

void qkvi_init_weights(uint64_t seed, int sinusoidal, const qkvi_param_table *table,
                       float *params) {
    int64_t n_residual = 0;
    for (int64_t r = 0; r < table->n_rows; r++) n_residual += is_residual(&table->rows[r]);
    for (int64_t r = 0; r < table->n_rows; r++) {
        const qkvi_param *const row = &table->rows[r];
        const int is_norm = row->rank == 1 && qkvi_ends_with(row->name, ".weight");
        const double deviation = deviation_of(row, sinusoidal, n_residual);
        for (size_t i = row->offset; i < row->offset + row->n_elems; i++)
            params[i] = is_norm ? 1.0f : row->rank == 1 ? 0.0f : normal(seed, i, deviation);
    }
}

/* Of a new model. */
static qkv_model_info make_info(const qkvi_trainer *trainer) {
    const qkv_train_options *const o = trainer->options;
    qkv_model_info info = { .source = o->out,
                            .kind = o->kind,
                            .n_layers = o->n_layers,
                            .n_heads = o->n_heads,
                            .hidden = o->hidden,
                            .embedding_size = o->hidden,
                            .head_dim = o->hidden / o->n_heads,
                            .intermediate = o->intermediate,
                            .vocab_size = qkv_tokenizer_size(trainer->tokenizer),
                            .max_len = o->max_len,
                            .target_vocab_size = qkv_tokenizer_size(trainer->tokenizer),
                            .bos_id = -1,
                            .eos_id = -1,
                            .pad_id = -1,
                            .start_id = -1,
                            .activation = "gelu" };
    trainer->objective->fill_info(trainer, &info);
    return info;
}

static qkv_status make_arenas(qkvi_trainer *t, qkv_error *error) {
    const int is_new = !t->params, has_parts = t->options->accumulate > 1;
    const int has_slices = t->options->n_slices > 1;
    const size_t n_moments = t->shares_moments ? qkvi_peers_n_own(&t->ranks) : t->table.n_elems;
    if (is_new) t->params = qkvi_params_arena(&t->table);
    t->grads = qkvi_params_arena(&t->table);
    t->m = qkvi_params_zeros(n_moments);
    t->v = qkvi_params_zeros(n_moments);
    if (has_parts) t->mean = qkvi_params_arena(&t->table);
    if (has_slices) t->sum = qkvi_params_arena(&t->table);
    if (!t->params || !t->grads || !t->m || !t->v || (has_parts && !t->mean) ||
        (has_slices && !t->sum))
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for four times %zu parameters",
                              t->table.n_elems);
    if (is_new)
        qkvi_init_weights(t->options->seed, t->info.sinusoidal_positions, &t->table, t->params);
    return QKV_OK;
}

static qkv_status make_model(qkvi_trainer *t, qkv_error *error) {
    if (!t->from) t->info = make_info(t);
    QKV_TRY(qkvi_net_table(&t->info, &t->table, error));
    QKV_TRY(qkvi_peers_make(&t->ranks, t->table.n_elems, error));
    t->shares_moments = t->options->share_moments && t->ranks.size > 1;
    QKV_TRY(make_arenas(t, error));
    const unsigned form = qkvi_weights_form((qkv_model_weights)t->options->compute);
    QKV_TRY(qkvi_net_bind(&t->info, &t->table, t->params, form | QKVI_NET_BACKWARD, &t->weights,
                          error));
    QKV_TRY(qkvi_net_bind(&t->info, &t->table, t->grads, 0, &t->gradients, error));
    qkvi_net_take_buffers(t->weights, t->lm_bias, t->positions);
    return qkvi_net_pass_create(&t->pass, error);
}

static qkv_status make_optimizer(qkvi_trainer *trainer, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    const int64_t capacity =
        options->batch > QKVI_HELD_OUT_PAIRS ? options->batch : QKVI_HELD_OUT_PAIRS;
    QKV_TRY(qkvi_adamw_make(&trainer->table, &trainer->adamw, error));
    trainer->adamw.beta1 = options->beta1;
    trainer->adamw.beta2 = options->beta2;
    trainer->adamw.eps = options->eps;
    trainer->adamw.weight_decay = options->weight_decay;
    trainer->adamw.clip = options->clip;
    if (trainer->shares_moments) {
        trainer->adamw.own_begin = qkvi_peers_first(&trainer->ranks);
        trainer->adamw.own_end = trainer->adamw.own_begin + qkvi_peers_n_own(&trainer->ranks);
    }
    trainer->examples =
        (qkvi_examples){ .make = trainer->objective->example,
                         .corpus = trainer->corpus,
                         .pictures = trainer->pictures,
                         .image_side = trainer->pictures ? options->image_size : 0,
                         .tokenizer = trainer->tokenizer,
                         .target_tokenizer = trainer->target_tokenizer ? trainer->target_tokenizer
                                                                       : trainer->tokenizer,
                         .seed = options->seed,
                         .max_len = options->max_len,
                         .n_words = trainer->info.vocab_size,
                         .alone = !trainer->info.has_nsp,
                         .begin_id = (int32_t)qkvi_begin_id(&trainer->info),
                         .end_id = (int32_t)trainer->info.eos_id,
                         .start_id = (int32_t)trainer->info.start_id };
    QKV_TRY(qkvi_examples_make(&trainer->examples, capacity, error));
    QKV_TRY(qkvi_feed_make(&trainer->batch, capacity, options->max_len, error));
    if (!trainer->info.has_nsp && !trainer->pictures) trainer->batch.view.labels = NULL;
    return QKV_OK;
}

static qkv_status make_folder(const char *path, qkv_error *error) {
    char reason[128];
    if (qkvi_os_make_folder(path) == 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_IO, "cannot make the folder to write: %s",
                          qkvi_os_reason(errno, reason, sizeof reason));
}

static qkv_status open_corpus(qkvi_trainer *trainer, qkv_error *error) {
    qkv_train_options *const options = trainer->options;
    if (qkvi_trains_images(options)) {
        const int64_t side = options->image_size / options->patch_size;
        options->max_len = 1 + side * side;
        return qkvi_pictures_open(options->images, options->image_size, &trainer->pictures, error);
    }
    if (options->text)
        QKV_TRY(qkvi_corpus_open_text(options->text, &trainer->corpus, error));
    else
        QKV_TRY(qkvi_corpus_open_grammar(options->grammar, &trainer->corpus, error));
    return QKV_OK;
}

/* What is trained, and its vocabulary: a new one from the corpus, or that of another model. */
static qkv_status begin(qkvi_trainer *trainer, qkv_error *error) {
    if (trainer->options->from) QKV_TRY(qkvi_fine_tune_open(trainer, error));
    trainer->objective = qkvi_trains_images(trainer->options)
                             ? &qkvi_objective_images
                             : qkvi_objective_of(trainer->options->kind);
    QKV_TRY(open_corpus(trainer, error));
    if (trainer->objective->check) QKV_TRY(trainer->objective->check(trainer, error));
    if (trainer->from || !trainer->objective->make_vocabulary) return QKV_OK;
    return trainer->objective->make_vocabulary(trainer, error);
}

qkv_status qkvi_trainer_folder(const qkvi_trainer *trainer, qkv_error *error) {
    QKV_TRY(make_folder(trainer->options->out, error));
    qkvi_checkpoint_sweep(trainer->options->out);
    return trainer->from ? qkvi_fine_tune_sweep(trainer, error) : QKV_OK;
}

qkv_status qkvi_trainer_open(qkvi_trainer *trainer, qkv_error *error) {
    const qkv_train_options *const options = trainer->options;
    QKV_TRY(begin(trainer, error));
    QKV_TRY(make_model(trainer, error));
    QKV_TRY(make_optimizer(trainer, error));
    if (options->resume)
        QKV_TRY(qkvi_checkpoint_load(trainer, options->resume, error));
    else
        QKV_TRY(qkvi_checkpoint_none(trainer, options->out, error));
    if (trainer->is_finished) return QKV_OK;
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
    qkvi_aligned_free(trainer->params);
    qkvi_aligned_free(trainer->grads);
    qkvi_aligned_free(trainer->m);
    qkvi_aligned_free(trainer->v);
    qkvi_aligned_free(trainer->mean);
    qkvi_aligned_free(trainer->sum);
    qkvi_peers_free(&trainer->ranks);
    qkvi_aligned_free(trainer->lm_bias);
    free(trainer->log.bytes);
    for (int p = 0; p < 2; p++) qkvi_aligned_free(trainer->positions[p]);
    qkvi_params_free(&trainer->table);
    qkv_tokenizer_free(trainer->tokenizer);
    qkv_tokenizer_free(trainer->target_tokenizer);
    qkvi_bpe_vocab_free(&trainer->bpe);
    free(trainer->vocab);
    free(trainer->from);
    qkvi_gguf_close(trainer->gguf);
    qkvi_corpus_free(trainer->corpus);
    qkvi_pictures_free(trainer->pictures);
}
