/**
 * .npz: arrays by name, each a .npy file in a zip, as numpy.savez and savez_compressed write them.
 * The array NAME is the entry NAME.npy. Other entries are no arrays.
 */
#ifndef QKVI_STORE_NPZ_H
#define QKVI_STORE_NPZ_H

#include "model/store/npy.h"
#include "model/store/zip.h"

/** The array of that name, or of the entry of that name. ARGUMENT if there is none. */
qkv_status qkvi_npz_read(const char *path, const char *name, qkv_array_type floats,
                         qkv_array **array, qkv_error *error);

typedef void qkvi_visit_entry(void *user, const qkv_tensor_entry *entry);

/** Visits every array, in byte order of their names; reads no more than their headers. */
qkv_status qkvi_npz_list(const char *path, qkvi_visit_entry *visit, void *user, qkv_error *error);

/** Where the colon of F.npz:NAME is, or NULL. */
const char *qkvi_npz_colon(const char *path);

#endif
