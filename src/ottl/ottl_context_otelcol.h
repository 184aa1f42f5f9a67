/* SPDX-License-Identifier: Apache-2.0 */
/* The context otelcol: the client of the request. Constants. */
#pragma once

#include "src/ottl/ottl_context.h"

extern const struct ottl_context_type ottl_otelcol_type;
