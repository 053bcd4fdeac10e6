/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An explanation as JSON: the same from the daemon (Explain on the bus) and from pcptunectl, which
 * decides by itself where none runs. Above policy and tell, which do not know each other.
 */
#pragma once

#include "policy/explain.h"
#include "tell/json.h"

/* One object of "explanations" in doc/json.md. `name`: of the knob, or "trim". */
void explanation_to_json(struct json_out *j, const struct explanation *x, const char *name);
