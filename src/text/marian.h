/**
 * Marian's tokenizer: the pieces of a SentencePiece model, with the ids of a vocab.json.
 *
 *     source.spm  target.spm   the models that segment texts of the two languages
 *     vocab.json               piece → id of both; with separate_vocabs of the source,
 *     target_vocab.json        and this one of the target
 *     tokenizer_config.json    separate_vocabs, and what settings.h reads
 *
 * A piece that is not in the vocabulary is unk; a run of characters that the .spm does not know is
 * looked up as one piece. A language code such as >>de<< at the beginning of a text is one token.
 * eos ends every text.
 * Reference: transformers, models/marian/tokenization_marian.py.
 */
#ifndef QKVI_TEXT_MARIAN_H
#define QKVI_TEXT_MARIAN_H

#include "text/settings.h"
#include "text/spm.h"

extern const qkvi_tokenizer_kind qkvi_marian_kind;

/** The model of a tokenizer of this kind. */
typedef struct qkvi_marian {
    qkvi_spm spm;
    int32_t *ids; /* ids of the vocabulary, indexed by those of the .spm */
} qkvi_marian;

/** Reads separate_vocabs of a tokenizer_config.json. FORMAT if it is no JSON; LIMIT; MEMORY. */
qkv_status qkvi_marian_separate(const qkvi_text_file *config, int *separate, qkv_error *error);

/**
 * Makes the tokenizer of one language from a .spm and a vocabulary. is_other: of the target, with a
 * vocabulary of its own. FORMAT, LIMIT, UNSUPPORTED, MEMORY; *tokenizer is NULL then.
 */
qkv_status qkvi_marian_read(const qkvi_text_files *files, int is_other, qkv_tokenizer **tokenizer,
                            qkv_error *error);

#endif
