/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in hexadecimal digits, lower case. Pure function; any thread. */
#pragma once

#include <stddef.h>

#include "src/base/slice.h"

/* Writes two digits per byte to room and returns them. */
struct slice hex_write(const void *bytes, size_t size, void *room);
