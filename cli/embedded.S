/* The files of models/default, byte for byte, aligned so that tensors can be read in place. */
    .section .rodata
    .macro embed name, path
    .balign 64
    .globl qkv_embedded_\name
qkv_embedded_\name:
    .incbin "\path"
    .globl qkv_embedded_\name\()_end
qkv_embedded_\name\()_end:
    .byte 0
    .endm

    embed config, "models/default/config.json"
    embed vocab, "models/default/vocab.txt"
    embed weights, "models/default/model.safetensors"
    embed grammar, "models/default/grammar.txt"

#include "elf_notes.h"
