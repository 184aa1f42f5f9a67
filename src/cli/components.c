/* SPDX-License-Identifier: Apache-2.0 */
/* Built from components.def, so that the list can be read in one place. */
#include "src/cli/components.h"

#include "src/core/component.h"

#define COMPONENT(name) extern const struct component_factory name##_factory;
#include "src/cli/components.def"
#undef COMPONENT

const struct component_factory *const components[] = {
#define COMPONENT(name) &name##_factory,
#include "src/cli/components.def"
#undef COMPONENT
    0,
};
