/* SPDX-License-Identifier: MIT */
/* folders - temporary folders of worker groups, which remain when all processes of a
 * session are killed at once
 *
 * The name identifies the owner: dittune-PID-START-PLACE-XXXXXX, with the controller's pid, its
 * start time, and a number for boot and pid namespace, so that a folder of another host or
 * container is never removed by mistake.
 */
#ifndef DT_TUNER_RUNNER_FOLDERS_H
#define DT_TUNER_RUNNER_FOLDERS_H

#include "base/status.h"

#define DT_FOLDER_ROOM 256

/* A new folder in parent. DT_EIO names parent and cause; DT_EUSAGE when the path
 * of parent is too long. */
dt_status dt_folder_make(const char *parent, char folder[DT_FOLDER_ROOM]) DT_MUST_CHECK;

/* Removes the folder with its contents; "" is fine. Follows no link. */
void dt_folder_remove(const char *folder);

/* Removes the folders of this user's dead sessions from parent. Follows no link. */
void dt_folders_sweep(const char *parent);

#endif
