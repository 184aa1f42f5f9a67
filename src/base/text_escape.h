/* SPDX-License-Identifier: Apache-2.0 */
/* Texts from anywhere into JSON, XML and terminals: nothing in them can end the place that they are
 * in. Bytes that are no UTF-8 become '?'. Any thread. */
#pragma once

#include <stdio.h>

#include "src/base/slice.h"

/* With its quotes. */
void text_escape_json(FILE *out, struct slice text);
/* As the content of an element or a quoted attribute. */
void text_escape_xml(FILE *out, struct slice text);
/* Without what moves a cursor or changes colours. */
void text_escape_terminal(FILE *out, struct slice text);
