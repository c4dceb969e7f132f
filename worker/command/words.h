/* SPDX-License-Identifier: MIT */
/* words - a command line with {placeholders} for the values of a plan, and {CONDITION?TEXT}, which
 * is TEXT in the plans for which the condition, an expression as in rules, holds
 *
 *     dt_line_read("torchrun --nproc-per-node {ranks} run.py", false, &command);
 *     dt_lines_check(&line, 1, space);             -- every name is known, every parameter is used
 *     dt_line_fill(&command, space, plan, &argv);  -- one word stays one word, whatever the value
 *     dt_line_free(argv);
 *     dt_line_text(&command, space, &text);        -- the command again, in one spelling
 */
#ifndef DT_WORKER_COMMAND_WORDS_H
#define DT_WORKER_COMMAND_WORDS_H

#include "space/space.h"

#define DT_COMMAND_WORDS 512

struct dt_command_line {
    char *words[DT_COMMAND_WORDS + 1]; /* owned, NULL-ended */
    /* Words are "sh", "-c", text. Values that are texts are parameters of sh, and only their names
     * are in its text: whatever they hold, sh does not read it as its own language. */
    bool shell;
    bool served; /* a server's: {port} is known, too, beside {replica} and {replicas} */
    int port;    /* its value; 0: it stays as it is */
};

/* Splits text into words at blanks, as sh does: '...', "..." and \ keep blanks, and so do
 * braces; nothing else is special. With shell, text is one word for sh -c. DT_EUSAGE: no word, a
 * quote without its end. */
dt_status dt_line_read(const char *text, bool shell, struct dt_command_line *out) DT_MUST_CHECK;
void dt_line_fini(struct dt_command_line *command);

/* DT_EUSAGE when a placeholder is neither a parameter nor a constant of the space, or when a
 * parameter, other than an environment variable, is in none of the lines: its plans would be one
 * and the same. With shell also where a placeholder of a text stands within quotes, where its value
 * would be read by the shell. */
dt_status dt_lines_check(const struct dt_command_line *const lines[], int count,
                         const struct dt_space *space) DT_MUST_CHECK;

/* The same for the names of one line alone: a parameter may be missing. */
dt_status dt_line_names(const struct dt_command_line *command,
                        const struct dt_space *space) DT_MUST_CHECK;

/* The words of a plan in *argv, NULL-ended, owned by the caller. "{{" and "}}" are braces, but
 * within a switch. A switch that is a whole word becomes the words of its text, or none. */
dt_status dt_line_fill(const struct dt_command_line *command, const struct dt_space *space,
                       const struct dt_point *plan, char ***argv) DT_MUST_CHECK;
void dt_line_free(char **argv);
DT_FREE_AT(dt_line_free, char *)

/* How many ranks a plan has; 1 where no parameter says it. */
int dt_plan_ranks(const struct dt_space *space, const struct dt_point *plan);

/* The command in one spelling, which dt_line_read reads as the same words: one blank between words,
 * quotes only where they are needed, constants as their values (space NULL: by their names). A text
 * for sh is itself, but for the constants. */
void dt_line_text(const struct dt_command_line *command, const struct dt_space *space,
                  struct dt_text *out);

#endif
