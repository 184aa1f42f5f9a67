/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of random profiles against a naive reading of the same bytes by protobuf-c: every stack is
 * written out, every prefix of it summed by its text. And what queries, limits and odd stacks do.
 */
#include "src/explore/flame_tree.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/json/json_output.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "src/profiles/pprof/profile_type.h"
#include "tests/support/profile_sketch.h"
#include "tests/support/random_profiles.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opentelemetry/proto/collector/profiles/v1development/profiles_service.pb-c.h>

#define PROFILES_SERVICE(name) opentelemetry__proto__collector__profiles__v1development__##name

typedef Opentelemetry__Proto__Collector__Profiles__V1development__ExportProfilesServiceRequest
    naive_request;
typedef Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary naive_dictionary;
typedef Opentelemetry__Proto__Profiles__V1development__Profile naive_profile;
typedef Opentelemetry__Proto__Profiles__V1development__ScopeProfiles naive_scope;
typedef Opentelemetry__Proto__Profiles__V1development__Sample naive_sample;
typedef Opentelemetry__Proto__Profiles__V1development__Location naive_location;

enum { FRAMES_MAX = 512, PATHS_MAX = 20000, PATH_BYTES_MAX = 16384, SEEDS = 250 };

/* The sums of one path from the root. */
struct path {
    char *text; /* "main;work" */
    int64_t total[FLAME_SIDES_MAX];
    int64_t self[FLAME_SIDES_MAX];
    bool is_seen;
};

struct paths {
    struct path *all;
    size_t count;
};

struct stack {
    const char *frames[FRAMES_MAX]; /* from the root */
    size_t count;
    int64_t value[FLAME_SIDES_MAX];
    uint64_t samples;
};

/* What the naive reading found of one type. */
struct naive {
    char type[256];
    char unit[256];
    const struct flame_filter *filter;
    unsigned side;
    struct stack *stacks;
    size_t count;
    char *names[PATHS_MAX]; /* to be freed */
    size_t names_count;
};

static struct path *path_at(struct paths *paths, const char *text)
{
    for (size_t i = 0; i < paths->count; i++)
        if (strcmp(paths->all[i].text, text) == 0)
            return &paths->all[i];
    assert_true(paths->count < PATHS_MAX);
    struct path *path = &paths->all[paths->count++];
    *path = (struct path){.text = mem_copy_text(text)};
    return path;
}

static void paths_fini(struct paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        mem_free(paths->all[i].text);
    mem_free(paths->all);
    *paths = (struct paths){.count = 0};
}

/* Adds the value to every prefix; "" is the root. */
static void add_path(struct paths *paths, const char *const *frames, size_t count,
                     const int64_t value[FLAME_SIDES_MAX])
{
    static char text[PATH_BYTES_MAX];
    size_t size = 0;
    text[0] = '\0';
    for (size_t i = 0; i <= count; i++) {
        struct path *path = path_at(paths, text);
        for (unsigned side = 0; side < FLAME_SIDES_MAX; side++) {
            path->total[side] += value[side];
            path->self[side] += i == count ? value[side] : 0;
        }
        if (i < count)
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%s", i > 0 ? ";" : "",
                                     frames[i]);
        assert_true(size < sizeof(text));
    }
}

static const char *keep_name(struct naive *naive, const char *text)
{
    assert_true(naive->names_count < PATHS_MAX);
    naive->names[naive->names_count] = mem_copy_text(text);
    return naive->names[naive->names_count++];
}

static const char *string_at(const naive_dictionary *dictionary, int32_t index)
{
    return (size_t)index < dictionary->n_string_table ? dictionary->string_table[index] : "";
}

static const char *function_of(const naive_dictionary *dictionary, int32_t index)
{
    if (index == 0 || (size_t)index >= dictionary->n_function_table)
        return "[unknown]";
    const char *name = string_at(dictionary, dictionary->function_table[index]->name_strindex);
    if (name[0] == '\0')
        name = string_at(dictionary, dictionary->function_table[index]->system_name_strindex);
    return name[0] != '\0' ? name : "[unknown]";
}

static void write_stack(struct naive *naive, const naive_dictionary *dictionary, int32_t index,
                        struct stack *stack)
{
    stack->count = 0;
    if ((size_t)index >= dictionary->n_stack_table)
        return;
    size_t count = dictionary->stack_table[index]->n_location_indices;
    for (size_t i = count; i > 0; i--) {
        int32_t place = dictionary->stack_table[index]->location_indices[i - 1];
        if (place == 0)
            continue;
        const naive_location *location = dictionary->location_table[place];
        for (size_t k = location->n_lines; k > 0; k--)
            stack->frames[stack->count++] =
                function_of(dictionary, location->lines[k - 1]->function_index);
        if (location->n_lines == 0) {
            char text[512];
            const char *file =
                location->mapping_index > 0
                    ? string_at(
                          dictionary,
                          dictionary->mapping_table[location->mapping_index]->filename_strindex)
                    : "";
            const char *slash = strrchr(file, '/');
            file = slash != NULL ? slash + 1 : file;
            if (location->address == 0 && file[0] == '\0')
                snprintf(text, sizeof(text), "[unknown]");
            else
                snprintf(text, sizeof(text), file[0] != '\0' ? "0x%" PRIx64 " (%s)" : "0x%" PRIx64,
                         location->address, file);
            stack->frames[stack->count++] = keep_name(naive, text);
        }
        assert_true(stack->count < FRAMES_MAX - 8);
    }
}

/* The value and the number of samples in the filter's time. */
static bool weigh(const struct naive *naive, const naive_profile *profile,
                  const naive_sample *sample, bool has_unit_of_period, int64_t *ret_value,
                  uint64_t *ret_samples)
{
    uint64_t start = naive->filter->start_unix_ns;
    uint64_t end = naive->filter->end_unix_ns;
    int64_t value = 0;
    uint64_t samples = 0;
    for (size_t i = 0; i < sample->n_values; i++)
        value += sample->values[i];
    if (sample->n_timestamps_unix_nano == 0) {
        uint64_t from = profile->time_unix_nano;
        uint64_t to = from + profile->duration_nano;
        bool is_in = from < end && (to > start || (to == start && from == to));
        if (!is_in && !(start == 0 && end == UINT64_MAX))
            return false;
        samples = has_unit_of_period && value / profile->period > 1
                      ? (uint64_t)(value / profile->period)
                      : 1;
    } else {
        int64_t picked = 0;
        for (size_t i = 0; i < sample->n_timestamps_unix_nano; i++) {
            uint64_t time = sample->timestamps_unix_nano[i];
            if (time < start || (time >= end && end != UINT64_MAX))
                continue;
            samples++;
            picked += sample->n_values == 0                                ? 1
                      : sample->n_values == sample->n_timestamps_unix_nano ? sample->values[i]
                                                                           : 0;
        }
        if (sample->n_values == 0 || sample->n_values == sample->n_timestamps_unix_nano)
            value = picked;
    }
    *ret_value = value;
    *ret_samples = samples;
    return samples > 0 && value != 0;
}

static bool names_type(const struct naive *naive, const naive_dictionary *dictionary,
                       const naive_profile *profile, bool *ret_has_unit_of_period)
{
    const char *texts[4] = {"", "", "", ""};
    if (profile->sample_type != NULL) {
        texts[0] = string_at(dictionary, profile->sample_type->type_strindex);
        texts[1] = string_at(dictionary, profile->sample_type->unit_strindex);
    }
    if (profile->period_type != NULL) {
        texts[2] = string_at(dictionary, profile->period_type->type_strindex);
        texts[3] = string_at(dictionary, profile->period_type->unit_strindex);
    }
    /* Random profiles have types that no table knows: only their letters change. */
    const struct profile_type_texts slices = {
        .type = slice_of_text(texts[0]),
        .unit = slice_of_text(texts[1]),
        .period_type = slice_of_text(texts[2]),
        .period_unit = slice_of_text(texts[3]),
    };
    struct profile_type canonical = profile_type_canonical(&slices, profile->period > 0, false);
    *ret_has_unit_of_period =
        profile->period > 0 && strcmp(canonical.unit, canonical.period_unit) == 0;
    return strcmp(canonical.type, naive->type) == 0 && strcmp(canonical.unit, naive->unit) == 0;
}

static bool picks_even_spans(void *arg, const uint8_t *trace_id, const uint8_t *span_id)
{
    assert_non_null(trace_id);
    *(unsigned *)arg += 1;
    return span_id[7] % 2 == 0;
}

static void read_naively(struct naive *naive, naive_request *request)
{
    const naive_dictionary empty =
        OPENTELEMETRY__PROTO__PROFILES__V1DEVELOPMENT__PROFILES_DICTIONARY__INIT;
    const naive_dictionary *dictionary = request->dictionary != NULL ? request->dictionary : &empty;
    for (size_t r = 0; r < request->n_resource_profiles; r++)
        for (size_t s = 0; s < request->resource_profiles[r]->n_scope_profiles; s++) {
            const naive_scope *scope = request->resource_profiles[r]->scope_profiles[s];
            for (size_t p = 0; p < scope->n_profiles; p++) {
                bool has_unit;
                if (!names_type(naive, dictionary, scope->profiles[p], &has_unit))
                    continue;
                for (size_t i = 0; i < scope->profiles[p]->n_samples; i++) {
                    const naive_sample *sample = scope->profiles[p]->samples[i];
                    struct stack *stack = &naive->stacks[naive->count];
                    *stack = (struct stack){.count = 0};
                    if (naive->filter->picks != NULL) {
                        if (sample->link_index == 0)
                            continue;
                        ProtobufCBinaryData trace =
                            dictionary->link_table[sample->link_index]->trace_id;
                        ProtobufCBinaryData span =
                            dictionary->link_table[sample->link_index]->span_id;
                        if (trace.len != 16 || span.len != 8 || span.data[7] % 2 != 0)
                            continue;
                    }
                    if (!weigh(naive, scope->profiles[p], sample, has_unit,
                               &stack->value[naive->side], &stack->samples))
                        continue;
                    write_stack(naive, dictionary, sample->stack_index, stack);
                    naive->count++;
                    assert_true(naive->count < PATHS_MAX);
                }
            }
        }
}

static struct slice member(struct slice json, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof(quoted), ",\"%s\":[", key);
    const uint8_t *at = memmem(json.data, json.size, quoted, strlen(quoted));
    assert_non_null(at);
    at += strlen(quoted);
    return slice_of(at, (size_t)(json.data + json.size - at));
}

/* Reads the names of the JSON, which have no escapes. */
static size_t read_names(struct slice json, char names[][64])
{
    struct slice at = member(json, "names");
    size_t count = 0;
    while (at.data[0] == '"' || at.data[0] == ',') {
        const char *text = (const char *)at.data + (at.data[0] == ',') + 1;
        size_t size = strcspn(text, "\"");
        assert_true(size < 64);
        snprintf(names[count++], 64, "%.*s", (int)size, text);
        text += size + 1;
        at = slice_of(text, (size_t)(json.data + json.size - (const uint8_t *)text));
    }
    assert_int_equal(at.data[0], ']');
    return count;
}

static const char *read_row(const char *at, int64_t *numbers, size_t count)
{
    at += at[0] == ',';
    assert_int_equal(*at++, '[');
    for (size_t i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtoll(at, &end, 10);
        assert_int_equal(*end, i + 1 < count ? ',' : ']');
        at = end + 1;
    }
    return at;
}

/* Compares the rows of a tree with the sums of the paths: each path once, children by weight. */
static void check_rows(struct slice json, const char *key, unsigned sides, const char *root,
                       struct paths *want)
{
    static char names[4096][64];
    static char text[PATH_BYTES_MAX];
    struct {
        size_t size;
        int64_t left; /* children to come */
        int64_t weight;
    } levels[FRAMES_MAX] = {{0}};
    size_t depth = 0;
    size_t rows = 0;
    read_names(json, names);
    const char *at = (const char *)member(json, key).data;
    do {
        int64_t row[6];
        at = read_row(at, row, sides == 1 ? 4 : 6);
        int64_t weight = sides == 1 ? row[1] : row[1] + row[2];
        if (rows == 0) {
            text[0] = '\0';
            assert_string_equal(names[row[0]], root);
        } else {
            while (levels[depth].left == 0)
                depth--;
            levels[depth].left--;
            assert_true(weight <= levels[depth].weight);
            levels[depth].weight = weight;
            int size = snprintf(text + levels[depth].size, sizeof(text) - levels[depth].size,
                                "%s%s", depth > 0 ? ";" : "", names[row[0]]);
            levels[depth + 1].size = levels[depth].size + (size_t)size;
            depth++;
        }
        levels[depth].left = row[sides == 1 ? 3 : 5];
        levels[depth].weight = INT64_MAX;
        struct path *path = path_at(want, text);
        assert_false(path->is_seen);
        path->is_seen = true;
        assert_int_equal(row[1], path->total[0]);
        assert_int_equal(row[sides + 1], path->self[0]);
        if (sides == 2) {
            assert_int_equal(row[2], path->total[1]);
            assert_int_equal(row[4], path->self[1]);
        }
        rows++;
    } while (*at == ',');
    assert_int_equal(*at, ']');
    for (size_t i = 0; i < want->count; i++)
        assert_true(want->all[i].is_seen);
}

static struct buffer *written(struct flame_tree *tree, const struct flame_drawing *drawing)
{
    struct json_output output;
    json_output_init(&output, 256, 64 << 20, NULL);
    assert_int_equal(flame_tree_write(tree, drawing, &output), FLAME_ADDED);
    json_output_put_byte(&output, '\0');
    struct buffer *json = json_output_take(&output);
    assert_non_null(json);
    json->size--;
    return json;
}

static void check_top(struct slice json, const struct naive *naive, unsigned sides)
{
    static char names[4096][64];
    size_t count = read_names(json, names);
    const char *at = (const char *)member(json, "top").data;
    for (size_t i = 1; i < count; i++) {
        int64_t row[5];
        int64_t total[2] = {0};
        int64_t self[2] = {0};
        uint64_t samples = 0;
        at = read_row(at, row, sides == 1 ? 4 : 5);
        for (size_t k = 0; k < naive->count; k++) {
            const struct stack *stack = &naive->stacks[k];
            bool is_on = false;
            for (size_t frame = 0; frame < stack->count; frame++)
                is_on |= strcmp(stack->frames[frame], names[row[0]]) == 0;
            bool is_leaf =
                stack->count > 0 && strcmp(stack->frames[stack->count - 1], names[row[0]]) == 0;
            for (unsigned side = 0; side < 2; side++) {
                total[side] += is_on ? stack->value[side] : 0;
                self[side] += is_leaf ? stack->value[side] : 0;
            }
            samples += is_on ? stack->samples : 0;
        }
        assert_int_equal(row[1], total[0]);
        assert_int_equal(row[sides + 1], self[0]);
        if (sides == 1)
            assert_int_equal(row[3], samples);
        else
            assert_true(row[2] == total[1] && row[4] == self[1]);
    }
    assert_int_equal(*at, ']');
}

static void check_views(struct flame_tree *tree, const struct naive *naive, unsigned sides)
{
    struct paths want = {.all = mem_alloc(PATHS_MAX * sizeof(struct path))};
    struct flame_drawing drawing = {.width = UINT32_MAX, .bytes_max = 64 << 20};
    static const int64_t nothing[FLAME_SIDES_MAX];
    add_path(&want, NULL, 0, nothing);
    for (size_t i = 0; i < naive->count; i++)
        add_path(&want, naive->stacks[i].frames, naive->stacks[i].count, naive->stacks[i].value);
    struct buffer *json = written(tree, &drawing);
    assert_non_null(strstr((const char *)json->data, "\"pruned\":0,\"truncatedDepth\":false"));
    check_rows(buffer_slice(json), "tree", sides, "all", &want);
    buffer_unref(json);

    drawing.view = FLAME_VIEW_TOP;
    json = written(tree, &drawing);
    check_top(buffer_slice(json), naive, sides);
    buffer_unref(json);

    /* The function in the middle of some stack. */
    const struct stack *some = naive->count > 0 ? &naive->stacks[naive->count / 2] : NULL;
    const char *function = some != NULL && some->count > 0 ? some->frames[some->count / 2] : NULL;
    paths_fini(&want);
    if (function == NULL)
        return;
    drawing.view = FLAME_VIEW_SANDWICH;
    drawing.function = slice_of_text(function);
    json = written(tree, &drawing);
    for (unsigned is_callees = 0; is_callees < 2; is_callees++) {
        want = (struct paths){.all = mem_alloc(PATHS_MAX * sizeof(struct path))};
        for (size_t i = 0; i < naive->count; i++) {
            const struct stack *stack = &naive->stacks[i];
            const char *frames[FRAMES_MAX];
            size_t outermost = 0;
            while (outermost < stack->count && strcmp(stack->frames[outermost], function) != 0)
                outermost++;
            if (outermost == stack->count)
                continue;
            for (size_t k = 0; k < outermost; k++)
                frames[k] = stack->frames[outermost - 1 - k];
            if (is_callees)
                add_path(&want, stack->frames + outermost + 1, stack->count - outermost - 1,
                         stack->value);
            else
                add_path(&want, frames, outermost, stack->value);
        }
        check_rows(buffer_slice(json), is_callees ? "callees" : "callers", sides, function, &want);
        paths_fini(&want);
    }
    buffer_unref(json);
}

static void trees_say_what_a_naive_reading_says(void **state)
{
    static struct naive naive;
    static naive_request *requests[4];
    static unsigned request_sides[4];
    unsigned asked = 0;
    unsigned drawn = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random_source random = {.state = seed};
        struct budget budget;
        budget_init(&budget, UINT64_MAX);
        unsigned sides = 1 + (unsigned)random_below(&random, 2);
        const struct flame_filter filter = {
            .picks = random_below(&random, 2) == 0 ? picks_even_spans : NULL,
            .arg = &asked,
            .start_unix_ns = random_below(&random, 3) == 0 ? 1u << 28 : 0,
            .end_unix_ns = random_below(&random, 3) == 0 ? 3u << 28 : UINT64_MAX,
        };
        const struct flame_settings settings = {
            .budget = &budget, .bytes_max = 64 << 20, .sides = sides};
        struct flame_tree *tree = flame_tree_create(&settings);
        size_t count = 0;
        for (size_t i = 0; i < 1 + random_below(&random, 3); i++) {
            struct slice bytes = random_profiles(&random);
            struct buffer *buffer = buffer_create(NULL, bytes.size);
            struct profile_normalized normalized;
            if (bytes.size > 0)
                memcpy(buffer->data, bytes.data, bytes.size);
            buffer->size = bytes.size;
            mem_free((void *)(uintptr_t)bytes.data);
            if (profile_normalize(buffer, buffer_slice(buffer), LAYOUT_1_10, NULL, &normalized) ==
                PROFILES_TAKEN) {
                request_sides[count] = (unsigned)random_below(&random, sides);
                requests[count] = PROFILES_SERVICE(export_profiles_service_request__unpack)(
                    NULL, normalized.request.size, normalized.request.data);
                assert_non_null(requests[count]);
                assert_int_equal(
                    flame_tree_add(tree, request_sides[count], normalized.request, &filter),
                    FLAME_ADDED);
                count++;
                buffer_unref(normalized.owner);
            }
            buffer_unref(buffer);
        }
        const struct flame_type *types;
        size_t types_count = flame_tree_types(tree, &types);
        const struct flame_type *drawn_type = flame_tree_type(tree);
        assert_true((types_count == 0) == (drawn_type == NULL));
        for (size_t t = 0; t < types_count; t++) {
            uint64_t samples = 0;
            int64_t total = 0;
            naive = (struct naive){.filter = &filter};
            naive.stacks = mem_alloc(PATHS_MAX * sizeof(naive.stacks[0]));
            snprintf(naive.type, sizeof(naive.type), "%.*s", (int)types[t].type.size,
                     (const char *)types[t].type.data);
            snprintf(naive.unit, sizeof(naive.unit), "%.*s", (int)types[t].unit.size,
                     (const char *)types[t].unit.data);
            for (size_t i = 0; i < count; i++) {
                naive.side = request_sides[i];
                read_naively(&naive, requests[i]);
            }
            for (size_t i = 0; i < naive.count; i++) {
                samples += naive.stacks[i].samples;
                total += naive.stacks[i].value[0] + naive.stacks[i].value[1];
            }
            assert_int_equal(samples, types[t].samples[0] + types[t].samples[1]);
            assert_int_equal(total, types[t].total[0] + types[t].total[1]);
            if (slice_equal(types[t].type, drawn_type->type) &&
                slice_equal(types[t].unit, drawn_type->unit)) {
                check_views(tree, &naive, sides);
                drawn++;
            }
            for (size_t i = 0; i < naive.names_count; i++)
                mem_free(naive.names[i]);
            mem_free(naive.stacks);
        }
        for (size_t i = 0; i < count; i++)
            PROFILES_SERVICE(export_profiles_service_request__free_unpacked)(requests[i], NULL);
        flame_tree_destroy(tree);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
    assert_true(asked > 0 && drawn > SEEDS / 4);
}

static struct flame_tree *tree_of(const struct sketch *sketch, const char *type)
{
    static const struct flame_filter all = {.end_unix_ns = UINT64_MAX};
    const struct flame_settings settings = {
        .bytes_max = 64 << 20, .sides = 1, .type = slice_of_text(type)};
    struct flame_tree *tree = flame_tree_create(&settings);
    struct slice request = sketch_request(sketch);
    assert_int_equal(flame_tree_add(tree, 0, request, &all), FLAME_ADDED);
    mem_free((void *)(uintptr_t)request.data);
    return tree;
}

static void check_written(struct flame_tree *tree, const char *want)
{
    const struct flame_drawing drawing = {.width = 1000, .bytes_max = 1 << 20};
    struct buffer *json = written(tree, &drawing);
    assert_string_equal((const char *)json->data, want);
    buffer_unref(json);
    flame_tree_destroy(tree);
}

static const struct sketch_sample go_samples[] = {
    {.stack = "work;main", .values_count = 1, .values = {12}},
};
static const struct sketch_sample go_times[] = {
    {.stack = "work;main", .values_count = 1, .values = {120}},
};
static const struct sketch_sample walls[] = {
    {.stack = "wait;main", .values_count = 1, .values = {9999}},
};
#define CPU_PERIOD .period_type = {"cpu", "nanoseconds"}, .period = 10

static void cpu_time_is_drawn_and_knows_its_samples(void **state)
{
    const struct sketch_profile profiles[] = {
        {.type = {"wall", "nanoseconds"}, .samples_count = 1, .samples = walls},
        {.type = {"samples", "count"}, CPU_PERIOD, .samples_count = 1, .samples = go_samples},
        {.type = {"cpu", "nanoseconds"}, CPU_PERIOD, .samples_count = 1, .samples = go_times},
    };
    const struct sketch sketch = {.profiles = profiles, .profiles_count = 3};
    (void)state;
    check_written(tree_of(&sketch, ""),
                  "\"type\":\"cpu\",\"unit\":\"nanoseconds\",\"samples\":12,\"total\":120,"
                  "\"confidence\":{\"samples\":12,\"percent\":30},\"types\":["
                  "{\"type\":\"cpu\",\"unit\":\"nanoseconds\",\"samples\":12,\"total\":120},"
                  "{\"type\":\"samples\",\"unit\":\"count\",\"samples\":12,\"total\":12},"
                  "{\"type\":\"wall\",\"unit\":\"nanoseconds\",\"samples\":1,\"total\":9999}],"
                  "\"names\":[\"all\",\"main\",\"work\"],"
                  "\"tree\":[[0,120,0,1],[1,120,0,1],[2,120,120,0]],"
                  "\"pruned\":0,\"truncatedDepth\":false");
}

static void samples_of_a_cpu_profiler_are_cpu_time_by_their_period(void **state)
{
    const struct sketch_profile profiles[] = {
        {.type = {"samples", "count"}, CPU_PERIOD, .samples_count = 1, .samples = go_samples},
    };
    const struct sketch sketch = {.profiles = profiles, .profiles_count = 1};
    (void)state;
    struct flame_tree *tree = tree_of(&sketch, "CPU");
    const struct flame_type *type = flame_tree_type(tree);
    assert_true(slice_equal_text(type->type, "cpu"));
    assert_true(slice_equal_text(type->unit, "nanoseconds"));
    assert_int_equal(type->samples[0], 12);
    assert_int_equal(type->total[0], 120);
    flame_tree_destroy(tree);
}

static void a_type_that_is_not_there_draws_nothing_and_lists_the_others(void **state)
{
    const struct sketch_profile profiles[] = {
        {.type = {"wall", "nanoseconds"}, .samples_count = 1, .samples = walls},
    };
    const struct sketch sketch = {.profiles = profiles, .profiles_count = 1};
    (void)state;
    check_written(tree_of(&sketch, "lock"),
                  "\"type\":\"lock\",\"unit\":\"\",\"samples\":0,\"total\":0,"
                  "\"confidence\":{\"samples\":0,\"percent\":100},\"types\":["
                  "{\"type\":\"wall\",\"unit\":\"nanoseconds\",\"samples\":1,\"total\":9999}],"
                  "\"names\":[\"all\"],\"tree\":[[0,0,0,0]],\"pruned\":0,\"truncatedDepth\":false");
}

static void narrow_frames_are_left_out_and_counted(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "wide;main", .values_count = 1, .values = {99950}},
        {.stack = "leaf;narrow;main", .values_count = 1, .values = {49}},
        {.stack = "just;main", .values_count = 1, .values = {1}},
    };
    const struct sketch_profile profiles[] = {
        {.type = {"lock", "count"}, .samples_count = 3, .samples = samples},
    };
    const struct sketch sketch = {.profiles = profiles, .profiles_count = 1};
    (void)state;
    check_written(tree_of(&sketch, "lock"),
                  "\"type\":\"lock\",\"unit\":\"count\",\"samples\":3,\"total\":100000,"
                  "\"confidence\":{\"samples\":3,\"percent\":60},\"types\":["
                  "{\"type\":\"lock\",\"unit\":\"count\",\"samples\":3,\"total\":100000}],"
                  "\"names\":[\"all\",\"main\",\"wide\"],"
                  "\"tree\":[[0,100000,0,1],[1,100000,0,1],[2,99950,99950,0]],"
                  "\"pruned\":3,\"truncatedDepth\":false");
}

static void only_the_service_and_the_time_that_are_asked_for_count(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "a", .values_count = 2, .values = {5, 7}, .timestamps_count = 2, .time_ns = 100},
    };
    const struct sketch_profile profiles[] = {
        {.type = {"cpu", "nanoseconds"}, .samples_count = 1, .samples = samples},
        {.type = {"cpu", "nanoseconds"},
         .time_ns = 90,
         .duration_ns = 10,
         .samples_count = 1,
         .samples = go_times},
    };
    const struct sketch sketch = {
        .resource = {"service.name=shop"}, .profiles = profiles, .profiles_count = 2};
    static const struct {
        const char *service;
        uint64_t start;
        uint64_t end;
        int64_t total;
    } rows[] = {
        {"shop", 0, UINT64_MAX, 132},
        {"till", 0, UINT64_MAX, 0},
        {NULL, 101, UINT64_MAX, 7},
        {NULL, 0, 101, 125},
        {NULL, 99, 100, 120},
        {NULL, 100, 101, 5},
        {NULL, 0, 90, 0},
    };
    struct slice request = sketch_request(&sketch);
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct flame_settings settings = {.bytes_max = 64 << 20, .sides = 1};
        const struct flame_filter filter = {
            .service = rows[i].service != NULL ? slice_of_text(rows[i].service) : slice_of(NULL, 0),
            .start_unix_ns = rows[i].start,
            .end_unix_ns = rows[i].end,
        };
        struct flame_tree *tree = flame_tree_create(&settings);
        assert_int_equal(flame_tree_add(tree, 0, request, &filter), FLAME_ADDED);
        const struct flame_type *type = flame_tree_type(tree);
        assert_int_equal(type != NULL ? type->total[0] : 0, rows[i].total);
        flame_tree_destroy(tree);
    }
    mem_free((void *)(uintptr_t)request.data);
}

/* Frames "f0000;f0001;…", leaf first. */
static struct slice deep_request(size_t depth)
{
    char *stack = mem_alloc(depth * 6 + 1);
    for (size_t i = 0; i < depth; i++)
        snprintf(stack + i * 6, 7, "f%04zu;", (depth - 1 - i) % 10000);
    stack[depth * 6 - 1] = '\0';
    const struct sketch_sample samples[] = {
        {.stack = stack, .values_count = 1, .values = {123456789}},
        {.stack = "other", .values_count = 1, .values = {1}},
    };
    const struct sketch_profile profiles[] = {
        {.type = {"cpu", "nanoseconds"}, .samples_count = 2, .samples = samples},
    };
    const struct sketch sketch = {.profiles = profiles, .profiles_count = 1};
    struct slice request = sketch_request(&sketch);
    mem_free(stack);
    return request;
}

static size_t rows_of(const struct buffer *json)
{
    size_t rows = 0;
    for (const char *at = strstr((const char *)json->data, "\"tree\":"); *at != '\0'; at++)
        rows += *at == '[';
    return rows - 1;
}

static void deep_stacks_are_drawn_within_the_limit_of_a_response(void **state)
{
    static const struct flame_filter all = {.end_unix_ns = UINT64_MAX};
    static const struct {
        size_t depth;
        size_t bytes_max;
        size_t rows_min;
        size_t rows_max;
        bool is_cut;
    } rows[] = {
        {5000, FLAME_RESPONSE_BYTES_MAX, 5001, 5001, false},
        {5000, 50 << 10, 1000, 2000, true},
        {9000, 1 << 20, FLAME_DEPTH_MAX + 1, FLAME_DEPTH_MAX + 1, true},
        {100, 1000, 5, 40, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct flame_settings settings = {.bytes_max = 64 << 20, .sides = 1};
        const struct flame_drawing drawing = {.width = 1600, .bytes_max = rows[i].bytes_max};
        struct flame_tree *tree = flame_tree_create(&settings);
        struct slice request = deep_request(rows[i].depth);
        assert_int_equal(flame_tree_add(tree, 0, request, &all), FLAME_ADDED);
        struct buffer *json = written(tree, &drawing);
        assert_in_range(json->size, 0, rows[i].bytes_max);
        assert_in_range(rows_of(json), rows[i].rows_min, rows[i].rows_max);
        assert_true((strstr((const char *)json->data, "\"truncatedDepth\":true") != NULL) ==
                    rows[i].is_cut);
        buffer_unref(json);
        flame_tree_destroy(tree);
        mem_free((void *)(uintptr_t)request.data);
    }
}

static void folded_stacks_keep_their_form_whatever_names_have(void **state)
{
    static const struct sketch_sample samples[] = {
        {.stack = "a\nb;main", .values_count = 1, .values = {3}},
        {.stack = "main", .values_count = 1, .values = {4}},
        {.stack = "a\nb;main", .values_count = 1, .values = {5}},
    };
    const struct sketch_profile profiles[] = {
        {.type = {"lock", "count"}, .samples_count = 3, .samples = samples},
    };
    const struct sketch sketch = {.profiles = profiles, .profiles_count = 1};
    struct flame_tree *tree = tree_of(&sketch, "");
    struct json_output output;
    (void)state;
    json_output_init(&output, 16, SIZE_MAX, NULL);
    assert_int_equal(flame_tree_write_folded(tree, &output), FLAME_ADDED);
    struct buffer *text = json_output_take(&output);
    assert_true(slice_equal_text(buffer_slice(text), "main 4\nmain;a b 8\n"));
    buffer_unref(text);
    flame_tree_destroy(tree);
}

/* Stacks are compared as bytes from their end, where an index of one byte may look like the last
 * byte of one of two. */
static void stacks_that_end_with_the_same_byte_are_told_apart(void **state)
{
    enum { FILLERS = 200, STACKS = FILLERS + 4 };
    static char names[FILLERS][8];
    static struct sketch_sample samples[STACKS];
    size_t count = 0;
    (void)state;
    samples[count++] = (struct sketch_sample){.stack = "r", .values_count = 1, .values = {1}};
    for (size_t i = 0; i < FILLERS; i++) {
        snprintf(names[i], sizeof(names[i]), "f%zu", i);
        samples[count++] =
            (struct sketch_sample){.stack = names[i], .values_count = 1, .values = {1}};
    }
    samples[count++] = (struct sketch_sample){.stack = "x;r", .values_count = 1, .values = {2}};
    samples[count++] = (struct sketch_sample){.stack = "y;r", .values_count = 1, .values = {3}};
    samples[count++] = (struct sketch_sample){.stack = "y;f150", .values_count = 1, .values = {4}};
    const struct sketch_profile profiles[] = {
        {.type = {"lock", "count"}, .samples_count = count, .samples = samples},
    };
    const struct sketch sketch = {.profiles = profiles, .profiles_count = 1};
    struct flame_tree *tree = tree_of(&sketch, "");
    struct json_output output;
    json_output_init(&output, 16, SIZE_MAX, NULL);
    assert_int_equal(flame_tree_write_folded(tree, &output), FLAME_ADDED);
    json_output_put_byte(&output, '\0');
    struct buffer *text = json_output_take(&output);
    assert_non_null(strstr((const char *)text->data, "\nr;x 2\n"));
    assert_non_null(strstr((const char *)text->data, "\nr;y 3\n"));
    assert_non_null(strstr((const char *)text->data, "\nf150;y 4\n"));
    buffer_unref(text);
    flame_tree_destroy(tree);
}

static bool stops(void *arg)
{
    unsigned *calls = arg;
    return calls[0]++ == calls[1];
}

/* Whatever is refused, nothing is lost or kept: memory that runs out, limits, deadlines. */
static void refusals_leave_nothing_behind(void **state)
{
    static const struct flame_filter all = {.end_unix_ns = UINT64_MAX};
    const struct flame_drawing views[] = {
        {.view = FLAME_VIEW_TREE, .width = 100000, .bytes_max = 1 << 20},
        {.view = FLAME_VIEW_TOP, .bytes_max = 1 << 20},
        {.view = FLAME_VIEW_SANDWICH, .function = slice_of_text("f0050"), .bytes_max = 1 << 20},
    };
    struct slice request = deep_request(3000);
    unsigned refused = 0;
    unsigned stopped = 0;
    unsigned whole = 0;
    (void)state;
    for (size_t limit = 0; limit < 64; limit++) {
        struct budget budget;
        unsigned calls[2] = {0, (unsigned)limit / 4};
        bool has_limit = limit % 2 == 0;
        budget_init(&budget, limit % 4 == 0 ? limit << 14 : UINT64_MAX);
        const struct flame_settings settings = {
            .budget = &budget,
            .bytes_max = limit % 4 == 2 ? limit << 14 : 64 << 20,
            .sides = 1,
            .must_stop = has_limit ? NULL : stops,
            .arg = calls,
        };
        struct flame_tree *tree = flame_tree_create(&settings);
        enum flame_result result = FLAME_NO_MEMORY;
        if (tree != NULL)
            result = flame_tree_add(tree, 0, request, &all);
        for (size_t i = 0; i < 3 && result == FLAME_ADDED; i++) {
            struct json_output output;
            json_output_init(&output, 16, SIZE_MAX, NULL);
            result = flame_tree_write(tree, &views[i], &output);
            buffer_unref(json_output_take(&output));
        }
        refused += result == FLAME_NO_MEMORY;
        stopped += result == FLAME_STOPPED;
        whole += result == FLAME_ADDED;
        flame_tree_destroy(tree);
        assert_int_equal(budget_used(&budget), 0);
        budget_fini(&budget);
    }
    assert_true(refused > 5);
    assert_true(stopped > 3);
    assert_true(whole > 5);
    mem_free((void *)(uintptr_t)request.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_say_what_a_naive_reading_says),
        cmocka_unit_test(cpu_time_is_drawn_and_knows_its_samples),
        cmocka_unit_test(samples_of_a_cpu_profiler_are_cpu_time_by_their_period),
        cmocka_unit_test(a_type_that_is_not_there_draws_nothing_and_lists_the_others),
        cmocka_unit_test(narrow_frames_are_left_out_and_counted),
        cmocka_unit_test(only_the_service_and_the_time_that_are_asked_for_count),
        cmocka_unit_test(deep_stacks_are_drawn_within_the_limit_of_a_response),
        cmocka_unit_test(folded_stacks_keep_their_form_whatever_names_have),
        cmocka_unit_test(stacks_that_end_with_the_same_byte_are_told_apart),
        cmocka_unit_test(refusals_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
