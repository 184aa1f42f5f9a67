/* SPDX-License-Identifier: Apache-2.0 */
/* Any string as a pattern, with any bytes behind its zero byte as the path. A path matches itself
 * with everything special escaped, and ** matches everything. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/follow/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *pattern, const char *path)
{
    const char *reason;
    struct glob *glob = glob_create(pattern, false, &reason);
    assert((glob == NULL) == (reason != NULL));
    if (glob != NULL)
        (void)glob_match(glob, path);
    glob_destroy(glob);
    glob = glob_create(pattern, true, &reason);
    glob_destroy(glob);
}

static void check_escaped(const char *path)
{
    const char *reason;
    char *escaped = malloc(2 * strlen(path) + 1);
    char *to = escaped;
    for (const char *from = path; *from != '\0'; from++) {
        if (strchr("*?[]{}\\,!", *from) != NULL)
            *to++ = '\\';
        *to++ = *from;
    }
    *to = '\0';
    struct glob *glob = glob_create(escaped, false, &reason);
    assert(glob != NULL || strlen(escaped) >= GLOB_PATTERN_BYTES_MAX);
    assert(glob == NULL || glob_match(glob, path));
    glob_destroy(glob);
    glob = glob_create("**", false, &reason);
    assert(glob_match(glob, path));
    glob_destroy(glob);
    free(escaped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 2);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = text[size + 1] = '\0';
    const char *path = text + strlen(text) + 1;
    if (path > text + size)
        path = text;
    check(text, path);
    check_escaped(path);
    free(text);
    return 0;
}
