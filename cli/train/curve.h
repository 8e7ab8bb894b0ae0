/* loss.png of a training run, from train_log.tsv, which the trainer writes and a resumed run
 * continues. */
#ifndef QKV_CLI_TRAIN_CURVE_H
#define QKV_CLI_TRAIN_CURVE_H

#include "common/args.h"
#include <qkv/train.h>

/* Writes train->out/loss.png; an exit code. */
int train_curve_write(const qkv_train_options *train, const struct cli_common *common);

#endif
