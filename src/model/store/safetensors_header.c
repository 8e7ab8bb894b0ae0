/* Before the JSON of a safetensors file: see safetensors_header.h. */
#include "model/store/safetensors_header.h"

#include <errno.h>

#include "model/store/safetensors.h"

enum {
    MAX_HEADER = 100000000,
    MOST_TENSORS = 10000000,
    VALUES_A_TENSOR = 16,
    BYTES_A_TENSOR = 1024
};

static const char tensors_variable[] = "QKV_MAX_TENSORS";

/* Ours, or with the variable at least what so many tensors of any shape and short names need. */
qkv_status qkvi_header_limits(qkvi_json_limits *limits, qkv_error *error) {
    const char *const text = secure_getenv(tensors_variable);
    char *end, printable[64];
    *limits = (qkvi_json_limits){ .max_bytes = (size_t)16 << 20,
                                  .max_values = 300000,
                                  .max_depth = 4,
                                  .max_array = QKVI_MAX_RANK,
                                  .raised_by = tensors_variable,
                                  .strict_ends = 1 };
    if (!text || !*text) return QKV_OK;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n < 1 || n > MOST_TENSORS)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "%s: '%s' is not a whole number from 1 to %d", tensors_variable,
                              qkvi_escape(printable, sizeof printable, text, strlen(text)),
                              MOST_TENSORS);
    const size_t bytes = (size_t)n * BYTES_A_TENSOR;
    if (n * VALUES_A_TENSOR > limits->max_values) limits->max_values = n * VALUES_A_TENSOR;
    if (bytes > limits->max_bytes) limits->max_bytes = bytes < MAX_HEADER ? bytes : MAX_HEADER;
    return QKV_OK;
}

/* What else the file may be, by its first bytes: a zip or a bare pickle, the formats of PyTorch. */
static const char *hint_of(const uint8_t bytes[8]) {
    const int is_zip = memcmp(bytes, "PK\3\4", 4) == 0;
    const int is_pickle = bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
    return is_zip || is_pickle ? "; a pickle of PyTorch? tools/bin2safetensors.py converts it" : "";
}

qkv_status qkvi_header_length(const qkvi_source *source, const qkvi_json_limits *limits,
                              uint64_t *length, qkv_error *error) {
    uint8_t bytes[8];
    *length = 0;
    if (source->n_bytes < sizeof bytes)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %llu bytes are too few for safetensors",
                              source->name, (unsigned long long)source->n_bytes);
    QKV_TRY(qkvi_source_read(source, 0, bytes, sizeof bytes, error));
    for (int b = 7; b >= 0; b--) *length = *length << 8 | bytes[b];
    const uint64_t there = source->n_bytes - sizeof bytes;
    const uint64_t most = there < MAX_HEADER ? there : MAX_HEADER;
    if (*length > most)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: header length %llu is more than %llu%s",
                              source->name, (unsigned long long)*length, (unsigned long long)most,
                              hint_of(bytes));
    if (*length > limits->max_bytes)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "%s: header length %llu, the limit is %zu (%s raises it)%s",
                              source->name, (unsigned long long)*length, limits->max_bytes,
                              limits->raised_by, hint_of(bytes));
    return QKV_OK;
}
