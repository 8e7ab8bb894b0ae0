/*
 * .npy headers: see npy.h. The grammar accepted is
 *
 *     { 'descr': STRING, 'fortran_order': True|False, 'shape': ( [INT {, INT} [,]] ) [,] }
 *
 * with the keys in any order, single or double quotes, and blanks anywhere between tokens. Strings
 * contain no backslash.
 */
#include "files/npy.h"

#include <ctype.h>

enum { MAX_HEADER = 1 << 16, MAX_STRING = 64, PREAMBLE = 8, ALIGNMENT = 64 };
static const int64_t max_dimension = (int64_t)1 << 48;

/* ---- Tokens ---------------------------------------------------------------------------------- */

typedef struct parser {
    const char *at, *end;
    const char *file;
    int version;
    qkv_error *error;
} parser;

static qkv_status failed(const parser *p, const char *what) {
    return qkvi_error_set(p->error, QKV_ERR_FORMAT, "%s: npy header: %s", p->file, what);
}

static void skip_blanks(parser *p) {
    while (p->at < p->end && strchr(" \t\r\n\f", *p->at) && *p->at) p->at++;
}

/* 1 and past it, if the next token is this character. */
static int take(parser *p, char c) {
    skip_blanks(p);
    if (p->at >= p->end || *p->at != c) return 0;
    p->at++;
    return 1;
}

static qkv_status take_string(parser *p, char text[MAX_STRING]) {
    skip_blanks(p);
    if (p->at >= p->end || (*p->at != '\'' && *p->at != '"')) return failed(p, "no string");
    const char quote = *p->at++;
    const char *const close = memchr(p->at, quote, (size_t)(p->end - p->at));
    const size_t n = close ? (size_t)(close - p->at) : MAX_STRING;
    if (n >= MAX_STRING || memchr(p->at, '\\', n) || memchr(p->at, '\0', n))
        return failed(p, "a string is unfinished, long, or has a backslash");
    memcpy(text, p->at, n);
    text[n] = '\0';
    p->at = close + 1;
    return QKV_OK;
}

static qkv_status take_integer(parser *p, int64_t *value) {
    skip_blanks(p);
    if (p->at >= p->end || !isdigit((unsigned char)*p->at))
        return failed(p, "a dimension is not an integer of at least 0");
    for (*value = 0; p->at < p->end && isdigit((unsigned char)*p->at); p->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *p->at - '0', value))
            return failed(p, "a dimension is above 2^63");
    if (p->version == 1 && p->at < p->end && *p->at == 'L') p->at++; /* written by Python 2 */
    return QKV_OK;
}

static qkv_status take_shape(parser *p, qkvi_npy *npy) {
    int comma = 1;
    if (!take(p, '(')) return failed(p, "shape is not a tuple");
    for (npy->rank = 0; !take(p, ')'); npy->rank++) {
        if (!comma) return failed(p, "a comma is missing in shape");
        if (npy->rank == QKVI_NPY_MAX_RANK)
            return qkvi_error_set(p->error, QKV_ERR_LIMIT, "%s: more than %d dimensions", p->file,
                                  QKVI_NPY_MAX_RANK);
        QKV_TRY(take_integer(p, &npy->shape[npy->rank]));
        comma = take(p, ',');
    }
    if (npy->rank == 1 && !comma) return failed(p, "shape is a number, not a tuple");
    return QKV_OK;
}

static qkv_status take_bool(parser *p, int *value) {
    skip_blanks(p);
    const size_t left = (size_t)(p->end - p->at);
    *value = left >= 4 && memcmp(p->at, "True", 4) == 0;
    if (!*value && !(left >= 5 && memcmp(p->at, "False", 5) == 0))
        return failed(p, "fortran_order is not True or False");
    p->at += *value ? 4 : 5;
    return QKV_OK;
}

/* ---- The dict -------------------------------------------------------------------------------- */

static qkv_status unsupported(const parser *p, const char *what) {
    char printable[MAX_STRING * 4];
    qkvi_escape(printable, sizeof printable, what, strlen(what));
    return qkvi_error_set(p->error, QKV_ERR_UNSUPPORTED, "%s: npy type %s is not supported",
                          p->file, printable);
}

static qkv_status take_descr(parser *p, qkvi_npy *npy) {
    static const struct {
        char name[3];
        qkvi_elem_type type;
    } types[] = { { "f8", QKVI_F64 }, { "f4", QKVI_F32 }, { "f2", QKVI_F16 }, { "i8", QKVI_I64 },
                  { "i4", QKVI_I32 }, { "i2", QKVI_I16 }, { "i1", QKVI_I8 },  { "u8", QKVI_U64 },
                  { "u4", QKVI_U32 }, { "u2", QKVI_U16 }, { "u1", QKVI_U8 },  { "b1", QKVI_BOOL } };
    char text[MAX_STRING];
    skip_blanks(p);
    if (p->at < p->end && *p->at == '[') return unsupported(p, "'structured'");
    QKV_TRY(take_string(p, text));
    if (!*text || !strchr("<>|=", *text)) return failed(p, "descr has no byte order");
    npy->big_endian = *text == '>';
    if (strcmp(text, "<V2") == 0) {
        npy->untyped = 1;
        npy->type = QKVI_BF16;
        return QKV_OK;
    }
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        if (strcmp(types[t].name, text + 1) == 0) {
            npy->type = types[t].type;
            return QKV_OK;
        }
    return unsupported(p, text);
}

static qkv_status parse_dict(parser *p, qkvi_npy *npy) {
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    int seen[3] = { 0 }, comma = 1;
    if (!take(p, '{')) return failed(p, "it is not a dict");
    while (!take(p, '}')) {
        char key[MAX_STRING];
        int k = 0;
        if (!comma) return failed(p, "a comma is missing");
        QKV_TRY(take_string(p, key));
        while (k < 3 && strcmp(keys[k], key) != 0) k++;
        if (k == 3 || seen[k]++) return failed(p, "a key is unknown or there twice");
        if (!take(p, ':')) return failed(p, "a colon is missing");
        QKV_TRY(k == 0   ? take_descr(p, npy)
                : k == 1 ? take_bool(p, &npy->fortran_order)
                         : take_shape(p, npy));
        comma = take(p, ',');
    }
    skip_blanks(p);
    if (p->at != p->end) return failed(p, "something follows the dict");
    return seen[0] && seen[1] && seen[2] ? QKV_OK : failed(p, "a key is missing");
}

/* ---- The file -------------------------------------------------------------------------------- */

static qkv_status check_size(const qkvi_byte_source *file, qkvi_npy *npy, qkv_error *error) {
    const uint64_t there = file->n_bytes - npy->data_begin;
    size_t bytes;
    int overflow = 0;
    npy->n_elems = 1;
    for (int d = 0; d < npy->rank; d++) {
        overflow |= __builtin_mul_overflow(npy->n_elems, (size_t)npy->shape[d], &npy->n_elems);
    }
    overflow |= __builtin_mul_overflow(npy->n_elems, qkvi_elem_bytes(npy->type), &bytes);
    if (overflow || bytes != there)
        return qkvi_error_set(error, QKV_ERR_FORMAT,
                              "%s: the npy header claims %s%zu bytes of data, %llu are there",
                              file->name, overflow ? "more than 2^64 or " : "",
                              overflow ? SIZE_MAX : bytes, (unsigned long long)there);
    for (int d = 0; d < npy->rank; d++)
        if (npy->shape[d] > max_dimension)
            return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: a dimension is above the limit 2^48",
                                  file->name);
    return QKV_OK;
}

/* Version and header length: 2 bytes in version 1, 4 bytes later. */
static qkv_status take_preamble(const qkvi_byte_source *file, int *version, size_t *begin,
                                size_t *n, qkv_error *error) {
    uint8_t bytes[PREAMBLE + 4] = { 0 };
    if (file->n_bytes >= PREAMBLE + 2) QKV_TRY(file->take(file->user, bytes, PREAMBLE + 2, error));
    if (memcmp(bytes, "\x93NUMPY", 6) != 0)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: is not a .npy file", file->name);
    *version = bytes[6];
    if (*version < 1 || *version > 3 || bytes[7] != 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: npy version %d.%d is not supported",
                              file->name, bytes[6], bytes[7]);
    *begin = *version == 1 ? PREAMBLE + 2 : PREAMBLE + 4;
    if (*version > 1 && file->n_bytes >= *begin)
        QKV_TRY(file->take(file->user, bytes + PREAMBLE + 2, 2, error));
    *n = bytes[8] | (size_t)bytes[9] << 8;
    if (*version > 1) *n |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (*begin > file->n_bytes || *n > file->n_bytes - *begin)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: npy header of %zu bytes in %llu",
                              file->name, *n, (unsigned long long)file->n_bytes);
    if (*n > MAX_HEADER)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: npy header of %zu bytes, the limit is %d",
                              file->name, *n, MAX_HEADER);
    return QKV_OK;
}

qkv_status qkvi_npy_take_header(const qkvi_byte_source *file, qkvi_npy *npy, qkv_error *error) {
    parser p = { .file = file->name, .error = error };
    size_t begin = 0, n = 0;
    memset(npy, 0, sizeof *npy);
    QKV_TRY(take_preamble(file, &p.version, &begin, &n, error));
    char *const text = malloc(n + 1);
    if (!text) return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory", file->name);
    qkv_status status = file->take(file->user, text, n, error);
    p.at = text;
    p.end = text + n;
    if (status == QKV_OK) status = parse_dict(&p, npy);
    free(text);
    npy->data_begin = begin + n;
    return status == QKV_OK ? check_size(file, npy, error) : status;
}

/* The bytes of a file from its front. */
typedef struct cursor {
    const qkvi_source *source;
    uint64_t at;
} cursor;

static qkv_status take_from(void *user, void *destination, size_t n, qkv_error *error) {
    cursor *const from = user;
    from->at += n;
    return qkvi_source_read(from->source, from->at - n, destination, n, error);
}

qkv_status qkvi_npy_read_header(const qkvi_source *source, qkvi_npy *npy, qkv_error *error) {
    cursor from = { source, 0 };
    const qkvi_byte_source bytes = { source->name, source->n_bytes, take_from, &from };
    QKV_TRY(qkvi_npy_take_header(&bytes, npy, error));
    return qkvi_source_check(source, error);
}

/*
 * Column-major data of array->shape to row-major: walks the result in order, and the source by its
 * strides.
 */
static qkv_status transpose(qkv_array *array, qkv_error *error) {
    const size_t width = qkvi_array_width(array->type), n = (size_t)array->n_elems;
    size_t stride[8], index[8] = { 0 }, at = 0, step = 1;
    char *const result = qkvi_aligned_array(n * width / 64 + 1, 64);
    if (!result) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to transpose an array");
    for (int d = 0; d < array->rank; d++) {
        stride[d] = step;
        step *= (size_t)array->shape[d];
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(result + i * width, (const char *)array->data + at * width, width);
        for (int d = array->rank - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < (size_t)array->shape[d]) break;
            at -= stride[d] * index[d];
            index[d] = 0;
        }
    }
    qkvi_aligned_free(array->data);
    array->data = result;
    return QKV_OK;
}

qkv_status qkvi_npy_take_array(const qkvi_byte_source *bytes, qkv_array_type floats,
                               qkv_array **array, qkv_error *error) {
    qkvi_npy npy;
    QKV_TRY(qkvi_npy_take_header(bytes, &npy, error));
    if (npy.untyped && floats != QKV_ARRAY_BF16)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: npy type <V2 is not supported, unless it is said to be bf16",
                              bytes->name);
    QKV_TRY(qkvi_array_make(qkvi_array_type_of(npy.type, floats), npy.rank, npy.shape, npy.n_elems,
                            array, error));
    (*array)->stored = qkvi_elem_name(npy.type);
    const qkvi_stored_elems stored = { npy.type, npy.big_endian, npy.n_elems };
    QKV_TRY(qkvi_array_fill(bytes, &stored, *array, error));
    return npy.fortran_order ? transpose(*array, error) : QKV_OK;
}

qkv_status qkvi_npy_read_array(const char *path, qkv_array_type floats, qkv_array **array,
                               qkv_error *error) {
    qkvi_source source;
    QKV_TRY(qkvi_source_open(path, &source, error));
    cursor from = { &source, 0 };
    const qkvi_byte_source bytes = { source.name, source.n_bytes, take_from, &from };
    const qkv_status status = qkvi_npy_take_array(&bytes, floats, array, error);
    qkvi_source_close(&source);
    return status;
}

void qkvi_npy_make_header(const char *descr, int rank, const int64_t *shape,
                          char header[QKVI_NPY_HEADER], size_t *n_bytes) {
    static const char magic[] = "\x93NUMPY\x01\0\0"; /* and half of the length */
    char *const end = header + QKVI_NPY_HEADER;
    memcpy(header, magic, sizeof magic);
    char *at = header + PREAMBLE + 2;
    at += snprintf(at, (size_t)(end - at), "{'descr': '%s', 'fortran_order': False, 'shape': (",
                   descr);
    for (int d = 0; d < rank; d++)
        at += snprintf(at, (size_t)(end - at), "%s%lld", d ? ", " : "", (long long)shape[d]);
    at += snprintf(at, (size_t)(end - at), "%s), }", rank == 1 ? "," : "");
    while ((at + 1 - header) % ALIGNMENT) *at++ = ' ';
    *at++ = '\n';
    *n_bytes = (size_t)(at - header);
    header[8] = (char)((*n_bytes - PREAMBLE - 2) & 255);
    header[9] = (char)((*n_bytes - PREAMBLE - 2) >> 8);
}
