/* SPDX-License-Identifier: Apache-2.0 */
/* Joins the answers of several ways that one batch goes: pipelines behind a connector, connectors
 * and queues behind a pipeline. None of them books its own refusal. When all refuse, nobody has the
 * batch: it is refused as a whole, and whoever offered it may offer it again. When one of them took
 * it, what the others refused is lost and booked here. Frees itself after the last answer. Runs on
 * one lane. */
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

/* For that many answers. Keeps a reference to the batch, charged to the budget beyond its limit if
 * need be. upstream may be NULL. */
struct joint *joint_create(struct ledger *ledger, struct budget *budget, struct batch *batch,
                           struct receipt *upstream, size_t ways);
/* The receipt of the next way, which owes the batch to that many exporters. ends: the batch ends
 * there, so its items are delivered when it is accepted. */
struct receipt *joint_add(struct joint *joint, unsigned exporters, bool ends);
/* The next way is a queue, which has refused the batch already. */
void joint_add_refusal(struct joint *joint, struct exporter_queue *queue,
                       const struct outcome *refusal);
