/* SPDX-License-Identifier: Apache-2.0 */
/* Loads configurations with authenticators. */
#include "tests/unit/extensions/auth_fixture.h"

#include "src/base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

extern const struct component_factory basicauth_extension_factory;
extern const struct component_factory bearertokenauth_extension_factory;
extern const struct component_factory headers_setter_extension_factory;
extern const struct component_factory oauth2client_extension_factory;

struct pipe_config {
    const char *authenticator;
};

static const struct config_field pipe_fields[] = {
    CONFIG_EXTENSION(struct pipe_config, authenticator, "authenticator", "authenticator",
                     authenticator_accepts_server, "Authentication of clients."),
    CONFIG_END,
};

static const struct component_factory pipe_receiver = {
    .type = "pipe",
    .kind = RECEIVER,
    .stability = "stable",
    .signals = SIGNAL_TRACES,
    .instance_size = sizeof(struct component),
    .config_size = sizeof(struct pipe_config),
    .fields = pipe_fields,
};

static const struct component_factory pipe_exporter = {
    .type = "pipe",
    .kind = EXPORTER,
    .stability = "stable",
    .signals = SIGNAL_TRACES,
    .instance_size = sizeof(struct component),
    .config_size = 1,
};

static const struct component_factory *const factories[] = {&pipe_receiver,
                                                            &pipe_exporter,
                                                            &basicauth_extension_factory,
                                                            &bearertokenauth_extension_factory,
                                                            &headers_setter_extension_factory,
                                                            &oauth2client_extension_factory,
                                                            NULL};

/* One extension of a configuration, and an instance of it. */
struct config *config;
struct authenticator *authenticator;
char problem[1024];

static const struct config_component *find_extension(const struct service_view *view,
                                                     const char *id)
{
    (void)view;
    for (size_t i = 0; i < config->extensions_count; i++)
        if (strcmp(config->extensions[i]->id, id) == 0)
            return config->extensions[i];
    return NULL;
}

const struct service_view service = {.extension = find_extension};

bool load_text(const char *text)
{
    struct config_problems problems = {0};
    const char *locations[] = {text};
    config = config_load(&(struct config_request){.locations = locations,
                                                  .locations_count = 1,
                                                  .factories = factories},
                         &problems);
    problem[0] = '\0';
    if (problems.count > 0)
        snprintf(problem, sizeof(problem), "%s", problems.texts[0]);
    config_problems_clear(&problems);
    return config != NULL;
}

bool load_extensions(const char *extensions, const char *ids)
{
    char text[8192];
    snprintf(text, sizeof(text),
             "yaml:\nextensions: %s\nreceivers: {pipe: }\nexporters: {pipe: }\n"
             "service: {extensions: [%s], pipelines: {traces: {receivers: [pipe], exporters: "
             "[pipe]}}}\n",
             extensions, ids);
    return load_text(text);
}

bool load(const char *type, const char *yaml)
{
    char extensions[4096];
    snprintf(extensions, sizeof(extensions), "\n  %s: %s", type, yaml);
    return load_extensions(extensions, type);
}

void open_loaded(const char *id, struct lane *lane, enum auth_side side)
{
    static struct component user;
    struct error error;
    user = (struct component){.id = "user", .service = &service, .lane = lane};
    authenticator = authenticator_create(&user, id, side, &error);
    if (authenticator == NULL)
        fail_msg("%s", error.text);
}

void open_authenticator(const char *type, const char *yaml, enum auth_side side)
{
    if (!load(type, yaml))
        fail_msg("%s", problem);
    open_loaded(type, NULL, side);
}

void close_authenticator(void)
{
    authenticator_destroy(authenticator);
    authenticator = NULL;
    config_destroy(config);
    config = NULL;
}
