/* Texts of the tool, each with a zero at its end. */
#include "embed.h"

    EMBED_SECTION
    .macro embed name, path
    begin \name
    .incbin "\path"
    end \name
    .endm

    embed help_bash_text, "cli/help/completion.bash"
    embed help_zsh_text, "cli/help/completion.zsh"
    embed help_fish_text, "cli/help/completion.fish"
    embed attend_definitions_text, "cli/attend/definitions.json"
    embed report_page_text, "cli/common/report_page.html"
    embed serve_start_text, "cli/serve/start.html"
    embed serve_style_text, "cli/serve/start.css"
    embed serve_script_text, "cli/serve/start.js"
    embed learn_text, "docs/tutorial.md"

/* The help of every command, one text after another: each file begins with its "# COMMAND". */
    begin help_texts
    .incbin "cli/help/common.txt"
    .incbin "cli/help/attend.txt"
    .incbin "cli/help/bench.txt"
    .incbin "cli/help/check.txt"
    .incbin "cli/help/embed.txt"
    .incbin "cli/help/eval.txt"
    .incbin "cli/help/explain.txt"
    .incbin "cli/help/fill.txt"
    .incbin "cli/help/generate.txt"
    .incbin "cli/help/heads.txt"
    .incbin "cli/help/help.txt"
    .incbin "cli/help/info.txt"
    .incbin "cli/help/learn.txt"
    .incbin "cli/help/look.txt"
    .incbin "cli/help/lookup.txt"
    .incbin "cli/help/map.txt"
    .incbin "cli/help/next.txt"
    .incbin "cli/help/tokenize.txt"
    .incbin "cli/help/train.txt"
    .incbin "cli/help/translate.txt"
    end help_texts

#include "elf_notes.h"
