/* SPDX-License-Identifier: GPL-2.0-or-later */
#define FUSE_USE_VERSION 312
#include "mounts.h"

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define PAGE_ROOM    4096U
#define THREADS_MAX  256U
#define MOUNTS_COUNT 2

struct mount {
	struct fake *fake;
	const char *prefix; /* "proc" */
	char *path;
	struct fuse *fuse;
	pthread_t thread;
	bool mounted, serving;
};

struct mounts {
	struct mount mount[MOUNTS_COUNT];
	int lifeline; /* the child that unmounts waits for its end */
	pid_t child;
};

/*
 * An open file. Tables come as the kernel's seq_file gives them (fs/seq_file.c): whole records in
 * a buffer that starts with a page and doubles until one fits; what was formatted stays as it was
 * until it is read, and any offset but the one reached formats everything again.
 */
struct handle {
	struct tree_entry entry; /* a copy: the tree may be made anew meanwhile */
	struct text buffer;
	size_t from, room;
	unsigned record;
	off_t pos;
	pthread_mutex_t lock; /* the kernel's seq_file has one, too */
};

static struct mount *this_mount(void)
{
	return fuse_get_context()->private_data;
}

/* "/sys/vm" below DIR/proc is "proc/sys/vm". */
static void full_path(const char *path, char *ret)
{
	(void)snprintf(ret, FAKE_PATH_MAX, "%s%s", this_mount()->prefix,
		       streq(path, "/") ? "" : path);
}

static void fill_stat(const struct tree_entry *e, struct stat *st)
{
	static const mode_t types[] = {[FILE_DIRECTORY] = S_IFDIR, [FILE_LINK] = S_IFLNK};

	*st = (struct stat){
		.st_mode = e->mode | (e->kind < ARRAY_SIZE(types) ? types[e->kind] : S_IFREG),
		.st_nlink = e->kind == FILE_DIRECTORY ? 2 : 1,
		.st_uid = getuid(),
		.st_gid = getgid(),
		/* sysfs says a page, proc says nothing: either way only reading tells */
		.st_size = strncmp(e->path, "sys/", 4) == 0 && e->kind > FILE_LINK ? 4096 : 0,
	};
}

static int op_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	struct fake *f = this_mount()->fake;
	const struct tree_entry *e;
	char full[FAKE_PATH_MAX];

	if (!path && fi) {
		fill_stat(&((struct handle *)(uintptr_t)fi->fh)->entry, st);
		return 0;
	}
	full_path(path, full);
	fake_lock(f);
	e = tree_find(&f->tree, full);
	if (e)
		fill_stat(e, st);
	fake_unlock(f);
	return e ? 0 : -ENOENT;
}

static int op_readlink(const char *path, char *buf, size_t size)
{
	struct fake *f = this_mount()->fake;
	const struct tree_entry *e;
	char full[FAKE_PATH_MAX];
	int r = -EINVAL;

	full_path(path, full);
	fake_lock(f);
	e = tree_find(&f->tree, full);
	if (e && e->kind == FILE_LINK) {
		(void)snprintf(buf, size, "../../node/node%d", e->a);
		r = 0;
	}
	fake_unlock(f);
	return e ? r : -ENOENT;
}

static int op_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
		      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	struct fake *f = this_mount()->fake;
	const struct tree_entry *e;
	char full[FAKE_PATH_MAX];
	size_t cursor = 0;

	(void)off;
	(void)fi;
	(void)flags;
	full_path(path, full);
	(void)fill(buf, ".", NULL, 0, 0);
	(void)fill(buf, "..", NULL, 0, 0);
	fake_lock(f);
	while ((e = tree_child(&f->tree, full, &cursor)))
		(void)fill(buf, strrchr(e->path, '/') + 1, NULL, 0, 0);
	fake_unlock(f);
	return 0;
}

/* Takes the fault for this operation, if there is one. 0, or what the operation must return. */
static int meet_fault(struct fake *f, const char *path, enum op op, struct fault *ret)
{
	*ret = (struct fault){.action = _FAULT_NONE};
	if (streq(path, CONTROL_PATH))
		return 0;
	fake_count(f, path, op);
	hooks_run(f, path, op);
	if (!fault_take(f, path, op, ret))
		return 0;
	if (ret->action == FAULT_ERRNO)
		return -ret->code;
	if (ret->action == FAULT_BLOCK)
		fault_sleep(f, path, ret->number);
	return 0;
}

static int open_entry(struct fake *f, const char *path, int flags, struct tree_entry *ret)
{
	const struct tree_entry *e = tree_find(&f->tree, path);
	struct fault fault;
	int r;

	if (!e)
		return -ENOENT;
	r = meet_fault(f, path, OP_OPEN, &fault);
	if (r == 0 && (flags & O_ACCMODE) != O_RDONLY)
		r = meet_fault(f, path, OP_OPEN_WRITE, &fault);
	e = tree_find(&f->tree, path);
	if (r < 0 || !e)
		return r < 0 ? r : -ENOENT;
	*ret = *e;
	ret->path = strdup(e->path);
	return ret->path ? 0 : -ENOMEM;
}

static int op_open(const char *path, struct fuse_file_info *fi)
{
	struct fake *f = this_mount()->fake;
	struct handle *h = calloc(1, sizeof(*h));
	char full[FAKE_PATH_MAX];
	int r;

	if (!h)
		return -ENOMEM;
	full_path(path, full);
	fake_lock(f);
	r = open_entry(f, full, fi->flags, &h->entry);
	fake_unlock(f);
	if (r < 0) {
		free(h);
		return r;
	}
	pthread_mutex_init(&h->lock, NULL);
	h->room = PAGE_ROOM;
	fi->fh = (uintptr_t)h;
	fi->direct_io = 1;
	return 0;
}

static int op_release(const char *path, struct fuse_file_info *fi)
{
	struct handle *h = (struct handle *)(uintptr_t)fi->fh;

	(void)path;
	pthread_mutex_destroy(&h->lock);
	text_free(&h->buffer);
	free(h->entry.path);
	free(h);
	return 0;
}

/* Formats one record behind what is in the buffer. 1, 0 at the end, negative errno. */
static int next_record(struct fake *f, struct handle *h, bool may_grow)
{
	size_t before = h->buffer.len;
	int r = file_text(f, &h->entry, h->record, &h->buffer);

	if (r <= 0)
		return r;
	if (h->buffer.failed)
		return -ENOMEM;
	while (may_grow && h->buffer.len >= h->room)
		h->room *= 2;
	if (h->buffer.len >= h->room) {
		h->buffer.len = before;
		return 0;
	}
	h->record++;
	return 1;
}

/* Everything from the start, up to `off`. */
static int traverse(struct fake *f, struct handle *h, off_t off)
{
	h->record = 0;
	h->pos = 0;
	for (;;) {
		int r;

		text_clear(&h->buffer);
		h->from = 0;
		if (h->pos == off)
			return 0;
		r = next_record(f, h, true);
		if (r <= 0)
			return r;
		if (h->pos + (off_t)h->buffer.len > off) {
			h->from = (size_t)(off - h->pos);
			h->pos = off;
			return 0;
		}
		h->pos += (off_t)h->buffer.len;
	}
}

static size_t hand_out(struct handle *h, char *buf, size_t size)
{
	size_t n = MIN_OF(h->buffer.len - h->from, size);

	if (n)
		memcpy(buf, h->buffer.data + h->from, n);
	h->from += n;
	h->pos += (off_t)n;
	return n;
}

static int read_table(struct fake *f, struct handle *h, char *buf, size_t size, off_t off)
{
	size_t done;
	int r;

	if (off == 0 || off != h->pos) {
		r = traverse(f, h, off);
		if (r < 0)
			return r;
	}
	if (h->pos != off)
		return 0; /* behind the end */
	done = hand_out(h, buf, size);
	if (done == size)
		return (int)done;
	text_clear(&h->buffer);
	h->from = 0;
	r = next_record(f, h, true);
	while (r > 0 && h->buffer.len < size - done)
		r = next_record(f, h, false);
	if (r < 0 && h->buffer.len == 0)
		return done ? (int)done : r;
	return (int)(done + hand_out(h, buf + done, size - done));
}

static int read_sysctl(struct fake *f, struct handle *h, char *buf, size_t size, off_t off)
{
	if (h->entry.kind == FILE_STAT_REFRESH) {
		file_refresh(f, h->entry.path);
		return 0;
	}
	if (off != 0)
		return 0;
	text_clear(&h->buffer);
	h->from = 0;
	if (file_text(f, &h->entry, 0, &h->buffer) < 0 || h->buffer.failed)
		return -ENOMEM;
	return (int)hand_out(h, buf, size);
}

/* What a fault leaves of a read of `size` bytes at `off`; *changed: the text is a newer one. */
static size_t size_left(struct fake *f, struct handle *h, const struct fault *fault, size_t size,
			off_t off)
{
	off_t at = (off_t)fault->number;

	if (fault->action == FAULT_CUT)
		return off >= at ? 0 : MIN_OF(size, (size_t)(at - off));
	if (fault->action == FAULT_CHANGE && off < at)
		return MIN_OF(size, (size_t)(at - off));
	if (fault->action == FAULT_CHANGE && off == at) {
		(void)control_run(f, fault->text);
		h->pos = -1; /* format anew */
	}
	return size;
}

static int op_read(const char *path, char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct handle *h = (struct handle *)(uintptr_t)fi->fh;
	struct fake *f = this_mount()->fake;
	struct fault fault;
	int r;

	(void)path;
	pthread_mutex_lock(&h->lock);
	fake_lock(f);
	r = meet_fault(f, h->entry.path, OP_READ, &fault);
	size = size_left(f, h, &fault, size, off);
	if (r == 0 && !tree_find(&f->tree, h->entry.path))
		r = -ENODEV; /* as kernfs says of what was removed */
	if (r == 0 && size > 0)
		r = file_is_sysctl(&h->entry) ? read_sysctl(f, h, buf, size, off)
					      : read_table(f, h, buf, size, off);
	fake_unlock(f);
	pthread_mutex_unlock(&h->lock);
	return r;
}

static int write_through(struct fake *f, struct handle *h, const struct fault *fault,
			 const char *buf, size_t size, off_t off)
{
	char stored[FAKE_TEXT_MAX];
	int r;

	if (fault->action == FAULT_DROP)
		return (int)size;
	if (fault->action == FAULT_SHORT)
		size = MIN_OF(size, (size_t)fault->number);
	if (fault->action == FAULT_VALUE) {
		(void)snprintf(stored, sizeof(stored), "%s", fault->text);
		r = file_write(f, &h->entry, stored, strlen(stored), off);
		return r < 0 ? r : (int)size;
	}
	return file_write(f, &h->entry, buf, size, off);
}

static int write_control(struct fake *f, const char *buf, size_t size)
{
	char *copy = strndup(buf, size);
	int r = copy ? control_run(f, copy) : -ENOMEM;

	free(copy);
	return r < 0 ? r : (int)size;
}

static int op_write(const char *path, const char *buf, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct handle *h = (struct handle *)(uintptr_t)fi->fh;
	struct fake *f = this_mount()->fake;
	int pid = fuse_get_context()->pid;
	struct fault fault;
	int r;

	(void)path;
	fake_lock(f);
	if (h->entry.kind == FILE_CONTROL) {
		r = write_control(f, buf, size);
		fake_unlock(f);
		return r;
	}
	r = meet_fault(f, h->entry.path, OP_WRITE, &fault);
	if (r == 0 && !tree_find(&f->tree, h->entry.path))
		r = -ENODEV;
	if (r == 0)
		r = write_through(f, h, &fault, buf, size, off);
	fake_note_write(f, h->entry.path, buf, size, pid, r);
	fake_unlock(f);
	return r;
}

/* O_TRUNC, as of a shell's ">", means nothing to proc and sysfs. */
static int op_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)path;
	(void)size;
	(void)fi;
	return 0;
}

static void *op_init(struct fuse_conn_info *conn, struct fuse_config *cfg)
{
	(void)conn;
	cfg->direct_io = 1;
	cfg->kernel_cache = 0;
	cfg->attr_timeout = 0;
	cfg->entry_timeout = 0;
	cfg->negative_timeout = 0;
	return fuse_get_context()->private_data;
}

static const struct fuse_operations operations = {
	.getattr = op_getattr,
	.readlink = op_readlink,
	.readdir = op_readdir,
	.open = op_open,
	.release = op_release,
	.read = op_read,
	.write = op_write,
	.truncate = op_truncate,
	.init = op_init,
};

static void *serve(void *arg)
{
	struct mount *mount = arg;
	struct fuse_loop_config *config = fuse_loop_cfg_create();

	if (config) {
		fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
		fuse_loop_cfg_set_idle_threads(config, 4);
		(void)fuse_loop_mt(mount->fuse, config);
		fuse_loop_cfg_destroy(config);
	}
	return NULL;
}

static int mount_start(struct mount *mount, const char *dir)
{
	char options[128];
	char *argv[] = {(char *)"fakekernel", (char *)"-o", options, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);

	(void)snprintf(options, sizeof(options), "fsname=fake%s,subtype=fakekernel%s",
		       mount->prefix, geteuid() == 0 ? ",allow_other,default_permissions" : "");
	if (asprintf(&mount->path, "%s/%s", dir, mount->prefix) < 0) {
		mount->path = NULL;
		return -ENOMEM;
	}
	if (mkdir(mount->path, 0755) < 0 && errno != EEXIST)
		return -errno;
	mount->fuse = fuse_new(&args, &operations, sizeof(operations), mount);
	fuse_opt_free_args(&args);
	if (!mount->fuse || fuse_mount(mount->fuse, mount->path) < 0)
		return -EIO;
	mount->mounted = true;
	if (pthread_create(&mount->thread, NULL, serve, mount) != 0)
		return -EAGAIN;
	mount->serving = true;
	return 0;
}

/* Outlives this process by a moment and unmounts what it left behind when it was killed. */
static void unmount_at_end(int lifeline, char *const paths[MOUNTS_COUNT])
{
	char c;

	(void)setsid();
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)prctl(PR_SET_NAME, "fakekernel-end");
	for (int fd = 0; fd < 256; fd++)
		if (fd != lifeline)
			(void)close(fd);
	while (read(lifeline, &c, 1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < MOUNTS_COUNT; i++)
		if (umount2(paths[i], MNT_DETACH) < 0 && errno == EPERM)
			(void)execlp("fusermount3", "fusermount3", "-uz", "-q", paths[i],
				     (char *)NULL);
	_exit(0);
}

static int start_lifeline(struct mounts *m, const char *dir)
{
	char *paths[MOUNTS_COUNT];
	int fds[2];

	for (int i = 0; i < MOUNTS_COUNT; i++)
		if (asprintf(&paths[i], "%s/%s", dir, m->mount[i].prefix) < 0)
			return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	m->child = fork();
	if (m->child == 0)
		unmount_at_end(fds[0], paths);
	(void)close(fds[0]);
	m->lifeline = fds[1];
	for (int i = 0; i < MOUNTS_COUNT; i++)
		free(paths[i]);
	return m->child < 0 ? -errno : 0;
}

int mounts_start(struct mounts **ret, struct fake *f, const char *dir)
{
	static const char *const prefixes[MOUNTS_COUNT] = {"proc", "sys"};
	struct mounts *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->lifeline = -1;
	for (int i = 0; i < MOUNTS_COUNT; i++)
		m->mount[i] = (struct mount){.fake = f, .prefix = prefixes[i]};
	r = start_lifeline(m, dir);
	for (int i = 0; i < MOUNTS_COUNT && r == 0; i++) {
		r = mount_start(&m->mount[i], dir);
		if (r < 0)
			(void)fprintf(stderr, "fakekernel: cannot mount %s/%s: %s\n", dir,
				      prefixes[i], strerror(-r));
	}
	if (r < 0)
		m = mounts_stop(m);
	*ret = m;
	return r;
}

struct mounts *mounts_stop(struct mounts *m)
{
	if (!m)
		return NULL;
	fake_stop(m->mount[0].fake);
	for (int i = 0; i < MOUNTS_COUNT; i++) {
		struct mount *mount = &m->mount[i];

		if (mount->serving)
			fuse_exit(mount->fuse);
		if (mount->mounted)
			fuse_unmount(mount->fuse);
		if (mount->serving)
			pthread_join(mount->thread, NULL);
		if (mount->fuse)
			fuse_destroy(mount->fuse);
		free(mount->path);
	}
	closep(&m->lifeline);
	free(m);
	return NULL;
}
