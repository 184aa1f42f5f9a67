/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from anywhere into JSON, XML and terminals: nothing in them can end the place that they are
 * in. Bytes that are no UTF-8 become '?'. Any thread. */
#pragma once

#include <stdio.h>

#include "src/base/slice.h"

enum { JSON_ESCAPE_BYTES_MAX = 6 };

/* Writes the escape of a byte that a JSON string cannot hold as it is: a quote, a backslash, a
 * control character. Returns its size. All JSON but Go's (src/otlp/json/json_text.h) uses it. */
size_t json_escape_byte(uint8_t byte, void *room);
/* With its quotes. */
void text_escape_json(FILE *out, struct slice text);
/* As the content of an element or a quoted attribute. */
void text_escape_xml(FILE *out, struct slice text);
/* Without what moves a cursor or changes colours. */
void text_escape_terminal(FILE *out, struct slice text);
