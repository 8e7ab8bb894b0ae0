/* The picture of a training run's loss. */
#include "train/train.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <qkv/picture.h>

#include "common/os.h"

/* Steps and losses of DIR/train_log.tsv; its first line says what the loss is the sum of. */
static int64_t read_log(const char *path, double **steps, double **losses, const char **y_label) {
    const char *reason;
    FILE *const log = os_open_text(path, &reason);
    int64_t n = 0, room = 0;
    char line[256];
    *steps = *losses = NULL;
    *y_label = "loss";
    while (log && fgets(line, sizeof line, log)) {
        double step, loss;
        if (strstr(line, "\tmlm_loss\tnsp_loss\t")) *y_label = "loss (MLM + NSP)";
        if (sscanf(line, "%lf %lf", &step, &loss) != 2) continue;
        if (n == room) {
            room = room ? 2 * room : 256;
            double *a = realloc(*steps, (size_t)room * sizeof(double));
            if (a) *steps = a;
            double *b = a ? realloc(*losses, (size_t)room * sizeof(double)) : NULL;
            if (!b) break;
            *losses = b;
        }
        (*steps)[n] = step;
        (*losses)[n++] = loss;
    }
    if (log) fclose(log);
    return n;
}

static void print_caption(const qkv_train_options *train, char *caption, size_t n_bytes) {
    char sizes[256];
    if (train->from)
        snprintf(sizes, sizeof sizes, "from %.200s", train->from);
    else
        snprintf(sizes, sizeof sizes,
                 "%" PRId64 " layers of %" PRId64 " heads, hidden size %" PRId64, train->n_layers,
                 train->n_heads, train->hidden);
    snprintf(caption, n_bytes, "%s, batches of %" PRId64 ", learning rate %g, seed %" PRIu64, sizes,
             train->batch * train->accumulate, train->learning_rate, train->seed);
}

int train_curve_write(const qkv_train_options *train, const struct cli_common *common) {
    char log[2048], path[2048], caption[512];
    if (snprintf(log, sizeof log, "%s/train_log.tsv", train->out) >= (int)sizeof log ||
        snprintf(path, sizeof path, "%s/loss.png", train->out) >= (int)sizeof path)
        return cli_fail("%s: the path is too long", train->out);
    print_caption(train, caption, sizeof caption);
    double *steps, *losses;
    const char *y_label;
    const int64_t n = read_log(log, &steps, &losses, &y_label);
    const qkv_curve curve = {
        .struct_size = sizeof curve,
        .n = n,
        .x = steps,
        .y = losses,
        .x_label = "step",
        .y_label = y_label,
        .title = "Training loss",
        .caption = caption,
        .theme = common->theme.set ? (qkv_theme)common->theme.value : QKV_THEME_LIGHT,
    };
    qkv_error error;
    const qkv_status status = curve.n > 1 ? qkv_picture_curve_write(&curve, path, &error) : QKV_OK;
    free(steps);
    free(losses);
    return cli_status(status, &error);
}
