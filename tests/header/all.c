/*
 * Compiled, never run: the public headers together, in C99, C17 and C++17, with every initializer.
 */
#include <qkv/picture.h>

#include <qkv/columns.h>
#include <qkv/files.h>
#include <qkv/generate.h>
#include <qkv/inspect.h>
#include <qkv/kv.h>
#include <qkv/layers.h>
#include <qkv/model.h>
#include <qkv/onnx.h>
#include <qkv/page.h>
#include <qkv/patterns.h>
#include <qkv/qkv.h>
#include <qkv/tokenizer.h>
#include <qkv/train.h>

int main(void);

int main(void) {
    const qkv_ctx_options ctx_options = qkv_ctx_options_init();
    const qkv_call_options call_options = qkv_call_options_init();
    const qkv_attention_plan plan = qkv_attention_plan_init();
    const qkv_kv_cache_options cache_options = qkv_kv_cache_options_init();
    const qkv_linear_desc linear = qkv_linear_desc_init(1, 1, 1);
    const qkv_embedding_desc embedding = qkv_embedding_desc_init(1, 1, 1, NULL);
    const qkv_adamw_options adamw = qkv_adamw_options_init(0.1);
    const size_t of_onnx =
        qkv_onnx_attention_node_init().struct_size + qkv_onnx_attention_outputs_init().struct_size;
    const size_t of_models =
        qkv_model_open_options_init().struct_size + qkv_run_options_init().struct_size +
        qkv_embed_options_init().struct_size + qkv_generate_options_init().struct_size +
        qkv_train_options_init().struct_size;
    return (int)(ctx_options.struct_size + call_options.struct_size + plan.struct_size +
                 cache_options.struct_size + linear.struct_size + embedding.struct_size +
                 adamw.struct_size + of_models + of_onnx) &
           0;
}
