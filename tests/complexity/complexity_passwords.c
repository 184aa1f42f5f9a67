/* SPDX-License-Identifier: Apache-2.0 */
/* Files of users and passwords, which are read again when they change. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "extensions/htpasswd.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "tests/complexity/work.h"

enum { LINE_BYTES = 20 };

static void run_load(struct slice input)
{
    struct error error;
    struct htpasswd *htpasswd = htpasswd_create(&error);
    assert(htpasswd != NULL);
    work_begin();
    bool is_fine = htpasswd_check(input, &error);
    htpasswd_add(htpasswd, input);
    work_end();
    assert(is_fine && htpasswd_users(htpasswd) > 0);
    htpasswd_destroy(htpasswd);
}

static struct slice lines(size_t n, size_t users)
{
    char *text = mem_zalloc(n * LINE_BYTES + 1);
    for (size_t i = 0; i < n; i++)
        snprintf(text + i * LINE_BYTES, LINE_BYTES + 1, "user%06zu:password\n",
                 i % users % 1000000);
    return slice_of((const uint8_t *)text, n * LINE_BYTES);
}

static struct slice users(size_t n)
{
    return lines(n, n);
}

static struct slice the_same_user(size_t n)
{
    return lines(n, 1);
}

int main(int argc, char **argv)
{
    static const struct work_stage stages[] = {
        {.name = "load users", .run = run_load, .per_byte_max = 25},
    };
    static const struct work_shape shapes[] = {
        {"users", users},
        {"the same user again and again", the_same_user},
    };
    return work_check(stages, 1, shapes, sizeof(shapes) / sizeof(shapes[0]), argc, argv) > 0;
}
