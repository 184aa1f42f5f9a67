/* SPDX-License-Identifier: Apache-2.0 */
/* The contexts metric, datapoint and exemplar. Constants. */
#pragma once

#include "src/ottl/ottl_context.h"

struct ottl_record;

extern const struct ottl_context_type ottl_metric_type;
extern const struct ottl_context_type ottl_data_point_type;
extern const struct ottl_context_type ottl_exemplar_type;
extern const struct ottl_context_type ottl_metric_data_type;

/* The data that a field of Metric has; OTTL_NO_DATA: another field. */
enum ottl_metric_data ottl_metric_data_of(uint32_t field);
/* The field that repeats KeyValues in the data points of such data; 0: there are none. */
uint8_t ottl_data_point_attributes(enum ottl_metric_data kind);
/* The field that repeats exemplars in such data points; 0: they have none. */
unsigned ottl_data_point_exemplars(enum ottl_metric_data kind);
/* Begins with a data point of a metric with such data. */
void ottl_data_point_set_kind(struct ottl_record *record, enum ottl_metric_data kind);
