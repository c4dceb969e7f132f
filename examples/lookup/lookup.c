/* SPDX-License-Identifier: MIT */
/* Prints the plan that a program would use: the stored one, else the program's default.
 *
 *     lookup STORE MACHINE [NAME=VALUE ...]      as in  lookup ~/.local/share/dittune machine.json model=dit-s/2 devices=4
 *
 * STORE is the directory of `dittune --db`, MACHINE the output of `dittune machine --json`; "-"
 * selects the default place of either. docs/lookup.md lists the names. With engine=xdit:0.4.5 the
 * words for that engine are printed, too.
 *
 *     cc lookup.c $(pkg-config --cflags --libs dittune) -o lookup
 */
#include <dittune.h>

#include <stdio.h>
#include <string.h>

/* All of the library's objects that one question needs; NULL as long as there is none. */
struct session {
    struct dittune_db *db;
    struct dittune_machine *machine;
    struct dittune_query *query;
    struct dittune_answer *answer;
};

/* Answers look into queries and stores, so they go first. All of these take NULL. */
static void end(struct session *session)
{
    dittune_answer_free(session->answer);
    dittune_query_free(session->query);
    dittune_machine_free(session->machine);
    dittune_db_close(session->db);
}

static const char *usual(const char *path)
{
    return strcmp(path, "-") == 0 ? NULL : path;
}

/* "devices=4" becomes dittune_query_set(query, "devices", "4"). */
static int32_t set(struct dittune_query *query, const char *word, char *why, size_t room)
{
    char name[64];
    const char *equals = strchr(word, '=');
    size_t size = equals != NULL ? (size_t)(equals - word) : sizeof name;
    if (size >= sizeof name) {
        snprintf(why, room, "'%s' is not NAME=VALUE", word);
        return DITTUNE_USAGE;
    }
    memcpy(name, word, size);
    name[size] = '\0';
    return dittune_query_set(query, name, equals + 1, why, room);
}

static int32_t ask(struct session *session, int argc, char **argv, char *why, size_t room)
{
    int32_t code = dittune_db_open(usual(argv[1]), &session->db, why, room);
    if (code == DITTUNE_OK)
        code = dittune_machine_open(usual(argv[2]), &session->machine, why, room);
    if (code == DITTUNE_OK)
        code = dittune_query_new(session->machine, &session->query, why, room);
    for (int i = 3; i < argc && code == DITTUNE_OK; i++)
        code = set(session->query, argv[i], why, room);
    if (code == DITTUNE_OK)
        code = dittune_query_seal(session->query, why, room);
    if (code == DITTUNE_OK)
        code = dittune_lookup(session->db, session->query, &session->answer, why, room);
    return code;
}

static void print_plan(const struct dittune_answer *answer)
{
    char value[256];
    const char *name;
    double ratio, low, high;
    for (size_t i = 0; (name = dittune_answer_name(answer, i)) != NULL; i++)
        if (dittune_answer_value(answer, name, value, sizeof value) == DITTUNE_OK)
            printf("%s%s=%s", i > 0 ? " " : "", name, value);
    printf("\n%s: %s%s\n", dittune_tier_text(dittune_answer_tier(answer)),
           dittune_answer_reason(answer),
           dittune_answer_is_stale(answer) ? " (stale: measure it again)" : "");
    if (dittune_answer_gain(answer, &ratio, &low, &high))
        printf("%.2f times the default plan (%.2f to %.2f)\n", ratio, low, high);
}

static void print_export(const struct dittune_answer *answer, const char *engine)
{
    char why[512];
    struct dittune_export *words = NULL;
    const char *row;
    if (dittune_export_new(answer, engine, "argv", &words, why, sizeof why) != DITTUNE_OK) {
        printf("not as %s: %s\n", engine, why);
        return;
    }
    fputs(dittune_export_text(words), stdout);
    for (size_t i = 0; (row = dittune_export_unexpressed(words, i)) != NULL; i++)
        printf("# cannot be said: %s\n", row);
    for (size_t i = 0; (row = dittune_export_note(words, i)) != NULL; i++)
        printf("# %s\n", row);
    dittune_export_free(words);
}

int main(int argc, char **argv)
{
    struct session session = {0};
    char why[512] = "";
    if (argc < 3) {
        fprintf(stderr, "usage: %s STORE MACHINE [NAME=VALUE ...]\n", argv[0]);
        return 2;
    }
    int32_t code = ask(&session, argc, argv, why, sizeof why);
    /* An error is no reason to stop: print it and run with the default. */
    if (code != DITTUNE_OK)
        fprintf(stderr, "lookup: %s (%s)\n", why, dittune_status_text(code));
    if (code == DITTUNE_OK && dittune_answer_count(session.answer) > 0)
        print_plan(session.answer);
    else
        puts("the program's own plan");
    for (int i = 3; i < argc && code == DITTUNE_OK; i++)
        if (strncmp(argv[i], "engine=", 7) == 0 && dittune_answer_count(session.answer) > 0)
            print_export(session.answer, argv[i] + 7);
    end(&session);
    return code == DITTUNE_OK ? 0 : 1;
}
