-- Grafana: the data source's test, and what the query builder asks.
SELECT 1;
SELECT current_setting('server_version_num')::int / 100 AS version;
SELECT extversion FROM pg_extension WHERE extname = 'timescaledb';
-- has: customer, purchase
SELECT CASE WHEN quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
                         array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
         string_to_array(current_setting('search_path'), ',') s)
  THEN quote_ident(table_name) ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
FROM information_schema.tables
WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache', 'timescaledb_information')
ORDER BY 1;
-- has: id, name, bigint, text
SELECT quote_ident(column_name) AS "column", data_type AS "type"
FROM information_schema.columns
WHERE CASE WHEN array_length(parse_ident('customer'), 1) = 2
  THEN quote_ident(table_schema) = (parse_ident('customer'))[1] AND quote_ident(table_name) = (parse_ident('customer'))[2]
  ELSE quote_ident(table_name) = 'customer' AND quote_ident(table_schema) IN (
    SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
    FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
                         array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
         string_to_array(current_setting('search_path'), ',') s) END;
-- has: joined
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns
WHERE quote_ident(table_name) = 'customer' AND data_type IN ('timestamp without time zone', 'timestamp with time zone')
ORDER BY ordinal_position;
-- has: purchase
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1;
-- has: 2026-01-02
SELECT day AS "time", amount AS value FROM purchase WHERE day BETWEEN '2026-01-01' AND '2026-12-31' ORDER BY 1;
