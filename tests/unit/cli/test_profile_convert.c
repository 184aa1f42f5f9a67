/* SPDX-License-Identifier: Apache-2.0 */
/* Files: their formats, their errors, and their conversion. */
#include "src/cli/profile/profile_convert.h"

#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/cli/profile/profile_arguments.h"
#include "src/cli/profile/profile_file.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/schema.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "tests/unit/cli/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int tear_down(void **state)
{
    (void)state;
    temporary_clear();
    return 0;
}

static struct profile_file opened(const char *name, struct buffer *bytes)
{
    struct profile_file file;
    struct error error = {.text = ""};
    const char *path = temporary_file_with(name, buffer_slice(bytes));
    buffer_unref(bytes);
    if (!profile_file_read(&file, path, &error))
        fail_msg("%s", error.text);
    return file;
}

static const struct {
    const char *bytes;
    const char *error;
} refused[] = {
    {"", "the file is empty, expected a profile"},
    {"{\"resourceProfiles\":[]}", "found JSON without profiles, expected OTLP/JSON"},
    {" {\"resourceProfiles\":5}", "invalid OTLP/JSON: JSON at byte 21"},
    {"{\"resourceProfiles\":[{\"scopeProfiles\":[{\"profiles\":[{\"samples\":[{\"stackIndex\":7}]"
     "}]}]}]}",
     "are broken, the first because"},
    {"[{}]", "that are not the protobuf of a profile"},
    {"main;work 10\n", "that are not the protobuf of a profile"},
    {"\x1f\x8b\x08", "gzip"},
    {"\x0a\x05", "that are not the protobuf of a profile"},
    {"\x12\x02\x08\x01", "invalid OTLP profiles"},
    {"\xfa\x01\x01x", "that are not the protobuf of a profile"},
};

static void other_files_are_refused_with_their_name_and_kind(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct profile_file file;
        struct error error = {.text = ""};
        const char *path = temporary_file_with("wrong.pb", slice_of_text(refused[i].bytes));
        assert_false(profile_file_read(&file, path, &error));
        assert_non_null(strstr(error.text, refused[i].error));
        assert_int_equal(strncmp(error.text, path, strlen(path)), 0);
        temporary_clear();
    }
    struct profile_file file;
    struct error error = {.text = ""};
    assert_false(profile_file_read(&file, "/nowhere/cpu.pprof", &error));
    assert_string_equal(error.text, "/nowhere/cpu.pprof: cannot read: No such file or directory");
    assert_false(profile_file_read(&file, "/", &error));
    assert_string_equal(error.text, "/: it is a directory, expected a file");
}

static void the_bytes_tell_the_format_not_the_name(void **state)
{
    (void)state;
    struct profile_file pprof = opened("a.otlp", small_pprof(1, "work"));
    struct profile_file otlp = opened("b.pprof", small_otlp(1, "work"));
    assert_int_equal(pprof.format, FORMAT_PPROF);
    assert_int_equal(otlp.format, FORMAT_OTLP);
    assert_int_equal(otlp.layout, LAYOUT_1_10);
    profile_file_close(&pprof);
    profile_file_close(&otlp);
}

/* Columns, samples and the sum of each column. */
static void check_pprof(struct slice bytes, int64_t scale, size_t samples)
{
    struct arena arena;
    struct pprof pprof;
    struct error error;
    arena_init(&arena, MIB);
    assert_true(pprof_read(&arena, bytes, &pprof, &error));
    assert_int_equal(pprof.sample_types_count, 2);
    assert_int_equal(pprof.samples_count, samples);
    int64_t sums[2] = {0, 0};
    for (size_t i = 0; i < pprof.samples_count; i++)
        for (size_t k = 0; k < 2; k++)
            sums[k] += pprof.samples[i].values[k];
    assert_int_equal(sums[0], 10 * scale);
    assert_int_equal(sums[1], 1000000000 * scale);
    assert_int_equal(pprof.time_ns, 1700000000000000000);
    assert_int_equal(pprof.duration_ns, 2000000000);
    assert_int_equal(pprof.period, 10000000);
    assert_true(slice_equal_text(pprof.strings[pprof.period_type.type], "cpu"));
    assert_int_equal(pprof.mappings_count, 1);
    arena_clear(&arena);
}

static void types_are_columns_again_when_they_come_back_from_otlp(void **state)
{
    struct convert_losses losses;
    struct error error = {.text = ""};
    struct profile_file file = opened("a.otlp", small_otlp(1, "work"));
    struct buffer *bytes = profile_convert_to_pprof(&file, 1, &losses, &error);
    (void)state;
    assert_non_null(bytes);
    check_pprof(buffer_slice(bytes), 1, 3);
    assert_int_equal(losses.zero_samples + losses.negative_samples + losses.resources, 0);
    buffer_unref(bytes);
    profile_file_close(&file);
}

static void equal_samples_of_merged_files_are_added_up(void **state)
{
    struct convert_losses losses;
    struct error error = {.text = ""};
    struct profile_file files[] = {opened("a.pprof", small_pprof(1, "work")),
                                   opened("b.otlp", small_otlp(3, "work")),
                                   opened("c.pprof", small_pprof(2, "toil"))};
    struct buffer *bytes = profile_convert_to_pprof(files, 3, &losses, &error);
    (void)state;
    assert_non_null(bytes);
    check_pprof(buffer_slice(bytes), 6, 4); /* work and toil differ */
    buffer_unref(bytes);
    for (size_t i = 0; i < 3; i++)
        profile_file_close(&files[i]);
}

static void otlp_keeps_the_profiles_of_every_file(void **state)
{
    struct error error = {.text = ""};
    struct profile_file files[] = {opened("a.pprof", small_pprof(1, "work")),
                                   opened("b.otlp", small_otlp(3, "work"))};
    struct buffer *bytes = profile_convert_to_otlp(files, 2, &error);
    (void)state;
    assert_non_null(bytes);
    struct profile_file merged = opened("m.otlp", bytes);
    struct convert_losses losses;
    struct buffer *pprof = profile_convert_to_pprof(&merged, 1, &losses, &error);
    assert_non_null(pprof);
    check_pprof(buffer_slice(pprof), 4, 3);
    buffer_unref(pprof);
    profile_file_close(&merged);
    profile_file_close(&files[0]);
    profile_file_close(&files[1]);
}

static void json_says_the_same_as_protobuf(void **state)
{
    struct convert_losses losses;
    struct error error = {.text = ""};
    struct buffer *request = small_otlp(2, "work");
    struct buffer *json = json_write(otlp_request(PROFILES), buffer_slice(request), NULL);
    buffer_unref(request);
    struct profile_file file = opened("a.pprof", json);
    (void)state;
    assert_int_equal(file.format, FORMAT_OTLP);
    assert_true(file.is_json);
    struct buffer *bytes = profile_convert_to_pprof(&file, 1, &losses, &error);
    assert_non_null(bytes);
    check_pprof(buffer_slice(bytes), 2, 3);
    buffer_unref(bytes);
    profile_file_close(&file);
}

static void a_written_file_replaces_the_old_one_whole(void **state)
{
    struct error error = {.text = ""};
    struct buffer *bytes = small_pprof(1, "work");
    const char *path = temporary_file_with("cpu.pb.gz", slice_of_text("what was there before"));
    char beside[512];
    struct profile_file file;
    (void)state;
    assert_true(profile_file_write_gzip(path, buffer_slice(bytes), &error));
    snprintf(beside, sizeof(beside), "%s.part", path);
    assert_int_not_equal(access(beside, F_OK), 0);
    assert_true(profile_file_read(&file, path, &error));
    assert_true(file.is_compressed);
    assert_true(slice_equal(file.bytes, buffer_slice(bytes)));
    profile_file_close(&file);
    assert_false(profile_file_write("/nowhere/x.pprof", buffer_slice(bytes), &error));
    assert_string_equal(error.text, "/nowhere/x.pprof: cannot write: No such file or directory");
    buffer_unref(bytes);
}

enum { WORDS_MAX = 8 };

static const struct {
    const char *words[WORDS_MAX];
    const char *error; /* NULL: accepted */
} command_lines[] = {
    {{"show", "a.pprof"}, NULL},
    {{"show", "--json", "--top=0", "a.pprof", "--type", "cpu"}, NULL},
    {{"show"}, "profile show: found 0 files, expected: profile show FILE"},
    {{"show", "a", "b"}, "profile show: found 2 files, expected: profile show FILE"},
    {{"show", "a", "--to", "otlp"}, "--to has no meaning for \"profile show\""},
    {{"show", "a", "--top", "many"},
     "--top: found \"many\", expected a number of rows from 0 (all) to 1000000"},
    {{"show", "a", "--top", "-1"},
     "--top: found \"-1\", expected a number of rows from 0 (all) to 1000000"},
    {{"show", "a", "--json=yes"}, "--json takes no value"},
    {{"show", "a", "--top"}, "flag needs an argument: --top"},
    {{"show", "a", "--colour"}, "unknown flag: --colour; \"profile help\" lists them"},
    {{"convert", "a", "b.otlp"}, NULL},
    {{"convert", "a", "b", "--to=pprof"}, NULL},
    {{"convert", "a", "b", "--to=folded"},
     "--to: found \"folded\", expected pprof, otlp or otlp-json"},
    {{"convert", "a", "b.json"}, NULL},
    {{"convert", "a", "b", "--to", "otlp-json"}, NULL},
    {{"convert", "a", "b.txt"},
     "b.txt: the name does not say what to write; add --to pprof, --to otlp or --to otlp-json, or "
     "end it in .pb.gz, .otlp or .json"},
    {{"convert", "a"},
     "profile convert: found 1 files and nothing to write to, expected: profile convert IN OUT"},
    {{"merge", "a", "b", "-o", "c.pb.gz"}, NULL},
    {{"merge", "a", "b"},
     "profile merge: found 2 files and nothing to write to, expected: profile merge A B... -o OUT"},
    {{"diff", "a", "b"}, NULL},
    {{"diff", "a"}, "profile diff: found 1 files, expected: profile diff BEFORE AFTER"},
    {{"draw", "a"},
     "unknown verb \"draw\" for \"profile\": expected show, convert, merge, diff or help"},
};

static void command_lines_are_taken_or_refused_with_what_was_expected(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(command_lines) / sizeof(command_lines[0]); i++) {
        struct profile_arguments parsed;
        struct error error = {.text = ""};
        char *words[WORDS_MAX];
        int count = 0;
        while (count < WORDS_MAX && command_lines[i].words[count] != NULL) {
            words[count] = strdup(command_lines[i].words[count]);
            count++;
        }
        char *kept[WORDS_MAX];
        memcpy(kept, words, sizeof(kept));
        bool is_taken = profile_arguments_parse(&parsed, count, words, &error);
        assert_string_equal(error.text,
                            command_lines[i].error != NULL ? command_lines[i].error : "");
        assert_int_equal(is_taken, command_lines[i].error == NULL);
        for (int k = 0; k < count; k++)
            free(kept[k]);
    }
}

static void output_names_say_what_is_written(void **state)
{
    static const struct {
        const char *name;
        int format; /* -1: it says nothing */
    } names[] = {
        {"a.pprof", FORMAT_PPROF},
        {"a.pb.gz", FORMAT_PPROF},
        {"a.otlp.pb", FORMAT_OTLP},
        {"a.otlp.gz", FORMAT_OTLP},
        {"a.otlp.json", FORMAT_OTLP_JSON},
        {"a.json.gz", FORMAT_OTLP_JSON},
        {"a.pb", -1},
        {".otlp", -1},
        {"otlp", -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        enum profile_format format = PROFILE_FORMATS;
        bool is_known = profile_format_of_name(names[i].name, &format);
        assert_int_equal(is_known ? (int)format : -1, names[i].format);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(other_files_are_refused_with_their_name_and_kind, tear_down),
        cmocka_unit_test_teardown(the_bytes_tell_the_format_not_the_name, tear_down),
        cmocka_unit_test_teardown(types_are_columns_again_when_they_come_back_from_otlp, tear_down),
        cmocka_unit_test_teardown(equal_samples_of_merged_files_are_added_up, tear_down),
        cmocka_unit_test_teardown(otlp_keeps_the_profiles_of_every_file, tear_down),
        cmocka_unit_test_teardown(json_says_the_same_as_protobuf, tear_down),
        cmocka_unit_test_teardown(a_written_file_replaces_the_old_one_whole, tear_down),
        cmocka_unit_test(command_lines_are_taken_or_refused_with_what_was_expected),
        cmocka_unit_test(output_names_say_what_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
