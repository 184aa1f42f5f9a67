/* SPDX-License-Identifier: Apache-2.0 */
/* Limits and rules on profiles: bytes 0 to 3 are the limits, the rest a request. What comes out is
 * normalized, within the limits, and the profile tools can show it. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/pattern.h"
#include "src/cli/profile/flamegraph.h"
#include "src/cli/profile/profile_file.h"
#include "src/cli/profile/profile_json.h"
#include "src/cli/profile/profile_report.h"
#include "src/profiles/otlp/profile_limit.h"
#include "src/profiles/otlp/profile_normalize.h"

enum { SETTINGS = 4, BYTES_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(struct slice request)
{
    static struct report report;
    const struct profile_file file = {.path = "fuzz", .format = FORMAT_OTLP};
    struct error error;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert(out != NULL);
    report_init(&report);
    if (report_add(&report, request, &error)) {
        profile_json_show(out, &file, &report, (struct report_scope){.rows_max = 0});
        profile_table_show(out, &file, &report, (struct report_scope){.rows_max = 3});
        for (size_t i = 0; i < report.types_count; i++) {
            const struct flamegraph graph = {
                .report = &report, .type = &report.types[i], .title = slice_of_text("fuzz")};
            flamegraph_write(out, &graph);
        }
    }
    report_fini(&report);
    fclose(out);
    free(text);
}

static struct profile_limit_rules rules_of(const uint8_t *settings)
{
    static struct profile_rename rename;
    static struct pattern *drops[1];
    struct error error;
    if (drops[0] == NULL) {
        drops[0] = pattern_create("^d", &error);
        rename.pattern = pattern_create("(m)(.*)", &error);
        rename.replacement = pattern_replacement_create(rename.pattern, "${2}x", &error);
    }
    return (struct profile_limit_rules){
        .depth_max = settings[0] % 8,
        .samples_max = settings[1] % 8,
        .bytes_max = (uint64_t)settings[2] * 16,
        .label_values_max = settings[3] % 4,
        .renames = &rename,
        .renames_count = settings[3] >> 7,
        .drops = drops,
        .drops_count = settings[2] >> 7,
    };
}

static void check(const struct profile_limit_rules *rules, const struct profile_normalized *before)
{
    struct profile_limit_figures figures;
    struct profile_normalized after;
    struct buffer *shaped = profile_limit(rules, before->request, NULL, NULL, &figures);
    assert(shaped != NULL);
    assert(figures.samples <= before->samples);
    assert(rules->samples_max == 0 || figures.samples <= rules->samples_max * before->profiles);
    assert(rules->bytes_max == 0 || figures.samples <= 1 || shaped->size <= rules->bytes_max);
    enum profile_verdict verdict =
        profile_normalize(shaped, buffer_slice(shaped), LAYOUT_1_10, NULL, &after);
    assert(verdict == PROFILES_TAKEN);
    assert(after.rejected_profiles == 0);
    assert(after.samples == figures.samples);
    show(after.request);
    buffer_unref(after.owner);
    buffer_unref(shaped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile_normalized normalized;
    if (size < SETTINGS || size > BYTES_MAX)
        return 0;
    const struct profile_limit_rules rules = rules_of(data);
    struct buffer *request = buffer_create(NULL, size - SETTINGS);
    if (size > SETTINGS)
        memcpy(request->data, data + SETTINGS, size - SETTINGS);
    request->size = size - SETTINGS;
    if (profile_normalize(request, buffer_slice(request), LAYOUT_1_10, NULL, &normalized) ==
        PROFILES_TAKEN) {
        if (normalized.profiles > 0)
            check(&rules, &normalized);
        buffer_unref(normalized.owner);
    }
    buffer_unref(request);
    return 0;
}
