/* SPDX-License-Identifier: Apache-2.0 */
/* nop: a receiver that receives nothing. Runs on its lane. */
#include "src/core/component.h"

const struct component_factory nop_receiver_factory = {
    .type = "nop",
    .kind = RECEIVER,
    .stability = "beta",
    .signals = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS | SIGNAL_PROFILES,
    .instance_size = sizeof(struct component),
};
