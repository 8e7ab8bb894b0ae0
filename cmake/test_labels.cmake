# Each test has one of the labels quick, long, memory and deep, by which `./dev test` chooses (tools/run_tests.sh). Those that run under
# sanitizers, too, are also labelled sanitized, and parser if they are about what reads bytes from outside. A folder's CMakeLists.txt
# calls qkv_label_tests() at its end.
#
# Minutes: mpi_train does what the recipe does in fewer and smaller steps, and 2, 3 and 5 ranks do what 8 do.
set(qkv_deep_tests mpi_recipe mpi_ranks_8)
# Long tests: 10 s and more of a core (AMD Zen 5, two jobs), where quicker tests run the same code. Behind each: its seconds.
set(qkv_long_tests
    mpi_ranks_5                     # 90
    prop_attention_types            # 51
    dist_ring                       # 26: what MPI runs of it is in mpi_ranks
    prop_attention_mask_gradient    # 33
    hostile_attention_values        # 28
    cli_check                       # 24: the kernels again, by the tool
    prop_attention_stats            # 21
    prop_attention_columns          # 19
    dist_ordered                    # 19
    cli_interrupts                  # 18
    prop_attention_dp               # 17
    hostile_attention_huge          # 17
    prop_attention_decode_stats     # 16
    hostile_attention_hidden        # 16
    hostile_attention_half_values   # 14
    dist_columns                    # 15
    dist_backward                   # 14
    hostile_attention_nested        # 14
    hostile_attention_threads       # 12
    hostile_attention_options)      # 11
set(qkv_sanitized_tests "^(unit|prop|golden|dist|fuzz|hostile|oom)_")
# A minute and more under AddressSanitizer, which look at numbers of calls that other tests make there: they are left out.
set(qkv_number_tests
    hostile_attention_huge hostile_attention_values prop_attention_columns_facts prop_attention_dp prop_attention_mask_gradient
    unit_train_compute)
# Minutes there, or half a minute of the release build: they start first, so that none is left running alone.
set(qkv_first_tests oom_train oom_view oom_model oom_kill cli_manual check prop_net hostile_attention_nested)
# (fuzz_attend, of the tool's options, would need the whole tool; fuzz_attention and fuzz_kv read no bytes from outside.)
string(CONCAT qkv_parser_tests
    "^(fuzz_|unit_(serve_|store_|image|tokenizer|bpe|vocab|table|added_tokens|generation_config|grammar)|prop_store_"
    "|golden_(added|bpe|gguf|image|sentence|spm|stored|strings|tokenizer)"
    "|hostile_(audit|decoder_files|family_files|gguf|image|model_files|np[yz]|safetensors|shards|small_files|spm|tables|vocab))")

# Programs of the tests that run under sanitizers: a build of these alone, too, is what they need.
add_custom_target(sanitized_tests)
add_custom_target(parser_tests)

function(qkv_add_program target test)
    get_property(program GLOBAL PROPERTY qkv_program_of_${test})
    add_dependencies(${target} pace bounded ${program})
endfunction()

function(qkv_label_tests)
    get_property(tests DIRECTORY PROPERTY TESTS)
    foreach(test IN LISTS tests)
        set(labels quick)
        if(test IN_LIST qkv_long_tests)
            set(labels long)
        elseif(test IN_LIST qkv_deep_tests)
            set(labels deep)
        elseif(test MATCHES "^oom_" AND NOT test STREQUAL oom_complete)
            set(labels memory)
        elseif(test MATCHES "${qkv_parser_tests}" AND NOT test MATCHES "^fuzz_(attend|attention|kv)$")
            list(APPEND labels parser)
            qkv_add_program(parser_tests ${test})
        endif()
        if(test MATCHES "${qkv_sanitized_tests}" AND NOT test IN_LIST qkv_number_tests)
            list(APPEND labels sanitized)
            qkv_add_program(sanitized_tests ${test})
        endif()
        if("long" IN_LIST labels OR test IN_LIST qkv_first_tests)
            set_property(TEST ${test} PROPERTY COST 10)
        endif()
        set_property(TEST ${test} PROPERTY LABELS ${labels})
    endforeach()
endfunction()
