/*
 * bson_write.c: BSON documents written straight into an arena. Lengths are filled in when a
 * document is closed; offsets, not pointers, since the writer may move.
 */
#include "oplog.h"

static void add(struct cdcd_writer *w, struct cdcd_slice s)
{
    if (s.len)
        cdcd_writer_add(w, s.ptr, s.len);
}

static void begin_document(struct mg_writer *w)
{
    w->open[w->depth++] = (size_t)(w->w.pos - w->w.start);
    cdcd_writer_add(&w->w, "\0\0\0\0", 4);
}

void mg_bson_begin(struct mg_writer *w, struct cdcd_arena *a)
{
    w->depth = 0;
    cdcd_writer_begin(&w->w, a);
    begin_document(w);
}

void mg_bson_element(struct mg_writer *w, uint8_t type, struct cdcd_slice name,
                     struct cdcd_slice value)
{
    cdcd_writer_char(&w->w, (char)type);
    add(&w->w, name);
    cdcd_writer_char(&w->w, 0);
    add(&w->w, value);
}

bool mg_bson_open(struct mg_writer *w, uint8_t type, struct cdcd_slice name)
{
    if (w->depth > CDCD_BSON_DEPTH)
        return false;
    mg_bson_element(w, type, name, (struct cdcd_slice){NULL, 0});
    begin_document(w);
    return true;
}

void mg_bson_close(struct mg_writer *w)
{
    cdcd_writer_char(&w->w, 0);
    char *at = w->w.start + w->open[--w->depth];
    uint32_t len = (uint32_t)(w->w.pos - at);
    memcpy(at, &len, sizeof len);
}

struct cdcd_slice mg_bson_end(struct mg_writer *w)
{
    while (w->depth)
        mg_bson_close(w);
    return cdcd_writer_end(&w->w);
}
