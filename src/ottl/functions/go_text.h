/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as Go's libraries make and cut them, for several functions. */
#pragma once

#include "src/ottl/ottl_function.h"

/* Go's pcommon.Value.AsString: lists and maps are JSON, bytes base64, nil "". False: no memory; the
 * error is set. */
bool go_as_string(struct ottl_call *call, const struct ottl_value *value, struct slice *ret);
/* strconv.FormatFloat(real, 'g', -1, 64) of a number of 0 or more: the shortest digits that give
 * it. text has room for GO_DOUBLE_BYTES_MAX. Returns the length. */
enum { GO_DOUBLE_BYTES_MAX = 32 };
size_t go_shortest_double(double real, char *text);
/* The names of pcommon.ValueType: "Empty", "Str" … */
const char *go_value_type(const struct ottl_value *value);
