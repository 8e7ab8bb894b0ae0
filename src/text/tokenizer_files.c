/** Which files a tokenizer was made from, and digests of their bytes. */
#include "files/file.h"
#include "text/settings.h"

/* FNV-1a, of eight bytes at a time: a tokenizer.json may have 30 MB. */
static uint64_t digest_of(const char *bytes, size_t n) {
    const uint64_t prime = 0x100000001b3u;
    uint64_t digest = 0xcbf29ce484222325u ^ n;
    while (n > 0) {
        uint64_t word = 0;
        const size_t some = n < sizeof word ? n : sizeof word;
        memcpy(&word, bytes, some);
        digest = (digest ^ word) * prime;
        digest ^= digest >> 32;
        bytes += some;
        n -= some;
    }
    return digest;
}

void qkvi_tokenizer_keep_files(const qkvi_text_files *files, qkv_tokenizer *tokenizer) {
    const struct {
        const char *name; /* NULL: there are several */
        const qkvi_text_file *file;
    } all[] = {
        { "tokenizer.json", &files->tokenizer },
        { NULL, &files->vocab },
        { "merges.txt", &files->merges },
        { NULL, &files->spm },
        { "tokenizer_config.json", &files->tokenizer_config },
        { "special_tokens_map.json", &files->special_tokens_map },
        { "added_tokens.json", &files->added_tokens },
        { "chat_template.jinja", &files->chat_template },
        { "config.json", &files->config },
    };
    _Static_assert(sizeof all / sizeof *all == QKVI_TOKENIZER_FILES, "a tokenizer has room");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const qkvi_text_file *const file = all[i].file;
        if (!file->bytes) continue;
        qkvi_tokenizer_file *const kept = &tokenizer->files[tokenizer->n_files++];
        snprintf(kept->name, sizeof kept->name, "%s",
                 all[i].name ? all[i].name : qkvi_path_name(file->name));
        kept->digest = digest_of(file->bytes, file->n_bytes);
    }
}

const char *qkv_tokenizer_file(const qkv_tokenizer *tokenizer, int64_t index, uint64_t *digest) {
    if (!tokenizer || index < 0 || index >= tokenizer->n_files) return NULL;
    if (digest) *digest = tokenizer->files[index].digest;
    return tokenizer->files[index].name;
}
