/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and stops the exporter and its server. */
#include "tests/unit/exporters/pyroscope_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "src/base/mem.h"
#include "src/core/component.h"

void set_up(struct fixture *fixture, const char *options)
{
    char yaml[2048];
    clock_fake_start(1000 * (uint64_t)NS_PER_S, NOW_NS);
    fixture->lane = lane_create(0);
    fixture->server = pyroscope_server_create(fixture->lane);
    snprintf(yaml, sizeof(yaml), "{endpoint: '%s', %s}", fixture->server->url, options);
    exporter_open(&fixture->exporter, fixture->lane, &pyroscope_exporter_factory, yaml, PROFILES);
}

void tear_down(struct fixture *fixture)
{
    exporter_close(&fixture->exporter);
    pyroscope_server_destroy(fixture->server);
    lane_destroy(fixture->lane);
    clock_fake_stop();
}

void export_sketch(struct fixture *fixture, const struct sketch *sketch)
{
    fixture->exporter.message[0] = '\0';
    struct slice request = sketch_request(sketch);
    uint64_t items = 0;
    for (size_t i = 0; i < sketch->profiles_count; i++)
        items += sketch->profiles[i].samples_count;
    exporter_export(&fixture->exporter, request, items);
    if (fixture->exporter.message[0] != '\0')
        print_message("   %s\n", fixture->exporter.message);
    mem_free((void *)(uintptr_t)request.data);
}

const struct pyroscope_counters *counters(const struct fixture *fixture)
{
    return fixture->exporter.component->counters;
}
