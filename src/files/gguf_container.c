/*
 * Reading the container of a GGUF file: see gguf_container.h. A header does not say how long it is:
 * it is read part by part, and each part must be within the file.
 */
#include "files/gguf_container.h"

#include <inttypes.h>

enum {
    MAX_HEADER = 256 << 20, /* the largest published ones have 20 MB, most of it merges */
    MAX_KEYS = 65536,
    MAX_TENSORS = 65536,
    MAX_KEY_NAME = 65535,
    MAX_TENSOR_NAME = 63,
    FIRST_BYTES = 1 << 16,
    LEAST_KEY = 8 + 1 + 4 + 1,          /* of a name of one byte, a value of one */
    LEAST_INFO = 8 + 1 + 4 + 8 + 4 + 8, /* of a name of one byte, one dimension */
    DEFAULT_ALIGNMENT = 32,
    MAX_ALIGNMENT = 1 << 20
};

/* A file while its header is read. */
typedef struct reading {
    qkvi_gguf_file *file;
    uint64_t at;
    qkv_error *error;
} reading;

#define FAIL(r, status, ...)                                                                       \
    qkvi_file_fail((r)->error, (status), (r)->file->source.name, __VA_ARGS__)

/* ---- Bytes ----------------------------------------------------------------------------------- */

static qkv_status grow_header(reading *r, uint64_t end) {
    qkvi_gguf_file *const file = r->file;
    const uint64_t all = file->source.n_bytes;
    uint64_t wanted = file->n_header ? 2 * (uint64_t)file->n_header : FIRST_BYTES;
    if (wanted < end) wanted = end;
    if (wanted > all) wanted = all;
    uint8_t *const larger = realloc(file->header, (size_t)wanted + 1);
    if (!larger) return FAIL(r, QKV_ERR_MEMORY, "no memory for its header");
    file->header = larger;
    const size_t had = file->n_header;
    file->n_header = (size_t)wanted;
    larger[wanted] = 0; /* a copy of its last string never looks further */
    return qkvi_source_read(&file->source, had, larger + had, (size_t)wanted - had, r->error);
}

/* The next n bytes are in header. what: for messages. */
static qkv_status need(reading *r, uint64_t n, const char *what) {
    const uint64_t left = r->file->source.n_bytes - r->at;
    if (n > left)
        return FAIL(r, QKV_ERR_FORMAT,
                    "%s at byte %" PRIu64 " has %" PRIu64
                    " bytes, and the file ends after %" PRIu64,
                    what, r->at, n, left);
    if (r->at + n > MAX_HEADER)
        return FAIL(r, QKV_ERR_LIMIT, "its keys and names have more than %d bytes, the limit",
                    MAX_HEADER);
    return r->at + n <= r->file->n_header ? QKV_OK : grow_header(r, r->at + n);
}

static uint64_t number_at(const uint8_t *at, int n_bytes) {
    uint64_t value = 0;
    for (int i = 0; i < n_bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static qkv_status take(reading *r, int n_bytes, const char *what, uint64_t *value) {
    QKV_TRY(need(r, (uint64_t)n_bytes, what));
    *value = number_at(r->file->header + r->at, n_bytes);
    r->at += (uint64_t)n_bytes;
    return QKV_OK;
}

/* A string that is passed by. */
static qkv_status skip_text(reading *r, const char *what) {
    uint64_t n;
    QKV_TRY(take(r, 8, what, &n));
    QKV_TRY(need(r, n, what));
    r->at += n;
    return QKV_OK;
}

qkvi_gguf_text qkvi_gguf_text_at(const qkvi_gguf_file *file, uint64_t *at) {
    const uint64_t n = number_at(file->header + *at, 8);
    const qkvi_gguf_text text = { (const char *)file->header + *at + 8, (size_t)n };
    *at += 8 + n;
    return text;
}

/* A name, copied: from 1 to most bytes, none of them NUL. */
static qkv_status take_name(reading *r, const char *what, uint64_t most, char **name) {
    uint64_t at = r->at;
    QKV_TRY(skip_text(r, what));
    const qkvi_gguf_text text = qkvi_gguf_text_at(r->file, &at);
    if (text.n == 0 || text.n > most)
        return FAIL(r, QKV_ERR_FORMAT, "%s at byte %" PRIu64 " has %zu bytes, not 1 to %" PRIu64,
                    what, at - text.n, text.n, most);
    if (memchr(text.bytes, '\0', text.n))
        return FAIL(r, QKV_ERR_FORMAT, "%s '%s' holds a NUL", what,
                    QKVI_PRINTABLE_BYTES(160, text.bytes, text.n));
    *name = strndup(text.bytes, text.n);
    return *name ? QKV_OK : FAIL(r, QKV_ERR_MEMORY, "no memory for its names");
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int n_bytes; /* 0: of no fixed size */
} kinds[QKVI_GGUF_N_KINDS] = { { "u8", 1 },     { "i8", 1 },    { "u16", 2 }, { "i16", 2 },
                               { "u32", 4 },    { "i32", 4 },   { "f32", 4 }, { "bool", 1 },
                               { "string", 0 }, { "array", 0 }, { "u64", 8 }, { "i64", 8 },
                               { "f64", 8 } };

const char *qkvi_gguf_kind_name(qkvi_gguf_kind kind) { return kinds[kind].name; }

static qkv_status take_kind(reading *r, const char *name, qkvi_gguf_kind *kind) {
    uint64_t value;
    QKV_TRY(take(r, 4, "a type", &value));
    if (value >= QKVI_GGUF_N_KINDS)
        return FAIL(r, QKV_ERR_FORMAT, "key '%s' has the type %" PRIu64 ", which is none",
                    QKVI_PRINTABLE(160, name), value);
    *kind = (qkvi_gguf_kind)value;
    return QKV_OK;
}

static qkv_status take_array(reading *r, qkvi_gguf_key *key) {
    QKV_TRY(take_kind(r, key->name, &key->kind));
    if (key->kind == QKVI_GGUF_ARRAY_VALUE)
        return FAIL(r, QKV_ERR_UNSUPPORTED, "key '%s' is an array of arrays",
                    QKVI_PRINTABLE(160, key->name));
    QKV_TRY(take(r, 8, "the length of an array", &key->count));
    const uint64_t least = kinds[key->kind].n_bytes ? (uint64_t)kinds[key->kind].n_bytes : 8;
    if (key->count > (r->file->source.n_bytes - r->at) / least)
        return FAIL(r, QKV_ERR_FORMAT,
                    "key '%s' has %" PRIu64 " elements, more than the file has bytes for",
                    QKVI_PRINTABLE(160, key->name), key->count);
    key->is_array = true;
    return QKV_OK;
}

/* The elements are passed by; strings one by one. */
static qkv_status skip_values(reading *r, const qkvi_gguf_key *key) {
    const uint64_t width = (uint64_t)kinds[key->kind].n_bytes;
    if (width) {
        QKV_TRY(need(r, key->count * width, "a value"));
        r->at += key->count * width;
    }
    for (uint64_t i = 0; !width && i < key->count; i++) QKV_TRY(skip_text(r, "a string"));
    return QKV_OK;
}

static qkv_status take_key(reading *r, qkvi_gguf_key *key) {
    key->count = 1;
    QKV_TRY(take_name(r, "the name of a key", MAX_KEY_NAME, &key->name));
    QKV_TRY(take_kind(r, key->name, &key->kind));
    if (key->kind == QKVI_GGUF_ARRAY_VALUE) QKV_TRY(take_array(r, key));
    key->at = r->at;
    return skip_values(r, key);
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static qkv_status refuse_tensor(const reading *r, const qkvi_gguf_tensor *tensor, qkv_status status,
                                const char *rule) {
    return FAIL(r, status, "tensor '%s' %s", QKVI_PRINTABLE(160, tensor->name), rule);
}

/* ne[0] runs fastest: the shape is turned around. */
static qkv_status take_shape(reading *r, qkvi_gguf_tensor *tensor) {
    char rule[120];
    uint64_t rank;
    QKV_TRY(take(r, 4, "the number of dimensions", &rank));
    if (rank < 1 || rank > QKVI_GGUF_MAX_RANK) {
        snprintf(rule, sizeof rule, "has %" PRIu64 " dimensions, not 1 to %d", rank,
                 QKVI_GGUF_MAX_RANK);
        return refuse_tensor(r, tensor, QKV_ERR_FORMAT, rule);
    }
    tensor->rank = (int)rank;
    tensor->n_elems = 1;
    for (int d = tensor->rank - 1; d >= 0; d--) {
        uint64_t n;
        QKV_TRY(take(r, 8, "a dimension", &n));
        if (n == 0) return refuse_tensor(r, tensor, QKV_ERR_FORMAT, "has a dimension of 0");
        if (n > INT64_MAX / tensor->n_elems)
            return refuse_tensor(r, tensor, QKV_ERR_FORMAT,
                                 "has more elements than 63 bits can count");
        tensor->shape[d] = (int64_t)n;
        tensor->n_elems *= n;
    }
    return QKV_OK;
}

static qkv_status take_type(reading *r, qkvi_gguf_tensor *tensor) {
    char rule[120];
    uint64_t id;
    QKV_TRY(take(r, 4, "the type of a tensor", &id));
    tensor->type = qkvi_gguf_type_of((uint32_t)id);
    if (!tensor->type) {
        snprintf(rule, sizeof rule, "is of type %" PRIu64 ", which is not known", id);
        return refuse_tensor(r, tensor, QKV_ERR_UNSUPPORTED, rule);
    }
    const uint64_t block = (uint64_t)tensor->type->n_elems, width = (uint64_t)tensor->type->n_bytes;
    const int64_t row = tensor->shape[tensor->rank - 1];
    if ((uint64_t)row % block) {
        snprintf(rule, sizeof rule,
                 "is of type %s, and its rows of %" PRId64 " are no multiple of %" PRIu64,
                 tensor->type->name, row, block);
        return refuse_tensor(r, tensor, QKV_ERR_FORMAT, rule);
    }
    const uint64_t n_blocks = tensor->n_elems / block;
    if (n_blocks > r->file->source.n_bytes / width)
        return refuse_tensor(r, tensor, QKV_ERR_FORMAT, "has more bytes than the file");
    tensor->n_bytes = n_blocks * width;
    return QKV_OK;
}

static qkv_status take_info(reading *r, qkvi_gguf_tensor *tensor) {
    QKV_TRY(take_name(r, "the name of a tensor", MAX_TENSOR_NAME, &tensor->name));
    QKV_TRY(take_shape(r, tensor));
    QKV_TRY(take_type(r, tensor));
    return take(r, 8, "the place of a tensor", &tensor->begin);
}

/* ---- All together ---------------------------------------------------------------------------- */

static int by_key(const void *left, const void *right) {
    return strcmp(((const qkvi_gguf_key *)left)->name, ((const qkvi_gguf_key *)right)->name);
}

static int by_tensor(const void *left, const void *right) {
    return strcmp(((const qkvi_gguf_tensor *)left)->name, ((const qkvi_gguf_tensor *)right)->name);
}

const qkvi_gguf_key *qkvi_gguf_key_of(const qkvi_gguf_file *file, const char *name) {
    const qkvi_gguf_key key = { .name = (char *)(uintptr_t)name };
    return file->n_keys ? bsearch(&key, file->keys, (size_t)file->n_keys, sizeof key, by_key)
                        : NULL;
}

/* Sorted by name, one of each. */
static qkv_status sort_keys(const reading *r) {
    qkvi_gguf_file *const file = r->file;
    if (file->n_keys) qsort(file->keys, (size_t)file->n_keys, sizeof *file->keys, by_key);
    for (int64_t k = 1; k < file->n_keys; k++)
        if (by_key(&file->keys[k - 1], &file->keys[k]) == 0)
            return FAIL(r, QKV_ERR_FORMAT, "key '%s' is there twice",
                        QKVI_PRINTABLE(160, file->keys[k].name));
    return QKV_OK;
}

static qkv_status sort_tensors(const reading *r) {
    qkvi_gguf_file *const file = r->file;
    if (file->n_tensors)
        qsort(file->tensors, (size_t)file->n_tensors, sizeof *file->tensors, by_tensor);
    for (int64_t t = 1; t < file->n_tensors; t++)
        if (by_tensor(&file->tensors[t - 1], &file->tensors[t]) == 0)
            return refuse_tensor(r, &file->tensors[t], QKV_ERR_FORMAT, "is there twice");
    return QKV_OK;
}

static qkv_status find_alignment(const reading *r, uint64_t *alignment) {
    static const char name[] = "general.alignment";
    const qkvi_gguf_key *const key = qkvi_gguf_key_of(r->file, name);
    *alignment = DEFAULT_ALIGNMENT;
    if (!key) return QKV_OK;
    if (key->is_array || key->kind != QKVI_GGUF_U32_VALUE)
        return FAIL(r, QKV_ERR_FORMAT, "key '%s' is of type %s, not u32", name,
                    key->is_array ? "array" : qkvi_gguf_kind_name(key->kind));
    *alignment = number_at(r->file->header + key->at, 4);
    if (*alignment && *alignment <= MAX_ALIGNMENT && !(*alignment & (*alignment - 1)))
        return QKV_OK;
    return FAIL(r, QKV_ERR_FORMAT, "key '%s' is %" PRIu64 ", not a power of 2 from 1 to %d", name,
                *alignment, MAX_ALIGNMENT);
}

/* Sizes are at most that of the file, and an alignment is small: nothing wraps. */
static uint64_t aligned(uint64_t n, uint64_t alignment) {
    return (n + alignment - 1) & ~(alignment - 1);
}

/*
 * Each tensor lies where the one before it ends, rounded up. Then places count from the start of
 * the file.
 */
static qkv_status place_tensors(const reading *r, uint64_t alignment) {
    qkvi_gguf_file *const file = r->file;
    const uint64_t data = aligned(r->at, alignment), n_bytes = file->source.n_bytes;
    uint64_t wanted = 0;
    char rule[160];
    for (int64_t t = 0; t < file->n_tensors; t++) {
        qkvi_gguf_tensor *const tensor = &file->tensors[t];
        if (tensor->begin != wanted) {
            snprintf(rule, sizeof rule,
                     "begins at byte %" PRIu64 " of the data, not at %" PRIu64
                     ", where the one before it ends",
                     tensor->begin, wanted);
            return refuse_tensor(r, tensor, QKV_ERR_FORMAT, rule);
        }
        if (data > n_bytes || wanted > n_bytes - data || tensor->n_bytes > n_bytes - data - wanted)
            return refuse_tensor(r, tensor, QKV_ERR_FORMAT, "ends behind the end of the file");
        tensor->begin += data;
        wanted += aligned(tensor->n_bytes, alignment);
    }
    return QKV_OK;
}

static qkv_status check_start(reading *r) {
    uint64_t version;
    QKV_TRY(need(r, 8, "the start of the file"));
    if (memcmp(r->file->header, "GGUF", 4) != 0)
        return FAIL(r, QKV_ERR_FORMAT, "does not begin with GGUF");
    r->at = 4;
    QKV_TRY(take(r, 4, "the version", &version));
    if ((version & 0xFFFF) == 0)
        return FAIL(r, QKV_ERR_UNSUPPORTED, "is a big-endian file, which is not supported");
    if (version != 2 && version != 3)
        return FAIL(r, QKV_ERR_UNSUPPORTED, "version %" PRIu64 " is neither 2 nor 3", version);
    return QKV_OK;
}

/* How many there are: no more than limit, nor than the rest of the file has bytes for. */
static qkv_status check_count(const reading *r, const char *what, uint64_t n, uint64_t least,
                              uint64_t limit) {
    if (n > (r->file->source.n_bytes - r->at) / least)
        return FAIL(r, QKV_ERR_FORMAT, "%" PRIu64 " %s are more than the file has bytes for", n,
                    what);
    if (n > limit)
        return FAIL(r, QKV_ERR_LIMIT, "%" PRIu64 " %s, the limit is %" PRIu64, n, what, limit);
    return QKV_OK;
}

static qkv_status read_header(reading *r) {
    qkvi_gguf_file *const file = r->file;
    uint64_t n_tensors, n_keys, alignment;
    QKV_TRY(check_start(r));
    QKV_TRY(take(r, 8, "the number of tensors", &n_tensors));
    QKV_TRY(take(r, 8, "the number of keys", &n_keys));
    QKV_TRY(check_count(r, "tensors", n_tensors, LEAST_INFO, MAX_TENSORS));
    QKV_TRY(check_count(r, "keys", n_keys, LEAST_KEY, MAX_KEYS));
    file->keys = calloc((size_t)n_keys + 1, sizeof *file->keys);
    file->tensors = calloc((size_t)n_tensors + 1, sizeof *file->tensors);
    if (!file->keys || !file->tensors) return FAIL(r, QKV_ERR_MEMORY, "no memory for its names");
    while (file->n_keys < (int64_t)n_keys) QKV_TRY(take_key(r, &file->keys[file->n_keys++]));
    QKV_TRY(sort_keys(r));
    while (file->n_tensors < (int64_t)n_tensors)
        QKV_TRY(take_info(r, &file->tensors[file->n_tensors++]));
    QKV_TRY(find_alignment(r, &alignment));
    QKV_TRY(place_tensors(r, alignment));
    QKV_TRY(sort_tensors(r));
    return qkvi_source_check(&file->source, r->error);
}

qkv_status qkvi_gguf_read(qkvi_source *source, qkvi_gguf_file **file, qkv_error *error) {
    *file = calloc(1, sizeof **file);
    if (!*file) {
        qkvi_source_close(source);
        return qkvi_no_memory(error, "a GGUF file");
    }
    (*file)->source = *source;
    reading r = { .file = *file, .error = error };
    const qkv_status status = read_header(&r);
    if (status == QKV_OK) return QKV_OK;
    qkvi_gguf_file_close(*file);
    *file = NULL;
    return status;
}

void qkvi_gguf_file_close(qkvi_gguf_file *file) {
    if (!file) return;
    for (int64_t k = 0; k < file->n_keys; k++) free(file->keys[k].name);
    for (int64_t t = 0; t < file->n_tensors; t++) free(file->tensors[t].name);
    free(file->keys);
    free(file->tensors);
    free(file->header);
    qkvi_source_close(&file->source);
    free(file);
}
