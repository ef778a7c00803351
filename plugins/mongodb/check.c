/*
 * check.c: what `cdcd check` says about the server, and `cdcd drop`. One line a finding, each with
 * what to run to mend it.
 */
#include "mg.h"

enum cdcd_rc mg_check(const void *config, const struct cdcd_source_env *env,
                      struct cdcd_report *report, struct cdcd_error *err)
{
    mongoc_client_t *c = NULL;
    struct mg_server server;
    (void)env;
    enum cdcd_rc rc = mg_client_new(config, &c, err);
    if (rc == CDCD_OK)
        rc = mg_server_info(c, &server, err);
    if (rc == CDCD_OK)
        rc = mg_check_server(c, config, &server, err);
    report->add(report->ctx, rc == CDCD_OK ? CDCD_CHECK_OK : CDCD_CHECK_FAIL, "connection",
                rc == CDCD_OK ? server.version : err->text, NULL);
    if (c)
        mongoc_client_destroy(c);
    return CDCD_OK;
}

enum cdcd_rc mg_drop(const void *config, const struct cdcd_source_env *env, bool dry,
                     struct cdcd_report *report, struct cdcd_error *err)
{
    (void)config, (void)env, (void)dry, (void)err;
    report->add(report->ctx, CDCD_CHECK_OK, "server", "nothing of cdcd is kept on the server",
                NULL);
    return CDCD_OK;
}
