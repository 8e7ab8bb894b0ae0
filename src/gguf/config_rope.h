/** What the parts of config.c share, and positions in keys (config_rope.c). */
#ifndef QKVI_GGUF_CONFIG_ROPE_H
#define QKVI_GGUF_CONFIG_ROPE_H

#include "gguf/config.h"

typedef struct qkvi_gguf_making {
    const qkvi_gguf_keys *keys;
    const qkvi_gguf_parts *parts;
    qkvi_gguf_config *out;
    int64_t hidden, intermediate, max_len, rotary_dim; /* the last one of GPT-NeoX; 0: all */
    bool failed;                                       /* a field found no memory */
} qkvi_gguf_making;

enum { QKVI_GGUF_OWN = 160 };

/** "ARCH.NAME" */
const char *qkvi_gguf_own(const qkvi_gguf_making *m, const char *name, char text[QKVI_GGUF_OWN]);
/** A key of the architecture; absent: *value stays. */
qkv_status qkvi_gguf_own_int(const qkvi_gguf_making *m, const char *name, int64_t *value);
qkv_status qkvi_gguf_own_real(const qkvi_gguf_making *m, const char *name, double *value);

/** A field of config.json; takes value. */
void qkvi_gguf_put(qkvi_gguf_making *m, const char *field, json_t *value);
void qkvi_gguf_put_int(qkvi_gguf_making *m, const char *field, int64_t value);
void qkvi_gguf_put_real(qkvi_gguf_making *m, const char *field, double value);

/** rope_scaling of config.json, to be freed; NULL: null. */
qkv_status qkvi_gguf_config_scaling(qkvi_gguf_making *m, double theta, json_t **scaling);

#endif
