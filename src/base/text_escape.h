/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes untrusted strings for JSON, XML and terminals, so that they cannot end the context they
 * are in. Bytes that are not UTF-8 become '?'. Any thread. */
#pragma once

#include <stdio.h>

#include "src/base/slice.h"

enum { JSON_ESCAPE_BYTES_MAX = 6 };

/* Writes the escape of a byte that a JSON string cannot hold as it is: a quote, a backslash, a
 * control character. Returns its size. All JSON but Go's (src/otlp/json/value_string.c) uses it. */
size_t json_escape_byte(uint8_t byte, void *room);
/* Writes the string with its quotes. */
void text_escape_json(FILE *out, struct slice text);
/* For the content of an element or a quoted attribute. */
void text_escape_xml(FILE *out, struct slice text);
/* Control characters become '?', so that nothing moves the cursor or changes colours. */
void text_escape_terminal(FILE *out, struct slice text);
