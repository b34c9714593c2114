"""asyncpg at the PostgreSQL door, over either database: everything is prepared, and comes in binary."""
import asyncio
import io
import ssl
import sys

import asyncpg

LOGIN = dict(part.split("=") for part in sys.argv[1].split())


async def main():
    unchecked = ssl.create_default_context()
    unchecked.check_hostname = False
    unchecked.verify_mode = ssl.CERT_NONE
    c = await asyncpg.connect(host=LOGIN["host"], port=int(LOGIN["port"]), user=LOGIN["user"],
                              database=LOGIN["dbname"], ssl=unchecked)
    notices = []
    c.add_log_listener(lambda _, message: notices.append(message.message))
    columns = await c.fetch("SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'"
                            " AND table_name = $1 ORDER BY ordinal_position", "points")
    assert ("x", "double precision") in [tuple(r) for r in columns], columns

    row = await c.fetchrow("SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3"
                           " LABEL y INTO by_asyncpg")
    assert (row["model"], row["rows"]) == ("by_asyncpg", 300), row
    assert notices, notices
    # The parameters of a statement of Sluice are texts, unless the client says what they are.
    rows = await c.fetch("SELECT x FROM points WHERE x <= $1 ORDER BY x TO PREDICT USING by_asyncpg", "3")
    assert [r["x"] for r in rows] == [1.0, 2.0, 3.0], rows
    # Rows of other columns than were described would break the protocol.
    try:
        await c.fetch("SELECT x FROM points WHERE x <= 3 TO PREDICT WITH predict.extra_outputs=$1 USING by_asyncpg",
                      "probability")
        raise AssertionError("the value adds a column")
    except asyncpg.exceptions.FeatureNotSupportedError as error:
        assert "cached plan must not change result type" in str(error), error

    await c.execute("CREATE TABLE by_asyncpg_kinds (i BIGINT, f DOUBLE PRECISION, t TEXT, b BOOLEAN)")
    await c.executemany("INSERT INTO by_asyncpg_kinds VALUES ($1, $2, $3, $4)",
                        [(i, i / 4, f"t{i}", i % 2 == 0) for i in range(100)])
    async with c.transaction():
        kept = await c.fetch("SELECT * FROM by_asyncpg_kinds ORDER BY i LIMIT 2")
        assert [tuple(r) for r in kept] == [(0, 0.0, "t0", True), (1, 0.25, "t1", False)], kept
        cursor = await c.cursor("SELECT i FROM by_asyncpg_kinds ORDER BY i")
        assert [r["i"] for r in await cursor.fetch(3)] == [0, 1, 2]
    # COPY in binary, in and out.
    copied = [(1000 + i, None if i == 1 else i / 8, "ä\t", None) for i in range(3)]
    assert await c.copy_records_to_table("by_asyncpg_kinds", records=copied) == "COPY 3"
    out = io.BytesIO()
    await c.copy_from_query("SELECT i, t FROM by_asyncpg_kinds WHERE i = 1001", output=out, format="binary")
    assert out.getvalue()[:11] == b"PGCOPY\n\xff\r\n\0" and out.getvalue()[-2:] == b"\xff\xff", out.getvalue()
    kept = await c.fetch("SELECT * FROM by_asyncpg_kinds WHERE i >= 1000 ORDER BY i")
    assert [tuple(r) for r in kept] == copied, kept
    await c.execute("DROP TABLE by_asyncpg_kinds")

    try:
        await c.fetch("SELECT * FROM points LABEL yy INTO m")
        raise AssertionError("no error")
    except asyncpg.UndefinedColumnError as error:
        assert error.position == "28" and "'y'" in error.hint, error.as_dict()
    try:
        await c.fetch("SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000"
                      " LABEL y INTO m", timeout=1.0)
        raise AssertionError("it was not cancelled")
    except asyncio.TimeoutError:
        pass
    assert await c.fetchval("SELECT 1") == 1
    await c.close()
    print("ok")


asyncio.run(main())
