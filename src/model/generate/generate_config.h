/* generation_config.json: a parser of untrusted bytes. qkv/generate.h says what it gives. */
#ifndef QKVI_GENERATE_CONFIG_H
#define QKVI_GENERATE_CONFIG_H

#include "qkv/generate.h"

/* file is for messages. */
qkv_status qkvi_generate_config_parse(const char *file, const void *bytes, size_t n_bytes,
                                      qkv_generate_options **options, qkv_error *error);

#endif
