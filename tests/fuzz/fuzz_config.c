/* Config text of any bytes: the YAML reader, the option tables and the plugins' tables. */
#include "config.h"
#include "plugin.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    /* Names of variables come from the input: the environment must not shape the result. */
    clearenv();
    cdcd_plugin_set_static(cdcd_static_plugins);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdcd_config *c;
    struct cdcd_error err = {0};
    if (cdcd_config_parse("fuzz", (const char *)data, size, &c, &err) == CDCD_OK) {
        cdcd_config_free(c);
    } else if (err.class != CDCD_ERR_CONFIG || !err.text[0] || c) {
        abort();
    }
    return 0;
}
