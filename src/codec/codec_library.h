/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries of codecs, loaded when the first stream needs them: linked, they would cost each
 * process 190 KiB of resident memory at rest. Only types and constants come from their headers. Any
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct codec_symbol {
    const char *name; /* NULL ends the table */
    size_t offset;    /* of the pointer, in the struct that is filled */
};

/* For tables of functions (X macros): a member of the struct, and a row for a struct of that type.
 */
#define CODEC_LIBRARY_MEMBER(function) __typeof__(&function) function;
#define CODEC_LIBRARY_ROW(owner, function)                                                         \
    {                                                                                              \
#function, offsetof(owner, function)                                                       \
    }

/* Fills the struct with the library's functions. False: it is not there, or too old. */
bool codec_library_load(const char *name, const struct codec_symbol *symbols, void *functions);
