/* SPDX-License-Identifier: MIT */
/* options_job - makes the job of a command line */
#ifndef DT_TUNER_CLI_OPTIONS_JOB_H
#define DT_TUNER_CLI_OPTIONS_JOB_H

#include "model/task.h"
#include "tuner/cli/options.h"

/* Uses the first of several sizes. plan: the plan to run (struct dt_job); NULL: none. The job
 * borrows the texts of the options and the plan. DT_EUSAGE with a sentence: unknown or broken
 * model, data type, objective or back end. */
dt_status dt_options_job(const struct dt_options *options, const char *plan,
                         struct dt_job *job) DT_MUST_CHECK;

/* The task that is asked of the model: of several sizes and batches the first. Borrows the
 * texts of the options. */
void dt_options_task(const struct dt_options *options, struct dt_task *task);

/* --backend, for commands that need no more of the job. DT_EUSAGE. */
dt_status dt_options_backend(const struct dt_options *options,
                             enum dt_backend_kind *kind) DT_MUST_CHECK;

/* --machine: the job's space is that of the machine in the file; described must outlive
 * dt_target_new. DT_EUSAGE, DT_EIO. */
dt_status dt_options_machine(const struct dt_options *options, struct dt_described *described,
                             struct dt_job *job) DT_MUST_CHECK;

/* The hosts of --hosts or --hostfile, valid until the next call; DT_EUSAGE, DT_EIO. */
dt_status dt_options_hosts(const struct dt_options *options, struct dt_more *more) DT_MUST_CHECK;

#endif
