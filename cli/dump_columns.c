/*
 * What keys receive, and the diagonals: one more pass over the weights of a head (qkv/columns.h), in memory
 * of a few numbers a key. Queries that see no key, and those whose weights are no numbers, take no part.
 */
#include "dump.h"
#include "term.h"
#include <qkv/columns.h>

static void show_progress(void *user, int64_t done, int64_t total) {
    progress_bar(user, "attention seen from the keys", done, total);
}

static qkv_status pass(const struct dump *dump, int64_t shown, float *received, float *diagonal) {
    struct progress progress;
    qkv_call_options call = QKV_CALL_OPTIONS_INIT;
    qkv_attention_desc d;
    qkv_attention_columns columns;
    call.cancel = &cli_cancelled;
    call.progress = show_progress;
    call.progress_user = &progress;
    dump_desc(dump, &d);
    qkv_attention_columns_contiguous(&columns, &d);
    columns.received = received;
    columns.diagonal = diagonal;
    progress_begin(&progress, dump->options->common.quiet);
    const qkv_status status =
        qkv_attention_columns_pass(dump->ctx, &d, dump_queries(dump, shown), dump_keys(dump, shown),
                                   dump->heads[shown].lse, &columns, &call);
    progress_end(&progress);
    return status;
}

qkv_status dump_columns(const struct dump *dump, int64_t shown, float *received, float *diagonal,
                        qkv_error *error) {
    const qkv_status status = pass(dump, shown, received, diagonal);
    if (status == QKV_OK) return QKV_OK;
    return text_error(error, status, "%s",
                      cli_cancelled ? "nothing was written" : qkv_ctx_message(dump->ctx));
}
