/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that repeat numbers, as the lists that paths give and take: bucket counts, bounds, values
 * of samples. They are packed on the wire, but are read one by one, too. Runs on the processor's
 * thread. */
#pragma once

#include "src/ottl/ottl_node.h"
#include "src/ottl/ottl_record.h"

struct ottl_numbers {
    const char *name; /* of Go's elements: "uint64" */
    uint8_t form;     /* enum ottl_form: of the list that is read */
    bool is_fixed;    /* fixed64; else varints */
    bool is_double;
    bool is_int32; /* what is set is cut to it */
};

extern const struct ottl_numbers ottl_fixed_counts;  /* fixed64, []uint64 */
extern const struct ottl_numbers ottl_varint_counts; /* uint64, []uint64 */
extern const struct ottl_numbers ottl_fixed_doubles; /* double, []float64 */
extern const struct ottl_numbers ottl_indices;       /* int32, []int64 */
extern const struct ottl_numbers ottl_varint_ints;   /* int64, []int64 */
extern const struct ottl_numbers ottl_fixed_ints;    /* fixed64, []int64 */

/* The numbers that are field `number` of an encoded message, which is the record's or in it. False:
 * no memory, the error is set. */
bool ottl_numbers_read(struct ottl_run *run, const struct ottl_numbers *numbers,
                       const struct ottl_record *record, struct slice message, unsigned number,
                       struct ottl_value *ret);
/* The same of a record's message, or what the field was set to. */
bool ottl_numbers_get(struct ottl_run *run, const struct ottl_numbers *numbers,
                      const struct ottl_record *record, unsigned number, struct ottl_value *ret);
/* Go's SetCommonIntSliceValues and SetCommonTypedSliceValues: the content of the packed field, in
 * `memory`. */
bool ottl_numbers_pack(struct ottl_run *run, const struct ottl_numbers *numbers,
                       struct ottl_memory *memory, const struct ottl_value *value,
                       struct slice *ret);
/* Packs them into a field of the record. */
bool ottl_numbers_set(struct ottl_run *run, const struct ottl_numbers *numbers,
                      struct ottl_record *record, unsigned number, const struct ottl_value *value);
