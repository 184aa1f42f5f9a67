/* SPDX-License-Identifier: Apache-2.0 */
/* The list of built-in components. Constant, any thread. */
#pragma once

struct component_factory;

/* NULL-ended. */
extern const struct component_factory *const components[];
