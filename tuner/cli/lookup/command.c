/* SPDX-License-Identifier: MIT */
/* The command of an entry that --command tuned, with the values of a plan. */
#include "tuner/cli/lookup/show.h"

#include "base/quote.h"
#include "space/json/json.h"
#include "worker/command/words.h"

#include <string.h>

const json_t *dt_command_job(const json_t *key)
{
    const json_t *job = json_object_get(key, "job");
    bool of_command = strcmp(dt_json_text_at(key, "worker"), "command") == 0;
    return of_command && json_object_get(job, "time") != NULL ? job : NULL;
}

/* A word that sets a variable before a command: the name is no part of the quoted value. */
static void add_variable(const struct dt_space *space, const struct dt_point *plan, int at,
                         struct dt_text *out)
{
    const struct dt_axis *axis = dt_space_axis(space, at);
    int64_t value = dt_point_value(space, plan, at);
    struct dt_text text = {0};
    dt_axis_plain(axis, value, &text);
    dt_text_add(out, "%s=", axis->variable != NULL ? axis->variable : axis->name);
    dt_quote(dt_text_at(&text), out);
    dt_text_add(out, " ");
    dt_text_fini(&text);
}

static dt_status fill(const struct dt_command_line *command, const struct dt_space *space,
                      const json_t *plan, struct dt_text *out)
{
    struct dt_point point;
    char **argv = NULL;
    DT_TRY(dt_point_from_json(space, plan, &point));
    DT_TRY(dt_line_names(command, space));
    DT_TRY(dt_line_fill(command, space, &point, &argv));
    for (int i = 0; i < dt_space_axes(space); i++)
        if (dt_space_axis(space, i)->role == DT_ROLE_ENVIRONMENT && dt_point_has(space, &point, i))
            add_variable(space, &point, i, out);
    for (int i = 0; argv[i] != NULL; i++) {
        dt_text_add(out, "%s", i > 0 ? " " : "");
        dt_quote(argv[i], out);
    }
    dt_line_free(argv);
    dt_text_add(out, "\n");
    return dt_text_status(out);
}

dt_status dt_command_fill(const struct dt_command_options *given, const json_t *entry,
                          const json_t *plan, struct dt_text *out)
{
    const json_t *job = dt_command_job(json_object_get(entry, "key"));
    const char *text = given->text != NULL ? given->text : dt_json_text_at(job, "command");
    struct dt_command_line command;
    struct dt_space *space = NULL;
    if (text[0] == '\0')
        return dt_fail(DT_EUSAGE, "the text of the command is not stored (--private): give it "
                                  "with --command, --space and --time");
    if (json_object_get(entry, "space") == NULL)
        return dt_fail(DT_EUSAGE, "the parameters of the command are not stored, as they are too "
                                  "long: the plan is printed with --format env");
    DT_TRY(dt_space_rules_from_json(json_object_get(entry, "space"), "the entry's space", &space));
    dt_status status = dt_line_read(text, json_object_get(job, "shell") != NULL, &command);
    if (status == DT_OK) {
        command.served = json_object_get(job, "request") != NULL; /* {port} stays as it is */
        status = fill(&command, space, plan, out);
        dt_line_fini(&command);
    }
    dt_space_free(space);
    return status;
}
