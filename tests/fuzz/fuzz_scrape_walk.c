/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of a target, separated by a byte 0xff and one that chooses the protocol and whether the
 * scrape failed: each is a scrape, and each request that comes of it is well-formed OTLP. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "receivers/prometheus/scrape_walk.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/codec/codec.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"

enum { SCRAPES_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct budget budget;
static struct codec_box *codecs;
static struct relabel_labels labels;
static struct scrape_global_config global;
static struct scrape_job_config config;
static struct scrape_job *job;
static struct scrape_target *target;

static void prepare(void)
{
    static const char *const name[] = {"__name__"};

    static struct scrape_relabel_config rules[] = {
        {.source_labels = {.count = 1, .texts = name},
         .separator = ";",
         .regex = "go_(.*)",
         .target_label = "rest",
         .replacement = "$1",
         .action = "replace"},
    };
    const struct scrape_limits_config unset = {.interval = "", .timeout = ""};
    struct error error;
    budget_init(&budget, UINT64_MAX);
    codecs = codec_box_create(&budget);
    relabel_labels_init(&labels);
    global = (struct scrape_global_config){.limits = unset};
    config = (struct scrape_job_config){
        .job_name = "app",
        .limits = unset,
        .honor_timestamps = true,
        .fallback_protocol = "",
        .metrics_path = "/metrics",
        .http = {.bearer_token = "", .bearer_token_file = "", .proxy_url = ""},
        .metric_relabel_configs = {.count = 1, .items = rules},
    };
    job = scrape_job_create(&global, &config, &error);
    assert(job != NULL);
    const struct prometheus_label env = {.name = slice_of_text("env"),
                                         .value = slice_of_text("test")};
    target =
        scrape_target_create(&job->start, slice_of_text("shop:80"), &env, 1, &labels, NULL, &error);
    assert(target != NULL);
}

static void scrape(struct scrape_memory *memory, struct slice body, unsigned choice)
{
    struct scrape_walk walk = {
        .job = job,
        .target = target,
        .external_labels = &global.external_labels,
        .memory = memory,
        .labels = &labels,
        .codecs = codecs,
        .budget = &budget,
        .body = body,
        .protocol = choice % 2 == 0 ? EXPOSITION_PROTOCOL_TEXT : EXPOSITION_PROTOCOL_OPENMETRICS,
        .trims_suffixes = choice % 3 == 0,
        .time_ms = 1700000000000,
    };
    if (choice % 7 == 6)
        snprintf(walk.failure, sizeof(walk.failure), "no response");
    scrape_walk_run(&walk);
    assert(walk.request != NULL);
    struct otlp_figures figures;
    const char *reason;
    assert(otlp_check(METRICS, buffer_slice(walk.request), &figures, &reason));
    assert(figures.items == walk.points);
    buffer_unref(walk.request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scrape_memory memory;
    if (target == NULL)
        prepare();
    scrape_memory_init(&memory, &budget);
    for (size_t scrapes = 0; size > 1 && scrapes < SCRAPES_MAX; scrapes++) {
        unsigned choice = data[0];
        const uint8_t *end = memchr(data + 1, 0xff, size - 1);
        size_t bytes = end != NULL ? (size_t)(end - data) - 1 : size - 1;
        scrape(&memory, slice_of(data + 1, bytes), choice);
        data += bytes + 1 + (end != NULL);
        size -= bytes + 1 + (end != NULL);
    }
    scrape_memory_fini(&memory);
    assert(budget_used(&budget) == 0);
    return 0;
}
