#include "oom/calls.h"
#include "qkv/model.h"
const oom_group oom_train = { "train", NULL, 0, NULL, NULL };
