# cost: 4.5
# What starts threads or is made for callers with threads, under ThreadSanitizer: one test of each such call, as it takes ten times
# as long. Pictures are left out: glib and fontconfig are not instrumented and have threads of their own. die_after_fork=0: a child
# of a process with threads makes its own, as the pool promises. hostile_attention_steady has a malloc of its own, as the sanitizer
# does.
. tools/deep/lib.sh
export TSAN_OPTIONS="die_after_fork=0:allocator_may_return_null=1:halt_on_error=1:exitcode=66"
threads='unit_attention_dp unit_attention_half unit_attention_patterns unit_attention_plans unit_attention_simple unit_core_memory
    unit_core_pool unit_ctx unit_gemm unit_gemm_bf16 unit_generate unit_inspect unit_layers unit_layer_half unit_layer_rows unit_map
    unit_map_tree unit_mha_half unit_model_threads unit_probes unit_run unit_saturation unit_train_arch unit_train_parts
    unit_train_run unit_tsne_kernels prop_attention prop_attention_blocks prop_attention_columns prop_attention_decode
    prop_attention_onnx prop_attention_packed prop_attention_stats prop_attention_types prop_bert dist_backward dist_columns dist_decode
    dist_ordered dist_ulysses
    hostile_attention_nested hostile_attention_process hostile_attention_threads'
some_tests tsan "" -R "^($(echo $threads | tr ' ' '|'))\$"
echo "$n_cases cases"
