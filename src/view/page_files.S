/*
 * The files of the page, byte for byte. Scripts are one text: they share one scope, and each uses only
 * what files before it define, but inside of functions.
 */
    .section .rodata
    .macro begin name
    .globl \name
    .hidden \name
\name:
    .endm
    .macro end name
    .globl \name\()_end
    .hidden \name\()_end
\name\()_end:
    .byte 0
    .endm

    begin qkvi_page_style
    .incbin "src/view/page/style.css"
    end qkvi_page_style

    begin qkvi_page_shell
    .incbin "src/view/page/shell.html"
    end qkvi_page_shell

    begin qkvi_page_script
    .incbin "src/view/page/data.js"
    .incbin "src/view/page/scores.js"
    .incbin "src/view/page/dom.js"
    .incbin "src/view/page/color.js"
    .incbin "src/view/page/state.js"
    .incbin "src/view/page/words.js"
    .incbin "src/view/page/rail.js"
    .incbin "src/view/page/strip.js"
    .incbin "src/view/page/inspector.js"
    .incbin "src/view/page/what_if.js"
    .incbin "src/view/page/tokens.js"
    .incbin "src/view/page/picture.js"
    .incbin "src/view/page/matrix.js"
    .incbin "src/view/page/matrix_axes.js"
    .incbin "src/view/page/matrix_input.js"
    .incbin "src/view/page/why.js"
    .incbin "src/view/page/map.js"
    .incbin "src/view/page/plots.js"
    .incbin "src/view/page/numbers.js"
    .incbin "src/view/page/compare.js"
    .incbin "src/view/page/save.js"
    .incbin "src/view/page/keys.js"
    .incbin "src/view/page/main.js"
    end qkvi_page_script

    .section .note.GNU-stack, "", %progbits
