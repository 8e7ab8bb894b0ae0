/* Arrays in .npz files: see npy.h. */
#include "files/npy.h"

enum { MESSAGE_NAME = 1400 }; /* a source's name, a colon, the name of an entry */

static const char ending[] = ".npy";

const char *qkvi_npz_colon(const char *path) {
    const char *const at = strstr(path, ".npz:");
    return at ? at + 4 : NULL;
}

static qkv_status take(void *user, void *destination, size_t n, qkv_error *error) {
    return qkvi_zip_take(user, destination, n, error);
}

/* "FILE:NAME" for messages, without the ending of the entry. */
static void name_array(const qkvi_zip *zip, const qkvi_zip_entry *entry, char text[MESSAGE_NAME]) {
    char printable[200];
    qkvi_escape(printable, sizeof printable, entry->name, strlen(entry->name) - 4);
    snprintf(text, MESSAGE_NAME, "%s:%s", zip->source.name, printable);
}

static int is_array(const qkvi_zip_entry *entry) { return qkvi_ends_with(entry->name, ending); }

/* As numpy has it, "q" and "q.npy" both name the entry q.npy. */
static qkv_status find(const qkvi_zip *zip, const char *name, const qkvi_zip_entry **entry,
                       qkv_error *error) {
    char longer[QKVI_ZIP_MAX_NAME + sizeof ending];
    *entry = qkvi_zip_find(zip, name);
    if (*entry && is_array(*entry)) return QKV_OK;
    *entry = NULL;
    if (strlen(name) <= QKVI_ZIP_MAX_NAME) {
        snprintf(longer, sizeof longer, "%s%s", name, ending);
        *entry = qkvi_zip_find(zip, longer);
    }
    if (*entry) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s: there is no array '%s'", zip->source.name,
                          QKVI_PRINTABLE(200, name));
}

static qkv_status read_entry(const qkvi_zip *zip, const qkvi_zip_entry *entry,
                             qkv_array_type floats, qkv_array **array, qkv_error *error) {
    char name[MESSAGE_NAME];
    qkvi_zip_reader reader;
    name_array(zip, entry, name);
    const qkvi_byte_source bytes = { name, entry->n_bytes, take, &reader };
    qkv_status status = qkvi_zip_begin(zip, entry, &reader, error);
    if (status == QKV_OK) status = qkvi_npy_take_array(&bytes, floats, array, error);
    if (status == QKV_OK) status = qkvi_zip_finish(&reader, error);
    qkvi_zip_end(&reader);
    return status;
}

qkv_status qkvi_npz_read(const char *path, const char *name, qkv_array_type floats,
                         qkv_array **array, qkv_error *error) {
    qkvi_zip zip;
    const qkvi_zip_entry *entry;
    QKV_TRY(qkvi_zip_open(path, &zip, error));
    qkv_status status = find(&zip, name, &entry, error);
    if (status == QKV_OK) status = read_entry(&zip, entry, floats, array, error);
    qkvi_zip_close(&zip);
    return status;
}

/* visit NULL: only the checks. */
static qkv_status list_entry(const qkvi_zip *zip, const qkvi_zip_entry *from,
                             qkvi_visit_entry *visit, void *user, qkv_error *error) {
    char name[MESSAGE_NAME], shown[400];
    qkvi_zip_reader reader;
    qkvi_npy npy = { .rank = 0 };
    name_array(zip, from, name);
    const qkvi_byte_source bytes = { name, from->n_bytes, take, &reader };
    qkv_status status = qkvi_zip_begin(zip, from, &reader, error);
    if (status == QKV_OK) status = qkvi_npy_take_header(&bytes, &npy, error);
    qkvi_zip_end(&reader);
    if (status != QKV_OK) return status;
    qkv_tensor_entry entry = { .name = shown, .rank = npy.rank };
    entry.type = npy.untyped ? "V2" : qkvi_elem_name(npy.type);
    qkvi_escape(shown, sizeof shown, from->name, strlen(from->name) - 4);
    memcpy(entry.shape, npy.shape, (size_t)npy.rank * sizeof *entry.shape);
    if (visit) visit(user, &entry);
    return QKV_OK;
}

qkv_status qkvi_npz_list(const char *path, qkvi_visit_entry *visit, void *user, qkv_error *error) {
    qkvi_zip zip;
    qkv_status status = QKV_OK;
    QKV_TRY(qkvi_zip_open(path, &zip, error));
    for (int pass = 0; pass < 2; pass++) /* nothing is told of a file that is refused */
        for (int64_t e = 0; e < zip.n_entries && status == QKV_OK; e++)
            if (is_array(&zip.entries[e]))
                status = list_entry(&zip, &zip.entries[e], pass ? visit : NULL, user, error);
    qkvi_zip_close(&zip);
    return status;
}
