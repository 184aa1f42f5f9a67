/* SPDX-License-Identifier: Apache-2.0 */
/* Logs and counts failed handshakes and reloads. On the lane of the component's instance. */
#include "src/listen/server_tls_context.h"

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/listen/server_config.h"
#include "src/net/tls/tls_context.h"

#include <assert.h>
#include <stddef.h>

static void on_reload(void *arg, const struct error *error)
{
    struct server_tls_context *tls = arg;
    if (error == NULL) {
        log_info(tls->logger, "TLS certificates were reloaded");
        return;
    }
    if (tls->counters != NULL)
        counter_add(&tls->counters->reloads_failed, 1);
    log_error(tls->logger, "The changed TLS certificates cannot be used; the old ones stay in use",
              log_text("error", error->text));
}

static void on_handshake_failed(void *arg, const char *peer, const char *reason)
{
    struct server_tls_context *tls = arg;
    if (tls->counters != NULL)
        counter_add(&tls->counters->handshakes_failed, 1);
    log_warn(tls->logger, "TLS handshake failed", log_text("peer", peer),
             log_text("error", reason));
}

bool server_tls_context_init(struct server_tls_context *tls, const struct server_config *config,
                             bool has_http1, struct error *error)
{
    static const char *const protocols[] = {"h2", "http/1.1", NULL};
    static const char *const http2_only[] = {"h2", NULL};
    assert(tls->context == NULL);
    if (!config->has_tls)
        return true;
    const struct tls_context_settings settings = {.protocols = has_http1 ? protocols : http2_only,
                                                  .on_reload = on_reload,
                                                  .on_handshake_failed = on_handshake_failed,
                                                  .arg = tls};
    tls->context = tls_context_create_server(&config->tls, &settings, error);
    return tls->context != NULL;
}

void server_tls_context_fini(struct server_tls_context *tls)
{
    tls_context_destroy(tls->context);
    tls->context = NULL;
}
