# What makes an error of memory harder to use, in the builds that users get: SECURITY.md has the list, tools/check_hardening.sh
# reads the binaries. Debug builds and sanitizers go without it; of build types that are not CMake's, flags are the packager's.
if(QKV_FOR_WASM) # whose engine keeps a program in its memory, and its calls to functions
    return()
endif()
include(CheckCCompilerFlag)
include(CheckLinkerFlag)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

set(release_types $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
set(harden_compile -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
set(harden_link)
set(CMAKE_REQUIRED_FLAGS -Werror) # clang accepts what it does not know, with a warning
foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER QKV_HAS${flag} has)
    check_c_compiler_flag(${flag} ${has})
    if(${has})
        list(APPEND harden_compile ${flag})
    endif()
endforeach()
# shstk: start files of a C library without CET do not mark theirs, and a binary has only what all of its objects have. Their
# calls and returns are those of any program. (ibt needs more of them: an ENDBR.)
foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,shstk)
    string(MAKE_C_IDENTIFIER QKV_HAS${flag} has)
    if(flag STREQUAL -Wl,-z,shstk AND NOT QKV_FOR_X86_64)
        continue()
    endif()
    check_linker_flag(C ${flag} ${has})
    if(${has})
        list(APPEND harden_link ${flag})
    endif()
endforeach()
unset(CMAKE_REQUIRED_FLAGS)

if(NOT QKV_SANITIZE)
    target_compile_options(qkv_flags INTERFACE "$<${release_types}:${harden_compile}>")
endif()

# qkv_harden(TARGET): a shared library or a program
function(qkv_harden target)
    if(NOT QKV_SANITIZE)
        target_link_options(${target} PRIVATE "$<${release_types}:${harden_link}>")
    endif()
endfunction()
