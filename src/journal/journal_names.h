/* SPDX-License-Identifier: Apache-2.0 */
/* The names of a journal's exporters, in a file of their own. Checkpoints say what each exporter
 * has finished; when they cannot be read, this file still says who waits for the records, also when
 * the configuration does not have that exporter any more. On one thread, before there are others.
 */
#pragma once

struct journal_store;

/* Adds the exporters that the checkpoints found did not tell of, if some could not be read. They
 * begin with oldest_id. Without the file, or when it is damaged, nothing is added. */
void journal_names_read(struct journal_store *store);
/* Writes the names of all exporters that the store has, if the file says otherwise. Failure is
 * harmless as long as the checkpoints can be read. */
void journal_names_write(const struct journal_store *store);
