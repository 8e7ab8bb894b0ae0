# The check of kernels, which is part of the tool: the library against a double oracle, and against itself on every
# instruction set.
file(GLOB check_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/check/*.c)
list(FILTER check_sources EXCLUDE REGEX "/(main|os_${other_system})\\.c$")
add_library(qkvcheck STATIC ${check_sources})
target_link_libraries(qkvcheck PRIVATE qkv_flags PUBLIC qkv m)
# gcc 12 for AArch64 fails at the maximum of an array by fmax ("internal compiler error: in vect_transform_reduction").
if(QKV_FOR_AARCH64 AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    target_compile_options(qkvcheck PRIVATE -fno-tree-loop-vectorize)
endif()
target_include_directories(qkvcheck PUBLIC ${PROJECT_SOURCE_DIR}/tests)
# The same alone, for those who work on kernels.
add_executable(qkv-check ${PROJECT_SOURCE_DIR}/tests/check/main.c)
target_link_libraries(qkv-check PRIVATE qkv_flags qkvcheck)

# The tool, with the embedded model: the files of models/default, byte for byte (cli/embedded.S).
file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
list(FILTER cli_sources EXCLUDE REGEX "/os_[a-z_]*${other_system}\\.c$")
if(cli_sources)
    enable_language(ASM)
    set(tool_texts ${PROJECT_SOURCE_DIR}/cli/texts.S) # embeds the texts of the tool
    file(GLOB text_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/help/*.txt ${PROJECT_SOURCE_DIR}/cli/help/completion.*
        ${PROJECT_SOURCE_DIR}/cli/common/*.html ${PROJECT_SOURCE_DIR}/cli/attend/*.json ${PROJECT_SOURCE_DIR}/cli/serve/start.*
        ${PROJECT_SOURCE_DIR}/docs/tutorial.md)
    set(ranks_mpi ${PROJECT_SOURCE_DIR}/cli/common/ranks_mpi.c)
    set(ranks_none ${PROJECT_SOURCE_DIR}/cli/common/ranks_none.c)
    # What differs between the programs that have the commands: qkv, qkv-mpi, and fuzz_attend
    set(tool_mains ${PROJECT_SOURCE_DIR}/cli/main.c ${PROJECT_SOURCE_DIR}/cli/embedded.c)
    list(REMOVE_ITEM cli_sources ${ranks_mpi} ${ranks_none} ${tool_mains})
    add_library(qkv-commands OBJECT ${cli_sources})
    target_include_directories(qkv-commands PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/cli ${PROJECT_SOURCE_DIR}/cmake)
    target_link_libraries(qkv-commands PUBLIC qkv_flags qkvview qkvcheck qkvbench PkgConfig::JANSSON PkgConfig::UTF8PROC PkgConfig::ZLIB)
    add_executable(qkv-tool ${tool_mains} ${ranks_none} ${tool_texts})
    set_source_files_properties(${tool_texts} PROPERTIES OBJECT_DEPENDS "${text_files};${embed_headers}")
    set_target_properties(qkv-tool PROPERTIES OUTPUT_NAME qkv)
    qkv_harden(qkv-tool)
    if(WIN32)
        target_link_libraries(qkv-commands PUBLIC ws2_32 bcrypt shell32)
        set(resources ${PROJECT_SOURCE_DIR}/cli/os_windows.S)
        target_sources(qkv-tool PRIVATE ${resources})
        set_source_files_properties(${resources} PROPERTIES OBJECT_DEPENDS ${PROJECT_SOURCE_DIR}/cli/os_windows.manifest)
    endif()
    target_link_libraries(qkv-tool PRIVATE qkv-commands)
    if(EXISTS ${PROJECT_SOURCE_DIR}/models/default/model.safetensors)
        target_sources(qkv-tool PRIVATE ${PROJECT_SOURCE_DIR}/cli/embedded.S)
        target_compile_definitions(qkv-tool PRIVATE QKV_EMBEDDED_MODEL)
        set_source_files_properties(${PROJECT_SOURCE_DIR}/cli/embedded.S PROPERTIES OBJECT_DEPENDS
            "${embed_headers};${PROJECT_SOURCE_DIR}/models/default/config.json;${PROJECT_SOURCE_DIR}/models/default/vocab.txt;${PROJECT_SOURCE_DIR}/models/default/model.safetensors")
    endif()
    # The same with MPI, which the tool becomes where mpirun starts it for several ranks: qkv itself needs no MPI.
    if(TARGET qkvmpi)
        get_target_property(tool_sources qkv-tool SOURCES)
        list(REMOVE_ITEM tool_sources ${ranks_none})
        add_executable(qkv-mpi ${tool_sources} ${ranks_mpi})
        qkv_harden(qkv-mpi)
        set_target_properties(qkv-mpi PROPERTIES COMPILE_DEFINITIONS "$<TARGET_PROPERTY:qkv-tool,COMPILE_DEFINITIONS>")
        target_link_libraries(qkv-mpi PRIVATE qkvmpi qkv-commands)
    endif()
endif()

# The cases of `qkv bench` and how they are measured: for the tool, and for what bench/*.py load.
file(GLOB suite_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/suite/*.c)
add_library(qkvbench STATIC ${suite_sources})
target_link_libraries(qkvbench PRIVATE qkv_flags PUBLIC qkv m)
target_include_directories(qkvbench PUBLIC ${PROJECT_SOURCE_DIR}/bench)
set_target_properties(qkvbench PROPERTIES POSITION_INDEPENDENT_CODE ON)

# What bench/peers.py loads: these cases beside the library.
if(QKV_TESTS)
    add_library(peers MODULE ${PROJECT_SOURCE_DIR}/bench/peers_shim.c)
    target_link_libraries(peers PRIVATE qkv_flags qkvbench)

    # and bench/models.py: whole models.
    add_library(models MODULE ${PROJECT_SOURCE_DIR}/bench/models_shim.c ${PROJECT_SOURCE_DIR}/bench/models_steps.c)
    target_include_directories(models PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(models PRIVATE qkv_flags qkvmodel qkvbench)
endif()
