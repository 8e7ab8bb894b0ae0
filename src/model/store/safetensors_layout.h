/**
 * All tensors of a safetensors file together: in the order of their offsets each begins where the
 * last one ended, the first at 0, each is as long as its shape and type say, and the data ends
 * where the last one does. Two readers of such a file cannot see two files, and nothing hides
 * between the tensors.
 */
#ifndef QKVI_STORE_SAFETENSORS_LAYOUT_H
#define QKVI_STORE_SAFETENSORS_LAYOUT_H

#include "model/store/safetensors.h"

typedef struct qkvi_layout_fault {
    const char *rule;          /* "hole" */
    const qkvi_stored *tensor; /* NULL: the data as a whole */
    uint64_t offset;           /* in the data: where it shows */
    const char *text;
} qkvi_layout_fault;

/**
 * Sorts the tensors by their offsets, which count from the start of the data, and calls visit for
 * each fault until it returns something other than QKV_OK, which is returned.
 */
qkv_status qkvi_check_layout(qkvi_stored *tensors, int64_t n_tensors, uint64_t data_bytes,
                             qkv_status (*visit)(void *user, const qkvi_layout_fault *fault),
                             void *user);

#endif
