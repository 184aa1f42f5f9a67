/* SPDX-License-Identifier: Apache-2.0 */
/* What a flame graph's SVG carries beside its frames. Constants. */
#pragma once

/* Styles and script, as elements of the SVG; neither refers to anything outside of it. */
extern const char flamegraph_head[];
