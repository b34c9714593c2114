-- pgAdmin 4: settings, who one is, then its tree.
SET DateStyle = ISO; SET client_min_messages = notice;
SELECT set_config('bytea_output', 'hex', false) FROM pg_show_all_settings() WHERE name = 'bytea_output';
SET client_encoding = 'UTF8';
SELECT version();
-- has: {database}
SELECT db.oid AS did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding,
  has_database_privilege(db.oid, 'CREATE') AS cancreate, datistemplate
FROM pg_catalog.pg_database db WHERE db.datname = current_database();
SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = pg_backend_pid();
SELECT roles.oid AS id, roles.rolname AS name, roles.rolsuper AS is_superuser,
  CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END AS can_create_role,
  CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END AS can_create_db,
  CASE WHEN 'pg_signal_backend' = ANY(ARRAY(
    WITH RECURSIVE cte AS (
      SELECT pg_roles.oid, pg_roles.rolname FROM pg_roles WHERE pg_roles.oid = roles.oid
      UNION ALL
      SELECT m.roleid, pgr.rolname FROM cte cte_1
      JOIN pg_auth_members m ON m.member = cte_1.oid JOIN pg_roles pgr ON pgr.oid = m.roleid)
    SELECT rolname FROM cte)) THEN True ELSE False END AS can_signal_backend
FROM pg_catalog.pg_roles AS roles WHERE rolname = current_user;
-- has: {database}
SELECT db.oid AS did, db.datname AS name, ta.spcname, db.datallowconn, db.datistemplate AS is_template,
  pg_catalog.has_database_privilege(db.oid, 'CREATE') AS cancreate, datdba AS owner, descr.description
FROM pg_catalog.pg_database db
LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON db.dattablespace = ta.oid
LEFT OUTER JOIN pg_catalog.pg_shdescription descr
  ON (db.oid = descr.objoid AND descr.classoid = 'pg_database'::regclass)
WHERE db.oid > 0::OID ORDER BY datname;
-- has: public
SELECT nsp.oid, nsp.nspname AS name, pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') AS can_create,
  pg_catalog.has_schema_privilege(nsp.oid, 'USAGE') AS has_usage, des.description
FROM pg_catalog.pg_namespace nsp
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = nsp.oid AND des.classoid = 'pg_namespace'::regclass)
WHERE nspname NOT LIKE E'pg\\_%' AND NOT ((nsp.nspname = 'pg_catalog' AND EXISTS
  (SELECT 1 FROM pg_catalog.pg_class WHERE relname = 'pg_class' AND relnamespace = nsp.oid LIMIT 1)))
ORDER BY nspname;
-- has: customer, purchase
SELECT rel.oid, rel.relname AS name,
  (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = FALSE) AS triggercount,
  (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = FALSE AND tgenabled = 'O')
    AS has_enable_triggers,
  (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned,
  (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid = rel.oid LIMIT 1) AS is_inherits, des.description
FROM pg_catalog.pg_class rel
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = rel.oid AND des.objsubid = 0 AND des.classoid = 'pg_class'::regclass)
WHERE rel.relkind IN ('r', 's', 't', 'p') AND rel.relnamespace = 2200::oid AND NOT rel.relispartition
ORDER BY rel.relname;
-- has: id, name, bigint, text
SELECT DISTINCT att.attname AS name, att.attnum AS OID, pg_catalog.format_type(ty.oid, NULL) AS datatype,
  att.attnotnull AS not_null,
  CASE WHEN att.atthasdef OR att.attidentity != '' OR ty.typdefault IS NOT NULL THEN True ELSE False END
    AS has_default_val, des.description, seq.seqtypid
FROM pg_catalog.pg_attribute att
JOIN pg_catalog.pg_type ty ON ty.oid = atttypid
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = att.attrelid AND des.objsubid = att.attnum AND des.classoid = 'pg_class'::regclass)
LEFT OUTER JOIN pg_catalog.pg_depend dep ON dep.refobjid = att.attrelid AND dep.refobjsubid = att.attnum AND dep.deptype = 'i'
LEFT OUTER JOIN pg_catalog.pg_sequence seq ON dep.objid = seq.seqrelid
WHERE att.attrelid = {oid:customer}::oid AND att.attnum > 0 AND att.attisdropped IS FALSE ORDER BY att.attnum;
-- has: customer_pkey
SELECT cls.oid, cls.relname AS name, CASE contype WHEN 'p' THEN desp.description ELSE des.description END AS comment,
  indnkeyatts AS col_count
FROM pg_catalog.pg_index idx
JOIN pg_catalog.pg_class cls ON cls.oid = indexrelid
LEFT JOIN pg_catalog.pg_depend dep
  ON (dep.classid = cls.tableoid AND dep.objid = cls.oid AND dep.refobjsubid = '0')
LEFT OUTER JOIN pg_catalog.pg_constraint con ON con.conindid = cls.oid AND con.contype = 'p'
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = cls.oid AND des.classoid = 'pg_class'::regclass)
LEFT OUTER JOIN pg_catalog.pg_description desp ON (desp.objoid = con.oid AND desp.objsubid = 0)
WHERE indrelid = {oid:customer}::oid AND con.contype = 'p' ORDER BY cls.relname;
-- has: purchase_customer_id_fkey, purchase, customer
SELECT ct.oid, conname AS name, condeferrable, condeferred, confupdtype, confdeltype,
  CASE confmatchtype WHEN 's' THEN FALSE WHEN 'f' THEN TRUE END AS confmatchtype, conkey, confkey, confrelid,
  nl.nspname AS fknsp, cl.relname AS fktab, nr.nspname AS refnsp, cr.relname AS reftab, description AS comment,
  convalidated
FROM pg_catalog.pg_constraint ct
JOIN pg_catalog.pg_class cl ON cl.oid = conrelid
JOIN pg_catalog.pg_namespace nl ON nl.oid = cl.relnamespace
JOIN pg_catalog.pg_class cr ON cr.oid = confrelid
JOIN pg_catalog.pg_namespace nr ON nr.oid = cr.relnamespace
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = ct.oid AND des.classoid = 'pg_constraint'::regclass)
WHERE contype = 'f' AND conrelid = {oid:purchase}::oid ORDER BY conname;
-- has: purchase_by_day
SELECT DISTINCT ON (cls.relname) cls.oid, cls.relname AS name, indrelid, indkey, indisclustered, indisvalid, indisunique,
  indisprimary, n.nspname, indnatts, cls.reltablespace AS spcoid, tab.relname AS tabname, am.amname
FROM pg_catalog.pg_index idx
JOIN pg_catalog.pg_class cls ON cls.oid = indexrelid
JOIN pg_catalog.pg_class tab ON tab.oid = indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = tab.relnamespace
JOIN pg_catalog.pg_am am ON am.oid = cls.relam
WHERE indrelid = {oid:purchase}::oid AND NOT indisprimary ORDER BY cls.relname;
-- has: big_spender
SELECT c.oid, c.relname AS name, pg_catalog.pg_get_userbyid(c.relowner) AS owner, description AS comment
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description des
  ON (des.objoid = c.oid AND des.objsubid = 0 AND des.classoid = 'pg_class'::regclass)
WHERE c.relkind = 'v' AND c.relnamespace = 2200::oid ORDER BY c.relname;
SELECT pr.oid, pr.proname || '(' || COALESCE(pg_catalog.pg_get_function_identity_arguments(pr.oid), '') || ')' AS name,
  lanname, pg_catalog.pg_get_userbyid(proowner) AS funcowner, description
FROM pg_catalog.pg_proc pr
JOIN pg_catalog.pg_type typ ON typ.oid = prorettype
JOIN pg_catalog.pg_language lng ON lng.oid = prolang
LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = pr.oid AND des.classoid = 'pg_proc'::regclass)
WHERE pr.prokind IN ('f', 'w') AND pronamespace = 2200::oid AND typname NOT IN ('trigger', 'event_trigger')
ORDER BY proname;
SELECT rolname, rolcanlogin, rolsuper, pg_catalog.shobj_description(oid, 'pg_authid') AS description
FROM pg_catalog.pg_roles ORDER BY rolcanlogin, rolname;
SELECT ts.oid, spcname AS name, spcowner AS owner FROM pg_catalog.pg_tablespace ts ORDER BY name;
SELECT pid, datname, usename, application_name, client_addr, backend_start, state, query
FROM pg_catalog.pg_stat_activity WHERE datname = '{database}' ORDER BY pid;
SELECT x.extname, x.extversion FROM pg_catalog.pg_extension x ORDER BY x.extname;
SELECT nsp.nspname, COUNT(rel.oid) AS ct FROM pg_catalog.pg_namespace nsp
LEFT JOIN pg_catalog.pg_class rel ON rel.relnamespace = nsp.oid AND rel.relkind = 'm' GROUP BY nsp.nspname ORDER BY 1;
-- has: Ann
SELECT * FROM public.customer ORDER BY id ASC LIMIT 100;
