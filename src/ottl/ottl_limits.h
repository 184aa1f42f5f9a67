/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of OTTL. */
#pragma once

enum {
    /* Of one statement or condition. */
    OTTL_TEXT_BYTES_MAX = 64 * 1024,
    OTTL_DEPTH_MAX = 100,               /* nested parentheses, calls, lists, maps, lambdas */
    OTTL_PARSE_STEPS_MAX = 1000 * 1000, /* alternatives that the parser tries */
    /* The trees of all statements of a processor, and what is compiled from them. */
    OTTL_PLAN_BYTES_MAX = 64 << 20,
    /* What the statements may make of one record, and with it so many times the bytes of its batch,
     * which may be that one record: as JSON a byte takes six, and reading and copies come on top.
     * The budget is charged for it. */
    OTTL_RECORD_BYTES_MAX = 16 << 20,
    OTTL_RECORD_FACTOR_MAX = 16,
    /* What the statements may add to a batch: as much as to one record, or a factor of its bytes,
     * since what is copied to each of its records grows by their number times its size. That is
     * enough for fifty attributes in each of the smallest records. A message whose request has
     * grown by the last of them still has a length of 32 bits. */
    OTTL_GROWTH_BYTES_MIN = OTTL_RECORD_BYTES_MAX,
    OTTL_GROWTH_FACTOR_MAX = 64,
    OTTL_GROWTH_BYTES_MAX = 1 << 30,
    /* What functions append to a batch of metrics: a factor of its bytes, or so much at least. */
    OTTL_APPENDED_FACTOR_MAX = 16,
    OTTL_APPENDED_BYTES_MIN = 64 * 1024,
    /* Longer records are none for an event-loop lane: a pattern that is replaced at each byte takes
     * 200 ns there. */
    OTTL_LANE_RECORD_BYTES_MAX = 64 * 1024,
    /* What statements may read of records around theirs, such as the Resource of each span, and
     * what functions may copy that repeat a part of their argument, in bytes, with what their
     * patterns take if they are texts of records, in nanoseconds: a factor of the batch's bytes
     * beside so many. An ordinary Resource of 3 KiB can be read whole for each of 8192
     * records; a large one cannot: it takes seconds for 1 MiB. */
    OTTL_OUTER_FACTOR_MAX = 64,
    OTTL_OUTER_BYTES_MIN = 32 << 20,
    /* The same on an event-loop lane, of a runner whose owner has a helper, which gets
     * what takes more. A byte takes about 2 ns at most, so that the largest request that is run on
     * the lane holds it for 50 ms. */
    OTTL_LANE_OUTER_FACTOR_MAX = 16,
    OTTL_LANE_OUTER_BYTES_MIN = 8 << 20,
    /* Messages in one another below an attribute's AnyValue, so that receivers can read what
     * statements make: a data point's is the eighth of WIRE_DEPTH_MAX. A list takes two, a map
     * three. */
    OTTL_VALUE_LEVELS_MAX = 56,
    OTTL_LIST_LEVELS = 2,
    OTTL_MAP_LEVELS = 3,
    /* What is kept of a request's dictionary of profiles, with what statements append. */
    OTTL_DICTIONARY_BYTES_MAX = 512 << 20,
    OTTL_ERROR_BYTES_MAX = 512,
};
