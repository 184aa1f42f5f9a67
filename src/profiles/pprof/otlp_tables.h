/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of an OTLP profiles request while it is made from a pprof profile: every entry is
 * kept once, entry 0 of each table is the zero value. The error is sticky. One owner. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/otlp/wire.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/pprof/entry_table.h"

struct budget;
struct correlation;
struct pprof;
struct pprof_sample;

/* AnyValue's fields. */
enum { VALUE_TEXT_FIELD = 1, VALUE_BOOL_FIELD = 2, VALUE_INT_FIELD = 3, VALUE_LIST_FIELD = 5 };

/* Upper bounds: a scalar field, the head of a message, an index in a list, a small message. */
enum {
    OTLP_NUMBER_BYTES_MAX = 1 + WIRE_VARINT_BYTES_MAX,
    OTLP_HEADER_BYTES_MAX = 1 + WIRE_SHORT_VARINT_BYTES_MAX,
    OTLP_INDEX_BYTES_MAX = WIRE_SHORT_VARINT_BYTES_MAX,
    OTLP_SMALL_BYTES_MAX = 256,
};

struct otlp_tables {
    const struct pprof *pprof;
    struct budget *budget;
    struct entry_table entries[PROFILE_TABLES];
    struct scratch locations; /* uint32_t by place: index */
    struct scratch mappings;
    struct scratch functions;
    struct scratch content; /* of the entry that is being made */
    struct scratch repaired;
    bool has_failed;
};

void otlp_tables_init(struct otlp_tables *tables, const struct pprof *pprof, struct budget *budget);
void otlp_tables_fini(struct otlp_tables *tables);
/* Memory of the scratch, NULL when refused, which is remembered. */
void *otlp_tables_room(struct otlp_tables *tables, struct scratch *scratch, size_t bytes);

/* A text of the profile. */
struct slice otlp_tables_source_text(const struct otlp_tables *tables, uint32_t index);
/* The same without bytes that are no UTF-8; valid until the next text. */
struct slice otlp_tables_repaired(struct otlp_tables *tables, struct slice text);

/* Indices of entries, which are added when they are new. */
uint32_t otlp_tables_text(struct otlp_tables *tables, struct slice text);
uint32_t otlp_tables_text_at(struct otlp_tables *tables, uint32_t index);
/* value is an encoded AnyValue. */
uint32_t otlp_tables_attribute(struct otlp_tables *tables, uint32_t key, struct slice value,
                               uint32_t unit);
uint32_t otlp_tables_text_attribute(struct otlp_tables *tables, const char *key, struct slice text);
uint32_t otlp_tables_link(struct otlp_tables *tables, const struct correlation *correlation);
/* All mappings, functions and locations of the profile. One that says nothing at all is entry 0,
 * which stands for none. */
void otlp_tables_symbols(struct otlp_tables *tables);
/* After otlp_tables_symbols. */
uint32_t otlp_tables_stack(struct otlp_tables *tables, const struct pprof_sample *sample);

/* A number that is not 0; a packed list that is not empty. */
void otlp_put(struct wire_writer *writer, uint32_t number, uint64_t value);
void otlp_put_indices(struct wire_writer *writer, uint32_t number, const uint32_t *indices,
                      size_t count);
