/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of all files. Constants. */
#include "src/ottl/functions/tables.h"

#include <stddef.h>

const struct ottl_function *const ottl_function_tables[] = {
    ottl_map_functions,         ottl_metric_functions,       ottl_string_functions,
    ottl_type_functions,        ottl_span_functions,         ottl_replace_functions,
    ottl_flatten_functions,     ottl_list_functions,         ottl_json_functions,
    ottl_csv_functions,         ottl_parse_functions,        ottl_hash_functions,
    ottl_id_functions,          ottl_encoding_functions,     ottl_semconv_functions,
    ottl_time_functions,        ottl_network_functions,      ottl_url_functions,
    ottl_route_functions,       ottl_format_functions,       ottl_unsupported_functions,
    ottl_metric_form_functions, ottl_metric_value_functions, ottl_aggregate_functions,
    ottl_percentile_functions,  ottl_log_functions,          NULL,
};
