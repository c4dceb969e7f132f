/* SPDX-License-Identifier: MIT */
/* file_int - the readers of users' files */
#ifndef DT_SPACE_JSON_FILE_INT_H
#define DT_SPACE_JSON_FILE_INT_H

#include "space/json/json.h"

/* Like dt_json_only, and names our field for one that other tools have. */
dt_status dt_fields_check(const json_t *object, const char *what,
                          const char *const known[]) DT_MUST_CHECK;

/* A file with a list of cases as one without: their parameters, and the list as a rule. DT_EUSAGE: the cases do not name the same
 * parameters, ... */
dt_status dt_cases_expand(const json_t *file, const char *what, json_t **root) DT_MUST_CHECK;

/* A file of Kernel Tuner (T1: "ConfigurationSpace") in our form: {"parameters", "rules"}. Lists, ranges and simple
 * comprehensions are read, nothing is run as Python. DT_EUSAGE: anything else, with one sentence. */
dt_status dt_t1_read(const json_t *file, const char *what, json_t **root) DT_MUST_CHECK;

/* The values of a list as Python writes it, "[16 * i for i in range(1, 9)]", as a new array. */
dt_status dt_t1_list(const char *text, const char *what, json_t **values) DT_MUST_CHECK;

#endif
