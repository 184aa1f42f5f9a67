/* SPDX-License-Identifier: Apache-2.0 */
/* Finds journals below a directory and opens them read only. Main thread of a command. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"

struct error;
struct journal_file;
struct journal_store;

/* A directory with the segments of one pipeline. */
struct journal_folder {
    char *path;
    char *name; /* of the pipeline: "traces/a", from the directory's name "traces~002Fa" */
};

enum { JOURNAL_FOLDERS_MAX = 4096 };

struct journal_folders {
    struct journal_folder *folders; /* by name */
    size_t count;
};

/* The directory itself if it is a journal, else those in it. False: there is none, or it cannot be
 * read. The caller frees them in both cases. */
bool journal_folders_find(struct journal_folders *folders, const char *directory,
                          struct error *error);
void journal_folders_free(struct journal_folders *folders);

/* A journal that is being looked at. */
struct journal_view {
    const struct journal_folder *folder;
    struct journal_store *store;
    struct budget disk; /* not limited */
};

/* False: error says why it cannot be read. */
bool journal_view_open(struct journal_view *view, const struct journal_folder *folder,
                       struct error *error);
void journal_view_close(struct journal_view *view);
/* Whether some exporter has not finished the record. */
bool journal_view_waits(const struct journal_view *view, uint64_t id);
/* The oldest record that some exporter has not finished; UINT64_MAX without exporters. */
uint64_t journal_view_low(const struct journal_view *view);
/* The number of the newest segment; 0: there is none. */
uint64_t journal_view_newest(const struct journal_view *view);

/* Why a foreign file is not read: "it is a segment of another journal". */
enum { JOURNAL_WHY_BYTES = 96 };
void journal_why_foreign(const struct journal_file *file, char why[static JOURNAL_WHY_BYTES]);
