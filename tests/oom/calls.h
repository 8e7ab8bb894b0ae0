/*
 * The groups of calls, one file each. Together they must have every public function that returns a
 * status, which complete.sh checks.
 */
#ifndef OOM_CALLS_H
#define OOM_CALLS_H

#include "oom/sweep.h"

extern const oom_group oom_attention, oom_columns, oom_kv, oom_layers, oom_text, oom_store,
    oom_model, oom_onnx, oom_pairs, oom_generate, oom_heads, oom_inspect, oom_patterns, oom_train,
    oom_view, oom_rotary, oom_eval, oom_image, oom_vision;

#endif
