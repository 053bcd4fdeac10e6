/* SPDX-License-Identifier: GPL-2.0-or-later */
#define FUSE_USE_VERSION 312
#include "mounts.h"

#include "handles.h"
#include "inodes.h"

#include <errno.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define THREADS_MAX  256U
#define IDLE_THREADS 32U /* few would be started and ended all the time */
#define MOUNTS_COUNT 2

struct mount {
	struct fake *fake;
	const char *prefix; /* "proc" */
	char *path;
	struct fuse_session *session;
	struct inodes inodes; /* under the fake's lock */
	pthread_t thread;
	bool mounted, serving;
	struct handle *handles; /* under the fake's lock */
};

struct mounts {
	struct mount mount[MOUNTS_COUNT];
	int lifeline; /* the child that unmounts waits for its end */
	pid_t child;
};

static struct mount *mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static void fill_stat(struct mount *mount, const struct tree_entry *e, struct stat *st)
{
	static const mode_t types[] = {[FILE_DIRECTORY] = S_IFDIR, [FILE_LINK] = S_IFLNK};

	*st = (struct stat){
		.st_ino = inode_of(&mount->inodes, e->path),
		.st_mode = e->mode | (e->kind < ARRAY_SIZE(types) ? types[e->kind] : S_IFREG),
		.st_nlink = e->kind == FILE_DIRECTORY ? 2 : 1,
		.st_uid = getuid(),
		.st_gid = getgid(),
		/* sysfs says a page, proc says nothing: either way only reading tells */
		.st_size = strncmp(e->path, "sys/", 4) == 0 && e->kind > FILE_LINK ? 4096 : 0,
	};
}

/* Directories that hotplug leaves alone need not be asked for again. */
static double seconds_valid(const struct tree_entry *e)
{
	return e->lasting ? 3600 : 0;
}

/* With the lock held: the entry behind a number, or NULL where it is gone. */
static const struct tree_entry *entry_of(struct mount *mount, fuse_ino_t ino)
{
	return tree_find(&mount->fake->tree, inode_path(&mount->inodes, ino));
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct mount *mount = mount_of(req);
	struct fuse_entry_param param = {0};
	const struct tree_entry *e = NULL;
	char path[FAKE_PATH_MAX];

	fake_lock(mount->fake);
	if (snprintf(path, sizeof(path), "%s/%s", inode_path(&mount->inodes, parent), name) <
	    (int)sizeof(path))
		e = tree_find(&mount->fake->tree, path);
	if (e) {
		fill_stat(mount, e, &param.attr);
		param.ino = param.attr.st_ino;
		param.attr_timeout = param.entry_timeout = seconds_valid(e);
	}
	fake_unlock(mount->fake);
	if (!e || !param.ino)
		fuse_reply_err(req, e ? ENOMEM : ENOENT);
	else
		fuse_reply_entry(req, &param);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *mount = mount_of(req);
	const struct tree_entry *e;
	struct stat st;
	double valid = 0;

	(void)fi;
	fake_lock(mount->fake);
	e = entry_of(mount, ino);
	if (e) {
		fill_stat(mount, e, &st);
		valid = seconds_valid(e);
	}
	fake_unlock(mount->fake);
	if (e)
		fuse_reply_attr(req, &st, valid);
	else
		fuse_reply_err(req, ENOENT);
}

/* O_TRUNC, as of a shell's ">", means nothing to proc and sysfs. */
static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int what,
		       struct fuse_file_info *fi)
{
	(void)attr;
	if (what & ~(FUSE_SET_ATTR_SIZE | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_CTIME))
		fuse_reply_err(req, EPERM);
	else
		op_getattr(req, ino, fi);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct mount *mount = mount_of(req);
	const struct tree_entry *e;
	char target[32] = "";

	fake_lock(mount->fake);
	e = entry_of(mount, ino);
	if (e && e->kind == FILE_LINK)
		(void)snprintf(target, sizeof(target), "../../node/node%d", e->a);
	fake_unlock(mount->fake);
	if (target[0])
		fuse_reply_readlink(req, target);
	else
		fuse_reply_err(req, e ? EINVAL : ENOENT);
}

static void add_name(fuse_req_t req, struct text *t, const char *name, const struct stat *st)
{
	size_t size = fuse_add_direntry(req, NULL, 0, name, NULL, 0);

	if (text_reserve(t, size) < 0)
		return;
	(void)fuse_add_direntry(req, t->data + t->len, size, name, st, (off_t)(t->len + size));
	t->len += size;
}

/* The names as they are now are what this open directory shows. */
static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *mount = mount_of(req);
	struct text *names = calloc(1, sizeof(*names));
	const struct tree_entry *dir, *e;
	size_t cursor = 0;

	if (!names) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fake_lock(mount->fake);
	dir = entry_of(mount, ino);
	while (dir && (e = tree_child(&mount->fake->tree, dir->path, &cursor))) {
		struct stat st;

		fill_stat(mount, e, &st);
		add_name(req, names, strrchr(e->path, '/') + 1, &st);
	}
	fake_unlock(mount->fake);
	fi->fh = (uintptr_t)names;
	if (dir && !names->failed && fuse_reply_open(req, fi) == 0)
		return;
	if (!dir || names->failed)
		fuse_reply_err(req, dir ? ENOMEM : ENOENT);
	text_free(names);
	free(names);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	const struct text *names = (const struct text *)(uintptr_t)fi->fh;
	size_t at = MIN_OF((size_t)off, names->len), n = 0;
	_cleanup_(freep) char *copy = NULL;

	(void)ino;
	/* whole entries only: each holds the offset of the next, at 8 */
	while (at + n < names->len) {
		uint64_t next;

		memcpy(&next, names->data + at + n + 8, sizeof(next));
		if (next - at > size)
			break;
		n = next - at;
	}
	/* a copy: once the answer is out the directory may be closed before we return */
	copy = malloc(n + 1);
	if (copy && n)
		memcpy(copy, names->data + at, n);
	if (copy)
		fuse_reply_buf(req, copy, n);
	else
		fuse_reply_err(req, ENOMEM);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct text *names = (struct text *)(uintptr_t)fi->fh;

	(void)ino;
	text_free(names);
	free(names);
	fuse_reply_err(req, 0);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *mount = mount_of(req);
	struct handle *h = calloc(1, sizeof(*h));
	char path[FAKE_PATH_MAX];
	int r;

	if (!h) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	fake_lock(mount->fake);
	(void)snprintf(path, sizeof(path), "%s", inode_path(&mount->inodes, ino));
	r = handle_open(mount->fake, path, fi->flags, h);
	if (r == 0)
		handle_link(&mount->handles, h);
	fake_unlock(mount->fake);
	fi->fh = (uintptr_t)h;
	fi->direct_io = 1;
	if (r == 0 && fuse_reply_open(req, fi) == 0)
		return;
	if (r == 0) { /* who asked was interrupted: no release will come */
		fake_lock(mount->fake);
		handle_unlink(h);
		fake_unlock(mount->fake);
		handle_free(h);
	} else {
		fuse_reply_err(req, -r);
		free(h);
	}
}

static void forget_poll(struct handle *h)
{
	if (h->poll)
		fuse_pollhandle_destroy(h->poll);
	h->poll = NULL;
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct handle *h = (struct handle *)(uintptr_t)fi->fh;
	struct mount *mount = mount_of(req);

	(void)ino;
	fake_lock(mount->fake);
	handle_unlink(h);
	forget_poll(h);
	fake_unlock(mount->fake);
	handle_free(h);
	fuse_reply_err(req, 0);
}

/* As psi_trigger_poll(): an event is seen once; files without a trigger are always ready. */
static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
		    struct fuse_pollhandle *who)
{
	struct handle *h = (struct handle *)(uintptr_t)fi->fh;
	struct mount *mount = mount_of(req);
	unsigned events = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;

	(void)ino;
	fake_lock(mount->fake);
	if (h->entry.kind == FILE_PSI) {
		events = h->event ? POLLPRI : 0;
		h->event = false;
	}
	if (who) {
		forget_poll(h);
		h->poll = who;
	}
	fake_unlock(mount->fake);
	fuse_reply_poll(req, events);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct handle *h = (struct handle *)(uintptr_t)fi->fh;
	struct fake *f = mount_of(req)->fake;
	_cleanup_(freep) char *buf = malloc(size);
	int r = -ENOMEM;

	(void)ino;
	if (buf) {
		pthread_mutex_lock(&h->lock);
		fake_lock(f);
		r = handle_read(f, h, buf, size, off);
		fake_unlock(f);
		pthread_mutex_unlock(&h->lock);
	}
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_buf(req, buf, (size_t)r);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	struct handle *h = (struct handle *)(uintptr_t)fi->fh;
	struct fake *f = mount_of(req)->fake;
	int r;

	(void)ino;
	fake_lock(f);
	r = handle_write(f, h, buf, size, off, fuse_req_ctx(req)->pid);
	fake_unlock(f);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_write(req, (size_t)r);
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = op_lookup,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.releasedir = op_releasedir,
	.open = op_open,
	.release = op_release,
	.read = op_read,
	.write = op_write,
	.poll = op_poll,
};

static void *serve(void *arg)
{
	struct mount *mount = arg;
	struct fuse_loop_config *config = fuse_loop_cfg_create();

	if (config) {
		fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
		fuse_loop_cfg_set_idle_threads(config, IDLE_THREADS);
		(void)fuse_session_loop_mt(mount->session, config);
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
	if (inode_of(&mount->inodes, mount->prefix) != FUSE_ROOT_ID)
		return -ENOMEM;
	mount->session = fuse_session_new(&args, &operations, sizeof(operations), mount);
	fuse_opt_free_args(&args);
	if (!mount->session)
		return -ENOMEM;
	if (fuse_session_mount(mount->session, mount->path) < 0)
		return -EOPNOTSUPP; /* libfuse has said why */
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

void mounts_tick(struct mounts *m)
{
	struct fake *f = m->mount[0].fake;

	fake_lock(f);
	for (int i = 0; i < MOUNTS_COUNT; i++)
		for (struct handle *h = m->mount[i].handles; h; h = h->next)
			if (handle_fires(f, h) && h->poll)
				(void)fuse_lowlevel_notify_poll(h->poll);
	fake_unlock(f);
}

static void wait_for_threads(struct mount *mount)
{
	if (mount->serving)
		pthread_join(mount->thread, NULL);
	mount->serving = false;
}

/*
 * A file that somebody still has open keeps the connection and with it our threads in their reads:
 * MNT_FORCE aborts it. Without the right to unmount libfuse asks fusermount3.
 */
static void unmount(struct mount *mount)
{
	if (mount->serving)
		fuse_session_exit(mount->session);
	if (umount2(mount->path, MNT_FORCE) == 0 || umount2(mount->path, MNT_DETACH) == 0)
		wait_for_threads(mount);
	fuse_session_unmount(mount->session);
	wait_for_threads(mount);
}

struct mounts *mounts_stop(struct mounts *m)
{
	if (!m)
		return NULL;
	fake_stop(m->mount[0].fake);
	for (int i = 0; i < MOUNTS_COUNT; i++) {
		struct mount *mount = &m->mount[i];

		if (mount->mounted)
			unmount(mount);
		if (mount->session)
			fuse_session_destroy(mount->session);
		/* files that were still open, or whose closing nobody waited for */
		while (mount->handles) {
			struct handle *h = mount->handles;

			handle_unlink(h);
			forget_poll(h);
			handle_free(h);
		}
		inodes_free(&mount->inodes);
		free(mount->path);
	}
	closep(&m->lifeline);
	free(m);
	return NULL;
}
