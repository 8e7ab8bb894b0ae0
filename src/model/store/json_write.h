/** Files of JSON that we write. */
#ifndef QKVI_STORE_JSON_WRITE_H
#define QKVI_STORE_JSON_WRITE_H

#include <jansson.h>

#include "model/store/file.h"

/** Adds a file of JSON. Takes root, which may be NULL for want of memory: MEMORY; IO. */
QKV_NODISCARD qkv_status qkvi_files_add_json(qkvi_files *files, const char *name, json_t *root,
                                             qkv_error *error);

#endif
