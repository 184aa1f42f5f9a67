/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of metrics as protobuf-c reads them, and as the checker counts them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "opentelemetry/proto/collector/metrics/v1/metrics_service.pb-c.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"
#include "src/otlp/metrics/exponential_histogram.h"
#include "src/otlp/metrics/metric_writer.h"

#define TEXT(text) slice_of_text(text)

typedef Opentelemetry__Proto__Collector__Metrics__V1__ExportMetricsServiceRequest request;
typedef Opentelemetry__Proto__Metrics__V1__ScopeMetrics scope_metrics;
typedef Opentelemetry__Proto__Metrics__V1__Metric metric_message;
typedef Opentelemetry__Proto__Metrics__V1__NumberDataPoint number_point;
typedef Opentelemetry__Proto__Metrics__V1__HistogramDataPoint histogram_point;
typedef Opentelemetry__Proto__Metrics__V1__ExponentialHistogramDataPoint exponential_point;
typedef Opentelemetry__Proto__Common__V1__KeyValue key_value;

enum { POINTS = 6 };

static struct slice attributes_of(struct nested_output *output, const char *key, const char *value)
{
    nested_output_cut(output, 0);
    metric_attribute_put_string(output, TEXT(key), TEXT(value));
    metric_attribute_put_bool(output, TEXT("is"), true);
    metric_attribute_put_value(output, TEXT("none"), slice_of(NULL, 0));
    return output->buffer != NULL ? buffer_slice(output->buffer) : slice_of(NULL, 0);
}

static void write_histograms(struct metric_writer *writer, struct point_head head)
{
    static const double bounds[] = {1, 2.5};
    static const uint64_t counts[] = {3, 0, 1};
    struct exponential_histogram histogram;
    metric_writer_begin_metric(writer, &(struct metric_head){.name = TEXT("h"),
                                                             .unit = TEXT("ms"),
                                                             .kind = METRIC_HISTOGRAM,
                                                             .temporality = TEMPORALITY_DELTA});
    struct histogram_value value = {4, 12.5, bounds, counts, 2};
    metric_writer_put_histogram(writer, &head, &value);
    value = (struct histogram_value){.count = 1, .counts = counts + 2};
    head.exemplars_count = 0;
    metric_writer_put_histogram(writer, &head, &value);
    metric_writer_begin_metric(writer,
                               &(struct metric_head){.name = TEXT("e"),
                                                     .kind = METRIC_EXPONENTIAL,
                                                     .temporality = TEMPORALITY_CUMULATIVE});
    exponential_histogram_init(&histogram);
    exponential_histogram_add(&histogram, 0.3, 300, 4, NULL);
    exponential_histogram_add(&histogram, 0.6, 1, 4, NULL);
    exponential_histogram_add(&histogram, 0, 2, 4, NULL);
    metric_writer_put_exponential(writer, &head, &histogram);
    exponential_histogram_fini(&histogram, NULL);
}

static struct batch *write_all(struct metric_writer *writer, struct budget *budget)
{
    struct nested_output scratch = {.buffer = NULL};
    struct point_exemplar exemplars[2] = {
        {.time_ns = 9, .value = 1.5, .trace_id = {1}, .span_id = {2}},
        {.time_ns = 8, .value = 2.5}};
    metric_writer_init(writer, budget);
    metric_writer_begin_resource(writer, attributes_of(&scratch, "service.name", "shop"));
    metric_writer_begin_scope(writer, TEXT("scope"), TEXT("1.0"));
    metric_writer_begin_metric(writer, &(struct metric_head){.name = TEXT("calls"),
                                                             .description = TEXT("how many"),
                                                             .kind = METRIC_SUM,
                                                             .temporality = TEMPORALITY_CUMULATIVE,
                                                             .is_monotonic = true});
    struct point_head head = {.attributes = attributes_of(&scratch, "span.name", "GET /"),
                              .start_ns = 5,
                              .time_ns = 7,
                              .exemplars = exemplars,
                              .exemplars_count = 2};
    exemplars[1].attributes = head.attributes;
    metric_writer_put_integer(writer, &head, 0);
    metric_writer_put_integer(writer, &(struct point_head){.time_ns = 7}, -3);
    write_histograms(writer, head);
    metric_writer_begin_resource(writer, slice_of(NULL, 0));
    metric_writer_begin_scope(writer, slice_of(NULL, 0), slice_of(NULL, 0));
    metric_writer_begin_metric(writer,
                               &(struct metric_head){.name = TEXT("g"), .kind = METRIC_GAUGE});
    metric_writer_put_double(writer, &head, -0.25);
    nested_output_fini(&scratch);
    return metric_writer_finish(writer);
}

static void assert_attributes(key_value **attributes, size_t count)
{
    assert_int_equal(count, 3);
    assert_string_equal(attributes[0]->key, "span.name");
    assert_string_equal(attributes[0]->value->string_value, "GET /");
    assert_true(attributes[1]->value->bool_value);
    assert_string_equal(attributes[2]->key, "none");
}

static void assert_sum(const metric_message *sum)
{
    assert_string_equal(sum->name, "calls");
    assert_string_equal(sum->description, "how many");
    assert_int_equal(sum->sum->aggregation_temporality, TEMPORALITY_CUMULATIVE);
    assert_true(sum->sum->is_monotonic);
    assert_int_equal(sum->sum->n_data_points, 2);
    const number_point *point = sum->sum->data_points[0];
    assert_attributes(point->attributes, point->n_attributes);
    assert_int_equal(point->start_time_unix_nano, 5);
    assert_int_equal(point->time_unix_nano, 7);
    assert_int_equal(point->as_int, 0);
    assert_int_equal(point->value_case,
                     OPENTELEMETRY__PROTO__METRICS__V1__NUMBER_DATA_POINT__VALUE_AS_INT);
    assert_int_equal(point->n_exemplars, 2);
    assert_int_equal(point->exemplars[0]->trace_id.len, 16);
    assert_int_equal(point->exemplars[0]->span_id.data[0], 2);
    assert_true(point->exemplars[0]->as_double == 1.5);
    assert_int_equal(point->exemplars[1]->time_unix_nano, 8);
    assert_int_equal(point->exemplars[1]->trace_id.len, 0);
    assert_attributes(point->exemplars[1]->filtered_attributes,
                      point->exemplars[1]->n_filtered_attributes);
    assert_int_equal(sum->sum->data_points[1]->as_int, -3);
    assert_int_equal(sum->sum->data_points[1]->start_time_unix_nano, 0);
}

static void assert_histograms(const metric_message *explicit, const metric_message *exponential)
{
    assert_string_equal(explicit->unit, "ms");
    assert_int_equal(explicit->histogram->aggregation_temporality, TEMPORALITY_DELTA);
    assert_int_equal(explicit->histogram->n_data_points, 2);
    const histogram_point *point = explicit->histogram->data_points[0];
    assert_attributes(point->attributes, point->n_attributes);
    assert_int_equal(point->count, 4);
    assert_true(point->sum == 12.5);
    assert_int_equal(point->n_bucket_counts, 3);
    assert_int_equal(point->bucket_counts[0], 3);
    assert_int_equal(point->n_explicit_bounds, 2);
    assert_true(point->explicit_bounds[1] == 2.5);
    assert_int_equal(point->n_exemplars, 2);
    point = explicit->histogram->data_points[1];
    assert_int_equal(point->n_bucket_counts, 1);
    assert_int_equal(point->n_explicit_bounds, 0);
    assert_int_equal(point->n_exemplars, 0);

    const exponential_point *base = exponential->exponential_histogram->data_points[0];
    assert_attributes(base->attributes, base->n_attributes);
    assert_int_equal(base->count, 303);
    assert_int_equal(base->zero_count, 2);
    assert_true(base->min == 0 && base->max == 0.6);
    assert_int_equal(base->scale, 1);
    assert_int_equal(base->positive->offset, -4);
    assert_int_equal(base->positive->n_bucket_counts, 3);
    assert_int_equal(base->positive->bucket_counts[0], 300);
    assert_int_equal(base->positive->bucket_counts[2], 1);
    assert_null(base->negative);
}

static void requests_have_what_was_put(void **state)
{
    struct metric_writer writer;
    struct budget budget;
    struct batch_part whole;
    (void)state;
    budget_init(&budget, 1 << 20);
    struct batch *batch = write_all(&writer, &budget);
    assert_non_null(batch);
    assert_int_equal(batch->signal, METRICS);
    assert_int_equal(batch->items, POINTS);
    assert_true(batch_join(batch, NULL, &whole));
    request *read =
        opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__unpack(
            NULL, whole.bytes.size, whole.bytes.data);
    assert_non_null(read);
    assert_int_equal(read->n_resource_metrics, 2);
    assert_string_equal(read->resource_metrics[0]->resource->attributes[0]->value->string_value,
                        "shop");
    const scope_metrics *scope = read->resource_metrics[0]->scope_metrics[0];
    assert_string_equal(scope->scope->name, "scope");
    assert_string_equal(scope->scope->version, "1.0");
    assert_int_equal(scope->n_metrics, 3);
    assert_sum(scope->metrics[0]);
    assert_histograms(scope->metrics[1], scope->metrics[2]);
    const metric_message *gauge = read->resource_metrics[1]->scope_metrics[0]->metrics[0];
    assert_true(gauge->gauge->data_points[0]->as_double == -0.25);
    opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__free_unpacked(
        read, NULL);
    buffer_unref(whole.owner);
    batch_unref(batch);
    metric_writer_fini(&writer);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void what_ended_since_a_mark_stays_whole(void **state)
{
    struct metric_writer writer;
    struct batch_part whole;
    (void)state;
    /* So long that the lengths of what is open take more bytes than usual, or fewer. */
    for (size_t points = 1; points < 20000; points *= 7) {
        metric_writer_init(&writer, NULL);
        for (unsigned i = 0; i < 3; i++) {
            metric_writer_begin_resource(&writer, slice_of(NULL, 0));
            metric_writer_begin_scope(&writer, TEXT("s"), slice_of(NULL, 0));
            metric_writer_begin_metric(
                &writer, &(struct metric_head){.name = TEXT("g"), .kind = METRIC_GAUGE});
            for (size_t k = 0; k < points; k++)
                metric_writer_put_double(&writer, &(struct point_head){.time_ns = 1}, 1);
            struct metric_writer_mark mark = metric_writer_mark(&writer);
            for (unsigned k = 0; k < i; k++) {
                metric_writer_begin_resource(&writer, slice_of(NULL, 0));
                metric_writer_begin_scope(&writer, TEXT("t"), slice_of(NULL, 0));
                metric_writer_begin_metric(
                    &writer, &(struct metric_head){.name = TEXT("g"), .kind = METRIC_GAUGE});
                metric_writer_put_double(&writer, &(struct point_head){.time_ns = 1}, 1);
            }
            metric_writer_undo(&writer, &mark);
        }
        struct batch *batch = metric_writer_finish(&writer);
        assert_non_null(batch);
        assert_int_equal(batch->items, 3 * points);
        assert_true(batch_join(batch, NULL, &whole));
        request *read =
            opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__unpack(
                NULL, whole.bytes.size, whole.bytes.data);
        assert_non_null(read);
        assert_int_equal(read->n_resource_metrics, 3);
        opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__free_unpacked(
            read, NULL);
        buffer_unref(whole.owner);
        batch_unref(batch);
        metric_writer_fini(&writer);
    }
}

static void what_was_refused_can_be_taken_back(void **state)
{
    struct metric_writer writer;
    struct budget budget;
    struct batch_part whole;
    (void)state;
    budget_init(&budget, 4000);
    metric_writer_init(&writer, &budget);
    metric_writer_begin_resource(&writer, slice_of(NULL, 0));
    metric_writer_begin_scope(&writer, TEXT("s"), slice_of(NULL, 0));
    metric_writer_begin_metric(&writer,
                               &(struct metric_head){.name = TEXT("g"), .kind = METRIC_GAUGE});
    size_t points = 0;
    for (;;) {
        struct metric_writer_mark mark = metric_writer_mark(&writer);
        metric_writer_begin_metric(&writer,
                                   &(struct metric_head){.name = TEXT("g"), .kind = METRIC_GAUGE});
        metric_writer_put_double(&writer, &(struct point_head){.time_ns = 1}, 1);
        if (!metric_writer_is_whole(&writer)) {
            metric_writer_undo(&writer, &mark);
            break;
        }
        points++;
    }
    assert_true(points > 10);
    struct batch *batch = metric_writer_finish(&writer);
    assert_non_null(batch);
    assert_int_equal(batch->items, points);
    assert_true(batch_join(batch, NULL, &whole));
    request *read =
        opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__unpack(
            NULL, whole.bytes.size, whole.bytes.data);
    assert_non_null(read);
    assert_int_equal(read->resource_metrics[0]->scope_metrics[0]->n_metrics, points + 1);
    opentelemetry__proto__collector__metrics__v1__export_metrics_service_request__free_unpacked(
        read, NULL);
    buffer_unref(whole.owner);
    batch_unref(batch);
    assert_int_equal(budget_used(&budget), 0);
    budget_fini(&budget);
}

static void nothing_put_is_an_empty_batch(void **state)
{
    struct metric_writer writer;
    (void)state;
    metric_writer_init(&writer, NULL);
    struct batch *batch = metric_writer_finish(&writer);
    assert_non_null(batch);
    assert_int_equal(batch->items, 0);
    assert_int_equal(batch->bytes, 0);
    batch_unref(batch);
}

static void a_refusal_loses_one_request_and_charges_nothing(void **state)
{
    struct metric_writer writer;
    struct budget budget;
    (void)state;
    for (uint64_t limit = 0; limit < 2500; limit += 50) {
        budget_init(&budget, limit);
        struct batch *batch = write_all(&writer, &budget);
        assert_true(batch == NULL || limit >= 1000);
        batch_unref(batch);
        assert_int_equal(metric_writer_size(&writer), 0);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
    uint64_t tries = mem_tries();
    struct batch *batch = write_all(&writer, NULL);
    tries = mem_tries() - tries;
    assert_non_null(batch);
    batch_unref(batch);
    for (uint64_t n = 1; n <= tries; n++) {
        mem_refuse_nth(n);
        batch = write_all(&writer, NULL);
        mem_refuse_nth(0);
        assert_true(batch == NULL || batch->items == POINTS);
        batch_unref(batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_have_what_was_put),
        cmocka_unit_test(what_ended_since_a_mark_stays_whole),
        cmocka_unit_test(what_was_refused_can_be_taken_back),
        cmocka_unit_test(nothing_put_is_an_empty_batch),
        cmocka_unit_test(a_refusal_loses_one_request_and_charges_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
