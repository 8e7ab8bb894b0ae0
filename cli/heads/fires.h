/* `qkv heads --file F --fires L.H`: the texts on which a head has its largest weights. */
#ifndef QKV_CLI_HEADS_FIRES_H
#define QKV_CLI_HEADS_FIRES_H

#include "heads/heads.h"

/* Refuses --fires without a head of the model. Returns an exit code. */
int fires_check(const struct session *session, const struct heads_options *options);
/* Reads the file, and shows the texts. Returns an exit code. */
int fires_answer(const struct heads_job *job);

#endif
