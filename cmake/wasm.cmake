# What is made for WebAssembly (preset wasm): programs in two modules of the same sources. An engine refuses a module that has one
# instruction which it does not know, so relaxed SIMD is not asked for at run time: kernels, and what tries whether they can be used
# (core/cpu.c), are compiled twice, into libraries of which a program links one.
set(CMAKE_EXECUTABLE_SUFFIX .wasm)
function(qkv_add_variant name)
    add_library(qkv_${name} STATIC ${kernels_wasm} src/core/cpu.c)
    target_link_libraries(qkv_${name} PRIVATE qkv_flags PUBLIC qkv)
    target_compile_options(qkv_${name} PRIVATE ${ARGN})
endfunction()
set(variants relaxed exact)
qkv_add_variant(relaxed -mrelaxed-simd)
qkv_add_variant(exact)

# A stack that runs over writes into the data of the program, without a word: it is at the end of memory, and no smaller than that
# of a main thread.
add_link_options(-Wl,-z,stack-size=8388608)

# libpng and libjpeg leave a failed call by longjmp, which is an exception of WebAssembly: zig's C library has it where a program is
# linked for exceptions, and leaves the tag of the exception to us. A program that reads no images is a module without.
target_sources(qkvmodel PRIVATE src/image/longjmp_tag.S)

# The check of kernels: build/wasm/qkv-check-relaxed.wasm, qkv-check-exact.wasm
file(GLOB check_sources CONFIGURE_DEPENDS tests/check/*.c)
list(FILTER check_sources EXCLUDE REGEX "/os_${other_system}\\.c$")
add_library(qkvcheck OBJECT ${check_sources})
target_link_libraries(qkvcheck PRIVATE qkv_flags)
target_include_directories(qkvcheck PRIVATE tests)
target_compile_options(qkvcheck PRIVATE ${test_options})
foreach(variant IN LISTS variants)
    add_executable(qkv-check-${variant})
    target_link_libraries(qkv-check-${variant} PRIVATE qkvcheck qkv_${variant})
endforeach()

# Its exact FMA by itself: build/wasm/fma-tile.wasm
add_executable(fma-tile tests/wasm/tile.c)
target_link_libraries(fma-tile PRIVATE qkv_flags qkv_exact)

# The engine of the live page (live/engine.c): build/wasm/engine-relaxed.wasm, engine-exact.wasm. It is `qkv look` without a command
# line, a server, and pictures; of the tool's files it has those that look needs.
file(GLOB look_sources CONFIGURE_DEPENDS cli/look/*.c cli/sinks/*.c cli/common/*.c)
list(FILTER look_sources EXCLUDE REGEX "/(cmd_look|serve|ranks_mpi|interrupts|os_windows)\\.c$")
add_library(qkvlook STATIC ${look_sources} src/view/none/refused.c)
target_include_directories(qkvlook PUBLIC . cli)
target_link_libraries(qkvlook PRIVATE qkv_flags PUBLIC qkvmodel PkgConfig::JANSSON PkgConfig::UTF8PROC PkgConfig::ZLIB)
add_library(live OBJECT live/engine.c live/words.c live/model.c)
target_link_libraries(live PRIVATE qkv_flags PUBLIC qkvlook)
foreach(variant IN LISTS variants)
    add_executable(engine-${variant})
    target_link_libraries(engine-${variant} PRIVATE live qkv_${variant})
    target_link_options(engine-${variant} PRIVATE -mexec-model=reactor -mexception-handling)
endforeach()
