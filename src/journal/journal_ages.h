/* SPDX-License-Identifier: Apache-2.0 */
/* When the records of a journal came in: a mark for some of them, close together at first, further
 * apart the longer the records wait. Plain data; its user locks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { JOURNAL_MARKS_MAX = 1024 };

struct journal_mark {
    uint64_t id;
    uint64_t wall_ns;
};

struct journal_ages {
    uint64_t spacing_ns; /* between marks, at least */
    size_t count;
    struct journal_mark marks[JOURNAL_MARKS_MAX]; /* ids ascend */
};

void journal_ages_init(struct journal_ages *ages);
/* The record came at that time. In any order. */
void journal_ages_note(struct journal_ages *ages, uint64_t id, uint64_t wall_ns);
/* Records below are not asked for any more. */
void journal_ages_forget(struct journal_ages *ages, uint64_t id);
/* When the record came, or up to one spacing earlier; 0: unknown. */
uint64_t journal_ages_find(const struct journal_ages *ages, uint64_t id);
