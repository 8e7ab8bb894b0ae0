/* A head as an object. */
#ifndef QKV_CLI_COMMON_HEAD_JSON_H
#define QKV_CLI_COMMON_HEAD_JSON_H

#include <jansson.h>
#include <stdint.h>

/* {"layer", "head", "label", "entropy", ...}: what `look --json` and `heads --json` have alike. */
json_t *head_json(int64_t layer, int64_t head, const char *label, const double *numbers);

#endif
