"""A user at the PostgreSQL door who wants what is another's. Arguments: how to connect as the other, as the user."""
import sys

import psycopg
from psycopg.conninfo import conninfo_to_dict

OURS = " TO TRAIN LinearClassifier WITH train.epoch=1, split.kind='none' LABEL y INTO "
SECRET = "SELECT a, word, y FROM secret"


def connect(conninfo, **more):
    return psycopg.connect(conninfo, autocommit=True, sslmode="require", **more)


def ask(session, sql):
    """(SQLSTATE or "", rows or the message, the names of the columns)"""
    try:
        cursor = session.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
        return "", rows, [column.name for column in cursor.description or []]
    except psycopg.Error as error:
        return error.sqlstate, str(error), []


def expect(session, sql, state):
    got = ask(session, sql)
    assert got[0] == state, (sql, got)


def expect_rows(session, select, rows):
    """As many for a training as for SELECT itself."""
    plain = ask(session, f"SELECT count(*) FROM ({select}) AS s")
    assert plain[1] == [(rows,)], (select, plain)
    state, answer, names = ask(session, select + OURS + "tried")
    assert state == "" and answer[0][names.index("rows")] == rows, (select, state, answer)


ann, bob = (connect(conninfo) for conninfo in sys.argv[1:3])
her, his = (conninfo_to_dict(conninfo)["user"] for conninfo in sys.argv[1:3])
ann.execute(f"""
    CREATE TABLE secret AS SELECT i % 7 AS a, i % 2 AS y, CASE WHEN i <= 100 THEN '{her}' ELSE '{his}' END AS owner,
      CASE WHEN i <= 100 THEN 'hers' ELSE 'his' END || i % 4 AS word FROM generate_series(1, 140) AS i;
    ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON secret USING (owner = current_user);
    CREATE TABLE wages AS SELECT a, y, word, a AS wage FROM secret;
    CREATE TABLE tenants AS SELECT a, y, word, 't' || a AS tenant FROM secret;
    ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
    CREATE POLICY mine ON tenants USING (tenant = current_setting('app.tenant', true));
    GRANT SELECT ON secret, tenants TO {his};
    GRANT SELECT (a, y, word) ON wages TO {his}""")
expect_rows(bob, SECRET, 40)
ask(ann, SECRET + OURS + "hers")

# Nobody becomes another, by whatever is called or sent at the start.
for role in (her, "postgres"):
    for setting in ("role", "session_authorization"):
        expect(bob, f"SELECT s.* FROM (SELECT set_config('{setting}', '{role}', false)) AS r, LATERAL ({SECRET}) AS s"
               + OURS + "tried", "42501")
        try:
            with connect(sys.argv[2], options=f"-c {setting}={role}") as session:
                expect_rows(session, SECRET, 40)
        except psycopg.OperationalError as error:
            assert "permission denied" in str(error), error
expect_rows(bob, f"SELECT s.* FROM (SELECT set_config('role', 'none', false)) AS r, LATERAL ({SECRET}) AS s", 40)

# What leaks if it is asked before the policy is, is not asked before it.
heard = []
bob.add_notice_handler(lambda notice: heard.append(notice.message_primary))
bob.execute("""
    CREATE FUNCTION told(text) RETURNS bool COST 0.0000001 LANGUAGE plpgsql AS
      $$ BEGIN RAISE NOTICE 'told %', $1; RETURN true; END $$;
    CREATE FUNCTION told(text, text) RETURNS bool COST 0.0000001 LANGUAGE plpgsql AS
      $$ BEGIN RAISE NOTICE 'told %', $1; RETURN true; END $$;
    CREATE OPERATOR <<< (LEFTARG = text, RIGHTARG = text, FUNCTION = told, RESTRICT = eqsel)""")
for condition in ("told(word)", "word <<< 'x'"):
    select = f"{SECRET} WHERE {condition}"
    expect_rows(bob, select, 40)
    for statement in (select + " TO PREDICT USING tried", select + " TO EVALUATE tried", "EXPLAIN " + select + OURS + "m"):
        expect(bob, statement, "")
assert any("told his" in text for text in heard), heard
assert not any("hers" in text for text in heard), heard

# Column by column, and by what the session has set, here and there.
expect_rows(bob, "SELECT a, word, y FROM wages", 140)
for select in ("SELECT wage AS a, word, y FROM wages", "SELECT * FROM wages", "SELECT a, word, y FROM wages ORDER BY wage"):
    for statement in (select + OURS + "m", "EXPLAIN " + select + OURS + "m", select + " TO PREDICT USING tried",
                      select + " TO EVALUATE tried", f"COPY ({select} TO PREDICT USING tried) TO STDOUT"):
        expect(bob, statement, "42501")
bob.execute("SET app.tenant = 't3'")
expect_rows(bob, "SELECT a, word, y FROM tenants", 20)
with bob.transaction():
    bob.execute("SET LOCAL app.tenant = 'nobody'")
    expect(bob, "SELECT a, word, y FROM tenants TO EVALUATE tried", "02000")
    raise psycopg.Rollback()
expect_rows(bob, "SELECT a, word, y FROM tenants", 20)

# Another's model and job are not there, whatever stands around the statement.
job = ask(ann, "SHOW JOBS")[1][0][0]
bob.execute("PREPARE hers AS " + SECRET + " TO PREDICT USING hers")
for statement in (SECRET + " TO PREDICT USING hers", SECRET + " TO EVALUATE hers", "EXECUTE hers", "DESCRIBE MODEL hers",
                  f"COPY ({SECRET} TO PREDICT USING hers) TO STDOUT", "DROP MODEL hers", f"SHOW JOB {job}",
                  f"WAIT JOB {job}", f"CANCEL JOB {job}", f"GRANT USAGE ON MODEL hers TO {his}"):
    expect(bob, statement, "42704")
with bob.transaction():
    expect(bob, f"DECLARE c CURSOR FOR {SECRET} TO PREDICT USING hers", "42704")
    raise psycopg.Rollback()

# Names of the user's own in front of the server's lead nothing astray.
with connect(sys.argv[2]) as session:
    for name in ("pg_class", "pg_attribute", "pg_type", "pg_proc", "pg_settings"):
        session.execute(f"CREATE TEMPORARY TABLE {name} (a int)")
    session.execute("SET search_path = public, pg_temp, pg_catalog")
    expect_rows(session, SECRET, 40)
    expect(session, SECRET + " TO PREDICT scored.y USING tried", "")
print("ok")
