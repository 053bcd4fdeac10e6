/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "act/record.h"

#include "base/parse.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#define HEADING         "pcptune-record "
#define RECORD_SIZE_MAX ((size_t)256 << 10)
#define WRITES_A_LINE   16U
#define BOOT_ID_REL     "proc/sys/kernel/random/boot_id"

/* FNV-1a: finds damage. Who means harm is kept off by the file's owner and mode. */
static uint64_t checksum(const char *text, size_t len)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < len; i++) {
		h ^= (unsigned char)text[i];
		h *= UINT64_C(0x100000001b3);
	}
	return h;
}

struct record_knob *record_find(struct record *r, struct knob_id id)
{
	for (uint32_t i = 0; i < r->nr_knobs; i++)
		if (knob_id_eq(r->knob[i].id, id))
			return &r->knob[i];
	return NULL;
}

struct record_knob *record_add(struct record *r, struct knob_id id)
{
	struct record_knob *k = record_find(r, id);

	if (k)
		return k;
	if (r->nr_knobs == RECORD_KNOBS_MAX)
		return NULL;
	k = &r->knob[r->nr_knobs++];
	*k = (struct record_knob){.id = id};
	return k;
}

void record_drop(struct record *r, struct knob_id id)
{
	struct record_knob *k = record_find(r, id);

	if (!k)
		return;
	r->nr_knobs--;
	memmove(k, k + 1, (size_t)(&r->knob[r->nr_knobs] - k) * sizeof(*k));
}

void record_note_write(struct record *r, uint64_t mono_usec)
{
	uint32_t drop = 0;

	while (drop < r->nr_writes && r->write_usec[drop] + USEC_PER_DAY < mono_usec)
		drop++;
	if (r->nr_writes - drop == RECORD_WRITES_MAX)
		drop++;
	r->nr_writes -= drop;
	memmove(r->write_usec, r->write_usec + drop, r->nr_writes * sizeof(r->write_usec[0]));
	r->write_usec[r->nr_writes++] = mono_usec;
}

uint32_t record_writes_since(const struct record *r, uint64_t since_usec)
{
	uint32_t n = 0;

	while (n < r->nr_writes && r->write_usec[r->nr_writes - 1 - n] >= since_usec)
		n++;
	return n;
}

static void format_reason(const char *reason, struct text *into)
{
	char clean[REASON_MAX];
	size_t n = 0;

	for (; reason[n] && n < sizeof(clean) - 1; n++)
		clean[n] = (unsigned char)reason[n] < 0x20 || reason[n] == 0x7f ? ' ' : reason[n];
	text_add_n(into, clean, n);
}

void record_format(const struct record *r, uint64_t page_bytes, struct text *into)
{
	char name[KNOB_NAME_MAX];

	text_clear(into);
	text_addf(into, HEADING "%u\nboot %s\n", RECORD_VERSION, r->boot_id);
	for (uint32_t i = 0; i < r->nr_knobs; i++) {
		const struct record_knob *k = &r->knob[i];

		text_addf(into,
			  "knob %s baseline=%" PRIu64 " before=%" PRIu64 " now=%" PRIu64
			  " intended=%" PRIu64 " transient=%d foreign=%d since=%" PRIu64 " reason=",
			  knob_name(k->id, page_bytes, name), k->baseline, k->before, k->now,
			  k->intended, k->transient, k->foreign, k->since_usec);
		format_reason(k->reason, into);
		text_add(into, "\n");
	}
	for (uint32_t i = 0; i < r->nr_writes; i++) {
		text_add(into, i % WRITES_A_LINE == 0 ? "writes " : " ");
		text_add_u64(into, r->write_usec[i]);
		if (i % WRITES_A_LINE == WRITES_A_LINE - 1 || i == r->nr_writes - 1)
			text_add(into, "\n");
	}
	text_addf(into, "check %016" PRIx64 "\n", checksum(text_str(into), into->len));
}

/* A place in the text; takers move it and say whether what they look for stood there. */
struct cursor {
	const char *at, *end;
};

static bool take_word(struct cursor *c, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
		return false;
	c->at += n;
	return true;
}

static bool take_u64(struct cursor *c, const char *word, uint64_t *ret)
{
	return take_word(c, word) && parse_u64_at(&c->at, c->end, ret) == 0;
}

static bool take_flag(struct cursor *c, const char *word, bool *ret)
{
	uint64_t v;

	if (!take_u64(c, word, &v) || v > 1)
		return false;
	*ret = v == 1;
	return true;
}

/* Everything up to `stop`, which is skipped. */
static bool take_until(struct cursor *c, char stop, char *buf, size_t size)
{
	const char *found = memchr(c->at, stop, (size_t)(c->end - c->at));
	size_t n;

	if (!found || (n = (size_t)(found - c->at)) >= size || memchr(c->at, '\0', n))
		return false;
	memcpy(buf, c->at, n);
	buf[n] = '\0';
	c->at = found + 1;
	return true;
}

static bool knob_is_sane(const struct record_knob *k)
{
	return knob_value_valid(k->id, k->baseline) && knob_value_valid(k->id, k->before) &&
	       knob_value_valid(k->id, k->now) && knob_value_valid(k->id, k->intended);
}

static bool parse_knob(struct record *r, struct cursor *c, uint64_t page_bytes)
{
	struct record_knob k = {0}, *slot;
	char name[KNOB_NAME_MAX];

	if (!take_until(c, ' ', name, sizeof(name)) || knob_parse(name, page_bytes, &k.id) < 0 ||
	    record_find(r, k.id))
		return false;
	if (!take_u64(c, "baseline=", &k.baseline) || !take_u64(c, " before=", &k.before) ||
	    !take_u64(c, " now=", &k.now) || !take_u64(c, " intended=", &k.intended) ||
	    !take_flag(c, " transient=", &k.transient) || !take_flag(c, " foreign=", &k.foreign) ||
	    !take_u64(c, " since=", &k.since_usec) || !take_word(c, " reason=") ||
	    !take_until(c, '\n', k.reason, sizeof(k.reason)) || !knob_is_sane(&k))
		return false;
	slot = record_add(r, k.id);
	if (!slot)
		return false;
	*slot = k;
	return true;
}

static bool parse_writes(struct record *r, struct cursor *c)
{
	do {
		uint64_t v;

		if (r->nr_writes == RECORD_WRITES_MAX || !take_u64(c, "", &v))
			return false;
		r->write_usec[r->nr_writes++] = v;
	} while (take_word(c, " "));
	return take_word(c, "\n");
}

static bool parse_body(struct record *r, struct cursor c, uint64_t page_bytes)
{
	if (!take_word(&c, "boot ") || !take_until(&c, '\n', r->boot_id, sizeof(r->boot_id)) ||
	    !r->boot_id[0])
		return false;
	while (c.at < c.end) {
		bool ok = take_word(&c, "knob ")     ? parse_knob(r, &c, page_bytes)
			  : take_word(&c, "writes ") ? parse_writes(r, &c)
						     : false;

		if (!ok)
			return false;
	}
	return true;
}

static int damaged(struct error *e, const char *how)
{
	return error_set(e, -EBADMSG,
			 "the record is %s, so it does not tell what to put back; nothing is "
			 "written. Look at the knobs, set them as they should be, and remove the "
			 "record (a reboot does both)",
			 how);
}

#define CHECK_LEN (sizeof("check 0123456789abcdef\n") - 1)

int record_parse(struct record *ret, const char *text, size_t len, uint64_t page_bytes,
		 struct error *e)
{
	_cleanup_(freep) struct record *r = NULL;
	struct cursor c = {text, text + len};
	char want[CHECK_LEN + 1];
	uint64_t version;

	if (len == 0)
		return damaged(e, "empty");
	if (!take_u64(&c, HEADING, &version) || !take_word(&c, "\n") || version == 0)
		return damaged(e, "damaged (it does not begin as a record does)");
	if (version > RECORD_VERSION)
		return error_set(e, -EPROTONOSUPPORT,
				 "the record is of version %" PRIu64
				 " and this pcptune knows %u at most; nothing is written. Use the "
				 "newer pcptune that wrote it: its \"pcptunectl rollback\" puts "
				 "everything back",
				 version, RECORD_VERSION);
	if ((size_t)(c.end - c.at) < CHECK_LEN || text[len - 1] != '\n')
		return damaged(e, "cut off");
	c.end -= CHECK_LEN;
	(void)snprintf(want, sizeof(want), "check %016" PRIx64 "\n",
		       checksum(text, len - CHECK_LEN));
	if (memcmp(c.end, want, CHECK_LEN) != 0)
		return damaged(e, "damaged (its checksum does not match)");
	r = calloc(1, sizeof(*r));
	if (!r)
		return error_set(e, -ENOMEM, "out of memory");
	if (!parse_body(r, c, page_bytes))
		return damaged(e, "damaged (a line is not as it should be)");
	*ret = *r;
	return 0;
}

static void this_boot(const struct act_env *env, char *buf, size_t size)
{
	_cleanup_(text_free) struct text text = {0};
	size_t n = 0;

	if (sysroot_read(env->root, BOOT_ID_REL, &text) == 0)
		n = strcspn(text_str(&text), "\n");
	if (n == 0)
		(void)snprintf(buf, size, "unknown"); /* /run itself ends with the boot */
	else
		(void)snprintf(buf, size, "%.*s", (int)MIN_OF(n, size - 1), text_str(&text));
}

static int check_owner(const struct act_env *env, int fd, struct error *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(e, -errno, "cannot look at %s/%s: %s", env->root->path, RECORD_REL,
				 error_name(errno));
	if (!S_ISREG(st.st_mode) || (st.st_uid != 0 && st.st_uid != geteuid()) || st.st_mode & 022)
		return error_set(e, -EPERM,
				 "%s/%s belongs to user %u with mode %04o: others could have "
				 "written it, so it is not believed and nothing is written. Look "
				 "at the knobs, set them as they should be, and remove it",
				 env->root->path, RECORD_REL, (unsigned)st.st_uid,
				 (unsigned)st.st_mode & 07777);
	if ((size_t)st.st_size > RECORD_SIZE_MAX) {
		(void)damaged(e, "damaged (it is far too large)");
		return error_prefix(e, "%s/%s", env->root->path, RECORD_REL);
	}
	return 0;
}

static int read_all(int fd, struct text *into)
{
	for (;;) {
		ssize_t n;

		if (into->len > RECORD_SIZE_MAX || text_reserve(into, 16384) < 0)
			return -ENOMEM;
		n = read(fd, into->data + into->len, 16384);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		into->len += (size_t)n;
		into->data[into->len] = '\0';
	}
}

/* The file's text into *r; 1 where there is no file. */
static int load_file(struct record *r, const struct act_env *env, struct error *e)
{
	_cleanup_(closep) int dir = rundir_open(env, false, e), fd = -1;
	_cleanup_(text_free) struct text text = {0};
	int err;

	if (dir == -EPERM)
		return dir; /* rundir_open() said why */
	err = dir < 0 ? dir : act_pass_point(env, ACT_RECORD_READ, RECORD_REL);
	if (err == 0) {
		fd = openat(dir, "record", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		err = fd < 0 ? -errno : 0;
	}
	if (err == -ENOENT)
		return 1;
	if (err == 0) {
		err = check_owner(env, fd, e);
		if (err < 0)
			return err;
		err = read_all(fd, &text);
	}
	if (err < 0)
		return error_set(e, err, "cannot read %s/%s: %s; nothing is written without it",
				 env->root->path, RECORD_REL, error_name(err));
	err = record_parse(r, text_str(&text), text.len, env->page_bytes, e);
	if (err < 0)
		(void)error_prefix(e, "%s/%s", env->root->path, RECORD_REL);
	return err;
}

int record_load(struct record *ret, const struct act_env *env, bool *ret_stale, struct error *e)
{
	_cleanup_(freep) struct record *r = calloc(1, sizeof(*r));
	char boot[BOOT_ID_MAX];
	int err;

	if (!r)
		return error_set(e, -ENOMEM, "out of memory");
	err = load_file(r, env, e);
	if (err < 0)
		return err;
	this_boot(env, boot, sizeof(boot));
	if (ret_stale)
		*ret_stale = err == 0 && !streq(r->boot_id, boot);
	if (!streq(r->boot_id, boot)) {
		*r = (struct record){0};
		(void)snprintf(r->boot_id, sizeof(r->boot_id), "%s", boot);
	}
	*ret = *r;
	return 0;
}

static int write_all(const struct act_env *env, int fd, const struct text *t)
{
	size_t done = 0;

	while (done < t->len) {
		int r = act_pass_point(env, ACT_RECORD_WRITE, RECORD_REL);
		size_t want = t->len - done;
		ssize_t n;

		if (r == -EINTR)
			continue;
		if (r < 0)
			return r;
		n = write(fd, t->data + done, r > 0 ? MIN_OF((size_t)r, want) : want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int write_new(const struct act_env *env, int dir, const struct text *t)
{
	_cleanup_(closep) int fd = -1;
	int r;

	r = act_pass_point(env, ACT_RECORD_OPEN, RECORD_REL);
	if (r < 0)
		return r;
	if (unlinkat(dir, "record.new", 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, "record.new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0)
		return -errno;
	r = write_all(env, fd, t);
	if (r == 0)
		r = act_pass_point(env, ACT_RECORD_SYNC, RECORD_REL);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

static int replace(const struct act_env *env, int dir, const struct text *t)
{
	_cleanup_(closep) int sync_fd = -1;
	int r = write_new(env, dir, t);

	if (r == 0)
		r = act_pass_point(env, ACT_RECORD_RENAME, RECORD_REL);
	if (r == 0 && renameat(dir, "record.new", dir, "record") < 0)
		r = -errno;
	if (r < 0)
		return r;
	r = act_pass_point(env, ACT_RECORD_DIRSYNC, RECORD_REL);
	if (r < 0)
		return r;
	sync_fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sync_fd < 0 || fsync(sync_fd) < 0)
		return -errno;
	return act_pass_point(env, ACT_RECORD_DONE, RECORD_REL);
}

int record_store(const struct record *r, const struct act_env *env, struct error *e)
{
	_cleanup_(closep) int dir = rundir_open(env, true, e);
	_cleanup_(text_free) struct text text = {0};
	int err;

	if (dir < 0)
		return dir;
	record_format(r, env->page_bytes, &text);
	if (text.failed)
		return error_set(e, -ENOMEM, "out of memory");
	err = replace(env, dir, &text);
	if (err < 0)
		return error_set(e, err,
				 "cannot replace %s/%s: %s; nothing is changed without a record of "
				 "how to undo it: see to it that %s/run has room and is writable",
				 env->root->path, RECORD_REL, error_name(err), env->root->path);
	return 0;
}
