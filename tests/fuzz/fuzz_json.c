/* Whatever bytes go in, a JSON parser reads the string; well-formed UTF-8 comes out as it was. */
#include <cdcd/json.h>

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdcd_arena a;
    struct cdcd_writer w;
    cdcd_arena_init(&a, 64);
    cdcd_writer_begin(&w, &a);
    cdcd_json_string(&w, (const char *)data, size);
    struct cdcd_slice text = cdcd_writer_end(&w);
    json_t *read = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!json_is_string(read))
        abort();
    json_t *same = json_stringn((const char *)data, size);
    if (same && !json_equal(same, read))
        abort();
    json_decref(same);
    json_decref(read);
    cdcd_arena_free(&a);
    return 0;
}
