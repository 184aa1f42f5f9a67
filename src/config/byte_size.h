/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes in bytes as users write them: "64MiB", "1.5GB", "4096". Pure functions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Units: B, KiB to TiB, and kB (or KB) to TB, which are powers of ten. False: not a size. */
bool text_to_bytes(const char *text, uint64_t *ret_bytes);
/* The same with units in any case, as receivers of files have them. */
bool text_to_bytes_in_any_case(const char *text, uint64_t *ret_bytes);

enum { BYTES_TEXT_MAX = 32 };
struct bytes_text {
    char text[BYTES_TEXT_MAX];
};
/* In the largest binary unit that gives a whole number. */
struct bytes_text bytes_to_text(uint64_t bytes);
