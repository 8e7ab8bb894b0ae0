/* Options of a training run: defaults, and every rule that they must keep. */
#include "core/status.h"
#include "model/train/trainer.h"

enum { MIN_LEN = 5, MAX_BATCH = 1 << 16 };

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
                                    .checkpoint_every = 100,
                                    .report_every = 20,
                                    .learning_rate = 1.5e-3,
                                    .weight_decay = 0.01,
                                    .beta1 = 0.9,
                                    .beta2 = 0.98,
                                    .clip = 1,
                                    .seed = 1,
                                    .accumulate = 1 };
}

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
                             { "arch", o->arch, QKV_ARCH_BERT, QKV_ARCH_ENCDEC },
                             { "accumulate", o->accumulate, 1, MAX_BATCH },
                             { "n_decoder_layers", o->n_decoder_layers, 0, 1024 },
                             { "compute", o->compute, QKV_WEIGHTS_F32, QKV_WEIGHTS_BF16_AMX } };
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
    if (!(o->dropout >= 0 && o->dropout < 1) ||
        !(o->label_smoothing >= 0 && o->label_smoothing < 1))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "dropout = %g or label_smoothing = %g is not in [0, 1)", o->dropout,
                              o->label_smoothing);
    return QKV_OK;
}

/* Options that mean something for one architecture only. Of a model to fine-tune it is not known
 * yet which that is. */
static qkv_status check_arch(const qkv_train_options *o, qkv_error *error) {
    const char *name = NULL;
    if (o->from) return QKV_OK;
    if (o->arch == QKV_ARCH_BERT && o->label_smoothing > 0) name = "label_smoothing";
    if (o->arch != QKV_ARCH_BERT && o->sinusoidal_positions) name = "sinusoidal_positions";
    if (o->arch != QKV_ARCH_ENCDEC && o->n_decoder_layers) name = "n_decoder_layers";
    if (!name) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is not for this architecture", name);
}

qkv_status qkvi_train_options_check(const qkv_train_options *options, qkv_error *error) {
    if (!options->out) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "out is NULL");
    if (!options->text == !options->grammar)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "exactly one of text and grammar must be given");
    QKV_TRY(check_numbers(options, error));
    return check_arch(options, error);
}
