/** Lists tensors and keys of GGUF files of any architecture; reads only their headers. */
#ifndef QKVI_FILES_GGUF_LIST_H
#define QKVI_FILES_GGUF_LIST_H

#include "files/base.h"
#include "qkv/files.h"

/** See qkv_tensor_list. */
qkv_status qkvi_gguf_list_tensors(const char *name,
                                  void (*visit)(void *user, const qkv_tensor_entry *entry),
                                  void *user, qkv_error *error);

#endif
