/*
 * Compiled, never run: the public headers together, in C99, C17 and C++17, with every initializer.
 */
#include <qkv/view.h>

#include <qkv/columns.h>
#include <qkv/generate.h>
#include <qkv/inspect.h>
#include <qkv/kv.h>
#include <qkv/model.h>
#include <qkv/patterns.h>
#include <qkv/qkv.h>

int main(void);

int main(void) {
    const qkv_ctx_options ctx_options = QKV_CTX_OPTIONS_INIT;
    const qkv_call_options call_options = QKV_CALL_OPTIONS_INIT;
    return (int)(ctx_options.struct_size + call_options.struct_size) & 0;
}
