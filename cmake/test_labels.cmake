# Each test has one of the labels quick, long, memory and deep, by which `./dev test` chooses (tools/run_tests.sh). Those that run under
# sanitizers, too, are also labelled sanitized, and parser if they are about what reads bytes from outside. A folder's CMakeLists.txt
# calls qkv_label_tests() at its end.
#
# Tests of steps of --deep: tools/deep/STEP.sh runs those with the label step_STEP. A minute and more of CPU each, where cheaper
# tests of --all run the same code: 2 and 3 ranks do what 5 and 8 do, mpi_train what the recipe does in fewer and smaller steps,
# unit_attention_half and prop_attention_dp some of what prop_attention_types does, dist_ulysses and dist_decode the pieces of the
# other schemes.
set(qkv_steps mpi mpi-lines long)
set(qkv_step_mpi mpi_recipe mpi_ranks_8)
set(qkv_step_mpi-lines mpi_ranks_5 mpi_lines)
set(qkv_step_long
    cli_check dist_backward dist_columns dist_ring hostile_attention_values oom_kill prop_attention_mask_gradient
    prop_attention_types)
# The same under sanitizers, where they take three times as long: tests of 20 s and more there. What is left of the same folders
# reads and writes in the same places.
set(qkv_sanitized_steps sanitized-attention sanitized-hostile sanitized-dist sanitized-memory sanitized-train)
set(qkv_step_sanitized-attention
    prop_attention_blocks prop_attention_distance prop_attention_dropout prop_attention_packed prop_attention_rules
    unit_attention_announced unit_attention_explain)
set(qkv_step_sanitized-hostile
    hostile_attention_fpstate hostile_attention_half_values hostile_attention_hidden hostile_attention_nested
    hostile_attention_options hostile_attention_process hostile_attention_threads)
set(qkv_step_sanitized-dist dist_backward dist_columns dist_ordered dist_ring dist_ulysses)
set(qkv_step_sanitized-memory oom_kill oom_model oom_train oom_view)
set(qkv_step_sanitized-train
    prop_bert prop_net unit_gemm_bf16 unit_map_tree unit_mha_half unit_train_arch unit_train_resume unit_train_run
    unit_train_slices)
# Long tests: 10 s and more of a core (AMD Zen 5, two jobs), where quicker tests run the same code. Behind each: its seconds.
set(qkv_long_tests
    prop_attention_stats            # 21
    prop_attention_columns          # 19
    dist_ordered                    # 19
    cli_interrupts                  # 18
    prop_attention_dp               # 17
    hostile_attention_huge          # 17
    prop_attention_decode_stats     # 16
    hostile_attention_hidden        # 16
    hostile_attention_half_values   # 14
    hostile_attention_nested        # 14
    hostile_attention_threads       # 12
    hostile_attention_options)      # 11
set(qkv_sanitized_tests "^(unit|prop|golden|dist|fuzz|hostile|oom)_")
# A minute and more under AddressSanitizer, which look at numbers of calls that other tests make there: they are left out.
set(qkv_number_tests
    hostile_attention_huge hostile_attention_values prop_attention_columns_facts prop_attention_dp prop_attention_mask_gradient
    unit_train_compute)
# Minutes there, or half a minute of the release build: they start first, so that none is left running alone.
set(qkv_first_tests oom_train oom_view oom_model cli_manual check mpi_look mpi_train unit_attention_announced)
# (fuzz_attend, of the tool's options, would need the whole tool; fuzz_attention and fuzz_kv read no bytes from outside.)
string(CONCAT qkv_parser_tests
    "^(fuzz_|unit_(serve_|store_|image|tokenizer|bpe|vocab|table|added_tokens|generation_config|grammar)|prop_store_"
    "|golden_(added|bpe|gguf|image|sentence|spm|stored|strings|tokenizer)"
    "|hostile_(audit|decoder_files|family_files|gguf|image|model_files|np[yz]|safetensors|shards|small_files|spm|tables|vocab))")

# Programs of the tests that run under sanitizers: a build of these alone, too, is what they need.
add_custom_target(sanitized_tests)
add_custom_target(parser_tests)
foreach(step IN LISTS qkv_sanitized_steps)
    add_custom_target(step_${step})
endforeach()

function(qkv_add_program target test)
    get_property(program GLOBAL PROPERTY qkv_program_of_${test})
    add_dependencies(${target} pace bounded ${program})
endfunction()

# qkv_step_of(TEST STEPS RESULT): the one of the steps that the test belongs to, or nothing
function(qkv_step_of test steps result)
    set(${result} "" PARENT_SCOPE)
    foreach(step IN LISTS ${steps})
        if(test IN_LIST qkv_step_${step})
            set(${result} ${step} PARENT_SCOPE)
        endif()
    endforeach()
endfunction()

function(qkv_label_tests)
    get_property(tests DIRECTORY PROPERTY TESTS)
    foreach(test IN LISTS tests)
        set(labels quick)
        qkv_step_of(${test} qkv_steps step)
        qkv_step_of(${test} qkv_sanitized_steps sanitized_step)
        if(step)
            set(labels deep step_${step})
        elseif(test IN_LIST qkv_long_tests)
            set(labels long)
        elseif(test MATCHES "^oom_" AND NOT test STREQUAL oom_complete)
            set(labels memory)
        elseif(test MATCHES "${qkv_parser_tests}" AND NOT test MATCHES "^fuzz_(attend|attention|kv)$")
            list(APPEND labels parser)
            qkv_add_program(parser_tests ${test})
        endif()
        if(sanitized_step)
            list(APPEND labels step_${sanitized_step})
            qkv_add_program(step_${sanitized_step} ${test})
        elseif(test MATCHES "${qkv_sanitized_tests}" AND NOT test IN_LIST qkv_number_tests)
            list(APPEND labels sanitized)
            qkv_add_program(sanitized_tests ${test})
        endif()
        if("long" IN_LIST labels OR test IN_LIST qkv_first_tests)
            set_property(TEST ${test} PROPERTY COST 10)
        endif()
        set_property(TEST ${test} PROPERTY LABELS ${labels})
    endforeach()
endfunction()
