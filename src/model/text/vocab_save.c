/**
 * A vocabulary as three files: vocab.txt for everybody, the two JSON files for Hugging Face's
 * libraries.
 */

#include "model/store/file.h"
#include "model/store/json.h"
#include "model/text/tokenizer_save.h"
#include "model/text/vocab.h"
#include "model/text/wordpiece.h"

/* {"type": "TemplateProcessing", …}: [CLS] A [SEP] and [CLS] A [SEP] B [SEP]. */
static json_t *make_post_processor(const qkv_tokenizer *tokenizer) {
    const json_int_t cls = tokenizer->special[QKV_TOKEN_CLS];
    const json_int_t sep = tokenizer->special[QKV_TOKEN_SEP];
    json_t *cls0 = json_pack("{s{ss,si}}", "SpecialToken", "id", "[CLS]", "type_id", 0);
    json_t *sep0 = json_pack("{s{ss,si}}", "SpecialToken", "id", "[SEP]", "type_id", 0);
    json_t *sep1 = json_pack("{s{ss,si}}", "SpecialToken", "id", "[SEP]", "type_id", 1);
    json_t *a = json_pack("{s{ss,si}}", "Sequence", "id", "A", "type_id", 0);
    json_t *b = json_pack("{s{ss,si}}", "Sequence", "id", "B", "type_id", 1);
    return json_pack("{ss, s[OOO], s[ooooo], s{s{ss,s[I],s[s]}, s{ss,s[I],s[s]}}}", "type",
                     "TemplateProcessing", "single", cls0, a, sep0, "pair", cls0, a, sep0, b, sep1,
                     "special_tokens", "[CLS]", "id", "[CLS]", "ids", cls, "tokens", "[CLS]",
                     "[SEP]", "id", "[SEP]", "ids", sep, "tokens", "[SEP]");
}

static json_t *make_model(const qkv_tokenizer *tokenizer) {
    json_t *vocab = json_object();
    char key[QKVI_PIECE_MAX_BYTES + 1];
    for (int32_t id = 0; id < tokenizer->pieces.n_ids; id++) {
        size_t n_bytes = 0;
        const char *token = qkv_tokenizer_token(tokenizer, id, &n_bytes);
        memcpy(key, token, n_bytes);
        key[n_bytes] = '\0';
        if (json_object_set_new(vocab, key, json_integer(id)) != 0) {
            json_decref(vocab);
            return NULL;
        }
    }
    return json_pack("{ss,ss,ss,si,so}", "type", "WordPiece", "unk_token", "[UNK]",
                     "continuing_subword_prefix", "##", "max_input_chars_per_word",
                     QKVI_WORDPIECE_MAX_CHARS, "vocab", vocab);
}

static json_t *make_tokenizer(const qkv_tokenizer *tokenizer, const qkvi_bert_rules *rules) {
    json_t *normalizer = json_pack("{ss,sb,sb,sb,sb}", "type", "BertNormalizer", "clean_text", 1,
                                   "handle_chinese_chars", rules->split_cjk, "strip_accents",
                                   rules->strip_accents, "lowercase", rules->lowercase);
    return json_pack("{ss,sn,sn,so,so,s{ss},so,s{ss,ss,sb},so}", "version", "1.0", "truncation",
                     "padding", "added_tokens", qkvi_added_tokens_json(tokenizer), "normalizer",
                     normalizer, "pre_tokenizer", "type", "BertPreTokenizer", "post_processor",
                     make_post_processor(tokenizer), "decoder", "type", "WordPiece", "prefix", "##",
                     "cleanup", 1, "model", make_model(tokenizer));
}

static json_t *make_config(const qkvi_bert_rules *rules, int64_t max_len) {
    return json_pack("{ss,sb,sb,sb,sI,ss,ss,ss,ss,ss}", "tokenizer_class", "BertTokenizer",
                     "do_lower_case", rules->lowercase, "strip_accents", rules->strip_accents,
                     "tokenize_chinese_chars", rules->split_cjk, "model_max_length",
                     (json_int_t)max_len, "unk_token", "[UNK]", "sep_token", "[SEP]", "pad_token",
                     "[PAD]", "cls_token", "[CLS]", "mask_token", "[MASK]");
}

qkv_status qkvi_tokenizer_save(qkvi_files *files, const char *vocab, size_t vocab_bytes,
                               const qkvi_bert_rules *rules, int64_t max_len, qkv_error *error) {
    qkv_tokenizer *tokenizer = NULL;
    QKV_TRY(qkv_tokenizer_open_memory(vocab, vocab_bytes, NULL, 0, &tokenizer, error));
    qkv_status status = qkvi_files_add(files, "vocab.txt", vocab, vocab_bytes, error);
    if (status == QKV_OK)
        status =
            qkvi_files_add_json(files, "tokenizer.json", make_tokenizer(tokenizer, rules), error);
    if (status == QKV_OK)
        status =
            qkvi_files_add_json(files, "tokenizer_config.json", make_config(rules, max_len), error);
    qkv_tokenizer_free(tokenizer);
    return status;
}
