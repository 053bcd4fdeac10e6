/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * INI files, split by inih and guarded by us.
 *
 * inih passes a good deal in silence: it cuts lines and section names that are too long, skips what
 * stands behind `]`, takes an indented line for more of the value above, ends a line at a NUL byte,
 * merges what is written twice. Here every raw line is looked at before inih sees it, every such
 * thing is refused with file, line and column, and what inih hands on is compared with what the
 * line says. The rules of a file:
 *
 *   [Section]            starts in column 1, nothing behind it but a comment
 *   Key=value            starts in column 1; blanks around `=` and at the end are dropped
 *   Key=one \            a line that ends in `\` goes on in the next (joined by one blank)
 *       two
 *   ; comment  # comment whole lines
 *   Key=value ; comment  behind a value only `;` with a blank before it starts a comment
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>

/* A line may have this many bytes without its end (comment lines any number). */
#define INI_LINE_LIMIT 190U
/* Names of sections and keys: inih keeps 49 bytes. */
#define INI_NAME_LIMIT 48U
/* More than this is no configuration file. */
#define INI_FILE_LIMIT (1U << 20)

/* A place in a file. Lines and columns (bytes) count from 1; 0: the file as a whole. */
struct ini_pos {
	const char *file;
	unsigned line, column;
};

/* One thing to tell about a file. */
struct diagnostic {
	char *file; /* as the user knows it */
	unsigned line, column;
	bool warning;
	char *message; /* a sentence without a final newline */
	char *source;  /* the raw line; NULL where there is none */
	char *nearest; /* "did you mean"; NULL */
};

/* Everything found, in the order found. Zero-initialise; free with diagnostics_free(). */
struct diagnostics {
	struct diagnostic *list;
	size_t nr, room;
	size_t errors, warnings;
	bool failed; /* an allocation failed or more than DIAGNOSTICS_MAX: the list is not whole */
};
#define DIAGNOSTICS_MAX 1000U

/*
 * `source` (the raw line) and `nearest` may be NULL; all text is copied. diagnostics_add() returns
 * -EBADMSG so that a refusal is one line. `d` may be NULL: counts nothing, keeps nothing.
 */
int diagnostics_add(struct diagnostics *d, const struct ini_pos *pos, const char *source,
		    const char *nearest, const char *fmt, ...) _printf_(5, 6);
void diagnostics_warn(struct diagnostics *d, const struct ini_pos *pos, const char *source,
		      const char *nearest, const char *fmt, ...) _printf_(5, 6);
/* By file, line and column; equal places keep their order. */
void diagnostics_sort(struct diagnostics *d);
/*
 * "file:line:column: message (did you mean "X"?)", the line, and a caret below the column.
 * Warnings say "warning: " before the message. `colour`: for a terminal.
 */
void diagnostics_print(const struct diagnostics *d, FILE *out, bool colour);
void diagnostics_free(struct diagnostics *d);

/*
 * A value as it stands in the file: the joined text, and where each piece of it came from.
 */
struct ini_part {
	size_t offset; /* where this piece starts in `text` */
	unsigned line, column;
	char *raw; /* the whole raw line */
};

struct ini_value {
	char *text;            /* joined, without comments; "" for an empty value */
	const char *file;      /* of the document; see struct ini_doc */
	unsigned line, column; /* of the key */
	char *raw;             /* the raw line of the key */
	struct ini_part *parts;
	size_t nr_parts; /* at least 1 */
};

/* The place of byte `offset` of the joined text; its raw line into *ret_raw (may be NULL). */
struct ini_pos ini_value_pos(const struct ini_value *v, size_t offset, const char **ret_raw);
/* The place of the key. */
struct ini_pos ini_key_pos(const struct ini_value *v);

/*
 * Called for each section head (key and value NULL) and for each key in file order. `pos` is the
 * section's or key's place, `raw` its line. Everything is valid for the call only. Returns 0, or a
 * negative errno that ends the parse and is returned by it.
 */
typedef int (*ini_handler_fn)(void *user, const char *section, const char *key,
			      const struct ini_value *value, const struct ini_pos *pos,
			      const char *raw);

/*
 * Parses `len` bytes. Goes on behind an error, so that all of them are found; a line with an error
 * is not handed on. `file` is the name for messages. `d` may be NULL.
 * 0; -EBADMSG when there was an error; -ENOMEM; what the handler returned.
 */
int ini_guarded_parse(const char *file, const char *text, size_t len, ini_handler_fn handler,
		      void *user, struct diagnostics *d);

/*
 * A parsed file, or several on top of each other: sections and keys in file order, each with its
 * place.
 */
struct ini_entry {
	char *key;
	struct ini_value value;
};

struct ini_section {
	char *name;
	const char *file;
	unsigned line;
	char *raw;
	struct ini_entry *entries;
	size_t nr, room;
};

struct ini_doc {
	struct ini_section *sections;
	size_t nr, room;
	char **files; /* names that were read, lowest first; what `file` members point to */
	size_t nr_files;
};

/*
 * Reads `text` on top of what is in `doc` (zero-initialised at first): a section that is there is
 * amended key by key, a new one is appended; a new key is appended to its section. An empty value
 * takes the key away; a section that loses its last key that way is dropped. After an error the
 * sound lines have been taken nevertheless. Returns as ini_guarded_parse().
 */
int ini_doc_add(struct ini_doc *doc, const char *file, const char *text, size_t len,
		struct diagnostics *d);
void ini_doc_free(struct ini_doc *doc);
/* A copy of its own. `to` must be empty. 0 or -ENOMEM (then `to` is to be freed all the same). */
int ini_doc_copy(struct ini_doc *to, const struct ini_doc *from);

const struct ini_section *ini_doc_section(const struct ini_doc *doc, const char *name);
const struct ini_value *ini_section_get(const struct ini_section *s, const char *key);

/*
 * The effective text, with the file that the keys below it came from as a comment. What it prints
 * parses again to the same document.
 */
void ini_doc_print(const struct ini_doc *doc, struct text *into);
