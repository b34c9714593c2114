-- Metabase: connects by JDBC, copies what it needs to know of tables, columns and keys, and asks for samples.
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
SHOW TRANSACTION ISOLATION LEVEL;
-- has: public
SELECT nspname AS TABLE_SCHEM, NULL AS TABLE_CATALOG FROM pg_catalog.pg_namespace
WHERE nspname <> 'pg_toast' AND (nspname !~ '^pg_temp_' OR nspname = (pg_catalog.current_schemas(true))[1])
  AND (nspname !~ '^pg_toast_temp_' OR nspname = replace((pg_catalog.current_schemas(true))[1], 'pg_temp_', 'pg_toast_temp_'))
ORDER BY TABLE_SCHEM;
-- has: customer, TABLE, big_spender, VIEW
SELECT n.nspname AS schema, c.relname AS name,
  CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW'
    WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS type,
  d.description AS description, NULLIF(stat.n_live_tup, 0) AS estimated_row_count
FROM pg_catalog.pg_class AS c
INNER JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid
LEFT JOIN pg_catalog.pg_description AS d
  ON (c.oid = d.objoid) AND (d.objsubid = 0) AND (d.classoid = 'pg_class'::regclass)
LEFT JOIN pg_stat_user_tables AS stat ON n.nspname = stat.schemaname AND c.relname = stat.relname
WHERE (c.relnamespace = n.oid) AND (n.nspname !~ '^pg_') AND (n.nspname <> 'information_schema')
  AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
ORDER BY type ASC, schema ASC, name ASC;
-- has: customer, id, int8, name, text
SELECT c.column_name AS name,
  CASE WHEN c.udt_schema IN ('public', 'pg_catalog') THEN FORMAT('%s', c.udt_name)
    ELSE FORMAT('"%s"."%s"', c.udt_schema, c.udt_name) END AS "database-type",
  c.ordinal_position - 1 AS "database-position", c.table_schema AS "table-schema", c.table_name AS "table-name",
  pk.column_name IS NOT NULL AS "pk?", c.column_default
FROM information_schema.columns AS c
LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name
           FROM information_schema.table_constraints AS tc
           INNER JOIN information_schema.key_column_usage AS kc
             ON (tc.constraint_name = kc.constraint_name) AND (tc.table_schema = kc.table_schema)
               AND (tc.table_name = kc.table_name)
           WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
  ON (c.table_schema = pk.table_schema) AND (c.table_name = pk.table_name) AND (c.column_name = pk.column_name)
WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND (c.table_schema IN ('public'))
ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC;
-- has: purchase, customer_id, customer, id
SELECT fk_ns.nspname AS "fk-table-schema", fk_table.relname AS "fk-table-name", fk_column.attname AS "fk-column-name",
  pk_ns.nspname AS "pk-table-schema", pk_table.relname AS "pk-table-name", pk_column.attname AS "pk-column-name"
FROM pg_constraint AS c
INNER JOIN pg_class AS fk_table ON c.conrelid = fk_table.oid
INNER JOIN pg_namespace AS fk_ns ON c.connamespace = fk_ns.oid
INNER JOIN pg_attribute AS fk_column ON c.conrelid = fk_column.attrelid
INNER JOIN pg_class AS pk_table ON c.confrelid = pk_table.oid
INNER JOIN pg_namespace AS pk_ns ON pk_table.relnamespace = pk_ns.oid
INNER JOIN pg_attribute AS pk_column ON c.confrelid = pk_column.attrelid
WHERE c.contype = 'f' AND fk_column.attnum = ANY(c.conkey) AND pk_column.attnum = ANY(c.confkey)
  AND fk_ns.nspname !~ '^information_schema|catalog_history|pg_' AND fk_ns.nspname IN ('public')
ORDER BY fk_ns.nspname, fk_table.relname;
SELECT t.typname, e.enumlabel FROM pg_enum AS e INNER JOIN pg_type AS t ON t.oid = e.enumtypid ORDER BY 1;
-- has: customer
SELECT pg_class.relname AS name, pg_namespace.nspname AS schema,
  pg_catalog.has_table_privilege(current_user, '"' || pg_namespace.nspname || '"' || '.' || '"' || pg_class.relname || '"',
                                 'SELECT') AS "select"
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
WHERE pg_class.relkind = 'r' AND pg_namespace.nspname = 'public';
-- has: purchase_by_day
SELECT tmp.TABLE_NAME, tmp.INDEX_NAME, trim(both '"' FROM pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp.ORDINAL_POSITION, false))
  AS COLUMN_NAME
FROM (SELECT ct.relname AS TABLE_NAME, ci.relname AS INDEX_NAME, ci.oid AS CI_OID,
        (information_schema._pg_expandarray(i.indkey)).n AS ORDINAL_POSITION
      FROM pg_catalog.pg_class ct
      JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
      JOIN pg_catalog.pg_index i ON (ct.oid = i.indrelid)
      JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
      WHERE n.nspname = 'public' AND ct.relname = 'purchase') AS tmp
ORDER BY INDEX_NAME, ORDINAL_POSITION;
BEGIN READ ONLY;
-- has: Ann
SELECT "public"."customer"."id" AS "id", "public"."customer"."name" AS "name" FROM "public"."customer" LIMIT 10000;
-- has: 2
SELECT COUNT(*) AS "count" FROM (SELECT * FROM customer) AS "__mb_source" LIMIT 1048575;
ROLLBACK;
SELECT 1;
