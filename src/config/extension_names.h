/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that name extensions: noted while components are decoded, looked up once it is known which
 * extensions there are and who is used. Main thread, while the configuration is loaded. */
#pragma once

struct component_set;
struct config;
struct config_field;
struct loader;
struct node;
struct site;

/* Notes that the component which is being decoded names an extension. */
void extension_names_note(const struct site *site, const struct config_field *field,
                          const struct node *node, const char *name);
/* Reports what names no listed extension, or one that its field does not accept. Components that
 * nobody uses may name anything, as in Go. */
void extension_names_check(struct loader *loader, const struct component_set *set,
                           const struct config *config);
