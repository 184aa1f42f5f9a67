/* SPDX-License-Identifier: Apache-2.0 */
/* Option table and rules of the pyroscope receiver. Constants and pure functions; the main thread
 * runs them while it loads the configuration. */
#include "receivers/pyroscope/pyroscope_config.h"

#include <assert.h>

enum { BODY_BYTES_DEFAULT = 20971520 };

static const struct config_field limits_fields[] = {
    CONFIG_COUNT(struct upload_limits, label_names, "max_label_names_per_series", "30", 0, 128,
                 "Most labels of a series, with those that its samples add."),
    CONFIG_COUNT(struct upload_limits, label_name_bytes, "max_label_name_length", "1024", 0, 1024,
                 "Most bytes of a label's name."),
    CONFIG_COUNT(struct upload_limits, label_value_bytes, "max_label_value_length", "2048", 0,
                 65535, "Most bytes of a label's value."),
    CONFIG_COUNT(struct upload_limits, sample_labels, "max_profile_stacktrace_sample_labels", "100",
                 0, 128, "Most labels of a sample."),
    CONFIG_DURATION(struct upload_limits, older_than_ns, "reject_older_than", "1h", 0, INT64_MAX,
                    "How old a profile may be."),
    CONFIG_DURATION(struct upload_limits, newer_than_ns, "reject_newer_than", "10m", 0, INT64_MAX,
                    "How far in the future it may be."),
    CONFIG_END,
};

const struct config_field pyroscope_receiver_fields[] = {
    SERVER_ROWS(struct pyroscope_receiver_config, server.listen, "localhost:4040"),
    HTTP_SERVER_ROWS(struct pyroscope_receiver_config, server, "20971520", "true"),
    CONFIG_SECTION(struct pyroscope_receiver_config, limits, struct upload_limits, "limits",
                   limits_fields, NULL,
                   "What is refused, so that its sender hears of it: names and defaults are "
                   "those of the server's own limits; 0: no limit."),
    CONFIG_END,
};

bool pyroscope_receiver_config_check(const void *section, struct error *error)
{
    assert(section != NULL);
    const struct pyroscope_receiver_config *config = section;
    return http_server_config_check(&config->server, error);
}

uint64_t pyroscope_receiver_bytes_max(const struct pyroscope_receiver_config *config)
{
    assert(config != NULL);
    return http_server_config_body_max(&config->server, BODY_BYTES_DEFAULT);
}
