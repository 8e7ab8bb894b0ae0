/**
 * Marian's tokenizer: the pieces of a SentencePiece model, numbered by a vocab.json.
 *
 *     source.spm  target.spm   how a text of either language is segmented
 *     vocab.json               piece → id; with separate_vocabs of the source only, and
 *     target_vocab.json        of the target
 *     tokenizer_config.json    separate_vocabs, and what settings.h reads
 *
 * A piece that the vocabulary lacks is unk, and a run of characters unknown to the .spm is looked
 * up as one piece. A code like >>de<< at the front of a text is one token. eos ends every text.
 * Reference: transformers, models/marian/tokenization_marian.py.
 */
#ifndef QKVI_TEXT_MARIAN_H
#define QKVI_TEXT_MARIAN_H

#include "text/settings.h"
#include "text/spm.h"

extern const qkvi_tokenizer_kind qkvi_marian_kind;

/** What the kind knows. */
typedef struct qkvi_marian {
    qkvi_spm spm;
    int32_t *ids; /* of the vocabulary, by those of the .spm */
} qkvi_marian;

/**
 * Are the vocabularies of the languages separate? So says a tokenizer_config.json. FORMAT if it is
 * no JSON; LIMIT; MEMORY.
 */
qkv_status qkvi_marian_separate(const qkvi_text_file *config, int *separate, qkv_error *error);

/** The tokenizer of one language, of a .spm and a vocabulary. is_other: that of the target, whose
 * vocabulary is its own. FORMAT, LIMIT, UNSUPPORTED, MEMORY; *tokenizer is NULL then. */
qkv_status qkvi_marian_read(const qkvi_text_files *files, int is_other, qkv_tokenizer **tokenizer,
                            qkv_error *error);

#endif
