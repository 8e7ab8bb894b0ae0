/*
 * Structs of other versions of the headers. Each begins with size_t struct_size, the size that the
 * caller's header had. Fields are only appended. A smaller struct is read as if the defaults
 * followed. A larger one is understood if all beyond our own fields is 0. A struct that receives
 * results is read, too, before they are computed: that finds a size that was not set.
 */
#ifndef QKVI_CORE_OPTIONS_H
#define QKVI_CORE_OPTIONS_H

#include <stdbool.h>

#include "core/status.h"

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/*
 * Copies the caller's struct `given` into `ours`, of our_bytes, and sets our struct_size. `ours`
 * holds the defaults before the call: fields beyond a smaller struct keep them. name is that of its
 * type, for messages. QKV_ERR_ARGUMENT: struct_size was not set. QKV_ERR_VERSION: the struct sets
 * what we do not know.
 */
qkv_status qkvi_options_read(void *ours, size_t our_bytes, const void *given, const char *name,
                             qkv_error *error);

/*
 * Copies `ours` into the struct_size bytes of the caller's struct; what we do not know becomes 0.
 */
void qkvi_options_write(void *given, const void *ours, size_t our_bytes);

/*
 * An array of the caller's, whose elements are element_bytes apart: what its header knew. An
 * element has no size of its own, and is read and written as a struct of that size. size_name names
 * what element_bytes was given as. Nothing is assumed of the alignment.
 */
qkv_status qkvi_element_check(size_t element_bytes, size_t our_bytes, const char *size_name,
                              qkv_error *error);
/* name is that of the array. element_bytes was checked. */
qkv_status qkvi_element_read(void *ours, size_t our_bytes, const void *array, int64_t index,
                             size_t element_bytes, const char *name, qkv_error *error);
void qkvi_element_write(void *array, int64_t index, size_t element_bytes, const void *ours,
                        size_t our_bytes);

#pragma GCC visibility pop

/*
 * Fields of a struct of options: `of` is the name of the struct, which messages put before theirs.
 */

/* QKV_ERR_ARGUMENT unless least <= value <= most. */
QKV_NODISCARD qkv_status qkvi_option_check(const char *of, const char *name, int64_t value,
                                           int64_t least, int64_t most, qkv_error *error);

/* QKV_ERR_ARGUMENT for what is set without its source. */
QKV_NODISCARD qkv_status qkvi_option_require(const char *of, bool is_set, bool has_source,
                                             const char *name, const char *source,
                                             qkv_error *error);

#endif
