/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of this folder's files, each ended by a row without a name. Constants. */
#pragma once

#include "src/ottl/ottl_function.h"

extern const struct ottl_function ottl_map_functions[];
extern const struct ottl_function ottl_metric_functions[];
extern const struct ottl_function ottl_metric_form_functions[];
extern const struct ottl_function ottl_metric_value_functions[];
extern const struct ottl_function ottl_aggregate_functions[];
extern const struct ottl_function ottl_percentile_functions[];
extern const struct ottl_function ottl_log_functions[];
extern const struct ottl_function ottl_string_functions[];
extern const struct ottl_function ottl_type_functions[];
extern const struct ottl_function ottl_span_functions[];
extern const struct ottl_function ottl_replace_functions[];
extern const struct ottl_function ottl_flatten_functions[];
extern const struct ottl_function ottl_list_functions[];
extern const struct ottl_function ottl_json_functions[];
extern const struct ottl_function ottl_csv_functions[];
extern const struct ottl_function ottl_parse_functions[];
extern const struct ottl_function ottl_hash_functions[];
extern const struct ottl_function ottl_id_functions[];
extern const struct ottl_function ottl_encoding_functions[];
extern const struct ottl_function ottl_semconv_functions[];
extern const struct ottl_function ottl_time_functions[];
extern const struct ottl_function ottl_network_functions[];
extern const struct ottl_function ottl_url_functions[];
extern const struct ottl_function ottl_route_functions[];
extern const struct ottl_function ottl_format_functions[];
extern const struct ottl_function ottl_unsupported_functions[];
