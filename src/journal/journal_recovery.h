/* SPDX-License-Identifier: Apache-2.0 */
/* What a start finds in the directory of a journal. Reads only, but for the file "key", so that
 * nothing is lost when a recovery is cut off; the next checkpoint writes anew what it found. Runs
 * on one thread, before there are others. */
#pragma once

#include <stdbool.h>

struct error;
struct journal_store;

/* Fills an opened store from its directory. False: error says why. */
bool journal_recover(struct journal_store *store, struct error *error)
    __attribute__((warn_unused_result));
