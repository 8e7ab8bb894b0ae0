/*
 * Files that appear together: see file.h. Everything that can fail for want of space or permission
 * happens before the first one gets its place.
 */

#include "model/store/file.h"

static qkvi_writer *grow(qkvi_files *files) {
    qkvi_writer *const writers =
        qkvi_realloc_array(files->writers, (size_t)files->n + 1, sizeof *writers);
    if (!writers) return NULL;
    files->writers = writers;
    return &writers[files->n];
}

qkv_status qkvi_files_begin(qkvi_files *files, const char *name, qkvi_writer **writer,
                            qkv_error *error) {
    char *const path = files->folder ? qkvi_path_join(files->folder, name) : strdup(name);
    *writer = path ? grow(files) : NULL;
    const qkv_status status =
        *writer ? qkvi_writer_begin(path, *writer, error)
                : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to write another file");
    free(path);
    if (status == QKV_OK) files->n++;
    return status;
}

qkv_status qkvi_files_add(qkvi_files *files, const char *name, const void *bytes, size_t n,
                          qkv_error *error) {
    qkvi_writer *writer;
    QKV_TRY(qkvi_files_begin(files, name, &writer, error));
    return qkvi_writer_put(writer, bytes, n, error);
}

/* Two results in one file: one of them would be lost. */
static qkv_status check_distinct(const qkvi_files *files, qkv_error *error) {
    for (int i = 0; i < files->n; i++)
        for (int j = 0; j < i; j++)
            if (qkvi_writer_same(&files->writers[i], &files->writers[j])) {
                const char *const paths[] = { files->writers[j].path, files->writers[i].path };
                char a[QKVI_NAME_BYTES], b[QKVI_NAME_BYTES];
                qkvi_escape(a, sizeof a, paths[0], strlen(paths[0]));
                qkvi_escape(b, sizeof b, paths[1], strlen(paths[1]));
                return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s and %s are the same file", a, b);
            }
    return QKV_OK;
}

qkv_status qkvi_files_commit(qkvi_files *files, qkv_error *error) {
    qkv_status status = check_distinct(files, error);
    for (int i = 0; i < files->n && status == QKV_OK; i++)
        status = qkvi_writer_finish(&files->writers[i], error);
    for (int i = 0; i < files->n && status == QKV_OK; i++)
        status = qkvi_writer_publish(&files->writers[i], error);
    qkvi_files_end(files);
    return status;
}

void qkvi_files_end(qkvi_files *files) {
    for (int i = 0; i < files->n; i++) qkvi_writer_end(&files->writers[i]);
    free(files->writers);
    *files = (qkvi_files){ .folder = files->folder };
}
