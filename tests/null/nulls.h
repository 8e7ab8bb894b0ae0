/*
 * Calls every public function with each pointer NULL in turn. That is allowed where the header says
 * so, and refused elsewhere: with QKV_ERR_ARGUMENT and a message or, by a function without a
 * status, with a result such as NULL. It never crashes.
 *
 * make calls its function with valid arguments, with each pointer through P(index, value). Each
 * attempt is a process of its own.
 */
#ifndef NULL_NULLS_H
#define NULL_NULLS_H

#include "qkv/qkv.h"

typedef struct null_call {
    const char *function;
    qkv_status (*make)(void); /* without a status: QKV_ERR_ARGUMENT if the result is empty */
    /*
     * For each pointer in the order of the header: 'n' may be NULL, 'r' is refused with a message,
     * '-' is refused without one.
     */
    const char *pointers;
} null_call;

/** NULL if it is this pointer's turn, else value. */
void *null_or(int index, void *value);
#define P(index, value) null_or(index, (void *)(value))

/** The error of a call, and the context that it may use; set before each group. */
extern qkv_error null_error;
extern qkv_ctx *null_ctx;

extern const null_call null_core[], null_kv[], null_onnx[], null_layers[], null_model[],
    null_files[], null_heads[], null_inspect[], null_view[], null_inside[];
void null_core_begin(void);
void null_model_begin(void);

/** Fails with the message of the last call, unless status is QKV_OK. */
void null_must(qkv_status status);

/** A file of the build folder, made by the tests. */
#define NULL_FOLDER QKV_TEST_BUILD "/null"

#endif
