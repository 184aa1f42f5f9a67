/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a dictionary whose fields are all varints: which of them are indices, and of which
 * table. For code that reads entries in the order of field numbers: the fast check, copying all
 * tables at once, and finding unused entries. Constants; any thread. */
#pragma once

#include <stdint.h>

#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_dictionary.h"

/* Tags of one byte. */
#define PROFILE_NUMBER(field)  ((field) << 3 | WIRE_VARINT)
#define PROFILE_FIXED64(field) ((field) << 3 | WIRE_FIXED64)
#define PROFILE_BYTES(field)   ((field) << 3 | WIRE_BYTES)

enum profile_meaning { PROFILE_UNKNOWN_FIELD, PROFILE_ANY_NUMBER, PROFILE_INDEX };

/* By field number; all are below 8. */
struct profile_plan {
    uint8_t meanings[8]; /* enum profile_meaning */
    uint8_t tables[8];   /* enum profile_table, of indices */
};

static const struct profile_plan profile_function_plan = {
    .meanings =
        {[1] = PROFILE_INDEX, [2] = PROFILE_INDEX, [3] = PROFILE_INDEX, [4] = PROFILE_ANY_NUMBER},
    .tables = {[1] = PROFILE_STRINGS, [2] = PROFILE_STRINGS, [3] = PROFILE_STRINGS},
};

static const struct profile_plan profile_value_type_plan = {
    .meanings = {[1] = PROFILE_INDEX, [2] = PROFILE_INDEX},
    .tables = {[1] = PROFILE_STRINGS, [2] = PROFILE_STRINGS},
};

static const struct profile_plan profile_line_plan = {
    .meanings = {[1] = PROFILE_INDEX, [2] = PROFILE_ANY_NUMBER, [3] = PROFILE_ANY_NUMBER},
    .tables = {[1] = PROFILE_FUNCTIONS},
};

/* Without the attributes, which come last. */
static const struct profile_plan profile_mapping_plan = {
    .meanings = {[1] = PROFILE_ANY_NUMBER,
                 [2] = PROFILE_ANY_NUMBER,
                 [3] = PROFILE_ANY_NUMBER,
                 [4] = PROFILE_INDEX},
    .tables = {[4] = PROFILE_STRINGS},
};
