/* SPDX-License-Identifier: Apache-2.0 */
/* Go's own reader and ours read the same from real profiles and from our copies of them. Needs the
 * peer pprof (tests/peers); without it everything is skipped. */
#include "src/base/arena.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/profiles/pprof/pprof_reader.h"
#include "src/profiles/pprof/pprof_writer.h"
#include "tests/support/pprof_copy.h"
#include "tests/unit/profiles/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARENA_BYTES_MAX = 16 << 20, TEXT_BYTES_MAX = 1 << 20, SKIPPED = 77 };

static char peer[1024];

/* What the peer says of these bytes; allocated. */
static char *described_by_go(struct slice bytes)
{
    char path[] = "/tmp/spanflame-pprof-XXXXXX";
    char command[2048];
    char *text = mem_zalloc(TEXT_BYTES_MAX);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.data, bytes.size), (ssize_t)bytes.size);
    close(fd);
    snprintf(command, sizeof(command), "'%s' describe '%s' 2>&1", peer, path);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    size_t size = fread(text, 1, TEXT_BYTES_MAX - 1, output);
    assert_true(size > 0);
    assert_int_equal(pclose(output), 0);
    unlink(path);
    return text;
}

static void check_copy(const struct pprof *pprof, const char *expected)
{
    struct pprof_writer writer;
    pprof_writer_init(&writer, NULL, 1 << 30);
    pprof_copy(&writer, pprof);
    struct buffer *output = pprof_writer_take(&writer);
    assert_non_null(output);
    char *theirs = described_by_go(buffer_slice(output));
    assert_string_equal(theirs, expected);
    mem_free(theirs);
    buffer_unref(output);
    pprof_writer_fini(&writer);
}

static void go_tells_the_same_of_every_profile(void **state)
{
    static const char *const files[] = {"cpu.pb", "heap.pb.gz", "goroutine.pb.gz"};
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct slice bytes = corpus_file(files[i]);
        struct pprof pprof;
        struct arena arena;
        struct error error = {.text = ""};
        arena_init(&arena, ARENA_BYTES_MAX);
        assert_true(pprof_read(&arena, bytes, &pprof, &error));
        char *ours = pprof_described(&pprof);
        char *theirs = described_by_go(bytes);
        assert_string_equal(ours, theirs);
        check_copy(&pprof, theirs);
        mem_free(ours);
        mem_free(theirs);
        arena_clear(&arena);
        mem_free((void *)(uintptr_t)bytes.data);
    }
}

int main(void)
{
    const char *peers = getenv("SPANFLAME_PEERS");
    snprintf(peer, sizeof(peer), "%s/pprof/pprof", peers != NULL ? peers : ".");
    if (access(peer, X_OK) != 0) {
        printf("SKIPPED: the peer pprof is not built: %s\n", peer);
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(go_tells_the_same_of_every_profile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
