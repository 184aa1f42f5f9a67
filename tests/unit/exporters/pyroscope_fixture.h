/* SPDX-License-Identifier: Apache-2.0 */
/* A pyroscope exporter on a fake clock, and the server that it sends to. */
#pragma once

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "tests/support/profile_sketch.h"
#include "tests/support/pyroscope_server.h"
#include "tests/unit/exporters/support.h"

#define NOW_NS ((uint64_t)1790000000 * NS_PER_S)

extern const struct component_factory pyroscope_exporter_factory;

struct pyroscope_counters;

struct fixture {
    struct lane *lane;
    struct pyroscope_server *server;
    struct exporter_fixture exporter;
};

/* options: the exporter's in YAML, but for the endpoint. */
void set_up(struct fixture *fixture, const char *options);
void tear_down(struct fixture *fixture);
/* Waits for the result, and prints the message of a failure. */
void export_sketch(struct fixture *fixture, const struct sketch *sketch);
const struct pyroscope_counters *counters(const struct fixture *fixture);
