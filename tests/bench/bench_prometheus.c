/* SPDX-License-Identifier: Apache-2.0 */
/* Micro benchmark of the store behind the prometheus exporter, with 100 000 series: what a data
 * point costs to take when its series is new and when it is known, the first scrape, later ones,
 * and one after a tenth of the series are new; and the memory that stays of a series once it was
 * scraped. Processor time of this thread, the best of several runs; sockets and lanes are not part
 * of it. Argument: part of a name, for those alone. */
#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exporters/prometheus/metric_store.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/config/field.h"
#include "src/core/batch.h"
#include "src/otlp/metrics/metric_writer.h"
#include "src/prometheus/exposition.h"

enum { SERIES = 100000, NEWS = SERIES / 10, RUNS = 5, FAMILIES = 20, TEXT_BYTES_MAX = 64 };
enum { SCRAPE_MS_MAX = 60, SERIES_BYTES_MAX = 300 };

#define SECOND ((uint64_t)NS_PER_S)

static const struct config_pairs no_labels;

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static double resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return (double)pages * 4096;
}

__attribute__((format(printf, 3, 4))) static void put_text(struct nested_output *attributes,
                                                           const char *key, const char *format, ...)
{
    char text[TEXT_BYTES_MAX];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    metric_attribute_put_string(attributes, slice_of_text(key), slice_of_text(text));
}

/* How the series differ. */
struct shape {
    const char *name;
    uint32_t families;
    void (*put)(struct nested_output *attributes, uint32_t number);
};

static void put_one(struct nested_output *attributes, uint32_t number)
{
    put_text(attributes, "n", "%u", number);
}

static void put_requests(struct nested_output *attributes, uint32_t number)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "DELETE"};
    static const char *const codes[] = {"200", "404", "500", "503", "429"};
    put_text(attributes, "http.request.method", "%s", methods[number % 4]);
    put_text(attributes, "http.response.status_code", "%s", codes[number / 4 % 5]);
    put_text(attributes, "http.route", "/api/v1/resource-%u/{id}", number / FAMILIES);
}

static void put_pods(struct nested_output *attributes, uint32_t number)
{
    put_text(attributes, "k8s.namespace.name", "team-%u", number % 97);
    put_text(attributes, "k8s.pod.name", "deployment-7d4b9c6f5-%08x", number * 2654435761u);
    put_text(attributes, "k8s.container.name", "container-%u", number % 3);
    put_text(attributes, "k8s.node.name", "node-%u.example.internal", number % 251);
    put_text(attributes, "k8s.cluster.name", "production-eu-1");
}

static const struct shape shapes[] = {
    {"one attribute", 1, put_one},
    {"three attributes of HTTP, 20 metrics", FAMILIES, put_requests},
    {"five attributes of Kubernetes, 20 metrics", FAMILIES, put_pods},
};

/* Series from, from + 1 … in one request. */
static struct batch *request_of(const struct shape *shape, uint32_t from, uint32_t count,
                                uint64_t time_ns)
{
    struct metric_writer writer;
    struct nested_output attributes = {0};
    metric_writer_init(&writer, NULL);
    put_text(&attributes, "service.name", "checkout");
    put_text(&attributes, "service.namespace", "shop");
    put_text(&attributes, "service.instance.id", "checkout-7d4b9c6f5-x2x4z");
    metric_writer_begin_resource(&writer, buffer_slice(attributes.buffer));
    metric_writer_begin_scope(&writer,
                              slice_of_text("go.opentelemetry.io/contrib/instrumentation/net/http"),
                              slice_of_text("0.61.0"));
    for (uint32_t family = 0; family < shape->families; family++) {
        char name[TEXT_BYTES_MAX];
        snprintf(name, sizeof(name), "http.server.requests.%u", family);
        metric_writer_begin_metric(&writer, &(struct metric_head){
                                                .name = slice_of_text(name),
                                                .description = slice_of_text("What is counted."),
                                                .kind = METRIC_SUM,
                                                .temporality = TEMPORALITY_CUMULATIVE,
                                                .is_monotonic = true,
                                            });
        for (uint32_t i = from; i < from + count; i++) {
            if (i % shape->families != family)
                continue;
            nested_output_cut(&attributes, 0);
            /* Numbers in no order, each once. */
            shape->put(&attributes, (uint32_t)(i * UINT64_C(7919) % (SERIES + NEWS)));
            struct point_head head = {.attributes = buffer_slice(attributes.buffer),
                                      .start_ns = SECOND,
                                      .time_ns = time_ns};
            metric_writer_put_integer(&writer, &head, (int64_t)(i * 37 + time_ns / NS_PER_S));
        }
    }
    nested_output_fini(&attributes);
    return metric_writer_finish(&writer);
}

static double take(struct metric_store *store, struct batch *batch, uint32_t count)
{
    struct batch_part whole;
    bool is_joined = batch_join(batch, NULL, &whole);
    assert(is_joined);
    uint64_t begin = cpu_ns();
    struct metric_addition *addition = metric_addition_create(store, whole.bytes, SECOND);
    while (metric_addition_go_on(addition))
        continue;
    struct metric_store_losses losses = metric_addition_end(addition);
    double ns = (double)(cpu_ns() - begin) / count;
    if (losses.reason != NULL)
        printf("LOST: %s\n", losses.reason);
    buffer_unref(whole.owner);
    batch_unref(batch);
    return ns;
}

static double scrape(struct metric_store *store, size_t *ret_bytes)
{
    const struct exposition_format format = {.form = EXPOSITION_TEXT,
                                             .escaping = ESCAPING_UNDERSCORES};
    struct exposition exposition;
    uint64_t begin = cpu_ns();
    exposition_init(&exposition, &format, NULL);
    struct metric_snapshot *snapshot = metric_store_snapshot(store, 0);
    while (metric_store_take(store, snapshot))
        continue;
    metric_snapshot_write(snapshot, &exposition);
    *ret_bytes = exposition.size;
    exposition_fini(&exposition);
    while (metric_store_release(store, snapshot))
        continue;
    return (double)(cpu_ns() - begin) / NS_PER_MS;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static void measure(const struct shape *shape)
{
    double fresh = 1e18;
    double known = 1e18;
    double first = 1e18;
    double later = 1e18;
    double grown = 1e18;
    double kept = 0;
    double charged = 0;
    size_t bytes = 0;
    for (unsigned run = 0; run < RUNS; run++) {
        struct budget budget;
        budget_init(&budget, UINT64_MAX);
        struct batch *batch = request_of(shape, 0, SERIES, 2 * SECOND);
        struct batch *again = request_of(shape, 0, SERIES, 3 * SECOND);
        struct batch *news = request_of(shape, SERIES, NEWS, 3 * SECOND);
        double before = resident_bytes();
        struct metric_store *store = metric_store_create(&(struct metric_store_settings){
            .labels = {.naming = {.name_space = "", .has_suffixes = true},
                       .const_labels = &no_labels,
                       .has_scope = true},
            .expiration_ns = 300 * SECOND,
            .budget = &budget,
        });
        fresh = least(fresh, take(store, batch_ref(batch), SERIES));
        first = least(first, scrape(store, &bytes));
        /* Of the first run: later ones find memory that is there. */
        if (run == 0) {
            kept = (resident_bytes() - before) / SERIES;
            charged = (double)metric_store_figures(store).bytes / SERIES;
        }
        known = least(known, take(store, again, SERIES));
        for (unsigned i = 0; i < RUNS; i++)
            later = least(later, scrape(store, &bytes));
        take(store, news, NEWS);
        size_t grown_bytes;
        grown = least(grown, scrape(store, &grown_bytes));
        metric_store_destroy(store);
        batch_unref(batch);
        budget_fini(&budget);
    }
    printf("%s\n", shape->name);
    printf("  a point: %.0f ns of a new series, %.0f ns of a known one\n", fresh, known);
    printf("  a scrape of %.1f MB: first %.1f ms, later %.1f ms, with a tenth new %.1f ms, %s %d\n",
           (double)bytes / 1e6, first, later, grown,
           first <= SCRAPE_MS_MAX && grown <= SCRAPE_MS_MAX ? "within" : "MISSED:", SCRAPE_MS_MAX);
    printf("  a series: %.0f bytes resident, %.0f charged, %s %d\n", kept, charged,
           kept <= SERIES_BYTES_MAX ? "within" : "MISSED:", SERIES_BYTES_MAX);
}

/* Each in a process of its own, whose memory nothing else has used before. */
int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (argc >= 2 && strstr(shapes[i].name, argv[1]) == NULL)
            continue;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            measure(&shapes[i]);
            return 0;
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return 0;
}
