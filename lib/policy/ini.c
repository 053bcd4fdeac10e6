/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "policy/ini.h"

#include <errno.h>
#include <ini.h>

/* More keys than this in one file are a mistake, and keep looking for repetitions cheap. */
#define KEYS_MAX 4096U

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Bytes [from, to) of the line that is being looked at. */
struct span {
	size_t from, to;
};

/* What stood where, to find repetitions. */
struct seen {
	char *section, *key; /* key NULL: a section head */
	unsigned line;
};

struct guard {
	const char *file, *text;
	size_t len, at;
	unsigned line;
	struct text raw;  /* the line being looked at, without its end */
	struct text feed; /* the line that inih gets */
	size_t fed;
	ini_handler_fn handler;
	void *user;
	struct diagnostics *d;
	int error;      /* -ENOMEM, or what the handler said: ends everything */
	bool any_error; /* in the text */

	char section[INI_NAME_LIMIT + 1];
	bool in_section, bad_section;
	bool open;    /* the last line of a value ended in a backslash */
	bool skip;    /* … of a value that was refused: so are its other lines */
	bool pending; /* `key` and `value` wait for more lines, or to be handed on */
	char key[INI_NAME_LIMIT + 1];
	struct ini_value value;
	struct text joined;

	/* what inih must make of the line it was given last */
	bool expected;
	struct text expected_value;

	struct seen *seen;
	size_t nr_seen, seen_room;
};

static void value_clear(struct ini_value *v)
{
	for (size_t i = 0; i < v->nr_parts; i++)
		free(v->parts[i].raw);
	free(v->parts);
	free(v->text);
	*v = (struct ini_value){0};
}

static int value_add_part(struct ini_value *v, size_t offset, unsigned line, unsigned column,
			  const char *raw)
{
	struct ini_part *parts = realloc(v->parts, (v->nr_parts + 1) * sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	v->parts = parts;
	parts[v->nr_parts] = (struct ini_part){
		.offset = offset, .line = line, .column = column, .raw = strdup(raw)};
	if (!parts[v->nr_parts].raw)
		return -ENOMEM;
	v->nr_parts++;
	v->raw = parts[0].raw;
	return 0;
}

struct ini_pos ini_value_pos(const struct ini_value *v, size_t offset, const char **ret_raw)
{
	size_t i = v->nr_parts - 1;

	while (i > 0 && v->parts[i].offset > offset)
		i--;
	if (ret_raw)
		*ret_raw = v->parts[i].raw;
	return (struct ini_pos){v->file, v->parts[i].line,
				v->parts[i].column + (unsigned)(offset - v->parts[i].offset)};
}

struct ini_pos ini_key_pos(const struct ini_value *v)
{
	return (struct ini_pos){v->file, v->line, v->column};
}

static void refuse(struct guard *g, size_t at, const char *fmt, ...) _printf_(3, 4);
static void refuse(struct guard *g, size_t at, const char *fmt, ...)
{
	struct ini_pos pos = {g->file, g->line, (unsigned)at + 1};
	char message[400];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	(void)diagnostics_add(g->d, &pos, text_str(&g->raw), NULL, "%s", message);
	g->any_error = true;
}

static int remember(struct guard *g, const char *section, const char *key)
{
	struct seen *s;

	if (g->nr_seen == g->seen_room) {
		size_t room = g->seen_room ? g->seen_room * 2 : 32;

		s = realloc(g->seen, room * sizeof(*s));
		if (!s)
			return -ENOMEM;
		g->seen = s;
		g->seen_room = room;
	}
	s = &g->seen[g->nr_seen];
	*s = (struct seen){
		.section = strdup(section), .key = key ? strdup(key) : NULL, .line = g->line};
	if (!s->section || (key && !s->key)) {
		free(s->section);
		free(s->key);
		return -ENOMEM;
	}
	g->nr_seen++;
	return 0;
}

/* The line where this stood before; 0 for never. */
static unsigned seen_at(const struct guard *g, const char *section, const char *key)
{
	for (size_t i = 0; i < g->nr_seen; i++) {
		const struct seen *s = &g->seen[i];

		if (!s->key == !key && (!key || streq(s->key, key)) && streq(s->section, section))
			return s->line;
	}
	return 0;
}

/* Hands the pending value on, now that no line can add to it. */
static void flush(struct guard *g)
{
	struct ini_pos pos = {g->file, g->value.line, g->value.column};

	if (!g->pending)
		return;
	g->pending = false;
	g->value.text = g->joined.data ? strdup(g->joined.data) : strdup("");
	if (!g->value.text || g->joined.failed)
		g->error = -ENOMEM;
	if (g->error == 0)
		g->error = g->handler(g->user, g->section, g->key, &g->value, &pos, g->value.raw);
	value_clear(&g->value);
}

/* The length of a UTF-8 sequence at `p`, 0 where there is none. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
	static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
	unsigned code = n == 1 ? *p : n == 2 ? *p & 31U : n == 3 ? *p & 15U : *p & 7U;

	if (n == 0 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (p[i] >> 6 != 2)
			return 0;
		code = code << 6 | (p[i] & 63U);
	}
	if (n > 1 && (code < least[n] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff))
		return 0;
	return n;
}

/* Refuses bytes that are no text. */
static bool bytes_are_text(struct guard *g, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;

	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_length(p + i, len - i);
		if (n == 0) {
			refuse(g, i, "byte 0x%02x is not valid UTF-8", p[i]);
			return false;
		}
		if (p[i] == 0) {
			refuse(g, i, "a NUL byte");
			return false;
		}
		if (p[i] < 0x20 && p[i] != '\t') {
			refuse(g, i, "control character 0x%02x", p[i]);
			return false;
		}
		if (p[i] == 0x7f) {
			refuse(g, i, "control character 0x7f");
			return false;
		}
	}
	return true;
}

/* The comment in [from, end): a `;` with a blank before it; `end` where there is none. */
static size_t comment_start(const char *s, size_t from, size_t end)
{
	for (size_t i = from + 1; i < end; i++)
		if (s[i] == ';' && is_blank(s[i - 1]))
			return i;
	return end;
}

static struct span trim(const char *s, size_t from, size_t to)
{
	while (from < to && is_blank(s[from]))
		from++;
	while (to > from && is_blank(s[to - 1]))
		to--;
	return (struct span){from, to};
}

/*
 * Looks at the value in [from, len): finds its comment and whether it goes on. False when refused.
 * The text that remains goes to *ret.
 */
static bool take_value(struct guard *g, size_t from, struct span *ret)
{
	const char *s = text_str(&g->raw);
	size_t len = g->raw.len, comment = comment_start(s, from, len);
	size_t quotes = 0;

	for (size_t i = from; i < comment; i++)
		quotes += s[i] == '"';
	if (comment < len && quotes % 2) {
		refuse(g, comment, "` ;` starts a comment, inside quotes too");
		return false;
	}
	g->open = len > from && s[len - 1] == '\\';
	if (g->open && comment < len) {
		refuse(g, len - 1, "a comment cannot go on in the next line");
		return false;
	}
	*ret = trim(s, from, g->open ? len - 1 : comment);
	if (ret->to > ret->from && s[ret->to - 1] == '\\') {
		refuse(g, ret->to - 1,
		       "`\\` joins lines only as the last character of a line; here something "
		       "follows");
		g->open = true; /* as it was meant */
		return false;
	}
	return true;
}

/* Adds a piece to the pending value and says what inih must make of it. */
static void take_part(struct guard *g, struct span at)
{
	const char *s = text_str(&g->raw);
	int r;

	if (g->value.nr_parts > 0 && g->joined.len > 0 && at.to > at.from)
		text_add(&g->joined, " ");
	r = value_add_part(&g->value, g->joined.len, g->line, (unsigned)at.from + 1, s);
	if (r < 0)
		g->error = r;
	text_add_n(&g->joined, s + at.from, at.to - at.from);
	text_clear(&g->expected_value);
	text_add_n(&g->expected_value, s + at.from, at.to - at.from);
	g->expected = true;
}

static void drop_pending(struct guard *g)
{
	g->pending = false;
	value_clear(&g->value);
	g->skip = g->open;
}

/* After a line that was refused as a whole: what goes on from it is refused with it. */
static void skip_line(struct guard *g)
{
	if (g->open && !g->skip)
		drop_pending(g);
	g->open = g->skip = g->raw.len > 0 && g->raw.data[g->raw.len - 1] == '\\';
}

/* A line that goes on from the one before. */
static void take_continuation(struct guard *g)
{
	const char *s = text_str(&g->raw);
	bool skip = g->skip;
	struct span at;

	g->skip = false;
	if (!take_value(g, 0, &at)) {
		if (!skip)
			drop_pending(g);
		g->skip = g->open;
		return;
	}
	if (skip) {
		g->skip = g->open;
		return;
	}
	if (at.from == at.to)
		return;
	/* a leading blank is what makes inih take the line for more of the value above */
	text_add(&g->feed, " ");
	text_add_n(&g->feed, s + at.from, at.to - at.from);
	take_part(g, at);
}

static bool name_is_sound(struct guard *g, struct span at, const char *what)
{
	const char *s = text_str(&g->raw);

	if (at.from == at.to) {
		refuse(g, at.from, "%s without a name", what);
		return false;
	}
	if (at.to - at.from > INI_NAME_LIMIT) {
		refuse(g, at.from + INI_NAME_LIMIT, "the name of a %s has at most %u bytes", what,
		       INI_NAME_LIMIT);
		return false;
	}
	for (size_t i = at.from; i < at.to; i++)
		if (strchr("[];#=\"", s[i])) {
			refuse(g, i, "`%c` in the name of a %s", s[i], what);
			return false;
		}
	return true;
}

static void take_section(struct guard *g)
{
	const char *s = text_str(&g->raw), *close = strchr(s, ']');
	struct ini_pos pos = {g->file, g->line, 1};
	struct span name;
	unsigned before;
	size_t rest;

	g->bad_section = true;
	if (!close) {
		refuse(g, g->raw.len, "the section's name does not end in `]`");
		return;
	}
	name = (struct span){1, (size_t)(close - s)};
	rest = name.to + 1;
	while (rest < g->raw.len && is_blank(s[rest]))
		rest++;
	if (rest < g->raw.len && (s[rest] != ';' || rest == name.to + 1)) {
		refuse(g, rest, "text behind `]`");
		return;
	}
	if (is_blank(s[1]) || is_blank(close[-1])) {
		refuse(g, is_blank(s[1]) ? 1 : name.to - 1,
		       "blanks between the brackets and the section's name");
		return;
	}
	if (!name_is_sound(g, name, "section"))
		return;
	(void)snprintf(g->section, sizeof(g->section), "%.*s", (int)(name.to - name.from), s + 1);
	before = seen_at(g, g->section, NULL);
	if (before) {
		refuse(g, 0, "section [%s] stands in line %u already", g->section, before);
		return;
	}
	g->error = remember(g, g->section, NULL);
	g->bad_section = false;
	g->in_section = true;
	text_addf(&g->feed, "[%s]", g->section);
	if (g->error == 0)
		g->error = g->handler(g->user, g->section, NULL, NULL, &pos, s);
}

/* Where the key ends: its `=`. SIZE_MAX when refused. */
static size_t find_equals(struct guard *g)
{
	const char *s = text_str(&g->raw);
	size_t end = comment_start(s, 0, g->raw.len);
	const char *equals = memchr(s, '=', end), *colon = memchr(s, ':', end);

	if (colon && (!equals || colon < equals)) {
		refuse(g, (size_t)(colon - s), "a key is set with `=`, not with `:`");
		return SIZE_MAX;
	}
	if (!equals) {
		refuse(g, trim(s, 0, end).to, "a key without `=`");
		return SIZE_MAX;
	}
	return (size_t)(equals - s);
}

static bool key_has_place(struct guard *g, struct span name)
{
	const char *s = text_str(&g->raw);
	char key[INI_NAME_LIMIT + 1];
	unsigned before;

	if (!name_is_sound(g, name, "key"))
		return false;
	if (!g->in_section && !g->bad_section) {
		refuse(g, 0, "a key before any [Section]");
		return false;
	}
	if (g->bad_section)
		return false;
	(void)snprintf(key, sizeof(key), "%.*s", (int)(name.to - name.from), s + name.from);
	before = seen_at(g, g->section, key);
	if (before) {
		refuse(g, 0, "%s= stands in line %u of this section already", key, before);
		return false;
	}
	if (g->nr_seen >= KEYS_MAX) {
		refuse(g, 0, "more than %u keys and sections in one file", KEYS_MAX);
		g->at = g->len;
		return false;
	}
	g->error = remember(g, g->section, key);
	(void)memcpy(g->key, key, sizeof(key));
	return true;
}

static void take_key(struct guard *g)
{
	const char *s = text_str(&g->raw);
	size_t equals = find_equals(g);
	struct span name, at;

	g->open = s[g->raw.len - 1] == '\\';
	g->skip = g->open;
	if (equals == SIZE_MAX)
		return;
	name = trim(s, 0, equals);
	if (!key_has_place(g, name))
		return;
	if (!take_value(g, equals + 1, &at)) {
		g->skip = g->open;
		return;
	}
	g->skip = false;
	g->pending = true;
	text_clear(&g->joined);
	g->value = (struct ini_value){.file = g->file, .line = g->line, .column = 1};
	text_add_n(&g->feed, s, g->open ? g->raw.len - 1 : g->raw.len);
	take_part(g, at);
}

static void take_line(struct guard *g)
{
	const char *s = text_str(&g->raw);
	size_t first = 0;

	while (is_blank(s[first]))
		first++;
	/* comments may stand anywhere, also between the lines of a value */
	if (s[first] == ';' || s[first] == '#')
		return;
	if (g->raw.len > INI_LINE_LIMIT) {
		refuse(g, INI_LINE_LIMIT,
		       "this line has %zu bytes, at most %u fit: break it with `\\`", g->raw.len,
		       INI_LINE_LIMIT);
		skip_line(g);
		return;
	}
	if (g->open) {
		take_continuation(g);
		return;
	}
	flush(g);
	if (!s[first])
		return;
	if (first > 0) {
		refuse(g, 0,
		       "an indented line: keys and sections start in column 1, and a value goes on "
		       "only behind a `\\`");
		skip_line(g);
		return;
	}
	if (*s == '[')
		take_section(g);
	else
		take_key(g);
}

/* The next raw line into g->raw, without its end. False at the end of the file. */
static bool next_line(struct guard *g)
{
	const char *s = g->text + g->at, *end;
	size_t len;

	if (g->at >= g->len)
		return false;
	end = memchr(s, '\n', g->len - g->at);
	len = end ? (size_t)(end - s) : g->len - g->at;
	g->at += len + (end != NULL);
	g->line++;
	if (end && len > 0 && s[len - 1] == '\r')
		len--;
	text_clear(&g->raw);
	text_add_n(&g->raw, s, len);
	if (bytes_are_text(g, s, len))
		take_line(g);
	else
		skip_line(g);
	return true;
}

/* What inih was given last must have come back from it. */
static void check_taken(struct guard *g)
{
	if (!g->expected)
		return;
	g->expected = false;
	refuse(g, 0, "inih does not read this line");
	if (g->pending)
		drop_pending(g);
}

/* inih's view of the file: for each raw line what we let through, in pieces if it must be. */
static char *reader(char *buf, int size, void *stream)
{
	struct guard *g = stream;

	if (g->error < 0)
		return NULL;
	check_taken(g);
	text_clear(&g->feed);
	if (!next_line(g))
		return NULL;
	text_add(&g->feed, "\n");
	if (g->feed.failed)
		g->error = -ENOMEM;
	if (g->error < 0)
		return NULL;
	if (size <= 0 || g->feed.len >= (size_t)size) {
		refuse(g, 0, "inih on this machine takes lines of %d bytes only", size);
		if (g->pending)
			drop_pending(g);
		g->expected = false;
		(void)snprintf(buf, (size_t)MAX_OF(size, 0), "\n");
		return buf;
	}
	(void)memcpy(buf, g->feed.data, g->feed.len + 1);
	return buf;
}

/* inih's reading of the line, held against ours. */
static int splitter(void *user, const char *section, const char *name, const char *value)
{
	struct guard *g = user;

	if (g->error < 0)
		return 1;
	if (!g->expected || !value || !streq(section, g->section) || !streq(name, g->key) ||
	    !streq(value, text_str(&g->expected_value))) {
		refuse(g, 0, "this line can be read in two ways; write it more plainly");
		if (g->pending)
			drop_pending(g);
	}
	g->expected = false;
	return 1;
}

static void guard_free(struct guard *g)
{
	for (size_t i = 0; i < g->nr_seen; i++) {
		free(g->seen[i].section);
		free(g->seen[i].key);
	}
	free(g->seen);
	value_clear(&g->value);
	text_free(&g->raw);
	text_free(&g->feed);
	text_free(&g->joined);
	text_free(&g->expected_value);
}

int ini_guarded_parse(const char *file, const char *text, size_t len, ini_handler_fn handler,
		      void *user, struct diagnostics *d)
{
	static const char bom[] = "\xef\xbb\xbf";
	_cleanup_(guard_free) struct guard g = {
		.file = file, .text = text, .len = len, .handler = handler, .user = user, .d = d};
	int bad_line;

	if (len > INI_FILE_LIMIT)
		return diagnostics_add(d, &(struct ini_pos){file, 0, 0}, NULL, NULL,
				       "%zu bytes are no configuration file; at most %u are read",
				       len, INI_FILE_LIMIT);
	if (len >= 3 && memcmp(text, bom, 3) == 0)
		g.at = 3;
	bad_line = ini_parse_stream(reader, &g, splitter, &g);
	if (g.error == 0)
		check_taken(&g);
	if (g.error == 0 && g.open && !g.any_error)
		refuse(&g, g.raw.len ? g.raw.len - 1 : 0, "the file ends where a line goes on");
	else if (g.error == 0)
		flush(&g);
	if (g.error == 0 && bad_line != 0 && !g.any_error)
		refuse(&g, 0, "inih does not read line %d", bad_line);
	return g.error < 0 ? g.error : g.any_error ? -EBADMSG : 0;
}

/* Documents */

static void section_clear(struct ini_section *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		free(s->entries[i].key);
		value_clear(&s->entries[i].value);
	}
	free(s->entries);
	free(s->name);
	free(s->raw);
}

void ini_doc_free(struct ini_doc *doc)
{
	for (size_t i = 0; i < doc->nr; i++)
		section_clear(&doc->sections[i]);
	free(doc->sections);
	for (size_t i = 0; i < doc->nr_files; i++)
		free(doc->files[i]);
	free(doc->files);
	*doc = (struct ini_doc){0};
}

const struct ini_section *ini_doc_section(const struct ini_doc *doc, const char *name)
{
	for (size_t i = 0; i < doc->nr; i++)
		if (streq(doc->sections[i].name, name))
			return &doc->sections[i];
	return NULL;
}

static struct ini_entry *section_entry(const struct ini_section *s, const char *key)
{
	for (size_t i = 0; i < s->nr; i++)
		if (streq(s->entries[i].key, key))
			return &s->entries[i];
	return NULL;
}

const struct ini_value *ini_section_get(const struct ini_section *s, const char *key)
{
	const struct ini_entry *e = section_entry(s, key);

	return e ? &e->value : NULL;
}

static int value_copy(struct ini_value *to, const struct ini_value *from, const char *file)
{
	*to = (struct ini_value){.text = strdup(from->text),
				 .file = file,
				 .line = from->line,
				 .column = from->column};
	if (!to->text)
		return -ENOMEM;
	for (size_t i = 0; i < from->nr_parts; i++) {
		const struct ini_part *p = &from->parts[i];
		int r = value_add_part(to, p->offset, p->line, p->column, p->raw);

		if (r < 0)
			return r;
	}
	return 0;
}

struct doc_load {
	struct ini_doc *doc;
	const char *file; /* the document's own copy */
	bool *reset;      /* sections that lost a key to an empty value */
	size_t section;   /* index of the section at hand */
};

static int load_section(struct doc_load *l, const char *name, const struct ini_pos *pos,
			const char *raw)
{
	struct ini_doc *doc = l->doc;
	struct ini_section *s;

	for (l->section = 0; l->section < doc->nr; l->section++)
		if (streq(doc->sections[l->section].name, name))
			return 0;
	if (doc->nr == doc->room) {
		size_t room = doc->room ? doc->room * 2 : 8;

		s = realloc(doc->sections, room * sizeof(*s));
		if (!s)
			return -ENOMEM;
		doc->sections = s;
		doc->room = room;
	}
	s = &doc->sections[doc->nr];
	*s = (struct ini_section){
		.name = strdup(name), .file = l->file, .line = pos->line, .raw = strdup(raw)};
	doc->nr++;
	return s->name && s->raw ? 0 : -ENOMEM;
}

static void section_remove(struct ini_section *s, const char *key)
{
	struct ini_entry *e = section_entry(s, key);

	if (!e)
		return;
	free(e->key);
	value_clear(&e->value);
	s->nr--;
	(void)memmove(e, e + 1, (size_t)(s->entries + s->nr - e) * sizeof(*e));
}

static int load_key(struct ini_section *s, const char *key, const struct ini_value *value,
		    const char *file)
{
	struct ini_entry *e = section_entry(s, key);

	if (e) {
		value_clear(&e->value);
		return value_copy(&e->value, value, file);
	}
	if (s->nr == s->room) {
		size_t room = s->room ? s->room * 2 : 8;

		e = realloc(s->entries, room * sizeof(*e));
		if (!e)
			return -ENOMEM;
		s->entries = e;
		s->room = room;
	}
	e = &s->entries[s->nr];
	*e = (struct ini_entry){.key = strdup(key)};
	s->nr++;
	return e->key ? value_copy(&e->value, value, file) : -ENOMEM;
}

static int load_handler(void *user, const char *section, const char *key,
			const struct ini_value *value, const struct ini_pos *pos, const char *raw)
{
	struct doc_load *l = user;

	if (!key)
		return load_section(l, section, pos, raw);
	if (!*value->text) {
		section_remove(&l->doc->sections[l->section], key);
		return 0;
	}
	return load_key(&l->doc->sections[l->section], key, value, l->file);
}

static const char *doc_add_file(struct ini_doc *doc, const char *file)
{
	char **files = realloc(doc->files, (doc->nr_files + 1) * sizeof(*files));

	if (!files)
		return NULL;
	doc->files = files;
	files[doc->nr_files] = strdup(file);
	return files[doc->nr_files] ? files[doc->nr_files++] : NULL;
}

static const char *own_file(const struct ini_doc *to, const struct ini_doc *from, const char *file)
{
	for (size_t i = 0; i < from->nr_files; i++)
		if (from->files[i] == file)
			return to->files[i];
	return NULL;
}

static int copy_section(struct ini_doc *to, const struct ini_doc *from, const struct ini_section *s)
{
	struct ini_section *copy = &to->sections[to->nr++];

	*copy = (struct ini_section){.name = strdup(s->name),
				     .file = own_file(to, from, s->file),
				     .line = s->line,
				     .raw = strdup(s->raw)};
	if (!copy->name || !copy->raw)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr; i++) {
		const struct ini_value *v = &s->entries[i].value;
		int r = load_key(copy, s->entries[i].key, v, own_file(to, from, v->file));

		if (r < 0)
			return r;
	}
	return 0;
}

int ini_doc_copy(struct ini_doc *to, const struct ini_doc *from)
{
	int r = 0;

	for (size_t i = 0; i < from->nr_files; i++)
		if (!doc_add_file(to, from->files[i]))
			return -ENOMEM;
	to->sections = calloc(from->nr + 1, sizeof(*to->sections));
	if (!to->sections)
		return -ENOMEM;
	to->room = from->nr + 1;
	for (size_t i = 0; r == 0 && i < from->nr; i++)
		r = copy_section(to, from, &from->sections[i]);
	return r;
}

/* Drops sections that this file emptied: they were there with keys before, and have none now. */
static void drop_emptied(struct ini_doc *doc, const size_t *keys_before, size_t nr_before)
{
	size_t kept = 0;

	for (size_t i = 0; i < doc->nr; i++) {
		if (i < nr_before && keys_before[i] > 0 && doc->sections[i].nr == 0)
			section_clear(&doc->sections[i]);
		else
			doc->sections[kept++] = doc->sections[i];
	}
	doc->nr = kept;
}

int ini_doc_add(struct ini_doc *doc, const char *file, const char *text, size_t len,
		struct diagnostics *d)
{
	_cleanup_(freep) size_t *keys_before = NULL;
	size_t nr_before = doc->nr;
	struct doc_load l = {.doc = doc, .file = doc_add_file(doc, file)};
	int r;

	keys_before = calloc(nr_before + 1, sizeof(*keys_before));
	if (!l.file || !keys_before)
		return -ENOMEM;
	for (size_t i = 0; i < nr_before; i++)
		keys_before[i] = doc->sections[i].nr;
	r = ini_guarded_parse(l.file, text, len, load_handler, &l, d);
	if (r == 0 || r == -EBADMSG)
		drop_emptied(doc, keys_before, nr_before);
	return r;
}

/* One key, each piece of its value on a line of its own. */
static void print_entry(const struct ini_entry *e, struct text *into)
{
	const struct ini_value *v = &e->value;

	text_addf(into, "%s=", e->key);
	for (size_t i = 0; i < v->nr_parts; i++) {
		size_t from = v->parts[i].offset;
		size_t to = i + 1 < v->nr_parts ? v->parts[i + 1].offset : strlen(v->text);

		while (to > from && v->text[to - 1] == ' ')
			to--;
		/* indented for the eye, where the line has room for that */
		text_addf(into, "%s%.*s%s", i > 0 && to - from + 6 < INI_LINE_LIMIT ? "    " : "",
			  (int)(to - from), v->text + from, i + 1 < v->nr_parts ? "\\\n" : "\n");
	}
}

void ini_doc_print(const struct ini_doc *doc, struct text *into)
{
	for (size_t i = 0; i < doc->nr; i++) {
		const struct ini_section *s = &doc->sections[i];
		const char *file = NULL;

		text_addf(into, "%s[%s]\n", i > 0 ? "\n" : "", s->name);
		for (size_t k = 0; k < s->nr; k++) {
			const struct ini_value *v = &s->entries[k].value;

			if (!file || !streq(file, v->file))
				text_addf(into, "# %s\n", v->file);
			file = v->file;
			print_entry(&s->entries[k], into);
		}
	}
}
