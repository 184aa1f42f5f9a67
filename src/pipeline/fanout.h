/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a pipeline: gives a batch to the senders of all its exporters. A full queue refuses
 * for itself alone; a batch that nobody has room for is refused as a whole, so that whoever offered
 * it may offer it again. With block_on_overflow a batch waits here until there is room, and what
 * comes behind it waits too. Batches are immutable, so all share the same bytes. Runs on its lane.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct component;
struct fanout;
struct lane;
struct sender;

/* on_free(arg) is called when no batch waits for room any more. */
/* Copies the list; the senders outlive it. */
struct fanout *fanout_create(struct lane *lane, struct sender *const *senders, size_t count,
                             void (*on_free)(void *arg), void *arg);
/* Must not be blocked. */
void fanout_destroy(struct fanout *fanout);
/* What the last processor calls next. */
struct component *fanout_component(struct fanout *fanout);
/* It holds batches for a sender with block_on_overflow. It takes more, but the pipeline should
 * leave them in its ring: only processors that answer for what they have gathered give it to us
 * then, of which each has HANDOVERS_MAX under way at most. */
bool fanout_is_blocked(const struct fanout *fanout);
