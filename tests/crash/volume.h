/* SPDX-License-Identifier: Apache-2.0 */
/* A real file system on a recorder's disk. Loop devices detach themselves when their file system is
 * unmounted, and mounts belong to the test's own namespace: both end with the test, however it
 * ends. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorder;

struct volume_type {
    const char *name;     /* as mount(2) knows it */
    const char *mkfs[12]; /* the program and its arguments, before the device; NULL ends them */
    uint64_t bytes;       /* of the disk */
};

/* NULL: no such type. */
const struct volume_type *volume_type_of(const char *name);
/* Gives the calling process mounts of its own. False: *ret_why says what this machine lacks. */
bool volume_enter(const char **ret_why);

/* Makes the file system on the disk. */
bool volume_format(const struct volume_type *type, struct recorder *recorder, const char **ret_why);
/* Mounts it; the file system recovers what a cut left. Returns 0 or an errno. */
int volume_mount(const struct volume_type *type, struct recorder *recorder, const char *directory);
/* No file is open. Returns 0 or an errno. */
int volume_unmount(const struct volume_type *type, struct recorder *recorder,
                   const char *directory);
