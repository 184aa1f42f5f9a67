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
    /* What the statements may make of one record, beside its own bytes. */
    OTTL_RECORD_BYTES_MAX = 16 << 20,
    OTTL_ERROR_BYTES_MAX = 512,
};
