/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes knobs so that nothing is ever left wrong: owns the record, the ledger and the threads
 * that write.
 *
 * There is no event loop in here. actor_fd() becomes readable when a write is done; then, and when
 * actor_next_usec() has come, and on every tick, call actor_dispatch() and take the events one by
 * one. Events are for the caller to log: nothing is logged inside, each is told once.
 *
 * One change: the record is replaced (now, intended), a thread of its own writes and reads back,
 * the record is replaced again (now = intended). A write that blocks holds up only its own knob;
 * the newest decision for that knob waits. A knob that reads anything but what we wrote belongs to
 * somebody else from then on. A value that is back at its baseline is no longer ours.
 *
 * The caller holds the instance lock (lock.h) from before actor_open() until after actor_close().
 */
#pragma once

#include "act/ledger.h"

struct actor;

struct actor_limits {
	uint32_t writes_per_minute, writes_per_day; /* 0: no limit. Putting back is never limited */
};

struct actor_options {
	const struct act_env *env; /* must outlive the actor */
	struct actor_limits limits;
	uint64_t foreign_yield_usec; /* hands off this long; 0: until actor_adopt() */
};

enum knob_state {
	KNOB_FREE,     /* at its own value, not ours */
	KNOB_OURS,     /* has the value we wrote */
	KNOB_CHANGING, /* a write is under way */
	KNOB_BLOCKED,  /* … for more than ACTOR_BLOCKED_USEC */
	KNOB_FAILED,   /* the kernel refused; tried again at retry_usec */
	KNOB_FOREIGN,  /* somebody else's */
	KNOB_MOMENT,   /* has a transient value */
	KNOB_WAITING,  /* recovery waits for a write of a killed pcptune that the kernel still holds
			*/
	_KNOB_STATE_MAX,
};
const char *knob_state_name(enum knob_state s); /* "free", "ours", "changing", … */
#define ACTOR_BLOCKED_USEC (2 * USEC_PER_SEC)

/* How a knob stands. A copy: valid as long as the caller likes. */
struct actor_knob {
	struct knob_id id;
	enum knob_state state;
	bool owned; /* the value in the kernel is ours to put back */
	bool transient;
	uint64_t value;    /* last seen in the kernel */
	uint64_t baseline; /* where restore goes; = value where not owned */
	uint64_t wanted;   /* the newest decision */
	int error;         /* KNOB_FAILED: the negative errno */
	uint64_t retry_usec;
	uint64_t since_usec;       /* CLOCK_MONOTONIC: in this state since */
	uint64_t writes, refusals; /* of this process */
	char reason[REASON_MAX];
	char text[sizeof(((struct error *)0)->text)]; /* the sentence to the state, "" without */
};

enum actor_event_kind {
	ACTOR_CHANGED,     /* written and verified */
	ACTOR_RESTORED,    /* … back to the baseline: the knob is free again */
	ACTOR_REFUSED,     /* starts: the kernel refuses; tried again with growing pauses */
	ACTOR_ACCEPTED,    /* ends that */
	ACTOR_BLOCKED,     /* starts: a write hangs */
	ACTOR_UNBLOCKED,   /* ends that */
	ACTOR_FOREIGN,     /* somebody else wrote: old_value ours, new_value theirs */
	ACTOR_OURS_AGAIN,  /* adopted, or the time to yield is over */
	ACTOR_LIMITED,     /* starts: a limit on writes holds decisions back */
	ACTOR_UNLIMITED,   /* ends that */
	ACTOR_RECOVERED,   /* found at start: taken over, or a transient value undone */
	ACTOR_NOTE,        /* zoneinfo does not follow the fraction three ticks after the change */
	ACTOR_RECORD_LOST, /* the record could not be replaced; tried again */
	_ACTOR_EVENT_MAX,
};
const char *actor_event_name(enum actor_event_kind k); /* "changed", "refused", … */

struct actor_event {
	enum actor_event_kind kind;
	struct knob_id id;
	uint64_t old_value, new_value;
	int error;
	bool transient;
	struct act_time time;
	uint64_t ledger_seq; /* of the write; 0 where there was none */
	bool parked_known;   /* an order went off: pages on the lists, as in struct knob_report */
	uint64_t parked_before, parked_after;
	char reason[REASON_MAX];
	char text[sizeof(((struct error *)0)->text)]; /* one sentence for people */
};

/*
 * Reads the record, compares it with the kernel and recovers: a transient value is put back, a
 * value of ours is gone on with (its old baseline stays), anything else is foreign. Recovery writes
 * in threads, too: actor_dispatch() until actor_busy() is false. Errors as record_load(), and
 * -EOPNOTSUPP where the root is a capture: then nothing was written and nothing will be.
 */
int actor_open(struct actor **ret, const struct actor_options *o, struct act_time now,
	       struct error *e) _must_check_;

/*
 * Frees everything and leaves kernel and record as they are (OnStop=keep). A thread that hangs in
 * the kernel is left to itself with memory of its own. Takes NULL, returns NULL.
 */
struct actor *actor_close(struct actor *a);
static inline void actor_closep(struct actor **a)
{
	*a = actor_close(*a);
}

void actor_set_options(struct actor *a, const struct actor_options *o); /* after a reload */

int actor_fd(const struct actor *a); /* poll for POLLIN; owned by the actor */
/* When actor_dispatch() is wanted next, CLOCK_MONOTONIC; USEC_INFINITY: only when the fd says so.
 */
uint64_t actor_next_usec(const struct actor *a);
/* Takes finished writes in, starts waiting ones, tries refused ones again. */
void actor_dispatch(struct actor *a, struct act_time now);
/* The next event; false: none. A full queue (64) drops the oldest. */
bool actor_event_take(struct actor *a, struct actor_event *ret);

struct actor_request {
	struct knob_id id;
	uint64_t value;
	const char *reason; /* "policy/rule: why"; copied */
};

/*
 * Asks for a value. Cheap and idempotent: may be called on every tick with the decision of the
 * tick. The baseline as value gives the knob up. 0: it is there, under way or waits its turn.
 * -ERANGE: no value of this knob; -EPERM: foreign; -EDQUOT: a limit holds it back (call again
 * later: nothing is queued); -EAGAIN: refused before and not yet time to try again; -ENOSPC: more
 * knobs than the record can hold.
 */
int actor_set(struct actor *a, const struct actor_request *req, struct act_time now,
	      struct error *e);
/* The baseline of `id`; its value where it is not ours. */
int actor_baseline(const struct actor *a, struct knob_id id, uint64_t *ret);

/*
 * Looks for foreign writes: the knob values that `s` holds (SOURCE_KNOBS, SOURCE_MTHP) against
 * ours. Ignores knobs with a write under way and snapshots older than our last write. With
 * SOURCE_ZONEINFO, checks high_min and high_max for three ticks after a change.
 */
void actor_observe(struct actor *a, const struct snapshot *s, struct act_time now);

/* A foreign knob's value becomes the new baseline and pcptune may set it again. -ENOENT: no such
 * knob known here; -EALREADY: it is not foreign. */
int actor_adopt(struct actor *a, struct knob_id id, struct act_time now, struct error *e);

/*
 * Begins to put every knob of ours back (OnStop=restore, rollback, the kill switches), a transient
 * one straight to its baseline. Not limited; a refusal is tried again every 0.1 to 1 s until
 * actor_close(). Until actor_resume(), actor_set() is -ECANCELED.
 */
void actor_restore_all(struct actor *a, struct act_time now);
void actor_resume(struct actor *a);
/*
 * While paused, no decision is carried out, and one that the kernel refused is not tried again;
 * what is being put back goes on. Afterwards they are.
 */
void actor_pause(struct actor *a, bool paused, struct act_time now);
/* Knobs of ours that are not back yet; 0: done. `why` (may be NULL): the first one's sentence. */
unsigned actor_unrestored(const struct actor *a, struct error *why);

bool actor_busy(const struct actor *a); /* some write is under way, or recovery waits */

/*
 * For a squeeze: `value` for a moment. Decisions for the knob wait meanwhile. The record says
 * transient from before the first write until after the last.
 */
enum actor_moment {
	MOMENT_NONE,
	MOMENT_BEGINNING,
	MOMENT_IN_PLACE,
	MOMENT_ENDING,  /* being put back, again and again if it must */
	MOMENT_REFUSED, /* could not begin: the value is as before. Call actor_moment_end() */
};
/* `force`: write even if the kernel has the value. -EBUSY: a write or moment is under way. */
int actor_moment_begin(struct actor *a, const struct actor_request *req, bool force,
		       struct act_time now, struct error *e);
void actor_moment_end(struct actor *a, struct knob_id id, struct act_time now);
enum actor_moment actor_moment(const struct actor *a, struct knob_id id, struct error *why);

/* Knobs that the actor has met, by index; false behind the last. */
bool actor_knob_at(const struct actor *a, unsigned i, struct actor_knob *ret);
bool actor_knob_get(const struct actor *a, struct knob_id id, struct actor_knob *ret);
const struct ledger *actor_ledger(const struct actor *a);

/*
 * For programs without a loop: dispatches until nothing is busy (`restore`: until everything is
 * back), `stop_fd` (-1: none) is readable, or `timeout_usec` has passed. Events go to `on_event`
 * (may be NULL). 0, -ETIMEDOUT or -EINTR.
 */
int actor_wait(struct actor *a, bool restore, int stop_fd, uint64_t timeout_usec,
	       void (*on_event)(void *user, const struct actor_event *ev), void *user);

/*
 * What undoes everything the record holds, as shell commands with comments, without writing or
 * locking anything. *ret_commands: how many. Errors as record_load().
 */
int rollback_commands(const struct act_env *env, struct text *into, unsigned *ret_commands,
		      struct error *e) _must_check_;
