/* SPDX-License-Identifier: Apache-2.0 */
/* One exporter built from YAML on a hand-turned lane, without the core around it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/signal_kind.h"
#include "src/base/slice.h"
#include "src/base/stop_latch.h"
#include "src/core/receipt.h"

struct component;
struct component_factory;
struct config;
struct lane;

struct client_info;

struct exporter_fixture {
    struct lane *lane;
    struct config *config;
    struct component *component;
    struct budget budget;
    struct stop_latch stopping;
    bool has_stopped;
    struct client_info *client; /* of the batches; NULL: unknown. Stays the caller's */
    bool has_two_parts;         /* the batches */
    uint64_t arrival_ns;        /* of the batches; 0: when they are made */
    /* what the last receipt said */
    unsigned results;
    struct outcome outcome;
    char message[8192];
};

/* Loads "exporters: {TYPE: yaml}"; false, with all problems as text, when that fails. */
bool exporter_try_load(const struct component_factory *factory, const char *yaml,
                       struct config **ret_config, char *problems, size_t problems_size);
/* Builds and starts an exporter of that signal; fails the test when it cannot. The lane is the
 * caller's. */
void exporter_open(struct exporter_fixture *fixture, struct lane *lane,
                   const struct component_factory *factory, const char *yaml,
                   enum signal_kind signal);
/* Hands over a batch of one part, or of two. */
void exporter_offer(struct exporter_fixture *fixture, struct slice body, uint64_t items);
/* Turns the lane until there are so many results. */
void exporter_wait(struct exporter_fixture *fixture, unsigned results);
/* exporter_offer, then exporter_wait. */
void exporter_export(struct exporter_fixture *fixture, struct slice body, uint64_t items);
/* The last export was refused for want of memory: makes that as long ago as exports wait before
 * they go beyond the limit. */
void exporter_wait_for_memory(struct exporter_fixture *fixture);
void exporter_close(struct exporter_fixture *fixture);
