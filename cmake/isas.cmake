# Which instruction sets have kernels in a build, and how these are compiled.
set(QKV_ISAS all CACHE STRING "Instruction sets to build kernels for: all, native (those of this processor), or a list")
option(QKV_SANITIZE_KERNELS "With QKV_SANITIZE, instrument the kernels, too; OFF compiles them as fast as can be" ON)
option(QKV_SANITIZE_VECTORS "By clang, check undefined behaviour in kernels of vectors, too" OFF)

# The compiler knows for which processor it compiles, CMake sometimes does not.
include(CheckSymbolExists)
check_symbol_exists(__x86_64__ stdint.h QKV_FOR_X86_64)
check_symbol_exists(__aarch64__ stdint.h QKV_FOR_AARCH64)
set(known_isas avx2 avx512 avx512bf16 neon) # beside scalar, which is always there
set(possible_isas "")
if(QKV_FOR_X86_64)
    set(possible_isas avx2 avx512 avx512bf16)
elseif(QKV_FOR_AARCH64)
    set(possible_isas neon)
endif()

# qkv_native_isas(RESULT): what the first processor of /proc/cpuinfo has. Each set includes those before it.
function(qkv_native_isas result)
    set(needs_avx2 avx2 fma f16c)
    set(needs_avx512 avx512f avx512bw avx512vl avx512dq)
    set(needs_avx512bf16 avx512_bf16 avx512_vnni)
    set(needs_neon asimd)
    file(STRINGS /proc/cpuinfo lines REGEX "^(flags|Features)[ \t]*:" LIMIT_COUNT 1)
    string(REGEX MATCHALL "[a-z0-9_]+" flags "${lines}")
    set(found "")
    foreach(isa IN LISTS possible_isas)
        foreach(flag IN LISTS needs_${isa})
            if(NOT flag IN_LIST flags)
                set(${result} ${found} PARENT_SCOPE)
                return()
            endif()
        endforeach()
        list(APPEND found ${isa})
    endforeach()
    set(${result} ${found} PARENT_SCOPE)
endfunction()

if(QKV_ISAS STREQUAL "all")
    set(isas ${possible_isas})
elseif(QKV_ISAS STREQUAL "native")
    qkv_native_isas(isas)
else()
    set(isas ${QKV_ISAS})
    foreach(isa IN LISTS isas)
        if(NOT isa IN_LIST possible_isas AND NOT isa STREQUAL "scalar")
            list(JOIN possible_isas " " names)
            message(FATAL_ERROR "QKV_ISAS: there is no '${isa}' here: all, native, scalar ${names}")
        endif()
    endforeach()
endif()
set(qkv_isas_left_out ${known_isas})
list(REMOVE_ITEM qkv_isas_left_out scalar ${isas})
foreach(isa IN LISTS qkv_isas_left_out)
    string(TOUPPER ${isa} name)
    target_compile_definitions(qkv_flags INTERFACE QKV_WITHOUT_${name})
endforeach()
list(JOIN qkv_isas_left_out "|" qkv_isas_left_out)
set(qkv_isas_left_out "/(isa|blocks)_(${qkv_isas_left_out}|none)\\.c$")

# One file, one instruction set: isa_<name>.c is the only one compiled with its flags. At -O1 gcc forgets to clear the upper
# halves of registers on return unless told -fexpensive-optimizations.
set(clear_upper $<$<C_COMPILER_ID:GNU>:-fexpensive-optimizations>)
set_source_files_properties(src/kernels/isa_avx2.c PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;${clear_upper}")
# Products by blocks of GGUF files are objects of their own, which compile in seconds.
set_source_files_properties(src/kernels/blocks_avx2.c PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;${clear_upper}")
set_source_files_properties(src/kernels/blocks_scalar.c PROPERTIES COMPILE_OPTIONS "-O3")
set(avx512 "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx2;-mfma;-mprefer-vector-width=512;${clear_upper}")
set_source_files_properties(src/kernels/isa_avx512.c PROPERTIES COMPILE_OPTIONS "${avx512}")
set_source_files_properties(src/kernels/isa_avx512bf16.c PROPERTIES COMPILE_OPTIONS "${avx512};-mavx512bf16;-mavx512vnni")
if(QKV_FOR_X86_64)
    set_source_files_properties(src/kernels/amx.c PROPERTIES COMPILE_OPTIONS
        "${avx512};-mavx512bf16;-mamx-tile;-mamx-bf16")
endif()
# Before registers are given out, compilers for AArch64 move loads ahead of each other until accumulators no longer fit.
set_source_files_properties(src/kernels/isa_neon.c PROPERTIES COMPILE_OPTIONS
    "$<$<C_COMPILER_ID:GNU>:-fno-schedule-insns>;$<$<C_COMPILER_ID:Clang>:-mllvm;-enable-misched=false>")

if(QKV_SANITIZE AND NOT QKV_SANITIZE_KERNELS)
    foreach(isa scalar ${isas})
        set_property(SOURCE src/kernels/isa_${isa}.c APPEND PROPERTY COMPILE_OPTIONS "-O0;-fno-sanitize=all")
    endforeach()
elseif(QKV_SANITIZE) # instrumented and inlined over 16 lanes, scalar code takes the compiler a minute
    set_source_files_properties(src/kernels/isa_scalar.c PROPERTIES COMPILE_OPTIONS "-Os")
endif()
# Where a hot loop begins within a line of the cache is worth 2 %: other functions shall not move it.
foreach(isa scalar avx2 avx512 avx512bf16 neon)
    set_property(SOURCE src/kernels/isa_${isa}.c APPEND PROPERTY COMPILE_OPTIONS -falign-functions=64)
endforeach()
# Of the kernels, fuzzers count no edges: what leads to them is above. Clang checks what they do in the scalar ones, which are the
# same templates (fuzzers but for pointers that are computed and not used); in those of vectors only what they read and write:
# more takes it 20 minutes a file. QKV_SANITIZE_VECTORS asks for it.
if(QKV_FUZZ)
    set_property(SOURCE src/kernels/isa_scalar.c
        APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=fuzzer-no-link,pointer-overflow")
endif()
if(QKV_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL Clang AND NOT QKV_SANITIZE_VECTORS)
    set_property(SOURCE src/kernels/isa_avx2.c src/kernels/isa_avx512.c src/kernels/isa_avx512bf16.c src/kernels/isa_neon.c
        APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=fuzzer-no-link,undefined,float-cast-overflow")
endif()
