/*
 * Another project's program with all three libraries, valid as C and as C++: tokens of a vocabulary
 * in memory, and a picture of a weight. picture OUT.png
 */
#include <qkv/picture.h>
#include <qkv/tokenizer.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    const char *vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n";
    const char *text = "Hello world";
    const float weight = 0.5f;
    qkv_tokenizer *tokenizer = NULL;
    qkv_encoding *tokens = NULL;
    qkv_error error;
    if (argc != 2) return 2;
    qkv_status status =
        qkv_tokenizer_open_memory(vocabulary, strlen(vocabulary), NULL, 0, &tokenizer, &error);
    if (status == QKV_OK)
        status = qkv_tokenizer_encode(tokenizer, text, strlen(text), NULL, 0, &tokens, &error);
    if (status == QKV_OK) {
        qkv_heatmap map;
        memset(&map, 0, sizeof map);
        map.struct_size = sizeof map;
        map.n_rows = map.n_cols = 1;
        map.weights = &weight;
        map.title = text;
        status = qkv_picture_heatmap_write(&map, argv[1], &error);
    }
    if (status != QKV_OK)
        fprintf(stderr, "%s\n", error.message);
    else
        printf("libqkv %s: %d tokens, one picture\n", qkv_version(), (int)tokens->n);
    const int right = status == QKV_OK && tokens->n == 4 && tokens->ids[1] == 5;
    qkv_encoding_free(tokens);
    qkv_tokenizer_free(tokenizer);
    return !right;
}
