/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the records of a journal_store in the order of their ids, beside the thread that commits.
 * What does not verify is passed over and reported. Blocking; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/journal/journal_format.h"

struct budget;
struct buffer;
struct journal_segment;
struct journal_store;

/* A record read back. */
struct journal_stored {
    struct journal_head head;
    uint64_t segment;
    uint64_t offset;
    struct buffer *payload; /* owned: meta data, then the request; NULL: not asked for */
};

struct journal_reader;
/* Records from first on; 0: from the oldest that is there or should be. on_damage is called once
 * for each stretch of records that cannot be read: they lie at or behind that offset, and `records`
 * ids, from first on, are missing. */
typedef void (*journal_damage_fn)(const struct journal_damage *damage, void *arg);
struct journal_reader *journal_reader_create(struct journal_store *store, uint64_t first,
                                             journal_damage_fn on_damage, void *arg);
void journal_reader_destroy(struct journal_reader *reader);

enum journal_depth {
    JOURNAL_PAYLOADS, /* records with their payloads */
    JOURNAL_HEADS,    /* heads only: payloads are not read */
    /* The same, and everything is checked: payloads, what else is recorded, segment headers.
     * on_damage is also called, with `records` 0, for what costs no record. What
     * journal_store_tail tells is left out. */
    JOURNAL_CHECKS,
};
/* Before the first read. */
void journal_reader_set_depth(struct journal_reader *reader, enum journal_depth depth);

/* Records for which skips(id, arg) is true come without a payload, unread. Before the first read.
 */
typedef bool (*journal_skips_fn)(uint64_t id, void *arg);
void journal_reader_set_skips(struct journal_reader *reader, journal_skips_fn skips, void *arg);

enum journal_read {
    JOURNAL_READ,      /* a record */
    JOURNAL_READ_END,  /* there is no further one yet */
    JOURNAL_READ_BUSY, /* the budget has no room for it: try again */
    /* A file cannot be opened or read for now: try again. What the disk itself refuses to read
     * counts as damaged after half a minute. Not in a store that is read only. */
    JOURNAL_READ_FAILED,
};
/* The payload is charged to the budget. */
enum journal_read journal_reader_next(struct journal_reader *reader, struct budget *budget,
                                      struct journal_stored *ret_stored);
/* After JOURNAL_READ_FAILED: a negative errno, and the segment. */
int journal_reader_failure(const struct journal_reader *reader, uint64_t *ret_segment);
/* How long it still waits for what cannot be read: to be handed to the reader that takes its
 * place, lest the wait begin anew. */
struct journal_patience {
    uint64_t segment;  /* the last of which something could not be read; 0: none */
    uint64_t until_ns; /* then that counts as damaged */
};
struct journal_patience journal_reader_patience(const struct journal_reader *reader);
void journal_reader_set_patience(struct journal_reader *reader, struct journal_patience patience);
/* The id that it will read next. */
uint64_t journal_reader_position(const struct journal_reader *reader);

/* For the recovery: a reader of the heads of one segment alone, which reports nothing. */
struct journal_reader *journal_reader_create_scan(struct journal_store *store,
                                                  const struct journal_segment *segment);
/* Finds the next head at or behind the reader's offset. False: there is none. */
bool journal_reader_find_head(struct journal_reader *reader, struct journal_head *ret_head);
/* The payload of that head; NULL: it does not verify. Free with mem_free. */
uint8_t *journal_reader_payload(struct journal_reader *reader, const struct journal_head *head);
/* Goes on behind the record. */
void journal_reader_step_over(struct journal_reader *reader, const struct journal_head *head);
/* Offset of the head at hand. */
uint64_t journal_reader_offset(const struct journal_reader *reader);
/* Offset of the last head that did not verify; 0: none since the last request. */
uint64_t journal_reader_torn(const struct journal_reader *reader);
/* Why some of the segment could not be read, a negative errno; 0: it could. */
int journal_reader_error(const struct journal_reader *reader);
