/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: their texts, read from files or given in place, and read again later. Files are read
 * where a connection begins, on the lane: they are small, local, and looked at rarely. One lane's.
 */
#include "src/net/tls/tls_context.h"

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/config/shared/tls_config.h"
#include "src/net/tls/tls_context_state.h"

#include <assert.h>
#include <string.h>

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static void free_text(char **text)
{
    assert(text != NULL);
    if (*text != NULL)
        explicit_bzero(*text, strlen(*text));
    mem_free(*text);
    *text = NULL;
}

static bool same(const char *a, const char *b)
{
    assert(a != NULL && b != NULL);
    return strcmp(a, b) == 0;
}

/* The text of a file or, without one, of a key in place; *ret_text is NULL when there is neither.
 */
static bool read_text(const char *key, const char *file, const char *pem, char **ret_text,
                      struct error *error)
{
    assert(ret_text != NULL);
    size_t size;
    *ret_text = NULL;
    if (is_set(pem))
        *ret_text = mem_copy_text(pem);
    if (!is_set(file))
        return true;
    int result = file_read_whole(file, TLS_FILE_BYTES_MAX, ret_text, &size);
    if (result == 0)
        return true;
    *ret_text = NULL;
    return error_set(error, "tls::%s: cannot read %s: %s", key, file, strerror(-result));
}

static bool read_pair(const struct tls_context *context, struct tls_texts *texts,
                      struct error *error)
{
    const struct tls_config *config = context->config;
    assert(texts->certificate == NULL && texts->key == NULL);
    if (!read_text("cert_file", config->cert_file, config->cert_pem, &texts->certificate, error))
        return false;
    if (read_text("key_file", config->key_file, config->key_pem, &texts->key, error))
        return true;
    free_text(&texts->certificate);
    return false;
}

static bool read_authorities(const struct tls_context *context, char **ret_text,
                             struct error *error)
{
    const struct tls_config *config = context->config;
    assert(ret_text != NULL);
    if (context->is_server)
        return read_text("client_ca_file", context->client_ca_file, NULL, ret_text, error);
    return read_text("ca_file", config->ca_file, config->ca_pem, ret_text, error);
}

static void fini_texts(struct tls_texts *texts)
{
    free_text(&texts->certificate);
    free_text(&texts->key);
    free_text(&texts->authorities);
}

/* Begins with these texts from now on, or goes on with the old ones. */
static bool adopt(struct tls_context *context, const struct tls_texts *texts, struct error *error)
{
    SSL_CTX *ssl = tls_context_build(context, texts, error);
    if (ssl == NULL)
        return false;
    assert(context->library != NULL);
    context->library->SSL_CTX_free(context->ssl);
    context->ssl = ssl;
    return true;
}

static void report(const struct tls_context *context, const struct error *error)
{
    assert(context->ssl != NULL);
    if (context->settings.on_reload != NULL)
        context->settings.on_reload(context->settings.arg, error);
}

/* What is wrong now may be half-written: it is looked at again soon. */
static uint64_t next_look(uint64_t interval_ns, bool is_fine)
{
    assert(interval_ns > 0);
    uint64_t delay_ns =
        is_fine || interval_ns < TLS_CLIENT_CA_LOOK_NS ? interval_ns : TLS_CLIENT_CA_LOOK_NS;
    return clock_now_ns() + delay_ns;
}

static void refresh_pair(struct tls_context *context)
{
    struct error error;
    struct tls_texts fresh = {.authorities = context->texts.authorities};
    bool is_fine = read_pair(context, &fresh, &error);
    bool is_new = is_fine && (!same(fresh.certificate, context->texts.certificate) ||
                              !same(fresh.key, context->texts.key));
    if (is_new)
        is_fine = adopt(context, &fresh, &error);
    if (is_new && is_fine) {
        struct tls_texts old = context->texts;
        context->texts = fresh;
        fresh = old;
    }
    free_text(&fresh.certificate);
    free_text(&fresh.key);
    context->pair_due_ns = next_look(context->config->reload_interval_ns, is_fine);
    if (is_new || !is_fine)
        report(context, is_fine ? NULL : &error);
}

static void refresh_client_ca(struct tls_context *context)
{
    struct error error;
    struct tls_texts fresh = context->texts;
    bool is_fine = read_authorities(context, &fresh.authorities, &error);
    bool is_new = is_fine && !same(fresh.authorities, context->texts.authorities);
    if (is_new)
        is_fine = adopt(context, &fresh, &error);
    if (is_new && is_fine) {
        char *old = context->texts.authorities;
        context->texts.authorities = fresh.authorities;
        fresh.authorities = old;
    }
    free_text(&fresh.authorities);
    context->client_ca_due_ns = clock_now_ns() + TLS_CLIENT_CA_LOOK_NS;
    if (is_new || !is_fine)
        report(context, is_fine ? NULL : &error);
}

void tls_context_refresh(struct tls_context *context)
{
    assert(context->ssl != NULL);
    uint64_t now_ns = clock_now_ns();
    if (now_ns >= context->pair_due_ns)
        refresh_pair(context);
    if (now_ns >= context->client_ca_due_ns)
        refresh_client_ca(context);
}

static void set_due_times(struct tls_context *context)
{
    const struct tls_config *config = context->config;
    uint64_t now_ns = clock_now_ns();
    bool rereads = config->reload_interval_ns > 0 &&
                   config->reload_interval_ns < UINT64_MAX - now_ns &&
                   context->texts.certificate != NULL;
    assert(context->texts.authorities != NULL || !is_set(context->client_ca_file));
    context->pair_due_ns = rereads ? now_ns + config->reload_interval_ns : UINT64_MAX;
    context->client_ca_due_ns = context->reloads_client_ca && is_set(context->client_ca_file)
                                    ? now_ns + TLS_CLIENT_CA_LOOK_NS
                                    : UINT64_MAX;
}

/* On success context has become the heap's. */
static struct tls_context *create(const struct tls_context *settings, struct error *error)
{
    assert(error != NULL);
    assert(settings->config != NULL);
    struct tls_context *context = mem_copy(settings, sizeof(*settings));
    context->library = tls_library_load(error);
    if (context->library == NULL || !read_pair(context, &context->texts, error) ||
        !read_authorities(context, &context->texts.authorities, error) ||
        !adopt(context, &context->texts, error)) {
        tls_context_destroy(context);
        return NULL;
    }
    set_due_times(context);
    return context;
}

struct tls_context *tls_context_create_server(const struct tls_server_config *config,
                                              const struct tls_context_settings *settings,
                                              struct error *error)
{
    assert(config != NULL);
    /* As in Go, it is read although it has no effect. */
    if (!tls_config_check_file("ca_file", config->common.ca_file, error))
        return NULL;
    return create(&(struct tls_context){.settings = *settings,
                                        .config = &config->common,
                                        .is_server = true,
                                        .client_ca_file = config->client_ca_file,
                                        .reloads_client_ca = config->client_ca_file_reload},
                  error);
}

struct tls_context *tls_context_create_client(const struct tls_client_config *config,
                                              const struct tls_context_settings *settings,
                                              struct error *error)
{
    assert(config != NULL);
    return create(&(struct tls_context){.settings = *settings,
                                        .config = &config->common,
                                        .skips_verify = config->insecure_skip_verify,
                                        .server_name_override = config->server_name_override},
                  error);
}

void tls_context_handshake_failed(const struct tls_context *context, const char *peer,
                                  const char *reason)
{
    assert(context->is_server);
    assert(reason != NULL);
    if (context->settings.on_handshake_failed != NULL)
        context->settings.on_handshake_failed(context->settings.arg, peer, reason);
}

void tls_context_destroy(struct tls_context *context)
{
    if (context == NULL)
        return;
    if (context->ssl != NULL)
        context->library->SSL_CTX_free(context->ssl);
    fini_texts(&context->texts);
    assert(context->texts.key == NULL);
    mem_free(context);
}
