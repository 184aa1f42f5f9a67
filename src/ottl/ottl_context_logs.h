/* SPDX-License-Identifier: Apache-2.0 */
/* The context log. Constants. */
#pragma once

#include "src/ottl/ottl_context.h"

extern const struct ottl_context_type ottl_log_type;
