/* SPDX-License-Identifier: Apache-2.0 */
/* Takes out of the dictionary of a profiles request what nothing refers to any longer. Pure
 * function; any thread. */
#pragma once

struct batch;
struct budget;

/* A request that has passed the door, with samples; takes the reference. A new one, which says the
 * same; the batch as it is when it has fields of later versions, which would be lost, or there is
 * no room in the budget for the work (NULL: there is). */
struct batch *profile_without_orphans(struct batch *batch, struct budget *budget);
