/* SPDX-License-Identifier: MIT */
/* launch_int - the words of a command line, for the files that put one together */
#ifndef DT_TUNER_RUNNER_LAUNCH_INT_H
#define DT_TUNER_RUNNER_LAUNCH_INT_H

#include "tuner/runner/launch.h"

#define DT_WORDS_MOST 256

struct dt_word_list {
    char *at[DT_WORDS_MOST]; /* owned */
    int n;
    bool failed; /* no memory, or too many */
};
void dt_words_add(struct dt_word_list *words, const char *word);
void dt_words_mca(struct dt_word_list *words, const char *name, const char *value);

/* Appends the command of launch->hosts' launcher, with the program and its arguments. DT_EUSAGE: a placeholder that there is not. */
dt_status dt_launch_on_hosts(const struct dt_launch *launch, const char *program,
                             struct dt_word_list *words) DT_MUST_CHECK;

/* Its program: "mpirun", "srun", or the first word of a command; room is of name. */
void dt_launcher_program(const struct dt_hosts *hosts, char name[], size_t room);

#endif
