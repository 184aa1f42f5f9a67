/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of later versions, at every level of a request. */
#include "src/otlp/unknown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/limits.h"
#include "src/otlp/wire.h"

enum { ROOM = 512, LEVELS_MAX = 6 };

/* A message in a message … by their field numbers, up to 0; in the innermost, one number field. */
static struct slice nested(const uint32_t *path, uint32_t number, uint8_t rooms[2][ROOM])
{
    struct wire_writer writer = wire_writer_of(rooms[0], ROOM);
    struct slice content;
    size_t levels = 0;
    while (path[levels] != 0)
        levels++;
    if (number != 0)
        wire_write_number(&writer, number, 1);
    content = wire_written(&writer);
    for (size_t i = 0; i < levels; i++) {
        writer = wire_writer_of(rooms[(i + 1) % 2], ROOM);
        wire_write_bytes(&writer, path[levels - 1 - i], content);
        content = wire_written(&writer);
    }
    assert_false(writer.has_failed);
    return content;
}

static void one_is_found_wherever_it_stands(void **state)
{
    static const struct {
        uint32_t path[LEVELS_MAX];
        uint32_t known;
    } rows[] = {
        {{0}, 0},
        {{1, 0}, 0},           /* ResourceProfiles */
        {{1, 1, 0}, 2},        /* Resource */
        {{1, 1, 1, 2, 0}, 3},  /* AnyValue of an attribute */
        {{1, 2, 0}, 0},        /* ScopeProfiles */
        {{1, 2, 2, 0}, 3 + 3}, /* Profile */
        {{1, 2, 2, 2, 0}, 1},  /* Sample */
        {{2, 0}, 0},           /* ProfilesDictionary */
        {{2, 2, 3, 0}, 1},     /* Line */
        {{2, 6, 0}, 1},        /* KeyValueAndUnit */
    };
    static const uint32_t later[] = {13, 15, 16, 17, 999, 1 << 28};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t rooms[2][ROOM];
        assert_false(otlp_has_unknown(PROFILES, nested(rows[i].path, rows[i].known, rooms)));
        for (size_t k = 0; k < sizeof(later) / sizeof(later[0]); k++)
            assert_true(otlp_has_unknown(PROFILES, nested(rows[i].path, later[k], rooms)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_is_found_wherever_it_stands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
