/* SPDX-License-Identifier: Apache-2.0 */
/* The service of an encoded Resource (semantic conventions, service.name). Pure function; any
 * thread. */
#pragma once

#include "src/base/slice.h"

/* Lies in resource, which otlp_check has passed. Without data: it has no such string. The first of
 * equal keys counts, as in the Go collector. */
struct slice service_name_of(struct slice resource);
