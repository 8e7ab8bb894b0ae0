# What programs of others need: headers, a .pc file for each library, and the package that find_package(qkv) finds. Every path
# in them is relative to the file itself, so the installed tree may be moved. The libraries' own rules are where they are made;
# the manual's are in manual.cmake.
include(CMakePackageConfigHelpers)

if(NOT TARGET qkvmpi)
    set(headers_left_out PATTERN mpi.h EXCLUDE)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/qkv DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
    ${headers_left_out})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET qkv-tool)
    install(TARGETS qkv-tool)
    if(TARGET qkv-mpi)
        install(TARGETS qkv-mpi)
    endif()
    # What the examples of help and tutorial name, where cli/common/shared.c looks for it.
    set(shared ${CMAKE_INSTALL_DATADIR}/qkv)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/tables ${PROJECT_SOURCE_DIR}/examples/text
        ${PROJECT_SOURCE_DIR}/examples/images DESTINATION ${shared}/examples)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/translator ${PROJECT_SOURCE_DIR}/models/writer ${PROJECT_SOURCE_DIR}/models/seer DESTINATION ${shared}/models
        FILES_MATCHING PATTERN "*.json" PATTERN "merges.txt" PATTERN "*.safetensors")
    install(FILES ${PROJECT_SOURCE_DIR}/models/default/grammar.txt DESTINATION ${shared}/models/default)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/qkv)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/qkv-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT qkv-targets NAMESPACE qkv:: DESTINATION ${package_folder})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/qkv-config.cmake ${PROJECT_BINARY_DIR}/qkv-config-version.cmake
    DESTINATION ${package_folder})

# qkv_pkg_config(NAME DESCRIPTION REQUIRES … REQUIRES_PRIVATE … LIBS_PRIVATE …)
function(qkv_pkg_config name description)
    cmake_parse_arguments(ARG "" "" "REQUIRES;REQUIRES_PRIVATE;LIBS_PRIVATE" ${ARGN})
    foreach(field REQUIRES REQUIRES_PRIVATE LIBS_PRIVATE)
        list(JOIN ARG_${field} " " ${field})
    endforeach()
    set(folder /${CMAKE_INSTALL_LIBDIR}/pkgconfig) # up from here to the prefix
    file(RELATIVE_PATH up ${folder} /)
    string(REGEX REPLACE "/$" "" up "${up}")
    configure_file(${PROJECT_SOURCE_DIR}/cmake/library.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

qkv_pkg_config(qkv "Exact scaled dot-product attention" LIBS_PRIVATE -lm -pthread)
if(QKV_IMAGES)
    set(image_packages libpng libjpeg)
endif()
qkv_pkg_config(qkvmodel "Small transformer models and what their heads look at"
    REQUIRES "qkv = ${PROJECT_VERSION}" REQUIRES_PRIVATE jansson libutf8proc zlib ${image_packages} LIBS_PRIVATE -lm)
if(QKV_PICTURES)
    qkv_pkg_config(qkvview "Pictures of attention"
        REQUIRES "qkvmodel = ${PROJECT_VERSION}" REQUIRES_PRIVATE pangocairo cairo zlib LIBS_PRIVATE -lm)
endif()
# What is MPI's own, mpicc knows.
if(TARGET qkvmpi)
    qkv_pkg_config(qkvmpi "Attention over the ranks of an MPI communicator"
        REQUIRES "qkv = ${PROJECT_VERSION}")
endif()
