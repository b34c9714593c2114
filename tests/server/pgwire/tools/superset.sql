-- Superset: SQLAlchemy 1.4 with psycopg2, and its own wrappings of what a user asks.
SELECT t.oid, typarray FROM pg_type t JOIN pg_namespace ns ON typnamespace = ns.oid WHERE typname = 'hstore';
SELECT pg_catalog.version();
-- has: public
SELECT current_schema();
SHOW transaction isolation level;
-- has: on
SHOW standard_conforming_strings;
SELECT CAST('test plain returns' AS VARCHAR(60)) AS anon_1;
-- has: public
SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname;
-- has: customer, purchase
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p');
-- has: big_spender
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind IN ('v', 'm');
-- has: customer
SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE pg_catalog.pg_table_is_visible(c.oid) AND relname = 'customer';
-- has: {oid:customer}
SELECT c.oid FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE (n.nspname = 'public') AND c.relname = 'customer' AND c.relkind IN ('r', 'v', 'm', 'f', 'p');
-- has: id, bigint, name, text, joined, timestamp without time zone
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod),
  (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d
   WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef) AS DEFAULT,
  a.attnotnull, a.attrelid AS table_oid, pgd.description AS comment, a.attgenerated AS generated,
  (SELECT json_build_object('always', a.attidentity = 'a', 'start', s.seqstart, 'increment', s.seqincrement,
     'minvalue', s.seqmin, 'maxvalue', s.seqmax, 'cache', s.seqcache, 'cycle', s.seqcycle)
   FROM pg_catalog.pg_sequence s JOIN pg_catalog.pg_class c ON s.seqrelid = c."oid"
   WHERE c.relkind = 'S' AND a.attidentity != ''
     AND s.seqrelid = pg_catalog.pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass::oid)
    AS identity_options
FROM pg_catalog.pg_attribute a
LEFT JOIN pg_catalog.pg_description pgd ON (pgd.objoid = a.attrelid AND pgd.objsubid = a.attnum)
WHERE a.attrelid = {oid:customer} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
SELECT t.typname AS "name", pg_catalog.format_type(t.typbasetype, t.typtypmod) AS "attype",
  NOT t.typnotnull AS "nullable", t.typdefault AS "default", pg_catalog.pg_type_is_visible(t.oid) AS "visible",
  n.nspname AS "schema"
FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
WHERE t.typtype = 'd' AND n.nspname = 'public';
SELECT t.typname AS "name", pg_catalog.pg_type_is_visible(t.oid) AS "visible", n.nspname AS "schema",
  e.enumlabel AS "label"
FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_enum e ON t.oid = e.enumtypid
WHERE t.typtype = 'e' ORDER BY "schema", "name", e.oid;
-- has: id
SELECT a.attname FROM pg_attribute a
JOIN (SELECT unnest(ix.indkey) attnum, generate_subscripts(ix.indkey, 1) ord FROM pg_index ix
      WHERE ix.indrelid = {oid:customer} AND ix.indisprimary) k ON a.attnum = k.attnum
WHERE a.attrelid = {oid:customer} ORDER BY k.ord;
-- has: customer_pkey
SELECT conname FROM pg_catalog.pg_constraint r WHERE r.conrelid = {oid:customer} AND r.contype = 'p' ORDER BY 1;
-- has: purchase_customer_id_fkey, FOREIGN KEY (customer_id) REFERENCES customer(id)
SELECT r.conname, pg_catalog.pg_get_constraintdef(r.oid, true) AS condef, n.nspname AS conschema
FROM pg_catalog.pg_constraint r, pg_namespace n, pg_class c
WHERE r.conrelid = {oid:purchase} AND r.contype = 'f' AND c.oid = confrelid AND n.oid = c.relnamespace ORDER BY 1;
-- has: purchase_by_day, day, btree
SELECT i.relname AS relname, ix.indisunique, ix.indexprs, a.attname, a.attnum, c.conrelid, ix.indkey::varchar,
  ix.indoption::varchar, i.reloptions, am.amname, pg_get_expr(ix.indpred, ix.indrelid), ix.indnkeyatts AS indnkeyatts
FROM pg_class t
JOIN pg_index ix ON t.oid = ix.indrelid
JOIN pg_class i ON i.oid = ix.indexrelid
LEFT OUTER JOIN pg_attribute a ON t.oid = a.attrelid AND a.attnum = ANY(ix.indkey)
LEFT OUTER JOIN pg_constraint c
  ON (ix.indrelid = c.conrelid AND ix.indexrelid = c.conindid AND c.contype IN ('p', 'u', 'x'))
LEFT OUTER JOIN pg_am am ON i.relam = am.oid
WHERE t.relkind IN ('r', 'v', 'f', 'm', 'p') AND t.oid = {oid:purchase} AND ix.indisprimary = 'f'
ORDER BY t.relname, i.relname;
-- has: customer_name_key, name
SELECT cons.conname AS name, cons.conkey AS key, a.attnum AS col_num, a.attname AS col_name
FROM pg_catalog.pg_constraint cons
JOIN pg_attribute a ON cons.conrelid = a.attrelid AND a.attnum = ANY(cons.conkey)
WHERE cons.conrelid = {oid:customer} AND cons.contype = 'u';
SELECT cons.conname AS name, pg_get_constraintdef(cons.oid) AS src FROM pg_catalog.pg_constraint cons
WHERE cons.conrelid = {oid:customer} AND cons.contype = 'c';
SELECT pgd.description AS table_comment FROM pg_catalog.pg_description pgd
WHERE pgd.objsubid = 0 AND pgd.objoid = {oid:customer};
SELECT pg_get_viewdef(c.oid) view_def FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relname = 'big_spender' AND c.relkind IN ('v', 'm');
-- has: Ann
SELECT name AS name, COUNT(*) AS count FROM (SELECT id, name FROM customer) AS virtual_table
GROUP BY name ORDER BY count DESC LIMIT 1000;
ROLLBACK;
