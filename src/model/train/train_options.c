/* Options of a training run: defaults, and every rule that they must keep. */
#include <math.h>

#include "model/train/trainer.h"

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
                             { "n_decoder_layers", o->n_decoder_layers, 0, 1024 },
                             { "compute", (int)o->compute, QKV_WEIGHTS_F32,
                               QKV_WEIGHTS_BF16_AMX } };
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++)
        if (ranges[r].value < ranges[r].least || ranges[r].value > ranges[r].most)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s = %lld is not between %lld and %lld",
                                  ranges[r].name, (long long)ranges[r].value,
                                  (long long)ranges[r].least, (long long)ranges[r].most);
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

/* Options that mean something for one kind of model only. Of a model to fine-tune it is not known
 * yet which that is. */
static qkv_status check_kind(const qkv_train_options *o, qkv_error *error) {
    const char *name = NULL;
    if (o->from) return QKV_OK;
    if (o->kind == QKV_MODEL_ENCODER && o->label_smoothing > 0) name = "label_smoothing";
    if (o->kind != QKV_MODEL_ENCODER && o->sinusoidal_positions) name = "sinusoidal_positions";
    if (o->kind != QKV_MODEL_PAIR && o->n_decoder_layers) name = "n_decoder_layers";
    if (!name) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is not for this kind of model", name);
}

qkv_status qkvi_train_options_check(const qkv_train_options *options, qkv_error *error) {
    if (!options->out) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "out is NULL");
    if (!options->text == !options->grammar)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "exactly one of text and grammar must be given");
    QKV_TRY(check_numbers(options, error));
    QKV_TRY(check_reals(options, error));
    return check_kind(options, error);
}
