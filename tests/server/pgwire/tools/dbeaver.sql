-- DBeaver: JDBC's settings, then the tree from the database down to a table's indexes.
SET extra_float_digits = 3;
SET application_name = 'DBeaver - Main <shop>';
-- has: public
SELECT current_schema(), session_user;
SHOW search_path;
-- has: {database}
SELECT db.oid, db.* FROM pg_catalog.pg_database db WHERE db.datname = '{database}';
-- has: {database}
SELECT db.oid, db.* FROM pg_catalog.pg_database db
WHERE 1 = 1 AND datallowconn AND NOT datistemplate OR db.datname = '{database}' ORDER BY db.datname;
-- has: on
SELECT * FROM pg_catalog.pg_settings WHERE name = 'standard_conforming_strings';
SELECT version();
-- has: int8, numeric, _text
SELECT t.oid, t.*, c.relkind, format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid = t.typelem
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid = d.objoid
WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c')
  AND (et.typcategory IS NULL OR et.typcategory <> 'C');
-- has: public, pg_catalog
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d
  ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass
ORDER BY nspname;
-- has: 25
SELECT typinput = 'array_in'::regproc AS is_array, typtype, typname, pg_type.oid
FROM pg_catalog.pg_type
LEFT JOIN (SELECT ns.oid AS nspoid, ns.nspname, r.r FROM pg_namespace AS ns
           JOIN (SELECT s.r, (current_schemas(false))[s.r] AS nspname
                 FROM generate_series(1, array_upper(current_schemas(false), 1)) AS s(r)) AS r
           USING (nspname)) AS sp ON sp.nspoid = typnamespace
WHERE typname = 'text' ORDER BY sp.r, pg_type.oid DESC;
SELECT a.oid, a.*, pd.description FROM pg_catalog.pg_roles a
LEFT JOIN pg_catalog.pg_shdescription pd ON a.oid = pd.objoid ORDER BY a.rolname;
-- has: customer, purchase, big_spender
SELECT c.oid, c.*, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr,
  pg_catalog.pg_get_partkeydef(c.oid) AS partition_key
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d
  ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c');
-- has: customer, id, name, joined, score
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dsc.description, dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i'
  AND dep.refobjsubid = a.attnum AND dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND a.attnum > 0 AND c.oid = {oid:customer} ORDER BY a.attnum;
-- has: purchase_pkey, purchase_customer_id_fkey
SELECT c.oid, c.*, t.relname AS tabrelname, rt.relnamespace AS refnamespace, d.description,
  CASE WHEN c.contype = 'c' THEN "substring"(pg_get_constraintdef(c.oid), 7) ELSE NULL END consrc_copy
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid = c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid = c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d
  ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_constraint'::regclass
WHERE c.conrelid = {oid:purchase} ORDER BY c.oid;
-- has: purchase_pkey, purchase_by_day
SELECT i.*, i.indkey AS keys, c.relname, c.relnamespace, c.relam, c.reltablespace, tc.relname AS tabrelname,
  dsc.description, pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr,
  pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) AS expr,
  pg_catalog.pg_relation_size(i.indexrelid) AS index_rel_size,
  pg_catalog.pg_stat_get_numscans(i.indexrelid) AS index_num_scans
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid = i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid = dsc.objoid
WHERE i.indrelid = {oid:purchase} ORDER BY tabrelname, c.relname;
SELECT i.*, c.relnamespace FROM pg_catalog.pg_inherits i, pg_catalog.pg_class c
WHERE i.inhrelid = {oid:customer} AND c.oid = i.inhparent ORDER BY i.inhseqno;
SELECT x.oid, x.*, p.pronamespace AS func_schema_id, d.description FROM pg_catalog.pg_trigger x
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid = x.tgfoid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = x.oid AND d.objsubid = 0
WHERE x.tgrelid = {oid:customer} AND NOT x.tgisinternal;
SELECT r.oid, r.*, c.relname AS table_name, d.description FROM pg_catalog.pg_rewrite r
INNER JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = r.oid AND d.objsubid = 0
WHERE c.relnamespace = 2200 AND r.ev_class = {oid:customer} ORDER BY r.rulename;
SELECT pg_catalog.pg_get_viewdef({oid:big_spender}, true) AS definition;
SELECT c.oid, pg_catalog.pg_total_relation_size(c.oid) AS total_rel_size, pg_catalog.pg_relation_size(c.oid) AS rel_size
FROM pg_class c WHERE c.relnamespace = 2200;
SELECT e.enumlabel FROM pg_catalog.pg_enum e WHERE e.enumtypid = 16 ORDER BY e.enumsortorder;
SELECT e.oid, e.*, c.relnamespace AS schema_id FROM pg_catalog.pg_extension e
LEFT JOIN pg_catalog.pg_class c ON c.oid = e.oid ORDER BY e.extname;
SELECT p.oid, p.*, pg_catalog.pg_get_expr(p.proargdefaults, 0) AS arg_defaults, d.description FROM pg_catalog.pg_proc p
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = p.oid AND d.objsubid = 0
WHERE p.pronamespace = 2200 ORDER BY p.proname;
SELECT l.oid, l.* FROM pg_catalog.pg_language l ORDER BY l.oid;
-- has: Ann
SELECT x.* FROM public.customer x LIMIT 200;
-- has: 2
SELECT count(*) FROM public.customer;
