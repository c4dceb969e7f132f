/* SPDX-License-Identifier: MIT */
/* definition - what a command measures: hello's "job", which is part of the key of what is stored, and the files it runs, which
 * are part of the fingerprint
 *
 * To add an option that changes what is measured: a field here, a row in dt_definition_job, and a row in docs/command.md.
 */
#ifndef DT_WORKER_COMMAND_DEFINITION_H
#define DT_WORKER_COMMAND_DEFINITION_H

#include "worker/command/words.h"
#include "worker/wire.h"

struct dt_definition {
    const struct dt_command_line *command;
    const struct dt_space *space;
    const char *time, *unit;               /* of --time and --unit; unit NULL: none */
    const char *limits;                    /* "": none */
    const struct dt_command_line *prepare; /* NULL: none */
};

/* DT_EUSAGE: it has a word that only a shell reads, and no shell. Its program may be absent, as on a host that only looks up. */
dt_status dt_definition_check(const struct dt_command_line *command) DT_MUST_CHECK;
/* *job: {"command", "time", "unit", "limits", "shell", "prepare", "folder"}, new; "unit" only where the number is a time that the output
 * has, "prepare" where it is given, "folder" unless the command names files by absolute paths alone and --prepare none by a relative
 * one. DT_EUSAGE: a text that is too long or not UTF-8. */
dt_status dt_definition_job(const struct dt_definition *definition, json_t **job) DT_MUST_CHECK;

/* {"file run.sh": hash of its bytes, ..}, new: of the program and of the script that it is given. */
json_t *dt_definition_files(const struct dt_command_line *command);

#endif
