/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a PushRequest, in JSON when they begin like it: what passes has as many series and
 * profiles as were counted, and what is sound of them becomes an OTLP request that is well-formed,
 * also after the corrections for old clients. Nothing stays charged. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/codec/gzip.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pyroscope/ingest_query.h"
#include "src/profiles/pyroscope/ingest_series.h"
#include "src/profiles/pyroscope/pprof_upload.h"
#include "src/profiles/pyroscope/push_request.h"
#include "src/profiles/pyroscope/series_otlp.h"
#include "src/profiles/pyroscope/upload_check.h"

enum { BUDGET_BYTES = 64 << 20, PROFILE_BYTES_MAX = 1 << 16 };

static const struct upload_limits limits = {
    .label_names = 3, .label_name_bytes = 8, .label_value_bytes = 8, .sample_labels = 2};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request(struct buffer *request, uint64_t items, struct budget *budget)
{
    struct profile_normalized normalized;
    if (request->size == 0)
        return;
    enum profile_verdict verdict =
        profile_normalize(request, buffer_slice(request), PROFILE_LAYOUTS, budget, &normalized);
    assert(verdict != PROFILES_REFUSED);
    if (verdict != PROFILES_TAKEN)
        return;
    assert(normalized.rejected_profiles == 0);
    assert(normalized.samples == items);
    buffer_unref(normalized.owner);
}

static void check_passed(const struct pprof *pprof)
{
    assert(pprof->sample_types_count > 0);
    for (size_t i = 0; i < pprof->strings_count; i++)
        assert(otlp_text_valid(pprof->strings[i]) == pprof->strings[i].size);
    for (size_t i = 0; i < pprof->samples_count; i++)
        assert(pprof->samples[i].labels_count <= limits.sample_labels);
}

static void convert(const struct series *series, struct slice profile, struct budget *budget)
{
    static struct gzip *gzip;
    static const char *const spies[] = {"dotnetspy", "pyspy", "rbspy"};
    struct pprof_upload upload;
    struct error error = {.text = ""};
    struct buffer *request = NULL;
    bool is_mended = true;
    if (gzip == NULL)
        gzip = gzip_create();
    if (pprof_upload_open(&upload, gzip, budget, profile, PROFILE_BYTES_MAX, &error) !=
        PPROF_UPLOAD_OPEN)
        return;
    if (upload_check_profile(&upload.pprof, series, &limits, &error))
        check_passed(&upload.pprof);
    if (series_to_otlp(series, &upload.pprof, budget, &request, NULL))
        check_request(request, pprof_upload_items(&upload), budget);
    buffer_unref(request);
    request = NULL;
    for (size_t i = 0; is_mended && i < sizeof(spies) / sizeof(spies[0]); i++) {
        const struct ingest_query query = {.from_ns = 1, .spy_name = slice_of_text(spies[i])};
        is_mended = ingest_pprof_mend(&upload, &query);
    }
    if (is_mended && series_to_otlp(series, &upload.pprof, budget, &request, NULL))
        check_request(request, pprof_upload_items(&upload), budget);
    buffer_unref(request);
    pprof_upload_close(&upload);
}

static void walk(struct slice request, struct budget *budget)
{
    static struct push_series series;
    struct push_figures figures;
    struct wire_reader reader = wire_reader_of(request);
    struct slice profile;
    struct error error;
    const char *reason = NULL;
    if (!push_request_check(request, &figures, &reason)) {
        assert(reason != NULL);
        return;
    }
    for (; push_next_series(&reader, &series); figures.series--) {
        bool is_sound = series_check(&series.labels, &error);
        for (; push_next_profile(&series, &profile); figures.profiles--)
            if (is_sound && profile.size > 0)
                convert(&series.labels, profile, budget);
    }
    assert(figures.series == 0 && figures.profiles == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct budget budget;
    struct buffer *request = NULL;
    const char *reason = NULL;
    bool is_json = size > 0 && data[0] == '{';
    budget_init(&budget, BUDGET_BYTES);
    if (!is_json)
        walk(slice_of(data, size), &budget);
    else if (push_json_read(slice_of(data, size), &budget, &request, &reason) == PUSH_JSON_READ)
        walk(buffer_slice(request), &budget);
    buffer_unref(request);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    return 0;
}
