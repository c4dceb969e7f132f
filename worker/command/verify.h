/* SPDX-License-Identifier: MIT */
/* verify - the file that a command writes, compared with that of the default plan
 *
 *     dt_verify_init(&rules, "npy", "1e-3", false);
 *     dt_verify_npy(a, b, &error);                        -- ||a - b|| / ||b||
 */
#ifndef DT_WORKER_COMMAND_VERIFY_H
#define DT_WORKER_COMMAND_VERIFY_H

#include "worker/command/words.h"

struct dt_verify_rules {
    char kind;        /* 't'ext, 'n'py, 'c'ommand; 0: nothing is compared */
    double tolerance; /* of 'n' */
    struct dt_command_line command;
};

/* how, tolerance: as given, NULL: not. DT_EUSAGE. */
dt_status dt_verify_init(struct dt_verify_rules *rules, const char *how, const char *tolerance,
                         bool shell) DT_MUST_CHECK;

/* Both files hold the same bytes, but for a carriage return before a line feed. DT_OK, or DT_DONE with the first line that
 * differs; DT_EIO when one cannot be read. */
dt_status dt_verify_text(const char *path, const char *reference, int64_t *line) DT_MUST_CHECK;

/* *error: the Euclidean norm of the difference over that of the reference; INFINITY where something is not finite. Booleans, integers, floats of 2, 4
 * and 8 bytes and complex numbers, in either byte order. DT_DONE, with the sentence, for arrays of different shapes; DT_FAILED for files that are no arrays. */
dt_status dt_verify_npy(const char *path, const char *reference, double *error) DT_MUST_CHECK;

/* Copies a file, byte by byte. DT_EIO. */
dt_status dt_verify_copy(const char *from, const char *to) DT_MUST_CHECK;

#endif
