/*
 * Documents -> records. The images and updatedFields are JSON text inside strings, written straight
 * from BSON; the key is the text of the _id.
 *
 * cdcd_bson_json escapes what it writes for the string around it, so there is no copy in between.
 */
#include "dbz.h"

#include <cdcd/bson.h>

/* ---- json.serialization.mode ---- */

struct mode {
    struct cdcd_bson_style document, updated, key;
};

#define STYLE(f, s)                                \
    {                                              \
        .form = (f), .spaced = (s), .quoted = true \
    }

/* legacy has updatedFields in another form than documents, and other white space. */
static const struct mode modes[] = {
    [CDCD_DOCUMENT_LEGACY] = {STYLE(CDCD_BSON_STRICT, false), STYLE(CDCD_BSON_RELAXED, true),
                              STYLE(CDCD_BSON_RELAXED, false)},
    [CDCD_DOCUMENT_STRICT] = {STYLE(CDCD_BSON_STRICT, false), STYLE(CDCD_BSON_STRICT, false),
                              STYLE(CDCD_BSON_RELAXED, false)},
    [CDCD_DOCUMENT_EXTENDED] = {STYLE(CDCD_BSON_EXTENDED, false), STYLE(CDCD_BSON_EXTENDED, false),
                                STYLE(CDCD_BSON_RELAXED, false)},
    [CDCD_DOCUMENT_RELAXED] = {STYLE(CDCD_BSON_RELAXED, false), STYLE(CDCD_BSON_RELAXED, false),
                               STYLE(CDCD_BSON_RELAXED, false)},
    [CDCD_DOCUMENT_PLAIN] = {STYLE(CDCD_BSON_PLAIN, false), STYLE(CDCD_BSON_PLAIN, false),
                             STYLE(CDCD_BSON_PLAIN, false)},
};

static const struct mode *mode_of(const struct dbz_job *j)
{
    return &modes[j->e->d.cfg->document_mode];
}

/* ---- parts ---- */

static bool malformed(struct dbz_job *j, const char *what, const char *why)
{
    return dbz_fail(&j->e->d, NULL,
                    "%s is no well-formed BSON: %s; look at the document on the server (validate "
                    "the collection there), or leave the event out by "
                    "event.processing.failure.handling.mode",
                    what, why);
}

/* A document that the log does not have is null. */
static bool put_image(struct dbz_job *j, const struct cdcd_cell *image, const char *what)
{
    const struct cdcd_cell *v = image ? &image[CDCD_DOC_DOCUMENT] : NULL;
    const char *why = "";
    if (!v || v->kind != CDCD_C_BSON) {
        cdcd_writer_lit(&j->w, "null");
        return true;
    }
    cdcd_writer_char(&j->w, '"');
    if (!cdcd_bson_json(&j->w, (struct cdcd_slice){v->ptr, v->len}, &mode_of(j)->document, &why))
        return malformed(j, what, why);
    cdcd_writer_char(&j->w, '"');
    return true;
}

static void put_removed(struct cdcd_writer *w, const struct cdcd_update *u)
{
    if (!u->nremoved) {
        cdcd_writer_lit(w, "null");
        return;
    }
    for (uint32_t i = 0; i < u->nremoved; i++) {
        cdcd_writer_char(w, i ? ',' : '[');
        cdcd_json_string(w, u->removed[i].ptr, u->removed[i].len);
    }
    cdcd_writer_char(w, ']');
}

static void put_truncated(struct cdcd_writer *w, const struct cdcd_update *u)
{
    if (!u->ntruncated) {
        cdcd_writer_lit(w, "null");
        return;
    }
    for (uint32_t i = 0; i < u->ntruncated; i++) {
        dbz_adds(w, i ? ",{\"field\":" : "[{\"field\":");
        cdcd_json_string(w, u->truncated[i].field.ptr, u->truncated[i].field.len);
        cdcd_writer_lit(w, ",\"size\":");
        cdcd_json_int(w, u->truncated[i].size);
        cdcd_writer_char(w, '}');
    }
    cdcd_writer_char(w, ']');
}

static bool put_update(struct dbz_job *j, const struct cdcd_update *u)
{
    struct cdcd_writer *w = &j->w;
    const char *why = "";
    if (!u) {
        cdcd_writer_lit(w, ",\"updateDescription\":null");
        return true;
    }
    cdcd_writer_lit(w, ",\"updateDescription\":{\"removedFields\":");
    put_removed(w, u);
    cdcd_writer_lit(w, ",\"updatedFields\":\"");
    if (!cdcd_bson_json(w, u->updated, &mode_of(j)->updated, &why))
        return malformed(j, "what the update set", why);
    cdcd_writer_lit(w, "\",\"truncatedArrays\":");
    put_truncated(w, u);
    cdcd_writer_char(w, '}');
    return true;
}

static bool put_value(struct dbz_job *j, char letter, struct cdcd_slice *out)
{
    const struct cdcd_event *ev = j->ev;
    char op[] = ",\"op\":\"?\",\"ts_ms\":";
    cdcd_writer_begin(&j->w, &j->b->arena);
    dbz_add(&j->w, j->t->value_prefix);
    if (!put_image(j, ev->before, "the document before the change"))
        return false;
    cdcd_writer_lit(&j->w, ",\"after\":");
    if (!put_image(j, ev->after, "the document") || !put_update(j, ev->update))
        return false;
    dbz_put_source(j);
    op[7] = letter;
    cdcd_writer_add(&j->w, op, sizeof(op) - 1);
    dbz_add(&j->w, j->e->now_ms);
    dbz_put_transaction(j, 0);
    cdcd_writer_char(&j->w, '}');
    dbz_add(&j->w, j->t->value_suffix);
    *out = cdcd_writer_end(&j->w);
    return true;
}

static bool put_key(struct dbz_job *j, struct cdcd_slice *out)
{
    const struct cdcd_event *ev = j->ev;
    const struct cdcd_cell *id = &(ev->after ? ev->after : ev->before)[CDCD_DOC_ID];
    const char *why = "";
    cdcd_writer_begin(&j->w, &j->b->arena);
    dbz_add(&j->w, j->t->key_prefix);
    cdcd_writer_lit(&j->w, "\"id\":\"");
    if (!cdcd_bson_json_value(&j->w, (uint8_t)id->aux, (struct cdcd_slice){id->ptr, id->len},
                              &mode_of(j)->key, &why))
        return malformed(j, "the _id", why);
    cdcd_writer_char(&j->w, '"');
    dbz_add(&j->w, j->t->key_suffix);
    *out = cdcd_writer_end(&j->w);
    return true;
}

struct cdcd_slice dbz_document_key(struct dbz_job *j)
{
    struct cdcd_slice key;
    return put_key(j, &key) ? dbz_bare_key(j->t, key) : (struct cdcd_slice){NULL, 0};
}

/* ---- headers for what the envelope has no field for ---- */

#define EXTRA 2

static bool put_headers(struct dbz_job *j, struct cdcd_header *h, uint32_t *n)
{
    static const struct cdcd_bson_style style = {.form = CDCD_BSON_RELAXED};
    const struct cdcd_event *ev = j->ev;
    const char *why = "";
    *n = 0;
    if (ev->after_lookup)
        h[(*n)++] = (struct cdcd_header){.name = cdcd_slice_str("cdcd.after"),
                                         .value = cdcd_slice_str("lookup")};
    if (!ev->update || !ev->update->ambiguous.ptr)
        return true;
    cdcd_writer_begin(&j->w, &j->b->arena);
    if (!cdcd_bson_json(&j->w, ev->update->ambiguous, &style, &why))
        return malformed(j, "what the update set (its paths)", why);
    h[(*n)++] = (struct cdcd_header){
        .name = cdcd_slice_str("cdcd.paths"), .value = cdcd_writer_end(&j->w), .json = true};
    return true;
}

/* ---- events ---- */

enum cdcd_rc dbz_check_document(const struct cdcd_event *ev, struct cdcd_error *err)
{
    const struct cdcd_cell *image = ev->op == CDCD_OP_DELETE ? ev->before : ev->after;
    if (ev->op == CDCD_OP_TRUNCATE || !image || image[CDCD_DOC_ID].kind != CDCD_C_BSON)
        return cdcd_error_set(err, CDCD_ERR_FATAL,
                              "the source gave a change of %s.%s without an _id; this is a bug in "
                              "the source plugin, please report it",
                              ev->schema->db, ev->schema->table);
    return CDCD_OK;
}

bool dbz_encode_document(struct dbz_job *j)
{
    static const char letters[] = {[CDCD_OP_CREATE] = 'c',
                                   [CDCD_OP_READ] = 'r',
                                   [CDCD_OP_UPDATE] = 'u',
                                   [CDCD_OP_DELETE] = 'd'};
    struct cdcd_topic *topic = j->t->topic;
    struct cdcd_header extra[EXTRA];
    struct cdcd_slice key, value;
    uint32_t n;
    if (!put_key(j, &key) || !put_value(j, letters[j->ev->op], &value) ||
        !put_headers(j, extra, &n))
        return false;
    dbz_add_record(j, topic, key, value, 0, extra, n);
    if (j->ev->op == CDCD_OP_DELETE && j->e->d.cfg->tombstones_on_delete)
        dbz_add_record(j, topic, key, (struct cdcd_slice){NULL, 0}, 1, NULL, 0);
    return true;
}
