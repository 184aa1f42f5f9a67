/* SPDX-License-Identifier: Apache-2.0 */
/* Pages about a running service: what it runs, how full its rings and budget are, recent warnings.
 * HTML without scripts. */
#pragma once

#include <stdio.h>

#include "src/core/component.h"

struct service;

/* Any thread while the service exists; figures of lanes are snapshots. */
void status_page_print(const struct service *service, enum status_page page, FILE *out);
