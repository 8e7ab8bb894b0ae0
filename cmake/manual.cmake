# What the tool installs beside itself: manual pages, made by scdoc where it is there, and completions.
include(GNUInstallDirs)

find_program(SCDOC scdoc)
file(GLOB manual_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/man/*.scd)
if(SCDOC AND manual_sources)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man)
    foreach(source IN LISTS manual_sources)
        get_filename_component(page ${source} NAME_WLE) # qkv-look.1
        string(REGEX REPLACE ".*\\." "" section ${page})
        set(made ${CMAKE_BINARY_DIR}/man/${page})
        add_custom_command(OUTPUT ${made} DEPENDS ${source} VERBATIM
            COMMAND sh -c "'${SCDOC}' <'${source}' >'${made}' || { rm -f '${made}'; exit 1; }"
            COMMENT "Making ${page}")
        list(APPEND manual_pages ${made})
        install(FILES ${made} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
    endforeach()
    add_custom_target(qkv_manual ALL DEPENDS ${manual_pages})
endif()

set(completions ${PROJECT_SOURCE_DIR}/cli/completions)
install(FILES ${completions}/qkv.bash RENAME qkv DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completions}/_qkv DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${completions}/qkv.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
