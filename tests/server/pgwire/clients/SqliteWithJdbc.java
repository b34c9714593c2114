import java.sql.*;
import java.util.*;

/** PostgreSQL's JDBC driver at the PostgreSQL door over SQLite. Arguments: host, port, database, user. */
public class SqliteWithJdbc {
  static void check(boolean right, Object what) {
    if (!right) {
      throw new AssertionError(what);
    }
  }

  static String stateOf(Connection c, String sql) throws SQLException {
    try (Statement s = c.createStatement()) {
      s.execute(sql);
      return "no error";
    } catch (SQLException error) {
      return error.getSQLState();
    }
  }

  static List<String> column(ResultSet rows, String name) throws SQLException {
    List<String> values = new ArrayList<>();
    while (rows.next()) {
      values.add(rows.getString(name));
    }
    return values;
  }

  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("user", args[3]);
    properties.setProperty("password", "secret");
    properties.setProperty("sslmode", "require");
    String url = "jdbc:postgresql://" + args[0] + ":" + args[1] + "/" + args[2];
    try (Connection c = DriverManager.getConnection(url, properties)) {
      check(c.isValid(5), "valid");
      DatabaseMetaData about = c.getMetaData();
      check(about.getDatabaseMajorVersion() == 15, about.getDatabaseProductVersion());
      try (ResultSet tables = about.getTables(null, "public", "p%", new String[] {"TABLE"})) {
        check(column(tables, "TABLE_NAME").equals(List.of("points")), "tables");
      }
      try (ResultSet columns = about.getColumns(null, "public", "points", null)) {
        check(column(columns, "COLUMN_NAME").equals(List.of("id", "x", "y")), "columns");
      }
      try (ResultSet schemas = about.getSchemas()) {
        check(column(schemas, "TABLE_SCHEM").contains("public"), "schemas");
      }
      try (Statement s = c.createStatement();
          ResultSet row =
              s.executeQuery(
                  "SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3"
                      + " LABEL y INTO by_jdbc")) {
        check(row.next() && row.getInt("rows") == 300 && row.getDouble("loss") > 0, "trained");
      }
      // Often enough for the driver to prepare it on the server, and to read numbers in binary.
      try (PreparedStatement predict =
              c.prepareStatement("SELECT x FROM points WHERE x < ? TO PREDICT USING by_jdbc");
          PreparedStatement plain =
              c.prepareStatement("SELECT id, x, y FROM points WHERE x < ? ORDER BY x")) {
        for (int i = 2; i < 12; ++i) {
          for (PreparedStatement each : List.of(predict, plain)) {
            each.setDouble(1, i);
            int rows = 0;
            try (ResultSet found = each.executeQuery()) {
              while (found.next()) {
                ++rows;
                check(found.getDouble("x") == rows, "x");
              }
            }
            check(rows == i - 1, rows);
          }
        }
      }
      try (Statement s = c.createStatement()) {
        s.execute("CREATE TABLE batch (a INTEGER, b TEXT, d DATE, z BOOLEAN, raw BLOB)");
      }
      try (PreparedStatement insert =
          c.prepareStatement("INSERT INTO batch VALUES (?, ?, ?, ?, ?)")) {
        for (int i = 0; i < 100; ++i) {
          insert.setInt(1, i);
          insert.setString(2, "b" + i);
          insert.setObject(3, java.time.LocalDate.of(2026, 1, 2));
          insert.setBoolean(4, i % 2 == 0);
          insert.setBytes(5, new byte[] {0, (byte) 255});
          insert.addBatch();
        }
        check(insert.executeBatch().length == 100, "batch");
      }
      try (Statement s = c.createStatement();
          ResultSet row =
              s.executeQuery("SELECT count(*) AS n, min(d) AS d, raw, z FROM batch WHERE z")) {
        check(row.next() && row.getInt("n") == 50, "batch");
        check(row.getString("d").equals("2026-01-02"), row.getString("d"));
        check(row.getBytes("raw").length == 2 && row.getBoolean("z"), "raw");
      }
      c.setAutoCommit(false);
      try (Statement s = c.createStatement()) {
        s.setFetchSize(70);  // a portal that is suspended four times
        for (String sql :
            List.of("SELECT x FROM points", "SELECT x FROM points TO PREDICT USING by_jdbc")) {
          int rows = 0;
          try (ResultSet found = s.executeQuery(sql)) {
            while (found.next()) {
              ++rows;
            }
          }
          check(rows == 300, rows);
        }
        s.execute("DELETE FROM batch");
      }
      c.rollback();
      c.setAutoCommit(true);
      try (Statement s = c.createStatement();
          ResultSet row = s.executeQuery("SELECT count(*) FROM batch")) {
        check(row.next() && row.getInt(1) == 100, "it was rolled back");
      }
      check(stateOf(c, "SELECT * FROM nope").equals("42P01"), "no such table");
      check(stateOf(c, "SELECT * FROM points LABEL z INTO m").equals("42703"), "no such column");
      c.setReadOnly(true);
      c.setAutoCommit(false);
      check(stateOf(c, "DELETE FROM batch").equals("25006"), "read-only");
      c.rollback();
      c.setAutoCommit(true);
      c.setReadOnly(false);
      try (Statement s = c.createStatement()) {
        s.setQueryTimeout(1);
        s.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n");
        check(false, "it was not cancelled");
      } catch (SQLException cancelled) {
        check(cancelled.getSQLState().equals("57014"), cancelled);
      }
      try (Statement s = c.createStatement(); ResultSet alive = s.executeQuery("SELECT 1")) {
        check(alive.next(), "alive");
      }
    }
    System.out.println("ok");
  }
}
