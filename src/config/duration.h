/* SPDX-License-Identifier: Apache-2.0 */
/* Durations as Go writes them: "1h30m", "-1.5s", "200ms", "0". Pure functions. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* NULL, or the error in the words of Go's time.ParseDuration. */
const char *text_to_duration_ns(const char *text, int64_t *ret_duration_ns);

enum { DURATION_TEXT_MAX = 32 };
struct duration_text {
    char text[DURATION_TEXT_MAX];
};
/* The shortest form of whole units: "1m30s", "200ms". */
struct duration_text duration_to_text(int64_t duration_ns);
