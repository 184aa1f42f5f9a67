/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries that are loaded by their first user: linked, they would cost each process
 * resident memory at rest. Only types and constants come from their headers. They are never
 * unloaded. Any thread; the first caller loads. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { DYNLIB_FAILURE_BYTES_MAX = 256 };

struct dynlib_symbol {
    const char *name; /* NULL ends the table */
    size_t offset;    /* of the pointer, in the struct that is filled */
};

struct dynlib {
    const char *name; /* "libzstd.so.1" */
    const struct dynlib_symbol *symbols;
    void *functions; /* the struct that symbols describe */
    /* of dynlib_load */
    _Atomic int state;
    char failure[DYNLIB_FAILURE_BYTES_MAX]; /* why it cannot be loaded, once dynlib_load failed */
};

/* For lists of functions (X macros): a member of a struct, and the row for it. */
#define DYNLIB_MEMBER(function) __typeof__(&function) function;
#define DYNLIB_ROW(owner, function)                                                                \
    {                                                                                              \
#function, offsetof(owner, function)                                                       \
    }

/* Fills the struct with the library's functions. False: it is missing, or too old. */
bool dynlib_load(struct dynlib *library);
