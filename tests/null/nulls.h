/*
 * NULL for every pointer of every public function, one at a time: it is allowed where the header
 * says so, and refused elsewhere: QKV_ERR_ARGUMENT with a message, or of a function without a
 * status the value of nothing. Never a crash.
 *
 * A call makes its function with valid arguments, each pointer through P(index, value). Each
 * attempt is a process of its own.
 */
#ifndef NULL_NULLS_H
#define NULL_NULLS_H

#include "qkv/qkv.h"

typedef struct null_call {
    const char *function;
    qkv_status (*make)(void); /* of a function without a status: QKV_ERR_ARGUMENT for nothing */
    /*
     * For each pointer in the order of the header: 'n' may be NULL, 'r' is refused with a message,
     * '-' is refused without one.
     */
    const char *pointers;
} null_call;

/** value, unless it is this pointer's turn. */
void *null_or(int index, void *value);
#define P(index, value) null_or(index, (void *)(value))

/** What a call tells, and the context that it may use; set before each group. */
extern qkv_error null_error;
extern qkv_ctx *null_ctx;

extern const null_call null_core[], null_kv[], null_onnx[], null_layers[], null_model[],
    null_files[], null_heads[], null_inspect[], null_view[], null_inside[];
void null_core_begin(void);
void null_model_begin(void);

/** Fails with what the last call said. */
void null_must(qkv_status status);

/** A file of the build folder, made by the tests. */
#define NULL_FOLDER QKV_TEST_BUILD "/null"

#endif
