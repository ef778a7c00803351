/* One table with a column of every PostgreSQL type: the whole record, bare and with its schema,
 * compared byte for byte with what Debezium 3.6 writes for the same row. */
#include "../support/encode_test.h"

static const char all_types[] =
    "{\"before\":null,\"after\":{\"id\":2,\"c_bool\":true,\"c_int2\":-32768,\"c_int4\":21474836"
    "47,\"c_int8\":9223372036854775807,\"c_float4\":1.1,\"c_float8\":2.2250738585072014E-300,\""
    "c_num\":{\"scale\":9,\"value\":\"AbabS6zQXxU=\"},\"c_num102\":\"SZYC0g==\",\"c_num50\":\"A"
    "Yaf\",\"c_money\":\"AeJA\",\"c_text\":\"héllo \\\"q\\\" \\n\\t \\\\ \\uD83D\\uDE00 \\u0001"
    "\",\"c_varchar\":\"varchar\",\"c_char\":\"ab   \",\"c_bytea\":\"AP8Qqw==\",\"c_date\":1978"
    "2,\"c_time\":47655123456,\"c_time3\":47655123,\"c_timetz\":\"10:44:15.123456Z\",\"c_ts\":1"
    "709212455123456,\"c_ts3\":1709212455123,\"c_tstz\":\"2024-02-29T11:14:15.123456Z\",\"c_int"
    "erval\":37091106789000,\"c_uuid\":\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\",\"c_json\":\"{"
    "\\\"a\\\": 1,  \\\"b\\\":[true,null]}\",\"c_jsonb\":\"{\\\"a\\\": 1.50, \\\"b\\\": [true, "
    "null]}\",\"c_int_arr\":[1,2,null],\"c_text_arr\":[\"a\",\"b c\",null,\"q\\\"x\"],\"c_num_a"
    "rr\":[\"bg==\",\"AOE=\"],\"c_ts_arr\":[1709212455123456],\"c_enum\":\"happy\",\"c_inet\":"
    "\"192.168.0.1/24\",\"c_cidr\":\"10.0.0.0/8\",\"c_macaddr\":\"08:00:2b:01:02:03\",\"c_macad"
    "dr8\":\"08:00:2b:01:02:03:04:05\",\"c_point\":{\"x\":1.5,\"y\":-2.25,\"wkb\":\"AQEAAAAAAAA"
    "AAAD4PwAAAAAAAALA\",\"srid\":null},\"c_hstore\":\"{\\\"a\\\":\\\"1\\\",\\\"b\\\":null}\","
    "\"c_xml\":\"<x a=\\\"1\\\">t</x>\",\"c_bit1\":true,\"c_bit8\":\"qg==\",\"c_varbit\":\"VQ=="
    "\",\"c_int4range\":\"[1,10)\",\"c_tstzrange\":\"[\\\"2024-01-01 00:00:00+00\\\",infinity)"
    "\",\"c_tsvector\":\"'fox' 'quick':1A 'the'\",\"c_domain\":7,\"c_oid\":4294967295,\"c_ltxt"
    "\":\"plain\",\"c_null\":null},\"source\":{\"version\":\"" CDCD_VERSION
    "\",\"connector\":\"postgresql\""
    ",\"name\":\"srv\",\"ts_ms\":1795986694821,\"snapshot\":\"false\",\"db\":\"typesdb\",\"sequ"
    "ence\":\"[null,\\\"27163256\\\"]\",\"ts_us\":1795986694821056,\"ts_ns\":179598669482105600"
    "0,\"schema\":\"public\",\"table\":\"types_t\",\"txId\":752,\"lsn\":27163256,\"xmin\":null,"
    "\"origin\":null,\"origin_lsn\":null},\"transaction\":{\"id\":\"752:27163256\",\"total_orde"
    "r\":1,\"data_collection_order\":1},\"op\":\"c\"";

static const char all_types_key_schema[] =
    "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"int64\",\"optional\":false,\"defa"
    "ult\":0,\"field\":\"id\"}],\"optional\":false,\"name\":\"srvs.public.types_t.Key\"},\"payl"
    "oad\":{\"id\":1}}";

static const char all_types_schema[] =
    "{\"schema\":{\"type\":\"struct\",\"fields\":[{\"type\":\"struct\",\"fields\":[{\"type\":\""
    "int64\",\"optional\":false,\"default\":0,\"field\":\"id\"},{\"type\":\"boolean\",\"optiona"
    "l\":true,\"field\":\"c_bool\"},{\"type\":\"int16\",\"optional\":true,\"field\":\"c_int2\"}"
    ",{\"type\":\"int32\",\"optional\":true,\"field\":\"c_int4\"},{\"type\":\"int64\",\"optiona"
    "l\":true,\"field\":\"c_int8\"},{\"type\":\"float\",\"optional\":true,\"field\":\"c_float4"
    "\"},{\"type\":\"double\",\"optional\":true,\"field\":\"c_float8\"},{\"type\":\"struct\",\""
    "fields\":[{\"type\":\"int32\",\"optional\":false,\"field\":\"scale\"},{\"type\":\"bytes\","
    "\"optional\":false,\"field\":\"value\"}],\"optional\":true,\"name\":\"io.debezium.data.Var"
    "iableScaleDecimal\",\"version\":1,\"doc\":\"Variable scaled decimal\",\"field\":\"c_num\"}"
    ",{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\","
    "\"version\":1,\"parameters\":{\"scale\":\"2\",\"connect.decimal.precision\":\"10\"},\"fiel"
    "d\":\"c_num102\"},{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connec"
    "t.data.Decimal\",\"version\":1,\"parameters\":{\"scale\":\"0\",\"connect.decimal.precision"
    "\":\"5\"},\"field\":\"c_num50\"},{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apac"
    "he.kafka.connect.data.Decimal\",\"version\":1,\"parameters\":{\"scale\":\"2\"},\"field\":"
    "\"c_money\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_text\"},{\"type\":\"stri"
    "ng\",\"optional\":true,\"field\":\"c_varchar\"},{\"type\":\"string\",\"optional\":true,\"f"
    "ield\":\"c_char\"},{\"type\":\"bytes\",\"optional\":true,\"field\":\"c_bytea\"},{\"type\":"
    "\"int32\",\"optional\":true,\"name\":\"io.debezium.time.Date\",\"version\":1,\"field\":\"c"
    "_date\"},{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.MicroTime\",\"v"
    "ersion\":1,\"field\":\"c_time\"},{\"type\":\"int32\",\"optional\":true,\"name\":\"io.debez"
    "ium.time.Time\",\"version\":1,\"field\":\"c_time3\"},{\"type\":\"string\",\"optional\":tru"
    "e,\"name\":\"io.debezium.time.ZonedTime\",\"version\":1,\"field\":\"c_timetz\"},{\"type\":"
    "\"int64\",\"optional\":true,\"name\":\"io.debezium.time.MicroTimestamp\",\"version\":1,\"f"
    "ield\":\"c_ts\"},{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.Timesta"
    "mp\",\"version\":1,\"field\":\"c_ts3\"},{\"type\":\"string\",\"optional\":true,\"name\":\""
    "io.debezium.time.ZonedTimestamp\",\"version\":1,\"field\":\"c_tstz\"},{\"type\":\"int64\","
    "\"optional\":true,\"name\":\"io.debezium.time.MicroDuration\",\"version\":1,\"field\":\"c_"
    "interval\"},{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Uuid\",\"ve"
    "rsion\":1,\"field\":\"c_uuid\"},{\"type\":\"string\",\"optional\":true,\"name\":\"io.debez"
    "ium.data.Json\",\"version\":1,\"field\":\"c_json\"},{\"type\":\"string\",\"optional\":true"
    ",\"name\":\"io.debezium.data.Json\",\"version\":1,\"field\":\"c_jsonb\"},{\"type\":\"array"
    "\",\"items\":{\"type\":\"int32\",\"optional\":true},\"optional\":true,\"field\":\"c_int_ar"
    "r\"},{\"type\":\"array\",\"items\":{\"type\":\"string\",\"optional\":true},\"optional\":tr"
    "ue,\"field\":\"c_text_arr\"},{\"type\":\"array\",\"items\":{\"type\":\"bytes\",\"optional"
    "\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\",\"version\":1,\"parameters\":{"
    "\"scale\":\"2\",\"connect.decimal.precision\":\"10\"}},\"optional\":true,\"field\":\"c_num"
    "_arr\"},{\"type\":\"array\",\"items\":{\"type\":\"int64\",\"optional\":true,\"name\":\"io."
    "debezium.time.MicroTimestamp\",\"version\":1},\"optional\":true,\"field\":\"c_ts_arr\"},{"
    "\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Enum\",\"version\":1,\"p"
    "arameters\":{\"allowed\":\"sad,ok,happy\"},\"field\":\"c_enum\"},{\"type\":\"string\",\"op"
    "tional\":true,\"field\":\"c_inet\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_c"
    "idr\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_macaddr\"},{\"type\":\"string"
    "\",\"optional\":true,\"field\":\"c_macaddr8\"},{\"type\":\"struct\",\"fields\":[{\"type\":"
    "\"double\",\"optional\":false,\"field\":\"x\"},{\"type\":\"double\",\"optional\":false,\"f"
    "ield\":\"y\"},{\"type\":\"bytes\",\"optional\":true,\"field\":\"wkb\"},{\"type\":\"int32\""
    ",\"optional\":true,\"field\":\"srid\"}],\"optional\":true,\"name\":\"io.debezium.data.geom"
    "etry.Point\",\"version\":1,\"doc\":\"Geometry (POINT)\",\"field\":\"c_point\"},{\"type\":"
    "\"string\",\"optional\":true,\"name\":\"io.debezium.data.Json\",\"version\":1,\"field\":\""
    "c_hstore\"},{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Xml\",\"ver"
    "sion\":1,\"field\":\"c_xml\"},{\"type\":\"boolean\",\"optional\":true,\"field\":\"c_bit1\""
    "},{\"type\":\"bytes\",\"optional\":true,\"name\":\"io.debezium.data.Bits\",\"version\":1,"
    "\"parameters\":{\"length\":\"8\"},\"field\":\"c_bit8\"},{\"type\":\"bytes\",\"optional\":t"
    "rue,\"name\":\"io.debezium.data.Bits\",\"version\":1,\"parameters\":{\"length\":\"16\"},\""
    "field\":\"c_varbit\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_int4range\"},{"
    "\"type\":\"string\",\"optional\":true,\"field\":\"c_tstzrange\"},{\"type\":\"string\",\"op"
    "tional\":true,\"name\":\"io.debezium.data.Tsvector\",\"version\":1,\"field\":\"c_tsvector"
    "\"},{\"type\":\"int32\",\"optional\":true,\"field\":\"c_domain\"},{\"type\":\"int64\",\"op"
    "tional\":true,\"field\":\"c_oid\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_lt"
    "xt\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_null\"}],\"optional\":true,\"na"
    "me\":\"srvs.public.types_t.Value\",\"field\":\"before\"},{\"type\":\"struct\",\"fields\":["
    "{\"type\":\"int64\",\"optional\":false,\"default\":0,\"field\":\"id\"},{\"type\":\"boolean"
    "\",\"optional\":true,\"field\":\"c_bool\"},{\"type\":\"int16\",\"optional\":true,\"field\""
    ":\"c_int2\"},{\"type\":\"int32\",\"optional\":true,\"field\":\"c_int4\"},{\"type\":\"int64"
    "\",\"optional\":true,\"field\":\"c_int8\"},{\"type\":\"float\",\"optional\":true,\"field\""
    ":\"c_float4\"},{\"type\":\"double\",\"optional\":true,\"field\":\"c_float8\"},{\"type\":\""
    "struct\",\"fields\":[{\"type\":\"int32\",\"optional\":false,\"field\":\"scale\"},{\"type\""
    ":\"bytes\",\"optional\":false,\"field\":\"value\"}],\"optional\":true,\"name\":\"io.debezi"
    "um.data.VariableScaleDecimal\",\"version\":1,\"doc\":\"Variable scaled decimal\",\"field\""
    ":\"c_num\"},{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.kafka.connect.data"
    ".Decimal\",\"version\":1,\"parameters\":{\"scale\":\"2\",\"connect.decimal.precision\":\"1"
    "0\"},\"field\":\"c_num102\"},{\"type\":\"bytes\",\"optional\":true,\"name\":\"org.apache.k"
    "afka.connect.data.Decimal\",\"version\":1,\"parameters\":{\"scale\":\"0\",\"connect.decima"
    "l.precision\":\"5\"},\"field\":\"c_num50\"},{\"type\":\"bytes\",\"optional\":true,\"name\""
    ":\"org.apache.kafka.connect.data.Decimal\",\"version\":1,\"parameters\":{\"scale\":\"2\"},"
    "\"field\":\"c_money\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_text\"},{\"typ"
    "e\":\"string\",\"optional\":true,\"field\":\"c_varchar\"},{\"type\":\"string\",\"optional"
    "\":true,\"field\":\"c_char\"},{\"type\":\"bytes\",\"optional\":true,\"field\":\"c_bytea\"}"
    ",{\"type\":\"int32\",\"optional\":true,\"name\":\"io.debezium.time.Date\",\"version\":1,\""
    "field\":\"c_date\"},{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.Micr"
    "oTime\",\"version\":1,\"field\":\"c_time\"},{\"type\":\"int32\",\"optional\":true,\"name\""
    ":\"io.debezium.time.Time\",\"version\":1,\"field\":\"c_time3\"},{\"type\":\"string\",\"opt"
    "ional\":true,\"name\":\"io.debezium.time.ZonedTime\",\"version\":1,\"field\":\"c_timetz\"}"
    ",{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.MicroTimestamp\",\"vers"
    "ion\":1,\"field\":\"c_ts\"},{\"type\":\"int64\",\"optional\":true,\"name\":\"io.debezium.t"
    "ime.Timestamp\",\"version\":1,\"field\":\"c_ts3\"},{\"type\":\"string\",\"optional\":true,"
    "\"name\":\"io.debezium.time.ZonedTimestamp\",\"version\":1,\"field\":\"c_tstz\"},{\"type\""
    ":\"int64\",\"optional\":true,\"name\":\"io.debezium.time.MicroDuration\",\"version\":1,\"f"
    "ield\":\"c_interval\"},{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data."
    "Uuid\",\"version\":1,\"field\":\"c_uuid\"},{\"type\":\"string\",\"optional\":true,\"name\""
    ":\"io.debezium.data.Json\",\"version\":1,\"field\":\"c_json\"},{\"type\":\"string\",\"opti"
    "onal\":true,\"name\":\"io.debezium.data.Json\",\"version\":1,\"field\":\"c_jsonb\"},{\"typ"
    "e\":\"array\",\"items\":{\"type\":\"int32\",\"optional\":true},\"optional\":true,\"field\""
    ":\"c_int_arr\"},{\"type\":\"array\",\"items\":{\"type\":\"string\",\"optional\":true},\"op"
    "tional\":true,\"field\":\"c_text_arr\"},{\"type\":\"array\",\"items\":{\"type\":\"bytes\","
    "\"optional\":true,\"name\":\"org.apache.kafka.connect.data.Decimal\",\"version\":1,\"param"
    "eters\":{\"scale\":\"2\",\"connect.decimal.precision\":\"10\"}},\"optional\":true,\"field"
    "\":\"c_num_arr\"},{\"type\":\"array\",\"items\":{\"type\":\"int64\",\"optional\":true,\"na"
    "me\":\"io.debezium.time.MicroTimestamp\",\"version\":1},\"optional\":true,\"field\":\"c_ts"
    "_arr\"},{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Enum\",\"versio"
    "n\":1,\"parameters\":{\"allowed\":\"sad,ok,happy\"},\"field\":\"c_enum\"},{\"type\":\"stri"
    "ng\",\"optional\":true,\"field\":\"c_inet\"},{\"type\":\"string\",\"optional\":true,\"fiel"
    "d\":\"c_cidr\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_macaddr\"},{\"type\":"
    "\"string\",\"optional\":true,\"field\":\"c_macaddr8\"},{\"type\":\"struct\",\"fields\":[{"
    "\"type\":\"double\",\"optional\":false,\"field\":\"x\"},{\"type\":\"double\",\"optional\":"
    "false,\"field\":\"y\"},{\"type\":\"bytes\",\"optional\":true,\"field\":\"wkb\"},{\"type\":"
    "\"int32\",\"optional\":true,\"field\":\"srid\"}],\"optional\":true,\"name\":\"io.debezium."
    "data.geometry.Point\",\"version\":1,\"doc\":\"Geometry (POINT)\",\"field\":\"c_point\"},{"
    "\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Json\",\"version\":1,\"f"
    "ield\":\"c_hstore\"},{\"type\":\"string\",\"optional\":true,\"name\":\"io.debezium.data.Xm"
    "l\",\"version\":1,\"field\":\"c_xml\"},{\"type\":\"boolean\",\"optional\":true,\"field\":"
    "\"c_bit1\"},{\"type\":\"bytes\",\"optional\":true,\"name\":\"io.debezium.data.Bits\",\"ver"
    "sion\":1,\"parameters\":{\"length\":\"8\"},\"field\":\"c_bit8\"},{\"type\":\"bytes\",\"opt"
    "ional\":true,\"name\":\"io.debezium.data.Bits\",\"version\":1,\"parameters\":{\"length\":"
    "\"16\"},\"field\":\"c_varbit\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_int4r"
    "ange\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_tstzrange\"},{\"type\":\"stri"
    "ng\",\"optional\":true,\"name\":\"io.debezium.data.Tsvector\",\"version\":1,\"field\":\"c_"
    "tsvector\"},{\"type\":\"int32\",\"optional\":true,\"field\":\"c_domain\"},{\"type\":\"int6"
    "4\",\"optional\":true,\"field\":\"c_oid\"},{\"type\":\"string\",\"optional\":true,\"field"
    "\":\"c_ltxt\"},{\"type\":\"string\",\"optional\":true,\"field\":\"c_null\"}],\"optional\":"
    "true,\"name\":\"srvs.public.types_t.Value\",\"field\":\"after\"},{\"type\":\"struct\",\"fi"
    "elds\":[{\"type\":\"string\",\"optional\":false,\"field\":\"version\"},{\"type\":\"string"
    "\",\"optional\":false,\"field\":\"connector\"},{\"type\":\"string\",\"optional\":false,\"f"
    "ield\":\"name\"},{\"type\":\"int64\",\"optional\":false,\"field\":\"ts_ms\"},{\"type\":\"s"
    "tring\",\"optional\":true,\"name\":\"io.debezium.data.Enum\",\"version\":1,\"parameters\":"
    "{\"allowed\":\"true,first,first_in_data_collection,last_in_data_collection,last,false,incr"
    "emental\"},\"default\":\"false\",\"field\":\"snapshot\"},{\"type\":\"string\",\"optional\""
    ":false,\"field\":\"db\"},{\"type\":\"string\",\"optional\":true,\"field\":\"sequence\"},{"
    "\"type\":\"int64\",\"optional\":true,\"field\":\"ts_us\"},{\"type\":\"int64\",\"optional\""
    ":true,\"field\":\"ts_ns\"},{\"type\":\"string\",\"optional\":false,\"field\":\"schema\"},{"
    "\"type\":\"string\",\"optional\":false,\"field\":\"table\"},{\"type\":\"int64\",\"optional"
    "\":true,\"field\":\"txId\"},{\"type\":\"int64\",\"optional\":true,\"field\":\"lsn\"},{\"ty"
    "pe\":\"int64\",\"optional\":true,\"field\":\"xmin\"},{\"type\":\"string\",\"optional\":tru"
    "e,\"field\":\"origin\"},{\"type\":\"int64\",\"optional\":true,\"field\":\"origin_lsn\"}],"
    "\"optional\":false,\"name\":\"io.debezium.connector.postgresql.Source\",\"version\":1,\"fi"
    "eld\":\"source\"},{\"type\":\"struct\",\"fields\":[{\"type\":\"string\",\"optional\":false"
    ",\"field\":\"id\"},{\"type\":\"int64\",\"optional\":false,\"field\":\"total_order\"},{\"ty"
    "pe\":\"int64\",\"optional\":false,\"field\":\"data_collection_order\"}],\"optional\":true,"
    "\"name\":\"event.block\",\"version\":1,\"field\":\"transaction\"},{\"type\":\"string\",\"o"
    "ptional\":false,\"field\":\"op\"},{\"type\":\"int64\",\"optional\":true,\"field\":\"ts_ms"
    "\"},{\"type\":\"int64\",\"optional\":true,\"field\":\"ts_us\"},{\"type\":\"int64\",\"optio"
    "nal\":true,\"field\":\"ts_ns\"}],\"optional\":false,\"name\":\"srvs.public.types_t.Envelop"
    "e\",\"version\":2},\"payload\":{\"before\":null,\"after\":{\"id\":1,\"c_bool\":true,\"c_in"
    "t2\":-32768,\"c_int4\":2147483647,\"c_int8\":9223372036854775807,\"c_float4\":1.1,\"c_floa"
    "t8\":2.2250738585072014E-300,\"c_num\":{\"scale\":9,\"value\":\"AbabS6zQXxU=\"},\"c_num102"
    "\":\"SZYC0g==\",\"c_num50\":\"AYaf\",\"c_money\":\"AeJA\",\"c_text\":\"héllo \\\"q\\\" \\n"
    "\\t \\\\ \\uD83D\\uDE00 \\u0001\",\"c_varchar\":\"varchar\",\"c_char\":\"ab   \",\"c_bytea"
    "\":\"AP8Qqw==\",\"c_date\":19782,\"c_time\":47655123456,\"c_time3\":47655123,\"c_timetz\":"
    "\"10:44:15.123456Z\",\"c_ts\":1709212455123456,\"c_ts3\":1709212455123,\"c_tstz\":\"2024-0"
    "2-29T11:14:15.123456Z\",\"c_interval\":37091106789000,\"c_uuid\":\"a0eebc99-9c0b-4ef8-bb6d"
    "-6bb9bd380a11\",\"c_json\":\"{\\\"a\\\": 1,  \\\"b\\\":[true,null]}\",\"c_jsonb\":\"{\\\"a"
    "\\\": 1.50, \\\"b\\\": [true, null]}\",\"c_int_arr\":[1,2,null],\"c_text_arr\":[\"a\",\"b "
    "c\",null,\"q\\\"x\"],\"c_num_arr\":[\"bg==\",\"AOE=\"],\"c_ts_arr\":[1709212455123456],\"c"
    "_enum\":\"happy\",\"c_inet\":\"192.168.0.1/24\",\"c_cidr\":\"10.0.0.0/8\",\"c_macaddr\":\""
    "08:00:2b:01:02:03\",\"c_macaddr8\":\"08:00:2b:01:02:03:04:05\",\"c_point\":{\"x\":1.5,\"y"
    "\":-2.25,\"wkb\":\"AQEAAAAAAAAAAAD4PwAAAAAAAALA\",\"srid\":null},\"c_hstore\":\"{\\\"a\\\""
    ":\\\"1\\\",\\\"b\\\":null}\",\"c_xml\":\"<x a=\\\"1\\\">t</x>\",\"c_bit1\":true,\"c_bit8\""
    ":\"qg==\",\"c_varbit\":\"VQ==\",\"c_int4range\":\"[1,10)\",\"c_tstzrange\":\"[\\\"2024-01-"
    "01 00:00:00+00\\\",infinity)\",\"c_tsvector\":\"'fox' 'quick':1A 'the'\",\"c_domain\":7,\""
    "c_oid\":4294967295,\"c_ltxt\":\"plain\",\"c_null\":null},\"source\":{\"version\":"
    "\"" CDCD_VERSION "\","
    "\"connector\":\"postgresql\",\"name\":\"srvs\",\"ts_ms\":1795987181725,\"snapshot\":\"firs"
    "t_in_data_collection\",\"db\":\"typesdb\",\"sequence\":\"[null,\\\"779912976\\\"]\",\"ts_u"
    "s\":1795987181725133,\"ts_ns\":1795987181725133000,\"schema\":\"public\",\"table\":\"types"
    "_t\",\"txId\":10776,\"lsn\":779912976,\"xmin\":null,\"origin\":null,\"origin_lsn\":null},"
    "\"transaction\":null,\"op\":\"r\"";

#define COL(n, t, l, s)                               \
    {                                                 \
        .name = n, .type = t, .length = l, .scale = s \
    }
#define ELEM(n, t, l, s) \
    static const struct cdcd_column n = {.type = t, .length = l, .scale = s, .optional = true}

ELEM(int_elem, CDCD_T_INT32, -1, -1);
ELEM(text_elem, CDCD_T_STRING, -1, -1);
ELEM(num_elem, CDCD_T_DECIMAL, 10, 2);
ELEM(ts_elem, CDCD_T_TIMESTAMP, -1, -1);
static const char *const moods[] = {"sad", "ok", "happy", NULL};

static const struct et_column columns[] = {
    {.name = "id", .type = CDCD_T_INT64, .length = -1, .scale = -1, .required = true, .key = true},
    COL("c_bool", CDCD_T_BOOL, -1, -1),
    COL("c_int2", CDCD_T_INT16, -1, -1),
    COL("c_int4", CDCD_T_INT32, -1, -1),
    COL("c_int8", CDCD_T_INT64, -1, -1),
    COL("c_float4", CDCD_T_FLOAT32, -1, -1),
    COL("c_float8", CDCD_T_FLOAT64, -1, -1),
    COL("c_num", CDCD_T_VARDECIMAL, -1, -1),
    COL("c_num102", CDCD_T_DECIMAL, 10, 2),
    COL("c_num50", CDCD_T_DECIMAL, 5, 0),
    COL("c_money", CDCD_T_MONEY, -1, 2),
    COL("c_text", CDCD_T_STRING, -1, -1),
    COL("c_varchar", CDCD_T_STRING, 20, -1),
    COL("c_char", CDCD_T_STRING, 5, -1),
    COL("c_bytea", CDCD_T_BYTES, -1, -1),
    COL("c_date", CDCD_T_DATE, -1, -1),
    COL("c_time", CDCD_T_TIME, -1, -1),
    COL("c_time3", CDCD_T_TIME, -1, 3),
    COL("c_timetz", CDCD_T_TIMETZ, -1, -1),
    COL("c_ts", CDCD_T_TIMESTAMP, -1, -1),
    COL("c_ts3", CDCD_T_TIMESTAMP, -1, 3),
    COL("c_tstz", CDCD_T_TIMESTAMPTZ, -1, -1),
    COL("c_interval", CDCD_T_INTERVAL, -1, -1),
    COL("c_uuid", CDCD_T_UUID, -1, -1),
    COL("c_json", CDCD_T_JSON, -1, -1),
    COL("c_jsonb", CDCD_T_JSON, -1, -1),
    {.name = "c_int_arr", .type = CDCD_T_ARRAY, .elem = &int_elem},
    {.name = "c_text_arr", .type = CDCD_T_ARRAY, .elem = &text_elem},
    {.name = "c_num_arr", .type = CDCD_T_ARRAY, .elem = &num_elem},
    {.name = "c_ts_arr", .type = CDCD_T_ARRAY, .elem = &ts_elem},
    {.name = "c_enum", .type = CDCD_T_ENUM, .labels = moods},
    COL("c_inet", CDCD_T_STRING, -1, -1),
    COL("c_cidr", CDCD_T_STRING, -1, -1),
    COL("c_macaddr", CDCD_T_STRING, -1, -1),
    COL("c_macaddr8", CDCD_T_STRING, -1, -1),
    COL("c_point", CDCD_T_POINT, -1, -1),
    COL("c_hstore", CDCD_T_HSTORE, -1, -1),
    COL("c_xml", CDCD_T_XML, -1, -1),
    COL("c_bit1", CDCD_T_BITS, 1, -1),
    COL("c_bit8", CDCD_T_BITS, 8, -1),
    COL("c_varbit", CDCD_T_BITS, 16, -1),
    COL("c_int4range", CDCD_T_STRING, -1, -1),
    COL("c_tstzrange", CDCD_T_STRING, -1, -1),
    COL("c_tsvector", CDCD_T_TSVECTOR, -1, -1),
    COL("c_domain", CDCD_T_INT32, -1, -1),
    COL("c_oid", CDCD_T_INT64, -1, -1),
    COL("c_ltxt", CDCD_T_STRING, -1, -1),
    COL("c_null", CDCD_T_STRING, -1, -1),
};
#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

static const struct cdcd_cell row[NCOLUMNS] = {
    C_INT(2),
    C_BOOL(1),
    C_INT(-32768),
    C_INT(2147483647),
    C_INT(INT64_MAX),
    C_FLOAT("1.1"),
    C_FLOAT("2.2250738585072014e-300"),
    C_DEC("123456789.123456789"),
    C_DEC("12345678.90"),
    C_DEC("99999"),
    C_DEC("1234.56"),
    C_TEXT("h\xc3\xa9llo \"q\" \n\t \\ \xf0\x9f\x98\x80 \x01"),
    C_TEXT("varchar"),
    C_TEXT("ab   "),
    C_BYTES("\x00\xff\x10\xab"),
    C_DATE(19782),
    C_TIME(47655123456),
    C_TIME(47655123000),
    C_TEXT("10:44:15.123456Z"),
    C_TS(1709212455, 123456000),
    C_TS(1709212455, 123000000),
    C_TS(1709205255, 123456000),
    C_IV(14, 3, 14706789000),
    C_TEXT("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    C_TEXT("{\"a\": 1,  \"b\":[true,null]}"),
    C_TEXT("{\"a\": 1.50, \"b\": [true, null]}"),
    C_LIST(3, C_INT(1), C_INT(2), C_NULL),
    C_LIST(4, C_TEXT("a"), C_TEXT("b c"), C_NULL, C_TEXT("q\"x")),
    C_LIST(2, C_DEC("1.10"), C_DEC("2.25")),
    C_LIST(1, C_TS(1709212455, 123456000)),
    C_TEXT("happy"),
    C_TEXT("192.168.0.1/24"),
    C_TEXT("10.0.0.0/8"),
    C_TEXT("08:00:2b:01:02:03"),
    C_TEXT("08:00:2b:01:02:03:04:05"),
    C_LIST(2, C_FLOAT("1.5"), C_FLOAT("-2.25")),
    C_MAP(4, C_TEXT("a"), C_TEXT("1"), C_TEXT("b"), C_NULL),
    C_TEXT("<x a=\"1\">t</x>"),
    C_BYTES("\x01"),
    C_BYTES("\xaa"),
    C_BYTES("\x55"),
    C_TEXT("[1,10)"),
    C_TEXT("[\"2024-01-01 00:00:00+00\",infinity)"),
    C_TEXT("'fox' 'quick':1A 'the'"),
    C_INT(7),
    C_INT(4294967295),
    C_TEXT("plain"),
    C_NULL,
};

static struct cdcd_schema *types_schema(void)
{
    struct cdcd_schema *s = et_schema("types_t", columns, NCOLUMNS);
    s->columns[0].has_default = true; /* nextval(...) */
    return s;
}

static void bare_record(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_schema *s = types_schema();
    struct et t;
    (void)state;
    et_open(&t, &cfg);
    struct cdcd_event *ev = et_event(&t, CDCD_OP_CREATE, s, NULL, row);
    ev->tx_id = cdcd_slice_str("752:27163256");
    ev->total_order = ev->data_collection_order = 1;
    et_encode(&t);
    et_slice_is(et_record(&t, 0)->topic->name, "srv.public.types_t");
    et_slice_is(et_record(&t, 0)->key, "{\"id\":2}");
    et_value_is(et_record(&t, 0)->value, all_types);
    et_close(&t);
    cdcd_schema_unref(s);
}

static void record_with_schema(void **state)
{
    struct cdcd_debezium_config cfg = et_config();
    struct cdcd_schema *s = types_schema();
    struct cdcd_cell first[NCOLUMNS];
    struct et t;
    (void)state;
    memcpy(first, row, sizeof(row));
    first[0].i = 1;
    cfg.schemas_enable = true;
    et_open_kafka(&t, &cfg, "srvs", false);
    struct cdcd_event *ev = et_event(&t, CDCD_OP_READ, s, NULL, first);
    ev->snapshot = CDCD_SNAP_FIRST_IN_TABLE;
    ev->ts_us = 1795987181725133;
    ev->sequence = cdcd_slice_str("[null,\"779912976\"]");
    t.source[2] = cdcd_cell_int(10776);
    t.source[3] = cdcd_cell_int(779912976);
    et_encode(&t);
    et_slice_is(et_record(&t, 0)->key, all_types_key_schema);
    et_value_is(et_record(&t, 0)->value, all_types_schema);
    et_close(&t);
    cdcd_schema_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bare_record),
        cmocka_unit_test(record_with_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
