/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the file exporter's files: those of groups, which stay below their directory whatever
 * the telemetry says, and those of rotated files. As in the Go collector. Pure functions; any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

enum { FILE_PATH_BYTES_MAX = 4096 }; /* with the terminator: PATH_MAX */

/* Go's path.Clean, in place; the room is at least 2 bytes. */
void file_path_clean(char *path);
/* Its directory, "." without one, as Go's filepath.Dir. path is shorter than FILE_PATH_BYTES_MAX.
 */
void file_path_directory(const char *path, char ret_directory[static FILE_PATH_BYTES_MAX]);

/* A path with one *, which stands for the group. */
struct file_group_path {
    char prefix[FILE_PATH_BYTES_MAX]; /* cleaned */
    char suffix[FILE_PATH_BYTES_MAX];
};

/* pattern has one * and is shorter than FILE_PATH_BYTES_MAX. */
void file_group_path_init(struct file_group_path *path, const char *pattern);
/* The path of a group. Returns 0; -EINVAL: the group has a NUL; -ENAMETOOLONG. */
int file_group_path_of(const struct file_group_path *path, struct slice group,
                       char ret_path[static FILE_PATH_BYTES_MAX]);

/* What the names of rotated files begin and end with: "traces-" and ".json" of "/d/traces.json". */
struct file_backup_name {
    struct slice stem; /* "traces", without the dash; inside the path */
    struct slice extension;
};

struct file_backup_name file_backup_name_of(const char *path);
/* "2024-05-06T07-08-09.123" of a time. */
enum { FILE_BACKUP_TIME_BYTES = 32 };
void file_backup_time(uint64_t wall_ns, bool is_local,
                      char ret_text[static FILE_BACKUP_TIME_BYTES]);
/* The name, in the directory of path, that the file gets when it is rotated at that time because of
 * its size: "/d/traces-2024-05-06T07-08-09.123-size.json". False: longer than a path may be. */
bool file_backup_path(const char *path, uint64_t wall_ns, bool is_local,
                      char ret_path[static FILE_PATH_BYTES_MAX]);
/* Whether the name is that of a rotated file, maybe compressed later (.gz, .zst), and when it was
 * rotated. */
bool file_backup_wall_ns(const struct file_backup_name *backup, const char *name, bool is_local,
                         int64_t *ret_wall_ns);
