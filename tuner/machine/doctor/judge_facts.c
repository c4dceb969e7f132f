/* SPDX-License-Identifier: MIT */
#include "tuner/machine/doctor/doctor.h"

#include <stdio.h>
#include <string.h>

static const struct dt_doctor_rules *const tables[] = {&dt_doctor_software, &dt_doctor_device,
                                                       &dt_doctor_links, &dt_doctor_host};
enum { TABLES = sizeof tables / sizeof tables[0] };

static const char *const severities[] = {"note", "warning", "busy", "error"};

static void add(json_t *findings, const char *rule, enum dt_severity severity, int64_t device,
                const char *what, const char *mend)
{
    json_array_append_new(findings, json_pack("{s:s, s:s, s:o, s:s, s:s}", "rule", rule, "severity",
                                              severities[severity], "device",
                                              device >= 0 ? json_integer(device) : json_null(),
                                              "what", what, "mend", mend));
}

static void try_rule(const struct dt_doctor_view *view, const struct dt_doctor_rule *rule,
                     int64_t index, json_t *findings)
{
    struct dt_text what = {0};
    const json_t *device =
        index >= 0 ? json_array_get(json_object_get(view->devices, "devices"), (size_t)index)
                   : NULL;
    if (rule->found(view, device, &what))
        add(findings, rule->name, rule->severity, index, dt_text_at(&what), rule->mend);
    dt_text_fini(&what);
}

static bool is_among(const char *value, const char *values)
{
    char word[64];
    snprintf(word, sizeof word, " %.60s ", value);
    return values == NULL || strstr(values, word) != NULL;
}

/* A CPU-only machine's variables about GPUs do nothing. */
static void try_variable(const struct dt_doctor_view *view,
                         const struct dt_doctor_variable *variable, json_t *findings)
{
    struct dt_text what = {0};
    const char *value = dt_doctor_environment(view, variable->name);
    if (view->count == 0 || value == NULL || !is_among(value, variable->values) ||
        (variable->matters != NULL && !variable->matters(view)))
        return;
    dt_text_add(&what, "%s=%.80s: %s", variable->name, value, variable->what);
    add(findings, variable->rule, variable->severity, -1, dt_text_at(&what), variable->mend);
    dt_text_fini(&what);
}

static enum dt_severity severity_of(const json_t *finding)
{
    const char *word = dt_json_text_at(finding, "severity");
    for (int i = DT_ERROR; i > DT_NOTE; i--)
        if (strcmp(word, severities[i]) == 0)
            return (enum dt_severity)i;
    return DT_NOTE;
}

enum dt_severity dt_doctor_worst(const json_t *findings)
{
    enum dt_severity worst = DT_NOTE;
    for (size_t i = 0; i < json_array_size(findings); i++) {
        enum dt_severity severity = severity_of(json_array_get(findings, i));
        worst = severity > worst ? severity : worst;
    }
    return worst;
}

static json_t *worst_first(const json_t *found)
{
    json_t *sorted = json_array();
    for (int severity = DT_ERROR; severity >= DT_NOTE; severity--)
        for (size_t i = 0; i < json_array_size(found); i++) {
            json_t *finding = json_array_get(found, i);
            if ((int)severity_of(finding) == severity)
                json_array_append(sorted, finding);
        }
    return sorted;
}

dt_status dt_doctor_judge(const json_t *facts, json_t **findings)
{
    struct dt_doctor_view view = {json_object_get(facts, "worker"),
                                  json_object_get(facts, "devices"), json_object_get(facts, "host"),
                                  0};
    if (!json_is_object(view.host) || !json_is_object(view.worker))
        return dt_fail(DT_EUSAGE, "these are not the facts of a machine: 'host' or 'worker' is "
                                  "missing");
    view.count = (int64_t)json_array_size(json_object_get(view.devices, "devices"));
    json_t *found = json_array();
    for (int t = 0; t < TABLES; t++)
        for (int i = 0; i < tables[t]->count; i++) {
            const struct dt_doctor_rule *rule = &tables[t]->rows[i];
            for (int64_t device = rule->each ? 0 : -1; device < (rule->each ? view.count : 0);
                 device++)
                try_rule(&view, rule, device, found);
        }
    for (int i = 0; i < dt_doctor_variable_count; i++)
        try_variable(&view, &dt_doctor_variables[i], found);
    *findings = worst_first(found);
    json_decref(found);
    return *findings != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

json_t *dt_doctor_names(void)
{
    json_t *names = json_array();
    const char *last = "";
    for (int t = 0; t < TABLES; t++)
        for (int i = 0; i < tables[t]->count; i++)
            json_array_append_new(names, json_string(tables[t]->rows[i].name));
    for (int i = 0; i < dt_doctor_variable_count; i++) {
        if (strcmp(dt_doctor_variables[i].rule, last) != 0)
            json_array_append_new(names, json_string(dt_doctor_variables[i].rule));
        last = dt_doctor_variables[i].rule;
    }
    return names;
}
