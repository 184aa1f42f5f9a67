/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes in hexadecimal digits, lower case. Pure function; any thread. */
#pragma once

#include <stddef.h>

#include "src/base/slice.h"

/* Two digits for each byte, at room; returns them. */
struct slice hex_write(const void *bytes, size_t size, void *room);
