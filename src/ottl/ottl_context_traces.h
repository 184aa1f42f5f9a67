/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts span and spanevent. Constants. */
#pragma once

#include "src/ottl/ottl_context.h"

extern const struct ottl_context_type ottl_span_type;
extern const struct ottl_context_type ottl_span_event_type;
