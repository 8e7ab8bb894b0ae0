/* The image of --image, for commands that also take texts: see session.h. */
#include "common/session.h"
#include "common/shared.h"

int session_images(struct session *session) {
    const qkv_model *const sees = qkv_model_images(session->model);
    if (!sees)
        return cli_fail("%s: a %s reads texts, and --image is for models of images",
                        session->info->source, session->info->architecture);
    session->whole = session->model;
    session->model = (qkv_model *)(uintptr_t)sees;
    session->info = qkv_model_get_info(sees);
    session->tokenizer = session->target = NULL;
    return EXIT_OK;
}

qkv_status session_see(const struct session *session, const char *path, qkv_image **image,
                       qkv_encoding **tokens, qkv_error *error) {
    char room[SHARED_ROOM];
    qkv_image *read = NULL;
    *tokens = NULL;
    qkv_status status = qkv_image_read(shared_path(path, room), &read, error);
    if (status == QKV_OK) status = qkv_image_see(session->model, read, NULL, tokens, error);
    if (image)
        *image = read;
    else
        qkv_image_free(read);
    return status;
}
