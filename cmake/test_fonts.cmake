# The fonts of the tests are DejaVu's, whatever else the system has: pictures have the same glyphs everywhere, and a test does not
# meet the faults of libraries in fonts that it does not name. ctest reads the environment from a file that its list of tests
# includes. QKV_TEST_FONTS in the environment names another configuration (tools/deep/fonts.sh).
find_path(QKV_DEJAVU DejaVuSans.ttf PATHS /usr/share/fonts /usr/local/share/fonts
    PATH_SUFFIXES truetype/dejavu dejavu TTF dejavu-sans-fonts NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
mark_as_advanced(QKV_DEJAVU)
if(QKV_DEJAVU)
    configure_file(${PROJECT_SOURCE_DIR}/tests/fonts.conf.in ${PROJECT_BINARY_DIR}/fonts.conf @ONLY)
    file(WRITE ${PROJECT_BINARY_DIR}/test_environment.cmake
        "set(ENV{FONTCONFIG_FILE} \"${PROJECT_BINARY_DIR}/fonts.conf\")
if(DEFINED ENV{QKV_TEST_FONTS})
    set(ENV{FONTCONFIG_FILE} \"\$ENV{QKV_TEST_FONTS}\")
endif()
")
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY TEST_INCLUDE_FILES
        ${PROJECT_BINARY_DIR}/test_environment.cmake)
endif()
