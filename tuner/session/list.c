/* SPDX-License-Identifier: MIT */
#include "tuner/session/history.h"

#include "base/array.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIME_BYTES = 16 }; /* of a journal's name: "20261124T004824Z" */

/* What a journal says of its session, and of its list. */
struct member {
    char list[64], run[64];
    int64_t work, works;
    json_t *key; /* owned */
    enum dt_verdict verdict;
    bool ended;
    int64_t begun_ns; /* wall clock */
    struct dt_spent spent;
    int64_t before_ns; /* spent by the sessions that it resumed */
    char *path;        /* owned */
};

/* Those of one list. */
struct members {
    struct member *at;
    int count;
    int64_t last_work; /* the farthest that was begun */
};

static bool is_kind(const json_t *record, const char *kind)
{
    return strcmp(dt_json_text_at(record, "kind"), kind) == 0;
}

static void read_member(const json_t *record, void *context)
{
    struct member *member = context;
    const json_t *list = json_object_get(record, "list");
    if (is_kind(record, "session") && member->key == NULL) {
        snprintf(member->list, sizeof member->list, "%s", dt_json_text_at(list, "id"));
        snprintf(member->run, sizeof member->run, "%s", dt_json_text_at(record, "run"));
        member->work = json_integer_value(json_object_get(list, "work"));
        member->works = json_integer_value(json_object_get(list, "works"));
        member->key = json_incref(json_object_get(record, "key"));
        member->begun_ns = json_integer_value(json_object_get(record, "t_wall_ns"));
    }
    if (is_kind(record, "resumed"))
        member->before_ns = json_integer_value(json_object_get(record, "spent_ns"));
    if (is_kind(record, "end")) {
        member->verdict = dt_verdict_of(dt_json_text_at(record, "verdict"));
        member->ended = true;
    }
    dt_spent_add(&member->spent, record);
}

/* The last work that was begun may have been interrupted, others came to their end. */
static bool is_done(const struct members *members, const struct member *member)
{
    bool open = member->verdict == DT_VERDICT_NONE || dt_verdict_provisional(member->verdict);
    return member->ended && !(open && member->work == members->last_work);
}

static void member_fini(struct member *member)
{
    json_decref(member->key);
    free(member->path);
    *member = (struct member){.key = NULL};
}

static void members_fini(struct members *members)
{
    for (int i = 0; i < members->count; i++)
        member_fini(&members->at[i]);
    free(members->at);
}

static int is_journal(const struct dirent *file)
{
    size_t size = strlen(file->d_name);
    return size > 6 && strcmp(file->d_name + size - 6, ".jsonl") == 0;
}

/* Of a journal that cannot be read, or is not of a session, key stays NULL. */
static dt_status read_file(const char *directory, const char *name, struct member *member)
{
    struct dt_text path = {0};
    int bad;
    *member = (struct member){.verdict = DT_VERDICT_NONE};
    dt_text_add(&path, "%s/runs/%s", directory, name);
    member->path = dt_text_take(&path);
    if (member->path == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a journal's path");
    return dt_journal_read(member->path, read_member, member, &bad) == DT_ENOMEM ? DT_ENOMEM
                                                                                 : DT_OK;
}

static dt_status keep(struct members *members, struct member *member)
{
    DT_TRY(DT_GROW(members->at, members->count, 1));
    members->at[members->count++] = *member;
    if (member->work > members->last_work)
        members->last_work = member->work;
    *member = (struct member){.key = NULL};
    return DT_OK;
}

/* Calls take for each session, from the newest journal, by its name, to the oldest, until that is false or no name has a time from
 * `since` on. */
static dt_status walk(const char *directory, const char *since,
                      bool (*take)(struct member *member, void *context, dt_status *status),
                      void *context)
{
    struct dt_text path = {0};
    struct dirent **files = NULL;
    dt_status status = DT_OK;
    bool more = true;
    dt_text_add(&path, "%s/runs", directory);
    int left = scandir(dt_text_at(&path), &files, is_journal, alphasort);
    while (left > 0) {
        struct dirent *file = files[--left];
        struct member member;
        more = more && status == DT_OK && strncmp(file->d_name, since, TIME_BYTES) >= 0;
        if (more) {
            status = read_file(directory, file->d_name, &member);
            more = status == DT_OK && (member.key == NULL || take(&member, context, &status));
            member_fini(&member);
        }
        free(file);
    }
    free(files);
    dt_text_fini(&path);
    return status;
}

/* Sessions that began within the newest one's second are told apart by their clock. */
static bool take_newest(struct member *member, void *context, dt_status *status)
{
    struct member *newest = context;
    (void)status;
    if (newest->key != NULL && strncmp(member->run, newest->run, TIME_BYTES) != 0)
        return false;
    if (newest->key == NULL || member->begun_ns > newest->begun_ns) {
        member_fini(newest);
        *newest = *member;
        *member = (struct member){.key = NULL};
    }
    return true;
}

struct collect {
    const char *id;
    struct members *members;
};

static bool take_same(struct member *member, void *context, dt_status *status)
{
    const struct collect *collect = context;
    if (strcmp(member->list, collect->id) == 0)
        *status = keep(collect->members, member);
    return true;
}

static dt_status collect(const char *directory, const char *id, struct members *members)
{
    struct collect what = {id, members};
    *members = (struct members){.at = NULL};
    return walk(directory, id, take_same, &what);
}

/* Nothing remains of the list. */
static bool at_end(const struct members *members)
{
    for (int i = 0; i < members->count; i++)
        if (members->at[i].work == members->at[i].works - 1 && is_done(members, &members->at[i]))
            return true;
    return false;
}

dt_status dt_list_last(const char *directory, int works, struct dt_list *list)
{
    struct member newest = {.key = NULL};
    struct members members;
    *list = (struct dt_list){.spent_ns = 0};
    dt_status status = walk(directory, "", take_newest, &newest);
    bool fits = newest.works == works && newest.list[0] != '\0';
    if (status < 0 || !fits) {
        member_fini(&newest);
        return status;
    }
    status = collect(directory, newest.list, &members);
    if (status == DT_OK && !at_end(&members)) {
        snprintf(list->id, sizeof list->id, "%s", newest.list);
        for (int i = 0; i < members.count; i++)
            if (is_done(&members, &members.at[i]))
                list->spent_ns += members.at[i].before_ns + members.at[i].spent.ns;
    }
    members_fini(&members);
    member_fini(&newest);
    return status;
}

struct reading {
    const char *path;
    struct dt_replay *replay;
};

static dt_status read_record(const json_t *record, int line, void *context)
{
    const struct reading *reading = context;
    (void)line;
    return dt_replay_record(reading->replay, record, reading->path);
}

static dt_status read_back(const char *path, struct dt_replay *replay, bool *found)
{
    struct reading reading = {path, replay};
    *replay = (struct dt_replay){.target = NULL};
    dt_status status = dt_journal_scan(path, read_record, &reading);
    *found = status == DT_OK && replay->ended;
    if (*found)
        dt_replay_end(replay);
    else
        dt_replay_fini(replay);
    return status == DT_ENOMEM ? status : DT_OK;
}

dt_status dt_list_done(const char *directory, const struct dt_list *list, int work,
                       const json_t *key, struct dt_replay *replay, bool *found)
{
    struct members members;
    dt_status status = collect(directory, list->id, &members);
    *found = false;
    for (int i = 0; status == DT_OK && !*found && i < members.count; i++)
        if (is_done(&members, &members.at[i]) && members.at[i].work == work &&
            json_equal(members.at[i].key, key))
            status = read_back(members.at[i].path, replay, found);
    members_fini(&members);
    return status;
}
