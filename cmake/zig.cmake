# Another system or C library by zig of PyPI, which is clang with the headers and the libraries of all of them: QKV_ZIG_TARGET names
# one, such as x86_64-linux-musl. `./dev build PRESET` puts zig into build/zig, and what the libraries need into QKV_ROOT
# (tools/dependencies.sh).
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES QKV_ZIG_TARGET QKV_ROOT)
string(REGEX MATCH "^([a-z0-9_]+)-([a-z]+)" parts "${QKV_ZIG_TARGET}")
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
if(CMAKE_MATCH_2 STREQUAL macos)
    set(CMAKE_SYSTEM_NAME Darwin)
    set(CMAKE_INSTALL_NAME_TOOL /bin/true) # what is installed is what was linked
elseif(CMAKE_MATCH_2 STREQUAL windows)
    set(CMAKE_SYSTEM_NAME Windows)
elseif(CMAKE_MATCH_2 STREQUAL wasi)
    set(CMAKE_SYSTEM_NAME Generic) # CMake knows no WASI
else()
    set(CMAKE_SYSTEM_NAME Linux)
endif()

get_filename_component(programs ${CMAKE_CURRENT_LIST_DIR}/../build/zig/targets/${QKV_ZIG_TARGET} ABSOLUTE)
set(CMAKE_C_COMPILER ${programs}/cc)
set(CMAKE_ASM_COMPILER ${programs}/cc)
set(CMAKE_AR ${programs}/ar)
set(CMAKE_RANLIB ${programs}/ranlib)
set(CMAKE_RC_COMPILER ${programs}/rc)

set(CMAKE_FIND_ROOT_PATH ${QKV_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${QKV_ROOT}/lib/pkgconfig:${QKV_ROOT}/share/pkgconfig)
