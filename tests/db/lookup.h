/* SPDX-License-Identifier: MIT */
/* lookup - entries, machines and snapshots for the tests of look-ups */
#ifndef DT_TESTS_DB_LOOKUP_H
#define DT_TESTS_DB_LOOKUP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/journal.h"
#include "db/lookup/key.h"
#include "db/lookup/lookup.h"
#include "db/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW    INT64_C(1800000000000000000)
#define DAY    (INT64_C(86400) * 1000000000)
#define DEVICE "Processor A"

/* With apostrophes for quotes; new reference. */
static json_t *json_of(const char *text)
{
    json_t *root = NULL;
    char copy[16384];
    assert_true(strlen(text) < sizeof copy);
    for (size_t i = 0; i <= strlen(text); i++)
        copy[i] = text[i] == '\'' ? '"' : text[i];
    assert_int_equal(dt_json_parse(copy, strlen(copy), "a test", &root), DT_OK);
    return root;
}

/* "a.b.c" is set to value (taken over), or deleted where it is NULL. */
static void set_at(json_t *root, const char *path, json_t *value)
{
    char name[64];
    const char *dot;
    while ((dot = strchr(path, '.')) != NULL) {
        snprintf(name, sizeof name, "%.*s", (int)(dot - path), path);
        if (json_object_get(root, name) == NULL)
            json_object_set_new(root, name, json_object());
        root = json_object_get(root, name);
        path = dot + 1;
    }
    if (value != NULL)
        json_object_set_new(root, path, value);
    else
        json_object_del(root, path);
}

/* "key.devices=8; plan.ranks=8; fingerprint.soft.mpi=": the text behind = as
 * JSON, nothing deletes. */
static void edit(json_t *root, const char *edits)
{
    char copy[1024], *save = NULL;
    snprintf(copy, sizeof copy, "%s", edits);
    for (char *at = strtok_r(copy, ";", &save); at != NULL; at = strtok_r(NULL, ";", &save)) {
        char *equals = strchr(at, '='), boxed[512];
        at += strspn(at, " ");
        assert_non_null(equals);
        *equals = '\0';
        snprintf(boxed, sizeof boxed, "[%s]", equals + 1);
        json_t *box = json_of(boxed);
        set_at(root, at, json_incref(json_array_get(box, 0)));
        json_decref(box);
    }
}

static struct dt_machine *machine_of(const char *edits)
{
    struct dt_machine *machine = NULL;
    json_t *root = json_of(
        "{'format':'dittune-machine','version':{'major':1,'minor':0},'hard':{'device':'" DEVICE
        "','cores':4,'memory_gib':16,'topology':'aaaa'},'soft':{'dittune':'0.1.0','mpi':'4.1.4',"
        "'openblas':'0.3.21','environment':{'OMP_PROC_BIND':'true'}},'info':{'host':'here'},"
        "'limits':{'memory_bytes':17179869184,'bfloat16':false}}");
    edit(root, edits);
    assert_int_equal(dt_machine_from_json(root, "the machine", &machine), DT_OK);
    json_decref(root);
    return machine;
}

/* dit-s/2 at 256 px on four devices of that machine, a day old. */
static json_t *entry_of(const char *edits)
{
    struct dt_network network;
    char id[DT_KEY_ID_SIZE];
    assert_int_equal(dt_network_load("dit-s/2", &network), DT_OK);
    assert_int_equal(dt_key_network(&network, id), DT_OK);
    json_t *root = json_of(
        "{'key':{'model':'DiT-S/2','height':32,'width':32,'guidance':true,'dtype':'float32',"
        "'devices':4,'batch':[1],'objective':'latency'},'fingerprint':{'hard':{'device':'" DEVICE
        "','cores':4,'memory_gib':16,'topology':'aaaa','dtype':'float32','engine':'dittune','mode':"
        "'"
        "eager'},'soft':{'dittune':'0.1.0','mpi':'4.1.4','openblas':'0.3.21','environment':{"
        "'OMP_PROC_BIND':'true'}},'info':{'host':'there'}},'plan':{'ranks':4,'cfg':2,"
        "'ulysses':2,'ring':1,'threads':1,'batch':1,'tile_q':64,'tile_kv':128,'overlap':0,"
        "'chunks':1},'verdict':'faster','provisional':false,'figures':{'median_ns':40000000,"
        "'peak_bytes':300000000},'gain':{'ratio':1.5,'interval':[1.4,1.6],'pairs':20}}");
    set_at(root, "key.model", json_string(network.name));
    set_at(root, "key.network", json_string(id));
    set_at(root, "fingerprint.info.t_wall_ns", json_integer(NOW - DAY));
    edit(root, edits);
    return root;
}

static void add_line(json_t *entry, struct dt_text *text)
{
    uint64_t id;
    size_t start = text->size;
    const char *name;
    json_t *value;
    const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    assert_int_equal(dt_store_id(json_object_get(entry, "key"), hard, &id), DT_OK);
    dt_text_add(text, "{\"id\":\"%016llx\"", (unsigned long long)id);
    json_object_foreach(entry, name, value)
    {
        dt_text_add(text, ",\"%s\":", name);
        assert_int_equal(dt_json_text(value, text), DT_OK);
    }
    dt_text_add(text, ",\"crc\":\"%08x\"}",
                (unsigned)dt_crc32c(text->bytes + start, text->size - start));
}

/* The snapshot of an array of entries, which is freed. */
static struct dt_snapshot *snapshot_of(json_t *entries)
{
    struct dt_text text = {0};
    struct dt_snapshot *snapshot = NULL;
    dt_text_add(&text, "{\"format\":\"dittune-best\",\"version\":{\"major\":2,\"minor\":0},"
                       "\"incompat\":[],\"compat\":[],\"entries\":[");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        dt_text_add(&text, i > 0 ? ",\n" : "\n");
        add_line(json_array_get(entries, i), &text);
    }
    dt_text_add(&text, "\n]");
    dt_text_add(&text, ",\"checksum\":\"%08x\"}\n", (unsigned)dt_crc32c(text.bytes, text.size));
    if (dt_snapshot_parse(text.bytes, text.size, "the store", &snapshot) != DT_OK)
        fail_msg("%s", dt_message());
    dt_text_fini(&text);
    json_decref(entries);
    return snapshot;
}

/* "devices=8; size=512": sealed. */
static struct dt_query *query_of(const struct dt_machine *machine, const char *sets)
{
    struct dt_query *query = NULL;
    char copy[8192], *save = NULL;
    assert_int_equal(dt_query_new(machine, &query), DT_OK);
    snprintf(copy, sizeof copy, "now_ns=%lld;%s", (long long)NOW, sets);
    for (char *at = strtok_r(copy, ";", &save); at != NULL; at = strtok_r(NULL, ";", &save)) {
        char *equals = strchr(at, '=');
        at += strspn(at, " ");
        assert_non_null(equals);
        *equals = '\0';
        if (dt_query_set(query, at, equals + 1) != DT_OK)
            fail_msg("%s", dt_message());
    }
    if (dt_query_seal(query) != DT_OK)
        fail_msg("%s", dt_message());
    return query;
}

static struct dt_answer *answer_of(const struct dt_snapshot *snapshot, const struct dt_query *query)
{
    struct dt_answer *answer = NULL;
    if (dt_lookup(snapshot, query, &answer) != DT_OK)
        fail_msg("%s", dt_message());
    return answer;
}

#endif
