# find_package(qkv) makes the targets
#     qkv::qkv, qkv::model, qkv::view                         shared libraries
#     qkv::qkv_static, qkv::model_static, qkv::view_static    the same, static
#     qkv::mpi, qkv::mpi_static                               where qkv was built with MPI
# Components qkv, model, view and mpi may be named. What static libraries link is looked for too, and not insisted on.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(JANSSON QUIET IMPORTED_TARGET jansson)
    pkg_check_modules(UTF8PROC QUIET IMPORTED_TARGET libutf8proc)
    pkg_check_modules(PANGOCAIRO QUIET IMPORTED_TARGET pangocairo cairo)
    pkg_check_modules(ZLIB QUIET IMPORTED_TARGET zlib)
    pkg_check_modules(IMAGES QUIET IMPORTED_TARGET libpng libjpeg)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/qkv-targets.cmake)
if(TARGET qkv::mpi)
    find_package(MPI QUIET COMPONENTS C)
endif()
foreach(component IN LISTS qkv_FIND_COMPONENTS)
    if(TARGET qkv::${component})
        set(qkv_${component}_FOUND TRUE)
    elseif(qkv_FIND_REQUIRED_${component})
        set(qkv_FOUND FALSE)
        set(qkv_NOT_FOUND_MESSAGE "qkv has no component '${component}': only qkv, model and view, and mpi if it was built with MPI")
    endif()
endforeach()
