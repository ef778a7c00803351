/*
 * crc32: the checksum of every event of the log (CRC-32 of IEEE 802.3, as zlib's).
 */
#include "decoder.h"

#include <zlib.h>

uint32_t my_crc32(uint32_t crc, const void *p, size_t n)
{
    const uint8_t *b = p;

    while (n > UINT32_MAX) {
        crc = (uint32_t)crc32(crc, b, UINT32_MAX);
        b += UINT32_MAX;
        n -= UINT32_MAX;
    }
    return (uint32_t)crc32(crc, b, (unsigned)n);
}
