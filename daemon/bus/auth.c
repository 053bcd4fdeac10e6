/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may change something: root on the private socket, whom polkit allows on the system bus. */
#include "bus-internal.h"

#include <errno.h>
#include <inttypes.h>

/* Somebody may have to type a password. */
#define POLKIT_LIMIT_USEC (2 * USEC_PER_MINUTE)
#define ASKED_MAX         16U
/* Of one name on the bus: questions that wait for a person must leave room for others. */
#define ASKED_OF_ONE      4U
#define POLKIT            "org.freedesktop.PolicyKit1"
#define POLKIT_PATH       "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_AUTHORITY  POLKIT ".Authority"
#define ALLOW_INTERACTION 1U /* of CheckAuthorization's flags */

struct bus_auth {
	struct bus_auth *next;
	struct bus *b;
	sd_bus_message *message;
	sd_bus_slot *slot, *departure;
	/* "" where polkit has no open question of ours */
	char cancellation[48];
	int (*run)(struct bus *b, sd_bus_message *message);
};

static void auth_free(struct bus_auth *a)
{
	struct bus_auth **at = &a->b->asked;

	while (*at && *at != a)
		at = &(*at)->next;
	if (*at)
		*at = a->next;
	/* a dialog that nobody waits for any more goes away */
	if (a->cancellation[0])
		(void)sd_bus_call_method_async(sd_bus_message_get_bus(a->message), NULL, POLKIT,
					       POLKIT_PATH, POLKIT_AUTHORITY,
					       "CancelCheckAuthorization", NULL, NULL, "s",
					       a->cancellation);
	sd_bus_slot_unref(a->slot);
	sd_bus_slot_unref(a->departure);
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

/* Who asked has left the bus. */
static int on_departure(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
	const char *name, *old, *new;

	(void)error;
	if (sd_bus_message_read(message, "sss", &name, &old, &new) >= 0 && !new[0])
		auth_free(userdata);
	return 0;
}

static int watch_departure(struct bus_auth *a)
{
	char match[320];

	(void)snprintf(match, sizeof(match),
		       "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
		       "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='%s'",
		       sd_bus_message_get_sender(a->message));
	return sd_bus_add_match_async(a->b->system, &a->departure, match, on_departure, NULL, a);
}

static int ask(struct bus_auth *a, const char *action)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	int interactive = sd_bus_message_get_allow_interactive_authorization(a->message);
	char cancellation[sizeof(a->cancellation)];
	sd_bus *system = a->b->system;
	uint64_t cookie = 0;
	int r;

	/* unique among our open questions, and not used again soon */
	(void)sd_bus_message_get_cookie(a->message, &cookie);
	(void)snprintf(cancellation, sizeof(cancellation), "pcptune-%" PRIxPTR "-%" PRIx64,
		       (uintptr_t)a, cookie);
	r = watch_departure(a);
	if (r >= 0)
		r = sd_bus_message_new_method_call(system, &call, POLKIT, POLKIT_PATH,
						   POLKIT_AUTHORITY, "CheckAuthorization");
	if (r >= 0)
		r = sd_bus_message_append(call, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name",
					  "s", sd_bus_message_get_sender(a->message), action, 0,
					  interactive > 0 ? ALLOW_INTERACTION : 0U, cancellation);
	if (r >= 0)
		r = sd_bus_call_async(system, &a->slot, call, on_answer, a, POLKIT_LIMIT_USEC);
	if (r >= 0)
		memcpy(a->cancellation, cancellation, sizeof(cancellation));
	return r;
}

static bool too_many(const struct bus *b, sd_bus_message *message)
{
	const char *sender = sd_bus_message_get_sender(message);
	size_t n = 0, of_one = 0;

	for (const struct bus_auth *a = b->asked; a; a = a->next) {
		n++;
		of_one += streq(sd_bus_message_get_sender(a->message), sender) ? 1U : 0U;
	}
	return n >= ASKED_MAX || of_one >= ASKED_OF_ONE;
}

int bus_authorize(struct bus *b, sd_bus_message *message, const char *action,
		  int (*run)(struct bus *b, sd_bus_message *message), sd_bus_error *error)
{
	struct bus_auth *a;
	uid_t uid;
	int r;

	if (bus_private_uid(b, sd_bus_message_get_bus(message), &uid))
		return uid == 0 ? run(b, message)
				: sd_bus_error_set(error, SD_BUS_ERROR_ACCESS_DENIED,
						   "only root may do this here: use sudo");
	if (too_many(b, message))
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
