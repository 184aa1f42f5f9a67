/* SPDX-License-Identifier: Apache-2.0 */
/* Damage of a journal that a daemon may be writing at this moment: is it damage, and how it is
 * reported. Main thread of a command. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/cli/journal/journal_folders.h"
#include "src/journal/journal_reader.h"
#include "src/journal/journal_store.h"

/* Looks again, after a moment, at most so often in one journal. */
enum { JOURNAL_LOOKS_MAX = 3 };

struct journal_judge {
    const struct journal_view *view;
    uint64_t newest; /* segment */
    unsigned looks;
};

struct journal_judge journal_judge_of(const struct journal_view *view);
/* False: the newest segment was being written; it can be read now. */
bool journal_damage_lasts(struct journal_judge *judge, const struct journal_damage *damage);
/* What the newest segment ends with, if it does not verify and that lasts. */
bool journal_tail_lasts(struct journal_judge *judge, struct journal_damage *ret_damage);
/* Of the records that are missing, those that some exporter has not finished. */
uint64_t journal_damage_waiting(const struct journal_view *view,
                                const struct journal_damage *damage);
/* A line: file, offset, what is missing. is_tail: of journal_tail_lasts. */
void journal_damage_print(FILE *out, const struct journal_view *view,
                          const struct journal_damage *damage, bool is_tail);
