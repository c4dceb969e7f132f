/* SPDX-License-Identifier: MIT */
/* actor - the verbs of the actor (actor.c says how it is used) */
#ifndef DT_TESTS_DB_FAULTS_ACTOR_H
#define DT_TESTS_DB_FAULTS_ACTOR_H

#include "base/json.h"
#include "base/status.h"

extern const char *actor_folder; /* of the store */

/* A line to whoever asked; "ack ..." there and in the log of the shim: what a program would have
 * told its user is stored. */
void actor_say(const char *line);
void actor_acknowledge(const char *what);

/* A string of so many bytes; NULL without memory. */
json_t *actor_filler(long size);

/* An entry whose plan is ranks=value. */
json_t *actor_entry(const char *model, long value, long size);

/* put MODEL VALUE SIZE */
dt_status actor_put(const char *arguments);
/* watch NAP: reads every NAP microseconds until it is killed; nothing may
 * vanish, nothing get older */
dt_status actor_watch(const char *arguments);
/* hold: takes the lock and stays */
dt_status actor_hold(const char *arguments);
/* fork MODEL VALUE: a child that is forked while the lock is held, and stays, does
 * not block other writers */
dt_status actor_fork(const char *arguments);
/* appends PROCESSES N SIZE: all of them to one journal; "good N bad N" of its records */
dt_status actor_appends(const char *arguments);

/* result MODEL VALUE SIZE: in a journal, then in the store, as a session does */
dt_status actor_result(const char *arguments);
/* results MODEL FROM TO: so many sessions */
dt_status actor_results(const char *arguments);
/* rebuild [salvage] */
dt_status actor_rebuild(const char *arguments);
/* gc: whatever may go, goes */
dt_status actor_gc(const char *arguments);
/* take: is offered the entries d and e of another store */
dt_status actor_take(const char *arguments);

#endif
