/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles for the tests of pprof: built with protobuf-c, and printed in the form of the Go
 * oracle (tests/peers/pprof). One thread. */
#pragma once

#include <stddef.h>

#include "src/base/arena.h"
#include "src/base/slice.h"

struct gzip;
struct pprof;

/* The bytes of a message, allocated. */
struct slice packed_message(const void *message);

/* One line per fact, samples sorted; allocated. */
char *pprof_described(const struct pprof *pprof);
/* The same from protobuf-c's reading of the bytes. */
char *pprof_described_by_oracle(struct slice bytes);
/* A file of the fuzz corpus, inflated when need be; allocated. */
struct slice corpus_file(const char *name);
