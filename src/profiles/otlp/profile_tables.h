/* SPDX-License-Identifier: Apache-2.0 */
/* A ProfilesDictionary that is being built: its seven tables, each with the zero element first. One
 * owner, one thread at a time. */
#pragma once

#include <stdint.h>

#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_set.h"

struct batch;
struct budget;
struct buffer;

struct profile_tables {
    struct profile_set sets[PROFILE_TABLES];
    struct profile_bytes scratch; /* an attribute, until it is known to be new */
};

void profile_tables_init(struct profile_tables *tables, struct budget *budget);
void profile_tables_fini(struct profile_tables *tables);
void profile_tables_clear(struct profile_tables *tables);

struct profile_tables_mark {
    uint32_t counts[PROFILE_TABLES];
};
struct profile_tables_mark profile_tables_mark(const struct profile_tables *tables);
/* Removes what was added after the mark. */
void profile_tables_cut(struct profile_tables *tables, const struct profile_tables_mark *mark);
/* The encoded size, as fields of ProfilesDictionary. */
uint64_t profile_tables_bytes(const struct profile_tables *tables);
uint8_t *profile_tables_write(const struct profile_tables *tables, uint8_t *at);

/* Appends the tables to batch: those of at least PROFILE_LARGE_BYTES share their bytes with it; the
 * others are written to buffer, which has room for _small_bytes of them and whose bytes so far come
 * first. The next call is _clear or _fini. */
enum { PROFILE_LARGE_BYTES = 64 * 1024 };
uint64_t profile_tables_small_bytes(const struct profile_tables *tables);
void profile_tables_hand_out(const struct profile_tables *tables, struct buffer *buffer,
                             struct batch *batch);
