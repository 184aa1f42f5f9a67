/* SPDX-License-Identifier: Apache-2.0 */
/* The page of the process's own metrics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/service/metrics.h"
#include "tests/complexity/work.h"

enum { LANES = 4, TEXT_BYTES = 12 };

/* Each text is one more component that every lane has. */
static void run_page(struct slice input)
{
    struct metrics *metrics = metrics_create(METRICS_NORMAL);
    const struct metrics_style style = {.has_units = true};
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);
    work_begin();
    for (size_t lane = 0; lane < LANES; lane++)
        for (size_t at = 0; at < input.size; at += TEXT_BYTES) {
            const struct metric_labels labels = {
                .pairs = {{"exporter", (const char *)input.data + at}}};
            metrics_add(metrics, "sent", COUNTER_SUM, "Help.", &labels, 1);
        }
    metrics_print(metrics, &style, out);
    work_end();
    fclose(out);
    free(page);
    metrics_destroy(metrics);
}

static struct slice make_components(size_t n)
{
    uint8_t *texts = mem_zalloc(n * TEXT_BYTES);
    for (size_t i = 0; i < n; i++)
        snprintf((char *)texts + i * TEXT_BYTES, TEXT_BYTES, "otlp/%zu", i % 1000000);
    return slice_of(texts, n * TEXT_BYTES);
}

int main(int argc, char **argv)
{
    static const struct work_stage stages[] = {
        {.name = "page of metrics", .run = run_page, .per_byte_max = 120},
    };
    static const struct work_shape shapes[] = {{"components", make_components}};
    return work_check(stages, 1, shapes, 1, argc, argv) > 0;
}
