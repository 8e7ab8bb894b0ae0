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
if(avx512bf16 IN_LIST isas)
    list(APPEND isas avx512) # of which it takes parts
endif()
list(PREPEND isas scalar)
list(REMOVE_DUPLICATES isas)
set(qkv_isas_left_out ${known_isas})
list(REMOVE_ITEM qkv_isas_left_out ${isas})
foreach(isa IN LISTS qkv_isas_left_out)
    string(TOUPPER ${isa} name)
    target_compile_definitions(qkv_flags INTERFACE QKV_WITHOUT_${name})
endforeach()
set(blocks_left_out none ${qkv_isas_left_out})
if(avx2 IN_LIST qkv_isas_left_out)
    list(APPEND blocks_left_out avxvnni)
endif()
if(avx512 IN_LIST qkv_isas_left_out)
    list(APPEND blocks_left_out avx512vnni)
endif()
list(JOIN blocks_left_out "|" blocks_left_out)
# isa_<name>.c is compiled in parts, below, of which each is an object: all at once takes two minutes a set.
set(qkv_isas_left_out "/(isa_[a-z0-9]+|blocks_(${blocks_left_out}))\\.c$")

# The parts of tmpl/isa_table.h: kernels/isa_<name>_<part>.c in the build folder.
set(kernel_parts table gemm attend columns rows bwd decode layer tsne)
set(kernel_sources "")
foreach(isa IN LISTS isas)
    set(parts ${kernel_parts})
    if(isa STREQUAL avx512bf16)
        list(REMOVE_ITEM parts rows decode layer tsne) # those are of avx512
    endif()
    set(kernels_${isa} "")
    foreach(part ${parts})
        set(source ${PROJECT_BINARY_DIR}/kernels/isa_${isa}_${part}.c)
        string(TOUPPER ${part} name)
        file(CONFIGURE OUTPUT ${source} @ONLY
            CONTENT "#define ISA_PART ISA_${name}\n#include \"kernels/isa_${isa}.c\"\n")
        list(APPEND kernels_${isa} ${source})
    endforeach()
    list(APPEND kernel_sources ${kernels_${isa}})
endforeach()

# qkv_kernel_options(ISA OPTIONS…): for all objects of one instruction set.
function(qkv_kernel_options isa)
    if(kernels_${isa})
        set_property(SOURCE ${kernels_${isa}} APPEND PROPERTY COMPILE_OPTIONS ${ARGN})
    endif()
endfunction()

# One file, one instruction set: no other source is compiled with its flags. At -O1 gcc forgets to clear the upper halves of
# registers on return unless told -fexpensive-optimizations.
set(clear_upper $<$<C_COMPILER_ID:GNU>:-fexpensive-optimizations>)
set(avx2 -mavx2 -mfma -mf16c ${clear_upper})
set(avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mprefer-vector-width=512 ${clear_upper})
qkv_kernel_options(avx2 ${avx2})
qkv_kernel_options(avx512 ${avx512})
qkv_kernel_options(avx512bf16 ${avx512} -mavx512bf16 -mavx512vnni)
# Products by blocks of GGUF files.
set_source_files_properties(src/kernels/blocks_avx2.c PROPERTIES COMPILE_OPTIONS "${avx2}")
set_source_files_properties(src/kernels/blocks_avxvnni.c PROPERTIES COMPILE_OPTIONS "${avx2};-mavxvnni")
set_source_files_properties(src/kernels/blocks_avx512vnni.c PROPERTIES COMPILE_OPTIONS "${avx512};-mavx512vnni")
set_source_files_properties(src/kernels/blocks_scalar.c PROPERTIES COMPILE_OPTIONS "-O3")
if(QKV_FOR_X86_64)
    set_source_files_properties(src/kernels/amx.c PROPERTIES COMPILE_OPTIONS
        "${avx512};-mavx512bf16;-mamx-tile;-mamx-bf16")
endif()
# Before registers are given out, compilers for AArch64 move loads ahead of each other until accumulators no longer fit.
qkv_kernel_options(neon $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns>
    "$<$<C_COMPILER_ID:Clang>:-mllvm;-enable-misched=false>")

if(QKV_SANITIZE AND NOT QKV_SANITIZE_KERNELS)
    foreach(isa IN LISTS isas)
        qkv_kernel_options(${isa} -O0 -fno-sanitize=all)
    endforeach()
elseif(QKV_SANITIZE) # instrumented and inlined over 16 lanes, scalar code takes the compiler a minute
    qkv_kernel_options(scalar -Os)
endif()
# Where a hot loop begins within a line of the cache is worth 2 %: other functions shall not move it.
foreach(isa IN LISTS isas)
    qkv_kernel_options(${isa} -falign-functions=64)
endforeach()
# Of the kernels, fuzzers count no edges: what leads to them is above. Clang checks what they do in the scalar ones, which are the
# same templates (fuzzers but for pointers that are computed and not used); in those of vectors only what they read and write:
# more takes it 20 minutes a set. QKV_SANITIZE_VECTORS asks for it.
if(QKV_FUZZ)
    qkv_kernel_options(scalar -fno-sanitize=fuzzer-no-link,pointer-overflow)
endif()
if(QKV_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL Clang AND NOT QKV_SANITIZE_VECTORS)
    foreach(isa IN LISTS isas)
        if(NOT isa STREQUAL scalar)
            qkv_kernel_options(${isa} -fno-sanitize=fuzzer-no-link,undefined,float-cast-overflow)
        endif()
    endforeach()
endif()
