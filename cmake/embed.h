/*
 * Data in files of assembler, in the formats of objects of every system: EMBED_SECTION, then for
 * each text `begin NAME`, `.incbin "PATH"` …, `end NAME`. C sees NAME[] and NAME_end[]; a zero
 * follows.
 */
#if defined(__APPLE__)
#define EMBED_SECTION .section __TEXT, __const
    .macro mark name
    .globl _\name
    .private_extern _\name
_\name:
    .endm
#elif defined(_WIN32)
#define EMBED_SECTION .section .rdata, "dr"
    .macro mark name
    .globl \name
\name:
    .endm
#elif defined(__wasm__)
#define EMBED_SECTION .section .rodata.embedded, "", @
    .macro mark name
    .globl \name
    .hidden \name
    .type \name, @object
    .size \name, 1 /* not known here, and not 0 */
\name:
    .endm
#else
#define EMBED_SECTION .section .rodata
    .macro mark name
    .globl \name
    .hidden \name
\name:
    .endm
#endif

    .macro begin name
    mark \name
    .endm
    .macro end name
    mark \name\()_end
    .byte 0
    .endm
