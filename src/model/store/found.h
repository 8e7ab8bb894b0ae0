/** What a folder without weights that are read has instead, and what to do about it. */
#ifndef QKVI_STORE_FOUND_H
#define QKVI_STORE_FOUND_H

#include "model/base.h"

/** UNSUPPORTED, naming the file; IO if there is nothing of a model. MEMORY. */
qkv_status qkvi_refuse_folder(const char *folder, qkv_error *error);

#endif
