/* SPDX-License-Identifier: Apache-2.0 */
/* Character classes of HTTP/1.1 (RFC 9110 §5.6.2, RFC 9112). Pure functions; any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/slice.h"

enum http1_char {
    HTTP1_TOKEN = 1,  /* methods, header names */
    HTTP1_VALUE = 2,  /* header values: visible, space, tab, and bytes from 0x80 */
    HTTP1_TARGET = 4, /* request targets: visible ASCII without '#' */
    HTTP1_HOST = 8,   /* Host values */
};

extern const uint8_t http1_chars[256];

static inline bool http1_is(uint8_t byte, enum http1_char kind)
{
    return (http1_chars[byte] & kind) != 0;
}

/* A method or a header name: at least one byte, all of them HTTP1_TOKEN. */
bool http1_is_token(struct slice text);
bool http1_is_all(struct slice text, enum http1_char kind);
/* Removes blanks and tabs at both ends (OWS, RFC 9110 §5.6.3). */
struct slice http1_trim(struct slice text);
/* -1: not a hexadecimal digit. */
int http1_hex_digit(uint8_t byte);
