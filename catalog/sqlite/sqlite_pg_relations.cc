#include <algorithm>
#include <array>

#include "catalog/sqlite/sqlite_pg_catalog_internal.h"

// The columns of PostgreSQL 15's catalogs, from its own pg_attribute, so that queries of any client
// find the columns that they name. Most of these relations have no rows here.
namespace sluice::catalog {
namespace {

// clang-format off
constexpr std::array<PgRelation, 186> kRelations = {{
    {"information_schema", "administrable_role_authorizations",
     "grantee name, role_name name, is_grantable varchar"},
    {"information_schema", "applicable_roles",
     "grantee name, role_name name, is_grantable varchar"},
    {"information_schema", "attributes",
     "udt_catalog name, udt_schema name, udt_name name, attribute_name name, "
     "ordinal_position int4, attribute_default varchar, is_nullable varchar, "
     "data_type varchar, character_maximum_length int4, character_octet_length int4, "
     "character_set_catalog name, character_set_schema name, character_set_name name, "
     "collation_catalog name, collation_schema name, collation_name name, "
     "numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, "
     "datetime_precision int4, interval_type varchar, interval_precision int4, "
     "attribute_udt_catalog name, attribute_udt_schema name, attribute_udt_name name, "
     "scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, "
     "dtd_identifier name, is_derived_reference_attribute varchar"},
    {"information_schema", "character_sets",
     "character_set_catalog name, character_set_schema name, character_set_name name, "
     "character_repertoire name, form_of_use name, default_collate_catalog name, "
     "default_collate_schema name, default_collate_name name"},
    {"information_schema", "check_constraint_routine_usage",
     "constraint_catalog name, constraint_schema name, constraint_name name, "
     "specific_catalog name, specific_schema name, specific_name name"},
    {"information_schema", "check_constraints",
     "constraint_catalog name, constraint_schema name, constraint_name name, "
     "check_clause varchar"},
    {"information_schema", "collation_character_set_applicability",
     "collation_catalog name, collation_schema name, collation_name name, "
     "character_set_catalog name, character_set_schema name, character_set_name name"},
    {"information_schema", "collations",
     "collation_catalog name, collation_schema name, collation_name name, "
     "pad_attribute varchar"},
    {"information_schema", "column_column_usage",
     "table_catalog name, table_schema name, table_name name, column_name name, "
     "dependent_column name"},
    {"information_schema", "column_domain_usage",
     "domain_catalog name, domain_schema name, domain_name name, table_catalog name, "
     "table_schema name, table_name name, column_name name"},
    {"information_schema", "column_options",
     "table_catalog name, table_schema name, table_name name, column_name name, "
     "option_name name, option_value varchar"},
    {"information_schema", "column_privileges",
     "grantor name, grantee name, table_catalog name, table_schema name, table_name name, "
     "column_name name, privilege_type varchar, is_grantable varchar"},
    {"information_schema", "column_udt_usage",
     "udt_catalog name, udt_schema name, udt_name name, table_catalog name, "
     "table_schema name, table_name name, column_name name"},
    {"information_schema", "columns",
     "table_catalog name, table_schema name, table_name name, column_name name, "
     "ordinal_position int4, column_default varchar, is_nullable varchar, data_type varchar, "
     "character_maximum_length int4, character_octet_length int4, numeric_precision int4, "
     "numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, "
     "interval_type varchar, interval_precision int4, character_set_catalog name, "
     "character_set_schema name, character_set_name name, collation_catalog name, "
     "collation_schema name, collation_name name, domain_catalog name, domain_schema name, "
     "domain_name name, udt_catalog name, udt_schema name, udt_name name, "
     "scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, "
     "dtd_identifier name, is_self_referencing varchar, is_identity varchar, "
     "identity_generation varchar, identity_start varchar, identity_increment varchar, "
     "identity_maximum varchar, identity_minimum varchar, identity_cycle varchar, "
     "is_generated varchar, generation_expression varchar, is_updatable varchar"},
    {"information_schema", "constraint_column_usage",
     "table_catalog name, table_schema name, table_name name, column_name name, "
     "constraint_catalog name, constraint_schema name, constraint_name name"},
    {"information_schema", "constraint_table_usage",
     "table_catalog name, table_schema name, table_name name, constraint_catalog name, "
     "constraint_schema name, constraint_name name"},
    {"information_schema", "data_type_privileges",
     "object_catalog name, object_schema name, object_name name, object_type varchar, "
     "dtd_identifier name"},
    {"information_schema", "domain_constraints",
     "constraint_catalog name, constraint_schema name, constraint_name name, "
     "domain_catalog name, domain_schema name, domain_name name, is_deferrable varchar, "
     "initially_deferred varchar"},
    {"information_schema", "domain_udt_usage",
     "udt_catalog name, udt_schema name, udt_name name, domain_catalog name, "
     "domain_schema name, domain_name name"},
    {"information_schema", "domains",
     "domain_catalog name, domain_schema name, domain_name name, data_type varchar, "
     "character_maximum_length int4, character_octet_length int4, "
     "character_set_catalog name, character_set_schema name, character_set_name name, "
     "collation_catalog name, collation_schema name, collation_name name, "
     "numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, "
     "datetime_precision int4, interval_type varchar, interval_precision int4, "
     "domain_default varchar, udt_catalog name, udt_schema name, udt_name name, "
     "scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, "
     "dtd_identifier name"},
    {"information_schema", "element_types",
     "object_catalog name, object_schema name, object_name name, object_type varchar, "
     "collection_type_identifier name, data_type varchar, character_maximum_length int4, "
     "character_octet_length int4, character_set_catalog name, character_set_schema name, "
     "character_set_name name, collation_catalog name, collation_schema name, "
     "collation_name name, numeric_precision int4, numeric_precision_radix int4, "
     "numeric_scale int4, datetime_precision int4, interval_type varchar, "
     "interval_precision int4, domain_default varchar, udt_catalog name, udt_schema name, "
     "udt_name name, scope_catalog name, scope_schema name, scope_name name, "
     "maximum_cardinality int4, dtd_identifier name"},
    {"information_schema", "enabled_roles",
     "role_name name"},
    {"information_schema", "foreign_data_wrapper_options",
     "foreign_data_wrapper_catalog name, foreign_data_wrapper_name name, option_name name, "
     "option_value varchar"},
    {"information_schema", "foreign_data_wrappers",
     "foreign_data_wrapper_catalog name, foreign_data_wrapper_name name, "
     "authorization_identifier name, library_name varchar, "
     "foreign_data_wrapper_language varchar"},
    {"information_schema", "foreign_server_options",
     "foreign_server_catalog name, foreign_server_name name, option_name name, "
     "option_value varchar"},
    {"information_schema", "foreign_servers",
     "foreign_server_catalog name, foreign_server_name name, "
     "foreign_data_wrapper_catalog name, foreign_data_wrapper_name name, "
     "foreign_server_type varchar, foreign_server_version varchar, "
     "authorization_identifier name"},
    {"information_schema", "foreign_table_options",
     "foreign_table_catalog name, foreign_table_schema name, foreign_table_name name, "
     "option_name name, option_value varchar"},
    {"information_schema", "foreign_tables",
     "foreign_table_catalog name, foreign_table_schema name, foreign_table_name name, "
     "foreign_server_catalog name, foreign_server_name name"},
    {"information_schema", "information_schema_catalog_name",
     "catalog_name name"},
    {"information_schema", "key_column_usage",
     "constraint_catalog name, constraint_schema name, constraint_name name, "
     "table_catalog name, table_schema name, table_name name, column_name name, "
     "ordinal_position int4, position_in_unique_constraint int4"},
    {"information_schema", "parameters",
     "specific_catalog name, specific_schema name, specific_name name, "
     "ordinal_position int4, parameter_mode varchar, is_result varchar, as_locator varchar, "
     "parameter_name name, data_type varchar, character_maximum_length int4, "
     "character_octet_length int4, character_set_catalog name, character_set_schema name, "
     "character_set_name name, collation_catalog name, collation_schema name, "
     "collation_name name, numeric_precision int4, numeric_precision_radix int4, "
     "numeric_scale int4, datetime_precision int4, interval_type varchar, "
     "interval_precision int4, udt_catalog name, udt_schema name, udt_name name, "
     "scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, "
     "dtd_identifier name, parameter_default varchar"},
    {"information_schema", "referential_constraints",
     "constraint_catalog name, constraint_schema name, constraint_name name, "
     "unique_constraint_catalog name, unique_constraint_schema name, "
     "unique_constraint_name name, match_option varchar, update_rule varchar, "
     "delete_rule varchar"},
    {"information_schema", "role_column_grants",
     "grantor name, grantee name, table_catalog name, table_schema name, table_name name, "
     "column_name name, privilege_type varchar, is_grantable varchar"},
    {"information_schema", "role_routine_grants",
     "grantor name, grantee name, specific_catalog name, specific_schema name, "
     "specific_name name, routine_catalog name, routine_schema name, routine_name name, "
     "privilege_type varchar, is_grantable varchar"},
    {"information_schema", "role_table_grants",
     "grantor name, grantee name, table_catalog name, table_schema name, table_name name, "
     "privilege_type varchar, is_grantable varchar, with_hierarchy varchar"},
    {"information_schema", "role_udt_grants",
     "grantor name, grantee name, udt_catalog name, udt_schema name, udt_name name, "
     "privilege_type varchar, is_grantable varchar"},
    {"information_schema", "role_usage_grants",
     "grantor name, grantee name, object_catalog name, object_schema name, object_name name, "
     "object_type varchar, privilege_type varchar, is_grantable varchar"},
    {"information_schema", "routine_column_usage",
     "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, "
     "routine_schema name, routine_name name, table_catalog name, table_schema name, "
     "table_name name, column_name name"},
    {"information_schema", "routine_privileges",
     "grantor name, grantee name, specific_catalog name, specific_schema name, "
     "specific_name name, routine_catalog name, routine_schema name, routine_name name, "
     "privilege_type varchar, is_grantable varchar"},
    {"information_schema", "routine_routine_usage",
     "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, "
     "routine_schema name, routine_name name"},
    {"information_schema", "routine_sequence_usage",
     "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, "
     "routine_schema name, routine_name name, sequence_catalog name, sequence_schema name, "
     "sequence_name name"},
    {"information_schema", "routine_table_usage",
     "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, "
     "routine_schema name, routine_name name, table_catalog name, table_schema name, "
     "table_name name"},
    {"information_schema", "routines",
     "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, "
     "routine_schema name, routine_name name, routine_type varchar, module_catalog name, "
     "module_schema name, module_name name, udt_catalog name, udt_schema name, "
     "udt_name name, data_type varchar, character_maximum_length int4, "
     "character_octet_length int4, character_set_catalog name, character_set_schema name, "
     "character_set_name name, collation_catalog name, collation_schema name, "
     "collation_name name, numeric_precision int4, numeric_precision_radix int4, "
     "numeric_scale int4, datetime_precision int4, interval_type varchar, "
     "interval_precision int4, type_udt_catalog name, type_udt_schema name, "
     "type_udt_name name, scope_catalog name, scope_schema name, scope_name name, "
     "maximum_cardinality int4, dtd_identifier name, routine_body varchar, "
     "routine_definition varchar, external_name varchar, external_language varchar, "
     "parameter_style varchar, is_deterministic varchar, sql_data_access varchar, "
     "is_null_call varchar, sql_path varchar, schema_level_routine varchar, "
     "max_dynamic_result_sets int4, is_user_defined_cast varchar, "
     "is_implicitly_invocable varchar, security_type varchar, to_sql_specific_catalog name, "
     "to_sql_specific_schema name, to_sql_specific_name name, as_locator varchar, "
     "created timestamptz, last_altered timestamptz, new_savepoint_level varchar, "
     "is_udt_dependent varchar, result_cast_from_data_type varchar, "
     "result_cast_as_locator varchar, result_cast_char_max_length int4, "
     "result_cast_char_octet_length int4, result_cast_char_set_catalog name, "
     "result_cast_char_set_schema name, result_cast_char_set_name name, "
     "result_cast_collation_catalog name, result_cast_collation_schema name, "
     "result_cast_collation_name name, result_cast_numeric_precision int4, "
     "result_cast_numeric_precision_radix int4, result_cast_numeric_scale int4, "
     "result_cast_datetime_precision int4, result_cast_interval_type varchar, "
     "result_cast_interval_precision int4, result_cast_type_udt_catalog name, "
     "result_cast_type_udt_schema name, result_cast_type_udt_name name, "
     "result_cast_scope_catalog name, result_cast_scope_schema name, "
     "result_cast_scope_name name, result_cast_maximum_cardinality int4, "
     "result_cast_dtd_identifier name"},
    {"information_schema", "schemata",
     "catalog_name name, schema_name name, schema_owner name, "
     "default_character_set_catalog name, default_character_set_schema name, "
     "default_character_set_name name, sql_path varchar"},
    {"information_schema", "sequences",
     "sequence_catalog name, sequence_schema name, sequence_name name, data_type varchar, "
     "numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, "
     "start_value varchar, minimum_value varchar, maximum_value varchar, increment varchar, "
     "cycle_option varchar"},
    {"information_schema", "table_constraints",
     "constraint_catalog name, constraint_schema name, constraint_name name, "
     "table_catalog name, table_schema name, table_name name, constraint_type varchar, "
     "is_deferrable varchar, initially_deferred varchar, enforced varchar, "
     "nulls_distinct varchar"},
    {"information_schema", "table_privileges",
     "grantor name, grantee name, table_catalog name, table_schema name, table_name name, "
     "privilege_type varchar, is_grantable varchar, with_hierarchy varchar"},
    {"information_schema", "tables",
     "table_catalog name, table_schema name, table_name name, table_type varchar, "
     "self_referencing_column_name name, reference_generation varchar, "
     "user_defined_type_catalog name, user_defined_type_schema name, "
     "user_defined_type_name name, is_insertable_into varchar, is_typed varchar, "
     "commit_action varchar"},
    {"information_schema", "transforms",
     "udt_catalog name, udt_schema name, udt_name name, specific_catalog name, "
     "specific_schema name, specific_name name, group_name name, transform_type varchar"},
    {"information_schema", "triggered_update_columns",
     "trigger_catalog name, trigger_schema name, trigger_name name, "
     "event_object_catalog name, event_object_schema name, event_object_table name, "
     "event_object_column name"},
    {"information_schema", "triggers",
     "trigger_catalog name, trigger_schema name, trigger_name name, "
     "event_manipulation varchar, event_object_catalog name, event_object_schema name, "
     "event_object_table name, action_order int4, action_condition varchar, "
     "action_statement varchar, action_orientation varchar, action_timing varchar, "
     "action_reference_old_table name, action_reference_new_table name, "
     "action_reference_old_row name, action_reference_new_row name, created timestamptz"},
    {"information_schema", "udt_privileges",
     "grantor name, grantee name, udt_catalog name, udt_schema name, udt_name name, "
     "privilege_type varchar, is_grantable varchar"},
    {"information_schema", "usage_privileges",
     "grantor name, grantee name, object_catalog name, object_schema name, object_name name, "
     "object_type varchar, privilege_type varchar, is_grantable varchar"},
    {"information_schema", "user_defined_types",
     "user_defined_type_catalog name, user_defined_type_schema name, "
     "user_defined_type_name name, user_defined_type_category varchar, "
     "is_instantiable varchar, is_final varchar, ordering_form varchar, "
     "ordering_category varchar, ordering_routine_catalog name, "
     "ordering_routine_schema name, ordering_routine_name name, reference_type varchar, "
     "data_type varchar, character_maximum_length int4, character_octet_length int4, "
     "character_set_catalog name, character_set_schema name, character_set_name name, "
     "collation_catalog name, collation_schema name, collation_name name, "
     "numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, "
     "datetime_precision int4, interval_type varchar, interval_precision int4, "
     "source_dtd_identifier name, ref_dtd_identifier name"},
    {"information_schema", "user_mapping_options",
     "authorization_identifier name, foreign_server_catalog name, foreign_server_name name, "
     "option_name name, option_value varchar"},
    {"information_schema", "user_mappings",
     "authorization_identifier name, foreign_server_catalog name, foreign_server_name name"},
    {"information_schema", "view_column_usage",
     "view_catalog name, view_schema name, view_name name, table_catalog name, "
     "table_schema name, table_name name, column_name name"},
    {"information_schema", "view_routine_usage",
     "table_catalog name, table_schema name, table_name name, specific_catalog name, "
     "specific_schema name, specific_name name"},
    {"information_schema", "view_table_usage",
     "view_catalog name, view_schema name, view_name name, table_catalog name, "
     "table_schema name, table_name name"},
    {"information_schema", "views",
     "table_catalog name, table_schema name, table_name name, view_definition varchar, "
     "check_option varchar, is_updatable varchar, is_insertable_into varchar, "
     "is_trigger_updatable varchar, is_trigger_deletable varchar, "
     "is_trigger_insertable_into varchar"},
    {"pg_catalog", "pg_aggregate",
     "aggfnoid regproc, aggkind \"char\", aggnumdirectargs smallint, aggtransfn regproc, "
     "aggfinalfn regproc, aggcombinefn regproc, aggserialfn regproc, aggdeserialfn regproc, "
     "aggmtransfn regproc, aggminvtransfn regproc, aggmfinalfn regproc, "
     "aggfinalextra boolean, aggmfinalextra boolean, aggfinalmodify \"char\", "
     "aggmfinalmodify \"char\", aggsortop oid, aggtranstype oid, aggtransspace integer, "
     "aggmtranstype oid, aggmtransspace integer, agginitval text, aggminitval text"},
    {"pg_catalog", "pg_am",
     "oid oid, amname name, amhandler regproc, amtype \"char\""},
    {"pg_catalog", "pg_amop",
     "oid oid, amopfamily oid, amoplefttype oid, amoprighttype oid, amopstrategy smallint, "
     "amoppurpose \"char\", amopopr oid, amopmethod oid, amopsortfamily oid"},
    {"pg_catalog", "pg_amproc",
     "oid oid, amprocfamily oid, amproclefttype oid, amprocrighttype oid, "
     "amprocnum smallint, amproc regproc"},
    {"pg_catalog", "pg_attrdef",
     "oid oid, adrelid oid, adnum smallint, adbin pg_node_tree"},
    {"pg_catalog", "pg_attribute",
     "tableoid oid, xmin xid, attrelid oid, attname name, atttypid oid, "
     "attstattarget integer, attlen smallint, attnum smallint, attndims integer, "
     "attcacheoff integer, atttypmod integer, attbyval boolean, attalign \"char\", "
     "attstorage \"char\", attcompression \"char\", attnotnull boolean, atthasdef boolean, "
     "atthasmissing boolean, attidentity \"char\", attgenerated \"char\", "
     "attisdropped boolean, attislocal boolean, attinhcount integer, attcollation oid, "
     "attacl aclitem[], attoptions text[], attfdwoptions text[], attmissingval anyarray"},
    {"pg_catalog", "pg_auth_members",
     "roleid oid, member oid, grantor oid, admin_option boolean"},
    {"pg_catalog", "pg_authid",
     "oid oid, rolname name, rolsuper boolean, rolinherit boolean, rolcreaterole boolean, "
     "rolcreatedb boolean, rolcanlogin boolean, rolreplication boolean, "
     "rolbypassrls boolean, rolconnlimit integer, rolpassword text, "
     "rolvaliduntil timestamptz"},
    {"pg_catalog", "pg_available_extension_versions",
     "name name, version text, installed boolean, superuser boolean, trusted boolean, "
     "relocatable boolean, schema name, requires name[], comment text"},
    {"pg_catalog", "pg_available_extensions",
     "name name, default_version text, installed_version text, comment text"},
    {"pg_catalog", "pg_backend_memory_contexts",
     "name text, ident text, parent text, level integer, total_bytes bigint, "
     "total_nblocks bigint, free_bytes bigint, free_chunks bigint, used_bytes bigint"},
    {"pg_catalog", "pg_cast",
     "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext \"char\", "
     "castmethod \"char\""},
    {"pg_catalog", "pg_class",
     "tableoid oid, xmin xid, oid oid, relname name, relnamespace oid, reltype oid, "
     "reloftype oid, relowner oid, relam oid, relfilenode oid, reltablespace oid, "
     "relpages integer, reltuples real, relallvisible integer, reltoastrelid oid, "
     "relhasindex boolean, relisshared boolean, relpersistence \"char\", relkind \"char\", "
     "relnatts smallint, relchecks smallint, relhasrules boolean, relhastriggers boolean, "
     "relhassubclass boolean, relrowsecurity boolean, relforcerowsecurity boolean, "
     "relispopulated boolean, relreplident \"char\", relispartition boolean, relrewrite oid, "
     "relfrozenxid xid, relminmxid xid, relacl aclitem[], reloptions text[], "
     "relpartbound pg_node_tree"},
    {"pg_catalog", "pg_collation",
     "oid oid, collname name, collnamespace oid, collowner oid, collprovider \"char\", "
     "collisdeterministic boolean, collencoding integer, collcollate text, collctype text, "
     "colliculocale text, collversion text"},
    {"pg_catalog", "pg_config",
     "name text, setting text"},
    {"pg_catalog", "pg_constraint",
     "tableoid oid, xmin xid, oid oid, conname name, connamespace oid, contype \"char\", "
     "condeferrable boolean, condeferred boolean, convalidated boolean, conrelid oid, "
     "contypid oid, conindid oid, conparentid oid, confrelid oid, confupdtype \"char\", "
     "confdeltype \"char\", confmatchtype \"char\", conislocal boolean, coninhcount integer, "
     "connoinherit boolean, conkey smallint[], confkey smallint[], conpfeqop oid[], "
     "conppeqop oid[], conffeqop oid[], confdelsetcols smallint[], conexclop oid[], "
     "conbin pg_node_tree"},
    {"pg_catalog", "pg_conversion",
     "oid oid, conname name, connamespace oid, conowner oid, conforencoding integer, "
     "contoencoding integer, conproc regproc, condefault boolean"},
    {"pg_catalog", "pg_cursors",
     "name text, statement text, is_holdable boolean, is_binary boolean, "
     "is_scrollable boolean, creation_time timestamptz"},
    {"pg_catalog", "pg_database",
     "tableoid oid, xmin xid, oid oid, datname name, datdba oid, encoding integer, "
     "datlocprovider \"char\", datistemplate boolean, datallowconn boolean, "
     "datconnlimit integer, datfrozenxid xid, datminmxid xid, dattablespace oid, "
     "datcollate text, datctype text, daticulocale text, datcollversion text, "
     "datacl aclitem[]"},
    {"pg_catalog", "pg_db_role_setting",
     "setdatabase oid, setrole oid, setconfig text[]"},
    {"pg_catalog", "pg_default_acl",
     "oid oid, defaclrole oid, defaclnamespace oid, defaclobjtype \"char\", "
     "defaclacl aclitem[]"},
    {"pg_catalog", "pg_depend",
     "classid oid, objid oid, objsubid integer, refclassid oid, refobjid oid, "
     "refobjsubid integer, deptype \"char\""},
    {"pg_catalog", "pg_description",
     "objoid oid, classoid oid, objsubid integer, description text"},
    {"pg_catalog", "pg_enum",
     "oid oid, enumtypid oid, enumsortorder real, enumlabel name"},
    {"pg_catalog", "pg_event_trigger",
     "oid oid, evtname name, evtevent name, evtowner oid, evtfoid oid, evtenabled \"char\", "
     "evttags text[]"},
    {"pg_catalog", "pg_extension",
     "tableoid oid, xmin xid, oid oid, extname name, extowner oid, extnamespace oid, "
     "extrelocatable boolean, extversion text, extconfig oid[], extcondition text[]"},
    {"pg_catalog", "pg_file_settings",
     "sourcefile text, sourceline integer, seqno integer, name text, setting text, "
     "applied boolean, error text"},
    {"pg_catalog", "pg_foreign_data_wrapper",
     "oid oid, fdwname name, fdwowner oid, fdwhandler oid, fdwvalidator oid, "
     "fdwacl aclitem[], fdwoptions text[]"},
    {"pg_catalog", "pg_foreign_server",
     "oid oid, srvname name, srvowner oid, srvfdw oid, srvtype text, srvversion text, "
     "srvacl aclitem[], srvoptions text[]"},
    {"pg_catalog", "pg_foreign_table",
     "ftrelid oid, ftserver oid, ftoptions text[]"},
    {"pg_catalog", "pg_group",
     "groname name, grosysid oid, grolist oid[]"},
    {"pg_catalog", "pg_hba_file_rules",
     "line_number integer, type text, database text[], user_name text[], address text, "
     "netmask text, auth_method text, options text[], error text"},
    {"pg_catalog", "pg_ident_file_mappings",
     "line_number integer, map_name text, sys_name text, pg_username text, error text"},
    {"pg_catalog", "pg_index",
     "indexrelid oid, indrelid oid, indnatts smallint, indnkeyatts smallint, "
     "indisunique boolean, indnullsnotdistinct boolean, indisprimary boolean, "
     "indisexclusion boolean, indimmediate boolean, indisclustered boolean, "
     "indisvalid boolean, indcheckxmin boolean, indisready boolean, indislive boolean, "
     "indisreplident boolean, indkey int2vector, indcollation oidvector, indclass oidvector, "
     "indoption int2vector, indexprs pg_node_tree, indpred pg_node_tree"},
    {"pg_catalog", "pg_indexes",
     "schemaname name, tablename name, indexname name, tablespace name, indexdef text"},
    {"pg_catalog", "pg_inherits",
     "inhrelid oid, inhparent oid, inhseqno integer, inhdetachpending boolean"},
    {"pg_catalog", "pg_init_privs",
     "objoid oid, classoid oid, objsubid integer, privtype \"char\", initprivs aclitem[]"},
    {"pg_catalog", "pg_language",
     "oid oid, lanname name, lanowner oid, lanispl boolean, lanpltrusted boolean, "
     "lanplcallfoid oid, laninline oid, lanvalidator oid, lanacl aclitem[]"},
    {"pg_catalog", "pg_largeobject",
     "loid oid, pageno integer, data bytea"},
    {"pg_catalog", "pg_largeobject_metadata",
     "oid oid, lomowner oid, lomacl aclitem[]"},
    {"pg_catalog", "pg_locks",
     "locktype text, database oid, relation oid, page integer, tuple smallint, "
     "virtualxid text, transactionid xid, classid oid, objid oid, objsubid smallint, "
     "virtualtransaction text, pid integer, mode text, granted boolean, fastpath boolean, "
     "waitstart timestamptz"},
    {"pg_catalog", "pg_matviews",
     "schemaname name, matviewname name, matviewowner name, tablespace name, "
     "hasindexes boolean, ispopulated boolean, definition text"},
    {"pg_catalog", "pg_namespace",
     "tableoid oid, xmin xid, oid oid, nspname name, nspowner oid, nspacl aclitem[]"},
    {"pg_catalog", "pg_opclass",
     "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, "
     "opcintype oid, opcdefault boolean, opckeytype oid"},
    {"pg_catalog", "pg_operator",
     "oid oid, oprname name, oprnamespace oid, oprowner oid, oprkind \"char\", "
     "oprcanmerge boolean, oprcanhash boolean, oprleft oid, oprright oid, oprresult oid, "
     "oprcom oid, oprnegate oid, oprcode regproc, oprrest regproc, oprjoin regproc"},
    {"pg_catalog", "pg_opfamily",
     "oid oid, opfmethod oid, opfname name, opfnamespace oid, opfowner oid"},
    {"pg_catalog", "pg_parameter_acl",
     "oid oid, parname text, paracl aclitem[]"},
    {"pg_catalog", "pg_partitioned_table",
     "partrelid oid, partstrat \"char\", partnatts smallint, partdefid oid, "
     "partattrs int2vector, partclass oidvector, partcollation oidvector, "
     "partexprs pg_node_tree"},
    {"pg_catalog", "pg_policies",
     "schemaname name, tablename name, policyname name, permissive text, roles name[], "
     "cmd text, qual text, with_check text"},
    {"pg_catalog", "pg_policy",
     "oid oid, polname name, polrelid oid, polcmd \"char\", polpermissive boolean, "
     "polroles oid[], polqual pg_node_tree, polwithcheck pg_node_tree"},
    {"pg_catalog", "pg_prepared_statements",
     "name text, statement text, prepare_time timestamptz, parameter_types regtype[], "
     "from_sql boolean, generic_plans bigint, custom_plans bigint"},
    {"pg_catalog", "pg_prepared_xacts",
     "transaction xid, gid text, prepared timestamptz, owner name, database name"},
    {"pg_catalog", "pg_proc",
     "tableoid oid, xmin xid, oid oid, proname name, pronamespace oid, proowner oid, "
     "prolang oid, procost real, prorows real, provariadic oid, prosupport regproc, "
     "prokind \"char\", prosecdef boolean, proleakproof boolean, proisstrict boolean, "
     "proretset boolean, provolatile \"char\", proparallel \"char\", pronargs smallint, "
     "pronargdefaults smallint, prorettype oid, proargtypes oidvector, proallargtypes oid[], "
     "proargmodes \"char\"[], proargnames text[], proargdefaults pg_node_tree, "
     "protrftypes oid[], prosrc text, probin text, prosqlbody pg_node_tree, "
     "proconfig text[], proacl aclitem[]"},
    {"pg_catalog", "pg_publication",
     "oid oid, pubname name, pubowner oid, puballtables boolean, pubinsert boolean, "
     "pubupdate boolean, pubdelete boolean, pubtruncate boolean, pubviaroot boolean"},
    {"pg_catalog", "pg_publication_namespace",
     "oid oid, pnpubid oid, pnnspid oid"},
    {"pg_catalog", "pg_publication_rel",
     "oid oid, prpubid oid, prrelid oid, prqual pg_node_tree, prattrs int2vector"},
    {"pg_catalog", "pg_publication_tables",
     "pubname name, schemaname name, tablename name, attnames name[], rowfilter text"},
    {"pg_catalog", "pg_range",
     "rngtypid oid, rngsubtype oid, rngmultitypid oid, rngcollation oid, rngsubopc oid, "
     "rngcanonical regproc, rngsubdiff regproc"},
    {"pg_catalog", "pg_replication_origin",
     "roident oid, roname text"},
    {"pg_catalog", "pg_replication_origin_status",
     "local_id oid, external_id text, remote_lsn pg_lsn, local_lsn pg_lsn"},
    {"pg_catalog", "pg_replication_slots",
     "slot_name name, plugin name, slot_type text, datoid oid, database name, "
     "temporary boolean, active boolean, active_pid integer, catalog_xmin xid, "
     "restart_lsn pg_lsn, confirmed_flush_lsn pg_lsn, wal_status text, safe_wal_size bigint, "
     "two_phase boolean"},
    {"pg_catalog", "pg_rewrite",
     "oid oid, rulename name, ev_class oid, ev_type \"char\", ev_enabled \"char\", "
     "is_instead boolean, ev_qual pg_node_tree, ev_action pg_node_tree"},
    {"pg_catalog", "pg_roles",
     "rolname name, rolsuper boolean, rolinherit boolean, rolcreaterole boolean, "
     "rolcreatedb boolean, rolcanlogin boolean, rolreplication boolean, "
     "rolconnlimit integer, rolpassword text, rolvaliduntil timestamptz, "
     "rolbypassrls boolean, rolconfig text[], oid oid"},
    {"pg_catalog", "pg_rules",
     "schemaname name, tablename name, rulename name, definition text"},
    {"pg_catalog", "pg_seclabel",
     "objoid oid, classoid oid, objsubid integer, provider text, label text"},
    {"pg_catalog", "pg_seclabels",
     "objoid oid, classoid oid, objsubid integer, objtype text, objnamespace oid, "
     "objname text, provider text, label text"},
    {"pg_catalog", "pg_sequence",
     "seqrelid oid, seqtypid oid, seqstart bigint, seqincrement bigint, seqmax bigint, "
     "seqmin bigint, seqcache bigint, seqcycle boolean"},
    {"pg_catalog", "pg_sequences",
     "schemaname name, sequencename name, sequenceowner name, data_type regtype, "
     "start_value bigint, min_value bigint, max_value bigint, increment_by bigint, "
     "cycle boolean, cache_size bigint, last_value bigint"},
    {"pg_catalog", "pg_settings",
     "name text, setting text, unit text, category text, short_desc text, extra_desc text, "
     "context text, vartype text, source text, min_val text, max_val text, enumvals text[], "
     "boot_val text, reset_val text, sourcefile text, sourceline integer, "
     "pending_restart boolean"},
    {"pg_catalog", "pg_shadow",
     "usename name, usesysid oid, usecreatedb boolean, usesuper boolean, userepl boolean, "
     "usebypassrls boolean, passwd text, valuntil timestamptz, useconfig text[]"},
    {"pg_catalog", "pg_shdepend",
     "dbid oid, classid oid, objid oid, objsubid integer, refclassid oid, refobjid oid, "
     "deptype \"char\""},
    {"pg_catalog", "pg_shdescription",
     "objoid oid, classoid oid, description text"},
    {"pg_catalog", "pg_shmem_allocations",
     "name text, off bigint, size bigint, allocated_size bigint"},
    {"pg_catalog", "pg_shseclabel",
     "objoid oid, classoid oid, provider text, label text"},
    {"pg_catalog", "pg_stat_activity",
     "datid oid, datname name, pid integer, leader_pid integer, usesysid oid, usename name, "
     "application_name text, client_addr inet, client_hostname text, client_port integer, "
     "backend_start timestamptz, xact_start timestamptz, query_start timestamptz, "
     "state_change timestamptz, wait_event_type text, wait_event text, state text, "
     "backend_xid xid, backend_xmin xid, query_id bigint, query text, backend_type text"},
    {"pg_catalog", "pg_stat_all_indexes",
     "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, "
     "idx_scan bigint, idx_tup_read bigint, idx_tup_fetch bigint"},
    {"pg_catalog", "pg_stat_all_tables",
     "relid oid, schemaname name, relname name, seq_scan bigint, seq_tup_read bigint, "
     "idx_scan bigint, idx_tup_fetch bigint, n_tup_ins bigint, n_tup_upd bigint, "
     "n_tup_del bigint, n_tup_hot_upd bigint, n_live_tup bigint, n_dead_tup bigint, "
     "n_mod_since_analyze bigint, n_ins_since_vacuum bigint, last_vacuum timestamptz, "
     "last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, "
     "vacuum_count bigint, autovacuum_count bigint, analyze_count bigint, "
     "autoanalyze_count bigint"},
    {"pg_catalog", "pg_stat_archiver",
     "archived_count bigint, last_archived_wal text, last_archived_time timestamptz, "
     "failed_count bigint, last_failed_wal text, last_failed_time timestamptz, "
     "stats_reset timestamptz"},
    {"pg_catalog", "pg_stat_bgwriter",
     "checkpoints_timed bigint, checkpoints_req bigint, "
     "checkpoint_write_time double precision, checkpoint_sync_time double precision, "
     "buffers_checkpoint bigint, buffers_clean bigint, maxwritten_clean bigint, "
     "buffers_backend bigint, buffers_backend_fsync bigint, buffers_alloc bigint, "
     "stats_reset timestamptz"},
    {"pg_catalog", "pg_stat_database",
     "datid oid, datname name, numbackends integer, xact_commit bigint, "
     "xact_rollback bigint, blks_read bigint, blks_hit bigint, tup_returned bigint, "
     "tup_fetched bigint, tup_inserted bigint, tup_updated bigint, tup_deleted bigint, "
     "conflicts bigint, temp_files bigint, temp_bytes bigint, deadlocks bigint, "
     "checksum_failures bigint, checksum_last_failure timestamptz, "
     "blk_read_time double precision, blk_write_time double precision, "
     "session_time double precision, active_time double precision, "
     "idle_in_transaction_time double precision, sessions bigint, sessions_abandoned bigint, "
     "sessions_fatal bigint, sessions_killed bigint, stats_reset timestamptz"},
    {"pg_catalog", "pg_stat_database_conflicts",
     "datid oid, datname name, confl_tablespace bigint, confl_lock bigint, "
     "confl_snapshot bigint, confl_bufferpin bigint, confl_deadlock bigint"},
    {"pg_catalog", "pg_stat_gssapi",
     "pid integer, gss_authenticated boolean, principal text, encrypted boolean"},
    {"pg_catalog", "pg_stat_progress_analyze",
     "pid integer, datid oid, datname name, relid oid, phase text, sample_blks_total bigint, "
     "sample_blks_scanned bigint, ext_stats_total bigint, ext_stats_computed bigint, "
     "child_tables_total bigint, child_tables_done bigint, current_child_table_relid oid"},
    {"pg_catalog", "pg_stat_progress_basebackup",
     "pid integer, phase text, backup_total bigint, backup_streamed bigint, "
     "tablespaces_total bigint, tablespaces_streamed bigint"},
    {"pg_catalog", "pg_stat_progress_cluster",
     "pid integer, datid oid, datname name, relid oid, command text, phase text, "
     "cluster_index_relid oid, heap_tuples_scanned bigint, heap_tuples_written bigint, "
     "heap_blks_total bigint, heap_blks_scanned bigint, index_rebuild_count bigint"},
    {"pg_catalog", "pg_stat_progress_copy",
     "pid integer, datid oid, datname name, relid oid, command text, type text, "
     "bytes_processed bigint, bytes_total bigint, tuples_processed bigint, "
     "tuples_excluded bigint"},
    {"pg_catalog", "pg_stat_progress_create_index",
     "pid integer, datid oid, datname name, relid oid, index_relid oid, command text, "
     "phase text, lockers_total bigint, lockers_done bigint, current_locker_pid bigint, "
     "blocks_total bigint, blocks_done bigint, tuples_total bigint, tuples_done bigint, "
     "partitions_total bigint, partitions_done bigint"},
    {"pg_catalog", "pg_stat_progress_vacuum",
     "pid integer, datid oid, datname name, relid oid, phase text, heap_blks_total bigint, "
     "heap_blks_scanned bigint, heap_blks_vacuumed bigint, index_vacuum_count bigint, "
     "max_dead_tuples bigint, num_dead_tuples bigint"},
    {"pg_catalog", "pg_stat_recovery_prefetch",
     "stats_reset timestamptz, prefetch bigint, hit bigint, skip_init bigint, "
     "skip_new bigint, skip_fpw bigint, skip_rep bigint, wal_distance integer, "
     "block_distance integer, io_depth integer"},
    {"pg_catalog", "pg_stat_replication",
     "pid integer, usesysid oid, usename name, application_name text, client_addr inet, "
     "client_hostname text, client_port integer, backend_start timestamptz, "
     "backend_xmin xid, state text, sent_lsn pg_lsn, write_lsn pg_lsn, flush_lsn pg_lsn, "
     "replay_lsn pg_lsn, write_lag interval, flush_lag interval, replay_lag interval, "
     "sync_priority integer, sync_state text, reply_time timestamptz"},
    {"pg_catalog", "pg_stat_replication_slots",
     "slot_name text, spill_txns bigint, spill_count bigint, spill_bytes bigint, "
     "stream_txns bigint, stream_count bigint, stream_bytes bigint, total_txns bigint, "
     "total_bytes bigint, stats_reset timestamptz"},
    {"pg_catalog", "pg_stat_slru",
     "name text, blks_zeroed bigint, blks_hit bigint, blks_read bigint, blks_written bigint, "
     "blks_exists bigint, flushes bigint, truncates bigint, stats_reset timestamptz"},
    {"pg_catalog", "pg_stat_ssl",
     "pid integer, ssl boolean, version text, cipher text, bits integer, client_dn text, "
     "client_serial numeric, issuer_dn text"},
    {"pg_catalog", "pg_stat_subscription",
     "subid oid, subname name, pid integer, relid oid, received_lsn pg_lsn, "
     "last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, "
     "latest_end_lsn pg_lsn, latest_end_time timestamptz"},
    {"pg_catalog", "pg_stat_subscription_stats",
     "subid oid, subname name, apply_error_count bigint, sync_error_count bigint, "
     "stats_reset timestamptz"},
    {"pg_catalog", "pg_stat_sys_indexes",
     "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, "
     "idx_scan bigint, idx_tup_read bigint, idx_tup_fetch bigint"},
    {"pg_catalog", "pg_stat_sys_tables",
     "relid oid, schemaname name, relname name, seq_scan bigint, seq_tup_read bigint, "
     "idx_scan bigint, idx_tup_fetch bigint, n_tup_ins bigint, n_tup_upd bigint, "
     "n_tup_del bigint, n_tup_hot_upd bigint, n_live_tup bigint, n_dead_tup bigint, "
     "n_mod_since_analyze bigint, n_ins_since_vacuum bigint, last_vacuum timestamptz, "
     "last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, "
     "vacuum_count bigint, autovacuum_count bigint, analyze_count bigint, "
     "autoanalyze_count bigint"},
    {"pg_catalog", "pg_stat_user_functions",
     "funcid oid, schemaname name, funcname name, calls bigint, total_time double precision, "
     "self_time double precision"},
    {"pg_catalog", "pg_stat_user_indexes",
     "relid oid, indexrelid oid, schemaname name, relname name, indexrelname name, "
     "idx_scan bigint, idx_tup_read bigint, idx_tup_fetch bigint"},
    {"pg_catalog", "pg_stat_user_tables",
     "relid oid, schemaname name, relname name, seq_scan bigint, seq_tup_read bigint, "
     "idx_scan bigint, idx_tup_fetch bigint, n_tup_ins bigint, n_tup_upd bigint, "
     "n_tup_del bigint, n_tup_hot_upd bigint, n_live_tup bigint, n_dead_tup bigint, "
     "n_mod_since_analyze bigint, n_ins_since_vacuum bigint, last_vacuum timestamptz, "
     "last_autovacuum timestamptz, last_analyze timestamptz, last_autoanalyze timestamptz, "
     "vacuum_count bigint, autovacuum_count bigint, analyze_count bigint, "
     "autoanalyze_count bigint"},
    {"pg_catalog", "pg_stat_wal",
     "wal_records bigint, wal_fpi bigint, wal_bytes numeric, wal_buffers_full bigint, "
     "wal_write bigint, wal_sync bigint, wal_write_time double precision, "
     "wal_sync_time double precision, stats_reset timestamptz"},
    {"pg_catalog", "pg_stat_wal_receiver",
     "pid integer, status text, receive_start_lsn pg_lsn, receive_start_tli integer, "
     "written_lsn pg_lsn, flushed_lsn pg_lsn, received_tli integer, "
     "last_msg_send_time timestamptz, last_msg_receipt_time timestamptz, "
     "latest_end_lsn pg_lsn, latest_end_time timestamptz, slot_name text, sender_host text, "
     "sender_port integer, conninfo text"},
    {"pg_catalog", "pg_statistic",
     "starelid oid, staattnum smallint, stainherit boolean, stanullfrac real, "
     "stawidth integer, stadistinct real, stakind1 smallint, stakind2 smallint, "
     "stakind3 smallint, stakind4 smallint, stakind5 smallint, staop1 oid, staop2 oid, "
     "staop3 oid, staop4 oid, staop5 oid, stacoll1 oid, stacoll2 oid, stacoll3 oid, "
     "stacoll4 oid, stacoll5 oid, stanumbers1 real[], stanumbers2 real[], "
     "stanumbers3 real[], stanumbers4 real[], stanumbers5 real[], stavalues1 anyarray, "
     "stavalues2 anyarray, stavalues3 anyarray, stavalues4 anyarray, stavalues5 anyarray"},
    {"pg_catalog", "pg_statistic_ext",
     "oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, "
     "stxstattarget integer, stxkeys int2vector, stxkind \"char\"[], stxexprs pg_node_tree"},
    {"pg_catalog", "pg_statistic_ext_data",
     "stxoid oid, stxdinherit boolean, stxdndistinct pg_ndistinct, "
     "stxddependencies pg_dependencies, stxdmcv pg_mcv_list, stxdexpr pg_statistic[]"},
    {"pg_catalog", "pg_stats",
     "schemaname name, tablename name, attname name, inherited boolean, null_frac real, "
     "avg_width integer, n_distinct real, most_common_vals anyarray, "
     "most_common_freqs real[], histogram_bounds anyarray, correlation real, "
     "most_common_elems anyarray, most_common_elem_freqs real[], "
     "elem_count_histogram real[]"},
    {"pg_catalog", "pg_stats_ext",
     "schemaname name, tablename name, statistics_schemaname name, statistics_name name, "
     "statistics_owner name, attnames name[], exprs text[], kinds \"char\"[], "
     "inherited boolean, n_distinct pg_ndistinct, dependencies pg_dependencies, "
     "most_common_vals text[], most_common_val_nulls boolean[], "
     "most_common_freqs double precision[], most_common_base_freqs double precision[]"},
    {"pg_catalog", "pg_stats_ext_exprs",
     "schemaname name, tablename name, statistics_schemaname name, statistics_name name, "
     "statistics_owner name, expr text, inherited boolean, null_frac real, "
     "avg_width integer, n_distinct real, most_common_vals anyarray, "
     "most_common_freqs real[], histogram_bounds anyarray, correlation real, "
     "most_common_elems anyarray, most_common_elem_freqs real[], "
     "elem_count_histogram real[]"},
    {"pg_catalog", "pg_subscription",
     "oid oid, subdbid oid, subskiplsn pg_lsn, subname name, subowner oid, "
     "subenabled boolean, subbinary boolean, substream boolean, subtwophasestate \"char\", "
     "subdisableonerr boolean, subconninfo text, subslotname name, subsynccommit text, "
     "subpublications text[]"},
    {"pg_catalog", "pg_subscription_rel",
     "srsubid oid, srrelid oid, srsubstate \"char\", srsublsn pg_lsn"},
    {"pg_catalog", "pg_tables",
     "schemaname name, tablename name, tableowner name, tablespace name, hasindexes boolean, "
     "hasrules boolean, hastriggers boolean, rowsecurity boolean"},
    {"pg_catalog", "pg_tablespace",
     "oid oid, spcname name, spcowner oid, spcacl aclitem[], spcoptions text[]"},
    {"pg_catalog", "pg_timezone_abbrevs",
     "abbrev text, utc_offset interval, is_dst boolean"},
    {"pg_catalog", "pg_timezone_names",
     "name text, abbrev text, utc_offset interval, is_dst boolean"},
    {"pg_catalog", "pg_transform",
     "oid oid, trftype oid, trflang oid, trffromsql regproc, trftosql regproc"},
    {"pg_catalog", "pg_trigger",
     "tableoid oid, xmin xid, oid oid, tgrelid oid, tgparentid oid, tgname name, tgfoid oid, "
     "tgtype smallint, tgenabled \"char\", tgisinternal boolean, tgconstrrelid oid, "
     "tgconstrindid oid, tgconstraint oid, tgdeferrable boolean, tginitdeferred boolean, "
     "tgnargs smallint, tgattr int2vector, tgargs bytea, tgqual pg_node_tree, "
     "tgoldtable name, tgnewtable name"},
    {"pg_catalog", "pg_ts_config",
     "oid oid, cfgname name, cfgnamespace oid, cfgowner oid, cfgparser oid"},
    {"pg_catalog", "pg_ts_config_map",
     "mapcfg oid, maptokentype integer, mapseqno integer, mapdict oid"},
    {"pg_catalog", "pg_ts_dict",
     "oid oid, dictname name, dictnamespace oid, dictowner oid, dicttemplate oid, "
     "dictinitoption text"},
    {"pg_catalog", "pg_ts_parser",
     "oid oid, prsname name, prsnamespace oid, prsstart regproc, prstoken regproc, "
     "prsend regproc, prsheadline regproc, prslextype regproc"},
    {"pg_catalog", "pg_ts_template",
     "oid oid, tmplname name, tmplnamespace oid, tmplinit regproc, tmpllexize regproc"},
    {"pg_catalog", "pg_type",
     "tableoid oid, xmin xid, oid oid, typname name, typnamespace oid, typowner oid, "
     "typlen smallint, typbyval boolean, typtype \"char\", typcategory \"char\", "
     "typispreferred boolean, typisdefined boolean, typdelim \"char\", typrelid oid, "
     "typsubscript regproc, typelem oid, typarray oid, typinput regproc, typoutput regproc, "
     "typreceive regproc, typsend regproc, typmodin regproc, typmodout regproc, "
     "typanalyze regproc, typalign \"char\", typstorage \"char\", typnotnull boolean, "
     "typbasetype oid, typtypmod integer, typndims integer, typcollation oid, "
     "typdefaultbin pg_node_tree, typdefault text, typacl aclitem[]"},
    {"pg_catalog", "pg_user",
     "usename name, usesysid oid, usecreatedb boolean, usesuper boolean, userepl boolean, "
     "usebypassrls boolean, passwd text, valuntil timestamptz, useconfig text[]"},
    {"pg_catalog", "pg_user_mapping",
     "oid oid, umuser oid, umserver oid, umoptions text[]"},
    {"pg_catalog", "pg_user_mappings",
     "umid oid, srvid oid, srvname name, umuser oid, usename name, umoptions text[]"},
    {"pg_catalog", "pg_views",
     "schemaname name, viewname name, viewowner name, definition text"},
}};
// clang-format on

}  // namespace

const PgRelation* FindPgRelation(std::string_view name) {
  constexpr std::string_view kInformationSchema = "information_schema.";
  const bool information = name.starts_with(kInformationSchema);
  const std::string_view plain = information ? name.substr(kInformationSchema.size()) : name;
  const auto found =
      std::find_if(kRelations.begin(), kRelations.end(), [&](const PgRelation& relation) {
        return relation.name == plain && (relation.schema == "information_schema") == information;
      });
  return found == kRelations.end() ? nullptr : &*found;
}

bool HasPgColumn(std::string_view name, std::string_view type) {
  const std::string column = std::string(name) + " " + std::string(type);
  return std::any_of(kRelations.begin(), kRelations.end(), [&](const PgRelation& relation) {
    const std::string_view columns = relation.columns;
    const size_t at = columns.find(column);
    return at != std::string_view::npos && (at == 0 || columns[at - 1] == ' ') &&
           (at + column.size() == columns.size() || columns[at + column.size()] == ',');
  });
}

}  // namespace sluice::catalog
