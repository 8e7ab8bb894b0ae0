# Tests run within limits of CPU time that are multiples of what a known piece of work takes here (tests/limits). The test `pace`
# measures it before all others of a run of ctest; no test has a limit by the clock, which also runs while others compute.
add_executable(pace ${PROJECT_SOURCE_DIR}/tests/limits/pace.c)
add_executable(bounded ${PROJECT_SOURCE_DIR}/tests/limits/bounded.c)
foreach(program pace bounded)
    target_link_libraries(${program} PRIVATE qkv_flags)
endforeach()
set(qkv_pace_file ${CMAKE_BINARY_DIR}/pace.txt)
add_test(NAME pace COMMAND pace ${qkv_pace_file})
set_tests_properties(pace PROPERTIES FIXTURES_SETUP pace LABELS quick)

# Reference seconds of CPU of a test: many times what any takes, for loops that do not end.
set(limit_seconds 1500)
# ctest's own limit is by the clock: hours, which only what hangs reaches.
set(no_timeout 7200)

# qkv_test(NAME name [WORKING_DIRECTORY folder] COMMAND program [argument…]): add_test, within limits. An emulator starts no other
# programs: there, tests have no limits.
function(qkv_test)
    cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;WORKING_DIRECTORY" "COMMAND")
    if(NOT ARG_WORKING_DIRECTORY)
        set(ARG_WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
    endif()
    if(NOT CMAKE_CROSSCOMPILING)
        list(POP_FRONT ARG_COMMAND program)
        if(TARGET ${program})
            set_property(GLOBAL PROPERTY qkv_program_of_${ARG_NAME} ${program})
            set(program $<TARGET_FILE:${program}>)
        endif()
        list(PREPEND ARG_COMMAND bounded ${qkv_pace_file} ${limit_seconds} ${program})
    endif()
    add_test(NAME ${ARG_NAME} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${ARG_WORKING_DIRECTORY})
    set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT ${no_timeout} FIXTURES_REQUIRED pace)
endfunction()
