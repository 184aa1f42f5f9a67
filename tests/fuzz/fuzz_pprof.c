/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as pprof, bare or gzip. What is read must be written so that it reads the same, become
 * an OTLP request that protobuf-c decodes, and come back with the same totals, in parts that keep
 * their limits. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/codec/gzip.h"
#include "src/profiles/otlp/profile_dictionary.h"
#include "src/profiles/otlp/profile_view.h"
#include "src/profiles/pprof/otlp_to_pprof.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pprof/pprof_to_otlp.h"
#include "src/profiles/pprof/pprof_writer.h"
#include "tests/support/pprof_copy.h"

#include "opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h"

#define PROFILES_SERVICE(name) opentelemetry__proto__collector__profiles__v1development__##name
#define SERVICE_REQUEST(name)  PROFILES_SERVICE(export_profiles_service_request__##name)

enum { BYTES_MAX = 1 << 16, ARENA_BYTES_MAX = 8 << 20, PART_SAMPLES_MAX = 3, DEPTH_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct otlp_to_pprof_rules rules = {
    .labels = {.has_trace_id = true, .names_max = 4, .value_bytes_max = 20},
    .samples_max = PART_SAMPLES_MAX,
    .bytes_max = 1 << 14,
    .depth_max = DEPTH_MAX,
};

static void check_copy(const struct pprof *pprof)
{
    struct pprof_writer writer;
    struct pprof again;
    struct arena arena;
    struct error error;
    pprof_writer_init(&writer, NULL, 1 << 30);
    pprof_copy(&writer, pprof);
    struct buffer *output = pprof_writer_take(&writer);
    assert(output != NULL);
    arena_init(&arena, 2 * ARENA_BYTES_MAX);
    bool is_read = pprof_read(&arena, buffer_slice(output), &again, &error);
    assert(is_read);
    assert(again.samples_count == pprof->samples_count);
    assert(again.locations_count == pprof->locations_count);
    for (size_t i = 0; i < again.samples_count; i++) {
        assert(again.samples[i].locations_count == pprof->samples[i].locations_count);
        assert(again.samples[i].labels_count == pprof->samples[i].labels_count);
        for (size_t k = 0; k < again.sample_types_count; k++)
            assert(again.samples[i].values[k] == pprof->samples[i].values[k]);
    }
    arena_clear(&arena);
    buffer_unref(output);
    pprof_writer_fini(&writer);
}

static uint64_t check_part(struct buffer *part)
{
    struct pprof pprof;
    struct arena arena;
    struct error error;
    uint64_t sum = 0;
    assert(part != NULL);
    assert(part->size <= rules.bytes_max);
    arena_init(&arena, ARENA_BYTES_MAX);
    bool is_read = pprof_read(&arena, buffer_slice(part), &pprof, &error);
    assert(is_read);
    assert(pprof.has_period_type);
    assert(pprof.samples_count <= PART_SAMPLES_MAX);
    for (size_t i = 0; i < pprof.samples_count; i++) {
        assert(pprof.samples[i].values[0] > 0);
        assert(pprof.samples[i].locations_count <= DEPTH_MAX);
        sum += (uint64_t)pprof.samples[i].values[0];
    }
    arena_clear(&arena);
    buffer_unref(part);
    return sum;
}

static void check_profile(struct otlp_to_pprof *conversion, const struct profile *profile)
{
    const struct profile_type type = {.type = "t"};
    uint64_t expected = 0;
    uint64_t sum = 0;
    uint64_t lost = conversion->figures.too_large;
    struct wire_reader reader = wire_reader_of(profile->bytes);
    struct profile_sample sample;
    while (profile_next_sample(&reader, &sample)) {
        struct profile_numbers_reader numbers = profile_numbers_read(&sample.values);
        uint64_t value = 0;
        profile_numbers_next(&numbers, &value);
        expected += (int64_t)value > 0 ? value : 0;
        assert(profile_link_of_sample(sample.bytes).number == sample.link.number);
    }
    size_t services = otlp_to_pprof_services(conversion, profile);
    for (size_t i = 0; i < services; i++) {
        const struct otlp_to_pprof_source source = {
            .profile = profile, .type = &type, .service = i};
        otlp_to_pprof_begin(conversion, &source);
        while (otlp_to_pprof_fill(conversion))
            sum += check_part(otlp_to_pprof_take(conversion, 1));
    }
    assert(!otlp_to_pprof_has_failed(conversion));
    assert(sum == expected || conversion->figures.too_large > lost);
}

static void check_request(struct slice request)
{
    struct arena arena;
    struct profile_dictionary dictionary;
    struct otlp_to_pprof conversion;
    struct profile_iterator at = profile_iterator_of(request);
    void *decoded = SERVICE_REQUEST(unpack)(NULL, request.size, request.data);
    assert(decoded != NULL);
    SERVICE_REQUEST(free_unpacked)(decoded, NULL);
    arena_init(&arena, ARENA_BYTES_MAX);
    bool is_open = profile_dictionary_open(&dictionary, &arena, request);
    assert(is_open);
    otlp_to_pprof_init(&conversion, &rules, &dictionary, NULL);
    while (profile_iterator_next(&at))
        check_profile(&conversion, &at.profile);
    otlp_to_pprof_fini(&conversion);
    arena_clear(&arena);
}

static void check(struct slice bytes)
{
    struct arena arena;
    struct pprof pprof;
    struct error error;
    struct buffer *request = NULL;
    arena_init(&arena, ARENA_BYTES_MAX);
    if (pprof_read(&arena, bytes, &pprof, &error)) {
        const struct pprof_to_otlp_source source = {.pprof = &pprof};
        check_copy(&pprof);
        if (pprof_to_otlp(&source, NULL, &request, NULL) && request->size > 0)
            check_request(buffer_slice(request));
    }
    buffer_unref(request);
    arena_clear(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gzip *gzip;
    struct buffer *inflated;
    struct error error;
    if (gzip == NULL)
        gzip = gzip_create();
    if (!pprof_unpack(gzip, NULL, slice_of(data, size), BYTES_MAX, &inflated, &error))
        return 0;
    check(inflated != NULL ? buffer_slice(inflated) : slice_of(data, size));
    buffer_unref(inflated);
    return 0;
}
