# What the tool says of itself, as files beside it: completions, and, where scdoc is there, manual pages. The tool writes them, so a
# build for another processor makes them in its emulator, or, without CMAKE_CROSSCOMPILING_EMULATOR, goes without.
include(GNUInstallDirs)

find_program(SCDOC scdoc)
if(NOT TARGET qkv-tool)
    return()
elseif(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    message(STATUS "No manual pages and no completions: nothing here runs the tool that writes them")
    return()
endif()
set(tool ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:qkv-tool>)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man ${CMAKE_BINARY_DIR}/completions)

# qkv_made(OUTPUT SOURCES COMMAND…): a file of what a command prints, or none if it fails
function(qkv_made output sources)
    add_custom_command(OUTPUT ${output} DEPENDS qkv-tool ${sources} VERBATIM
        COMMAND sh -c "\"$@\" >'${output}' || { rm -f '${output}'; exit 1; }" sh ${ARGN})
endfunction()

foreach(shell bash:qkv.bash:bash-completion/completions:qkv zsh:_qkv:zsh/site-functions:_qkv
        fish:qkv.fish:fish/vendor_completions.d:qkv.fish)
    string(REPLACE ":" ";" shell ${shell})
    list(POP_FRONT shell name file folder installed)
    set(made ${CMAKE_BINARY_DIR}/completions/${file})
    qkv_made(${made} "" ${tool} help --format ${name})
    list(APPEND made_files ${made})
    install(FILES ${made} RENAME ${installed} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
endforeach()

file(GLOB manual_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/man/*.scd)
set(merge ${PROJECT_SOURCE_DIR}/cli/man/merge.sh)
foreach(source IN LISTS manual_sources)
    get_filename_component(page ${source} NAME_WLE) # qkv-look.1
    string(REGEX REPLACE ".*\\." "" section ${page})
    set(made ${CMAKE_BINARY_DIR}/man/${page})
    qkv_made(${made}.scd "${source};${merge}" sh ${merge} ${source} ${tool})
    list(APPEND made_files ${made}.scd)
    if(SCDOC)
        add_custom_command(OUTPUT ${made} DEPENDS ${made}.scd VERBATIM
            COMMAND sh -c "'${SCDOC}' <'${made}.scd' >'${made}' || { rm -f '${made}'; exit 1; }")
        list(APPEND made_files ${made})
        install(FILES ${made} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    endif()
endforeach()
add_custom_target(qkv_manual ALL DEPENDS ${made_files})
