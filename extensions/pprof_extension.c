/* SPDX-License-Identifier: Apache-2.0 */
/* pprof: the daemon's own heap profile at /debug/pprof/heap, for `go tool pprof`. The allocator
 * samples only when the process was started with MALLOC_CONF=prof:true; else the response says so.
 * Runs on lane 0. */
#include "src/base/buffer.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/base/mem_stats.h"
#include "src/config/field.h"
#include "src/listen/http_responder.h"
#include "src/net/server/http_server.h"
#include "src/profiles/otlp/profile_bounds.h"
#include "src/profiles/pprof/heap_profile.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct pprof_extension_config {
    struct http_server_config server;
};

#define OWNER struct pprof_extension_config
static const struct config_field pprof_extension_fields[] = {
    HTTP_RESPONDER_ROWS(OWNER, server, "localhost:1777", "true"),
    CONFIG_IGNORED_INT("block_profile_fraction", "There is no profile of blocking."),
    CONFIG_IGNORED_INT("mutex_profile_fraction", "There is no profile of mutexes."),
    CONFIG_IGNORED_TEXT("save_to_file", "There is no CPU profile to save; see /debug/pprof/heap."),
    CONFIG_END,
};
#undef OWNER

static const char index_page[] =
    "heap      what is in use, by the stack that allocated it (pprof; ?debug=1: jemalloc's text)\n"
    "cmdline   how the process was started\n"
    "\n"
    "go tool pprof http://HOST:PORT/debug/pprof/heap\n"
    "The heap is sampled only when the process is started with MALLOC_CONF=prof:true.\n";
static const char off_page[] =
    "The allocator does not sample: start the process with MALLOC_CONF=prof:true in its "
    "environment (release builds only; sanitizers have an allocator of their own).\n";
static const char other_page[] =
    "404 page not found; the pages are /debug/pprof/, /debug/pprof/heap and /debug/pprof/cmdline\n";

static void respond(struct component *base, struct http_request *request)
{
    struct slice path = http_request_path(request);
    if (slice_equal_text(path, "/debug/pprof/cmdline")) {
        /* Arguments with a NUL between them, as Go's handler prints them. */
        char command[COMMAND_BYTES_MAX];
        size_t bytes = http_responder_read_command(command);
        http_responder_respond_body(base, request, 200, "text/plain; charset=utf-8",
                                    slice_of(command, bytes > 0 ? bytes - 1 : 0));
        return;
    }
    if (!slice_equal_text(path, "/debug/pprof/heap")) {
        bool is_index = slice_equal_text(path, "/debug/pprof/");
        http_responder_respond_text(base, request, is_index ? 200 : 404,
                                    is_index ? index_page : other_page);
        return;
    }
    /* The allocator can dump only to a file; this one is in memory. */
    int fd = memfd_create("heap-profile", MFD_CLOEXEC);
    char file[64];
    char *text = NULL;
    size_t size = 0;
    snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
    bool has_dump = fd >= 0 && mem_stats_dump_profile(file) &&
                    file_read_whole(file, PROFILE_FILE_BYTES_MAX, &text, &size) == 0;
    if (fd >= 0)
        close(fd);
    if (!has_dump) {
        http_responder_respond_text(base, request, 501, off_page);
    } else if (slice_equal_text(http_request_query(request), "debug=1")) {
        http_responder_respond_body(base, request, 200, "text/plain; charset=utf-8",
                                    slice_of(text, size));
    } else {
        struct error error;
        struct buffer *profile =
            heap_profile_to_pprof(slice_of(text, size), clock_wall_ns(), &error);
        if (profile == NULL)
            http_responder_respond_text(base, request, 500, error.text);
        else
            http_responder_respond_body(base, request, 200, "application/octet-stream",
                                        buffer_slice(profile));
        buffer_unref(profile);
    }
    mem_free(text);
}

static bool pprof_extension_check(const void *config, struct error *error)
{
    const struct pprof_extension_config *self = config;
    return http_responder_check(&self->server, "localhost:1777", error);
}

static bool pprof_extension_create(struct component *base, struct error *error)
{
    const struct pprof_extension_config *config = base->config;
    return http_responder_prepare(base, &config->server, respond, "Starting net/http/pprof server",
                                  error);
}

const struct component_factory pprof_extension_factory = {
    .type = "pprof",
    .kind = EXTENSION,
    .stability = "beta",
    .instance_size = sizeof(struct http_responder),
    .config_size = sizeof(struct pprof_extension_config),
    .fields = pprof_extension_fields,
    .check = pprof_extension_check,
    .create = pprof_extension_create,
    .start = http_responder_start,
    .stop = http_responder_stop,
    .destroy = http_responder_destroy,
};
