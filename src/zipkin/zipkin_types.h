/* SPDX-License-Identifier: Apache-2.0 */
/* What to read. Plain data; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum zipkin_form {
    ZIPKIN_V2_JSON,
    ZIPKIN_V2_PROTO,
    ZIPKIN_V1_JSON,
    ZIPKIN_V1_THRIFT,
    ZIPKIN_FORMS
};

struct zipkin_source {
    enum zipkin_form form;
    bool parses_strings; /* tags that are numbers or true and false become that (not Thrift's) */
    uint64_t now_ns;     /* Unix time, for spans of v1 JSON without a time */
};
