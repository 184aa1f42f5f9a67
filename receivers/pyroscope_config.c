/* SPDX-License-Identifier: Apache-2.0 */
/* Option table and rules of the pyroscope receiver. Constants and pure functions; the main thread
 * runs them while it loads the configuration. */
#include "receivers/pyroscope_config.h"

#include <assert.h>

enum { BODY_BYTES_DEFAULT = 20971520 };

const struct config_field pyroscope_receiver_fields[] = {
    LISTEN_ROWS(struct pyroscope_receiver_config, server.listen, "localhost:4040"),
    HTTP_LISTEN_ROWS(struct pyroscope_receiver_config, server, "20971520"),
    CONFIG_END,
};

bool pyroscope_receiver_config_check(const void *section, struct error *error)
{
    assert(section != NULL);
    const struct pyroscope_receiver_config *config = section;
    return http_listen_config_check(&config->server, error);
}

uint64_t pyroscope_receiver_bytes_max(const struct pyroscope_receiver_config *config)
{
    assert(config != NULL);
    int64_t bytes = config->server.body_bytes_max;
    return bytes > 0 ? (uint64_t)bytes : BODY_BYTES_DEFAULT;
}
