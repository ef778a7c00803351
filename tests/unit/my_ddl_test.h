/*
 * my_ddl_test.h: statements applied to models without a server, for the tests of the DDL parser,
 * schemas and shapes.
 */
#ifndef CDCD_TEST_MY_DDL_H
#define CDCD_TEST_MY_DDL_H

#include "ddl.h"
#include "value.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct my_world {
    struct my_server server;
    struct my_config cfg;
    struct my_filter *filter;
    struct my_shapes *shapes;
    struct cdcd_arena arena;
    struct cdcd_ddl *ddl; /* of the last statement */
    size_t n;
};

static inline void world_open(struct my_world *w, enum my_flavor flavor, int version)
{
    struct cdcd_error err;

    *w = (struct my_world){.server = {.flavor = flavor, .version = version, .charset = "utf8mb4"}};
    assert_int_equal(my_filter_new(&w->cfg, &w->filter, &err), CDCD_OK);
    w->shapes = my_shapes_new(&w->server, w->filter);
    cdcd_arena_init(&w->arena, 4096);
}

static inline void world_close(struct my_world *w)
{
    my_shapes_free(w->shapes);
    my_filter_free(w->filter);
    cdcd_arena_free(&w->arena);
}

/* In the database db, as UTF-8. */
static inline struct my_event query_of(const char *sql, size_t len)
{
    return (struct my_event){
        .kind = MY_EV_QUERY,
        .query = {.db = {"db", 2},
                  .text = {sql, len},
                  .charset_client = 45,
                  .collation_server = 45},
    };
}

static inline void apply_event(struct my_world *w, const struct my_event *e)
{
    struct cdcd_error err;

    assert_int_equal(my_shapes_apply(w->shapes, e, &w->arena, &w->ddl, &w->n, &err), CDCD_OK);
}

static inline void apply(struct my_world *w, const char *sql)
{
    struct my_event e = query_of(sql, strlen(sql));

    apply_event(w, &e);
}

static inline void put_column(struct cdcd_buf *b, const struct my_column *c)
{
    cdcd_buf_addf(b, "%s %s", c->name, c->type);
    if (c->length >= 0 && c->scale >= 0)
        cdcd_buf_addf(b, "(%d,%d)", c->length, c->scale);
    else if (c->length >= 0)
        cdcd_buf_addf(b, "(%d)", c->length);
    for (char **l = c->labels; l && *l; l++)
        cdcd_buf_addf(b, "%s%s", l == c->labels ? "[" : ",", *l);
    cdcd_buf_addf(b, "%s%s%s", c->labels ? "]" : "", c->charset ? " " : "",
                  c->charset ? c->charset : "");
    cdcd_buf_addf(b, "%s%s%s%s%s%s", c->nullable ? "" : " nn", c->auto_increment ? " ai" : "",
                  c->generated ? " gen" : "", c->virtual_ ? " virtual" : "",
                  c->invisible ? " invisible" : "", c->json_alias ? " json" : "");
    cdcd_buf_addf(b, "%s%s", c->compressed ? " compressed" : "",
                  c->on_update_now ? " onupdate" : "");
    if (c->default_)
        cdcd_buf_addf(b, " %s=%s", c->default_expr ? "expr" : "def", c->default_);
    if (c->comment)
        cdcd_buf_addf(b, " '%s'", c->comment);
}

/* "a INT nn, b VARCHAR(3) utf8mb4 | a" : columns and key; arena. "none" without a model. */
static inline const char *model_of(struct my_world *w, const char *name)
{
    const struct my_table *t = my_shapes_find(w->shapes, "db", name);
    struct cdcd_buf b;

    if (!t)
        return "none";
    cdcd_buf_init(&b, 0);
    if (t->unsure)
        cdcd_buf_adds(&b, "unsure: ");
    for (size_t i = 0; i < t->ncolumns; i++) {
        cdcd_buf_adds(&b, i ? ", " : "");
        put_column(&b, &t->columns[i]);
    }
    for (size_t i = 0; i < t->nkeys; i++)
        cdcd_buf_addf(&b, "%s%s", i ? "," : " | ", t->keys[i]);
    const char *out = cdcd_arena_dup(&w->arena, b.ptr, b.len);
    cdcd_buf_free(&b);
    return out;
}

#endif
