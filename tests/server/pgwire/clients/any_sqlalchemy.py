"""SQLAlchemy and pandas at the PostgreSQL door, over either database: reflection, ORM, to_sql and read_sql."""
import sys
import threading
import warnings

import pandas
import sqlalchemy
from sqlalchemy import text
from sqlalchemy.orm import Session, declarative_base

warnings.simplefilter("ignore")
LOGIN = dict(part.split("=") for part in sys.argv[1].split())
engine = sqlalchemy.create_engine(
    "postgresql+psycopg2://{user}@{host}:{port}/{dbname}?sslmode=require".format(**LOGIN))
Base = declarative_base()


class Shop(Base):
    __tablename__ = "by_sqlalchemy_shop"
    id = sqlalchemy.Column(sqlalchemy.BigInteger, primary_key=True, autoincrement=False)
    name = sqlalchemy.Column(sqlalchemy.Text, nullable=False, unique=True)


class Visit(Base):
    __tablename__ = "by_sqlalchemy_visit"
    id = sqlalchemy.Column(sqlalchemy.BigInteger, primary_key=True, autoincrement=False)
    shop_id = sqlalchemy.Column(sqlalchemy.ForeignKey(Shop.id))
    shop = sqlalchemy.orm.relationship(Shop)


Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add(Visit(id=1, shop=Shop(id=7, name="corner")))
    session.commit()
    assert session.query(Visit).join(Shop).filter(Shop.name == "corner").one().shop_id == 7
looked = sqlalchemy.inspect(engine)
assert {"points", "by_sqlalchemy_shop"} <= set(looked.get_table_names()), looked.get_table_names()
assert looked.get_pk_constraint("by_sqlalchemy_visit")["constrained_columns"] == ["id"]
(key,) = looked.get_foreign_keys("by_sqlalchemy_visit")
assert (key["constrained_columns"], key["referred_table"]) == (["shop_id"], "by_sqlalchemy_shop"), key
assert [u["column_names"] for u in looked.get_unique_constraints("by_sqlalchemy_shop")] == [["name"]]
columns = {c["name"]: c for c in looked.get_columns("by_sqlalchemy_shop")}
assert isinstance(columns["id"]["type"], sqlalchemy.BigInteger) and not columns["name"]["nullable"], columns
reflected = sqlalchemy.Table("points", sqlalchemy.MetaData(), autoload_with=engine)
with engine.connect() as c:
    assert c.execute(sqlalchemy.select(sqlalchemy.func.count()).select_from(reflected)).scalar() == 300
Base.metadata.drop_all(engine)
assert "by_sqlalchemy_shop" not in sqlalchemy.inspect(engine).get_table_names()

frame = pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 1.5], "c": ["x", "y", None],
                          "d": pandas.to_datetime(["2026-01-01", "2026-01-02 03:04:05", None])})
frame.to_sql("by_pandas", engine, index=False, if_exists="replace")
frame.to_sql("by_pandas", engine, index=False, if_exists="append", method="multi")
back = pandas.read_sql("SELECT * FROM by_pandas ORDER BY a", engine)
assert len(back) == 6 and list(back["a"]) == [1, 1, 2, 2, 3, 3], back
assert str(back["d"][2]) == "2026-01-02 03:04:05" and back["b"].isna().sum() == 2, back
assert len(pandas.read_sql_table("by_pandas", engine)) == 6
with engine.begin() as c:
    c.execute(text("DROP TABLE by_pandas"))

with engine.connect() as c:
    row = c.execute(text("SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=:rounds"
                         " LABEL y INTO by_sqlalchemy"), {"rounds": 3}).one()
    assert row.model == "by_sqlalchemy" and row.rows == 300, row
scored = pandas.read_sql(text("SELECT x FROM points WHERE x <= :most ORDER BY x TO PREDICT USING by_sqlalchemy"),
                         engine.connect(), params={"most": 3})
assert list(scored["x"]) == [1.0, 2.0, 3.0], scored
with engine.connect() as c:
    try:
        c.execute(text("SELECT * FROM points LABEL yy INTO m"))
        raise AssertionError("no error")
    except sqlalchemy.exc.ProgrammingError as error:
        assert error.orig.pgcode == "42703" and "'y'" in error.orig.pgerror, error
with engine.connect() as c:
    threading.Timer(1.0, c.connection.dbapi_connection.cancel).start()
    try:
        c.execute(text("SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], train.epoch=100000"
                       " LABEL y INTO m"))
        raise AssertionError("it was not cancelled")
    except sqlalchemy.exc.OperationalError as error:
        assert error.orig.pgcode == "57014", error
print("ok")
