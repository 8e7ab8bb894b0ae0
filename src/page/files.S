/*
 * The files of the page, byte for byte. Scripts are one text: they share one scope, and each uses only
 * what files before it define, but inside of functions. A page has a view of its own kind of data
 * only where it has such data.
 */
#include "embed.h"

    EMBED_SECTION

    begin qkvi_page_style
    .incbin "src/page/web/style.css"
    end qkvi_page_style

    begin qkvi_page_shell
    .incbin "src/page/web/shell.html"
    end qkvi_page_shell

    begin qkvi_page_script
    .incbin "src/page/web/data.js"
    .incbin "src/page/web/visible.js"
    .incbin "src/page/web/scores.js"
    .incbin "src/page/web/dom.js"
    .incbin "src/page/web/color.js"
    .incbin "src/page/web/state.js"
    .incbin "src/page/web/words.js"
    .incbin "src/page/web/rail.js"
    .incbin "src/page/web/view.js"
    .incbin "src/page/web/overlay.js"
    .incbin "src/page/web/strip.js"
    .incbin "src/page/web/inspector.js"
    .incbin "src/page/web/what_if.js"
    .incbin "src/page/web/tokens.js"
    .incbin "src/page/web/picture.js"
    .incbin "src/page/web/matrix.js"
    .incbin "src/page/web/matrix_axes.js"
    .incbin "src/page/web/matrix_input.js"
    .incbin "src/page/web/why.js"
    .incbin "src/page/web/principal.js"
    .incbin "src/page/web/map.js"
    .incbin "src/page/web/map_labels.js"
    .incbin "src/page/web/plots.js"
    .incbin "src/page/web/numbers.js"
    .incbin "src/page/web/compare.js"
    .incbin "src/page/web/save.js"
    .incbin "src/page/web/frame.js"
    .incbin "src/page/web/start.js"
    .incbin "src/page/web/model.js"
    .incbin "src/page/web/keys.js"
    end qkvi_page_script

    begin qkvi_page_tables
    .incbin "src/page/web/tables.js"
    end qkvi_page_tables

    begin qkvi_page_image
    .incbin "src/page/web/image.js"
    .incbin "src/page/web/image_compare.js"
    end qkvi_page_image

    begin qkvi_page_made_by
    .incbin "src/page/web/made_by.js"
    end qkvi_page_made_by

    begin qkvi_page_main
    .incbin "src/page/web/main.js"
    end qkvi_page_main

#include "elf_notes.h"
