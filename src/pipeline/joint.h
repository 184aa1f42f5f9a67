/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the outcomes of several ways that one batch goes: pipelines behind a connector, connectors
 * and queues behind a pipeline. None of them counts its own refusal. When all refuse, the batch is
 * refused as a whole, and the caller may offer it again. When one of them took it, what the others
 * refused is lost and counted here. Frees itself after the last outcome. Runs on one lane. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct batch;
struct budget;
struct joint;
struct ledger;
struct outcome;
struct receipt;
struct exporter_queue;

/* Expects `ways` outcomes. Keeps a reference to the batch, charged to the budget beyond its limit
 * if need be. upstream may be NULL. */
struct joint *joint_create(struct ledger *ledger, struct budget *budget, struct batch *batch,
                           struct receipt *upstream, size_t ways);
/* Somebody else has taken the batch, too: what all refuse is lost and counted as well. */
void joint_set_taken(struct joint *joint);
/* Returns the receipt of the next way, which leads to that many exporters. ends: the batch ends
 * there, so its items are delivered when it is accepted. */
struct receipt *joint_add(struct joint *joint, unsigned exporters, bool ends);
/* The next way is a queue that has refused the batch already. */
void joint_add_refusal(struct joint *joint, struct exporter_queue *queue,
                       const struct outcome *refusal);
