/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of metrics that passed the check, shown by the prometheus exporter's store. Byte 0
 * chooses the settings; then comes the header Accept up to a line end, the rest is the request,
 * added twice. In the text format each line must be whole, and labels must read back. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/prometheus/metric_store.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/config/field.h"
#include "src/otlp/check.h"
#include "src/prometheus/exposition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct slice text)
{
    assert(text.size == 0 || text.data[text.size - 1] == '\n');
    while (text.size > 0) {
        const uint8_t *end = memchr(text.data, '\n', text.size);
        assert(end != NULL && end > text.data);
        assert(text.data[0] == '#' || memchr(text.data, ' ', (size_t)(end - text.data)) != NULL);
        text = slice_of(end + 1, text.size - (size_t)(end + 1 - text.data));
    }
}

static void scrape(struct metric_store *store, struct slice accept, bool has_openmetrics)
{
    struct exposition_format format = exposition_negotiate(accept, has_openmetrics);
    struct exposition exposition;
    struct metric_snapshot *snapshot = metric_store_snapshot(store, 0);
    while (metric_store_take(store, snapshot))
        continue;
    exposition_init(&exposition, &format, NULL);
    metric_snapshot_write(snapshot, &exposition);
    assert(!exposition.has_failed);
    if (format.form == EXPOSITION_TEXT)
        check_text(slice_of(exposition.data, exposition.size));
    exposition_fini(&exposition);
    while (metric_store_release(store, snapshot))
        continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct config_pair pairs[] = {{"zone", "z"}};
    static const struct config_pairs some = {.count = 1, .pairs = pairs};
    static const struct config_pairs none;
    struct otlp_figures figures;
    struct budget budget;
    const char *reason;
    const uint8_t *line_end = size > 1 ? memchr(data + 1, '\n', size - 1) : NULL;
    if (line_end == NULL)
        return 0;
    uint8_t choice = data[0];
    struct slice accept = slice_of(data + 1, (size_t)(line_end - data - 1));
    size_t body_bytes = size - (size_t)(line_end + 1 - data);
    uint8_t *body = mem_copy(line_end + 1, body_bytes);
    struct slice request = slice_of(body, body_bytes);
    if (!otlp_check(METRICS, request, &figures, &reason) || figures.has_former_scopes) {
        mem_free(body);
        return 0;
    }
    budget_init(&budget, (choice & 1) != 0 ? UINT64_MAX : 2000);
    const struct metric_store_settings settings = {
        .labels = {.naming = {.name_space = (choice & 2) != 0 ? "name-space" : "",
                              .has_suffixes = (choice & 4) != 0,
                              .has_utf8 = (choice & 8) != 0},
                   .const_labels = (choice & 16) != 0 ? &some : &none,
                   .has_scope = (choice & 32) != 0,
                   .has_resource = (choice & 64) != 0,
                   .has_service = (choice & 4) != 0},
        .expiration_ns = 300 * (uint64_t)NS_PER_S,
        .has_timestamps = (choice & 128) != 0,
        .budget = &budget,
    };
    struct metric_store *store = metric_store_create(&settings);
    for (uint64_t second = 1; second <= 2; second++) {
        struct metric_addition *addition =
            metric_addition_create(store, request, second * NS_PER_S);
        while (metric_addition_go_on(addition))
            continue;
        struct metric_store_losses losses = metric_addition_end(addition);
        assert(losses.unusable + losses.no_room <= figures.items);
        scrape(store, accept, (choice & 32) != 0);
    }
    scrape(store, slice_of(NULL, 0), false);
    metric_store_expire(store, 1000 * (uint64_t)NS_PER_S, METRIC_EXPIRY_ALL);
    assert(metric_store_figures(store).bytes == 0);
    metric_store_destroy(store);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    mem_free(body);
    return 0;
}
