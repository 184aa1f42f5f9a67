/* SPDX-License-Identifier: Apache-2.0 */
/* Pages for a person who looks at a running service: what it runs, how full its rings and its
 * budget are, what went wrong last. HTML without scripts. */
#pragma once

#include <stdio.h>

#include "src/core/component.h"

struct service;

/* Any thread while the service exists; figures of lanes are a moment's view. */
void status_page_print(const struct service *service, enum status_page page, FILE *out);
