/* SPDX-License-Identifier: MIT */
/* file_int - the readers of users' files */
#ifndef DT_SPACE_JSON_FILE_INT_H
#define DT_SPACE_JSON_FILE_INT_H

#include "space/json/json.h"

/* A file of Kernel Tuner (T1: "ConfigurationSpace") in our form: {"parameters", "rules"}. Lists, ranges and simple
 * comprehensions are read, nothing is run as Python. DT_EUSAGE: anything else, with one sentence. */
dt_status dt_t1_read(const json_t *file, const char *what, json_t **root) DT_MUST_CHECK;

#endif
