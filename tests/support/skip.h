/* SPDX-License-Identifier: Apache-2.0 */
/* Skips a cmocka test and prints the reason, which `make test` repeats at its end. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Does not return. */
static inline void skip_because(const char *reason)
{
    printf("SKIPPED: %s\n", reason);
    fflush(stdout);
    skip();
}
