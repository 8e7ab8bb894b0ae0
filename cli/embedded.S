/* The files of models/default, byte for byte, aligned so that tensors can be read in place. */
#include "embed.h"

    EMBED_SECTION
    .macro embed name, path
    .balign 64
    begin qkv_embedded_\name
    .incbin "\path"
    end qkv_embedded_\name
    .endm

    embed config, "models/default/config.json"
    embed vocab, "models/default/vocab.txt"
    embed weights, "models/default/model.safetensors"
    embed grammar, "models/default/grammar.txt"

#include "elf_notes.h"
