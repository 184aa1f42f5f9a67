/* SPDX-License-Identifier: Apache-2.0 */
/* Random profiles requests for tests: every index is valid; everything else is as odd as clients
 * are: duplicate and unused entries in the tables, missing zero elements, references, elements that
 * are not packed. */
#pragma once

#include "src/base/slice.h"
#include "tests/support/random_otlp.h"

/* Layout 1.10. To be freed with mem_free. */
struct slice random_profiles(struct random_source *random);
