/*
 * The audit of names. The format allows any string as a name; but with one that cannot be printed,
 * that looks like another one, or that appears twice, two readers may mean two tensors. See
 * audit.h.
 */
#include <utf8proc.h>

#include "files/audit.h"

/* ---- Keys ------------------------------------------------------------------------------------ */

static qkv_status append(qkvi_audit *audit, qkvi_keys *keys, const char *bytes, size_t n,
                         uint64_t offset) {
    char shown[QKVI_SHOWN_BYTES];
    if (qkvi_reserve(&keys->at, &keys->capacity, (size_t)keys->n + 1, sizeof *keys->at) != QKV_OK)
        return qkvi_audit_no_memory(audit);
    qkvi_key *const key = &keys->at[keys->n];
    *key = (qkvi_key){ .bytes = malloc(n + 1),
                       .n = n,
                       .shown = strdup(qkvi_escape(shown, sizeof shown, bytes, n)),
                       .offset = offset };
    keys->n++;
    if (!key->bytes || !key->shown) return qkvi_audit_no_memory(audit);
    memcpy(key->bytes, bytes, n);
    key->bytes[n] = '\0';
    return QKV_OK;
}

qkv_status qkvi_audit_add_key(qkvi_audit *audit, qkvi_keys *keys, qkvi_json_span span,
                              const char *shown) {
    json_error_t cause;
    char text[2 * sizeof cause.text];
    const char *const quoted = audit->header + span.begin;
    const size_t n = span.end - span.begin;
    json_t *const key = json_loadb(quoted, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &cause);
    if (!key) {
        if (json_error_code(&cause) == json_error_out_of_memory) return qkvi_audit_no_memory(audit);
        qkvi_audit_find(audit, "invalid-string", 8 + span.begin, shown, "%s",
                        qkvi_escape(text, sizeof text, cause.text, strlen(cause.text)));
        return append(audit, keys, quoted + 1, n > 1 ? n - 2 : 0, 8 + span.begin);
    }
    const qkv_status status =
        append(audit, keys, json_string_value(key), json_string_length(key), 8 + span.begin);
    json_decref(key);
    return status;
}

void qkvi_keys_free(qkvi_keys *keys) {
    for (int64_t k = 0; k < keys->n; k++) {
        free(keys->at[k].bytes);
        free(keys->at[k].shown);
    }
    free(keys->at);
    *keys = (qkvi_keys){ 0 };
}

/* ---- Names that are there twice -------------------------------------------------------------- */

/* A key under the form in which it is compared. */
typedef struct form {
    qkvi_key *key;
    const char *bytes;
    size_t n;
    utf8proc_uint8_t *own; /* bytes, if they are not the key's */
} form;

static int by_bytes(const void *left, const void *right) {
    const form *const a = left, *const b = right;
    const int order = memcmp(a->bytes, b->bytes, a->n < b->n ? a->n : b->n);
    if (order) return order;
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    return a->key->offset < b->key->offset ? -1 : a->key->offset > b->key->offset;
}

static int is_same(const form *a, const form *b) {
    return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

/* All keys as they are; NULL without memory. */
static form *plain_forms(qkvi_audit *audit, const qkvi_keys *keys) {
    form *const forms = qkvi_calloc_array((size_t)keys->n, sizeof *forms);
    if (!forms) {
        (void)qkvi_audit_no_memory(audit);
        return NULL;
    }
    for (int64_t k = 0; k < keys->n; k++)
        forms[k] = (form){ &keys->at[k], keys->at[k].bytes, keys->at[k].n, NULL };
    return forms;
}

qkv_status qkvi_audit_duplicates(qkvi_audit *audit, qkvi_keys *keys, const char *shown) {
    if (keys->n < 2) return QKV_OK;
    form *const forms = plain_forms(audit, keys);
    if (!forms) return QKV_ERR_MEMORY;
    qsort(forms, (size_t)keys->n, sizeof *forms, by_bytes);
    for (int64_t k = 1; k < keys->n; k++) {
        if (!is_same(&forms[k - 1], &forms[k])) continue;
        forms[k - 1].key->is_hidden = 1;
        qkvi_audit_find(audit, "duplicate-key", forms[k].key->offset, shown,
                        "'%s' is there again, after the one at byte %llu", forms[k].key->shown,
                        (unsigned long long)forms[k - 1].key->offset);
    }
    free(forms);
    return QKV_OK;
}

/* ---- Names that look like others ------------------------------------------------------------- */

static int is_ascii(const qkvi_key *key) {
    for (size_t i = 0; i < key->n; i++)
        if ((unsigned char)key->bytes[i] >= 0x80) return 0;
    return 1;
}

/* In normal form C; what is no UTF-8 stays as it is. */
static qkv_status normalise(qkvi_audit *audit, form *name) {
    utf8proc_uint8_t *result = NULL;
    if (is_ascii(name->key)) return QKV_OK;
    const utf8proc_ssize_t n =
        utf8proc_map((const utf8proc_uint8_t *)name->bytes, (utf8proc_ssize_t)name->n, &result,
                     UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (n == UTF8PROC_ERROR_NOMEM) return qkvi_audit_no_memory(audit);
    if (n < 0) return QKV_OK;
    name->own = result;
    name->bytes = (const char *)result;
    name->n = (size_t)n;
    return QKV_OK;
}

static void tell_equal(qkvi_audit *audit, const form *forms, int64_t n) {
    for (int64_t k = 1; k < n; k++) {
        const qkvi_key *const a = forms[k - 1].key, *const b = forms[k].key;
        if (!is_same(&forms[k - 1], &forms[k])) continue;
        if (a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0) continue; /* told already */
        qkvi_audit_find(audit, "equal-names", b->offset, b->shown,
                        "has other bytes than the name at byte %llu, but is equal to it once "
                        "normalised (NFC)",
                        (unsigned long long)a->offset);
    }
}

static qkv_status find_equal(qkvi_audit *audit) {
    const qkvi_keys *const keys = &audit->keys;
    int is_needed = 0;
    for (int64_t k = 0; k < keys->n; k++) is_needed |= !is_ascii(&keys->at[k]);
    if (!is_needed) return QKV_OK;
    form *const forms = plain_forms(audit, keys);
    qkv_status status = forms ? QKV_OK : QKV_ERR_MEMORY;
    for (int64_t k = 0; status == QKV_OK && k < keys->n; k++) status = normalise(audit, &forms[k]);
    if (status == QKV_OK) {
        qsort(forms, (size_t)keys->n, sizeof *forms, by_bytes);
        tell_equal(audit, forms, keys->n);
    }
    for (int64_t k = 0; forms && k < keys->n; k++) free(forms[k].own);
    free(forms);
    return status;
}

/* ---- Names that look like nothing ------------------------------------------------------------ */

/* The first code point of each kind that a name should not have. */
static void tell_invisible(qkvi_audit *audit, const qkvi_key *key) {
    int has_control = 0, has_format = 0;
    utf8proc_int32_t c = 0;
    for (size_t i = 0; i < key->n;) {
        const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)key->bytes + i,
                                                    (utf8proc_ssize_t)(key->n - i), &c);
        if (n <= 0) return; /* told as invalid */
        const utf8proc_category_t kind = utf8proc_category(c);
        i += (size_t)n;
        if (c != 0 && kind == UTF8PROC_CATEGORY_CC && !has_control++)
            qkvi_audit_find(audit, "control-character", key->offset, key->shown,
                            "U+%04X in the name", (unsigned)c);
        if ((kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_ZL ||
             kind == UTF8PROC_CATEGORY_ZP) &&
            !has_format++)
            qkvi_audit_find(audit, "invisible-character", key->offset, key->shown,
                            "U+%04X in the name, which is not seen or turns the writing",
                            (unsigned)c);
    }
}

static void tell_name(qkvi_audit *audit, const qkvi_key *key) {
    if (key->n == 0)
        qkvi_audit_find(audit, "empty-name", key->offset, key->shown, "the name is empty");
    if (memchr(key->bytes, '\0', key->n))
        qkvi_audit_find(audit, "nul-in-name", key->offset, key->shown,
                        "\\u0000 in the name, which ends it for readers in C");
    if (key->n > QKVI_MAX_NAME)
        qkvi_audit_find(audit, "long-name", key->offset, key->shown,
                        "the name has %zu bytes, the limit is %d", key->n, QKVI_MAX_NAME);
    tell_invisible(audit, key);
}

qkv_status qkvi_audit_names(qkvi_audit *audit) {
    for (int64_t k = 0; k < audit->keys.n; k++) tell_name(audit, &audit->keys.at[k]);
    return find_equal(audit);
}
