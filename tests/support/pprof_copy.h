/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a profile that was read, so that tests can compare files. Any thread. */
#pragma once

#include "src/profiles/pprof/pprof_writer.h"

/* With a fresh writer. */
void pprof_copy(struct pprof_writer *writer, const struct pprof *from);
