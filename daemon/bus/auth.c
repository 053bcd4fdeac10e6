/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may change something: root on the private socket, whom polkit allows on the system bus. */
#include "bus-internal.h"

#include <errno.h>

/* Somebody may have to type a password. */
#define POLKIT_LIMIT_USEC (2 * USEC_PER_MINUTE)
#define ASKED_MAX         16U
#define ALLOW_INTERACTION 1U /* of CheckAuthorization's flags */

struct bus_auth {
	struct bus_auth *next;
	struct bus *b;
	sd_bus_message *message;
	sd_bus_slot *slot;
	int (*run)(struct bus *b, sd_bus_message *message);
};

static void auth_free(struct bus_auth *a)
{
	struct bus_auth **at = &a->b->asked;

	while (*at && *at != a)
		at = &(*at)->next;
	if (*at)
		*at = a->next;
	sd_bus_slot_unref(a->slot);
	sd_bus_message_unref(a->message);
	free(a);
}

void bus_auth_forget(struct bus *b, sd_bus *connection)
{
	struct bus_auth *next;

	for (struct bus_auth *a = b->asked; a; a = next) {
		next = a->next;
		if (!connection || sd_bus_message_get_bus(a->message) == connection)
			auth_free(a);
	}
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
	const sd_bus_error *failed = sd_bus_message_get_error(reply);
	struct bus_auth *a = userdata;
	int yes = 0, challenge = 0;

	(void)error;
	if (!failed && sd_bus_message_enter_container(reply, 'r', "bba{ss}") > 0)
		(void)sd_bus_message_read(reply, "bb", &yes, &challenge);
	if (!failed && yes)
		(void)a->run(a->b, a->message);
	else if (failed && (sd_bus_error_has_name(failed, SD_BUS_ERROR_SERVICE_UNKNOWN) ||
			    sd_bus_error_has_name(failed, SD_BUS_ERROR_NAME_HAS_NO_OWNER)))
		(void)sd_bus_reply_method_errorf(
			a->message, SD_BUS_ERROR_ACCESS_DENIED,
			"there is no polkit here to ask whether you may: be root, as with sudo");
	else
		(void)sd_bus_reply_method_errorf(
			a->message,
			challenge ? SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED
				  : SD_BUS_ERROR_ACCESS_DENIED,
			"you may not do this: be root, as with sudo, or authenticate%s%s",
			failed && failed->message ? ": " : "",
			failed && failed->message ? failed->message : "");
	auth_free(a);
	return 0;
}

static int ask(struct bus_auth *a, const char *action)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	int interactive = sd_bus_message_get_allow_interactive_authorization(a->message);
	sd_bus *system = a->b->system;
	int r;

	r = sd_bus_message_new_method_call(system, &call, "org.freedesktop.PolicyKit1",
					   "/org/freedesktop/PolicyKit1/Authority",
					   "org.freedesktop.PolicyKit1.Authority",
					   "CheckAuthorization");
	if (r >= 0)
		r = sd_bus_message_append(call, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name",
					  "s", sd_bus_message_get_sender(a->message), action, 0,
					  interactive > 0 ? ALLOW_INTERACTION : 0U, "");
	if (r >= 0)
		r = sd_bus_call_async(system, &a->slot, call, on_answer, a, POLKIT_LIMIT_USEC);
	return r;
}

int bus_authorize(struct bus *b, sd_bus_message *message, const char *action,
		  int (*run)(struct bus *b, sd_bus_message *message), sd_bus_error *error)
{
	struct bus_auth *a;
	size_t n = 0;
	uid_t uid;
	int r;

	if (bus_private_uid(b, sd_bus_message_get_bus(message), &uid))
		return uid == 0 ? run(b, message)
				: sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED,
						   "only root may do this here: use sudo");
	for (a = b->asked; a; a = a->next)
		n++;
	if (n >= ASKED_MAX)
		return sd_bus_error_set(error, SD_BUS_ERROR_LIMITS_EXCEEDED,
					"too many wait for an authorization: try again");
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->b = b;
	a->message = sd_bus_message_ref(message);
	a->run = run;
	a->next = b->asked;
	b->asked = a;
	r = ask(a, action);
	if (r < 0) {
		auth_free(a);
		return r;
	}
	return 1; /* answered later */
}
